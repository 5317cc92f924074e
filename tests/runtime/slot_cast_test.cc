#include "runtime/slot_cast.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "data_feed.pb.h"
#include "runtime/frame.h"

namespace millrace {
namespace {

using testing::ElementsAre;

/// Reads its inputs, writes nothing.
class Look : public OpKernel {
 public:
  static Result<std::unique_ptr<OpKernel>> Create(KernelContext&) { return std::unique_ptr<OpKernel>(new Look); }
  Status Run(const RunContext&) override { return Status::Ok(); }
};

/// A program that reads "id" and "x", declared as these types.
class SlotCastTest : public testing::Test {
 protected:
  SlotCastTest() {
    registry_.Add("look")
        .Doc("Nothing.")
        .Input("X", "any")
        .Input("Y", "any")
        .Output("Out", "none")
        .InferShape(+[](InferShapeContext&) { return Status::Ok(); })
        .Kernel<Look>();
    DataFeedDesc desc;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        R"(multi_slot_desc { slots { name: "id" type: "uint64" is_used: true }
                             slots { name: "x" type: "float" is_used: true is_dense: true shape: -1 shape: 2 } })",
        &desc));
    schema_ = std::make_unique<SlotSchema>(SlotSchema::Create(desc).value());
    batch_ = std::make_unique<SlotBatch>(*schema_);
    batch_->column(0).ids = {7, 8, 9};
    batch_->column(0).offsets = {0, 1, 3};
    batch_->column(1).floats = {0.5f, -1, 2, 3};
    batch_->set_rows(2);
  }

  Status Run(const std::string& id_type, const std::string& x_type) {
    ProgramDesc program;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "blocks { idx: 0 vars { name: 'id' type { type: LOD_TENSOR lod_tensor { tensor { data_type: " + id_type +
            " dims: -1 dims: 1 } } } } vars { name: 'x' type { type: LOD_TENSOR lod_tensor { tensor { data_type: " +
            x_type + " dims: -1 dims: 2 } } } } ops { type: 'look' inputs { parameter: 'X' arguments: 'id' } " +
            "inputs { parameter: 'Y' arguments: 'x' } outputs { parameter: 'Out' arguments: 'o' } } }",
        &program));
    MR_ASSIGN(executable_, Executable::Compile(program, registry_, {}));
    MR_ASSIGN(frame_, Frame::Create(*executable_, schema_.get(), root_, {}));
    RunContext context;
    context.batch = batch_.get();
    context.rows = batch_->rows();
    return frame_->Run(context);
  }
  const Tensor& Get(const char* name) const { return frame_->Find(name)->Get<Tensor>(); }

  OpRegistry registry_;
  std::unique_ptr<SlotSchema> schema_;
  std::unique_ptr<SlotBatch> batch_;
  Scope root_;
  std::unique_ptr<const Executable> executable_;
  std::unique_ptr<Frame> frame_;
};

TEST_F(SlotCastTest, ValuesComeInTheTypesOfTheProgram) {
  ASSERT_TRUE(Run("INT32", "FP64").ok());
  ASSERT_EQ(Get("id").dtype(), DType::kInt32);
  EXPECT_THAT(std::span(Get("id").data<int32_t>(), 3), ElementsAre(7, 8, 9));
  EXPECT_THAT(Get("id").lod(), ElementsAre(0, 1, 3));
  EXPECT_EQ(Get("id").dims(), (Dims{3, 1}));
  ASSERT_EQ(Get("x").dtype(), DType::kFloat64);
  EXPECT_THAT(std::span(Get("x").data<double>(), 4), ElementsAre(0.5, -1, 2, 3));
  EXPECT_EQ(Get("x").dims(), (Dims{2, 2}));
}

TEST_F(SlotCastTest, TheBatchItselfIsSeenWhereTypesAgree) {
  ASSERT_TRUE(Run("INT64", "FP32").ok());
  EXPECT_EQ(static_cast<const void*>(Get("id").data<int64_t>()), batch_->column(0).ids.data());
  EXPECT_EQ(Get("x").data<float>(), batch_->column(1).floats.data());
}

TEST_F(SlotCastTest, AnIdBeyondInt32IsNamedWithItsRow) {
  batch_->column(0).ids[2] = 2147483648;
  const Status status = Run("INT32", "FP32");
  EXPECT_EQ(status.code(), StatusCode::kBadData);
  EXPECT_EQ(status.message(),
            "slot \"id\", row 1 of the batch: 2147483648 does not fit the variable, which is int32 in the program; "
            "declare it int64 there");
}

TEST_F(SlotCastTest, OtherTypesAreRefused) {
  EXPECT_EQ(Run("FP32", "INT64").message(),
            "block 0 op[0] look: input X: variable \"id\" is float32 [-1, 1] in the program, but slot \"id\" of "
            "data_desc feeds int64 [-1, 1]\n"
            "block 0 op[0] look: input Y: variable \"x\" is int64 [-1, 2] in the program, but slot \"x\" of data_desc "
            "feeds float32 [-1, 2]");
  EXPECT_FALSE(Run("INT64", "FP16").ok());
}

}  // namespace
}  // namespace millrace
