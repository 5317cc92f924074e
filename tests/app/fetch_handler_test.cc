#include "job/fetch_handler.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/file.h"
#include "trainer/default_environment.h"
#include "trainer/job_run.h"

namespace millrace {
namespace {

class Recorder : public FetchHandler {
 public:
  Recorder(std::map<std::string, std::string> variables, double period)
      : variables_(std::move(variables)), period_(period) {}
  std::map<std::string, std::string> variables() const override { return variables_; }
  double period_seconds() const override { return period_; }
  Status Handle(const std::map<std::string, const Tensor*>& values) override {
    ++calls;
    last = values.at("the loss")->data<float>()[0];
    rows = values.at("scores")->dims()[0];
    has_table = values.at("table") != nullptr;
    return calls < fails_at ? Status::Ok() : BadData("seen enough");
  }

  int calls = 0;
  int fails_at = 1000;
  float last = 0;
  int64_t rows = 0;
  bool has_table = true;

 private:
  std::map<std::string, std::string> variables_;
  double period_;
};

/// Ten rows in batches of 4.
class FetchHandlerTest : public testing::TestWithParam<const char*> {
 protected:
  FetchHandlerTest() : folder_(TempDir::Create("handler").value()), environment_(MakeDefaultEnvironment().value()) {
    std::ofstream lines(folder_.path() + "/part");
    for (int i = 0; i < 10; ++i) lines << "1 " << i % 2 << " 1 " << i << '\n';
    std::ofstream job(folder_.path() + "/job.prototxt");
    job << "filelist: \"" << folder_.path() << "/part\"" << GetParam() << R"(
update_mode: SERIAL
data_desc { batch_size: 4 multi_slot_desc {
  slots { name: "label" type: "float" is_used: true is_dense: true shape: [-1, 1] }
  slots { name: "x" type: "uint64" is_used: true } } }
model {
  table { name: "t" dim: 2 optimizer { sgd { lr: 0.1 } } }
  layer { name: "e" embedding { slots: "x" table: "t" pool: SUM } }
  layer { name: "y" fc { in: "e" units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "label" }
  optimizer { sgd { lr: 0.1 } }
})";
  }

  Status Train(FetchHandler& handler) {
    ConfigRequest request;
    request.file = folder_.path() + "/job.prototxt";
    MR_ASSIGN(LoadedConfig config, LoadTrainerDesc(request));
    MR_ASSIGN(auto job, CompiledJob::Create(std::move(config), environment_, "", WatchedBy(handler)));
    MR_ASSIGN(const auto session, JobSession::Create(std::move(job), {.fetch_handler = &handler}));
    return RunJob(*session, "never", "last", {}).status();
  }

  TempDir folder_;
  Environment environment_;
};

const std::map<std::string, std::string> kVariables = {{"the loss", "loss"}, {"scores", "y"}, {"table", "t"}};

TEST_P(FetchHandlerTest, SeesTheVariablesOfABatch) {
  Recorder recorder(kVariables, 0);
  const Status status = Train(recorder);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(recorder.calls, 3);
  EXPECT_EQ(recorder.rows, 2);
  EXPECT_GT(recorder.last, 0);
  EXPECT_FALSE(recorder.has_table);
}

TEST_P(FetchHandlerTest, IsNotCalledBeforeItsPeriodIsOver) {
  Recorder recorder(kVariables, 3600);
  ASSERT_TRUE(Train(recorder).ok());
  EXPECT_EQ(recorder.calls, 0);
}

TEST_P(FetchHandlerTest, ItsFailureEndsTheJob) {
  Recorder recorder(kVariables, 0);
  recorder.fails_at = 2;
  EXPECT_EQ(Train(recorder).code(), StatusCode::kBadData);
  EXPECT_EQ(recorder.calls, 2);
}

TEST_P(FetchHandlerTest, UnknownVariablesAreNamed) {
  Recorder recorder({{"the loss", "los"}}, 0);
  EXPECT_NE(Train(recorder).message().find("\"los\""), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Trainers, FetchHandlerTest,
                         testing::Values("", R"( class_name: "PipelineTrainer" device_worker_name: "SectionWorker"
                           section_param { num_microbatches: 2 section_config { section_out_var_names: "e" }
                                           section_config {} })"));

}  // namespace
}  // namespace millrace
