#pragma once

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace millrace {

/// What the kernel says of a process or a thread: one letter of its state, and its parent.
struct ProcessState {
  char state = 0;
  pid_t parent = 0;
};

/// Of a folder /proc/PID or /proc/PID/task/TID. Nothing of what has ended meanwhile, or is no process.
inline ProcessState ProcessStateOf(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat");
  std::stringstream text;
  text << file.rdbuf();
  const std::string stat = text.str();
  const size_t name_end = stat.rfind(')');
  ProcessState found;
  if (name_end == std::string::npos) return found;
  std::istringstream rest(stat.substr(name_end + 1));
  rest >> found.state >> found.parent;
  return found;
}

/// Processes whose parent is this one, zombies included.
inline int CountChildren() {
  int children = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (ProcessStateOf(entry.path()).parent == ::getpid()) ++children;
  }
  return children;
}

/// Returns once no thread of a process has run in ten looks in a row: it waits for what does not come, or has ended.
inline void WaitUntilIdle(pid_t pid) {
  for (int looks = 0; looks < 10; ++looks) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
      const char state = ProcessStateOf(entry.path()).state;
      if (state == 'R' || state == 'D') looks = 0;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace millrace
