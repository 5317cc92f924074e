#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "reader/array_queue.h"
#include "reader/reader.h"

namespace millrace {

/// Reads what is pushed into a queue, until a mark that ends the pass, or until it is closed. Starting over goes on
/// with what is pushed for the next pass: behind the mark, or into the queue that was opened again; within a pass, the
/// arrays up to its mark are dropped. Destroyed, it closes the queue, so that producers do not wait for ever.
class PyArrayReader final : public ReaderBase {
 public:
  explicit PyArrayReader(std::shared_ptr<PyArrayFeedQueue> queue);
  ~PyArrayReader() override;

  PyArrayFeedQueue& feeder() { return *queue_; }

 private:
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) override;
  Status Restart() override;

  std::shared_ptr<PyArrayFeedQueue> queue_;
  bool is_between_ = true;                  ///< passes: nothing of this one was taken
  uint64_t opening_;                        ///< of the queue, when the pass began
  std::optional<uint64_t> closed_opening_;  ///< that had come to its end
};

}  // namespace millrace
