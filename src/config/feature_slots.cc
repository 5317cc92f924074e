#include "config/feature_slots.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "config/text_file.h"
#include "core/decompress.h"
#include "core/file.h"
#include "core/utf8.h"
#include "data_feed.pb.h"
#include "features/csv_cutter.h"
#include "features/value_text.h"
#include "features/word_list.h"

namespace millrace {
namespace {

/// The text of a file, unpacked as input files are. kInvalidConfig for what is no text of UTF-8.
Result<std::string> TextOf(const std::string& file, const std::stop_token& stop) {
  MR_ASSIGN(std::unique_ptr<ByteSource> bytes, OpenFile(file));
  const std::unique_ptr<ByteSource> source = Decompress(std::move(bytes), file);
  std::string text;
  std::vector<char> block(size_t{1} << 16);
  while (true) {
    MR_ASSIGN(const size_t size, source->Read(block, stop));
    if (size == 0) break;
    text.append(block.data(), size);
  }
  MR_TRY(CheckPackedHasBytes(text, file));
  constexpr size_t kFirstBytes = 10;
  if (const std::string_view unpacker = ForeignUnpacker(std::string_view(text).substr(0, kFirstBytes));
      !unpacker.empty()) {
    return InvalidConfig("is packed; gz and zstd are read, this unpacks it: " + std::string(unpacker));
  }
  text.erase(0, text.size() - WithoutByteOrderMark(text).size());
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return InvalidConfig("is UTF-16; words are texts of UTF-8 here: iconv -f UTF-16 -t UTF-8");
  }
  if (text.find('\0') != std::string::npos) {
    return InvalidConfig("is no text in UTF-8: it has a byte 0 (of UTF-16? iconv -f UTF-16 -t UTF-8)");
  }
  return text;
}

/// The lines of a file, each a word as CSV writes a value: spaces around it are no part of it, and it may stand in
/// quotes. Lines without text have none. kInvalidConfig, with the line, for what is more than a word.
Result<std::vector<std::string>> WordsOf(std::string_view text, bool keeps_spaces) {
  // A line has no line end, so that all of it is one value.
  const CsvDialect dialect = {.delimiter = '\n', .keeps_spaces = keeps_spaces, .missing = {}};
  std::vector<std::string> words;
  std::vector<std::string> word;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = text.substr(end).starts_with("\r\n") ? end + 2 : end + 1;
    const std::string where = "line " + std::to_string(++number) + ": ";
    if (FindNoUtf8(line) < line.size()) {
      return InvalidConfig(where + "a word is not UTF-8; convert the file: iconv -f LATIN1 -t UTF-8");
    }
    CsvMistake mistake;
    if (!CutCsvHeader(line, dialect, &word, &mistake)) {
      return InvalidConfig(where + "expected " + mistake.expected + ", found " + mistake.found +
                           "; a word that begins with a quote stands in quotes, and each of its own twice");
    }
    const size_t first = keeps_spaces ? 0 : line.find_first_not_of(" \t");
    const bool is_quoted = first < line.size() && line[first] == '"';
    if (!is_quoted && word[0].find('\t') != std::string::npos) {
      return InvalidConfig(where +
                           "expected a word, found a tab behind it; a file has a word a line and nothing else "
                           "(cut -f1 takes the first column), and a word with a tab in it stands in quotes");
    }
    // Nor do values of any format have spaces at their ends, those in quotes among them.
    const std::string_view taken = keeps_spaces ? std::string_view(word[0]) : WithoutSpaces(word[0]);
    if (!taken.empty()) words.emplace_back(taken);
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
    const Result<std::string> text = TextOf(file, stop);
    if (text.status().code() == StatusCode::kNotFound) {
      mistakes.push_back({path, ExplainMissingFile(file)});
      continue;
    }
    const bool is_of_file = text.status().code() == StatusCode::kInvalidConfig;
    if (!text.ok()) {
      mistakes.push_back({path, (is_of_file ? "\"" + file + "\" " : "") + text.status().message()});
      continue;
    }
    const Result<std::vector<std::string>> words = WordsOf(*text, desc->csv().keep_spaces());
    if (!words.ok()) {
      mistakes.push_back({path, "\"" + file + "\": " + words.status().message()});
      continue;
    }
    if (words->empty()) mistakes.push_back({path, "\"" + file + "\" has no words"});
    if (const auto list = WordList::Create({words->begin(), words->end()}); !list.ok()) {
      mistakes.push_back({path, "\"" + file + "\": " + list.status().message()});
      continue;
    }
    FeatureState* const state = StateOf(spec.name, desc->mutable_feature_states());
    state->mutable_word()->Assign(words->begin(), words->end());
  }
  return mistakes;
}

}  // namespace millrace
