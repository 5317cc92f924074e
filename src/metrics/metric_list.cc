#include "metrics/metric_list.h"

#include <glog/logging.h>

namespace millrace {

std::unique_ptr<Metric> MakeMetric(MetricDesc::Kind kind) {
  switch (kind) {
    case MetricDesc::AUC: return MakeAuc();
    case MetricDesc::LOGLOSS: return MakeLogLoss();
    case MetricDesc::NORMALIZED_ENTROPY: return MakeNormalizedEntropy();
    case MetricDesc::CALIBRATION: return MakeCalibration();
    case MetricDesc::ACCURACY: return MakeAccuracy();
    case MetricDesc::GAUC: return nullptr;
    case MetricDesc::MAE: return MakeMeanAbsoluteError();
    case MetricDesc::RMSE: return MakeRootMeanSquaredError();
  }
  LOG(FATAL) << "metric of unknown kind " << kind;
}

}  // namespace millrace
