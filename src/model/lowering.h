#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "batch/slot_schema.h"
#include "core/caught.h"
#include "core/edit_distance.h"
#include "core/name_list.h"
#include "model.pb.h"
#include "model/model_compiler.h"
#include "model/model_parts.h"
#include "program/backward.h"
#include "program/block_builder.h"
#include "program/model_judgement.h"

namespace millrace {

/// Parameters of an operator and the variables bound to them.
using Bound = std::vector<std::pair<std::string_view, std::vector<std::string>>>;
using Attrs = std::vector<std::pair<std::string_view, AttrValue>>;
OpDesc MakeOp(std::string_view type, const Bound& inputs, const Bound& outputs, const Attrs& attrs = {});

/// What the parts of the model compiler share while they lower one model: the blocks that grow, the names that are
/// known, the mistakes that were found. A mistake never stops the lowering; what depends on it is left out.
///
/// Views everything it is made of. One thread.
class Lowering {
 public:
  Lowering(const ModelDesc& model, const SlotSchema& schema, const ModelParts& parts, ModelForm form, BlockBuilder main,
           BlockBuilder startup);

  const ModelDesc& model() const { return *model_; }
  const SlotSchema& schema() const { return *schema_; }
  const ModelParts& parts() const { return *parts_; }
  ModelForm form() const { return form_; }
  /// The block that operators go to: the first one, unless another was entered.
  BlockBuilder& main() { return block_ == nullptr ? main_ : *block_; }
  /// The first block, where parameters and states are.
  BlockBuilder& root() { return main_; }
  /// From now on operators go to `block`, which must outlive that, or (null) to the first one again.
  void EnterBlock(BlockBuilder* block) { block_ = block; }
  BlockBuilder& startup() { return startup_; }

  /// Mistakes and reads from here on are in this part of the configuration: "model.layer[2].fc". `part` is its message,
  /// which must outlive that; `layer` is the layer that computes with what is read.
  void Enter(std::string path, const google::protobuf::Message* part = nullptr, std::string layer = {});
  const std::string& path() const { return path_; }
  /// Notes a mistake. `what` starts with the path of the field that is to blame, if one is: "in[1]: ...", "adam.lr:
  /// ...". The mistake of a field stands at its place in the file, so its sentence names neither `where` nor the field.
  void Problem(std::string_view where, std::string_view what) { Note(where, what, ConfigMistake::Kind::kPlain); }
  /// As Problem, of a field that is not set.
  void Missing(std::string_view where, std::string_view what) { Note(where, what, ConfigMistake::Kind::kMissing); }
  /// As Problem, of sizes that do not fit.
  void Misfit(std::string_view where, std::string_view what) { Note(where, what, ConfigMistake::Kind::kShape); }
  /// As Problem, of a name that the field at `earlier` has already.
  void Taken(std::string_view where, std::string_view what, std::string earlier);
  /// Notes the numbers of a message that its schema does not allow; false if there are some. `prefix`: of its fields.
  bool CheckRanges(std::string_view where, const std::string& prefix, const google::protobuf::Message& message);
  const std::vector<ConfigMistake>& mistakes() const { return mistakes_; }
  /// For who goes on after a mistake.
  void ForgetMistakes();
  /// All mistakes, a line each: `where: field: what`.
  Status ToStatus() const;

  /// Notes that the layer that was entered computes with `name`, which the field at `field` names.
  void Read(std::string_view field, const std::string& name);
  const std::vector<ModelRead>& reads() const { return reads_; }
  /// The path of `name` in the list `field` of the part that was entered: "in[1]"; `field` itself if it is no list.
  std::string ElementOf(std::string_view field, const std::string& name) const;

  /// Appends to main; false, with the mistake noted, when the operator is unknown or the shapes do not fit.
  bool Append(std::string_view where, OpDesc op, OpRole role = OpRole::kForward);

  /// The variable of a layer or of a dense float slot that `field` names; nothing, with the mistake noted, for others.
  std::optional<std::string> Input(std::string_view where, std::string_view field, const std::string& name);
  /// As Input, of all names of `in`, of which there are `least` or more.
  std::optional<std::vector<std::string>> Inputs(std::string_view where,
                                                 const google::protobuf::RepeatedPtrField<std::string>& in, int least);
  /// As Inputs of one or several, which are set side by side in the variable `joined`.
  std::optional<std::string> JoinedInput(std::string_view where,
                                         const google::protobuf::RepeatedPtrField<std::string>& in,
                                         const std::string& joined);
  /// A used slot by name, declared as a variable; null with the mistake noted.
  const SlotSpec* Slot(std::string_view where, std::string_view field, const std::string& name);
  /// As Slot, of one that has one value an example.
  const SlotSpec* OneValueSlot(std::string_view where, std::string_view field, const std::string& name);
  /// `; did you mean "NAME"?` for the nearest layer or used slot, or nothing.
  std::string Nearest(const std::string& name, bool with_layers, bool with_slots) const;
  /// How a slot comes to hold ids, as advice.
  std::string IdAdvice() const;
  /// The slot of this name, used or not, without a search; null: there is none.
  const SlotSpec* FindSlot(std::string_view name) const;
  /// Whether no other name of the model can be one that begins with `layer` and a dot.
  bool HasOwnNames(const std::string& layer) const;
  /// A table by name; null with the mistake noted.
  const TableDesc* Table(std::string_view where, const std::string& name);

  /// Declares a trainable dense parameter and its initial value.
  void AddParameter(std::string_view where, const std::string& name, const Dims& dims, const Initializer& init,
                    bool is_weight);
  /// Declares a persistable variable that the startup program fills with one value.
  void AddState(std::string_view where, const std::string& name, const Dims& dims, float value,
                DType dtype = DType::kFloat32);
  /// Gives a state its name: one that begins with STEM, and that no other state has which lives in the same scope.
  using StateNames = std::function<std::string(const std::string& stem)>;
  void set_state_names(StateNames names) { state_names_ = std::move(names); }
  /// The name of a state of the optimizer: `usual`, unless there are programs to tell it from.
  std::string StateName(const std::string& stem, const std::string& usual) const {
    return state_names_ ? state_names_(stem) : usual;
  }
  /// Declares a table that layers use, once.
  void AddTable(const TableDesc& table);

  /// What a parameter or table has of its own beside the optimizer; null: nothing.
  const ParameterRule* RuleOf(const std::string& param) const {
    const auto it = known_.rules.find(param);
    return it == known_.rules.end() ? nullptr : &it->second;
  }
  void SetRule(const std::string& param, ParameterRule rule) { known_.rules[param] = std::move(rule); }
  const std::map<std::string, ParameterRule>& rules() const { return known_.rules; }

  /// What it knows of parameters and tables beside the blocks.
  struct Known {
    std::vector<std::string> weights;
    std::vector<TableDesc> tables;
    std::map<std::string, ParameterRule> rules;
  };
  const Known& known() const { return known_; }
  void set_known(Known known) { known_ = std::move(known); }

  /// Reads the first blocks again, which others have changed.
  Status Reload();

  void LayerDone(const std::string& name, int embedding_dim);
  /// The layer or table could not be lowered; who uses it is left out without another message.
  void LayerBroken(const std::string& name) { broken_.insert(name); }
  /// Whether a layer or a table of this name has mistakes that were noted.
  bool IsBroken(const std::string& name) const { return broken_.contains(name); }
  /// Whether it is such a layer, and of a kind that has no slots side by side.
  bool IsBrokenOther(const std::string& layer) const;
  /// Floats per slot of an embedding layer; 0 for others.
  int EmbeddingDim(const std::string& layer) const;

  /// Dense weights (not biases, not tables), in order.
  const std::vector<std::string>& weights() const { return known_.weights; }
  /// Tables with defaults filled in.
  const std::vector<TableDesc>& tables() const { return known_.tables; }

 private:
  void Note(std::string_view where, std::string_view what, ConfigMistake::Kind kind);
  /// As Note, of the part that was entered as a whole: what an operator says may begin as if it named a field.
  void NoteWhole(std::string_view where, std::string_view what, ConfigMistake::Kind kind);
  void DeclareTable(const TableDesc& full);

  const ModelDesc* model_;
  const SlotSchema* schema_;
  const ModelParts* parts_;
  ModelForm form_;
  BlockBuilder main_;
  BlockBuilder startup_;
  BlockBuilder* block_ = nullptr;
  std::string path_ = "model";
  const google::protobuf::Message* part_ = nullptr;
  std::string layer_;
  std::vector<ConfigMistake> mistakes_;
  std::string lines_;  ///< of the mistakes, for ToStatus
  std::vector<ModelRead> reads_;
  std::map<std::string, int, std::less<>> layers_;  // finished ones, with their embedding dim
  std::set<std::string, std::less<>> broken_;
  std::map<std::string_view, const SlotSpec*> slots_;
  std::unordered_set<std::string> used_slots_;
  StateNames state_names_;
  Known known_;
};

/// The table with init and optimizer filled in.
TableDesc WithDefaults(const TableDesc& table, const ModelDesc& model);
/// The text of a table's description that its variable and create_sparse_table carry.
std::string TableText(const TableDesc& table);
/// Looks the ids of a slot up in a table.
OpDesc LookupOp(const std::string& ids, const TableDesc& table, const std::string& out);
/// Mistakes in the table messages themselves.
void CheckTables(Lowering& lowering);

void LowerLayers(Lowering& lowering);
void RegisterBuiltinLayers(LayerRegistry* layers);
void RegisterBuiltinLosses(LossRegistry* losses);
void RegisterBuiltinInitializers(InitializerRegistry* initializers);
/// The escape hatch: any registered operator.
bool LowerOpLayer(Lowering& lowering, const LayerPart& part);
/// The attributes that are given, in their order, as `known` has them; nullopt, with mistakes noted of what it has not.
/// `owner`: `operator "relu"`; `path`: of `given` in the part that was entered.
std::optional<std::vector<std::pair<std::string, AttrValue>>> ReadAttrs(
    Lowering& lowering, std::string_view where, const google::protobuf::RepeatedPtrField<OpDescAttr>& given,
    const std::vector<AttrInfo>& known, const std::string& owner, const std::string& path = "attrs");
/// The same with defaults for a part of the model that is of the class `name`.
std::optional<PartAttrs> ReadPartAttrs(Lowering& lowering, std::string_view where,
                                       const google::protobuf::RepeatedPtrField<OpDescAttr>& given,
                                       const std::vector<AttrInfo>& known, const std::string& name,
                                       const std::string& path = "attrs");
/// What is registered as a `what` under the name that a part of the model gives as its `class_name`; null, with the
/// mistake noted, for one that is not there or has a field `T::kind` of its own.
template <class T, class Kind>
const Kind* FindClass(Lowering& lowering, std::string_view where, std::string_view what, const Registry<Kind>& registry,
                      const std::string& name, const std::string& path = "class_name") {
  if (name.empty()) {
    lowering.Missing(where,
                     path + ": class_name must be the name under which a plugin registers the " + std::string(what));
    return nullptr;
  }
  const google::protobuf::FieldDescriptor* field = T::descriptor()->FindFieldByName(name);
  if (field != nullptr && field->containing_oneof() != nullptr) {
    lowering.Problem(where, path + ": \"" + name + "\" is no class of a plugin: write " + name + " in place of custom");
    return nullptr;
  }
  const Kind* found = registry.Find(name);
  if (found == nullptr) {
    lowering.Problem(
        where, path + ": " + NoSuchName(what, name, registry.names(), lowering.main().registry().plugin_advice()));
  }
  return found;
}

/// Runs what a plugin may have brought, for `who`: what it throws, or that it fails without a word, is noted as a
/// mistake.
template <class Body>
bool LowerClass(Lowering& lowering, std::string_view where, const std::string& who, const Body& body) {
  const size_t mistakes = lowering.mistakes().size();
  bool lowered = false;
  const Status status = Caught("lowering a " + who, [&] {
    lowered = body();
    return Status::Ok();
  });
  if (!status.ok()) {
    lowering.Problem(where, status.message());
  } else if (!lowered && lowering.mistakes().size() == mistakes) {
    lowering.Problem(where, "the " + who + " was not lowered, and gave no reason");
  }
  return lowered;
}

/// What examples are weighed by. Slots, and empty what is not said.
struct ExampleWeights {
  std::string label;
  std::string sample_weight;
  std::string mask;
  std::vector<float> class_weight;
  std::string thinned;      ///< the label of which the training has a share alone, where that is made good
  float thinned_value = 0;  ///< of that label
  float rate = 1;           ///< the share
  std::string loss;         ///< whose they are, for messages; empty: a metric's alone

  bool IsAny() const { return !sample_weight.empty() || !mask.empty() || !class_weight.empty() || !thinned.empty(); }
};

/// What `model.downsample` leaves out, as what makes it good; none of it where nothing is left out.
ExampleWeights ThinnedOf(const ModelDesc& model);
/// The operator of an activation, but NONE.
std::string_view ActivationOp(Activation act);

/// One of the job's losses, lowered.
struct LoweredTask {
  std::string name;                      ///< may be empty where it is the only one
  std::string variable;                  ///< its mean over the batch
  std::string label;                     ///< slot
  std::vector<std::string> predictions;  ///< one or more
  std::string logit;                     ///< variable that the first of them is made of; empty: none
  std::string weights;                   ///< variable, [batch, 1]; empty: every example counts once
  ExampleWeights by;                     ///< what makes them
};

/// Names that the losses give to the rest of the compiler; empty when one could not be lowered.
struct LoweredLoss {
  std::string loss;
  std::vector<LoweredTask> tasks;
};
LoweredLoss LowerLoss(Lowering& lowering);
/// Appends what makes the weights of a metric, the variable `out`; false with the mistake noted.
bool AppendWeightsOfMetric(Lowering& lowering, const std::string& where, const ExampleWeights& weights,
                           const std::string& out);

/// The first block of a new program.
BlockDesc* FirstBlock(ProgramDesc& program);
/// The program as it is evaluated: without gradients and updates; operators that behave otherwise in training are told.
ProgramDesc CloneForTest(const ProgramDesc& program);
/// Makes such a copy of a program that already is one.
void MakeForTest(ProgramDesc* program);

/// Mistakes in how parameters start, apart from an unknown class; `path`: the field of the entered part.
void CheckInit(Lowering& lowering, std::string_view where, const std::string& path, const Initializer& init);
/// Mistakes in the optimizers of the model and of its tables. `is_needed`: the model's must be there.
void CheckOptimizers(Lowering& lowering, bool is_needed = true);
/// Notes where the forward part of `main` reads rows of an accessor, but for one that hides counts, in another way than
/// by cvm, whose gradient alone brings their shows and clicks.
void CheckCounts(Lowering& lowering, const ProgramDesc& main);
/// The table of that name; null when it is a dense parameter.
const TableDesc* FindTable(const ModelDesc& model, const std::string& name);
/// What updates a table, or (`table` null) a dense parameter: the table's own optimizer, or else the model's; of a
/// table with an accessor one without a rule.
const OptimizerDesc& OptimizerOf(const ModelDesc& model, const TableDesc* table);
/// Mistakes in how gradients are clipped, apart from numbers out of range; `clip` may be null, `path`: its field.
void CheckClip(Lowering& lowering, std::string_view where, const std::string& path, const GradientClip* clip);
/// Notes a global_norm in the clip at `path`, which is not that of the model's optimizer.
void CheckHasNoGlobalNorm(Lowering& lowering, std::string_view where, const std::string& path,
                          const GradientClip& clip);
/// What a table's gradient cannot be put through.
void CheckTableGradients(Lowering& lowering, const TableDesc& table);
/// Appends the clipping of gradients, then the penalties on their parameters; the gradients are those to update by.
void ClipAndPenalize(Lowering& lowering, std::vector<ParamGrad>* gradients);
/// Appends the updates of parameters by their gradients, with accumulators and learning rates.
void AppendUpdates(Lowering& lowering, std::vector<ParamGrad> gradients);

}  // namespace millrace
