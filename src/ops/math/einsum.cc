#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "kernels/gemm.h"
#include "kernels/racy.h"
#include "ops/forward_product.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

/// The size of each axis by its letter; -1 where it is not known, or the letter not used.
using Extents = std::array<int64_t, 128>;

bool HasAxis(std::string_view axes, char axis) { return axes.find(axis) != std::string_view::npos; }

/// The letters of `of` for which `keep` holds, in their order.
template <class Keep>
std::string AxesOf(const std::string& of, const Keep& keep) {
  std::string out;
  std::copy_if(of.begin(), of.end(), std::back_inserter(out), keep);
  return out;
}

int64_t SizeOfAxes(const std::string& axes, const Extents& extents) {
  int64_t size = 1;
  for (const char axis : axes) size *= extents[static_cast<size_t>(axis)];
  return size;
}

/// An equation for operands of known ranks: a letter for each axis, digits for those of an ellipsis.
struct EinsumRule {
  std::vector<std::string> operands;
  std::string out;

  /// kInvalidConfig when the equation does not fit the operands or is none that is supported.
  static Result<EinsumRule> Of(const std::string& equation, const std::vector<Dims>& operands);
  /// kInvalidConfig when one letter stands for two sizes.
  Status Measure(const std::vector<Dims>& dims, Extents* extents) const;
};

constexpr std::string_view kEllipsis = "...";

/// Letters of one side's term, its ellipsis as `wide` digits that end at 9.
Result<std::string> TermAxes(const std::string& term, int wide) {
  std::string axes;
  bool open = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term.compare(i, kEllipsis.size(), kEllipsis) == 0) {
      if (open) return InvalidConfig("\"" + term + "\" has \"...\" twice; one stands for all other axes");
      open = true;
      for (int k = 0; k < wide; ++k) axes += static_cast<char>('9' - wide + 1 + k);
      i += kEllipsis.size() - 1;
      continue;
    }
    const char letter = term[i];
    const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    if (!is_letter) return InvalidConfig("\"" + term + "\" has \"" + std::string(1, letter) + "\", which is no letter");
    if (HasAxis(axes, letter)) {
      return InvalidConfig("\"" + term + "\" has \"" + std::string(1, letter) +
                           "\" twice; the diagonal of an operand is not supported");
    }
    axes += letter;
  }
  return axes;
}

Result<EinsumRule> EinsumRule::Of(const std::string& equation, const std::vector<Dims>& operands) {
  std::string text;
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(text), [](char c) { return c != ' '; });
  const size_t arrow = text.find("->");
  std::vector<std::string> terms = {""};
  for (const char c : text.substr(0, arrow)) {
    if (c == ',') terms.emplace_back();
    if (c != ',') terms.back() += c;
  }
  if (terms.size() != operands.size() || terms.size() > 2) {
    return InvalidConfig("equation \"" + equation + "\" has " + std::to_string(terms.size()) + " terms for " +
                         std::to_string(operands.size()) +
                         " operands; supported are one or two, so join two at a time");
  }
  EinsumRule rule;
  int widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const bool open = terms[i].find(kEllipsis) != std::string::npos;
    const int letters = static_cast<int>(terms[i].size()) - (open ? static_cast<int>(kEllipsis.size()) : 0);
    const int wide = operands[i].rank() - letters;
    MR_ASSIGN(std::string axes, TermAxes(terms[i], wide));
    if (wide < 0 || (wide > 0 && !open)) {
      return InvalidConfig("equation \"" + equation + "\": \"" + terms[i] + "\" does not fit operand " +
                           std::to_string(i) + ", " + operands[i].ToString());
    }
    if (open) widest = std::max(widest, wide);
    rule.operands.push_back(std::move(axes));
  }
  if (arrow != std::string::npos) {
    MR_ASSIGN(rule.out, TermAxes(text.substr(arrow + 2), widest));
  } else {
    // Without a right side: the letters that occur once, sorted; digits come first.
    const std::string all = rule.operands[0] + (terms.size() == 2 ? rule.operands[1] : "");
    rule.out = AxesOf(all, [&](char axis) {
      return (axis <= '9' && all.find(axis) != std::string::npos) || std::count(all.begin(), all.end(), axis) == 1;
    });
    std::sort(rule.out.begin(), rule.out.end());
    rule.out.erase(std::unique(rule.out.begin(), rule.out.end()), rule.out.end());
  }
  for (const char axis : rule.out) {
    if (HasAxis(rule.operands[0], axis) || (terms.size() == 2 && HasAxis(rule.operands[1], axis))) continue;
    return InvalidConfig("equation \"" + equation + "\": \"" + std::string(1, axis) + "\" is of no operand");
  }
  return rule;
}

Status EinsumRule::Measure(const std::vector<Dims>& dims, Extents* extents) const {
  extents->fill(-1);
  for (size_t i = 0; i < dims.size(); ++i) {
    for (size_t k = 0; k < operands[i].size(); ++k) {
      int64_t& size = (*extents)[static_cast<size_t>(operands[i][k])];
      const int64_t found = dims[i][static_cast<int>(k)];
      if (!MayEqual(size, found)) {
        return InvalidConfig("axis \"" + std::string(1, operands[i][k]) + "\" has " + std::to_string(size) + " and " +
                             std::to_string(found) + " values");
      }
      if (size < 0) size = found;
    }
  }
  return Status::Ok();
}

Dims DimsOfAxes(const std::string& axes, const Extents& extents) {
  Dims dims;
  for (const char axis : axes) dims.push_back(extents[static_cast<size_t>(axis)]);
  if (dims.rank() == 0) dims.push_back(1);
  return dims;
}

/// to[axes of `to`] = the sum of from over the axes that `to` lacks, repeated along those that `from` lacks.
void Arrange(const float* from, const std::string& from_axes, float* to, const std::string& to_axes,
             const Extents& extents) {
  const int64_t count = SizeOfAxes(to_axes, extents);
  if (from_axes == to_axes) {
    std::copy_n(from, count, to);
    return;
  }
  std::fill_n(to, count, 0.0F);
  struct Axis {
    int64_t size, from, to, at;
  };
  std::array<Axis, 2 * Dims::kMaxRank> axes;
  size_t rank = 0;
  const auto stride = [&](const std::string& of, char axis) {
    const size_t place = of.find(axis);
    if (place == std::string::npos) return int64_t{0};
    int64_t step = 1;
    for (size_t k = place + 1; k < of.size(); ++k) step *= extents[static_cast<size_t>(of[k])];
    return step;
  };
  const auto add = [&](char axis) {
    axes[rank++] = {extents[static_cast<size_t>(axis)], stride(from_axes, axis), stride(to_axes, axis), 0};
  };
  for (const char axis : to_axes) add(axis);
  for (const char axis : from_axes) {
    if (!HasAxis(to_axes, axis)) add(axis);
  }
  for (size_t k = 0; k < rank; ++k) {
    if (axes[k].size == 0) return;
  }
  int64_t source = 0;
  int64_t target = 0;
  for (;;) {
    to[target] += from[source];
    size_t k = rank;
    for (; k > 0; --k) {
      Axis& axis = axes[k - 1];
      source += axis.from;
      target += axis.to;
      if (++axis.at < axis.size) break;
      source -= axis.from * axis.size;
      target -= axis.to * axis.size;
      axis.at = 0;
    }
    if (k == 0) return;
  }
}

/// Products of two tensors by their axes: both are arranged so that a matrix product joins them.
class Contraction {
 public:
  explicit Contraction(const KernelContext& context) : product_(ForwardProduct(context, "", {})) {}

  Status Run(const float* a, const std::string& a_axes, const float* b, const std::string& b_axes, float* out,
             const std::string& out_axes, const Extents& extents) {
    const auto in_a = [&](char axis) { return HasAxis(a_axes, axis); };
    const auto in_b = [&](char axis) { return HasAxis(b_axes, axis); };
    const auto in_out = [&](char axis) { return HasAxis(out_axes, axis); };
    const std::string batch = AxesOf(a_axes, [&](char c) { return in_b(c) && in_out(c); });
    const std::string joined = AxesOf(a_axes, [&](char c) { return in_b(c) && !in_out(c); });
    const std::string rows = AxesOf(a_axes, [&](char c) { return !in_b(c) && in_out(c); });
    const std::string columns = AxesOf(b_axes, [&](char c) { return !in_a(c) && in_out(c); });
    const int64_t m = SizeOfAxes(rows, extents);
    const int64_t k = SizeOfAxes(joined, extents);
    const int64_t n = SizeOfAxes(columns, extents);
    const int64_t batches = SizeOfAxes(batch, extents);
    const float* left = Arranged(a, a_axes, batch + rows + joined, extents, &left_);
    const float* right = Arranged(b, b_axes, batch + joined + columns, extents, &right_);
    const std::string made = batch + rows + columns;
    float* parts = made == out_axes ? out : parts_.Resize<float>({batches * m * n});
    for (int64_t i = 0; i < batches; ++i) {
      MR_TRY(product_.Run(m, n, k, left + i * m * k, right + i * k * n, nullptr, parts + i * m * n));
    }
    if (parts != out) Arrange(parts, made, out, out_axes, extents);
    return Status::Ok();
  }

 private:
  static const float* Arranged(const float* from, const std::string& axes, const std::string& wanted,
                               const Extents& extents, Tensor* room) {
    if (axes == wanted) return from;
    float* to = room->Resize<float>({SizeOfAxes(wanted, extents)});
    Arrange(from, axes, to, wanted, extents);
    return to;
  }

  Gemm product_;
  Tensor left_;
  Tensor right_;
  Tensor parts_;
};

std::vector<Dims> DimsOf(const std::vector<VarMeta>& metas) {
  std::vector<Dims> dims;
  for (const VarMeta& meta : metas) dims.push_back(meta.dims);
  return dims;
}

/// What the operator's equation means for these operands; kInvalidConfig when it does not fit them.
Result<EinsumRule> FitEquation(const InferShapeContext& context, const std::vector<VarMeta>& operands,
                               Extents* extents) {
  Result<EinsumRule> rule = EinsumRule::Of(context.op().String("equation"), DimsOf(operands));
  if (!rule.ok()) return context.Error(rule.status().message());
  if (const Status fits = rule->Measure(DimsOf(operands), extents); !fits.ok()) return context.Error(fits.message());
  return rule;
}

/// A copy of an operand, which may be a parameter that other workers are writing.
void KeepOperand(const Tensor& operand, Tensor* to) {
  float* values = to->Resize<float>(operand.dims());
  racy::CopyRow(operand.data<float>(), values, static_cast<size_t>(operand.numel()));
}

Status InferEinsum(InferShapeContext& context) {
  MR_ASSIGN(const std::vector<VarMeta> metas, context.Inputs("Operands"));
  for (const VarMeta& meta : metas) MR_TRY(ExpectDType(context, "Operands", meta, DType::kFloat32));
  Extents extents;
  MR_ASSIGN(const EinsumRule rule, FitEquation(context, metas, &extents));
  VarMeta out = metas[0];
  out.lod_level = 0;
  out.persistable = false;
  for (size_t i = 0; i < metas.size(); ++i) {
    out.dims = metas[i].dims;
    context.SetOutput("InnerCache", out, static_cast<int>(i));
    out.dims = Dims{0};
    context.SetOutput("XShape", out, static_cast<int>(i));
  }
  out.dims = DimsOfAxes(rule.out, extents);
  context.SetOutput("Out", out);
  return Status::Ok();
}

/// Keeps the operands in InnerCache, as far as it is bound, for the gradient.
class EinsumKernel : public BoundKernel<EinsumKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(operands_, context.Inputs("Operands"));
    MR_ASSIGN(kept_, context.Outputs("InnerCache"));
    MR_ASSIGN(shapes_, context.Outputs("XShape"));
    MR_ASSIGN(out_, context.Output("Out"));
    equation_ = context.op().String("equation");
    own_.resize(operands_.size());
    kept_.resize(operands_.size());
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (kept_[i] == nullptr) kept_[i] = &own_[i];
    }
    product_ = std::make_unique<Contraction>(context);
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    dims_.clear();
    for (const Tensor* operand : operands_) dims_.push_back(operand->dims());
    if (rule_.operands.empty()) {
      MR_ASSIGN(rule_, EinsumRule::Of(equation_, dims_));
    }
    MR_TRY(rule_.Measure(dims_, &extents_));
    for (size_t i = 0; i < operands_.size(); ++i) KeepOperand(*operands_[i], kept_[i]);
    for (Tensor* shape : shapes_) {
      if (shape != nullptr) shape->Resize<float>({0});
    }
    float* out = out_->Resize<float>(DimsOfAxes(rule_.out, extents_));
    const float* first = kept_[0]->data<float>();
    if (operands_.size() == 2) {
      return product_->Run(first, rule_.operands[0], kept_[1]->data<float>(), rule_.operands[1], out, rule_.out,
                           extents_);
    }
    Arrange(first, rule_.operands[0], out, rule_.out, extents_);
    return Status::Ok();
  }

 private:
  std::vector<const Tensor*> operands_;
  std::vector<Tensor*> kept_;
  std::vector<Tensor*> shapes_;
  std::vector<Tensor> own_;
  Tensor* out_ = nullptr;
  std::string equation_;
  EinsumRule rule_;
  std::vector<Dims> dims_;
  Extents extents_;
  std::unique_ptr<Contraction> product_;
};

class EinsumGradKernel : public BoundKernel<EinsumGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(operands_, context.Inputs("Operands"));
    if (context.InputName("Operands") == kEmptyVar) operands_.clear();
    own_.resize(operands_.size());
    if (operands_.empty()) {
      MR_ASSIGN(kept_, context.Inputs("InnerCache"));
    }
    for (const Tensor& own : own_) kept_.push_back(&own);
    MR_ASSIGN(out_grad_, GradInput::Bind(context, "Out@GRAD"));
    MR_ASSIGN(grads_, context.Outputs("Operands@GRAD"));
    equation_ = context.op().String("equation");
    grads_.resize(kept_.size());
    product_ = std::make_unique<Contraction>(context);
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    for (size_t i = 0; i < operands_.size(); ++i) KeepOperand(*operands_[i], &own_[i]);
    dims_.clear();
    for (const Tensor* kept : kept_) dims_.push_back(kept->dims());
    if (rule_.operands.empty()) {
      MR_ASSIGN(rule_, EinsumRule::Of(equation_, dims_));
    }
    MR_TRY(rule_.Measure(dims_, &extents_));
    MR_ASSIGN(const float* grad, out_grad_.Read(SizeOfAxes(rule_.out, extents_)));
    for (size_t i = 0; i < kept_.size(); ++i) {
      if (grads_[i] == nullptr) continue;
      float* to = grads_[i]->Resize<float>(dims_[i]);
      if (kept_.size() == 1) {
        Arrange(grad, rule_.out, to, rule_.operands[0], extents_);
      } else {
        MR_TRY(product_->Run(grad, rule_.out, kept_[1 - i]->data<float>(), rule_.operands[1 - i], to, rule_.operands[i],
                             extents_));
      }
    }
    return Status::Ok();
  }

 private:
  std::vector<const Tensor*> operands_;
  std::vector<Tensor> own_;
  std::vector<const Tensor*> kept_;
  GradInput out_grad_;
  std::vector<Tensor*> grads_;
  std::string equation_;
  EinsumRule rule_;
  std::vector<Dims> dims_;
  Extents extents_;
  std::unique_ptr<Contraction> product_;
};

Status InferEinsumGrad(InferShapeContext& context) {
  const char* const operands = context.HasInput("Operands") ? "Operands" : "InnerCache";
  MR_ASSIGN(const std::vector<VarMeta> metas, context.Inputs(operands));
  Extents extents;
  MR_TRY(FitEquation(context, metas, &extents).status());
  for (size_t i = 0; i < metas.size(); ++i) {
    VarMeta grad = metas[i];
    grad.lod_level = 0;
    context.SetOutput("Operands@GRAD", grad, static_cast<int>(i));
  }
  return Status::Ok();
}

/// Of the operands as InnerCache kept them; of themselves where it does not hold each of them, as in a model's layer.
std::vector<OpDesc> EinsumGrad(const GradContext& context) {
  if (!context.Has("Out") || !context.Wants("Operands")) return {};
  const OpDesc& op = context.op().desc();
  if (OutputArguments(op, "InnerCache").size() == InputArguments(op, "Operands").size()) {
    return {context.GradOp({}, {"InnerCache"}, {"Out"}, {"Operands"})};
  }
  return {context.GradOp({"Operands"}, {}, {"Out"}, {"Operands"})};
}

}  // namespace

void RegisterEinsum(OpRegistry& registry) {
  const std::string equation =
      "a letter for each axis of each operand, and after -> those of Out; \"...\" for any others";
  registry.Add("einsum")
      .Apart()
      .Doc("The sum of products of the operands over the axes that Out does not have.")
      .Inputs("Operands", "one or two, of any shape")
      .Output("Out", "the axes that the equation names; [1] for none")
      .OptionalOutputs("InnerCache", "the operands, for the gradient")
      .OptionalOutputs("XShape", "nothing")
      .Attr("equation", std::string(), equation)
      .InferShape(InferEinsum)
      .Grad(EinsumGrad)
      .Kernel<EinsumKernel>();
  registry.Add("einsum_grad")
      .Doc("Gradient of einsum.")
      .OptionalInputs("Operands", "of the forward operator; read where they are bound, else InnerCache is")
      .OptionalInputs("InnerCache", "of the forward operator")
      .UnreadInputs("x_shape", "of the forward operator")
      .Input("Out@GRAD", "gradient of Out")
      .Outputs("Operands@GRAD", "gradients of Operands")
      .Attr("equation", std::string(), equation)
      .InferShape(InferEinsumGrad)
      .Gradient()
      .Kernel<EinsumGradKernel>();
}

}  // namespace millrace
