#include "reader/double_buffer_reader.h"

#include <utility>

namespace millrace {
namespace {

constexpr size_t kBuffers = 2;

}  // namespace

DoubleBufferReader::DoubleBufferReader(std::unique_ptr<ReaderBase> reader)
    : DecoratedReader(std::move(reader)),
      prefetcher_(1, kBuffers, [this](int, const std::stop_token& stop) { return ReadAhead(stop); }) {}

Status DoubleBufferReader::ReadAhead(const std::stop_token& stop) {
  Prefetcher::Item item;
  for (;;) {
    MR_ASSIGN(const bool more, reader().ReadNext(&item, stop));
    if (!more) return Status::Ok();
    MR_TRY(prefetcher_.Push(&item, stop));
  }
}

Result<bool> DoubleBufferReader::Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) {
  return prefetcher_.Next(out, expected(), stop);
}

Status DoubleBufferReader::Restart() {
  prefetcher_.Stop();
  return reader().StartPass(pass());
}

}  // namespace millrace
