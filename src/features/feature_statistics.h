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

/// Whether features of `desc` need statistics that it does not have.
bool NeedsStatistics(const DataFeedDesc& desc);

/// What to warn of, a line each, when statistics are taken: a default that lies far from the numbers of its column, so
/// that rows without a value weigh more than any other. `desc` has the statistics.
std::vector<std::string> FarDefaults(const DataFeedDesc& desc);

/// Lets features read columns without what they are to learn from the training files.
void ForgetStatistics(DataFeedDesc* desc);

/// Gathers what features must know of the training files: means and deviations, quantiles, words. Numbers that are not
/// finite are left out. What comes of it does not hang on the order of rows, nor on how they are divided among
/// gatherers that are added up. One thread.
class FeatureStatistics final : private ValueListener {
 public:
  /// Of the features that lack statistics.
  static Result<std::unique_ptr<FeatureStatistics>> Create(const DataFeedDesc& desc);

  /// The columns that they are taken of.
  const FeaturePlan& plan() const { return row_.plan(); }
  /// Adds a row, as FeatureRow::Make takes it. False, and error() says why, for a row that cannot be used, of which
  /// nothing is added.
  bool AddRow(std::span<const std::string_view> columns, std::span<const FeatureRow::List> lists = {});
  const FeatureError& error() const { return row_.error(); }
  void Add(const FeatureStatistics& other);
  /// Appends what was gathered to a message of a process of the same build; AddFrom adds what one of the same features
  /// put. kInternal for other bytes.
  void Put(WireWriter* out) const;
  Status AddFrom(WireReader* in);

  /// Writes what was gathered into `states`. kBadData for a feature of which no row had a value, with its name.
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
  /// Numbers of a column of which a default is learned: the field that this takes.
  struct Default {
    ExactSum sum;
    QuantileCounts counts;
    double least = std::numeric_limits<double>::infinity();
    int64_t count = 0;

    void Add(double number, FeatureDesc::LearnedDefault from);
    void Add(const Default& other);
  };
  struct Gathered {
    std::vector<Column> columns;    ///< of a standardize step
    std::vector<Default> defaults;  ///< of each column; none: nothing is learned for missing numbers
    QuantileCounts quantiles;
    WordCounts words;
    FeatureDesc::LearnedDefault default_from = FeatureDesc::NONE;
    int parts = 0;  ///< of quantiles
    int64_t min_count = 1;
    int64_t max_size = 0;
  };
  struct Value {
    int feature;
    size_t column;
    double number;
    double scaled;
    size_t begin;  ///< of the text in texts_
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
  std::vector<Value> values_;       ///< of the row that is made
  std::string texts_;               ///< likewise
  int64_t rows_ = 0;
};

}  // namespace millrace
