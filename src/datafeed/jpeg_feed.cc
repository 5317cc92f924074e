#include "datafeed/jpeg_feed.h"

#include <string>
#include <utility>
#include <vector>

#include "datafeed/format_feed.h"
#include "reader/jpeg_decoder.h"
#include "reader/jpeg_folder.h"
#include "reader/picture_records.h"

namespace millrace {
namespace {

constexpr char kFormat[] = "jpeg";

std::string ShapeOf(const SlotSpec& slot) {
  std::string text;
  for (const int64_t size : slot.shape) text += (text.empty() ? "[" : ", ") + std::to_string(size);
  return text + "]";
}

class JpegFeed final : public FormatFeed {
 public:
  JpegFeed(const SlotSchema& schema, const MultiSlotOptions& options)
      : FormatFeed(schema, options), values_(static_cast<size_t>(schema.all()[0].width)) {}

  static Status CheckSlots(const SlotSchema& schema) {
    const std::vector<SlotSpec>& slots = schema.all();
    const SlotSpec& picture = slots[0];
    const bool is_picture = picture.is_used && picture.is_dense && picture.type == SlotType::kFloat &&
                            picture.shape.size() == 4 && (picture.shape[1] == 1 || picture.shape[1] == 3);
    if (!is_picture) {
      return InvalidConfig("slot \"" + picture.name +
                           "\": the first slot of jpeg is the picture, used, dense, of type \"float\" and the shape "
                           "[-1, 1 or 3, height, width]");
    }
    if (slots.size() == 1) return Status::Ok();
    const SlotSpec& label = slots[1];
    if (slots.size() == 2 && (!label.is_used || label.width == 1 || !label.is_dense)) return Status::Ok();
    return InvalidConfig("slot \"" + slots.back().name +
                         "\": the slots of jpeg are the picture and its label, one value, or the picture alone");
  }

 private:
  LineResult Read(std::string_view line) override {
    const PictureRecord picture = PictureRecord::Of(line);
    path_.assign(picture.path);
    if (!Decode(picture) || !Put(schema().all()[0], std::span<const float>(values_))) return LineResult::kBad;
    for (const SlotSpec& slot : schema().all()) {
      if (slot.name == schema().all()[0].name || !slot.is_used) continue;
      const auto id = static_cast<uint64_t>(picture.label);
      const auto number = static_cast<float>(picture.label);
      const bool is_put =
          slot.type == SlotType::kFloat ? Put(slot, std::span(&number, 1)) : Put(slot, std::span(&id, 1));
      if (!is_put) return LineResult::kBad;
    }
    return LineResult::kRow;
  }

  bool Decode(const PictureRecord& picture) {
    const SlotSpec& slot = schema().all()[0];
    if (picture.is_too_long) {
      return Fail(LineErrorKind::kDamaged, "",
                  path_ + ": the file has more bytes than data_desc.max_line_bytes; is it a picture?");
    }
    const Result<PictureSize> size = decoder_.ReadHeader(path_, picture.bytes);
    if (!size.ok()) return Fail(LineErrorKind::kDamaged, "", size.status().message());
    // Checked before allocating the picture's size, so a false header costs no memory.
    if (size->height != slot.shape[2] || size->width != slot.shape[3]) {
      return Fail(LineErrorKind::kWrongWidth, slot.name,
                  path_ + ": the picture is " + std::to_string(size->height) + " high and " +
                      std::to_string(size->width) + " wide; the slot takes " + ShapeOf(slot) +
                      ": scale the pictures before");
    }
    const Status decoded = decoder_.ReadPlanes(path_, static_cast<int>(slot.shape[1]), values_.data());
    return decoded.ok() || Fail(LineErrorKind::kDamaged, "", decoded.message());
  }

  JpegDecoder decoder_;
  std::string path_;
  std::vector<float> values_;
};

Result<LineCut> CutOfPictures(const SlotSchema& schema, const DataFeedDesc&, const std::string&) {
  const bool wants_labels = schema.all().size() > 1 && schema.all()[1].is_used;
  return LineCut{.records = [wants_labels](std::unique_ptr<ByteSource>, const std::string& file,
                                           const LineLimit& limit) -> Result<std::unique_ptr<RecordSource>> {
    MR_ASSIGN(std::vector<LabelledPicture> pictures, ListPictures(PathOfFormat(file, kFormat), wants_labels));
    return PictureRecords(std::move(pictures), limit);
  }};
}

}  // namespace

FeedKind JpegFeedKind() { return {.maker = MakeFormat<JpegFeed>, .cut_of = CutOfPictures}; }

}  // namespace millrace
