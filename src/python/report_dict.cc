#include "python/report_dict.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>

namespace py = pybind11;

namespace millrace {
namespace {

py::dict MetricsDict(const MetricValues& values) {
  py::dict dict;
  for (const auto& [name, value] : values) dict[py::str(name)] = value;
  return dict;
}

py::dict EvaluationDict(const EvalReport& report) {
  py::dict evaluation = MetricsDict(report.metrics);
  evaluation["loss"] = report.loss;
  evaluation["examples"] = report.examples;
  return evaluation;
}

py::list CalibrationList(const Calibrations& calibrations) {
  py::list list;
  const auto nearness = [](const CalibrationError& measured) {
    py::dict dict;
    dict["logloss"] = measured.logloss;
    dict["calibration"] = measured.calibration;
    return dict;
  };
  for (const TaskCalibration& task : calibrations.tasks) {
    if (!task.failure.empty()) continue;
    py::dict entry;
    entry["loss"] = task.loss;
    entry["kind"] = task.is_isotonic ? "ISOTONIC" : "PLATT";
    entry["examples"] = task.examples;
    if (task.is_isotonic) {
      entry["points"] = task.fit.points;
      entry["values"] = task.fit.values;
    } else {
      entry["slope"] = task.fit.slope;
      entry["intercept"] = task.fit.intercept_at_0();
    }
    entry["before"] = nearness(task.fit.before);
    entry["after"] = nearness(task.fit.after);
    list.append(entry);
  }
  return list;
}

}  // namespace

py::dict SetsDict(const EvalReport& report) {
  py::dict sets;
  if (!report.set.empty()) sets[py::str(report.set)] = EvaluationDict(report);
  for (const EvalReport& other : report.others) sets[py::str(other.set)] = EvaluationDict(other);
  return sets;
}

py::list HistoryList(const std::vector<FetchLine>& lines) {
  py::list list;
  for (const FetchLine& line : lines) {
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

py::dict ReportDict(const RunSummary& summary) {
  py::dict report;
  report["examples"] = summary.run_examples;
  report["batches"] = summary.run_batches;
  report["total_examples"] = summary.examples;
  report["total_batches"] = summary.batches;
  report["epochs"] = summary.epochs;
  report["seconds"] = summary.seconds;
  report["total_seconds"] = summary.total_seconds;
  report["examples_per_second"] = summary.examples_per_second();
  report["workers"] = summary.workers;
  py::dict metrics = MetricsDict(summary.metrics);
  for (const FetchLine::Value& value : summary.fetched) {
    const py::str label(value.label);
    if (value.values.size() == 1 && !metrics.contains(label)) metrics[label] = value.values[0];
  }
  report["metrics"] = metrics;
  report["metric_bounds"] = MetricsDict(summary.remarks.bounds);
  report["evaluation_bounds"] = MetricsDict(summary.eval.remarks.bounds);
  py::list remarks;
  for (const auto& [once, line] : summary.remarks.lines) remarks.append(line);
  for (const auto& [once, line] : summary.eval.remarks.lines) remarks.append("evaluation: " + line);
  report["metric_remarks"] = remarks;
  report["evaluation"] = py::none();
  if (summary.has_eval) {
    py::dict evaluation = EvaluationDict(summary.eval);
    evaluation["step"] = summary.eval.step;
    report["evaluation"] = evaluation;
    report["evaluation_sets"] = SetsDict(summary.eval);
  }
  if (summary.calibrations != nullptr) report["calibrations"] = CalibrationList(*summary.calibrations);
  py::dict data;
  data["files"] = summary.data.files;
  data["bytes"] = summary.data.bytes;
  data["lines"] = summary.data.lines;
  data["bad_lines"] = summary.data.bad_lines;
  data["first_bad_lines"] = summary.data.first_bad_lines;
  data["counters"] = summary.data.counters;
  data["left_out"] = LeftOutLine(summary.data);
  report["data"] = data;
  report["stage_seconds"] = summary.stage_seconds;
  report["stopped_early"] = summary.stopped_early;
  report["save_failures"] = summary.save_failures;
  report["bottleneck"] = summary.bottleneck;
  return report;
}

}  // namespace millrace
