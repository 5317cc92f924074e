// eval.set: several sets with names, and sets of rows that are parted off the training files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "e2e/process.h"
#include "e2e/small_job.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct SetsRun {
  int code = 0;
  std::string said;
  std::string json;
};

SetsRun TrainSets(const std::string& job, const std::string& out, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"--trainer_desc=" + job, "--output_dir=" + out};
  for (const std::string& argument : more)
    arguments.push_back(argument.starts_with("--") ? argument : "--set=" + argument);
  Process trainer("trainer", arguments);
  SetsRun run;
  run.code = trainer.Wait();
  run.said = trainer.errors();
  if (run.code == 0) run.json = ReadFile(out + "/run.json").value();
  return run;
}

double NumberOf(const std::string& json, const std::string& key, const std::string& from) {
  const size_t at = json.find("\"" + key + "\":", json.find(from));
  return at == std::string::npos ? -1 : std::stod(json.substr(at + key.size() + 3));
}

TEST(EvaluationSets, EachIsLoggedByItsNameAndOneIsWatched) {
  const SmallJob small(900, 3);
  const std::string out = small.folder() + "/out";
  const std::vector<std::string> files = small.files();
  const SetsRun run =
      TrainSets(small.DeepJob("eval { filelist: '" + files[0] + "' set { name: 'first' filelist: '" + files[1] +
                              "' } set { name: 'both' filelist: '" + files[1] + "' filelist: '" + files[2] +
                              "' } watch: 'both' early_stopping { metric: 'auc' patience: 9 } }\n"),
                out, {"epochs=2"});
  ASSERT_EQ(run.code, 0) << run.said;
  EXPECT_THAT(run.said,
              AllOf(HasSubstr("evaluation of both after step"), HasSubstr("evaluation after step"),
                    HasSubstr("evaluation of first after step"), HasSubstr("  of both"), HasSubstr("  of first")));
  EXPECT_THAT(run.json, HasSubstr("\"set\": \"both\""));
  EXPECT_EQ(NumberOf(run.json, "examples", "\"eval\""), 600) << "the watched one";
  EXPECT_EQ(NumberOf(run.json, "examples", "\"first\""), 300);
  const std::string lines = ReadFile(out + "/metrics.jsonl").value();
  for (const char* key : {"\"eval_loss\":", "\"eval_auc@both\":", "\"eval_auc@first\":", "\"eval_loss@first\":"}) {
    EXPECT_THAT(lines, HasSubstr(key));
  }
  EXPECT_NEAR(NumberOf(lines, "eval_auc", ""), NumberOf(lines, "eval_auc@both", ""), 0);
}

/// How often each line of a CountingJob was trained, by what its row scores.
std::vector<int> TimesTrained(const SmallJob& small, const std::string& out) {
  std::vector<int> times;
  for (const std::string& file : small.files()) {
    Process predictor("predictor", {"--model_dir=" + out + "/model", "--input=" + file, "--output=-"});
    EXPECT_EQ(predictor.Wait(), 0) << predictor.errors();
    std::istringstream lines(predictor.output());
    for (std::string line; std::getline(lines, line);) {
      const double score = std::stod(line);
      times.push_back(score == 0 ? 0 : score == 0.5 ? 1 : score == 0.75 ? 2 : 9);
    }
  }
  return times;
}

// By any dataset, by any number of threads, in each epoch, and by a run that goes on.
TEST(EvaluationSets, AShareIsNeverTrainedAndTheSameWhoeverReads) {
  const SmallJob small(400, 3);
  const std::string job =
      small.CountingJob("eval { set { name: 'held' share: 0.2 } set { name: 'more' share: 0.1 } }\n");
  std::vector<int> before;
  int number = 0;
  for (const std::vector<std::string>& sets : std::vector<std::vector<std::string>>{
           {"thread_num=1", "epochs=2"},
           {"thread_num=3", "epochs=2"},
           {"dataset={ class_name: \"InMemoryDataset\" local_shuffle: true }", "thread_num=2", "epochs=2"}}) {
    const std::string out = small.folder() + "/out" + std::to_string(number++);
    const SetsRun run = TrainSets(job, out, sets);
    ASSERT_EQ(run.code, 0) << run.said;
    const std::vector<int> times = TimesTrained(small, out);
    ASSERT_EQ(times.size(), 400U);
    EXPECT_EQ(std::count(times.begin(), times.end(), 9), 0);
    EXPECT_EQ(std::count(times.begin(), times.end(), 1), 0);
    const auto held = std::count(times.begin(), times.end(), 0);
    EXPECT_NEAR(static_cast<double>(held), 120, 30);
    EXPECT_EQ(NumberOf(run.json, "examples", ""), 2 * (400 - static_cast<double>(held)));
    EXPECT_EQ(NumberOf(run.json, "examples", "\"held\": {") + NumberOf(run.json, "examples", "\"more\""),
              static_cast<double>(held));
    EXPECT_NEAR(NumberOf(run.json, "examples", "\"more\""), 40, 20);
    if (!before.empty()) {
      EXPECT_EQ(times, before);
    }
    before = times;
  }
  const std::string out = small.folder() + "/resumed";
  ASSERT_EQ(TrainSets(job, out, {"epochs=1"}).code, 0);
  const SetsRun resumed = TrainSets(job, out, {"epochs=2", "thread_num=2", "--resume=auto"});
  ASSERT_EQ(resumed.code, 0) << resumed.said;
  EXPECT_EQ(TimesTrained(small, out), before);
}

TEST(EvaluationSets, CalibrationsAndImportanceAreTakenFromAShare) {
  const SmallJob small(1500, 1);
  const std::string out = small.folder() + "/out";
  const SetsRun run = TrainSets(
      small.DeepJob("eval { set { name: 'a' share: 0.3 } set { name: 'b' share: 0.2 } calibration { set: 'b' } }\n"
                    "feature_importance { slots: 'A' repeats: 2 }\n"),
      out, {"epochs=2"});
  ASSERT_EQ(run.code, 0) << run.said;
  EXPECT_EQ(NumberOf(run.json, "examples", "\"calibrations\""), NumberOf(run.json, "examples", "\"b\""));
  const std::string importance = ReadFile(out + "/feature_importance.json").value();
  EXPECT_EQ(NumberOf(importance, "examples", ""), NumberOf(run.json, "examples", "\"eval\""));
}

/// A job of a CSV file whose rows are of the days 1 to 20 of a month.
std::string DaysJob(const SmallJob& small, const std::string& eval, const std::string& bad = "") {
  std::ofstream csv(small.folder() + "/days.csv");
  csv << "click,a,day\n";
  for (int i = 0; i < 200; ++i) {
    csv << (i % 3 == 0 ? 1 : 0) << "," << i % 7 << ",2026-11-" << (i % 20 < 9 ? "0" : "") << i % 20 + 1 << " 10:00\n";
  }
  csv << bad;
  std::ofstream job(small.folder() + "/days.prototxt");
  job << "data_desc { name: 'csv' batch_size: 16\n"
         "  feature { name: 'label' from: 'click' id {} is_dense: true }\n"
         "  feature { name: 'a' hash {} }\n"
         "}\n"
         "model { table { name: 't' dim: 4 } layer { name: 'e' embedding { slots: 'a' table: 't' } }\n"
         "  layer { name: 'y' fc { in: 'e' units: 1 } }\n"
         "  loss { kind: SIGMOID_CROSS_ENTROPY in: 'y' label: 'label' } metric { kind: AUC }\n"
         "  optimizer { adagrad { lr: 0.1 } } }\n"
         "filelist: '"
      << small.folder() << "/days.csv'\n"
      << eval << "\n";
  return small.folder() + "/days.prototxt";
}

TEST(EvaluationSets, RowsSinceAMomentAreEvaluatedAndThoseBeforeItTrained) {
  const SmallJob small(3, 1);
  const std::string since = "since { column: 'day' at: '2026-11-16' ";
  const std::string job =
      DaysJob(small, "eval { set { name: 'sixteenth' " + since +
                         "until: '2026-11-17T00:00:00' } } set { name: 'later' since { column: 'day' "
                         "at: '2026-11-17' } } set { name: 'same_days' share: 0.2 } }");
  for (const char* dataset : {"QueueDataset", "InMemoryDataset"}) {
    const SetsRun run = TrainSets(job, small.folder() + "/out",
                                  {std::string("dataset={ class_name: \"") + dataset + "\" }", "thread_num=2"});
    ASSERT_EQ(run.code, 0) << run.said;
    EXPECT_EQ(NumberOf(run.json, "examples", "\"sixteenth\": {"), 10);
    EXPECT_EQ(NumberOf(run.json, "examples", "\"later\""), 40);
    const double held = NumberOf(run.json, "examples", "\"same_days\"");
    EXPECT_GT(held, 10);
    EXPECT_EQ(NumberOf(run.json, "examples", ""), 150 - held);
    EXPECT_THAT(run.said, Not(HasSubstr("left out")));
  }
  // The model takes lines without the column of times.
  std::ofstream(small.folder() + "/new.csv") << "a,click\n5,0\n";
  Process predictor("predictor",
                    {"--model_dir=" + small.folder() + "/out/model", "--input=" + small.folder() + "/new.csv"});
  EXPECT_EQ(predictor.Wait(), 0) << predictor.errors();
}

TEST(EvaluationSets, ARowWithoutAMomentIsABadLine) {
  const SmallJob small(3, 1);
  const SetsRun run =
      TrainSets(DaysJob(small, "eval { set { name: 'x' since { column: 'day' at: '2026-11-16' } } }", "1,2,soon\n"),
                small.folder() + "/out");
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.said, AllOf(HasSubstr("days.csv:202:5: column \"day\": expected a time of ISO 8601"),
                              HasSubstr("by which eval.set.since parts rows, found \"soon\"")));
}

// Evaluations of the training files read it before the training does.
TEST(EvaluationSets, ABadLineStandsInTheQuarantineOnceWhoeverReadsIt) {
  const SmallJob small(3, 1);
  const std::string sets = "eval { set { name: 'x' share: 0.2 } set { name: 'y' share: 0.1 } every_steps: 3 }";
  for (const char* mode : {"update_mode=SERIAL", "dist={ update: SYNC micro_batches: 2 }"}) {
    const std::string out = small.folder() + "/" + std::string(mode).substr(0, 4);
    const std::string job = DaysJob(small, sets, "1,2\n1,3,2026-11-05 10:00,4\n");
    const SetsRun run =
        TrainSets(job, out, {mode, "epochs=2", "data_desc.bad_lines={ action: QUARANTINE max_fraction: 1 }"});
    ASSERT_EQ(run.code, 0) << run.said;
    std::istringstream lines(ReadFile(out + "/bad_lines.txt").value());
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);) all.push_back(line);
    EXPECT_EQ(all.size(), 2U) << mode << "\n" << testing::PrintToString(all);
  }
}

TEST(EvaluationSets, TimesOfAnotherFormatAreToldWithTheFormat) {
  const SmallJob small(3, 1);
  const auto said = [&](const std::string& found, const std::string& format) {
    const std::string since = "since { column: 'day' at: '2026-11-16' " + format + " } } }";
    const std::string job = DaysJob(small, "eval { set { name: 'x' " + since);
    std::ofstream(small.folder() + "/days.csv") << "click,a,day\n1,2," << found << "\n";
    const SetsRun run = TrainSets(job, small.folder() + "/out");
    EXPECT_EQ(run.code, 3);
    return run.said;
  };
  EXPECT_THAT(said("1764201600", ""), HasSubstr("(format: EPOCH_SECONDS reads seconds since 1970), by which "
                                                "eval.set.since parts rows, found \"1764201600\""));
  EXPECT_THAT(said("1764201600000", ""), HasSubstr("(format: EPOCH_MILLISECONDS reads milliseconds since 1970)"));
  EXPECT_THAT(said("2026-11-26 10:00", "format: EPOCH_SECONDS"), HasSubstr("(format: ISO_8601 reads what was found)"));
  EXPECT_THAT(said("17", ""), Not(HasSubstr("format:")));
}

TEST(EvaluationSets, AMisspeltColumnOfTimesIsToldWithTheNearest) {
  const SmallJob small(3, 1);
  const std::string job = DaysJob(small, "eval { set { name: 'x' since { column: 'dya' at: '2026-11-16' } } }");
  const std::string hint = ", by which eval.set.since parts rows; did you mean \"day\"?";
  EXPECT_THAT(TrainSets(job, small.folder() + "/out").said, HasSubstr("the header has no column \"dya\"" + hint));
  std::ofstream(small.folder() + "/days.csv") << R"({"click": 1, "a": 2, "day": "2026-11-17"})"
                                              << "\n";
  EXPECT_THAT(TrainSets(job, small.folder() + "/out", {"data_desc.name=json"}).said,
              HasSubstr("days.csv:1:1: no key \"dya\"" + hint));
}

TEST(EvaluationSets, ASetSinceAMomentThatNoRowHasIsToldAsEarlyAsItIsKnown) {
  const SmallJob small(3, 1);
  const std::string job = DaysJob(small, "eval { set { name: 'x' since { column: 'day' at: '2027-01-01' } } }");
  const std::string what_to_do =
      "no row's column \"day\" is at or behind \"2027-01-01\": choose an earlier moment, or give the set files";
  const SetsRun late = TrainSets(job, small.folder() + "/out");
  EXPECT_EQ(late.code, 3);
  EXPECT_THAT(late.said, AllOf(HasSubstr("nothing to evaluate in set \"x\""), HasSubstr(what_to_do)));
  // With statistics all rows are read before.
  const SetsRun early = TrainSets(job, small.folder() + "/early", {"data_desc.feature[a].vocabulary={ min_count: 1 }"});
  EXPECT_EQ(early.code, 3);
  EXPECT_THAT(early.said, AllOf(HasSubstr("eval.set.since: set \"x\": " + what_to_do), Not(HasSubstr("kept"))));
  const std::string seen = "the times in column \"day\" are from \"2026-11-01 10:00\" to \"2026-11-20 10:00\"";
  EXPECT_THAT(late.said, HasSubstr(seen));
  EXPECT_THAT(early.said, HasSubstr(seen));
  const std::string all = DaysJob(small, "eval { set { name: 'x' since { column: 'day' at: '2026-11-01' } } }");
  for (const char* const step : {"hash={}", "vocabulary={ min_count: 1 }"}) {
    const SetsRun none = TrainSets(all, small.folder() + "/none",
                                   {"data_desc.feature[a]={ name: 'a' }", "data_desc.feature[a]." + std::string(step)});
    EXPECT_EQ(none.code, 3) << none.said;
    EXPECT_THAT(none.said, AllOf(HasSubstr(seen), HasSubstr("; rows since \"2026-11-01\" are those of set \"x\"")));
  }
}

TEST(EvaluationSets, AHeaderThatLacksAColumnIsToldBeforeStatisticsAreTaken) {
  const SmallJob small(3, 1);
  std::ofstream(small.folder() + "/other.csv") << "click,aa,day\n1,2,2026-11-17\n";
  const std::string job = DaysJob(small, "eval { filelist: '" + small.folder() + "/other.csv' }", "1\n");
  const SetsRun run = TrainSets(job, small.folder() + "/out", {"data_desc.feature[a].vocabulary={ min_count: 1 }"});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.said,
              HasSubstr("before training: " + small.folder() + "/other.csv:1: the header has no column \"a\""))
      << "and not the bad line, which the statistics come upon";
}

TEST(EvaluationSets, ASetWithoutRowsIsNamed) {
  const SmallJob small(60, 1);
  const SetsRun run = TrainSets(small.DeepJob("eval { set { name: 'few' share: 0.0001 } }\n"), small.folder() + "/out");
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.said, HasSubstr("nothing to evaluate in set \"few\""));
}

// Rows of the watched set are what evaluations are compared by.
TEST(EvaluationSets, ARunThatGoesOnKeepsItsBestModelAsLongAsTheWatchedSetIsTheSame) {
  const SmallJob small(400, 2);
  const std::string job = small.DeepJob("eval { set { name: 'held' share: 0.2 } } checkpoint { keep_best: 'auc' }\n");
  const std::string note = "evaluations are not what they were";
  const auto go_on = [&](const std::vector<std::string>& more) {
    const std::string out = small.folder() + "/out";
    std::filesystem::remove_all(out);
    EXPECT_EQ(TrainSets(job, out, {"epochs=2"}).code, 0);
    std::vector<std::string> arguments = {"epochs=3", "--resume=auto"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const SetsRun run = TrainSets(job, out, arguments);
    EXPECT_EQ(run.code, 0) << run.said;
    return run.said;
  };
  EXPECT_THAT(go_on({"eval.set+={ name: \"more\" filelist: \"" + small.files()[0] + "\" }"}), Not(HasSubstr(note)));
  const std::string has_trained = " has other rows of the training files than before: the run may have trained some";
  EXPECT_THAT(go_on({"eval.set+={ name: \"another\" share: 0.1 }"}),
              AllOf(Not(HasSubstr(note)), Not(HasSubstr("\"held\"" + has_trained)),
                    HasSubstr("warning: eval.set \"another\"" + has_trained)))
      << "its share lies behind";
  EXPECT_THAT(go_on({"eval.set[held].share=0.1"}), Not(HasSubstr(has_trained)));
  EXPECT_THAT(go_on({"eval.set[held].share=0.3"}), AllOf(HasSubstr(note), HasSubstr("\"held\"" + has_trained)));
  EXPECT_THAT(go_on({"filelist=\"" + small.files()[0] + "\""}), HasSubstr(note));
}

TEST(EvaluationSets, AShareIsTheSameWhereverTheFolderLies) {
  const SmallJob small(300, 2);
  const auto held = [&](const std::string& folder) {
    const SetsRun run =
        TrainSets(small.DeepJob("eval { set { name: 'held' share: 0.3 } }\n"), small.folder() + "/out",
                  {"filelist=[\"" + folder + "/" + std::filesystem::path(small.files()[0]).filename().string() +
                   "\", \"" + folder + "/" + std::filesystem::path(small.files()[1]).filename().string() + "\"]"});
    EXPECT_EQ(run.code, 0) << run.said;
    return NumberOf(run.json, "loss", "\"eval\"");
  };
  const std::string here = std::filesystem::path(small.files()[0]).parent_path().string();
  EXPECT_EQ(held(here), held(here + "/../" + std::filesystem::path(here).filename().string()));
}

}  // namespace
}  // namespace millrace
