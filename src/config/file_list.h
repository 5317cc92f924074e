#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/diagnostics.h"
#include "config/field_positions.h"

namespace millrace {

/// A file whose rows come once: a named pipe, a character device or a socket.
struct FileReadOnce {
  std::string name;
  bool is_pipe = false;
  std::pair<uint64_t, uint64_t> identity;  ///< device and inode, the same by whatever name
};

/// A file list written out.
struct ExpandedFiles {
  std::vector<std::string> names;
  std::vector<FileReadOnce> read_once;  ///< those of `names`, in their order
};

/// Writes the entries of a file list out as files, in the order of the entries and sorted within each:
///
///     data/part-0        a file
///     data/part-*        a glob; hidden files only when the pattern names the dot
///     data/              the files in a folder (not below it), without hidden ones, "_SUCCESS" and "_logs"
///     @parts.txt         the entries in a file, one a line ('#' starts a comment); relative names are relative to the
///                        folder of that file, and a list may name further lists
///     hdfs:/data/p0      a name with a scheme, left as it is: a command reads it
///
/// An entry that names nothing (missing, no match, an empty folder) is an InputError with the nearest existing name;
/// a file named twice, by links too, is kept twice, as Paddle does, with a warning. `path` is the field's path in
/// `positions`, for example "filelist". Relative names are relative to the working directory. Touches the file system.
/// After a stop request the files that were not looked at are left out.
ExpandedFiles ExpandFileList(const std::vector<std::string>& entries, std::string_view path,
                             const FieldPositions& positions, Diagnostics* diagnostics,
                             const std::stop_token& stop = {});

/// What file lists call rows that a program has in memory: those that are trained on, and those of evaluations.
inline constexpr std::string_view kTrainedRows = "frame:data";
inline constexpr std::string_view kEvaluatedRows = "frame:eval_data";
/// Of an evaluation set with a name.
inline std::string EvaluatedRowsOf(const std::string& set) { return std::string(kEvaluatedRows) + "." + set; }

/// What is the same of all names of a file that is there, whatever links they go through.
std::string IdentityOf(const std::string& file);

/// Tells whether a name starts with a scheme ("hdfs:", "s3:"): a letter, then letters, digits, '+', '-', '.' and a
/// colon. A Windows drive is not meant.
bool HasScheme(std::string_view name);

}  // namespace millrace
