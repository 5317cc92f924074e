#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/trainer_desc_reader.h"
#include "metrics/calibration_fit.h"
#include "metrics/metric_list.h"
#include "model/model_compiler.h"
#include "trainer_desc.pb.h"

namespace millrace {

/// A calibration that a job asks for.
struct CalibrationPlan {
  size_t task = 0;  ///< of CompiledModel::tasks
  bool is_isotonic = false;
  std::string loss;  ///< its name; empty: the only one
  size_t set = 0;    ///< of LoadedConfig::eval_sets
};

/// What came of one.
struct TaskCalibration {
  size_t task = 0;
  bool is_isotonic = false;
  std::string loss;      ///< its name; empty: the only one
  int64_t examples = 0;  ///< of the evaluation
  CalibrationFit fit;
  std::string failure;  ///< why there is none; empty: there is one
};

/// Those of the model that was evaluated after a step.
struct Calibrations {
  int64_t step = 0;
  std::vector<TaskCalibration> tasks;
};

/// eval.calibration, by loss, with its mistakes as LoadedConfig::Report takes them.
std::vector<CalibrationPlan> PlanCalibrations(const TrainerDesc& desc, const std::vector<EvalSet>& sets,
                                              const CompiledModel& model, std::vector<ConfigMistake>* mistakes);

/// The metrics that give what calibrations are taken from, one for each. Appends to `forward` what makes their weights,
/// which are those of the losses without class_weight.
Result<std::vector<MetricSpec>> AddCalibrationSums(const std::vector<CalibrationPlan>& plans,
                                                   const CompiledModel& model, const OpRegistry& registry,
                                                   ProgramDesc* forward);
/// Metrics with the one that these name.
Result<MetricRegistry> WithCalibrationSums(const MetricRegistry& metrics);

/// Fits a calibration to the sums of its metric over `examples` (MetricSet::Sums), or, where all are there, to the rows
/// themselves (MetricSet::Examples).
TaskCalibration Calibrate(const CalibrationPlan& plan, std::span<const double> sums,
                          std::optional<std::span<const ExampleRow>> rows, int64_t examples);

/// `model` with the predictions that are calibrated in place of those that are not: its forward part, losses and
/// prediction alone, for who saves it. Calibrations that failed leave theirs.
Result<std::shared_ptr<const CompiledModel>> CalibratedModel(const CompiledModel& model,
                                                             const std::vector<TaskCalibration>& calibrations,
                                                             const OpRegistry& registry);

}  // namespace millrace
