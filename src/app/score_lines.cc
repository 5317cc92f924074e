#include "app/score_lines.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "app/command_line.h"
#include "core/edit_distance.h"
#include "core/same_file.h"
#include "datafeed/input_opener.h"
#include "framework/feed_names.h"
#include "reader/line_file.h"

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

// Opening the output for writing empties it.
Status CheckIsNotRead(const std::string& output, const std::string& flag, const std::string& file) {
  if (output == "-" || file == "-" || !IsSamePlainFile(output, file)) return Status::Ok();
  return InvalidConfig("--output and " + flag + " are the same file, \"" + file + "\", which would be lost");
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
    auto* slots = desc->mutable_multi_slot_desc()->mutable_slots();
    const auto slot = std::find_if(slots->begin(), slots->end(), [&](const Slot& s) { return s.name() == name; });
    if (slot == slots->end()) {
      std::vector<std::string_view> names;
      for (const Slot& s : *slots) names.push_back(s.name());
      return InvalidConfig("--without: the model's lines have no slot \"" + name + "\"" + DidYouMean(name, names));
    }
    slots->erase(slot);
  }
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

  Status Take(float score) {
    ++line_;
    std::string text;
    if (!std::getline(file_, text)) {
      return BadData(Where() + " there are fewer expected scores than input lines");
    }
    double expected = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, expected);
    if (error != std::errc() || (stop != end && *stop != ' ' && *stop != '\t' && *stop != '\r')) {
      return BadData(Where() + " this is no number: \"" + text + "\"");
    }
    double difference = std::abs(static_cast<double>(score) - expected);
    if (std::isnan(difference)) {
      // Of two infinite ones, or with a nan: those that are alike agree.
      const bool is_alike = std::isnan(score) ? std::isnan(expected) : static_cast<double>(score) == expected;
      difference = is_alike ? 0 : HUGE_VAL;
    }
    worst_ = std::max(worst_, difference);
    if (difference <= tolerance_) return Status::Ok();
    ++differing_;
    char message[160];
    std::snprintf(message, sizeof(message), " expected %.9g, scored %.9g", expected, static_cast<double>(score));
    if (differing_ == 1) first_ = Where() + message;
    return Status::Ok();
  }

  Status Finish() {
    if (std::string text; std::getline(file_, text)) {
      return BadData("--compare: \"" + path_ + "\" has more lines than the input's " + std::to_string(line_) + " rows");
    }
    char numbers[160];
    std::snprintf(numbers, sizeof(numbers), "largest difference %.3g, tolerance %.3g", worst_, tolerance_);
    if (differing_ > 0) {
      return BadData(std::to_string(differing_) + " of " + std::to_string(line_) + " scores differ: " + first_ + "; " +
                     numbers);
    }
    std::fprintf(stderr, "%lld scores agree: %s\n", static_cast<long long>(line_), numbers);
    return Status::Ok();
  }

 private:
  Comparison(const std::string& path, double tolerance) : path_(path), tolerance_(tolerance), file_(path) {}
  std::string Where() const { return path_ + ":" + std::to_string(line_) + ":"; }

  std::string path_;
  double tolerance_;
  std::ifstream file_;
  int64_t line_ = 0;
  int64_t differing_ = 0;
  double worst_ = 0;
  std::string first_;
};

/// Adds to a line's failure how lines without a slot are read, when the slot is one that no score depends on.
Status ExplainMissingSlot(Status failure, const Predictor& predictor, const DataFeedDesc& desc) {
  if (failure.code() != StatusCode::kBadData) return failure;
  const auto& feeds = predictor.feeds();
  for (const Slot& slot : desc.multi_slot_desc().slots()) {
    const bool is_fed = std::find(feeds.begin(), feeds.end(), slot.name()) != feeds.end();
    if (is_fed || failure.message().find(": slot \"" + slot.name() + "\": ") == std::string::npos) continue;
    return {failure.code(), failure.message() + "\n  the score does not depend on it: --without=" + slot.name() +
                                " reads lines that lack it"};
  }
  return failure;
}

Status WriteScores(std::span<const float> scores, std::FILE* out, Comparison* comparison, const std::string& output) {
  std::string text;
  for (const float score : scores) {
    char digits[48];
    text.append(digits, std::to_chars(digits, digits + sizeof(digits), score).ptr);
    text += '\n';
    if (comparison != nullptr) MR_TRY(comparison->Take(score));
  }
  if (out == nullptr) return Status::Ok();
  if (std::fwrite(text.data(), 1, text.size(), out) != text.size()) return WriteFailed(output);
  return Status::Ok();
}

}  // namespace

Status ScoreLines(const Predictor& predictor, const Environment& environment, const ScoreRequest& request,
                  std::stop_token stop) {
  MR_TRY(CheckIsNotRead(request.output, "--input", request.input));
  MR_TRY(CheckIsNotRead(request.output, "--compare", request.compare));
  DataFeedDesc desc = predictor.data_desc();
  ForgetOwnFeed(&desc);
  desc.set_drop_last(false);
  desc.clear_bad_lines();  // a line that was left out would shift the scores of those behind it
  desc.set_thread_num(1);
  if (request.batch_size > 0) desc.set_batch_size(request.batch_size);
  if (request.pipe_command.has_value()) desc.set_pipe_command(*request.pipe_command);
  MR_TRY(RemoveSlots(predictor, request.without, &desc));
  const std::string file = request.input == "-" ? "/dev/stdin" : request.input;
  MR_ASSIGN(const std::unique_ptr<Dataset> dataset,
            environment.datasets.Create("QueueDataset", desc, {file}, environment.feeds, {}));
  std::unique_ptr<Comparison> comparison;
  if (!request.compare.empty()) {
    MR_ASSIGN(comparison, Comparison::Create(request.compare, request.tolerance));
  }
  MR_ASSIGN(const auto session, PredictSession::Create(predictor, dataset->schema(), desc.batch_size()));
  OutputFile out;
  if (!request.output.empty()) {
    out.reset(request.output == "-" ? stdout : std::fopen(request.output.c_str(), "w"));
    if (out == nullptr) return WriteFailed(request.output);
  }

  PassOptions options;
  options.ordered = true;
  MR_TRY(dataset->BeginPass(options));
  BatchSource& source = dataset->source(0);
  while (true) {
    Result<BatchPtr> next = source.Next(stop);
    if (!next.ok()) return ExplainMissingSlot(std::move(next).status(), predictor, desc);
    const BatchPtr batch = std::move(*next);
    if (batch == nullptr) break;
    MR_ASSIGN(const std::span<const float> scores, session->Run(*batch));
    MR_TRY(WriteScores(scores, out.get(), comparison.get(), request.output));
  }
  MR_ASSIGN(const PassStats stats, dataset->EndPass());
  const bool is_piped = !PipeCommandOf(desc).empty();
  std::error_code unknown;
  if (is_piped && stats.bytes == 0 && std::filesystem::file_size(file, unknown) > 0 && !unknown) {
    return NothingTo("score", stats, desc, {file});
  }
  if (const auto blank = stats.counters.find("blank_line"); blank != stats.counters.end()) {
    std::fprintf(stderr, "warning: %lld blank lines of the input have no score\n",
                 static_cast<long long>(blank->second));
  }
  if (out != nullptr && std::fflush(out.get()) != 0) return WriteFailed(request.output);
  return comparison == nullptr ? Status::Ok() : comparison->Finish();
}

}  // namespace millrace
