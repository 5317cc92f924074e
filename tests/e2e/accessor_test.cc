// Jobs with a table that counts shows and clicks: trained, killed, resumed, shrunk between days, predicted with.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

using testing::HasSubstr;

class AccessorJob : public testing::Test {
 protected:
  std::string Days(int days, const std::string& more = "shrink: true") {
    std::string passes;
    for (int day = 0; day < days; ++day) {
      passes += " pass { name: \"d" + std::to_string(day) + "\" filelist: \"" +
                small_.files()[static_cast<size_t>(day)] + "\" }";
    }
    return small_.CtrJob("update_mode: SERIAL output { tensorboard: false }\nincremental {" + passes + " " + more +
                         " }\n");
  }
  std::string Out(const std::string& name) const { return small_.folder() + "/" + name; }
  static std::vector<std::string> Flags(const std::string& job, const std::string& out, const std::string& resume) {
    return {"--trainer_desc=" + job, "--output_dir=" + out, "--resume=" + resume};
  }
  void Run(const std::vector<std::string>& flags) {
    Process trainer("trainer", flags);
    ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
    said_ = trainer.errors();
  }

  SmallJob small_{900};
  std::string said_;
};

TEST_F(AccessorJob, PredictsFromLinesWithoutWhatWasClicked) {
  Run(Flags(small_.CtrJob("update_mode: SERIAL epochs: 3"), Out("out"), "never"));
  const std::vector<std::string> scores = ScoresOf(Out("out"), {small_.files()[0]});
  const std::string model = ReadFile(Out("out") + "/model/MODEL").value();
  const std::string vars = model.substr(model.find("name: \"offline\""));
  EXPECT_THAT(vars.substr(0, vars.find("data_desc")), testing::Not(HasSubstr("label")));
  EXPECT_NE(scores[0], scores[1]);
}

TEST_F(AccessorJob, FusedOrNotItComesToTheSameBytes) {
  for (const char* fuse : {"true", "false"}) {
    Run(Flags(small_.CtrJob(std::string("update_mode: SERIAL fuse: ") + fuse), Out(fuse), "never"));
  }
  EXPECT_EQ(FolderContent(Out("true") + "/model"), FolderContent(Out("false") + "/model"));
}

TEST_F(AccessorJob, DaysShrinkOnceEach) {
  Run(Flags(Days(3), Out("days"), "never"));
  EXPECT_THAT(said_, HasSubstr("before pass d1: table t was shrunk to "));
  EXPECT_THAT(said_, HasSubstr("before pass d2: table t was shrunk to "));
  EXPECT_THAT(said_, testing::Not(HasSubstr("before pass d0")));
  Run(Flags(Days(3, ""), Out("kept"), "never"));
  EXPECT_THAT(said_, testing::Not(HasSubstr("shrunk")));
  EXPECT_LT(std::filesystem::file_size(Out("days") + "/model/tables/t"),
            std::filesystem::file_size(Out("kept") + "/model/tables/t"))
      << "ids of B occur once";
}

TEST_F(AccessorJob, MoreDaysAndADoneRunShrinkAsOneListDoes) {
  Run(Flags(Days(3), Out("all"), "never"));
  Run(Flags(Days(2), Out("days"), "never"));
  Run(Flags(Days(2), Out("days"), "auto"));  // nothing is left to do
  EXPECT_THAT(said_, testing::Not(HasSubstr("shrunk")));
  Run(Flags(Days(3), Out("days"), "auto"));
  EXPECT_EQ(FolderContent(Out("days") + "/model"), FolderContent(Out("all") + "/model"));
}

TEST_F(AccessorJob, ARunKilledAnywhereGoesOnToTheSameModel) {
  Run(Flags(Days(3), Out("calm"), "never"));
  for (const int lines : {1, 2, 3, 4}) {
    std::vector<std::string> flags = Flags(Days(3), Out("killed"), "auto");
    flags.insert(flags.end(), {"--set", "checkpoint.every_steps=2"});
    Process trainer("trainer", flags);
    std::string line;
    for (int i = 0; i < lines && trainer.ReadLine(&line); ++i) {
    }
    trainer.Signal(SIGKILL);
    trainer.Wait();
  }
  Run(Flags(Days(3), Out("killed"), "auto"));
  EXPECT_EQ(FolderContent(Out("killed") + "/model"), FolderContent(Out("calm") + "/model"));
}

TEST_F(AccessorJob, ModelsOfDaysHoldTheRowsOfTheirMode) {
  const auto rows = [this](const std::string& out, const std::string& day) {
    return std::filesystem::file_size(Out(out) + "/models/" + day + "/tables/t");
  };
  for (const char* mode : {"ALL", "BASE", "DELTA"}) {
    Run(Flags(Days(3, std::string("save_mode: ") + mode), Out(mode), "never"));
    EXPECT_EQ(ScoresOf(Out(mode), {small_.files()[0]}).size(), 300U);
  }
  EXPECT_LT(rows("BASE", "d2"), rows("ALL", "d2"));
  EXPECT_LE(rows("DELTA", "d2"), rows("BASE", "d2"));
  EXPECT_EQ(FolderContent(Out("BASE") + "/model"), FolderContent(Out("ALL") + "/model"));
  // Stopped after each day, the models of the others are the same.
  for (int days = 1; days <= 3; ++days) Run(Flags(Days(days, "save_mode: DELTA"), Out("stopped"), "auto"));
  EXPECT_EQ(FolderContent(Out("stopped") + "/models/d2"), FolderContent(Out("DELTA") + "/models/d2"));
}

TEST_F(AccessorJob, TwoWorkersTrainItInBothModes) {
  for (const char* mode : {"HOGWILD", "ROW_LOCK"}) {
    Run(Flags(small_.CtrJob(std::string("thread_num: 2 update_mode: ") + mode), Out(mode), "never"));
    EXPECT_THAT(said_, HasSubstr("900 examples"));
  }
}

TEST_F(AccessorJob, InspectShowsTheCountsOfASavedTable) {
  Run(Flags(small_.CtrJob("update_mode: SERIAL epochs: 1"), Out("out"), "never"));
  std::string table;
  for (const auto& entry : std::filesystem::directory_iterator(Out("out") + "/checkpoints")) {
    if (entry.is_directory()) table = entry.path().string() + "/tables/t";
  }
  Process shown("inspect", {"table", table, Out("out") + "/model/tables/t"});
  ASSERT_EQ(shown.Wait(), 0) << shown.errors();
  EXPECT_THAT(shown.output(),
              HasSubstr("rows of 7 weights in 21 floats, after 29 updates\n  CtrCommonAccessor embed: "));
  EXPECT_THAT(shown.output(), HasSubstr("  shows 2700.0, clicks "));
  EXPECT_THAT(shown.output(), HasSubstr("rows of 7 weights, without state\n"));
  std::filesystem::resize_file(table, std::filesystem::file_size(table) - 5);
  Process cut("inspect", {"table", table});
  EXPECT_EQ(cut.Wait(), 3);
  EXPECT_THAT(cut.errors(), HasSubstr("tables/t: saved table: it ends "));
}

TEST_F(AccessorJob, ThresholdsMayChangeWhenARunGoesOnAndRulesMayNot) {
  const std::string job = small_.CtrJob("update_mode: SERIAL epochs: 1");
  Run(Flags(job, Out("out"), "never"));
  std::vector<std::string> flags = Flags(job, Out("out"), "auto");
  flags.insert(flags.end(), {"--set", "epochs=2", "--set", "model.table[0].accessor.embedx_threshold=5"});
  Run(flags);
  flags.insert(flags.end(),
               {"--set", "epochs=3", "--set", "model.table[0].accessor.embed_sgd_param.name=\"StdAdaGradSGDRule\""});
  Process refused("trainer", flags);
  EXPECT_EQ(refused.Wait(), 2);
  EXPECT_THAT(refused.errors(), HasSubstr("embed_sgd_param"));
}

}  // namespace
}  // namespace millrace
