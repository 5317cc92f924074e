#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/registry.h"
#include "core/status.h"
#include "reader/reader.h"

namespace millrace {

/// A file format that readers can open.
struct FileFormat {
  /// Creates the reader of a file. Does not open it, except to report a file that cannot be opened. Any thread.
  using Open = std::function<Result<std::unique_ptr<FileReader>>(const std::string& file,
                                                                 const std::vector<TensorSpec>& shapes)>;

  std::string tag;                    ///< "recordio": prefix of file names, and the operators' `format`
  std::vector<std::string> suffixes;  ///< ".recordio"; also recognized before ".gz" and ".zst"; can be empty
  std::string doc;                    ///< one line that describes a record
  Open open;
  std::string plugin = {};  ///< the shared object that registered it; empty: built in
};

/// The file formats for programs, by tag: filled at startup with built-in formats and those of plugins.
class ReaderRegistry : public Registry<FileFormat> {
 public:
  /// A parsed file name.
  struct NamedFile {
    const FileFormat* format = nullptr;
    std::string path;  ///< without the tag
  };

  ReaderRegistry() : Registry("file format") {}

  /// Fails with kAlreadyExists if the tag or a suffix is taken, kInvalidConfig for a tag with characters other than
  /// [a-z0-9_].
  Status Add(FileFormat format);
  /// Adds all formats of `formats`, or none: fails like Add. They record `plugin`, the path of their shared object;
  /// exceptions of their readers become failures that name it.
  Status Adopt(const ReaderRegistry& formats, const std::string& plugin);

  /// The format of a file: `tag` if not empty, else the name's prefix "TAG:", else its suffix. Fails with
  /// kInvalidConfig, listing the tags, if none applies.
  Result<NamedFile> Resolve(std::string_view name, std::string_view tag = {}) const;
  /// Creates the reader of a resolved file. Fails with the format's errors, kBadData if a plugin throws or returns no
  /// reader.
  static Result<std::unique_ptr<FileReader>> Open(const NamedFile& file, const std::vector<TensorSpec>& shapes);
  /// Resolves a name and creates its reader. Fails like both.
  Result<std::unique_ptr<FileReader>> Open(std::string_view name, std::string_view tag,
                                           const std::vector<TensorSpec>& shapes) const;

 private:
  const FileFormat* FindBySuffix(std::string_view path) const;
};

}  // namespace millrace
