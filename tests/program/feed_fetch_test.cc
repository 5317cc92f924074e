#include "program/feed_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/op_registry.h"

namespace millrace {
namespace {

using testing::ElementsAre;

ProgramDesc OneOp() {
  ProgramDesc program;
  BlockDesc* block = program.add_blocks();
  for (const char* name : {"x", "y"}) block->add_vars()->set_name(name);
  OpDesc* op = block->add_ops();
  op->set_type("relu");
  SetInput(*op, "X", {"x"});
  SetOutput(*op, "Out", {"y"});
  return program;
}

TEST(FeedFetchTest, TakesBackTheListsThatWereAdded) {
  ProgramDesc program = OneOp();
  AddFeedFetch({{"b", "x", "a"}, {"y", "x"}}, program);
  EXPECT_EQ(program.blocks(0).ops_size(), 6);
  EXPECT_EQ(program.blocks(0).ops(0).type(), "feed");
  EXPECT_EQ(program.blocks(0).ops(5).type(), "fetch");
  const Result<FeedFetch> lists = TakeFeedFetch(program);
  ASSERT_TRUE(lists.ok()) << lists.status().message();
  EXPECT_THAT(lists->feeds, ElementsAre("b", "x", "a"));
  EXPECT_THAT(lists->fetches, ElementsAre("y", "x"));
  EXPECT_EQ(program.SerializeAsString(), OneOp().SerializeAsString());
}

TEST(FeedFetchTest, ColumnsDecideNotTheOrderOfOperators) {
  ProgramDesc program = OneOp();
  AddFeedFetch({{"first", "second"}, {"y"}}, program);
  program.mutable_blocks(0)->mutable_ops()->SwapElements(0, 1);
  EXPECT_THAT(TakeFeedFetch(program)->feeds, ElementsAre("first", "second"));
}

TEST(FeedFetchTest, SaysWhatIsWrong) {
  ProgramDesc twice = OneOp();
  AddFeedFetch({{"a", "b"}, {}}, twice);
  SetAttr(*twice.mutable_blocks(0)->mutable_ops(1), "col", int64_t{0});
  EXPECT_EQ(TakeFeedFetch(twice).status().message(), "two operators feed have column 0");
  ProgramDesc nowhere = OneOp();
  AddFeedFetch({{}, {"y"}}, nowhere);
  nowhere.mutable_blocks(0)->mutable_ops(1)->clear_attrs();
  EXPECT_EQ(TakeFeedFetch(nowhere).status().message(), "an operator fetch has no column");
}

}  // namespace
}  // namespace millrace
