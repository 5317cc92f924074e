#include "features/feature_spec.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "batch/slot_schema.h"
#include "core/edit_distance.h"
#include "core/numbers.h"
#include "data_feed.pb.h"

namespace millrace {
namespace {

/// Like ExpandSlotRange for column names, which others choose: "a\\..b" is the single column "a..b".
Result<std::vector<std::string>> ExpandColumnRange(const std::string& name) {
  constexpr std::string_view kDots = "\\..";
  size_t at = name.find(kDots);
  if (at == std::string::npos) {
    Result<std::vector<std::string>> names = ExpandSlotRange(name);
    if (names.ok()) return names;
    return InvalidConfig(names.status().message() + R"(; of one column with two dots in its name write "a\\..b")");
  }
  std::string literal = name;
  for (; at != std::string::npos; at = literal.find(kDots, at + kDots.size() - 1)) literal.erase(at, 1);
  return std::vector<std::string>{std::move(literal)};
}

std::string Indexed(const std::string& field, int i) { return field + "[" + std::to_string(i) + "]"; }

/// Reads the features of one job.
class SpecReader {
 public:
  explicit SpecReader(std::vector<FeatureMistake>* mistakes) : mistakes_(mistakes) {}

  void Read(const FeatureDesc& desc, const std::string& path) {
    if (desc.name().empty()) return Mistake(path, "a feature needs a name: that of its slot");
    const Result<std::vector<std::string>> names = ExpandSlotRange(desc.name());
    if (!names.ok()) return Mistake(path + ".name", names.status().message());
    const std::vector<std::string> columns = ColumnsOf(desc, path);
    CheckSteps(desc, path);
    const bool is_range = names->size() > 1;
    if (is_range && !columns.empty()) {
      return Mistake(path + ".from",
                     "the features " + desc.name() +
                         " take the columns of their names; give features of other columns a name each");
    }
    for (const std::string& name : *names) {
      FeatureSpec spec;
      spec.name = name;
      spec.desc = &desc;
      spec.path = path;
      spec.columns = columns;
      if (columns.empty() && desc.of_size() == 0) spec.columns = {name};
      FindOthers(desc, path, &spec.of);
      spec.makes_ids =
          desc.has_bucketize() || desc.has_id() || desc.has_vocabulary() || desc.has_cross() || desc.has_hash();
      spec.needs_statistics = (desc.has_standardize() && !desc.standardize().has_mean()) ||
                              desc.bucketize().has_quantiles() || desc.vocabulary().has_min_count() ||
                              desc.vocabulary().has_max_size() || desc.default_from() != FeatureDesc::NONE;
      spec.is_dense = desc.has_is_dense() ? desc.is_dense() : !spec.makes_ids && !desc.has_split();
      if (!places_.insert({name, static_cast<int>(specs_.size())}).second) {
        Mistake(path + ".name", "there is a feature \"" + name + "\" already");
        continue;
      }
      specs_.push_back(std::move(spec));
    }
  }

  std::vector<FeatureSpec> Take() { return std::move(specs_); }

 private:
  void Mistake(std::string path, std::string message) { mistakes_->push_back({std::move(path), std::move(message)}); }

  std::vector<std::string> ColumnsOf(const FeatureDesc& desc, const std::string& path) {
    std::vector<std::string> columns;
    for (int i = 0; i < desc.from_size(); ++i) {
      const std::string field = Indexed(path + ".from", i);
      if (desc.from(i).empty()) Mistake(field, "the name of a column is empty");
      Result<std::vector<std::string>> names = ExpandColumnRange(desc.from(i));
      if (!names.ok()) {
        Mistake(field, names.status().message());
        continue;
      }
      columns.insert(columns.end(), names->begin(), names->end());
    }
    return columns;
  }

  void FindOthers(const FeatureDesc& desc, const std::string& path, std::vector<int>* of) {
    for (int i = 0; i < desc.of_size(); ++i) {
      const std::string field = Indexed(path + ".of", i);
      const auto found = places_.find(desc.of(i));
      if (found == places_.end()) {
        std::vector<std::string_view> names;
        for (const FeatureSpec& spec : specs_) names.push_back(spec.name);
        Mistake(field, "there is no feature \"" + desc.of(i) + "\" above this one" + DidYouMean(desc.of(i), names) +
                           " (`from` takes columns, `of` features)");
        continue;
      }
      if (!specs_[static_cast<size_t>(found->second)].makes_ids) {
        Mistake(field, "feature \"" + desc.of(i) + "\" has numbers, and a cross takes ids: give it bucketize { ... }");
      }
      of->push_back(found->second);
    }
  }

  void CheckSteps(const FeatureDesc& desc, const std::string& path) {
    const bool on_numbers = desc.has_clip() || desc.has_log1p() || desc.has_standardize() || desc.has_bucketize();
    const std::string first_on_numbers = desc.has_clip()          ? "clip"
                                         : desc.has_log1p()       ? "log1p"
                                         : desc.has_standardize() ? "standardize"
                                                                  : "bucketize";
    const auto needs_text = [&](bool is_set, const std::string& step) {
      if (is_set && on_numbers) {
        Mistake(path + "." + step,
                step + " takes texts, and " + first_on_numbers + " makes numbers of them: leave one of them out");
      }
    };
    needs_text(desc.has_id(), "id");
    needs_text(desc.has_ngrams(), "ngrams");
    needs_text(desc.has_vocabulary(), "vocabulary");
    needs_text(desc.has_cross(), "cross");
    if (desc.has_hash() && on_numbers && !desc.has_bucketize()) {
      Mistake(path + ".hash", "hash takes texts and ids, and " + first_on_numbers +
                                  " makes numbers: bucketize { ... } makes ids of these");
    }
    const auto no_time = [&](bool is_set, const std::string& step) {
      if (is_set && desc.has_date_part()) {
        Mistake(path + "." + step,
                step + " takes texts, and date_part makes numbers of them: id {} or hash {} makes ids of these");
      }
    };
    no_time(desc.has_vocabulary(), "vocabulary");
    no_time(desc.has_cross(), "cross");
    no_time(desc.has_ngrams(), "ngrams");
    if (desc.has_ngrams() && !desc.has_hash() && !desc.has_vocabulary() && !desc.has_cross()) {
      Mistake(path + ".ngrams", "ngrams makes texts: hash {} or vocabulary { ... } makes ids of them");
    }
    if (desc.has_ngrams() && desc.ngrams().least() > desc.ngrams().most())
      Mistake(path + ".ngrams", "least is above most");
    if (desc.date_part().has_utc_offset_minutes() && desc.date_part().format() == DatePartStep::ISO_8601) {
      Mistake(path + ".date_part.utc_offset_minutes",
              "a time of ISO 8601 is taken as the clock says it; the offset is for times since 1970");
    }
    const auto excludes = [&](bool first, bool second, const std::string& step, const std::string& other) {
      if (first && second)
        Mistake(path + "." + step, step + " and " + other + " both make ids of texts: one is enough");
    };
    excludes(desc.has_vocabulary(), desc.has_id(), "vocabulary", "id");
    excludes(desc.has_cross(), desc.has_id(), "cross", "id");
    excludes(desc.has_cross(), desc.has_vocabulary(), "cross", "vocabulary");
    excludes(desc.has_cross(), desc.has_hash(), "cross", "hash");
    if (desc.of_size() > 0 && !desc.has_cross()) {
      Mistake(path + ".of", "only a cross takes other features: cross {}");
    }
    if (desc.has_cross() && desc.of_size() + desc.from_size() < 2) {
      Mistake(path + ".cross", "a cross takes two columns (from) or features (of) or more, and has " +
                                   std::to_string(desc.of_size() + desc.from_size()));
    }
    if (desc.has_cross() && desc.of_size() + desc.from_size() > kMostCrossed) {
      Mistake(path + ".cross", "a cross takes at most " + std::to_string(kMostCrossed) + " columns and features");
    }
    if (desc.is_dense() && (desc.has_split() || desc.has_ngrams())) {
      Mistake(path + ".is_dense",
              "what is split or made n-grams of has as many values as a row says, and a dense slot the same in all");
    }
    if (desc.is_dense() && desc.has_cross()) {
      Mistake(path + ".is_dense", "a cross has as many values as its parts make, and a dense slot the same in all");
    }
    if (desc.has_split() && desc.split().by().empty()) Mistake(path + ".split.by", "nothing stands between the parts");
    CheckNumbers(desc, path);
    CheckIds(desc, path);
  }

  void CheckNumbers(const FeatureDesc& desc, const std::string& path) {
    const auto must_be_finite = [&](double value, const std::string& field) {
      if (!std::isfinite(value)) Mistake(path + "." + field, "this must be a finite number");
    };
    if (desc.default_from() != FeatureDesc::NONE) {
      const bool has_texts = desc.has_id() || desc.has_vocabulary() || desc.has_cross() || desc.has_ngrams() ||
                             (desc.has_hash() && !desc.has_bucketize());
      if (has_texts) {
        Mistake(path + ".default_from",
                "a number is learned, and this feature takes texts or ids; default: \"...\" stands for a missing text");
      } else if (desc.has_default_()) {
        Mistake(path + ".default_from", "default says what stands for a missing value: leave one of the two out");
      }
    }
    must_be_finite(desc.clip().min(), "clip.min");
    must_be_finite(desc.clip().max(), "clip.max");
    must_be_finite(desc.standardize().mean(), "standardize.mean");
    if (desc.has_clip() && !desc.clip().has_min() && !desc.clip().has_max()) {
      Mistake(path + ".clip", "clip needs min, max or both");
    }
    if (desc.clip().has_min() && desc.clip().has_max() && desc.clip().min() > desc.clip().max()) {
      Mistake(path + ".clip", "min is above max");
    }
    if (desc.has_standardize()) {
      if (desc.standardize().has_mean() != desc.standardize().has_deviation()) {
        Mistake(path + ".standardize",
                "standardize has mean and deviation, or neither: then the training files say them");
      } else if (desc.standardize().has_mean() &&
                 (!(desc.standardize().deviation() > 0) || !std::isfinite(desc.standardize().deviation()))) {
        Mistake(path + ".standardize.deviation", "a deviation is above 0");
      }
    }
    if (!desc.has_bucketize()) return;
    const auto& boundaries = desc.bucketize().boundaries();
    if (boundaries.empty() && !desc.bucketize().has_quantiles()) {
      Mistake(path + ".bucketize", "bucketize needs boundaries: [10, 20, 50], or quantiles: 10");
    }
    if (!boundaries.empty() && desc.bucketize().has_quantiles()) {
      Mistake(path + ".bucketize.quantiles", "boundaries stand here already: give boundaries or quantiles");
    }
    if (desc.has_standardize() && !desc.standardize().has_mean() && desc.bucketize().has_quantiles()) {
      Mistake(path + ".standardize", "quantiles do not hang on the scale of numbers: leave standardize out");
    }
    for (int i = 0; i < boundaries.size(); ++i) {
      const std::string field = Indexed("bucketize.boundaries", i);
      must_be_finite(boundaries[i], field);
      if (i > 0 && boundaries[i] <= boundaries[i - 1]) {
        Mistake(path + "." + field, "boundaries rise, and this one is not above the one before it");
      }
    }
  }

  void CheckIds(const FeatureDesc& desc, const std::string& path) {
    if (desc.hash().has_buckets() && desc.hash().buckets() == 0) Mistake(path + ".hash.buckets", "at least 1 bucket");
    if (desc.cross().has_buckets() && desc.cross().buckets() == 0)
      Mistake(path + ".cross.buckets", "at least 1 bucket");
    if (!desc.has_vocabulary()) return;
    const VocabularyStep& vocabulary = desc.vocabulary();
    const bool is_taken = vocabulary.has_min_count() || vocabulary.has_max_size();
    const int sources = (vocabulary.words_size() > 0 ? 1 : 0) + (vocabulary.has_file() ? 1 : 0) + (is_taken ? 1 : 0);
    if (sources != 1) {
      Mistake(path + ".vocabulary",
              std::string(sources == 0 ? "a vocabulary needs its words" : "a vocabulary has its words from one place") +
                  ": words, a file with a word a line, or min_count, max_size or both, which take them from the "
                  "training files");
    }
    if (vocabulary.has_file() && vocabulary.file().empty())
      Mistake(path + ".vocabulary.file", "the name of a file is empty");
    std::set<std::string_view> words;
    for (int i = 0; i < vocabulary.words_size(); ++i) {
      const std::string field = Indexed(path + ".vocabulary.words", i);
      if (vocabulary.words(i).empty()) Mistake(field, "an empty value is a missing one, and no word");
      if (!words.insert(vocabulary.words(i)).second) Mistake(field, "this word stands here twice");
    }
  }

  static constexpr int kMostCrossed = 8;

  std::vector<FeatureMistake>* mistakes_;
  std::vector<FeatureSpec> specs_;
  std::map<std::string, int, std::less<>> places_;
};

/// Checks column names that are known before reading files.
void CheckColumns(const std::vector<FeatureSpec>& features, const std::vector<std::string>& names,
                  std::vector<FeatureMistake>* mistakes) {
  if (names.empty()) return;
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const FeatureSpec& feature : features) {
    for (const std::string& column : feature.columns) {
      if (std::find(known.begin(), known.end(), column) != known.end()) continue;
      const bool is_named = feature.desc->from_size() > 0;
      mistakes->push_back({feature.path + (is_named ? ".from" : ".name"),
                           "csv.names has no column \"" + column + "\"" + DidYouMean(column, known)});
    }
  }
}

void CheckCsv(const CsvDesc& csv, std::vector<FeatureMistake>* mistakes) {
  const std::string& delimiter = csv.delimiter();
  if (delimiter.size() != 1 || delimiter == "\"" || delimiter == "\n" || delimiter == "\r" || delimiter[0] == '\0') {
    mistakes->push_back({"csv.delimiter", "a delimiter is one byte, and no quote, line end or 0: \",\" or \"\\t\""});
  }
  if (delimiter == " " && !csv.keep_spaces()) {
    mistakes->push_back({"csv.delimiter", "where spaces stand between values they are kept: add keep_spaces: true"});
  }
}

}  // namespace

std::vector<std::string> CsvColumnNames(const DataFeedDesc& desc, std::vector<FeatureMistake>* mistakes) {
  std::vector<std::string> columns;
  std::set<std::string> seen;
  for (int i = 0; i < desc.csv().names_size(); ++i) {
    const std::string path = Indexed("csv.names", i);
    Result<std::vector<std::string>> names = ExpandColumnRange(desc.csv().names(i));
    if (!names.ok()) {
      mistakes->push_back({path, names.status().message()});
      continue;
    }
    for (std::string& name : *names) {
      if (!name.empty() && !seen.insert(name).second) {
        mistakes->push_back({path, "there is a column \"" + name + "\" already; one that nothing takes may be \"\""});
      }
      columns.push_back(std::move(name));
    }
  }
  return columns;
}

std::vector<FeatureSpec> ReadFeatures(const DataFeedDesc& desc, std::vector<FeatureMistake>* mistakes) {
  SpecReader reader(mistakes);
  for (int i = 0; i < desc.feature_size(); ++i) reader.Read(desc.feature(i), Indexed("feature", i));
  std::vector<FeatureSpec> features = reader.Take();
  if (desc.has_csv()) CheckCsv(desc.csv(), mistakes);
  CheckColumns(features, CsvColumnNames(desc, mistakes), mistakes);
  const bool any_used =
      std::any_of(features.begin(), features.end(), [](const FeatureSpec& f) { return f.desc->is_used(); });
  if (!features.empty() && !any_used) {
    mistakes->push_back({"feature[0]", "every feature has is_used: false, so there is nothing to feed"});
  }
  return features;
}

std::vector<std::string> ColumnsOfSlots(const DataFeedDesc& desc,
                                        const std::function<bool(const FeatureDesc&)>& is_wanted) {
  std::vector<FeatureMistake> ignored;
  const std::vector<FeatureSpec> features = ReadFeatures(desc, &ignored);
  std::vector<bool> is_read(features.size());
  std::set<std::string> columns;
  for (size_t i = features.size(); i-- > 0;) {  // `of` are features above
    const FeatureSpec& feature = features[i];
    if (!is_wanted(*feature.desc) && !is_read[i]) continue;
    columns.insert(feature.columns.begin(), feature.columns.end());
    for (const int part : feature.of) is_read[static_cast<size_t>(part)] = true;
  }
  return {columns.begin(), columns.end()};
}

std::vector<std::string> WordColumns(const DataFeedDesc& desc) {
  std::vector<FeatureMistake> ignored;
  std::set<std::string> columns;
  for (const FeatureSpec& feature : ReadFeatures(desc, &ignored)) {
    const FeatureDesc& how = *feature.desc;
    const bool is_number = how.has_id() || how.has_bucketize() || how.has_date_part();
    // A vocabulary that rejects other words treats 1, +1 and 1.0 as equal.
    const bool is_closed = how.vocabulary().oov_buckets() == 0 && how.vocabulary().words_size() > 0 && !how.has_cross();
    if (is_number || is_closed || !(how.has_hash() || how.has_vocabulary() || how.has_cross())) continue;
    columns.insert(feature.columns.begin(), feature.columns.end());
  }
  return {columns.begin(), columns.end()};
}

std::map<std::string, DatePartStep::Format> ClockColumns(const DataFeedDesc& desc) {
  std::vector<FeatureMistake> ignored;
  std::map<std::string, DatePartStep::Format> columns;
  for (const FeatureSpec& feature : ReadFeatures(desc, &ignored)) {
    if (!feature.desc->has_date_part()) continue;
    for (const std::string& column : feature.columns) columns.emplace(column, feature.desc->date_part().format());
  }
  return columns;
}

std::vector<std::string> TimeColumns(const DataFeedDesc& desc) {
  const std::vector<std::string> words = WordColumns(desc);
  std::set<std::string> columns(words.begin(), words.end());
  for (const auto& [column, format] : ClockColumns(desc)) columns.insert(column);
  return {columns.begin(), columns.end()};
}

MultiSlotDesc SlotsOfFeatures(const std::vector<FeatureSpec>& features) {
  MultiSlotDesc slots;
  for (const FeatureSpec& feature : features) {
    if (!feature.desc->is_used()) continue;
    Slot& slot = *slots.add_slots();
    slot.set_name(feature.name);
    slot.set_type(feature.makes_ids ? "uint64" : "float");
    slot.set_is_used(true);
    if (!feature.is_dense) continue;
    slot.set_is_dense(true);
    slot.add_shape(-1);
    slot.add_shape(feature.width());
  }
  return slots;
}

}  // namespace millrace
