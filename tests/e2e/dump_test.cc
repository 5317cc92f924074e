#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> LinesOf(const std::string& path) {
  std::istringstream text(ReadFile(path).value());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

/// Five named examples with a sparse slot x and a dense one d, and a job that dumps into DIR/dump.
class DumpTest : public testing::Test {
 protected:
  DumpTest() : folder_(TempDir::Create("dump").value()) {
    std::ofstream lines(folder() + "/part");
    for (int i = 0; i < 5; ++i) {
      lines << "1 id" << i << " 2 " << i + 1 << ' ' << i + 3 << " 2 " << i * 0.5 << " 1e-10 1 " << i % 2 << '\n';
    }
    std::ofstream job(folder() + "/job.prototxt");
    job << "filelist: \"" << folder() << "/part\"\n"
        << R"(
update_mode: SERIAL
data_desc {
  batch_size: 2
  parse_ins_id: true
  multi_slot_desc {
    slots { name: "x" type: "uint64" is_used: true }
    slots { name: "d" type: "float" is_used: true is_dense: true shape: [-1, 2] }
    slots { name: "label" type: "float" is_used: true is_dense: true shape: [-1, 1] }
  }
}
model {
  table { name: "t" dim: 3 init { uniform: 0.1 } optimizer { sgd { lr: 0.1 } } }
  layer { name: "e" embedding { slots: "x" table: "t" pool: SUM } }
  layer { name: "y" fc { in: ["e", "d"] units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "label" }
  optimizer { sgd { lr: 0.1 } }
}
)";
  }

  const std::string& folder() const { return folder_.path(); }
  std::string file(const std::string& name = "part-000-00000") const { return folder() + "/dump/" + name; }

  int Train(const std::vector<std::string>& settings) {
    std::vector<std::string> flags = {"--trainer_desc=" + folder() + "/job.prototxt",
                                      "--set=dump_fields_path=\"" + folder() + "/dump\"", "--set=dump_file_num=1"};
    for (const std::string& setting : settings) flags.push_back("--set=" + setting);
    Process trainer("trainer", flags);
    const int code = trainer.Wait();
    errors_ = trainer.errors();
    return code;
  }

  TempDir folder_;
  std::string errors_;
};

// The same lines that Paddle 2.6.2 dumps of these rows and slots.
TEST_F(DumpTest, LinesAreThoseOfPaddle) {
  ASSERT_EQ(Train({"dump_fields=[\"x\", \"d\"]"}), 0) << errors_;
  EXPECT_THAT(LinesOf(file()),
              ElementsAre("id0\t\tx:2:1,3\td:2:0,1e-10", "id1\t\tx:2:2,4\td:2:0.5,1e-10", "id2\t\tx:2:3,5\td:2:1,1e-10",
                          "id3\t\tx:2:4,6\td:2:1.5,1e-10", "id4\t\tx:2:5,7\td:2:2,1e-10"));
}

TEST_F(DumpTest, ParametersFollowTheBatchThatChangedThem) {
  ASSERT_EQ(Train({"dump_fields=\"d\"", "dump_param=[\"y.b_0\", \"y.w_0\"]"}), 0) << errors_;
  const std::vector<std::string> lines = LinesOf(file());
  ASSERT_EQ(lines.size(), 5u + 2 * 3);
  EXPECT_EQ(lines[0], "id0\t\td:2:0,1e-10");
  EXPECT_THAT(lines[2], testing::StartsWith("(0,0,y.b_0)"));
  EXPECT_THAT(lines[6], testing::StartsWith("(0,1,y.b_0)"));
  EXPECT_NE(lines[2].substr(10), lines[6].substr(10)) << "the bias did not change";
  EXPECT_EQ(std::count(lines[3].begin(), lines[3].end(), ','), 2 + 4) << lines[3];
}

// Paddle 2.6.2 chooses id2 and id3 of these names.
TEST_F(DumpTest, ChoosesInstancesByNameAsPaddleDoes) {
  ASSERT_EQ(Train({"dump_fields=\"x\"", "enable_random_dump=true", "random_with_lineid=true", "dump_interval=2"}), 0)
      << errors_;
  EXPECT_THAT(LinesOf(file()), ElementsAre("id2\t\tx:2:3,5", "id3\t\tx:2:4,6"));
}

TEST_F(DumpTest, RandomChoiceIsTheSameInEveryRun) {
  const std::vector<std::string> settings = {"dump_fields=\"x\"", "enable_random_dump=true", "dump_interval=2"};
  ASSERT_EQ(Train(settings), 0) << errors_;
  const std::vector<std::string> first = LinesOf(file());
  EXPECT_LT(first.size(), 5u);
  EXPECT_GT(first.size(), 0u);
  ASSERT_EQ(Train(settings), 0) << errors_;
  EXPECT_EQ(LinesOf(file()), first);
}

TEST_F(DumpTest, SimpleModeHasValuesAlone) {
  ASSERT_EQ(Train({"dump_fields=[\"x\", \"d\"]", "is_dump_in_simple_mode=true", "dump_num_decimals=3"}), 0) << errors_;
  EXPECT_THAT(LinesOf(file()), ElementsAre("1 3\t0 0", "2 4\t0.500 0", "3 5\t1.000 0", "4 6\t1.500 0", "5 7\t2.000 0"));
}

TEST_F(DumpTest, BatchesGoToFilesInTurn) {
  ASSERT_EQ(Train({"dump_fields=\"x\"", "dump_file_num=2", "user_define_dump_filename=\"mine\""}), 0) << errors_;
  EXPECT_THAT(LinesOf(file("part-mine-00000")), ElementsAre("id0\t\tx:2:1,3", "id1\t\tx:2:2,4", "id4\t\tx:2:5,7"));
  EXPECT_THAT(LinesOf(file("part-mine-00001")), ElementsAre("id2\t\tx:2:3,5", "id3\t\tx:2:4,6"));
}

TEST_F(DumpTest, AppendsWhenAskedTo) {
  ASSERT_EQ(Train({"dump_fields=\"x\""}), 0) << errors_;
  ASSERT_EQ(Train({"dump_fields=\"x\"", "dump_fields_mode=\"a\""}), 0) << errors_;
  EXPECT_EQ(LinesOf(file()).size(), 10u);
  ASSERT_EQ(Train({"dump_fields=\"x\""}), 0) << errors_;
  EXPECT_EQ(LinesOf(file()).size(), 5u);
}

TEST_F(DumpTest, GoesThroughTheConverter) {
  ASSERT_EQ(Train({"dump_fields=\"x\"", "dump_converter=\"tr a-z A-Z | tac\""}), 0) << errors_;
  const std::vector<std::string> lines = LinesOf(file());
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[4], "ID0\t\tX:2:1,3");
}

TEST_F(DumpTest, ReportsAConverterThatFails) {
  EXPECT_EQ(Train({"dump_fields=\"x\"", "dump_converter=\"cat; echo no space left for me >&2; exit 3\""}), 3);
  EXPECT_THAT(errors_, HasSubstr("dump_converter \"cat; echo no space left for me >&2; exit 3\""));
  EXPECT_THAT(errors_, HasSubstr("exited with status 3"));
  EXPECT_THAT(errors_, HasSubstr("no space left for me"));
}

TEST_F(DumpTest, ReportsAConverterThatEndsEarly) {
  EXPECT_EQ(Train({"dump_fields=\"x\"", "epochs=200", "dump_converter=\"exec true\""}), 3);
  EXPECT_THAT(errors_, HasSubstr("dump_converter \"exec true\""));
}

TEST_F(DumpTest, ReportsAFullDisk) {
  std::filesystem::create_directory(folder() + "/dump");
  std::filesystem::create_symlink("/dev/full", file());
  EXPECT_EQ(Train({"dump_fields=\"x\""}), 3);
  EXPECT_THAT(errors_, HasSubstr("part-000-00000: write: No space left on device"));
}

TEST_F(DumpTest, NamesTheNearestVariable) {
  EXPECT_EQ(Train({"dump_fields=[\"yy\", \"x\"]", "dump_param=\"t\""}), 2);
  EXPECT_THAT(errors_, HasSubstr("--set #3:1:14: error: there is no variable \"yy\"; did you mean \"y\"?"));
  EXPECT_THAT(errors_, HasSubstr("--set #4:1:12: error: \"t\" is a table of rows by id"));
}

TEST_F(DumpTest, SaysWhichVariableHasNoRows) {
  ASSERT_EQ(Train({"dump_fields=[\"loss\", \"x\"]"}), 0) << errors_;
  EXPECT_THAT(errors_, HasSubstr("dump_fields: \"loss\" has no row for each example and is left out"));
  EXPECT_EQ(LinesOf(file())[0], "id0\t\tx:2:1,3");
}

TEST_F(DumpTest, AConverterThatHangsDoesNotOutliveAStop) {
  Process trainer("trainer", {"--trainer_desc=" + folder() + "/job.prototxt", "--set=epochs=100000",
                              "--set=dump_fields_path=\"" + folder() + "/dump\"", "--set=dump_file_num=1",
                              "--set=dump_fields=\"x\"", "--set=dump_converter=\"sleep 1000\"",
                              "--set=fetch_config.fetch_var_names=\"loss\"", "--set=fetch_config.print_period=1"});
  std::string line;
  ASSERT_TRUE(trainer.ReadLine(&line)) << trainer.errors();
  const auto start = std::chrono::steady_clock::now();
  trainer.Signal(SIGINT);
  EXPECT_EQ(trainer.Wait(), 3) << trainer.errors();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_THAT(trainer.errors(), HasSubstr("did not end after the stop"));
}

}  // namespace
}  // namespace millrace
