#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace millrace {

/// One value of text format, put together from its tokens.
struct ScalarText {
  enum class Kind { kIdentifier, kInteger, kFloat, kString };
  Kind kind = Kind::kIdentifier;
  bool negative = false;
  std::string_view text;     ///< without the sign; of a string, all its parts as written
  std::string string_value;  ///< of a string, unescaped
};

/// Sets `field` of `message`, or adds an element when it is repeated. Returns what is wrong, in the words of the user,
/// with the value to write instead where that is clear (which is then set, so that one slip does not cause a second
/// error elsewhere); empty when all is well.
std::string SetScalar(const ScalarText& value, const google::protobuf::FieldDescriptor& field,
                      google::protobuf::Message* message);

}  // namespace millrace
