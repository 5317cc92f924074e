#include "reader/field_value.h"

#include <cstdint>
#include <system_error>

#include "core/harmless_text.h"
#include "core/numbers.h"
#include "core/shortened.h"

namespace millrace {
namespace {

constexpr size_t kShownBytes = 32;

std::string_view Trimmed(std::string_view field) {
  while (!field.empty() && (field.front() == ' ' || field.front() == '\t')) field.remove_prefix(1);
  while (!field.empty() && (field.back() == ' ' || field.back() == '\t')) field.remove_suffix(1);
  return field;
}

bool ParseId(std::string_view field, int64_t* value) {
  if (ReadSigned(field, value)) return true;
  uint64_t bits = 0;
  if (!ReadSigned(field, &bits)) return false;
  *value = static_cast<int64_t>(bits);
  return true;
}

}  // namespace

bool IsFieldType(DType type) {
  return type == DType::kFloat32 || type == DType::kFloat64 || type == DType::kInt32 || type == DType::kInt64 ||
         type == DType::kUint8;
}

bool ParseField(std::string_view field, DType type, void* values, size_t index) {
  field = Trimmed(field);
  switch (type) {
    case DType::kFloat32: return ParseFloat(field, static_cast<float*>(values) + index) != FloatText::kNoNumber;
    case DType::kFloat64: return ReadSigned(field, static_cast<double*>(values) + index);
    case DType::kInt32: return ReadSigned(field, static_cast<int32_t*>(values) + index);
    case DType::kInt64: return ParseId(field, static_cast<int64_t*>(values) + index);
    case DType::kUint8: return ReadSigned(field, static_cast<uint8_t*>(values) + index);
    default: return false;
  }
}

bool IsNegative(std::string_view field) {
  return field.find('-') != std::string_view::npos && field.find_first_of("123456789") != std::string_view::npos;
}

std::string ShownField(std::string_view field) {
  if (field.empty()) return "nothing";
  const std::string shown = Harmless(StartOf(field, kShownBytes));
  if (field.size() <= kShownBytes) return "\"" + shown + "\"";
  return "\"" + shown + "...\" (" + std::to_string(field.size()) + " bytes)";
}

}  // namespace millrace
