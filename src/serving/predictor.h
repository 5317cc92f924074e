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

/// Which part of a saved model is loaded, and how its lines are read.
struct PredictorOptions {
  std::string feed = "offline";    ///< or "online", "targets"
  std::vector<std::string> given;  ///< variables that are fed in place of what computes them, as of "online"
  /// Of several: a variable that a model of Paddle returns, or a loss of ours by its name or variable. Empty: the only
  /// one, of ours all.
  std::string prediction;
  bool every_prediction = false;            ///< all of them, for who does not score
  bool keeps_logits = false;                ///< for PredictSession::logits
  const DataFeedDesc* data_desc = nullptr;  ///< instead of the model's own
  const DataFeedFactory* feeds = nullptr;   ///< that will read lines; looked at for warnings() alone
  std::stop_token stop;                     ///< ends the loading: kCancelled
};

/// A saved model as a program and its variables, for who runs it himself.
struct LoadedModel {
  ProgramDesc program;               ///< the forward part, fed with ids
  std::vector<std::string> feeds;    ///< variables, in the order of the model's list
  std::vector<std::string> fetches;  ///< what it returns
  uint64_t seed = 1;                 ///< that rows which a table does not have start by
  std::unique_ptr<Scope> root;
  std::vector<std::string> warnings;  ///< those of a Predictor
};

/// A saved model, ready to score. Constant and thread-safe after Load; each caller makes a session of its own.
class Predictor {
 public:
  ~Predictor();
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  /// Reads and checks the folder that SaveInferenceModel wrote, or a model of Paddle (FindPaddleModel). `registry`
  /// must outlive the predictor. kNotFound for a folder that is no model, kBadData for a damaged file, kInvalidConfig
  /// for a feed, a prediction or slots that the model does not have, and for operators of plugins that are not loaded.
  static Result<std::unique_ptr<const Predictor>> Load(const std::string& folder, const OpRegistry& registry,
                                                       const PredictorOptions& options);

  /// The same for a caller with a scope of his own; everything that the model returns, its targets.
  static Result<LoadedModel> LoadProgram(const std::string& folder, const OpRegistry& registry,
                                         std::stop_token stop = {});

  /// How lines are read, as in training.
  const DataFeedDesc& data_desc() const { return data_desc_; }
  const SlotSchema& schema() const { return *schema_; }
  /// Slots that a score depends on.
  const std::vector<std::string>& feeds() const { return feeds_; }
  /// What rows are scored by, one or more, in the order of the scores of a row. Of an every_prediction load none.
  const std::vector<ModelTask>& tasks() const { return tasks_; }
  /// Scores that task `task` has for a row: one, or that of each class where it predicts more than two.
  size_t scores_of(size_t task) const { return scores_of_[task]; }
  /// Whether the score of a task is the sigmoid of what PredictSession::logits has of it.
  bool has_logit(size_t task) const { return !orders_.empty() && orders_[task] != tasks_[task].prediction(); }
  /// Names of the scores of a row: of tasks, or of the variable of an only one; "NAME[0]" and so on of classes.
  std::vector<std::string> columns() const;
  /// Whether operators run blocks of others, as loops do: only then may a batch take for ever.
  bool has_blocks() const { return executable_->block_count() > 1; }
  /// A line for each plugin that is loaded in another version than the one that the model was saved with.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// What the slots' values were in the evaluation before the model was saved; empty: not known.
  const SlotShares& slot_shares() const { return slot_shares_; }
  /// kInvalidConfig where `feeds` has not the class that reads the model's lines: with the plugin that brings it, as
  /// far as the model says, and how one is loaded.
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
  std::vector<ModelTask> tasks_;      ///< whose predictions rows are scored by; none: all fetches are wanted
  std::vector<size_t> scores_of_;     ///< of each task
  std::vector<std::string> orders_;   ///< of each task, the logit or else the prediction; empty: they are not wanted
  std::vector<std::string> warnings_;
  SlotShares slot_shares_;
  std::string lines_plugin_;   ///< what the model says of the plugin that reads its lines
  std::string plugin_advice_;  ///< of the registry
  uint64_t seed_ = 1;
  std::shared_ptr<const ProgramDesc> program_;
  std::unique_ptr<Scope> root_;
  std::unique_ptr<const Executable> executable_;
  std::unique_ptr<PackedWeights> packed_weights_;  ///< of root_, for all sessions
};

/// One caller's place to score batches. One thread; allocates nothing once it has seen the largest batch.
class PredictSession {
 public:
  /// For batches of `schema`: the predictor's, or one without slots that a score does not need. Both must outlive the
  /// session. `max_rows`: the largest batch that is expected. `files`: those that rows come from, by RowOrigin::file,
  /// for messages; null: none have names.
  static Result<std::unique_ptr<PredictSession>> Create(const Predictor& predictor, const SlotSchema& schema,
                                                        int max_rows, const std::vector<std::string>* files = nullptr);

  /// Scores the rows of a batch of the session's schema, in their order: columns() scores of the first one, then those
  /// of the next. Valid until the next call. A stop request ends a loop of the model: kCancelled.
  Result<std::span<const float>> Run(const SlotBatch& batch, std::stop_token stop = {});
  /// What the slots' values were in the rows that were scored since the last call.
  Status TakeShares(SlotShares* shares) { return watch_.AddTo(shares); }
  /// Rows since then whose values were looked at.
  int64_t rows_looked() const { return watch_.rows_looked(); }
  /// Scores of a row: those of each of the predictor's tasks.
  size_t columns() const { return columns_; }
  /// As the scores of the last Run, with the logit in place of a score that is the sigmoid of one. With
  /// PredictorOptions::keeps_logits alone.
  std::span<const float> logits() const { return logits_; }

 private:
  /// Of a task, in the frame.
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
  std::vector<Prediction> orders_;  ///< as predictions_, of logits; empty: they are not wanted
  size_t columns_ = 0;
  const std::vector<std::string>* files_ = nullptr;
  std::vector<float> scores_;
  std::vector<float> logits_;
};

}  // namespace millrace
