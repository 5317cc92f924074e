// Runs of a job that are compared by `inspect runs`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "e2e/process.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

/// A job with an evaluation, and runs of it.
class ComparedRuns {
 public:
  ComparedRuns() : small_(400, 2), job_(small_.DeepJob("epochs: 2 eval { filelist: '" + small_.files()[0] + "' }")) {}

  std::string Run(const std::string& name, const std::vector<std::string>& sets) const {
    std::vector<std::string> flags = {"--trainer_desc=" + job_, "--output_dir=" + folder(name)};
    for (const std::string& set : sets) flags.push_back("--set=" + set);
    Process trainer("trainer", flags);
    EXPECT_EQ(trainer.Wait(), 0) << trainer.errors();
    return folder(name);
  }

  std::string folder(const std::string& name) const { return small_.folder() + "/" + name; }

 private:
  SmallJob small_;
  std::string job_;
};

TEST(InspectRuns, ComparesWhatTrainingsHaveLeft) {
  const ComparedRuns runs;
  const std::vector<std::string> folders = {runs.Run("a", {"seed=1"}), runs.Run("b", {"seed=2"}),
                                            runs.Run("c", {"data_desc.batch_size=16"})};
  const std::string page = runs.folder("page.html");
  Process inspect("inspect", {"runs", folders[0], folders[1], folders[2] + "/", "--html=" + page});
  EXPECT_EQ(inspect.Wait(), 0) << inspect.errors();
  EXPECT_THAT(inspect.output(), HasSubstr("batch_size"));
  EXPECT_THAT(inspect.output(), HasSubstr("\nmean of 2 runs "));
  EXPECT_THAT(inspect.output(), HasSubstr("\n  a "));
  EXPECT_THAT(inspect.output(), HasSubstr("\nc "));
  EXPECT_THAT(inspect.output(), HasSubstr(" +- "));
  EXPECT_THAT(inspect.output(), HasSubstr("*"));
  EXPECT_THAT(inspect.output(), HasSubstr("  batch_size is data_desc.batch_size\n"));
  EXPECT_THAT(inspect.output(), Not(HasSubstr("output"))) << "where results went says nothing of a run";
  EXPECT_THAT(ReadFile(page).value(), HasSubstr("<title>a, evaluation</title>"));
}

TEST(InspectRuns, AFolderThatIsNoRunDoesNotHideTheOthers) {
  const ComparedRuns runs;
  const std::string good = runs.Run("a", {});
  const std::string cut = runs.Run("b", {});
  std::filesystem::resize_file(cut + "/metrics.jsonl", std::filesystem::file_size(cut + "/metrics.jsonl") - 3);
  const std::string bad = runs.Run("c", {});
  std::ofstream(bad + "/metrics.jsonl") << "no object\n";
  Process inspect("inspect", {"runs", good, cut, bad, runs.folder("absent")});
  EXPECT_EQ(inspect.Wait(), 3);
  EXPECT_THAT(inspect.output(), HasSubstr("a "));
  EXPECT_THAT(inspect.errors(), MatchesRegex("(.|\n)*/b/metrics.jsonl:[0-9]+: the last line is cut(.|\n)*"));
  EXPECT_THAT(inspect.errors(), HasSubstr("2 of 4 folders cannot be read"));
  EXPECT_THAT(inspect.errors(), HasSubstr("/c/metrics.jsonl:1: expected an object of JSON"));
  EXPECT_THAT(inspect.errors(), HasSubstr("no folder \"" + runs.folder("absent") + "\""));
}

TEST(InspectRuns, AFolderOfRunsStandsForThemAndFilesAreLeftOut) {
  const ComparedRuns runs;
  runs.Run("all/a", {"seed=1"});
  runs.Run("all/b", {"data_desc.batch_size=16"});
  std::ofstream(runs.folder("all/page.html")) << "a page";
  Process whole("inspect", {"runs", runs.folder("all")});
  EXPECT_EQ(whole.Wait(), 0) << whole.errors();
  EXPECT_THAT(whole.output(), HasSubstr("\na "));
  EXPECT_THAT(whole.output(), HasSubstr("\nb "));
  EXPECT_THAT(whole.output(), HasSubstr("the runs are in " + runs.folder("all") + "/"));
  Process each("inspect", {"runs", runs.folder("all/a"), runs.folder("all/b"), runs.folder("all/page.html")});
  EXPECT_EQ(each.Wait(), 0) << each.errors();
  EXPECT_EQ(each.output(), whole.output());
  EXPECT_THAT(each.errors(), HasSubstr("page.html\" is a file, and left out"));
}

TEST(InspectRuns, FlagsThatAreNotForItAreRefused) {
  const auto errors = [](const std::vector<std::string>& flags) {
    Process inspect("inspect", flags);
    EXPECT_EQ(inspect.Wait(), 2);
    return inspect.errors();
  };
  EXPECT_THAT(errors({"runs"}), HasSubstr("which runs?"));
  EXPECT_THAT(errors({"runs", "x", "--top=3"}), HasSubstr("--top is not for inspect runs"));
  EXPECT_THAT(errors({"runs", "x", "--set=seed=1"}), HasSubstr("--set and --plugin are not for inspect runs"));
  EXPECT_THAT(errors({"runs", "x", "--html=x/run.json"}), HasSubstr("which ends in .html: x/run.json"));
  const ComparedRuns runs;
  EXPECT_THAT(errors({"runs", runs.Run("a", {}), "--sort=rmse"}), HasSubstr("\"rmse\"; there are auc, "));
}

}  // namespace
}  // namespace millrace
