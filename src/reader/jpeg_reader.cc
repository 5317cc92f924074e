#include "reader/jpeg_reader.h"

#include <memory>
#include <string>
#include <utility>

#include "reader/jpeg_decoder.h"
#include "reader/jpeg_folder.h"

namespace millrace {
namespace {

class JpegReader final : public FileReader {
 public:
  JpegReader(std::string file, const std::vector<TensorSpec>& specs, std::vector<LabelledPicture> pictures)
      : FileReader(std::move(file), specs), pictures_(std::move(pictures)) {}

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token& stop) override {
    if (next_ == pictures_.size()) return false;
    if (stop.stop_requested()) return Cancelled("stopped between two pictures");
    const LabelledPicture& picture = pictures_[next_++];
    MR_TRY(ReadPicture(picture.path, &(*out)[0]));
    if (out->size() > 1) *static_cast<int64_t*>(ResizeToInstance(shapes()[1], 1, &(*out)[1])) = picture.label;
    return true;
  }

  Status ReadPicture(const std::string& path, LoDTensor* tensor) {
    const TensorSpec& spec = shapes()[0];
    MR_ASSIGN(const PictureSize size, decoder_.ReadHeader(path));
    // Checked before allocating the picture's size, so a false header costs no memory.
    if (size.height != spec.dims[2] || size.width != spec.dims[3]) {
      return BadData(path + ": the picture is " + std::to_string(size.height) + " high and " +
                     std::to_string(size.width) + " wide; the output takes " + spec.ToString() +
                     ": scale the pictures before");
    }
    const auto channels = static_cast<int>(spec.dims[1]);
    void* values = ResizeToInstance(spec, 0, tensor);
    if (spec.dtype == DType::kFloat32) return decoder_.ReadPlanes(path, channels, static_cast<float*>(values));
    return decoder_.ReadPlanes(path, channels, static_cast<uint8_t*>(values));
  }

  Status Rewind() override {
    next_ = 0;
    return Status::Ok();
  }

  const std::vector<LabelledPicture> pictures_;
  size_t next_ = 0;
  JpegDecoder decoder_;
};

bool IsPicture(const TensorSpec& spec) {
  const Dims& dims = spec.dims;
  return (spec.dtype == DType::kFloat32 || spec.dtype == DType::kUint8) && spec.lod_level == 0 && dims.rank() == 4 &&
         (dims[0] == -1 || dims[0] == 1) && (dims[1] == 1 || dims[1] == 3) && dims[2] > 0 && dims[3] > 0;
}

bool IsLabel(const TensorSpec& spec) {
  return spec.dtype == DType::kInt64 && spec.lod_level == 0 && InstanceSize(spec) == 1;
}

Result<std::unique_ptr<FileReader>> OpenJpeg(const std::string& file, const std::vector<TensorSpec>& specs) {
  const bool fits = (specs.size() == 1 || (specs.size() == 2 && IsLabel(specs[1]))) && IsPicture(specs[0]);
  if (!fits) {
    std::string outputs;
    for (const TensorSpec& spec : specs) outputs += (outputs.empty() ? "" : ", ") + spec.ToString();
    return InvalidConfig("jpeg file or folder \"" + file +
                         "\": the outputs are a picture, float32 or uint8 [-1, 1 or 3, height, width], and its label, "
                         "int64 [-1, 1], or the picture alone; they are " +
                         outputs);
  }
  MR_ASSIGN(std::vector<LabelledPicture> pictures, ListPictures(file, specs.size() > 1));
  return std::unique_ptr<FileReader>(std::make_unique<JpegReader>(file, specs, std::move(pictures)));
}

}  // namespace

FileFormat JpegFormat() {
  return {"jpeg", {".jpg", ".jpeg"}, "a picture, of a file or of each file in a folder", OpenJpeg};
}

}  // namespace millrace
