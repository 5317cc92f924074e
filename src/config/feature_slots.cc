#include "config/feature_slots.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "config/text_file.h"
#include "core/file.h"
#include "data_feed.pb.h"
#include "features/value_text.h"
#include "features/word_list.h"

namespace millrace {
namespace {

/// The lines of a file, each a word; those without text are none.
std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view word = text.substr(begin, end - begin);
    if (word.ends_with('\r')) word.remove_suffix(1);
    if (!word.empty()) words.push_back(word);
    begin = end + 1;
  }
  return words;
}

/// The state of a feature, made where there is none.
FeatureState* StateOf(const std::string& name, FeatureStates* states) {
  for (FeatureState& state : *states->mutable_feature()) {
    if (state.name() == name) return &state;
  }
  FeatureState* const state = states->add_feature();
  state->set_name(name);
  return state;
}

}  // namespace

void FillFeatureSlots(DataFeedDesc* desc) {
  if (desc->feature_size() == 0) return;
  std::vector<FeatureMistake> unused;
  MultiSlotDesc slots = SlotsOfFeatures(ReadFeatures(*desc, &unused));
  if (desc->multi_slot_desc().has_uid_slot()) slots.set_uid_slot(desc->multi_slot_desc().uid_slot());
  *desc->mutable_multi_slot_desc() = std::move(slots);
  // Checkpoints and models bring the rule that they were trained with in place of this one.
  if (!desc->has_feature_states()) desc->mutable_feature_states()->set_text_rule(static_cast<int>(kNewTextRule));
}

std::vector<FeatureMistake> ReadVocabularyFiles(DataFeedDesc* desc, const std::stop_token& stop) {
  std::vector<FeatureMistake> mistakes;
  std::vector<FeatureMistake> told;
  for (const FeatureSpec& spec : ReadFeatures(*desc, &told)) {
    const std::string& file = spec.desc->vocabulary().file();
    if (file.empty()) continue;
    const std::string path = spec.path + ".vocabulary.file";
    const Result<std::string> text = ReadFile(file, stop);
    if (!text.ok()) {
      mistakes.push_back(
          {path, text.status().code() == StatusCode::kNotFound ? ExplainMissingFile(file) : text.status().message()});
      continue;
    }
    const std::vector<std::string_view> words = WordsOf(*text);
    if (words.empty()) mistakes.push_back({path, "\"" + file + "\" has no words"});
    if (const auto list = WordList::Create(words); !list.ok()) {
      mistakes.push_back({path, "\"" + file + "\": " + list.status().message()});
      continue;
    }
    FeatureState* const state = StateOf(spec.name, desc->mutable_feature_states());
    state->mutable_word()->Assign(words.begin(), words.end());
  }
  return mistakes;
}

}  // namespace millrace
