#include "inspect/batch_json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "inspect/demo_batch.h"
#include "inspect/multi_slot_text.h"

namespace millrace {
namespace {

TEST(BatchAsJson, WritesShapesOffsetsAndValues) {
  const SlotSchema schema = DemoSchema();
  SlotBatch batch(schema);
  FillDemoBatch(&batch);
  EXPECT_EQ(BatchAsJson(batch, 3), R"({"batch":3,"rows":2,"slots":{"label":{"shape":[2,1],"values":[0,1]},)"
                                   R"("dense":{"shape":[2,2],"values":[0.5,-1,1e+20,0.1]},)"
                                   R"("C1":{"shape":[3,1],"lod":[0,1,3],"values":[7,5,18446744073709551615]},)"
                                   R"("W":{"shape":[1,1],"lod":[0,0,1],"values":[1e-07]}}})");
}

TEST(BatchAsJson, NamesOfInstancesFollow) {
  const SlotSchema schema = DemoSchema();
  SlotBatch batch(schema);
  FillDemoBatch(&batch);
  batch.mutable_ins_ids() = {"a\"b", "\x01\xFFz"};
  batch.mutable_contents() = {"x", "y"};
  const std::string json = BatchAsJson(batch, 0);
  EXPECT_EQ(json.substr(json.find("\"ins_ids\"")), R"("ins_ids":["a\"b","\u0001\ufffdz"],"contents":["x","y"]})");
}

TEST(BatchAsMultiSlot, WritesTheLinesThatWereRead) {
  const SlotSchema schema = DemoSchema();
  SlotBatch batch(schema);
  FillDemoBatch(&batch);
  EXPECT_EQ(BatchAsMultiSlot(batch),
            "1 0 2 0.5 -1 1 7 0\n"
            "1 1 2 1e+20 0.1 2 5 18446744073709551615 1 1e-07\n");
  batch.mutable_ins_ids() = {"first", "second"};
  batch.column(1).floats[0] = std::nanf("");
  batch.column(1).floats[1] = -INFINITY;
  EXPECT_EQ(BatchAsMultiSlot(batch).substr(0, 32), "1 first 1 0 2 nan -inf 1 7 0\n1 s");
}

TEST(BatchAsTable, ShowsRowsAndCutsLongLists) {
  const SlotSchema schema = DemoSchema();
  SlotBatch batch(schema);
  FillDemoBatch(&batch);
  EXPECT_EQ(BatchAsTable(batch, 0, 1),
            "batch 0: 2 rows\n"
            "  row 0\n"
            "    label  0\n"
            "    dense  0.5 ... (2 values)\n"
            "    C1     7\n"
            "    W      \n"
            "  row 1\n"
            "    label  1\n"
            "    dense  1e+20 ... (2 values)\n"
            "    C1     5 ... (2 values)\n"
            "    W      1e-07\n");
}

TEST(NumberText, FloatsReadBackToTheSameBits) {
  for (float value : {0.1F, 1.0F / 3, 16777216.0F, 3.4e38F, 1.2e-38F, -2.5F}) {
    std::string text;
    AppendNumber(value, &text);
    EXPECT_EQ(std::stof(text), value) << text;
    EXPECT_LE(text.size(), 12u) << text;
  }
  std::string text;
  AppendNumber(std::nanf(""), &text);
  AppendNumber(-HUGE_VALF, &text);
  EXPECT_EQ(text, "NaN-Infinity");
}

}  // namespace
}  // namespace millrace
