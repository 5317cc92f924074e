#include "runs/run_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runs/run_table_text.h"
#include "runs/runs_page.h"
#include "runs/written_run.h"

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string Job(const std::string& lr, int seed) {
  return "seed: " + std::to_string(seed) +
         " epochs: 2 model { layer { name: 'h' fc { in: 'x' units: 8 } } optimizer { adagrad { lr: " + lr + " } } }";
}

std::vector<std::string> Texts(const RunRow& row) {
  std::vector<std::string> texts;
  for (const RunCell& cell : row.cells) texts.push_back(cell.text + (cell.is_best ? "*" : ""));
  return texts;
}

/// Runs a, b, ... of a folder.
class RunComparison : public testing::Test {
 protected:
  void Add(const std::string& job, double first_auc, double last_auc) {
    const std::string name(1, static_cast<char>('a' + runs_.size()));
    runs_.push_back(ReadRun(written_.WriteRun(name, job, first_auc, last_auc)).value());
    runs_.back().name = name;
  }

  WrittenRuns written_;
  std::vector<RunRecord> runs_;
};

TEST_F(RunComparison, ShowsWhatDiffersAndMarksTheBest) {
  Add(Job("0.1", 1), 0.7, 0.6);
  Add(Job("0.5", 1), 0.6, 0.65);
  const RunTable table = CompareRuns(runs_).value();
  EXPECT_THAT(table.heads, ElementsAre("lr", "steps", "examples/s", "seconds", "auc", "auc best", "loss", "loss best"));
  EXPECT_THAT(table.paths, ElementsAre("model.optimizer.adagrad.lr"));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_THAT(Texts(table.rows[0]),
              ElementsAre("0.1", "20", "320", "2.0", "0.60000", "0.70000*", "0.40000", "0.30000*"));
  EXPECT_THAT(Texts(table.rows[1]),
              ElementsAre("0.5", "20", "320", "2.0", "0.65000*", "0.65000", "0.35000*", "0.35000"));
  EXPECT_EQ(RunTableText(table),
            "run   lr   steps   examples/s   seconds       auc   auc best      loss   loss best\n"
            "a    0.1      20          320       2.0   0.60000    0.70000*  0.40000     0.30000*\n"
            "b    0.5      20          320       2.0   0.65000*   0.65000   0.35000*    0.35000\n"
            "  lr is model.optimizer.adagrad.lr\n");
}

TEST_F(RunComparison, TheEvaluationIsThatOfTheSavedModelWhichMayBeTheBestInPlaceOfTheLast) {
  for (const int saved : {10, 20}) {
    Add(Job(saved == 10 ? "0.1" : "0.5", 1), 0.7, 0.6);
    const std::string summary = runs_.back().folder + "/run.json";
    std::string text = ReadFile(summary).value();
    const std::string step = R"("eval":{"step":20,"auc":0.6})";
    ASSERT_NE(text.find(step), std::string::npos) << text;
    if (saved == 10) text.replace(text.find(step), step.size(), R"("eval":{"step":10,"auc":0.7})");
    ASSERT_TRUE(WriteFileAtomically(summary, text).ok());
    runs_.back() = ReadRun(runs_.back().folder).value();
    runs_.back().name = std::to_string(saved);
  }
  const RunTable table = CompareRuns(runs_).value();
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_THAT(Texts(table.rows[0]),
              ElementsAre("0.1", "20", "320", "2.0", "0.70000*", "0.70000*", "0.30000*", "0.30000*"));
  EXPECT_THAT(Texts(table.rows[1]),
              ElementsAre("0.5", "20", "320", "2.0", "0.60000", "0.70000*", "0.40000", "0.30000*"));
}

TEST_F(RunComparison, RunsOfOneSeedAreNoDrawsOfTheirOwn) {
  for (const int seed : {1, 7, 7, 7}) Add(Job("0.1", seed), 0.5, 0.6);
  EXPECT_THAT(CompareRuns(runs_).value().notes,
              ElementsAre("3 runs of a mean have the same seed, 7: its error tells less than how far seeds are apart"));
}

TEST_F(RunComparison, SeedsHaveAMeanWithItsError) {
  Add(Job("0.1", 1), 0.5, 0.6);
  Add(Job("0.5", 1), 0.5, 0.7);
  Add(Job("0.1", 2), 0.5, 0.8);
  const RunTable table = CompareRuns(runs_).value();
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(table.rows[0].name, "mean of 2 runs");
  EXPECT_THAT(table.rows[0].runs, ElementsAre(0, 2));
  EXPECT_THAT(table.heads, ElementsAre("lr", "seed", "steps", "examples/s", "seconds", "auc", "loss"));
  // The deviation of 0.6 and 0.8 is 0.1414; over the root of 2 that is 0.1.
  EXPECT_THAT(Texts(table.rows[0]),
              ElementsAre("0.1", "", "20", "320", "2.0", "0.70000 +- 0.10000*", "0.30000 +- 0.10000*"));
  EXPECT_TRUE(table.rows[1].is_member && table.rows[2].is_member);
  EXPECT_THAT(Texts(table.rows[2]), ElementsAre("0.1", "2", "20", "320", "2.0", "0.80000", "0.20000"))
      << "of the rows of a mean none is marked";
  EXPECT_THAT(RunTableText(table), HasSubstr("\n  c "));
}

TEST_F(RunComparison, AllBestAreMarkedAndOneRunIsNone) {
  Add(Job("0.1", 1), 0.5, 0.6);
  EXPECT_FALSE(CompareRuns(runs_).value().rows[0].cells[3].is_best);
  EXPECT_EQ(CompareRuns(runs_).value().fields, 0U);
}

TEST_F(RunComparison, BestFirstWhereAMetricIsNamed) {
  Add(Job("0.1", 1), 0.5, 0.6);
  Add(Job("0.2", 1), 0.5, 0.8);
  Add(Job("0.3", 1), 0.5, 0.7);
  const RunTable by_auc = CompareRuns(runs_, "auc").value();
  EXPECT_THAT(std::vector<std::string>({by_auc.rows[0].name, by_auc.rows[1].name, by_auc.rows[2].name}),
              ElementsAre("b", "c", "a"));
  EXPECT_EQ(CompareRuns(runs_, "loss").value().rows[0].name, "b") << "the lowest";
  EXPECT_THAT(CompareRuns(runs_, "gauc").status().message(), HasSubstr("\"gauc\"; there are auc, loss"));
}

TEST_F(RunComparison, SlotsThatFollowFromFeaturesAreNotListed) {
  const auto features = [](const std::string& name) {
    return "data_desc { name: 'csv' feature { name: '" + name + "' hash {} } multi_slot_desc { slots { name: '" + name +
           "' type: 'uint64' is_used: true } } feature_states { rows: 7 column: '" + name + "' } }";
  };
  Add(features("age"), 0.5, 0.6);
  Add(features("country"), 0.5, 0.8);
  EXPECT_THAT(CompareRuns(runs_).value().paths, ElementsAre("data_desc.feature[age]", "data_desc.feature[country]"));
}

TEST_F(RunComparison, AValueIsNotCutWithinACharacter) {
  const auto files = [](const std::string& last) {
    return "filelist: '" + std::string(33, 'a') + "\u00e4\u00f6\u00fc" + last + "'";
  };
  Add(files("1"), 0.5, 0.6);
  Add(files("22222222"), 0.5, 0.6);
  const RunTable table = CompareRuns(runs_).value();
  for (const RunRow& row : table.rows) {
    EXPECT_EQ(row.cells[0].text, "[\"" + std::string(33, 'a') + "\u00e4...");
  }
}

TEST_F(RunComparison, WhatIsBetterIsNotGuessed) {
  written_.Write("a", "metrics.jsonl", "{\"step\":10,\"examples\":320,\"eval_loss\":0.9,\"eval_auc\":0.1}\n");
  for (int i = 0; i < 2; ++i) runs_.push_back(ReadRun(written_.folder("a")).value());
  EXPECT_THAT(CompareRuns(runs_, "auc").status().message(),
              HasSubstr("which values of \"auc\" are better is not known"));
  EXPECT_TRUE(CompareRuns(runs_, "loss").ok());
  EXPECT_FALSE(CompareRuns(runs_).value().rows[0].cells[3].is_best);
}

TEST_F(RunComparison, ARunThatHasNotEndedIsNotTakenForTheMeanOfOthers) {
  Add(Job("0.1", 1), 0.5, 0.6);
  written_.Write("z", "metrics.jsonl", "{\"step\":10,\"examples\":320,\"eval_loss\":0.9,\"eval_auc\":0.1}\n");
  runs_.push_back(ReadRun(written_.folder("z")).value());
  runs_.back().name = "z";
  Add(Job("0.2", 1), 0.5, 0.6);
  const RunTable table = CompareRuns(runs_).value();
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[1].name, "z (not ended)");
  EXPECT_THAT(Texts(table.rows[1]), ElementsAre("?", "10", "", "", "0.10000", "0.90000"));
}

TEST_F(RunComparison, WithoutEvaluationsThoseOfTrainingAreShown) {
  for (const char* name : {"a", "b"}) {
    written_.Write(name, "run.json",
                   R"({"examples": 8, "batches": 2, "seconds": 1, "examples_per_second": 8,)"
                   R"( "metrics": {"auc": 0.75}, "better": {"higher": ["auc"]}, "job": "epochs: 1"})");
    runs_.push_back(ReadRun(written_.folder(name)).value());
  }
  const RunTable table = CompareRuns(runs_).value();
  EXPECT_EQ(table.heads.back(), "auc of training");
  EXPECT_EQ(table.rows[0].cells.back().text, "0.75000 +- 0.00000") << "the same job twice has a mean, too";
}

TEST_F(RunComparison, NamesAreAsShortAsTellsThemApart) {
  EXPECT_THAT(ShortPaths({"model.optimizer.adagrad.lr", "model.table[a.b].optimizer.adagrad.lr", "seed"}),
              ElementsAre("model.optimizer.adagrad.lr", "table[a.b].optimizer.adagrad.lr", "seed"));
  EXPECT_THAT(ShortPaths({}), IsEmpty());
}

TEST_F(RunComparison, ThePageIsWholeAndShowsTextAsText) {
  Add(Job("0.1", 1), 0.5, 0.6);
  Add(Job("0.1", 2), 0.5, 0.7);
  Add(Job("0.3", 2), 0.5, 0.7);
  runs_[2].name = "<script>alert('x')</script> & \"more\"";
  const std::string page = RunsPage(runs_, CompareRuns(runs_).value());
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("http"))) << "it needs nothing from elsewhere";
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;more&quot;"));
  EXPECT_THAT(page, HasSubstr("0.65000 &plusmn; 0.05000"));
  EXPECT_THAT(page, HasSubstr("<h2>auc</h2>"));
  EXPECT_THAT(page, HasSubstr("<title>a, evaluation</title>"));
  EXPECT_THAT(page, HasSubstr("<title>b, training</title>"));
  size_t charts = 0;
  for (size_t at = page.find("<svg"); at != std::string::npos; at = page.find("<svg", at + 1)) ++charts;
  EXPECT_EQ(charts, 2U);
}

}  // namespace
}  // namespace millrace
