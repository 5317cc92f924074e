#include "job/input_headers.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/feed_names.h"
#include "config/validate.h"
#include "datafeed/input_opener.h"
#include "dataset/dataset_factory.h"
#include "dataset/line_input.h"
#include "features/feature_statistics.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

/// Mistakes of headers, of which the first few are shown.
class HeaderMistakes {
 public:
  void Add(const Status& mistake) {
    constexpr int kShown = 10;
    if (!known_.insert(mistake.message()).second) return;  // of a file that trains and is evaluated
    if (++count_ <= kShown) text_ += (count_ == 1 ? "" : "\n") + mistake.message();
    if (count_ == kShown + 1) text_ += "\nand more";
  }
  Status ToStatus() const { return count_ == 0 ? Status::Ok() : BadData(text_).Context("before training"); }

 private:
  std::set<std::string> known_;
  int count_ = 0;
  std::string text_;
};

/// Looks at the first lines of files that are read as `desc` says. Where that is wrong, the compilation of the job says
/// so.
class HeaderCheck {
 public:
  static Result<HeaderCheck> Create(const TrainerDesc& job, const Environment& environment, DataFeedDesc desc) {
    HeaderCheck check;
    if (NeedsStatistics(desc)) ForgetStatistics(&desc);
    const std::string name = FeedNameFor(job.dataset().class_name(), desc);
    MR_ASSIGN(const SlotSchema schema, SlotSchema::Create(desc));
    check.desc_ = std::make_unique<DataFeedDesc>(std::move(desc));
    check.schema_ = std::make_unique<SlotSchema>(schema);
    MR_ASSIGN(check.cut_, environment.feeds.CutOf(name, *check.schema_, *check.desc_));
    if (check.cut_.header == nullptr && !check.has_command()) return check;
    MR_ASSIGN(check.feed_, environment.feeds.Create(name, *check.schema_, *check.desc_));
    return check;
  }

  bool has_command() const { return !cut_.command.empty(); }

  /// Looks at `files` until `end`.
  Status Run(const std::vector<std::string>& files, Clock::time_point end, const std::stop_token& stop,
             HeaderMistakes* mistakes) const {
    if (feed_ == nullptr) return Status::Ok();
    for (const std::string& file : files) {
      std::error_code unknown;
      if (!std::filesystem::is_regular_file(file, unknown)) continue;
      Status looked = LookAt(file, stop);
      if (looked.code() == StatusCode::kBadData) {
        mistakes->Add(looked);
      } else {
        MR_TRY(std::move(looked).Context("before training"));
      }
      if (has_command() || Clock::now() > end) break;
    }
    return Status::Ok();
  }

 private:
  Status LookAt(const std::string& file, const std::stop_token& stop) const {
    const std::vector<std::string> files = {file};
    MR_ASSIGN(const std::unique_ptr<InputOpener> opener, InputOpener::Create(*desc_, files, stop, cut_));
    LineBlockQueue blocks(*opener, files, cut_, {.as_they_come = true});
    LineBlock block;
    MR_ASSIGN(const bool has_lines, blocks.Next(0, block, stop));
    return has_lines ? BeginBlock(block, blocks, feed_.get()) : Status::Ok();
  }

  // What feed and cut refer to.
  std::unique_ptr<DataFeedDesc> desc_;
  std::unique_ptr<SlotSchema> schema_;
  LineCut cut_;
  std::unique_ptr<DataFeed> feed_;  ///< null: nothing is to be looked at
};

}  // namespace

Status CheckInputHeaders(const LoadedConfig& config, const Environment& environment, const std::stop_token& stop) {
  constexpr std::chrono::seconds kMoment{1};
  const Clock::time_point end = Clock::now() + kMoment;
  const TrainerDesc& desc = *config.desc;
  if (desc.infer() || FeedsItself(desc) || !desc.has_data_desc() || !PipeCommandOf(desc.data_desc()).empty())
    return Status::Ok();
  HeaderMistakes mistakes;
  for (const EvalSet& set : config.eval_sets) {
    if (set.is_split) continue;
    DataFeedDesc rows = desc.data_desc();
    ChooseRowsOfSet(desc, set.number, &rows);
    const Result<HeaderCheck> check = HeaderCheck::Create(desc, environment, std::move(rows));
    if (check.ok()) MR_TRY(check->Run(set.files, end, stop, &mistakes));
  }
  // Of days some are done, and others not written yet.
  if (desc.has_incremental()) return mistakes.ToStatus();
  DataFeedDesc rows = desc.data_desc();
  ChooseTrainedRows(desc, &rows);
  const Result<HeaderCheck> check = HeaderCheck::Create(desc, environment, std::move(rows));
  // The reading of rows begins with the schema of the first columnar file.
  if (check.ok() && !check->has_command()) MR_TRY(check->Run(config.files, end, stop, &mistakes));
  return mistakes.ToStatus();
}

}  // namespace millrace
