#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ModelCommand, RunsOnlyWhenItIsAllowed) {
  const SmallJob small(60, 1);
  const std::string out = small.folder() + "/out";
  const std::string ran = small.folder() + "/ran";
  Process trainer("trainer", {"--trainer_desc=" + small.DeepJob(""), "--output_dir=" + out,
                              "--set=data_desc.pipe_command=\"cat; touch " + ran + " # \x1b[2J\""});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  ASSERT_TRUE(std::filesystem::remove(ran));

  const std::string model = "--model_dir=" + out + "/model";
  const std::string input = "--input=" + small.files()[0];
  Process refused("predictor", {model, input});
  EXPECT_EQ(refused.Wait(), 2);
  EXPECT_EQ(refused.output(), "");
  EXPECT_THAT(refused.errors(), HasSubstr("no model's command runs unasked:\n  cat; touch " + ran + " # \\x1b[2J\n"));
  EXPECT_THAT(refused.errors(), HasSubstr("--allow_model_command runs it"));
  EXPECT_FALSE(std::filesystem::exists(ran));

  Process plain("predictor", {model, input, "--pipe_command=cat"});
  EXPECT_EQ(plain.Wait(), 0) << plain.errors();
  EXPECT_FALSE(std::filesystem::exists(ran));

  Process allowed("predictor", {model, input, "--allow_model_command"});
  EXPECT_EQ(allowed.Wait(), 0) << allowed.errors();
  EXPECT_TRUE(std::filesystem::exists(ran));
  EXPECT_EQ(allowed.output(), plain.output());
}

TEST(ModelCommand, ThatReadsFilesOfASchemeRunsOnlyWhenItIsAllowed) {
  const SmallJob small(60, 1);
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + small.DeepJob(""), "--output_dir=" + out,
                              "--set=data_desc.input_commands=[{ scheme: \"store\" command: \"cat " + small.files()[0] +
                                  " #\" }]"});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  const std::string model = "--model_dir=" + out + "/model";
  Process refused("predictor", {model, "--input=store:part"});
  EXPECT_EQ(refused.Wait(), 2);
  EXPECT_THAT(refused.errors(), HasSubstr("no model's command runs unasked:\n  cat " + small.files()[0] + " #\n"));
  Process other("predictor", {model, "--input=" + small.files()[0]});
  EXPECT_EQ(other.Wait(), 0) << other.errors();
  Process allowed("predictor", {model, "--input=store:part", "--allow_model_command"});
  EXPECT_EQ(allowed.Wait(), 0) << allowed.errors();
  EXPECT_EQ(allowed.output(), other.output());
}

TEST(ModelCommand, OfRelativePathsNamesWhatIsMissingElsewhere) {
  const SmallJob small(60, 1);
  const std::string out = small.folder() + "/out";
  // The command of the training is found from the folder that the tests run in.
  std::ofstream(small.folder() + "/lines.sh") << "cat\n";
  const std::string relative = std::filesystem::relative(small.folder() + "/lines.sh").string();
  Process trainer("trainer", {"--trainer_desc=" + small.DeepJob(""), "--output_dir=" + out,
                              "--set=data_desc.pipe_command=\"bash " + relative + "\""});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  std::vector<std::string> flags = {"--model_dir=" + out + "/model", "--input=" + small.files()[0],
                                    "--allow_model_command"};
  Process found("predictor", flags);
  EXPECT_EQ(found.Wait(), 0) << found.errors();
  std::filesystem::remove(small.folder() + "/lines.sh");
  Process missing("predictor", flags);
  EXPECT_EQ(missing.Wait(), 3);
  EXPECT_THAT(missing.errors(), HasSubstr("the model's command names \"" + relative + "\", not to be found from \"" +
                                          std::filesystem::current_path().string() + "\": its relative paths start"));
  flags.back() = "--pipe_command=bash " + relative;
  Process own("predictor", flags);
  EXPECT_EQ(own.Wait(), 3);
  EXPECT_THAT(own.errors(), Not(HasSubstr("the model's command")));
}

TEST(ModelCommand, ThatRanIsNotBlamedForALine) {
  const SmallJob small(60, 1);
  const std::string out = small.folder() + "/out";
  Process trainer("trainer", {"--trainer_desc=" + small.DeepJob(""), "--output_dir=" + out,
                              "--set=data_desc.pipe_command=\"sed -e s/x/y/\""});
  ASSERT_EQ(trainer.Wait(), 0) << trainer.errors();
  std::ofstream(small.files()[0], std::ios::app) << "oops\n";
  Process bad("predictor", {"--model_dir=" + out + "/model", "--input=" + small.files()[0], "--allow_model_command"});
  EXPECT_EQ(bad.Wait(), 3);
  EXPECT_THAT(bad.errors(), HasSubstr("oops"));
  EXPECT_THAT(bad.errors(), Not(HasSubstr("the model's command names")));
}

TEST(ModelOfBinaryFiles, ScoresTheTextThatTheyWereMadeOfByItsFeed) {
  const SmallJob small(60, 1);
  const std::string text = ReadFile(small.files()[0]).value();
  const std::string in = small.folder() + "/";
  const std::string unused = "slots { name: \"uid\" type: \"uint64\" is_used: ";
  std::string job = ReadFile(small.DeepJob("")).value();
  job.replace(job.find(unused), unused.size() + 4, unused + "false");
  std::ofstream(in + "text.prototxt") << job << "update_mode: SERIAL epochs: 2\n";
  // Lines come with a word before them, which the command takes away.
  {
    std::ofstream worded(in + "worded");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) worded << "x " << line << '\n';
  }
  const std::vector<std::string> input = {"--set=filelist=[\"" + in + "worded\"]",
                                          "--set=data_desc.pipe_command=\"cut -d' ' -f2-\""};
  const auto run = [](const std::string& program, std::vector<std::string> flags,
                      const std::vector<std::string>& more) {
    flags.insert(flags.end(), more.begin(), more.end());
    Process process(program, flags);
    EXPECT_EQ(process.Wait(), 0) << process.errors();
    return process.output();
  };
  run("trainer", {"--trainer_desc=" + in + "text.prototxt", "--output_dir=" + in + "by_text"}, input);
  run("inspect", {"convert", "--trainer_desc=" + in + "text.prototxt", "--output_dir=" + in + "binary"}, input);
  run("trainer", {"--trainer_desc=" + in + "binary/job.prototxt", "--output_dir=" + in + "by_binary"}, {});
  const std::string scored = "--input=" + in + "worded";
  EXPECT_EQ(run("predictor", {"--model_dir=" + in + "by_binary/model", scored},
                {"--data_feed=" + in + "binary/text_feed.prototxt"}),
            run("predictor", {"--model_dir=" + in + "by_text/model", scored}, {"--allow_model_command"}));
  Process plain("predictor", {"--model_dir=" + in + "by_binary/model", "--input=" + small.files()[0]});
  EXPECT_EQ(plain.Wait(), 3);
  EXPECT_THAT(plain.errors(), HasSubstr("note: the model was trained from binary files"));
  EXPECT_THAT(plain.errors(), HasSubstr("--data_feed=text_feed.prototxt"));
}

}  // namespace
}  // namespace millrace
