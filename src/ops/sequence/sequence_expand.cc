#include <algorithm>

#include "ops/grad_input.h"
#include "ops/number_types.h"
#include "ops/sequence/sequence.h"

namespace millrace {
namespace {

/// Both operators repeat the i-th part of X as often as Y's i-th sequence is long: sequence_expand a whole sequence (or
/// a row, when X has no sequences), sequence_expand_as a row.
bool IsAs(const OpView& op) { return op.type().starts_with("sequence_expand_as"); }

Status InferSequenceExpand(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta y, context.Input("Y"));
  MR_TRY(ExpectNumbers(context, "X", x));
  MR_TRY(ExpectSequences(context, "Y", y));
  if (x.dims.rank() < 2) return context.Error("X " + x.dims.ToString() + " must have two axes");
  if (!IsAs(context.op())) {
    const int64_t level = context.op().Int("ref_level");
    if (level != -1 && level != 0) {
      return context.Error("ref_level is " + std::to_string(level) +
                           "; sequences have one level: 0, or -1 for the last");
    }
  }
  x.dims.set(0, -1);
  x.lod_level = 1;
  context.SetOutput("Out", x);
  return Status::Ok();
}

/// Where the parts of X that are repeated begin and end.
class Parts {
 public:
  Parts(const Tensor& x, bool rows) : lod_(rows ? std::span<const uint32_t>() : x.lod()), count_(CountOf(x, rows)) {}
  int64_t count() const { return count_; }
  int64_t begin(int64_t i) const { return lod_.empty() ? i : lod_[static_cast<size_t>(i)]; }

 private:
  static int64_t CountOf(const Tensor& x, bool rows) {
    return rows || !x.has_lod() ? x.dims()[0] : static_cast<int64_t>(x.lod().size()) - 1;
  }
  std::span<const uint32_t> lod_;
  int64_t count_;
};

class SequenceExpandKernel : public BoundKernel<SequenceExpandKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(y_, context.Input("Y"));
    MR_ASSIGN(out_, context.Output("Out"));
    x_name_ = context.InputName("X");
    y_name_ = context.InputName("Y");
    as_ = IsAs(context.op());
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(CheckSequences(y_name_, *y_));
    if (!as_ && x_->has_lod()) MR_TRY(CheckSequences(x_name_, *x_));
    const std::span<const uint32_t> times = y_->lod();
    const Parts parts(*x_, as_);
    if (parts.count() != static_cast<int64_t>(times.size()) - 1) {
      return BadData("X \"" + x_name_ + "\" has " + std::to_string(parts.count()) + " parts for " +
                     std::to_string(times.size() - 1) + " sequences of Y \"" + y_name_ + "\"");
    }
    lod_.assign(1, 0);
    const bool whole = !as_ && x_->has_lod();
    for (int64_t i = 0; i < parts.count(); ++i) {
      const auto length = static_cast<uint32_t>(parts.begin(i + 1) - parts.begin(i));
      const uint32_t n = times[static_cast<size_t>(i) + 1] - times[static_cast<size_t>(i)];
      if (whole) {
        for (uint32_t k = 0; k < n; ++k) lod_.push_back(lod_.back() + length);
      } else {
        lod_.push_back(lod_.back() + n);
      }
    }
    const int64_t width = RowWidth(*x_);
    WithNumber(x_->dtype(), [&](auto sample) {
      using T = decltype(sample);
      const T* x = x_->data<T>();
      T* out = out_->Resize<T>(WithRows(x_->dims(), lod_.back()));
      for (int64_t i = 0; i < parts.count(); ++i) {
        const uint32_t n = times[static_cast<size_t>(i) + 1] - times[static_cast<size_t>(i)];
        for (uint32_t k = 0; k < n; ++k) {
          out = std::copy(x + parts.begin(i) * width, x + parts.begin(i + 1) * width, out);
        }
      }
    });
    out_->set_lod(lod_);
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* y_ = nullptr;
  Tensor* out_ = nullptr;
  std::vector<uint32_t> lod_;
  std::string x_name_;
  std::string y_name_;
  bool as_ = false;
};

class SequenceExpandGradKernel : public BoundKernel<SequenceExpandGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(y_, context.Input("Y"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    x_name_ = context.InputName("X");
    y_name_ = context.InputName("Y");
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    as_ = IsAs(context.op());
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(CheckSequences(y_name_, *y_));
    if (!as_ && x_->has_lod()) MR_TRY(CheckSequences(x_name_, *x_));
    const std::span<const uint32_t> times = y_->lod();
    const Parts parts(*x_, as_);
    const int64_t width = RowWidth(*x_);
    if (parts.count() != static_cast<int64_t>(times.size()) - 1) {
      return InvalidConfig("X has " + std::to_string(parts.count()) + " parts for " + std::to_string(times.size() - 1) +
                           " sequences of Y \"" + y_name_ + "\"");
    }
    int64_t count_of_out = 0;
    for (int64_t i = 0; i < parts.count(); ++i) {
      const uint32_t n = times[static_cast<size_t>(i) + 1] - times[static_cast<size_t>(i)];
      count_of_out += (parts.begin(i + 1) - parts.begin(i)) * width * n;
    }
    MR_ASSIGN(const float* grad, out_grad_.Read(count_of_out));
    float* x_grad = ResizeLike(*x_, x_grad_);
    std::fill_n(x_grad, x_->numel(), 0.0F);
    for (int64_t i = 0; i < parts.count(); ++i) {
      const int64_t count = (parts.begin(i + 1) - parts.begin(i)) * width;
      float* sum = x_grad + parts.begin(i) * width;
      const uint32_t n = times[static_cast<size_t>(i) + 1] - times[static_cast<size_t>(i)];
      for (uint32_t k = 0; k < n; ++k, grad += count) {
        for (int64_t j = 0; j < count; ++j) sum[j] += grad[j];
      }
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* y_ = nullptr;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  std::string x_name_;
  std::string y_name_;
  bool as_ = false;
};

void RegisterSequenceRepeat(OpRegistry& registry, const std::string& type, const std::string& doc) {
  OpBuilder forward = registry.Add(type);
  forward.Apart()
      .Doc(doc)
      .Input("X", "float32, int64 or int32 [rows, width], perhaps with LoD")
      .Input("Y", "a tensor with LoD, of which nothing else is read")
      .Output("Out", "the parts of X, repeated")
      .InferShape(InferSequenceExpand)
      .Grad({.inputs = {"X", "Y"}})
      .Kernel<SequenceExpandKernel>();
  if (type == "sequence_expand") {
    forward.Attr("ref_level", int64_t{-1}, "level of Y's LoD: 0, or -1 for the last");
  }
  registry.AddGradient(type).Kernel<SequenceExpandGradKernel>();
}

}  // namespace

void RegisterSequenceExpand(OpRegistry& registry) {
  RegisterSequenceRepeat(registry, "sequence_expand",
                         "The i-th sequence (or row) of X, as often as Y's i-th sequence is long.");
  RegisterSequenceRepeat(registry, "sequence_expand_as", "The i-th row of X, as often as Y's i-th sequence is long.");
}

}  // namespace millrace
