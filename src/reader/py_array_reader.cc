#include "reader/py_array_reader.h"

#include <cstring>
#include <utility>

namespace millrace {

PyArrayReader::PyArrayReader(std::shared_ptr<PyArrayFeedQueue> queue)
    : ReaderBase(queue->shapes()), queue_(std::move(queue)), opening_(queue_->openings()) {}

PyArrayReader::~PyArrayReader() { queue_->Close(Cancelled("the reader of the queue is gone")); }

Result<bool> PyArrayReader::Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) {
  const uint64_t opening = queue_->openings();
  MR_ASSIGN(std::optional<HeldArrays> arrays, queue_->Pop(stop));
  if (!arrays.has_value()) {
    closed_opening_ = opening;
    return false;
  }
  is_between_ = arrays->empty();
  if (is_between_) return false;
  out->resize(arrays->size());
  for (size_t i = 0; i < arrays->size(); ++i) {
    const HeldArray& array = (*arrays)[i];
    LoDTensor& tensor = (*out)[i];
    void* to = tensor.values.ResizeRaw(array.dtype, array.dims);
    const size_t bytes = static_cast<size_t>(array.dims.numel()) * SizeOf(array.dtype);
    if (bytes > 0) std::memcpy(to, array.data, bytes);
    tensor.lod.clear();
  }
  return true;
}

Status PyArrayReader::Restart() {
  const uint64_t openings = queue_->openings();
  if (closed_opening_ == openings) {
    return InvalidConfig(
        "PyArrayReader does not support ReInit(): its queue was closed, and what was taken from it is gone. End each "
        "pass but the last by queue.end_pass(), which leaves it open, or call queue.reopen() and push once more; the "
        "parameters stay as they are");
  }
  while (!is_between_ && opening_ == openings) {
    const std::optional<HeldArrays> dropped = queue_->TryPop();
    if (!dropped.has_value()) {
      return InvalidConfig(
          "PyArrayReader does not support ReInit(): this pass has no end yet; call queue.end_pass() first");
    }
    is_between_ = dropped->empty();
  }
  is_between_ = true;
  closed_opening_.reset();
  opening_ = openings;
  return Status::Ok();
}

}  // namespace millrace
