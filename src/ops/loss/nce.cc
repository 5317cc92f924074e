#include <algorithm>
#include <cmath>

#include "core/hash.h"
#include "ops/cleared_like.h"
#include "ops/float_input.h"
#include "ops/grad_input.h"
#include "ops/kernel.h"

namespace millrace {
namespace {

// Noise contrastive estimation: the labels of a row against classes that are drawn as noise.

enum class Noise : int64_t { kUniform = 0, kLogUniform = 1, kCustom = 2 };

Status InferNce(InferShapeContext& context) {
  MR_ASSIGN(VarMeta x, context.Input("Input"));
  MR_ASSIGN(const VarMeta w, context.Input("Weight"));
  MR_ASSIGN(const VarMeta label, context.Input("Label"));
  MR_TRY(ExpectFloats(context, {"Input", "Weight"}));
  MR_TRY(ExpectDType(context, "Label", label, DType::kInt64));
  const int64_t classes = context.op().Int("num_total_classes");
  const int64_t drawn = context.op().Int("num_neg_samples");
  const int64_t sampler = context.op().Int("sampler");
  constexpr int64_t kMost = int64_t{1} << 30;
  if (classes < 1 || drawn < 1 || drawn > kMost) {
    return context.Error("num_total_classes is " + std::to_string(classes) + ", num_neg_samples " +
                         std::to_string(drawn) + "; both are 1 or more, and no more than 2^30 samples are drawn");
  }
  if (sampler < 0 || sampler > 2) return context.Error("sampler is " + std::to_string(sampler) + "; it is 0, 1 or 2");
  if (sampler == 1 && classes < 2) return context.Error("the log-uniform sampler draws from two classes or more");
  for (const char* name : {"CustomDistProbs", "CustomDistAlias", "CustomDistAliasProbs"}) {
    if (sampler != 2) continue;
    MR_ASSIGN(const VarMeta table, context.Input(name));
    const bool holds_classes = std::string_view(name) == "CustomDistAlias";
    if (!holds_classes || table.dtype != DType::kInt32) {
      MR_TRY(ExpectDType(context, name, table, holds_classes ? DType::kInt64 : DType::kFloat32));
    }
    if (!MayEqual(KnownProduct(table.dims, 0, table.dims.rank()), classes)) {
      return context.Error(std::string(name) + " " + table.dims.ToString() + " has no value for each of " +
                           std::to_string(classes) + " classes");
    }
  }
  if (x.dims.rank() != 2 || w.dims.rank() != 2 || !MayEqual(x.dims[1], w.dims[1]) || !MayEqual(w.dims[0], classes)) {
    return context.Error("Input " + x.dims.ToString() + " and Weight " + w.dims.ToString() +
                         " are matrices of equal width; Weight has a row for each of " + std::to_string(classes) +
                         " classes");
  }
  if (context.HasInput("Bias")) {
    MR_ASSIGN(const VarMeta bias, context.Input("Bias"));
    MR_TRY(ExpectDType(context, "Bias", bias, DType::kFloat32));
    if (!MayEqual(KnownProduct(bias.dims, 0, bias.dims.rank()), classes)) {
      return context.Error("Bias " + bias.dims.ToString() + " has no value for each of " + std::to_string(classes) +
                           " classes");
    }
  }
  const int64_t labels = label.dims.rank() == 2 ? label.dims[1] : 1;
  x.lod_level = 0;
  x.dims.set(1, labels < 0 ? -1 : labels + drawn);
  context.SetOutput("SampleLogits", x);
  VarMeta chosen = x;
  chosen.dtype = DType::kInt64;
  context.SetOutput("SampleLabels", chosen);
  x.dims.set(1, 1);
  context.SetOutput("Cost", x);
  return Status::Ok();
}

/// How probable a class is as noise, and one that is drawn.
class NoiseDraw {
 public:
  Status Bind(const KernelContext& context) {
    noise_ = static_cast<Noise>(context.op().Int("sampler"));
    classes_ = context.op().Int("num_total_classes");
    if (noise_ != Noise::kCustom) return Status::Ok();
    MR_ASSIGN(probs_, context.Input("CustomDistProbs"));
    MR_ASSIGN(alias_, context.Input("CustomDistAlias"));
    MR_ASSIGN(alias_probs_, context.Input("CustomDistAliasProbs"));
    return Status::Ok();
  }
  /// Sizes that the compiler may not have known.
  Status Check(const FloatInput& x, const FloatInput& w, const FloatInput& bias) const {
    const bool fits = x.dims().rank() == 2 && w.dims().rank() == 2 && w.dims()[0] == classes_ &&
                      w.dims()[1] == x.dims()[1] && (!bias.bound() || bias.tensor().numel() == classes_);
    if (!fits) {
      return BadData("Input " + x.dims().ToString() + " and Weight " + w.dims().ToString() +
                     " must have equal width, and Weight and Bias a row for each of " + std::to_string(classes_) +
                     " classes");
    }
    for (const Tensor* table : {probs_, alias_, alias_probs_}) {
      if (table == nullptr || table->numel() == classes_) continue;
      return BadData("CustomDist tables must have a value for each of " + std::to_string(classes_) + " classes, not " +
                     std::to_string(table->numel()));
    }
    return Status::Ok();
  }
  float Probability(int64_t label) const {
    if (noise_ == Noise::kCustom) return probs_->data<float>()[label];
    if (noise_ == Noise::kUniform) return 1 / static_cast<float>(classes_);
    const auto value = static_cast<float>(label);
    return std::log((value + 2) / (value + 1)) / std::log(static_cast<float>(classes_));
  }
  int64_t At(uint64_t seed, uint64_t i) const {
    const uint64_t number = HashedNumber(seed, i);
    const auto any = static_cast<int64_t>((number >> 32) * static_cast<uint64_t>(classes_) >> 32);
    if (noise_ == Noise::kUniform) return any;
    const float share = static_cast<float>(number & 0xffffff) * 0x1p-24F;
    if (noise_ == Noise::kCustom) {
      const int64_t other =
          alias_->dtype() == DType::kInt32 ? alias_->data<int32_t>()[any] : alias_->data<int64_t>()[any];
      return other < 0 || share < alias_probs_->data<float>()[any] ? any : std::min(other, classes_ - 1);
    }
    const auto drawn = static_cast<int64_t>(std::exp(share * std::log(static_cast<float>(classes_)))) - 1;
    return std::clamp<int64_t>(drawn, 0, classes_ - 1);
  }

 private:
  Noise noise_ = Noise::kUniform;
  int64_t classes_ = 1;
  const Tensor* probs_ = nullptr;
  const Tensor* alias_ = nullptr;
  const Tensor* alias_probs_ = nullptr;
};

/// The labels of a row, then the classes that are drawn for it, and how sure the model is of each.
class NceKernel : public BoundKernel<NceKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "Input"));
    MR_ASSIGN(w_, FloatInput::Bind(context, "Weight"));
    MR_ASSIGN(bias_, FloatInput::BindOptional(context, "Bias"));
    MR_ASSIGN(label_, context.Input("Label"));
    MR_ASSIGN(row_weight_, context.OptionalInput("SampleWeight"));
    MR_ASSIGN(cost_, context.Output("Cost"));
    MR_ASSIGN(logits_, context.Output("SampleLogits"));
    MR_ASSIGN(chosen_, context.Output("SampleLabels"));
    MR_TRY(draw_.Bind(context));
    drawn_ = context.op().Int("num_neg_samples");
    name_ = context.InputName("Label");
    const auto seed = static_cast<uint64_t>(context.op().Int("seed"));
    const uint64_t salted = Mix64(seed != 0 ? seed : context.options().seed, HashName(context.OutputName("Cost")));
    seed_ = Mix64(salted, static_cast<uint64_t>(context.options().worker));
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    MR_TRY(draw_.Check(x_, w_, bias_));
    const int64_t rows = x_.dims()[0];
    const int64_t width = x_.dims()[1];
    const int64_t classes = w_.dims()[0];
    const int64_t labels = rows == 0 ? 0 : label_->numel() / rows;
    if (labels * rows != label_->numel() || (rows > 0 && labels == 0)) {
      return BadData("label \"" + name_ + "\" " + label_->dims().ToString() + " for " + std::to_string(rows) + " rows");
    }
    if (row_weight_ != nullptr && row_weight_->numel() != rows) {
      return BadData("SampleWeight " + row_weight_->dims().ToString() + " for " + std::to_string(rows) + " rows");
    }
    const int64_t each = labels + drawn_;
    MR_TRY(Choose(context, rows, labels, classes));
    const float* x = x_.Read();
    const float* w = w_.Read();
    const float* bias = bias_.bound() ? bias_.Read() : nullptr;
    const int64_t* chosen = chosen_->data<int64_t>();
    float* logits = logits_->Resize<float>({rows, each});
    float* cost = cost_->Resize<float>({rows, 1});
    for (int64_t i = 0; i < rows; ++i) {
      float sum = 0;
      for (int64_t j = 0; j < each; ++j) {
        const int64_t label = chosen[i * each + j];
        float value = bias == nullptr ? 0 : bias[label];
        for (int64_t k = 0; k < width; ++k) value += x[i * width + k] * w[label * width + k];
        const float sure = 1 / (1 + std::exp(-value));
        logits[i * each + j] = sure;
        const float noise = draw_.Probability(label) * static_cast<float>(drawn_);
        sum -= std::log((j < labels ? sure : noise) / (sure + noise));
      }
      cost[i] = row_weight_ == nullptr ? sum : sum * row_weight_->data<float>()[i];
    }
    return Status::Ok();
  }

 private:
  Status Choose(const RunContext& context, int64_t rows, int64_t labels, int64_t classes) {
    const int64_t* told = label_->data<int64_t>();
    int64_t* chosen = chosen_->Resize<int64_t>({rows, labels + drawn_});
    const uint64_t seed = Mix64(seed_, static_cast<uint64_t>(context.step));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < labels; ++j) {
        const int64_t label = *told++;
        if (label < 0 || label >= classes) {
          return BadData("label \"" + name_ + "\" of " + context.DescribeRow(static_cast<int>(i)) +
                         " is not a class from 0 to " + std::to_string(classes - 1) + ": " + std::to_string(label));
        }
        *chosen++ = label;
      }
      for (int64_t j = 0; j < drawn_; ++j) *chosen++ = draw_.At(seed, static_cast<uint64_t>(i * drawn_ + j));
    }
    return Status::Ok();
  }

  FloatInput x_;
  FloatInput w_;
  FloatInput bias_;
  const Tensor* label_ = nullptr;
  const Tensor* row_weight_ = nullptr;
  Tensor* cost_ = nullptr;
  Tensor* logits_ = nullptr;
  Tensor* chosen_ = nullptr;
  NoiseDraw draw_;
  int64_t drawn_ = 1;
  uint64_t seed_ = 0;
  std::string name_;
};

/// Of the classes that the forward operator chose.
class NceGradKernel : public BoundKernel<NceGradKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(x_, FloatInput::Bind(context, "Input"));
    MR_ASSIGN(w_, FloatInput::Bind(context, "Weight"));
    MR_ASSIGN(bias_, FloatInput::BindOptional(context, "Bias"));
    MR_ASSIGN(row_weight_, context.OptionalInput("SampleWeight"));
    MR_ASSIGN(logits_, GradInput::Bind(context, "SampleLogits"));
    MR_ASSIGN(chosen_, GradInput::Bind(context, "SampleLabels"));
    MR_ASSIGN(cost_grad_, GradInput::Bind(context, "Cost@GRAD"));
    MR_ASSIGN(x_grad_, context.OptionalOutput("Input@GRAD"));
    MR_ASSIGN(w_grad_, context.OptionalOutput("Weight@GRAD"));
    MR_ASSIGN(bias_grad_, context.OptionalOutput("Bias@GRAD"));
    MR_TRY(draw_.Bind(context));
    drawn_ = context.op().Int("num_neg_samples");
    return Status::Ok();
  }
  Status Run(const RunContext&) override {
    MR_TRY(draw_.Check(x_, w_, bias_));
    const int64_t rows = x_.dims()[0];
    const int64_t width = x_.dims()[1];
    const int64_t classes = w_.dims()[0];
    const int64_t each = rows == 0 ? drawn_ : logits_.tensor().numel() / rows;
    const float* x = x_.Read();
    const float* w = w_.Read();
    MR_ASSIGN(const float* logits, logits_.Read(rows * each));
    MR_ASSIGN(const int64_t* chosen, chosen_.Read<int64_t>(rows * each));
    MR_ASSIGN(const float* cost_grad, cost_grad_.Read(rows));
    if (row_weight_ != nullptr && row_weight_->numel() != rows) {
      return BadData("SampleWeight " + row_weight_->dims().ToString() + " for " + std::to_string(rows) + " rows");
    }
    float* dx = ClearedLike(x_.tensor(), x_grad_);
    float* dw = ClearedLike(w_.tensor(), w_grad_);
    float* db = bias_.bound() ? ClearedLike(bias_.tensor(), bias_grad_) : nullptr;
    for (int64_t i = 0; i < rows; ++i) {
      const float scale = cost_grad[i] * (row_weight_ == nullptr ? 1 : row_weight_->data<float>()[i]);
      for (int64_t j = 0; j < each; ++j) {
        const int64_t label = chosen[i * each + j];
        if (label < 0 || label >= classes) {
          return InvalidConfig("SampleLabels holds " + std::to_string(label) + ", outside " + std::to_string(classes) +
                               " classes");
        }
        const float sure = logits[i * each + j];
        const float noise = draw_.Probability(label) * static_cast<float>(drawn_);
        const float slope =
            j < each - drawn_ ? noise / (sure + noise) * (sure - 1) : sure * (1 - sure) / (sure + noise);
        const float g = slope * scale;
        if (db != nullptr) db[label] += g;
        for (int64_t k = 0; dw != nullptr && k < width; ++k) dw[label * width + k] += g * x[i * width + k];
        for (int64_t k = 0; dx != nullptr && k < width; ++k) dx[i * width + k] += g * w[label * width + k];
      }
    }
    return Status::Ok();
  }

 private:
  FloatInput x_;
  FloatInput w_;
  FloatInput bias_;
  const Tensor* row_weight_ = nullptr;
  GradInput logits_;
  GradInput chosen_;
  GradInput cost_grad_;
  Tensor* x_grad_ = nullptr;
  Tensor* w_grad_ = nullptr;
  Tensor* bias_grad_ = nullptr;
  NoiseDraw draw_;
  int64_t drawn_ = 1;
};

}  // namespace

void RegisterNce(OpRegistry& registry) {
  const char* ignored = "of a parameter server; changes nothing here";
  registry.Add("nce")
      .Apart()
      .Doc(
          "The cost of telling a row's labels from classes that are drawn as noise; the draw depends on seed, worker "
          "and "
          "batch alone.")
      .Input("Input", "[rows, width]")
      .Input("Label", "int64 [rows, labels]")
      .Input("Weight", "[classes, width]")
      .OptionalInput("Bias", "[classes, 1]")
      .OptionalInput("SampleWeight", "[rows, 1], what each row counts")
      .OptionalInput("CustomDistProbs", "[classes], how probable each is; with sampler 2")
      .OptionalInput("CustomDistAlias", "int32 or int64 [classes], of the alias method; -1: none")
      .OptionalInput("CustomDistAliasProbs", "[classes], of the alias method")
      .Output("Cost", "[rows, 1]")
      .Output("SampleLogits", "[rows, labels + drawn], sigmoids")
      .Output("SampleLabels", "int64 [rows, labels + drawn], the classes")
      .Attr("num_total_classes", int64_t{1}, "rows of Weight")
      .Attr("num_neg_samples", int64_t{10}, "classes that are drawn for each row")
      .Attr("sampler", int64_t{0}, "0: uniform; 1: log-uniform, small numbers more often; 2: by CustomDistProbs")
      .Attr("seed", int64_t{0}, "0: the job's seed and Cost's name")
      .Fixed("is_sparse", false, "sparse gradients of Weight and Bias")
      .Fixed("remote_prefetch", false, "rows of Weight from a parameter server")
      .Attr("custom_neg_classes", std::vector<int64_t>{}, "of Paddle's own tests; changes nothing here")
      .Attr("trainer_id", int64_t{0}, ignored)
      .Attr("height_sections", std::vector<int64_t>{}, ignored)
      .Attr("epmap", std::vector<std::string>{}, ignored)
      .Attr("table_names", std::vector<std::string>{}, ignored)
      .Attr("is_test", false, "changes nothing here")
      .InferShape(InferNce)
      .Grad({.inputs = {"Input", "Label", "Weight", "Bias", "SampleWeight", "CustomDistProbs", "CustomDistAlias",
                        "CustomDistAliasProbs"},
             .outputs = {"SampleLogits", "SampleLabels"},
             .of = {"Cost"},
             .to = {"Input", "Weight", "Bias"},
             .unread = {"Label"}})
      .Kernel<NceKernel>();
  registry.AddGradient("nce").Kernel<NceGradKernel>();
}

}  // namespace millrace
