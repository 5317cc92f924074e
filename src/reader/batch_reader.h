#pragma once

#include <memory>
#include <vector>

#include "reader/reader.h"

namespace millrace {

/// Puts `batch_size` items of another reader together: their tensors end to end along axis 0, their sequences one after
/// another. With `drop_last`, items at the end that do not fill a batch are left out.
class BatchReader final : public DecoratedReader {
 public:
  /// kInvalidConfig for a batch size below 1, or items without an axis 0.
  static Result<std::unique_ptr<BatchReader>> Create(std::unique_ptr<ReaderBase> reader, int64_t batch_size,
                                                     bool drop_last);

 private:
  BatchReader(std::unique_ptr<ReaderBase> reader, std::vector<TensorSpec> shapes, size_t batch_size, bool drop_last);
  Result<bool> Produce(std::vector<LoDTensor>* out, const std::stop_token& stop) override;
  Status Restart() override { return reader().StartPass(pass()); }
  /// Joins output `index` of the first `count` items.
  Status Join(size_t index, size_t count, LoDTensor* out) const;

  std::vector<std::vector<LoDTensor>> items_;  ///< one batch, as it was read
  const size_t batch_size_;
  const bool drop_last_;
};

}  // namespace millrace
