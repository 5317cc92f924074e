#include "config/changed_fields.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "trainer_desc.pb.h"

namespace millrace {
namespace {

using testing::ElementsAre;

/// A line a change: "path: before -> now", with "!" in front of what may not be.
std::vector<std::string> Changes(const std::string& before, const std::string& now) {
  TrainerDesc was;
  TrainerDesc is;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(before, &was)) << before;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(now, &is)) << now;
  std::vector<std::string> lines;
  for (const ChangedField& field : ChangedJobFields(was, is)) {
    lines.push_back((field.may_change ? "" : "!") + field.path + ": " + field.before + " -> " + field.now);
  }
  return lines;
}

TEST(ChangedFields, ADefaultThatIsWrittenOutIsNoChange) {
  EXPECT_THAT(Changes("model { optimizer { adagrad {} } }", "epochs: 1 model { optimizer { adagrad { lr: 0.01 } } }"),
              ElementsAre());
  EXPECT_THAT(Changes("model { table { name: \"t\" dim: 2 } }", "model { table { name: \"t\" dim: 2 vocabulary: 5 } }"),
              ElementsAre("!model.table[t].vocabulary: (none) -> 5"));
}

TEST(ChangedFields, AnInitializerOrADimThatIsWrittenOutAsItsDefaultIsNoChange) {
  const std::string table = "table { name: \"t\" dim: 2 ";
  EXPECT_THAT(Changes("model { " + table + "} }", "model { " + table + "init { uniform: 0.01 } } }"), ElementsAre());
  EXPECT_THAT(Changes("model { " + table + "} }", "model { " + table + "init { uniform: 0.02 } } }"),
              ElementsAre("!model.table[t].init.uniform: 0.01 -> 0.02"));
  EXPECT_THAT(
      Changes("model { layer { name: \"h\" fc { units: 2 } } }",
              "model { layer { name: \"h\" fc { units: 2 init { xavier: true } bias_init { constant: 0 } } } }"),
      ElementsAre());
  const std::string vectors =
      "model { " + table + "} layer { name: \"v\" embedding { table: \"t\" } } layer { name: \"f\" fm { in: \"v\" ";
  EXPECT_THAT(Changes(vectors + "dim: 2 } } }", vectors + "} } }"), ElementsAre());
  EXPECT_THAT(Changes(vectors + "dim: 1 } } }", vectors + "} } }"), ElementsAre("!model.layer[f].fm.dim: 1 -> 2"));
}

TEST(ChangedFields, WordsStayAsTheyWereWritten) {
  TrainerDesc before;
  TrainerDesc now;
  before.mutable_data_desc()->set_pipe_command("grep größe \x1b[2J");
  now.mutable_data_desc()->set_pipe_command(std::string(79, 'x') + "ö");
  const std::vector<ChangedField> changes = ChangedJobFields(before, now);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].before, "\"grep größe \\033[2J\"");
  EXPECT_EQ(changes[0].now, "\"" + std::string(79, 'x') + " ...");
}

TEST(ChangedFields, ElementsWithNamesAreComparedByThem) {
  const std::string a = "table { name: \"a\" dim: 2 } ";
  const std::string b = "table { name: \"b\" dim: 2 } ";
  EXPECT_THAT(Changes("model { " + a + b + "}", "model { " + b + a + "}"),
              ElementsAre("!model.table: [a, b] -> [b, a]"));
  EXPECT_THAT(Changes("model { " + a + b + "}", "model { " + b + "table { name: \"c\" dim: 3 } }"),
              ElementsAre("!model.table[a]: { name: \"a\" dim: 2 } -> (none)",
                          "!model.table[c]: (none) -> { name: \"c\" dim: 3 }"));
  EXPECT_THAT(Changes("incremental { pass { name: \"d0\" filelist: \"x\" } }",
                      "incremental { pass { name: \"d0\" filelist: \"y\" } pass { name: \"d1\" filelist: \"z\" } }"),
              ElementsAre("incremental.pass[d0].filelist: [\"x\"] -> [\"y\"]",
                          "incremental.pass[d1]: (none) -> { name: \"d1\" filelist: \"z\" }"));
}

TEST(ChangedFields, ATableWithoutARuleHasTheModels) {
  const std::string model = "optimizer { adagrad { lr: 0.05 } } table { name: \"t\" dim: 2 ";
  EXPECT_THAT(Changes("model { " + model + "} }", "model { " + model + "optimizer { adagrad { lr: 0.5 } } } }"),
              ElementsAre("model.table[t].optimizer.adagrad.lr: 0.05 -> 0.5"));
}

TEST(ChangedFields, AnotherRuleAnotherSeedAndAnotherLayerMayNotBe) {
  EXPECT_THAT(
      Changes("seed: 1 model { optimizer { sgd { lr: 1 } } }", "seed: 2 model { optimizer { adam { lr: 1 } } }"),
      ElementsAre("!model.optimizer.sgd: { lr: 1 } -> (none)", "!model.optimizer.adam: (none) -> { lr: 1 }",
                  "!seed: 1 -> 2"));
  EXPECT_THAT(
      Changes("program { main: \"m\" init_dir: \"a\" }", "program { main: \"m\" init_dir: \"b\" save_dir: \"c\" }"),
      ElementsAre("!program.init_dir: \"a\" -> \"b\"", "program.save_dir: (none) -> \"c\""));
}

TEST(ChangedFields, EveryRuleHasARateThatMayChange) {
  const auto* rules = OptimizerDesc::descriptor()->FindOneofByName("rule");
  for (int i = 0; i < rules->field_count(); ++i) {
    const auto& rule = *rules->field(i);
    const char* rate = rule.message_type()->FindFieldByName("lr") != nullptr ? "lr" : "alpha";
    const std::string head = "model { optimizer { " + rule.name() + " { " + rate + ": ";
    EXPECT_THAT(Changes(head + "0.5 } } }", head + "0.25 } } }"),
                ElementsAre("model.optimizer." + rule.name() + "." + rate + ": 0.5 -> 0.25"));
  }
}

TEST(ShortPaths, AreAsShortAsDistinguishesThem) {
  EXPECT_THAT(ShortPaths({"model.optimizer.adagrad.lr", "model.table[a.b].optimizer.adagrad.lr", "seed"}),
              ElementsAre("model.optimizer.adagrad.lr", "table[a.b].optimizer.adagrad.lr", "seed"));
  EXPECT_THAT(ShortPaths({"model.optimizer.adagrad.lr"}), ElementsAre("lr"));
  EXPECT_THAT(ShortPaths({}), ElementsAre());
}

}  // namespace
}  // namespace millrace
