#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// Suffix of a file or folder being written, unlikely for user files. A killed run leaves it, and the next write of the
/// same path reuses it.
inline constexpr std::string_view kUnfinishedSuffix = ".millrace-writing";

/// Creates a folder and its parents; no-op if it exists. Fails with kIo, kInvalidConfig for an empty name.
Status MakeFolder(const std::string& path);

/// Renames the finished folder `from` to `to` atomically: readers see the old or the new folder. A file system that
/// cannot exchange folders briefly has neither, and after a crash then the old one under another name. Removes the old
/// one. Both must be on one file system. Fails with kIo and the reason of the failed rename.
Status ReplaceFolder(const std::string& from, const std::string& to);

/// A kind of folder written by saves.
struct SavedFolder {
  const char* kind;  ///< "a saved model"
  /// The files of a folder written by an earlier save, as relative names; empty if no save wrote the folder.
  std::set<std::string> (*files)(const std::string& folder);
};

/// Lets `write` fill a new folder, TO.millrace-writing, and replaces `to` by it, completely or not at all. A failure
/// leaves nothing; the next call removes leftovers of a killed process. Fails like CheckReplaced (before and after
/// writing), with kIo, and with the failure of `write`.
Status WriteFolder(const std::string& to, const SavedFolder& saved,
                   const std::function<Status(const std::string& folder)>& write);

/// Fails with kInvalidConfig if WriteFolder would remove files that no earlier save wrote (naming some), if `folder` is
/// a file, or if its name is empty; kIo if it cannot be read.
Status CheckReplaced(const std::string& folder, const SavedFolder& saved);

/// Removes a folder with its content; no-op if it does not exist. Fails with kIo.
Status RemoveFolder(const std::string& path);

}  // namespace millrace
