#include "core/on_threads.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "core/caught.h"

namespace millrace {

Status OnThreads(int threads, size_t count, std::string_view name, const std::function<Status(size_t)>& task) {
  std::vector<Status> statuses(count);
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (size_t i = next++; i < count && !failed; i = next++) {
      statuses[i] = Caught(name, [&] { return task(i); });
      if (!statuses[i].ok()) failed = true;
    }
  };
  {
    std::vector<std::jthread> others;
    // As many as the system allows, plus this one.
    (void)Caught(name, [&] {
      const size_t wanted = std::min(static_cast<size_t>(std::max(threads, 1)), count);
      while (others.size() + 1 < wanted) others.emplace_back(work);
      return Status::Ok();
    });
    work();
  }
  for (Status& status : statuses) MR_TRY(std::move(status));
  return Status::Ok();
}

int ThreadsHere() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace millrace
