#include "core/harmless_text.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(HarmlessTextTest, ControlCharactersAndBrokenBytesAreShownAndNotObeyed) {
  EXPECT_EQ(Harmless("plain \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x90\x8D"), "plain \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x90\x8D");
  EXPECT_EQ(Harmless("\x1b[2J\x07\r\n\t\x7f"), "\\x1b[2J\\x07\\x0d\\x0a\\x09\\x7f");
  EXPECT_EQ(Harmless(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Harmless("\xC2\x9B"
                     "2J\xC2\xA0"),
            "\\xc2\\x9b2J\xC2\xA0")
      << "an escape sequence of one character, and a space";
  EXPECT_EQ(Harmless("\x9B"
                     "2J \xE2\x82"),
            "\\x9b2J \\xe2\\x82");
}

TEST(HarmlessTextTest, AFailureKeepsItsCodeAndItsLines) {
  const Status shown = Harmless(BadData("one\n\ttwo\x1b[31m\r"));
  EXPECT_EQ(shown.code(), StatusCode::kBadData);
  EXPECT_EQ(shown.message(), "one\n\ttwo\\x1b[31m\\x0d");
  EXPECT_TRUE(Harmless(Status::Ok()).ok());
}

TEST(HarmlessTextTest, AByteOrderMarkIsSeen) {
  EXPECT_EQ(Harmless("\xEF\xBB\xBF"
                     "1"),
            "\\xef\\xbb\\xbf1");
}

}  // namespace
}  // namespace millrace
