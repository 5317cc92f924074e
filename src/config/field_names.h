#pragma once

#include <string>
#include <string_view>

namespace google::protobuf {
class Descriptor;
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace millrace {

/// Returns the field with this name, or with the name that Paddle's files once had for it ("batch" for batch_size,
/// "use" and "dense" of a slot), or null.
const google::protobuf::FieldDescriptor* FindField(const google::protobuf::Descriptor& type, std::string_view name);

/// What to say about a field that is not there.
struct UnknownField {
  std::string message;
  /// The field of the same message that was probably meant, or null.
  const google::protobuf::FieldDescriptor* meant = nullptr;
};

/// Says that `message` has no such field, and what was probably meant: the nearest field, the place in `root` where a
/// field of this name is, or all the fields when they are few. Of fields that exclude each other the one that is set is
/// the place.
UnknownField ExplainUnknownField(const google::protobuf::Message& message, std::string_view name,
                                 const google::protobuf::Message& root);

/// Names what a field holds, for "X takes …": "a whole number (int32)", "a string", "a list of …".
std::string TypeInWords(const google::protobuf::FieldDescriptor& field);

/// Joins the path of a message and the name of its field, with the index of an element unless it is negative.
std::string JoinPath(std::string_view parent, std::string_view field, int index = -1);

}  // namespace millrace
