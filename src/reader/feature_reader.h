#pragma once

#include "reader/reader_registry.h"

namespace millrace {

/// TensorFlow's TFRecord files of tf.train.Example messages, and OneFlow's files of OFRecord messages.
///
/// In both, an output is the feature of its name. One without a LoD takes as many values as it has, one with a LoD any
/// number. float32, int64, float64 and int32 come from a list of that type, uint8 from the bytes of a list of one. A
/// feature that is missing, or of another type or size, is kBadData with file, byte and feature.
FileFormat TfRecordFormat();
FileFormat OfRecordFormat();

}  // namespace millrace
