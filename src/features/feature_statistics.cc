#include "features/feature_statistics.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "data_feed.pb.h"
#include "features/feature_spec.h"

namespace millrace {
namespace {

/// Features that lack statistics.
std::vector<std::string> NamesOfLacking(const DataFeedDesc& desc) {
  std::vector<FeatureMistake> unused;
  std::vector<std::string> names;
  std::unordered_set<std::string_view> known;
  for (const FeatureState& state : desc.feature_states().feature()) known.insert(state.name());
  for (const FeatureSpec& spec : ReadFeatures(desc, &unused)) {
    if (spec.needs_statistics && !known.contains(spec.name)) names.push_back(spec.name);
  }
  return names;
}

}  // namespace

bool NeedsStatistics(const DataFeedDesc& desc) { return desc.feature_size() > 0 && !NamesOfLacking(desc).empty(); }

std::vector<std::string> FarDefaults(const DataFeedDesc& desc) {
  constexpr float kFar = 5;
  std::vector<FeatureMistake> unused;
  std::vector<std::string> names;
  for (const FeatureSpec& spec : ReadFeatures(desc, &unused)) {
    const bool is_learned = spec.desc->has_standardize() && !spec.desc->standardize().has_mean();
    if (is_learned && spec.desc->has_default_() && !spec.desc->has_bucketize()) names.push_back(spec.name);
  }
  std::vector<std::string> warnings;
  const Result<std::shared_ptr<const FeaturePlan>> plan = FeaturePlan::Create(desc, names);
  if (names.empty() || !plan.ok()) return warnings;
  FeatureRow row(*plan);
  if (!row.Make(std::vector<std::string_view>((*plan)->columns().size()))) return warnings;
  for (size_t i = 0; i < (*plan)->features().size(); ++i) {
    const FeaturePlan::Feature& feature = (*plan)->features()[i];
    const std::span<const float> floats = row.floats(static_cast<int>(i));
    for (size_t c = 0; c < floats.size(); ++c) {
      if (std::abs(floats[c]) <= kFar) continue;
      warnings.push_back("feature \"" + feature.name + "\": its default \"" + std::string(feature.default_text()) +
                         "\" lies " + std::to_string(std::lround(std::abs(floats[c]))) +
                         " deviations from the mean of column \"" +
                         (*plan)->columns()[static_cast<size_t>(feature.columns[c])] +
                         "\", so that a missing value weighs more than any other; default_from: MEDIAN learns one that "
                         "lies among the others");
    }
  }
  return warnings;
}

void ForgetStatistics(DataFeedDesc* desc) {
  for (FeatureDesc& feature : *desc->mutable_feature()) {
    feature.clear_standardize();
    if (feature.default_from() != FeatureDesc::NONE) {
      feature.clear_default_from();
      feature.set_default_("0");
    }
    if (feature.bucketize().has_quantiles()) {
      feature.mutable_bucketize()->clear_quantiles();
      feature.mutable_bucketize()->add_boundaries(0);
    }
    if (feature.has_vocabulary()) {
      *feature.mutable_vocabulary() = VocabularyStep();
      feature.mutable_vocabulary()->add_words("-");
    }
  }
}

Result<std::unique_ptr<FeatureStatistics>> FeatureStatistics::Create(const DataFeedDesc& desc) {
  MR_ASSIGN(std::shared_ptr<const FeaturePlan> plan,
            FeaturePlan::Create(desc, NamesOfLacking(desc), FeaturePlan::Use::kStatistics));
  return std::unique_ptr<FeatureStatistics>(new FeatureStatistics(std::move(plan), desc));
}

FeatureStatistics::FeatureStatistics(std::shared_ptr<const FeaturePlan> plan, const DataFeedDesc& desc)
    : row_(std::move(plan), this), gathered_(row_.plan().features().size()) {
  std::vector<FeatureMistake> unused;
  const std::vector<FeatureSpec> specs = ReadFeatures(desc, &unused);
  for (size_t i = 0; i < gathered_.size(); ++i) {
    const FeaturePlan::Feature& feature = row_.plan().features()[i];
    const auto spec =
        std::find_if(specs.begin(), specs.end(), [&](const FeatureSpec& s) { return s.name == feature.name; });
    Gathered& gathered = gathered_[i];
    const StandardizeStep& standardize = spec->desc->standardize();
    if (spec->desc->has_standardize() && !standardize.has_mean()) gathered.columns.resize(feature.columns.size());
    gathered.default_from = spec->desc->default_from();
    if (gathered.default_from != FeatureDesc::NONE) gathered.defaults.resize(feature.columns.size());
    gathered.parts = spec->desc->bucketize().quantiles();
    const VocabularyStep& vocabulary = spec->desc->vocabulary();
    if (vocabulary.has_min_count()) gathered.min_count = vocabulary.min_count();
    if (vocabulary.has_max_size()) gathered.max_size = vocabulary.max_size();
  }
}

void FeatureStatistics::Default::Add(double number, FeatureDesc::LearnedDefault from) {
  ++count;
  if (from == FeatureDesc::MEAN) sum.Add(number);
  if (from == FeatureDesc::MEDIAN) counts.Add(number);
  least = std::min(least, number);
}

void FeatureStatistics::Default::Add(const Default& other) {
  count += other.count;
  sum.Add(other.sum);
  counts.Add(other.counts);
  least = std::min(least, other.least);
}

void FeatureStatistics::OnNumber(int feature, size_t column, double number, double scaled) {
  if (std::isfinite(scaled)) values_.push_back({feature, column, number, scaled, 0, 0});
}

void FeatureStatistics::OnText(int feature, std::string_view text) {
  values_.push_back({feature, 0, 0, 0, texts_.size(), text.size()});
  texts_ += text;
}

bool FeatureStatistics::AddRow(std::span<const std::string_view> columns, std::span<const FeatureRow::List> lists) {
  values_.clear();
  texts_.clear();
  if (!row_.Make(columns, lists)) return false;
  for (const Value& value : values_) {
    Gathered& gathered = gathered_[static_cast<size_t>(value.feature)];
    if (value.size > 0) gathered.words.Add(std::string_view(texts_).substr(value.begin, value.size));
    if (gathered.parts > 0) gathered.quantiles.Add(value.scaled);
    if (!gathered.defaults.empty()) gathered.defaults[value.column].Add(value.number, gathered.default_from);
    if (gathered.columns.empty()) continue;
    Column& column = gathered.columns[value.column];
    column.sum.Add(value.scaled);
    column.squares.AddSquare(value.scaled);
    ++column.count;
  }
  ++rows_;
  return true;
}

void FeatureStatistics::Add(const FeatureStatistics& other) {
  rows_ += other.rows_;
  for (size_t i = 0; i < gathered_.size(); ++i) {
    Gathered& mine = gathered_[i];
    const Gathered& more = other.gathered_[i];
    mine.quantiles.Add(more.quantiles);
    mine.words.Add(more.words);
    for (size_t c = 0; c < mine.columns.size(); ++c) mine.columns[c].Add(more.columns[c]);
    for (size_t c = 0; c < mine.defaults.size(); ++c) mine.defaults[c].Add(more.defaults[c]);
  }
}

void FeatureStatistics::Put(WireWriter* out) const {
  out->Put(rows_);
  for (const Gathered& gathered : gathered_) {
    out->PutAll(std::span<const Column>(gathered.columns));
    for (const Default& one : gathered.defaults) {
      out->Put(one.sum);
      one.counts.Put(out);
      out->Put(one.least);
      out->Put(one.count);
    }
    gathered.quantiles.Put(out);
    gathered.words.Put(out);
  }
}

Status FeatureStatistics::AddFrom(WireReader* in) {
  rows_ += in->Get<int64_t>();
  std::vector<Column> columns;
  for (Gathered& gathered : gathered_) {
    in->GetAll(&columns);
    if (columns.size() != gathered.columns.size()) in->Fail();
    for (size_t c = 0; in->ok() && c < columns.size(); ++c) gathered.columns[c].Add(columns[c]);
    for (Default& mine : gathered.defaults) {
      Default one;
      one.sum = in->Get<ExactSum>();
      one.counts.AddFrom(in);
      one.least = in->Get<double>();
      one.count = in->Get<int64_t>();
      if (in->ok()) mine.Add(one);
    }
    gathered.quantiles.AddFrom(in);
    gathered.words.AddFrom(in);
  }
  return in->ok() ? Status::Ok() : Internal("statistics of features came in pieces");
}

Status FeatureStatistics::Finish(FeatureStates* states) const {
  if (rows_ == 0) {
    return BadData(
        "features have no row to learn from: the training files have none, or all are bad lines, or in evaluation "
        "sets");
  }
  states->set_rows(rows_);
  for (size_t i = 0; i < gathered_.size(); ++i) {
    const FeaturePlan::Feature& feature = plan().features()[i];
    FeatureState& state = *states->add_feature();
    state.set_name(feature.name);
    Status finished = Status::Ok();
    if (!gathered_[i].columns.empty()) finished = FinishColumns(gathered_[i], &state);
    if (gathered_[i].parts > 0) finished = FinishQuantiles(gathered_[i], &state);
    if (!feature.tells_numbers) finished = FinishWords(gathered_[i], &state);
    if (finished.ok()) finished = FinishDefaults(i, &state);
    MR_TRY(Status(finished).Context("feature \"" + feature.name + "\""));
  }
  return Status::Ok();
}

Status FeatureStatistics::FinishColumns(const Gathered& gathered, FeatureState* state) {
  for (const Column& column : gathered.columns) {
    if (column.count == 0) {
      return BadData("no row of the training files has a number to take a mean of, so that it cannot be standardized");
    }
    state->add_mean(static_cast<double>(column.sum.Value() / static_cast<long double>(column.count)));
    const auto deviation = static_cast<double>(ExactSum::Deviation(column.sum, column.squares, column.count));
    // Equal numbers become 0 instead of being undefined.
    state->add_deviation(deviation == 0 ? 1 : deviation);
    state->add_numbers(column.count);
  }
  return Status::Ok();
}

Status FeatureStatistics::FinishDefaults(size_t feature, FeatureState* state) const {
  const Gathered& gathered = gathered_[feature];
  for (size_t c = 0; c < gathered.defaults.size(); ++c) {
    const Default& learned = gathered.defaults[c];
    if (learned.count == 0) {
      const int column = plan().features()[feature].columns[c];
      return BadData("no row of the training files has a number in column \"" +
                     plan().columns()[static_cast<size_t>(column)] +
                     "\", so that default_from has nothing to learn from");
    }
    state->add_default_number(gathered.default_from == FeatureDesc::MEAN
                                  ? static_cast<double>(learned.sum.Value() / static_cast<long double>(learned.count))
                              : gathered.default_from == FeatureDesc::MEDIAN ? learned.counts.Median()
                                                                             : learned.least);
  }
  return Status::Ok();
}

Status FeatureStatistics::FinishQuantiles(const Gathered& gathered, FeatureState* state) {
  if (gathered.quantiles.count() == 0) {
    return BadData("no row of the training files has a number, so that it has no quantiles");
  }
  for (const double boundary : gathered.quantiles.Boundaries(gathered.parts)) state->add_boundary(boundary);
  state->add_numbers(gathered.quantiles.count());
  return Status::Ok();
}

Status FeatureStatistics::FinishWords(const Gathered& gathered, FeatureState* state) {
  int64_t other_words = 0;
  int64_t other_count = 0;
  for (const auto& [word, count] : gathered.words.Sorted()) {
    const bool is_full = gathered.max_size > 0 && state->word_size() >= gathered.max_size;
    if (count < gathered.min_count || is_full) {
      ++other_words;
      other_count += count;
      continue;
    }
    state->add_word(std::string(word));
    state->add_count(count);
  }
  state->set_other_words(other_words);
  state->set_other_count(other_count);
  if (state->word_size() > 0) return Status::Ok();
  return BadData(other_words == 0 ? "no row of the training files has a text, so that its vocabulary is empty"
                                  : "none of its " + std::to_string(other_words) + " texts stands " +
                                        std::to_string(gathered.min_count) +
                                        " times in the training files (min_count), so that its vocabulary is empty");
}

}  // namespace millrace
