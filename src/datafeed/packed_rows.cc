#include "datafeed/packed_rows.h"

#include <algorithm>
#include <cstring>

#include "datafeed/varint.h"

namespace millrace {

RowOrigin PackedRows::Origin(RowHandle handle) const {
  uint64_t delta = 0;
  GetVarint(Row(handle), &delta);
  const Run& run = runs_[handle.run];
  return {run.file, run.first_line + delta};
}

size_t PackedRows::bytes() const {
  std::lock_guard lock(mutex_);
  size_t total = runs_.capacity() * sizeof(Run);
  for (const HugeBuffer& slab : slabs_) total += slab.bytes();
  return total;
}

void PackedRows::Release() {
  std::lock_guard lock(mutex_);
  slabs_.clear();
  std::vector<Run>().swap(runs_);
}

void PackedRows::Swap(PackedRows& other) {
  slabs_.swap(other.slabs_);
  runs_.swap(other.runs_);
}

std::span<uint8_t> PackedRows::AddSlab(size_t bytes) {
  HugeBuffer slab(std::max(kSlabSize, bytes));
  const std::span<uint8_t> room(reinterpret_cast<uint8_t*>(slab.data()), slab.bytes());
  std::lock_guard lock(mutex_);
  slabs_.push_back(std::move(slab));
  return room;
}

uint32_t PackedRows::AddRun(const Run& run) {
  std::lock_guard lock(mutex_);
  runs_.push_back(run);
  return static_cast<uint32_t>(runs_.size() - 1);
}

void PackedRowWriter::BeginFile(uint32_t file) {
  file_ = file;
  in_run_ = false;
}

RowHandle PackedRowWriter::Append(uint64_t line, std::span<const uint8_t> row) {
  const size_t needed = kMaxVarintSize + row.size() + PackedRows::kPadding;
  if (slab_.size() - used_ < needed) {
    slab_ = rows_->AddSlab(needed);
    used_ = 0;
    in_run_ = false;
  }
  uint8_t* const begin = slab_.data() + used_;
  if (!in_run_) {
    first_line_ = line;
    run_begin_ = used_;
    run_ = rows_->AddRun({begin, line, file_});
    in_run_ = true;
  }
  const RowHandle handle{run_, static_cast<uint32_t>(used_ - run_begin_)};
  uint8_t* const bytes = PutVarint(begin, line - first_line_);
  std::memcpy(bytes, row.data(), row.size());
  used_ = static_cast<size_t>(bytes - slab_.data()) + row.size();
  return handle;
}

}  // namespace millrace
