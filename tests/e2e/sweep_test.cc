// Sweeps over the fields of a job.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"
#include "paths.h"

namespace millrace {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// A job with an evaluation, and sweeps over it.
class SweptJob {
 public:
  explicit SweptJob(const std::string& extra = "epochs: 1")
      : small_(300, 2), job_(small_.DeepJob(extra + " eval { filelist: '" + small_.files()[0] + "' }")) {}

  const std::string& job() const { return job_; }
  std::string folder(const std::string& name = "out") const { return small_.folder() + "/" + name; }
  std::vector<std::string> Flags(const std::string& sweep, const std::vector<std::string>& more = {}) const {
    std::ofstream(folder("sweep.prototxt")) << sweep;
    std::vector<std::string> flags = {"--trainer_desc=" + job_, "--sweep=" + folder("sweep.prototxt"),
                                      "--output_dir=" + folder()};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

 private:
  SmallJob small_;
  std::string job_;
};

constexpr char kRates[] =
    "field { path: 'model.optimizer.adam.lr' value: ['0.001', '0.01'] }"
    "field { path: 'model.layer[h].fc.units' value: ['[8]', '[16, 8]'] } metric: 'auc'";

TEST(Sweep, TrainsAGridAndPutsItBesideEachOther) {
  const SweptJob job;
  Process looked("trainer", job.Flags(kRates, {"--validate_only"}));
  EXPECT_EQ(looked.Wait(), 0) << looked.errors();
  EXPECT_EQ(CountOf(looked.output(), "\n"), 4U);
  EXPECT_THAT(looked.output(), StartsWith("lr=0.001,units=8 --set 'model.optimizer.adam.lr=0.001' --set "
                                          "'model.layer[h].fc.units=[8]'\n"));
  EXPECT_FALSE(std::filesystem::exists(job.folder())) << "nothing has run";

  Process sweep("trainer", job.Flags(kRates));
  EXPECT_EQ(sweep.Wait(), 0) << sweep.errors();
  for (const char* name : {"lr=0.001,units=8", "lr=0.001,units=16_8", "lr=0.01,units=8", "lr=0.01,units=16_8"}) {
    EXPECT_THAT(sweep.output(), HasSubstr("\n" + std::string(name) + " "));
    EXPECT_TRUE(std::filesystem::exists(job.folder() + "/" + name + "/model"));
    EXPECT_THAT(ReadFile(job.folder() + "/" + name + "/log.txt").value(), HasSubstr("trained: 300 examples"));
  }
  EXPECT_THAT(sweep.errors(), HasSubstr("best by auc: --set 'model.optimizer.adam.lr="));
  EXPECT_THAT(ReadFile(job.folder() + "/runs.html").value(), HasSubstr("<svg"));

  // The same table by inspect, and by a sweep that has nothing left to do.
  Process again("trainer", job.Flags(kRates, {"--resume=auto"}));
  EXPECT_EQ(again.Wait(), 0) << again.errors();
  EXPECT_EQ(again.output(), sweep.output());
  EXPECT_EQ(CountOf(again.errors(), ": done before\n"), 4U) << again.errors();
  EXPECT_THAT(again.errors(), Not(HasSubstr("started")));
  // Another job is not the one that was done.
  Process other("trainer", job.Flags(kRates, {"--resume=auto", "--set=epochs=2"}));
  EXPECT_EQ(other.Wait(), 0) << other.errors();
  EXPECT_THAT(other.errors(), Not(HasSubstr("done before")));
  EXPECT_THAT(ReadFile(job.folder() + "/lr=0.01,units=8/log.txt").value(), HasSubstr("resumed with: epochs 1 -> 2"));
}

TEST(Sweep, OneThatFailsDoesNotKeepTheOthers) {
  const SweptJob job;
  const std::string commands = "field { path: 'data_desc.pipe_command' value: ['exit 3', 'cat'] }";
  Process sweep("trainer", job.Flags(commands));
  EXPECT_EQ(sweep.Wait(), 3);
  const std::string log = job.folder() + "/pipe_command=exit_3/log.txt";
  EXPECT_THAT(sweep.errors(), HasSubstr("pipe_command=exit_3: failed (exit code 3), see " + log + ": trainer: "));
  EXPECT_THAT(sweep.errors(), HasSubstr("pipe_command=cat: done"));
  EXPECT_THAT(sweep.errors(), HasSubstr("1 of 2 trainings failed: pipe_command=exit_3. log.txt in the folder"));
  EXPECT_THAT(sweep.output(), AllOf(HasSubstr("\npipe_command=cat "), Not(HasSubstr("exit_3"))));
  EXPECT_THAT(ReadFile(log).value(), HasSubstr("command exited with status 3"));
  Process again("trainer", job.Flags(commands, {"--resume=auto"}));
  EXPECT_EQ(again.Wait(), 3);
  EXPECT_THAT(again.errors(), HasSubstr("pipe_command=cat: done before"));
  EXPECT_THAT(again.errors(), HasSubstr("pipe_command=exit_3: started"));
}

TEST(Sweep, EndsWhereTheParentIgnoresChildren) {
  const SweptJob job;
  Process::Options options;
  options.ignores_children = true;
  Process sweep("trainer",
                job.Flags("field { path: 'data_desc.pipe_command' value: ['cat', 'exit 3', 'sed p'] } at_once: 2"),
                options);
  EXPECT_EQ(sweep.Wait(), 3);
  EXPECT_THAT(sweep.errors(), AllOf(HasSubstr("pipe_command=cat: done"), HasSubstr("pipe_command=sed_p: done"),
                                    HasSubstr("pipe_command=exit_3: failed (exit code 3)")));
}

TEST(Sweep, SeedsHaveAMean) {
  const SweptJob job;
  Process sweep("trainer", job.Flags("field { path: 'data_desc.batch_size' value: ['16', '64'] } seeds: [5, 6, 7]"));
  EXPECT_EQ(sweep.Wait(), 0) << sweep.errors();
  EXPECT_EQ(CountOf(sweep.output(), "\nmean of 3 runs "), 2U) << sweep.output();
  EXPECT_EQ(CountOf(sweep.output(), "\n  batch_size=16,seed="), 3U);
}

TEST(Sweep, AMistakeInAnyTrialIsToldBeforeOneRuns) {
  const SweptJob job;
  const auto errors = [&](const std::string& sweep, const std::vector<std::string>& more = {}) {
    Process process("trainer", job.Flags(sweep, more));
    EXPECT_EQ(process.Wait(), 2);
    EXPECT_FALSE(std::filesystem::exists(job.folder()));
    return process.errors();
  };
  EXPECT_THAT(errors("field { path: 'model.layer[h].fc.unit' value: '[8]' }"),
              AllOf(HasSubstr("sweep.prototxt:1:15: error: "), HasSubstr("did you mean \"units\"?")));
  EXPECT_THAT(errors("field { path: 'model.layer[h].fc.units' value: ['[8]', '[0]', '[-1]'] }"),
              AllOf(HasSubstr("with units=0: "), HasSubstr("units must be at least 1, not 0"),
                    HasSubstr("2 of the 3 trials have a mistake")));
  EXPECT_THAT(errors("field { path: 'model.layer[y].fc.units' value: ['1', '2'] }"), HasSubstr("with units=2: "))
      << "only the compiler knows that a log loss takes one column";
  EXPECT_THAT(errors(std::string(kRates) + "metric: 'x'"), HasSubstr("sweep.prototxt:"));
  EXPECT_THAT(errors("seeds: [1, 2]", {"--resume=" + job.folder()}), HasSubstr("--resume=auto or never"));
  EXPECT_THAT(errors("seeds: [1, 2]", {"--print_config"}), HasSubstr("a sweep is of many jobs"));
  EXPECT_THAT(errors("seeds: [1, 2]", {"--model=best"}), HasSubstr("--model is for an inference"));
  EXPECT_THAT(errors("seeds: [1, 2]", {"--set=infer=true"}), HasSubstr("the job says infer: true"));
}

TEST(Sweep, AMistakeOfAModelWithLearntFeaturesIsToldBeforeOneRuns) {
  const TempDir folder = TempDir::Create("sweep_features").value();
  const auto path = [&](const std::string& name) { return folder.path() + "/" + name; };
  std::ofstream(path("rows.csv")) << "label,x\n1,2\n0,3\n1,5\n0,7\n";
  std::ofstream(path("job.prototxt"))
      << "filelist: '" << path("rows.csv")
      << "' data_desc { name: 'csv' feature { name: 'label' id {} is_dense: true } feature { name: 'x' standardize {} "
         "} }\n"
         "model { layer { name: 'y' fc { in: 'x' units: 1 } }\n"
         "loss { kind: SIGMOID_CROSS_ENTROPY in: 'y' label: 'label' } optimizer { sgd { lr: 0.1 } } }\n";
  std::ofstream(path("sweep.prototxt")) << "field { path: 'model.layer[y].fc.units' value: ['1', '2'] }";
  Process sweep("trainer", {"--trainer_desc=" + path("job.prototxt"), "--sweep=" + path("sweep.prototxt"),
                            "--output_dir=" + path("out"), "--validate_only"});
  EXPECT_EQ(sweep.Wait(), 2);
  EXPECT_THAT(sweep.errors(), AllOf(HasSubstr("with units=2: "), HasSubstr("SIGMOID_CROSS_ENTROPY wants [batch, 1]")));
}

TEST(Sweep, AMisspeltMetricIsToldBeforeOneRuns) {
  const SweptJob job;
  const auto errors = [&](const std::string& sweep) {
    Process process("trainer", job.Flags(sweep));
    EXPECT_EQ(process.Wait(), 2);
    EXPECT_FALSE(std::filesystem::exists(job.folder()));
    return process.errors();
  };
  EXPECT_THAT(
      errors("seeds: [1, 2] metric: 'acu'"),
      AllOf(HasSubstr("sweep.prototxt:1:23: error: the job has no metric \"acu\"; did you mean \"auc\"? It has "),
            HasSubstr("auc, logloss"), HasSubstr(" and loss\n")));
  EXPECT_THAT(errors("seeds: [1, 2] metric: 'x'"), HasSubstr("the job has no metric \"x\"; it has auc"));
}

TEST(Sweep, AMetricWithoutEvaluationsIsTold) {
  const SmallJob small(30, 1);
  const std::string job = small.DeepJob("epochs: 1");
  const std::string sweep = small.folder() + "/sweep.prototxt";
  std::ofstream(sweep) << "seeds: [1, 2] metric: 'auc'";
  Process process("trainer", {"--trainer_desc=" + job, "--sweep=" + sweep, "--output_dir=" + small.folder() + "/out"});
  EXPECT_EQ(process.Wait(), 2);
  EXPECT_THAT(process.errors(),
              HasSubstr("sweep.prototxt:1:23: error: metrics are those of evaluations, and the job has none: give it "
                        "eval { filelist: \"...\" }"));
}

TEST(Sweep, TheMetricsOfFeaturesThatLearnAreKnownBeforeOneRuns) {
  const TempDir folder = TempDir::Create("sweep").value();
  std::string rows = "click,age\n";
  for (int i = 0; i < 200; ++i) rows += std::to_string(i % 3 == 0) + "," + std::to_string(20 + i % 50) + "\n";
  std::ofstream(folder.path() + "/rows.csv") << rows;
  const std::string files = "filelist: '" + folder.path() + "/rows.csv' ";
  std::ofstream(folder.path() + "/job.prototxt") << files << "epochs: 2 eval { " << files << "}"
                                                 << R"(
    data_desc {
      name: "csv" batch_size: 8
      feature { name: "label" from: "click" id {} is_dense: true }
      feature { name: "age" standardize {} }
    }
    model {
      layer { name: "y" fc { in: "age" units: 1 } }
      loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "label" }
      metric { kind: AUC } metric { kind: LOGLOSS }
      optimizer { sgd { lr: 0.01 } }
    })";
  const auto run = [&](const std::string& sweep) {
    std::ofstream(folder.path() + "/sweep.prototxt") << sweep;
    return std::make_unique<Process>("trainer",
                                     std::vector<std::string>{"--trainer_desc=" + folder.path() + "/job.prototxt",
                                                              "--sweep=" + folder.path() + "/sweep.prototxt",
                                                              "--output_dir=" + folder.path() + "/out"});
  };
  const auto misspelt = run("seeds: [1, 2]\nmetric: 'loglos'");
  EXPECT_EQ(misspelt->Wait(), 2);
  EXPECT_THAT(misspelt->errors(), HasSubstr("sweep.prototxt:2:9: error: the job has no metric \"loglos\"; did you mean "
                                            "\"logloss\"? It has auc, logloss and loss"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/out"));
  // A rate at which nothing is learnt has a larger logloss, which is not the better one.
  const auto halving =
      run("field { path: 'model.optimizer.sgd.lr' value: ['0.00001', '0.5'] } metric: 'logloss'"
          " halving { first_epochs: 1 factor: 2 }");
  EXPECT_EQ(halving->Wait(), 0) << halving->errors();
  EXPECT_THAT(halving->errors(), HasSubstr("best by logloss: --set 'model.optimizer.sgd.lr=0.5'"));
}

TEST(Sweep, PlacesThatTrainingsWouldShareAreTold) {
  const SweptJob job("epochs: 1 dump_fields: 'y' dump_fields_path: 'dump' output { export { format: ONNX dir: 'x' } }");
  Process shared("trainer", job.Flags("seeds: [1, 2]", {"--set=output.export[0].vocabulary=100"}));
  EXPECT_EQ(shared.Wait(), 2);
  EXPECT_THAT(shared.errors(), AllOf(HasSubstr("several trainings of the sweep would write to \"dump\""),
                                     HasSubstr("leave output.export[0].dir out")));
  Process own("trainer", job.Flags("field { path: 'dump_fields_path' value: ['" + job.folder("d1") + "', '" +
                                       job.folder("d2") + "'] }",
                                   {"--set=output={}"}));
  EXPECT_EQ(own.Wait(), 0) << own.errors();
  EXPECT_TRUE(std::filesystem::exists(job.folder("d2")));
}

TEST(Sweep, HalvingGoesOnWithTheBetterOnes) {
  const SweptJob job("epochs: 4");
  const std::string halving =
      "field { path: 'model.optimizer.adam.lr' value: ['0.00001', '0.0001', '0.001', '0.01'] }"
      "halving { first_epochs: 1 factor: 2 } metric: 'logloss'";
  Process sweep("trainer", job.Flags(halving));
  EXPECT_EQ(sweep.Wait(), 0) << sweep.errors();
  EXPECT_THAT(sweep.errors(), HasSubstr("round 3 of 3: 1 trial, up to 4 epochs"));
  const std::string rounds = ReadFile(job.folder() + "/rounds.jsonl").value();
  EXPECT_EQ(CountOf(rounds, "\"epochs\":1,"), 4U);
  EXPECT_EQ(CountOf(rounds, "\"epochs\":2,"), 2U);
  EXPECT_EQ(CountOf(rounds, "\"goes_on\":true"), 3U);
  std::map<std::string, int> epochs;
  for (const char* lr : {"0.00001", "0.0001", "0.001", "0.01"}) {
    const std::string run = ReadFile(job.folder() + "/lr=" + lr + "/run.json").value();
    const size_t at = run.find("\"examples\": ");
    epochs[lr] = std::stoi(run.substr(at + 12)) / 300;
  }
  std::vector<int> sorted;
  for (const auto& [lr, count] : epochs) sorted.push_back(count);
  std::sort(sorted.begin(), sorted.end());
  EXPECT_THAT(sorted, testing::ElementsAre(1, 1, 2, 4)) << "each by the epochs of its rounds, none twice";

  // What was decided stays decided, though the values of those that went on are others now.
  Process again("trainer", job.Flags(halving, {"--resume=auto"}));
  EXPECT_EQ(again.Wait(), 0) << again.errors();
  EXPECT_EQ(again.output(), sweep.output());
  EXPECT_EQ(CountOf(again.errors(), "decided before"), 2U);
  EXPECT_EQ(ReadFile(job.folder() + "/rounds.jsonl").value(), rounds);
}

TEST(Sweep, AHalvingOfAnotherJobIsDecidedAgain) {
  const SweptJob job("epochs: 2");
  const std::string field = "field { path: 'model.optimizer.adam.lr' value: ['0.00001', '0.01'] } ";
  const std::string halving = field + "halving { first_epochs: 1 factor: 2 } metric: 'logloss'";
  Process sweep("trainer", job.Flags(halving));
  EXPECT_EQ(sweep.Wait(), 0) << sweep.errors();
  const auto decided = [&](const std::string& text, const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--resume=auto"};
    flags.insert(flags.end(), more.begin(), more.end());
    Process again("trainer", job.Flags(text, flags));
    EXPECT_EQ(again.Wait(), 0) << again.errors();
    return CountOf(again.errors(), "decided before");
  };
  EXPECT_EQ(decided(halving, {}), 1U);
  EXPECT_EQ(decided(halving, {"--set=epochs=3"}), 1U) << "the round is the same, whatever follows it";
  EXPECT_EQ(decided(field + "halving { first_epochs: 1 factor: 2 } metric: 'auc'", {"--set=epochs=3"}), 0U);
  EXPECT_EQ(decided(field + "halving { first_epochs: 1 factor: 3 } metric: 'auc'", {"--set=epochs=3"}), 0U);
  EXPECT_EQ(decided(field + "halving { first_epochs: 1 factor: 3 } metric: 'auc'", {"--set=epochs=3"}), 1U);
  EXPECT_EQ(decided(field + "halving { first_epochs: 1 factor: 3 } metric: 'auc'",
                    {"--set=epochs=3", "--set=data_desc.batch_size=17"}),
            0U);
}

TEST(Sweep, AHalvingShowsNoRunThatIsNotThereAnyMore) {
  const SweptJob job("epochs: 2");
  const std::string halving =
      "field { path: 'model.optimizer.adam.lr' value: ['0.00001', '0.01'] }"
      "halving { first_epochs: 1 factor: 2 } metric: 'logloss'";
  Process sweep("trainer", job.Flags(halving));
  EXPECT_EQ(sweep.Wait(), 0) << sweep.errors();
  EXPECT_THAT(sweep.output(), AllOf(HasSubstr("\nlr=0.00001 "), HasSubstr("\nlr=0.01 ")));
  // Another training took the folder of the one that was thrown out.
  const bool is_first = CountOf(sweep.errors(), "best by logloss: --set 'model.optimizer.adam.lr=0.01'") == 1;
  const std::string thrown_out = is_first ? "lr=0.00001" : "lr=0.01";
  Process other("trainer", {"--trainer_desc=" + job.job(), "--output_dir=" + job.folder() + "/" + thrown_out,
                            "--set=data_desc.batch_size=64"});
  EXPECT_EQ(other.Wait(), 0) << other.errors();
  Process again("trainer", job.Flags(halving, {"--resume=auto"}));
  EXPECT_EQ(again.Wait(), 0) << again.errors();
  EXPECT_THAT(again.errors(), HasSubstr("decided before"));
  EXPECT_THAT(again.output(), Not(HasSubstr(thrown_out + " ")));
}

TEST(Sweep, TheBestOfAHalvingWentToItsLastRound) {
  const SweptJob job("epochs: 2");
  const std::string halving =
      "field { path: 'model.optimizer.adam.lr' value: ['0.0001', '0.001'] }"
      "halving { first_epochs: 1 factor: 2 } metric: 'logloss'";
  Process sweep("trainer", job.Flags(halving));
  EXPECT_EQ(sweep.Wait(), 0) << sweep.errors();
  // What was thrown out looks better than what went on, as it does where more epochs spoil a model.
  const std::string rounds = ReadFile(job.folder() + "/rounds.jsonl").value();
  const bool is_first = rounds.find("\"goes_on\":true") < rounds.find('\n');
  const std::string thrown_out = job.folder() + (is_first ? "/lr=0.001" : "/lr=0.0001") + "/metrics.jsonl";
  std::string metrics = ReadFile(thrown_out).value();
  size_t changed = 0;
  for (size_t at = metrics.find("\"eval_logloss\":"); at != std::string::npos;
       at = metrics.find("\"eval_logloss\":", at + 1)) {
    const size_t begin = metrics.find(':', at) + 1;
    metrics.replace(begin, metrics.find_first_of(",}", begin) - begin, "0.0001");
    ++changed;
  }
  ASSERT_GT(changed, 0U) << metrics;
  std::ofstream(thrown_out) << metrics;
  Process again("trainer", job.Flags(halving, {"--resume=auto"}));
  EXPECT_EQ(again.Wait(), 0) << again.errors();
  EXPECT_THAT(again.output(), HasSubstr("0.0001"));
  EXPECT_THAT(again.errors(), HasSubstr(std::string("best by logloss: --set 'model.optimizer.adam.lr=") +
                                        (is_first ? "0.0001'" : "0.001'")));
}

TEST(Sweep, FailedTrainingsAreNamedThoughTheTableIsLost) {
  const std::string commands = "field { path: 'data_desc.pipe_command' value: ['exit 3', 'cat'] }";
  const SweptJob job;
  Process unread("trainer", job.Flags(commands));
  unread.CloseOutput();
  EXPECT_EQ(unread.Wait(), 128 + SIGPIPE);
  EXPECT_THAT(unread.errors(), HasSubstr("1 of 2 trainings failed: pipe_command=exit_3."));
  std::filesystem::remove(job.folder() + "/runs.html");
  std::filesystem::create_directory(job.folder() + "/runs.html");
  Process no_page("trainer", job.Flags(commands));
  EXPECT_EQ(no_page.Wait(), 3);
  EXPECT_THAT(no_page.errors(),
              AllOf(HasSubstr("1 of 2 trainings failed: pipe_command=exit_3."), HasSubstr("runs.html")));
}

/// Waits for trainings that are under way, until both have written a line of metrics.
void AwaitTrainings(const SweptJob& job, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    std::error_code none;
    while (std::filesystem::file_size(job.folder() + "/" + name + "/metrics.jsonl", none) + 1 < 2) {
      std::this_thread::yield();
    }
  }
}

constexpr char kTwoSeeds[] = "seeds: [1, 2] at_once: 2";

TEST(Sweep, AStopReachesAllTrainings) {
  const SweptJob job("epochs: 100000");
  Process sweep("trainer", job.Flags(kTwoSeeds));
  AwaitTrainings(job, {"seed=1", "seed=2"});
  sweep.Signal(SIGINT);
  EXPECT_EQ(sweep.Wait(), 130);
  EXPECT_EQ(CountOf(sweep.errors(), ": stopped\n"), 2U) << sweep.errors();
  EXPECT_THAT(sweep.errors(), HasSubstr("go on with --resume=auto"));
  EXPECT_FALSE(AnyProcessMentions("--output_dir=" + job.folder()));
  for (const char* name : {"seed=1", "seed=2"}) {
    EXPECT_THAT(ReadFile(job.folder() + "/" + name + "/log.txt").value(), HasSubstr("go on       with --resume=auto"));
    EXPECT_THAT(ReadFile(job.folder() + "/" + name + "/run.json").value(), HasSubstr("\"interrupted\": true"));
  }
  // They are not taken for done.
  Process again("trainer", job.Flags(kTwoSeeds, {"--resume=auto"}));
  std::string log;
  while (log.find("going on from") == std::string::npos) log = ReadFile(job.folder() + "/seed=2/log.txt").value();
  again.Signal(SIGTERM);
  EXPECT_EQ(again.Wait(), 130);
}

TEST(Sweep, NothingIsLeftOfOneThatIsKilled) {
  const SweptJob job("epochs: 100000");
  Process sweep("trainer", job.Flags(kTwoSeeds));
  AwaitTrainings(job, {"seed=1", "seed=2"});
  sweep.Signal(SIGKILL);
  EXPECT_EQ(sweep.Wait(), 128 + SIGKILL);
  while (AnyProcessMentions("--output_dir=" + job.folder())) std::this_thread::yield();
}

TEST(Sweep, OneAtATimeWritesIntoAFolder) {
  const SweptJob job("epochs: 100000");
  const std::string one = "field { path: 'seed' value: '1' }";
  Process sweep("trainer", job.Flags(one));
  AwaitTrainings(job, {"seed=1"});
  Process second("trainer", job.Flags(one));
  EXPECT_EQ(second.Wait(), 2);
  EXPECT_THAT(second.errors(), HasSubstr("another run is writing to the output folder"));
  sweep.Signal(SIGTERM);
  EXPECT_EQ(sweep.Wait(), 130);
}

/// What docs/recipes/hyper_parameters.md shows: its files by their names, and its commands.
struct Recipe {
  std::map<std::string, std::string> files;
  std::vector<std::string> commands;
};

Recipe ReadRecipe() {
  std::istringstream page(ReadFile(SourceDir() + "/docs/recipes/hyper_parameters.md").value());
  Recipe recipe;
  std::string name;
  bool is_within = false;
  for (std::string line; std::getline(page, line);) {
    if (line == "```") {
      is_within = !is_within;
    } else if (is_within) {
      recipe.files[name] += line + "\n";
    } else if (line.starts_with("    ")) {
      recipe.commands.push_back(line.substr(4));
    } else if (line.ends_with(".prototxt`:")) {
      const size_t begin = line.rfind('`', line.size() - 3) + 1;
      name = line.substr(begin, line.size() - 2 - begin);
    }
  }
  return recipe;
}

TEST(Sweep, TheRecipeRunsAsItStandsThere) {
  const SweptJob job;
  const Recipe recipe = ReadRecipe();
  ASSERT_EQ(recipe.files.size(), 3U);
  ASSERT_EQ(recipe.commands.size(), 6U);
  for (const auto& [name, text] : recipe.files) std::ofstream(job.folder(name)) << text;
  std::filesystem::copy_file(job.job(), job.folder("job.prototxt"));
  for (const std::string& command : recipe.commands) {
    const std::string line =
        "cd '" + job.folder("") + "' && PATH='" + BinDir() + "':$PATH " + command + " 2>err >out.txt";
    const int status = std::system(line.c_str());
    EXPECT_EQ(status, 0) << command << "\n" << ReadFile(job.folder("err")).value();
    EXPECT_THAT(ReadFile(job.folder("out.txt")).value(), Not(testing::IsEmpty()));
  }
  EXPECT_TRUE(std::filesystem::exists(job.folder("out/all.html")));
  EXPECT_TRUE(std::filesystem::exists(job.folder("out/grid/lr=0.01,units=32/run.json"))) << "as the page has it";
}

}  // namespace
}  // namespace millrace
