#include "device_worker/micro_batch_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "core/rng.h"

namespace millrace {
namespace {

using Kind = SectionTask::Kind;

MicroBatchSchedule::Options Sections(int sections, bool one_forward_one_backward, int queue_size = 1) {
  return {std::vector<int>(static_cast<size_t>(sections), 1), queue_size, one_forward_one_backward};
}

/// The tasks of each section, when every task takes the same time and all sections work at once.
std::vector<std::string> Timeline(const MicroBatchSchedule::Options& options, int micro_batches) {
  MicroBatchSchedule schedule(options);
  schedule.Start(micro_batches);
  std::vector<std::string> lines(options.concurrency.size());
  while (!schedule.finished()) {
    std::vector<SectionTask> running;
    std::vector<std::string> tasks(lines.size(), "-");
    const auto take = [&] {
      for (size_t s = 0; s < lines.size(); ++s) {
        const auto task = tasks[s] == "-" ? schedule.Take(static_cast<int>(s)) : std::nullopt;
        if (task.has_value()) tasks[s] = task->ToString();
        if (task.has_value()) running.push_back(*task);
      }
    };
    // What a section takes makes room for the next to be asked.
    for (size_t i = 0; i < lines.size(); ++i) take();
    for (size_t s = 0; s < lines.size(); ++s) lines[s] += (lines[s].empty() ? "" : " ") + tasks[s];
    EXPECT_FALSE(running.empty()) << "nobody can go on";
    if (running.empty()) break;
    for (const SectionTask& task : running) schedule.Done(task);
  }
  return lines;
}

TEST(MicroBatchSchedule, FThenBGoesBackWhenAllWentForward) {
  EXPECT_EQ(Timeline(Sections(2, false), 3), (std::vector<std::string>{"F0(0) F0(1) F0(2) - - B0(0) B0(1) B0(2) U0",
                                                                       "- F1(0) F1(1) F1(2) B1(0) B1(1) B1(2) U1 -"}));
}

TEST(MicroBatchSchedule, OneFOneBGoesBackAsSoonAsItCan) {
  EXPECT_EQ(Timeline(Sections(2, true), 4),
            (std::vector<std::string>{"F0(0) F0(1) - B0(0) F0(2) B0(1) F0(3) B0(2) - B0(3) U0",
                                      "- F1(0) B1(0) F1(1) B1(1) F1(2) B1(2) F1(3) B1(3) U1 -"}));
}

TEST(MicroBatchSchedule, OneSectionIsAPlainLoop) {
  EXPECT_EQ(Timeline(Sections(1, true), 2), (std::vector<std::string>{"F0(0) B0(0) F0(1) B0(1) U0"}));
  EXPECT_EQ(Timeline(Sections(1, false), 2), (std::vector<std::string>{"F0(0) F0(1) B0(0) B0(1) U0"}));
}

/// Plays mini-batches with tasks that end in a random order, and checks what must hold in any.
void PlayAtRandom(const MicroBatchSchedule::Options& options, int micro_batches, uint64_t seed) {
  MicroBatchSchedule schedule(options);
  const int scopes = schedule.scopes(micro_batches);
  const int last = static_cast<int>(options.concurrency.size()) - 1;
  Rng rng(seed);
  schedule.Start(micro_batches);
  std::vector<SectionTask> running;
  std::set<std::string> done;
  std::vector<int> owner(static_cast<size_t>(scopes), -1);  // micro-batch that uses a scope
  while (!schedule.finished()) {
    for (int s = 0; s <= last; ++s) {
      auto mine = std::count_if(running.begin(), running.end(), [s](const auto& task) { return task.section == s; });
      for (; mine < options.concurrency[static_cast<size_t>(s)]; ++mine) {
        const auto task = schedule.Take(s);
        if (!task.has_value()) break;
        const int k = task->micro_batch;
        if (task->kind == Kind::kForward && s == 0) {
          ASSERT_EQ(owner[static_cast<size_t>(k % scopes)], -1) << "the scope of " << task->ToString() << " is in use";
          owner[static_cast<size_t>(k % scopes)] = k;
        }
        const SectionTask before_forward{Kind::kForward, s - 1, k};
        const SectionTask before_backward =
            s == last ? SectionTask{Kind::kForward, s, k} : SectionTask{Kind::kBackward, s + 1, k};
        if (task->kind == Kind::kForward && s > 0) {
          ASSERT_TRUE(done.contains(before_forward.ToString()));
        }
        if (task->kind == Kind::kBackward) {
          ASSERT_TRUE(done.contains(before_backward.ToString()));
        }
        running.push_back(*task);
      }
    }
    ASSERT_FALSE(running.empty()) << "deadlock";
    const size_t ends = rng.Below(running.size());
    const SectionTask task = running[ends];
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(ends));
    schedule.Done(task);
    ASSERT_TRUE(done.insert(task.ToString()).second) << task.ToString() << " twice";
    if (task.kind == Kind::kBackward && task.section == 0) {
      owner[static_cast<size_t>(task.micro_batch % scopes)] = -1;
    }
  }
  EXPECT_EQ(done.size(), static_cast<size_t>((last + 1) * (2 * micro_batches + 1)));
}

TEST(MicroBatchSchedule, EveryTaskOnceInOrderAndNeverStuck) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    for (const bool one_f_one_b : {false, true}) {
      MicroBatchSchedule::Options options;
      const auto sections = 1 + rng.Below(4);
      for (uint64_t s = 0; s < sections; ++s) options.concurrency.push_back(1 + static_cast<int>(rng.Below(3)));
      options.queue_size = 1 + static_cast<int>(rng.Below(3));
      options.one_forward_one_backward = one_f_one_b;
      SCOPED_TRACE("seed " + std::to_string(seed));
      PlayAtRandom(options, 1 + static_cast<int>(rng.Below(9)), seed);
    }
  }
}

TEST(MicroBatchSchedule, OneFOneBNeedsFewerScopes) {
  EXPECT_EQ(MicroBatchSchedule(Sections(2, false)).scopes(8), 8);
  EXPECT_EQ(MicroBatchSchedule(Sections(2, true)).scopes(8), 2);
  EXPECT_EQ(MicroBatchSchedule(Sections(3, true)).scopes(2), 2);
}

TEST(MicroBatchSchedule, AQueueHoldsNoMoreThanItsSize) {
  for (const int queue_size : {1, 2, 3}) {
    MicroBatchSchedule schedule(Sections(2, false, queue_size));
    schedule.Start(8);
    int waiting = 0;
    while (const auto task = schedule.Take(0)) {
      schedule.Done(*task);
      ++waiting;
    }
    EXPECT_EQ(waiting, queue_size);
  }
}

}  // namespace
}  // namespace millrace
