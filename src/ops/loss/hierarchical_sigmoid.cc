#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/cleared_like.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

// A class is a leaf of a binary tree: its cost is that of every turn on the way down. Without PathTable the tree is the
// complete one of num_classes leaves, whose ways stand in the binary digits of class + num_classes.

/// Steps from the root to the deepest leaf.
int64_t LongestPath(int64_t classes) { return std::bit_width(static_cast<uint64_t>(classes - 1)); }

Status InferHierarchicalSigmoid(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("X"));
  MR_ASSIGN(const VarMeta w, context.Input("W"));
  MR_ASSIGN(const VarMeta label, context.Input("Label"));
  MR_TRY(ExpectFloats(context, {"X", "W"}));
  MR_TRY(ExpectDType(context, "Label", label, DType::kInt64));
  const int64_t classes = context.op().Int("num_classes");
  const bool told = context.HasInput("PathTable");
  if (classes < 2 && !told) return context.Error("num_classes is " + std::to_string(classes) + "; it is 2 or more");
  if (told != context.HasInput("PathCode")) return context.Error("PathTable and PathCode go together");
  if (x.dims.rank() != 2 || w.dims.rank() != 2 || !MayEqual(x.dims[1], w.dims[1])) {
    return context.Error("X " + x.dims.ToString() + " and W " + w.dims.ToString() + " are matrices of equal width");
  }
  if (!told && w.dims[0] >= 0 && w.dims[0] < classes - 1) {
    return context.Error("W " + w.dims.ToString() + " has no row for each of " + std::to_string(classes - 1) +
                         " nodes");
  }
  if (context.HasInput("Bias")) {
    MR_ASSIGN(const VarMeta bias, context.Input("Bias"));
    MR_TRY(ExpectDType(context, "Bias", bias, DType::kFloat32));
    if (!MayEqual(KnownProduct(bias.dims, 0, bias.dims.rank()), w.dims[0])) {
      return context.Error("Bias " + bias.dims.ToString() + " has no value for each row of W " + w.dims.ToString());
    }
  }
  int64_t longest = told ? -1 : LongestPath(classes);
  if (told) {
    for (const char* name : {"PathTable", "PathCode"}) {
      MR_ASSIGN(const VarMeta path, context.Input(name));
      MR_TRY(ExpectDType(context, name, path, DType::kInt64));
      if (path.dims.rank() != 2) return context.Error(std::string(name) + " " + path.dims.ToString() + " is no matrix");
      longest = path.dims[1];
    }
  }
  x.dims.set(1, longest);
  context.SetOutput("PreOut", x);
  x.dims.set(1, 1);
  context.SetOutput("Out", x);
  return Status::Ok();
}

/// Sizes that the compiler may not have known.
Status CheckWeights(const FloatInput& x, const FloatInput& w, const FloatInput& bias) {
  const bool fits = x.dims().rank() == 2 && w.dims().rank() == 2 && w.dims()[1] == x.dims()[1] &&
                    (!bias.bound() || bias.tensor().numel() == w.dims()[0]);
  if (fits) return Status::Ok();
  return BadData("X " + x.dims().ToString() + " and W " + w.dims().ToString() +
                 " must be matrices of equal width, and Bias have a value for each row of W");
}

/// The ways to the classes of a batch.
class Paths {
 public:
  Status Bind(const KernelContext& context) {
    MR_ASSIGN(label_, context.Input("Label"));
    MR_ASSIGN(table_, context.OptionalInput("PathTable"));
    MR_ASSIGN(code_, context.OptionalInput("PathCode"));
    name_ = context.InputName("Label");
    classes_ = context.op().Int("num_classes");
    return Status::Ok();
  }
  int64_t longest() const { return table_ == nullptr ? LongestPath(classes_) : table_->dims()[1]; }

  /// Checks the labels, or the ways, of `rows` rows over `nodes` nodes.
  Status Check(const RunContext& context, int64_t rows, int64_t nodes) const {
    if (table_ == nullptr) {
      if (nodes < classes_ - 1) {
        return BadData("W has " + std::to_string(nodes) + " rows for " + std::to_string(classes_ - 1) + " nodes");
      }
      if (label_->numel() != rows) {
        return BadData("label \"" + name_ + "\" " + label_->dims().ToString() + " for " + std::to_string(rows) +
                       " rows");
      }
      const int64_t* labels = label_->data<int64_t>();
      for (int64_t i = 0; i < rows; ++i) {
        if (labels[i] >= 0 && labels[i] < classes_) continue;
        return BadData("label \"" + name_ + "\" of " + context.DescribeRow(static_cast<int>(i)) +
                       " is not a class from 0 to " + std::to_string(classes_ - 1) + ": " + std::to_string(labels[i]));
      }
      return Status::Ok();
    }
    if (!(table_->dims() == code_->dims()) || table_->dims()[0] != rows) {
      return BadData("PathTable " + table_->dims().ToString() + " and PathCode " + code_->dims().ToString() +
                     " must have a row for each of " + std::to_string(rows));
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t step = 0; step < Length(i); ++step) {
        if (Node(i, step) < nodes) continue;
        return BadData("PathTable of " + context.DescribeRow(static_cast<int>(i)) + " names node " +
                       std::to_string(Node(i, step)) + "; W has " + std::to_string(nodes));
      }
    }
    return Status::Ok();
  }
  int64_t Length(int64_t row) const {
    if (table_ == nullptr) return std::bit_width(Code(row)) - 1;
    const int64_t* nodes = table_->data<int64_t>() + row * longest();
    return std::find_if(nodes, nodes + longest(), [](int64_t node) { return node < 0; }) - nodes;
  }
  int64_t Node(int64_t row, int64_t step) const {
    if (table_ != nullptr) return table_->data<int64_t>()[row * longest() + step];
    return static_cast<int64_t>(Code(row) >> (step + 1)) - 1;
  }
  bool TurnsRight(int64_t row, int64_t step) const {
    if (code_ != nullptr) return code_->data<int64_t>()[row * longest() + step] != 0;
    return (Code(row) >> step & 1) != 0;
  }

 private:
  uint64_t Code(int64_t row) const { return static_cast<uint64_t>(label_->data<int64_t>()[row] + classes_); }

  const Tensor* label_ = nullptr;
  const Tensor* table_ = nullptr;
  const Tensor* code_ = nullptr;
  std::string name_;
  int64_t classes_ = 2;
};

class HierarchicalSigmoidKernel : public BoundKernel<HierarchicalSigmoidKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(w_, FloatInput::Bind(context, "W"));
    MR_ASSIGN(bias_, FloatInput::BindOptional(context, "Bias"));
    MR_ASSIGN(pre_out_, context.Output("PreOut"));
    MR_ASSIGN(out_, context.Output("Out"));
    return paths_.Bind(context);
  }
  Status Run(const RunContext& context) override {
    const int64_t rows = x_.dims()[0];
    const int64_t width = x_.dims()[1];
    MR_TRY(CheckWeights(x_, w_, bias_));
    MR_TRY(paths_.Check(context, rows, w_.dims()[0]));
    const float* x = x_.Read();
    const float* w = w_.Read();
    const float* bias = bias_.bound() ? bias_.Read() : nullptr;
    const int64_t longest = paths_.longest();
    float* pre = pre_out_->Resize<float>({rows, longest});
    float* out = out_->Resize<float>({rows, 1});
    for (int64_t i = 0; i < rows; ++i, x += width) {
      const int64_t length = paths_.Length(i);
      float cost = 0;
      for (int64_t step = 0; step < longest; ++step) {
        float value = 0;  // steps that a shorter way does not have cost log 2, as in Paddle
        if (step < length) {
          const int64_t node = paths_.Node(i, step);
          value = bias == nullptr ? 0 : bias[node];
          for (int64_t k = 0; k < width; ++k) value += w[node * width + k] * x[k];
          constexpr float kFarthest = 40;
          value = value > kFarthest ? kFarthest : value < -kFarthest ? -kFarthest : value;  // NaN stays
          if (paths_.TurnsRight(i, step)) cost -= value;
        }
        *pre = std::log1p(std::exp(value));
        cost += *pre++;
      }
      out[i] = cost;
    }
    return Status::Ok();
  }

 private:
  FloatInput x_;
  FloatInput w_;
  FloatInput bias_;
  Paths paths_;
  Tensor* pre_out_ = nullptr;
  Tensor* out_ = nullptr;
};

class HierarchicalSigmoidGradKernel : public BoundKernel<HierarchicalSigmoidGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "X"));
    MR_ASSIGN(w_, FloatInput::Bind(context, "W"));
    MR_ASSIGN(bias_, FloatInput::BindOptional(context, "Bias"));
    MR_ASSIGN(pre_out_, GradInput::Bind(context, "PreOut"));
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("X@GRAD"));
    MR_ASSIGN(w_grad_, context.OptionalOutput("W@GRAD"));
    MR_ASSIGN(bias_grad_, context.OptionalOutput("Bias@GRAD"));
    return paths_.Bind(context);
  }
  Status Run(const RunContext& context) override {
    const int64_t rows = x_.dims()[0];
    const int64_t width = x_.dims()[1];
    const int64_t longest = paths_.longest();
    MR_TRY(CheckWeights(x_, w_, bias_));
    MR_TRY(paths_.Check(context, rows, w_.dims()[0]));
    const float* x = x_.Read();
    const float* w = w_.Read();
    MR_ASSIGN(const float* pre, pre_out_.Read(rows * longest));
    MR_ASSIGN(const float* grad, out_grad_.Read(rows));
    float* dx = ClearedLike(x_.tensor(), x_grad_);
    float* dw = ClearedLike(w_.tensor(), w_grad_);
    float* db = bias_.bound() ? ClearedLike(bias_.tensor(), bias_grad_) : nullptr;
    for (int64_t i = 0; i < rows; ++i, pre += longest) {
      const int64_t length = paths_.Length(i);
      for (int64_t step = 0; step < length; ++step) {
        const int64_t node = paths_.Node(i, step);
        const float slope = 1 - std::exp(-pre[step]) - (paths_.TurnsRight(i, step) ? 1.0F : 0.0F);
        const float g = slope * grad[i];
        for (int64_t k = 0; dx != nullptr && k < width; ++k) dx[i * width + k] += g * w[node * width + k];
        for (int64_t k = 0; dw != nullptr && k < width; ++k) dw[node * width + k] += g * x[i * width + k];
        if (db != nullptr) db[node] += g;
      }
    }
    return Status::Ok();
  }

 private:
  FloatInput x_;
  FloatInput w_;
  FloatInput bias_;
  GradInput pre_out_;
  GradInput out_grad_;
  Paths paths_;
  Tensor* x_grad_ = nullptr;
  Tensor* w_grad_ = nullptr;
  Tensor* bias_grad_ = nullptr;
};

}  // namespace

void RegisterHierarchicalSigmoid(OpRegistry& registry) {
  const char* ignored = "of a parameter server; changes nothing here";
  registry.Add("hierarchical_sigmoid")
      .Doc("The cost of a class as a leaf of a binary tree: that of every turn on the way to it.")
      .Input("X", "[rows, width]")
      .Input("W", "[nodes, width]")
      .Input("Label", "int64 [rows, 1], the class; not read with PathTable")
      .OptionalInput("PathTable",
                     "int64 [rows, longest], the nodes on the way, then -1; without it the tree is complete")
      .OptionalInput("PathCode", "int64 [rows, longest], whether each step turns right")
      .OptionalInput("Bias", "[nodes, 1]")
      .Output("Out", "[rows, 1]")
      .Output("PreOut", "[rows, longest], log(1 + exp) of each step")
      .UnwrittenOutput("W_Out", "as Paddle writes it")
      .Apart()
      .Attr("num_classes", int64_t{2}, "leaves of the complete tree")
      .Fixed("is_sparse", false, "sparse gradients of W and Bias")
      .Fixed("remote_prefetch", false, "rows of W from a parameter server")
      .Attr("trainer_id", int64_t{0}, ignored)
      .Attr("height_sections", std::vector<int64_t>{}, ignored)
      .Attr("epmap", std::vector<std::string>{}, ignored)
      .Attr("table_names", std::vector<std::string>{}, ignored)
      .InferShape(InferHierarchicalSigmoid)
      .Grad({.inputs = {"X", "W", "Label", "PathTable", "PathCode", "Bias"},
             .outputs = {"PreOut"},
             .to = {"X", "W", "Bias"}})
      .Kernel<HierarchicalSigmoidKernel>();
  registry.AddGradient("hierarchical_sigmoid").Apart().Kernel<HierarchicalSigmoidGradKernel>();
}

}  // namespace millrace
