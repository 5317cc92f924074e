#include "device_worker/hogwild_worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace millrace {
namespace {

// Batches that are inside an operator at once, for each number of batches started before.
std::atomic<int> inside{0};
std::atomic<int> most_inside_in_turns{0};
std::atomic<int64_t> runs{0};
constexpr int64_t kTurns = 32;

class CountingKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext&) {
    return std::unique_ptr<OpKernel>(std::make_unique<CountingKernel>());
  }
  Status Run(const RunContext& context) override {
    const int now = inside.fetch_add(1) + 1;
    if (context.step < kTurns) most_inside_in_turns = std::max(most_inside_in_turns.load(), now);
    for (int i = 0; i < 20; ++i) std::this_thread::yield();
    inside.fetch_sub(1);
    ++runs;
    return Status::Ok();
  }
};

class FixedSource : public BatchSource {
 public:
  FixedSource(BatchPool& pool, int batches) : pool_(&pool), left_(batches) {}
  Result<BatchPtr> Next(std::stop_token) override { return left_-- > 0 ? pool_->Take() : BatchPtr(); }

 private:
  BatchPool* pool_;
  int left_;
};

/// A frame of a program without slots.
class ProgramFrame {
 public:
  ProgramFrame(const ProgramDesc& program, const OpRegistry& registry)
      : executable_(Executable::Compile(program, registry, {}).value()),
        frame_(Frame::Create(*executable_, &schema_, root_, {}).value()) {}
  Frame& frame() { return *frame_; }
  BatchPool& pool() { return pool_; }

 private:
  const SlotSchema schema_;
  BatchPool pool_{schema_};
  Scope root_;
  const std::unique_ptr<const Executable> executable_;
  const std::unique_ptr<Frame> frame_;
};

TEST(BatchRunner, TakesBatchesToTheEndAndNoneAfterAStopAlthoughOneIsReady) {
  const OpRegistry registry;
  ProgramDesc program;
  program.add_blocks();
  ProgramFrame frame(program, registry);
  const std::vector<std::string> files = {"part-0"};
  BatchRunner runner(frame.frame(), nullptr, nullptr, {&files, true});
  FixedSource source(frame.pool(), 1);
  std::stop_source stop;
  const BatchPtr batch = runner.Take(source, stop.get_token()).value();
  ASSERT_NE(batch, nullptr);
  ASSERT_TRUE(runner.Run(*batch, 7, stop.get_token()).ok());
  EXPECT_TRUE(runner.Measure().ok());
  EXPECT_EQ(runner.context().step, 7);
  EXPECT_EQ(runner.context().batch, batch.get());
  EXPECT_EQ(runner.context().file_names, &files);
  EXPECT_TRUE(runner.context().lines_are_piped);
  EXPECT_EQ(runner.Take(source, stop.get_token()).value(), nullptr);
  FixedSource ready(frame.pool(), 1);
  stop.request_stop();
  EXPECT_EQ(runner.Take(ready, stop.get_token()).status().code(), StatusCode::kCancelled);
}

TEST(HogwildWorker, TakesTheFirstStepsInTurns) {
  OpRegistry registry;
  registry.Add("count")
      .Doc("Counts.")
      .InferShape([](InferShapeContext&) { return Status::Ok(); })
      .Kernel<CountingKernel>();
  ASSERT_TRUE(registry.Seal().ok());
  ProgramDesc program;
  program.add_blocks()->add_ops()->set_type("count");
  const auto executable = Executable::Compile(program, registry, {});
  ASSERT_TRUE(executable.ok()) << executable.status().ToString();
  const SlotSchema schema;
  BatchPool pool(schema);
  Scope root;
  PauseGate gate(2);
  SharedProgress progress;
  ASSERT_EQ(progress.serialized_warmup_steps, kTurns);
  gate.StartPass();
  std::vector<std::unique_ptr<Frame>> frames;
  std::vector<std::unique_ptr<DeviceWorker>> workers;
  for (int i = 0; i < 2; ++i) {
    auto frame = Frame::Create(**executable, &schema, root, {});
    ASSERT_TRUE(frame.ok());
    frames.push_back(std::move(*frame));
    WorkerParts parts;
    parts.index = i;
    parts.frames = {{frames.back().get(), nullptr, {}}};
    parts.gate = &gate;
    parts.progress = &progress;
    workers.push_back(MakeHogwildWorker(std::move(parts)));
  }
  {
    std::vector<std::jthread> threads;
    for (const auto& worker : workers) {
      threads.emplace_back([&pool, &worker] {
        FixedSource source(pool, 40);
        EXPECT_TRUE(worker->Train(source, {}).ok());
      });
    }
  }
  EXPECT_EQ(most_inside_in_turns, 1) << "two workers were in the first steps at once";
  EXPECT_EQ(runs, 80);
  EXPECT_EQ(progress.steps_done, 80);
}

class FailingKernel : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext&) {
    return std::unique_ptr<OpKernel>(std::make_unique<FailingKernel>());
  }
  Status Run(const RunContext&) override { return BadData("no number"); }
};

TEST(HogwildWorker, StaysBusyAfterAFailureSoThatNobodyCheckpointsIt) {
  OpRegistry registry;
  registry.Add("fail")
      .Doc("Fails.")
      .InferShape([](InferShapeContext&) { return Status::Ok(); })
      .Kernel<FailingKernel>();
  ProgramDesc program;
  program.add_blocks()->add_ops()->set_type("fail");
  ProgramFrame frame(program, registry);
  PauseGate gate(1);
  SharedProgress progress;
  gate.StartPass();
  WorkerParts parts;
  parts.frames = {{&frame.frame(), nullptr, {}}};
  parts.gate = &gate;
  parts.progress = &progress;
  FixedSource source(frame.pool(), 1);
  EXPECT_EQ(MakeHogwildWorker(std::move(parts))->Train(source, {}).code(), StatusCode::kBadData);
  gate.Ask();
  EXPECT_EQ(gate.Wait(std::chrono::milliseconds(1)), PauseGate::Event::kTick);
  gate.Done(0);
  EXPECT_EQ(gate.Wait(std::chrono::milliseconds(1)), PauseGate::Event::kPaused);
}

}  // namespace
}  // namespace millrace
