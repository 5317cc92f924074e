#include "trainer/evaluator.h"

#include <omp.h>

#include <chrono>
#include <limits>
#include <thread>

#include "core/caught.h"
#include "device_worker/batch_runner.h"

namespace millrace {
namespace {

/// A shape rule may promise what nobody can read as a loss.
Result<double> LossOfBatch(const std::string& name, const Tensor& tensor, HostView& host_view) {
  MR_ASSIGN(const Tensor* const shown, host_view.Of(tensor));
  const Tensor& loss = *shown;
  if (loss.dtype() == DType::kFloat32 && loss.numel() > 0) return loss.data<float>()[0];
  if (loss.dtype() == DType::kFloat64 && loss.numel() > 0) return loss.data<double>()[0];
  return InvalidConfig("the loss \"" + name + "\" is " + std::string(DTypeName(loss.dtype())) + " " +
                       loss.dims().ToString() + "; evaluation needs a float32 or float64 value");
}

}  // namespace

Result<std::unique_ptr<Evaluator>> Evaluator::Create(JobSession& session, Dataset& dataset) {
  const CompiledJob& job = session.job();
  std::unique_ptr<Evaluator> evaluator(new Evaluator(session, dataset));
  MR_ASSIGN(const Executable* const forward, job.eval());
  for (int i = 0; i < job.workers(); ++i) {
    Reader reader;
    MR_ASSIGN(reader.frame, Frame::Create(*forward, &job.schema(), session.root(), session.frame_options(i, true)));
    MR_ASSIGN(reader.metrics, MetricAccumulator::Create(job.metrics(), *reader.frame, &session.label_monitor()));
    const Variable* loss = job.loss().empty() ? nullptr : reader.frame->Find(job.loss());
    if (loss != nullptr && loss->Is<Tensor>()) reader.loss = &loss->Get<Tensor>();
    evaluator->readers_.push_back(std::move(reader));
  }
  return evaluator;
}

Evaluator::~Evaluator() {
  if (loaded_) dynamic_cast<InMemoryControl&>(*dataset_).ReleaseMemory();
}

Status Evaluator::RunReader(Reader& reader, BatchSource& source, const std::stop_token& stop) {
  omp_set_num_threads(1);
  reader.metrics->Clear();
  reader.loss_sum = 0;
  reader.examples = 0;
  BatchRunner runner(*reader.frame, reader.metrics.get(), nullptr, {&dataset_->files(), job_->lines_are_piped()});
  while (true) {
    MR_ASSIGN(const BatchPtr batch, runner.Take(source, stop));
    if (batch == nullptr) return Status::Ok();
    // What the number of a step sets off is of training: every batch is the first.
    MR_TRY(runner.Run(*batch, 0, stop));
    MR_TRY(runner.Measure());
    if (reader.loss != nullptr) {
      MR_ASSIGN(const double loss, LossOfBatch(job_->loss(), *reader.loss, reader.host_view));
      reader.loss_sum += loss * batch->rows();
    }
    reader.examples += batch->rows();
  }
}

Result<EvalReport> Evaluator::Run(const RunState& state, std::stop_token stop) {
  const auto start = std::chrono::steady_clock::now();
  Dataset& dataset = *dataset_;
  PassStats load;  // of an in-memory dataset, the first time
  if (auto* memory = dynamic_cast<InMemoryControl*>(&dataset); memory != nullptr && !memory->IsLoaded()) {
    MR_ASSIGN(load, memory->LoadIntoMemory(stop));
    loaded_ = true;
    loaded_stats_ = load;
  }
  PassOptions options;
  options.workers = job_->workers();
  options.seed = job_->desc().seed();
  options.ordered = job_->desc().update_mode() == TrainerDesc::SERIAL;
  MR_TRY(dataset.BeginPass(options));
  std::stop_source failed;
  Status first;
  {
    std::stop_callback forward(stop, [&failed] { failed.request_stop(); });
    std::vector<std::jthread> threads;
    first = Caught("an evaluation", [&] {
      for (size_t i = 0; i < readers_.size(); ++i) {
        threads.emplace_back([this, i, &dataset, &failed] {
          readers_[i].status = Caught("an evaluation", [&] {
            return RunReader(readers_[i], dataset.source(static_cast<int>(i)), failed.get_token());
          });
          if (!readers_[i].status.ok()) failed.request_stop();
        });
      }
      return Status::Ok();
    });
    if (!first.ok()) failed.request_stop();
  }
  for (Reader& reader : readers_) {
    const bool better = first.ok() || first.code() == StatusCode::kCancelled;
    if (better && !reader.status.ok()) first = reader.status;
  }
  Result<PassStats> stats = dataset.EndPass();
  MR_TRY(std::move(first));
  if (!stats.ok()) return std::move(stats).status();

  EvalReport report;
  report.step = state.step;
  report.epoch = state.epoch;
  report.trained_examples = state.examples;
  MetricTotals totals = job_->metrics().NewTotals();
  double loss = 0;
  for (const Reader& reader : readers_) {
    reader.metrics->AddTo(totals);
    loss += reader.loss_sum;
    report.examples += reader.examples;
  }
  if (report.examples == 0)
    return NothingTo("evaluate", load.files > 0 ? load : *stats, job_->desc().data_desc(), dataset.files());
  const bool has_loss = readers_[0].loss != nullptr;
  report.loss = has_loss ? loss / static_cast<double>(report.examples) : std::numeric_limits<double>::quiet_NaN();
  report.metrics = job_->metrics().Compute(totals);
  report.non_finite_rows = job_->metrics().NonFiniteRows(totals);
  report.data = dynamic_cast<InMemoryControl*>(&dataset) != nullptr ? loaded_stats_ : *stats;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace millrace
