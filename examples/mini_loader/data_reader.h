#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "core/channel.h"
#include "dataset.h"
#include "runtime/tensor.h"

namespace mini {

/// Puts a batch of samples into the operator's output.
template <class LoadTarget>
class Parser {
 public:
  virtual ~Parser() = default;
  virtual void Parse(const LoadTargetList<LoadTarget>& batch, millrace::Tensor* out) = 0;
};

/// A reader = a loader, which a thread of its own keeps a few batches ahead, and a parser, which runs in the operator.
///
/// The thread starts with the first Read, so that a reader that nobody reads costs nothing; it is stopped and joined
/// with the object. One caller at a time.
template <class LoadTarget>
class DataReader {
 public:
  DataReader(std::unique_ptr<Dataset<LoadTarget>> loader, std::unique_ptr<Parser<LoadTarget>> parser)
      : loader_(std::move(loader)), parser_(std::move(parser)) {}

  /// Waits for the next batch and parses it into `out`. The loader's failure; kCancelled at a stop request.
  millrace::Status Read(millrace::Tensor* out, const std::stop_token& stop) {
    MR_ASSIGN(const LoadTargetList<LoadTarget> batch, Next(stop));
    parser_->Parse(batch, out);
    return millrace::Status::Ok();
  }

  /// Batches that were read or skipped.
  uint64_t batches() const { return batch_count_; }
  /// Reads on to where a reader of the same loader stood that has read `batches`: without the thread, when nothing was
  /// read yet.
  millrace::Status SkipTo(uint64_t batches, const std::stop_token& stop) {
    for (; batch_count_ < batches && !load_thread_.joinable(); ++batch_count_) MR_TRY(loader_->Next(stop).status());
    while (batch_count_ < batches) MR_TRY(Next(stop).status());
    return millrace::Status::Ok();
  }

 private:
  static constexpr size_t kBatchesAhead = 2;

  millrace::Result<LoadTargetList<LoadTarget>> Next(const std::stop_token& stop) {
    if (!load_thread_.joinable()) StartLoadThread();
    MR_ASSIGN(std::optional<LoadTargetList<LoadTarget>> batch, batches_.Pop(stop));
    if (!batch) return millrace::Internal("a loader ended, which has no end");
    ++batch_count_;
    return *std::move(batch);
  }
  void StartLoadThread() {
    load_thread_ = std::jthread([this](const std::stop_token& stop) { batches_.Close(Load(stop)); });
  }
  millrace::Status Load(const std::stop_token& stop) {
    for (;;) {
      MR_ASSIGN(LoadTargetList<LoadTarget> batch, loader_->Next(stop));
      MR_TRY(batches_.Push(std::move(batch), stop));
    }
  }

  std::unique_ptr<Dataset<LoadTarget>> loader_;
  std::unique_ptr<Parser<LoadTarget>> parser_;
  millrace::Channel<LoadTargetList<LoadTarget>> batches_{kBatchesAhead};
  uint64_t batch_count_ = 0;
  std::jthread load_thread_;  ///< last, so that it ends before what it fills
};

}  // namespace mini
