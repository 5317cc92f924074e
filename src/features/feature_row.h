#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "features/feature_plan.h"

namespace millrace {

/// The error of a value in a row.
struct FeatureError {
  enum class Kind : uint8_t {
    kBadValue,  ///< the string does not fit the feature
    kNegative,  ///< an id with a minus sign
    kOverflow,  ///< an id above 2^64 - 1
    kMissing,   ///< a dense feature has no value
    kTooMany,   ///< a cross has too many combinations
  };
  Kind kind = Kind::kBadValue;
  int feature = 0;        ///< index in the plan
  int column = 0;         ///< index in the plan; 0 for a cross of features only
  std::string_view text;  ///< the faulty part of the column's string or of a default
  std::string expected;   ///< "a number"
};

/// Receives the values of features without statistics, from which these are computed.
class ValueListener {
 public:
  virtual ~ValueListener() = default;
  /// A number of its column `column`: after date_part and clip, and after all numeric steps.
  virtual void OnNumber(int feature, size_t column, double number, double scaled) = 0;
  virtual void OnText(int feature, std::string_view text) = 0;
};

/// Computes the feature values of a plan from the strings of its columns, row by row. One thread. Does not allocate
/// once it has seen the largest row, does not lock, and does not look up names.
class FeatureRow {
 public:
  /// `listener`, for a statistics plan, must outlive it.
  explicit FeatureRow(std::shared_ptr<const FeaturePlan> plan, ValueListener* listener = nullptr);

  /// The strings of a column with several values.
  using List = std::span<const std::string_view>;

  /// `columns`: the strings of plan().columns(), empty if missing; kNumberPadding bytes after each are readable.
  /// `lists`, if the format has any, has the same size: a non-empty list replaces the column's string. Returns false
  /// for an unusable row; error() has the reason.
  bool Make(std::span<const std::string_view> columns, std::span<const List> lists = {});

  /// Whether the default of a feature is a valid value for it; otherwise sets `expected`.
  bool TakesDefault(const FeaturePlan::Feature& feature, std::string* expected);

  /// The values of a feature in the last row; one of the two is empty, depending on the feature's type.
  std::span<const uint64_t> ids(int feature) const { return made_[static_cast<size_t>(feature)]; }
  std::span<const float> floats(int feature) const { return values_[static_cast<size_t>(feature)].floats; }
  const FeatureError& error() const { return error_; }
  /// Whether any row had a word of the feature's vocabulary, and the first string that is not in it, or empty.
  bool has_words(int feature) const { return seen_[static_cast<size_t>(feature)].has_some; }
  const std::string& other_word(int feature) const { return seen_[static_cast<size_t>(feature)].other; }
  const FeaturePlan& plan() const { return *plan_; }

 private:
  using Feature = FeaturePlan::Feature;
  struct Seen {
    bool has_some = false;
    std::string other;
  };
  struct Values {
    std::vector<uint64_t> ids;
    std::vector<float> floats;
  };

  bool MakeFeature(const Feature& feature, std::span<const std::string_view> columns, Values& values);
  /// The feature's column i in the row.
  bool TakeColumn(const Feature& feature, size_t i, std::span<const std::string_view> columns, Values& values);
  bool MakeColumn(const Feature& feature, size_t i, std::string_view text, Values& values);
  bool MakeParts(const Feature& feature, size_t i, std::string_view text, Values& values);
  /// From the collected parts.
  bool MakeNgrams(const Feature& feature, size_t i, Values& values);
  /// The canonical string of part k, if the feature uses these.
  std::string_view PartOf(const Feature& feature, std::string_view text, size_t k);
  /// Counts n-grams of the column; false if there are too many.
  bool TakeNgrams(size_t count);
  bool MakeNgramsOfCharacters(const Feature& feature, size_t i, std::string_view part, Values& values);
  bool MakeValue(const Feature& feature, size_t i, std::string_view text, Values& values);
  /// A number, or its bucket, after all steps; the learned default for an empty text.
  bool MakeNumber(const Feature& feature, size_t i, std::string_view text, Values& values);
  /// The number in a string, after date_part and clip.
  bool ReadNumberOf(const Feature& feature, std::string_view text, double* number);
  /// The following steps, of a feature that `is_scaled`: log1p and standardize.
  bool ScaleNumber(const Feature& feature, size_t i, std::string_view text, double* number);
  bool Tell(const Feature& feature, size_t i, std::string_view text);
  bool MakeId(const Feature& feature, std::string_view text, Values& values);
  bool MakeWord(const Feature& feature, std::string_view text, Values& values);
  bool MakeCross(const Feature& feature, std::span<const std::string_view> columns, Values& values);
  void PutId(const Feature& feature, uint64_t id, Values& values);
  bool FailTime(const Feature& feature, std::string_view text);
  bool Fail(FeatureError::Kind kind, std::string_view text, std::string expected);

  static constexpr size_t kMostCrossed = 8;  ///< parts; ReadFeatures rejects more

  std::shared_ptr<const FeaturePlan> plan_;
  ValueListener* listener_;
  std::vector<Values> values_;                   ///< by feature
  std::vector<uint64_t> plain_;                  ///< plain hashes, by feature
  std::vector<Seen> seen_;                       ///< for vocabularies, by feature
  std::vector<std::span<const uint64_t>> made_;  ///< the ids of each feature, wherever stored
  std::vector<Values> crossed_;                  ///< the values of a cross's columns
  std::vector<std::string_view> parts_;          ///< parts of a string, for n-grams
  std::vector<size_t> characters_;               ///< character offsets in a part, and its end
  size_t ngrams_ = 0;                            ///< in the current column
  std::string joined_;                           ///< an n-gram
  std::string canonical_;                        ///< the canonical string of a column, if different
  std::deque<std::string> canonical_parts_;      ///< canonical strings of its parts
  std::span<const List> lists_;                  ///< of the current row
  FeatureError error_;
};

/// Fails with kInvalidConfig, naming each default of a plan that is not a valid value for its feature.
Status CheckDefaults(const FeaturePlan& plan);

}  // namespace millrace
