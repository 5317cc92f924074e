#include "reader/py_array_reader.h"

#include <cstring>
#include <utility>

namespace millrace {

PyArrayReader::PyArrayReader(std::shared_ptr<PyArrayFeedQueue> queue)
    : ReaderBase(queue->shapes()), queue_(std::move(queue)) {}

PyArrayReader::~PyArrayReader() { queue_->Close(Cancelled("the reader of the queue is gone")); }

Result<bool> PyArrayReader::Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) {
  MR_ASSIGN(std::optional<HeldArrays> arrays, queue_->Pop(stop));
  if (!arrays.has_value()) return false;
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
  return InvalidConfig(
      "PyArrayReader does not support ReInit(): what was taken from its queue is gone, so that it cannot "
      "start over; push once more into the queue of a new py_array_reader");
}

}  // namespace millrace
