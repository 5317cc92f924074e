#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/dims.h"
#include "core/dtype.h"
#include "core/name_numbers.h"
#include "core/status.h"
#include "framework.pb.h"

namespace millrace {

class Expansion;
class OpKernel;
class OpRegistry;
class KernelContext;
struct OpInfo;

/// The value of an attribute. INT, LONG and BLOCK are int64_t; INTS, LONGS are vector<int64_t>.
using AttrValue =
    std::variant<int64_t, float, bool, std::string, std::vector<int64_t>, std::vector<float>, std::vector<std::string>>;

/// The attribute of this name, or null.
const OpDesc::Attr* FindAttr(const OpDesc& op, std::string_view name);
/// Variables bound to an input (output) by its name in the operator; empty when it is not bound.
std::vector<std::string> InputArguments(const OpDesc& op, std::string_view parameter);
std::vector<std::string> OutputArguments(const OpDesc& op, std::string_view parameter);
/// Whether it writes one of these variables.
bool Writes(const OpDesc& op, const std::set<std::string, std::less<>>& variables);
/// Binds variables; replaces what was bound.
void SetInput(OpDesc& op, std::string_view parameter, const std::vector<std::string>& arguments);
void SetOutput(OpDesc& op, std::string_view parameter, const std::vector<std::string>& arguments);
/// Sets an attribute, replacing one of the same name.
void SetAttr(OpDesc& op, std::string_view name, const AttrValue& value);
/// The block that an operator runs; -1 for all but control flow.
int BlockOf(const OpDesc& op);

/// Reads an operator's attributes with the defaults of its registration. Views; both must outlive it.
class OpView {
 public:
  OpView(const OpDesc& op, const OpInfo& info) : op_(&op), info_(&info) {}

  const OpDesc& desc() const { return *op_; }
  const OpInfo& info() const { return *info_; }
  const std::string& type() const { return op_->type(); }
  /// The attribute, or the registered default. A name that was not registered is our bug (CHECK); numbers convert.
  int64_t Int(std::string_view name) const;
  float Float(std::string_view name) const;
  bool Bool(std::string_view name) const;
  std::string String(std::string_view name) const;
  std::vector<int64_t> Ints(std::string_view name) const;
  std::vector<float> Floats(std::string_view name) const;
  std::vector<std::string> Strings(std::string_view name) const;
  AttrValue Value(std::string_view name) const;

 private:
  const OpDesc* op_;
  const OpInfo* info_;
};

/// What is known of a variable before any data is read. A -1 in dims is the batch (or, with lod_level 1, the number of
/// values in it).
struct VarMeta {
  VarType::Type kind = VarType::LOD_TENSOR;
  DType dtype = DType::kFloat32;
  Dims dims;
  int lod_level = 0;
  bool persistable = false;
};

using VarMetas = std::map<std::string, VarMeta, std::less<>>;

/// True when the sizes are equal or one of them is not known before the run.
inline bool MayEqual(int64_t a, int64_t b) { return a == b || a < 0 || b < 0; }
bool MayEqual(const Dims& a, const Dims& b);

/// Lets an operator check its inputs and say what its outputs are, at compile time.
class InferShapeContext {
 public:
  /// Errors begin with `shown`, the composite operator that `op` is a part of, or with `op` itself.
  InferShapeContext(const OpView& op, VarMetas& vars, const OpRegistry& registry, const OpView* shown = nullptr)
      : op_(&op), vars_(&vars), registry_(&registry), shown_(shown == nullptr ? &op : shown) {}

  const OpView& op() const { return *op_; }
  const OpRegistry& registry() const { return *registry_; }
  bool HasInput(std::string_view parameter) const;
  bool HasOutput(std::string_view parameter) const;
  /// The first variable bound to `parameter`; kInvalidConfig naming operator, parameter and variable when there is
  /// none.
  Result<VarMeta> Input(std::string_view parameter) const;
  Result<std::vector<VarMeta>> Inputs(std::string_view parameter) const;
  /// Describes the i-th variable of an output (keeping its persistable flag); nothing happens when it is not bound.
  void SetOutput(std::string_view parameter, const VarMeta& meta, int i = 0);
  int OutputCount(std::string_view parameter) const;
  /// kInvalidConfig that begins with the operator's type and its first output.
  Status Error(std::string message) const;

 private:
  const OpView* op_;
  VarMetas* vars_;
  const OpRegistry* registry_;
  const OpView* shown_;
};

/// The name of a variable's gradient: NAME@GRAD.
std::string GradName(std::string_view name);

/// Lets an operator write the operators of its gradient.
class GradContext {
 public:
  /// `wanted` and `have` are variables.
  GradContext(const OpView& op, const NameNumbers& wanted, const NameNumbers& have)
      : op_(&op), wanted_(&wanted), have_(&have) {}

  const OpView& op() const { return *op_; }
  /// True when a gradient of any variable of this input is wanted.
  bool Wants(std::string_view input) const;
  /// True when the gradient of any variable of this output arrives from later operators.
  bool Has(std::string_view output) const;
  /// TYPE_grad with the forward's attributes, the named inputs and outputs of the forward operator, the gradients of
  /// `grad_of` outputs as inputs (OUT@GRAD) and of the wanted `wanted` inputs as outputs (IN@GRAD). Variables of an
  /// input whose gradient is not wanted are bound to "@EMPTY@".
  OpDesc GradOp(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                const std::vector<std::string>& grad_of, const std::vector<std::string>& wanted) const;

 private:
  const OpView* op_;
  const NameNumbers* wanted_;
  const NameNumbers* have_;
};

inline constexpr std::string_view kEmptyVar = "@EMPTY@";

/// The device that kernels are for unless they say otherwise.
inline constexpr std::string_view kCpu = "cpu";

struct ArgInfo {
  std::string name;
  std::string doc;
  bool duplicable = false;  ///< takes any number of variables
  bool optional = false;
  bool is_used = true;  ///< false: programs may bind it, and no kernel reads or writes it
  /// Of an input: its gradient alone reads it. A program without gradients leaves it out.
  bool for_gradient = false;
};

struct AttrInfo {
  std::string name;
  AttrValue default_value;
  std::string doc;
  bool fixed = false;     ///< no other value than the default is supported
  bool required = false;  ///< programs must give it; the default says of which type it is
  bool is_block = false;  ///< the number of the block that the operator runs
};

/// A variable that an update keeps beside each parameter: an input, and the output that is bound to the same variable.
struct StateInfo {
  const char* in;
  const char* out;
  const char* doc;
  const char* name;        ///< the variable of a parameter P is P_name_0
  const char* start = "";  ///< the setting of the rule that it starts from; empty: from 0
  bool adds_up = false;    ///< a sum over all steps, no mean of the last ones: what two ranks add to it adds up
};

/// Runs the shape rule of an operator, or what its expansion says, on `vars`. kInvalidConfig that begins with the type
/// of the operator, or of `shown`: what the rule says, or an output that would have more axes than a tensor can.
Status InferShapes(const OpView& op, VarMetas& vars, const OpRegistry& registry, const OpView* shown = nullptr);

/// The gradient that most operators have: one operator, TYPE_grad, with the attributes of the forward operator.
struct GradArgs {
  std::vector<std::string> inputs = {};   ///< of the forward operator that it reads
  std::vector<std::string> outputs = {};  ///< of the forward operator that it reads
  // g++ 12 crashes on {"Out"} as a default of what templates initialize.
  std::vector<std::string> of = std::vector<std::string>(1, "Out");  ///< outputs whose gradients it reads: OUT@GRAD
  std::vector<std::string> to = std::vector<std::string>(1, "X");    ///< inputs whose gradients it writes: IN@GRAD
  /// Of `inputs` and `outputs`, what programs may leave out, and what they bind though the kernel does not read it.
  std::vector<std::string> optional = {};
  std::vector<std::string> unread = {};
};

using InferShapeFn = Status (*)(InferShapeContext&);
using GradFn = std::vector<OpDesc> (*)(const GradContext&);
using ExpandFn = Status (*)(Expansion&);
using KernelFactory = Result<std::unique_ptr<OpKernel>> (*)(KernelContext&);

/// An argument of an operator, and the types that its first variable may have.
struct ArgTypes {
  std::string argument;
  std::vector<DType> types;
};

/// What a kernel is for: programs compiled for one device whose arguments have these types. An argument that is not
/// named may have any.
struct KernelFor {
  std::string device{kCpu};
  std::vector<ArgTypes> types;
};

struct KernelInfo {
  KernelFor where;
  KernelFactory create = nullptr;
};

/// Everything that is known of an operator type.
struct OpInfo {
  std::string type;
  std::string doc;
  std::vector<ArgInfo> inputs;
  std::vector<ArgInfo> outputs;
  std::vector<AttrInfo> attrs;
  InferShapeFn infer_shape = nullptr;
  GradFn grad = nullptr;              ///< null: not differentiable
  std::optional<GradArgs> grad_args;  ///< of an operator whose grad was given by them
  std::vector<KernelInfo> kernels;
  /// Of a composite operator: appends the operators that compute it where none of `kernels` does.
  ExpandFn expand = nullptr;
  bool is_optimizer = false;       ///< writes parameters
  std::vector<StateInfo> states;   ///< of an optimizer, of the shape of the parameter
  std::vector<StateInfo> scalars;  ///< of an optimizer, [1]
  bool scales_steps = false;       ///< an optimizer whose steps are as long however small the gradients are
  bool is_gradient = false;        ///< made by another operator's grad
  bool is_fused = false;           ///< made by a fusion pass, not by users
  bool makes_rows = false;         ///< a -1 in axis 0 of its outputs is neither the batch nor axis 0 of an input
  bool takes_unwritten = false;    ///< inputs may be without a value when it runs: its kernel looks
  bool is_apart = false;           ///< no output may be the variable of an input: it reads on while it writes
  /// What it does beside writing its outputs: "writes a file". Empty: nothing. A saved model, which may come from
  /// anywhere, may not hold an operator that does (program/op_check.h).
  std::string effect;
  std::string plugin;          ///< the shared object that registered it; empty: it is Millrace's own
  std::string plugin_version;  ///< what that says of itself; may be empty

  const AttrInfo* FindAttr(std::string_view name) const;
  /// Whether the input is one that the gradient alone reads.
  bool IsForGradient(std::string_view input) const;
};

/// The kernel of an operator in a program that is compiled for `device`, by the types of its variables. kInvalidConfig
/// that names the operator, device and types, and says what there are kernels for.
Result<const KernelInfo*> ChooseKernel(const OpView& op, const VarMetas& vars, std::string_view device);

/// Builds one OpInfo; see docs/adding_an_op.md.
class OpBuilder {
 public:
  explicit OpBuilder(OpInfo& info) : info_(&info) {}
  OpBuilder& Doc(std::string doc);
  OpBuilder& Input(std::string name, std::string doc);
  OpBuilder& Inputs(std::string name, std::string doc);          ///< any number of variables
  OpBuilder& OptionalInput(std::string name, std::string doc);   ///< none or one variable
  OpBuilder& OptionalInputs(std::string name, std::string doc);  ///< none, one or several variables
  /// Optional inputs that programs bind and kernels do not look at: they need no value. "; not read" joins `doc`.
  OpBuilder& UnreadInput(std::string name, std::string doc);
  OpBuilder& UnreadInputs(std::string name, std::string doc);
  /// An optional input that the gradient alone reads, which must have it. "; for the gradient alone" joins `doc`.
  OpBuilder& InputForGradient(std::string name, std::string doc);
  OpBuilder& Output(std::string name, std::string doc);
  OpBuilder& Outputs(std::string name, std::string doc);
  OpBuilder& OptionalOutput(std::string name, std::string doc);
  OpBuilder& OptionalOutputs(std::string name, std::string doc);
  /// An optional output that programs bind and kernels do not write. "; not written" joins `doc`.
  OpBuilder& UnwrittenOutput(std::string name, std::string doc);
  OpBuilder& Attr(std::string name, AttrValue default_value, std::string doc);
  /// An attribute of type T (one of AttrValue's) that programs must give.
  template <class T>
  OpBuilder& Required(std::string name, std::string doc) {
    info_->attrs.push_back({.name = std::move(name), .default_value = T{}, .doc = std::move(doc), .required = true});
    return *this;
  }
  /// An attribute of which only this value is supported; programs with another are refused when they are compiled.
  OpBuilder& Fixed(std::string name, AttrValue value, std::string doc);
  /// The attribute that says which block of the program the operator runs.
  OpBuilder& Block(std::string name, std::string doc);
  /// Says what the operator does beside writing its outputs, as a verb with its object: "writes a file".
  OpBuilder& Effect(std::string what);
  /// Refuses an output in the variable of an input: the operator reads on while it writes. Holds for its gradient too.
  OpBuilder& Apart();
  /// Lets a plugin's operator give rows of another number than the batch and its inputs have, where its shape rule
  /// says -1: for those that choose rows or make some.
  OpBuilder& MakesRows();
  /// Lets the operator run while inputs have no value yet, for those that choose what they read.
  OpBuilder& TakesUnwritten();
  OpBuilder& InferShape(InferShapeFn fn);
  OpBuilder& Grad(GradFn fn);
  /// The gradient is TYPE_grad, which OpRegistry::AddGradient registers.
  OpBuilder& Grad(GradArgs args);
  OpBuilder& Optimizer(std::span<const StateInfo> states = {}, std::span<const StateInfo> scalars = {});
  /// Of an optimizer whose steps are as long however small the gradients are, as adam's: many ranks average what it
  /// moves.
  OpBuilder& ScalesSteps();
  OpBuilder& Gradient();
  OpBuilder& Fused();
  /// Makes the operator a composite one (program/expansion.h), which needs neither a kernel nor a shape rule.
  OpBuilder& Expand(ExpandFn fn);
  /// `K` has static Result<std::unique_ptr<OpKernel>> Create(KernelContext&). An operator may have several kernels; no
  /// two of them may be for the same program.
  template <class K>
  OpBuilder& Kernel(KernelFor where = {}) {
    info_->kernels.push_back({std::move(where), [](KernelContext& context) -> Result<std::unique_ptr<OpKernel>> {
                                return K::Create(context);
                              }});
    return *this;
  }

 private:
  OpInfo* info_;
};

/// The operators that a program may use: a value that is passed on, filled at start by ops/builtin_ops.cc and sealed,
/// then joined by those of plugins. Reading is thread-safe, as long as nobody adds.
class OpRegistry {
 public:
  OpRegistry() = default;
  OpRegistry(OpRegistry&&) = default;
  OpRegistry& operator=(OpRegistry&&) = default;

  OpBuilder Add(std::string_view type);
  /// Adds TYPE_grad of `type` as the GradArgs of that operator say, with its attributes and the shape rule
  /// InferGradients. The operator is registered in full before; Seal and Adopt refuse one without GradArgs. The caller
  /// adds the kernel; that of a composite operator needs none.
  OpBuilder AddGradient(const std::string& type);
  /// Adds a kernel to an operator that is here: a device brings its own to those of Millrace. kNotFound when there is
  /// no such operator; kInvalidConfig when another of its kernels may be for the same program.
  Status AddKernel(std::string_view type, KernelInfo kernel);
  /// Reports operators that were added twice or lack a doc, shape inference or kernel (a composite operator needs
  /// neither), or have two kernels for one program, all at once.
  Status Seal();
  /// Takes over every operator of `ops`, or none of them: kInvalidConfig, a line each, for types that are taken here
  /// and for what Seal would report. They remember `plugin`, the path of the shared object that they came from,
  /// and its version.
  Status Adopt(OpRegistry ops, const std::string& plugin, const std::string& version);
  /// The same operators, to which others may be added.
  OpRegistry Copy() const;
  const OpInfo* Find(std::string_view type) const;
  /// The operator that `gradient` is the gradient of, by Paddle's way to name them (TYPE_grad); null when `gradient` is
  /// no gradient, or of an operator that is not here.
  const OpInfo* ForwardOf(const OpInfo& gradient) const;
  /// Every operator, sorted by type.
  std::vector<const OpInfo*> all() const;
  /// The registered type nearest to a misspelt one; empty when none is near.
  std::string Nearest(std::string_view type) const;
  /// What to do about a type that is not here, to be put behind the complaint: `; did you mean "relu"?`, or else how
  /// plugins are loaded.
  std::string Hint(std::string_view type) const;
  /// How who uses these operators loads a plugin: "--plugin=FILE loads a plugin". Empty: nobody can.
  const std::string& plugin_advice() const { return plugin_advice_; }
  void set_plugin_advice(std::string advice) { plugin_advice_ = std::move(advice); }

 private:
  std::string Problems() const;

  std::map<std::string, std::unique_ptr<OpInfo>, std::less<>> ops_;
  std::vector<std::string> duplicates_;
  std::string plugin_advice_;
};

/// True for attributes that say where and how Paddle runs an operator, not what it computes ("op_device",
/// "use_mkldnn"), or that only operators with a state of their own heed ("is_test"): programs may set them on any
/// operator, and nothing here depends on them.
bool IsHintAttr(std::string_view name);

/// An attribute's value as messages show it: 3, "text", [1, 2].
std::string ShowAttr(const AttrValue& value);

/// What an exception becomes that an operator's code threw, to be called within a catch block: kInvalidConfig that
/// names the plugin, which is whose fault it is; kInternal for an operator of Millrace itself.
Status OperatorThrew(const OpInfo& op);

/// Outputs have the meta of input "X" (a common shape rule).
Status SameAsX(InferShapeContext& context);

/// Shape rule of gradients: each output P@GRAD is described like input P, or like Out (or Out@GRAD) when the gradient
/// operator does not read P.
Status InferGradients(InferShapeContext& context);

}  // namespace millrace
