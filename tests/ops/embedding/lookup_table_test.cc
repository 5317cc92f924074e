#include <gmock/gmock.h>

#include "ops/embedding/op_runner.h"

namespace millrace {
namespace {

using testing::ElementsAre;

OpDesc Lookup(const std::string& type = "lookup_table") {
  return MakeOp(type, {{"Ids", {"ids"}}, {"W", {"w"}}}, {{"Out", {"out"}}});
}

OpDesc LookupGrad() {
  OpDesc op = MakeOp("lookup_table_grad", {{"Ids", {"ids"}}, {"W", {"w"}}, {"Out@GRAD", {"out@GRAD"}}},
                     {{"W@GRAD", {"w@GRAD"}}});
  SetAttr(op, "is_sparse", true);
  return op;
}

TEST(LookupTable, GivesRowsOfAMatrixAndKeepsLod) {
  OpRunner runner;
  const std::vector<uint64_t> ids = {2, 0, 2};
  const std::vector<uint32_t> lod = {0, 1, 1, 3};
  runner.SetFloats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  runner.SetIds("ids", ids, lod);
  ASSERT_TRUE(runner.Run(Lookup()).ok());
  EXPECT_THAT(runner.values("out"), ElementsAre(5, 6, 1, 2, 5, 6));
  EXPECT_EQ(runner.tensor("out")->dims(), Dims({3, 2}));
  EXPECT_THAT(runner.tensor("out")->lod(), testing::ElementsAreArray(lod));
  ASSERT_TRUE(runner.Run(Lookup("lookup_table_v2")).ok());
  EXPECT_EQ(runner.tensor("out")->dims(), Dims({3, 1, 2}));
}

TEST(LookupTable, PaddingIsZeroAndHasNoGradient) {
  OpRunner runner;
  const std::vector<uint64_t> ids = {1, 2, 1, 0};
  runner.SetFloats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  runner.SetIds("ids", ids);
  OpDesc op = Lookup();
  SetAttr(op, "padding_idx", int64_t{1});
  SetAttr(op, "update_padding", false);
  ASSERT_TRUE(runner.Run(op).ok());
  EXPECT_THAT(runner.values("out"), ElementsAre(0, 0, 5, 6, 0, 0, 1, 2));

  runner.SetFloats("out@GRAD", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  OpDesc grad = LookupGrad();
  SetAttr(grad, "padding_idx", int64_t{1});
  SetAttr(grad, "update_padding", false);
  ASSERT_TRUE(runner.Run(grad).ok());
  const SelectedRows& rows = *runner.rows("w@GRAD");
  EXPECT_THAT(rows.rows, ElementsAre(2, 0));
  EXPECT_EQ(std::vector<float>(rows.values.data<float>(), rows.values.data<float>() + rows.values.numel()),
            (std::vector<float>{3, 4, 7, 8}));
  EXPECT_EQ(rows.height, 3);
  EXPECT_FALSE(rows.merged);

  // Paddle's programs train the row of the padding id, though no lookup shows it.
  SetAttr(grad, "update_padding", true);
  ASSERT_TRUE(runner.Run(grad).ok());
  EXPECT_THAT(runner.rows("w@GRAD")->rows, ElementsAre(1, 2, 1, 0));
}

TEST(LookupTable, DenseGradientOfAMatrixAddsEqualIds) {
  OpRunner runner;
  const std::vector<uint64_t> ids = {2, 0, 2};
  runner.SetFloats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  runner.SetIds("ids", ids);
  runner.SetFloats("out@GRAD", {3, 2}, {1, 2, 3, 4, 5, 6});
  OpDesc grad = LookupGrad();
  SetAttr(grad, "is_sparse", false);
  ASSERT_TRUE(runner.Run(grad).ok());
  EXPECT_THAT(runner.values("w@GRAD"), ElementsAre(3, 4, 0, 0, 6, 8));
}

TEST(LookupTable, NamesAnIdOutOfRange) {
  OpRunner runner;
  const std::vector<uint64_t> ids = {2, 0, 1, 3};
  const std::vector<uint32_t> lod = {0, 1, 1, 4};
  runner.SetFloats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  runner.SetIds("ids", ids, lod);
  EXPECT_EQ(
      runner.Run(Lookup()).ToString(),
      "bad data: slot \"ids\", row 2 of the batch: the id is outside parameter \"w\", whose ids are 0..2; enlarge "
      "the vocabulary or set out_of_range to ZERO or MODULO: 3");
  const std::vector<uint64_t> negative = {UINT64_MAX};
  runner.SetIds("ids", negative);
  EXPECT_THAT(
      runner.Run(Lookup()).message(),
      testing::EndsWith("row 0 of the batch: the id is outside parameter \"w\", whose ids are 0..2; enlarge the "
                        "vocabulary or set out_of_range to ZERO or MODULO: 18446744073709551615"));
}

TEST(LookupTable, NamesTheLineOfAnIdOutOfRange) {
  OpRunner runner;
  const std::vector<uint64_t> ids = {0, 7};
  runner.SetFloats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  runner.SetIds("ids", ids);
  const SlotSchema schema;
  SlotBatch batch(schema);
  batch.mutable_origins() = {{0, 16}, {0, 17}};
  batch.set_rows(2);
  const std::vector<std::string> files = {"part-3"};
  RunContext context;
  context.batch = &batch;
  context.file_names = &files;
  const auto kernel = runner.Make(Lookup());
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ((*kernel)->Run(context).message(),
            "slot \"ids\", part-3:17: the id is outside parameter \"w\", whose ids are 0..2; enlarge the vocabulary or "
            "set out_of_range to ZERO or MODULO: 7");
}

TEST(LookupTable, ZeroAndModuloTakeEveryId) {
  OpRunner runner;
  const std::vector<uint64_t> ids = {2, 4, UINT64_MAX};
  runner.SetFloats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  runner.SetIds("ids", ids);
  OpDesc op = Lookup();
  SetAttr(op, "out_of_range", std::string("ZERO"));
  ASSERT_TRUE(runner.Run(op).ok());
  EXPECT_THAT(runner.values("out"), ElementsAre(5, 6, 0, 0, 0, 0));
  SetAttr(op, "out_of_range", std::string("MODULO"));
  ASSERT_TRUE(runner.Run(op).ok());
  EXPECT_THAT(runner.values("out"), ElementsAre(5, 6, 3, 4, 1, 2));
  SetAttr(op, "padding_idx", int64_t{1});  // 4 modulo 3: whatever comes to stand for padding has no row either
  ASSERT_TRUE(runner.Run(op).ok());
  EXPECT_THAT(runner.values("out"), ElementsAre(5, 6, 0, 0, 1, 2));
  SetAttr(op, "out_of_range", std::string("WRAP"));
  EXPECT_EQ(runner.Run(op).message(), "lookup_table: out_of_range is one of ERROR, ZERO, MODULO: \"WRAP\"");
}

TEST(LookupTable, TablesTakeEveryIdAndSaltsPartSlots) {
  OpRunner runner;
  SparseTable* table = runner.MakeTable("w", 3);
  const std::vector<uint64_t> ids = {0, UINT64_MAX, 0};
  runner.SetIds("ids", ids);
  ASSERT_TRUE(runner.Run(Lookup()).ok());
  const std::vector<float> plain = runner.values("out");
  EXPECT_EQ(table->stats().rows, 2);
  EXPECT_EQ(std::vector<float>(plain.begin(), plain.begin() + 3), std::vector<float>(plain.begin() + 6, plain.end()));
  OpDesc salted = Lookup();
  SetAttr(salted, "slot_salt", int64_t{99});
  ASSERT_TRUE(runner.Run(salted).ok());
  EXPECT_EQ(table->stats().rows, 4);
  EXPECT_NE(runner.values("out"), plain);
}

TEST(LookupTable, ReadOnlyFramesMakeNoRows) {
  FrameOptions options;
  options.read_only = true;
  OpRunner runner(options);
  SparseTable* table = runner.MakeTable("w", 3);
  const std::vector<uint64_t> ids = {5, 6};
  runner.SetIds("ids", ids);
  ASSERT_TRUE(runner.Run(Lookup()).ok());
  const std::vector<float> shown = runner.values("out");
  EXPECT_EQ(table->stats().rows, 0);
  RowBatch pulled;
  ASSERT_TRUE(table->Pull(ids, PullMode::kInsert, &pulled).ok());
  const std::span<const float* const> rows = pulled.weights();
  EXPECT_EQ(shown, (std::vector<float>{rows[0][0], rows[0][1], rows[0][2], rows[1][0], rows[1][1], rows[1][2]}));
}

TEST(LookupTable, SaysWhatWIsNot) {
  OpRunner runner;
  const std::vector<uint64_t> ids = {5};
  runner.SetIds("ids", ids);
  runner.SetFloats("w", {3}, {1, 2, 3});
  EXPECT_EQ(runner.Run(Lookup()).message(),
            "lookup_table: input W: \"w\" is neither a [rows, dim] matrix of float32 nor a table");
}

}  // namespace
}  // namespace millrace
