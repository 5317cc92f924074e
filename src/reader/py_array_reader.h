#pragma once

#include <memory>

#include "reader/array_queue.h"
#include "reader/reader.h"

namespace millrace {

/// Reads what is pushed into a queue, until it is closed. Starting over is not possible: what was taken is gone.
/// Destroyed, or at a failure, it closes the queue, so that producers do not wait for ever.
class PyArrayReader final : public ReaderBase {
 public:
  explicit PyArrayReader(std::shared_ptr<PyArrayFeedQueue> queue);
  ~PyArrayReader() override;

  PyArrayFeedQueue& feeder() { return *queue_; }

 private:
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) override;
  Status Restart() override;

  std::shared_ptr<PyArrayFeedQueue> queue_;
};

}  // namespace millrace
