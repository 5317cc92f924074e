#pragma once

#include "config/diagnostics.h"
#include "config/field_positions.h"

namespace google::protobuf {
class FieldDescriptor;
}

namespace millrace {

class TrainerDesc;

/// Reports fields of Paddle that are set to something which would change results there and is not acted on here; warns
/// of those that only workers look at which this job does not have.
void RejectUnsupportedFields(const TrainerDesc& desc, const FieldPositions& positions, Diagnostics* diagnostics);

/// Tells whether a field is only read so that Paddle's files load: its default says nothing about a job of ours.
bool IsInert(const google::protobuf::FieldDescriptor& field);

}  // namespace millrace
