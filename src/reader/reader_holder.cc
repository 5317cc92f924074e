#include "reader/reader_holder.h"

#include <glog/logging.h>

#include <utility>

#include "core/numbers.h"
#include "runtime/finite_variables.h"

namespace millrace {
namespace {

int64_t RowsOf(const std::vector<LoDTensor>& item) {
  if (item.empty()) return 0;
  if (!item[0].lod.empty()) return static_cast<int64_t>(item[0].lod.size()) - 1;
  return item[0].values.dims().rank() == 0 ? 1 : item[0].values.dims()[0];
}

Status CheckFinite(const std::vector<LoDTensor>& item) {
  for (size_t i = 0; i < item.size(); ++i) {
    const Tensor& values = item[i].values;
    const int64_t at = FirstNonFinite(values);
    if (at < 0) continue;
    const double value = values.dtype() == DType::kFloat32 ? values.data<float>()[at] : values.data<double>()[at];
    const int64_t rows = values.dims().rank() == 0 ? 1 : values.dims()[0];
    const int64_t width = values.numel() / rows;
    return BadData(
        "output " + std::to_string(i) + " of the reader: " + ShortestNumber(value) + " (row " +
        std::to_string(at / width) + ", value " + std::to_string(at % width) +
        ", from 0), which trains the parameters to nan; leave such rows out, or give a value for what is missing");
  }
  return Status::Ok();
}

}  // namespace

bool ReaderHolder::made() const {
  const std::lock_guard lock(mutex_);
  return reader_ != nullptr || !taken_by_.empty();
}

void ReaderHolder::Hold(std::unique_ptr<ReaderBase> reader, std::string creation) {
  CHECK(!made()) << "a variable was given a second reader";
  const std::lock_guard lock(mutex_);
  reader_ = std::move(reader);
  for (const size_t output : ids_) reader_->MarkIds(output);
  creation_ = std::move(creation);
}

Status ReaderHolder::CheckMadeBy(const std::string& creation) const {
  const std::lock_guard lock(mutex_);
  if (creation == creation_) return Status::Ok();
  return InvalidConfig("another operator has made a reader in this variable; give each reader a variable of its own");
}

Status ReaderHolder::CheckHolds() const {
  if (reader_ != nullptr) return Status::Ok();
  if (taken_by_.empty())
    return InvalidConfig("no operator has made the reader; its creation belongs into the startup program");
  return InvalidConfig("the reader has become a part of \"" + taken_by_ + "\"; use that one");
}

Result<std::unique_ptr<ReaderBase>> ReaderHolder::Take(const std::string& by) {
  const std::lock_guard lock(mutex_);
  MR_TRY(CheckHolds());
  taken_by_ = by;
  return std::move(reader_);
}

Status ReaderHolder::ReadNext(std::vector<LoDTensor>* out, EndOfData end, const std::stop_token& stop) {
  const std::lock_guard lock(mutex_);
  MR_TRY(CheckHolds());
  is_begun_ = true;
  MR_ASSIGN(const bool more, reader_->ReadNext(out, stop));
  is_at_end_ = !more;
  if (more) {
    ++read_;
    ++items_;
    rows_ += RowsOf(*out);
    if (only_finite_) MR_TRY(CheckFinite(*out));
  }
  if (more || end == EndOfData::kEmpty) return Status::Ok();
  return NotFound("the reader is at its end after " + std::to_string(read_) +
                  " items: ask has_next first, reset it, or read with throw_eof_exp: false");
}

void ReaderHolder::set_only_finite(bool only_finite) {
  const std::lock_guard lock(mutex_);
  only_finite_ = only_finite;
}

void ReaderHolder::MarkIds(size_t output) {
  const std::lock_guard lock(mutex_);
  ids_.insert(output);
  // Threads may have read ahead without the mark.
  if (reader_ != nullptr && !is_begun_) reader_->MarkIds(output);
}

Result<bool> ReaderHolder::HasNext(const std::stop_token& stop) {
  const std::lock_guard lock(mutex_);
  MR_TRY(CheckHolds());
  is_begun_ = true;
  return reader_->HasNext(stop);
}

Status ReaderHolder::ReInit() {
  const std::lock_guard lock(mutex_);
  MR_TRY(CheckHolds());
  MR_TRY(reader_->ReInit());
  is_begun_ = false;
  for (const size_t output : ids_) reader_->MarkIds(output);
  ++resets_;
  read_ = 0;
  is_at_end_ = false;
  return Status::Ok();
}

Result<std::vector<TensorSpec>> ReaderHolder::shapes() const {
  const std::lock_guard lock(mutex_);
  MR_TRY(CheckHolds());
  return reader_->shapes();
}

Status ReaderHolder::MoveTo(const ReaderPosition& position, const std::stop_token& stop) {
  while (this->position().resets < position.resets) MR_TRY(ReInit());
  std::vector<LoDTensor> item;
  while (this->position().items < position.items) {
    MR_TRY(ReadNext(&item, EndOfData::kError, stop).Context("going on from a checkpoint"));
  }
  return Status::Ok();
}

}  // namespace millrace
