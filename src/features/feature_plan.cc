#include "features/feature_plan.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/numbers.h"
#include "core/utf8.h"
#include "data_feed.pb.h"
#include "features/feature_row.h"
#include "features/feature_spec.h"
#include "features/text_hash.h"
#include "features/value_text.h"

namespace millrace {
namespace {

using Feature = FeaturePlan::Feature;
using Kind = FeaturePlan::Kind;

static_assert(Feature::kDefaultPadding >= kNumberPadding);

Kind KindOf(const FeatureDesc& desc) {
  if (desc.has_cross()) return Kind::kCross;
  if (desc.has_bucketize()) return Kind::kBuckets;
  if (desc.has_id() || (desc.has_date_part() && desc.has_hash())) return Kind::kId;
  if (desc.has_vocabulary()) return Kind::kWord;
  return desc.has_hash() ? Kind::kText : Kind::kNumbers;
}

/// The words given in the job, or learned from a file or the training files.
Result<WordList> WordsOf(const VocabularyStep& step, const FeatureState& state, TextRule rule) {
  const auto& words = step.words_size() > 0 ? step.words() : state.word();
  if (words.empty()) {
    return InvalidConfig(
        "the words of its vocabulary are not known: a job that trains reads them, and its model keeps them");
  }
  if (rule == TextRule::kByFormat) return WordList::Create({words.begin(), words.end()});
  std::vector<std::string> canonical;
  std::string scratch;
  for (const std::string& word : words) canonical.emplace_back(CanonicalText(word, &scratch));
  return WordList::Create({canonical.begin(), canonical.end()});
}

/// If two words are the same number, each matches only itself.
WordList WholeWordsOf(const VocabularyStep& step, const FeatureState& state) {
  std::vector<std::string_view> words;
  for (const std::string& word : step.words_size() > 0 ? step.words() : state.word())
    words.push_back(WholeNumberText(word));
  Result<WordList> list = WordList::Create(words);
  return list.ok() ? std::move(*list) : WordList();
}

Result<std::vector<double>> BoundariesOf(const BucketizeStep& step, const FeatureState& state) {
  if (step.boundaries_size() > 0) return std::vector<double>(step.boundaries().begin(), step.boundaries().end());
  if (state.numbers_size() > 0) return std::vector<double>(state.boundary().begin(), state.boundary().end());
  return InvalidConfig("its quantiles are not known: a job that trains takes them, and its model keeps them");
}

Result<std::vector<FeaturePlan::Scale>> ScalesOf(const FeatureSpec& spec, const FeatureState& state) {
  const StandardizeStep& step = spec.desc->standardize();
  if (step.has_mean()) return std::vector<FeaturePlan::Scale>(spec.columns.size(), {step.mean(), step.deviation()});
  const auto count = static_cast<int>(spec.columns.size());
  if (state.mean_size() != count || state.deviation_size() != count) {
    return InvalidConfig(
        "its mean and deviation are not known: a job that trains takes them, and its model keeps them");
  }
  std::vector<FeaturePlan::Scale> scales;
  for (int i = 0; i < count; ++i) scales.push_back({state.mean(i), state.deviation(i)});
  return scales;
}

Result<std::vector<double>> DefaultsOf(const FeatureSpec& spec, const FeatureState& state) {
  const auto& numbers = state.default_number();
  const auto is_finite = [](double number) { return std::isfinite(number); };
  if (numbers.size() == static_cast<int>(spec.columns.size()) && std::all_of(numbers.begin(), numbers.end(), is_finite))
    return std::vector<double>(numbers.begin(), numbers.end());
  return InvalidConfig("its default (default_from) is not known: a job that trains learns it, and its model keeps it");
}

/// Whether all characters are valid UTF-8 and some have several bytes.
bool HasLongCharacters(std::string_view text) {
  bool has = false;
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text, at);
    if (length == 0) return false;
    has = has || length > 1;
    at += length;
  }
  return has;
}

/// `state` has the feature's learned values; empty if there are none.
Result<Feature> Compile(const FeatureSpec& spec, const FeatureState& state, FeaturePlan::Use use, TextRule rule) {
  const FeatureDesc& from = *spec.desc;
  Feature feature;
  feature.name = spec.name;
  feature.kind = KindOf(from);
  feature.makes_ids = spec.makes_ids;
  feature.is_dense = spec.is_dense;
  feature.hashes_ids = from.has_hash() && feature.kind != Kind::kText;
  feature.has_default = from.has_default_();
  feature.missing = from.default_();
  feature.missing.append(Feature::kDefaultPadding, '\0');
  feature.strip = from.strip();
  // Earlier models were trained with strings stripped by bytes.
  feature.strips_characters = rule == TextRule::kCanonical && HasLongCharacters(feature.strip);
  if (from.has_split()) feature.split = from.split().by();
  if (from.clip().has_min()) feature.least = from.clip().min();
  if (from.clip().has_max()) feature.most = from.clip().max();
  feature.is_scaled = from.has_log1p() || from.has_standardize();
  feature.takes_log1p = from.has_log1p();
  feature.learns_mean = from.has_standardize() && !from.standardize().has_mean();
  // A median or minimum beyond the range of float becomes infinite unless a later step reduces it.
  const bool is_put_as_it_is = !spec.makes_ids && !from.has_log1p();
  feature.learns_default =
      from.default_from() == FeatureDesc::MEAN || (from.default_from() != FeatureDesc::NONE && is_put_as_it_is);
  if (from.has_ngrams()) {
    feature.ngrams = {from.ngrams().least(), from.ngrams().most(), from.ngrams().of() == NgramsStep::CHARACTERS};
  }
  if (from.has_date_part()) {
    feature.time_part = {from.date_part().part(), from.date_part().format(), from.date_part().utc_offset_minutes()};
  }
  feature.takes_canonical =
      rule == TextRule::kCanonical &&
      (feature.kind == Kind::kText || feature.kind == Kind::kWord || feature.kind == Kind::kCross);
  if (use == FeaturePlan::Use::kStatistics) {
    feature.kind = Kind::kStatistics;
    feature.tells_numbers = !from.has_vocabulary();
    if (from.standardize().has_mean()) {
      MR_ASSIGN(feature.scales, ScalesOf(spec, {}));
    }
    return feature;
  }
  if (from.default_from() != FeatureDesc::NONE) {
    MR_ASSIGN(feature.defaults, DefaultsOf(spec, state));
  }
  if (from.has_standardize()) {
    MR_ASSIGN(feature.scales, ScalesOf(spec, state));
  }
  if (from.has_bucketize()) {
    MR_ASSIGN(feature.boundaries, BoundariesOf(from.bucketize(), state));
  }
  if (from.has_vocabulary()) {
    MR_ASSIGN(feature.words, WordsOf(from.vocabulary(), state, rule));
    feature.has_words_of_job = !from.vocabulary().has_min_count() && !from.vocabulary().has_max_size();
    feature.oov_buckets = static_cast<uint64_t>(from.vocabulary().oov_buckets());
    if (feature.oov_buckets == 0) feature.whole_words = WholeWordsOf(from.vocabulary(), state);
  }
  const HashStep& hash = from.has_cross() ? from.cross() : from.hash();
  feature.seed = SeedOfHash(hash, spec.name);
  feature.buckets = hash.buckets();
  feature.is_plain_hash = feature.kind == Kind::kText && spec.columns.size() == 1 && feature.buckets == 0 &&
                          feature.strip.empty() && feature.split.empty() && !feature.ngrams.has_value();
  return feature;
}

}  // namespace

uint64_t SeedOfHash(const HashStep& hash, std::string_view name) {
  return TextHash(hash.has_salt() ? std::string_view(hash.salt()) : name);
}

Result<std::shared_ptr<const FeaturePlan>> FeaturePlan::Create(const DataFeedDesc& desc,
                                                               std::span<const std::string> slots, Use use) {
  std::vector<FeatureMistake> mistakes;
  const std::vector<FeatureSpec> specs = ReadFeatures(desc, &mistakes);
  std::string problems;
  const auto report = [&problems](const std::string& path, const std::string& message) {
    problems += (problems.empty() ? "" : "\n") + ("data_desc." + path) + ": " + message;
  };
  for (const FeatureMistake& mistake : mistakes) report(mistake.path, mistake.message);
  if (!problems.empty()) return InvalidConfig(problems);

  // Processes features from last to first, so that dependents come before their inputs.
  const std::unordered_set<std::string_view> of_slots(slots.begin(), slots.end());
  std::vector<bool> wanted(specs.size());
  std::vector<int> places(specs.size(), -1);
  for (size_t i = specs.size(); i-- > 0;) {
    wanted[i] = wanted[i] || of_slots.contains(specs[i].name);
    for (const int other : specs[i].of)
      wanted[static_cast<size_t>(other)] = wanted[static_cast<size_t>(other)] || wanted[i];
  }
  std::shared_ptr<FeaturePlan> plan(new FeaturePlan);
  plan->text_rule_ = TextRuleOf(desc);
  // A range can contain tens of thousands of columns and features.
  std::unordered_map<std::string, int> columns;
  std::unordered_map<std::string_view, int> features;
  std::unordered_map<std::string_view, const FeatureState*> states;
  for (const FeatureState& state : desc.feature_states().feature()) states.emplace(state.name(), &state);
  const auto number_of = [&](const std::string& column) {
    const auto [known, is_new] = columns.emplace(column, static_cast<int>(plan->columns_.size()));
    if (is_new) plan->columns_.push_back(column);
    return known->second;
  };
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!wanted[i]) continue;
    const auto found = states.find(specs[i].name);
    const FeatureState& state = found == states.end() ? FeatureState::default_instance() : *found->second;
    Result<Feature> made = Compile(specs[i], state, use, plan->text_rule_);
    if (!made.ok()) {
      report(specs[i].path + " (\"" + specs[i].name + "\")", made.status().message());
      continue;
    }
    for (const std::string& column : specs[i].columns) made->columns.push_back(number_of(column));
    for (const int other : specs[i].of) made->of.push_back(places[static_cast<size_t>(other)]);
    places[i] = static_cast<int>(plan->features_.size());
    features.emplace(specs[i].name, places[i]);
    plan->features_.push_back(std::move(*made));
  }
  for (const std::string& slot : slots) {
    const auto found = features.find(slot);
    if (found == features.end()) {
      if (problems.empty()) report("multi_slot_desc", "slot \"" + slot + "\" is no feature");
      continue;
    }
    plan->slots_.push_back(found->second);
  }
  if (!problems.empty()) return InvalidConfig(problems);
  if (desc.has_rows()) {
    const RowTimes& rows = desc.rows();
    Times times;
    times.column = number_of(rows.column());
    times.how.format = rows.format();
    times.how.utc_offset_minutes = rows.utc_offset_minutes();
    if (rows.has_from()) times.from = rows.from();
    if (rows.has_until()) times.until = rows.until();
    plan->times_ = times;
  }
  MR_TRY(CheckDefaults(*plan));
  return std::shared_ptr<const FeaturePlan>(std::move(plan));
}

}  // namespace millrace
