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

/// Remembers what was said, so that threads and files do not say it again. Any thread.
class SaidOnce {
 public:
  bool IsNew(const std::string& words) {
    const std::lock_guard lock(mutex_);
    return said_.insert(words).second;
  }

 private:
  std::mutex mutex_;
  std::set<std::string> said_;
};

/// What the rows of a ColumnFeed become.
struct ColumnSetup {
  std::shared_ptr<const FeaturePlan> plan;  ///< of the slots of the feed's schema
  MultiSlotOptions options;
  /// Of a feed that gathers statistics, in place of `plan`: rows are added to these, and have no values. They outlive
  /// the feed.
  FeatureStatistics* statistics = nullptr;
  std::shared_ptr<SaidOnce> said;  ///< by the feeds of this plan; null: nothing is said
  /// Rows are scored with a saved model, whose job no advice can change, and lines may lack the columns of slots that
  /// the schema lacks.
  bool scores = false;
};

/// A feed of a format whose rows have named columns, of which features make slots (data_desc.feature): a class of its
/// own cuts a line into the texts of the columns. One thread.
class ColumnFeed : public FormatFeed, public NamedValuesFeed {
 public:
  ValueNames names() const override;

 protected:
  /// Where rows come from. For files it also notes how their columns write whole numbers and truth values. Texts of
  /// frames never lie in the line.
  enum class Source : uint8_t { kFiles, kFrames };
  /// `schema` must outlive it.
  ColumnFeed(const SlotSchema& schema, const ColumnSetup& setup, const DataFeedDesc& desc,
             Source source = Source::kFiles);

  // For Read.

  /// What a column has of a text of the format: without spaces around it, and nothing where csv.missing has it.
  std::string_view Taken(std::string_view text) const {
    if (trims_) text = WithoutSpaces(text);
    return missing_.empty() || !IsMissing(text) ? text : text.substr(0, 0);
  }
  /// Where the text of each of plan().columns() goes, empty for one that is missing. FeatureRow::Make says how.
  std::span<std::string_view> texts() { return texts_; }
  /// Where in the line each of them stands, from 0.
  std::span<size_t> begins() { return begins_; }
  /// Makes a row of texts(), which are parts of `line` or lie elsewhere, and of `lists`, as FeatureRow::Make has it.
  LineResult PutRow(std::string_view line, std::span<const FeatureRow::List> lists = {});

  /// Whose columns are read.
  const FeaturePlan& plan() const { return plan_; }
  /// As ColumnSetup has it.
  bool scores() const { return scores_; }

 private:
  LineResult MakeRow(std::string_view line, std::span<const FeatureRow::List> lists);
  LineResult PutNothing();
  /// Says where the value of a Put that failed stands, and what to do about it.
  void FailPut(const FeaturePlan::Feature& feature);
  /// kRow where the row is one of the times that are meant, kBlank where it is of others.
  LineResult LookAtTime();
  bool IsMissing(std::string_view text) const;
  LineResult FailRow(std::string_view line, const FeatureError& error);

  const Source source_;
  const bool scores_;
  const bool takes_missing_;  ///< csv.missing can say what means that there is no value
  FeatureStatistics* const statistics_;
  FeatureRow row_;  ///< without statistics
  const FeaturePlan& plan_;
  const bool trims_;
  const std::vector<std::string> missing_;
  std::vector<std::string_view> texts_;
  std::vector<size_t> begins_;
  SeenTimes times_;
  NumberForms forms_;
  int64_t rows_ = 0;
};

/// What to do about input that is `what` ("JSON lines"), which the format of this name reads.
std::string FormatAdvice(const std::string& what, const std::string& format);
/// The same for the first line of a file that is no text but Parquet or Arrow; empty for others.
std::string ColumnarFormatAdvice(std::string_view line);

/// Whether other programs mean by this text that there is no value: "NA", "null".
bool MeansNothing(std::string_view text);

/// Compiles the plans of makers, which are called once for each thread: a plan that is the last one's is shared, as its
/// vocabularies may be large. Any thread.
class FeaturePlans {
 public:
  FeaturePlans();
  ~FeaturePlans();
  Result<ColumnSetup> Setup(const SlotSchema& schema, const DataFeedDesc& desc) const;
  /// Lets feeds that are set up from now on say again what others have said.
  void ForgetSaid() const;

 private:
  struct Last;
  const std::unique_ptr<Last> last_;
};

}  // namespace millrace
