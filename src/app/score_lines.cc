#include "app/score_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <utility>

#include "app/command_line.h"
#include "app/score_metrics.h"
#include "config/feed_names.h"
#include "core/edit_distance.h"
#include "core/harmless_text.h"
#include "core/numbers.h"
#include "core/same_file.h"
#include "datafeed/input_opener.h"
#include "datafeed/scoring_feeds.h"
#include "dataset/queue_dataset.h"
#include "features/feature_spec.h"
#include "kernels/non_finite.h"
#include "reader/line_file.h"
#include "serving/absent_slots.h"

namespace millrace {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdout) std::fclose(file);
  }
};
using OutputFile = std::unique_ptr<std::FILE, CloseFile>;

Status WriteFailed(const std::string& output) {
  if (output == "-") return StandardOutputFailed("cannot write scores to standard output");
  return IoErrorFromErrno("cannot write scores to \"" + output + "\"", errno);
}

/// Keeps what a file holds until the first score comes: an input that cannot be read leaves it as it was.
OutputFile OpenOutput(const std::string& output) {
  if (output == "-") return OutputFile(stdout);
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  return OutputFile(file < 0 ? nullptr : ::fdopen(file, "w"));
}

/// What is no plain file has nothing to lose.
Status EmptyOutput(std::FILE* file, const std::string& output) {
  if (file == nullptr || file == stdout) return Status::Ok();
  return ::ftruncate(::fileno(file), 0) == 0 || errno == EINVAL ? Status::Ok() : WriteFailed(output);
}

/// Makes sure of what was written: the last of it is written now, and a full disk may show at the close alone.
Status CloseOutput(OutputFile file, const std::string& output) {
  if (file == nullptr) return Status::Ok();
  const bool is_there = output == "-" || IsStillUnder(::fileno(file.get()), output);
  const bool is_written = output == "-" ? std::fflush(file.get()) == 0 : std::fclose(file.release()) == 0;
  if (!is_written) return WriteFailed(output);
  if (is_there) return Status::Ok();
  return IoError("\"" + output + "\" was removed or replaced while scores were written to it: they are lost");
}

// What is written there would take the place of what is read.
Status CheckIsNotRead(const std::string& output, const std::string& flag, const std::string& file) {
  if (output == "-" || file == "-" || !IsSamePlainFile(output, file)) return Status::Ok();
  return InvalidConfig("--output and " + flag + " are the same file, \"" + file + "\", which would be lost");
}

/// False where there is none of this name.
bool EraseSlot(const std::string& name, DataFeedDesc* desc) {
  auto* slots = desc->mutable_multi_slot_desc()->mutable_slots();
  const auto slot = std::find_if(slots->begin(), slots->end(), [&](const Slot& s) { return s.name() == name; });
  if (slot == slots->end()) return false;
  slots->erase(slot);
  return true;
}

/// The columns that features make a slot of.
std::vector<std::string> ColumnsOf(const std::string& slot, const DataFeedDesc& desc) {
  return ColumnsOfSlots(desc, [&](const FeatureDesc& feature) { return feature.name() == slot; });
}

// Takes slots that lines lack out of the description; the schema of what is left must still feed the model.
Status RemoveSlots(const Predictor& predictor, const std::string& without, DataFeedDesc* desc) {
  for (size_t start = 0; start < without.size();) {
    const size_t comma = std::min(without.find(',', start), without.size());
    const std::string name = without.substr(start, comma - start);
    start = comma + 1;
    const auto& feeds = predictor.feeds();
    if (std::find(feeds.begin(), feeds.end(), name) != feeds.end()) {
      return InvalidConfig("--without: the model's score depends on slot \"" + name + "\"");
    }
    if (EraseSlot(name, desc)) continue;
    std::vector<std::string_view> names;
    std::string readers;  // slots that are made of a column of this name
    for (const Slot& s : desc->multi_slot_desc().slots()) {
      names.push_back(s.name());
      const std::vector<std::string> columns = ColumnsOf(s.name(), *desc);
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) continue;
      if (std::find(feeds.begin(), feeds.end(), s.name()) != feeds.end()) {
        return InvalidConfig("--without: the model's score depends on column \"" + name + "\", of which slot \"" +
                             s.name() + "\" is made");
      }
      readers += (readers.empty() ? "" : ",") + s.name();
    }
    return InvalidConfig(
        "--without: the model's lines have no slot \"" + name + "\"" +
        (readers.empty() ? DidYouMean(name, names) : ", but a column, which --without=" + readers + " leaves out"));
  }
  return Status::Ok();
}

/// Leaves out slots that no score depends on and whose columns the file lacks, and says so.
Status LeaveOutAbsent(const Predictor& predictor, const DataFeedFactory& feeds, const std::string& file,
                      const std::stop_token& stop, DataFeedDesc* desc) {
  MR_ASSIGN(const std::vector<AbsentSlot> absent, FindAbsentSlots(predictor, feeds, *desc, file, stop));
  std::string columns;
  std::set<std::string> unmeasured;
  for (const AbsentSlot& slot : absent) {
    EraseSlot(slot.slot, desc);
    // What is told here need not be told once more as a column that the files of the training had.
    FeatureStates& trained = *desc->mutable_feature_states();
    for (int i = trained.column_size() - 1; i >= 0; --i) {
      if (trained.column(i) != slot.column) continue;
      trained.mutable_column()->DeleteSubrange(i, 1);
      if (trained.type_size() > i) trained.mutable_type()->DeleteSubrange(i, 1);
    }
    columns += (columns.empty() ? "\"" : ", \"") + Harmless(slot.column) + "\"";
    unmeasured.insert(slot.tasks.begin(), slot.tasks.end());
  }
  if (absent.empty()) return Status::Ok();
  std::string metrics = unmeasured.empty() ? "" : "; without it there are no metrics";
  if (unmeasured.size() < predictor.tasks().size()) {
    for (const std::string& task : unmeasured) {
      metrics += (task == *unmeasured.begin() ? " of \"" : ", \"") + Harmless(task) + "\"";
    }
  }
  std::fprintf(stderr, "note: the input%s %s, on which no score depends%s\n",
               desc->name() == "json" ? "'s first line has no key" : " has no column", columns.c_str(),
               metrics.c_str());
  return Status::Ok();
}

/// Reads the columns of the model's features out of files of another format.
Status ReadAs(const std::string& format, const DataFeedFactory& feeds, DataFeedDesc* desc) {
  if (desc->feature_size() == 0) {
    return InvalidConfig(
        "--format: the model has no features, whose columns files of several formats have; "
        "--data_feed=FILE says how other lines are read");
  }
  const FeedKind* const kind = feeds.Find(format);
  if (kind == nullptr || kind->columns == nullptr) {
    std::string names;
    for (const auto& [name, traits] : feeds.formats()) {
      if (traits.has_columns) names += (names.empty() ? "" : ", ") + name;
    }
    return InvalidConfig("--format: \"" + format + "\" has no columns with names; those that have: " + names);
  }
  desc->set_name(format);
  return Status::Ok();
}

/// Refuses what the model would have run on the input, and leaves out what it would have run on others.
Status RefuseCommands(const std::string& input, DataFeedDesc* desc) {
  if (const std::string_view command = PipeCommandOf(*desc); !command.empty()) {
    return InvalidConfig(
        "the model comes with a command that its lines are piped through, and no model's command runs "
        "unasked:\n  " +
        Harmless(command) +
        "\n--allow_model_command runs it, --pipe_command=COMMAND another one in its place, and "
        "--pipe_command=cat takes the lines as they are");
  }
  for (const InputCommand& known : desc->input_commands()) {
    if (!input.starts_with(known.scheme() + ":")) continue;
    return InvalidConfig("the model comes with a command that reads \"" + Harmless(known.scheme()) +
                         ":\" files, and no model's command runs unasked:\n  " + Harmless(known.command()) +
                         "\n--allow_model_command runs it; standard input takes what another command reads");
  }
  desc->clear_input_commands();
  return Status::Ok();
}

// Compares scores with a file of expected ones, as they come.
class Comparison {
 public:
  static Result<std::unique_ptr<Comparison>> Create(const std::string& path, double tolerance) {
    MR_TRY(CheckReadable(path).Context("--compare"));
    std::unique_ptr<Comparison> comparison(new Comparison(path, tolerance));
    if (!comparison->file_) return IoErrorFromErrno("--compare: cannot open \"" + path + "\"", errno);
    return comparison;
  }

  /// Takes the scores of a row, which the next line has.
  Status Take(std::span<const float> scores) {
    ++line_;
    std::string text;
    if (!std::getline(file_, text)) {
      return BadData(Where() + " there are fewer expected scores than input lines");
    }
    const char* at = text.data();
    const char* end = text.data() + text.size();
    for (const float score : scores) {
      while (at != end && (*at == ' ' || *at == '\t') && score_ > 0) ++at;
      double expected = 0;
      const auto [stop, error] = std::from_chars(at, end, expected);
      if (error != std::errc() || (stop != end && *stop != ' ' && *stop != '\t' && *stop != '\r')) {
        return BadData(Where() +
                       (at == end && score_ > 0 ? " there are " + std::to_string(score_) + " numbers, and a row has " +
                                                      std::to_string(scores.size()) + " scores: \""
                                                : " this is no number: \"") +
                       text + "\"");
      }
      at = stop;
      ++score_;
      Compare(score, expected);
    }
    score_ = 0;
    return Status::Ok();
  }

  Status Finish() {
    if (std::string text; std::getline(file_, text)) {
      return BadData("--compare: \"" + path_ + "\" has more lines than the input's " + std::to_string(line_) + " rows");
    }
    const std::string numbers =
        "largest difference " + GeneralNumber(worst_, 3) + ", tolerance " + GeneralNumber(tolerance_, 3);
    if (differing_ > 0) {
      return BadData(std::to_string(differing_) + " of " + std::to_string(compared_) + " scores differ: " + first_ +
                     "; " + numbers);
    }
    std::fprintf(stderr, "%lld scores agree: %s\n", static_cast<long long>(compared_), numbers.c_str());
    return Status::Ok();
  }

 private:
  Comparison(const std::string& path, double tolerance) : path_(path), tolerance_(tolerance), file_(path) {}
  std::string Where() const { return path_ + ":" + std::to_string(line_) + ":"; }

  void Compare(float score, double expected) {
    ++compared_;
    double difference = std::abs(static_cast<double>(score) - expected);
    if (std::isnan(difference)) {
      // Of two infinite ones, or with a nan: those that are alike agree.
      const bool is_alike = std::isnan(score) ? std::isnan(expected) : static_cast<double>(score) == expected;
      difference = is_alike ? 0 : HUGE_VAL;
    }
    worst_ = std::max(worst_, difference);
    if (difference <= tolerance_) return;
    ++differing_;
    if (differing_ > 1) return;
    first_ = Where() + " expected " + GeneralNumber(expected, 9) + ", scored " +
             GeneralNumber(static_cast<double>(score), 9);
  }

  std::string path_;
  double tolerance_;
  std::ifstream file_;
  int64_t line_ = 0;
  size_t score_ = 0;  ///< of the line
  int64_t compared_ = 0;
  int64_t differing_ = 0;
  double worst_ = 0;
  std::string first_;
};

/// Whether a failure is that of a slot, or of the header that lacks a column of it.
bool IsAbout(const std::string& failure, const std::string& slot, const DataFeedDesc& desc) {
  if (failure.find(": slot \"" + slot + "\": ") != std::string::npos) return true;
  const std::vector<std::string> columns = ColumnsOf(slot, desc);
  return std::any_of(columns.begin(), columns.end(), [&](const std::string& column) {
    return failure.find(" has no column \"" + column + "\"") != std::string::npos;
  });
}

/// Adds to a line's failure how lines without a slot are read, when the slot is one that no score depends on.
Status ExplainMissingSlot(Status failure, const Predictor& predictor, const DataFeedDesc& desc) {
  if (failure.code() != StatusCode::kBadData) return failure;
  const auto& feeds = predictor.feeds();
  std::string names;
  if (failure.message().find(" columns, as the job's csv.names says, found ") != std::string::npos) {
    // Lines without header do not say which of their columns is missing.
    for (const Slot& slot : desc.multi_slot_desc().slots()) {
      const bool is_needed = std::find(feeds.begin(), feeds.end(), slot.name()) != feeds.end();
      if (!is_needed) names += (names.empty() ? "" : ", ") + slot.name();
    }
    if (names.empty()) return failure;
    return {failure.code(),
            failure.message() +
                "\n  --without reads lines that lack the columns of slots on which no score depends: " + names};
  }
  for (const Slot& slot : desc.multi_slot_desc().slots()) {
    if (!IsAbout(failure.message(), slot.name(), desc)) continue;
    if (std::find(feeds.begin(), feeds.end(), slot.name()) != feeds.end()) return failure;
    names += (names.empty() ? "" : ",") + slot.name();
  }
  if (names.empty()) return failure;
  return {failure.code(),
          failure.message() + "\n  the score does not depend on it: --without=" + names + " reads lines that lack it"};
}

/// What a model of binary files does not know of the text that they were made of.
void TellOfBinaryFiles(const Predictor& predictor) {
  if (predictor.data_desc().name() != "MultiSlotFileInstantDataFeed") return;
  std::fputs(
      "note: the model was trained from binary files: its lines are taken as MultiSlot text of the used slots alone. "
      "Text that such files were made of, with its pipe_command and unused slots, is read by "
      "--data_feed=text_feed.prototxt, which inspect convert wrote beside them\n",
      stderr);
}

/// Files that a command names by relative paths, as far as its words tell, and that are not there: `"reader.py"`.
std::string MissingFiles(std::string_view command) {
  constexpr std::string_view kBetween = " \t\n;|&()<>'\"`=";
  std::string missing;
  for (size_t start = 0; start < command.size();) {
    const size_t end = std::min(command.find_first_of(kBetween, start), command.size());
    const std::string word(command.substr(start, end - start));
    start = end + 1;
    if (word.empty() || word.find_first_of("/-~") == 0 || word.find_first_of("$*?[{") != std::string::npos) continue;
    const bool is_path = word.find('/') != std::string::npos || std::filesystem::path(word).has_extension();
    std::error_code unknown;
    if (!is_path || std::filesystem::exists(word, unknown)) continue;
    missing += (missing.empty() ? "\"" : ", \"") + Harmless(word) + "\"";
  }
  return missing;
}

/// Adds to a failure what is missing where the model's own command runs: it was written for the folder of the training.
Status ExplainModelCommand(Status failure, std::string_view command) {
  if (failure.code() != StatusCode::kIo) return failure;  // the words of a sed look like paths, too
  const std::string missing = MissingFiles(command);
  if (missing.empty()) return failure;
  std::error_code unknown;
  return {failure.code(), failure.message() + "\n  the model's command names " + missing + ", not to be found from \"" +
                              std::filesystem::current_path(unknown).string() +
                              "\": its relative paths start from the folder that predictor runs in; run it where the "
                              "model was trained, or give --pipe_command"};
}

/// A row a line, its scores with tabs between them.
Status WriteScores(std::span<const float> scores, size_t columns, std::FILE* out, Comparison* comparison,
                   const std::string& output) {
  std::string text;
  for (size_t first = 0; first < scores.size(); first += columns) {
    const std::span<const float> row = scores.subspan(first, columns);
    for (size_t i = 0; i < columns; ++i) {
      AppendExact(WithoutNanSign(row[i]), &text);
      text += i + 1 < columns ? '\t' : '\n';
    }
    if (comparison != nullptr) MR_TRY(comparison->Take(row));
  }
  if (out == nullptr) return Status::Ok();
  if (std::fwrite(text.data(), 1, text.size(), out) != text.size()) return WriteFailed(output);
  return Status::Ok();
}

/// Which score is which, where a line has several.
void TellOfColumns(const Predictor& predictor) {
  const std::vector<std::string> columns = predictor.columns();
  if (columns.size() < 2) return;
  std::string names;
  for (const std::string& name : columns) names += (names.empty() ? "" : "\t") + Harmless(name);
  std::fprintf(stderr, "a line has the scores, with tabs between them: %s\n", names.c_str());
}

/// Counts scores that are NaN or infinite; the first is shown at once, with its line.
class NonFiniteScores {
 public:
  NonFiniteScores(const std::vector<std::string>& files, bool is_piped) : files_(&files), is_piped_(is_piped) {}

  void Take(const SlotBatch& batch, std::span<const float> scores, size_t columns) {
    scores_ += static_cast<int64_t>(scores.size());
    const int64_t found = CountNonFinite(scores);
    if (found == 0) return;
    if (count_ == 0) {
      const int64_t at = FirstNonFinite(scores);
      RunContext context;
      context.batch = &batch;
      context.file_names = files_;
      context.lines_are_piped = is_piped_;
      const float score = scores[static_cast<size_t>(at)];
      first_ = context.DescribeRow(static_cast<int>(at / static_cast<int64_t>(columns))) + " has the score " +
               FixedNumber(static_cast<double>(score), 6);
      std::fprintf(stderr, "warning: %s\n", first_.c_str());
    }
    count_ += found;
  }

  Status Finish(bool is_failure) const {
    if (count_ == 0) return Status::Ok();
    const std::string text =
        std::to_string(count_) + " of " + std::to_string(scores_) + " scores are NaN or infinite; the first: " + first_;
    if (is_failure) {
      return BadData(text +
                     "\n  all scores were written; look at the lines and at the model, or accept them with "
                     "--allow_non_finite");
    }
    std::fprintf(stderr, "warning: %s\n", text.c_str());
    return Status::Ok();
  }

 private:
  const std::vector<std::string>* files_;
  bool is_piped_;
  int64_t count_ = 0;
  int64_t scores_ = 0;
  std::string first_;
};

/// Hands on what was written when nobody knows when more will be, and every so often.
class PromptOutput {
 public:
  explicit PromptOutput(std::FILE* out) : out_(out) {}

  Status AfterBatch(bool input_is_paused, const std::string& output) {
    constexpr std::chrono::milliseconds kMost{50};
    const auto now = std::chrono::steady_clock::now();
    if (out_ == nullptr || (!input_is_paused && now - flushed_ < kMost)) return Status::Ok();
    flushed_ = now;
    return std::fflush(out_) == 0 ? Status::Ok() : WriteFailed(output);
  }

 private:
  std::FILE* out_;
  std::chrono::steady_clock::time_point flushed_;
};

/// Whether a thread that reads ahead is worth its hand-overs. Where the input may pause it would keep back what it has.
bool ReadsAhead(const std::string& file, int batch_size) {
  constexpr int kWorthAThread = 64;
  std::error_code unknown;
  return batch_size >= kWorthAThread && std::filesystem::is_regular_file(file, unknown);
}

}  // namespace

Status ScoreLines(const Predictor& predictor, const Environment& environment, const ScoreRequest& request,
                  std::stop_token stop) {
  MR_TRY(CheckIsNotRead(request.output, "--input", request.input));
  MR_TRY(CheckIsNotRead(request.output, "--compare", request.compare));
  if (request.input == "-") MR_TRY(CheckIsOpen(STDIN_FILENO, "no lines to score"));
  if (request.output == "-") MR_TRY(CheckIsOpen(STDOUT_FILENO, "cannot write scores"));
  MR_TRY(predictor.CheckLines(environment.feeds));
  TellOfBinaryFiles(predictor);
  DataFeedDesc desc = predictor.data_desc();
  ForgetOwnFeed(&desc);
  desc.set_drop_last(false);
  desc.clear_bad_lines();  // a line that was left out would shift the scores of those behind it
  desc.set_thread_num(1);
  if (request.batch_size > 0) desc.set_batch_size(request.batch_size);
  if (request.pipe_command.has_value()) desc.set_pipe_command("");
  if (!request.allow_model_command) MR_TRY(RefuseCommands(request.input, &desc));
  if (request.pipe_command.has_value()) desc.set_pipe_command(*request.pipe_command);
  if (!request.format.empty()) MR_TRY(ReadAs(request.format, environment.feeds, &desc));
  MR_TRY(RemoveSlots(predictor, request.without, &desc));
  const std::string file = request.input == "-" ? "/dev/stdin" : request.input;
  MR_TRY(LeaveOutAbsent(predictor, environment.feeds, file, stop, &desc));
  QueueDatasetOptions options;
  options.reads_ahead = ReadsAhead(file, desc.batch_size());
  options.stop = stop;
  MR_ASSIGN(const DataFeedFactory feeds, ScoringFeeds(environment.feeds, desc));
  MR_ASSIGN(const std::unique_ptr<QueueDataset> dataset, QueueDataset::Create(desc, {file}, feeds, std::move(options)));
  std::unique_ptr<Comparison> comparison;
  if (!request.compare.empty()) {
    MR_ASSIGN(comparison, Comparison::Create(request.compare, request.tolerance));
  }
  MR_ASSIGN(const auto session,
            PredictSession::Create(predictor, dataset->schema(), desc.batch_size(), &dataset->files()));
  OutputFile out;
  if (!request.output.empty()) {
    out = OpenOutput(request.output);
    if (out == nullptr) return WriteFailed(request.output);
  }

  const bool is_piped = !PipeCommandOf(desc).empty();
  const auto explained = [&](Status failure) {
    failure = ExplainMissingSlot(std::move(failure), predictor, desc);
    return request.pipe_command.has_value() ? failure : ExplainModelCommand(std::move(failure), PipeCommandOf(desc));
  };
  NonFiniteScores non_finite(dataset->files(), is_piped);
  std::vector<ScoreMetrics> metrics;
  for (size_t task = 0, first = 0; task < predictor.tasks().size(); ++task) {
    const size_t count = predictor.scores_of(task);
    metrics.emplace_back(dataset->schema(), predictor.tasks()[task],
                         ScoreColumns{std::exchange(first, first + count), count, predictor.has_logit(task)},
                         environment.metrics);
  }
  TellOfColumns(predictor);
  MR_TRY(dataset->BeginPass({}));
  PromptOutput prompt(out.get());
  size_t scored = 0;
  const auto with_what_is_written = [&](const Status& failure) {
    if (scored == 0 || out == nullptr || request.output == "-") return failure;
    return Status(failure.code(), failure.message() + "\n\"" + Harmless(request.output) +
                                      "\" has the scores of the first " + std::to_string(scored) +
                                      (scored == 1 ? " row" : " rows"));
  };
  bool is_empty = false;
  const auto empty_once = [&] {
    return std::exchange(is_empty, true) ? Status::Ok() : EmptyOutput(out.get(), request.output);
  };
  while (true) {
    Result<BatchPtr> next = dataset->source(0).Next(stop);
    if (!next.ok()) return with_what_is_written(explained(std::move(next).status()));
    const BatchPtr batch = std::move(*next);
    if (batch == nullptr) break;
    MR_ASSIGN(const std::span<const float> scores, session->Run(*batch, stop));
    MR_TRY(empty_once());
    const size_t columns = session->columns();
    non_finite.Take(*batch, scores, columns);
    for (ScoreMetrics& measured : metrics) measured.Add(scores, session->logits(), columns, *batch);
    MR_TRY(WriteScores(scores, columns, out.get(), comparison.get(), request.output));
    scored += scores.size() / columns;
    MR_TRY(prompt.AfterBatch(dataset->is_paused(), request.output));
  }
  MR_ASSIGN(PassStats stats, dataset->EndPass());
  MR_TRY(session->TakeShares(&stats.names.shares));
  stats.names.trained_shares = predictor.slot_shares();
  std::error_code unknown;
  if (is_piped && stats.bytes == 0 && std::filesystem::file_size(file, unknown) > 0 && !unknown) {
    return NothingTo("score", stats, desc, {file});
  }
  if (const auto zeros = stats.counters.find("zero_dropped"); zeros != stats.counters.end()) {
    std::fprintf(stderr, "warning: %lld zeros of sparse slots were left out, as in training (data_desc.zeros: DROP)\n",
                 static_cast<long long>(zeros->second));
  }
  if (const auto blank = stats.counters.find("blank_line"); blank != stats.counters.end()) {
    std::fprintf(stderr, "warning: %lld blank lines of the input have no score\n",
                 static_cast<long long>(blank->second));
  }
  if (stats.rows == 0)
    std::fprintf(stderr, "warning: no rows in %s\n", request.input == "-" ? "standard input" : Harmless(file).c_str());
  for (const auto& [once, warning] : ValueWarnings(stats, Reads::kModel)) {
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
  MR_TRY(empty_once());
  MR_TRY(CloseOutput(std::move(out), request.output));
  for (ScoreMetrics& measured : metrics) {
    if (const std::string text = measured.Text(); !text.empty()) std::fprintf(stderr, "%s\n", text.c_str());
  }
  MR_TRY(non_finite.Finish(comparison == nullptr && !request.allow_non_finite));
  return comparison == nullptr ? Status::Ok() : comparison->Finish();
}

}  // namespace millrace
