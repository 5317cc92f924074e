#include "app/runs_script.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "datafeed/cell_records.h"

namespace millrace {

Status BecomeRunsScript(const std::vector<std::string>& arguments) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return IoError("cannot find the path of this program: " + error.message());
  const std::filesystem::path scripts = (program.parent_path() / "../lib/millrace/runs").lexically_normal();
  if (!std::filesystem::exists(scripts / "__main__.py", error)) {
    return NotFound("the scripts for sweeps and run comparison are not in " + scripts.string() +
                    ": install Millrace again");
  }
  // Isolated from the user's settings and packages, in UTF-8 whatever the locale, without leaving compiled files.
  std::vector<std::string> words = {PythonProgram(), "-I", "-S", "-B", "-X", "utf8", scripts.string(),
                                    program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  ::execvp(argv[0], argv.data());
  return Unavailable("sweeps and `inspect runs` need Python 3.9 or later, and \"" + words[0] +
                     "\" cannot be started: " + std::strerror(errno) +
                     "; install the package python3, or set MILLRACE_PYTHON to an interpreter");
}

}  // namespace millrace
