#include "core/hash.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <string_view>

#include "core/crc32c.h"
#include "core/huge_buffer.h"
#include "core/xxhash.h"

namespace millrace {
namespace {

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(Crc32c(0, "123456789", 9), 0xE3069283U);
  EXPECT_EQ(Crc32c(Crc32c(0, "12345", 5), "6789", 4), 0xE3069283U);
  EXPECT_EQ(Crc32c(0, "", 0), 0U);
  const char zeros[32] = {};
  EXPECT_EQ(Crc32c(0, zeros, 32), 0x8A9136AAU);
}

TEST(Hash, ValuesNeverChangeBetweenReleases) {
  // Initial values of tables, and so every SERIAL run, rest on these.
  EXPECT_EQ(Mix64(1), 6238072747940578789ULL);
  EXPECT_EQ(HashedNumber(1, 0), Mix64(1 + 0x9E3779B97F4A7C15ULL));
  EXPECT_NE(HashName("deep"), HashName("wide"));
}

TEST(Hash, XxHash64AgreesWithItsPublishedValues) {
  EXPECT_EQ(XxHash64(""), 0xEF46DB3751D8E999U);
  EXPECT_EQ(XxHash64("a"), 0xD24EC4F1A98C6E5BU);
  EXPECT_EQ(XxHash64("abc"), 0x44BC2CF5AD770999U);
  EXPECT_EQ(XxHash64("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1U);
  EXPECT_EQ(XxHash64("", 2654435761U), 0xAC75FDA2929B17EFU);
}

TEST(Hash, XxHash64OfPiecesIsThatOfTheWhole) {
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes += static_cast<char>(HashedNumber(1, static_cast<uint64_t>(i)));
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const std::string_view whole = std::string_view(bytes).substr(0, size);
    for (const size_t piece : {1, 5, 31, 32, 33, 64, 200}) {
      XxHash64Stream stream;
      for (size_t at = 0; at < size; at += piece) stream.Add(whole.substr(at, piece));
      stream.Add("");
      ASSERT_EQ(stream.Hash(), XxHash64(whole)) << size << " bytes in pieces of " << piece;
    }
  }
}

TEST(Hash, UniformAndNormalHaveTheirMoments) {
  double sum = 0;
  double squares = 0;
  double normal = 0;
  double normal_squares = 0;
  constexpr int kCount = 100000;
  for (uint64_t i = 0; i < kCount; ++i) {
    const float u = HashedUniform(7, i);
    ASSERT_GE(u, 0.0F);
    ASSERT_LT(u, 1.0F);
    sum += u;
    squares += u * u;
    const float z = HashedNormal(7, i);
    normal += z;
    normal_squares += z * z;
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.005);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.005);
  EXPECT_NEAR(normal / kCount, 0.0, 0.015);
  EXPECT_NEAR(normal_squares / kCount, 1.0, 0.02);
}

TEST(HugeBuffer, IsZeroedAlignedAndMovable) {
  HugeBuffer buffer(3 * HugeBuffer::kHugePage + 5);
  EXPECT_EQ(buffer.bytes(), 4 * HugeBuffer::kHugePage);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % HugeBuffer::kHugePage, 0U);
  EXPECT_EQ(buffer.data()[buffer.bytes() - 1], std::byte{0});
  std::byte* data = buffer.data();
  data[0] = std::byte{1};
  const HugeBuffer moved = std::move(buffer);
  EXPECT_EQ(moved.data(), data);
  EXPECT_EQ(HugeBuffer(100).bytes(), 4096U);
  EXPECT_EQ(HugeBuffer().data(), nullptr);
}

}  // namespace
}  // namespace millrace
