#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "batch/slot_schema.h"
#include "datafeed/data_feed.h"
#include "datafeed/data_frame.h"
#include "datafeed/frame_feed.h"
#include "job/environment.h"
#include "serving/predictor.h"

namespace millrace {

/// The values of one slot for all rows of a call. The caller keeps the memory during the call.
struct ScoredColumn {
  SlotId slot = -1;
  const void* values = nullptr;  ///< of the slot's type: uint64 or float32
  int64_t count = 0;
  const int64_t* offsets = nullptr;  ///< rows + 1 offsets of a sparse slot
};

/// The result of a call.
struct Scores {
  std::vector<float> values;  ///< [rows, predictions]
  int64_t zeros_dropped = 0;
  std::map<std::string, std::string> warnings;  ///< a key repeats until its cause is gone: show each key once
};

/// Scores texts, data frames and columns with a saved model. Any number of threads can score at the same time. A call
/// reuses the buffers of an earlier one.
class ModelScorer {
 public:
  ~ModelScorer();

  struct Options {
    std::string feed;                      ///< PredictorOptions::feed
    std::vector<std::string> given;        ///< variables that are fed instead of computed
    std::string prediction;                ///< empty: the model's own
    std::optional<std::string> data_desc;  ///< a DataFeedDesc in place of the model's own
  };
  /// The errors of Predictor::Load; kInvalidConfig for a data_desc that cannot be parsed. The environment outlives the
  /// scorer.
  static Result<std::unique_ptr<ModelScorer>> Load(const std::string& folder, const Options& options,
                                                   const Environment& environment, std::stop_token stop);

  const Predictor& predictor() const { return *predictor_; }
  const std::vector<std::string>& predictions() const { return names_; }
  bool has_features() const { return predictor_->data_desc().feature_size() > 0; }
  /// Sets of buffers created so far.
  int buffers_made() const { return buffers_made_; }
  /// The columns that scoring reads if the rows lack the slots in `without`. kInvalidConfig for unknown features.
  Result<std::vector<std::string>> Columns(const std::vector<std::string>& without) const;

  /// Scores lines of MultiSlot text, or of the text format of the model, with its header if it has one. `without` lists
  /// slots that the lines lack. If lines name their columns, slots that no score depends on can be missing without
  /// being listed. kBadData with the line of the first bad one; kInvalidConfig if the model reads no text; kCancelled.
  Result<Scores> ScoreText(const Environment& environment, const std::string& text,
                           const std::vector<std::string>& without, const std::stop_token& stop);
  /// Scores the rows of a frame with the columns that the model's features read. kBadData with the row of the first bad
  /// one; kInvalidConfig if a column is missing; kCancelled.
  Result<Scores> ScoreFrame(const Environment& environment, const std::shared_ptr<const DataFrame>& frame,
                            const std::vector<std::string>& without, const std::stop_token& stop);
  /// Scores rows given as slots. Slots that are not given are zero, or empty. The errors of PredictSession::Run;
  /// kCancelled.
  Result<Scores> ScoreColumns(std::span<const ScoredColumn> columns, int64_t rows, const std::stop_token& stop);

 private:
  struct Buffers;

  ModelScorer();
  std::vector<std::string> WithAbsent(std::vector<std::string> without, std::string_view text);
  DataFeedDesc LinesWithout(const std::vector<std::string>& without) const;
  Result<std::unique_ptr<Buffers>> TakeBuffers(const std::vector<std::string>& without);
  Status MakeFeed(const Environment& environment, Buffers* buffers) const;
  Status Finish(std::unique_ptr<Buffers> buffers, std::map<std::string, std::string>* warnings);

  std::unique_ptr<const Predictor> predictor_;
  DataFeedFactory feeds_of_columns_;  ///< of a model with features
  std::vector<std::string> names_;    ///< of the predictions
  const std::shared_ptr<const FeaturePlans> plans_ = std::make_shared<const FeaturePlans>();  ///< of frames
  std::atomic<int> buffers_made_{0};

  std::mutex mutex_;  ///< guards the members below
  std::vector<std::unique_ptr<Buffers>> free_;
  SlotShares shares_;                ///< of the latest rows
  std::string last_header_;          ///< of CSV
  std::vector<std::string> absent_;  ///< slots whose columns it lacks
};

}  // namespace millrace
