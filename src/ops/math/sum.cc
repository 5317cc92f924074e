#include <algorithm>
#include <cstring>

#include "ops/float_input.h"
#include "ops/kernel.h"
#include "ops/number_types.h"
#include "ops/sparse_gradient.h"

namespace millrace {
namespace {

Status InferSum(InferShapeContext& context) {
  MR_ASSIGN(const std::vector<VarMeta> metas, context.Inputs("X"));
  const std::vector<std::string> names = InputArguments(context.op().desc(), "X");
  VarMeta out = metas[0];
  for (size_t i = 0; i < metas.size(); ++i) {
    if (metas[i].kind != VarType::SELECTED_ROWS) {
      if (out.kind == VarType::SELECTED_ROWS) out = metas[i];
      MR_TRY(ExpectNumbers(context, "X", metas[i]));
      MR_TRY(ExpectDType(context, "X", metas[i], out.dtype));
    }
    if (!MayEqual(metas[i].dims, out.dims)) {
      return context.Error("shapes differ: " + Shown(names[0], metas[0].dims) + ", " + Shown(names[i], metas[i].dims));
    }
  }
  context.SetOutput("Out", out);
  return Status::Ok();
}

template <class T>
void AddTensors(const std::vector<const Tensor*>& xs, const T* first, T* out) {
  const int64_t count = xs[0]->numel();
  // In-place sums read their own output first.
  if (out != first) std::copy_n(first, count, out);
  for (size_t i = 1; i < xs.size(); ++i) {
    const T* x = xs[i]->data<T>();
    for (int64_t j = 0; j < count; ++j) out[j] += x[j];
  }
}

/// All inputs are tensors.
class SumTensorsKernel : public OpKernel {
 public:
  SumTensorsKernel(std::vector<const Tensor*> xs, std::vector<std::string> names, Tensor* out)
      : xs_(std::move(xs)), names_(std::move(names)), out_(out) {
    // Out may be any of the inputs: that one goes first.
    const auto same = std::find(xs_.begin(), xs_.end(), out_);
    if (same != xs_.end()) std::iter_swap(xs_.begin(), same);
  }
  Status Run(const RunContext&) override {
    for (size_t i = 1; i < xs_.size(); ++i) {
      if (xs_[i]->numel() == xs_[0]->numel()) continue;
      return BadData("shapes differ: " + xs_[0]->dims().ToString() + ", " + Shown(names_[i], xs_[i]->dims()));
    }
    WithNumber(xs_[0]->dtype(), [this](auto sample) {
      using T = decltype(sample);
      const T* first = xs_[0]->data<T>();
      AddTensors(xs_, first, ResizeLikeIn<T>(*xs_[0], out_));
    });
    return Status::Ok();
  }

 private:
  std::vector<const Tensor*> xs_;
  std::vector<std::string> names_;
  Tensor* out_;
};

/// All inputs are sparse: their rows end to end.
class SumRowsKernel : public OpKernel {
 public:
  SumRowsKernel(std::vector<const SelectedRows*> xs, SelectedRows* out) : xs_(std::move(xs)), out_(out) {}
  Status Run(const RunContext&) override {
    out_->StartRows(nullptr);
    out_->height = xs_[0]->height;
    int64_t width = 0;
    for (const SelectedRows* x : xs_) {
      MR_TRY(out_->AppendRows(*x));
      if (x->rows.empty()) continue;
      const int64_t own = x->values.numel() / static_cast<int64_t>(x->rows.size());
      if (width != 0 && own != width) {
        return BadData("sparse gradients of rows of " + std::to_string(width) + " and of " + std::to_string(own) +
                       " values");
      }
      width = own;
    }
    float* to = out_->values.Resize<float>({static_cast<int64_t>(out_->rows.size()), width});
    for (const SelectedRows* x : xs_) {
      if (x->rows.empty()) continue;
      to = std::copy_n(x->values.data<float>(), x->values.numel(), to);
    }
    return Status::Ok();
  }

 private:
  std::vector<const SelectedRows*> xs_;
  SelectedRows* out_;
};

/// Tensors and sparse inputs: a tensor.
class SumMixedKernel : public OpKernel {
 public:
  SumMixedKernel(std::vector<const Tensor*> tensors, std::vector<const SelectedRows*> rows, Tensor* out)
      : dense_(std::move(tensors), {}, out), rows_(std::move(rows)), out_(out) {}
  Status Run(const RunContext& context) override {
    MR_TRY(dense_.Run(context));
    float* out = out_->mutable_data<float>();
    const int64_t width = out_->dims().Product(1, out_->dims().rank());
    const auto height = static_cast<uint64_t>(out_->dims()[0]);
    for (const SelectedRows* x : rows_) {
      if (x->rows.empty()) continue;
      if (x->values.numel() != static_cast<int64_t>(x->rows.size()) * width) {
        return BadData("a sparse gradient " + x->values.dims().ToString() + " does not fit a tensor " +
                       out_->dims().ToString());
      }
      const float* from = x->values.data<float>();
      for (const uint64_t row : x->rows) {
        if (row >= height) {
          return BadData("row " + std::to_string(row) + " of a sparse gradient is not in a tensor of " +
                         std::to_string(height) + " rows");
        }
        float* to = out + static_cast<int64_t>(row) * width;
        for (int64_t j = 0; j < width; ++j) to[j] += from[j];
        from += width;
      }
    }
    return Status::Ok();
  }

 private:
  SumTensorsKernel dense_;
  std::vector<const SelectedRows*> rows_;
  Tensor* out_;
};

/// Chooses the kernel by what the variables hold: the operators that write them were made before.
struct SumKernel {
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext& context) {
    MR_ASSIGN(const std::vector<Variable*> variables, context.InputVariables("X"));
    std::vector<const Tensor*> tensors;
    std::vector<const SelectedRows*> rows;
    for (Variable* variable : variables) {
      if (variable == nullptr) continue;
      if (variable->Is<SelectedRows>()) {
        rows.push_back(&variable->Get<SelectedRows>());
      } else {
        tensors.push_back(variable->GetMutable<Tensor>());
      }
    }
    if (tensors.empty() && rows.empty()) return InvalidConfig("sum: there are no inputs");
    if (tensors.empty()) {
      MR_ASSIGN(SelectedRows * out, RowsOutput(context, "Out"));
      if (std::find(rows.begin(), rows.end(), out) != rows.end()) {
        return InvalidConfig("sum: Out \"" + context.OutputName("Out") +
                             "\" is one of the sparse gradients in X; give the sum a variable of its own");
      }
      return std::unique_ptr<OpKernel>(std::make_unique<SumRowsKernel>(std::move(rows), out));
    }
    MR_ASSIGN(Tensor * out, context.Output("Out"));
    if (rows.empty()) {
      return std::unique_ptr<OpKernel>(
          std::make_unique<SumTensorsKernel>(std::move(tensors), InputArguments(context.op().desc(), "X"), out));
    }
    return std::unique_ptr<OpKernel>(std::make_unique<SumMixedKernel>(std::move(tensors), std::move(rows), out));
  }
};

/// Every input has the gradient of the sum.
std::vector<OpDesc> SumGrad(const GradContext& context) {
  if (!context.Has("Out") || !context.Wants("X")) return {};
  const OpDesc all = context.GradOp({}, {}, {"Out"}, {"X"});
  std::vector<OpDesc> grads;
  for (const std::string& name : OutputArguments(all, "X@GRAD")) {
    if (name == kEmptyVar) continue;
    OpDesc assign;
    assign.set_type("assign");
    SetInput(assign, "X", InputArguments(all, "Out@GRAD"));
    SetOutput(assign, "Out", {name});
    grads.push_back(assign);
  }
  return grads;
}

}  // namespace

void RegisterSum(OpRegistry& registry) {
  registry.Add("sum")
      .Doc("Adds tensors, or sparse gradients, or both.")
      .Inputs("X", "float32, int64 or int32; of equal shape")
      .Output("Out", "their sum; sparse when all of them are")
      .Attr("use_mkldnn", false, "as Paddle writes it; changes nothing here")
      .InferShape(InferSum)
      .Grad(SumGrad)
      .Kernel<SumKernel>();
}

}  // namespace millrace
