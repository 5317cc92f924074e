#pragma once

#include <cstdint>
#include <string>

#include "ops/kernel.h"

namespace millrace {

/// What an operator makes of the losses of its rows: nothing, their mean, their sum, or their sum over the rows.
enum class LossReduction : uint8_t { kNone, kMean, kSum, kBatchMean };

/// The attribute `reduction`; kInvalidConfig for another text than the four that Paddle knows.
inline Result<LossReduction> ReadLossReduction(const OpView& op) {
  const std::string text = op.String("reduction");
  if (text == "none") return LossReduction::kNone;
  if (text == "mean") return LossReduction::kMean;
  if (text == "sum") return LossReduction::kSum;
  if (text == "batchmean") return LossReduction::kBatchMean;
  return InvalidConfig("reduction is \"" + text + "\"; it is none, mean, sum or batchmean");
}

}  // namespace millrace
