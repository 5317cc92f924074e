#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>

#include "app/default_environment.h"
#include "app/same_job.h"
#include "config/print_config.h"
#include "python/bindings.h"
#include "python/interruptible.h"
#include "python/output.h"
#include "python/process_ranks.h"
#include "python/report_dict.h"
#include "python/table_rows.h"
#include "python/tensor_array.h"
#include "trainer/batch_observers.h"
#include "trainer/feature_preparation.h"
#include "trainer/job_run.h"

namespace py = pybind11;

namespace millrace {
namespace {

/// A TrainerDesc from a file or a text, read and compiled when it is made, and anew for each further run. One thread at
/// a time. Ranks make and run it together.
class PyJob {
 public:
  PyJob(std::string file, std::optional<std::string> text, std::vector<std::string> overrides, std::string output_dir)
      : text_(std::move(text)), output_dir_(std::move(output_dir)) {
    request_.file = std::move(file);
    request_.overrides = std::move(overrides);
    request_.has_output_folder = !output_dir_.empty();
    request_.of_ranks = ranks_ != nullptr;
    Compile("never");
  }

  py::dict Run(const std::string& resume, const std::string& model, bool is_quiet) {
    // Files may have come or changed since the last run; a run that goes on has the statistics of the one before it.
    const bool goes_on = resume != "never" && job().desc().data_desc().has_feature_states();
    if (has_run_ || goes_on) Compile(resume);
    has_run_ = true;
    if (ranks_ != nullptr) {
      ranks_->Together("Job.run");
      is_quiet = is_quiet || !ranks_->group->leads();
    }
    std::vector<FetchLine> lines;
    const auto log = ValueOrThrow(OpenPythonLog(is_quiet));
    RunOutput output;
    output.terminal = log.get();
    output.fetched = [&](const FetchLine& line) {
      lines.push_back(line);
      return is_quiet ? Status::Ok() : PrintInPython(FetchText(line));
    };
    RunSummary summary;
    RunInterruptibly([&](const std::stop_token& stop) {
      summary = ValueOrThrow(RunJob(*session_, resume, model, stop, output));
      if (ranks_ == nullptr) return;
      ThrowUnlessOk(ranks_->group->Agree(stop.stop_requested() ? Cancelled("the run was interrupted") : Status::Ok()));
    });
    py::dict report = ReportDict(summary);
    report["history"] = HistoryList(lines);
    return report;
  }

  /// A tensor as an array, a table as (keys, weights).
  py::object Parameter(const std::string& name) const {
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
  void Compile(const std::string& resume) {
    using Loaded = std::pair<std::unique_ptr<Environment>, std::unique_ptr<JobSession>>;
    const Environment& shared = SharedEnvironment();
    if (ranks_ != nullptr) ranks_->Together("Job");
    RankGroup* const group = ranks_ == nullptr ? nullptr : ranks_->group;
    auto [environment, session] = RunInterruptibly<Loaded>([&](const std::stop_token& stop) -> Result<Loaded> {
      ConfigRequest request = request_;
      request.stop = stop;
      Result<JobAndEnvironment> read = LoadJob(std::move(request), text_, &shared);
      MR_TRY(Agreed(group, read.status()));
      JobAndEnvironment& loaded = *read;
      auto own = std::make_unique<Environment>(std::move(loaded.environment));
      std::string folder = output_dir_.empty() ? loaded.config.desc->output().dir() : output_dir_;
      if (group != nullptr) MR_TRY(CheckSameJob(*group, loaded.config, folder));
      const FeaturePreparation how{.resume = resume, .output_dir = folder, .ranks = group};
      MR_TRY(PrepareFeatures(how, *own, stop, &loaded.config));
      auto job = CompiledJob::Create(std::move(loaded.config), *own, std::move(folder), {}, stop);
      MR_TRY(Agreed(group, job.status()));
      const SessionInputs inputs{.ranks = (*job)->is_dist() ? group : nullptr};
      auto made = JobSession::Create(*std::move(job), inputs, stop);
      MR_TRY(Agreed(group, made.status()));
      return Loaded(std::move(own), std::move(made).value());
    });
    session_ = std::move(session);
    environment_ = std::move(environment);
    if (ranks_ != nullptr) AgreeOrThrow(ranks_, tables_.Own(this->job().model().main));
    has_run_ = false;
  }
  const CompiledJob& job() const { return session_->job(); }

  const ProcessRanks* const ranks_ = RanksOfProcess();
  TablesOfRanks tables_;
  ConfigRequest request_;
  std::optional<std::string> text_;
  std::string output_dir_;
  std::unique_ptr<Environment> environment_;  ///< with the job's plugins; outlives it
  std::unique_ptr<JobSession> session_;
  bool has_run_ = false;
};

}  // namespace

void BindJob(py::module_& module) {
  py::class_<PyJob>(module, "Job")
      .def(py::init<std::string, std::optional<std::string>, std::vector<std::string>, std::string>(), py::arg("file"),
           py::arg("text"), py::arg("overrides"), py::arg("output_dir"))
      .def("run", &PyJob::Run, py::arg("resume"), py::arg("model"), py::arg("is_quiet"))
      .def("parameter", &PyJob::Parameter, py::arg("name"))
      .def("ops", &PyJob::Ops)
      .def_property_readonly("warnings", &PyJob::warnings)
      .def_property_readonly("config_text", &PyJob::config_text)
      .def_property_readonly("output_dir", &PyJob::output_dir);
}

}  // namespace millrace
