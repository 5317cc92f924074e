#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "data_feed.pb.h"
#include "framework/executable.h"
#include "framework/scope.h"
#include "framework/slot_batch.h"
#include "framework/slot_schema.h"

namespace millrace {

/// Which part of a saved model is loaded, and how its lines are read.
struct PredictorOptions {
  std::string feed = "offline";             ///< or "online"
  std::string prediction;                   ///< of several that a model of Paddle returns; empty: its only one
  const DataFeedDesc* data_desc = nullptr;  ///< instead of the model's own
};

/// A saved model, ready to score. Constant and thread-safe after Load; each caller makes a session of its own.
class Predictor {
 public:
  /// Reads and checks the folder that SaveInferenceModel wrote, or a model of Paddle (FindPaddleModel). `registry`
  /// must outlive the predictor. kNotFound for a folder that is no model, kBadData for a damaged file, kInvalidConfig
  /// for a feed, a prediction or slots that the model does not have.
  static Result<std::unique_ptr<const Predictor>> Load(const std::string& folder, const OpRegistry& registry,
                                                       const PredictorOptions& options);

  /// How lines are read, as in training.
  const DataFeedDesc& data_desc() const { return data_desc_; }
  const SlotSchema& schema() const { return *schema_; }
  /// Slots that a score depends on.
  const std::vector<std::string>& feeds() const { return feeds_; }

 private:
  friend class PredictSession;
  Predictor() = default;
  Status LoadOwn(const std::string& folder, const OpRegistry& registry, const PredictorOptions& options);
  Status LoadPaddle(const std::string& folder, const OpRegistry& registry, const PredictorOptions& options);
  Status Compile(const ProgramDesc& program, const OpRegistry& registry);

  DataFeedDesc data_desc_;
  std::unique_ptr<const SlotSchema> schema_;
  std::vector<std::string> feeds_;
  std::string prediction_;
  uint64_t seed_ = 1;
  std::unique_ptr<Scope> root_;
  std::unique_ptr<const Executable> executable_;
};

/// One caller's place to score batches. One thread; allocates nothing once it has seen the largest batch.
class PredictSession {
 public:
  /// For batches of `schema`: the predictor's, or one without slots that a score does not need. Both must outlive the
  /// session. `max_rows`: the largest batch that is expected.
  static Result<std::unique_ptr<PredictSession>> Create(const Predictor& predictor, const SlotSchema& schema,
                                                        int max_rows);

  /// Scores the rows of a batch of the session's schema, in their order. Valid until the next call.
  Result<std::span<const float>> Run(const SlotBatch& batch);

 private:
  PredictSession() = default;
  std::unique_ptr<Frame> frame_;
  const Tensor* prediction_ = nullptr;
  std::string prediction_name_;
  std::vector<float> scores_;
};

}  // namespace millrace
