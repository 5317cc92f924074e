#include "runtime/tensor.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace millrace {
namespace {

// Half of the range of size_t, so that growth cannot overflow.
constexpr size_t kMostBytes = SIZE_MAX / 2;

size_t BytesOf(DType type, const Dims& dims) {
  const std::span<const int64_t> sizes = dims.sizes();
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; })) {
    throw std::invalid_argument("a tensor of negative size " + dims.ToString());
  }
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  size_t bytes = SizeOf(type);
  for (const int64_t size : sizes) {
    if (bytes > kMostBytes / static_cast<size_t>(size)) throw NoMemory(type, dims);
    bytes *= static_cast<size_t>(size);
  }
  return bytes;
}

}  // namespace

const void* Tensor::Raw(DType type) const {
  if (type != dtype_) {
    throw std::invalid_argument("a tensor of " + std::string(DTypeName(dtype_)) + " was taken for one of " +
                                std::string(DTypeName(type)));
  }
  CheckOnHost();
  return data_;
}

void Tensor::ThrowNotOn(const Device& other) const {
  throw std::invalid_argument("a tensor in the memory of device \"" + device().name() +
                              "\" was taken for one in that of \"" + other.name() + "\"");
}

void* Tensor::ResizeRaw(DType type, const Dims& dims) {
  if (dims.too_many()) {
    throw std::invalid_argument("a tensor of more axes than " + std::to_string(Dims::kMaxRank) + ": " +
                                dims.ToString());
  }
  const size_t bytes = BytesOf(type, dims);
  if (!buffer_.Reserve(bytes)) throw NoMemory(type, dims);
  dtype_ = type;
  dims_ = dims;
  data_ = buffer_.data();
  shown_.reset();
  lod_ = {};
  return buffer_.data();
}

void Tensor::View(DType type, const Dims& dims, const void* data) {
  dtype_ = type;
  dims_ = dims;
  data_ = data;
  shown_.reset();
  lod_ = {};
}

void Tensor::ViewOf(const Tensor& other, const Dims& dims) {
  DCHECK_EQ(other.numel(), dims.numel());
  if (&other.device() != &device()) other.ThrowNotOn(device());
  const std::span<const uint32_t> lod = other.lod_;
  std::shared_ptr<void> shown = other.shown_ != nullptr ? other.shown_ : other.buffer_.memory();
  View(other.dtype_, dims, other.data_);
  shown_ = std::move(shown);
  lod_ = lod;
}

void SelectedRows::StartRows(const SparseTable* table) {
  rows.clear();
  table_rows.Start(table);
  merged = false;
}

void SelectedRows::TakeRows(const SelectedRows& from) {
  height = from.height;
  rows = from.rows;
  table_rows.Take(from.table_rows);
  merged = from.merged;
}

Status SelectedRows::AppendRows(const SelectedRows& from) {
  if (from.rows.empty()) return Status::Ok();
  merged = false;
  if (rows.empty()) table_rows.Start(from.table_rows.table());
  MR_TRY(table_rows.CheckSameTable(from.table_rows));
  const bool has_rows = (rows.empty() || has_table_rows()) && from.has_table_rows();
  rows.insert(rows.end(), from.rows.begin(), from.rows.end());
  if (has_rows) {
    table_rows.Append(from.table_rows);
  } else {
    table_rows.Start(table_rows.table() != nullptr ? table_rows.table() : from.table_rows.table());
  }
  return Status::Ok();
}

}  // namespace millrace
