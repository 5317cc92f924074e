#pragma once

#include <cstddef>
#include <string>

#include "config/diagnostics.h"
#include "config/field_positions.h"

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace millrace {

/// Reads protobuf text format into `message` (which is cleared) and goes on after a mistake, so that one run reports
/// all of them: unknown fields, wrong types, unknown enum values, missing values, fields given twice, braces and
/// strings that do not end, bytes that are not UTF-8.
///
/// Reads every UTF-8 text that google::protobuf::TextFormat reads for our schemas, with the same result (a fuzz target
/// compares them), and the names that Paddle's files once had: "batch" for batch_size, "use" and "dense" of a slot.
/// `source` is the text's number in `diagnostics`; `path` is where `message` stands in the whole, for `positions`.
/// Fields with mistakes have a place in `positions` too, and hold what was surely meant where that is clear. Returns
/// false when braces do not match, so that what stands where is guesswork.
bool ParseText(int source, const std::string& path, google::protobuf::Message* message, Diagnostics* diagnostics,
               FieldPositions* positions);

/// Reads the bytes of a source from `begin` to its end as the value of one field, and sets it, or adds to it when it is
/// repeated. `path` is that of `parent`.
void ParseFieldValue(int source, size_t begin, const std::string& path, google::protobuf::Message* parent,
                     const google::protobuf::FieldDescriptor* field, Diagnostics* diagnostics,
                     FieldPositions* positions);

}  // namespace millrace
