#pragma once

#include <iterator>
#include <memory>
#include <utility>

#include "dataset.h"

namespace mini {

/// Hands on `batch_size` samples at once.
template <class LoadTarget>
class BatchDataset final : public Dataset<LoadTarget> {
 public:
  BatchDataset(size_t batch_size, std::unique_ptr<Dataset<LoadTarget>> loader)
      : batch_size_(batch_size), loader_(std::move(loader)) {}

  millrace::Result<LoadTargetList<LoadTarget>> Next(const std::stop_token& stop) override {
    LoadTargetList<LoadTarget> batch = std::move(rest_);
    rest_.clear();
    while (batch.size() < batch_size_) {
      MR_ASSIGN(LoadTargetList<LoadTarget> samples, loader_->Next(stop));
      std::move(samples.begin(), samples.end(), std::back_inserter(batch));
    }
    const auto end = batch.begin() + static_cast<std::ptrdiff_t>(batch_size_);
    std::move(end, batch.end(), std::back_inserter(rest_));
    batch.erase(end, batch.end());
    return batch;
  }

 private:
  const size_t batch_size_;
  std::unique_ptr<Dataset<LoadTarget>> loader_;
  LoadTargetList<LoadTarget> rest_;
};

}  // namespace mini
