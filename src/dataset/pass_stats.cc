#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "core/edit_distance.h"
#include "core/harmless_text.h"
#include "core/numbers.h"
#include "core/shortened.h"
#include "data_feed.pb.h"
#include "datafeed/input_opener.h"
#include "datafeed/number_forms.h"
#include "dataset/dataset.h"
#include "features/time_text.h"

namespace millrace {

namespace {

constexpr size_t kFirstBadLines = 5;

/// Total size of regular files; 0 without any, or if a command reads them.
uint64_t BytesOf(const std::vector<std::string>& files) {
  uint64_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    if (!error) bytes += size;
  }
  return bytes;
}

/// A counter of PassStats::counters that means excluded values, lines or rows.
struct Omission {
  const char* counter;
  const char* one;
  const char* many;
  const char* why;
};
constexpr Omission kOmissions[] = {
    {"zero_dropped", "zero of sparse slots", "zeros of sparse slots", "data_desc.zeros"},
    {"trailing_ignored", "line's values behind its last slot", "lines' values behind their last slot",
     "data_desc.trailing_values: IGNORE"},
    {"sampled_out", "line", "lines", "dataset.sample_rate"},
    {"merge_wrong_size", "line of an example with other than merge_size lines",
     "lines of examples with other than merge_size lines", "dataset.merge_by_lineid"},
    {"merge_conflict", "line of an example with a slot in two lines", "lines of examples with a slot in two lines",
     "dataset.merge_by_lineid"},
    {"drop_last", "row of a batch that was not full", "rows of batches that were not full", "data_desc.drop_last"},
    {"blank_line", "blank line", "blank lines", nullptr},
    {"empty_file", "file without a line", "files without a line", nullptr},
};

std::string Shown(const NumberForm& number) {
  return "\"" + Harmless(number.text) + "\" (" + Harmless(number.place) + ")";
}

bool IsFloat(const NumberForm& number) { return number.text.find_first_of(".eE") != std::string::npos; }

/// The integer form of a float: "5" for "5.0".
std::string AsWhole(const NumberForm& number) {
  if (number.text.find_first_of("eE") != std::string::npos)
    return "all of their digits, of which a float keeps 15 to 17";
  return "\"" + number.text.substr(0, number.text.find('.')) + "\"";
}

constexpr char kUnlikeTraining[] = " unlike the training";

/// Whether two booleans are written in the same style: True and False, true and false, or TRUE and FALSE.
bool HaveOneStyle(std::string_view a, std::string_view b) {
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  return is_upper(a[0]) == is_upper(b[0]) && is_upper(a[1]) == is_upper(b[1]);
}

/// Like AddNumberWarnings, for a column with booleans here (`truth` in some lines, `number` in others) or in training
/// (`trained`).
void AddTruthWarning(const std::string& column, const NumberForm* truth, const NumberForm* number,
                     const NumberForm* trained, Reads reads, std::map<std::string, std::string>* warnings) {
  const std::string of = "column \"" + Harmless(column) + "\" holds truth values";
  if (truth != nullptr && number != nullptr && (reads == Reads::kTraining || trained == nullptr)) {
    (*warnings)[column] = of + " in some lines: its words are " + Shown(*truth) + " there, and " + Shown(*number) +
                          " in others, so that one value may be two words: write them alike";
    return;
  }
  if (trained == nullptr) return;
  const bool is_other =
      truth != nullptr && !(ReadTruthValue(trained->text).has_value() && HaveOneStyle(truth->text, trained->text));
  const NumberForm* const unlike = is_other ? truth : ReadTruthValue(trained->text).has_value() ? number : nullptr;
  if (unlike == nullptr) return;
  (*warnings)[column + kUnlikeTraining] =
      of + ": its words are " + Shown(*unlike) + ", and " + Shown(*trained) +
      " where the training began, so that one value is two words: write them alike, or retrain";
}

/// Adds warnings, like ValueWarnings, if one integer or boolean is or may be several words.
void AddNumberWarnings(const ValueNames& names, Reads reads, std::map<std::string, std::string>* warnings) {
  const auto find = [](const std::map<std::string, NumberForm>& numbers, const std::string& column) {
    const auto found = numbers.find(column);
    return found == numbers.end() ? nullptr : &found->second;
  };
  std::set<std::string> columns;
  for (const auto* const numbers : names.forms()) {
    for (const auto& [column, number] : *numbers) columns.insert(column);
  }
  for (const std::string& column : columns) {
    if (names.others.contains(column)) continue;
    const NumberForm* const whole = find(names.whole, column);
    const NumberForm* const floats = find(names.whole_floats, column);
    const NumberForm* const trained = find(names.trained, column);
    if (trained != nullptr && trained->text.empty()) continue;
    const NumberForm* const unlike = trained == nullptr ? nullptr : IsFloat(*trained) ? whole : floats;
    const bool is_training = reads == Reads::kTraining;
    const NumberForm* const number = whole != nullptr ? whole : floats;
    const NumberForm* const truth = find(names.truths, column);
    const bool was_truth = trained != nullptr && ReadTruthValue(trained->text).has_value();
    if (truth != nullptr || was_truth) {
      AddTruthWarning(column, truth, number, trained, reads, warnings);
      continue;
    }
    const std::string of = "column \"" + Harmless(column) + "\" holds whole numbers";
    const std::string advice =
        ". pandas makes floats of whole numbers where some are missing; astype(\"Int64\") keeps them";
    if (whole != nullptr && floats != nullptr && (is_training || trained == nullptr)) {
      (*warnings)[column] = of + " as floats in some lines: its words are " + Shown(*floats) + " there, and " +
                            Shown(*whole) + " in others" + advice;
    } else if (unlike != nullptr) {
      (*warnings)[column + kUnlikeTraining] =
          of + (IsFloat(*unlike) ? " as floats" : "") + ": its words are " + Shown(*unlike) + ", and " +
          Shown(*trained) + " where the training began, so that one number is two words: write them alike, or retrain" +
          (IsFloat(*unlike) ? advice : "");
    } else if (floats != nullptr && is_training) {
      (*warnings)[column] = of + " as floats: its words are " + Shown(*floats) + ", not " + AsWhole(*floats) + advice;
    }
  }
}

/// Adds warnings, like ValueWarnings, for strings in another encoding.
void AddEncodingWarnings(const ValueNames& names, std::map<std::string, std::string>* warnings) {
  for (const auto& [column, first] : names.not_utf8) {
    const auto counted = names.not_utf8_values.find(column);
    const int64_t count = counted == names.not_utf8_values.end() ? 1 : counted->second;
    (*warnings)[column + " not UTF-8"] = "column \"" + Harmless(column) + "\": " + std::to_string(count) +
                                         (count == 1 ? " text is" : " texts are") + " not UTF-8, first " +
                                         Shown(first) +
                                         (count == 1 ? "; it gets another id than the same text in UTF-8"
                                                     : "; they get other ids than the same texts in UTF-8") +
                                         ": convert the data, for example with iconv -f LATIN1 -t UTF-8";
  }
}

constexpr int64_t kLeastCount = 20;      // fewer values are not significant
constexpr int64_t kMostCount = 1024;     // larger counts are not more reliable, because rows of long files are sampled
constexpr double kClearly = 0.05;        // minimum excess over the evaluation's fraction
constexpr double kDeviations = 4;        // and over random deviations
constexpr double kClearlyUnknown = 0.5;  // without an evaluation to compare with

/// `part` of `all`.
struct Share {
  int64_t part;
  int64_t all;
  double share() const { return static_cast<double>(part) / static_cast<double>(all); }
};

/// Whether a fraction clearly exceeds the usual one, which is unknown if it has no values.
bool Departs(const Share& now, const Share& usual) {
  if (now.all < kLeastCount) return false;
  if (usual.all == 0) return now.share() >= kClearlyUnknown;
  const double before = usual.share();
  const double margin = std::max(kClearly, std::min(before, 1 - before) / 2);
  const double often = std::clamp(before, 0.01, 0.99);
  const auto of_one = [](int64_t all) { return 1 / static_cast<double>(std::min(all, kMostCount)); };
  const double chance = std::sqrt(often * (1 - often) * (of_one(now.all) + of_one(usual.all)));
  return now.share() > before + std::max(margin, kDeviations * chance);
}

std::string Percent(const Share& share) { return GeneralNumber(100 * share.share(), 3) + " %"; }

/// Adds warnings, like ValueWarnings, if a model scored rows with other values than those it was evaluated on.
void AddShareWarnings(const ValueNames& names, std::map<std::string, std::string>* warnings) {
  for (const auto& [slot, share] : names.shares) {
    const auto found = names.trained_shares.find(slot);
    const SlotShare before = found == names.trained_shares.end() ? SlotShare() : found->second;
    const std::string of = "slot \"" + Harmless(slot) + "\": ";
    const auto tell = [&, &slot = slot](const char* what, const Share& now, const Share& usual, const char* means,
                                        const char* question) {
      if (!Departs(now, usual)) return;
      (*warnings)[slot + what] = of + Percent(now) + means +
                                 (usual.all == 0 ? "" : ", and " + Percent(usual) + " in the evaluation before") +
                                 question;
    };
    // Training can also have any number of values outside a vocabulary.
    if (!share.has_vocabulary || before.ids > 0) {
      tell(" unknown", {share.unknown, share.ids}, {before.unknown, before.ids},
           share.has_vocabulary ? " of its values are not in its vocabulary" : " of its values were never trained",
           ": are they written as in training (upper and lower case, encoding, spaces, missing values)?");
    }
    // A mostly empty slot is not unusual by itself.
    if (before.rows == 0) continue;
    tell(" empty", {share.empty, share.rows}, {before.empty, before.rows}, " of the rows have no value of it",
         ": is a word of the training, like NA, read as a missing value?");
  }
}

/// Offset of a zone from UTC in minutes; nullopt without a zone.
std::optional<int> OffsetOf(const std::string& zone) {
  IsoTime time;
  const std::string text = "2026-11-26T10:00" + (zone == "UTC" ? "Z" : zone);
  return ReadIsoTime(text, &time) ? time.offset_minutes : std::nullopt;
}

/// Whether a zone differs by one hour from one of the others.
bool MayBeSummer(const std::string& zone, const std::map<std::string, NumberForm>& others) {
  const std::optional<int> here = OffsetOf(zone);
  return std::any_of(others.begin(), others.end(), [&](const auto& other) {
    const std::optional<int> there = OffsetOf(other.first);
    return here.has_value() && there.has_value() && std::abs(*here - *there) == 60;
  });
}

/// "no zone", "the zone +01:00", "the zones +01:00, +02:00".
std::string ShownZones(const std::map<std::string, NumberForm>& zones) {
  if (zones.contains("")) return "no zone";
  std::string shown = zones.size() == 1 ? "the zone " : "the zones ";
  for (const auto& [zone, first] : zones) shown += (zone == zones.begin()->first ? "" : ", ") + zone;
  return shown;
}

/// Adds warnings, like ValueWarnings, for times in another zone than in training or another unit than configured.
void AddTimeWarnings(const ValueNames& names, Reads reads, std::map<std::string, std::string>* warnings) {
  for (const auto& [column, time] : names.of_1970) {
    if (names.later.contains(column)) continue;
    (*warnings)[column + " of 1970"] = "column \"" + Harmless(column) +
                                       "\" as EPOCH_MILLISECONDS has times of 1970 alone, such as " + Shown(time) +
                                       ": if they are seconds since 1970, say format: EPOCH_SECONDS";
  }
  if (reads == Reads::kTraining) return;
  for (const auto& [column, of_column] : names.zones) {
    const auto known = names.trained_zones.find(column);
    if (known == names.trained_zones.end()) continue;
    const std::map<std::string, NumberForm>& trained = known->second;
    const bool is_mixed = trained.size() > 1 && trained.contains("");
    if (is_mixed) continue;
    for (const auto& [zone, time] : of_column) {
      const bool is_clock = names.clocks.contains(column);
      // Times with zones are words by instant, so any zone gives the same words.
      if (trained.contains(zone) || (!is_clock && !zone.empty() && !trained.contains(""))) continue;
      (*warnings)[column + " of another zone"] =
          "column \"" + Harmless(column) + "\" has times with " + (zone.empty() ? "no zone" : "the zone " + zone) +
          ", such as " + Shown(time) + ", and " + ShownZones(trained) + " where the training began (" +
          Harmless(trained.begin()->second.place) + "): " +
          (is_clock ? "date_part takes what the clock shows, so the same instant has another hour"
                    : "the same time is two words") +
          "; convert them, or retrain" +
          (MayBeSummer(zone, trained) ? ". Daylight saving time of one zone needs no change" : "");
      break;
    }
  }
}

}  // namespace

std::string ShownTimes(const SeenTimes& times) {
  const auto shown = [](const std::string& text) { return "\"" + Harmless(text) + "\""; };
  return "the times in column " + shown(times.column) + " are from " + shown(times.first.text) + " to " +
         shown(times.last.text);
}

std::vector<std::string> LeftOut(const PassStats& read) {
  std::vector<std::string> clauses;
  for (const Omission& omission : kOmissions) {
    const auto count = read.counters.find(omission.counter);
    if (count == read.counters.end() || count->second == 0) continue;
    std::string clause = std::to_string(count->second) + " " + (count->second == 1 ? omission.one : omission.many);
    if (omission.why != nullptr) clause += std::string(" (") + omission.why + ")";
    clauses.push_back(std::move(clause));
  }
  return clauses;
}

std::string LeftOutLine(const PassStats& read) {
  std::string line;
  for (const std::string& clause : LeftOut(read)) line += (line.empty() ? "left out: " : ", ") + clause;
  return line;
}

std::map<std::string, std::string> ValueWarnings(const PassStats& read, Reads reads) {
  std::map<std::string, std::string> warnings;
  if (read.names.is_partial) return warnings;
  const std::vector<std::string_view> known(read.names.some.begin(), read.names.some.end());
  for (const std::string& column : read.names.absent) {
    warnings[column] =
        std::string(read.names.lines == 1 ? "the only line has no key \""
                                          : "none of " + std::to_string(read.names.lines) + " lines has the key \"") +
        Harmless(column) +
        "\", so that the feature which takes it finds no value: correct its from, or its name where it "
        "has no from" +
        Harmless(DidYouMean(column, known));
  }
  AddNumberWarnings(read.names, reads, &warnings);
  AddTimeWarnings(read.names, reads, &warnings);
  for (const auto& [feature, seen] : read.names.words) {
    if (reads != Reads::kTraining || seen.has_some || seen.other.empty()) continue;
    constexpr size_t kShown = 60;
    warnings["words of " + feature] = "feature \"" + Harmless(feature) +
                                      "\": no value in the data is in its vocabulary; the first one is \"" +
                                      Harmless(Shortened(seen.other, kShown)) + "\" (check case, spaces and encoding)";
  }
  for (const auto& [feature, all] : read.names.all_ones) {
    if (reads != Reads::kTraining || !all) continue;
    warnings["ones of " + feature] =
        "feature \"" + Harmless(feature) +
        "\": all values of its columns are 1, as in one-hot data, so that one word stands for all of them; "
        "from: \"index\" takes the indices of a line in place of their values";
  }
  AddEncodingWarnings(read.names, &warnings);
  AddShareWarnings(read.names, &warnings);
  return warnings;
}

Status NothingTo(std::string_view what, const PassStats& read, const DataFeedDesc& desc,
                 const std::vector<std::string>& files) {
  const auto count = [](int64_t n, const char* one) { return std::to_string(n) + " " + one + (n == 1 ? "" : "s"); };
  const std::string_view command = PipeCommandOf(desc);
  const uint64_t bytes_in = command.empty() || read.bytes > 0 || read.files == 0 ? 0 : BytesOf(files);
  if (bytes_in > 0) {
    return BadData("nothing to " + std::string(what) + ": pipe_command " + ShownCommand(command) +
                   " wrote nothing for " + (read.files == 1 ? "its file" : "any of " + count(read.files, "file")) +
                   ", and said that all is well: exit code 0, " + std::to_string(bytes_in) +
                   " bytes in, 0 bytes out; see by hand what it makes of " + files[0]);
  }
  std::string found;
  if (read.bad_lines > 0) found = std::to_string(read.bad_lines) + " bad";
  for (const auto& [kind, times] : read.counters) {
    if (kind == "drop_last") continue;  // reported by the caller
    found += (found.empty() ? "" : "; ") + kind + " " + std::to_string(times);
  }
  if (!read.names.times.column.empty()) found += (found.empty() ? "" : "; ") + ShownTimes(read.names.times);
  std::string where = count(read.files, "file");
  if (files.size() == 1) where = files[0];
  if (files.size() > 1) where += " from " + files[0] + " on";
  return BadData("nothing to " + std::string(what) + ": no row came out of " + where + " with " +
                 count(read.lines, "line") + (found.empty() ? "" : " (" + found + ")") +
                 (command.empty() ? "" : ", as pipe_command " + ShownCommand(command) + " wrote them"));
}

void AddPassStats(const PassStats& part, PassStats* all) {
  all->files += part.files;
  all->bytes += part.bytes;
  all->lines += part.lines;
  all->rows += part.rows;
  all->bad_lines += part.bad_lines;
  for (const std::string& line : part.first_bad_lines) {
    if (all->first_bad_lines.size() < kFirstBadLines) all->first_bad_lines.push_back(line);
  }
  // With ranks there are several files; ignore those without a bad line.
  if (part.bad_lines > 0 &&
      (", " + all->quarantine_path + ",").find(", " + part.quarantine_path + ",") == std::string::npos) {
    all->quarantine_path += (all->quarantine_path.empty() ? "" : ", ") + part.quarantine_path;
  }
  for (const auto& [kind, count] : part.counters) all->counters[kind] += count;
  all->names.Add(part.names);
  for (const auto& [stage, seconds] : part.stage_seconds) all->stage_seconds[stage] += seconds;
}

}  // namespace millrace
