#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datafeed/format_feed.h"
#include "datafeed/number_forms.h"
#include "features/feature_plan.h"
#include "features/feature_row.h"
#include "features/feature_statistics.h"
#include "features/value_text.h"

namespace millrace {

/// Remembers logged messages so that threads and files do not repeat them. Any thread.
class WarnOnce {
 public:
  bool IsNew(const std::string& words) {
    const std::lock_guard lock(mutex_);
    return said_.insert(words).second;
  }

 private:
  std::mutex mutex_;
  std::set<std::string> said_;
};

/// How a ColumnFeed builds rows.
struct ColumnSetup {
  std::shared_ptr<const FeaturePlan> plan;  ///< for the slots of the feed's schema
  MultiSlotOptions options;
  /// For a feed that gathers statistics, used instead of `plan`: rows are added to it and have no values. Must outlive
  /// the feed.
  FeatureStatistics* statistics = nullptr;
  std::shared_ptr<WarnOnce> said;  ///< messages logged by feeds of this plan; null: no messages
  /// Rows are scored with a saved model: messages give no advice on the job, and lines may lack columns of slots that
  /// the schema lacks.
  bool scores = false;
};

/// A feed for a format with named columns, from which features make slots (data_desc.feature). A subclass splits a line
/// into the columns' strings. One thread.
class ColumnFeed : public FormatFeed, public NamedValuesFeed {
 public:
  ValueNames names() const override;

 protected:
  /// The source of the rows. For files, the feed also records how columns write integers and booleans. Strings of
  /// frames never lie in the line.
  enum class Source : uint8_t { kFiles, kFrames };
  /// `schema` must outlive it.
  ColumnFeed(const SlotSchema& schema, const ColumnSetup& setup, const DataFeedDesc& desc,
             Source source = Source::kFiles);

  // For Read.

  /// The value of a field: without surrounding spaces, and empty if csv.missing contains it.
  std::string_view Taken(std::string_view text) const {
    if (trims_) text = WithoutSpaces(text);
    return missing_.empty() || !IsMissing(text) ? text : text.substr(0, 0);
  }
  /// The strings of plan().columns(); empty: missing. See FeatureRow::Make.
  std::span<std::string_view> texts() { return texts_; }
  /// Their positions in the line, from 0.
  std::span<size_t> begins() { return begins_; }
  /// Makes a row from texts(), which lie in `line` or elsewhere, and `lists` (see FeatureRow::Make).
  LineResult PutRow(std::string_view line, std::span<const FeatureRow::List> lists = {});

  /// The plan with the columns to read.
  const FeaturePlan& plan() const { return plan_; }
  /// See ColumnSetup::scores.
  bool scores() const { return scores_; }

 private:
  LineResult MakeRow(std::string_view line, std::span<const FeatureRow::List> lists);
  LineResult PutNothing();
  /// Adds the value's position and advice to the error of a failed Put.
  void FailPut(const FeaturePlan::Feature& feature);
  /// kRow if the row's time is selected, kBlank otherwise.
  LineResult LookAtTime();
  bool IsMissing(std::string_view text) const;
  LineResult FailRow(std::string_view line, const FeatureError& error);

  const Source source_;
  const bool scores_;
  const bool takes_missing_;  ///< the format supports csv.missing
  FeatureStatistics* const statistics_;
  FeatureRow row_;  ///< unused with statistics
  const FeaturePlan& plan_;
  const bool trims_;
  const std::vector<std::string> missing_;
  std::vector<std::string_view> texts_;
  std::vector<size_t> begins_;
  SeenTimes times_;
  NumberForms forms_;
  int64_t rows_ = 0;
};

/// Advice for input that is `what` ("JSON lines") and needs the format of this name.
std::string FormatAdvice(const std::string& what, const std::string& format);
/// The same if the first line of a file shows that it is Parquet or Arrow; empty otherwise.
std::string ColumnarFormatAdvice(std::string_view line);

/// Whether other programs write this string for a missing value: "NA", "null".
bool IsMissingMarker(std::string_view text);

/// Compiles feature plans for feeds. Threads share the plan of the last call if the description is the same, because
/// vocabularies can be large. Any thread.
class FeaturePlans {
 public:
  FeaturePlans();
  ~FeaturePlans();
  /// Fails like FeaturePlan::Create.
  Result<ColumnSetup> Setup(const SlotSchema& schema, const DataFeedDesc& desc) const;
  /// Lets feeds created from now on repeat messages.
  void ForgetSaid() const;

 private:
  struct Last;
  const std::unique_ptr<Last> last_;
};

}  // namespace millrace
