#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reader/reader.h"

namespace millrace {

/// Delivers the items of another reader in a random order: fills a buffer of `buffer_size` items, permutes it, delivers
/// it, fills it anew.
///
/// The order follows from the items, `seed`, the pass (how often it was started over) and `buffer_size` alone. Keeps
/// `buffer_size` items in memory, or as many as there are.
class ShuffleReader final : public DecoratedReader {
 public:
  ShuffleReader(std::unique_ptr<ReaderBase> reader, size_t buffer_size, uint64_t seed);

 private:
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) override;
  Status Restart() override;
  Status Fill(const std::stop_token& stop);

  const uint64_t seed_;
  const size_t buffer_size_;
  std::vector<std::vector<LoDTensor>> buffer_;  ///< grows with the items there are; keeps their tensors
  std::vector<size_t> order_;                   ///< of those that are not delivered yet; the last one is next
  uint64_t fill_ = 0;                           ///< in this pass
};

}  // namespace millrace
