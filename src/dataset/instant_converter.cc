#include "dataset/instant_converter.h"

#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>

#include "config/feed_names.h"
#include "core/file.h"
#include "core/folder_entries.h"
#include "core/hash.h"
#include "core/replace_folder.h"
#include "data_feed.pb.h"
#include "datafeed/data_feed.h"
#include "datafeed/instant_rows.h"
#include "dataset/queue_dataset.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// The part of the input already stored in the files of a folder.
struct ConvertState {
  std::string input;  ///< InputKey
  bool done = false;
  ConvertReport report;
  ConsumedRanges written;

  std::string ToText() const {
    return "input " + input + "\ndone " + (done ? "1" : "0") + "\nparts " + std::to_string(report.parts) + "\nrows " +
           std::to_string(report.rows) + "\nbytes " + std::to_string(report.bytes) + "\n" + written.ToText();
  }
  static Result<ConvertState> FromText(const std::string& text) {
    ConvertState state;
    std::istringstream in(text);
    std::string words[5];
    if (!(in >> words[0] >> state.input >> words[1] >> state.done >> words[2] >> state.report.parts >> words[3] >>
          state.report.rows >> words[4] >> state.report.bytes) ||
        words[0] != "input" || words[4] != "bytes") {
      return BadData("this is no state of a conversion");
    }
    in.ignore();
    MR_ASSIGN(state.written, ConsumedRanges::FromText(text.substr(static_cast<size_t>(in.tellg()))));
    return state;
  }
};

/// A key over everything that affects the rows, as far as visible from outside.
std::string InputKey(const ConvertRequest& request) {
  uint64_t key = Mix64(HashName(request.desc->SerializeAsString()), request.part_bytes);
  for (const std::string& file : request.files) {
    struct stat info {};
    const bool is_here = ::stat(file.c_str(), &info) == 0;
    key = Mix64(key, HashName(file));
    if (is_here) key = Mix64(Mix64(key, static_cast<uint64_t>(info.st_size)), static_cast<uint64_t>(info.st_mtime));
  }
  char text[20];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(key));
  return text;
}

class Conversion {
 public:
  explicit Conversion(const ConvertRequest& request)
      : request_(&request), state_path_(request.output_dir + "/" + request.prefix + ".state") {}

  Result<ConvertReport> Run(const std::stop_token& stop) {
    MR_TRY(Start());
    if (state_.done) return state_.report;
    DataFeedDesc desc = *request_->desc;
    desc.set_drop_last(false);
    ForgetOwnFeed(&desc);
    QueueDatasetOptions options;
    options.output_dir = request_->output_dir;
    MR_ASSIGN(const std::unique_ptr<QueueDataset> dataset,
              QueueDataset::Create(desc, request_->files, request_->feeds, options));
    const InstantFormat format(dataset->schema(), desc.empty_slot() == DataFeedDesc::ALLOW);
    PassOptions pass;
    pass.ordered = true;
    const ConsumedRanges before = state_.written;
    pass.trained = &before;
    MR_TRY(dataset->BeginPass(pass));
    Status status = WriteAll(*dataset, format, stop);
    Result<PassStats> stats = dataset->EndPass();
    MR_TRY(std::move(status));
    MR_ASSIGN(state_.report.stats, std::move(stats));
    return state_.report;
  }

 private:
  Status Start() {
    MR_TRY(MakeFolder(request_->output_dir));
    const std::string input = InputKey(*request_);
    std::error_code error;
    const bool is_there = fs::exists(state_path_, error);
    if (error) return IoError("cannot look at \"" + state_path_ + "\": " + error.message());
    if (is_there) {
      MR_ASSIGN(const std::string text, ReadFile(state_path_));
      Result<ConvertState> state = ConvertState::FromText(text);
      if (!state.ok()) return std::move(state).status().Context(state_path_);
      if (state->input != input) {
        return InvalidConfig("\"" + request_->output_dir + "\" holds rows of other input, or the files or data_desc " +
                             "have changed since they were written: name another folder, or remove it");
      }
      state_ = std::move(*state);
      state_.report.resumed = true;
      return Status::Ok();
    }
    MR_ASSIGN(const std::vector<std::string> names, NamesIn(request_->output_dir));
    for (const std::string& name : names) {
      if (!name.starts_with(request_->prefix + "-") || name.ends_with(kUnfinishedSuffix)) continue;
      return InvalidConfig(
          "\"" + request_->output_dir + "/" + name +
          "\" is there already and is none of this conversion's: " + "name another folder, or remove it");
    }
    state_.input = input;
    return Status::Ok();
  }

  Status WriteAll(QueueDataset& dataset, const InstantFormat& format, const std::stop_token& stop) {
    std::string bytes;
    while (true) {
      MR_ASSIGN(const BatchPtr batch, dataset.source(0).Next(stop));
      if (batch == nullptr) break;
      bytes.clear();
      MR_TRY(format.Encode(*batch, dataset.files(), &bytes));
      if (!part_) {
        MR_ASSIGN(AtomicFile part, AtomicFile::Create(PartName()));
        part_.emplace(std::move(part));
      }
      MR_TRY(part_->Append(bytes));
      part_bytes_ += bytes.size();
      state_.report.rows += batch->rows();
      for (const BatchSpan& span : batch->spans()) state_.written.Add(span);
      if (part_bytes_ >= request_->part_bytes) MR_TRY(EndPart());
    }
    if (part_) MR_TRY(EndPart());
    state_.done = true;
    return WriteFileAtomically(state_path_, state_.ToText());
  }

  Status EndPart() {
    MR_TRY(part_->Commit());
    part_.reset();
    state_.report.bytes += static_cast<int64_t>(std::exchange(part_bytes_, 0));
    ++state_.report.parts;
    return WriteFileAtomically(state_path_, state_.ToText());
  }

  std::string PartName() const {
    char number[16];
    std::snprintf(number, sizeof(number), "-%05lld", static_cast<long long>(state_.report.parts));
    return request_->output_dir + "/" + request_->prefix + number;
  }

  const ConvertRequest* request_;
  const std::string state_path_;
  ConvertState state_;
  std::optional<AtomicFile> part_;
  uint64_t part_bytes_ = 0;
};

}  // namespace

Result<ConvertReport> ConvertToInstant(const ConvertRequest& request, std::stop_token stop) {
  return Conversion(request).Run(stop);
}

}  // namespace millrace
