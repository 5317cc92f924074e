#include <algorithm>
#include <cstring>

#include "ops/int_list_input.h"
#include "ops/kernel.h"
#include "ops/scalar_input.h"
#include "program/expansion.h"

namespace millrace {
namespace {

/// Sizes of the parts of an axis of `size`: sections as given, one -1 taking what is left, or `num` equal ones.
Result<std::vector<int64_t>> PartsOf(int64_t size, const std::vector<int64_t>& sections, int64_t num, size_t outputs) {
  const std::string axis = "an axis of " + std::to_string(size);
  if (sections.empty()) {
    const int64_t count = num > 0 ? num : static_cast<int64_t>(outputs);
    if (count != static_cast<int64_t>(outputs)) {
      return InvalidConfig("num is " + std::to_string(count) + " for " + std::to_string(outputs) + " outputs");
    }
    if (size >= 0 && size % count != 0)
      return InvalidConfig(axis + " does not have " + std::to_string(count) + " equal parts");
    return std::vector<int64_t>(outputs, size < 0 ? -1 : size / count);
  }
  if (sections.size() != outputs) {
    return InvalidConfig("sections " + ShowAttr(sections) + " for " + std::to_string(outputs) + " outputs");
  }
  std::vector<int64_t> parts = sections;
  int64_t known = 0;
  int64_t* free = nullptr;
  for (int64_t& part : parts) {
    if (part >= 0 && __builtin_add_overflow(known, part, &known)) {
      return InvalidConfig("sections " + ShowAttr(sections) + " are too many");
    }
    if (part < 0 && free != nullptr) return InvalidConfig("two sections are -1: " + ShowAttr(sections));
    if (part < 0) free = &part;
  }
  if (size < 0) return parts;
  if (free != nullptr) *free = size - known;
  if (free == nullptr ? known != size : *free < 0) {
    return InvalidConfig("sections " + ShowAttr(sections) + " do not add up to " + axis);
  }
  return parts;
}

constexpr IntListNames kSections{"SectionsTensor", "SectionsTensorList", "sections"};

/// Of parts that only the batch tells, no size is known.
Status InferSplitSomewhere(InferShapeContext& context, VarMeta out) {
  MR_TRY(ReadKnownInts(context, kSections).status());
  for (int axis = 0; axis < out.dims.rank(); ++axis) out.dims.set(axis, -1);
  out.lod_level = 0;
  for (int i = 0; i < context.OutputCount("Out"); ++i) context.SetOutput("Out", out, i);
  return Status::Ok();
}

Status InferSplit(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta x, context.Input("X"));
  if (context.HasInput("AxisTensor")) return InferSplitSomewhere(context, x);
  MR_ASSIGN(const int axis, FrontAxis(context, context.op().Int("axis"), x.dims.rank()));
  const int outputs = context.OutputCount("Out");
  MR_ASSIGN(const KnownInts sections, ReadKnownInts(context, kSections));
  const int64_t size = sections.is_fixed ? x.dims[axis] : -1;
  const auto parts = PartsOf(size, sections.is_fixed ? sections.values : std::vector<int64_t>{},
                             sections.is_fixed ? context.op().Int("num") : outputs, static_cast<size_t>(outputs));
  if (!sections.is_fixed && sections.values.size() != static_cast<size_t>(outputs)) {
    return context.Error(std::to_string(sections.values.size()) + " sections for " + std::to_string(outputs) +
                         " outputs");
  }
  if (!parts.ok()) {
    return context.Error("X " + Shown(InputArguments(context.op().desc(), "X")[0], x.dims) + ": " +
                         parts.status().message());
  }
  for (int i = 0; i < outputs; ++i) {
    VarMeta out = x;
    out.dims.set(axis, (*parts)[static_cast<size_t>(i)]);
    if (axis == 0) out.lod_level = 0;
    context.SetOutput("Out", out, i);
  }
  return Status::Ok();
}

class SplitKernel : public BoundKernel<SplitKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(outs_, context.Outputs("Out"));
    MR_ASSIGN(axis_, AxisInput::Bind(context, "AxisTensor", "axis"));
    num_ = context.op().Int("num");
    MR_ASSIGN(sections_, IntListInput::Bind(context, kSections));
    const OpDesc& op = context.op().desc();
    varies_ = !InputArguments(op, "AxisTensor").empty() || !InputArguments(op, kSections.list).empty();
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    Dims dims = x_->dims();
    MR_ASSIGN(const int axis, axis_.Read(dims.rank()));
    if (dims[axis] != size_ || varies_) {
      MR_TRY(sections_.Read());
      MR_ASSIGN(parts_, PartsOf(dims[axis], sections_.values(), num_, outs_.size()));
      size_ = dims[axis];
    }
    const int64_t outer = dims.Product(0, axis);
    const auto inner = static_cast<size_t>(dims.Product(axis + 1, dims.rank())) * SizeOf(x_->dtype());
    const size_t row = inner * static_cast<size_t>(dims[axis]);
    const auto* from = static_cast<const char*>(x_->raw_data());
    size_t begin = 0;
    for (size_t k = 0; k < outs_.size(); ++k) {
      const size_t part = inner * static_cast<size_t>(parts_[k]);
      if (outs_[k] != nullptr) {
        dims.set(axis, parts_[k]);
        auto* to = static_cast<char*>(outs_[k]->ResizeRaw(x_->dtype(), dims));
        if (axis > 0) outs_[k]->set_lod(x_->lod());
        for (int64_t i = 0; i < outer && part > 0; ++i) {
          std::memcpy(to + static_cast<size_t>(i) * part, from + static_cast<size_t>(i) * row + begin, part);
        }
      }
      begin += part;
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  std::vector<Tensor*> outs_;
  IntListInput sections_;
  std::vector<int64_t> parts_;  ///< of an axis of size_
  int64_t size_ = -1;
  AxisInput axis_;
  int64_t num_ = 0;
  bool varies_ = false;  ///< tensors tell where to cut
};

/// The gradients of the parts, side by side. Parts that nothing was computed from have none.
Status ExpandSplitGrad(Expansion& e) {
  std::vector<std::string> parts;
  for (size_t i = 0; !e.In("Out", i).empty(); ++i) {
    const std::string grad = e.In("Out@GRAD", i);
    if (!grad.empty()) e.ExpectEqualShape(e.In("Out", i), grad);
    parts.push_back(grad.empty() ? e.Add("fill_zeros_like", {{"X", e.In("Out", i)}}) : grad);
  }
  const auto joined =
      e.Add("concat", {{"X", parts}, {"AxisTensor", e.In("AxisTensor")}}, {{"axis", e.op().Int("axis")}});
  e.ExpectEqualShape(e.In("X"), joined);
  e.SetOut("X@GRAD", joined);
  return Status::Ok();
}

}  // namespace

void RegisterSplit(OpRegistry& registry) {
  registry.Add("split")
      .Apart()
      .Doc("Cuts X along one axis.")
      .Input("X", "any shape")
      .OptionalInput("AxisTensor", "[1], instead of axis")
      .OptionalInputs("SectionsTensorList", "the sections as tensors of one value each")
      .Outputs("Out", "the parts, in order")
      .Attr("axis", int64_t{0}, "negative: from the end")
      .Attr("sections", std::vector<int64_t>{}, "sizes of the parts, one of which may be -1: what is left")
      .Attr("num", int64_t{0}, "without sections, the number of equal parts")
      .InferShape(InferSplit)
      .Grad({.inputs = {"X", "AxisTensor"}, .outputs = {"Out"}})
      .Kernel<SplitKernel>();
  registry.AddGradient("split").Expand(ExpandSplitGrad);
}

}  // namespace millrace
