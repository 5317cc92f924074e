#include "ops/int_list_input.h"

#include <algorithm>
#include <string>

#include "ops/kernel.h"

namespace millrace {
namespace {

Status ExpectWhole(const InferShapeContext& context, const char* parameter, const VarMeta& meta) {
  if (meta.dtype == DType::kInt32 || meta.dtype == DType::kInt64) return Status::Ok();
  return context.Error("input " + std::string(parameter) + " must be int32 or int64, but is " +
                       std::string(DTypeName(meta.dtype)));
}

/// Appends a tensor's values; `most` of them at most.
Status Append(const char* name, const Tensor& tensor, int64_t most, std::vector<int64_t>* values) {
  const bool whole = tensor.dtype() == DType::kInt32 || tensor.dtype() == DType::kInt64;
  if (tensor.empty() || !whole || tensor.numel() > most) {
    return BadData(std::string(name) + " holds no " + (most == 1 ? "whole number" : "whole numbers") +
                   ", which the operator needs when it runs");
  }
  const auto append = [&](const auto* numbers) { values->insert(values->end(), numbers, numbers + tensor.numel()); };
  tensor.dtype() == DType::kInt32 ? append(tensor.data<int32_t>()) : append(tensor.data<int64_t>());
  return Status::Ok();
}

}  // namespace

Result<KnownInts> ReadKnownInts(const InferShapeContext& context, const IntListNames& names) {
  KnownInts known{context.op().Ints(names.attribute), true};
  if (context.HasInput(names.tensor)) {
    MR_ASSIGN(const VarMeta tensor, context.Input(names.tensor));
    MR_TRY(ExpectWhole(context, names.tensor, tensor));
    const int64_t count = KnownProduct(tensor.dims, 0, tensor.dims.rank());
    if (count < 0 || count > Dims::kMaxRank) {
      return context.Error("input " + std::string(names.tensor) + " is " + tensor.dims.ToString() +
                           "; it must be known to have from 0 to " + std::to_string(Dims::kMaxRank) + " values");
    }
    return KnownInts{std::vector<int64_t>(static_cast<size_t>(count), KnownInts::kUnknown), false};
  }
  if (!context.HasInput(names.list)) return known;
  MR_ASSIGN(const std::vector<VarMeta> list, context.Inputs(names.list));
  known.is_fixed = false;
  if (known.values.size() != list.size()) known.values.assign(list.size(), KnownInts::kUnknown);
  for (size_t i = 0; i < list.size(); ++i) {
    MR_TRY(ExpectWhole(context, names.list, list[i]));
    if (!MayEqual(KnownProduct(list[i].dims, 0, list[i].dims.rank()), 1)) {
      return context.Error("tensor " + std::to_string(i) + " of input " + names.list + " is " +
                           list[i].dims.ToString() + "; it must hold one value");
    }
    if (known.values[i] < 0) known.values[i] = KnownInts::kUnknown;
  }
  return known;
}

OpBuilder& AddIntList(OpBuilder& op, const IntListNames& names, const char* doc) {
  return op.OptionalInput(names.tensor, "int32 or int64, instead of " + std::string(names.attribute))
      .OptionalInputs(names.list, "the same as tensors of one value each")
      .Attr(names.attribute, std::vector<int64_t>{}, doc);
}

Result<IntListInput> IntListInput::Bind(const KernelContext& context, const IntListNames& names) {
  IntListInput input(context.op().Ints(names.attribute));
  input.name_ = names.tensor;
  MR_ASSIGN(input.tensor_, context.OptionalInput(names.tensor));
  if (input.tensor_ != nullptr) return input;
  input.name_ = names.list;
  MR_ASSIGN(input.list_, context.Inputs(names.list));
  if (std::find(input.list_.begin(), input.list_.end(), nullptr) != input.list_.end()) {
    return InvalidConfig(context.op().type() + ": input " + input.name_ +
                         " is read, and \"@EMPTY@\" stands for no variable");
  }
  return input;
}

Status IntListInput::Read() {
  if (tensor_ == nullptr && list_.empty()) return Status::Ok();
  values_.clear();
  if (tensor_ != nullptr) return Append(name_, *tensor_, Dims::kMaxRank, &values_);
  for (const Tensor* tensor : list_) MR_TRY(Append(name_, *tensor, 1, &values_));
  return Status::Ok();
}

}  // namespace millrace
