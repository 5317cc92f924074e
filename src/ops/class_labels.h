#pragma once

#include <string>

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

/// kBadData that names the row of the first label outside [0, classes) other than ignore_index.
inline Status CheckClasses(const RunContext& context, const std::string& name, const int64_t* labels, int64_t rows,
                           int64_t classes, int64_t ignore_index) {
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t label = labels[i];
    if ((label >= 0 && label < classes) || label == ignore_index) continue;
    return BadData("label \"" + name + "\" of " + context.DescribeRow(static_cast<int>(i)) +
                   " is not a class from 0 to " + std::to_string(classes - 1) + ": " + std::to_string(label));
  }
  return Status::Ok();
}

/// kBadData with both shapes when a batch's label has another number of values than expected.
inline Status CheckLabelCount(const std::string& name, const Tensor& label, int64_t wanted) {
  if (label.numel() == wanted) return Status::Ok();
  return BadData("label " + Shown(name, label.dims()) + " has " + std::to_string(label.numel()) + " values for " +
                 std::to_string(wanted) + " expected");
}

}  // namespace millrace
