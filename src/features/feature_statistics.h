#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/wire.h"
#include "data_feed.pb.h"
#include "features/exact_sum.h"
#include "features/feature_plan.h"
#include "features/feature_row.h"
#include "features/quantile_counts.h"
#include "features/word_counts.h"

namespace millrace {

/// Whether features of `desc` need statistics that it lacks.
bool NeedsStatistics(const DataFeedDesc& desc);

/// Warnings, one line each, after statistics were computed: a default far from its column's numbers gives rows without
/// a value an excessive weight. `desc` must have the statistics.
std::vector<std::string> FarDefaults(const DataFeedDesc& desc);

/// Removes learned values, so features can read columns without them.
void ForgetStatistics(DataFeedDesc* desc);

/// Collects statistics of the training files for features: means and deviations, quantiles, words. Ignores non-finite
/// numbers. The result does not depend on the order of rows, or on their distribution over collectors that are added.
/// One thread.
class FeatureStatistics final : private ValueListener {
 public:
  /// For the features that lack statistics. Fails with kInvalidConfig like FeaturePlan::Create.
  static Result<std::unique_ptr<FeatureStatistics>> Create(const DataFeedDesc& desc);

  /// The plan with the columns to read.
  const FeaturePlan& plan() const { return row_.plan(); }
  /// Adds a row; see FeatureRow::Make. Returns false for an unusable row, which adds nothing; error() has the reason.
  bool AddRow(std::span<const std::string_view> columns, std::span<const FeatureRow::List> lists = {});
  const FeatureError& error() const { return row_.error(); }
  void Add(const FeatureStatistics& other);
  /// Appends the statistics to a message; AddFrom adds those of a process of the same build with the same features.
  /// AddFrom fails with kInternal for a malformed message.
  void Put(WireWriter* out) const;
  Status AddFrom(WireReader* in);

  /// Writes the statistics to `states`. Fails with kBadData without rows, and for a feature (named) without values.
  Status Finish(FeatureStates* states) const;

 private:
  struct Column {
    ExactSum sum;
    ExactSum squares;
    int64_t count = 0;

    void Add(const Column& other) {
      sum.Add(other.sum);
      squares.Add(other.squares);
      count += other.count;
    }
  };
  /// Numbers of a column for a learned default: the fields it needs.
  struct Default {
    ExactSum sum;
    QuantileCounts counts;
    double least = std::numeric_limits<double>::infinity();
    int64_t count = 0;

    void Add(double number, FeatureDesc::LearnedDefault from);
    void Add(const Default& other);
  };
  struct Gathered {
    std::vector<Column> columns;    ///< for a standardize step
    std::vector<Default> defaults;  ///< by column; empty: no learned default
    QuantileCounts quantiles;
    WordCounts words;
    FeatureDesc::LearnedDefault default_from = FeatureDesc::NONE;
    int parts = 0;  ///< number of quantiles
    int64_t min_count = 1;
    int64_t max_size = 0;
  };
  struct Value {
    int feature;
    size_t column;
    double number;
    double scaled;
    size_t begin;  ///< offset in texts_
    size_t size;
  };

  FeatureStatistics(std::shared_ptr<const FeaturePlan> plan, const DataFeedDesc& desc);
  void OnNumber(int feature, size_t column, double number, double scaled) override;
  void OnText(int feature, std::string_view text) override;
  static Status FinishColumns(const Gathered& gathered, FeatureState* state);
  Status FinishDefaults(size_t feature, FeatureState* state) const;
  static Status FinishQuantiles(const Gathered& gathered, FeatureState* state);
  static Status FinishWords(const Gathered& gathered, FeatureState* state);

  FeatureRow row_;
  std::vector<Gathered> gathered_;  ///< by feature of the plan
  std::vector<Value> values_;       ///< of the current row
  std::string texts_;               ///< of the current row
  int64_t rows_ = 0;
};

}  // namespace millrace
