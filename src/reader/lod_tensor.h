#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "runtime/tensor.h"

namespace millrace {

/// A tensor with a buffer and, when it has one, a LoD of its own: what readers pass on. Movable.
///
/// `lod` cuts axis 0 of `values` into sequences: sequences + 1 offsets from 0 to dims()[0]; empty without LoD.
/// `values.lod()` stays unused. Moved or written over, both keep their capacity.
struct LoDTensor {
  Tensor values;
  std::vector<uint32_t> lod;
};

/// What a reader promises of one of its outputs. A -1 in `dims` is any size.
struct TensorSpec {
  DType dtype = DType::kFloat32;
  Dims dims;
  int lod_level = 0;  ///< 0 or 1
  /// What formats whose records have names call it (TFRecord, OFRecord); may be empty for others.
  std::string name = {};
  /// Whether a table is asked for the values: file readers refuse one below 0, which would be the row of another id.
  bool is_id = false;

  /// "float32 [-1, 784]", "int64 [-1, 1] of lod_level 1".
  std::string ToString() const;
};

/// Makes room for one example of a file's record and returns where its values go. Without LoD: the sizes of `spec`, of
/// which only the first may be -1 and is then 1. With LoD: one sequence of `count` values, [count, 1]. Throws NoMemory.
void* ResizeToInstance(const TensorSpec& spec, size_t count, LoDTensor* tensor);
/// Values of an example without LoD.
size_t InstanceSize(const TensorSpec& spec);
/// kInvalidConfig that begins with "output N: " when records that say no shapes of their own cannot be read as `specs`.
Status CheckInstanceSpecs(const std::vector<TensorSpec>& specs);

/// kBadData of a value below 0 that an output with is_id has in a file: `where` is its place, `what_to_do` depends on
/// how the format writes ids.
Status NegativeId(const std::string& where, const std::string& value, std::string_view what_to_do);
/// What formats that hold ids as signed integers advise for NegativeId.
inline constexpr std::string_view kSignedIdAdvice =
    "leave out what only fills up a list; hashes are written without their sign, by hash & 0x7fffffffffffffff";

/// kBadData that says what of `tensor` is not as `spec` says (type, shape, LoD), or that its LoD is none.
Status CheckTensor(const LoDTensor& tensor, const TensorSpec& spec);

}  // namespace millrace
