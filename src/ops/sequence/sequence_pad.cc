#include <algorithm>

#include "ops/grad_input.h"
#include "ops/number_types.h"
#include "ops/scalar_input.h"
#include "ops/sequence/sequence.h"
#include "ops/var_dtype.h"

namespace millrace {
namespace {

// Sequences of unequal lengths as a tensor of equal ones, the reverse, and the mask that tells values from padding.

Dims PaddedDims(const Dims& x, int64_t sequences, int64_t length) {
  Dims out{sequences, length};
  for (int axis = 1; axis < x.rank(); ++axis) out.push_back(x[axis]);
  return out;
}

Status InferPad(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta pad, context.Input("PadValue"));
  MR_TRY(ExpectNumbers(context, "X", x));
  MR_TRY(ExpectDType(context, "PadValue", pad, x.dtype));
  MR_TRY(ExpectSequences(context, "X", x));
  const int64_t length = context.op().Int("padded_length");
  if (length != -1 && length < 1) return context.Error("padded_length is " + std::to_string(length));
  if (x.dims.rank() < 1 || x.dims.rank() >= Dims::kMaxRank) return context.Error("X is " + x.dims.ToString());
  const int64_t width = KnownProduct(x.dims, 1, x.dims.rank());
  const int64_t values = KnownProduct(pad.dims, 0, pad.dims.rank());
  if (values != 1 && !MayEqual(values, width)) {
    return context.Error("PadValue " + pad.dims.ToString() + " is neither one value nor a row of X " +
                         x.dims.ToString());
  }
  x.dims = PaddedDims(x.dims, -1, length);
  x.lod_level = 0;
  context.SetOutput("Out", x);
  VarMeta lengths;
  lengths.dtype = DType::kInt64;
  lengths.dims = Dims{-1};
  context.SetOutput("Length", lengths);
  return Status::Ok();
}

class PadKernel : public BoundKernel<PadKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(pad_, context.Input("PadValue"));
    MR_ASSIGN(out_, context.Output("Out"));
    MR_ASSIGN(lengths_, context.OptionalOutput("Length"));
    padded_length_ = context.op().Int("padded_length");
    name_ = context.InputName("X");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    MR_TRY(CheckSequences(name_, *x_));
    const std::span<const uint32_t> lod = x_->lod();
    const size_t sequences = lod.size() - 1;
    int64_t longest = 0;
    for (size_t i = 0; i < sequences; ++i) {
      const int64_t length = lod[i + 1] - lod[i];
      longest = std::max(longest, length);
      if (padded_length_ < 0 || length <= padded_length_) continue;
      return BadData("the sequence of \"" + name_ + "\" of " + context.DescribeRow(static_cast<int>(i)) + " has " +
                     std::to_string(length) + " rows, more than padded_length " + std::to_string(padded_length_));
    }
    const int64_t length = padded_length_ < 0 ? longest : padded_length_;
    const int64_t width = RowWidth(*x_);
    const int64_t pad_width = pad_->numel();
    if (pad_width == 0) return BadData("PadValue " + pad_->dims().ToString() + " has no value");
    WithNumber(x_->dtype(), [&](auto sample) {
      using T = decltype(sample);
      const T* x = x_->data<T>();
      const T* pad = pad_->data<T>();
      T* out = out_->Resize<T>(PaddedDims(x_->dims(), static_cast<int64_t>(sequences), length));
      for (size_t i = 0; i < sequences; ++i) {
        out = std::copy(x + lod[i] * width, x + lod[i + 1] * width, out);
        const int64_t missing = (length - (lod[i + 1] - lod[i])) * width;
        for (int64_t j = 0; j < missing; ++j) *out++ = pad[j % width % pad_width];
      }
    });
    if (lengths_ == nullptr) return Status::Ok();
    int64_t* lengths = lengths_->Resize<int64_t>({static_cast<int64_t>(sequences)});
    for (size_t i = 0; i < sequences; ++i) lengths[i] = lod[i + 1] - lod[i];
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* pad_ = nullptr;
  Tensor* out_ = nullptr;
  Tensor* lengths_ = nullptr;
  int64_t padded_length_ = -1;
  std::string name_;
};

class PadGradKernel : public BoundKernel<PadGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    name_ = context.InputName("X");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(CheckSequences(name_, *x_));
    const std::span<const uint32_t> lod = x_->lod();
    const int64_t width = RowWidth(*x_);
    const Dims& given = out_grad_.tensor().dims();
    const int64_t longest = given.rank() < 2 ? 0 : given[1];
    const int64_t sequences = static_cast<int64_t>(lod.size()) - 1;
    for (size_t i = 0; i + 1 < lod.size(); ++i) {
      if (lod[i + 1] - lod[i] <= longest) continue;
      return BadData("a sequence of X has " + std::to_string(lod[i + 1] - lod[i]) + " rows, and its gradient " +
                     given.ToString());
    }
    const int64_t row = longest * width;
    MR_ASSIGN(const float* grad, out_grad_.Read(sequences * row));
    float* to = ResizeLike(*x_, x_grad_);
    for (size_t i = 0; i + 1 < lod.size(); ++i, grad += row) to = std::copy_n(grad, (lod[i + 1] - lod[i]) * width, to);
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  GradInput out_grad_;
  Tensor* x_grad_ = nullptr;
  std::string name_;
};

/// [sequences, length, ...] to [values, ...]; a matrix gives [values, 1].
Dims UnpaddedDims(const Dims& x, int64_t values) {
  Dims out{values};
  for (int axis = 2; axis < x.rank(); ++axis) out.push_back(x[axis]);
  if (x.rank() == 2) out.push_back(1);
  return out;
}

Status InferUnpad(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta length, context.Input("Length"));
  MR_TRY(ExpectNumbers(context, "X", x));
  MR_TRY(ExpectDType(context, "Length", length, DType::kInt64));
  if (x.dims.rank() < 2) return context.Error("X " + x.dims.ToString() + " must have two axes");
  x.dims = UnpaddedDims(x.dims, -1);
  x.lod_level = 1;
  context.SetOutput("Out", x);
  return Status::Ok();
}

class UnpadKernel : public BoundKernel<UnpadKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(length_, context.Input("Length"));
    MR_ASSIGN(out_, context.Output("Out"));
    name_ = context.InputName("Length");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    const int64_t sequences = x_->dims()[0];
    const int64_t longest = x_->dims()[1];
    if (length_->numel() != sequences) {
      return BadData("Length " + Shown(name_, length_->dims()) + " for X " + x_->dims().ToString());
    }
    const int64_t* lengths = length_->data<int64_t>();
    lod_.assign(1, 0);
    for (int64_t i = 0; i < sequences; ++i) {
      if (lengths[i] < 0 || lengths[i] > longest) {
        return BadData("Length \"" + name_ + "\" of " + context.DescribeRow(static_cast<int>(i)) + " is " +
                       std::to_string(lengths[i]) + ", X has " + std::to_string(longest));
      }
      lod_.push_back(lod_.back() + static_cast<uint32_t>(lengths[i]));
    }
    const int64_t width = x_->dims().Product(2, x_->dims().rank());
    WithNumber(x_->dtype(), [&](auto sample) {
      using T = decltype(sample);
      const T* x = x_->data<T>();
      T* out = out_->Resize<T>(UnpaddedDims(x_->dims(), lod_.back()));
      for (int64_t i = 0; i < sequences; ++i) out = std::copy_n(x + i * longest * width, lengths[i] * width, out);
    });
    out_->set_lod(lod_);
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  const Tensor* length_ = nullptr;
  Tensor* out_ = nullptr;
  std::vector<uint32_t> lod_;
  std::string name_;
};

class UnpadGradKernel : public BoundKernel<UnpadGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(length_, context.OptionalInput("Length"));
    MR_ASSIGN(x_grad_, context.Output("X@GRAD"));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int64_t sequences = x_->dims()[0];
    const int64_t width = x_->dims().Product(2, x_->dims().rank());
    const int64_t longest = x_->dims()[1];
    const int64_t row = longest * width;
    // Paddle's program leaves Length out; the gradient has the sequences of Out.
    const std::span<const uint32_t> lod = out_grad_.tensor().lod();
    const int64_t known = length_ != nullptr ? length_->numel() : static_cast<int64_t>(lod.size()) - 1;
    if (known != sequences) {
      return BadData("the gradient of Out says the lengths of " + std::to_string(std::max<int64_t>(known, 0)) +
                     " sequences, and X " + x_->dims().ToString() + " has " + std::to_string(sequences));
    }
    const int64_t* lengths = length_ != nullptr ? length_->data<int64_t>() : nullptr;
    const auto length_of = [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      return lengths != nullptr ? lengths[i] : static_cast<int64_t>(lod[at + 1]) - lod[at];
    };
    int64_t values = 0;
    for (int64_t i = 0; i < sequences; ++i) {
      const int64_t length = length_of(i);
      if (length < 0 || length > longest) {
        return BadData("a sequence of " + std::to_string(length) + " rows in X " + x_->dims().ToString());
      }
      values += length * width;
    }
    MR_ASSIGN(const float* grad, out_grad_.Read(values));
    float* x_grad = x_grad_->Resize<float>(x_->dims());
    std::fill_n(x_grad, sequences * row, 0.0F);
    for (int64_t i = 0; i < sequences; ++i) {
      std::copy_n(grad, length_of(i) * width, x_grad + i * row);
      grad += length_of(i) * width;
    }
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  GradInput out_grad_;
  const Tensor* length_ = nullptr;
  Tensor* x_grad_ = nullptr;
};

Status InferMask(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_TRY(ExpectDType(context, "X", x, DType::kInt64));
  const int64_t most = context.HasInput("MaxLenTensor") ? -1 : context.op().Int("maxlen");
  if (most != -1 && most < 1) return context.Error("maxlen is " + std::to_string(most));
  if (x.dims.rank() >= Dims::kMaxRank) return context.Error("X has too many axes: " + x.dims.ToString());
  x.dims.push_back(most);
  x.lod_level = 0;
  MR_ASSIGN(x.dtype, ReadDTypeAttr(context.op(), "out_dtype"));
  context.SetOutput("Y", x);
  return Status::Ok();
}

class MaskKernel : public BoundKernel<MaskKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, context.Input("X"));
    MR_ASSIGN(y_, context.Output("Y"));
    MR_ASSIGN(type_, ReadDTypeAttr(context.op(), "out_dtype"));
    MR_ASSIGN(maxlen_, ScalarInput::Bind(context, "MaxLenTensor", static_cast<double>(context.op().Int("maxlen"))));
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    const int64_t count = x_->numel();
    const int64_t* x = x_->data<int64_t>();
    const int64_t longest = count == 0 ? 0 : std::max<int64_t>(*std::max_element(x, x + count), 0);
    MR_ASSIGN(const double maxlen, maxlen_.Read());
    const int64_t length = maxlen < 0 ? longest : ConvertValue<int64_t>(maxlen);
    Dims dims = x_->dims();
    dims.push_back(length);
    WithType(type_, [&](auto sample) {
      using T = decltype(sample);
      T* y = y_->Resize<T>(dims);
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t j = 0; j < length; ++j) *y++ = ConvertValue<T>(j < x[i] ? 1 : 0);
      }
    });
    return Status::Ok();
  }

 private:
  const Tensor* x_ = nullptr;
  Tensor* y_ = nullptr;
  DType type_ = DType::kInt64;
  ScalarInput maxlen_;
};

}  // namespace

void RegisterSequencePad(OpRegistry& registry) {
  registry.Add("sequence_pad")
      .Apart()
      .Doc("Sequences as rows of equal length, padded at their ends.")
      .Input("X", "float32, int64 or int32 [values, ...] with LoD")
      .Input("PadValue", "one value, or a row of them, of the type of X")
      .Output("Out", "[sequences, length, ...]")
      .OptionalOutput("Length", "int64 [sequences], what each had")
      .Attr("padded_length", int64_t{-1}, "-1: that of the longest sequence")
      .InferShape(InferPad)
      .Grad({.inputs = {"X"}})
      .Kernel<PadKernel>();
  registry.AddGradient("sequence_pad").Kernel<PadGradKernel>();
  registry.Add("sequence_unpad")
      .Apart()
      .Doc("The first rows of each part of X, as many as Length says, as sequences.")
      .Input("X", "float32, int64 or int32 [sequences, length, ...]")
      .Input("Length", "int64 [sequences]")
      .Output("Out", "[values, ...] with LoD")
      .InferShape(InferUnpad)
      .Grad({.inputs = {"X", "Length"}, .optional = {"Length"}})
      .Kernel<UnpadKernel>();
  registry.AddGradient("sequence_unpad").Kernel<UnpadGradKernel>();
  registry.Add("sequence_mask")
      .Doc("For each length a row of as many ones, then zeros.")
      .Input("X", "int64 lengths, any shape")
      .OptionalInput("MaxLenTensor", "[1], instead of maxlen")
      .Output("Y", "[..., maxlen]")
      .Attr("maxlen", int64_t{-1}, "length of a row; -1: the largest of X")
      .Attr("out_dtype", int64_t{VarType::INT64}, "type of Y, a VarType number")
      .InferShape(InferMask)
      .Kernel<MaskKernel>();
}

}  // namespace millrace
