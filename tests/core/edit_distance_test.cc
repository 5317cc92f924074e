#include "core/edit_distance.h"

#include <gtest/gtest.h>

#include <vector>

namespace millrace {
namespace {

TEST(EditDistance, CountsSingleEdits) {
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("bach_size", "batch_size"), 1);
  EXPECT_EQ(EditDistance("bacth_size", "batch_size"), 1);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
}

TEST(NearestName, FindsWhatWasMeant) {
  const std::vector<std::string_view> names = {"HogwildWorker", "DownpourWorker", "batch_size", "thread_num"};
  EXPECT_EQ(NearestName("Hogwildworker", names), "HogwildWorker");
  EXPECT_EQ(NearestName("bach_sise", names), "batch_size");
  EXPECT_EQ(NearestName("threads_num", names), "thread_num");
  EXPECT_EQ(NearestName("batch", names), "batch_size");
  EXPECT_EQ(NearestName("zebra", names), "");
  EXPECT_EQ(NearestName("", names), "");
  EXPECT_EQ(NearestName("x", {}), "");
  EXPECT_EQ(NearestName(std::string(100000, 'x'), names), "");
}

TEST(DidYouMean, SaysNothingWhenNothingIsNear) {
  const std::vector<std::string_view> names = {"a", "id"};
  EXPECT_EQ(DidYouMean("b", names), "");
  EXPECT_EQ(DidYouMean("ids", names), "; did you mean \"id\"?");
}

TEST(DidYouMean, ShowsANameOfADataFileThatATerminalWouldObey) {
  const std::vector<std::string_view> header = {"\x1b[2Jlabel"};
  EXPECT_EQ(DidYouMean("label", header), "; did you mean \"\\x1b[2Jlabel\"?");
}

}  // namespace
}  // namespace millrace
