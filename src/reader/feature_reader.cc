#include "reader/feature_reader.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "reader/feature_record.h"
#include "reader/line_file.h"
#include "reader/record_file.h"

namespace millrace {
namespace {

DType TypeOf(const FeatureValues& values) {
  constexpr DType kTypes[] = {DType::kBool,    DType::kFloat32, DType::kInt64,
                              DType::kFloat64, DType::kInt32,   DType::kUint8};
  return kTypes[values.index()];  // none is a bool
}

class FeatureReader final : public FileReader {
 public:
  FeatureReader(std::string file, const std::vector<TensorSpec>& specs, FeatureRecord::Format format)
      : FileReader(file, specs),
        frames_(std::move(file), format == FeatureRecord::Format::kTfRecord ? kTfRecordFraming : kOfRecordFraming),
        record_(FeatureRecord::Create(format)) {}

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token& stop) override {
    RecordFrame frame;
    MR_ASSIGN(const bool more, frames_.Next(&frame, stop));
    if (!more) return false;
    if (const Status parsed = record_->Parse(frame.body); !parsed.ok()) return frames_.Error(parsed.message());
    for (size_t i = 0; i < out->size(); ++i) {
      const TensorSpec& spec = shapes()[i];
      FeatureValues values;
      if (!record_->Find(spec.name, &values)) return frames_.Error(record_->Missing(spec.name));
      if (TypeOf(values) != spec.dtype || values.index() == 0) {
        return frames_.Error("feature \"" + spec.name + "\" holds no list of " + std::string(DTypeName(spec.dtype)));
      }
      MR_TRY(std::visit([&](const auto& list) { return CopyList(list, spec, &(*out)[i]); }, values));
    }
    return true;
  }

  static Status CopyList(std::monostate /*none*/, const TensorSpec& /*spec*/, LoDTensor* /*tensor*/) {
    return Status::Ok();
  }
  template <class T>
  Status CopyList(std::span<const T> values, const TensorSpec& spec, LoDTensor* tensor) const {
    if (spec.lod_level == 0 && values.size() != InstanceSize(spec)) {
      return frames_.Error("feature \"" + spec.name + "\" has " + std::to_string(values.size()) +
                           " values; the output takes " + std::to_string(InstanceSize(spec)));
    }
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      const auto negative = std::find_if(values.begin(), values.end(), [](T value) { return value < 0; });
      if (spec.is_id && negative != values.end()) {
        return NegativeId(Where() + ": feature \"" + spec.name + "\", value " +
                              std::to_string(negative - values.begin()) + " (from 0)",
                          std::to_string(*negative), kSignedIdAdvice);
      }
    }
    std::copy(values.begin(), values.end(), static_cast<T*>(ResizeToInstance(spec, values.size(), tensor)));
    return Status::Ok();
  }

  Status Rewind() override {
    frames_.Rewind();
    return Status::Ok();
  }

  RecordFile frames_;
  std::unique_ptr<FeatureRecord> record_;
};

template <FeatureRecord::Format kFormat>
Result<std::unique_ptr<FileReader>> OpenFeatures(const std::string& file, const std::vector<TensorSpec>& specs) {
  MR_TRY(CheckReadable(file));
  const std::string where =
      std::string(kFormat == FeatureRecord::Format::kTfRecord ? "tfrecord" : "ofrecord") + " file \"" + file + "\"";
  MR_TRY(CheckInstanceSpecs(specs).Context(where));
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].name.empty()) continue;
    return InvalidConfig(where + ": output " + std::to_string(i) +
                         " has no name: which feature is it? Give `names`, one for each output");
  }
  return std::unique_ptr<FileReader>(std::make_unique<FeatureReader>(file, specs, kFormat));
}

}  // namespace

FileFormat TfRecordFormat() {
  return {
      "tfrecord", {".tfrecord", ".tfrecords"}, "a tf.train.Example", OpenFeatures<FeatureRecord::Format::kTfRecord>};
}

FileFormat OfRecordFormat() {
  return {"ofrecord", {".ofrecord"}, "an OFRecord", OpenFeatures<FeatureRecord::Format::kOfRecord>};
}

}  // namespace millrace
