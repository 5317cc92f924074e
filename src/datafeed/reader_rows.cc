#include "datafeed/reader_rows.h"

#include <memory>
#include <utility>
#include <vector>

#include "datafeed/row_file.h"
#include "datafeed/row_records.h"

namespace millrace {
namespace {

/// The outputs requested from a reader, one per slot.
std::vector<TensorSpec> SpecsOf(const SlotSchema& schema) {
  std::vector<TensorSpec> specs;
  for (const SlotSpec& slot : schema.all()) {
    TensorSpec spec;
    spec.dtype = slot.type == SlotType::kFloat ? DType::kFloat32 : DType::kInt64;
    spec.dims = slot.is_dense ? Dims(slot.shape) : Dims({-1, 1});
    spec.lod_level = slot.is_dense ? 0 : 1;
    spec.name = slot.name;
    specs.push_back(std::move(spec));
  }
  return specs;
}

/// Converts the records of a format's reader to rows.
class ReaderRows final : public RowFile {
 public:
  ReaderRows(std::shared_ptr<const FileFormat> format, const SlotSchema& schema, std::string path)
      : format_(std::move(format)), schema_(schema), path_(std::move(path)), of_slot_(schema.used().size()) {}

  Result<Got> Next(const std::stop_token& stop) override {
    const Result<bool> more = ReadRecord(stop);
    if (!more.ok()) return WithoutFile(more.status());
    if (!*more) return Got::kEnd;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const SlotSpec& slot = schema_.all()[i];
      if (slot.is_used && !TakeTensor(slot, tensors_[i])) return Got::kBad;
    }
    return Got::kRow;
  }
  std::span<const uint64_t> ids(SlotId slot) const override {
    const Tensor& values = of_slot_[static_cast<size_t>(slot)]->values;
    return {reinterpret_cast<const uint64_t*>(values.data<int64_t>()), static_cast<size_t>(values.numel())};
  }
  std::span<const float> floats(SlotId slot) const override {
    const Tensor& values = of_slot_[static_cast<size_t>(slot)]->values;
    return {values.data<float>(), static_cast<size_t>(values.numel())};
  }
  const LineError& error() const override { return error_; }

 private:
  Result<bool> ReadRecord(const std::stop_token& stop) {
    if (reader_ == nullptr) {
      MR_ASSIGN(reader_, ReaderRegistry::Open({format_.get(), path_}, SpecsOf(schema_)));
    }
    return reader_->ReadNext(&tensors_, stop);
  }
  /// Removes the reader's file name; the dataset adds its own.
  Status WithoutFile(const Status& failure) const {
    const std::string file = path_ + ": ";
    const std::string& message = failure.message();
    return message.starts_with(file) ? Status(failure.code(), message.substr(file.size())) : failure;
  }
  bool TakeTensor(const SlotSpec& slot, const LoDTensor& tensor) {
    of_slot_[static_cast<size_t>(slot.id)] = &tensor;
    if (tensor.lod.size() <= 2) return true;
    error_.kind = LineErrorKind::kWrongWidth;
    error_.slot = slot.name;
    error_.message = "expected the values of one example, found " + std::to_string(tensor.lod.size() - 1) +
                     " lists: a record is a row, not a batch";
    return false;
  }

  const std::shared_ptr<const FileFormat> format_;
  const SlotSchema& schema_;
  const std::string path_;
  std::unique_ptr<FileReader> reader_;
  std::vector<LoDTensor> tensors_;
  std::vector<const LoDTensor*> of_slot_;  ///< of the used slots
  LineError error_;
};

}  // namespace

FeedKind FeedOfReader(const FileFormat& format) {
  const auto shared = std::make_shared<const FileFormat>(format);
  const RowFileMaker maker = [shared](const SlotSchema& schema, const DataFeedDesc&) -> Result<RowFileOpener> {
    return RowFileOpener([shared, &schema](std::unique_ptr<ByteSource>, const std::string& file) {
      return Result<std::unique_ptr<RowFile>>(
          std::make_unique<ReaderRows>(shared, schema, PathOfFormat(file, shared->tag)));
    });
  };
  return FeedOfRows(maker, {.no_trailing_values = "gives the values of the used slots alone", .opens_files = true});
}

Status AddFeedsOfFormats(const ReaderRegistry& formats, const std::string& plugin, const std::string& version,
                         DataFeedFactory* feeds) {
  for (const auto& [tag, doc, format] : formats.entries()) {
    if (format.plugin != plugin || feeds->Find(tag) != nullptr) continue;
    FeedKind feed = FeedOfReader(format);
    feed.plugin = {plugin, version};
    MR_TRY(feeds->Add(tag, doc, std::move(feed)));
  }
  return Status::Ok();
}

}  // namespace millrace
