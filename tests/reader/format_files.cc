#include "reader/format_files.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "datafeed/builtin_formats.h"

namespace millrace {
namespace {

std::string NumberText(const Tensor& values, int64_t at) {
  char number[32];
  switch (values.dtype()) {
    case DType::kFloat32: std::snprintf(number, sizeof(number), "%.9g", values.data<float>()[at]); break;
    case DType::kFloat64: std::snprintf(number, sizeof(number), "%.17g", values.data<double>()[at]); break;
    case DType::kInt32: return std::to_string(values.data<int32_t>()[at]);
    case DType::kInt64: return std::to_string(values.data<int64_t>()[at]);
    case DType::kUint8: return std::to_string(values.data<uint8_t>()[at]);
    default: return "?";
  }
  return number;
}

}  // namespace

const ReaderRegistry& BuiltinFormats() {
  static const ReaderRegistry registry = [] {
    ReaderRegistry made;
    EXPECT_TRUE(AddBuiltinFormats(&made).ok());
    return made;
  }();
  return registry;
}

std::string ItemText(const std::vector<LoDTensor>& item) {
  std::string text;
  for (size_t i = 0; i < item.size(); ++i) {
    if (i > 0) text += " |";
    for (int64_t k = 0; k < item[i].values.numel(); ++k) {
      text += (text.empty() ? "" : " ") + NumberText(item[i].values, k);
    }
  }
  return text;
}

std::string FormatFiles::Write(const std::string& name, const std::string& bytes) const {
  const std::filesystem::path path = folder() + "/" + name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}

std::vector<std::string> FormatFiles::Records(const std::string& path, const std::vector<TensorSpec>& shapes) const {
  Result<std::unique_ptr<FileReader>> reader = BuiltinFormats().Open(path, "", shapes);
  if (!reader.ok()) return {Shortened(reader.status().ToString())};
  std::vector<std::string> first = RecordsOf(*reader.value());
  EXPECT_TRUE(reader.value()->ReInit().ok());
  EXPECT_EQ(RecordsOf(*reader.value()), first) << "the second time";
  return first;
}

std::vector<std::string> FormatFiles::RecordsOf(FileReader& reader) const {
  std::vector<std::string> records;
  std::vector<LoDTensor> item;
  for (;;) {
    const Result<bool> more = reader.ReadNext(&item, {});
    if (!more.ok()) records.push_back(Shortened(more.status().ToString()));
    if (!more.ok() || !*more) return records;
    records.push_back(ItemText(item));
  }
}

std::string FormatFiles::Shortened(std::string text) const {
  for (size_t at = text.find(folder()); at != std::string::npos; at = text.find(folder(), at)) {
    text.erase(at, folder().size() + (text[at + folder().size()] == '/' ? 1 : 0));
  }
  return text;
}

}  // namespace millrace
