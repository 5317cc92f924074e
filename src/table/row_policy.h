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

/// The contents of a table's rows: number of floats, initial values, and updates. A row is weights, which pulls show,
/// followed by state. The table class decides where rows are stored. Immutable, thread-safe.
class RowPolicy {
 public:
  virtual ~RowPolicy() = default;
  int dim() const { return dim_; }                ///< weights
  int row_floats() const { return row_floats_; }  ///< weights and state

  /// Initializes a new row.
  virtual void Start(uint64_t key, float* row) const = 0;
  /// Initializes the state of a row whose weights were loaded without it.
  virtual void StartState(uint64_t key, float* row) const = 0;
  /// The weights that a pull shows for a key without a row.
  virtual void ShowUnknown(uint64_t key, float* weights) const = 0;
  /// Called before an update. Fails with kBadData for gradients that cannot be applied.
  virtual Status Check(std::span<const float> gradients) const = 0;
  /// Updates `count` distinct rows with one gradient per weight.
  virtual void Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
                      size_t count) const = 0;
  CopiesOfRow copies() const { return copies_; }
  /// Whether the state is one sum of squared gradients per weight that shortens steps, and weights are sums of steps:
  /// Adagrad.
  bool has_squares() const { return copies_ == CopiesOfRow::kAddUp && row_floats_ == 2 * dim_; }
  /// The sum of a row's squared gradients; 0 without has_squares().
  float SquaresOf(const float* row) const;
  /// Adds to a complete row what a copy of it learned at rate `lr`, if copies add up.
  void AddTo(const float* moved, float lr, float* row) const;
  /// Like AddTo, if the row may have changed since it was copied, when SquaresOf was `known`. With the others' squares,
  /// the copy's steps would have been shorter, so the weights' change is scaled down accordingly. Squares are added in
  /// full.
  void AddAfterOthers(const float* moved, float known, float lr, float* row) const;
  /// Whether a save of `content` contains the row.
  virtual bool IsIn(TableContent content, const float* row) const = 0;
  /// Settings that must match a saved table, like RowOptimizer::Describe.
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

/// Rows with TableDesc.init and TableDesc.optimizer. Fails with kInvalidConfig for a setting that a growing table does
/// not support.
Result<std::unique_ptr<RowPolicy>> MakeOptimizedRows(const TableDesc& desc, uint64_t seed);

}  // namespace millrace
