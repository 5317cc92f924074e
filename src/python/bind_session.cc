#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "app/default_environment.h"
#include "config/trainer_desc_reader.h"
#include "dataset/dataset_factory.h"
#include "framework/executable.h"
#include "program/program_files.h"
#include "program/text_proto.h"
#include "python/bindings.h"
#include "python/interruptible.h"
#include "python/prepared_program.h"
#include "python/report_dict.h"
#include "python/tensor_array.h"
#include "reader/array_queue.h"
#include "serving/export_model.h"
#include "serving/inference_model.h"
#include "trainer/trainer.h"

namespace py = pybind11;

namespace millrace {
namespace {

ProgramDesc ProgramOf(const std::string& bytes) { return ValueOrThrow(ParseProgram(bytes, "program")); }

/// A TrainerDesc that Python wrote, checked as one from a file is.
LoadedConfig LoadOwnDesc(const std::string& origin, const std::string& text, bool needs_model) {
  ConfigRequest request;
  request.known = NamesOf(SharedEnvironment());
  request.needs_model = needs_model;
  request.has_output_folder = false;
  return ValueOrThrow(LoadTrainerDescText(origin, text, request));
}

/// Lends what an object owns for the time of a call, so that a second call cannot touch it meanwhile.
template <class T>
class Lent {
 public:
  Lent(std::unique_ptr<T>& owner, const char* what) : owner_(&owner) {
    if (owner == nullptr) {
      throw StatusError(AlreadyExists(std::string("the ") + what + " is in use by another call that is not over"));
    }
    value = std::move(owner);
  }
  ~Lent() { *owner_ = std::move(value); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  std::unique_ptr<T> value;

 private:
  std::unique_ptr<T>* owner_;
};

/// Variables that outlive runs, and how far they were trained.
class PyScope {
 public:
  void RunStartupProgram(const std::string& program, uint64_t seed) {
    const ProgramDesc desc = ProgramOf(program);
    const Environment& environment = SharedEnvironment();
    const Lent<Scope> scope(scope_, "scope");
    prepared_.reset();
    const py::gil_scoped_release released;
    ThrowUnlessOk(RunStartup(desc, environment.ops, *scope.value, seed, &environment.readers));
    step_ = 0;
    examples_ = 0;
  }

  py::object Get(const std::string& name) {
    const Lent<Scope> scope(scope_, "scope");
    const Variable* variable = scope.value->Find(name);
    if (variable == nullptr || !variable->Is<Tensor>()) return py::none();
    return ToArray(variable->Get<Tensor>());
  }
  void Set(const std::string& name, const py::array& array) {
    const py::array values = py::array::ensure(array, py::array::c_style);
    const DType type = DTypeOfArray(values, "variable \"" + name + "\"");
    const Lent<Scope> scope(scope_, "scope");
    Variable* variable = scope.value->Var(name);
    if (!variable->empty() && !variable->Is<Tensor>()) {
      throw StatusError(InvalidConfig("variable \"" + name + "\" holds no tensor"));
    }
    const std::vector<int64_t> shape(values.shape(), values.shape() + values.ndim());
    auto* tensor = variable->GetMutable<Tensor>();
    const bool was_made = !tensor->empty();
    if (was_made && (tensor->dtype() != type || !(tensor->dims() == Dims(std::span<const int64_t>(shape))))) {
      throw StatusError(InvalidConfig("variable \"" + name + "\" is " + std::string(DTypeName(tensor->dtype())) + " " +
                                      tensor->dims().ToString() + "; the array is " + std::string(DTypeName(type)) +
                                      " " + Dims(std::span<const int64_t>(shape)).ToString()));
    }
    void* to = tensor->ResizeRaw(type, Dims(std::span<const int64_t>(shape)));
    if (values.nbytes() > 0) std::memcpy(to, values.data(), static_cast<size_t>(values.nbytes()));
  }
  /// The queue holder of that name, made when it is not there. It lives as long as the scope.
  PyArrayFeedQueueHolder* QueueHolder(const std::string& name) {
    const Lent<Scope> scope(scope_, "scope");
    Variable* variable = scope.value->Var(name);
    if (!variable->empty() && !variable->Is<PyArrayFeedQueueHolder>()) {
      throw StatusError(AlreadyExists("variable \"" + name + "\" holds something else than a queue"));
    }
    return variable->GetMutable<PyArrayFeedQueueHolder>();
  }
  std::vector<std::string> NamesOfAll() {
    const Lent<Scope> scope(scope_, "scope");
    return scope.value->Names();
  }
  void Save(const std::string& program, const std::string& folder) {
    const Lent<Scope> scope(scope_, "scope");
    ThrowUnlessOk(SaveVariables(ProgramOf(program), folder, *scope.value));
  }
  void Load(const std::string& program, const std::string& folder) {
    const Lent<Scope> scope(scope_, "scope");
    const ProgramDesc desc = ProgramOf(program);
    {
      // A scope of which one half is new would score by neither: the files are read for a trial first.
      Scope trial;
      ThrowUnlessOk(LoadVariables(desc, folder, trial));
    }
    ThrowUnlessOk(LoadVariables(desc, folder, *scope.value));
  }
  void SaveModel(const std::string& test, const std::string& startup, const std::string& data, std::string prediction,
                 const std::vector<std::string>& pooled, const std::string& folder) {
    const LoadedConfig config = LoadOwnDesc("save_inference_model", data, false);
    const ProgramDesc test_program = ProgramOf(test);
    const ProgramDesc startup_program = ProgramOf(startup);
    const Lent<Scope> scope(scope_, "scope");
    InferenceSource source;
    source.test = &test_program;
    source.startup = &startup_program;
    source.root = scope.value.get();
    source.data_desc = &config.desc->data_desc();
    source.prediction = std::move(prediction);
    source.pooled = pooled;
    source.seed = config.desc->seed();
    ThrowUnlessOk(SaveInferenceModel(source, folder));
  }

  void ExportModel(const std::string& test, const std::string& data, const std::vector<std::string>& predictions,
                   const std::string& description, const std::string& folder) {
    const LoadedConfig config = LoadOwnDesc("export_model", data, false);
    const ProgramDesc test_program = ProgramOf(test);
    ExportDesc desc;
    ThrowUnlessOk(ParseTextProto(description, "export_model", &desc));
    const Lent<Scope> scope(scope_, "scope");
    ExportSource source;
    source.program = &test_program;
    source.registry = &SharedEnvironment().ops;
    source.data_desc = &config.desc->data_desc();
    source.predictions = predictions;
    ThrowUnlessOk(ValueOrThrow(ModelExport::Plan(source, desc, folder)).Write(*scope.value));
  }

  std::unique_ptr<PreparedProgram>& prepared() { return prepared_; }
  void Stepped(const PreparedProgram::Trained& trained) {
    step_ = trained.step;
    examples_ = trained.examples;
  }

  std::unique_ptr<Scope>& scope() { return scope_; }
  int64_t step() const { return step_; }
  int64_t examples() const { return examples_; }
  void Trained(const RunState& state) {
    step_ = state.step;
    examples_ = state.examples;
  }
  RunState State() const {
    RunState state;
    state.step = step_;
    state.examples = examples_;
    return state;
  }

 private:
  std::unique_ptr<Scope> scope_ = std::make_unique<Scope>();
  std::unique_ptr<PreparedProgram> prepared_;  ///< goes before the scope
  int64_t step_ = 0;
  int64_t examples_ = 0;
};

/// An InMemoryDataset that outlives runs: loaded once, trained on as often as one likes.
class PyMemory {
 public:
  explicit PyMemory(const std::string& text) {
    const LoadedConfig config = LoadOwnDesc("dataset", text, false);
    DatasetSettings settings = DatasetSettings::FromDesc(*config.desc);
    settings.threads = config.desc->thread_num();
    const Environment& environment = SharedEnvironment();
    dataset_ = ValueOrThrow(environment.datasets.Create("InMemoryDataset", config.desc->data_desc(), config.files,
                                                        environment.feeds, settings));
  }
  ~PyMemory() {
    // A preload in the background is waited for.
    const py::gil_scoped_release released;
    dataset_.reset();
  }
  PyMemory(const PyMemory&) = delete;
  PyMemory& operator=(const PyMemory&) = delete;

  int64_t Load() {
    const Lent<Dataset> dataset(dataset_, "dataset");
    InMemoryDataset& memory = Memory(*dataset.value);
    return RunInterruptibly<PassStats>([&](std::stop_token stop) { return memory.LoadIntoMemory(std::move(stop)); })
        .rows;
  }
  void Preload() {
    const Lent<Dataset> dataset(dataset_, "dataset");
    preload_ = std::stop_source();
    ThrowUnlessOk(Memory(*dataset.value).PreloadIntoMemory(preload_.get_token()));
  }
  int64_t WaitPreload() {
    const Lent<Dataset> dataset(dataset_, "dataset");
    InMemoryDataset& memory = Memory(*dataset.value);
    return RunInterruptibly<PassStats>([&](const std::stop_token& stop) {
             const std::stop_callback forward(stop, [this] { preload_.request_stop(); });
             return memory.WaitPreloadDone();
           })
        .rows;
  }
  void Shuffle(uint64_t seed) {
    const Lent<Dataset> dataset(dataset_, "dataset");
    const py::gil_scoped_release released;
    ThrowUnlessOk(Memory(*dataset.value).LocalShuffle(seed));
  }
  void SlotsShuffle(const std::vector<std::string>& slots, uint64_t seed, int64_t candidates) {
    const Lent<Dataset> dataset(dataset_, "dataset");
    ThrowUnlessOk(Memory(*dataset.value).SlotsShuffle(slots, seed, candidates));
  }
  void SetPhase(bool join) {
    const Lent<Dataset> dataset(dataset_, "dataset");
    ThrowUnlessOk(Memory(*dataset.value).SetPhases({join ? PassPhase::kJoin : PassPhase::kUpdate}));
  }
  void SetBatches(int batch_size, int pv_batch_size, bool drop_last) {
    const Lent<Dataset> dataset(dataset_, "dataset");
    ThrowUnlessOk(Memory(*dataset.value).SetBatches(batch_size, pv_batch_size, drop_last));
  }
  void Release() {
    const Lent<Dataset> dataset(dataset_, "dataset");
    const py::gil_scoped_release released;
    Memory(*dataset.value).ReleaseMemory();
  }
  int64_t Size() {
    const Lent<Dataset> dataset(dataset_, "dataset");
    return Memory(*dataset.value).MemoryDataSize();
  }
  int64_t PvSize() {
    const Lent<Dataset> dataset(dataset_, "dataset");
    return Memory(*dataset.value).PvDataSize();
  }

  std::unique_ptr<Dataset>& dataset() { return dataset_; }

 private:
  static InMemoryDataset& Memory(Dataset& dataset) { return dynamic_cast<InMemoryDataset&>(dataset); }

  std::unique_ptr<Dataset> dataset_;
  std::stop_source preload_;
};

/// Keeps what was printed. Thread-safe.
class History final : public RunReporter {
 public:
  void OnTick(const RunProgress& /*progress*/) override {}
  Status OnFetch(const FetchLine& line) override {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
    return Status::Ok();
  }
  Status OnEval(const EvalReport& /*report*/) override { return Status::Ok(); }
  Status OnPass(const PassReport& /*report*/) override { return Status::Ok(); }

  py::list ToList() const {
    py::list list;
    for (const FetchLine& line : lines_) {
      py::dict entry;
      entry["step"] = line.step;
      entry["batch"] = line.batch;
      for (const FetchLine::Value& value : line.values) {
        py::array_t<double> array(static_cast<py::ssize_t>(value.values.size()));
        std::copy(value.values.begin(), value.values.end(), array.mutable_data());
        entry[py::str(value.label)] = array;
      }
      list.append(entry);
    }
    return list;
  }

 private:
  std::mutex mutex_;
  std::vector<FetchLine> lines_;
};

/// Shows variables to a Python object every so often. What it raises ends the run and goes on to the caller.
class PyFetchHandler final : public FetchHandler {
 public:
  /// `handler` has var_dict (key: variable's name), period_secs and handler(dict). Made and gone under the GIL.
  explicit PyFetchHandler(py::object handler)
      : handler_(std::move(handler)),
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
      raised_ = std::make_unique<py::error_already_set>(std::move(error));
      return InvalidConfig("the fetch handler raised an exception");
    }
  }
  /// Raises what the handler raised, if it did.
  void Rethrow() const {
    if (raised_ != nullptr) throw py::error_already_set(*raised_);
  }

 private:
  py::object handler_;
  std::map<std::string, std::string> variables_;
  double period_seconds_;
  std::unique_ptr<py::error_already_set> raised_;
};

/// Trains (or infers) as a TrainerDesc says, on the scope's parameters and, if there is one, a loaded dataset.
py::dict RunDataset(PyScope& on, const std::string& text, PyMemory* memory, const py::object& handler) {
  const auto start = std::chrono::steady_clock::now();
  LoadedConfig config = LoadOwnDesc("train_from_dataset", text, true);
  std::unique_ptr<PyFetchHandler> fetch_handler;
  if (!handler.is_none()) fetch_handler = std::make_unique<PyFetchHandler>(handler);
  const std::unique_ptr<Job> job =
      ValueOrThrow(Job::Create(std::move(config), SharedEnvironment(), "", fetch_handler.get()));
  Lent<Scope> scope(on.scope(), "scope");
  std::optional<Lent<Dataset>> dataset;
  if (memory != nullptr) dataset.emplace(memory->dataset(), "dataset");
  History history;
  std::optional<RunState> state;
  const auto train = [&](std::stop_token stop) -> Result<RunReport> {
    TrainerHooks hooks;
    hooks.reporter = &history;
    hooks.resume = on.State();
    hooks.resume->metric_totals = job->metrics().NewTotals();
    MR_ASSIGN(const std::unique_ptr<Trainer> trainer, CreateTrainer(*job, std::move(hooks)));
    MR_ASSIGN(RunReport report, trainer->Run(std::move(stop)));
    state = report.state;
    return report;
  };
  std::unique_ptr<Scope> own_scope = job->ExchangeParameters(std::move(scope.value));
  std::unique_ptr<Dataset> own_dataset;
  if (dataset) own_dataset = job->ExchangeDataset(std::move(dataset->value));
  const auto give_back = [&] {
    scope.value = job->ExchangeParameters(std::move(own_scope));
    if (dataset) dataset->value = job->ExchangeDataset(std::move(own_dataset));
    if (state && !job->desc().infer()) on.Trained(*state);
  };
  RunReport report;
  try {
    report = RunInterruptibly<RunReport>(train);
  } catch (...) {
    give_back();
    if (fetch_handler != nullptr) fetch_handler->Rethrow();
    throw;
  }
  give_back();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  py::dict dict = ReportDict(Summarize(report, job->workers(), seconds.count()));
  dict["history"] = history.ToList();
  return dict;
}

/// One run of a program on arrays; what was prepared for the last run serves again where it can.
py::list RunProgram(PyScope& on, const std::string& program, const std::vector<FedArray>& feeds,
                    const std::vector<std::string>& fetches, uint64_t seed) {
  PreparedProgram::Key key{program, fetches, seed};
  const int rows = RowsOf(feeds);
  if (rows == 0 && !feeds.empty()) throw StatusError(InvalidConfig("feed: the batch has no rows"));
  const Lent<Scope> scope(on.scope(), "scope");
  // Taken out for the run: a failure leaves nothing half bound behind.
  std::unique_ptr<PreparedProgram> prepared = std::move(on.prepared());
  if (prepared == nullptr || !prepared->Suits(key, rows)) {
    prepared = std::make_unique<PreparedProgram>(std::move(key), rows, *scope.value);
  }
  // Rounds of a loop before one that fails were steps too.
  struct Counted {
    ~Counted() { on.Stepped(trained); }
    PyScope& on;
    PreparedProgram::Trained trained;
  } counted{on, {on.step(), on.examples()}};
  py::list results = prepared->Run(feeds, &counted.trained);
  on.prepared() = std::move(prepared);
  return results;
}

}  // namespace

void BindSession(py::module_& module) {
  py::class_<PyScope>(module, "Scope")
      .def(py::init<>())
      .def("run_startup", &PyScope::RunStartupProgram)
      .def("get", &PyScope::Get)
      .def("set", &PyScope::Set)
      .def("queue_holder", &PyScope::QueueHolder, py::return_value_policy::reference_internal)
      .def("names", &PyScope::NamesOfAll)
      .def("save", &PyScope::Save)
      .def("load", &PyScope::Load)
      .def("save_model", &PyScope::SaveModel)
      .def("export_model", &PyScope::ExportModel)
      .def_property_readonly("step", &PyScope::step);
  py::class_<PyMemory>(module, "Memory")
      .def(py::init<const std::string&>())
      .def("load", &PyMemory::Load)
      .def("preload", &PyMemory::Preload)
      .def("wait_preload", &PyMemory::WaitPreload)
      .def("shuffle", &PyMemory::Shuffle)
      .def("slots_shuffle", &PyMemory::SlotsShuffle)
      .def("set_phase", &PyMemory::SetPhase)
      .def("set_batches", &PyMemory::SetBatches)
      .def("release", &PyMemory::Release)
      .def("size", &PyMemory::Size)
      .def("pv_size", &PyMemory::PvSize);
  module.def("run_dataset", &RunDataset, py::arg("scope"), py::arg("text"), py::arg("memory").none(true),
             py::arg("handler"));
  module.def("run_program", &RunProgram);
}

}  // namespace millrace
