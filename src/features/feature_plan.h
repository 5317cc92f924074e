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

/// The features of a job, compiled: which columns they read, and what becomes of each value. Names are resolved here,
/// words are hashed here. Constant; shared by all threads, each with a FeatureRow of its own.
class FeaturePlan {
 public:
  /// What a feature's values are made into.
  enum class Kind : uint8_t {
    kNumbers,  ///< floats
    kBuckets,  ///< ids of numbers
    kId,       ///< the id that a text says
    kWord,     ///< the place in a vocabulary
    kText,     ///< the hash of a text
    kCross,    ///< the hash of a combination
    kTold,     ///< nothing: a listener is told numbers, or texts
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

  /// One feature. Columns are places in columns(), others places in features().
  struct Feature {
    std::string name;
    Kind kind = Kind::kText;
    bool makes_ids = false;
    bool is_dense = false;
    bool tells_numbers = false;    ///< kTold: numbers in place of texts
    bool hashes_ids = false;       ///< kBuckets, kId and kWord: the id's hash stands for it
    bool takes_canonical = false;  ///< its words are canonical texts
    bool is_plain_hash = false;    ///< kText of one column, of 64 bits, without steps before it
    std::vector<int> columns;
    std::vector<int> of;

    std::string missing;  ///< what stands for a value that is not there, padded for ReadNumber; see `has_default`
    bool has_default = false;
    std::vector<double> defaults;  ///< learned ones, of each column, after clip; none: see `missing`
    std::string strip;
    bool strips_characters = false;  ///< of UTF-8, not bytes
    std::string split;               ///< empty: a value is one
    std::optional<Ngrams> ngrams;
    std::optional<TimePart> time_part;

    double least = -std::numeric_limits<double>::infinity();
    double most = std::numeric_limits<double>::infinity();
    bool is_scaled = false;  ///< by log1p or standardize
    bool takes_log1p = false;
    /// From the training files: numbers that no float holds are bad values, for a default as they are after clip, for
    /// a mean as they are after log1p. A default is not among these where one such number does it no harm.
    bool learns_default = false;
    bool learns_mean = false;
    std::vector<Scale> scales;  ///< of each column; empty: numbers stay as they are
    std::vector<double> boundaries;

    WordList words;
    bool has_words_of_job = false;  ///< not of the training files
    uint64_t oov_buckets = 1;
    WordList whole_words;  ///< of oov_buckets 0: `words` with WholeNumberText of each; none where two are alike then

    uint64_t seed = 0;     ///< of hashes
    uint64_t buckets = 0;  ///< 0: hashes of 64 bits

    std::string_view default_text() const {
      return std::string_view(missing).substr(0, missing.size() - kDefaultPadding);
    }
    static constexpr size_t kDefaultPadding = 24;
  };

  /// Which rows are meant (DataFeedDesc.rows).
  struct Times {
    int column = 0;  ///< of columns()
    TimePart how;
    int64_t from = std::numeric_limits<int64_t>::min();
    int64_t until = std::numeric_limits<int64_t>::max();
  };

  /// What a plan is for.
  enum class Use : uint8_t {
    kRows,
    kStatistics,  ///< of the features, which need none to be read so: their values are told to a ValueListener alone
  };
  /// Of the features named in `slots`, and of those that they need. kInvalidConfig with every mistake, a line each.
  static Result<std::shared_ptr<const FeaturePlan>> Create(const DataFeedDesc& desc, std::span<const std::string> slots,
                                                           Use use = Use::kRows);

  /// Columns that are read, each once.
  const std::vector<std::string>& columns() const { return columns_; }
  /// In an order in which each comes behind those that it needs: that of the job.
  const std::vector<Feature>& features() const { return features_; }
  TextRule text_rule() const { return text_rule_; }
  /// Nullopt: all rows are.
  const std::optional<Times>& times() const { return times_; }
  /// The feature of the i-th of `slots`.
  int FeatureOfSlot(size_t i) const { return slots_[i]; }

 private:
  FeaturePlan() = default;

  std::vector<std::string> columns_;
  std::vector<Feature> features_;
  std::vector<int> slots_;
  TextRule text_rule_ = TextRule::kByFormat;
  std::optional<Times> times_;
};

/// The seed of a hash or cross: of its salt, or of the name of its feature.
uint64_t SeedOfHash(const HashStep& hash, std::string_view name);

}  // namespace millrace
