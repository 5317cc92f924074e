#include "report/rank_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batch/slot_batch.h"
#include "comm/simulated_cluster.h"
#include "e2e/small_job.h"
#include "runtime/frame.h"
#include "trainer/in_process.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(RankTraceTest, OneClockIsNotMovedAndAnotherIs) {
  EXPECT_EQ(ClockOffset(5'000'000'000, 5'000'300'000), 0);
  EXPECT_EQ(ClockOffset(5'000'300'000, 5'000'000'000), 0);
  EXPECT_EQ(ClockOffset(7'000'000'000, 5'000'000'000), 2'000'000'000);
  EXPECT_EQ(ClockOffset(5'000'000'000, 7'000'000'000), -2'000'000'000);
}

TEST(RankTraceTest, EachRankThatTrainedIsAProcessWhateverTheNetworkDelays) {
  const SmallJob small(32, 1);
  const std::unique_ptr<JobSession> session = MakeJob(small.DeepJob(""), "");
  ASSERT_TRUE(session->InitParameters({}).ok());
  const CompiledJob& job = session->job();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<std::string> traces(3);
    SimulatedCluster cluster({.size = 3, .seed = seed, .longest_delay = static_cast<int64_t>(seed)});
    const Status ran = cluster.Run([&](Communicator& communicator) {
      RankGroup group(communicator);
      const std::unique_ptr<Frame> frame =
          Frame::Create(job.step(), &job.schema(), session->root(), session->frame_options(0, false)).value();
      frame->EnableProfile();
      BatchTrace trace(0, 10, 5, job.step().ops().size(), nullptr);
      const SlotBatch batch(job.schema());
      RunContext context;
      context.step = 10 + group.rank();
      // The last rank serves, and trains nothing.
      if (group.rank() < 2) {
        ASSERT_TRUE(trace.OnBatch({batch, *frame, context, 1, 1000, 2000}).ok());
      }
      traces[static_cast<size_t>(group.rank())] = TraceOfRanks(group, job.step(), {&trace}, nullptr).value();
    });
    ASSERT_TRUE(ran.ok()) << ran.ToString();
    for (const int rank : {0, 1}) {
      const std::string number = std::to_string(rank);
      EXPECT_THAT(traces[0], HasSubstr("\"args\":{\"name\":\"rank " + number + " ("));
      EXPECT_THAT(traces[0], HasSubstr("\"args\":{\"step\":1" + number + ","));
    }
    EXPECT_THAT(traces[0], Not(HasSubstr("rank 2")));
    EXPECT_EQ(traces[1] + traces[2], "");
  }
}

}  // namespace
}  // namespace millrace
