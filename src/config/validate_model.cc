#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "batch/slot_schema.h"
#include "config/checker.h"
#include "data_feed.pb.h"
#include "model.pb.h"
#include "program/model_defaults.h"

namespace millrace {
namespace {

/// Checks of a model what its compiler does not see: classes that it does not know, what labels mean, and what nobody
/// reads.
class ModelCheck {
 public:
  /// Views all of them.
  ModelCheck(const ModelDesc& model, const std::vector<DefinedSlot>& slots, const std::set<std::string>& read_elsewhere,
             const std::vector<ModelRead>& reads, Checker& check)
      : model_(model), slots_(slots), check_(check), read_(read_elsewhere.begin(), read_elsewhere.end()) {
    for (const DefinedSlot& slot : slots) by_name_.emplace(slot.name, &slot);
    for (const ModelRead& read : reads) {
      read_.insert(read.name);
      if (read.path.ends_with(".table")) tables_read_.insert(read.name);
      if (!read.layer.empty()) inputs_[read.layer].push_back(&read);
    }
  }

  void ClassNames() {
    for (int i = 0; i < model_.table_size(); ++i) {
      CheckKnown(check_, ElementPath("model.table", i) + ".class_name", "class of tables", model_.table(i).class_name(),
                 check_.known().tables);
    }
    for (int i = 0; i < model_.metric_size(); ++i) {
      if (!model_.metric(i).has_class_name()) continue;
      CheckKnown(check_, ElementPath("model.metric", i) + ".class_name", "metric", model_.metric(i).class_name(),
                 check_.known().metrics, check_.known().plugin_advice);
    }
  }

  void Labels() {
    for (int i = 0; i < model_.loss_size(); ++i) {
      const std::string path = ElementPath("model.loss", i);
      LabelAmongInputs(model_.loss(i));
      Label(model_.loss(i), path);
      CheckActivation(model_.loss(i), path);
    }
  }

  /// Tables and slots that are there and go nowhere.
  void Unread() {
    std::set<std::string_view> tables;
    for (const TableDesc& table : model_.table()) tables.insert(table.name());
    // A layer with a table that is not there may have meant any of them.
    if (std::any_of(tables_read_.begin(), tables_read_.end(),
                    [&](const auto& name) { return !tables.contains(name); })) {
      return UnreadSlots();
    }
    for (int i = 0; i < model_.table_size(); ++i) {
      const std::string& name = model_.table(i).name();
      if (name.empty() || read_.contains(name)) continue;
      check_.Warning(ElementPath("model.table", i) + ".name", "no layer looks ids up in table \"" + name + "\"");
    }
    UnreadSlots();
  }

 private:
  /// A model that sees what it is to predict has the best AUC of all, until it is used.
  void LabelAmongInputs(const LossDesc& loss) {
    const auto label = by_name_.find(loss.label());
    if (label == by_name_.end()) return;
    const std::vector<std::string>& of_label = label->second->columns;
    std::vector<std::string_view> layers(loss.in().begin(), loss.in().end());
    std::unordered_set<std::string_view> seen;
    while (!layers.empty()) {
      const auto inputs = inputs_.find(layers.back());
      layers.pop_back();
      if (inputs == inputs_.end()) continue;
      for (const ModelRead* const read : inputs->second) {
        const std::string& name = read->name;
        if (!seen.insert(name).second) continue;
        layers.push_back(name);
        const auto input = by_name_.find(name);
        if (input == by_name_.end()) continue;
        const std::vector<std::string>& of_input = input->second->columns;
        const auto same = std::find_first_of(of_input.begin(), of_input.end(), of_label.begin(), of_label.end());
        if (name == loss.label()) {
          check_.Warning(read->path,
                         "slot \"" + name + "\" is what the loss is to predict, and the model sees it here");
        } else if (same != of_input.end()) {
          check_.Warning(read->path, "slot \"" + name + "\" is made of column \"" + *same + "\", as is the label \"" +
                                         loss.label() + "\": the model may see what it is to predict");
        }
      }
    }
  }

  /// Slots that are parsed and go nowhere, one warning a block of them.
  void UnreadSlots() {
    // Beside mistakes of names they would be the same mistakes once more.
    if (check_.has_errors()) return;
    std::map<std::string, std::vector<std::string>> unread;
    for (const DefinedSlot& slot : slots_) {
      if (slot.is_used && !read_.contains(slot.name)) unread[slot.path].push_back(slot.name);
    }
    for (const auto& [path, names] : unread) {
      const std::string others =
          names.size() == 1 ? "" : " and " + std::to_string(names.size() - 1) + " more of its slots";
      check_.Warning(path + ".name", "no layer, loss or metric reads slot \"" + names[0] + "\"" + others +
                                         ": name it in a layer, or set is_used: false");
    }
  }

  void Label(const LossDesc& loss, const std::string& path) {
    const auto found = by_name_.find(loss.label());
    if (found == by_name_.end() || !found->second->is_used || loss.has_class_name()) return;
    const DefinedSlot& label = *found->second;
    const bool is_class = loss.kind() == LossDesc::CROSS_ENTROPY || loss.kind() == LossDesc::SOFTMAX_CROSS_ENTROPY;
    const bool is_click = loss.kind() == LossDesc::LOG_LOSS || loss.kind() == LossDesc::SIGMOID_CROSS_ENTROPY;
    if (is_class) CheckClassLabel(loss, label, path);
    if (is_click) CheckClickLabel(loss, label, path);
  }

  void CheckClickLabel(const LossDesc& loss, const DefinedSlot& label, const std::string& path) {
    constexpr int64_t kOfClicks = 2;
    if (label.has_ids_of_data) {
      check_.Error(path + ".label",
                   "slot \"" + loss.label() + "\" has ids of a hash, or by how often words stand in the " +
                       "training files, but " + LossDesc::Kind_Name(loss.kind()) +
                       " takes 0 and 1: say which word is which, vocabulary { words: [\"no\", \"yes\"] "
                       "oov_buckets: 0 }, of which the first is 0; numbers 0 and 1 need id {}");
    } else if (label.ids > kOfClicks) {
      check_.Error(path + ".label", "slot \"" + loss.label() + "\" has ids up to " + std::to_string(label.ids - 1) +
                                        " of its vocabulary, but " + LossDesc::Kind_Name(loss.kind()) +
                                        " takes 0 and 1: give it two words and oov_buckets: 0 (1 by default), so that "
                                        "other texts have no id");
    }
  }

  /// Words that are classes have the ids 0 to classes - 1.
  void CheckClassLabel(const LossDesc& loss, const DefinedSlot& label, const std::string& path) {
    const int64_t classes = ClassesRead(model_, loss);
    if (label.is_hashed) {
      check_.Error(path + ".label", "slot \"" + loss.label() + "\" has ids of a hash, and " +
                                        LossDesc::Kind_Name(loss.kind()) +
                                        " reads classes from 0 on: vocabulary { words: [\"a\", \"b\", \"c\"] "
                                        "oov_buckets: 0 } numbers words, id {} takes numbers");
    } else if (classes > 0 && label.ids > classes) {
      check_.Error(path + ".label",
                   "slot \"" + loss.label() + "\" has ids up to " + std::to_string(label.ids - 1) +
                       " of its vocabulary, and layer \"" + loss.in(0) + "\" has " + std::to_string(classes) +
                       " classes, the last of which is " + std::to_string(classes - 1) +
                       ": give it a class for each word; oov_buckets: 0 (1 by default) begins with 0 at the first");
    }
  }

  /// A loss of logits that reads probabilities, or the other way round, trains, and learns less.
  void CheckActivation(const LossDesc& loss, const std::string& path) {
    if (loss.has_class_name() || loss.in_size() != 1) return;
    const auto layer = std::find_if(model_.layer().begin(), model_.layer().end(),
                                    [&](const LayerDesc& one) { return one.name() == loss.in(0); });
    if (layer == model_.layer().end() || !(layer->has_fc() || layer->has_activation())) return;
    const Activation act = layer->has_fc() ? layer->fc().act() : layer->activation().act();
    const bool is_share = act == SIGMOID || act == SOFTMAX;
    const auto warn = [&](const std::string& reads, const std::string& instead) {
      check_.Warning(ElementPath(path + ".in", 0), LossDesc::Kind_Name(loss.kind()) + " reads " + reads +
                                                       ", and layer \"" + loss.in(0) +
                                                       "\" has act: " + Activation_Name(act) + ": " + instead);
    };
    switch (loss.kind()) {
      case LossDesc::CROSS_ENTROPY:
        if (act != SOFTMAX) warn("probabilities", "act: SOFTMAX makes them, and SOFTMAX_CROSS_ENTROPY reads logits");
        break;
      case LossDesc::LOG_LOSS:
        if (!is_share) warn("a probability", "act: SIGMOID makes one, and SIGMOID_CROSS_ENTROPY reads a logit");
        break;
      case LossDesc::SOFTMAX_CROSS_ENTROPY:
        if (is_share) warn("logits", "leave act out, or CROSS_ENTROPY reads probabilities");
        break;
      case LossDesc::SIGMOID_CROSS_ENTROPY:
        if (is_share) warn("a logit", "leave act out, or LOG_LOSS reads a probability");
        break;
      default: break;
    }
  }

  const ModelDesc& model_;
  const std::vector<DefinedSlot>& slots_;
  Checker& check_;
  std::unordered_map<std::string_view, const DefinedSlot*> by_name_;
  std::unordered_set<std::string_view> read_;  ///< names of layers, slots and tables that something reads
  std::set<std::string_view> tables_read_;
  std::unordered_map<std::string_view, std::vector<const ModelRead*>> inputs_;  ///< by layer what it computes with
};

/// The slots as the compiler has them; none where none is used.
SlotSchema SchemaOf(const std::vector<DefinedSlot>& slots, bool are_features) {
  DataFeedDesc feed;
  if (are_features) feed.add_feature();
  std::unordered_set<std::string_view> seen;
  for (const DefinedSlot& slot : slots) {
    if (slot.name.empty() || !seen.insert(slot.name).second) continue;
    Slot& made = *feed.mutable_multi_slot_desc()->add_slots();
    made.set_name(slot.name);
    made.set_type(slot.is_float ? "float" : "uint64");
    made.set_is_dense(slot.is_dense);
    made.set_is_used(slot.is_used);
    for (const int size : slot.shape) made.add_shape(size);
  }
  const Result<SlotSchema> schema = SlotSchema::Create(feed);
  return schema.ok() ? *schema : SlotSchema();
}

}  // namespace

void CheckModel(const ModelDesc& model, const std::vector<DefinedSlot>& slots, bool are_features,
                const std::set<std::string>& read_elsewhere, bool is_of_program, const ModelJudge& judge,
                Checker& check) {
  ModelJudgement judgement;
  if (judge) judgement = judge(model, SchemaOf(slots, are_features), is_of_program);
  ModelCheck of_model(model, slots, read_elsewhere, judgement.reads, check);
  of_model.ClassNames();
  // Where a plugin is missing, nobody can say which classes it would have brought.
  if (check.known().metrics.empty()) {
    std::erase_if(judgement.mistakes, [](const ConfigMistake& mistake) {
      return mistake.path.ends_with(".class_name") || mistake.path.ends_with(".op.type");
    });
  }
  check.Add(judgement.mistakes);
  if (is_of_program) return;
  of_model.Labels();
  if (judge) of_model.Unread();
}

}  // namespace millrace
