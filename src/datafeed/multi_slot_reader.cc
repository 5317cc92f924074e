#include "datafeed/multi_slot_reader.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "batch/slot_batch.h"
#include "batch/slot_schema.h"
#include "core/utf8.h"
#include "data_feed.pb.h"
#include "datafeed/column_sink.h"
#include "datafeed/multi_slot_parser.h"
#include "reader/line_file.h"

namespace millrace {
namespace {

// Number of lines parsed at a time into columns, from which records are cut.
constexpr int kLinesAtOnce = 64;

class MultiSlotReader final : public FileReader {
 public:
  MultiSlotReader(std::string file, const std::vector<TensorSpec>& specs, SlotSchema schema)
      : FileReader(file, specs),
        lines_(std::move(file)),
        schema_(std::move(schema)),
        parser_(schema_, MultiSlotOptions()),
        sink_(schema_),
        batch_(schema_) {}

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token& stop) override {
    if (row_ == batch_.rows()) MR_TRY(FillBatch(stop));
    if (row_ == batch_.rows()) {
      MR_TRY(failure_);
      return false;
    }
    for (size_t i = 0; i < out->size(); ++i) CopySlot(static_cast<SlotId>(i), &(*out)[i]);
    ++row_;
    return true;
  }

  /// Parses the next lines. An error is returned after the rows before it are used.
  Status FillBatch(const std::stop_token& stop) {
    MR_TRY(failure_);
    batch_.Clear();
    row_ = 0;
    sink_.Attach(&batch_);
    while (failure_.ok() && sink_.rows() < kLinesAtOnce) {
      std::string_view line;
      const Result<bool> more = lines_.Next(&line, stop);
      if (!more.ok()) failure_ = more.status();
      if (!more.ok() || !*more) break;
      if (lines_.number() == 1) line = WithoutByteOrderMark(line);
      if (parser_.ParseLine(line, sink_) == LineResult::kBad) {
        failure_ = parser_.error().ToStatus(lines_.path(), lines_.number());
      }
    }
    sink_.Detach();
    return Status::Ok();
  }

  void CopySlot(SlotId slot, LoDTensor* tensor) const {
    const TensorSpec& spec = shapes()[static_cast<size_t>(slot)];
    const SlotSpec& known = schema_.used()[static_cast<size_t>(slot)];
    const auto row = static_cast<size_t>(row_);
    const auto width = static_cast<size_t>(known.width);
    const size_t begin = known.is_dense ? row * width : batch_.offsets(slot)[row];
    const size_t end = known.is_dense ? begin + width : batch_.offsets(slot)[row + 1];
    void* to = ResizeToInstance(spec, end - begin, tensor);
    const void* from = spec.dtype == DType::kFloat32 ? static_cast<const void*>(batch_.floats(slot).data() + begin)
                                                     : static_cast<const void*>(batch_.ids(slot).data() + begin);
    if (end > begin) std::memcpy(to, from, (end - begin) * SizeOf(spec.dtype));
  }

  Status Rewind() override {
    lines_.Rewind();
    batch_.Clear();
    row_ = 0;
    failure_ = Status::Ok();
    return Status::Ok();
  }

  LineFile lines_;
  const SlotSchema schema_;
  MultiSlotParser parser_;
  ColumnSink sink_;
  SlotBatch batch_;
  int row_ = 0;  ///< next row of batch_
  Status failure_;
};

Result<SlotSchema> SchemaOf(const std::vector<TensorSpec>& specs) {
  DataFeedDesc desc;
  for (size_t i = 0; i < specs.size(); ++i) {
    const TensorSpec& spec = specs[i];
    if (spec.dtype != DType::kFloat32 && spec.dtype != DType::kInt64) {
      return InvalidConfig("output " + std::to_string(i) + ": " + spec.ToString() +
                           ": slots hold int64 (ids) or float32");
    }
    Slot& slot = *desc.mutable_multi_slot_desc()->add_slots();
    slot.set_name(spec.name.empty() ? "output_" + std::to_string(i) : spec.name);
    slot.set_type(spec.dtype == DType::kFloat32 ? "float" : "uint64");
    slot.set_is_used(true);
    if (spec.lod_level > 0) continue;
    slot.set_is_dense(true);
    slot.add_shape(-1);
    slot.add_shape(static_cast<int>(InstanceSize(spec)));
  }
  return SlotSchema::Create(desc);
}

Result<std::unique_ptr<FileReader>> OpenMultiSlot(const std::string& file, const std::vector<TensorSpec>& specs) {
  MR_TRY(CheckReadable(file));
  const std::string where = "multi_slot file \"" + file + "\"";
  MR_TRY(CheckInstanceSpecs(specs).Context(where));
  MR_ASSIGN(SlotSchema schema, SchemaOf(specs).Context(where));
  return std::unique_ptr<FileReader>(std::make_unique<MultiSlotReader>(file, specs, std::move(schema)));
}

}  // namespace

FileFormat MultiSlotFormat() {
  return {"multi_slot", {".multi_slot"}, "a line of MultiSlot text: COUNT VALUE ... for each slot", OpenMultiSlot};
}

}  // namespace millrace
