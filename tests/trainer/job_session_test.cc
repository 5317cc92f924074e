#include "job/job_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "dataset/queue_dataset.h"
#include "e2e/small_job.h"
#include "runtime/variable_store.h"
#include "trainer/builtin_trainers.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

using testing::HasSubstr;

std::string TextOf(const std::string& kind) {
  if (kind == "InMemory") return "dataset { class_name: \"InMemoryDataset\" } ";
  if (kind == "Queue") return "";
  return "class_name: \"PipelineTrainer\" device_worker_name: \"SectionWorker\" "
         "section_param { section_config { section_out_var_names: \"h.0\" } section_config {} } ";
}

/// Trains sessions of one job whose runs are the same to the byte: one worker.
class JobSessionTest : public testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<const CompiledJob> Compile(int epochs) const {
    return CompileJob(small_.DeepJob("update_mode: SERIAL " + TextOf(GetParam()) + "epochs: " + std::to_string(epochs) +
                                     " eval { filelist: \"" + small_.files()[0] + "\" }"),
                      "");
  }
  /// The last evaluation's metrics, and every parameter with its optimizer's state, in a folder of that name.
  std::vector<std::string> ResultOf(JobSession& session, const RunReport& report, const std::string& name) const {
    const std::string folder = small_.folder() + "/" + name;
    EXPECT_TRUE(StoreVariables(session.job().model().main, folder, session.root(), TableContent::kAll, 1).ok());
    std::vector<std::string> result = FolderContent(folder);
    result.push_back(testing::PrintToString(report.evaluations.back().metrics));
    return result;
  }
  std::vector<std::string> Train(const std::shared_ptr<const CompiledJob>& job, const std::string& name) const {
    const std::unique_ptr<JobSession> session = JobSession::Create(job).value();
    const Result<RunReport> report = TrainJob(*session);
    EXPECT_TRUE(report.ok()) << report.status().ToString();
    return report.ok() ? ResultOf(*session, *report, name) : std::vector<std::string>();
  }

  const SmallJob small_{320, 2};
};

TEST_P(JobSessionTest, SessionsOfAJobRunInTurnAndAtTheSameTimeAsOneRunsAlone) {
  const std::vector<std::string> alone = Train(Compile(2), "alone");
  const std::shared_ptr<const CompiledJob> job = Compile(2);
  EXPECT_EQ(Train(job, "first"), alone);
  EXPECT_EQ(Train(job, "behind_it"), alone);
  std::vector<std::string> left;
  {
    const std::jthread other([&] { left = Train(job, "left"); });
    EXPECT_EQ(Train(job, "right"), alone);
  }
  EXPECT_EQ(left, alone);
}

TEST_P(JobSessionTest, ASessionTrainsTheParametersAndTheDatasetThatItIsGiven) {
  const std::vector<std::string> in_one = Train(Compile(2), "in_one");
  const std::shared_ptr<const CompiledJob> job = Compile(1);
  const std::unique_ptr<JobSession> owner = JobSession::Create(job).value();
  ASSERT_TRUE(owner->InitParameters().ok());
  std::vector<std::string> result;
  for (int epoch = 0; epoch < 2; ++epoch) {
    const std::unique_ptr<JobSession> session =
        JobSession::Create(job, {.root = &owner->root(), .dataset = &owner->dataset()}).value();
    const Result<RunReport> report = CreateTrainer(*session, {}).value()->Run({});
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    result = ResultOf(*owner, *report, "epoch_" + std::to_string(epoch));
  }
  EXPECT_EQ(result, in_one);
}

// A batch's columns are found by their numbers: another schema's would be read as what they are not.
TEST_P(JobSessionTest, RefusesADatasetOfOtherSlots) {
  const std::shared_ptr<const CompiledJob> job = Compile(1);
  DataFeedDesc desc = job->desc().data_desc();
  desc.mutable_multi_slot_desc()->mutable_slots(2)->set_is_used(false);
  const auto dataset = QueueDataset::Create(desc, small_.files(), job->environment().feeds, {}).value();
  const Status refused = JobSession::Create(job, {.dataset = dataset.get()}).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(refused.message(), HasSubstr("other slots than data_desc says"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, JobSessionTest, testing::Values("Queue", "InMemory", "Pipeline"));

TEST(JobSessionExportTest, AStopGivesABegunExportUpAndLeavesTheOneOfBefore) {
  const SmallJob small(320, 1);
  for (const char* format : {"ONNX", "PADDLE"}) {
    const std::string out = small.folder() + "/" + format;
    const std::unique_ptr<JobSession> session =
        MakeJob(small.DeepJob(""), out, {"output.export=[{ format: " + std::string(format) + " vocabulary: 100000 }]"});
    ASSERT_TRUE(session->InitParameters().ok());
    const ModelExport& wanted = session->job().exports().at(0);
    ASSERT_TRUE(wanted.Write(session->root()).ok());
    const std::vector<std::string> before = FolderContent(out);
    // At the look-up of the first rows, and behind the first bytes of a file.
    for (const uint64_t least : {0, 1}) {
      std::stop_source stop;
      const Status given_up = wanted.Write(session->root(), {stop.get_token(), [&](uint64_t bytes) {
                                                               if (bytes >= least) stop.request_stop();
                                                             }});
      EXPECT_EQ(given_up.code(), StatusCode::kCancelled) << format << ": " << given_up.ToString();
      EXPECT_TRUE(stop.stop_requested());
      EXPECT_EQ(FolderContent(out), before) << format;
    }
  }
}

}  // namespace
}  // namespace millrace
