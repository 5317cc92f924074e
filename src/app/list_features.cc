#include "app/list_features.h"

#include <vector>

#include "core/harmless_text.h"
#include "core/numbers.h"
#include "data_feed.pb.h"
#include "features/feature_spec.h"

namespace millrace {
namespace {

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// In the order in which they are taken.
std::vector<std::string> StepsOf(const FeatureDesc& desc) {
  std::vector<std::string> steps;
  const auto add = [&steps](bool is_set, const char* name) {
    if (is_set) steps.emplace_back(name);
  };
  add(desc.has_split(), "split");
  add(desc.has_strip(), "strip");
  add(desc.has_ngrams(), "ngrams");
  add(desc.has_date_part(), "date_part");
  add(desc.has_clip(), "clip");
  add(desc.has_log1p(), "log1p");
  add(desc.has_standardize(), "standardize");
  add(desc.has_bucketize(), "bucketize");
  add(desc.has_id(), "id");
  add(desc.has_vocabulary(), "vocabulary");
  add(desc.has_cross(), "cross");
  add(desc.has_hash(), "hash");
  return steps;
}

std::string WordsText(const FeatureState& state, int top) {
  std::string text = "  " + std::to_string(state.word_size()) + " words";
  for (int i = 0; i < state.word_size() && i < top; ++i) {
    text += std::string(i == 0 ? ": \"" : ", \"") + Harmless(state.word(i)) + "\"";
    if (i < state.count_size()) text += " " + std::to_string(state.count(i));
  }
  if (state.word_size() > top) text += top == 0 ? "" : ", ...";
  if (state.other_words() > 0) {
    text += "; " + std::to_string(state.other_words()) + " others, " + std::to_string(state.other_count()) + " times";
  }
  return text + "\n";
}

std::string LearnedText(const FeatureSpec& feature, const FeatureState& state, int top) {
  std::string text;
  for (int i = 0; i < state.mean_size() && i < state.deviation_size() && i < state.numbers_size(); ++i) {
    const auto column = static_cast<size_t>(i);
    text += "  " + (column < feature.columns.size() ? Harmless(feature.columns[column]) : "") + ": mean " +
            ExactNumber(state.mean(i)) + ", deviation " + ExactNumber(state.deviation(i)) + " of " +
            std::to_string(state.numbers(i)) + " numbers\n";
  }
  if (feature.desc->has_bucketize() && state.numbers_size() > 0) {
    text += "  " + std::to_string(state.boundary_size() + 1) + " buckets of " + std::to_string(state.numbers(0)) +
            " numbers, from";
    for (const double boundary : state.boundary()) text += " " + ExactNumber(boundary);
    text += "\n";
  }
  for (int i = 0; i < state.default_number_size(); ++i) {
    const auto column = static_cast<size_t>(i);
    text += "  " + (column < feature.columns.size() ? Harmless(feature.columns[column]) : "") + ": default " +
            ExactNumber(state.default_number(i)) + " (" +
            FeatureDesc::LearnedDefault_Name(feature.desc->default_from()) + ")\n";
  }
  if (state.word_size() > 0) text += WordsText(state, top);
  return text;
}

}  // namespace

std::string ListFeatures(const DataFeedDesc& desc, int top) {
  std::vector<FeatureMistake> unused;
  const std::vector<FeatureSpec> features = ReadFeatures(desc, &unused);
  std::string text;
  if (desc.feature_states().rows() > 0) {
    text += "statistics of " + std::to_string(desc.feature_states().rows()) + " rows\n";
  }
  for (const FeatureSpec& feature : features) {
    std::vector<std::string> sources = feature.columns;
    for (const int other : feature.of) sources.push_back(features[static_cast<size_t>(other)].name + " (a feature)");
    const std::string steps = Joined(StepsOf(*feature.desc));
    text += Harmless(feature.name) + " = " + (steps.empty() ? "number" : steps) + " of " + Harmless(Joined(sources));
    text += std::string(feature.makes_ids ? ", ids" : ", floats") + (feature.is_dense ? ", dense" : "") +
            (feature.desc->is_used() ? "" : ", not a slot") + "\n";
    for (const FeatureState& state : desc.feature_states().feature()) {
      if (state.name() == feature.name) text += LearnedText(feature, state, top);
    }
  }
  return text;
}

}  // namespace millrace
