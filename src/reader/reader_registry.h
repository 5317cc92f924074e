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

/// One format of files that readers can open.
struct FileFormat {
  /// Makes the reader of one file. Opens nothing, or reports a file that cannot be opened; any thread may call it.
  using Open = std::function<Result<std::unique_ptr<FileReader>>(const std::string& file,
                                                                 const std::vector<TensorSpec>& shapes)>;

  std::string tag;                    ///< "recordio": what a name's prefix and the operators' `format` say
  std::vector<std::string> suffixes;  ///< ".recordio"; also known before ".gz" and ".zst"; may be empty
  std::string doc;                    ///< one line: what a record is
  Open open;
  std::string plugin = {};  ///< the shared object that registered it; empty: it is Millrace's own
};

/// The file formats that programs may read, by their tags: filled at start by the built-in formats and by plugins.
class ReaderRegistry : public Registry<FileFormat> {
 public:
  /// A file name taken apart.
  struct NamedFile {
    const FileFormat* format = nullptr;
    std::string path;  ///< without the tag
  };

  ReaderRegistry() : Registry("file format") {}

  /// kAlreadyExists when the tag or a suffix is taken; kInvalidConfig for a tag that is not of [a-z0-9_].
  Status Add(FileFormat format);
  /// Takes over every format of `formats`, or none of them: Add's errors. They remember `plugin`, the path of the
  /// shared object that they came from; what their readers throw is a failure that names it.
  Status Adopt(const ReaderRegistry& formats, const std::string& plugin);

  /// The format of a file: `tag` when that is not empty, or else the name's prefix "TAG:", or else its suffix.
  /// kInvalidConfig, with the tags that there are, when none of them says.
  Result<NamedFile> Resolve(std::string_view name, std::string_view tag = {}) const;
  /// Makes the reader of a file that was resolved.
  static Result<std::unique_ptr<FileReader>> Open(const NamedFile& file, const std::vector<TensorSpec>& shapes);
  /// Resolves a name and makes its reader.
  Result<std::unique_ptr<FileReader>> Open(std::string_view name, std::string_view tag,
                                           const std::vector<TensorSpec>& shapes) const;

 private:
  const FileFormat* FindBySuffix(std::string_view path) const;
};

}  // namespace millrace
