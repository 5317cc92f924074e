#include <algorithm>
#include <cstring>

#include "ops/grad_input.h"
#include "ops/int_list_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

/// Ranges [start, end) along some axes; negative numbers count from the end, ends beyond a size mean the size. With
/// strides every so many indices, backwards where a stride is negative; then an end of -1 is the one before the first.
struct Ranges {
  std::vector<int64_t> axes;  ///< negative: from the end
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;
  std::vector<int64_t> dropped;
  std::vector<int64_t> strides;  ///< none: 1

  int Axis(size_t i, int rank) const { return static_cast<int>(axes[i] < 0 ? axes[i] + rank : axes[i]); }
  /// Strides beyond a size pick the first index alone, as that of the size and one does.
  int64_t Stride(size_t i, int64_t size) const {
    return strides.empty() ? 1 : std::clamp<int64_t>(strides[i], -size - 1, size + 1);
  }
  /// First index and number of indices along axes[i] of a size; {0, -1} where something is not known.
  std::pair<int64_t, int64_t> At(size_t i, int64_t size) const {
    for (const int64_t known : {starts[i], ends[i], strides.empty() ? 1 : strides[i]}) {
      if (size < 0 || known == KnownInts::kUnknown) return {0, -1};
    }
    const int64_t stride = Stride(i, size);
    if (stride < 0) {
      const auto clamp = [size](int64_t at) { return std::clamp<int64_t>(at, -1, size - 1); };
      const int64_t start = clamp(starts[i] < 0 ? starts[i] + size : starts[i]);
      const int64_t end = clamp(ends[i] < -1 ? ends[i] + size : ends[i]);
      return {std::max<int64_t>(start, 0), std::max<int64_t>((start - end - stride - 1) / -stride, 0)};
    }
    const auto clamp = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
    const int64_t start = clamp(starts[i]);
    return {start, std::max<int64_t>((clamp(ends[i]) - start + stride - 1) / stride, 0)};
  }
  /// Sizes of the cut, dropped axes still there.
  Dims Cut(Dims dims) const {
    for (size_t i = 0; i < axes.size(); ++i) {
      const int axis = Axis(i, dims.rank());
      dims.set(axis, At(i, dims[axis]).second);
    }
    return dims;
  }
  Dims Drop(const Dims& cut) const {
    Dims out;
    for (int axis = 0; axis < cut.rank(); ++axis) {
      if (std::find(dropped.begin(), dropped.end(), axis) == dropped.end()) out.push_back(cut[axis]);
    }
    if (out.rank() == 0) out.push_back(1);
    return out;
  }
  /// Calls body(x_offset, cut_offset, count) for each run of values that are neighbours in both.
  template <class Body>
  void ForEachRun(const Dims& x, const Dims& cut, const Body& body) const {
    const int rank = x.rank();
    if (cut.numel() == 0) return;
    if (rank == 0) return body(0, 0, 1);
    int64_t base = 0;
    Dims steps = cut;  // from one index of the cut to the next, in values of x
    for (int axis = 0; axis < rank; ++axis) steps.set(axis, x.Product(axis + 1, rank));
    for (size_t i = 0; i < axes.size(); ++i) {
      const int axis = Axis(i, rank);
      base += At(i, x[axis]).first * steps[axis];
      steps.set(axis, steps[axis] * Stride(i, x[axis]));
    }
    const bool whole = steps[-1] == 1;
    const int64_t run = whole ? cut[-1] : 1;
    for (int64_t at = 0; at < cut.numel(); at += run) {
      int64_t rest = at / run;
      int64_t from = base;
      for (int axis = whole ? rank - 2 : rank - 1; axis >= 0; --axis) {
        from += rest % cut[axis] * steps[axis];
        rest /= cut[axis];
      }
      body(from, at, run);
    }
  }
};

constexpr IntListNames kStarts{"StartsTensor", "StartsTensorList", "starts"};
constexpr IntListNames kEnds{"EndsTensor", "EndsTensorList", "ends"};
constexpr IntListNames kStrides{"StridesTensor", "StridesTensorList", "strides"};

bool HasStrides(const OpView& op) { return op.type().starts_with("strided_slice"); }

Status InferSlice(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("Input"));
  MR_ASSIGN(KnownInts starts, ReadKnownInts(context, kStarts));
  MR_ASSIGN(KnownInts ends, ReadKnownInts(context, kEnds));
  KnownInts strides;
  if (HasStrides(context.op())) {
    MR_ASSIGN(strides, ReadKnownInts(context, kStrides));
  }
  // Paddle writes numbers of no meaning into the attribute beside tensors.
  for (KnownInts* known : {&starts, &ends, &strides}) {
    if (!known->is_fixed) std::fill(known->values.begin(), known->values.end(), KnownInts::kUnknown);
  }
  const Ranges ranges{context.op().Ints("axes"), std::move(starts.values), std::move(ends.values),
                      context.op().Ints("decrease_axis"), std::move(strides.values)};
  if (ranges.axes.size() != ranges.starts.size() || ranges.axes.size() != ranges.ends.size()) {
    return context.Error("axes, starts and ends are lists of different lengths");
  }
  if (HasStrides(context.op()) && ranges.axes.size() != ranges.strides.size()) {
    return context.Error("axes and strides are lists of different lengths");
  }
  if (std::count(ranges.strides.begin(), ranges.strides.end(), 0) > 0) return context.Error("a stride is 0");
  for (const int64_t axis : ranges.axes) {
    if (axis < -x.dims.rank() || axis >= x.dims.rank()) {
      return context.Error("there is no axis " + std::to_string(axis) + " in Input " +
                           Shown(InputArguments(context.op().desc(), "Input")[0], x.dims));
    }
  }
  for (size_t i = 0; i < ranges.axes.size(); ++i) {
    const auto is_same = [&](int64_t axis) { return (axis - ranges.axes[i]) % x.dims.rank() == 0; };
    if (std::count_if(ranges.axes.begin(), ranges.axes.end(), is_same) == 1) continue;
    return context.Error("axis " + std::to_string(ranges.axes[i]) + " stands twice in axes");
  }
  const int rank = x.dims.rank();
  const Dims cut = ranges.Cut(x.dims);
  for (const int64_t axis : ranges.dropped) {
    if (axis >= 0 && axis < cut.rank() && MayEqual(cut[static_cast<int>(axis)], 1)) continue;
    return context.Error("decrease_axis " + std::to_string(axis) + " is no axis of size 1 of the cut " +
                         cut.ToString());
  }
  x.dims = ranges.Drop(cut);
  for (size_t i = 0; i < ranges.axes.size(); ++i) {
    if (ranges.Axis(i, rank) == 0) x.lod_level = 0;
  }
  context.SetOutput("Out", x);
  return Status::Ok();
}

/// The ranges of each batch.
class RangesInput {
 public:
  static Result<RangesInput> Bind(const KernelContext& context) {
    RangesInput input;
    MR_ASSIGN(input.starts_, IntListInput::Bind(context, kStarts));
    MR_ASSIGN(input.ends_, IntListInput::Bind(context, kEnds));
    input.strided_ = HasStrides(context.op());
    if (input.strided_) {
      MR_ASSIGN(input.strides_, IntListInput::Bind(context, kStrides));
    }
    input.ranges_.axes = context.op().Ints("axes");
    input.ranges_.dropped = context.op().Ints("decrease_axis");
    return input;
  }
  Result<const Ranges*> Read() {
    MR_TRY(starts_.Read());
    MR_TRY(ends_.Read());
    MR_TRY(strides_.Read());
    ranges_.starts = starts_.values();
    ranges_.ends = ends_.values();
    ranges_.strides = strides_.values();
    const size_t count = ranges_.axes.size();
    const bool fits = !strided_ || ranges_.strides.size() == count;
    if (std::count(ranges_.strides.begin(), ranges_.strides.end(), 0) > 0) return BadData("a stride is 0");
    if (ranges_.starts.size() == count && ranges_.ends.size() == count && fits) return &ranges_;
    return BadData(std::to_string(ranges_.starts.size()) + " starts, " + std::to_string(ranges_.ends.size()) +
                   " ends and " + std::to_string(ranges_.strides.size()) + " strides for " + std::to_string(count) +
                   " axes");
  }

 private:
  IntListInput starts_;
  IntListInput ends_;
  IntListInput strides_;
  bool strided_ = false;
  Ranges ranges_;
};

class SliceKernel : public BoundKernel<SliceKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("Input"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(ranges_, RangesInput::Bind(context));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_ASSIGN(const Ranges* ranges, ranges_.Read());
    const Dims x_dims = x_->dims();
    const Dims cut = ranges->Cut(x_dims);
    const Dims out_dims = ranges->Drop(cut);
    if (out_dims.numel() != cut.numel()) {
      return BadData("decrease_axis names an axis of the cut " + cut.ToString() + " that is not of size 1");
    }
    const auto bytes = static_cast<int64_t>(SizeOf(x_->dtype()));
    const std::span<const uint32_t> lod = x_->lod();
    const auto* x = static_cast<const char*>(x_->raw_data());
    auto* out = static_cast<char*>(out_->ResizeRaw(x_->dtype(), out_dims));
    if (cut.rank() > 0 && cut[0] == x_dims[0]) out_->set_lod(lod);
    ranges->ForEachRun(x_dims, cut, [&](int64_t from, int64_t at, int64_t count) {
      std::memcpy(out + at * bytes, x + from * bytes, static_cast<size_t>(count * bytes));
    });
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* out_ = nullptr;
  RangesInput ranges_;
};

class SliceGradKernel : public BoundKernel<SliceGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("Input"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("Input@GRAD"));
    MR_ASSIGN(ranges_, RangesInput::Bind(context));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_ASSIGN(const Ranges* ranges, ranges_.Read());
    const Dims cut = ranges->Cut(x_->dims());
    MR_ASSIGN(const float* grad, out_grad_.Read(cut.numel()));
    float* x_grad = ResizeLike(*x_, x_grad_);
    std::fill_n(x_grad, x_->numel(), 0.0F);
    ranges->ForEachRun(x_->dims(), cut,
                       [&](int64_t from, int64_t at, int64_t count) { std::copy_n(grad + at, count, x_grad + from); });
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  RangesInput ranges_;
};

}  // namespace

void RegisterSlice(OpRegistry& registry) {
  const std::vector<int64_t> none;
  for (const std::string type : {"slice", "strided_slice"}) {
    std::vector<std::string> read = {"Input", "StartsTensor", "StartsTensorList", "EndsTensor", "EndsTensorList"};
    OpBuilder forward = registry.Add(type);
    AddIntList(forward, kStarts, "first index along each");
    AddIntList(forward, kEnds, "one past the last index along each");
    forward.Attr("axes", none, "axes to cut")
        .Attr("decrease_axis", none, "axes of size 1 that Out goes without")
        .Attr("infer_flags", none, "as Paddle writes it; changes nothing here");
    if (type == "strided_slice") {
      AddIntList(forward, kStrides, "every so many indices; negative: backwards");
      read.insert(read.end(), {kStrides.tensor, kStrides.list});
    }
    forward.Doc("Cuts ranges out of a tensor.")
        .Input("Input", "any shape")
        .Output("Out", "the cut")
        .InferShape(InferSlice)
        .Grad({.inputs = read, .to = {"Input"}})
        .Kernel<SliceKernel>();
    registry.AddGradient(type).Kernel<SliceGradKernel>();
  }
}

}  // namespace millrace
