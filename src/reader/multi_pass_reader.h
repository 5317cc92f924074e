#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "reader/reader.h"

namespace millrace {

/// Delivers all items of another reader `pass_num` times, restarting it in between.
class MultiPassReader final : public DecoratedReader {
 public:
  /// `pass_num` is at least 1.
  MultiPassReader(std::unique_ptr<ReaderBase> reader, int64_t pass_num)
      : DecoratedReader(std::move(reader)), pass_num_(pass_num) {}

 private:
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) override;
  Status Restart() override;

  const int64_t pass_num_;
  int64_t done_ = 0;  ///< completed passes
};

}  // namespace millrace
