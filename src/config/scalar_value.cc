#include "config/scalar_value.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "config/field_names.h"
#include "core/edit_distance.h"
#include "core/lower_case.h"
#include "core/name_list.h"
#include "core/numbers.h"

namespace millrace {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::io::Tokenizer;
using Kind = ScalarText::Kind;

std::string AsWritten(const ScalarText& value) {
  std::string text = (value.negative ? "-" : "") + std::string(value.text);
  if (value.kind == Kind::kString) return text;
  return "\"" + text + "\"";
}

/// "batch_size takes a whole number, not X"
std::string WrongType(const ScalarText& value, const FieldDescriptor& field) {
  return field.name() + " takes " + TypeInWords(field) + ", not " + AsWritten(value);
}

bool LooksLikeNumber(const std::string& text) {
  double ignored = 0;
  return ParseDouble(text, &ignored) != FloatText::kNoNumber;
}

/// A value, or an error, or both: an error with the value that was surely meant.
template <class T>
struct Parsed {
  std::optional<T> value;
  std::string error;
};

template <class T>
Parsed<T> ParseWhole(const ScalarText& value, const FieldDescriptor& field) {
  if (value.kind == Kind::kString && LooksLikeNumber(value.string_value)) {
    return {{}, WrongType(value, field) + "; leave out the quotes"};
  }
  if (value.kind != Kind::kInteger) return {{}, WrongType(value, field)};
  const auto largest = static_cast<uint64_t>(std::numeric_limits<T>::max());
  uint64_t magnitude = 0;
  const uint64_t limit = !value.negative ? largest : std::is_signed_v<T> ? largest + 1 : 0;
  if (!Tokenizer::ParseInteger(std::string(value.text), limit, &magnitude)) {
    return {{},
            field.name() + " takes whole numbers from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
                std::to_string(largest) + ", not " + AsWritten(value)};
  }
  return {value.negative ? static_cast<T>(uint64_t{0} - magnitude) : static_cast<T>(magnitude), ""};
}

Parsed<double> ParseNumber(const ScalarText& value, const FieldDescriptor& field) {
  const std::string text(value.text);
  double number = 0;
  if (value.kind == Kind::kString && LooksLikeNumber(value.string_value)) {
    return {{}, WrongType(value, field) + "; leave out the quotes"};
  }
  if (value.kind == Kind::kString) return {{}, WrongType(value, field)};
  if (value.kind == Kind::kIdentifier) {
    const std::string lower = LowerCase(text);
    if (lower == "inf" || lower == "infinity") {
      number = std::numeric_limits<double>::infinity();
    } else if (lower == "nan") {
      number = std::numeric_limits<double>::quiet_NaN();
    } else {
      return {{}, WrongType(value, field)};
    }
  } else if (value.kind == Kind::kInteger && text.size() > 1 && text[0] == '0') {
    return {{}, field.name() + " takes a decimal number, not " + AsWritten(value)};
  } else {
    uint64_t whole = 0;
    const bool exact =
        value.kind == Kind::kInteger && Tokenizer::ParseInteger(text, std::numeric_limits<uint64_t>::max(), &whole);
    number = exact ? static_cast<double>(whole) : Tokenizer::ParseFloat(text);
  }
  return {value.negative ? -number : number, ""};
}

/// Beyond the range of float lies infinity, except for what rounds to the largest float.
float ToFloat(double number) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  // Half a step above the largest float, where rounding to nearest turns to infinity.
  constexpr double kRoundsToInfinity = kLargest + kLargest * 0x1p-25;
  if (std::abs(number) <= kLargest || std::isnan(number)) return static_cast<float>(number);
  const float limit =
      std::abs(number) < kRoundsToInfinity ? static_cast<float>(kLargest) : std::numeric_limits<float>::infinity();
  return number < 0 ? -limit : limit;
}

Parsed<bool> ParseBool(const ScalarText& value, const FieldDescriptor& field) {
  const std::string text(value.text);
  if (value.kind == Kind::kInteger && !value.negative) {
    uint64_t number = 0;
    if (Tokenizer::ParseInteger(text, 1, &number)) return {number == 1, ""};
  }
  if (value.kind == Kind::kIdentifier && !value.negative) {
    if (text == "true" || text == "True" || text == "t") return {true, ""};
    if (text == "false" || text == "False" || text == "f") return {false, ""};
  }
  std::string error = WrongType(value, field);
  const std::string word = value.kind == Kind::kString ? value.string_value : text;
  if (value.kind == Kind::kString && (word == "true" || word == "false")) {
    return {word == "true", error + "; leave out the quotes"};
  } else if (NearestName(word, std::vector<std::string_view>{"true", "yes", "on"}).size() > 1) {
    return {true, error + "; did you mean true?"};
  } else if (NearestName(word, std::vector<std::string_view>{"false", "off"}).size() > 1 || word == "no") {
    return {false, error + "; did you mean false?"};
  }
  return {{}, error};
}

/// The value that other programs call so; null: none.
const EnumValueDescriptor* ValueOfOthers(std::string_view name, const EnumDescriptor& type) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"DAY_OF_WEEK", "WEEKDAY"}, {"DAYOFWEEK", "WEEKDAY"}, {"DOW", "WEEKDAY"}};
  const auto* const known =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& one) { return one.first == name; });
  return known == std::end(kNames) ? nullptr : type.FindValueByName(known->second);
}

Parsed<const EnumValueDescriptor*> ParseEnum(const ScalarText& value, const FieldDescriptor& field) {
  const EnumDescriptor& type = *field.enum_type();
  const std::string name = value.kind == Kind::kString ? value.string_value : std::string(value.text);
  const EnumValueDescriptor* found = value.negative ? nullptr : type.FindValueByName(name);
  if (found != nullptr && value.kind == Kind::kString) {
    return {found, field.name() + " takes a name of " + type.name() + " without quotes: " + name};
  }
  if (found != nullptr) return {found, ""};
  if (value.kind == Kind::kInteger) {
    uint64_t number = 0;
    if (Tokenizer::ParseInteger(name, std::numeric_limits<int32_t>::max(), &number)) {
      const auto signed_number = static_cast<int64_t>(number);
      found = type.FindValueByNumber(static_cast<int>(value.negative ? -signed_number : signed_number));
    }
    if (found != nullptr) return {found, ""};
  }
  std::vector<std::string_view> names;
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  std::string error = type.name() + " has no value " + AsWritten(value);
  if (const EnumValueDescriptor* const meant = ValueOfOthers(name, type); meant != nullptr) {
    return {meant, error + "; did you mean " + std::string(meant->name()) + "?"};
  }
  if (const std::string_view nearest = NearestName(name, names); !nearest.empty()) {
    return {type.FindValueByName(std::string(nearest)), error + "; did you mean " + std::string(nearest) + "?"};
  }
  return {{}, error + "; it has " + JoinNames(names)};
}

Parsed<std::string> ParseString(const ScalarText& value, const FieldDescriptor& field) {
  if (value.kind == Kind::kString) return {value.string_value, ""};
  const std::string meant = (value.negative ? "-" : "") + std::string(value.text);
  return {meant, field.name() + " takes a string: write \"" + meant + "\""};
}

}  // namespace

// Calls Set… or Add… of reflection with the parsed value, and returns what was wrong with it.
#define MR_SET(parse, method, convert)                                  \
  {                                                                     \
    const auto parsed = parse;                                          \
    if (parsed.value && field.is_repeated()) {                          \
      reflection->Add##method(message, &field, convert(*parsed.value)); \
    } else if (parsed.value) {                                          \
      reflection->Set##method(message, &field, convert(*parsed.value)); \
    }                                                                   \
    return parsed.error;                                                \
  }

std::string SetScalar(const ScalarText& value, const FieldDescriptor& field, Message* message) {
  const Reflection* reflection = message->GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: MR_SET(ParseWhole<int32_t>(value, field), Int32, )
    case FieldDescriptor::CPPTYPE_INT64: MR_SET(ParseWhole<int64_t>(value, field), Int64, )
    case FieldDescriptor::CPPTYPE_UINT32: MR_SET(ParseWhole<uint32_t>(value, field), UInt32, )
    case FieldDescriptor::CPPTYPE_UINT64: MR_SET(ParseWhole<uint64_t>(value, field), UInt64, )
    case FieldDescriptor::CPPTYPE_DOUBLE: MR_SET(ParseNumber(value, field), Double, )
    case FieldDescriptor::CPPTYPE_FLOAT: MR_SET(ParseNumber(value, field), Float, ToFloat)
    case FieldDescriptor::CPPTYPE_BOOL: MR_SET(ParseBool(value, field), Bool, )
    case FieldDescriptor::CPPTYPE_ENUM: MR_SET(ParseEnum(value, field), Enum, )
    case FieldDescriptor::CPPTYPE_STRING: MR_SET(ParseString(value, field), String, )
    case FieldDescriptor::CPPTYPE_MESSAGE: break;
  }
  return WrongType(value, field);
}

#undef MR_SET

}  // namespace millrace
