#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "table/row_optimizer.h"
#include "table/sparse_table.h"

namespace millrace {

class TableDesc;

/// What the rows of a table are: how many floats, what they start from, and how a push changes them. A row is weights,
/// which pulls show, then state. Where rows lie is the affair of the class of the table. Immutable, thread-safe.
class RowPolicy {
 public:
  virtual ~RowPolicy() = default;
  int dim() const { return dim_; }                ///< weights
  int row_floats() const { return row_floats_; }  ///< weights and state

  /// Makes a whole new row.
  virtual void Start(uint64_t key, float* row) const = 0;
  /// Makes the state behind weights that were loaded without it.
  virtual void StartState(uint64_t key, float* row) const = 0;
  /// The weights that a pull shows of a key without a row.
  virtual void ShowUnknown(uint64_t key, float* weights) const = 0;
  /// Before anything is updated: kBadData for gradients by which rows cannot be.
  virtual Status Check(std::span<const float> gradients) const = 0;
  /// Updates `count` distinct rows, each with its gradients, as many as weights.
  virtual void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
                      size_t count) const = 0;
  CopiesOfRow copies() const { return copies_; }
  /// Whether the floats behind the weights, as many, are sums of squared gradients by which the weights' steps get
  /// shorter, and weights are sums of steps: adagrad.
  bool has_squares() const { return copies_ == CopiesOfRow::kAddUp && row_floats_ == 2 * dim_; }
  /// The sum of these squares of a row; 0 of rules without.
  float SquaresOf(const float* row) const;
  /// Adds to a whole row what a copy of it learnt with the rate `lr`, where copies add up.
  void AddTo(const float* moved, float lr, float* row) const;
  /// The same where others may have added to the row since it was copied, when SquaresOf was `known`: with their
  /// squares the copy's steps would have been shorter, and so much less is added to the weights. Squares count whole.
  void AddAfterOthers(const float* moved, float known, float lr, float* row) const;
  /// Whether a save of `content` has the row.
  virtual bool IsIn(TableContent content, const float* row) const = 0;
  /// What a saved table must share, as RowOptimizer::Describe says.
  virtual std::string Describe() const = 0;

 protected:
  RowPolicy(int dim, int row_floats, CopiesOfRow copies)
      : dim_(dim), row_floats_(row_floats), copies_(copies), no_gradient_(static_cast<size_t>(dim)) {}

 private:
  int dim_;
  int row_floats_;
  CopiesOfRow copies_;
  std::vector<float> no_gradient_;
};

/// Rows that start by TableDesc.init and learn by TableDesc.optimizer; kInvalidConfig for what a table that grows
/// cannot have.
Result<std::unique_ptr<RowPolicy>> MakeOptimizedRows(const TableDesc& desc, uint64_t seed);

}  // namespace millrace
