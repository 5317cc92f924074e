#include "dataset/line_draw.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

uint64_t SeedBy(DrawnBy by, std::string_view file, uint32_t number = 0) { return LineDraw(7, by).SeedOf(file, number); }

TEST(LineDraw, AFileDrawsTheSameLinesByWhateverPathItIsNamed) {
  const uint64_t seed = SeedBy(DrawnBy::kName, "part-0");
  for (const char* file : {"./part-0", "../data/part-0", "/data//part-0", "hdfs://host/data/part-0", "file:part-0"}) {
    EXPECT_EQ(SeedBy(DrawnBy::kName, file, 3), seed) << file;
  }
  EXPECT_NE(SeedBy(DrawnBy::kName, "part-1"), seed);
  EXPECT_NE(SeedBy(DrawnBy::kName, "part-0.gz"), seed);
  EXPECT_EQ(SeedBy(DrawnBy::kName, "jpeg:images"), SeedBy(DrawnBy::kName, "jpeg:/data/images/"));
  EXPECT_NE(SeedBy(DrawnBy::kName, "frame:data"), SeedBy(DrawnBy::kName, "data")) << "rows in memory are no file";
}

// What checkpoints of earlier versions were drawn by.
TEST(LineDraw, EarlierRulesStayAsTheyWere) {
  EXPECT_EQ(SeedBy(DrawnBy::kPath, "./p.csv"), Mix64(7, Fnv1a64("./p.csv")));
  EXPECT_EQ(SeedBy(DrawnBy::kEnding, "/data/p.csv"), Mix64(7, Fnv1a64("p.csv")));
  EXPECT_EQ(SeedBy(DrawnBy::kEnding, "jpeg:images"), Mix64(7, Fnv1a64("jpeg:images")));
  EXPECT_EQ(SeedBy(DrawnBy::kNumber, "p.csv", 2), Mix64(7, 2));
}

}  // namespace
}  // namespace millrace
