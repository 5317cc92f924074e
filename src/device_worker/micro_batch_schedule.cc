#include "device_worker/micro_batch_schedule.h"

#include <algorithm>
#include <utility>

namespace millrace {

std::string SectionTask::ToString() const {
  const char letter = kind == Kind::kForward ? 'F' : kind == Kind::kBackward ? 'B' : 'U';
  std::string text = letter + std::to_string(section);
  return kind == Kind::kUpdate ? text : text + "(" + std::to_string(micro_batch) + ")";
}

MicroBatchSchedule::MicroBatchSchedule(Options options)
    : options_(std::move(options)), sections_(options_.concurrency.size()) {
  int limit = 0;
  for (int s = last(); s >= 0; --s) {
    limit += options_.concurrency[At(s)];
    section(s).limit = limit;
  }
}

int MicroBatchSchedule::scopes(int micro_batches) const {
  return options_.one_forward_one_backward ? std::min(section(0).limit, micro_batches) : micro_batches;
}

void MicroBatchSchedule::Start(int micro_batches) {
  micro_batches_ = micro_batches;
  for (Section& s : sections_) {
    const int limit = s.limit;
    s = {};
    s.limit = limit;
    s.forward_done.assign(At(micro_batches), 0);
    s.backward_done.assign(At(micro_batches), 0);
  }
}

bool MicroBatchSchedule::CanGoForward(int s) const {
  const int k = section(s).forwards;
  if (k == micro_batches_) return false;
  if (s > 0 && section(s - 1).forward_done[At(k)] == 0) return false;
  if (s < last() && k - section(s + 1).forwards >= options_.queue_size) return false;
  const int earlier = k - section(s).limit;
  return !options_.one_forward_one_backward || earlier < 0 || section(s).backward_done[At(earlier)] != 0;
}

bool MicroBatchSchedule::CanGoBackward(int s) const {
  const int k = section(s).backwards;
  if (k == micro_batches_) return false;
  if (!options_.one_forward_one_backward && section(s).forwards_done < micro_batches_) return false;
  if (s > 0 && k - section(s - 1).backwards >= options_.queue_size) return false;
  return s == last() ? section(s).forward_done[At(k)] != 0 : section(s + 1).backward_done[At(k)] != 0;
}

bool MicroBatchSchedule::CanUpdate(int s) const {
  return !section(s).updating && section(s).backwards_done == micro_batches_ && (s == last() || section(s + 1).updated);
}

std::optional<SectionTask> MicroBatchSchedule::Take(int s) {
  Section& taker = section(s);
  if (CanGoBackward(s)) return SectionTask{SectionTask::Kind::kBackward, s, taker.backwards++};
  if (CanGoForward(s)) return SectionTask{SectionTask::Kind::kForward, s, taker.forwards++};
  if (!CanUpdate(s)) return std::nullopt;
  taker.updating = true;
  return SectionTask{SectionTask::Kind::kUpdate, s, 0};
}

void MicroBatchSchedule::Done(const SectionTask& task) {
  Section& doer = section(task.section);
  switch (task.kind) {
    case SectionTask::Kind::kForward:
      doer.forward_done[At(task.micro_batch)] = 1;
      ++doer.forwards_done;
      return;
    case SectionTask::Kind::kBackward:
      doer.backward_done[At(task.micro_batch)] = 1;
      ++doer.backwards_done;
      return;
    case SectionTask::Kind::kUpdate: doer.updated = true; return;
  }
}

}  // namespace millrace
