#include "trainer/evaluation_headers.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/feed_names.h"
#include "datafeed/input_opener.h"
#include "dataset/dataset_factory.h"
#include "dataset/line_input.h"

namespace millrace {
namespace {

/// A set's lines, and how they are read.
class SetHeaders {
 public:
  SetHeaders(const CompiledJob& job, const EvalSet& set) : job_(&job), desc_(job.desc().data_desc()) {
    ChooseRowsOfSet(job.desc(), set.number, &desc_);
  }

  /// Looks at `files` until `end`.
  Status Check(const std::vector<std::string>& files, std::chrono::steady_clock::time_point end,
               const std::stop_token& stop) const {
    const DataFeedFactory& feeds = job_->environment().feeds;
    const std::string name = FeedNameFor(job_->desc().dataset().class_name(), desc_);
    MR_ASSIGN(const LineCut cut, feeds.CutOf(name, job_->schema(), desc_));
    if (cut.header == nullptr && cut.command.empty()) return Status::Ok();
    MR_ASSIGN(const std::unique_ptr<DataFeed> feed, feeds.Create(name, job_->schema(), desc_));
    for (const std::string& file : files) {
      std::error_code unknown;
      if (!std::filesystem::is_regular_file(file, unknown)) continue;
      MR_TRY(CheckFile(file, cut, feed.get(), stop));
      if (!cut.command.empty() || std::chrono::steady_clock::now() > end) break;
    }
    return Status::Ok();
  }

 private:
  Status CheckFile(const std::string& file, const LineCut& cut, DataFeed* feed, const std::stop_token& stop) const {
    const std::vector<std::string> files = {file};
    MR_ASSIGN(const std::unique_ptr<InputOpener> opener, InputOpener::Create(desc_, files, stop, cut));
    LineBlockQueue blocks(*opener, files, cut, {.as_they_come = true});
    LineBlock block;
    MR_ASSIGN(const bool has_lines, blocks.Next(0, block, stop));
    return has_lines ? BeginBlock(block, blocks, feed) : Status::Ok();
  }

  const CompiledJob* job_;
  DataFeedDesc desc_;
};

}  // namespace

Status CheckEvaluationHeaders(const CompiledJob& job, const std::stop_token& stop) {
  constexpr std::chrono::seconds kMoment{1};
  const auto end = std::chrono::steady_clock::now() + kMoment;
  if (job.desc().infer() || job.feeds_itself() || !PipeCommandOf(job.desc().data_desc()).empty()) return Status::Ok();
  for (const EvalSet& set : job.config().eval_sets) {
    if (!set.is_split) MR_TRY(SetHeaders(job, set).Check(set.files, end, stop));
  }
  return Status::Ok();
}

}  // namespace millrace
