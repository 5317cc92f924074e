#include <google/protobuf/reflection.h>

#include <algorithm>
#include <map>
#include <set>

#include "batch/slot_schema.h"
#include "config/checker.h"
#include "config/validate_optimizer.h"
#include "core/edit_distance.h"
#include "model.pb.h"
#include "program/ctr_accessor.h"
#include "program/model_defaults.h"
#include "program/oneof_names.h"

namespace millrace {
namespace {

/// Whether a loss takes the labels 0 and 1.
bool IsOfClicks(const LossDesc& loss) {
  return !loss.has_class_name() &&
         (loss.kind() == LossDesc::LOG_LOSS || loss.kind() == LossDesc::SIGMOID_CROSS_ENTROPY);
}

/// Checks one model; what a layer may read grows from layer to layer.
class ModelCheck {
 public:
  ModelCheck(const ModelDesc& model, const std::vector<DefinedName>& slots, std::set<std::string> read_elsewhere,
             Checker& check)
      : model_(model), check_(check), read_(std::move(read_elsewhere)) {
    for (const DefinedName& slot : slots) defined_.emplace(slot.name, slot);
    slots_known_ = !slots.empty();
    are_features_ = slots_known_ && slots[0].path.starts_with("data_desc.feature[");
  }

  void Run() {
    for (int i = 0; i < model_.table_size(); ++i) Table(model_.table(i), ElementPath("model.table", i));
    for (int i = 0; i < model_.layer_size(); ++i) all_layers_.insert(model_.layer(i).name());
    for (int i = 0; i < model_.layer_size(); ++i) {
      layer_ = model_.layer(i).name();
      Layer(model_.layer(i), ElementPath("model.layer", i));
    }
    layer_.clear();
    if (model_.layer_size() == 0) check_.Missing("model", "layer", "the model has no layers");
    for (int i = 0; i < model_.table_size(); ++i) {
      const std::string& name = model_.table(i).name();
      if (!name.empty() && !read_tables_.contains(name) && !reads_unknown_table_) {
        check_.Warning(ElementPath("model.table", i) + ".name", "no layer looks ids up in table \"" + name + "\"");
      }
    }
    Losses();
    if (model_.has_downsample()) Downsample();
    const auto is_custom = [](const LossDesc& loss) { return loss.has_class_name(); };
    const bool has_custom = std::any_of(model_.loss().begin(), model_.loss().end(), is_custom);
    for (int i = 0; i < model_.metric_size(); ++i) {
      const std::string path = ElementPath("model.metric", i);
      // A loss of a plugin has predictions that only it knows.
      const std::string& in = model_.metric(i).in();
      const bool may_be_prediction = in.starts_with("prediction") || has_custom;
      if (!in.empty() && (!may_be_prediction || defined_.contains(in))) Reads(in, path + ".in");
      Metric(model_.metric(i), path);
    }
    if (model_.has_optimizer()) {
      CheckOptimizer(model_.optimizer(), "model.optimizer", check_);
    } else {
      check_.Missing("model", "optimizer",
                     "the model has no optimizer; add, for example, optimizer { adagrad { lr: 0.01 } }");
    }
    UnreadSlots();
  }

  void RunBesideProgram() {
    for (int i = 0; i < model_.table_size(); ++i) Table(model_.table(i), ElementPath("model.table", i));
    if (model_.has_optimizer()) CheckOptimizer(model_.optimizer(), "model.optimizer", check_);
    for (int i = 0; i < model_.metric_size(); ++i) {
      const MetricDesc& metric = model_.metric(i);
      const std::string path = ElementPath("model.metric", i);
      const std::string kind = KindName(metric, "a metric");
      if (metric.in().empty()) {
        check_.Missing(path, "in", kind + " needs in: the program's variable with the prediction");
      }
      if (metric.label().empty()) check_.Missing(path, "label", kind + " needs label: the slot of the label");
      Metric(metric, path);
      if (!metric.loss().empty()) check_.Error(path + ".loss", "the losses of a program have no names; leave it out");
      if (!metric.mask().empty()) {
        check_.Error(path + ".mask", "beside a program metrics count every example; leave it out, or write a model");
      }
      const auto label = defined_.find(metric.label());
      if (label != defined_.end() && !label->second.is_dense) {
        check_.Error(path + ".label", "slot \"" + metric.label() + "\" must have one value an example: is_dense: true");
      }
    }
  }

 private:
  /// What makes ids of a slot.
  std::string IdAdvice() const { return are_features_ ? "id {}, hash {} or vocabulary {}" : "type: \"uint64\""; }
  static std::string KindName(const MetricDesc& metric, const std::string& otherwise) {
    if (metric.has_class_name()) return metric.class_name();
    return metric.has_kind() ? MetricDesc::Kind_Name(metric.kind()) : otherwise;
  }

  void Table(const TableDesc& table, const std::string& path) {
    if (table.name().empty()) {
      check_.Missing(path, "name", "a table needs a name");
    } else if (const auto [earlier, is_new] = tables_.insert({table.name(), path}); !is_new) {
      check_.Error(path + ".name", "table \"" + table.name() + "\" is there already, on line " +
                                       std::to_string(check_.Line(earlier->second + ".name")));
    }
    if (table.has_accessor()) Accessor(table, path);
    if (!table.has_dim() && !table.has_accessor()) {
      check_.Missing(path, "dim", "a table needs a dim, the floats in a row: dim: 16");
    }
    if (table.has_vocabulary() && table.padding_idx() >= table.vocabulary()) {
      check_.Error(path + ".padding_idx", "padding_idx " + std::to_string(table.padding_idx()) +
                                              " lies outside of the table; its ids are 0 to " +
                                              std::to_string(table.vocabulary() - 1));
    }
    if (table.has_vocabulary() && table.key() == TableDesc::SLOT_AND_ID) {
      check_.Error(path + ".key",
                   "SLOT_AND_ID is for tables that grow; leave out vocabulary, or give each slot a table");
    }
    CheckKnown(check_, path + ".class_name", "class of tables", table.class_name(), check_.known().tables);
    if (table.has_vocabulary() && table.has_class_name()) {
      check_.Error(path + ".class_name", "class_name is for tables that grow; leave out it or vocabulary");
    }
    if (!table.has_vocabulary() && table.has_out_of_range()) {
      check_.Error(path + ".out_of_range", "a table without a vocabulary takes every id; none is out of range");
    }
    if (table.has_init()) Initial(table.init(), path + ".init");
    const auto kind = table.init().kind_case();
    if (!table.has_vocabulary() && (kind == Initializer::kXavier || kind == Initializer::kXavierNormal)) {
      check_.Error(path + ".init", "xavier needs a vocabulary: a table that grows has no size; use uniform or normal");
    }
    if (!table.has_vocabulary() && kind == Initializer::kCustom) {
      check_.Error(path + ".init",
                   "custom needs a vocabulary: rows of a table that grows start one by one; use uniform or normal");
    }
    if (table.has_optimizer()) CheckOptimizer(table.optimizer(), path + ".optimizer", check_);
  }

  void Accessor(const TableDesc& table, const std::string& path) {
    for (const AccessorProblem& problem : FindAccessorProblems(table.accessor())) {
      check_.Error(path + ".accessor." + problem.path, problem.what);
    }
    if (table.has_dim() && table.dim() != DimOf(table)) {
      check_.Error(path + ".dim", "rows of the accessor have embedx_dim + 3 floats, " + std::to_string(DimOf(table)) +
                                      ", not " + std::to_string(table.dim()) + "; leave dim out");
    }
    if (table.has_vocabulary()) {
      check_.Error(path + ".accessor", "accessor is for tables that grow; leave out it or vocabulary");
    }
    if (table.has_init()) {
      check_.Error(path + ".init", "rows of an accessor start by initial_range of its rules; leave init out");
    }
    if (table.has_optimizer()) {
      check_.Error(path + ".optimizer",
                   "rows of an accessor learn by its embed_sgd_param and embedx_sgd_param; leave optimizer out");
    }
  }

  /// What an embedding layer says of shows and clicks.
  void Counts(const EmbeddingLayer& layer, const std::string& path) {
    const auto same = [&layer](const TableDesc& table) { return table.name() == layer.table(); };
    const auto table = std::find_if(model_.table().begin(), model_.table().end(), same);
    if (!layer.show().empty()) Count(layer.show(), path + ".show");
    if (!layer.click().empty()) Count(layer.click(), path + ".click");
    if (table == model_.table().end()) return;
    if (table->has_accessor()) {
      if (layer.use_cvm() && HidesCounts(table->accessor())) {
        check_.Error(path + ".use_cvm", "the SparseAccessor of table \"" + table->name() +
                                            "\" hides its counts; CtrCommonAccessor shows them");
      }
      if (layer.pool() == SUM) return;
      return check_.Error(path + ".pool", "rows with an accessor are summed, as their shows and clicks are: pool: SUM");
    }
    const auto refuse = [&](bool is_set, const std::string& field) {
      if (is_set) {
        check_.Error(path + "." + field, "table \"" + table->name() +
                                             "\" counts no shows and clicks: give it an accessor, or leave this out");
      }
    };
    refuse(layer.has_use_cvm(), "use_cvm");
    refuse(layer.has_show(), "show");
    refuse(layer.has_click(), "click");
  }

  void Count(const std::string& name, const std::string& path) {
    const DefinedName* slot = Slot(name, path);
    if (slot != nullptr && !slot->is_dense) {
      check_.Error(path, "slot \"" + name + "\" must have one value an example: is_dense: true");
    }
  }

  /// The layer that is looked at, if it is one, computes with `name`.
  void IsInput(const std::string& name, const std::string& path) {
    read_.insert(name);
    if (!layer_.empty()) inputs_[layer_].emplace_back(name, path);
  }

  /// A model that sees what it is to predict has the best AUC of all, until it is used.
  void LabelAmongInputs(const LossDesc& loss) {
    const auto label = defined_.find(loss.label());
    if (label == defined_.end()) return;
    const std::vector<std::string>& of_label = label->second.columns;
    std::vector<std::string> layers(loss.in().begin(), loss.in().end());
    std::set<std::string> seen;
    while (!layers.empty()) {
      const auto inputs = inputs_.find(layers.back());
      layers.pop_back();
      if (inputs == inputs_.end()) continue;
      for (const auto& [name, path] : inputs->second) {
        if (!seen.insert(name).second) continue;
        layers.push_back(name);
        const auto input = defined_.find(name);
        if (input == defined_.end()) continue;
        const std::vector<std::string>& of_input = input->second.columns;
        const auto same = std::find_first_of(of_input.begin(), of_input.end(), of_label.begin(), of_label.end());
        if (name == loss.label()) {
          check_.Warning(path, "slot \"" + name + "\" is what the loss is to predict, and the model sees it here");
        } else if (same != of_input.end()) {
          check_.Warning(path, "slot \"" + name + "\" is made of column \"" + *same + "\", as is the label \"" +
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
    for (const auto& [name, defined] : defined_) {
      if (!defined.is_layer && defined.is_used && !read_.contains(name)) unread[defined.path].push_back(name);
    }
    for (const auto& [path, names] : unread) {
      const std::string others =
          names.size() == 1 ? "" : " and " + std::to_string(names.size() - 1) + " more of its slots";
      check_.Warning(path + ".name", "no layer, loss or metric reads slot \"" + names[0] + "\"" + others +
                                         ": name it in a layer, or set is_used: false");
    }
  }

  void Initial(const Initializer& init, const std::string& path) {
    if (init.kind_case() == Initializer::KIND_NOT_SET) {
      check_.Error(path, "an initializer needs " + OneofNames<Initializer>("kind"));
    }
    if (init.kind_case() == Initializer::kXavier && !init.xavier()) {
      check_.Error(path + ".xavier", "xavier: false says not how to start; choose another initializer");
    }
    if (init.kind_case() == Initializer::kXavierNormal && !init.xavier_normal()) {
      check_.Error(path + ".xavier_normal", "xavier_normal: false says not how to start; choose another initializer");
    }
    if (init.has_custom()) {
      CheckClassName(check_, path + ".custom", "initializer", init.custom().class_name(), check_.known().initializers);
    }
  }

  void Layer(const LayerDesc& layer, const std::string& path) {
    switch (layer.kind_case()) {
      case LayerDesc::kEmbedding: Embedding(layer.embedding(), path + ".embedding"); break;
      case LayerDesc::kFc: Fc(layer.fc(), path + ".fc"); break;
      case LayerDesc::kFm: Fm(layer.fm(), path + ".fm"); break;
      case LayerDesc::kAdd: Inputs(layer.add().in(), path + ".add", 2); break;
      case LayerDesc::kActivation:
        Input(layer.activation().in(), path + ".activation");
        if (layer.activation().act() == NONE) {
          check_.Missing(path + ".activation", layer.activation().has_act() ? "" : "act",
                         "an activation layer needs act: RELU, SIGMOID, TANH or SOFTMAX");
        }
        break;
      case LayerDesc::kOp:
        if (layer.op().type().empty()) {
          check_.Missing(path + ".op", "type", "an op layer needs a type, the name of an operator");
        } else {
          CheckKnown(check_, path + ".op.type", "operator", layer.op().type(), check_.known().operators,
                     check_.known().plugin_advice);
        }
        for (int i = 0; i < layer.op().inputs_size(); ++i) {
          const auto& names = layer.op().inputs(i).vars();
          for (int k = 0; k < names.size(); ++k) {
            // An operator may compute the loss: what it does with a label is not known.
            const bool is_label = std::any_of(model_.loss().begin(), model_.loss().end(),
                                              [&](const LossDesc& loss) { return loss.label() == names[k]; });
            if (is_label) {
              read_.insert(names[k]);
            } else {
              IsInput(names[k], ElementPath(ElementPath(path + ".op.inputs", i) + ".vars", k));
            }
          }
        }
        break;
      case LayerDesc::kCustom:
        CheckClassName(check_, path + ".custom", "layer", layer.custom().class_name(), check_.known().layers);
        for (int i = 0; i < layer.custom().in_size(); ++i) {
          Reads(layer.custom().in(i), ElementPath(path + ".custom.in", i));
        }
        if (layer.custom().has_init()) Initial(layer.custom().init(), path + ".custom.init");
        break;
      case LayerDesc::kMultiply: Inputs(layer.multiply().in(), path + ".multiply", 2); break;
      case LayerDesc::kHistory: History(layer.history(), path + ".history"); break;
      case LayerDesc::kAttention:
        Input(layer.attention().in(), path + ".attention");
        if (layer.attention().query().empty()) {
          check_.Missing(path + ".attention", "query",
                         "an attention layer needs a query, the candidate: query: \"item\"");
        } else {
          Reads(layer.attention().query(), path + ".attention.query");
        }
        break;
      case LayerDesc::kGru:
        Input(layer.gru().in(), path + ".gru");
        if (!layer.gru().attention().empty()) Reads(layer.gru().attention(), path + ".gru.attention");
        if (!layer.gru().has_units()) {
          check_.Missing(path + ".gru", "units", "a gru layer needs units, the columns of its state: units: 32");
        }
        break;
      case LayerDesc::kCross:
        Input(layer.cross().in(), path + ".cross");
        if (layer.cross().has_rank() && layer.cross().form() != CrossLayer::MATRIX) {
          check_.Error(path + ".cross.rank", "a rank is of a matrix: form: MATRIX");
        }
        break;
      case LayerDesc::kMixture:
        Inputs(layer.mixture().in(), path + ".mixture", 1);
        if (layer.mixture().gate().empty()) {
          check_.Missing(path + ".mixture", "gate", "a mixture needs a gate, the layer with a share for each input");
        } else {
          Reads(layer.mixture().gate(), path + ".mixture.gate");
        }
        break;
      case LayerDesc::KIND_NOT_SET: check_.Error(path, "a layer needs a kind: " + OneofNames<LayerDesc>("kind")); break;
      default: InputsOfKind(layer, path);
    }
    if (layer.name().empty()) {
      check_.Missing(path, "name", "a layer needs a name");
      return;
    }
    DefinedName defined;
    defined.name = layer.name();
    defined.is_layer = true;
    defined.is_embedding = layer.has_embedding();
    defined.is_float = defined.is_dense = true;
    const auto [earlier, is_new] = defined_.emplace(layer.name(), defined);
    if (is_new) {
      layer_paths_[layer.name()] = path;
    } else if (!earlier->second.is_layer) {
      check_.Error(path + ".name", "\"" + layer.name() + "\" is the name of a slot; choose another for the layer");
    } else {
      check_.Error(path + ".name", "layer \"" + layer.name() + "\" is there already, on line " +
                                       std::to_string(check_.Line(layer_paths_[layer.name()] + ".name")));
    }
  }

  /// Checks what the field `in` of a kind names: an input, or one and more.
  void InputsOfKind(const LayerDesc& layer, const std::string& path) {
    const google::protobuf::FieldDescriptor* const kind =
        layer.GetReflection()->GetOneofFieldDescriptor(layer, LayerDesc::descriptor()->FindOneofByName("kind"));
    const google::protobuf::Message& part = layer.GetReflection()->GetMessage(layer, kind);
    const google::protobuf::FieldDescriptor* const in = part.GetDescriptor()->FindFieldByName("in");
    if (in == nullptr) return;
    const google::protobuf::Reflection& fields = *part.GetReflection();
    if (in->is_repeated()) {
      Inputs(fields.GetRepeatedFieldRef<std::string>(part, in), path + "." + kind->name(), 1);
    } else {
      Input(fields.GetString(part, in), path + "." + kind->name());
    }
  }

  void History(const HistoryLayer& layer, const std::string& path) {
    TableOf(layer.table(), path, "a history layer needs a table");
    SlotsOf(layer.slots(), path, "a history layer needs slots: slots: \"visited_items\"");
  }

  void Embedding(const EmbeddingLayer& layer, const std::string& path) {
    TableOf(layer.table(), path, "an embedding layer needs a table");
    Counts(layer, path);
    SlotsOf(layer.slots(), path, "an embedding layer needs slots: slots: \"C1..C26\"");
  }

  void TableOf(const std::string& table, const std::string& path, const std::string& missing) {
    if (table.empty()) {
      check_.Missing(path, "table", missing);
    } else {
      std::vector<std::string> names;
      for (const TableDesc& known : model_.table()) {
        if (!known.name().empty()) names.push_back(known.name());
      }
      if (model_.table_size() == 0) {
        check_.Error(path + ".table",
                     "no table \"" + table + "\"; the model has none: table { name: \"" + table + "\" dim: 16 }");
      }
      if (!names.empty()) CheckKnown(check_, path + ".table", "table", table, names);
      reads_unknown_table_ = reads_unknown_table_ || !tables_.contains(table);
      read_tables_.insert(table);
    }
  }

  void SlotsOf(const google::protobuf::RepeatedPtrField<std::string>& slots, const std::string& path,
               const std::string& missing) {
    if (slots.empty()) check_.Missing(path, "slots", missing);
    for (int i = 0; i < slots.size(); ++i) {
      const std::string slot_path = ElementPath(path + ".slots", i);
      const Result<std::vector<std::string>> names = ExpandSlotRange(slots[i]);
      if (!names.ok()) {
        check_.Error(slot_path, names.status().message());
        continue;
      }
      SlotsOfIds(*names, slot_path);
    }
  }

  /// The slots of an entry. What is wrong with many slots of a range is one mistake.
  void SlotsOfIds(const std::vector<std::string>& names, const std::string& path) {
    std::vector<std::string> unknown;
    std::vector<std::string> unused;
    std::vector<std::string> of_floats;
    for (const std::string& name : names) {
      IsInput(name, path);
      const auto found = defined_.find(name);
      if (found == defined_.end() || found->second.is_layer) {
        if (slots_known_) unknown.push_back(name);
      } else if (!found->second.is_used) {
        unused.push_back(name);
      } else if (found->second.is_float) {
        of_floats.push_back(name);
      }
    }
    const auto first = [](const std::vector<std::string>& wrong, const char* more) {
      return "slot \"" + wrong[0] + "\"" +
             (wrong.size() > 1 ? more + std::to_string(wrong.size() - 1) + " more of this range" : "");
    };
    if (!unknown.empty()) check_.Error(path, "no " + first(unknown, ", nor ") + Suggest(unknown[0], false));
    if (!unused.empty()) {
      check_.Error(path, first(unused, " and ") +
                             (unused.size() > 1 ? " are not used; set their" : " is not used; set its") +
                             " is_used: true");
    }
    if (!of_floats.empty()) {
      check_.Error(path, first(of_floats, " and ") + (of_floats.size() > 1 ? " hold" : " holds") +
                             " floats; an embedding looks up ids (" + IdAdvice() + ")");
    }
  }

  void Fc(const FcLayer& layer, const std::string& path) {
    Inputs(layer.in(), path, 1);
    if (layer.units_size() == 0)
      check_.Missing(path, "units", "an fc layer needs units, its number of outputs: units: 64");
    if (layer.has_init()) Initial(layer.init(), path + ".init");
    if (layer.has_bias_init()) Initial(layer.bias_init(), path + ".bias_init");
    if (layer.has_bias_init() && !layer.bias()) {
      check_.Error(path + ".bias_init", "the layer has no bias (bias: false) that could start with this");
    }
  }

  void Fm(const FmLayer& layer, const std::string& path) {
    const DefinedName* in = Input(layer.in(), path);
    if (in != nullptr && !in->is_embedding && !layer.has_dim()) {
      check_.Error(path + ".in", "\"" + layer.in() + "\" is no embedding layer, so say the floats per slot: dim: ...");
    }
  }

  template <class Names>
  void Inputs(const Names& names, const std::string& path, int least) {
    if (names.size() < least) {
      check_.Missing(path, names.empty() ? "in" : "",
                     least == 1 ? "the layer needs an input: in: \"...\""
                                : "the layer needs two inputs or more: in: [\"a\", \"b\"]");
    }
    for (int i = 0; i < names.size(); ++i) Reads(names.Get(i), ElementPath(path + ".in", i));
  }

  const DefinedName* Input(const std::string& name, const std::string& path) {
    if (!name.empty()) return Reads(name, path + ".in");
    check_.Missing(path, "in", "the layer needs an input: in: \"...\"");
    return nullptr;
  }

  /// A layer's input: an earlier layer or a dense slot of floats.
  const DefinedName* Reads(const std::string& name, const std::string& path) {
    IsInput(name, path);
    const auto found = defined_.find(name);
    if (found == defined_.end()) {
      if (all_layers_.contains(name)) {
        check_.Error(path, "layer \"" + name + "\" comes later; a layer reads those before it");
      } else if (slots_known_) {
        check_.Error(path, "no layer or slot \"" + name + "\"" + Suggest(name, true));
      }
      return nullptr;
    }
    const DefinedName& defined = found->second;
    if (!defined.is_used) {
      check_.Error(path, "slot \"" + name + "\" is not used; set its is_used: true");
    } else if (!defined.is_dense) {
      check_.Error(path, "slot \"" + name + "\" is sparse; it becomes a vector through an embedding layer");
    } else if (!defined.is_float) {
      check_.Error(path, "slot \"" + name + "\" holds ids; a layer reads floats (" +
                             (are_features_ ? "a feature without " + IdAdvice() : "type: \"float\"") +
                             ") or an embedding of them");
    }
    return &defined;
  }

  const DefinedName* Slot(const std::string& name, const std::string& path) {
    read_.insert(name);
    const auto found = defined_.find(name);
    if (found == defined_.end() || found->second.is_layer) {
      if (slots_known_) check_.Error(path, "no slot \"" + name + "\"" + Suggest(name, false));
      return nullptr;
    }
    if (found->second.is_used) return &found->second;
    check_.Error(path, "slot \"" + name + "\" is not used; set its is_used: true");
    return nullptr;
  }

  std::string Suggest(const std::string& name, bool with_layers) const {
    std::vector<std::string_view> names;
    for (const auto& [defined, what] : defined_) {
      if (with_layers || !what.is_layer) names.push_back(defined);
    }
    return DidYouMean(name, names);
  }

  void Losses() {
    if (model_.loss().empty()) {
      return check_.Missing("model", "loss",
                            "the model has no loss: loss { kind: LOG_LOSS in: \"...\" label: \"...\" }");
    }
    std::map<std::string, std::string> names;
    for (int i = 0; i < model_.loss_size(); ++i) {
      const std::string path = ElementPath("model.loss", i);
      const std::string& name = model_.loss(i).name();
      Loss(model_.loss(i), path);
      if (model_.loss_size() == 1) break;
      if (name.empty()) {
        check_.Missing(path, "name", "of several losses each needs a name: name: \"click\"");
      } else if (const auto [earlier, is_new] = names.emplace(name, path); !is_new) {
        check_.Error(path + ".name", "loss \"" + name + "\" is there already, on line " +
                                         std::to_string(check_.Line(earlier->second + ".name")));
      }
    }
    const auto counts_nothing = [](const LossDesc& loss) { return loss.weight() == 0; };
    if (std::all_of(model_.loss().begin(), model_.loss().end(), counts_nothing)) {
      check_.Error("model.loss[0].weight", "no loss has a weight above 0: nothing would be learnt");
    }
  }

  void Loss(const LossDesc& loss, const std::string& path) {
    if (loss.in().empty()) {
      check_.Missing(path, "in", "the loss needs an input, the layer that predicts: in: \"...\"");
    }
    for (int i = 0; i < loss.in_size(); ++i) Reads(loss.in(i), ElementPath(path + ".in", i));
    if (loss.has_class_name()) {
      CheckClassName(check_, path, "loss", loss.class_name(), check_.known().losses);
      if (loss.has_kind()) check_.Error(path + ".class_name", "the loss has a kind, too; leave one of them out");
    }
    if (!loss.name().empty() && !NameMistake(loss.name()).empty()) {
      check_.Error(path + ".name", NameMistake(loss.name()));
    }
    if (!loss.sample_weight().empty()) Count(loss.sample_weight(), path + ".sample_weight");
    if (!loss.mask().empty()) Count(loss.mask(), path + ".mask");
    ClassWeights(loss, path);
    if (loss.label().empty()) {
      check_.Missing(path, "label", "the loss needs a label, a slot: label: \"label\"");
      return;
    }
    const DefinedName* label = Slot(loss.label(), path + ".label");
    LabelAmongInputs(loss);
    const bool is_class = !loss.has_class_name() &&
                          (loss.kind() == LossDesc::CROSS_ENTROPY || loss.kind() == LossDesc::SOFTMAX_CROSS_ENTROPY);
    const bool is_click = IsOfClicks(loss);
    constexpr int64_t kOfClicks = 2;
    if (label != nullptr && is_click && label->has_ids_of_data) {
      check_.Error(path + ".label",
                   "slot \"" + loss.label() + "\" has ids of a hash, or by how often words stand in the " +
                       "training files, but " + LossDesc::Kind_Name(loss.kind()) +
                       " takes 0 and 1: say which word is which, vocabulary { words: [\"no\", \"yes\"] "
                       "oov_buckets: 0 }, of which the first is 0; numbers 0 and 1 need id {}");
    } else if (label != nullptr && is_click && label->ids > kOfClicks) {
      check_.Error(path + ".label", "slot \"" + loss.label() + "\" has ids up to " + std::to_string(label->ids - 1) +
                                        " of its vocabulary, but " + LossDesc::Kind_Name(loss.kind()) +
                                        " takes 0 and 1: give it two words and oov_buckets: 0 (1 by default), so that "
                                        "other texts have no id");
    }
    if (label != nullptr && is_class) CheckClassLabel(loss, *label, path);
    CheckActivation(loss, path);
    if (label != nullptr && is_class && label->is_float) {
      check_.Error(path + ".label", "slot \"" + loss.label() + "\" holds floats, but " +
                                        LossDesc::Kind_Name(loss.kind()) + " reads a class (" + IdAdvice() + ")");
    }
  }

  /// Words that are classes have the ids 0 to classes - 1.
  void CheckClassLabel(const LossDesc& loss, const DefinedName& label, const std::string& path) {
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

  void Downsample() {
    const DownsampleDesc& desc = model_.downsample();
    if (desc.label().empty()) {
      check_.Missing("model.downsample", "label",
                     "downsample needs a label, whose examples are left out: label: \"click\"");
    } else {
      Count(desc.label(), "model.downsample.label");
    }
    if (!desc.has_rate()) {
      check_.Missing("model.downsample", "rate", "downsample needs a rate, the share that stays: rate: 0.1");
    }
  }

  void ClassWeights(const LossDesc& loss, const std::string& path) {
    const auto& weights = loss.class_weight();
    if (weights.empty()) return;
    const std::string at = path + ".class_weight";
    if (!loss.has_class_name() && loss.kind() == LossDesc::SQUARED_ERROR) {
      return check_.Error(at, "SQUARED_ERROR meets values and has no classes; leave class_weight out");
    }
    if (IsOfClicks(loss) && weights.size() != 2) {
      check_.Error(at, LossDesc::Kind_Name(loss.kind()) + " has the labels 0 and 1, and these are weights of " +
                           std::to_string(weights.size()) + ": class_weight: [1, 20]");
    }
    if (std::none_of(weights.begin(), weights.end(), [](float weight) { return weight > 0; })) {
      check_.Error(at, "no class has a weight above 0: nothing would be learnt");
    }
  }

  void Metric(const MetricDesc& metric, const std::string& path) {
    if (metric.has_class_name()) {
      CheckClassName(check_, path, "metric", metric.class_name(), check_.known().metrics);
      if (metric.has_kind()) check_.Error(path + ".class_name", "the metric has a kind, too; leave one of them out");
    } else if (!metric.has_kind()) {
      check_.Missing(path, "kind", "a metric needs a kind: metric { kind: AUC }");
    }
    const std::string kind = KindName(metric, "");
    const bool is_grouped = kind == "GAUC";
    if (!metric.label().empty()) Slot(metric.label(), path + ".label");
    if (!metric.mask().empty()) Count(metric.mask(), path + ".mask");
    if (metric.has_name() && !NameMistake(metric.name()).empty()) {
      check_.Error(path + ".name", NameMistake(metric.name()));
    }
    if (!metric.loss().empty() && !model_.loss().empty()) {
      std::vector<std::string> names;
      for (const LossDesc& loss : model_.loss()) names.push_back(loss.name());
      CheckKnown(check_, path + ".loss", "loss", metric.loss(), names);
    }
    if (metric.has_max_rows() && !kind.empty() && !is_grouped) {
      check_.Error(path + ".max_rows", kind + " keeps no rows; GAUC does");
    }
    if (metric.group().empty()) {
      if (is_grouped) {
        check_.Missing(path, "group", "GAUC needs a group, the slot whose first id groups examples: group: \"user\"");
      }
      return;
    }
    const DefinedName* group = Slot(metric.group(), path + ".group");
    if (group != nullptr && group->is_float) {
      check_.Error(path + ".group",
                   "slot \"" + metric.group() + "\" holds floats; groups are ids (" + IdAdvice() + ")");
    }
    if (!kind.empty() && !is_grouped) {
      check_.Error(path + ".group", kind + " has no groups; GAUC has");
    }
  }

  const ModelDesc& model_;
  Checker& check_;
  bool are_features_ = false;
  bool slots_known_ = false;  ///< without slots, which is reported elsewhere, every name would look wrong
  std::map<std::string, DefinedName> defined_;
  std::map<std::string, std::string> tables_;
  std::map<std::string, std::string> layer_paths_;
  std::set<std::string> all_layers_;
  std::set<std::string> read_tables_;
  std::set<std::string> read_;  ///< names of layers and slots that something reads
  std::string layer_;           ///< that is looked at; empty behind the last one
  /// By layer what it computes with, and where it says so.
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> inputs_;
  bool reads_unknown_table_ = false;
};

}  // namespace

void CheckModel(const ModelDesc& model, const std::vector<DefinedName>& slots, std::set<std::string> read_elsewhere,
                Checker& check) {
  ModelCheck(model, slots, std::move(read_elsewhere), check).Run();
}

void CheckModelBesideProgram(const ModelDesc& model, const std::vector<DefinedName>& slots, Checker& check) {
  ModelCheck(model, slots, {}, check).RunBesideProgram();
}

}  // namespace millrace
