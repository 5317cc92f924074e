// Layers that work on sequences and on pairs of slots: their values and gradients, fused and not, what they refuse, and
// the jobs of configs/ that have them.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "click_batches.h"
#include "core/file.h"
#include "model_run.h"
#include "paths.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

SlotSchema VisitSlots() {
  DataFeedDesc desc;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "multi_slot_desc {"
      "  slots { name: 'label' type: 'uint64' is_used: true is_dense: true shape: [-1, 1] }"
      "  slots { name: 'x' type: 'float' is_used: true is_dense: true shape: [-1, 3] }"
      "  slots { name: 'item' type: 'uint64' is_used: true }"
      "  slots { name: 'brand' type: 'uint64' is_used: true }"
      "  slots { name: 'shop' type: 'uint64' is_used: true }"
      "  slots { name: 'visited' type: 'uint64' is_used: true }"
      "  slots { name: 'shops' type: 'uint64' is_used: true } }",
      &desc));
  return *SlotSchema::Create(desc);
}

// Histories of 3, 0, 1, 5 and 2 visits.
const char* const kKindVisits =
    "1 1 3 0.5 -0.2 0.9 1 3 1 4 1 5 3 1 2 3 3 7 8 7\n"
    "1 0 3 -0.4 0.3 0.1 1 2 1 6 1 5 0 0\n"
    "1 1 3 0.1 0.8 -0.7 1 5 1 4 1 7 1 4 1 9\n"
    "1 0 3 -0.9 -0.6 0.2 1 1 1 9 1 8 5 5 4 3 2 1 5 7 7 8 8 9\n"
    "1 1 3 0.7 0.4 0.6 1 4 1 6 1 7 2 2 5 2 9 7\n";

const char* const kKindTables =
    "table { name: 'v' dim: 2 vocabulary: 12 init { normal: 0.6 } } "
    "layer { name: 'candidate' embedding { slots: 'item' table: 'v' } } "
    "layer { name: 'slots' embedding { slots: ['item', 'brand', 'shop'] table: 'v' } } "
    "layer { name: 'visits' history { slots: 'visited' table: 'v' max_length: 4 } } ";
const char* const kKindEnd =
    "layer { name: 'y' fc { in: 'out' units: 1 } } loss { kind: SIGMOID_CROSS_ENTROPY in: 'y' label: 'label' } "
    "optimizer { sgd {} }";

ModelDesc ParseKinds(const std::string& layers) {
  ModelDesc model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kKindTables + layers + kKindEnd, &model)) << layers;
  return model;
}

struct KindCase {
  const char* name;
  const char* layers;  ///< the last one is called out
  std::vector<const char*> parameters;
};

const KindCase kKindCases[] = {
    {"Multiply",
     "layer { name: 'a' fc { in: 'x' units: 2 act: TANH } } layer { name: 'b' fc { in: 'x' units: 1 } } "
     "layer { name: 'out' multiply { in: ['b', 'a', 'candidate'] } }",
     {"v", "a.w_0", "b.w_0"}},
    {"Mixture",
     "layer { name: 'a' fc { in: 'x' units: 2 act: TANH } } layer { name: 'g' fc { in: 'x' units: 2 act: SOFTMAX } } "
     "layer { name: 'out' mixture { in: ['a', 'candidate'] gate: 'g' } }",
     {"v", "a.w_0", "g.w_0"}},
    // docs/models.md
    {"OperatorsForACosine",
     "layer { name: 'user' fc { in: 'x' units: 2 } } "
     "layer { name: 'user_unit' op { type: 'norm' inputs { name: 'X' vars: 'user' } attrs { name: 'axis' i: 1 } } } "
     "layer { name: 'item_unit' op { type: 'norm' inputs { name: 'X' vars: 'candidate' } attrs { name: 'axis' i: 1 } } "
     "} "
     "layer { name: 'products' multiply { in: ['user_unit', 'item_unit'] } } "
     "layer { name: 'cosine' reduce_sum { in: 'products' } } "
     "layer { name: 'out' op { type: 'scale' inputs { name: 'X' vars: 'cosine' } attrs { name: 'scale' f: 10 } } }",
     {"user.w_0"}},
    {"LayerNorm", "layer { name: 'out' layer_norm { in: 'slots' epsilon: 0.1 } }", {"v", "out.scale", "out.bias"}},
    {"BatchNorm",
     "layer { name: 'a' fc { in: ['x', 'candidate'] units: 2 } } layer { name: 'out' batch_norm { in: 'a' epsilon: 0.1 "
     "} }",
     {"v", "a.w_0", "out.scale", "out.bias"}},
    {"History", "layer { name: 'out' pool { in: 'visits' } }", {"v"}},
    {"HistoryOfTwoSlots",
     "layer { name: 'both' history { slots: ['visited', 'shops'] table: 'v' max_length: 3 position: true } } "
     "layer { name: 'out' pool { in: 'both' type: AVERAGE } }",
     {"v", "both.position"}},
    {"PoolLast", "layer { name: 'out' pool { in: 'visits' type: LAST } }", {"v"}},
    {"Attention",
     "layer { name: 'out' attention { in: 'visits' query: 'candidate' units: [3] act: TANH } }",
     {"v", "out.w_0", "out.b_0", "out.w_1"}},
    {"AttentionShares",
     "layer { name: 'out' attention { in: 'visits' query: 'candidate' softmax: true } }",
     {"v", "out.w_0"}},
    {"SelfAttention",
     "layer { name: 'seen' self_attention { in: 'visits' heads: 2 units: 4 } } "
     "layer { name: 'out' pool { in: 'seen' type: AVERAGE } }",
     {"v", "seen.w_query", "seen.w_key", "seen.w_value", "seen.w_residual"}},
    {"SelfAttentionOfSlots",
     "layer { name: 'out' self_attention { in: 'slots' residual: false } }",
     {"v", "out.w_query", "out.w_key", "out.w_value"}},
    {"Gru",
     "layer { name: 'state' gru { in: 'visits' units: 3 } } layer { name: 'out' pool { in: 'state' type: LAST } }",
     {"v", "state.w", "state.b", "state.u"}},
    {"Augru",
     "layer { name: 'asked' attention { in: 'visits' query: 'candidate' softmax: true output: WEIGHTS } } "
     "layer { name: 'state' gru { in: 'visits' units: 3 attention: 'asked' } } "
     "layer { name: 'out' pool { in: 'state' type: SUM } }",
     {"v", "state.w", "state.b", "state.u", "asked.w_0"}},
    {"Cin", "layer { name: 'out' cin { in: 'slots' units: [2, 3] } }", {"v", "out.w_0", "out.w_1"}},
    {"CinOfOneLayer", "layer { name: 'out' cin { in: 'slots' units: 2 } }", {"v", "out.w_0"}},
    {"BilinearOfAll", "layer { name: 'out' bilinear { in: 'slots' } }", {"v", "out.w"}},
    {"BilinearOfEach", "layer { name: 'out' bilinear { in: 'slots' matrix: EACH } }", {"v", "out.w_0", "out.w_1"}},
    {"CrossMatrix",
     "layer { name: 'out' cross { in: 'slots' layers: 2 form: MATRIX } }",
     {"v", "out.w_0", "out.b_0", "out.w_1"}},
    {"CrossOfLowRank",
     "layer { name: 'out' cross { in: 'slots' layers: 2 form: MATRIX rank: 2 } }",
     {"v", "out.u_0", "out.w_0", "out.u_1"}},
};

class LayerKindTest : public ::testing::TestWithParam<std::tuple<KindCase, bool>> {};

TEST_P(LayerKindTest, GradientsEqualFiniteDifferences) {
  const auto& [c, fuse] = GetParam();
  const SlotSchema schema = VisitSlots();
  const auto batches = ParseBatches(schema, kKindVisits, 5);
  CompileOptions options;
  options.fuse = fuse;
  options.skip_ops = {"sgd"};  // parameters stay where they are
  for (const char* name : c.parameters) options.fetches.push_back(GradName(name));
  ModelRun run(ParseKinds(c.layers), schema, options);
  for (const char* name : c.parameters) {
    auto* parameter = run.root().Find(name)->GetMutable<Tensor>();
    run.Train(*batches[0]);
    const std::vector<float> gradient = run.Gradient(name);
    float largest = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double numeric = run.NumericGradient(*batches[0], parameter->mutable_data<float>() + i);
      EXPECT_NEAR(gradient[i], numeric, 1e-3) << name << "[" << i << "]";
      largest = std::max(largest, std::abs(gradient[i]));
    }
    EXPECT_GT(largest, 1e-4) << name << ": a gradient of zeros proves nothing";
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, LayerKindTest, ::testing::Combine(::testing::ValuesIn(kKindCases), ::testing::Bool()),
                         [](const auto& c) {
                           return std::string(std::get<0>(c.param).name) + (std::get<1>(c.param) ? "Fused" : "Plain");
                         });

/// What a layer called out gives for the visits.
std::vector<float> OutOf(const std::string& layers, const std::vector<std::string>& also = {"out"}) {
  const SlotSchema schema = VisitSlots();
  const auto batches = ParseBatches(schema, kKindVisits, 5);
  CompileOptions options;
  options.fetches = also;
  options.skip_ops = {"sgd"};
  ModelRun run(ParseKinds(layers), schema, options);
  run.Train(*batches[0]);
  std::vector<float> all;
  for (const std::string& name : also) {
    const std::vector<float> values = run.Values(name);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// The rows of the table, from the parameter itself.
std::vector<float> TableValues() {
  const SlotSchema schema = VisitSlots();
  ModelRun run(ParseKinds("layer { name: 'out' pool { in: 'visits' } }"), schema, {});
  const auto& table = run.root().Find("v")->Get<Tensor>();
  return {table.data<float>(), table.data<float>() + table.numel()};
}

TEST(HistoryLayer, HasTheLastVisitsInTheirOrder) {
  const std::vector<float> v = TableValues();
  const std::vector<float> out =
      OutOf("layer { name: 'out' pool { in: 'visits' type: LAST } }", {"visits", "visits.mask", "out"});
  const std::vector<std::vector<size_t>> seen = {{1, 2, 3}, {}, {4}, {4, 3, 2, 1}, {2, 5}};
  for (size_t row = 0; row < 5; ++row) {
    for (size_t t = 0; t < 4; ++t) {
      const bool is_there = t < seen[row].size();
      EXPECT_EQ(out[40 + row * 4 + t], is_there ? 1 : 0);
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(out[(row * 4 + t) * 2 + i], is_there ? v[seen[row][t] * 2 + i] : 0) << row << " " << t;
      }
    }
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_FLOAT_EQ(out[60 + row * 2 + i], seen[row].empty() ? 0 : v[seen[row].back() * 2 + i]) << row;
    }
  }
}

// How much room is left behind a history changes nothing of what is made of it.
TEST(SequenceLayers, HeedTheMask) {
  for (const char* layers :
       {"layer { name: 'h' history { slots: 'visited' table: 'v' max_length: %d } } layer { name: 'out' pool { in: 'h' "
        "type: AVERAGE } }",
        "layer { name: 'h' history { slots: 'visited' table: 'v' max_length: %d } } layer { name: 'out' pool { in: 'h' "
        "type: LAST } }",
        "layer { name: 'h' history { slots: 'visited' table: 'v' max_length: %d } } "
        "layer { name: 'out' attention { in: 'h' query: 'candidate' units: [3] softmax: true } }",
        "layer { name: 'h' history { slots: 'visited' table: 'v' max_length: %d } } "
        "layer { name: 's' self_attention { in: 'h' heads: 2 } } layer { name: 'out' pool { in: 's' } }",
        "layer { name: 'h' history { slots: 'visited' table: 'v' max_length: %d } } "
        "layer { name: 's' gru { in: 'h' units: 3 } } layer { name: 'out' pool { in: 's' type: LAST } }"}) {
    char narrow[400];
    char wide[400];
    std::snprintf(narrow, sizeof(narrow), layers, 5);
    std::snprintf(wide, sizeof(wide), layers, 9);
    const std::vector<float> a = OutOf(narrow);
    const std::vector<float> b = OutOf(wide);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6) << layers;
    const size_t width = a.size() / 5;
    for (size_t i = 0; i < width; ++i) EXPECT_EQ(a[width + i], 0) << "of nothing comes nothing";
  }
}

TEST(BilinearLayer, IsTheProductOfEachPair) {
  const std::vector<float> v = TableValues();
  const std::vector<float> out = OutOf("layer { name: 'out' bilinear { in: 'slots' } }", {"out"});
  const SlotSchema schema = VisitSlots();
  ModelRun run(ParseKinds("layer { name: 'out' bilinear { in: 'slots' } }"), schema, {});
  const auto& w = run.root().Find("out.w")->Get<Tensor>();
  const std::vector<size_t> slots = {3, 4, 5};  // of the first row
  size_t at = 0;
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = i + 1; j < 3; ++j) {
      for (size_t d = 0; d < 2; ++d) {
        float turned = 0;
        for (size_t k = 0; k < 2; ++k) turned += v[slots[i] * 2 + k] * w.data<float>()[k * 2 + d];
        EXPECT_NEAR(out[at++], turned * v[slots[j] * 2 + d], 1e-6);
      }
    }
  }
}

TEST(HistoryLayer, OfSlotsThatDoNotBelongTogetherNamesTheRow) {
  const SlotSchema schema = VisitSlots();
  const Result<CompiledModel> model =
      CompileModel(ParseKinds("layer { name: 'both' history { slots: ['visited', 'shops'] table: 'v' } } layer { name: "
                              "'out' pool { in: 'both' } }"),
                   schema, BuiltinOps());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Scope root;
  ASSERT_TRUE(RunStartup(model->startup, BuiltinOps(), root, 1).ok());
  CompileOptions options;
  options.fetches = {"loss"};
  const auto executable = Executable::Compile(model->main, BuiltinOps(), options);
  ASSERT_TRUE(executable.ok());
  FrameOptions frame_options;
  frame_options.max_rows = 2;
  const auto frame = Frame::Create(**executable, &schema, root, frame_options);
  const auto batches = ParseBatches(schema,
                                    "1 1 3 0 0 0 1 3 1 4 1 5 2 1 2 2 7 8\n"
                                    "1 0 3 0 0 0 1 2 1 6 1 5 2 1 2 1 7\n",
                                    2);
  RunContext context;
  context.batch = batches[0].get();
  context.rows = 2;
  const Status status = (*frame)->Run(context);
  EXPECT_EQ(status.code(), StatusCode::kBadData);
  EXPECT_THAT(status.ToString(), HasSubstr("row 1 of the batch has 2 values and"));
}

TEST(LayerKinds, MistakesAreNamed) {
  const std::vector<std::pair<const char*, const char*>> mistakes = {
      {"layer { name: 'out' pool { in: 'slots' } }", "\"slots\" is no sequence"},
      {"layer { name: 'out' pool { in: 'visits' type: MAX } }", "MAX is not for sequences"},
      {"layer { name: 'out' attention { in: 'visits' query: 'slots' } }", "query must be [batch, 2]"},
      {"layer { name: 'out' attention { in: 'visits' query: 'candidate' act: SOFTMAX } }",
       "act: RELU, SIGMOID or TANH"},
      {"layer { name: 'out' self_attention { in: 'visits' heads: 3 } }", "heads: 3 heads do not divide the 2 columns"},
      {"layer { name: 'out' gru { in: 'visits' } }", "a gru layer needs units"},
      {"layer { name: 'out' gru { in: 'visits' units: 2 attention: 'slots' } }", "attention must be [batch, 4]"},
      {"layer { name: 'out' cin { in: 'slots' } }", "a cin layer needs units"},
      {"layer { name: 'out' bilinear { in: 'x' } }", "in: \"x\" is no embedding layer, so say the floats per slot"},
      {"layer { name: 'out' bilinear { in: 'candidate' } }", "into two slots or more"},
      {"layer { name: 'out' mixture { in: ['candidate', 'candidate'] gate: 'x' } }",
       "gate needs a column for each of 2"},
      {"layer { name: 'out' mixture { in: ['candidate', 'x'] gate: 'x' } }", "shapes differ"},
      {"layer { name: 'out' multiply { in: ['candidate', 'slots'] } }", "shapes differ"},
      {"layer { name: 'out' multiply { in: 'candidate' } }", "the layer needs two inputs or more"},
      {"layer { name: 'out' history { slots: 'label' table: 'v' } }", "slot \"label\" is dense with one id"},
      {"layer { name: 'out' fc { in: 'x' units: 1 } rule { clip { global_norm: 1 } } }",
       "global_norm is of all gradients"},
      {"layer { name: 'out' embedding { slots: 'item' table: 'v' } rule { rate: 0.1 } }",
       "rule: an embedding layer has no parameters of its own"},
  };
  for (const auto& [layers, message] : mistakes) {
    EXPECT_THAT(CompileModel(ParseKinds(layers), VisitSlots(), BuiltinOps()).status().ToString(), HasSubstr(message))
        << layers;
  }
}

TEST(LayerKinds, OfSequencesAreOperatorsOfTheirOwn) {
  const Result<CompiledModel> model = CompileModel(
      ParseKinds("layer { name: 's' gru { in: 'visits' units: 2 } } layer { name: 'out' pool { in: 's' } }"),
      VisitSlots(), BuiltinOps());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  std::vector<std::string> types;
  for (const OpDesc& op : model->main.blocks(0).ops()) types.push_back(op.type());
  for (const char* type : {"history_window", "gated_recurrence", "history_window_grad", "gated_recurrence_grad"}) {
    EXPECT_THAT(types, ::testing::Contains(type));
  }
}

TEST(LayerRule, ChangesTheRateAndThePenaltiesOfItsLayerAlone) {
  const SlotSchema schema = VisitSlots();
  const auto batches = ParseBatches(schema, kKindVisits, 5);
  const auto weights = [&](const std::string& rule) {
    ModelRun run(ParseKinds("layer { name: 'a' fc { in: 'x' units: 2 } " + rule +
                            " } layer { name: 'out' fc { in: 'a' units: 2 } }"),
                 schema, {});
    const auto of = [&run](const char* name) {
      const auto& tensor = run.root().Find(name)->Get<Tensor>();
      return std::vector<float>(tensor.data<float>(), tensor.data<float>() + tensor.numel());
    };
    const std::vector<float> before = of("a.w_0");
    const std::vector<float> other = of("out.w_0");
    run.Train(*batches[0]);
    std::vector<float> steps;
    for (size_t i = 0; i < before.size(); ++i) steps.push_back(of("a.w_0")[i] - before[i]);
    steps.push_back(of("out.w_0")[0] - other[0]);
    steps.push_back(before[0]);
    return steps;
  };
  const std::vector<float> plain = weights("");
  const std::vector<float> slow = weights("rule { rate: 0.1 }");
  const std::vector<float> still = weights("rule { rate: 0 }");
  const std::vector<float> small = weights("rule { regularization { l2: 0.5 } }");
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(slow[i], 0.1F * plain[i], 1e-7);
    EXPECT_EQ(still[i], 0);
  }
  EXPECT_EQ(slow[6], plain[6]) << "other layers learn as before";
  EXPECT_NEAR(small[0], plain[0] - 0.01F * 0.5F * plain[7], 1e-7);
}

// The jobs of configs/ with these kinds, 100 batches of a click log as their pipe_command gives it.
class KindConfigs : public ::testing::TestWithParam<const char*> {
 protected:
  static std::vector<float> Curve(bool fuse) {
    const TrainerDesc job = ReadJob(GetParam());
    const SlotSchema schema = *SlotSchema::Create(job.data_desc());
    CompileOptions options;
    options.fuse = fuse;
    ModelDesc model = job.model();
    model.mutable_optimizer()->mutable_adagrad()->set_initial_accumulator(0.1F);
    ModelRun run(model, schema, options);
    std::vector<float> losses;
    for (const auto& batch : ParseBatches(schema, PipedClickText(6400, job), 64)) {
      losses.push_back(run.Train(*batch));
    }
    return losses;
  }
};

TEST_P(KindConfigs, TrainFusedAsUnfused) {
  const std::vector<float> fused = Curve(true);
  const std::vector<float> plain = Curve(false);
  ASSERT_EQ(fused.size(), 100U);
  ASSERT_EQ(plain.size(), fused.size());
  for (size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], plain[i], 5e-5) << "step " << i;
  const auto mean = [&](auto from) { return std::accumulate(from, from + 20, 0.0F) / 20; };
  EXPECT_LT(mean(fused.end() - 20), 0.98F * mean(fused.begin()));
}

INSTANTIATE_TEST_SUITE_P(Configs, KindConfigs,
                         ::testing::Values("shared_bottom", "mmoe", "ple", "esmm", "din", "dien", "bst", "xdeepfm",
                                           "fibinet", "dcn_v2", "autoint"),
                         [](const auto& c) { return std::string(c.param); });

}  // namespace
}  // namespace millrace
