#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_source.h"
#include "core/line_blocks.h"
#include "core/status.h"
#include "reader/record_stream.h"

namespace millrace {

/// What tells rows in memory from others.
struct RowsInMemory {
  uint64_t rows = 0;
  uint32_t checksum = 0;
};

/// What the lines of a file are, for a class of data feed. What it refers to must outlive it.
struct LineCut {
  /// Makes of a file's bytes its records, whatever bytes they hold, of `limit.bytes` at most. Empty: lines of text.
  /// Any thread may call it.
  std::function<Result<std::unique_ptr<RecordSource>>(std::unique_ptr<ByteSource> bytes, const std::string& file,
                                                      const LineLimit& limit)>
      records = nullptr;
  /// What of a file's first line names the columns of the others; empty when it does not. Null: it never does.
  std::string_view (*header)(std::string_view first_line) = nullptr;
  /// The format that opens its files itself: `records` gets no bytes, and no command stands before it. Empty: none.
  std::string opened_by = {};
  /// Program and arguments that make `records`' bytes of a file, which is its standard input, or of what pipe_command
  /// makes of it. Empty: there is none.
  std::vector<std::string> command = {};
  /// Where its "files" are rows in memory, and their names those of no file: what these are. Null: they are files.
  std::function<RowsInMemory(const std::string& file)> in_memory = nullptr;
  /// How long blocks of records are, about.
  size_t block_bytes = BlockReader::kBlockSize;

  bool is_text() const { return records == nullptr; }
};

/// The path of a file that its format opens itself: its name may begin with the format's, as in `open_files`
/// ("jpeg:images").
inline std::string PathOfFormat(const std::string& file, const std::string& format) {
  return file.starts_with(format + ":") ? file.substr(format.size() + 1) : file;
}

}  // namespace millrace
