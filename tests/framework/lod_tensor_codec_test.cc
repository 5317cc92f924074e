#include "framework/lod_tensor_codec.h"

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

TEST(LoDTensorCodec, AHugeSizeIsRefusedWithoutAllocating) {
  Tensor tensor;
  std::string bytes = Encode(&tensor);
  const size_t at = bytes.find(std::string("\x10\x02", 2));  // dims: 2
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1] = 0x7f;
  Tensor back;
  EXPECT_THAT(ReadLoDTensor(bytes, "w", &back).status().message(), HasSubstr("does not fit"));
}

}  // namespace
}  // namespace millrace
