#include "reader/jpeg_reader.h"

namespace millrace {

FileFormat JpegFormat() {
  const auto refuse = [](const std::string& file, const std::vector<TensorSpec>&) {
    return Result<std::unique_ptr<FileReader>>(
        InvalidConfig("jpeg file or folder \"" + file +
                      "\": this Millrace was built without JPEG (MILLRACE_JPEG); install libjpeg "
                      "(libjpeg62-turbo-dev), and build again with -DMILLRACE_JPEG=ON"));
  };
  return {"jpeg", {".jpg", ".jpeg"}, "a picture; not read, as this is built without JPEG", refuse};
}

}  // namespace millrace
