#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "reader/array_queue.h"
#include "reader/reader.h"

namespace millrace {

/// Reads arrays pushed into a queue until a mark ends the pass or the queue is closed. A restart continues with the
/// next pass: after the mark, or in the reopened queue. Within a pass, a restart drops arrays up to the mark. The
/// destructor closes the queue so that producers do not block forever.
class PyArrayReader final : public ReaderBase {
 public:
  explicit PyArrayReader(std::shared_ptr<PyArrayFeedQueue> queue);
  ~PyArrayReader() override;

  PyArrayFeedQueue& feeder() { return *queue_; }

 private:
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) override;
  Status Restart() override;

  std::shared_ptr<PyArrayFeedQueue> queue_;
  bool is_between_ = true;                  ///< between passes: nothing of the current one was taken
  uint64_t opening_;                        ///< openings() of the queue when the pass began
  std::optional<uint64_t> closed_opening_;  ///< the opening that has ended
};

}  // namespace millrace
