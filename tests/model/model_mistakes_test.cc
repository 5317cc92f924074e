// Every mistake of a model comes back at once, with the layer's name and the nearest name.
#include <gtest/gtest.h>

#include "job_files.h"

namespace millrace {
namespace {

constexpr const char* kEnd =
    " loss { kind: SIGMOID_CROSS_ENTROPY in: 'y' label: 'label' } optimizer { sgd { lr: 0.1 } }";

struct MistakeCase {
  const char* name;
  const char* model;  // without loss and optimizer when it has none
  const char* message;
};

const MistakeCase kMistakes[] = {
    {"UnknownInput", "layer { name: 'y' fc { in: 'dens' units: 1 } }",
     "layer \"y\": in: no layer or slot \"dens\"; did you mean \"dense\"?"},
    {"LaterLayer", "layer { name: 'y' fc { in: 'h' units: 1 } } layer { name: 'h' fc { in: 'dense' units: 4 } }",
     "layer \"y\": in: layer \"h\" comes later; put it before this one"},
    {"SparseSlotAsInput", "layer { name: 'y' fc { in: 'C1' units: 1 } }",
     "layer \"y\": in: slot \"C1\" is sparse; it becomes a vector through an embedding layer"},
    {"IdSlotAsInput", "layer { name: 'y' fc { in: 'label' units: 1 } }",
     "layer \"y\": in: slot \"label\" holds ids; a layer reads floats (type: \"float\") or an embedding of them"},
    {"UnknownTable", "table { name: 'wide' dim: 1 } layer { name: 'y' embedding { slots: 'C1' table: 'wid' } }",
     "layer \"y\": table: no table \"wid\"; did you mean \"wide\"?"},
    {"UnknownSlot", "table { name: 't' dim: 1 } layer { name: 'y' embedding { slots: 'C1..C27' table: 't' } }",
     "layer \"y\": slots: no slot \"C27\"; did you mean \"C2\"?"},
    {"EmbeddingOfFloats", "table { name: 't' dim: 1 } layer { name: 'y' embedding { slots: 'dense' table: 't' } }",
     "layer \"y\": slots: slot \"dense\" holds floats; an embedding looks up ids (type: \"uint64\")"},
    {"ManyAtOnce",
     "table { name: 't' dim: 0 } layer { name: 'h' fc { in: 'dense' } } layer { name: 'h' add { in: 'dense' } } "
     "layer { name: 'y' fc { in: 'h' units: -1 } }",
     "table \"t\": dim must be at least 1, not 0\n"
     "layer \"h\": units: an fc layer needs units, its number of outputs: units: 64\n"
     "layer \"h\": name: layer \"h\" is there already\n"
     "layer \"h\": in: the layer needs two inputs or more: in: [\"a\", \"b\"]\n"
     "layer \"y\": fc: units must be at least 1, not -1"},
    {"SizesThatDoNotFit",
     "layer { name: 'a' fc { in: 'dense' units: 3 } } layer { name: 'b' fc { in: 'dense' units: 2 } } "
     "layer { name: 'y' add { in: ['a', 'b'] } }",
     "layer \"y\": in: shapes differ: \"a\" is [-1, 3], \"b\" is [-1, 2]"},
    {"FmWithoutDim", "layer { name: 'y' fm { in: 'dense' } }",
     "layer \"y\": in: \"dense\" is no embedding layer, so say the floats per slot: dim: ..."},
    {"FmWithWrongDim", "layer { name: 'y' fm { in: 'dense' dim: 4 } }",
     "layer \"y\": dim must divide the 13 columns of \"dense\", not 4"},
    {"NameOfASlot",
     "layer { name: 'dense' fc { in: 'dense' units: 1 } } layer { name: 'y' fc { in: 'dense' units: 1 } }",
     "layer \"dense\": name: \"dense\" is the name of a slot; choose another for the layer"},
    {"ReservedName",
     "layer { name: 'loss' fc { in: 'dense' units: 1 } } layer { name: 'y' fc { in: 'dense' units: 1 } }",
     "layer \"loss\": name: \"loss\" is the name of a variable of the loss; choose another for the layer"},
    {"NoKind", "layer { name: 'y' }",
     "layer \"y\": kind: a layer needs a kind: embedding, fc, concat, fm, cross, add, reduce_sum, activation, dropout, "
     "op, "
     "custom, "
     "mixture, "},
    {"DropoutProbability",
     "layer { name: 'd' dropout { in: 'dense' prob: 1 } } layer { name: 'y' fc { in: 'd' units: 1 } }",
     "layer \"d\": dropout: prob must be in [0, 1), not 1"},
    {"UnknownOperator", "layer { name: 'y' op { type: 'reluu' inputs { name: 'X' vars: 'dense' } } }",
     "layer \"y\": type: no operator \"reluu\"; did you mean \"relu\"?"},
    {"UnknownOperatorInput", "layer { name: 'y' op { type: 'scale' inputs { name: 'Xs' vars: 'dense' } } }",
     "layer \"y\": inputs: operator \"scale\" has no input \"Xs\""},
    {"UnknownAttribute",
     "layer { name: 'y' op { type: 'scale' inputs { name: 'X' vars: 'dense' } attrs { name: 'scal' f: 2 } } }",
     "layer \"y\": attrs: operator \"scale\" has no attribute \"scal\"; did you mean \"scale\"?"},
    {"AttributeOfAnotherType",
     "layer { name: 'y' op { type: 'scale' inputs { name: 'X' vars: 'dense' } attrs { name: 'scale' s: '2' } } }",
     "layer \"y\": attrs: attribute \"scale\" of \"scale\" is written in the field f"},
    {"OperatorThatGivesNoTensor", "layer { name: 'y' op { type: 'create_sparse_table' } }", "layer \"y\": "},
    {"ClassOfADenseTable",
     "table { name: 't' dim: 1 vocabulary: 9 class_name: 'HashTable' } layer { name: 'y' embedding { slots: 'C1' "
     "table: 't' } }",
     "table \"t\": class_name is for tables that grow; leave out it or vocabulary"},
    {"ParameterBeyondAnyMachine",
     "table { name: 't' dim: 16 vocabulary: 4611686018427387904 } layer { name: 'y' embedding { slots: 'C1' table: 't' "
     "} }",
     "table \"t\": no machine holds its parameter \"t\" of [4611686018427387904, 16]"},
    {"TableWithTheNameOfASlot", "table { name: 'C1' dim: 1 } layer { name: 'y' embedding { slots: 'C1' table: 'C1' } }",
     "table \"C1\": has the name of another variable; rename it"},
    {"SlotWithTheNameOfATableThatIsReadAlready",
     "table { name: 'C1' dim: 1 } layer { name: 'x' embedding { slots: 'C2' table: 'C1' } } "
     "layer { name: 'y' embedding { slots: 'C1' table: 'C1' } }",
     "layer \"y\": slots: slot \"C1\" has the name of another variable; rename one of them"},
    {"XavierOfAHashTable",
     "table { name: 't' dim: 1 init { xavier: true } } layer { name: 'y' embedding { slots: 'C1' table: 't' } }",
     "table \"t\": init: xavier needs a vocabulary: a table that grows has no size; use uniform or normal"},
    {"OptimizerWithoutARuleIsOfferedAll",
     "table { name: 't' dim: 1 optimizer {} } layer { name: 'y' embedding { slots: 'C1' table: 't' } }",
     "table \"t\": optimizer: rule: an optimizer needs a rule: sgd, adagrad, adam, ftrl, momentum, rmsprop, "
     "decayed_adagrad, "
     "lars_momentum, adadelta, adamax, lamb or custom, as in optimizer { adagrad { lr: 0.01 } }"},
    {"TwoColumnsForALogit", "layer { name: 'y' fc { in: 'dense' units: 2 } }",
     "loss: in: SIGMOID_CROSS_ENTROPY wants [batch, 1], but \"y\" is [-1, 2]; use CROSS_ENTROPY for two classes"},
};

class ModelMistakesTest : public ::testing::TestWithParam<MistakeCase> {};

TEST_P(ModelMistakesTest, IsReported) {
  const Result<CompiledModel> model = CompileText(std::string(GetParam().model) + kEnd);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), StatusCode::kInvalidConfig);
  const std::string message = model.status().message();
  EXPECT_EQ(message.substr(0, std::string(GetParam().message).size()), GetParam().message) << message;
}

INSTANTIATE_TEST_SUITE_P(Cases, ModelMistakesTest, ::testing::ValuesIn(kMistakes),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(ModelMistakesOfTheEndTest, LossMetricsAndOptimizers) {
  const Result<CompiledModel> model = CompileText(
      "table { name: 't' dim: 2 optimizer { adam { lr: 0 beta1: 1 } schedule { cosine { decay_steps: 0 } } } } "
      "layer { name: 'y' fc { in: 'dense' units: 1 } } "
      "loss { kind: LOG_LOSS in: 'z' label: 'C1' l2: -1 } "
      "metric { kind: GAUC } metric { kind: AUC in: 'yy' }");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().message(),
            "model: optimizer: the model has no optimizer; add, for example, optimizer { adagrad { lr: 0.01 } }\n"
            "table \"t\": optimizer: adam: lr must be above 0, not 0\n"
            "table \"t\": optimizer: adam: beta1 must be in [0, 1), not 1\n"
            "table \"t\": optimizer: schedule: cosine: decay_steps must be at least 1, not 0\n"
            "loss: l2 must not be negative, not -1\n"
            "loss: in: no layer or slot \"z\"\n"
            "loss: label: slot \"C1\" must have one value an example; set is_dense: true and shape: [-1, 1]\n"
            "metric GAUC: group: GAUC needs a group, the slot whose first id groups examples: group: \"user\"\n"
            "metric AUC: in: no layer or slot \"yy\"; did you mean \"y\"?");
}

TEST(ModelMistakesOfTheEndTest, MetricsReadAFloatAndALabelOfEveryInstance) {
  const Result<CompiledModel> model = CompileText(
      "layer { name: 'y' fc { in: 'dense' units: 1 } } "
      "layer { name: 'whole' op { type: 'cast' inputs { name: 'X' vars: 'y' } attrs { name: 'out_dtype' i: 0 } } } "
      "loss { kind: SIGMOID_CROSS_ENTROPY in: 'y' label: 'label' } optimizer { sgd { lr: 0.1 } } "
      "metric { kind: AUC in: 'whole' } metric { kind: MAE label: 'C1' }");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().message(),
            "metric AUC: in: \"whole\" does not hold floats\n"
            "metric MAE: label: slot \"C1\" must have one value an example; set is_dense: true and shape: [-1, 1]");
}

TEST(ModelMistakesOfTheEndTest, LambLeavesTheDecayOutForParametersThatItMoves) {
  const Result<CompiledModel> model = CompileText(
      "table { name: 'deep' dim: 1 vocabulary: 9 optimizer { lamb { without_decay: ['deep', 'depe', 'fc_0.b_0'] } } } "
      "table { name: 'wide' dim: 1 vocabulary: 9 } "
      "layer { name: 'e' embedding { slots: 'C1' table: 'deep' } } "
      "layer { name: 'f' embedding { slots: 'C1' table: 'wide' } } "
      "layer { name: 'y' fc { in: ['e', 'f'] units: 1 } } "
      "loss { kind: SIGMOID_CROSS_ENTROPY in: 'y' label: 'label' } "
      "optimizer { lamb { without_decay: ['y.b_0', 'widde', 'deep', 'dense'] } }");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().message(),
            "optimizer: lamb: without_decay: moves no parameter \"widde\"; did you mean \"wide\"?\n"
            "optimizer: lamb: without_decay: moves no parameter \"deep\"\n"
            "optimizer: lamb: without_decay: moves no parameter \"dense\"\n"
            "table \"deep\": optimizer: lamb: without_decay: moves no parameter \"depe\"; did you mean \"deep\"?\n"
            "table \"deep\": optimizer: lamb: without_decay: moves no parameter \"fc_0.b_0\"");
}

TEST(ModelMistakesOfTheEndTest, NothingAtAll) {
  const Result<CompiledModel> model = CompileText("");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().message(),
            "model: optimizer: the model has no optimizer; add, for example, optimizer { adagrad { lr: 0.01 } }\n"
            "model: layer: the model has no layers\n"
            "model: loss: the model has no loss: loss { kind: LOG_LOSS in: \"...\" label: \"...\" }");
}

}  // namespace
}  // namespace millrace
