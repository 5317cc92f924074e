#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "checkpoint/checkpoint_store.h"
#include "checkpoint/pass_models.h"
#include "config/file_list.h"
#include "config/print_config.h"
#include "core/replace_folder.h"
#include "core/words.h"
#include "datafeed/frame_feed.h"
#include "features/feature_spec.h"
#include "features/feature_statistics.h"
#include "python/bindings.h"
#include "python/interruptible.h"
#include "python/output.h"
#include "python/py_frame.h"
#include "python/report_dict.h"
#include "python/run_history.h"
#include "python/script_ranks.h"
#include "python/table_rows.h"
#include "python/tensor_array.h"
#include "report/batch_observers.h"
#include "serving/inference_model.h"
#include "session/open_job.h"
#include "trainer/default_environment.h"
#include "trainer/job_run.h"
#include "trainer/same_job.h"

namespace py = pybind11;

namespace millrace {
namespace {

/// A TrainerDesc from a file or a text, read and compiled when it is made, and anew for each further run. One call at a
/// time uses its session; others are refused meanwhile. Ranks make and run it together.
class PyJob {
 public:
  PyJob(std::string file, std::optional<std::string> text, std::vector<std::string> overrides, std::string output_dir)
      : text_(std::move(text)), output_dir_(std::move(output_dir)) {
    request_.file = std::move(file);
    request_.overrides = std::move(overrides);
    request_.has_output_folder = !output_dir_.empty();
    request_.of_ranks = ranks_.are_several();
    request_.may_lack_files = !ranks_.are_several();
    Compile("never");
    for (const EvalDesc::Set& set : job().desc().eval().set()) own_sets_.push_back(set.name());
  }

  /// Run over rows in memory: of the frame "data", and for evaluations of "eval_data" by the names of their sets, ""
  /// where it is one without.
  py::dict Fit(const PyFrame& data, const std::vector<std::pair<std::string, const PyFrame*>>& eval_data,
               const std::string& resume, bool is_quiet, const py::list& callbacks) {
    const Running running(this, "Job.fit");
    if (ranks_.are_several()) {
      throw StatusError(InvalidConfig(
          "Job.fit: not supported yet: several processes, each with rows in memory; write files, and Job.run"));
    }
    if (job().desc().has_incremental() || job().desc().infer() || job().desc().data_desc().feature_size() == 0) {
      throw StatusError(
          InvalidConfig("Job.fit: rows in memory are trained by a job whose features make slots of their columns "
                        "(data_desc.feature), "
                        "without incremental and infer"));
    }
    frames_ = {data.frame};
    read_rows_ = {"filelist=\"" + std::string(kTrainedRows) + "\""};
    for (const auto& [name, frame] : eval_data) {
      frames_.push_back(frame->frame);
      ReadSet(name);
    }
    Compile(resume);
    return RunSession(resume, "last", is_quiet, callbacks);
  }

  py::dict Run(const std::string& resume, const std::string& model, bool is_quiet, const py::list& callbacks) {
    const Running running(this, "Job.run");
    // Files may have come or changed since the last run; a run that goes on has the statistics of the one before it.
    const bool goes_on = resume != "never" && job().desc().data_desc().has_feature_states();
    if (has_run_ || goes_on || !frames_.empty()) {
      frames_.clear();
      read_rows_.clear();
      Compile(resume);
    }
    if (session_ == nullptr) {
      throw StatusError(
          InvalidConfig("Job.run: the job names no files to read; filelist: \"...\" does, or Job.fit(data) trains on "
                        "rows in memory"));
    }
    return RunSession(resume, model, is_quiet, callbacks);
  }

  /// Writes the model as it stands, of a run that ended, or was ended.
  void SaveModel(const std::string& folder) {
    const Running running(this, "Job.save_model");
    if (!has_run_ || summary_.batches == 0) {
      throw StatusError(InvalidConfig("Job.save_model: nothing is trained yet, or the last run failed"));
    }
    if (ranks_.are_several()) {
      throw StatusError(
          InvalidConfig("Job.save_model: not supported yet on several processes; output_dir has the model"));
    }
    if (job().model().prediction.empty()) {
      throw StatusError(InvalidConfig("Job.save_model: the job's program names no prediction"));
    }
    WriteModel(folder);
  }

  /// Columns that the job's features take, and those that part rows by time.
  std::vector<std::string> Columns() const {
    std::vector<FeatureMistake> mistakes;
    std::vector<std::string> columns;
    for (const FeatureSpec& feature : ReadFeatures(job().desc().data_desc(), &mistakes)) {
      columns.insert(columns.end(), feature.columns.begin(), feature.columns.end());
    }
    for (const EvalDesc::Set& set : job().desc().eval().set()) {
      if (set.has_since()) columns.push_back(set.since().column());
    }
    return columns;
  }

  std::vector<std::string> WordColumnsOfJob() const { return WordColumns(job().desc().data_desc()); }

  /// A tensor as an array, a table as (keys, weights).
  py::object Parameter(const std::string& name) {
    const Running running(this, "Job.parameter");
    const Variable* variable = has_run_ ? session_->root().Find(name) : nullptr;
    if (variable != nullptr && variable->Is<std::unique_ptr<SparseTable>>()) {
      return ToRows(*variable->Get<std::unique_ptr<SparseTable>>());
    }
    if (variable == nullptr || !variable->Is<Tensor>()) {
      throw StatusError(
          NotFound("the job has no parameter \"" + name + "\"" + (has_run_ ? "" : ": parameters are made by run()")));
    }
    return ToArray(variable->Get<Tensor>());
  }

  const std::string& warnings() const { return job().config().warnings; }
  std::string config_text() const { return PrintConfig(job().desc()); }
  const std::string& output_dir() const { return job().output_dir(); }
  std::string Ops() const { return PrintOps(job().train().ops()); }

 private:
  /// Keeps others from the session while a call uses it: callbacks and other threads of Python call meanwhile. Made and
  /// gone under the GIL.
  class Running {
   public:
    Running(PyJob* job, const std::string& call) : job_(job) {
      if (job->is_running_) {
        throw StatusError(InvalidConfig(call +
                                        ": the job is running: call it after the run has ended (a callback ends it by "
                                        "raising StopTraining), or use another Job"));
      }
      job->is_running_ = true;
    }
    ~Running() { job_->is_running_ = false; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    PyJob* const job_;
  };

  void WriteModel(const std::string& folder) {
    RunState state;
    state.step = summary_.is_best_model ? summary_.eval.step : summary_.batches;
    state.examples = summary_.is_best_model ? summary_.eval.trained_examples : summary_.examples;
    RunInterruptibly([&](const std::stop_token& stop) {
      ThrowUnlessOk(CheckReplaced(folder, kModelFolder));
      ThrowUnlessOk(SaveJobModel(*session_, state, TableContent::kWeights, folder, {stop, {}}));
    });
    // A callback may end a run where it has not been evaluated.
    if (const std::string why = UncalibratedText(*session_, state.step); !why.empty()) {
      Say("warning: the model in \"" + folder + "\" is not calibrated: " + why + "\n");
    }
  }

  /// What Job.run returns. `callbacks` are called with the dict of each pass and evaluation.
  py::dict RunSession(const std::string& resume, const std::string& model, bool is_quiet, const py::list& callbacks) {
    if (ranks_.are_several() && !callbacks.empty()) {
      throw StatusError(InvalidConfig("Job.run: not supported yet: callbacks of a run of several processes"));
    }
    has_run_ = true;
    RunCall([](const CallContext& context) { return context.ranks.Together("Job.run", context.stop); }, ranks_);
    is_quiet = is_quiet || !group_->leads();
    std::vector<FetchLine> lines;
    const auto log = ValueOrThrow(OpenPythonLog(is_quiet));
    RunHistory history(callbacks);
    RunOutput output;
    output.terminal = log.get();
    output.fetched = [&](const FetchLine& line) {
      lines.push_back(line);
      return is_quiet ? Status::Ok() : PrintInPython(FetchText(line));
    };
    output.evaluated = [&](const EvalReport& report) { return history.Add(report); };
    output.passed = [&](const PassReport& report) { return history.Add(report); };
    output.ended = [&] { return history.has_stopped(); };
    summary_ = RunSummary();
    const auto run = [&](const std::stop_token& stop) {
      // Either a callback ends the run, or who waits for it.
      const std::stop_callback stops(stop, [&history] { history.RequestStop(); });
      summary_ = ValueOrThrow(RunJob(*session_, resume, model, history.stop(), output));
      if (!ranks_.are_several()) return;
      ThrowUnlessOk(group_->Agree(stop.stop_requested() ? Cancelled("the run was interrupted") : Status::Ok()));
    };
    try {
      RunInterruptibly(run);
    } catch (const StatusError&) {
      history.Rethrow();
      throw;
    }
    history.Rethrow();
    const bool keeps_model = job().desc().output().save_inference_model() && !job().model().prediction.empty();
    if (history.has_stopped() && summary_.interrupted && keeps_model && !output_dir().empty()) {
      WriteModel(output_dir() + "/model");
    }
    py::dict report = ReportDict(summary_);
    if (history.has_stopped()) report["stopped_early"] = true;
    report["history"] = HistoryList(lines);
    report["passes"] = history.passes();
    report["evaluations"] = history.evaluations();
    return report;
  }

  /// Lets a set of evaluations read the frame of its name; a set that the job does not have comes to it.
  void ReadSet(const std::string& name) {
    const auto rows = [](const std::string& file) { return "\"" + file + "\""; };
    if (name.empty()) {
      read_rows_.push_back("eval.filelist=" + rows(std::string(kEvaluatedRows)));
    } else if (std::find(own_sets_.begin(), own_sets_.end(), name) != own_sets_.end()) {
      read_rows_.push_back("eval.set[" + name + "].filelist=" + rows(EvaluatedRowsOf(name)));
    } else {
      read_rows_.push_back("eval.set+={ name: \"" + name + "\" filelist: " + rows(EvaluatedRowsOf(name)) + " }");
    }
  }

  struct Compiled {
    std::unique_ptr<Environment> environment;
    OpenedJob opened;  ///< without a session: its rows are to come
  };

  void Compile(const std::string& resume) {
    Compiled made = RunCall(
        [&](const CallContext& context) -> Result<Compiled> {
          MR_TRY(context.ranks.Together("Job", context.stop));
          return CompileOnRanks(context, resume);
        },
        ranks_);
    session_ = std::move(made.opened.session);
    job_ = std::move(made.opened.job);
    environment_ = std::move(made.environment);
    WithoutGil([&] { ThrowUnlessOk(ranks_.group->Agree(tables_.Own(ranks_, this->job().model().main))); });
    has_run_ = false;
  }

  Result<Compiled> CompileOnRanks(const CallContext& context, const std::string& resume) const {
    RankGroup& group = *group_;
    ConfigRequest request = request_;
    request.stop = context.stop;
    // Whether the run goes on is said later.
    request.trained_passes = [this](const TrainerDesc& desc) {
      return CompletePasses("auto", output_dir_.empty() ? desc.output().dir() : output_dir_);
    };
    request.overrides.insert(request.overrides.end(), read_rows_.begin(), read_rows_.end());
    Result<JobAndEnvironment> read = LoadJob(std::move(request), text_, &context.environment);
    MR_TRY(group.Agree(read.status()));
    LoadedConfig& config = read->config;
    Compiled compiled;
    compiled.environment = std::make_unique<Environment>(std::move(read->environment));
    OpenOptions options;
    options.output_dir = output_dir_.empty() ? config.desc->output().dir() : output_dir_;
    MR_TRY(CheckSameJob(group, config, options.output_dir));
    const bool lacks_rows = frames_.empty() && config.files == std::vector<std::string>{std::string(kTrainedRows)};
    if (!frames_.empty()) MR_TRY(TakeFrames(compiled.environment.get(), &config));
    options.resume = resume;
    options.reads_input = !lacks_rows;
    options.makes_session = !lacks_rows;
    options.on_prepared = [this](LoadedConfig* prepared) {
      NoteColumns(prepared);
      NoteWholeNumbers(prepared);
    };
    options.inputs.ranks = &group;
    MR_ASSIGN(compiled.opened,
              OpenJob(group, std::move(config), *compiled.environment, std::move(options), context.stop));
    return compiled;
  }

  /// Lets the class that reads the job's lines read the frames.
  Status TakeFrames(Environment* own, LoadedConfig* config) const {
    for (const EvalSet& set : config->eval_sets) {
      const std::string& file = set.files.empty() ? "" : set.files[0];
      if (!file.starts_with(kEvaluatedRows)) continue;
      const bool is_given = std::any_of(frames_.begin(), frames_.end(),
                                        [&file](const auto& frame) { return FileOfFrame(frame->name()) == file; });
      if (is_given) continue;
      return InvalidConfig(set.name.empty()
                               ? std::string("Job.fit: the job has eval, which names no files: give eval_data")
                               : "Job.fit: the job has the evaluation set \"" + set.name +
                                     "\", which names no files: give eval_data={\"" + set.name + "\": ...}");
    }
    MR_ASSIGN(own->feeds, FrameFeeds(own->feeds, config->desc->data_desc(), frames_));
    return Status::Ok();
  }

  /// As the header of the first file would be noted, so that the model tells of a CSV file with other columns.
  void NoteColumns(LoadedConfig* config) const {
    if (frames_.empty()) return;  // a job may have no data_desc
    DataFeedDesc& feed = *config->desc->mutable_data_desc();
    if (feed.name() != "csv" || feed.csv().names_size() > 0) return;
    if (feed.feature_states().column_size() > 0) return;
    const std::vector<std::string>& columns = frames_[0]->columns();
    feed.mutable_feature_states()->mutable_column()->Assign(columns.begin(), columns.end());
  }
  /// As those of the first file would be noted (NoteWholeNumbers).
  void NoteWholeNumbers(LoadedConfig* config) const {
    if (frames_.empty()) return;
    DataFeedDesc& feed = *config->desc->mutable_data_desc();
    NoteTimes(&feed);
    if (feed.feature_states().whole_number_size() > 0) return;
    for (const auto& [column, text] : WholeNumbersOf(*frames_[0], WordColumns(feed))) {
      FeatureStates::WholeNumber& noted = *feed.mutable_feature_states()->add_whole_number();
      noted.set_column(column);
      if (text.empty()) continue;
      noted.set_text(text);
      noted.set_place(frames_[0]->name());
    }
  }
  void NoteTimes(DataFeedDesc* feed) const {
    if (feed->feature_states().time_size() > 0) return;
    for (const auto& [column, times] : TimesOf(*frames_[0], TimeColumns(*feed))) {
      for (const std::string& zone : times.zones) {
        FeatureStates::ColumnTime& noted = *feed->mutable_feature_states()->add_time();
        noted.set_column(column);
        noted.set_place(frames_[0]->name());
        if (!zone.empty()) noted.set_zone(zone);
        if (!times.unit.empty()) noted.set_unit(times.unit);
      }
    }
  }
  const CompiledJob& job() const { return *job_; }

  const ProcessRanks& ranks_ = RanksOfScript();
  const std::unique_ptr<RankGroup> alone_ = ranks_.are_several() ? nullptr : RankGroup::Solo();
  RankGroup* const group_ = alone_ == nullptr ? ranks_.group : alone_.get();
  TableOwner tables_;
  ConfigRequest request_;
  std::optional<std::string> text_;
  std::string output_dir_;
  std::unique_ptr<Environment> environment_;              ///< with the job's plugins; outlives it
  std::vector<std::shared_ptr<const DataFrame>> frames_;  ///< that Fit was given last
  std::vector<std::string> read_rows_;                    ///< overrides that name these
  std::vector<std::string> own_sets_;                     ///< evaluation sets with names, of the job
  std::shared_ptr<const CompiledJob> job_;
  std::unique_ptr<JobSession> session_;  ///< null: the job's rows are to come
  bool has_run_ = false;
  bool is_running_ = false;  ///< a call uses the session; under the GIL
  RunSummary summary_;       ///< of the last run
};

}  // namespace

void BindJob(py::module_& module) {
  py::class_<PyJob>(module, "Job")
      .def(py::init<std::string, std::optional<std::string>, std::vector<std::string>, std::string>(), py::arg("file"),
           py::arg("text"), py::arg("overrides"), py::arg("output_dir"))
      .def("run", &PyJob::Run, py::arg("resume"), py::arg("model"), py::arg("is_quiet"), py::arg("callbacks"))
      .def("fit", &PyJob::Fit, py::arg("data"), py::arg("eval_data"), py::arg("resume"), py::arg("is_quiet"),
           py::arg("callbacks"))
      .def("save_model", &PyJob::SaveModel, py::arg("folder"))
      .def("columns", &PyJob::Columns)
      .def("word_columns", &PyJob::WordColumnsOfJob)
      .def("parameter", &PyJob::Parameter, py::arg("name"))
      .def("ops", &PyJob::Ops)
      .def_property_readonly("warnings", &PyJob::warnings)
      .def_property_readonly("config_text", &PyJob::config_text)
      .def_property_readonly("output_dir", &PyJob::output_dir);
}

}  // namespace millrace
