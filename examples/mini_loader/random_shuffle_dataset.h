#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "core/rng.h"
#include "dataset.h"

namespace mini {

/// Hands on one of `buffer_size` samples that it holds, chosen at random, and puts the next one in its place. The same
/// seed gives the same order on every machine.
template <class LoadTarget>
class RandomShuffleDataset final : public Dataset<LoadTarget> {
 public:
  RandomShuffleDataset(size_t buffer_size, uint64_t seed, std::unique_ptr<Dataset<LoadTarget>> loader)
      : buffer_size_(std::max<size_t>(buffer_size, 1)), rng_(seed), loader_(std::move(loader)) {}

  millrace::Result<LoadTargetList<LoadTarget>> Next(const std::stop_token& stop) override {
    while (buffer_.size() < buffer_size_) {
      MR_ASSIGN(LoadTargetList<LoadTarget> samples, loader_->Next(stop));
      std::move(samples.begin(), samples.end(), std::back_inserter(buffer_));
    }
    std::swap(buffer_[rng_.Below(buffer_.size())], buffer_.back());
    LoadTargetList<LoadTarget> one;
    one.push_back(std::move(buffer_.back()));
    buffer_.pop_back();
    return one;
  }

 private:
  const size_t buffer_size_;
  millrace::Rng rng_;
  std::unique_ptr<Dataset<LoadTarget>> loader_;
  LoadTargetList<LoadTarget> buffer_;
};

}  // namespace mini
