#pragma once

#include "reader/reader_registry.h"

namespace millrace {

/// TensorFlow's TFRecord files with tf.train.Example messages, and OneFlow's files with OFRecord messages.
///
/// In both, an output reads the feature with its name: with its exact number of values without LoD, or any number with
/// a LoD. float32, int64, float64 and int32 come from a list of that type, uint8 from the bytes of a list of one. A
/// missing feature, or one of another type or size, fails with kBadData, naming file, byte and feature.
FileFormat TfRecordFormat();
FileFormat OfRecordFormat();

}  // namespace millrace
