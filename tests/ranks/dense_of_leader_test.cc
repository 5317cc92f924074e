// Dense parameters that all ranks take from the one that leads.

#include "ranks/dense_of_leader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "comm/on_ranks.h"
#include "runtime/tensor.h"

namespace millrace {
namespace {

ProgramDesc Program() {
  ProgramDesc program;
  for (const char* name : {"w", "count", "not_made", "local"}) {
    VarDesc& var = *program.add_blocks()->add_vars();
    var.set_name(name);
    var.set_persistable(std::string(name) != "local");
  }
  // All in the first block.
  for (int block = 1; block < 4; ++block) *program.mutable_blocks(0)->add_vars() = program.blocks(block).vars(0);
  return program;
}

void Fill(Scope& root, int rank, int64_t width) {
  float* const w = root.Var("w")->GetMutable<Tensor>()->Resize<float>(Dims{2, width});
  std::fill_n(w, 2 * width, static_cast<float>(rank));
  *root.Var("count")->GetMutable<Tensor>()->Resize<int64_t>(Dims{1}) = int64_t{100} + rank;
  *root.Var("local")->GetMutable<Tensor>()->Resize<float>(Dims{1}) = static_cast<float>(rank);
}

TEST(DenseOfLeaderTest, EveryRankHasTheLeadersParametersAndItsOwnRest) {
  const ProgramDesc program = Program();
  OnRanks(3, [&](Communicator& communicator) {
    RankGroup ranks(communicator);
    Scope root;
    Fill(root, ranks.rank(), 3);
    const float* const place = root.Find("w")->Get<Tensor>().data<float>();
    const Status taken = TakeDenseOfLeader(program, root, ranks);
    ASSERT_TRUE(taken.ok()) << taken.ToString();
    EXPECT_EQ(root.Find("w")->Get<Tensor>().data<float>(), place);
    for (int i = 0; i < 6; ++i) EXPECT_EQ(place[i], 0.0f);
    EXPECT_EQ(*root.Find("count")->Get<Tensor>().data<int64_t>(), 100);
    EXPECT_EQ(*root.Find("local")->Get<Tensor>().data<float>(), static_cast<float>(ranks.rank()));
  });
}

TEST(DenseOfLeaderTest, AnotherShapeIsTheFailureOfAll) {
  const ProgramDesc program = Program();
  OnRanks(2, [&](Communicator& communicator) {
    RankGroup ranks(communicator);
    Scope root;
    Fill(root, ranks.rank(), 3 + ranks.rank());
    const Status taken = TakeDenseOfLeader(program, root, ranks);
    EXPECT_EQ(taken.code(), StatusCode::kInvalidConfig);
    EXPECT_THAT(taken.message(),
                testing::HasSubstr("variable \"w\" is float32 [2, 4] here, and float32 [2, 3] on rank 0"));
  });
}

}  // namespace
}  // namespace millrace
