#include "report/run_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace millrace {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

RunReport ReportOf(double read_seconds, double run_seconds) {
  RunReport report;
  PassReport pass;
  pass.batches = 10;
  pass.examples = 100;
  pass.seconds = 2;
  pass.read_seconds = read_seconds;
  pass.run_seconds = run_seconds;
  pass.metrics = {{"auc", 0.75}, {"gauc", std::nan("")}};
  pass.data.files = 3;
  pass.data.bytes = 4000;
  pass.data.lines = 101;
  pass.data.bad_lines = 1;
  pass.data.stage_seconds = {{"pipe", 3}, {"parse", 1}};
  report.passes = {pass, pass};
  report.state.epoch = 2;
  report.state.step = 20;
  report.state.examples = 200;
  return report;
}

TEST(RunSummaryTest, AddsUpPassesAndDescribesTheInputOnce) {
  const RunSummary summary = Summarize(ReportOf(1, 3), 2, 5);
  EXPECT_EQ(summary.examples, 200);
  EXPECT_EQ(summary.batches, 20);
  EXPECT_EQ(summary.epochs, 2);
  EXPECT_EQ(summary.examples_per_second(), 50);
  EXPECT_EQ(summary.data.lines, 101);
  EXPECT_EQ(summary.stage_seconds.at("read_wait"), 2);
  EXPECT_EQ(summary.stage_seconds.at("compute"), 6);
  EXPECT_EQ(summary.stage_seconds.at("pipe"), 6);
}

TEST(RunSummaryTest, SaysHowTheRunWasConfiguredAndWhichValuesAreBetter) {
  RunSummary summary = Summarize(ReportOf(1, 3), 2, 5);
  EXPECT_THAT(RunJson(summary), Not(HasSubstr("\"job\"")));
  summary.job = "layer { name: \"h\" }";
  summary.better = {{"loss", MetricBetter::kLower},
                    {"auc", MetricBetter::kHigher},
                    {"logloss", MetricBetter::kLower},
                    {"calibration", MetricBetter::kNearerToOne}};
  EXPECT_THAT(RunJson(summary), HasSubstr("\"job\": \"layer { name: \\\"h\\\" }\""));
  EXPECT_THAT(RunJson(summary), HasSubstr("\"higher\": [\"auc\"],"));
  EXPECT_THAT(RunJson(summary), HasSubstr("\"lower\": [\"loss\",\"logloss\"],"));
  EXPECT_THAT(RunJson(summary), HasSubstr("\"nearer_to_1\": [\"calibration\"]"));
}

TEST(RunSummaryTest, LoadingIsNamedBesideTheRateThatLeavesItOut) {
  RunReport report = ReportOf(1, 3);
  EXPECT_THAT(ClosingBlock(Summarize(report, 2, 5), ""), Not(HasSubstr("loading")));
  report.load_seconds = 3;
  EXPECT_THAT(ClosingBlock(Summarize(report, 2, 8), ""),
              HasSubstr("50 examples/s, 2 workers\n  loading     3.0 s before that, which examples/s leaves out\n"));
}

TEST(RunSummaryTest, AResumedRunCountsTheWholeJobAndItsRateByItself) {
  RunReport report = ReportOf(1, 3);
  report.state.epoch = 5;
  report.state.step = 50;
  report.state.examples = 500;
  const RunSummary summary = Summarize(report, 2, 5);
  EXPECT_EQ(summary.examples_per_second(), 50);
  const std::string json = RunJson(summary);
  EXPECT_THAT(json, HasSubstr("\"examples\": 500,"));
  EXPECT_THAT(json, HasSubstr("\"batches\": 50,"));
  EXPECT_THAT(json, HasSubstr("\"run_examples\": 200,\n  \"run_batches\": 20,"));
  EXPECT_THAT(ClosingBlock(summary, ""),
              HasSubstr("trained: 500 examples in 50 batches, 200 examples in this run, 4.0 s, 50 examples/s"));
}

TEST(RunSummaryTest, TheSlowestAndTheFullestRankAreNamed) {
  RunSummary summary = Summarize(ReportOf(1, 3), 3, 5, {.count = 4, .servers = 1});
  summary.per_rank = {{"a", 90, 10, 3 << 20, 0.5, 1.5}, {"b", 40, 20, 2 << 20, 1, 2}, {"b", 70, 5, 1 << 20}, {"c", 0}};
  summary.per_rank[3].row_bytes = summary.per_rank[3].peak_rss_bytes = int64_t{7} << 20;
  summary.per_rank[3].rows = 100;
  EXPECT_THAT(ClosingBlock(summary, ""),
              HasSubstr("  slowest     rank 1 (b): 40 examples, 1.0 s waiting for input, 2.0 s computing\n"
                        "  fullest     rank 3 (c): 100 rows in 7 MB, peak memory 7 MB\n"));
  // In step all train as much, and who waits least is waited for.
  summary.per_rank[0].exchange_seconds = 0.1;
  summary.per_rank[1].exchange_seconds = summary.per_rank[2].exchange_seconds = 3;
  EXPECT_THAT(ClosingBlock(summary, ""), HasSubstr("rank 0 (a): 90 examples, 0.5 s waiting for input, 1.5 s computing, "
                                                   "0.1 s waiting for ranks\n"));
  EXPECT_THAT(RunJson(summary), HasSubstr("\"host\": \"c\""));
  summary.per_rank.resize(1);
  EXPECT_THAT(ClosingBlock(summary, ""), Not(HasSubstr("slowest")));
}

TEST(RunSummaryTest, TheBottleneckSaysWhatToChange) {
  EXPECT_THAT(Summarize(ReportOf(3, 1), 2, 5).bottleneck,
              HasSubstr("waited for input 75% of the time, mostly on pipe"));
  EXPECT_THAT(Summarize(ReportOf(0, 4), 1 << 20, 5).bottleneck, HasSubstr("computed 100% of the time"));
  EXPECT_EQ(Summarize({}, 2, 5).bottleneck, "nothing was trained");
  RunReport finished;
  finished.state.step = 50;
  finished.state.examples = 500;
  EXPECT_EQ(Summarize(finished, 2, 5).bottleneck,
            "nothing was trained: the run that this one went on from was finished; raise epochs (or add a pass of "
            "incremental) to train on, or begin "
            "anew by --resume=never");
  finished.stopped_early = true;
  EXPECT_THAT(Summarize(finished, 2, 5).bottleneck,
              HasSubstr("was stopped early; raise eval.early_stopping.patience to train on, or begin anew"));
  RunReport parsing = ReportOf(3, 1);
  for (PassReport& pass : parsing.passes) pass.data.stage_seconds = {{"parse", 1}};
  EXPECT_THAT(Summarize(parsing, 2, 5).bottleneck, HasSubstr("on parsing: raise data_desc.thread_num (3 files"));
  EXPECT_THAT(Summarize(parsing, 2, 5).bottleneck, HasSubstr("or use InMemoryDataset"));
  RunReport of_stage = ReportOf(3, 1);
  const auto mostly = [&of_stage](const char* stage) {
    for (PassReport& pass : of_stage.passes) pass.data.stage_seconds = {{stage, 3}};
    return Summarize(of_stage, 2, 5).bottleneck;
  };
  EXPECT_THAT(mostly("format"), HasSubstr("on the Python that reads Parquet or Arrow files: raise"));
  EXPECT_THAT(mostly("fetch"), HasSubstr("on input_commands: make them faster"));
  EXPECT_THAT(mostly("named_pipe"), HasSubstr("on who writes the pipe that is read: "));
  EXPECT_EQ(mostly("wait_full"), "workers waited for input 75% of the time") << "nothing is known of why";
  RunReport meets = ReportOf(3, 1);
  for (PassReport& pass : meets.passes) pass.data.stage_seconds = {{"parse", 0.01}};
  EXPECT_EQ(Summarize(meets, 2, 5).bottleneck, "workers waited for input 75% of the time");
  EXPECT_THAT(Summarize(meets, 2, 5, {.count = 2, .processors = 2}).bottleneck,
              HasSubstr("75% of the time, mostly for other ranks, which meet at checkpoints and evaluations"));
  parsing.load_seconds = 1;
  EXPECT_THAT(Summarize(parsing, 2, 5).bottleneck, Not(HasSubstr("InMemoryDataset")));
}

TEST(RunSummaryTest, RanksThatHaveAllProcessorsAreNotToldToBeMore) {
  const auto bottleneck = [](const RunReport& report, int workers) {
    return Summarize(report, workers, 5, {.count = workers, .processors = 4}).bottleneck;
  };
  RunReport computed = ReportOf(0, 4);
  for (PassReport& pass : computed.passes) pass.data.files = 8;
  EXPECT_EQ(bottleneck(computed, 2), "ranks computed 100% of the time: start more ranks (2 of 4 processors train)");
  const std::string otherwise =
      "make the model smaller, set precision: BF16 where the processor has it, or use more machines";
  EXPECT_EQ(bottleneck(computed, 4), "ranks computed 100% of the time: " + otherwise);
  EXPECT_EQ(bottleneck(computed, 8),
            "ranks computed 100% of the time: have no more workers than processors (8 share 4), " + otherwise);

  RunReport waited = computed;
  waited.passes[0].exchange_seconds = 4;
  EXPECT_EQ(
      bottleneck(waited, 4),
      "ranks waited for each other 33% of the time: give each as many lines, raise data_desc.batch_size, or use a "
      "faster network");
  EXPECT_THAT(bottleneck(waited, 8),
              HasSubstr("33% of the time: have no more workers than processors (8 share 4), give each as many lines"));
}

TEST(RunSummaryTest, RanksThatServeNeedNoFiles) {
  RunReport report = ReportOf(0, 4);  // three files
  EXPECT_THAT(Summarize(report, 4, 5, {.count = 4, .processors = 4}).bottleneck, HasSubstr("1 of 4 ranks had no file"));
  EXPECT_THAT(Summarize(report, 3, 5, {.count = 4, .servers = 1, .processors = 4}).bottleneck,
              HasSubstr("ranks computed 100% of the time"));
}

TEST(RunSummaryTest, WhatLoadingTookIsNotWhatWorkersWaitedFor) {
  RunReport report = ReportOf(3, 1);
  report.load = report.passes[0].data;
  report.load.stage_seconds = {{"pipe", 1}, {"parse", 30}};
  report.load_seconds = 1;
  for (const char* stage : {"assemble", "copy"}) {
    for (PassReport& pass : report.passes) pass.data.stage_seconds = {{stage, 3}};
    EXPECT_THAT(Summarize(report, 2, 5).bottleneck, HasSubstr("workers put batches together 75% of the time: "));
    EXPECT_THAT(Summarize(report, 1 << 20, 5).bottleneck,
                AllOf(HasSubstr("together 75% of the time: have no more workers than processors (1048576 share "),
                      HasSubstr("), leave slots that the model does not read out of data_desc")));
  }
  EXPECT_EQ(Summarize(report, 2, 5).stage_seconds.at("parse"), 30);
}

TEST(RunSummaryTest, CheckpointsAndEvaluationsThatTookMostOfTheTimeAreNamed) {
  RunReport report = ReportOf(0, 4);
  report.checkpoint_seconds = 12;
  EXPECT_EQ(Summarize(report, 2, 16).bottleneck,
            "checkpoints took 75% of the time: raise checkpoint.every_steps, every_minutes or every_epochs");
  report.checkpoint_seconds = 0;
  report.evaluations.emplace_back().seconds = 12;
  EXPECT_EQ(Summarize(report, 2, 16).bottleneck,
            "evaluations took 75% of the time: raise eval.every_steps or every_epochs, or evaluate on fewer lines");
}

TEST(RunSummaryTest, OneFileIsSplitAsThreadsDoNotHelpThere) {
  RunReport report = ReportOf(3, 1);
  EXPECT_THAT(Summarize(report, 2, 5).bottleneck,
              HasSubstr("raise data_desc.thread_num (3 files can be read at a time)"));
  for (PassReport& pass : report.passes) pass.data.files = 1;
  EXPECT_THAT(Summarize(report, 2, 5).bottleneck,
              HasSubstr("make it faster, split the one file into several, each of which a thread of"));
}

TEST(RunSummaryTest, AStoppedRunDoesNotCountTheFilesThatItHadNotMet) {
  RunReport report = ReportOf(3, 1);
  report.interrupted = true;
  for (PassReport& pass : report.passes) pass.data.files = 1;
  EXPECT_THAT(Summarize(report, 2, 5).bottleneck,
              HasSubstr("make it faster, raise data_desc.thread_num as far as there are files, or prepare"));
}

TEST(RunSummaryTest, AStoppedRunSaysHowToGoOnWhereThereIsACheckpoint) {
  const std::string advice = "  go on       with --resume=auto\n";
  RunReport report = ReportOf(3, 1);
  EXPECT_THAT(ClosingBlock(Summarize(report, 2, 5), "out"), Not(HasSubstr(advice)));
  report.interrupted = true;
  report.unsaved_seconds = 1.5;
  report.seconds_to_save = 2.5;
  EXPECT_THAT(ClosingBlock(Summarize(report, 2, 5), "out"),
              AllOf(HasSubstr("  not saved   the last 20 batches, 1.5 s: to save them would have taken about 2.5 s\n"),
                    Not(HasSubstr(advice))));
  report.saved_step = 15;
  EXPECT_THAT(ClosingBlock(Summarize(report, 2, 5), "out"),
              AllOf(HasSubstr("  not saved   the last 5 batches, "), EndsWith(advice)));
  report.saved_step = 20;
  report.unsaved_seconds = 0;
  EXPECT_THAT(ClosingBlock(Summarize(report, 2, 5), "out"), AllOf(Not(HasSubstr("not saved")), EndsWith(advice)));
  EXPECT_THAT(ClosingBlock(Summarize(report, 2, 5), ""), Not(HasSubstr(advice)));
  RunSummary inference = Summarize(report, 2, 5);
  inference.infer = true;
  EXPECT_THAT(ClosingBlock(inference, "out"), Not(HasSubstr(advice)));
  report.state.step = 0;
  EXPECT_THAT(ClosingBlock(Summarize(report, 2, 5), "out"), Not(HasSubstr(advice)));
  report.state.step = 20;
  report.is_unsound = true;
  EXPECT_THAT(ClosingBlock(Summarize(report, 2, 5), "out"), Not(HasSubstr(advice)));
  report.is_unsound = false;
  report.unsaved_operator = "record";
  EXPECT_THAT(ClosingBlock(Summarize(report, 2, 5), "out"), Not(HasSubstr(advice)));
}

// To read again in each epoch would take longer than what is complained of.
TEST(RunSummaryTest, LoadingThatTookLongestNamesAQueueDatasetForOneEpochAlone) {
  RunReport report = ReportOf(0, 4);
  report.load = report.passes[0].data;
  report.load_seconds = 16;
  EXPECT_THAT(Summarize(report, 2, 20).bottleneck,
              AllOf(HasSubstr("loading into memory took"), Not(HasSubstr("QueueDataset"))));
  report.state.epoch = 1;
  EXPECT_THAT(Summarize(report, 2, 20).bottleneck, EndsWith("QueueDataset, which reads while it trains"));
}

TEST(RunSummaryTest, ExportsThatFailedAreNamed) {
  RunSummary summary = Summarize(ReportOf(1, 3), 2, 5);
  EXPECT_THAT(RunJson(summary), Not(HasSubstr("export_failures")));
  summary.export_failures = {"out/onnx: no"};
  EXPECT_THAT(RunJson(summary), HasSubstr("\"export_failures\": [\"out/onnx: no\"]"));
  EXPECT_THAT(ClosingBlock(summary, "out"), HasSubstr("  failed      out/onnx: no\n"));
}

TEST(RunSummaryTest, RunJsonHasWhatOthersRelyOn) {
  const std::string json = RunJson(Summarize(ReportOf(1, 3), 2, 5));
  for (const char* key : {"examples", "seconds", "examples_per_second", "batches", "epochs", "metrics", "eval", "data",
                          "stage_seconds", "peak_rss_bytes", "bottleneck"}) {
    EXPECT_THAT(json, HasSubstr("\n  \"" + std::string(key) + "\": "));
  }
  EXPECT_THAT(json, HasSubstr("\"auc\": 0.75,\n    \"gauc\": null"));
  EXPECT_THAT(json, HasSubstr("\"eval\": {},"));
  EXPECT_THAT(json, HasSubstr("\"files\": 3,\n    \"bytes\": 4000,\n    \"lines\": 101,\n    \"bad_lines\": 1"));
}

TEST(RunSummaryTest, TheClosingBlockNamesQualitySpeedAndBottleneck) {
  const std::string block = ClosingBlock(Summarize(ReportOf(3, 1), 2, 5), "out");
  EXPECT_THAT(block, HasSubstr("trained: 200 examples in 20 batches, 4.0 s, 50 examples/s, 2 workers\n"));
  EXPECT_THAT(block, HasSubstr("training    auc 0.750000"));
  EXPECT_THAT(block, HasSubstr("bad lines   1 of 101 left out\n"));
  EXPECT_THAT(block, HasSubstr("bottleneck  workers waited"));
  EXPECT_THAT(block, Not(HasSubstr("odd values")));
}

TEST(RunSummaryTest, AnAucThatIsNoneIsExplained) {
  RunReport report = ReportOf(3, 1);
  EXPECT_THAT(ClosingBlock(Summarize(report, 2, 5), ""), Not(HasSubstr("no auc")));
  report.passes.back().metrics = {{"auc", std::nan("")}};
  EXPECT_THAT(ClosingBlock(Summarize(report, 2, 5), ""), HasSubstr("no auc: all labels are of one class\n"));
}

TEST(RunSummaryTest, TheClosingBlockNamesNanAndInfiniteInput) {
  RunReport report = ReportOf(3, 1);
  for (PassReport& pass : report.passes) pass.data.counters = {{"blank_line", 2}, {"non_finite", 7}};
  EXPECT_THAT(
      ClosingBlock(Summarize(report, 2, 5), ""),
      HasSubstr("  odd values  7 nan or infinite ones in float slots; data_desc.non_finite: REJECT_NON_FINITE"));
}

}  // namespace
}  // namespace millrace
