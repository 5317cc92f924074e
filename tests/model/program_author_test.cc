// Programs that are written operator by operator: what each call refuses, and that nothing is left behind.
#include "model/program_author.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "framework/executable.h"
#include "job_files.h"

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
  EXPECT_EQ(Types(author->ForTest()), (std::vector<std::string>{"mul", "mean"}));
  EXPECT_TRUE(Executable::Compile(author->main(), BuiltinOps(), {}).ok());
  EXPECT_EQ(author->Minimize("loss", FromText<OptimizerDesc>("sgd {}")).status().message(),
            "minimize was called already: a program has one loss");
}

TEST(ProgramAuthorTest, MomentumKeepsAVelocityForEachParameter) {
  const auto author = NewAuthor();
  AuthorMean(*author);
  const auto rule = FromText<OptimizerDesc>("momentum { lr: 0.5 mu: 0.75 use_nesterov: true l2: 0.125 }");
  ASSERT_TRUE(author->Minimize("loss", rule).ok());
  const OpDesc& update = author->main().blocks(0).ops(5);
  EXPECT_EQ(update.type(), "momentum");
  EXPECT_EQ(InputArguments(update, "Velocity"), std::vector<std::string>{"w_velocity_0"});
  EXPECT_EQ(OutputArguments(update, "VelocityOut"), std::vector<std::string>{"w_velocity_0"});
  EXPECT_EQ(FindAttr(update, "mu")->f(), 0.75F);
  EXPECT_TRUE(FindAttr(update, "use_nesterov")->b());
  EXPECT_EQ(FindAttr(update, "regularization_coeff")->f(), 0.125F);
  EXPECT_TRUE(Executable::Compile(author->main(), BuiltinOps(), {}).ok());

  const auto growing = NewAuthor();
  ASSERT_TRUE(growing->AddTable(FromText<TableDesc>("name: 't' dim: 2")).ok());
  AuthorMean(*growing);
  EXPECT_EQ(
      growing->Minimize("loss", rule).status().message(),
      "table \"t\": optimizer: momentum moves every row at each step, which a table that grows cannot do; give the "
      "table a rule of its own, or a vocabulary");
}

TEST(ProgramAuthorTest, AFailedMinimizeLeavesTheProgramsAsTheyWere) {
  const auto author = NewAuthor();
  AuthorMean(*author);
  const std::string main = author->main().SerializeAsString();
  const std::string startup = author->startup().SerializeAsString();
  EXPECT_EQ(author->Minimize("loss", FromText<OptimizerDesc>("sgd { lr: -1 }")).status().message(),
            "optimizer: sgd: lr: must be positive; -1.000000");
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
            "table \"none\": dim: must be at least 1; 0");
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

}  // namespace
}  // namespace millrace
