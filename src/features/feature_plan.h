#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "features/time_text.h"
#include "features/value_text.h"
#include "features/word_list.h"

namespace millrace {

class DataFeedDesc;

/// The compiled features of a job: which columns they read and how they process values. Resolves names and hashes words
/// in advance. Immutable; shared by all threads, each with its own FeatureRow.
class FeaturePlan {
 public:
  /// The output of a feature.
  enum class Kind : uint8_t {
    kNumbers,     ///< floats
    kBuckets,     ///< ids of number ranges
    kId,          ///< the id written in the text
    kWord,        ///< the index in a vocabulary
    kText,        ///< the hash of a string
    kCross,       ///< the hash of a combination
    kStatistics,  ///< none: a listener receives numbers or strings
  };

  struct Ngrams {
    int least = 1;
    int most = 1;
    bool of_characters = false;
  };
  /// (x - mean) / deviation.
  struct Scale {
    double mean = 0;
    double deviation = 1;
  };

  /// One feature. `columns` are indices in columns(), `of` in features().
  struct Feature {
    std::string name;
    Kind kind = Kind::kText;
    bool makes_ids = false;
    bool is_dense = false;
    bool tells_numbers = false;    ///< kStatistics: numbers instead of strings
    bool hashes_ids = false;       ///< kBuckets, kId and kWord: replace the id by its hash
    bool takes_canonical = false;  ///< its words are canonical strings
    bool is_plain_hash = false;    ///< kText of one column, 64 bits, without steps before it
    std::vector<int> columns;
    std::vector<int> of;

    std::string missing;  ///< replaces a missing value, padded for ReadNumber; see `has_default`
    bool has_default = false;
    std::vector<double> defaults;  ///< learned defaults per column, after clip; empty: see `missing`
    std::string strip;
    bool strips_characters = false;  ///< UTF-8 characters, not bytes
    std::string split;               ///< empty: a single value
    std::optional<Ngrams> ngrams;
    std::optional<TimePart> time_part;

    double least = -std::numeric_limits<double>::infinity();
    double most = std::numeric_limits<double>::infinity();
    bool is_scaled = false;  ///< by log1p or standardize
    bool takes_log1p = false;
    /// Learned from the training files, where numbers beyond the range of float are then bad values: for a default
    /// after clip, for a mean after log1p. Not set for defaults that such a number does not distort.
    bool learns_default = false;
    bool learns_mean = false;
    std::vector<Scale> scales;  ///< per column; empty: numbers are unchanged
    std::vector<double> boundaries;

    WordList words;
    bool has_words_of_job = false;  ///< from the job, not the training files
    uint64_t oov_buckets = 1;
    WordList whole_words;  ///< for oov_buckets 0: WholeNumberText of each word; empty if two would be equal

    uint64_t seed = 0;     ///< seed of hashes
    uint64_t buckets = 0;  ///< 0: 64-bit hashes

    std::string_view default_text() const {
      return std::string_view(missing).substr(0, missing.size() - kDefaultPadding);
    }
    static constexpr size_t kDefaultPadding = 24;
  };

  /// Selects rows by time (DataFeedDesc.rows).
  struct Times {
    int column = 0;  ///< index in columns()
    TimePart how;
    int64_t from = std::numeric_limits<int64_t>::min();
    int64_t until = std::numeric_limits<int64_t>::max();
  };

  /// The purpose of a plan.
  enum class Use : uint8_t {
    kRows,
    kStatistics,  ///< for feature statistics: values only go to a ValueListener
  };
  /// Compiles the features named in `slots` and their inputs. Fails with kInvalidConfig, one line per mistake.
  static Result<std::shared_ptr<const FeaturePlan>> Create(const DataFeedDesc& desc, std::span<const std::string> slots,
                                                           Use use = Use::kRows);

  /// The columns read, without duplicates.
  const std::vector<std::string>& columns() const { return columns_; }
  /// In job order, so each feature follows its inputs.
  const std::vector<Feature>& features() const { return features_; }
  TextRule text_rule() const { return text_rule_; }
  /// Nullopt: all rows.
  const std::optional<Times>& times() const { return times_; }
  /// The feature of slot i in `slots`.
  int FeatureOfSlot(size_t i) const { return slots_[i]; }

 private:
  FeaturePlan() = default;

  std::vector<std::string> columns_;
  std::vector<Feature> features_;
  std::vector<int> slots_;
  TextRule text_rule_ = TextRule::kByFormat;
  std::optional<Times> times_;
};

/// The seed of a hash or cross: its salt, or derived from its feature's name.
uint64_t SeedOfHash(const HashStep& hash, std::string_view name);

}  // namespace millrace
