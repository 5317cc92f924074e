// Runs that go on with another job than the one that wrote the checkpoint: what is changed takes effect and is told, or
// is refused by its field.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/file.h"
#include "e2e/process.h"
#include "e2e/small_job.h"

namespace millrace {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kSerial[] =
    "update_mode: SERIAL epochs: 2 checkpoint { every_steps: 10 keep: 100 } output { tensorboard: false }";

/// A finished run whose checkpoints others go on from, each in a copy of its folder.
class ChangedJob : public testing::Test {
 protected:
  struct Ran {
    int code = 0;
    std::string errors;
    std::vector<std::string> model;
  };

  void Train(const std::string& job) {
    Process first("trainer", {"--trainer_desc=" + job, "--output_dir=" + out_});
    ASSERT_EQ(first.Wait(), 0) << first.errors();
  }
  /// Goes on from step 10, within the first epoch.
  Ran GoOn(const std::string& job, const std::vector<std::string>& overrides) {
    const std::string folder = small_.folder() + "/copy" + std::to_string(++copies_);
    std::filesystem::copy(out_, folder, std::filesystem::copy_options::recursive);
    std::vector<std::string> flags = {"--trainer_desc=" + job, "--output_dir=" + folder,
                                      "--resume=" + folder + "/checkpoints/step-000000000010"};
    for (const std::string& assignment : overrides) flags.push_back("--set=" + assignment);
    Process resumed("trainer", flags);
    const int code = resumed.Wait();
    return {code, resumed.errors(), code == 0 ? FolderContent(folder + "/model") : std::vector<std::string>()};
  }

  SmallJob small_{1000, 1};
  const std::string out_ = small_.folder() + "/out";
  int copies_ = 0;
};

TEST_F(ChangedJob, ARateASchedulePenaltiesAndClippingTakeEffectAndAreTold) {
  const std::string job = small_.DeepJob(kSerial);
  Train(job);
  const Ran same = GoOn(job, {});
  ASSERT_EQ(same.code, 0) << same.errors;
  EXPECT_THAT(same.errors, Not(HasSubstr("resumed with")));
  std::vector<std::vector<std::string>> models = {same.model};
  for (const auto& [set, told] : std::vector<std::pair<std::string, std::string>>{
           {"model.optimizer.adam.lr=0.5", "model.optimizer.adam.lr 0.01 -> 0.5\n"},
           {"model.optimizer.adam.lr=0.001", "model.optimizer.adam.lr 0.01 -> 0.001\n"},
           {"model.table[t].optimizer.adagrad.lr=0.5", "model.table[t].optimizer.adagrad.lr 0.05 -> 0.5\n"},
           {"model.optimizer.schedule={ warmup_steps: 1000 }",
            "model.optimizer.schedule (none) -> { warmup_steps: 1000 }\n"},
           {"model.optimizer.regularization={ l2: 0.5 }", "model.optimizer.regularization (none) -> { l2: 0.5 }\n"},
           {"model.optimizer.clip={ global_norm: 0.001 }", "model.optimizer.clip (none) -> { global_norm: 0.001 }\n"},
           {"model.table[t].optimizer.schedule={ warmup_steps: 1000 }",
            "model.table[t].optimizer.schedule (none) -> { warmup_steps: 1000 }\n"},
           {"model.loss.l2=0.5", "model.loss.l2 0 -> 0.5\n"}}) {
    const Ran changed = GoOn(job, {set});
    ASSERT_EQ(changed.code, 0) << set << "\n" << changed.errors;
    EXPECT_THAT(changed.errors, HasSubstr("resumed with: " + told));
    for (const std::vector<std::string>& before : models) EXPECT_NE(changed.model, before) << set << " had no effect";
    models.push_back(changed.model);
  }
}

TEST_F(ChangedJob, AScheduleGivesWayToARate) {
  const std::string job = small_.DeepJob(kSerial);
  const std::string warm = small_.folder() + "/warm.prototxt";
  std::filesystem::copy(job, warm);
  std::string text = ReadFile(warm).value();
  const std::string rule = "optimizer { adam { lr: 0.01 } }";
  text.replace(text.find(rule), rule.size(), "optimizer { adam { lr: 0.01 } schedule { warmup_steps: 100 } }");
  std::ofstream(warm) << text;
  Train(warm);
  const Ran scheduled = GoOn(warm, {});
  const Ran constant = GoOn(job, {});
  ASSERT_EQ(constant.code, 0) << constant.errors;
  EXPECT_THAT(constant.errors, HasSubstr("resumed with: model.optimizer.schedule { warmup_steps: 100 } -> (none)\n"));
  EXPECT_NE(constant.model, scheduled.model);
}

TEST_F(ChangedJob, RatesAndPenaltiesOfADenseTableAndOfFtrlTakeEffect) {
  for (const std::string& table :
       {std::string("{name: \"t\" dim: 4 vocabulary: 1000 optimizer { ftrl { alpha: 0.05 l1: 0.1 } }}"),
        std::string("{name: \"t\" dim: 4 optimizer { ftrl { alpha: 0.05 l1: 0.1 } }}")}) {
    const std::string job = small_.DeepJob(kSerial);
    std::filesystem::remove_all(out_);
    const std::string set = "--set=model.table[t]=" + table;
    Process first("trainer", {"--trainer_desc=" + job, "--output_dir=" + out_, set});
    ASSERT_EQ(first.Wait(), 0) << first.errors();
    const Ran same = GoOn(job, {"model.table[t]=" + table});
    for (const auto& [field, told] : std::vector<std::pair<std::string, std::string>>{
             {"alpha=0.5", "alpha 0.05 -> 0.5\n"}, {"l1=0.5", "l1 0.1 -> 0.5\n"}, {"l2=0.5", "l2 0 -> 0.5\n"}}) {
      const Ran changed = GoOn(job, {"model.table[t]=" + table, "model.table[t].optimizer.ftrl." + field});
      ASSERT_EQ(changed.code, 0) << changed.errors;
      EXPECT_THAT(changed.errors, HasSubstr("resumed with: model.table[t].optimizer.ftrl." + told));
      EXPECT_NE(changed.model, same.model) << field;
    }
  }
}

TEST_F(ChangedJob, WhatItsParametersMeanIsRefusedByItsFields) {
  const std::string job = small_.DeepJob(kSerial);
  Train(job);
  const Ran refused =
      GoOn(job, {"model.layer[h].fc.act=TANH", "seed=7", "model.optimizer.adam.beta1=0.5",
                 "model.table[t].init.uniform=0.5", "model.table[t].optimizer.adagrad.initial_accumulator=1",
                 "model.layer[e].embedding.pool=AVERAGE", "model.optimizer.adam.lr=0.5"});
  EXPECT_EQ(refused.code, 2);
  for (const char* said :
       {"model.layer[h].fc.act was RELU and is now TANH\n", "seed was 1 and is now 7\n",
        "model.optimizer.adam.beta1 was 0.9 and is now 0.5\n", "model.table[t].init.uniform was 0.01 and is now 0.5\n",
        "model.table[t].optimizer.adagrad.initial_accumulator was 0 and is now 1\n",
        "model.layer[e].embedding.pool was SUM and is now AVERAGE\n", "--resume=never"}) {
    EXPECT_THAT(refused.errors, HasSubstr(said));
  }
  EXPECT_THAT(refused.errors, Not(HasSubstr("adam.lr was")));
}

TEST_F(ChangedJob, EpochsAndEvaluationTakeEffectAndAreTold) {
  const std::string held_out = small_.folder() + "/held_out";
  std::filesystem::copy_file(small_.files()[0], held_out);
  const std::string job = small_.DeepJob(kSerial);
  Train(job);
  const Ran changed =
      GoOn(job, {"epochs=3", "eval={ filelist: \"" + held_out + "\" }", "checkpoint.keep=2", "thread_num=2"});
  ASSERT_EQ(changed.code, 0) << changed.errors;
  EXPECT_THAT(changed.errors, HasSubstr("resumed with: epochs 2 -> 3\n"));
  EXPECT_THAT(changed.errors, HasSubstr("resumed with: eval (none) -> { filelist: "));
  EXPECT_THAT(changed.errors, HasSubstr("resumed with: checkpoint.keep 100 -> 2\n"));
  EXPECT_THAT(changed.errors, HasSubstr("resumed with: thread_num 1 -> 2\n"));
  EXPECT_THAT(changed.errors, HasSubstr("trained: 3000 examples"));
}

TEST_F(ChangedJob, AnotherMetricToWatchLooksForTheBestAnew) {
  const std::string eval = " eval { filelist: \"" + small_.files()[0] + "\" early_stopping { patience: 50 } }";
  const std::string job = small_.DeepJob(kSerial + eval);
  Train(job);
  std::vector<std::string> flags = {"--trainer_desc=" + job, "--output_dir=" + out_, "--resume=auto", "--set=epochs=4",
                                    "--set=eval.early_stopping.metric=\"logloss\""};
  Process resumed("trainer", flags);
  ASSERT_EQ(resumed.Wait(), 0) << resumed.errors();
  EXPECT_THAT(resumed.errors(), HasSubstr("resumed with: eval.early_stopping.metric \"auc\" -> \"logloss\"\n"));
  EXPECT_THAT(resumed.errors(), HasSubstr("evaluations are not what they were: the best one is looked for from here"));
  EXPECT_THAT(resumed.errors(), Not(HasSubstr("is not in")));
}

}  // namespace
}  // namespace millrace
