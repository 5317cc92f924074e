#pragma once

#include <google/protobuf/descriptor.h>

#include <string>

namespace millrace {

/// The fields of a oneof as a message offers them: "value, norm or global_norm".
std::string OneofNames(const google::protobuf::OneofDescriptor& oneof);

/// The same of the oneof of this name in a message type of ours.
template <class Message>
std::string OneofNames(const std::string& oneof) {
  return OneofNames(*Message::descriptor()->FindOneofByName(oneof));
}

}  // namespace millrace
