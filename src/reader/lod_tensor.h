#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "runtime/tensor.h"

namespace millrace {

/// A tensor that owns its buffer, and optionally a LoD: the unit that readers deliver. Movable.
///
/// `lod` splits axis 0 of `values` into sequences: sequences + 1 offsets from 0 to dims()[0]; empty without LoD.
/// `values.lod()` is unused. Both keep their capacity when moved or overwritten.
struct LoDTensor {
  Tensor values;
  std::vector<uint32_t> lod;
};

/// The type and shape of a reader's output. A -1 in `dims` is any size.
struct TensorSpec {
  DType dtype = DType::kFloat32;
  Dims dims;
  int lod_level = 0;  ///< 0 or 1
  /// Feature name in formats with named values (TFRecord, OFRecord); can be empty for others.
  std::string name = {};
  /// Whether the values are looked up in a table: file readers then reject negative ones, which would be the row of
  /// another id.
  bool is_id = false;

  /// "float32 [-1, 784]", "int64 [-1, 1] of lod_level 1".
  std::string ToString() const;
};

/// Allocates one example of a record and returns the address of its values. Without LoD: the sizes of `spec`, where a
/// first -1 becomes 1. With LoD: one sequence of `count` values, [count, 1]. Throws NoMemory.
void* ResizeToInstance(const TensorSpec& spec, size_t count, LoDTensor* tensor);
/// Number of values in an example without LoD.
size_t InstanceSize(const TensorSpec& spec);
/// Fails with kInvalidConfig starting with "output N: " if records without their own shapes cannot be read as `specs`.
Status CheckInstanceSpecs(const std::vector<TensorSpec>& specs);

/// Returns kBadData for a negative value in an is_id output: `where` is its position, `what_to_do` the advice for the
/// format.
Status NegativeId(const std::string& where, const std::string& value, std::string_view what_to_do);
/// Advice of formats with signed integer ids for NegativeId.
inline constexpr std::string_view kSignedIdAdvice =
    "leave out what only fills up a list; hashes are written without their sign, by hash & 0x7fffffffffffffff";

/// Fails with kBadData if type, shape or LoD of `tensor` do not match `spec`, or its LoD is invalid.
Status CheckTensor(const LoDTensor& tensor, const TensorSpec& spec);

}  // namespace millrace
