#pragma once

#include <memory>
#include <vector>

#include "reader/prefetcher.h"
#include "reader/reader.h"

namespace millrace {

/// Reads the next items of another reader in a thread of its own while the last one is in use; two wait at most.
class DoubleBufferReader final : public DecoratedReader {
 public:
  explicit DoubleBufferReader(std::unique_ptr<ReaderBase> reader);

 private:
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) override;
  Status Restart() override;
  Status ReadAhead(const std::stop_token& stop);

  Prefetcher prefetcher_;  // ends before the reader that its thread reads
};

}  // namespace millrace
