#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/hash.h"
#include "kernels/racy.h"
#include "runtime/op_kernel.h"
#include "table/sparse_table.h"

namespace millrace {

/// The parameter W of a lookup: a [vocabulary, dim] tensor or a hash table. Belongs to one kernel; one thread.
class RowSource {
 public:
  /// Stands for an id without a row (padding, or ZERO for ids out of range).
  static constexpr uint32_t kNoRow = UINT32_MAX;

  RowSource() = default;
  /// The `i`-th variable of input W. kInvalidConfig when it holds neither.
  static Result<RowSource> Bind(const KernelContext& context, size_t i);

  bool is_table() const { return table_ != nullptr; }
  const std::string& name() const { return name_; }
  SparseTable* table() const { return table_; }
  size_t dim() const;
  /// Rows of a dense parameter; 0 for a table.
  int64_t vocabulary() const { return is_table() ? 0 : weights_->dims()[0]; }

  /// Rows of `keys`, which must be valid; distinct keys are best for a table.
  Status Find(std::span<const uint64_t> keys, RowBatch* out);
  /// What to read the rows of `batch` from, with the null pointer behind them: themselves, or (ROW_LOCK) copies that
  /// were made under each row's lock and live until the next call.
  const float* const* Readable(const RowBatch& batch);
  const racy::Kernels& kernels() const { return *kernels_; }
  /// FrameOptions::is_program.
  bool in_program() const { return in_program_; }

 private:
  std::string name_;
  Tensor* weights_ = nullptr;
  SparseTable* table_ = nullptr;
  PullMode mode_ = PullMode::kInsert;
  RowLocks* locks_ = nullptr;
  bool in_program_ = false;
  const racy::Kernels* kernels_ = nullptr;
  std::vector<float> copies_;
  std::vector<const float*> readable_;
};

/// What a lookup makes of an id before it looks it up.
class IdRule {
 public:
  IdRule() = default;
  /// Reads padding_idx (-1: none) and out_of_range; kInvalidConfig for an unknown policy.
  static Result<IdRule> Create(const OpView& op, int64_t salt);
  /// kInvalidConfig when the keys of `source` are row numbers, and the rule makes others.
  Status CheckKeysOf(const RowSource& source) const;

  /// Calls take(i, key) for each id, or none(i) when it has no row. An id outside `vocabulary` (0: no limit) with the
  /// policy ERROR ends the walk; its position is returned, otherwise -1.
  template <class Take, class None>
  int64_t Apply(std::span<const uint64_t> ids, int64_t vocabulary, Take take, None none) const {
    const uint64_t last = vocabulary == 0 ? UINT64_MAX : static_cast<uint64_t>(vocabulary) - 1;
    for (size_t i = 0; i < ids.size(); ++i) {
      uint64_t id = ids[i];
      if (has_padding_ && id == padding_) {
        none(i);
        continue;
      }
      if (id > last) {
        if (out_of_range_ == OutOfRange::kError) return static_cast<int64_t>(i);
        if (out_of_range_ == OutOfRange::kZero) {
          none(i);
          continue;
        }
        id %= static_cast<uint64_t>(vocabulary);
        if (has_padding_ && id == padding_) {
          none(i);
          continue;
        }
      }
      take(i, SlotKey(id, salt_));
    }
    return -1;
  }

  bool operator==(const IdRule&) const = default;

  /// True for the padding id.
  bool IsPadding(uint64_t id) const { return has_padding_ && id == padding_; }

 private:
  enum class OutOfRange : uint8_t { kError, kZero, kModulo };
  bool has_padding_ = false;
  uint64_t padding_ = 0;
  uint64_t salt_ = 0;
  OutOfRange out_of_range_ = OutOfRange::kError;
};

/// kBadData that names slot, row and id.
Status IdOutOfRange(const RunContext& context, const std::string& slot, const Tensor& ids, int64_t position,
                    const RowSource& source);

/// The ids of a tensor as bits.
std::span<const uint64_t> IdsOf(const Tensor& tensor);

}  // namespace millrace
