#include "model/model_compiler.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "job_files.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

// type(inputs -> outputs), a line each.
std::string Show(const ProgramDesc& program) {
  std::string text;
  for (const OpDesc& op : program.blocks(0).ops()) {
    text += op.type() + "(";
    const auto list = [&text](const auto& bindings) {
      bool first = true;
      for (const OpDesc::Var& binding : bindings) {
        for (const std::string& name : binding.arguments()) {
          text += (first ? "" : ",") + name;
          first = false;
        }
      }
    };
    list(op.inputs());
    text += " -> ";
    list(op.outputs());
    text += ")\n";
  }
  return text;
}

const VarDesc* FindVar(const ProgramDesc& program, const std::string& name) {
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (var.name() == name) return &var;
  }
  return nullptr;
}

const OpDesc* FindWriter(const ProgramDesc& program, const std::string& name) {
  for (const OpDesc& op : program.blocks(0).ops()) {
    for (const OpDesc::Var& output : op.outputs()) {
      if (std::find(output.arguments().begin(), output.arguments().end(), name) != output.arguments().end()) return &op;
    }
  }
  return nullptr;
}

constexpr const char* kSmall =
    "table { name: 't' dim: 2 } "
    "layer { name: 'e' embedding { slots: 'C1..C2' table: 't' pool: AVERAGE } } "
    "layer { name: 'y' fc { in: ['e', 'dense'] units: [3, 1] act: SIGMOID } } "
    "loss { kind: LOG_LOSS in: 'y' label: 'label' } "
    "optimizer { sgd { lr: 0.5 } }";

constexpr const char* kCounts =
    "table { name: 't' accessor { embedx_dim: 2 } } "
    "layer { name: 'e' embedding { slots: 'C1..C2' table: 't' use_cvm: true } } "
    "layer { name: 'd' embedding { slots: 'C1' table: 't' } } "
    "layer { name: 'y' fc { in: ['e', 'd', 'dense'] units: 1 act: SIGMOID } } "
    "loss { kind: LOG_LOSS in: 'y' label: 'label' } "
    "optimizer { sgd { lr: 0.5 } clip { global_norm: 1 } }";

TEST(ModelCompilerTest, RowsThatCountGoThroughCvmAndArePushedWithoutARate) {
  const Result<CompiledModel> model = CompileText(kCounts);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::string main = Show(model->main);
  EXPECT_THAT(main, testing::StartsWith("lookup_table(C1,t -> e.C1.rows)\n"
                                        "sequence_pool(e.C1.rows -> e.C1@COUNTED)\n"
                                        "cast(label -> label@COUNT)\n"
                                        "fill_constant_batch_size_like(label@COUNT -> counts@@label@SHOW)\n"
                                        "concat(counts@@label@SHOW,label@COUNT -> counts@@label)\n"
                                        "cvm(e.C1@COUNTED,counts@@label -> e.C1)\n"
                                        "lookup_table(C2,t -> e.C2.rows)\n"
                                        "sequence_pool(e.C2.rows -> e.C2@COUNTED)\n"
                                        "cvm(e.C2@COUNTED,counts@@label -> e.C2)\n"
                                        "concat(e.C1,e.C2 -> e)\n"
                                        "lookup_table(C1,t -> d.C1.rows)\n"
                                        "sequence_pool(d.C1.rows -> d@COUNTED)\n"
                                        "cvm(d@COUNTED,counts@@label -> d)\n"));
  EXPECT_THAT(main, testing::HasSubstr("sparse_table_push(t,t@GRAD -> t)\n")) << "not clipped";
  EXPECT_EQ(FindVar(model->main, "t")->type().lod_tensor().tensor().dims(1), 5);
  EXPECT_THAT(model->feeds, ElementsAre("dense", "C1", "C2")) << "labels are not needed to predict";
}

TEST(ModelCompilerTest, LowersASmallModel) {
  const Result<CompiledModel> model = CompileText(kSmall);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::string forward =
      "lookup_table(C1,t -> e.C1.rows)\n"
      "sequence_pool(e.C1.rows -> e.C1)\n"
      "lookup_table(C2,t -> e.C2.rows)\n"
      "sequence_pool(e.C2.rows -> e.C2)\n"
      "concat(e.C1,e.C2 -> e)\n"
      "concat(e,dense -> y.in)\n"
      "mul(y.in,y.w_0 -> y.mul_0)\n"
      "elementwise_add(y.mul_0,y.b_0 -> y.add_0)\n"
      "sigmoid(y.add_0 -> y.0)\n"
      "mul(y.0,y.w_1 -> y.mul_1)\n"
      "elementwise_add(y.mul_1,y.b_1 -> y.add_1)\n"
      "sigmoid(y.add_1 -> y)\n"
      "cast(label -> label.float)\n"
      "log_loss(y,label.float -> loss.each)\n"
      "mean(loss.each -> loss)\n";
  EXPECT_EQ(Show(model->test), forward);
  EXPECT_EQ(Show(model->main), forward +
                                   "fill_constant( -> loss@GRAD)\n"
                                   "mean_grad(loss.each,loss@GRAD -> loss.each@GRAD)\n"
                                   "log_loss_grad(y,label.float,loss.each@GRAD -> y@GRAD)\n"
                                   "sigmoid_grad(y,y@GRAD -> y.add_1@GRAD)\n"
                                   "elementwise_add_grad(y.mul_1,y.b_1,y.add_1@GRAD -> y.mul_1@GRAD,y.b_1@GRAD)\n"
                                   "mul_grad(y.0,y.w_1,y.mul_1@GRAD -> y.0@GRAD,y.w_1@GRAD)\n"
                                   "sigmoid_grad(y.0,y.0@GRAD -> y.add_0@GRAD)\n"
                                   "elementwise_add_grad(y.mul_0,y.b_0,y.add_0@GRAD -> y.mul_0@GRAD,y.b_0@GRAD)\n"
                                   "mul_grad(y.in,y.w_0,y.mul_0@GRAD -> y.in@GRAD,y.w_0@GRAD)\n"
                                   "concat_grad(e,dense,y.in@GRAD -> e@GRAD,@EMPTY@)\n"
                                   "concat_grad(e.C1,e.C2,e@GRAD -> e.C1@GRAD,e.C2@GRAD)\n"
                                   "sequence_pool_grad(e.C2.rows,e.C2@GRAD -> e.C2.rows@GRAD)\n"
                                   "lookup_table_grad(C2,t,e.C2.rows@GRAD -> t@GRAD@RENAME@block0@0)\n"
                                   "sequence_pool_grad(e.C1.rows,e.C1@GRAD -> e.C1.rows@GRAD)\n"
                                   "lookup_table_grad(C1,t,e.C1.rows@GRAD -> t@GRAD@RENAME@block0@1)\n"
                                   "sum(t@GRAD@RENAME@block0@0,t@GRAD@RENAME@block0@1 -> t@GRAD)\n"
                                   "sparse_table_push(t,t@GRAD,learning_rate_0 -> t)\n"
                                   "sgd(y.b_0,y.b_0@GRAD,learning_rate_0 -> y.b_0)\n"
                                   "sgd(y.b_1,y.b_1@GRAD,learning_rate_0 -> y.b_1)\n"
                                   "sgd(y.w_0,y.w_0@GRAD,learning_rate_0 -> y.w_0)\n"
                                   "sgd(y.w_1,y.w_1@GRAD,learning_rate_0 -> y.w_1)\n");
  EXPECT_EQ(Show(model->startup),
            "create_sparse_table( -> t)\n"
            "uniform_random( -> y.w_0)\n"
            "fill_constant( -> y.b_0)\n"
            "uniform_random( -> y.w_1)\n"
            "fill_constant( -> y.b_1)\n"
            "fill_constant( -> learning_rate_0)\n");
  EXPECT_EQ(model->loss, "loss");
  EXPECT_EQ(model->prediction, "y");
  EXPECT_EQ(model->label, "label");
  EXPECT_THAT(model->feeds, ElementsAre("dense", "C1", "C2"));
}

TEST(ModelCompilerTest, DeclaresVariables) {
  const Result<CompiledModel> model = CompileText(kSmall);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const VarDesc* table = FindVar(model->main, "t");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->type().type(), VarType::SPARSE_TABLE);
  EXPECT_TRUE(table->persistable());
  ASSERT_EQ(table->attrs_size(), 1);
  EXPECT_EQ(table->attrs(0).s(), "name: \"t\" dim: 2 init { uniform: 0.01 } optimizer { sgd { lr: 0.5 } }");
  const VarDesc* gradient = FindVar(model->main, "t@GRAD");
  ASSERT_NE(gradient, nullptr);
  EXPECT_EQ(gradient->type().type(), VarType::SELECTED_ROWS);
  const VarDesc* weight = FindVar(model->startup, "y.w_0");
  ASSERT_NE(weight, nullptr);
  EXPECT_TRUE(weight->is_parameter() && weight->persistable());
  EXPECT_THAT(weight->type().lod_tensor().tensor().dims(), ElementsAre(17, 3));
  const OpDesc* init = FindWriter(model->startup, "y.w_0");
  ASSERT_NE(init, nullptr);
  EXPECT_NEAR(FindAttr(*init, "max")->f(), 0.5477226f, 1e-6) << "sqrt(6 / (17 + 3))";
  EXPECT_TRUE(FindVar(model->main, "dense")->stop_gradient());
}

TEST(ModelCompilerTest, DenseTablesAreParametersWithPaddlesAccumulators) {
  const Result<CompiledModel> model = CompileText(
      "table { name: 't' dim: 2 vocabulary: 100 padding_idx: 0 optimizer { adam { lr: 0.25 } } } "
      "layer { name: 'e' embedding { slots: 'C1' table: 't' } } "
      "layer { name: 'y' fc { in: 'e' units: 1 bias: false } } "
      "loss { kind: SIGMOID_CROSS_ENTROPY in: 'y' label: 'label' } "
      "optimizer { ftrl { alpha: 0.5 } }");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(Show(model->startup),
            "uniform_random( -> t)\n"
            "uniform_random( -> y.w_0)\n"
            "fill_constant( -> learning_rate_t)\n"
            "fill_constant( -> t_moment1_0)\n"
            "fill_constant( -> t_moment2_0)\n"
            "fill_constant( -> t_beta1_pow_acc_0)\n"
            "fill_constant( -> t_beta2_pow_acc_0)\n"
            "fill_constant( -> learning_rate_0)\n"
            "fill_constant( -> y.w_0_squared_0)\n"
            "fill_constant( -> y.w_0_linear_0)\n");
  EXPECT_EQ(model->prediction, "prediction");
  EXPECT_EQ(FindAttr(*FindWriter(model->main, "e.C1.rows"), "padding_idx")->i(), 0);
  EXPECT_FLOAT_EQ(FindAttr(*FindWriter(model->startup, "learning_rate_t"), "value")->f(), 0.25f);
  EXPECT_FLOAT_EQ(FindAttr(*FindWriter(model->startup, "t_beta2_pow_acc_0"), "value")->f(), 0.999f);
}

TEST(ModelCompilerTest, AScheduleIsAnOperatorOfTheProgram) {
  const Result<CompiledModel> model = CompileText(
      "layer { name: 'y' fc { in: 'dense' units: 1 } } "
      "loss { kind: SQUARED_ERROR in: 'y' label: 'label' } "
      "optimizer { sgd { lr: 0.5 } schedule { warmup_steps: 10 } }");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const OpDesc* rate = FindWriter(model->main, "learning_rate_0");
  ASSERT_NE(rate, nullptr);
  EXPECT_EQ(rate->type(), "learning_rate_schedule");
  EXPECT_EQ(FindAttr(*rate, "schedule")->s(), "warmup_steps: 10");
  EXPECT_FALSE(FindVar(model->main, "learning_rate_0")->persistable());
  EXPECT_EQ(FindWriter(model->startup, "learning_rate_0"), nullptr);
}

TEST(ModelCompilerTest, DropoutIsOffInTheTestProgram) {
  const Result<CompiledModel> model = CompileText(
      "layer { name: 'd' dropout { in: 'dense' prob: 0.25 } } layer { name: 'y' fc { in: 'd' units: 1 } } "
      "loss { kind: SQUARED_ERROR in: 'y' label: 'label' l2: 0.5 } optimizer { sgd {} }");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_FALSE(FindAttr(*FindWriter(model->main, "d"), "is_test")->b());
  EXPECT_TRUE(FindAttr(*FindWriter(model->test, "d"), "is_test")->b());
  EXPECT_EQ(FindWriter(model->main, "loss")->type(), "elementwise_add") << "the mean and the penalty";
}

TEST(ModelCompilerTest, AnyOperatorMayBeALayer) {
  const Result<CompiledModel> model = CompileText(
      "layer { name: 's' op { type: 'scale' inputs { name: 'X' vars: 'dense' } attrs { name: 'scale' f: 2 } "
      "attrs { name: 'bias' i: 1 } } } layer { name: 'y' fc { in: 's' units: 1 } } "
      "loss { kind: SQUARED_ERROR in: 'y' label: 'label' } optimizer { sgd {} }");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const OpDesc* op = FindWriter(model->main, "s");
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->type(), "scale");
  EXPECT_FLOAT_EQ(FindAttr(*op, "scale")->f(), 2);
  EXPECT_FLOAT_EQ(FindAttr(*op, "bias")->f(), 1);
}

TEST(ModelCompilerTest, SlotsOfATableMayHaveRowsOfTheirOwn) {
  const Result<CompiledModel> model = CompileText(
      "table { name: 't' dim: 1 key: SLOT_AND_ID } "
      "layer { name: 'e' embedding { slots: 'C1..C2' table: 't' } } layer { name: 'y' reduce_sum { in: 'e' } } "
      "loss { kind: SIGMOID_CROSS_ENTROPY in: 'y' label: 'label' } optimizer { sgd {} }");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const OpDesc::Attr* first = FindAttr(*FindWriter(model->main, "e.C1.rows"), "slot_salt");
  const OpDesc::Attr* second = FindAttr(*FindWriter(model->main, "e.C2.rows"), "slot_salt");
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_NE(first->l(), 0);
  EXPECT_NE(first->l(), second->l());
}

// The sample job of the architecture, as its authors wrote it.
TEST(ModelCompilerTest, CompilesWideAndDeepWithDefaults) {
  const TrainerDesc job = ReadJob("wide_deep");
  const Result<CompiledModel> model = CompileModel(job.model(), ClickSlots(), BuiltinOps());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  ASSERT_EQ(model->tables.size(), 2u);
  EXPECT_TRUE(model->tables[0].optimizer().has_ftrl());
  ASSERT_EQ(model->metrics.size(), 2u);
  EXPECT_EQ(model->metrics[0].prediction, "y");
  EXPECT_EQ(model->metrics[0].label, "label");
  EXPECT_EQ(model->feeds.size(), 27u);
}

TEST(ModelCompilerTest, AStopEndsIt) {
  const TrainerDesc job = ReadJob("wide_deep");
  std::vector<ConfigMistake> mistakes;
  std::stop_source stop;
  const auto compile = [&] {
    return CompileModel(job.model(), ClickSlots(), BuiltinOps(), ModelParts::Builtin(), ModelForm::kPaddle, &mistakes,
                        stop.get_token());
  };
  ASSERT_TRUE(compile().ok());
  stop.request_stop();
  EXPECT_EQ(compile().status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace millrace
