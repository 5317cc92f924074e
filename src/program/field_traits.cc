#include "program/field_traits.h"

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace millrace {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool HasLeast(const FieldTraits& range) { return range.has_above() || range.has_at_least(); }
bool HasMost(const FieldTraits& range) { return range.has_below() || range.has_at_most(); }

bool IsEnough(const FieldTraits& range, double value) {
  return !(range.has_above() && value <= range.above()) && !(range.has_at_least() && value < range.at_least());
}

bool Fits(const FieldTraits& range, double value) {
  return std::isfinite(value) && IsEnough(range, value) && !(range.has_below() && value >= range.below()) &&
         !(range.has_at_most() && value > range.at_most());
}

/// A bound as schemas have it: "1048576", "0.5".
std::string Bound(double value) {
  std::array<char, 400> text;
  return {text.data(), std::to_chars(text.begin(), text.end(), value, std::chars_format::fixed).ptr};
}

/// "must be in [0, 1)"; of whole numbers the bound that `value` is beyond: "must be at most 50".
std::string Rule(const FieldTraits& range, double value, bool is_whole) {
  const std::string least = Bound(range.has_above() ? range.above() : range.at_least());
  const std::string most = Bound(range.has_below() ? range.below() : range.at_most());
  if (HasLeast(range) && HasMost(range) && !is_whole) {
    return "must be in " + std::string(range.has_above() ? "(" : "[") + least + ", " + most +
           (range.has_below() ? ")" : "]");
  }
  if (HasLeast(range) && !(HasMost(range) && IsEnough(range, value))) {
    if (range.has_above()) return "must be above " + least;
    return least == "0" && !is_whole ? "must not be negative" : "must be at least " + least;
  }
  if (range.has_below()) return "must be below " + most;
  return most == "0" && !is_whole ? "must not be above 0" : "must be at most " + most;
}

/// Checks the number at `index` of a field, -1 where it is no list.
void CheckNumber(const Message& message, const FieldDescriptor& field, const FieldTraits& range, int index,
                 const std::string& path, std::vector<OutOfRange>* found) {
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(message, &field, index, &text);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  if (Fits(range, value)) return;
  const bool is_whole =
      field.cpp_type() != FieldDescriptor::CPPTYPE_FLOAT && field.cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE;
  found->push_back({path, Rule(range, value, is_whole) + ", not " + text});
}

void AddOutOfRange(const Message& message, const std::string& path, std::vector<OutOfRange>* found) {
  const auto& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const FieldTraits range = TraitsOf(*field);
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!is_message && !HasLeast(range) && !HasMost(range)) continue;
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const std::string at = path + field->name() + (field->is_repeated() ? "[" + std::to_string(i) + "]" : "");
      if (!is_message) {
        CheckNumber(message, *field, range, field->is_repeated() ? i : -1, at, found);
      } else {
        AddOutOfRange(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                           : reflection.GetMessage(message, field),
                      at + ".", found);
      }
    }
  }
}

}  // namespace

FieldTraits TraitsOf(const FieldDescriptor& field) {
  FieldTraits traits = field.options().GetExtension(field_traits);
  if (traits.is_rate()) {
    traits.set_above(0);
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

std::vector<OutOfRange> FindOutOfRange(const Message& message) {
  std::vector<OutOfRange> found;
  AddOutOfRange(message, "", &found);
  return found;
}

}  // namespace millrace
