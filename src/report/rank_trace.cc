#include "report/rank_trace.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/elapsed.h"
#include "core/wire.h"

namespace millrace {
namespace {

/// Hosts that start within so short a time of each other are not told from one host.
constexpr int64_t kOneClock = 100'000'000;

struct RankTimes {
  int64_t now = 0;  ///< behind a barrier
  TraceTimes batches;
};

}  // namespace

int64_t ClockOffset(int64_t theirs, int64_t ours) {
  const int64_t offset = theirs - ours;
  return std::abs(offset) < kOneClock ? 0 : offset;
}

Result<std::string> TraceOfRanks(RankGroup& ranks, const Executable& executable,
                                 const std::vector<const BatchTrace*>& traces, const SpanLog* readers) {
  MR_TRY(ranks.communicator().Barrier());
  const RankTimes mine{SteadyNanoseconds(), TimesOf(traces)};
  std::string bytes;
  WireWriter(&bytes).Put(mine);
  const std::vector<std::string> out(static_cast<size_t>(ranks.size()), bytes);
  std::vector<std::string> all;
  MR_TRY(ranks.communicator().AllToAll(out, &all));
  const int64_t leaders_now = WireReader(all[0]).Get<RankTimes>().now;
  TraceTimes times;
  for (const std::string& theirs : all) {
    const auto rank = WireReader(theirs).Get<RankTimes>();
    if (rank.batches.end == 0) continue;
    const int64_t offset = ClockOffset(rank.now, leaders_now);
    times.begin = std::min(times.begin, rank.batches.begin - offset);
    times.end = std::max(times.end, rank.batches.end - offset);
  }
  std::string events;
  if (mine.batches.end > 0) {
    const int64_t offset = ClockOffset(mine.now, leaders_now);
    const TraceProcess process{ranks.rank() + 1, "rank " + std::to_string(ranks.rank()) + " (" + HostName() + ")"};
    events = TraceEvents(executable, traces, readers, {times.begin + offset, times.end + offset}, process);
  }
  MR_TRY(ranks.ToLeader(std::move(events), &all));
  return ranks.leads() ? ChromeTrace(all) : std::string();
}

}  // namespace millrace
