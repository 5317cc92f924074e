#pragma once

#include <cstdint>
#include <vector>

#include "runtime/op_kernel.h"

namespace millrace {

/// Where an operator's list of whole numbers (a shape, the ends of ranges) may come from, by Paddle's names: a tensor
/// of all of them, tensors of one each, an attribute. The first that is bound counts.
struct IntListNames {
  const char* tensor;
  const char* list;
  const char* attribute;
};

/// What is known of such a list before a batch is there.
struct KnownInts {
  static constexpr int64_t kUnknown = INT64_MIN;

  std::vector<int64_t> values;  ///< as many as there will be
  bool is_fixed = true;         ///< they are the attribute's, all known
};

/// kInvalidConfig for tensors that are not int32 or int64, for a tensor of which it is not known how many values it
/// has, and for one of the list that cannot hold a single value. Numbers that the attribute repeats beside a list of
/// tensors count as known where they are not negative, as Paddle writes them.
Result<KnownInts> ReadKnownInts(const InferShapeContext& context, const IntListNames& names);

/// Declares inputs and attribute.
OpBuilder& AddIntList(OpBuilder& op, const IntListNames& names, const char* doc);

/// The list in a kernel.
class IntListInput {
 public:
  IntListInput() = default;
  /// A list that no batch changes.
  explicit IntListInput(std::vector<int64_t> values) : values_(std::move(values)) {}
  static Result<IntListInput> Bind(const KernelContext& context, const IntListNames& names);

  /// Takes what the tensors hold now. kBadData for an empty one, or another type than was declared.
  Status Read();
  const std::vector<int64_t>& values() const { return values_; }

 private:
  const Tensor* tensor_ = nullptr;
  std::vector<const Tensor*> list_;
  const char* name_ = nullptr;
  std::vector<int64_t> values_;
};

}  // namespace millrace
