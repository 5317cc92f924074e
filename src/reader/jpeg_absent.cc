#include "reader/jpeg_absent.h"

#include "reader/jpeg_reader.h"

namespace millrace {

Status WithoutJpeg(const std::string& what) {
  return InvalidConfig(what +
                       ": this Millrace was built without JPEG (MILLRACE_JPEG); install libjpeg "
                       "(libjpeg62-turbo-dev), and build again with -DMILLRACE_JPEG=ON");
}

FileFormat JpegFormat() {
  const auto refuse = [](const std::string& file, const std::vector<TensorSpec>&) {
    return Result<std::unique_ptr<FileReader>>(WithoutJpeg("jpeg file or folder \"" + file + "\""));
  };
  return {"jpeg", {".jpg", ".jpeg"}, "a picture; not read, as this is built without JPEG", refuse};
}

}  // namespace millrace
