#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "batch/slot_batch.h"
#include "batch/slot_schema.h"
#include "core/status.h"
#include "data_feed.pb.h"
#include "inference_model.pb.h"
#include "runtime/frame.h"
#include "runtime/scope.h"
#include "serving/slot_watch.h"

namespace millrace {

class DataFeedFactory;
class PackedWeights;

/// The part of a saved model to load, and how to read lines.
struct PredictorOptions {
  std::string feed = "offline";    ///< or "online", "targets"
  std::vector<std::string> given;  ///< variables fed instead of being computed, as for "online"
  /// Selects among several: a variable returned by a Paddle model, or a loss of ours by name or variable. Empty: the
  /// only one; for our models, all.
  std::string prediction;
  bool every_prediction = false;            ///< all predictions, without scoring
  bool keeps_logits = false;                ///< enables PredictSession::logits
  const DataFeedDesc* data_desc = nullptr;  ///< instead of the model's own
  const DataFeedFactory* feeds = nullptr;   ///< used only for warnings()
  std::stop_token stop;                     ///< cancels loading (kCancelled)
};

/// A saved model as a program and its variables, to be run by the caller.
struct LoadedModel {
  ProgramDesc program;               ///< the forward part, fed with ids
  std::vector<std::string> feeds;    ///< variables, in the order of the model's list
  std::vector<std::string> fetches;  ///< returned variables
  uint64_t seed = 1;                 ///< seed of initial rows for ids not in a table
  std::unique_ptr<Scope> root;
  std::vector<std::string> warnings;  ///< warnings of the Predictor
};

/// A saved model, ready to score. Immutable and thread-safe after Load; each caller creates its own session.
class Predictor {
 public:
  ~Predictor();
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  /// Loads and checks a folder of SaveInferenceModel or a model of Paddle (FindPaddleModel). `registry` must outlive
  /// the predictor. Fails with kNotFound for a folder without a model, kBadData for a damaged file, kIo if one cannot
  /// be read, kInvalidConfig for a feed, a prediction or slots that the model lacks or for operators of plugins that
  /// are not loaded, kCancelled after a stop request.
  static Result<std::unique_ptr<const Predictor>> Load(const std::string& folder, const OpRegistry& registry,
                                                       const PredictorOptions& options);

  /// Loads a model for a caller with its own scope, with everything that the model returns. Fails like Load.
  static Result<LoadedModel> LoadProgram(const std::string& folder, const OpRegistry& registry,
                                         std::stop_token stop = {});

  /// The line format of training.
  const DataFeedDesc& data_desc() const { return data_desc_; }
  const SlotSchema& schema() const { return *schema_; }
  /// Slots that affect a score.
  const std::vector<std::string>& feeds() const { return feeds_; }
  /// The tasks for which rows are scored, in the order of a row's scores. Empty with every_prediction.
  const std::vector<ModelTask>& tasks() const { return tasks_; }
  /// Scores of task `task` per row: one, or one per class for more than two classes.
  size_t scores_of(size_t task) const { return scores_of_[task]; }
  /// Whether a task's score is the sigmoid of its value in PredictSession::logits.
  bool has_logit(size_t task) const { return !orders_.empty() && orders_[task] != tasks_[task].prediction(); }
  /// Names of a row's scores: by task, or by variable for a single one; "NAME[0]" and so on for classes.
  std::vector<std::string> columns() const;
  /// Whether operators run inner blocks, such as loops: only then can a batch run forever.
  bool has_blocks() const { return executable_->block_count() > 1; }
  /// A line for each plugin loaded in another version than when the model was saved.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Value statistics of the slots in the evaluation before the save; empty: unknown.
  const SlotShares& slot_shares() const { return slot_shares_; }
  /// Fails with kInvalidConfig if `feeds` lacks the class that reads the model's lines, naming the plugin, if known,
  /// and how to load it.
  Status CheckLines(const DataFeedFactory& feeds) const;

 private:
  friend class PredictSession;
  Predictor();
  Status LoadAny(const std::string& folder, const OpRegistry& registry, const PredictorOptions& options);
  Status LoadOwn(const std::string& folder, const OpRegistry& registry, const PredictorOptions& options);
  Status LoadPaddle(const std::string& folder, const OpRegistry& registry, const PredictorOptions& options);
  Status FeedGiven(const std::vector<std::string>& given, ProgramDesc* program);
  Status Compile(ProgramDesc program, const OpRegistry& registry, const PredictorOptions& wanted);

  DataFeedDesc data_desc_;
  std::unique_ptr<const SlotSchema> schema_;
  std::vector<std::string> feeds_;
  std::vector<std::string> fetches_;  ///< what the model returns
  std::vector<ModelTask> tasks_;      ///< tasks that score rows; empty: all fetches are returned
  std::vector<size_t> scores_of_;     ///< by task
  std::vector<std::string> orders_;   ///< by task, the logit or else the prediction; empty: not requested
  std::vector<std::string> warnings_;
  SlotShares slot_shares_;
  std::string lines_plugin_;   ///< the model's description of the plugin that reads its lines
  std::string plugin_advice_;  ///< from the registry
  uint64_t seed_ = 1;
  std::shared_ptr<const ProgramDesc> program_;
  std::unique_ptr<Scope> root_;
  std::unique_ptr<const Executable> executable_;
  std::unique_ptr<PackedWeights> packed_weights_;  ///< for root_, shared by all sessions
};

/// Scores batches for one caller. One thread; does not allocate once it has seen the largest batch.
class PredictSession {
 public:
  /// For batches of `schema`: the predictor's, or one without slots that scores do not need. Both must outlive the
  /// session. `max_rows`: the largest expected batch. `files`: names by RowOrigin::file for messages; null: none. Fails
  /// with kInvalidConfig if `schema` lacks a needed slot, and like Frame::Create.
  static Result<std::unique_ptr<PredictSession>> Create(const Predictor& predictor, const SlotSchema& schema,
                                                        int max_rows, const std::vector<std::string>* files = nullptr);

  /// Scores the rows of a batch of the session's schema, in order: columns() scores per row. Valid until the next call.
  /// Fails like Frame::Run, kInvalidConfig if a prediction has an unsuitable shape or type, kCancelled if a stop
  /// request ends a loop of the model.
  Result<std::span<const float>> Run(const SlotBatch& batch, std::stop_token stop = {});
  /// Adds value statistics of the rows scored since the last call. Fails like SlotWatch::AddTo.
  Status TakeShares(SlotShares* shares) { return watch_.AddTo(shares); }
  /// Rows sampled since then.
  int64_t rows_looked() const { return watch_.rows_looked(); }
  /// Scores per row, over all tasks.
  size_t columns() const { return columns_; }
  /// Like the scores of the last Run, with logits instead of their sigmoids. Requires PredictorOptions::keeps_logits.
  std::span<const float> logits() const { return logits_; }

 private:
  /// A task's tensor in the frame.
  struct Prediction {
    std::string name;
    const Tensor* tensor;
    size_t scores;
  };

  PredictSession() = default;
  Result<const Tensor*> Find(const std::string& name) const;
  Status Take(const Prediction& prediction, int rows, size_t first, std::vector<float>* into) const;

  std::unique_ptr<Frame> frame_;
  SlotWatch watch_;
  std::vector<Prediction> predictions_;
  std::vector<Prediction> orders_;  ///< logits for predictions_; empty: not requested
  size_t columns_ = 0;
  const std::vector<std::string>* files_ = nullptr;
  std::vector<float> scores_;
  std::vector<float> logits_;
};

}  // namespace millrace
