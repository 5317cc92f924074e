#include "reader/feature_record.h"

#include <cstring>
#include <string>
#include <vector>

#include "core/crc32c.h"
#include "core/edit_distance.h"
#include "record_features.pb.h"

namespace millrace {
namespace {

/// TFRecord's mask, so that checksums of data containing checksums stay effective.
uint32_t MaskedCrc32c(std::string_view bytes) {
  const uint32_t crc = Crc32c(0, bytes.data(), bytes.size());
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

/// Removes and verifies the checksum at the end of `bytes`.
Status TakeCrc(std::string_view* bytes, const char* of) {
  uint32_t crc = 0;
  if (bytes->size() < sizeof(crc)) return BadData(std::string("the record's ") + of + " has no checksum");
  std::memcpy(&crc, bytes->data() + bytes->size() - sizeof(crc), sizeof(crc));
  bytes->remove_suffix(sizeof(crc));
  if (crc == MaskedCrc32c(*bytes)) return Status::Ok();
  return BadData(std::string("the checksum of the record's ") + of + " is wrong: the file is damaged");
}

Result<uint64_t> LengthOf(std::string_view header, uint64_t behind) {
  uint64_t length = 0;
  std::memcpy(&length, header.data(), sizeof(length));
  if (length > INT32_MAX) return BadData("a record of " + std::to_string(length) + " bytes");
  return length + behind;
}

Result<uint64_t> TfBodySize(std::string_view header) {
  MR_TRY(TakeCrc(&header, "length"));
  return LengthOf(header, sizeof(uint32_t));
}

Result<uint64_t> OfBodySize(std::string_view header) { return LengthOf(header, 0); }

template <class T, class Values>
std::span<const T> Span(const Values& values) {
  return {values.data(), static_cast<size_t>(values.size())};
}

struct TfKind {
  static constexpr bool kHasChecksums = true;
  static constexpr bool kHasManyLists = false;
  using Message = TfExample;
  static const auto& Features(const TfExample& message) { return message.features().feature(); }
};

struct OfKind {
  static constexpr bool kHasChecksums = false;
  static constexpr bool kHasManyLists = true;  ///< also for doubles and 32-bit integers
  using Message = OfRecord;
  static const auto& Features(const OfRecord& message) { return message.feature(); }
};

template <class Kind>
class FeatureMessage final : public FeatureRecord {
 public:
  Status Parse(std::string_view body) override {
    if constexpr (Kind::kHasChecksums) MR_TRY(TakeCrc(&body, "data"));
    if (message_.ParseFromArray(body.data(), static_cast<int>(body.size()))) return Status::Ok();
    return BadData(std::string("the record is no ") + message_.GetDescriptor()->name() + " message");
  }

  bool Find(std::string_view name, FeatureValues* values) const override {
    const auto& features = Kind::Features(message_);
    const auto found = features.find(std::string(name));
    if (found == features.end()) return false;
    const auto& feature = found->second;
    *values = std::monostate();
    if (feature.has_float_list()) *values = Span<float>(feature.float_list().value());
    if (feature.has_int64_list()) *values = Span<int64_t>(feature.int64_list().value());
    if (feature.has_bytes_list() && feature.bytes_list().value_size() == 1) {
      const std::string& bytes = feature.bytes_list().value(0);
      *values = std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    }
    if constexpr (Kind::kHasManyLists) {
      if (feature.has_double_list()) *values = Span<double>(feature.double_list().value());
      if (feature.has_int32_list()) *values = Span<int32_t>(feature.int32_list().value());
    }
    return true;
  }

  std::string Missing(std::string_view name) const override {
    std::vector<std::string_view> names;
    for (const auto& [there, feature] : Kind::Features(message_)) names.push_back(there);
    return "the record has no feature \"" + std::string(name) + "\"" + DidYouMean(name, names);
  }

 private:
  typename Kind::Message message_;
};

}  // namespace

const Framing kTfRecordFraming = {
    "tfrecord", sizeof(uint64_t) + sizeof(uint32_t), "the length of a record", "a record", TfBodySize, nullptr};
const Framing kOfRecordFraming = {"ofrecord", sizeof(uint64_t), "the length of a record",
                                  "a record", OfBodySize,       nullptr};

std::string_view FeatureTypeName(const FeatureValues& values) {
  constexpr std::string_view kNames[] = {"no value", "float32", "int64", "float64", "int32", "uint8"};
  return kNames[values.index()];
}

size_t FeatureSize(const FeatureValues& values) {
  return std::visit(
      [](const auto& list) -> size_t {
        if constexpr (requires { list.size(); }) return list.size();
        return 0;
      },
      values);
}

std::unique_ptr<FeatureRecord> FeatureRecord::Create(Format format) {
  if (format == Format::kTfRecord) return std::make_unique<FeatureMessage<TfKind>>();
  return std::make_unique<FeatureMessage<OfKind>>();
}

}  // namespace millrace
