#pragma once

#include <string>
#include <string_view>

#include "config/diagnostics.h"
#include "config/field_positions.h"

namespace google::protobuf {
class Message;
}

namespace millrace {

/// Applies one assignment of the command line to `message`:
///
///     data_desc.batch_size=64                                   a scalar, in text format (quotes may be left out)
///     data_desc.multi_slot_desc.slots[click].is_used=true       an element by its name, or by its number from 0
///     filelist=[a,b]   filelist+=c                              a whole list; one more element
///     model.layer[0]+={name: "x"}  eval={filelist: "t"}         a message in text format
///     data_desc=@data_feed.prototxt                             a message from a file
///
/// `number` counts assignments from 1, for messages ("--set #2"). Mistakes go to `diagnostics` with their column and
/// the nearest field; `message` is then as it was. Fields that are set get their place in `positions`.
void ApplyOverride(std::string_view assignment, int number, google::protobuf::Message* message,
                   Diagnostics* diagnostics, FieldPositions* positions);

}  // namespace millrace
