#pragma once

#include <string>
#include <vector>

#include "model.pb.h"

namespace millrace {

/// Floats in a row that the model sees: dim, or what follows from the accessor.
int DimOf(const TableDesc& table);

/// Floats that an embedding layer has of each slot: a row of its table, of one with an accessor as use_cvm says.
int SlotWidthOf(const EmbeddingLayer& layer, const TableDesc& table);

/// How a table's rows start: as it says, else uniform 0.01.
Initializer InitOf(const TableDesc& table);

/// How the weights of a layer start: as it says, else by Xavier.
Initializer InitOf(const FcLayer& layer);

/// Counts the classes that CROSS_ENTROPY or SOFTMAX_CROSS_ENTROPY reads: the units of the fc layer below it, behind an
/// activation layer or not. 0 for other losses, and where another layer is below.
int ClassesRead(const ModelDesc& model, const LossDesc& loss);

/// What is wrong with the name of a loss or a metric, which stands in file names and in lists; empty: nothing.
std::string NameMistake(const std::string& name);

/// A metric of a job, for one of its losses.
struct MetricOfLoss {
  int metric = 0;    ///< its number in the model
  int loss = -1;     ///< that of the loss; -1: it goes with none
  std::string name;  ///< that it is printed as: "auc", "income/auc", "auc_2"
};
/// The metrics that a job computes, in the order of `model.metric`: one without `loss` and `in` for each of several
/// losses. A metric whose loss is not there is left out.
std::vector<MetricOfLoss> MetricsOf(const ModelDesc& model);

/// How its bias starts: as it says, else at zero.
Initializer BiasInitOf(const FcLayer& layer);

}  // namespace millrace
