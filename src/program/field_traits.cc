#include "program/field_traits.h"

#include <google/protobuf/message.h>

#include <cmath>

namespace millrace {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool Fits(FieldTraits::Range range, double value) {
  switch (range) {
    case FieldTraits::ANY: return true;
    case FieldTraits::POSITIVE: return value > 0 && std::isfinite(value);
    case FieldTraits::NOT_NEGATIVE: return value >= 0 && std::isfinite(value);
    case FieldTraits::NOT_ABOVE_ZERO: return value <= 0 && std::isfinite(value);
    case FieldTraits::BELOW_ONE: return value >= 0 && value < 1;
  }
  return true;
}

bool IsWhole(const FieldDescriptor& field) { return field.cpp_type() == FieldDescriptor::CPPTYPE_INT64; }

/// The number of a field; `index` -1: it is not repeated.
double NumberOf(const Message& message, const FieldDescriptor& field, int index) {
  const auto& reflection = *message.GetReflection();
  if (IsWhole(field)) {
    return static_cast<double>(index < 0 ? reflection.GetInt64(message, &field)
                                         : reflection.GetRepeatedInt64(message, &field, index));
  }
  return static_cast<double>(index < 0 ? reflection.GetFloat(message, &field)
                                       : reflection.GetRepeatedFloat(message, &field, index));
}

void AddOutOfRange(const Message& message, const std::string& path, std::vector<OutOfRange>* found) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string name = path + field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!field->is_repeated()) AddOutOfRange(message.GetReflection()->GetMessage(message, field), name + ".", found);
      continue;
    }
    const FieldTraits::Range range = TraitsOf(*field).range();
    if (range == FieldTraits::ANY) continue;
    const auto check = [&](const std::string& where, int index) {
      const double value = NumberOf(message, *field, index);
      if (!Fits(range, value)) found->push_back({where, range, IsWhole(*field), value});
    };
    if (!field->is_repeated()) check(name, -1);
    const int count = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 0;
    for (int i = 0; i < count; ++i) check(name + "[" + std::to_string(i) + "]", i);
  }
}

}  // namespace

FieldTraits TraitsOf(const FieldDescriptor& field) {
  FieldTraits traits = field.options().GetExtension(field_traits);
  if (traits.is_rate()) {
    traits.set_range(FieldTraits::POSITIVE);
    traits.set_may_change(true);
  }
  return traits;
}

std::string OutOfRange::Where() const {
  std::string where;
  for (const char c : path.substr(0, path.find('['))) {
    where += c == '.' ? std::string(": ") : std::string(1, c);
  }
  return where;
}

std::string OutOfRange::What() const {
  const auto text = [this] {
    switch (range) {
      case FieldTraits::POSITIVE: return "must be positive; ";
      case FieldTraits::NOT_NEGATIVE: return "must not be negative; ";
      case FieldTraits::NOT_ABOVE_ZERO: return "must not be above 0; ";
      case FieldTraits::BELOW_ONE: return "must be in [0, 1); ";
      case FieldTraits::ANY: break;
    }
    return "";
  };
  return text() + std::to_string(value);
}

std::vector<OutOfRange> FindOutOfRange(const Message& message) {
  std::vector<OutOfRange> found;
  AddOutOfRange(message, "", &found);
  return found;
}

}  // namespace millrace
