#include "reader/batch_reader.h"

#include <cstring>
#include <utility>

namespace millrace {
namespace {

bool SameBehindAxis0(const Dims& a, const Dims& b) {
  if (a.rank() != b.rank() || a.rank() == 0) return false;
  for (int axis = 1; axis < a.rank(); ++axis) {
    if (a[axis] != b[axis]) return false;
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<BatchReader>> BatchReader::Create(std::unique_ptr<ReaderBase> reader, int64_t batch_size,
                                                         bool drop_last) {
  if (batch_size < 1) return InvalidConfig("batch_size is at least 1, not " + std::to_string(batch_size));
  std::vector<TensorSpec> shapes = reader->shapes();
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].dims.rank() == 0) {
      return InvalidConfig("output " + std::to_string(i) + " of the reader, " + shapes[i].ToString() +
                           ", has no axis along which a batch could be made");
    }
    shapes[i].dims.set(0, -1);
  }
  return std::unique_ptr<BatchReader>(
      new BatchReader(std::move(reader), std::move(shapes), static_cast<size_t>(batch_size), drop_last));
}

BatchReader::BatchReader(std::unique_ptr<ReaderBase> reader, std::vector<TensorSpec> shapes, size_t batch_size,
                         bool drop_last)
    : DecoratedReader(std::move(reader), std::move(shapes)), batch_size_(batch_size), drop_last_(drop_last) {}

Result<bool> BatchReader::Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) {
  size_t count = 0;
  for (; count < batch_size_; ++count) {
    reader().Expect(batch_size_ - count);
    if (count == items_.size()) items_.emplace_back();
    MR_ASSIGN(const bool more, reader().ReadNext(&items_[count], stop));
    if (!more) break;
  }
  if (count == 0 || (drop_last_ && count < batch_size_)) return false;
  out->resize(shapes().size());
  for (size_t i = 0; i < out->size(); ++i) {
    MR_TRY(Join(i, count, &(*out)[i]).Context("batch: output " + std::to_string(i)));
  }
  return true;
}

Status BatchReader::Join(size_t index, size_t count, LoDTensor* out) const {
  const LoDTensor& first = items_[0][index];
  Dims dims = first.values.dims();
  int64_t rows = 0;
  out->lod.clear();
  if (!first.lod.empty()) out->lod.push_back(0);
  for (size_t i = 0; i < count; ++i) {
    const LoDTensor& item = items_[i][index];
    if (!SameBehindAxis0(item.values.dims(), dims) || item.values.dtype() != first.values.dtype() ||
        item.lod.empty() != first.lod.empty()) {
      const TensorSpec wanted{first.values.dtype(), dims, first.lod.empty() ? 0 : 1};
      const TensorSpec got{item.values.dtype(), item.values.dims(), item.lod.empty() ? 0 : 1};
      return BadData("item " + std::to_string(i) + " is " + got.ToString() + ", and item 0 is " + wanted.ToString());
    }
    for (size_t k = 1; k < item.lod.size(); ++k) out->lod.push_back(static_cast<uint32_t>(rows) + item.lod[k]);
    rows += item.values.dims()[0];
  }
  dims.set(0, rows);
  char* to = static_cast<char*>(out->values.ResizeRaw(first.values.dtype(), dims));
  for (size_t i = 0; i < count; ++i) {
    const Tensor& values = items_[i][index].values;
    const size_t bytes = BytesOf(values);
    if (bytes > 0) std::memcpy(to, values.raw_data(), bytes);
    to += bytes;
  }
  return Status::Ok();
}

}  // namespace millrace
