#include "reader/tensor_spec_text.h"

#include <charconv>
#include <optional>
#include <string>

namespace millrace {
namespace {

constexpr DType kDTypes[] = {DType::kBool,  DType::kUint8,   DType::kInt8,    DType::kInt16,  DType::kInt32,
                             DType::kInt64, DType::kFloat16, DType::kFloat32, DType::kFloat64};

std::optional<DType> DTypeNamed(std::string_view name) {
  for (const DType type : kDTypes) {
    if (DTypeName(type) == name) return type;
  }
  return std::nullopt;
}

/// "-1,64" to dims; false when it is not sizes between commas.
bool ParseSizes(std::string_view text, Dims* dims) {
  while (!text.empty()) {
    int64_t size = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || size < -1) return false;
    dims->push_back(size);
    text.remove_prefix(static_cast<size_t>(at - text.data()));
    if (text.empty()) return true;
    if (text.front() != ',' || text.size() == 1) return false;
    text.remove_prefix(1);
  }
  return true;
}

Result<TensorSpec> ParseTensorSpec(std::string_view text) {
  const Status wrong = InvalidConfig("\"" + std::string(text) + "\" is no output, which looks like float32[-1,64], " +
                                     "int64[-1,1]:lod or label=int64[1]");
  TensorSpec spec;
  if (const size_t equal = text.find('='); equal != std::string_view::npos) {
    spec.name = text.substr(0, equal);
    text.remove_prefix(equal + 1);
  }
  if (text.ends_with(":lod")) {
    spec.lod_level = 1;
    text.remove_suffix(4);
  }
  const size_t bracket = text.find('[');
  if (bracket == std::string_view::npos || !text.ends_with(']')) return wrong;
  const std::optional<DType> type = DTypeNamed(text.substr(0, bracket));
  if (!type || !ParseSizes(text.substr(bracket + 1, text.size() - bracket - 2), &spec.dims) || spec.dims.too_many()) {
    return wrong;
  }
  spec.dtype = *type;
  return spec;
}

}  // namespace

Result<std::vector<TensorSpec>> ParseTensorSpecs(std::string_view text) {
  std::vector<TensorSpec> specs;
  while (true) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find(' '));
    MR_ASSIGN(TensorSpec spec, ParseTensorSpec(word));
    specs.push_back(std::move(spec));
    text.remove_prefix(word.size());
  }
  if (specs.empty()) return InvalidConfig("no outputs are named; they look like \"float32[-1,64] int64[-1,1]\"");
  return specs;
}

}  // namespace millrace
