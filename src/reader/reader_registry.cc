#include "reader/reader_registry.h"

#include <algorithm>

#include "core/exception_text.h"
#include "core/harmless_text.h"

namespace millrace {
namespace {

bool IsTag(std::string_view text) {
  return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

std::string From(const FileFormat& format) {
  return format.plugin.empty() ? "" : ", from plugin \"" + format.plugin + "\"";
}

/// Call it within a catch block.
Status ReaderThrew(const std::string& file, const std::string& plugin) {
  return BadData(file + ": plugin \"" + plugin + "\" threw " + DescribeException());
}

/// Wraps a plugin's reader, which can throw in threads that do not catch exceptions.
class GuardedReader final : public FileReader {
 public:
  GuardedReader(std::unique_ptr<FileReader> reader, std::string plugin)
      : FileReader(reader->file(), reader->shapes()), reader_(std::move(reader)), plugin_(std::move(plugin)) {}

 private:
  Result<bool> ReadRecord(std::vector<LoDTensor>* out, const std::stop_token& stop) override {
    try {
      Result<bool> more = reader_->ReadNext(out, stop);
      return more.ok() ? std::move(more) : Harmless(more.status());
    } catch (...) {
      return ReaderThrew(file(), plugin_);
    }
  }
  Status Rewind() override {
    try {
      return Harmless(reader_->ReInit());
    } catch (...) {
      return ReaderThrew(file(), plugin_);
    }
  }

  const std::unique_ptr<FileReader> reader_;
  const std::string plugin_;
};

}  // namespace

Status ReaderRegistry::Add(FileFormat format) {
  if (!IsTag(format.tag)) {
    return InvalidConfig("a file format's tag is made of a-z, 0-9 and _, not \"" + format.tag + "\"");
  }
  for (const std::string& suffix : format.suffixes) {
    for (const Entry& other : entries()) {
      const std::vector<std::string>& taken = other.value.suffixes;
      if (other.name == format.tag || std::find(taken.begin(), taken.end(), suffix) == taken.end()) continue;
      return AlreadyExists("file format \"" + format.tag + "\": files named *" + suffix + " are \"" + other.name +
                           "\"" + From(other.value));
    }
  }
  const FileFormat* const taken = Find(format.tag);
  const std::string from = taken == nullptr ? "" : From(*taken);
  std::string tag = format.tag;
  std::string doc = format.doc;
  Status added = Registry::Add(std::move(tag), std::move(doc), std::move(format));
  return from.empty() ? added : AlreadyExists(added.message() + from);
}

Status ReaderRegistry::Adopt(const ReaderRegistry& formats, const std::string& plugin) {
  ReaderRegistry all = *this;
  for (const Entry& entry : formats.entries()) {
    FileFormat format = entry.value;
    format.plugin = plugin;
    MR_TRY(all.Add(std::move(format)));
  }
  *this = std::move(all);
  return Status::Ok();
}

const FileFormat* ReaderRegistry::FindBySuffix(std::string_view path) const {
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (path.ends_with(packed)) path.remove_suffix(packed.size());
  }
  const FileFormat* found = nullptr;
  size_t length = 0;
  for (const Entry& entry : entries()) {
    for (const std::string& suffix : entry.value.suffixes) {
      if (suffix.size() <= length || !path.ends_with(suffix)) continue;
      found = &entry.value;
      length = suffix.size();
    }
  }
  return found;
}

Result<ReaderRegistry::NamedFile> ReaderRegistry::Resolve(std::string_view name, std::string_view tag) const {
  if (!tag.empty()) {
    MR_ASSIGN(const FileFormat* const format, Get(tag));
    // A name can also contain the given tag.
    const bool repeats = name.starts_with(tag) && name.substr(tag.size()).starts_with(':');
    return NamedFile{format, std::string(repeats ? name.substr(tag.size() + 1) : name)};
  }
  const std::string where = "file \"" + std::string(name) + "\"";
  if (const size_t colon = name.find(':'); colon != std::string_view::npos && IsTag(name.substr(0, colon))) {
    MR_ASSIGN(const FileFormat* const format, Get(name.substr(0, colon)).Context(where));
    return NamedFile{format, std::string(name.substr(colon + 1))};
  }
  if (const FileFormat* const format = FindBySuffix(name); format != nullptr) {
    return NamedFile{format, std::string(name)};
  }
  std::string known;
  for (const Entry& entry : entries()) known += (known.empty() ? "" : ", ") + entry.name;
  return InvalidConfig(
      where + ": its name does not say its format: write FORMAT: before it, or give the format; there are: " + known);
}

Result<std::unique_ptr<FileReader>> ReaderRegistry::Open(std::string_view name, std::string_view tag,
                                                         const std::vector<TensorSpec>& shapes) const {
  MR_ASSIGN(const NamedFile file, Resolve(name, tag));
  return Open(file, shapes);
}

Result<std::unique_ptr<FileReader>> ReaderRegistry::Open(const NamedFile& file, const std::vector<TensorSpec>& shapes) {
  const std::string& plugin = file.format->plugin;
  if (plugin.empty()) return file.format->open(file.path, shapes);
  try {
    Result<std::unique_ptr<FileReader>> reader = file.format->open(file.path, shapes);
    if (!reader.ok()) return Harmless(reader.status());
    if (*reader == nullptr) return BadData(file.path + ": plugin \"" + plugin + "\" made no reader");
    return std::unique_ptr<FileReader>(std::make_unique<GuardedReader>(std::move(*reader), plugin));
  } catch (...) {
    return ReaderThrew(file.path, plugin);
  }
}

}  // namespace millrace
