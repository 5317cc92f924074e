#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// What is written before it takes the place of a file or folder has its name with this behind it, which no user calls
/// a file of his own. A run that was killed leaves it; the next one that writes the file or folder takes it over.
inline constexpr std::string_view kUnfinishedSuffix = ".millrace-writing";

/// Makes a folder, and those above it; one that is there is no error. kIo; kInvalidConfig for an empty name.
Status MakeFolder(const std::string& path);

/// Puts the finished folder `from` under the name `to`, in one step: whoever looks sees the old folder or the new one.
/// A file system that cannot exchange two folders has neither for a moment, and after a crash then the old one beside
/// it. The old one, if any, is removed. Both must be on one file system. kIo with the reason of the rename that failed.
Status ReplaceFolder(const std::string& from, const std::string& to);

/// A kind of folders that saves write.
struct SavedFolder {
  const char* kind;  ///< "a saved model"
  /// The files of a folder that an earlier save wrote, by their names in it; of a folder that no save wrote, none.
  std::set<std::string> (*files)(const std::string& folder);
};

/// Lets `write` fill a new folder beside `to`, TO.millrace-writing, and puts that in the place of `to`: whole, or, when
/// something fails, not at all. Nothing is left of what failed; what a killed process left is removed by the next call.
/// The errors of CheckReplaced, at first and once the new folder is written, kIo, and what `write` returns.
Status WriteFolder(const std::string& to, const SavedFolder& saved,
                   const std::function<Status(const std::string& folder)>& write);

/// kInvalidConfig for a folder that WriteFolder would remove although it contains files that no earlier save wrote,
/// with the names of some. A file of that name and an empty name are errors, too; kIo when the folder cannot be read.
Status CheckReplaced(const std::string& folder, const SavedFolder& saved);

/// Removes a folder with everything in it; one that is not there is no error. kIo.
Status RemoveFolder(const std::string& path);

}  // namespace millrace
