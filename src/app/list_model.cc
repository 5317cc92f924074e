#include "app/list_model.h"

#include "core/harmless_text.h"
#include "core/numbers.h"

namespace millrace {
namespace {

std::string Line(const std::string& what, const std::string& text) {
  return what + std::string(what.size() < 13 ? 13 - what.size() : 1, ' ') + Harmless(text) + "\n";
}

std::string CalibrationText(const ModelCalibration& calibration) {
  std::string text = calibration.loss().empty() ? "" : calibration.loss() + ": ";
  text += calibration.kind();
  text += calibration.has_points() ? ", " + std::to_string(calibration.points()) + " points"
                                   : ", slope " + GeneralNumber(static_cast<double>(calibration.slope())) +
                                         ", intercept " + GeneralNumber(static_cast<double>(calibration.intercept()));
  return text + "; on " + std::to_string(calibration.examples()) + " examples logloss " +
         GeneralNumber(calibration.logloss_before()) + " -> " + GeneralNumber(calibration.logloss_after()) +
         ", calibration " + GeneralNumber(calibration.calibration_before()) + " -> " +
         GeneralNumber(calibration.calibration_after());
}

}  // namespace

std::string ListModel(const InferenceModel& model) {
  std::string text = Line("written by", "millrace " + model.millrace_version());
  if (model.task().empty()) {
    text += Line("predicts", model.prediction() + (model.label().empty() ? "" : ", label " + model.label()));
  }
  for (const ModelTask& task : model.task()) {
    std::string line = (task.name().empty() ? "" : task.name() + ": ") + task.prediction() + ", label " + task.label();
    if (task.has_sample_weight()) line += ", sample_weight " + task.sample_weight();
    if (task.has_mask()) line += ", mask " + task.mask();
    for (int i = 0; i < task.class_weight_size(); ++i) {
      line += (i == 0 ? ", class_weight " : " ") + GeneralNumber(static_cast<double>(task.class_weight(i)));
    }
    text += Line("predicts", line);
  }
  for (const ModelCalibration& calibration : model.calibration()) {
    text += Line("calibrated", CalibrationText(calibration));
  }
  for (const ModelFeed& feed : model.feed()) {
    text += Line("feed", feed.name() + ", " + std::to_string(feed.vars_size()) + " slots");
  }
  for (const StoredVariable& variable : model.variable()) {
    text += Line(variable.has_table() ? "table" : "tensor", variable.name());
  }
  for (const ModelPlugin& plugin : model.plugin()) {
    text += Line("plugin", plugin.name() + (plugin.version().empty() ? "" : ", version " + plugin.version()));
  }
  return text;
}

}  // namespace millrace
