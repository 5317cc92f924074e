#include <algorithm>

#include "ops/grad_input.h"
#include "ops/int_list_input.h"
#include "ops/kernel.h"
#include "ops/x_shape.h"

namespace millrace {
namespace {

/// The shape of Out for a shape of X, in which sizes may be -1.
using ShapeRule = Result<Dims> (*)(const Dims& x, const std::vector<int64_t>& wanted);

// One axis less than a tensor may have, so that XShape, which has one more, can be made.
Status CheckRank(size_t rank) {
  if (rank < static_cast<size_t>(Dims::kMaxRank)) return Status::Ok();
  return InvalidConfig(std::to_string(rank) + " axes; at most " + std::to_string(Dims::kMaxRank - 1) +
                       " are supported");
}

Result<Dims> ReshapeRule(const Dims& x, const std::vector<int64_t>& wanted) {
  MR_TRY(CheckRank(wanted.size()));
  Dims out;
  int64_t known = 1;
  int free = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    int64_t size = wanted[i];
    if (size == 0 && static_cast<int>(i) >= x.rank()) return InvalidConfig("a size of 0 copies an axis that X lacks");
    if (size == 0) size = x[static_cast<int>(i)];
    if (wanted[i] == -1 && free >= 0) return InvalidConfig("two sizes are -1");
    if (wanted[i] < -1) return InvalidConfig("a size is " + std::to_string(wanted[i]));
    if (wanted[i] == -1) free = static_cast<int>(i);
    if (wanted[i] != -1 && (known < 0 || size < 0)) {
      known = -1;
    } else if (wanted[i] != -1 && __builtin_mul_overflow(known, size, &known)) {
      return InvalidConfig("shape " + Dims(wanted).ToString() + " has more than 2^63 values");
    }
    out.push_back(size);
  }
  const int64_t total = KnownProduct(x, 0, x.rank());
  if (free >= 0 && total >= 0 && known > 0 && total % known == 0) out.set(free, total / known);
  const bool fits = total < 0 || known < 0 || (free >= 0 ? known > 0 && total % known == 0 : known == total);
  if (!fits) return InvalidConfig(std::to_string(total) + " values do not fit shape " + Dims(wanted).ToString());
  return out;
}

Result<Dims> UnsqueezeRule(const Dims& x, const std::vector<int64_t>& axes) {
  Dims out = x;
  MR_TRY(CheckRank(static_cast<size_t>(x.rank()) + axes.size()));
  for (const int64_t axis : axes) {
    const int64_t at = axis < 0 ? axis + out.rank() + 1 : axis;
    if (at < 0 || at > out.rank()) return InvalidConfig("there is no place for axis " + std::to_string(axis));
    Dims next;
    for (int i = 0; i <= out.rank(); ++i) {
      if (i == at) next.push_back(1);
      if (i < out.rank()) next.push_back(out[i]);
    }
    out = next;
  }
  return out;
}

Result<Dims> SqueezeRule(const Dims& x, const std::vector<int64_t>& axes) {
  Dims out;
  for (const int64_t axis : axes) {
    if (axis >= x.rank() || axis < -x.rank()) return InvalidConfig("X has no axis " + std::to_string(axis));
  }
  for (int i = 0; i < x.rank(); ++i) {
    const bool named =
        axes.empty() || std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return a == i || a + x.rank() == i; });
    if (!named || x[i] != 1) out.push_back(x[i]);
  }
  return out;
}

/// Sizes of X before `axis` in one, the others in another.
Result<Dims> FlattenRule(const Dims& x, const std::vector<int64_t>& axes) {
  const int64_t axis = axes[0] < 0 ? axes[0] + x.rank() : axes[0];
  if (axis < 0 || axis > x.rank()) return InvalidConfig("X has no axis " + std::to_string(axes[0]));
  return Dims{KnownProduct(x, 0, static_cast<int>(axis)), KnownProduct(x, static_cast<int>(axis), x.rank())};
}

/// The axes from the first to the second one become one.
Result<Dims> FlattenRangeRule(const Dims& x, const std::vector<int64_t>& range) {
  const int64_t start = range[0] < 0 ? range[0] + x.rank() : range[0];
  const int64_t stop = range[1] < 0 ? range[1] + x.rank() : range[1];
  if (start < 0 || start > stop || stop >= x.rank()) {
    return InvalidConfig("X has no axes " + std::to_string(range[0]) + " to " + std::to_string(range[1]));
  }
  Dims out;
  for (int axis = 0; axis < start; ++axis) out.push_back(x[axis]);
  out.push_back(KnownProduct(x, static_cast<int>(start), static_cast<int>(stop) + 1));
  for (int axis = static_cast<int>(stop) + 1; axis < x.rank(); ++axis) out.push_back(x[axis]);
  return out;
}

/// Attributes that say once and for all what a rule reads: one list of numbers.
template <class T>
struct FromAttr {
  static Result<KnownInts> Known(const InferShapeContext& context) { return KnownInts{T::List(context.op()), true}; }
  static Result<IntListInput> Bind(const KernelContext& context) { return IntListInput(T::List(context.op())); }
};
/// A list that tensors may bring as well.
template <class T>
struct FromTensor {
  static Result<KnownInts> Known(const InferShapeContext& context) { return ReadKnownInts(context, T::kNames); }
  static Result<IntListInput> Bind(const KernelContext& context) { return IntListInput::Bind(context, T::kNames); }
  static void AddAttrs(OpBuilder& op) { AddIntList(op, T::kNames, T::kListDoc); }
};

struct Reshape : FromTensor<Reshape> {
  static constexpr const char* kDoc = "The values of X in another shape: -1 takes what is left, 0 copies X's size.";
  static constexpr IntListNames kNames{"Shape", "ShapeTensor", "shape"};
  static constexpr const char* kListDoc = "sizes of Out";
  static constexpr ShapeRule kRule = ReshapeRule;
  static Result<Dims> Unknown(const Dims&, const std::vector<int64_t>& sizes) {
    MR_TRY(CheckRank(sizes.size()));
    Dims out;
    for (const int64_t size : sizes) out.push_back(size > 0 ? size : -1);
    return out;
  }
};
struct Unsqueeze : FromTensor<Unsqueeze> {
  static constexpr const char* kDoc = "Inserts axes of size 1, one after another.";
  static constexpr IntListNames kNames{"AxesTensor", "AxesTensorList", "axes"};
  static constexpr const char* kListDoc = "where they stand in Out, negative from the end";
  static constexpr ShapeRule kRule = UnsqueezeRule;
  static Result<Dims> Unknown(const Dims& x, const std::vector<int64_t>& axes) {
    MR_TRY(CheckRank(static_cast<size_t>(x.rank()) + axes.size()));
    return Dims(std::vector<int64_t>(static_cast<size_t>(x.rank()) + axes.size(), -1));
  }
};
struct Squeeze : FromAttr<Squeeze> {
  static constexpr const char* kDoc = "Removes axes of size 1.";
  static constexpr ShapeRule kRule = SqueezeRule;
  static std::vector<int64_t> List(const OpView& op) { return op.Ints("axes"); }
  static void AddAttrs(OpBuilder& op) {
    op.Attr("axes", std::vector<int64_t>{}, "which, negative from the end; none: all of size 1");
  }
};
struct Flatten : FromAttr<Flatten> {
  static constexpr const char* kDoc =
      "The values of X as a matrix: its axes before `axis` are rows, the others columns.";
  static constexpr ShapeRule kRule = FlattenRule;
  static std::vector<int64_t> List(const OpView& op) { return {op.Int("axis")}; }
  static void AddAttrs(OpBuilder& op) { op.Attr("axis", int64_t{1}, "first axis of the columns"); }
};
struct FlattenRange : FromAttr<FlattenRange> {
  static constexpr const char* kDoc = "The values of X with some neighbouring axes as one.";
  static constexpr ShapeRule kRule = FlattenRangeRule;
  static std::vector<int64_t> List(const OpView& op) { return {op.Int("start_axis"), op.Int("stop_axis")}; }
  static void AddAttrs(OpBuilder& op) {
    op.Attr("start_axis", int64_t{1}, "the first of them").Attr("stop_axis", int64_t{1}, "the last of them");
  }
};

template <class T>
Result<Dims> DimsAtCompileTime(const Dims& x, const KnownInts& list) {
  if constexpr (requires { T::Unknown; }) {
    if (!list.is_fixed) return T::Unknown(x, list.values);
  }
  return T::kRule(x, list.values);
}

template <class T>
Status Infer(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  if (Status s = CheckRank(static_cast<size_t>(x.dims.rank())); !s.ok()) return context.Error("X: " + s.message());
  MR_ASSIGN(const KnownInts list, T::Known(context));
  const auto dims = DimsAtCompileTime<T>(x.dims, list);
  if (!dims.ok()) {
    return context.Error("X " + Shown(InputArguments(context.op().desc(), "X")[0], x.dims) + ": " +
                         dims.status().message());
  }
  VarMeta out = x;
  out.dims = *dims;
  context.SetOutput("Out", out);
  out.dims = XShapeOf(x.dims);
  context.SetOutput("XShape", out);
  return Status::Ok();
}

/// Shows X under other dims; no value moves.
template <class T>
class ReshapeKernel : public BoundKernel<ReshapeKernel<T>> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(x_shape_, context.OptionalOutput("XShape"));
    MR_ASSIGN(wanted_, T::Bind(context));
    name_ = context.InputName("X");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(wanted_.Read());
    auto dims = T::kRule(x_->dims(), wanted_.values());
    if (!dims.ok()) return std::move(dims).Context("X " + Shown(name_, x_->dims())).status();
    if (x_shape_ != nullptr) x_shape_->Resize<float>(XShapeOf(x_->dims()));
    // Offsets cut axis 0 of X; they say nothing of an axis of another size.
    const bool same_rows = dims->rank() > 0 && x_->dims().rank() > 0 && (*dims)[0] == x_->dims()[0];
    out_->ViewOf(*x_, *dims);
    if (!same_rows) out_->set_lod({});
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  Tensor* x_shape_ = nullptr;
  IntListInput wanted_;
  std::string name_;
};

/// The sizes of X stand in XShape, or, in Paddle 1's operators, in X itself.
class ReshapeGradKernel : public BoundKernel<ReshapeGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_shape_, context.OptionalInput("XShape"));
    if (x_shape_ == nullptr) {
      MR_ASSIGN(x_, context.Input("X"));
    }
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Dims dims = x_shape_ != nullptr ? XOfXShape(x_shape_->dims()) : x_->dims();
    MR_TRY(out_grad_.Read(dims.numel()).status());
    x_grad_->ViewOf(out_grad_.tensor(), dims);
    return Status::Ok();
  }

 private:
  const Tensor* x_shape_ = nullptr;
  const Tensor* x_ = nullptr;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
};

template <class T>
OpBuilder AddForward(OpRegistry& registry, const std::string& type) {
  OpBuilder op = registry.Add(type);
  T::AddAttrs(op);
  op.Doc(T::kDoc)
      .Input("X", "any shape")
      .Output("Out", "the values of X, not copied")
      .InferShape(Infer<T>)
      .template Kernel<ReshapeKernel<T>>();
  return op;
}

/// An operator whose gradient reads XShape.
template <class T>
void Register(OpRegistry& registry, const std::string& type) {
  AddForward<T>(registry, type)
      .OptionalOutput("XShape", "no values; its shape is 0, then X's")
      .Grad({.outputs = {"XShape"}});
  OpBuilder gradient = registry.AddGradient(type);
  gradient.InferShape(InferFromXShape).Kernel<ReshapeGradKernel>();
  if constexpr (requires { T::kNames; }) {
    const std::string unread = "of the forward operator, as Paddle binds it";
    gradient.UnreadInput(T::kNames.tensor, unread).UnreadInputs(T::kNames.list, unread);
  }
}

/// One of Paddle 1, whose gradient reads X.
template <class T>
void RegisterFirst(OpRegistry& registry, const std::string& type) {
  AddForward<T>(registry, type).Grad({.inputs = {"X"}});
  registry.AddGradient(type)
      .UnreadInput("Out", "of the forward operator, as Paddle binds it")
      .Kernel<ReshapeGradKernel>();
}

}  // namespace

void RegisterReshape(OpRegistry& registry) {
  Register<Reshape>(registry, "reshape2");
  Register<Unsqueeze>(registry, "unsqueeze2");
  Register<Squeeze>(registry, "squeeze2");
  Register<Flatten>(registry, "flatten2");
  Register<FlattenRange>(registry, "flatten_contiguous_range");
  RegisterFirst<Reshape>(registry, "reshape");
  RegisterFirst<Unsqueeze>(registry, "unsqueeze");
  RegisterFirst<Squeeze>(registry, "squeeze");
  RegisterFirst<Flatten>(registry, "flatten");
}

}  // namespace millrace
