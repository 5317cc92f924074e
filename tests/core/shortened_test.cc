#include "core/shortened.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Shortened, NoCharacterIsCut) {
  EXPECT_EQ(StartOf("größe", 2), "gr");
  EXPECT_EQ(StartOf("größe", 3), "gr") << "the second byte of ö would be left out";
  EXPECT_EQ(StartOf("größe", 4), "grö");
  EXPECT_EQ(StartOf("größe", 7), "größe");
  EXPECT_EQ(Shortened("ööööööööööööööööö", 10), "ööö … (34 bytes) … ö");
}

TEST(Shortened, BytesThatAreNoCharactersAreCutAnywhere) {
  EXPECT_EQ(StartOf("\x80\x80\x80\x80\x80\x80\x80\x80", 7).size(), 3U);
  EXPECT_EQ(StartOf("", 0), "");
  EXPECT_EQ(StartOf("\x80", 0), "");
}

}  // namespace
}  // namespace millrace
