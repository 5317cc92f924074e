#include "reader/feature_record.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "core/crc32c.h"
#include "core/edit_distance.h"
#include "reader/byte_file.h"
#include "reader/line_file.h"
#include "record_features.pb.h"

namespace millrace {
namespace {

/// TFRecord's mask, so that a checksum of data that holds checksums is a good one.
uint32_t MaskedCrc32c(std::string_view bytes) {
  const uint32_t crc = Crc32c(0, bytes.data(), bytes.size());
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

/// Cuts a TFRecord file into messages.
struct TfRecordFrames {
  static constexpr const char* kTag = "tfrecord";
  static constexpr bool kHasChecksums = true;
  static constexpr bool kHasManyLists = false;
  using Message = TfExample;
  static const auto& Features(const TfExample& message) { return message.features().feature(); }
};

/// Cuts an OFRecord file into messages.
struct OfRecordFrames {
  static constexpr const char* kTag = "ofrecord";
  static constexpr bool kHasChecksums = false;
  static constexpr bool kHasManyLists = true;  ///< of doubles and of 32-bit integers as well
  using Message = OfRecord;
  static const auto& Features(const OfRecord& message) { return message.feature(); }
};

template <class Frames>
class FeatureReader final : public FileReader {
 public:
  FeatureReader(std::string file, const std::vector<TensorSpec>& specs)
      : FileReader(file, specs), bytes_(std::move(file)) {}

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token& stop) override {
    MR_ASSIGN(const bool more, ReadMessage(stop));
    if (!more) return false;
    for (size_t i = 0; i < out->size(); ++i) {
      MR_TRY(ReadFeature(shapes()[i], &(*out)[i]));
    }
    return true;
  }

  Result<bool> ReadMessage(const std::stop_token& stop) {
    constexpr size_t kCrc = Frames::kHasChecksums ? sizeof(uint32_t) : 0;
    MR_ASSIGN(std::string_view header, bytes_.Read(sizeof(uint64_t) + kCrc, "the length of a record", stop));
    if (header.empty()) return false;
    uint64_t length = 0;
    std::memcpy(&length, header.data(), sizeof(length));
    MR_TRY(CheckCrc(header.substr(0, sizeof(length)), header.substr(sizeof(length)), "length"));
    if (length > INT32_MAX) return bytes_.Error("a record of " + std::to_string(length) + " bytes");
    MR_ASSIGN(const std::string_view record, bytes_.Read(length + kCrc, "a record", stop));
    if (record.size() < length + kCrc) return bytes_.Error("the file ends behind the length of a record");
    MR_TRY(CheckCrc(record.substr(0, length), record.substr(length), "data"));
    if (message_.ParseFromArray(record.data(), static_cast<int>(length))) return true;
    return bytes_.Error(std::string("the record is no ") + message_.GetDescriptor()->name() + " message");
  }

  Status CheckCrc(std::string_view bytes, std::string_view stored, const char* of) const {
    if (stored.empty()) return Status::Ok();
    uint32_t crc = 0;
    std::memcpy(&crc, stored.data(), sizeof(crc));
    if (crc == MaskedCrc32c(bytes)) return Status::Ok();
    return bytes_.Error(std::string("the checksum of the record's ") + of + " is wrong: the file is damaged");
  }

  Status ReadFeature(const TensorSpec& spec, LoDTensor* tensor) const {
    const auto& features = Frames::Features(message_);
    const auto it = features.find(spec.name);
    if (it == features.end()) {
      std::vector<std::string_view> names;
      for (const auto& [name, feature] : features) names.push_back(name);
      return bytes_.Error("the record has no feature \"" + spec.name + "\"" + DidYouMean(spec.name, names));
    }
    return CopyFeature(it->second, spec, tensor);
  }

  template <class Feature>
  Status CopyFeature(const Feature& feature, const TensorSpec& spec, LoDTensor* tensor) const {
    switch (spec.dtype) {
      case DType::kFloat32:
        if (feature.has_float_list()) return CopyList<float>(feature.float_list().value(), spec, tensor);
        break;
      case DType::kInt64:
        if (feature.has_int64_list()) return CopyList<int64_t>(feature.int64_list().value(), spec, tensor);
        break;
      case DType::kUint8:
        if (feature.has_bytes_list() && feature.bytes_list().value_size() == 1) {
          return CopyList<uint8_t>(feature.bytes_list().value(0), spec, tensor);
        }
        break;
      default:
        if constexpr (Frames::kHasManyLists) {
          if (spec.dtype == DType::kFloat64 && feature.has_double_list()) {
            return CopyList<double>(feature.double_list().value(), spec, tensor);
          }
          if (spec.dtype == DType::kInt32 && feature.has_int32_list()) {
            return CopyList<int32_t>(feature.int32_list().value(), spec, tensor);
          }
        }
        break;
    }
    return bytes_.Error("feature \"" + spec.name + "\" holds no list of " + std::string(DTypeName(spec.dtype)));
  }

  template <class T, class Values>
  Status CopyList(const Values& values, const TensorSpec& spec, LoDTensor* tensor) const {
    const auto count = static_cast<size_t>(values.size());
    if (spec.lod_level == 0 && count != InstanceSize(spec)) {
      return bytes_.Error("feature \"" + spec.name + "\" has " + std::to_string(count) + " values; the output takes " +
                          std::to_string(InstanceSize(spec)));
    }
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      const auto negative = std::find_if(values.begin(), values.end(), [](auto value) { return value < 0; });
      if (spec.is_id && negative != values.end()) {
        return NegativeId(Where() + ": feature \"" + spec.name + "\", value " +
                              std::to_string(negative - values.begin()) + " (from 0)",
                          std::to_string(*negative), kSignedIdAdvice);
      }
    }
    auto* to = static_cast<T*>(ResizeToInstance(spec, count, tensor));
    std::transform(values.begin(), values.end(), to, [](auto value) { return static_cast<T>(value); });
    return Status::Ok();
  }

  Status Rewind() override {
    bytes_.Rewind();
    return Status::Ok();
  }

  ByteFile bytes_;
  typename Frames::Message message_;
};

template <class Frames>
Result<std::unique_ptr<FileReader>> OpenFeatures(const std::string& file, const std::vector<TensorSpec>& specs) {
  MR_TRY(CheckReadable(file));
  const std::string where = std::string(Frames::kTag) + " file \"" + file + "\"";
  MR_TRY(CheckInstanceSpecs(specs).Context(where));
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].name.empty()) continue;
    return InvalidConfig(where + ": output " + std::to_string(i) +
                         " has no name: which feature is it? Give `names`, one for each output");
  }
  return std::unique_ptr<FileReader>(std::make_unique<FeatureReader<Frames>>(file, specs));
}

}  // namespace

FileFormat TfRecordFormat() {
  return {"tfrecord", {".tfrecord", ".tfrecords"}, "a tf.train.Example", OpenFeatures<TfRecordFrames>};
}

FileFormat OfRecordFormat() { return {"ofrecord", {".ofrecord"}, "an OFRecord", OpenFeatures<OfRecordFrames>}; }

}  // namespace millrace
