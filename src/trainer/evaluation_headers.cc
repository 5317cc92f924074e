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
#include "features/feature_statistics.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

/// Lets features read columns without what they are to learn from the training files.
void ForgetStatistics(DataFeedDesc* desc) {
  for (FeatureDesc& feature : *desc->mutable_feature()) {
    feature.clear_standardize();
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

/// A set's lines, and how they are read.
class SetHeaders {
 public:
  static Result<SetHeaders> Create(const TrainerDesc& desc, const Environment& environment, const EvalSet& set) {
    SetHeaders headers(environment, desc.data_desc());
    ChooseRowsOfSet(desc, set.number, &headers.desc_);
    if (NeedsStatistics(headers.desc_)) ForgetStatistics(&headers.desc_);
    headers.feed_name_ = FeedNameFor(desc.dataset().class_name(), headers.desc_);
    MR_ASSIGN(headers.schema_, SlotSchema::Create(headers.desc_));
    return headers;
  }

  /// Looks at `files` until `end`.
  Status Check(const std::vector<std::string>& files, std::chrono::steady_clock::time_point end,
               const std::stop_token& stop) const {
    const DataFeedFactory& feeds = environment_->feeds;
    MR_ASSIGN(const LineCut cut, feeds.CutOf(feed_name_, schema_, desc_));
    if (cut.header == nullptr && cut.command.empty()) return Status::Ok();
    MR_ASSIGN(const std::unique_ptr<DataFeed> feed, feeds.Create(feed_name_, schema_, desc_));
    for (const std::string& file : files) {
      std::error_code unknown;
      if (!std::filesystem::is_regular_file(file, unknown)) continue;
      MR_TRY(CheckFile(file, cut, feed.get(), stop));
      if (!cut.command.empty() || std::chrono::steady_clock::now() > end) break;
    }
    return Status::Ok();
  }

 private:
  SetHeaders(const Environment& environment, DataFeedDesc desc) : environment_(&environment), desc_(std::move(desc)) {}

  Status CheckFile(const std::string& file, const LineCut& cut, DataFeed* feed, const std::stop_token& stop) const {
    const std::vector<std::string> files = {file};
    MR_ASSIGN(const std::unique_ptr<InputOpener> opener, InputOpener::Create(desc_, files, stop, cut));
    LineBlockQueue blocks(*opener, files, cut, {.as_they_come = true});
    LineBlock block;
    MR_ASSIGN(const bool has_lines, blocks.Next(0, block, stop));
    return has_lines ? BeginBlock(block, blocks, feed) : Status::Ok();
  }

  const Environment* environment_;
  DataFeedDesc desc_;
  std::string feed_name_;
  SlotSchema schema_;
};

}  // namespace

Status CheckEvaluationHeaders(const LoadedConfig& config, const Environment& environment, const std::stop_token& stop) {
  constexpr std::chrono::seconds kMoment{1};
  const auto end = std::chrono::steady_clock::now() + kMoment;
  const TrainerDesc& desc = *config.desc;
  if (desc.infer() || !desc.has_data_desc() || !PipeCommandOf(desc.data_desc()).empty()) return Status::Ok();
  for (const EvalSet& set : config.eval_sets) {
    if (set.is_split) continue;
    MR_ASSIGN(const SetHeaders headers, SetHeaders::Create(desc, environment, set));
    MR_TRY(headers.Check(set.files, end, stop).Context("before training"));
  }
  return Status::Ok();
}

}  // namespace millrace
