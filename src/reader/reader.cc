#include "reader/reader.h"

namespace millrace {

Result<bool> ReaderBase::Advance(std::vector<LoDTensor>* out, const std::stop_token& stop) {
  Result<bool> more = Produce(out, stop);
  if (!more.ok()) {
    state_ = State::kFailed;
    failure_ = more.status();
  } else if (!*more) {
    state_ = State::kEnded;
  }
  return more;
}

Result<bool> ReaderBase::ReadNext(std::vector<LoDTensor>* out, const std::stop_token& stop) {
  if (state_ == State::kAhead) {
    // Reuses the caller's buffers for the next look-ahead.
    std::swap(*out, ahead_);
    state_ = State::kReading;
    return true;
  }
  if (state_ == State::kReading) {
    const Result<bool> more = Advance(out, stop);
    if (more.ok() && *more) return true;
  }
  out->clear();
  if (state_ == State::kFailed) return failure_;
  return false;
}

Result<bool> ReaderBase::HasNext(const std::stop_token& stop) {
  if (state_ == State::kReading) {
    MR_ASSIGN(const bool more, Advance(&ahead_, stop));
    if (more) state_ = State::kAhead;
  }
  if (state_ == State::kFailed) return failure_;
  return state_ == State::kAhead;
}

void ReaderBase::MarkIds(size_t output) {
  for (ReaderBase* reader = this; reader != nullptr; reader = reader->source_) {
    if (output >= reader->shapes_.size()) continue;
    TensorSpec& spec = reader->shapes_[output];
    spec.is_id = spec.dtype == DType::kInt64 || spec.dtype == DType::kInt32;
  }
}

Status ReaderBase::StartPass(uint64_t pass) {
  pass_ = pass;
  state_ = State::kReading;
  failure_ = Status::Ok();
  if (Status restarted = Restart(); !restarted.ok()) {
    state_ = State::kFailed;
    failure_ = restarted;
    return restarted;
  }
  return Status::Ok();
}

Result<bool> FileReader::Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) {
  out->resize(shapes().size());
  MR_ASSIGN(const bool more, ReadRecord(out, stop));
  if (!more) return false;
  if (out->size() != shapes().size()) {
    return BadData(Where() + ": wanted " + std::to_string(shapes().size()) + " tensors, got " +
                   std::to_string(out->size()));
  }
  for (size_t i = 0; i < out->size(); ++i) {
    if (Status fits = CheckTensor((*out)[i], shapes()[i]); !fits.ok()) {
      return std::move(fits).Context(Where() + ": output " + std::to_string(i));
    }
  }
  ++records_;
  return true;
}

Status FileReader::Restart() {
  records_ = 0;
  return Rewind();
}

}  // namespace millrace
