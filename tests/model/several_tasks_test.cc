// Several losses with weights and masks: what comes out, against the formulas, and what is refused.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "click_batches.h"
#include "model_run.h"
#include "paths.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

SlotSchema TwoTaskSlots() {
  DataFeedDesc desc;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "multi_slot_desc {"
      "  slots { name: 'click' type: 'uint64' is_used: true is_dense: true shape: [-1, 1] }"
      "  slots { name: 'buy' type: 'float' is_used: true is_dense: true shape: [-1, 1] }"
      "  slots { name: 'seconds' type: 'float' is_used: true is_dense: true shape: [-1, 1] }"
      "  slots { name: 'known' type: 'uint64' is_used: true is_dense: true shape: [-1, 1] }"
      "  slots { name: 'grade' type: 'uint64' is_used: true is_dense: true shape: [-1, 1] }"
      "  slots { name: 'x' type: 'float' is_used: true is_dense: true shape: [-1, 2] }"
      "  slots { name: 'pair' type: 'float' is_used: true is_dense: true shape: [-1, 2] } }",
      &desc));
  return *SlotSchema::Create(desc);
}

constexpr int kTaskRows = 6;
constexpr float kClick[kTaskRows] = {1, 0, 0, 1, 0, 1};
constexpr float kBuy[kTaskRows] = {0, 1, 0.25F, 1, 0, -1};  // the last one is masked: what it says is nobody's business
constexpr float kSeconds[kTaskRows] = {2, 0.5F, 1, 0, 3, 7};
constexpr float kKnown[kTaskRows] = {1, 1, 1, 1, 1, 0};
constexpr float kGrade[kTaskRows] = {0, 2, 1, 1, 2, 0};

std::string TwoTaskText() {
  std::ostringstream text;
  for (int i = 0; i < kTaskRows; ++i) {
    text << "1 " << kClick[i] << " 1 " << kBuy[i] << " 1 " << kSeconds[i] << " 1 " << kKnown[i] << " 1 " << kGrade[i]
         << " 2 " << 0.3 * i - 0.5 << ' ' << 1 - 0.2 * i * i << " 2 0 1\n";
  }
  return text.str();
}

constexpr const char* kLogits =
    "layer { name: 'h' fc { in: 'x' units: 3 act: TANH init { normal: 0.8 } } } "
    "layer { name: 'a' fc { in: 'h' units: 1 init { normal: 0.8 } } } "
    "layer { name: 'b' fc { in: 'h' units: 1 init { normal: 0.8 } } } "
    "layer { name: 'c' fc { in: 'h' units: 3 init { normal: 0.8 } } } optimizer { sgd {} } ";

constexpr const char* kTwoLosses =
    "loss { name: 'click' kind: SIGMOID_CROSS_ENTROPY in: 'a' label: 'click' class_weight: [1, 3] } "
    "loss { name: 'buy' kind: SIGMOID_CROSS_ENTROPY in: 'b' label: 'buy' weight: 0.5 sample_weight: 'seconds' mask: "
    "'known' "
    "       class_weight: [0.5, 2] } ";

ModelDesc ParseTasks(const std::string& text) {
  ModelDesc model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model)) << text;
  return model;
}

double LogLossOf(double logit, double y) {
  const double p = 1 / (1 + std::exp(-logit));
  return -y * std::log(p) - (1 - y) * std::log(1 - p);
}

class SeveralTasksTest : public ::testing::TestWithParam<bool> {
 protected:
  CompileOptions Options(std::vector<std::string> fetches) const {
    CompileOptions options;
    options.fuse = GetParam();
    options.skip_ops = {"sgd"};  // parameters stay where they are
    options.fetches = std::move(fetches);
    return options;
  }
  const SlotSchema schema_ = TwoTaskSlots();
  const std::vector<std::unique_ptr<SlotBatch>> batches_ = ParseBatches(schema_, TwoTaskText(), kTaskRows);
};

TEST_P(SeveralTasksTest, LossIsTheWeightedSumOfWeightedMeans) {
  ModelRun run(ParseTasks(std::string(kLogits) + kTwoLosses), schema_,
               Options({"a", "b", "loss.click", "loss.buy", "loss.click.weights", "loss.buy.weights"}));
  const double loss = static_cast<double>(run.Train(*batches_[0]));
  const std::vector<float> a = run.Values("a");
  const std::vector<float> b = run.Values("b");
  double click = 0;
  double buy = 0;
  for (int i = 0; i < kTaskRows; ++i) {
    const auto at = static_cast<size_t>(i);
    const double of_click = kClick[i] == 1 ? 3 : 1;
    const double of_buy = kKnown[i] == 0 ? 0 : kSeconds[i] * (0.5 + 1.5 * kBuy[i]);
    EXPECT_FLOAT_EQ(run.Values("loss.click.weights")[at], static_cast<float>(of_click));
    EXPECT_FLOAT_EQ(run.Values("loss.buy.weights")[at], static_cast<float>(of_buy));
    click += of_click * LogLossOf(a[at], kClick[i]) / kTaskRows;
    buy += of_buy == 0 ? 0 : of_buy * LogLossOf(b[at], kBuy[i]) / kTaskRows;
  }
  EXPECT_NEAR(run.Values("loss.click")[0], click, 1e-6);
  EXPECT_NEAR(run.Values("loss.buy")[0], buy, 1e-6);
  EXPECT_NEAR(loss, click + 0.5 * buy, 1e-6);
}

TEST_P(SeveralTasksTest, GradientsEqualFiniteDifferences) {
  const std::string classes =
      "loss { name: 'grade' kind: SOFTMAX_CROSS_ENTROPY in: 'c' label: 'grade' mask: 'known' class_weight: [1, 0, 4] "
      "l2: 0.01 } ";
  const std::vector<const char*> parameters = {"h.w_0", "a.w_0", "b.w_0", "b.b_0", "c.w_0"};
  std::vector<std::string> gradients;
  for (const char* name : parameters) gradients.push_back(GradName(name));
  ModelRun run(ParseTasks(std::string(kLogits) + kTwoLosses + classes), schema_, Options(gradients));
  run.Train(*batches_[0]);
  for (const char* name : parameters) {
    auto* parameter = run.root().Find(name)->GetMutable<Tensor>();
    run.Train(*batches_[0]);
    const std::vector<float> gradient = run.Gradient(name);
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double numeric = run.NumericGradient(*batches_[0], parameter->mutable_data<float>() + i);
      EXPECT_NEAR(gradient[i], numeric, 2e-3) << name << "[" << i << "]";
    }
    EXPECT_GT(std::abs(*std::max_element(gradient.begin(), gradient.end(),
                                         [](float l, float r) { return std::abs(l) < std::abs(r); })),
              1e-3)
        << name << ": a gradient of zeros proves nothing";
  }
}

TEST_P(SeveralTasksTest, OneLossWithAWeightIsScaled) {
  const std::string loss = "loss { kind: SIGMOID_CROSS_ENTROPY in: 'a' label: 'click' ";
  ModelRun whole(ParseTasks(kLogits + loss + "}"), schema_, Options({}));
  ModelRun half(ParseTasks(kLogits + loss + "weight: 0.5 }"), schema_, Options({}));
  EXPECT_FLOAT_EQ(half.Train(*batches_[0]), whole.Train(*batches_[0]) / 2);
}

INSTANTIATE_TEST_SUITE_P(Fusion, SeveralTasksTest, ::testing::Bool(),
                         [](const auto& c) { return std::string(c.param ? "Fused" : "Plain"); });

Result<CompiledModel> CompileTasks(const std::string& losses) {
  return CompileModel(ParseTasks(kLogits + losses), TwoTaskSlots(), BuiltinOps());
}

TEST(SeveralTasks, HaveNamedPredictionsAndMetrics) {
  const Result<CompiledModel> model = CompileTasks(
      std::string(kTwoLosses) +
      "metric { kind: AUC } metric { kind: LOGLOSS loss: 'buy' } metric { kind: AUC loss: 'buy' name: 'plain' "
      "weighted: false } metric { kind: AUC in: 'a' label: 'buy' mask: 'click' name: 'cross' }");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  ASSERT_EQ(model->tasks.size(), 2U);
  EXPECT_EQ(model->tasks[0].prediction, "prediction.click");
  EXPECT_EQ(model->tasks[1].prediction, "prediction.buy");
  EXPECT_EQ(model->prediction, "prediction.click");
  EXPECT_EQ(model->feeds, std::vector<std::string>{"x"});
  std::vector<std::string> metrics;
  for (const MetricSpec& metric : model->metrics) {
    metrics.push_back(metric.name + ": " + metric.prediction + " " + metric.label + " " + metric.weights);
  }
  EXPECT_THAT(metrics, ::testing::ElementsAre("click/auc: prediction.click click loss.click.weights",
                                              "buy/auc: prediction.buy buy loss.buy.weights",
                                              "buy/logloss: prediction.buy buy loss.buy.weights",
                                              "plain: prediction.buy buy loss.weights_of_metric_3",
                                              "cross: a buy loss.weights_of_metric_4"));
}

TEST(SeveralTasks, WeightsAreMadeByAnOperatorThatAPredictionDoesWithout) {
  const Result<CompiledModel> model = CompileTasks(kTwoLosses);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  std::vector<std::string> types;
  for (const OpDesc& op : model->main.blocks(0).ops()) types.push_back(op.type());
  EXPECT_EQ(std::count(types.begin(), types.end(), "example_weights"), 2);
  CompileOptions options;
  options.forward_only = true;
  options.fetches = {"prediction.click", "prediction.buy"};
  const auto predict = Executable::Compile(model->test, BuiltinOps(), options);
  ASSERT_TRUE(predict.ok()) << predict.status().ToString();
  for (const OpDesc& op : (*predict)->ops()) EXPECT_NE(op.type(), "example_weights");
}

TEST(SeveralTasks, OneLossKeepsItsNames) {
  const Result<CompiledModel> model =
      CompileTasks("loss { name: 'click' kind: SIGMOID_CROSS_ENTROPY in: 'a' label: 'click' } metric { kind: AUC }");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(model->prediction, "prediction");
  EXPECT_EQ(model->metrics[0].name, "auc");
}

TEST(SeveralTasks, MistakesAreNamedTogether) {
  const Status status =
      CompileTasks(
          "loss { kind: SIGMOID_CROSS_ENTROPY in: 'a' label: 'click' } "
          "loss { name: 'b c' kind: SIGMOID_CROSS_ENTROPY in: 'a' label: 'click' } "
          "loss { name: 'd' kind: SIGMOID_CROSS_ENTROPY in: 'a' label: 'click' mask: 'no' weight: -1 } "
          "loss { name: 'd' kind: SIGMOID_CROSS_ENTROPY in: 'a' label: 'click' } "
          "loss { name: 'e' kind: SOFTMAX_CROSS_ENTROPY in: 'c' label: 'grade' class_weight: [1, 2] sample_weight: "
          "'pair' } "
          "loss { name: 'f' kind: SQUARED_ERROR in: 'b' label: 'buy' class_weight: [1, 2] } "
          "metric { kind: AUC loss: 'g' } metric { kind: AUC in: 'h' }")
          .status();
  const std::string text = status.ToString();
  for (const char* part :
       {"name: of several losses each needs a name", "\"b c\" is no name", "mask: no slot \"no\"",
        "weight must not be negative, not -1", "loss \"d\" is there already",
        "has 3 classes here, and these are weights of 2", "sample_weight: slot \"pair\" must have one value an example",
        "SQUARED_ERROR meets values and has no classes", "loss: no loss \"g\""}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(SeveralTasks, AMetricOfNobodysPredictionSaysWhoseLabelItHas) {
  EXPECT_THAT(CompileTasks(std::string(kTwoLosses) + "metric { kind: AUC in: 'h' }").status().ToString(),
              HasSubstr("metric AUC: loss: \"h\" is the prediction of no loss"));
}

/// What a batch of one row says of weights that are none.
std::string Refusal(const std::string& seconds, const std::string& known, const std::string& click) {
  const SlotSchema schema = TwoTaskSlots();
  const Result<CompiledModel> model = CompileTasks(kTwoLosses);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  Scope root;
  EXPECT_TRUE(RunStartup(model->startup, BuiltinOps(), root, 1).ok());
  CompileOptions options;
  options.fetches = {"loss"};
  const auto executable = Executable::Compile(model->main, BuiltinOps(), options);
  FrameOptions frame_options;
  frame_options.max_rows = 1;
  const auto frame = Frame::Create(**executable, &schema, root, frame_options);
  const auto batches = ParseBatches(schema, "1 " + click + " 1 1 1 1 1 " + known + " 1 0 2 1 1 2 0 0\n", 1);
  batches[0]->column(schema.Find("seconds")).floats[0] = std::stof(seconds);
  RunContext context;
  context.batch = batches[0].get();
  context.rows = 1;
  return (*frame)->Run(context).ToString();
}

TEST(SeveralTasks, WhatIsNoWeightIsRefused) {
  EXPECT_EQ(Refusal("1", "1", "1"), "ok");
  EXPECT_THAT(Refusal("-1", "1", "1"), HasSubstr("sample_weight \"seconds\" of row 0 of the batch is -1"));
  EXPECT_THAT(Refusal("nan", "1", "1"), HasSubstr("sample_weight \"seconds\" of row 0 of the batch is nan"));
  EXPECT_THAT(Refusal("inf", "1", "1"), HasSubstr("a weight is a number from 0 on"));
  EXPECT_THAT(Refusal("1", "2", "1"), HasSubstr("mask \"known\" of row 0 of the batch is 2"));
  EXPECT_THAT(Refusal("1", "1", "2"), HasSubstr("class_weight has weights of the labels 0 to 1"));
  EXPECT_EQ(Refusal("-1", "0", "1"), "ok") << "what is masked is nobody's business";
}

}  // namespace
}  // namespace millrace
