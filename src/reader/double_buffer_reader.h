#pragma once

#include <memory>
#include <vector>

#include "reader/prefetcher.h"
#include "reader/reader.h"

namespace millrace {

/// Prefetches up to two items of another reader in its own thread.
class DoubleBufferReader final : public DecoratedReader {
 public:
  explicit DoubleBufferReader(std::unique_ptr<ReaderBase> reader);

 private:
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) override;
  Status Restart() override;
  Status ReadAhead(const std::stop_token& stop);

  Prefetcher prefetcher_;  // declared last: ends before the reader used by its thread
};

}  // namespace millrace
