#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "batch/label_range_monitor.h"
#include "ops/kernel.h"

namespace millrace {

/// How a classification loss reads its label: a class number a row, or a probability for each class.
struct LabelRule {
  bool soft = false;
  int64_t ignore_index = -100;

  static LabelRule Of(const OpView& op) { return {op.Bool("soft_label"), op.Int("ignore_index")}; }
};

/// Checks input `Label` against scores whose classes lie along `axis` (-1: the last) at compile time.
inline Status CheckLabel(const InferShapeContext& context, std::string_view scores, const VarMeta& meta, bool soft,
                         int axis) {
  MR_ASSIGN(const VarMeta label, context.Input("Label"));
  const std::string shapes = std::string(scores) + " " +
                             Shown(InputArguments(context.op().desc(), scores)[0], meta.dims) + ", Label " +
                             Shown(InputArguments(context.op().desc(), "Label")[0], label.dims);
  MR_TRY(ExpectDType(context, "Label", label, soft ? DType::kFloat32 : DType::kInt64));
  if (meta.dims.rank() == 0) return context.Error(std::string(scores) + " has no axes");
  Dims one_each = meta.dims;
  one_each.set(axis, 1);
  const int64_t rows = KnownProduct(one_each, 0, one_each.rank());
  const int64_t labels = label.dims.numel() < 0 ? -1 : label.dims.numel();
  const bool fits = soft ? MayEqual(label.dims, meta.dims)
                         : MayEqual(rows, labels) &&
                               (label.dims.rank() == meta.dims.rank() ? MayEqual(label.dims[axis], 1)
                                                                      : label.dims.rank() == meta.dims.rank() - 1);
  if (!fits) return context.Error("the label does not fit: " + shapes);
  return Status::Ok();
}

/// The slot that a label comes from, which a loss with weights reads by another name.
inline std::string LabelSlot(const RunContext& context, const std::string& variable) {
  if (context.batch == nullptr || context.batch->schema().Find(variable) >= 0) return variable;
  std::string found;
  for (const SlotSpec& slot : context.batch->schema().used()) {
    if (variable.starts_with(slot.name + ".") && slot.name.size() > found.size()) found = slot.name;
  }
  return found.empty() ? variable : found;
}

/// kBadData that names the row of the first label outside [0, classes) other than ignore_index, where there is one.
inline Status CheckClasses(const RunContext& context, const std::string& name, const int64_t* labels, int64_t rows,
                           int64_t classes, std::optional<int64_t> ignore_index) {
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t label = labels[i];
    if ((label >= 0 && label < classes) || label == ignore_index) continue;
    return BadData("label \"" + LabelSlot(context, name) + "\" of " + context.DescribeRow(static_cast<int>(i)) +
                   " is not a class from 0 to " + std::to_string(classes - 1) + ": " + std::to_string(label));
  }
  return Status::Ok();
}

/// Says where the first of `odd_count` labels stands, value number `first` of the tensor.
inline LabelsOutOfRange DescribeOdd(const RunContext& context, const std::string& name, const Tensor& label,
                                    int64_t odd_count, int64_t first, double value) {
  const int64_t rows = label.dims().rank() == 0 ? 1 : label.dims()[0];
  const int64_t row = first / std::max<int64_t>(label.numel() / std::max<int64_t>(rows, 1), 1);
  return {odd_count, name, context.DescribeRow(static_cast<int>(row)), context.step, value};
}

/// Looks for labels outside [0, 1], NaN among them, of a loss that takes the log of a share. Those equal to `ignored`
/// cost nothing (NaN: there is none). Null: nobody wants to know.
inline Status CheckShares(const RunContext& context, LabelRangeMonitor* odd, const std::string& name,
                          const Tensor& label, float ignored) {
  if (odd == nullptr) return Status::Ok();
  const float* values = label.data<float>();
  const int64_t count = label.numel();
  int64_t outside = 0;
  for (int64_t i = 0; i < count; ++i) outside += static_cast<int64_t>(!(values[i] >= 0 && values[i] <= 1));
  if (outside == 0) [[likely]]
    return Status::Ok();
  int64_t first = -1;
  for (int64_t i = count - 1; i >= 0; --i) {
    if (values[i] >= 0 && values[i] <= 1) continue;
    if (values[i] == ignored) {
      --outside;
    } else {
      first = i;
    }
  }
  if (outside == 0) return Status::Ok();
  return odd->OfLoss(DescribeOdd(context, name, label, outside, first, static_cast<double>(values[first])));
}

/// kBadData with both shapes when a batch's label has another number of values than expected.
inline Status CheckLabelCount(const std::string& name, const Tensor& label, int64_t wanted) {
  if (label.numel() == wanted) return Status::Ok();
  return BadData("label " + Shown(name, label.dims()) + " has " + std::to_string(label.numel()) + " values for " +
                 std::to_string(wanted) + " expected");
}

}  // namespace millrace
