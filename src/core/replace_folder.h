#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/status.h"

namespace millrace {

/// What is written before it takes the place of a file or folder has its name with this behind it, which no user calls
/// a file of his own. A run that was killed leaves it; the next one that writes the file or folder takes it over.
inline constexpr std::string_view kUnfinishedSuffix = ".millrace-writing";

/// Makes a folder, and those above it; one that is there is no error. kIo.
Status MakeFolder(const std::string& path);

/// Puts the finished folder `from` under the name `to`, in one step: whoever looks sees the old folder or the new one.
/// The old one, if any, is removed. Both must be on one file system. kIo.
Status ReplaceFolder(const std::string& from, const std::string& to);

/// Lets `write` fill a new folder beside `to`, TO.millrace-writing, and puts that in the place of `to`: whole, or, when
/// something fails, not at all. Nothing is left of what failed; what a killed process left is removed by the next call.
/// kIo, and what `write` returns.
Status WriteFolder(const std::string& to, const std::function<Status(const std::string& folder)>& write);

/// kInvalidConfig for a folder that ReplaceFolder would remove although it holds something else than what is to take
/// its place: files, and none of `files` among them. A file of that name is an error, too; kIo when that cannot be
/// seen.
Status CheckReplaced(const std::string& folder, std::initializer_list<std::string_view> files);

/// Removes a folder with everything in it; one that is not there is no error. kIo.
Status RemoveFolder(const std::string& path);

}  // namespace millrace
