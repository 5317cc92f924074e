#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/byte_source.h"

namespace millrace {

/// Delivers a piece a read, and has nothing more for the moment behind each that is followed by an empty one.
class SlowSource final : public ByteSource {
 public:
  explicit SlowSource(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
  Result<size_t> Read(std::span<char> out, const std::stop_token&) override {
    while (at_ < pieces_.size() && pieces_[at_].empty()) ++at_;
    if (at_ == pieces_.size()) return size_t{0};
    return pieces_[at_++].copy(out.data(), out.size());
  }
  bool WaitReadable(std::chrono::milliseconds) override { return at_ == pieces_.size() || !pieces_[at_].empty(); }

 private:
  std::vector<std::string> pieces_;
  size_t at_ = 0;
};

}  // namespace millrace
