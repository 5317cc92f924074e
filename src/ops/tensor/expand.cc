#include <algorithm>
#include <array>

#include "ops/float_input.h"
#include "ops/int_list_input.h"
#include "ops/kernel.h"
#include "ops/var_dtype.h"

namespace millrace {
namespace {

// Four operators that repeat a tensor: each says how often along which axis; the walk is the same.

/// X's sizes with ones in front, and Out's: a multiple of each.
struct Repeats {
  Dims x;
  Dims out;
};

/// `dims` with axes of size 1 in front, up to `rank`.
Dims Padded(const Dims& dims, int rank) {
  Dims padded;
  for (int axis = dims.rank(); axis < rank; ++axis) padded.push_back(1);
  for (int axis = 0; axis < dims.rank(); ++axis) padded.push_back(dims[axis]);
  return padded;
}

Result<Repeats> RepeatsOfTimes(const Dims& x, std::vector<int64_t> times) {
  if (times.size() > Dims::kMaxRank) return InvalidConfig("too many axes: " + ShowAttr(times));
  const int rank = std::max(x.rank(), static_cast<int>(times.size()));
  times.insert(times.begin(), static_cast<size_t>(rank) - times.size(), 1);
  Repeats repeats{Padded(x, rank), {}};
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t n = times[static_cast<size_t>(axis)];
    if (n == KnownInts::kUnknown) {
      repeats.out.push_back(-1);
      continue;
    }
    int64_t size = 0;
    if (n < 1 || __builtin_mul_overflow(repeats.x[axis], n, &size)) {
      return InvalidConfig("axis " + std::to_string(axis) + " is repeated " + std::to_string(n) + " times");
    }
    repeats.out.push_back(repeats.x[axis] < 0 ? -1 : size);
  }
  return repeats;
}

/// To `shape`, in which -1 keeps X's size; only sizes of 1 grow.
Result<Repeats> RepeatsOfShape(const Dims& x, const std::vector<int64_t>& shape) {
  const auto rank = static_cast<int>(shape.size());
  if (shape.size() > Dims::kMaxRank || rank < x.rank()) {
    return InvalidConfig("X " + x.ToString() + " cannot be repeated to " + ShowAttr(shape));
  }
  Repeats repeats{Padded(x, rank), {}};
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t have = repeats.x[axis];
    const int64_t wanted = shape[static_cast<size_t>(axis)];
    if (wanted == KnownInts::kUnknown) {
      repeats.out.push_back(-1);
      continue;
    }
    if (wanted < -1 || (wanted != -1 && have != 1 && !MayEqual(have, wanted))) {
      return InvalidConfig("X " + x.ToString() + " cannot be repeated to " + ShowAttr(shape));
    }
    repeats.out.push_back(wanted == -1 ? have : wanted);
  }
  return repeats;
}

struct Expand {
  static constexpr const char* kType = "expand";
  static constexpr IntListNames kNames{"ExpandTimes", "expand_times_tensor", "expand_times"};
  static Result<Repeats> Of(const Dims& x, const std::vector<int64_t>& list) {
    if (static_cast<int>(list.size()) != x.rank()) {
      return InvalidConfig("expand_times " + ShowAttr(list) + " is not one number for each axis of X " + x.ToString());
    }
    return RepeatsOfTimes(x, list);
  }
};
struct Tile {
  static constexpr const char* kType = "tile";
  static constexpr IntListNames kNames{"RepeatTimes", "repeat_times_tensor", "repeat_times"};
  static Result<Repeats> Of(const Dims& x, const std::vector<int64_t>& list) { return RepeatsOfTimes(x, list); }
};
struct ExpandV2 {
  static constexpr const char* kType = "expand_v2";
  static constexpr IntListNames kNames{"Shape", "expand_shapes_tensor", "shape"};
  static Result<Repeats> Of(const Dims& x, const std::vector<int64_t>& list) { return RepeatsOfShape(x, list); }
};
/// Y, when it is bound, says the shape of each batch.
struct ExpandAsV2 {
  static constexpr const char* kType = "expand_as_v2";
  static constexpr const char* kAttr = "target_shape";
  static Result<Repeats> Of(const Dims& x, const std::vector<int64_t>& list) { return RepeatsOfShape(x, list); }
};

std::vector<int64_t> SizesOf(const Dims& dims) { return {dims.sizes().begin(), dims.sizes().end()}; }

template <class R>
constexpr bool kReadsY = std::is_same_v<R, ExpandAsV2>;

template <class R>
Result<std::vector<int64_t>> ListAtCompileTime(const InferShapeContext& context) {
  if constexpr (kReadsY<R>) {
    if (!context.HasInput("Y")) return context.op().Ints(R::kAttr);
    MR_ASSIGN(const VarMeta y, context.Input("Y"));
    return SizesOf(y.dims);
  } else {
    MR_ASSIGN(KnownInts known, ReadKnownInts(context, R::kNames));
    return std::move(known.values);
  }
}

template <class R>
Status InferExpand(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  MR_ASSIGN(const std::vector<int64_t> list, ListAtCompileTime<R>(context));
  const Result<Repeats> repeats = R::Of(x.dims, list);
  if (!repeats.ok()) return context.Error(repeats.status().message());
  VarMeta out = x;
  out.dims = repeats->out;
  context.SetOutput("Out", out);
  return Status::Ok();
}

/// Calls body(x_offset, out_offset, count, x_step) for each run of Out in order; x_step is 1, or 0 where one value is
/// repeated.
template <class Body>
void WalkRepeats(const Repeats& repeats, const Body& body) {
  const int64_t count = repeats.out.numel();
  if (count == 0) return;
  // The last axes up to one that is repeated lie in both as they are.
  int axes = repeats.out.rank();
  int64_t block = 1;
  while (axes > 0 && repeats.x[axes - 1] == repeats.out[axes - 1]) block *= repeats.x[--axes];
  int64_t times = 1;
  if (axes > 0) {
    --axes;
    times = repeats.out[axes] / repeats.x[axes];
    block *= repeats.x[axes];
  }
  std::array<int64_t, Dims::kMaxRank> index{};
  for (int64_t at = 0; at < count; at += times * block) {
    int64_t from = 0;
    for (int axis = 0; axis < axes; ++axis) {
      from = from * repeats.x[axis] + index[static_cast<size_t>(axis)] % repeats.x[axis];
    }
    if (block == 1) {
      body(from, at, times, 0);
    } else {
      for (int64_t i = 0; i < times; ++i) body(from * block, at + i * block, block, 1);
    }
    for (int axis = axes - 1; axis >= 0 && ++index[static_cast<size_t>(axis)] == repeats.out[axis]; --axis) {
      index[static_cast<size_t>(axis)] = 0;
    }
  }
}

/// The list of each batch: Y's sizes, what tensors hold, or the attribute.
template <class R>
class RepeatsInput {
 public:
  static Result<RepeatsInput> Bind(const KernelContext& context) {
    RepeatsInput input;
    if constexpr (kReadsY<R>) {
      input.list_ = IntListInput(context.op().Ints(R::kAttr));
      MR_ASSIGN(input.y_, context.OptionalInput("Y"));
    } else {
      MR_ASSIGN(input.list_, IntListInput::Bind(context, R::kNames));
    }
    return input;
  }
  Result<Repeats> Read(const Dims& x) {
    if (y_ != nullptr) {
      sizes_.assign(y_->dims().sizes().begin(), y_->dims().sizes().end());
      return R::Of(x, sizes_);
    }
    MR_TRY(list_.Read());
    return R::Of(x, list_.values());
  }

 private:
  IntListInput list_;
  const Tensor* y_ = nullptr;
  std::vector<int64_t> sizes_;
};

template <class R>
class ExpandKernel : public BoundKernel<ExpandKernel<R>> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(repeats_, RepeatsInput<R>::Bind(context));
    MR_ASSIGN(out_, context.Output("Out"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_ASSIGN(const Repeats repeats, repeats_.Read(x_.dims()));
    const std::span<const uint32_t> lod = x_.tensor().lod();
    const bool same_rows =
        x_.dims().rank() > 0 && repeats.out.rank() == x_.dims().rank() && repeats.out[0] == x_.dims()[0];
    if (x_.tensor().dtype() == DType::kFloat32) {
      Copy(repeats, x_.Read());
    } else {
      WithType(x_.tensor().dtype(), [&](auto sample) { Copy(repeats, x_.tensor().template data<decltype(sample)>()); });
    }
    if (same_rows) out_->set_lod(lod);
    return Status::Ok();
  }

 private:
  template <class T>
  void Copy(const Repeats& repeats, const T* x) {
    T* out = out_->Resize<T>(repeats.out);
    WalkRepeats(repeats, [&](int64_t from, int64_t at, int64_t count, int64_t step) {
      if (step == 0) {
        std::fill_n(out + at, count, x[from]);
      } else {
        std::copy_n(x + from, count, out + at);
      }
    });
  }

  FloatInput x_;
  RepeatsInput<R> repeats_;
  Tensor* out_ = nullptr;
};

/// What the forward operator read beside X shows in the shape of Out@GRAD.
class ExpandGradKernel : public BoundKernel<ExpandGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_grad_, context.Input("Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const Repeats repeats{Padded(x_->dims(), out_grad_->dims().rank()), out_grad_->dims()};
    for (int axis = 0; axis < repeats.x.rank(); ++axis) {
      const int64_t size = repeats.x[axis];
      if (repeats.x.rank() == repeats.out.rank() && (size == 0 ? repeats.out[axis] : repeats.out[axis] % size) == 0)
        continue;
      return InvalidConfig("Out@GRAD " + repeats.out.ToString() + " is not X " + x_->dims().ToString() + " repeated");
    }
    const float* grad = out_grad_->data<float>();
    float* x_grad = ResizeLike(*x_, x_grad_);
    std::fill_n(x_grad, x_->numel(), 0.0F);
    if (x_->numel() == 0) return Status::Ok();
    WalkRepeats(repeats, [&](int64_t from, int64_t at, int64_t count, int64_t step) {
      if (step == 0) {
        for (int64_t i = 0; i < count; ++i) x_grad[from] += grad[at + i];
      } else {
        for (int64_t i = 0; i < count; ++i) x_grad[from + i] += grad[at + i];
      }
    });
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* out_grad_ = nullptr;
  Tensor* x_grad_ = nullptr;
};

template <class R>
void RegisterRepeat(OpRegistry& registry, const std::string& doc, const char* list_doc) {
  OpBuilder forward = registry.Add(R::kType);
  forward.Apart()
      .Doc(doc)
      .Input("X", "any shape")
      .Output("Out", "the values of X, repeated")
      .InferShape(InferExpand<R>)
      .template Kernel<ExpandKernel<R>>();
  if constexpr (kReadsY<R>) {
    forward.OptionalInput("Y", "has the shape of Out")
        .Attr(R::kAttr, std::vector<int64_t>{}, list_doc)
        .Grad({.inputs = {"X", "Y"}});
  } else {
    AddIntList(forward, R::kNames, list_doc);
    forward.Grad({.inputs = {"X", R::kNames.tensor, R::kNames.list}});
  }
  registry.AddGradient(R::kType).template Kernel<ExpandGradKernel>();
}

}  // namespace

void RegisterExpand(OpRegistry& registry) {
  RegisterRepeat<Expand>(registry, "X repeated along each axis.", "how often each axis is repeated");
  RegisterRepeat<Tile>(registry, "X repeated along its last axes, or along new ones in front.",
                       "how often each of the last axes is repeated");
  RegisterRepeat<ExpandV2>(registry, "X with its sizes of 1 repeated to a shape.",
                           "sizes of Out; -1 keeps X's, others need a size of 1");
  RegisterRepeat<ExpandAsV2>(registry, "X with its sizes of 1 repeated to the shape of another tensor.",
                             "sizes of Out, when Y is not bound");
}

}  // namespace millrace
