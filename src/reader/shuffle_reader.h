#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reader/reader.h"

namespace millrace {

/// Delivers the items of another reader in random order: fills a buffer of `buffer_size` items, permutes it, delivers
/// it, and repeats.
///
/// The order depends only on the items, `seed`, the pass (number of restarts) and `buffer_size`. Keeps up to
/// `buffer_size` items in memory.
class ShuffleReader final : public DecoratedReader {
 public:
  ShuffleReader(std::unique_ptr<ReaderBase> reader, size_t buffer_size, uint64_t seed);

 private:
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) override;
  Status Restart() override;
  Status Fill(const std::stop_token& stop);

  const uint64_t seed_;
  const size_t buffer_size_;
  std::vector<std::vector<LoDTensor>> buffer_;  ///< grows with the number of items; keeps their tensors
  std::vector<size_t> order_;                   ///< undelivered items; the last is next
  uint64_t fill_ = 0;                           ///< fills in this pass
};

}  // namespace millrace
