#include "ops/loss/auc.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "core/numbers.h"
#include "ops/kernel.h"
#include "ops/loss/class_labels.h"
#include "program/op_registry.h"
#include "runtime/transfer.h"

namespace millrace {
namespace {

Status InferAuc(InferShapeContext& context) {
  MR_ASSIGN(const VarMeta predict, context.Input("Predict"));
  MR_ASSIGN(const VarMeta label, context.Input("Label"));
  MR_TRY(ExpectDType(context, "Predict", predict, DType::kFloat32));
  MR_TRY(ExpectDType(context, "Label", label, DType::kInt64));
  const std::string curve = context.op().String("curve");
  if (curve != "ROC" && curve != "PR") return context.Error("curve is \"" + curve + "\"; there are ROC and PR");
  if (context.op().Int("num_thresholds") < 1) return context.Error("num_thresholds must be positive");
  for (const char* name : {"StatPos", "StatNeg"}) {
    MR_ASSIGN(VarMeta stat, context.Input(name));
    MR_TRY(ExpectDType(context, name, stat, DType::kInt64));
    // Paddle 2 makes a place for the counter of batches even where no batch is forgotten, and gives it up in the first
    // run, so that the program does not tell how many values there are.
    if (context.op().Int("slide_steps") == 0) stat.dims = Dims{};
    context.SetOutput(std::string(name) + "Out", stat);
  }
  VarMeta auc;
  auc.dims = Dims{1};
  auc.dtype = DType::kFloat32;
  context.SetOutput("AUC", auc);
  return Status::Ok();
}

/// Counts of one sign by bucket of the prediction.
///
/// With slide_steps = s > 0 the statistic keeps the last s batches: Paddle 2 has s rows of buckets, a row with their
/// sum, and the number of batches so far; Paddle 1 has the s rows alone, oldest first.
class Buckets {
 public:
  Buckets(int64_t length, int64_t steps, int64_t* values, int64_t size)
      : length_(length), steps_(steps), values_(values), counted_(size > length * std::max<int64_t>(steps, 1)) {}

  static bool Fits(int64_t length, int64_t steps, int64_t size) {
    if (steps == 0) return size == length || size == length + 1;
    return size == length * steps || size == length * (steps + 1) + 1;
  }

  /// Forgets the oldest batch, and returns where the new one is counted.
  int64_t* BeginBatch() {
    if (steps_ == 0) return values_;
    if (!counted_) {
      std::copy(values_ + length_, values_ + length_ * steps_, values_);
      std::fill_n(values_ + length_ * (steps_ - 1), length_, int64_t{0});
      return values_ + length_ * (steps_ - 1);
    }
    int64_t* row = values_ + Counter() % steps_ * length_;
    int64_t* sum = values_ + steps_ * length_;
    for (int64_t i = 0; i < length_; ++i) sum[i] -= row[i];
    std::fill_n(row, length_, int64_t{0});
    return row;
  }
  void EndBatch(const int64_t* row) {
    if (steps_ == 0 || !counted_) return;
    int64_t* sum = values_ + steps_ * length_;
    for (int64_t i = 0; i < length_; ++i) sum[i] += row[i];
    ++Counter();
  }
  int64_t At(int64_t bucket) const {
    if (steps_ == 0) return values_[bucket];
    if (counted_) return values_[steps_ * length_ + bucket];
    int64_t sum = 0;
    for (int64_t step = 0; step < steps_; ++step) sum += values_[step * length_ + bucket];
    return sum;
  }

 private:
  int64_t& Counter() { return values_[(steps_ + 1) * length_]; }

  int64_t length_;
  int64_t steps_;
  int64_t* values_;
  bool counted_;
};

/// Of counts by bucket.
template <class Positive, class Negative>
double Area(const Positive& positive, const Negative& negative, int64_t length) {
  double area = 0;
  double pos = 0;
  double neg = 0;
  for (int64_t i = length - 1; i >= 0; --i) {
    const double pos_before = pos;
    const double neg_before = neg;
    pos += static_cast<double>(positive(i));
    neg += static_cast<double>(negative(i));
    area += (neg - neg_before) * (pos + pos_before) / 2;
  }
  return pos > 0 && neg > 0 ? area / pos / neg : 0;
}

class AucKernel : public BoundKernel<AucKernel> {
 public:
  Status Bind(KernelContext& context) {
    MR_ASSIGN(predict_, context.Input("Predict"));
    MR_ASSIGN(label_, context.Input("Label"));
    MR_ASSIGN(stats_in_[0], context.Input("StatPos"));
    MR_ASSIGN(stats_in_[1], context.Input("StatNeg"));
    MR_ASSIGN(stats_[0], context.Output("StatPosOut"));
    MR_ASSIGN(stats_[1], context.Output("StatNegOut"));
    MR_ASSIGN(auc_, context.Output("AUC"));
    length_ = context.op().Int("num_thresholds") + 1;
    steps_ = context.op().Int("slide_steps");
    label_monitor_ = context.options().label_monitor;
    label_name_ = context.InputName("Label");
    names_[0] = context.InputName("StatPos");
    names_[1] = context.InputName("StatNeg");
    return Status::Ok();
  }
  Status Run(const RunContext& context) override {
    for (size_t i = 0; i < 2; ++i) {
      const int64_t size = stats_in_[i]->numel();
      if (!Buckets::Fits(length_, steps_, size)) {
        return BadData(Shown(names_[i], stats_in_[i]->dims()) + " does not fit " + std::to_string(length_) +
                       " buckets and slide_steps " + std::to_string(steps_));
      }
      if (stats_in_[i] == stats_[i]) continue;
      std::copy_n(stats_in_[i]->data<int64_t>(), size, stats_[i]->Resize<int64_t>(stats_in_[i]->dims()));
    }
    for (Tensor* stat : stats_) {
      if (steps_ == 0 && stat->numel() > length_) Shorten(stat);
    }
    Buckets positive(length_, steps_, stats_[0]->mutable_data<int64_t>(), stats_[0]->numel());
    Buckets negative(length_, steps_, stats_[1]->mutable_data<int64_t>(), stats_[1]->numel());
    int64_t* pos = positive.BeginBatch();
    int64_t* neg = negative.BeginBatch();
    const int64_t rows = predict_->dims()[0];
    const int64_t width = rows == 0 ? 1 : predict_->numel() / rows;
    if (label_->numel() != rows) {
      return BadData("Label has " + std::to_string(label_->numel()) + " values for " + std::to_string(rows) + " rows");
    }
    const float* predict = predict_->data<float>();
    const int64_t* label = label_->data<int64_t>();
    int64_t odd = 0;
    int64_t first_odd = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const float p = predict[(i + 1) * width - 1];
      if (!(p >= 0 && p <= 1)) {
        return BadData("the prediction of " + context.DescribeRow(static_cast<int>(i)) +
                       " is not from 0 to 1: " + ShortestNumber(p));
      }
      const auto bucket = static_cast<int64_t>(p * static_cast<float>(length_ - 1));
      if (label[i] > 0) ++pos[bucket];
      if (label[i] == 0) ++neg[bucket];
      if (label[i] != 0 && label[i] != 1) [[unlikely]] {
        if (odd++ == 0) first_odd = i;
      }
    }
    // paddle.static.auc writes two, one of them for the last batches: the other speaks for both.
    if (odd > 0 && label_monitor_ != nullptr && steps_ == 0) {
      label_monitor_->OfMeasure(
          "auc", "a label above 0 counts as a click, one below 0 as none at all, as in Paddle",
          DescribeOdd(context, label_name_, *label_, odd, first_odd, static_cast<double>(label[first_odd])));
    }
    positive.EndBatch(pos);
    negative.EndBatch(neg);
    *auc_->Resize<float>({1}) = static_cast<float>(
        Area([&](int64_t i) { return positive.At(i); }, [&](int64_t i) { return negative.At(i); }, length_));
    return Status::Ok();
  }

 private:
  /// Gives up what stands behind the buckets.
  void Shorten(Tensor* stat) const {
    const int64_t* values = stat->data<int64_t>();
    const std::vector<int64_t> buckets(values, values + length_);
    std::copy_n(buckets.data(), length_, stat->Resize<int64_t>({1, length_}));
  }

  const Tensor* predict_ = nullptr;
  const Tensor* label_ = nullptr;
  const Tensor* stats_in_[2] = {};
  Tensor* stats_[2] = {};
  std::string names_[2];
  Tensor* auc_ = nullptr;
  LabelRangeMonitor* label_monitor_ = nullptr;
  std::string label_name_;
  int64_t length_ = 0;
  int64_t steps_ = 0;
};

}  // namespace

Result<double> AucOfCounts(const OpDesc& op, const Scope& scope) {
  std::array<HostView, 2> views;
  std::array<std::span<const int64_t>, 2> counts;
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<std::string> names = OutputArguments(op, i == 0 ? "StatPosOut" : "StatNegOut");
    const Variable* const variable = names.size() == 1 ? scope.Find(names[0]) : nullptr;
    if (variable == nullptr || !variable->Is<Tensor>()) return Internal("the scope has no counts of operator auc");
    MR_ASSIGN(const Tensor* const tensor, views[i].Of(variable->Get<Tensor>()));
    if (tensor->dtype() != DType::kInt64) return Internal("the counts of operator auc are no int64");
    counts[i] = {tensor->data<int64_t>(), static_cast<size_t>(tensor->numel())};
  }
  const auto at = [](std::span<const int64_t> of) { return [of](int64_t i) { return of[static_cast<size_t>(i)]; }; };
  const size_t length = std::min(counts[0].size(), counts[1].size());
  return static_cast<float>(Area(at(counts[0]), at(counts[1]), static_cast<int64_t>(length)));
}

void RegisterAuc(OpRegistry& registry) {
  registry.Add("auc")
      .Doc("Area under the ROC curve of every prediction so far, or of the last slide_steps batches.")
      .Input("Predict", "[rows, columns]; the last column is the probability")
      .Input("Label", "int64 [rows, 1]")
      .Input("StatPos", "int64, positives by bucket")
      .Input("StatNeg", "int64, negatives by bucket")
      .Output("AUC", "[1]")
      .Output("StatPosOut", "StatPos")
      .Output("StatNegOut", "StatNeg")
      .Attr("curve", std::string("ROC"), "ROC; of PR, Paddle counts ROC as well")
      .Attr("num_thresholds", int64_t{4095}, "buckets less one")
      .Attr("slide_steps", int64_t{1}, "batches that count; 0: all")
      .InferShape(InferAuc)
      .Kernel<AucKernel>();
}

}  // namespace millrace
