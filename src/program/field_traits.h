#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "field_traits.pb.h"

namespace millrace {

/// What a schema says of a field (proto/field_traits.proto), with what follows: a learning rate is above 0 and may
/// change.
FieldTraits TraitsOf(const google::protobuf::FieldDescriptor& field);

/// A number that the schema of its message does not allow.
struct OutOfRange {
  std::string path;  ///< from the message on: "cosine.decay_steps", "piecewise.rates[1]", "table[0].dim"
  std::string what;  ///< "must be above 0, not -1"

  /// "cosine: decay_steps", without a place in a list of numbers.
  std::string Where() const;
};

/// All of them that are set in a message and the messages below it, by the fields' numbers. Any thread.
std::vector<OutOfRange> FindOutOfRange(const google::protobuf::Message& message);

}  // namespace millrace
