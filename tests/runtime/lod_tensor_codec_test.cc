#include "runtime/lod_tensor_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using ::testing::HasSubstr;

std::string Encode(Tensor* tensor) {
  float* values = tensor->Resize<float>({2, 3});
  for (int i = 0; i < 6; ++i) values[i] = 0.5f * static_cast<float>(i);
  std::string bytes;
  AppendLoDTensor(*tensor, &bytes);
  return bytes;
}

TEST(LoDTensorCodec, RoundTripsAndSaysHowManyBytesItTook) {
  Tensor tensor;
  const std::string bytes = Encode(&tensor);
  Tensor back;
  const auto taken = ReadLoDTensor(bytes + "rest", "f", &back);
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_EQ(*taken, bytes.size());
  EXPECT_EQ(back.dims(), tensor.dims());
  for (int i = 0; i < 6; ++i) EXPECT_EQ(back.data<float>()[i], tensor.data<float>()[i]);
}

TEST(LoDTensorCodec, EveryTruncationIsAnErrorWithTheFileAndTheByte) {
  Tensor tensor;
  const std::string bytes = Encode(&tensor);
  for (size_t size = 0; size < bytes.size(); ++size) {
    Tensor back;
    const auto taken = ReadLoDTensor(std::string_view(bytes).substr(0, size), "w.bin", &back);
    ASSERT_FALSE(taken.ok()) << size;
    EXPECT_EQ(taken.status().code(), StatusCode::kBadData);
    EXPECT_THAT(taken.status().message(), HasSubstr("w.bin: byte "));
  }
}

/// A variable file whose description has these sizes and which holds no values.
std::string WithoutValues(VarType::Type type, const std::vector<int64_t>& sizes) {
  VarType::TensorDesc desc;
  desc.set_data_type(type);
  for (const int64_t size : sizes) desc.add_dims(size);
  const std::string message = desc.SerializeAsString();
  std::string bytes(4 + 8 + 4, '\0');
  const auto size = static_cast<int32_t>(message.size());
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  return bytes + message;
}

TEST(LoDTensorCodec, AHugeSizeIsRefusedWithoutAllocating) {
  Tensor tensor;
  std::string bytes = Encode(&tensor);
  const size_t at = bytes.find(std::string("\x10\x02", 2));  // dims: 2
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1] = 0x7f;
  Tensor back;
  EXPECT_THAT(ReadLoDTensor(bytes, "w", &back).status().message(), HasSubstr("the file ends within the values"));
}

// 2^61 values of 8 bytes are 2^64 bytes, which 64 bits take for none: the tensor had a size and no memory.
TEST(LoDTensorCodec, ASizeWhoseBytesOverflowIsRefused) {
  for (const VarType::Type type : {VarType::INT64, VarType::FP32, VarType::UINT8}) {
    Tensor tensor;
    const auto read = ReadLoDTensor(WithoutValues(type, {int64_t{1} << 61}), "w", &tensor);
    EXPECT_THAT(read.status().message(), HasSubstr("does not fit")) << type;
    EXPECT_TRUE(tensor.empty());
  }
}

TEST(LoDTensorCodec, HugeSizesBesideA0AreRefused) {
  Tensor tensor;
  const int64_t huge = int64_t{1} << 40;
  EXPECT_THAT(ReadLoDTensor(WithoutValues(VarType::FP32, {0, huge, huge}), "w", &tensor).status().message(),
              HasSubstr("does not fit"));
  EXPECT_TRUE(ReadLoDTensor(WithoutValues(VarType::FP32, {0, 16}), "w", &tensor).ok());
  EXPECT_EQ(tensor.dims(), Dims({0, 16}));
}

}  // namespace
}  // namespace millrace
