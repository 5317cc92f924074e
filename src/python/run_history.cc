#include "python/run_history.h"

#include <utility>

#include "python/report_dict.h"

namespace py = pybind11;

namespace millrace {
namespace {

void PutMetrics(const MetricValues& values, py::dict* entry) {
  for (const auto& [name, value] : values) (*entry)[py::str(name)] = value;
}

}  // namespace

Status RunHistory::Tell(const py::dict& entry) {
  try {
    for (const py::handle& callback : callbacks_) callback(entry.attr("copy")());
    return Status::Ok();
  } catch (py::error_already_set& error) {
    if (error.matches(py::module_::import("millrace.errors").attr("StopTraining"))) {
      has_stopped_ = true;
      stop_.request_stop();
      return Status::Ok();
    }
    raised_ = std::make_unique<py::error_already_set>(std::move(error));
    return InvalidConfig("a callback raised an exception");
  }
}

Status RunHistory::Add(const EvalReport& report) {
  const py::gil_scoped_acquire acquired;
  py::dict entry;
  entry["kind"] = "evaluation";
  entry["step"] = report.step;
  entry["epoch"] = report.epoch;
  entry["examples"] = report.examples;
  entry["loss"] = report.loss;
  PutMetrics(report.metrics, &entry);
  if (py::dict sets = SetsDict(report); !sets.empty()) entry["sets"] = std::move(sets);
  evaluations_.append(entry);
  return Tell(entry);
}

Status RunHistory::Add(const PassReport& report) {
  const py::gil_scoped_acquire acquired;
  py::dict entry;
  entry["kind"] = "pass";
  entry["epoch"] = report.epoch + 1;  // that is complete now
  entry["batches"] = report.batches;
  entry["examples"] = report.examples;
  entry["seconds"] = report.seconds;
  entry["loss"] = report.loss;
  PutMetrics(report.metrics, &entry);
  passes_.append(entry);
  return Tell(entry);
}

void RunHistory::Rethrow() const {
  if (raised_ != nullptr) throw py::error_already_set(*raised_);
}

}  // namespace millrace
