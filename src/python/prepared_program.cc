#include "python/prepared_program.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "program/program_files.h"
#include "python/bindings.h"
#include "python/interruptible.h"
#include "python/process_ranks.h"
#include "python/tensor_array.h"
#include "reader/looked_up.h"

namespace py = pybind11;

namespace millrace {
namespace {

std::atomic<int64_t> programs_made{0};

int64_t RowsOfOne(const FedArray& fed) {
  const auto& [name, values, offsets] = fed;
  if (!offsets.is_none()) return offsets.cast<py::array>().size() - 1;
  return values.ndim() == 0 ? 1 : values.shape(0);
}

Dims DimsOfArray(const py::array& array) {
  const std::vector<int64_t> shape(array.shape(), array.shape() + array.ndim());
  return Dims(std::span<const int64_t>(shape));
}

/// Kernels rely on what the program says of a slot.
void CheckFed(const std::string& name, const py::array& values, bool has_lod, const VarMeta& meta) {
  const Dims dims = DimsOfArray(values);
  bool fits = dims.rank() == meta.dims.rank() && DTypeOfArray(values, "feed \"" + name + "\"") == meta.dtype &&
              has_lod == (meta.lod_level > 0);
  for (int axis = 0; fits && axis < dims.rank(); ++axis) fits = meta.dims[axis] < 0 || meta.dims[axis] == dims[axis];
  if (fits) return;
  throw StatusError(InvalidConfig("feed \"" + name + "\" is " + py::str(values.dtype()).cast<std::string>() + " " +
                                  dims.ToString() + (has_lod ? " with lengths" : "") + ", but the variable is " +
                                  std::string(DTypeName(meta.dtype)) + " " + meta.dims.ToString() +
                                  (meta.lod_level > 0 ? " of lod_level 1" : "")));
}

/// Gives each round of a training loop its step.
class RoundCounter final : public LoopObserver {
 public:
  using Trained = PreparedProgram::Trained;
  RoundCounter(const std::vector<ReaderHolder*>& readers, Trained* trained)
      : readers_(&readers), read_(Read()), trained_(trained) {}
  Status BeforeLoop(RunContext*) override { return Status::Ok(); }
  Status AfterRound(RunContext* body) override {
    const ReaderCounts read = Read();
    if (readers_->empty() || read.items != read_.items) ++trained_->step;
    trained_->examples += readers_->empty() ? body->rows : read.rows - read_.rows;
    read_ = read;
    body->step = trained_->step;
    return body->stop.stop_requested() ? Cancelled("stopped in a while loop") : Status::Ok();
  }
  Status AfterCutRound(size_t, Status failure, RunContext*) override { return failure; }

 private:
  ReaderCounts Read() const {
    ReaderCounts read;
    for (const ReaderHolder* reader : *readers_) read.Add(*reader);
    return read;
  }

  const std::vector<ReaderHolder*>* readers_;
  ReaderCounts read_;
  Trained* trained_;
};

/// While it lives, the readers give only what is finite.
class OnlyFinite {
 public:
  explicit OnlyFinite(std::vector<ReaderHolder*> readers) : readers_(std::move(readers)) { Set(true); }
  OnlyFinite(const OnlyFinite&) = delete;
  OnlyFinite& operator=(const OnlyFinite&) = delete;
  ~OnlyFinite() { Set(false); }

 private:
  void Set(bool only_finite) const {
    for (ReaderHolder* reader : readers_) reader->set_only_finite(only_finite);
  }

  std::vector<ReaderHolder*> readers_;
};

/// Whether an operator, or one of a block that it runs, updates parameters.
bool Updates(const Executable& executable, const OpDesc& op) {
  if (executable.registry().Find(op.type())->is_optimizer) return true;
  if (BlockOf(op) < 0) return false;
  const OpList& inner = executable.ops(BlockOf(op));
  return std::any_of(inner.begin(), inner.end(), [&](const OpDesc& o) { return Updates(executable, o); });
}

}  // namespace

int RowsOf(const std::vector<FedArray>& feeds) {
  int64_t rows = 0;
  for (const FedArray& fed : feeds) rows = std::max(rows, RowsOfOne(fed));
  return static_cast<int>(rows);
}

PreparedProgram::PreparedProgram(Key key, const std::string& bytes, int max_rows, Scope& root)
    : key_(std::move(key)), max_rows_(max_rows) {
  ++programs_made;
  const OpRegistry& registry = SharedEnvironment().ops;
  CompileOptions options;
  options.fetches = key_.fetches;
  const ProgramDesc program = ValueOrThrow(ParseProgram(bytes, "program"));
  executable_ = ValueOrThrow(Executable::Compile(program, registry, options));
  std::set<std::string> read;
  int loops = 0;
  for (const OpDesc& op : executable_->ops()) {
    const bool is_while = op.type() == "while";
    loops += is_while ? 1 : 0;
    (is_while ? is_loop_ : updates_) |= Updates(*executable_, op);
    may_wait_ |= BlockOf(op) >= 0;
    for (const OpDesc::Var& input : op.inputs()) read.insert(input.arguments().begin(), input.arguments().end());
  }
  trains_ = updates_ || is_loop_;
  is_loop_ = is_loop_ && loops == 1;
  if (trains_ && RanksOfProcess().are_several()) {
    throw StatusError(InvalidConfig(
        "run: the program updates parameters, and each rank would train a model of its own; ranks train one model by "
        "train_from_dataset, and run programs that only look at it, such as a clone(for_test=True)"));
  }
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (var.need_check_feed() && read.contains(var.name())) slots_.push_back(var.name());
  }
  FrameOptions frame_options;
  frame_options.seed = key_.seed;
  frame_options.max_rows = max_rows_;
  frame_options.read_only = !trains_;
  frame_options.readers = &SharedEnvironment().readers;
  frame_options.tables = &SharedEnvironment().tables;
  frame_ = ValueOrThrow(Frame::Create(*executable_, nullptr, root, frame_options));
  MarkLookedUp(*executable_, frame_->scope());
  for (const auto& [name, meta] : executable_->vars()) {
    Variable* variable = meta.kind == VarType::READER ? frame_->scope().Find(name) : nullptr;
    if (variable != nullptr && variable->Is<ReaderHolder>()) readers_.push_back(variable->GetMutable<ReaderHolder>());
  }
  may_wait_ |= !readers_.empty();
}

int64_t PreparedProgram::made() { return programs_made; }

int PreparedProgram::BindFeeds(const std::vector<FedArray>& feeds) {
  const int rows = RowsOf(feeds);
  for (const std::string& slot : slots_) {
    const bool is_fed =
        std::any_of(feeds.begin(), feeds.end(), [&](const FedArray& fed) { return std::get<0>(fed) == slot; });
    if (!is_fed) throw StatusError(InvalidConfig("feed: the program reads \"" + slot + "\", which is not fed"));
  }
  const bool has_sequences =
      std::any_of(feeds.begin(), feeds.end(), [](const FedArray& fed) { return !std::get<2>(fed).is_none(); });
  kept_.clear();
  lods_.clear();
  lods_.reserve(feeds.size());
  for (const FedArray& fed : feeds) {
    const auto& [name, values, offsets] = fed;
    const auto known = executable_->vars().find(name);
    if (known == executable_->vars().end()) continue;  // nothing reads it
    kept_.push_back(py::array::ensure(values, py::array::c_style));
    const py::array& array = kept_.back();
    CheckFed(name, array, !offsets.is_none(), known->second);
    const bool has_batch = known->second.lod_level > 0 || known->second.dims[0] < 0;
    if (has_batch && RowsOfOne(fed) != rows) {
      throw StatusError(InvalidConfig("feed \"" + name + "\" has " + std::to_string(RowsOfOne(fed)) +
                                      " rows, but another one has " + std::to_string(rows) +
                                      (has_sequences ? "; a list or tuple has a sequence for each row, values with "
                                                       "lengths are create_lod_tensor's"
                                                     : "")));
    }
    auto* tensor = frame_->scope().Var(name)->GetMutable<Tensor>();
    tensor->View(known->second.dtype, DimsOfArray(array), array.data());
    if (offsets.is_none()) continue;
    const auto starts = offsets.cast<py::array_t<int64_t, py::array::c_style>>();
    lods_.emplace_back(starts.data(), starts.data() + starts.size());
    tensor->set_lod(lods_.back());
  }
  return rows;
}

void PreparedProgram::ForgetFeeds(const std::vector<FedArray>& feeds) {
  for (const auto& [name, values, offsets] : feeds) {
    if (!executable_->vars().contains(name)) continue;
    auto* tensor = frame_->scope().Var(name)->GetMutable<Tensor>();
    tensor->View(tensor->dtype(), Dims{0}, nullptr);
    tensor->set_lod({});
  }
  kept_.clear();
  lods_.clear();
}

py::object PreparedProgram::Fetched(const std::string& name) const {
  const Variable* variable = frame_->Find(name);
  if (variable == nullptr || !variable->Is<Tensor>()) {
    throw StatusError(InvalidConfig("fetch_list: \"" + name + "\" holds no tensor"));
  }
  const auto& tensor = variable->Get<Tensor>();
  if (tensor.empty() && tensor.numel() > 0) {
    throw StatusError(
        InvalidConfig("fetch_list: \"" + name + "\" has no value: the block that computes it did not run"));
  }
  return ToArray(tensor);
}

py::list PreparedProgram::Run(const std::vector<FedArray>& feeds, Trained* trained) {
  RunContext context;
  context.rows = BindFeeds(feeds);
  context.step = trained->step;
  RoundCounter counter(readers_, trained);
  if (is_loop_) context.loop = &counter;
  const OnlyFinite only_finite(trains_ ? readers_ : std::vector<ReaderHolder*>());
  int64_t bytes = 0;
  for (const FedArray& fed : feeds) bytes += std::get<1>(fed).nbytes();
  const auto run = [&](std::stop_token stop) {
    context.stop = std::move(stop);
    ThrowUnlessOk(frame_->Run(context));
  };
  if (may_wait_) {
    RunInterruptibly(run);
  } else {
    quick_.Run(bytes, run);
  }
  if (updates_) {
    ++trained->step;
    trained->examples += context.rows;
  }
  py::list results;
  for (const std::string& name : key_.fetches) results.append(Fetched(name));
  ForgetFeeds(feeds);
  return results;
}

}  // namespace millrace
