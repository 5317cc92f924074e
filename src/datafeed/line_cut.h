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

/// Identifies rows in memory.
struct RowsInMemory {
  uint64_t rows = 0;
  uint32_t checksum = 0;
};

/// How a class of data feeds cuts files into lines. What it refers to must outlive it.
struct LineCut {
  /// Splits a file's bytes into records of at most `limit.bytes`. Empty: lines of text. Any thread.
  std::function<Result<std::unique_ptr<RecordSource>>(std::unique_ptr<ByteSource> bytes, const std::string& file,
                                                      const LineLimit& limit)>
      records = nullptr;
  /// Returns the header in a file's first line; empty if the line is a row. Null: files have no header.
  std::string_view (*header)(std::string_view first_line) = nullptr;
  /// The format that opens its files itself: `records` gets no bytes and no command can precede it. Empty: none.
  std::string opened_by = {};
  /// Program and arguments that convert the file, or the output of pipe_command, to the bytes for `records`. Empty:
  /// none.
  std::vector<std::string> command = {};
  /// Describes the "files" that are rows in memory. Null: they are files.
  std::function<RowsInMemory(const std::string& file)> in_memory = nullptr;
  /// Approximate size of blocks of records.
  size_t block_bytes = BlockReader::kBlockSize;

  bool is_text() const { return records == nullptr; }
};

/// The path of a file that its format opens: the name can start with the format, as in `open_files` ("jpeg:images").
inline std::string PathOfFormat(const std::string& file, const std::string& format) {
  return file.starts_with(format + ":") ? file.substr(format.size() + 1) : file;
}

}  // namespace millrace
