// Programs that are written operator by operator: what each call refuses, and that nothing is left behind.
#include "model/program_author.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "job_files.h"
#include "runtime/executable.h"

namespace millrace {
namespace {

std::unique_ptr<ProgramAuthor> NewAuthor() { return std::move(ProgramAuthor::Create(BuiltinOps())).value(); }

VarMeta FloatRows(int64_t columns) {
  VarMeta meta;
  meta.dims = {-1, columns};
  return meta;
}

Initializer Zero() {
  Initializer init;
  init.set_constant(0);
  return init;
}

template <class Message>
Message FromText(const char* text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

/// loss = mean(x w), over x [batch, 2].
void AuthorMean(ProgramAuthor& author) {
  ASSERT_TRUE(author.AddData("x", FloatRows(2)).ok());
  ASSERT_TRUE(author.AddParameter("w", {2, 1}, Zero(), true).ok());
  ASSERT_TRUE(author.Append(MakeOp("mul", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"xw"}}})).ok());
  ASSERT_TRUE(author.Append(MakeOp("mean", {{"X", {"xw"}}}, {{"Out", {"loss"}}})).ok());
}

std::vector<std::string> Types(const ProgramDesc& program) {
  std::vector<std::string> types;
  for (const OpDesc& op : program.blocks(0).ops()) types.push_back(op.type());
  return types;
}

TEST(ProgramAuthorTest, MinimizeAppendsWhatTheCompilerAppends) {
  const auto author = NewAuthor();
  AuthorMean(*author);
  const auto made = author->Minimize("loss", FromText<OptimizerDesc>("adagrad { lr: 0.5 }"));
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  ASSERT_EQ(made->size(), 1U);
  EXPECT_EQ((*made)[0].param, "w");
  EXPECT_EQ(Types(author->main()),
            (std::vector<std::string>{"mul", "mean", "fill_constant", "mean_grad", "mul_grad", "adagrad"}));
  EXPECT_EQ(Types(author->startup()),
            (std::vector<std::string>{"fill_constant", "fill_constant", "fill_constant"}));  // w, rate, moment
  EXPECT_EQ(Types(CloneForTest(author->main())), (std::vector<std::string>{"mul", "mean"}));
  EXPECT_TRUE(Executable::Compile(author->main(), BuiltinOps(), {}).ok());
  EXPECT_EQ(
      author->Minimize("loss", FromText<OptimizerDesc>("sgd {}")).status().message(),
      "minimize was called already: a program has one; a part has a rate of its own by ParamAttr(learning_rate=), "
      "a table a rule of its own by embedding(optimizer=)");
}

/// counter = 0; go_on: whether it is below a bound; a block that is open.
void BeginLoop(ProgramAuthor& author) {
  const auto fill = [&](const char* name) {
    return MakeOp("fill_constant", {}, {{"Out", {name}}}, {{"shape", std::vector<int64_t>{1}}, {"value", 0.0f}});
  };
  ASSERT_TRUE(author.Append(fill("counter")).ok());
  ASSERT_TRUE(author.Append(fill("bound")).ok());
  ASSERT_TRUE(author.Append(MakeOp("less_than", {{"X", {"counter"}}, {"Y", {"bound"}}}, {{"Out", {"go_on"}}})).ok());
  ASSERT_TRUE(author.BeginBlock().ok());
}

TEST(ProgramAuthorTest, ALoopKnowsWhatItsBlockReadsAndWrites) {
  const auto author = NewAuthor();
  BeginLoop(*author);
  ASSERT_TRUE(author->AddData("x", FloatRows(2)).ok());
  ASSERT_TRUE(author->AddParameter("w", {2, 1}, Zero(), true).ok());
  ASSERT_TRUE(author->Append(MakeOp("mul", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"xw"}}})).ok());
  EXPECT_EQ(author->EndBlock(MakeOp("while", {{"Condition", {"go_on"}}}, {})).message(),
            "while: nothing in its block writes the condition \"go_on\", so that it would never end; write it at the "
            "end of the block: less_than(x, y, cond=...)");
  ASSERT_TRUE(author->Append(MakeOp("less_than", {{"X", {"counter"}}, {"Y", {"bound"}}}, {{"Out", {"go_on"}}})).ok());
  ASSERT_TRUE(author->EndBlock(MakeOp("while", {{"Condition", {"go_on"}}}, {}), {"xw"}).ok());
  const OpDesc& loop = author->main().blocks(0).ops(3);
  EXPECT_EQ(InputArguments(loop, "X"), (std::vector<std::string>{"bound", "counter", "w", "x"}));
  EXPECT_EQ(OutputArguments(loop, "Out"), (std::vector<std::string>{"go_on", "xw"}));
  EXPECT_EQ(FindAttr(loop, "sub_block")->block_idx(), 1);
  EXPECT_EQ(author->main().blocks(1).parent_idx(), 0);
  EXPECT_EQ(author->main().blocks(1).vars_size(), 0);  // xw went out, the others are of the first block
  EXPECT_EQ(author->Parameters(), std::vector<std::string>{"w"});
  EXPECT_TRUE(author->Append(MakeOp("mean", {{"X", {"xw"}}}, {{"Out", {"loss"}}})).ok());
  EXPECT_TRUE(Executable::Compile(author->main(), BuiltinOps(), {}).ok());
}

TEST(ProgramAuthorTest, ABlockIsTakenBackWithWhatWasAddedSince) {
  const auto author = NewAuthor();
  AuthorMean(*author);
  BeginLoop(*author);
  ASSERT_TRUE(author->AddParameter("v", {2, 1}, Zero(), true).ok());
  ASSERT_TRUE(author->BeginBlock().ok());
  ASSERT_TRUE(author->Append(MakeOp("mul", {{"X", {"x"}}, {"Y", {"v"}}}, {{"Out", {"xv"}}})).ok());
  ASSERT_TRUE(
      author->EndBlock(MakeOp("conditional_block", {{"Cond", {"go_on"}}}, {}, {{"is_scalar_condition", true}})).ok());
  EXPECT_EQ(
      author->Append(MakeOp("mean", {{"X", {"xv"}}}, {{"Out", {"m"}}})).message(),
      "mean: \"xv\" is a variable of a block that has ended; within the block, write what is needed behind it to a "
      "variable from before it");
  ASSERT_TRUE(author->DropBlock().ok());
  EXPECT_EQ(author->main().blocks_size(), 1);
  EXPECT_EQ(author->Parameters(), std::vector<std::string>{"w"});
  EXPECT_FALSE(author->Find("xv").ok());
  EXPECT_TRUE(author->AddParameter("v", {3, 1}, Zero(), true).ok());
  ASSERT_TRUE(author->Minimize("loss", FromText<OptimizerDesc>("sgd {}")).ok());
  EXPECT_TRUE(Executable::Compile(author->main(), BuiltinOps(), {}).ok());
}

TEST(ProgramAuthorTest, MinimizeWithinABlockTrainsThere) {
  const auto author = NewAuthor();
  ASSERT_TRUE(author->AddData("x", FloatRows(2)).ok());
  BeginLoop(*author);
  ASSERT_TRUE(author->AddParameter("w", {2, 1}, Zero(), true).ok());
  ASSERT_TRUE(author->Append(MakeOp("mul", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"xw"}}})).ok());
  ASSERT_TRUE(author->Append(MakeOp("mean", {{"X", {"xw"}}}, {{"Out", {"loss"}}})).ok());
  EXPECT_FALSE(author->Minimize("loss", FromText<OptimizerDesc>("sgd { lr: -1 }")).ok());
  EXPECT_EQ(author->main().blocks(1).ops_size(), 2);
  const auto made = author->Minimize("loss", FromText<OptimizerDesc>("adagrad { lr: 0.5 }"));
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_EQ((*made)[0].grad, "w@GRAD");
  ASSERT_TRUE(author->Append(MakeOp("less_than", {{"X", {"counter"}}, {"Y", {"bound"}}}, {{"Out", {"go_on"}}})).ok());
  ASSERT_TRUE(author->EndBlock(MakeOp("while", {{"Condition", {"go_on"}}}, {})).ok());
  std::vector<std::string> types;
  for (const OpDesc& op : author->main().blocks(1).ops()) types.push_back(op.type());
  EXPECT_EQ(types, (std::vector<std::string>{"mul", "mean", "fill_constant", "mean_grad", "mul_grad", "adagrad",
                                             "less_than"}));
  EXPECT_EQ(CloneForTest(author->main()).blocks(1).ops_size(), 3);
  EXPECT_TRUE(Executable::Compile(author->main(), BuiltinOps(), {}).ok());
}

TEST(ProgramAuthorTest, ABlockThatIsTakenBackLeavesNoRuleOrTableBehind) {
  const auto author = NewAuthor();
  BeginLoop(*author);
  ASSERT_TRUE(author->AddParameter("w", {2, 1}, Zero(), true).ok());
  ASSERT_TRUE(author->SetRule("w", FromText<ParameterRule>("rate: 0")).ok());
  ASSERT_TRUE(author->AddTable(FromText<TableDesc>("name: 't' dim: 2")).ok());
  ASSERT_TRUE(author->DropBlock().ok());
  AuthorMean(*author);
  EXPECT_TRUE(author->SetRule("w", FromText<ParameterRule>("rate: 2")).ok());
  VarMeta ids;
  ids.dtype = DType::kInt64;
  ids.dims = {-1, 1};
  ids.lod_level = 1;
  ASSERT_TRUE(author->AddData("ids", ids).ok());
  ASSERT_TRUE(author->AddTable(FromText<TableDesc>("name: 't' dim: 3")).ok());
  const Status looked = author->LookUp("ids", "t", "rows");
  ASSERT_TRUE(looked.ok()) << looked.ToString();
  EXPECT_EQ(author->Parameters(), (std::vector<std::string>{"w", "t"}));
}

TEST(ProgramAuthorTest, AnInnerBlockThatIsTakenBackLeavesNothingInTheOneAroundIt) {
  const auto author = NewAuthor();
  BeginLoop(*author);
  const auto compare = MakeOp("less_than", {{"X", {"counter"}}, {"Y", {"bound"}}}, {{"Out", {"go_on"}}});
  ASSERT_TRUE(author->BeginBlock().ok());
  ASSERT_TRUE(author->Append(compare).ok());
  EXPECT_FALSE(author->EndBlock(MakeOp("while", {{"Condition", {"counter"}}}, {})).ok());
  ASSERT_TRUE(author->DropBlock().ok());
  ASSERT_TRUE(author->BeginBlock().ok());
  ASSERT_TRUE(author->Append(compare).ok());
  // Refused by its operator, behind the declaration of what it writes.
  EXPECT_FALSE(author->EndBlock(MakeOp("while", {{"Condition", {"go_on"}}}, {}, {{"is_tes", true}})).ok());
  ASSERT_TRUE(author->DropBlock().ok());
  EXPECT_EQ(author->main().blocks(1).vars_size(), 0);
  ASSERT_TRUE(author->BeginBlock().ok());
  ASSERT_TRUE(author->Append(compare).ok());
  const Status inner = author->EndBlock(MakeOp("while", {{"Condition", {"go_on"}}}, {}));
  ASSERT_TRUE(inner.ok()) << inner.ToString();
  ASSERT_TRUE(author->EndBlock(MakeOp("while", {{"Condition", {"go_on"}}}, {})).ok());
  EXPECT_TRUE(Executable::Compile(author->main(), BuiltinOps(), {}).ok());
}

TEST(ProgramAuthorTest, AVariableOfABlockGetsNoGradientWhenItIsLeftOut) {
  const auto author = NewAuthor();
  ASSERT_TRUE(author->AddData("x", FloatRows(2)).ok());
  ASSERT_TRUE(author->AddParameter("w", {2, 2}, Zero(), true).ok());
  ASSERT_TRUE(author->AddParameter("v", {2, 1}, Zero(), true).ok());
  BeginLoop(*author);
  ASSERT_TRUE(author->Append(MakeOp("mul", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"h"}}})).ok());
  ASSERT_TRUE(author->BeginBlock().ok());
  ASSERT_TRUE(author->Append(MakeOp("scale", {{"X", {"x"}}}, {{"Out", {"twice"}}}, {{"scale", 2.0F}})).ok());
  ASSERT_TRUE(author->Append(MakeOp("mul", {{"X", {"twice"}}, {"Y", {"v"}}}, {{"Out", {"y"}}})).ok());
  ASSERT_TRUE(author->Append(MakeOp("mean", {{"X", {"y"}}}, {{"Out", {"loss"}}})).ok());
  const std::string before = author->main().SerializeAsString();
  // h is of the block between, y of the innermost.
  EXPECT_EQ(author->Minimize("loss", FromText<OptimizerDesc>("sgd {}"), {{}, {"h", "y"}}).status().message(),
            "loss \"loss\" depends on no parameter that can be trained");
  EXPECT_EQ(author->main().SerializeAsString(), before);
  EXPECT_TRUE(author->Minimize("loss", FromText<OptimizerDesc>("sgd {}"), {{}, {"h"}}).ok());
  EXPECT_TRUE(*author->StopsGradient("h"));
  EXPECT_FALSE(*author->StopsGradient("y"));
}

TEST(ProgramAuthorTest, StopGradientIsOfTheVariableThatCanBeReadNow) {
  const auto author = NewAuthor();
  BeginLoop(*author);
  const auto compare = [](const char* out) {
    return MakeOp("less_than", {{"X", {"counter"}}, {"Y", {"bound"}}}, {{"Out", {out}}});
  };
  ASSERT_TRUE(author->Append(MakeOp("scale", {{"X", {"counter"}}}, {{"Out", {"h"}}})).ok());
  ASSERT_TRUE(author->Append(compare("go_on")).ok());
  ASSERT_TRUE(author->EndBlock(MakeOp("while", {{"Condition", {"go_on"}}}, {})).ok());
  EXPECT_FALSE(*author->StopsGradient("h"));  // that of the block, as there is no other
  ASSERT_TRUE(author->Append(MakeOp("scale", {{"X", {"counter"}}}, {{"Out", {"h"}}})).ok());
  ASSERT_TRUE(author->SetStopGradient("h", true).ok());
  EXPECT_TRUE(*author->StopsGradient("h"));
  const auto stops = [&](int block) {
    for (const VarDesc& var : author->main().blocks(block).vars()) {
      if (var.name() == "h") return var.stop_gradient();
    }
    ADD_FAILURE() << "no h in block " << block;
    return false;
  };
  EXPECT_TRUE(stops(0));
  EXPECT_FALSE(stops(1));
}

TEST(ProgramAuthorTest, AVariableThatIsThereKeepsItsType) {
  const auto author = NewAuthor();
  AuthorMean(*author);
  EXPECT_EQ(author
                ->Append(MakeOp("cast", {{"X", {"x"}}}, {{"Out", {"xw"}}},
                                {{"in_dtype", int64_t{5}}, {"out_dtype", int64_t{3}}}))
                .message(),
            "cast: writes int64 [-1, 2] to \"xw\", which is float32 [-1, 1]");
  EXPECT_EQ(author->Append(MakeOp("assign", {{"X", {"x"}}}, {{"Out", {"xw"}}})).message(),
            "assign: writes float32 [-1, 2] to \"xw\", which is float32 [-1, 1]");
}

TEST(ProgramAuthorTest, GradientsEndWhereTheyAreToldTo) {
  const auto author = NewAuthor();
  AuthorMean(*author);
  ASSERT_TRUE(author->SetStopGradient("xw", true).ok());
  EXPECT_TRUE(*author->StopsGradient("xw"));
  EXPECT_FALSE(author->Minimize("loss", FromText<OptimizerDesc>("sgd {}")).ok());
  ASSERT_TRUE(author->SetStopGradient("xw", false).ok());
  ASSERT_TRUE(author->Minimize("loss", FromText<OptimizerDesc>("sgd {}")).ok());
  EXPECT_FALSE(author->SetStopGradient("xw", true).ok());
}

TEST(ProgramAuthorTest, AVariableThatIsWrittenTwiceHasNoGradient) {
  const auto author = NewAuthor();
  AuthorMean(*author);
  ASSERT_TRUE(author->Append(MakeOp("scale", {{"X", {"xw"}}}, {{"Out", {"doubled"}}}, {{"scale", 2.0f}})).ok());
  ASSERT_TRUE(author->Append(MakeOp("assign", {{"X", {"doubled"}}}, {{"Out", {"xw"}}})).ok());
  ASSERT_TRUE(author->Append(MakeOp("mean", {{"X", {"xw"}}}, {{"Out", {"other"}}})).ok());
  EXPECT_EQ(
      author->Minimize("other", FromText<OptimizerDesc>("sgd {}")).status().message(),
      "block 0 op[3] assign: writes \"xw\" again, which op[0] made, and the loss has no gradient through both; write "
      "to another variable");
}

TEST(ProgramAuthorTest, MomentumKeepsAVelocityForEachParameter) {
  const auto author = NewAuthor();
  AuthorMean(*author);
  const auto rule = FromText<OptimizerDesc>("momentum { lr: 0.5 mu: 0.75 use_nesterov: true }");
  ASSERT_TRUE(author->Minimize("loss", rule).ok());
  const OpDesc& update = author->main().blocks(0).ops(5);
  EXPECT_EQ(update.type(), "momentum");
  EXPECT_EQ(InputArguments(update, "Velocity"), std::vector<std::string>{"w_velocity_0"});
  EXPECT_EQ(OutputArguments(update, "VelocityOut"), std::vector<std::string>{"w_velocity_0"});
  EXPECT_EQ(FindAttr(update, "mu")->f(), 0.75F);
  EXPECT_TRUE(FindAttr(update, "use_nesterov")->b());
  EXPECT_TRUE(Executable::Compile(author->main(), BuiltinOps(), {}).ok());

  const auto growing = NewAuthor();
  ASSERT_TRUE(growing->AddTable(FromText<TableDesc>("name: 't' dim: 2")).ok());
  AuthorMean(*growing);
  EXPECT_EQ(
      growing->Minimize("loss", rule).status().message(),
      "table \"t\": optimizer: momentum moves every row at each step, which a table that grows cannot do; give the "
      "table sgd, adagrad, adam or ftrl, or a vocabulary");
}

TEST(ProgramAuthorTest, GradientsAreClippedThenPenalized) {
  const auto author = NewAuthor();
  AuthorMean(*author);
  const auto made = author->Minimize(
      "loss", FromText<OptimizerDesc>("sgd {} regularization { l1: 0.25 l2: 0.5 } clip { global_norm: 2 }"));
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_EQ((*made)[0].grad, "w@GRAD");
  const std::vector<std::string> types = Types(author->main());
  EXPECT_EQ(std::vector<std::string>(types.begin() + 5, types.end()),
            (std::vector<std::string>{"p_norm", "concat", "p_norm", "fill_constant", "elementwise_max",
                                      "elementwise_div", "elementwise_mul", "sign", "scale", "scale", "sum", "sgd"}));
  EXPECT_EQ(Types(CloneForTest(author->main())), (std::vector<std::string>{"mul", "mean"}));
  EXPECT_TRUE(Executable::Compile(author->main(), BuiltinOps(), {}).ok());
}

TEST(ProgramAuthorTest, WhatCannotBeDoneToGradientsIsSaid) {
  struct Wrong {
    const char* optimizer;
    const char* message;
  };
  constexpr Wrong kWrong[] = {
      {"sgd {} clip {}", "optimizer: clip: a clip needs value, norm or global_norm, as in clip { norm: 5 }"},
      {"sgd {} clip { norm: 0 }", "optimizer: clip: norm must be above 0, not 0"},
      {"sgd {} clip { global_norm: -1 }", "optimizer: clip: global_norm must be above 0, not -1"},
      {"sgd {} clip { value: 1 min_value: 2 }", "optimizer: clip: min_value must not be above value, 1; 2"},
      {"sgd {} regularization { l1: -1 }", "optimizer: regularization: l1 must not be negative, not -1"},
      {"rmsprop { momentum: 1 }", "optimizer: rmsprop: momentum must be in [0, 1), not 1"},
      {"decayed_adagrad { decay: 2 }", "optimizer: decayed_adagrad: decay must be in [0, 1), not 2"},
      {"lars_momentum { coefficient: 0 }", "optimizer: lars_momentum: coefficient must be above 0, not 0"}};
  const auto author = NewAuthor();
  AuthorMean(*author);
  for (const Wrong& mistake : kWrong) {
    EXPECT_EQ(author->Minimize("loss", FromText<OptimizerDesc>(mistake.optimizer)).status().message(), mistake.message);
  }
  EXPECT_EQ(author->SetRule("w", FromText<ParameterRule>("rate: -1")).message(),
            "parameter \"w\": rate must not be negative, not -1");
  EXPECT_EQ(author->SetRule("w", FromText<ParameterRule>("clip { global_norm: 1 }")).message(),
            "parameter \"w\": clip: global_norm is of all gradients; give it to the optimizer");
  EXPECT_TRUE(author->SetRule("w", FromText<ParameterRule>("rate: 2")).ok());
  EXPECT_EQ(author->SetRule("w", FromText<ParameterRule>("rate: 3")).message(),
            "parameter \"w\" has other rules already: rate: 2");
  EXPECT_EQ(author->Minimize("loss", FromText<OptimizerDesc>("sgd {}"), {{"lss"}, {}}).status().message(),
            "the program has no variable \"lss\"; did you mean \"loss\"?");

  const auto growing = NewAuthor();
  ASSERT_TRUE(growing->AddTable(FromText<TableDesc>("name: 't' dim: 2")).ok());
  AuthorMean(*growing);
  EXPECT_EQ(
      growing->Minimize("loss", FromText<OptimizerDesc>("rmsprop {}")).status().message(),
      "table \"t\": optimizer: rmsprop moves every row at each step, which a table that grows cannot do; give the "
      "table sgd, adagrad, adam or ftrl, or a vocabulary");
  const auto own = NewAuthor();
  ASSERT_TRUE(own->AddTable(FromText<TableDesc>("name: 't' dim: 2 optimizer { sgd {} clip { global_norm: 1 } }")).ok());
  AuthorMean(*own);
  EXPECT_EQ(own->Minimize("loss", FromText<OptimizerDesc>("sgd {}")).status().message(),
            "table \"t\": optimizer: clip: global_norm is of all gradients; it stands in the model's optimizer");
}

TEST(ProgramAuthorTest, AFailedMinimizeLeavesTheProgramsAsTheyWere) {
  const auto author = NewAuthor();
  AuthorMean(*author);
  const std::string main = author->main().SerializeAsString();
  const std::string startup = author->startup().SerializeAsString();
  EXPECT_EQ(author->Minimize("loss", FromText<OptimizerDesc>("sgd { lr: -1 }")).status().message(),
            "optimizer: sgd: lr must be above 0, not -1");
  EXPECT_EQ(author->Minimize("xw", FromText<OptimizerDesc>("sgd {}")).status().message(),
            "minimize: the loss must be one float; \"xw\" is [-1, 1]; take its mean first");
  EXPECT_EQ(author->Minimize("los", FromText<OptimizerDesc>("sgd {}")).status().message(),
            "the program has no variable \"los\"; did you mean \"loss\"?");
  EXPECT_EQ(author->main().SerializeAsString(), main);
  EXPECT_EQ(author->startup().SerializeAsString(), startup);
  EXPECT_TRUE(author->Minimize("loss", FromText<OptimizerDesc>("sgd {}")).ok());
}

TEST(ProgramAuthorTest, AnOperatorIsCheckedWhenItIsAppended) {
  const auto author = NewAuthor();
  AuthorMean(*author);
  const std::string main = author->main().SerializeAsString();
  EXPECT_EQ(author->Append(MakeOp("scale", {{"X", {"y"}}}, {{"Out", {"z"}}}, {{"scal", 2.0F}})).message(),
            "scale: input X: there is no variable \"y\"\n"
            "scale: attribute \"scal\" is not supported; did you mean \"scale\"?");
  EXPECT_EQ(author->Append(MakeOp("scal", {{"X", {"x"}}}, {{"Out", {"z"}}})).message(),
            "scal: no such operator; the nearest that is supported is \"scale\"");
  EXPECT_EQ(author->Append(MakeOp("mean_grad", {{"X", {"x"}}, {"Out@GRAD", {"x"}}}, {{"X@GRAD", {"z"}}})).message(),
            "mean_grad: gradients and updates are made by an optimizer's minimize");
  EXPECT_EQ(author->AddData("x", FloatRows(2)).message(), "data: there is a variable \"x\" already");
  EXPECT_EQ(author->AddData("n", FloatRows(-3)).message(), "data \"n\": a size is -1 (any) or positive; [-1, -3]");
  EXPECT_EQ(author->AddParameter("v", {2, 0}, Zero(), true).message(),
            "parameter \"v\": sizes must be positive; [2, 0]");
  EXPECT_EQ(author->main().SerializeAsString(), main);
}

TEST(ProgramAuthorTest, ATableTakesTheRuleOfMinimizeUnlessItHasItsOwn) {
  const auto author = NewAuthor();
  VarMeta ids;
  ids.dtype = DType::kInt64;
  ids.dims = {-1, 1};
  ids.lod_level = 1;
  ASSERT_TRUE(author->AddData("ids", ids).ok());
  const auto own = FromText<TableDesc>("name: 'own' dim: 2 optimizer { ftrl { l1: 1 } }");
  const auto plain = FromText<TableDesc>("name: 'plain' dim: 2");
  for (const TableDesc& table : {own, plain}) {
    ASSERT_TRUE(author->AddTable(table).ok());
    ASSERT_TRUE(author->AddTable(table).ok());
    ASSERT_TRUE(author->LookUp("ids", table.name(), "rows_" + table.name()).ok());
  }
  EXPECT_EQ(author->AddTable(FromText<TableDesc>("name: 'plain' dim: 3")).message(),
            "table \"plain\" is there already, as: name: \"plain\" dim: 2");
  EXPECT_EQ(author->AddTable(FromText<TableDesc>("name: 'none' dim: 0")).message(),
            "table \"none\": dim must be at least 1, not 0");
  ASSERT_TRUE(author->Append(MakeOp("sum", {{"X", {"rows_own", "rows_plain"}}}, {{"Out", {"rows"}}})).ok());
  ASSERT_TRUE(author->Append(MakeOp("mean", {{"X", {"rows"}}}, {{"Out", {"loss"}}})).ok());
  const auto made = author->Minimize("loss", FromText<OptimizerDesc>("adam { lr: 0.25 }"));
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  std::map<std::string, std::string> rules;
  for (const OpDesc& op : author->startup().blocks(0).ops()) {
    if (op.type() != "create_sparse_table") continue;
    const auto table = FromText<TableDesc>(FindAttr(op, "table")->s().c_str());
    rules[table.name()] = table.optimizer().ShortDebugString();
  }
  EXPECT_EQ(rules["own"], "ftrl { l1: 1 }");
  EXPECT_EQ(rules["plain"], "adam { lr: 0.25 }");
}

/// Looks ids up in a table "rows" that is described so, up to a loss.
std::unique_ptr<ProgramAuthor> AuthorLookup(const char* table) {
  auto author = NewAuthor();
  VarMeta ids;
  ids.dtype = DType::kInt64;
  ids.dims = {-1, 1};
  ids.lod_level = 1;
  EXPECT_TRUE(author->AddData("ids", ids).ok());
  EXPECT_TRUE(author->AddTable(FromText<TableDesc>(table)).ok());
  EXPECT_TRUE(author->LookUp("ids", "rows", "found").ok());
  EXPECT_TRUE(author->Append(MakeOp("mean", {{"X", {"found"}}}, {{"Out", {"loss"}}})).ok());
  return author;
}

TEST(ProgramAuthorTest, AMatrixThatIsSpreadIsATableThatGrows) {
  const auto author = AuthorLookup("name: 'rows' dim: 2 vocabulary: 598 padding_idx: 0 init { xavier: true }");
  const auto rule = FromText<OptimizerDesc>("adagrad { lr: 0.5 }");
  ASSERT_TRUE(author->Spread("rows", rule).value());
  EXPECT_FALSE(author->Spread("rows", rule).value());  // it is one already
  EXPECT_EQ(author->Find("rows")->kind, VarType::SPARSE_TABLE);
  ASSERT_TRUE(author->Minimize("loss", rule).ok());
  EXPECT_EQ(Types(author->startup()), (std::vector<std::string>{"create_sparse_table", "fill_constant"}));
  const OpDesc& make = author->startup().blocks(0).ops(0);
  // As a matrix of 600 sides would start: sqrt(6 / 600).
  EXPECT_EQ(FindAttr(make, "table")->s(),
            "name: \"rows\" dim: 2 init { uniform: 0.1 } optimizer { adagrad { lr: 0.5 } } padding_idx: 0");
  EXPECT_EQ(Types(author->main()).back(), "sparse_table_push");
  EXPECT_TRUE(Executable::Compile(author->main(), BuiltinOps(), {}).ok());
}

TEST(ProgramAuthorTest, AdamMovesOfAMatrixThatIsSpreadWhatABatchLooksUp) {
  const auto author = AuthorLookup("name: 'rows' dim: 2 vocabulary: 9");
  const auto rule = FromText<OptimizerDesc>("adam { lr: 0.5 lazy_mode: false }");
  ASSERT_TRUE(author->Spread("rows", rule).value());
  ASSERT_TRUE(author->Minimize("loss", rule).ok());
  const OpDesc& make = author->startup().blocks(0).ops(0);
  EXPECT_EQ(FindAttr(make, "table")->s(),
            "name: \"rows\" dim: 2 init { uniform: 0.01 } optimizer { adam { lr: 0.5 lazy_mode: true } }");
}

TEST(ProgramAuthorTest, AMatrixThatMustBeWholeIsNotSpread) {
  const auto rule = FromText<OptimizerDesc>("sgd { lr: 0.5 }");
  constexpr const char* kPlain = "name: 'rows' dim: 2 vocabulary: 9";
  const auto expect_whole = [](ProgramAuthor& author, const OptimizerDesc& optimizer) {
    const std::string before = author.main().SerializeAsString() + author.startup().SerializeAsString();
    const auto spread = author.Spread("rows", optimizer);
    ASSERT_TRUE(spread.ok()) << spread.status().ToString();
    EXPECT_FALSE(*spread);
    EXPECT_EQ(author.main().SerializeAsString() + author.startup().SerializeAsString(), before);
  };
  expect_whole(*AuthorLookup(kPlain), FromText<OptimizerDesc>("momentum { lr: 0.5 }"));
  expect_whole(*AuthorLookup("name: 'rows' dim: 2 vocabulary: 9 optimizer { momentum { lr: 0.5 } }"), rule);
  expect_whole(*AuthorLookup("name: 'rows' dim: 2 vocabulary: 9 out_of_range: ZERO"), rule);
  auto author = AuthorLookup(kPlain);
  ASSERT_TRUE(author->SetInitialValues("rows", std::vector<float>(18, 1.0f)).ok());
  expect_whole(*author, rule);
  author = AuthorLookup(kPlain);
  ASSERT_TRUE(author->SetStopGradient("rows", true).ok());
  expect_whole(*author, rule);
  author = AuthorLookup(kPlain);
  ASSERT_TRUE(author->SetRule("rows", FromText<ParameterRule>("regularization { l2: 0.1 }")).ok());
  expect_whole(*author, rule);
  author = AuthorLookup(kPlain);
  ASSERT_TRUE(author->Append(MakeOp("mean", {{"X", {"rows"}}}, {{"Out", {"all"}}})).ok());
  expect_whole(*author, rule);
  author = AuthorLookup(kPlain);
  ASSERT_TRUE(author->Minimize("loss", rule).ok());
  expect_whole(*author, rule);
}

}  // namespace
}  // namespace millrace
