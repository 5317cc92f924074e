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

/// What is wrong with a value of a row.
struct FeatureError {
  enum class Kind : uint8_t {
    kBadValue,  ///< the text is not what the feature takes
    kNegative,  ///< an id with a minus sign
    kOverflow,  ///< an id above 2^64 - 1
    kMissing,   ///< a dense feature has no value
    kTooMany,   ///< a cross has too many combinations
  };
  Kind kind = Kind::kBadValue;
  int feature = 0;        ///< of the plan
  int column = 0;         ///< of the plan; of a cross of features alone 0
  std::string_view text;  ///< what was found: a part of the column's text, or of a default
  std::string expected;   ///< "a number"
};

/// Is told the values of features that have no statistics yet: those that these are taken of.
class ValueListener {
 public:
  virtual ~ValueListener() = default;
  /// Of the `column`-th of its columns: after date_part and clip, and after all steps on numbers.
  virtual void OnNumber(int feature, size_t column, double number, double scaled) = 0;
  virtual void OnText(int feature, std::string_view text) = 0;
};

/// Makes the values of the features of a plan from the texts of its columns, row by row. One thread. Allocates nothing
/// once it has seen the largest row, takes no lock and looks up no name.
class FeatureRow {
 public:
  /// `listener`, of a plan for statistics, must outlive it.
  explicit FeatureRow(std::shared_ptr<const FeaturePlan> plan, ValueListener* listener = nullptr);

  /// Texts of a column that has several.
  using List = std::span<const std::string_view>;

  /// `columns`: the texts of plan().columns(), of which the empty ones are missing; kNumberPadding bytes behind each
  /// may be read. `lists`, where a format has such, are as many: one that is not empty stands in place of the column's
  /// text. False, and error() says why, for a row that cannot be used.
  bool Make(std::span<const std::string_view> columns, std::span<const List> lists = {});

  /// Whether what stands for missing values of a feature of the plan is what it takes; else `expected` says what that
  /// is.
  bool TakesDefault(const FeaturePlan::Feature& feature, std::string* expected);

  /// The values of a feature in the last row; those of a feature without ids, or with, are empty.
  std::span<const uint64_t> ids(int feature) const { return made_[static_cast<size_t>(feature)]; }
  std::span<const float> floats(int feature) const { return values_[static_cast<size_t>(feature)].floats; }
  const FeatureError& error() const { return error_; }
  /// Whether a row had a word of the feature's vocabulary, and the first text of a row that is none, or nothing.
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
  /// The i-th column of the feature, of the row.
  bool TakeColumn(const Feature& feature, size_t i, std::span<const std::string_view> columns, Values& values);
  bool MakeColumn(const Feature& feature, size_t i, std::string_view text, Values& values);
  bool MakeParts(const Feature& feature, size_t i, std::string_view text, Values& values);
  /// Of the parts that were gathered.
  bool MakeNgrams(const Feature& feature, size_t i, Values& values);
  /// The canonical text of the k-th part, of a feature that takes these.
  std::string_view PartOf(const Feature& feature, std::string_view text, size_t k);
  /// Counts n-grams of the column; false for too many.
  bool TakeNgrams(size_t count);
  bool MakeNgramsOfCharacters(const Feature& feature, size_t i, std::string_view part, Values& values);
  bool MakeValue(const Feature& feature, size_t i, std::string_view text, Values& values);
  /// A number, or its bucket, after all steps; the learned default for an empty text.
  bool MakeNumber(const Feature& feature, size_t i, std::string_view text, Values& values);
  /// The number of a text, after date_part and clip.
  bool ReadNumberOf(const Feature& feature, std::string_view text, double* number);
  /// The steps behind these: log1p and standardize, of a feature that `is_scaled`.
  bool ScaleNumber(const Feature& feature, size_t i, std::string_view text, double* number);
  bool Tell(const Feature& feature, size_t i, std::string_view text);
  bool MakeId(const Feature& feature, std::string_view text, Values& values);
  bool MakeWord(const Feature& feature, std::string_view text, Values& values);
  bool MakeCross(const Feature& feature, std::span<const std::string_view> columns, Values& values);
  void PutId(const Feature& feature, uint64_t id, Values& values);
  bool FailTime(const Feature& feature, std::string_view text);
  bool Fail(FeatureError::Kind kind, std::string_view text, std::string expected);

  static constexpr size_t kMostCrossed = 8;  ///< parts; ReadFeatures refuses more

  std::shared_ptr<const FeaturePlan> plan_;
  ValueListener* listener_;
  std::vector<Values> values_;                   ///< by feature
  std::vector<uint64_t> plain_;                  ///< of plain hashes, by feature
  std::vector<Seen> seen_;                       ///< of vocabularies, by feature
  std::vector<std::span<const uint64_t>> made_;  ///< the ids of each, wherever they lie
  std::vector<Values> crossed_;                  ///< what the columns of a cross are
  std::vector<std::string_view> parts_;          ///< of a text, for n-grams
  std::vector<size_t> characters_;               ///< where those of a part begin, and its end
  size_t ngrams_ = 0;                            ///< of the column that is made
  std::string joined_;                           ///< an n-gram
  std::string canonical_;                        ///< the canonical text of a column, where it has another one
  std::deque<std::string> canonical_parts_;      ///< likewise of its parts
  std::span<const List> lists_;                  ///< of the row that is made
  FeatureError error_;
};

/// Whether the defaults of a plan are values that its features take: kInvalidConfig with each that is not.
Status CheckDefaults(const FeaturePlan& plan);

}  // namespace millrace
