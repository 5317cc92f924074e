#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batch/consumed_ranges.h"

namespace millrace {

/// Positions of the bad lines of a pass. A checkpoint counts only the bad lines before it, because the resumed run
/// meets the later ones again. Thread-safe. Needs 16 bytes per bad line; the bad-line policy bounds their number.
class BadLinePlaces {
 public:
  /// Forgets the previous pass. `earlier` is the count that an interrupted run had for this pass.
  void Begin(std::map<std::string, int64_t> earlier) {
    const std::lock_guard lock(mutex_);
    places_.clear();
    kinds_.clear();
    earlier_ = std::move(earlier);
  }

  void Add(uint32_t file, uint64_t position, std::string_view kind) {
    const std::lock_guard lock(mutex_);
    const auto [found, added] = kinds_.try_emplace(std::string(kind), static_cast<uint32_t>(kinds_.size()));
    places_.push_back({position, file, found->second});
  }

  /// Counts by kind of the bad lines among the trained positions.
  std::map<std::string, int64_t> Within(const ConsumedRanges& trained) const {
    const std::lock_guard lock(mutex_);
    std::map<std::string, int64_t> counts = earlier_;
    std::vector<int64_t> by_kind(kinds_.size());
    for (const Place& place : places_) by_kind[place.kind] += trained.Contains(place.file, place.position) ? 1 : 0;
    for (const auto& [kind, number] : kinds_) {
      if (by_kind[number] > 0) counts[kind] += by_kind[number];
    }
    return counts;
  }

 private:
  struct Place {
    uint64_t position;
    uint32_t file;
    uint32_t kind;
  };
  mutable std::mutex mutex_;
  std::map<std::string, uint32_t> kinds_;
  std::vector<Place> places_;
  std::map<std::string, int64_t> earlier_;
};

}  // namespace millrace
