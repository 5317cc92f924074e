#include "trainer/validate_job.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <utility>

#include "config/feed_names.h"
#include "core/delayed_stop.h"
#include "core/numbers.h"
#include "core/terminal.h"
#include "device_worker/batch_runner.h"
#include "inspect/batch_json.h"
#include "program/program_files.h"
#include "reader/reader_holder.h"
#include "report/batch_observers.h"
#include "trainer/pace.h"

namespace millrace {
namespace {

constexpr int kRowsShown = 5;
constexpr int kValuesShown = 8;
constexpr int kRowsTried = 1000;
constexpr std::chrono::milliseconds kReadOnFor{500};

/// Batches of at most `rows` rows, from the start of `files`.
Result<std::unique_ptr<Dataset>> OpenSample(const CompiledJob& job, std::vector<std::string> files, int rows,
                                            const std::stop_token& stop) {
  DataFeedDesc desc = job.desc().data_desc();
  ForgetOwnFeed(&desc);
  desc.set_batch_size(std::min(desc.batch_size(), rows));
  desc.set_thread_num(1);
  desc.set_drop_last(false);
  BadLinePolicy& bad_lines = *desc.mutable_bad_lines();
  if (bad_lines.action() == BadLinePolicy::QUARANTINE) bad_lines.set_action(BadLinePolicy::SKIP);  // nothing is written
  const std::string& class_name = job.desc().dataset().class_name();
  // Of an InMemoryDataset only the start is read; lines that are batches need one.
  const bool in_memory = class_name == "InMemoryDataset" && desc.input_type() == 0;
  DatasetSettings settings;
  settings.output_dir = job.output_dir();
  // What is loaded whole before its first batch is a sample only when it is one file.
  if (class_name == "InMemoryDataset" && !in_memory) files.resize(1);
  MR_ASSIGN(std::unique_ptr<Dataset> dataset,
            job.environment().datasets.Create(in_memory ? "QueueDataset" : class_name, desc, std::move(files),
                                              job.environment().feeds, settings));
  if (auto* memory = dynamic_cast<InMemoryControl*>(dataset.get())) MR_TRY(memory->LoadIntoMemory(stop).status());
  MR_TRY(dataset->BeginPass({.pass = 0, .workers = 1, .ordered = true, .seed = job.desc().seed()}));
  return dataset;
}

/// A stop request that comes after a while by itself.
class Deadline {
 public:
  Deadline(const std::stop_token& stop, std::chrono::milliseconds after)
      : stop_(stop), on_stop_(stop, [this] { enough_.request_stop(); }), timer_(enough_, after) {}
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  std::stop_token token() const { return enough_.get_token(); }
  /// Whether nobody but this ended what ended with `status`.
  bool Ended(const Status& status) const {
    return status.code() == StatusCode::kCancelled && enough_.stop_requested() && !stop_.stop_requested();
  }

 private:
  std::stop_source enough_;
  std::stop_token stop_;
  std::stop_callback<std::function<void()>> on_stop_;
  DelayedStop timer_;
};

/// The start of some files: the first batch, and where the others come from.
struct Sample {
  std::unique_ptr<Dataset> dataset;
  BatchPtr batch;
};

/// Of `*dataset`, or, when its batches do not come, of one with batches of a row that takes its place. Both are of
/// `files`.
Result<BatchPtr> FirstBatch(const CompiledJob& job, const std::vector<std::string>& files,
                            std::unique_ptr<Dataset>* dataset, const std::stop_token& stop,
                            std::chrono::milliseconds patience) {
  {
    const Deadline deadline(stop, patience);
    Result<BatchPtr> first = (*dataset)->source(0).Next(deadline.token());
    if (first.ok() || !deadline.Ended(first.status())) return first;
  }
  std::fprintf(stderr,
               "%d rows did not come within %s seconds: reading from the start again, for the first one alone\n",
               std::min(job.desc().data_desc().batch_size(), kRowsShown),
               GeneralNumber(std::chrono::duration<double>(patience).count()).c_str());
  MR_ASSIGN(*dataset, OpenSample(job, files, 1, stop));
  return (*dataset)->source(0).Next(stop);
}

/// Fails where there is no row to `use`: "validate", "evaluate".
Result<Sample> TakeSample(const CompiledJob& job, const std::vector<std::string>& files, const char* use,
                          const std::stop_token& stop, std::chrono::milliseconds patience) {
  Sample sample;
  MR_ASSIGN(sample.dataset, OpenSample(job, files, kRowsShown, stop));
  MR_ASSIGN(sample.batch, FirstBatch(job, files, &sample.dataset, stop, patience));
  if (sample.batch != nullptr) return sample;
  MR_ASSIGN(const PassStats read, sample.dataset->EndPass());
  return NothingTo(use, read, job.desc().data_desc(), sample.dataset->files());
}

/// A frame of the forward part, with the job's first parameters.
Result<std::unique_ptr<Frame>> MakeForward(JobSession& session, const std::stop_token& stop) {
  const CompiledJob& job = session.job();
  MR_TRY(session.InitParameters(stop));
  // Made and dropped: what training needs beyond the forward part is there.
  MR_TRY(Frame::Create(job.train(), &job.schema(), session.root(), session.frame_options(0, false)).status());
  if (job.trains_in_step()) {
    MR_ASSIGN(const std::unique_ptr<Frame> step,
              Frame::Create(job.step(), &job.schema(), session.root(), session.frame_options(0, false)));
    MR_TRY(CheckStep(session, *step));
  }
  MR_ASSIGN(const Executable* const forward, job.eval());
  return Frame::Create(*forward, &job.schema(), session.root(), session.frame_options(0, true));
}

using Exports = std::vector<ModelExport>;

/// Runs a batch, and looks whether `exports` could hold its ids: those of what is trained.
Status TryBatch(const Exports& exports, BatchRunner& runner, const SlotBatch& batch, const std::stop_token& stop) {
  MR_TRY(runner.Run(batch, 0, stop));
  return CheckVocabularies(exports, batch, runner.context());
}

/// Reads on behind the first batch, as far as a moment reaches: a command that fails behind its output, lines that do
/// not parse, labels and ids that the program does not take, and ids that an export could not hold, show here.
Status ReadOn(const Exports& exports, Dataset& dataset, BatchRunner& runner, const std::stop_token& stop) {
  const Deadline enough(stop, kReadOnFor);
  for (int rows = 0; rows < kRowsTried;) {
    Result<BatchPtr> next = runner.Take(dataset.source(0), enough.token());
    if (!next.ok()) return enough.Ended(next.status()) ? Status::Ok() : std::move(next).status();
    if (*next == nullptr) break;
    MR_TRY(TryBatch(exports, runner, **next, stop));
    rows += (*next)->rows();
  }
  return Status::Ok();
}

/// Runs the first batch and what ReadOn reads behind it; how much that was.
Result<PassStats> TrySample(const CompiledJob& job, const Exports& exports, Frame& frame, Sample sample,
                            const std::stop_token& stop) {
  BatchRunner runner(frame, nullptr, nullptr, {&sample.dataset->files(), job.lines_are_piped()});
  MR_TRY(TryBatch(exports, runner, *sample.batch, stop));
  sample.batch.reset();
  MR_TRY(ReadOn(exports, *sample.dataset, runner, stop));
  return sample.dataset->EndPass();
}

/// The start of each evaluation set, so that what would end the training at its first evaluation shows before it.
Status TryEvaluationSets(const CompiledJob& job, Frame& frame, const std::stop_token& stop,
                         std::chrono::milliseconds patience) {
  if (job.desc().infer()) return Status::Ok();
  for (const EvalSet& set : job.config().eval_sets) {
    if (set.files.empty() || set.is_split) continue;
    MR_ASSIGN(Sample sample, TakeSample(job, set.files, "evaluate", stop, patience));
    MR_TRY(TrySample(job, {}, frame, std::move(sample), stop).status());
  }
  return Status::Ok();
}

void PrintParameters(const JobSession& session);

/// Makes the readers and shows what the first item of each is like.
Status ValidateReaderProgram(JobSession& session, const std::stop_token& stop) {
  const CompiledJob& job = session.job();
  MR_TRY(session.InitParameters(stop));
  MR_ASSIGN(const auto frame, Frame::Create(job.train(), nullptr, session.root(), session.frame_options(0, true)));
  for (const std::string& name : session.root().Names()) {
    Variable* variable = session.root().Find(name);
    if (!variable->Is<ReaderHolder>()) continue;
    auto* reader = variable->GetMutable<ReaderHolder>();
    const Result<std::vector<TensorSpec>> shapes = reader->shapes();
    if (!shapes.ok()) continue;  // a part of another one
    Result<bool> has_next = reader->HasNext(stop);
    if (!has_next.ok()) return std::move(has_next).Context("reader \"" + name + "\"").status();
    if (!*has_next) return BadData("reader \"" + name + "\" delivers nothing");
    std::string text;
    for (const TensorSpec& shape : shapes.value()) text += (text.empty() ? "" : ", ") + shape.ToString();
    PrintOut("reader " + name + ": " + text + "\n");
  }
  PrintParameters(session);
  size_t operators = 0;
  for (int block = 0; block < job.train().block_count(); ++block) operators += job.train().ops(block).size();
  PrintOut("operators: " + std::to_string(operators) + " in " + std::to_string(job.train().block_count()) +
           " blocks\nthe job is valid\n");
  return Status::Ok();
}

void PrintParameters(const JobSession& session) {
  int64_t values = 0;
  for (const std::string& name : PersistableTensors(session.job().model().main)) {
    const Variable* variable = session.root().Find(name);
    if (variable != nullptr && variable->Is<Tensor>()) values += variable->Get<Tensor>().numel();
  }
  PrintOut("dense parameters and optimizer state: " + std::to_string(values) + " values, " +
           FixedNumber(static_cast<double>(values) * 4e-6, 1) + " MB\n");
  for (const TableDesc& table : session.job().model().tables) {
    PrintOut("table " + table.name() + ": dim " + std::to_string(table.dim()) + ", " +
             (table.has_vocabulary() ? std::to_string(table.vocabulary()) + " rows" : "grows with its keys") + "\n");
  }
}

}  // namespace

int64_t FlopsPerExample(const ProgramDesc& program) {
  std::map<std::string, int64_t> sizes;
  for (const VarDesc& var : program.blocks(0).vars()) {
    int64_t size = 1;
    for (const int64_t dim : var.type().lod_tensor().tensor().dims()) size *= dim;
    if (var.persistable()) sizes[var.name()] = size;
  }
  int64_t flops = 0;
  for (const OpDesc& op : program.blocks(0).ops()) {
    const bool is_product = op.type().starts_with("mul") || op.type().starts_with("matmul");
    if (!is_product) continue;
    const std::vector<std::string> weights = InputArguments(op, "Y");
    const auto size = weights.empty() ? sizes.end() : sizes.find(weights[0]);
    if (size == sizes.end()) continue;
    flops += size->second * (op.type().ends_with("_grad") ? 4 : 2);
  }
  return flops;
}

Status ValidateJob(JobSession& session, std::stop_token stop, std::chrono::milliseconds patience) {
  const CompiledJob& job = session.job();
  if (job.feeds_itself()) return ValidateReaderProgram(session, stop);
  MR_ASSIGN(Sample sample, TakeSample(job, job.FilesOfPass(job.FirstPass()), "validate", stop, patience));
  PrintOut(BatchAsTable(*sample.batch, 0, kValuesShown));
  MR_ASSIGN(const std::unique_ptr<Frame> frame, MakeForward(session, stop));
  MR_ASSIGN(const PassStats read, TrySample(job, job.exports(), *frame, std::move(sample), stop));
  if (const std::string left_out = LeftOutLine(read); !left_out.empty()) PrintOut(left_out + "\n");
  MR_TRY(TryEvaluationSets(job, *frame, stop, patience));
  PrintParameters(session);
  PrintOut("operators: " + std::to_string(job.train().ops().size()) +
           " a batch; matrix products: " + std::to_string(FlopsPerExample(job.model().main)) + " FLOPs an example\n");
  const size_t files = job.config().files.size();
  PrintOut(std::to_string(files) + (files == 1 ? " file, " : " files, ") + std::to_string(job.workers()) +
           (job.workers() == 1 ? " worker" : " workers") + ": the job is valid\n");
  return Status::Ok();
}

}  // namespace millrace
