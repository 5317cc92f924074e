// A second device, and tables that lie elsewhere: all that a job reads and writes of its variables goes through
// transfers, all that it knows of rows through the handles that tables give, and comes out the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/hash.h"
#include "device_worker/hogwild_worker.h"
#include "device_worker/section_worker.h"
#include "far_kernels.h"
#include "far_table.h"
#include "runtime/frame.h"
#include "runtime/transfer.h"
#include "trainer/default_environment.h"
#include "trainer/in_process.h"
#include "trainer/job_run.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A log, and a Wide & Deep on it that uses whatever looks at variables from outside.
std::string WriteJob(const std::string& folder) {
  std::ofstream log(folder + "/log");
  for (uint64_t row = 0; row < 1000; ++row) {
    log << "1 " << HashedNumber(9, row) % 3 / 2 << " 2 0.5 0." << row % 64;
    for (uint64_t slot = 0; slot < 3; ++slot) log << " 1 " << HashedNumber(slot, row) % 40 + 1;
    log << " 3 " << row % 90 + 1 << " 7 " << HashedNumber(7, row) % 99 + 1 << "\n";
  }
  const std::string path = folder + "/job.prototxt";
  std::ofstream job(path);
  job << R"(
filelist: ")"
      << folder << R"(/log" eval { filelist: ")" << folder << R"(/log" } epochs: 2 thread_num: 1 seed: 5
data_desc {
  batch_size: 64
  multi_slot_desc {
    slots { name: "label" type: "uint64" is_used: true is_dense: true shape: [-1, 1] }
    slots { name: "dense" type: "float" is_used: true is_dense: true shape: [-1, 2] }
    slots { name: "C1..C4" type: "uint64" is_used: true }
  }
}
dataset { class_name: "InMemoryDataset" }
model {
  table { name: "wide" dim: 1 key: SLOT_AND_ID init { constant: 0 } optimizer { ftrl { alpha: 0.05 l1: 1 } } }
  table { name: "deep" dim: 8 key: SLOT_AND_ID init { uniform: 0.01 } optimizer { adagrad { lr: 0.05 } } }
  layer { name: "w" embedding { slots: "C1..C4" table: "wide" pool: SUM } }
  layer { name: "d" embedding { slots: "C1..C4" table: "deep" pool: AVERAGE } }
  layer { name: "x" concat { in: ["d", "dense"] } }
  layer { name: "h" fc { in: "x" units: [16, 8] act: RELU } }
  layer { name: "y" fc { in: ["h", "w"] units: 2 act: SOFTMAX } }
  loss { kind: CROSS_ENTROPY in: "y" label: "label" }
  optimizer { adagrad { lr: 0.01 initial_accumulator: 0.1 } }
  metric { kind: AUC }
  metric { kind: LOGLOSS }
}
checkpoint { every_epochs: 1 }
fetch_config { print_period: 16 fetch_var_names: "y" }
dump_fields: "y" dump_param: "h.w_0"
output { export { format: ONNX vocabulary: 100 } export { format: PADDLE vocabulary: 100 } }
check_nan_var_names: "y"
)";
  return path;
}

/// What a run keeps of its variables, and nothing of its time: names and bytes.
std::vector<std::string> Kept(const std::string& folder) {
  std::vector<std::string> kept;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = std::filesystem::relative(entry.path(), folder).string();
    const auto is_of = [&name](std::string_view part) { return name.find(part) != std::string::npos; };
    const bool is_kept = is_of("tables/") || is_of("/parameters") || is_of("/metrics") || is_of("dump/") ||
                         is_of("onnx/") || is_of("paddle/");
    if (!entry.is_regular_file() || !is_kept) continue;
    kept.push_back(name + "\n" + ReadFile(entry.path().string()).value());
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

TEST(FarDeviceTest, TrainsAWideAndDeepToTheSameBytes) {
  const TempDir folder = TempDir::Create("far").value();
  const std::string path = WriteJob(folder.path());
  const FarDevice far;
  Environment environment = MakeDefaultEnvironment().value();
  AddFarKernels(environment.ops);
  const auto run = [&](const Device& device, const std::string& name, const std::string& resume, int epochs) {
    environment.device = &device;
    const std::string out = folder.path() + "/" + name;
    const std::vector<std::string> overrides = {"epochs=" + std::to_string(epochs),
                                                "dump_fields_path=\"" + out + "/dump\""};
    const auto job = MakeJob(path, out, overrides, environment);
    const Result<RunSummary> summary = RunJob(*job, resume, "last", {});
    ASSERT_TRUE(summary.ok()) << summary.status().ToString();
  };
  run(Cpu(), "near", "never", 2);
  run(far, "far", "never", 2);
  const std::vector<std::string> near = Kept(folder.path() + "/near");
  EXPECT_GE(near.size(), 20U);
  EXPECT_EQ(Kept(folder.path() + "/far"), near);
  EXPECT_EQ(far.live_blocks(), 0);
  EXPECT_GT(far.queued_copies(), 0);
  EXPECT_EQ(far.copies_from_host(), far.queued_copies()) << "a run from its start sends by streams alone";
  EXPECT_GT(far.copies_to_host_memory(), 0) << "metrics, checks and dumps read by pinned memory";
  // A checkpoint goes from one device to the other.
  run(far, "near", "auto", 3);
  EXPECT_GT(far.copies_from_host(), far.queued_copies()) << "a checkpoint is read without a stream";
  run(Cpu(), "far", "auto", 3);
  EXPECT_EQ(Kept(folder.path() + "/far"), Kept(folder.path() + "/near"));
  EXPECT_NE(Kept(folder.path() + "/far"), near);
}

/// Why a job cannot be made on a device.
std::string Refusal(const Device& device, const std::vector<std::string>& overrides) {
  const TempDir folder = TempDir::Create("far").value();
  Environment environment = MakeDefaultEnvironment().value();
  environment.device = &device;
  ConfigRequest request;
  request.file = WriteJob(folder.path());
  request.known = NamesOf(environment);
  request.overrides = overrides;
  Result<LoadedConfig> config = LoadTrainerDesc(request);
  if (!config.ok()) return config.status().message();
  return CompiledJob::Create(std::move(config).value(), environment, folder.path() + "/out").status().message();
}

TEST(FarDeviceTest, RefusesOperatorsWithoutAKernelByName) {
  const FarDevice far;
  EXPECT_THAT(Refusal(far, {"dump_fields_path=\"dump\""}),
              AllOf(HasSubstr(": there is no kernel for device \"far\"; there are kernels for device \"cpu\""),
                    HasSubstr("fused_slots_pool"), HasSubstr("fused_fc"), HasSubstr("\nblock 0 op[")));
}

// The operators that a composite one consists of have the device's kernels, and their variables lie there.
TEST(FarDeviceTest, RunsWhatACompositeOperatorConsistsOf) {
  ProgramDesc program;
  BlockDesc* const block = program.add_blocks();
  for (const char* name : {"x", "y", "out", "residual"}) {
    VarDesc* const var = block->add_vars();
    var->set_name(name);
    var->mutable_type()->set_type(VarType::LOD_TENSOR);
    auto* const tensor = var->mutable_type()->mutable_lod_tensor()->mutable_tensor();
    tensor->set_data_type(VarType::FP32);
    for (const int64_t size : {-1, 1}) tensor->add_dims(size);
  }
  OpDesc* const op = block->add_ops();
  op->set_type("huber_loss");
  SetInput(*op, "X", {"x"});
  SetInput(*op, "Y", {"y"});
  SetOutput(*op, "Out", {"out"});
  SetOutput(*op, "Residual", {"residual"});
  const FarDevice far;
  CompileOptions options;
  options.device = &far;
  Environment environment = MakeDefaultEnvironment().value();
  EXPECT_THAT(Executable::Compile(program, environment.ops, options).status().message(),
              HasSubstr("op[0] huber_loss: elementwise_sub: there is no kernel for device \"far\""));
  AddFarKernels(environment.ops);
  const auto executable = Executable::Compile(program, environment.ops, options);
  ASSERT_TRUE(executable.ok()) << executable.status().ToString();
  Scope root(far);
  const auto frame = Frame::Create(**executable, nullptr, root, {});
  ASSERT_TRUE(frame.ok()) << frame.status().ToString();
  for (const auto& [name, value] : {std::pair{"x", 1.0F}, std::pair{"y", 4.0F}}) {
    Tensor values;
    *values.Resize<float>({1, 1}) = value;
    ASSERT_TRUE(CopyFromHost(values, (*frame)->scope().Var(name)->GetMutable<Tensor>()).ok());
  }
  ASSERT_TRUE((*frame)->Run(RunContext{}).ok());
  Tensor out;
  ASSERT_TRUE(CopyToHost((*frame)->Find("out")->Get<Tensor>(), &out).ok());
  EXPECT_EQ(*out.data<float>(), 2.5F);
}

/// Overrides that put both tables elsewhere.
std::vector<std::string> WithFarTables(std::vector<std::string> overrides) {
  for (const char* table : {"0", "1"}) {
    overrides.push_back("model.table[" + std::string(table) + "].class_name=\"FarTable\"");
  }
  return overrides;
}

/// The default environment with FarTables, whose calls `calls` counts.
Environment WithFarTables(FarTableCalls* calls) {
  Environment environment = MakeDefaultEnvironment().value();
  const Status added = environment.tables.Add("FarTable", "lies elsewhere", FarTableMaker(calls));
  EXPECT_TRUE(added.ok()) << added.ToString();
  return environment;
}

TEST(FarTableTest, TrainsAWideAndDeepToTheSameBytes) {
  const TempDir folder = TempDir::Create("far").value();
  const std::string path = WriteJob(folder.path());
  FarTableCalls calls;
  const Environment environment = WithFarTables(&calls);
  const auto run = [&](const std::string& name, const std::string& resume, bool is_far,
                       std::vector<std::string> overrides) {
    const std::string out = folder.path() + "/" + name;
    overrides.push_back("dump_fields_path=\"" + out + "/dump\"");
    if (is_far) overrides = WithFarTables(std::move(overrides));
    const auto job = MakeJob(path, out, overrides, environment);
    const Result<RunSummary> summary = RunJob(*job, resume, "last", {});
    ASSERT_TRUE(summary.ok()) << summary.status().ToString();
  };
  const auto kept = [&](const std::string& name) { return Kept(folder.path() + "/" + name); };
  for (const std::string mode : {"SERIAL", "ROW_LOCK"}) {
    SCOPED_TRACE(mode);
    run("near_" + mode, "never", false, {"update_mode=" + mode});
    EXPECT_EQ(calls.pulls + calls.pushes, 0);
    run("far_" + mode, "never", true, {"update_mode=" + mode});
    EXPECT_GE(kept("near_" + mode).size(), 20U);
    EXPECT_EQ(kept("far_" + mode), kept("near_" + mode));
    EXPECT_EQ(calls.pushes, 2 * 2 * 16) << "tables, epochs, batches";
    EXPECT_GT(calls.pulls, calls.pushes) << "evaluation and export pull, too";
    calls.pulls = calls.pushes = 0;
  }
  // Rows may move between two runs: a checkpoint does not say where they were.
  run("near_SERIAL", "auto", true, {"update_mode=SERIAL", "epochs=3"});
  run("far_SERIAL", "auto", false, {"update_mode=SERIAL", "epochs=3"});
  EXPECT_EQ(kept("far_SERIAL"), kept("near_SERIAL"));
}

TEST(FarTableTest, TrainsAPipelineToTheSameBytes) {
  const TempDir folder = TempDir::Create("far").value();
  const std::string path = WriteJob(folder.path());
  FarTableCalls calls;
  const Environment environment = WithFarTables(&calls);
  const std::vector<std::string> pipeline = {"class_name=PipelineTrainer",
                                             "device_worker_name=SectionWorker",
                                             "section_param={section_config {} num_microbatches: 4}",
                                             "dump_fields=[]",
                                             "dump_param=[]",
                                             "fetch_config={}",
                                             "check_nan_var_names=[]"};
  for (const bool is_far : {false, true}) {
    const std::string out = folder.path() + (is_far ? "/far" : "/near");
    const auto job = MakeJob(path, out, is_far ? WithFarTables(pipeline) : pipeline, environment);
    const Result<RunSummary> summary = RunJob(*job, "never", "last", {});
    ASSERT_TRUE(summary.ok()) << summary.status().ToString();
  }
  EXPECT_GT(calls.pushes, 0);
  EXPECT_EQ(Kept(folder.path() + "/far"), Kept(folder.path() + "/near"));
}

// Dense parameters that are told when batches begin and end; Local keeps them.
class CountedDense final : public DenseParameters {
 public:
  Status Pull(const RunContext& first) override {
    ++pulls_;
    return pulls_ == pushes_ + 1 ? local_->Pull(first) : Internal("a batch began before the last one was pushed");
  }
  Status Add(int section, size_t frame, bool anew) override { return local_->Add(section, frame, anew); }
  Status Push(int section, const RunContext& first, int micro_batches) override {
    ++pushes_;
    return pulls_ == pushes_ ? local_->Push(section, first, micro_batches) : Internal("pushed, but never pulled");
  }
  void Wrap(DenseParameters* local) {
    local_ = local;
    pulls_ = pushes_ = 0;
  }
  int64_t pushes() const { return pushes_; }

 private:
  DenseParameters* local_ = nullptr;
  int64_t pulls_ = 0;
  int64_t pushes_ = 0;
};

CountedDense counted_dense;

template <WorkerMaker kMake>
std::unique_ptr<DeviceWorker> WithCountedDense(WorkerParts parts) {
  counted_dense.Wrap(parts.dense);
  parts.dense = &counted_dense;
  return kMake(std::move(parts));
}

TEST(DenseParametersTest, AreWhereBothWorkersPullBeforeABatchAndPushBehindIt) {
  const TempDir folder = TempDir::Create("dense").value();
  const std::string path = WriteJob(folder.path());
  const std::vector<std::string> pipeline = {"class_name=PipelineTrainer", "device_worker_name=SectionWorker",
                                             "section_param={section_config {}}", "dump_fields=[]", "dump_param=[]"};
  const auto kept = [&](const std::string& name, WorkerMaker maker) {
    Environment environment = MakeDefaultEnvironment().value();
    if (maker != nullptr) {
      environment.workers = WorkerRegistry();
      EXPECT_TRUE(environment.workers.Add("SectionWorker", "a worker with dense parameters elsewhere", maker).ok());
    }
    const std::string out = folder.path() + "/" + name;
    const auto job = MakeJob(path, out, pipeline, environment);
    const Result<RunSummary> summary = RunJob(*job, "never", "last", {});
    EXPECT_TRUE(summary.ok()) << summary.status().ToString();
    return Kept(out);
  };
  const std::vector<std::string> plain = kept("plain", nullptr);
  EXPECT_EQ(kept("sections", WithCountedDense<MakeSectionWorker>), plain);
  EXPECT_EQ(counted_dense.pushes(), 2 * 16) << "epochs, batches";
  EXPECT_EQ(kept("hogwild", WithCountedDense<MakeHogwildWorker>), plain);
  EXPECT_EQ(counted_dense.pushes(), 2 * 16) << "epochs, batches";
}

TEST(FarTableTest, IsRefusedByNameWhereNobodyBroughtIt) {
  const TempDir folder = TempDir::Create("far").value();
  const Environment environment = MakeDefaultEnvironment().value();
  ConfigRequest request;
  request.file = WriteJob(folder.path());
  request.known = NamesOf(environment);
  request.overrides = WithFarTables(std::vector<std::string>());
  EXPECT_THAT(LoadTrainerDesc(request).status().message(), HasSubstr("no class of tables \"FarTable\""));
}

TEST(FarDeviceTest, RefusesAPipeline) {
  const FarDevice far;
  EXPECT_EQ(Refusal(far, {"class_name=PipelineTrainer", "device_worker_name=SectionWorker",
                          "section_param={section_config {}}", "dump_fields=[]", "dump_param=[]"}),
            "class_name: \"PipelineTrainer\": it sums gradients in the host's memory and cannot run on device \"far\"; "
            "use MultiTrainer");
}

}  // namespace
}  // namespace millrace
