#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataset/dataset.h"

namespace millrace {

/// Adapts the loaded rows of a rank for asynchronous training: batch positions have source `rank`, so positions of
/// ranks never coincide. The dataset must outlive it.
class RowsOfRank final : public Dataset {
 public:
  RowsOfRank(Dataset& rows, int rank) : rows_(&rows), rank_(static_cast<uint32_t>(rank)) {}
  Status BeginPass(const PassOptions& options) override;
  BatchSource& source(int worker) override { return sources_[static_cast<size_t>(worker)]; }
  Result<PassStats> EndPass() override { return rows_->EndPass(); }
  const std::vector<std::string>& files() const override { return rows_->files(); }
  const SlotSchema& schema() const override { return rows_->schema(); }

 private:
  class Source final : public BatchSource {
   public:
    Source(BatchSource& source, uint32_t rank) : source_(&source), rank_(rank) {}
    Result<BatchPtr> Next(std::stop_token stop) override;

   private:
    BatchSource* source_;
    uint32_t rank_;
  };

  Dataset* rows_;
  const uint32_t rank_;
  std::vector<Source> sources_;
};

}  // namespace millrace
