#include "app/command_line.h"

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "app/help_text.h"
#include "core/file.h"

DEFINE_string(trainer_desc, "", "FILE: the job, a TrainerDesc in text format");
DEFINE_int32(thread_num, 4, "worker threads");
DEFINE_bool(validate_only, false, "checks the job and ends");
DEFINE_bool(progress, true, "shows progress");

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ProgramInfo Program() {
  ProgramInfo program;
  program.name = "trainer";
  program.summary = "trains a model.";
  program.usage = "trainer --trainer_desc=FILE [flags]";
  program.groups = {{"Job", {"trainer_desc", "thread_num"}}, {"Look, do not train", {"validate_only", "progress"}}};
  program.repeated = {{"set", "PATH=VALUE", "Overrides a field."}};
  program.examples = "trainer --trainer_desc=configs/wide_deep.prototxt\ntrainer --version";
  return program;
}

class CommandLineTest : public ::testing::Test {
 protected:
  CommandLine Parse(std::vector<std::string> arguments) {
    std::vector<char*> argv = {program_.data()};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    CommandLine result = ParseCommandLine(Program(), static_cast<int>(argv.size()), argv.data());
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return result;
  }

  std::string program_ = "trainer";
  std::string out_;
  std::string err_;
  gflags::FlagSaver saver_;
};

TEST_F(CommandLineTest, SetsFlagsInEverySpelling) {
  const CommandLine line =
      Parse({"--trainer_desc=a.prototxt", "-thread-num", "8", "--validate_only", "--noprogress", "x", "--", "--y"});
  EXPECT_FALSE(line.exit_code) << err_;
  EXPECT_EQ(FLAGS_trainer_desc, "a.prototxt");
  EXPECT_EQ(FLAGS_thread_num, 8);
  EXPECT_TRUE(FLAGS_validate_only);
  EXPECT_FALSE(FLAGS_progress);
  EXPECT_THAT(line.arguments, ElementsAre("x", "--y"));
}

TEST_F(CommandLineTest, AFlagThatIsGivenTwiceIsTold) {
  EXPECT_TRUE(Parse({"--thread_num=2", "--progress", "--thread_num=3", "--progress=true"}).status.ok());
  EXPECT_EQ(FLAGS_thread_num, 3);
  EXPECT_EQ(err_, "warning: --thread_num is given twice, and the last one counts: 3\n");
  EXPECT_TRUE(Parse({"--trainer_desc=a", "--trainer_desc=\033[31mb\nc"}).status.ok());
  EXPECT_EQ(err_, "warning: --trainer_desc is given twice, and the last one counts: \\x1b[31mb\\x0ac\n");
}

TEST_F(CommandLineTest, KeepsEveryUseOfARepeatedFlag) {
  const CommandLine line = Parse({"--set=a=1", "--set", "b=2", "--set=filelist+=x"});
  ASSERT_FALSE(line.exit_code) << err_;
  EXPECT_THAT(line.repeated, ElementsAre(ElementsAre("a=1", "b=2", "filelist+=x")));
}

TEST_F(CommandLineTest, NamesEveryMistakeAndTheNearestFlag) {
  const CommandLine line =
      Parse({"--trainer_dsc=a", "--thread_num=two", "--validate_only=maybe", "--zebra", "--trainer_desc"});
  EXPECT_EQ(line.exit_code, 2);
  EXPECT_EQ(err_,
            "trainer: unknown flag --trainer_dsc; did you mean --trainer_desc?\n"
            "trainer: --thread_num: expected a whole number, not \"two\"\n"
            "trainer: --validate_only: expected true or false, not \"maybe\"\n"
            "trainer: unknown flag --zebra\n"
            "trainer: --trainer_desc needs a value: --trainer_desc=… (FILE: the job, a TrainerDesc in text format)\n"
            "Run \"trainer --help\" for the flags.\n");
}

TEST_F(CommandLineTest, AFlagWasTakenForTheValueOfTheOneBefore) {
  EXPECT_EQ(Parse({"--trainer_desc", "--thread_num=2"}).exit_code, 2);
  EXPECT_THAT(err_, HasSubstr("trainer: --trainer_desc needs a value: --trainer_desc=… (FILE: "));
  EXPECT_FALSE(Parse({"--trainer_desc", "--strange-name.prototxt"}).exit_code.has_value());
}

TEST_F(CommandLineTest, AVeryLongArgumentIsNotRepeatedToItsEnd) {
  EXPECT_EQ(Parse({"--" + std::string(100000, 'x')}).exit_code, 2);
  EXPECT_LT(err_.size(), 3000U);
  EXPECT_THAT(err_, HasSubstr("xxx … (100015 bytes) … xxx"));
}

TEST_F(CommandLineTest, HelpIsGroupedAndEndsWell) {
  EXPECT_EQ(Parse({"--help"}).exit_code, 0);
  EXPECT_EQ(out_,
            "trainer: trains a model.\n"
            "\n"
            "usage: trainer --trainer_desc=FILE [flags]\n"
            "\n"
            "Job:\n"
            "  --trainer_desc=FILE\n"
            "      the job, a TrainerDesc in text format\n"
            "  --thread_num=N\n"
            "      worker threads (default: 4)\n"
            "  --set=PATH=VALUE\n"
            "      Overrides a field. (repeatable)\n"
            "\n"
            "Look, do not train:\n"
            "  --validate_only\n"
            "      checks the job and ends\n"
            "  --noprogress\n"
            "      shows progress (default: on)\n"
            "\n"
            "General:\n"
            "  --flagfile=FILE\n"
            "      read flags from a file, one per line; # starts a comment\n"
            "  --help\n"
            "      show this help\n"
            "  --version\n"
            "      show the version and the compiled-in features\n"
            "\n"
            "examples:\n"
            "  trainer --trainer_desc=configs/wide_deep.prototxt\n"
            "  trainer --version\n");
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(CommandLineTest, ARepeatedFlagStandsInTheGroupThatNamesIt) {
  ProgramInfo program = Program();
  program.groups[1].flags.push_back("set");
  const std::string help = HelpText(program);
  EXPECT_GT(help.find("--set=PATH=VALUE"), help.find("--validate_only"));
  EXPECT_EQ(help.find("--set="), help.rfind("--set="));
}

TEST_F(CommandLineTest, VersionNamesWhatWasCompiledIn) {
  EXPECT_EQ(Parse({"--version"}).exit_code, 0);
  EXPECT_THAT(out_, HasSubstr("trainer 0."));
  EXPECT_THAT(out_, HasSubstr("compiled in  protobuf"));
}

TEST_F(CommandLineTest, ReadsFlagFilesWithPlaces) {
  const TempDir folder = TempDir::Create("command_line").value();
  const std::string path = folder.path() + "/flags.txt";
  std::ofstream(path) << "# a comment\n\n--thread_num=7\n--set=a=1\n--set=b=2\n";
  const CommandLine line = Parse({"--flagfile=" + path, "--set=c=3"});
  ASSERT_FALSE(line.exit_code) << err_;
  EXPECT_EQ(FLAGS_thread_num, 7);
  EXPECT_THAT(line.repeated[0], ElementsAre("a=1", "b=2", "c=3"));

  std::ofstream(path) << "--thread_nun=7\nthread_num=7\n";
  EXPECT_EQ(Parse({"--flagfile", path}).exit_code, 2);
  EXPECT_THAT(err_, HasSubstr("flags.txt:1: unknown flag --thread_nun; did you mean --thread_num?"));
  EXPECT_THAT(err_, HasSubstr("flags.txt:2: expected a flag (--name=value), not \"thread_num=7\""));

  std::ofstream(path) << "--flagfile=" << path << "\n";
  EXPECT_EQ(Parse({"--flagfile", path}).exit_code, 2);
  EXPECT_THAT(err_, HasSubstr("in a circle"));
  EXPECT_EQ(Parse({"--flagfile=" + path + ".none"}).exit_code, 2);
}

TEST_F(CommandLineTest, TakesFlagsFromTheEnvironment) {
  setenv("FLAGS_thread_num", "11", 1);
  ASSERT_FALSE(Parse({"--fromenv=thread_num"}).exit_code) << err_;
  EXPECT_EQ(FLAGS_thread_num, 11);
  EXPECT_EQ(Parse({"--fromenv=progress"}).exit_code, 2);
  EXPECT_THAT(err_, HasSubstr("FLAGS_progress is not set"));
}

TEST(PrintFailure, LeavesReportsAboutConfigurationsAlone) {
  testing::internal::CaptureStderr();
  PrintFailure("trainer", InvalidConfig("job.prototxt:1:1: error: x"));
  PrintFailure("trainer", InvalidConfig("--trainer_desc=FILE is missing"));
  PrintFailure("trainer", BadData("part-0:7: y"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "job.prototxt:1:1: error: x\ntrainer: --trainer_desc=FILE is missing\ntrainer: bad data: part-0:7: y\n");
}

TEST(ExitCode, FollowsWhoseFaultItIs) {
  EXPECT_EQ(ExitCode(Status::Ok()), 0);
  EXPECT_EQ(ExitCode(InvalidConfig("x")), 2);
  EXPECT_EQ(ExitCode(BadData("x")), 3);
  EXPECT_EQ(ExitCode(IoError("x")), 3);
  EXPECT_EQ(ExitCode(Internal("x")), 4);
  EXPECT_EQ(ExitCode(Cancelled("x")), 130);
}

using CommandLineDeathTest = CommandLineTest;

// Not by a signal: scripts read exit codes.
TEST_F(CommandLineDeathTest, WhatNothingCatchesEndsTheProgramWithAReasonAndACode) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fail = [this](auto raise) {
    (void)Parse({"--validate_only"});
    std::thread([raise] { raise(); }).join();
  };
  EXPECT_EXIT(fail([] { throw std::bad_alloc(); }), testing::ExitedWithCode(3), "trainer: out of memory");
  EXPECT_EXIT(fail([] { throw std::system_error(EAGAIN, std::generic_category()); }), testing::ExitedWithCode(3),
              "trainer: the system has no room for another thread .*temporarily unavailable");
  EXPECT_EXIT(fail([] { throw std::out_of_range("x"); }), testing::ExitedWithCode(4), "trainer: internal error: x");
  EXPECT_EXIT(fail([] { CHECK(false) << "a bug"; }), testing::ExitedWithCode(4),
              "internal error: command_line_test.cc:[0-9]+: Check failed: false a bug");
}

}  // namespace
}  // namespace millrace
