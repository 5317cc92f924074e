#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "program/counters.h"
#include "program/program_files.h"
#include "python/bindings.h"
#include "python/interruptible.h"
#include "python/output.h"
#include "python/report_dict.h"
#include "python/script_ranks.h"
#include "python/table_rows.h"
#include "python/tensor_array.h"
#include "session/trained_scope.h"
#include "table/sparse_table.h"

namespace py = pybind11;

/// Programs come as bytes.
template <>
struct pybind11::detail::type_caster<millrace::ProgramDesc> {
  PYBIND11_TYPE_CASTER(millrace::ProgramDesc, const_name("bytes"));
  bool load(handle source, bool /*convert*/) {
    if (!PyBytes_Check(source.ptr())) return false;
    value = millrace::ValueOrThrow(millrace::ParseProgram(reinterpret_borrow<bytes>(source), "program"));
    return true;
  }
};

namespace millrace {
namespace {

using TablePtr = std::unique_ptr<SparseTable>;

/// A method of a session's object that takes a CallContext, as a function of Python. Ranks call it together.
template <class T, class R, class... Args>
auto OnRanks(R (T::*method)(const CallContext&, Args...)) {
  return [method](T& self, std::decay_t<Args>... args) {
    return RunCall([&](const CallContext& context) { return (self.*method)(context, args...); });
  };
}
/// One that can be stopped.
template <class T, class R, class... Args>
auto Stoppable(R (T::*method)(const std::stop_token&, Args...)) {
  return [method](T& self, std::decay_t<Args>... args) {
    return RunCall([&](const CallContext& context) { return (self.*method)(context.stop, args...); }, SoloProcess());
  };
}
/// One that is over soon: it keeps the GIL.
template <class T, class R, class... Args>
auto Checked(R (T::*method)(Args...)) {
  return [method](T& self, std::decay_t<Args>... args) {
    if constexpr (std::is_same_v<R, Status>) {
      ThrowUnlessOk((self.*method)(args...));
    } else {
      return ValueOrThrow((self.*method)(args...));
    }
  };
}
/// One that takes a while and cannot be stopped.
template <class T, class... Args>
auto WithoutTheGil(Status (T::*method)(Args...)) {
  return [method](T& self, std::decay_t<Args>... args) { WithoutGil([&] { ThrowUnlessOk((self.*method)(args...)); }); };
}

/// Includes the counts of programs with counters of their own, because Paddle uses one name for both.
py::object Get(TrainedScope& scope, const std::string& name) {
  RanksOfScript();  // rows may lie on others
  py::object value = py::none();
  ThrowUnlessOk(scope.Read(name, [&](const Variable* variable) {
    if (variable != nullptr && variable->Is<TablePtr>()) {
      value = ToRows(*variable->Get<TablePtr>());
    } else if (variable != nullptr && variable->Is<Tensor>()) {
      value = ToArray(variable->Get<Tensor>());
    }
    return Status::Ok();
  }));
  const std::optional<std::vector<int64_t>> seen = scope.seen().Find(name);
  if (!seen || !py::isinstance<py::array_t<int64_t>>(value)) return value;
  auto counts = value.cast<py::array_t<int64_t>>();
  const size_t size = std::min(static_cast<size_t>(counts.size()), seen->size());
  for (size_t i = 0; i < size; ++i) counts.mutable_data()[i] += (*seen)[i];
  return counts;
}

/// None if there are no such counts.
py::object Seen(TrainedScope& scope, const std::string& name) {
  const std::optional<std::vector<int64_t>> seen = scope.seen().Find(name);
  if (!seen) return py::none();
  return py::array_t<int64_t>(static_cast<py::ssize_t>(seen->size()), seen->data());
}

void SetSeen(TrainedScope& scope, const std::string& name, const py::array_t<int64_t, py::array::c_style>& seen) {
  scope.seen().Set(name, {seen.data(), seen.data() + seen.size()});
}

void Set(TrainedScope& scope, const std::string& name, const py::array& array) {
  const py::array values = py::array::ensure(array, py::array::c_style);
  const DType type = DTypeOfArray(values, "variable \"" + name + "\"");
  ThrowUnlessOk(scope.Set(name, type, DimsOfArray(values), values.data()));
}

/// (rows, bytes) of a table that grows.
std::pair<int64_t, int64_t> TableSize(TrainedScope& scope, const std::string& name) {
  RanksOfScript();  // rows may lie on others
  TableStats stats;
  ThrowUnlessOk(scope.Read(name, [&](const Variable* variable) {
    if (variable == nullptr || !variable->Is<TablePtr>()) {
      return NotFound("the scope has no table \"" + name + "\" that grows: run the startup program first");
    }
    stats = variable->Get<TablePtr>()->stats();
    return Status::Ok();
  }));
  return {stats.rows, stats.bytes};
}

/// None if there is no intact checkpoint.
py::object LoadCheckpoint(TrainedScope& scope, const ProgramDesc& program, const std::string& folder, int64_t key) {
  const std::optional<RestoredCheckpoint> restored =
      RunCall([&](const CallContext& context) { return scope.LoadCheckpoint(context, program, folder, key); });
  if (!restored) return py::none();
  py::dict dict;
  dict["folder"] = restored->folder;
  dict["step"] = restored->step;
  dict["examples"] = restored->examples;
  dict["trainer_args"] = restored->trainer_args;
  dict["refused"] = restored->skipped;
  return dict;
}

/// The variables that are keys of tables.
std::vector<std::string> LookedUp(const ProgramDesc& program) {
  std::vector<std::string> names;
  for (const BlockDesc& block : program.blocks()) {
    for (const OpDesc& op : block.ops()) {
      if (!op.type().starts_with("lookup_table")) continue;
      for (std::string& name : InputArguments(op, "Ids")) names.push_back(std::move(name));
    }
  }
  return names;
}

py::dict LoadModel(TrainedScope& scope, const std::string& folder) {
  const LoadedModel model = RunCall([&](const CallContext& context) { return scope.LoadModel(context, folder); });
  py::dict dict;
  dict["program"] = py::bytes(model.program.SerializeAsString());
  dict["feeds"] = model.feeds;
  dict["fetches"] = model.fetches;
  dict["seed"] = model.seed;
  dict["looked_up"] = LookedUp(model.program);
  dict["warnings"] = model.warnings;
  return dict;
}

void SaveModel(TrainedScope& scope, const ProgramDesc& test, const ProgramDesc& startup, const std::string& data,
               const std::string& prediction, const std::vector<std::string>& targets,
               const std::vector<std::string>& pooled, const std::string& folder) {
  const ScopeModel model{test, startup, data, prediction, targets, pooled};
  RunCall([&](const CallContext& context) { return scope.SaveModel(context, model, folder); });
}

/// Destroys rows without the GIL: it waits for a preload in the background.
struct DeleteWithoutGil {
  void operator()(MemoryRows* rows) const {
    const py::gil_scoped_release released;
    delete rows;
  }
};
using OwnedRows = std::unique_ptr<MemoryRows, DeleteWithoutGil>;

/// Keeps what was fetched, and prints it unless `is_quiet`. Thread-safe.
class History final : public RunReporter {
 public:
  explicit History(bool is_quiet) : is_quiet_(is_quiet) {}
  void OnTick(const RunProgress& /*progress*/) override {}
  Status OnLoad(const PassStats& /*load*/) override { return Status::Ok(); }
  Status OnFetch(const FetchLine& line) override {
    {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    }
    return is_quiet_ ? Status::Ok() : PrintInPython(FetchText(line));
  }
  Status OnPoint(const FetchLine& /*line*/) override { return Status::Ok(); }
  Status OnEval(const EvalReport& /*report*/) override { return Status::Ok(); }
  Status OnPass(const PassReport& /*report*/) override { return Status::Ok(); }

  py::list ToList() const { return HistoryList(lines_); }

 private:
  const bool is_quiet_;
  std::mutex mutex_;
  std::vector<FetchLine> lines_;
};

/// Shows variables to a Python object every so often. StopTraining asks `stop` to end the run at this batch's end; what
/// else it raises ends the run at once and goes on to the caller.
class PyFetchHandler final : public FetchHandler {
 public:
  /// `handler` has var_dict (key: variable's name), period_secs and handler(dict). Made and gone under the GIL.
  PyFetchHandler(py::object handler, std::stop_source stop)
      : handler_(std::move(handler)),
        stop_(std::move(stop)),
        variables_(handler_.attr("_names")().cast<std::map<std::string, std::string>>()),
        period_seconds_(handler_.attr("period_secs").cast<double>()) {}

  std::map<std::string, std::string> variables() const override { return variables_; }
  double period_seconds() const override { return period_seconds_; }
  Status Handle(const std::map<std::string, const Tensor*>& values) override {
    const py::gil_scoped_acquire acquired;
    try {
      py::dict shown;
      for (const auto& [key, tensor] : values) {
        shown[py::str(key)] = tensor == nullptr ? py::object(py::none()) : py::object(ToArray(*tensor));
      }
      handler_.attr("handler")(shown);
      return Status::Ok();
    } catch (py::error_already_set& error) {
      if (error.matches(py::module_::import("millrace.errors").attr("StopTraining"))) {
        has_stopped_ = true;
        stop_.request_stop();
        return Cancelled("the fetch handler stopped the training");
      }
      raised_ = std::make_unique<py::error_already_set>(std::move(error));
      return InvalidConfig("the fetch handler raised an exception");
    }
  }
  /// Whether the handler raised StopTraining.
  bool has_stopped() const { return has_stopped_; }
  /// Raises what the handler raised, if it did.
  void Rethrow() const {
    if (raised_ != nullptr) throw py::error_already_set(*raised_);
  }

 private:
  py::object handler_;
  std::stop_source stop_;
  std::atomic<bool> has_stopped_{false};
  std::map<std::string, std::string> variables_;
  double period_seconds_;
  std::unique_ptr<py::error_already_set> raised_;
};

/// A training (or inference) call; see TrainedScope::Train. `on_ranks`: together with the other ranks, if there are
/// any.
py::dict RunDataset(TrainedScope& on, const std::string& text, MemoryRows* memory, const py::object& handler,
                    bool measures, int64_t key, bool is_quiet, bool on_ranks) {
  DatasetRun run;
  run.text = text;
  run.memory = memory;
  std::unique_ptr<PyFetchHandler> fetch_handler;
  if (!handler.is_none()) fetch_handler = std::make_unique<PyFetchHandler>(handler, run.ended);
  run.fetch_handler = fetch_handler.get();
  History history(is_quiet);
  run.reporter = &history;
  run.measures = measures;
  run.key = key;
  DatasetRunResult result;
  try {
    RunCall([&](const CallContext& context) { return on.Train(context, run, &result); },
            on_ranks ? RanksOfScript() : SoloProcess());
  } catch (const StatusError& error) {
    if (fetch_handler != nullptr) fetch_handler->Rethrow();
    if (result.is_end_of_data) throw EndOfDataError(error.status());
    throw;
  } catch (const py::error_already_set&) {  // Ctrl-C; the handler's own exception comes first
    if (fetch_handler != nullptr) fetch_handler->Rethrow();
    throw;
  }
  py::dict dict = ReportDict(result.summary);
  if (fetch_handler != nullptr && fetch_handler->has_stopped()) {
    dict["stopped_early"] = true;
    // The pass that it ended counts as over where the run has no other.
    if (!result.interrupted) dict["epochs"] = result.state.epoch - 1;
  }
  dict["history"] = history.ToList();
  dict["non_finite_losses"] = result.non_finite_losses;
  return dict;
}

/// A variable's array, and the offsets of its rows for a variable of lod_level 1, else None.
using FedArray = std::tuple<std::string, py::array, py::object>;

/// Views of the arrays, which are contiguous.
std::vector<FedTensor> FedTensors(const std::vector<FedArray>& feeds) {
  std::vector<FedTensor> fed;
  fed.reserve(feeds.size());
  for (const auto& [name, array, offsets] : feeds) {
    FedTensor& tensor = fed.emplace_back();
    tensor.name = name;
    tensor.dtype = FindDType(array);
    if (!tensor.dtype) tensor.type_name = py::str(array.dtype()).cast<std::string>();
    tensor.dims = DimsOfArray(array);
    tensor.data = array.data();
    if (offsets.is_none()) continue;
    const auto starts = offsets.cast<py::array_t<int64_t, py::array::c_style>>();
    tensor.lod.emplace(starts.data(), starts.data() + starts.size());
  }
  return fed;
}

/// One run of a program on arrays. `program` is its number and version, `serialize` returns its bytes.
py::list RunProgram(TrainedScope& on, const std::pair<int64_t, int64_t>& program, const py::function& serialize,
                    std::vector<FedArray> feeds, const std::vector<std::string>& fetches, uint64_t seed,
                    ProgramCounters* counts, int64_t program_key) {
  for (auto& [name, array, offsets] : feeds) array = py::array::ensure(array, py::array::c_style);
  const std::vector<FedTensor> fed = FedTensors(feeds);
  const int rows = RowsOf(fed);
  if (rows == 0 && !feeds.empty()) throw StatusError(InvalidConfig("feed: the batch has no rows"));
  const CallContext context{SharedEnvironment(), RanksOfScript(), {}};
  const auto bytes_of_program = [&] { return serialize().cast<std::string>(); };
  const std::unique_ptr<ProgramRun> run = ValueOrThrow(on.BeginRun(
      context, {program.first, program.second, fetches, seed}, rows, bytes_of_program, counts, program_key));
  int64_t bytes = 0;
  for (const FedTensor& one : fed) bytes += static_cast<int64_t>(one.bytes());
  const auto work = [&](const std::stop_token& stop) { ThrowUnlessOk(run->Run(fed, stop)); };
  py::list results;
  try {
    if (run->prepared().may_wait()) {
      RunInterruptibly(work);
    } else {
      RunQuickly(&run->prepared().quick(), bytes, work);
    }
    for (const std::string& name : fetches) results.append(ToArray(*ValueOrThrow(run->Fetched(name))));
  } catch (const StatusError& error) {
    if (run->IsEndOfData(error.status())) throw EndOfDataError(error.status());
    throw;
  }
  run->Keep(fed);
  return results;
}

}  // namespace

void BindSession(py::module_& module) {
  py::class_<TrainedScope>(module, "Scope")
      .def(py::init<>())
      .def("run_startup", OnRanks(&TrainedScope::RunStartupProgram))
      .def("get", &Get)
      .def("set", &Set)
      .def("set_seen", &SetSeen)
      .def("seen", &Seen)
      .def("take_made", &TrainedScope::TakeMade)
      .def("queue_holder", Checked(&TrainedScope::QueueHolder), py::return_value_policy::reference_internal)
      .def("reset_reader", WithoutTheGil(&TrainedScope::ResetReader))
      .def("items_read", Checked(&TrainedScope::ItemsRead))
      .def("names", Checked(&TrainedScope::Names))
      .def("shrink", OnRanks(&TrainedScope::Shrink))
      .def("save", OnRanks(&TrainedScope::Save))
      .def("load", OnRanks(&TrainedScope::Load))
      .def("load_weights", OnRanks(&TrainedScope::LoadWeights))
      .def("load_table", OnRanks(&TrainedScope::LoadTable))
      .def("table_size", &TableSize)
      .def("save_checkpoint", OnRanks(&TrainedScope::SaveCheckpoint))
      .def("load_checkpoint", &LoadCheckpoint)
      .def("load_model", &LoadModel)
      .def("save_model", &SaveModel)
      .def("export_model", OnRanks(&TrainedScope::ExportModel))
      .def_property_readonly("step", &TrainedScope::step);
  py::class_<MemoryRows, OwnedRows>(module, "Memory")
      .def(py::init([](const std::string& text) {
        return OwnedRows(
            RunCall([&](const CallContext& context) { return MemoryRows::Create(text, context); }).release());
      }))
      .def("load", Stoppable(&MemoryRows::Load))
      .def("preload", Checked(&MemoryRows::Preload))
      .def("wait_preload", Stoppable(&MemoryRows::WaitPreload))
      .def("shuffle", WithoutTheGil(&MemoryRows::Shuffle))
      .def("global_shuffle", OnRanks(&MemoryRows::GlobalShuffle))
      .def("slots_shuffle", Checked(&MemoryRows::SlotsShuffle))
      .def("set_phase", Checked(&MemoryRows::SetPhase))
      .def("set_batches", Checked(&MemoryRows::SetBatches))
      .def("release", WithoutTheGil(&MemoryRows::Release))
      .def("size", Checked(&MemoryRows::Size))
      .def("pv_size", Checked(&MemoryRows::PvSize));
  module.def("run_dataset", &RunDataset, py::arg("scope"), py::arg("text"), py::arg("memory").none(true),
             py::arg("handler"), py::arg("measures"), py::arg("key"), py::arg("is_quiet"), py::arg("on_ranks"));
  py::class_<ProgramCounters>(module, "ProgramCounters").def(py::init<const ProgramDesc&>());
  module.def("run_program", &RunProgram, py::arg("scope"), py::arg("program"), py::arg("serialize"), py::arg("feeds"),
             py::arg("fetches"), py::arg("seed"), py::arg("counts").none(true), py::arg("key"));
  module.def("programs_prepared", &PreparedProgram::made);
  module.def("counters", &CountersOf);
  module.def("unread_counters", &UnreadCountersOf);
}

}  // namespace millrace
