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

/// Where the bad lines of a pass stand, so that a checkpoint can count those that lie behind it: the others are met
/// again by the run that goes on from there. Thread-safe; 16 bytes a bad line, of which the policy allows so many.
class BadLinePlaces {
 public:
  /// Forgets the pass before, and begins with what an interrupted run counted of this one.
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
