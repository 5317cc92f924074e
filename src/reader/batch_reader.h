#pragma once

#include <memory>
#include <vector>

#include "reader/reader.h"

namespace millrace {

/// Combines `batch_size` items of another reader: tensors are concatenated along axis 0, sequences are appended. With
/// `drop_last`, an incomplete last batch is dropped. Reading fails with kBadData if tensors of a batch do not fit
/// together.
class BatchReader final : public DecoratedReader {
 public:
  /// Fails with kInvalidConfig for a batch size below 1, or for items without axis 0.
  static Result<std::unique_ptr<BatchReader>> Create(std::unique_ptr<ReaderBase> reader, int64_t batch_size,
                                                     bool drop_last);

 private:
  BatchReader(std::unique_ptr<ReaderBase> reader, std::vector<TensorSpec> shapes, size_t batch_size, bool drop_last);
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) override;
  Status Restart() override { return reader().StartPass(pass()); }
  /// Concatenates output `index` of the first `count` items.
  Status Join(size_t index, size_t count, LoDTensor* out) const;

  std::vector<std::vector<LoDTensor>> items_;  ///< items of one batch
  const size_t batch_size_;
  const bool drop_last_;
};

}  // namespace millrace
