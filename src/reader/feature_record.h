#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <variant>

#include "core/status.h"
#include "reader/record_stream.h"

namespace millrace {

/// TensorFlow's TFRecord files: the length of a record with a CRC-32C of its own, then the record with one of it, which
/// FeatureRecord verifies.
extern const Framing kTfRecordFraming;
/// OneFlow's files of OFRecord messages: the length of a record, then the record.
extern const Framing kOfRecordFraming;

/// The values of a feature; monostate where it has no list.
using FeatureValues = std::variant<std::monostate, std::span<const float>, std::span<const int64_t>,
                                   std::span<const double>, std::span<const int32_t>, std::span<const uint8_t>>;
/// "float32", "int64", ...; "no value" where there is no list.
std::string_view FeatureTypeName(const FeatureValues& values);
/// How many there are.
size_t FeatureSize(const FeatureValues& values);

/// A record whose values have names: a tf.train.Example or an OFRecord. One thread.
class FeatureRecord {
 public:
  enum class Format : uint8_t { kTfRecord, kOfRecord };
  static std::unique_ptr<FeatureRecord> Create(Format format);
  virtual ~FeatureRecord() = default;

  /// Reads the body of a frame. kBadData without a place: a wrong checksum, or bytes that are no message.
  virtual Status Parse(std::string_view body) = 0;
  /// The values of a feature, valid until the next Parse: bytes are those of a list of one. False when there is no
  /// feature of this name.
  virtual bool Find(std::string_view name, FeatureValues* values) const = 0;
  /// `the record has no feature "lable"; did you mean "label"?`
  virtual std::string Missing(std::string_view name) const = 0;
};

}  // namespace millrace
