#include "session/prepared_program.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "program/program_files.h"
#include "reader/looked_up.h"

namespace millrace {
namespace {

std::atomic<int64_t> programs_made{0};

/// Kernels rely on the type and sizes that the program declares for a slot.
Status CheckFed(const FedTensor& fed, const VarMeta& meta) {
  if (!fed.dtype.has_value()) {
    return InvalidConfig("feed \"" + fed.name + "\": no tensor holds values of dtype " + fed.type_name +
                         "; convert them, for example by .astype(\"float32\")");
  }
  const Dims& dims = fed.dims;
  bool fits =
      dims.rank() == meta.dims.rank() && *fed.dtype == meta.dtype && fed.lod.has_value() == (meta.lod_level > 0);
  for (int axis = 0; fits && axis < dims.rank(); ++axis) fits = meta.dims[axis] < 0 || meta.dims[axis] == dims[axis];
  if (fits) return Status::Ok();
  return InvalidConfig("feed \"" + fed.name + "\" is " + std::string(DTypeName(*fed.dtype)) + " " + dims.ToString() +
                       (fed.lod.has_value() ? " with lengths" : "") + ", but the variable is " +
                       std::string(DTypeName(meta.dtype)) + " " + meta.dims.ToString() +
                       (meta.lod_level > 0 ? " of lod_level 1" : ""));
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

int64_t FedTensor::rows() const {
  if (lod.has_value()) return static_cast<int64_t>(lod->size()) - 1;
  return dims.rank() == 0 ? 1 : dims[0];
}

uint64_t FedTensor::bytes() const {
  return dtype.has_value() ? static_cast<uint64_t>(dims.numel()) * SizeOf(*dtype) : 0;
}

int RowsOf(std::span<const FedTensor> feeds) {
  int64_t rows = 0;
  for (const FedTensor& fed : feeds) rows = std::max(rows, fed.rows());
  return static_cast<int>(rows);
}

Result<std::unique_ptr<PreparedProgram>> PreparedProgram::Create(Key key, const std::string& bytes, int max_rows,
                                                                 Scope& root, const CallContext& context) {
  ++programs_made;
  std::unique_ptr<PreparedProgram> made(new PreparedProgram(std::move(key), max_rows));
  CompileOptions options;
  options.fetches = made->key_.fetches;
  MR_ASSIGN(const ProgramDesc program, ParseProgram(bytes, "program"));
  MR_ASSIGN(made->executable_, Executable::Compile(program, context.environment.ops, options));
  made->ReadOps(program);
  if (made->trains_ && context.ranks.are_several()) {
    return InvalidConfig(
        "run: the program updates parameters, and each rank would train a model of its own; ranks train one model by "
        "train_from_dataset, and run programs that only look at it, such as a clone(for_test=True)");
  }
  FrameOptions frame_options;
  frame_options.seed = made->key_.seed;
  frame_options.max_rows = max_rows;
  frame_options.read_only = !made->trains_;
  frame_options.readers = &context.environment.readers;
  frame_options.tables = &context.environment.tables;
  MR_ASSIGN(made->frame_, Frame::Create(*made->executable_, nullptr, root, frame_options));
  Scope& scope = made->frame_->scope();
  MarkLookedUp(*made->executable_, scope);
  for (const auto& [name, meta] : made->executable_->vars()) {
    Variable* variable = meta.kind == VarType::READER ? scope.Find(name) : nullptr;
    if (variable == nullptr || !variable->Is<ReaderHolder>()) continue;
    made->readers_.push_back(variable->GetMutable<ReaderHolder>());
  }
  made->may_wait_ |= !made->readers_.empty();
  return made;
}

void PreparedProgram::ReadOps(const ProgramDesc& program) {
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
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (var.need_check_feed() && read.contains(var.name())) slots_.push_back(var.name());
  }
}

int64_t PreparedProgram::made() { return programs_made; }

Result<int> PreparedProgram::BindFeeds(std::span<const FedTensor> feeds) {
  const int rows = RowsOf(feeds);
  for (const std::string& slot : slots_) {
    const bool is_fed = std::any_of(feeds.begin(), feeds.end(), [&](const FedTensor& fed) { return fed.name == slot; });
    if (!is_fed) return InvalidConfig("feed: the program reads \"" + slot + "\", which is not fed");
  }
  for (const FedTensor& fed : feeds) {
    const auto known = executable_->vars().find(fed.name);
    if (known == executable_->vars().end()) continue;  // nothing reads it
    const VarMeta& meta = known->second;
    MR_TRY(CheckFed(fed, meta));
    if ((meta.lod_level > 0 || meta.dims[0] < 0) && fed.rows() != rows) {
      const bool has_sequences =
          std::any_of(feeds.begin(), feeds.end(), [](const FedTensor& other) { return other.lod.has_value(); });
      return InvalidConfig("feed \"" + fed.name + "\" has " + std::to_string(fed.rows()) +
                           " rows, but another one has " + std::to_string(rows) +
                           (has_sequences ? "; a list or tuple has a sequence for each row, values with "
                                            "lengths are create_lod_tensor's"
                                          : ""));
    }
    auto* tensor = frame_->scope().Var(fed.name)->GetMutable<Tensor>();
    tensor->View(meta.dtype, fed.dims, fed.data);
    if (fed.lod.has_value()) tensor->set_lod(*fed.lod);
  }
  return rows;
}

void PreparedProgram::ForgetFeeds(std::span<const FedTensor> feeds) {
  for (const FedTensor& fed : feeds) {
    if (!executable_->vars().contains(fed.name)) continue;
    auto* tensor = frame_->scope().Var(fed.name)->GetMutable<Tensor>();
    tensor->View(tensor->dtype(), Dims{0}, nullptr);
    tensor->set_lod({});
  }
}

Result<const Tensor*> PreparedProgram::Fetched(const std::string& name) const {
  const Variable* variable = frame_->Find(name);
  if (variable == nullptr || !variable->Is<Tensor>()) {
    return InvalidConfig("fetch_list: \"" + name + "\" holds no tensor");
  }
  const auto& tensor = variable->Get<Tensor>();
  if (tensor.empty() && tensor.numel() > 0) {
    return InvalidConfig("fetch_list: \"" + name + "\" has no value: the block that computes it did not run");
  }
  return &tensor;
}

Status PreparedProgram::Run(std::span<const FedTensor> feeds, Trained* trained, const std::stop_token& stop) {
  RunContext context;
  MR_ASSIGN(context.rows, BindFeeds(feeds));
  context.step = trained->step;
  context.stop = stop;
  RoundCounter counter(readers_, trained);
  if (is_loop_) context.loop = &counter;
  const OnlyFinite only_finite(trains_ ? readers_ : std::vector<ReaderHolder*>());
  MR_TRY(frame_->Run(context));
  if (updates_) {
    ++trained->step;
    trained->examples += context.rows;
  }
  return Status::Ok();
}

}  // namespace millrace
