#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <variant>

#include "core/status.h"
#include "reader/record_stream.h"

namespace millrace {

/// TensorFlow's TFRecord files: a record's length with its CRC-32C, then the record with its CRC-32C. FeatureRecord
/// verifies the latter.
extern const Framing kTfRecordFraming;
/// OneFlow's files of OFRecord messages: a record's length, then the record.
extern const Framing kOfRecordFraming;

/// The values of a feature; monostate without a list.
using FeatureValues = std::variant<std::monostate, std::span<const float>, std::span<const int64_t>,
                                   std::span<const double>, std::span<const int32_t>, std::span<const uint8_t>>;
/// "float32", "int64", ...; "no value" without a list.
std::string_view FeatureTypeName(const FeatureValues& values);
/// Number of values.
size_t FeatureSize(const FeatureValues& values);

/// A record with named values: a tf.train.Example or an OFRecord. One thread.
class FeatureRecord {
 public:
  enum class Format : uint8_t { kTfRecord, kOfRecord };
  static std::unique_ptr<FeatureRecord> Create(Format format);
  virtual ~FeatureRecord() = default;

  /// Parses the body of a frame. Fails with kBadData, without a position, for a wrong checksum or an invalid message.
  virtual Status Parse(std::string_view body) = 0;
  /// The values of a feature, valid until the next Parse; bytes are those of a list of one. False if there is no such
  /// feature.
  virtual bool Find(std::string_view name, FeatureValues* values) const = 0;
  /// `the record has no feature "lable"; did you mean "label"?`
  virtual std::string Missing(std::string_view name) const = 0;
};

}  // namespace millrace
