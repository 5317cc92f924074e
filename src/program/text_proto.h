#pragma once

#include <string>

#include "core/status.h"

namespace google::protobuf {
class Message;
}

namespace millrace {

/// Reads a message in text format into `message`; `origin` stands for the file's name. kInvalidConfig with file, line
/// and column of the first mistake.
Status ParseTextProto(const std::string& text, const std::string& origin, google::protobuf::Message* message);

}  // namespace millrace
