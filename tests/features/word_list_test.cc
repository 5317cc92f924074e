#include "features/word_list.h"

#include <gtest/gtest.h>

#include "features/text_hash.h"

namespace millrace {
namespace {

TEST(WordListTest, FindsEachWordAndNoOther) {
  std::vector<std::string> words;
  for (int i = 0; i < 10000; ++i) words.push_back("w" + std::to_string(i));
  const Result<WordList> list = WordList::Create({words.begin(), words.end()});
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->size(), 10000);
  for (int i = 0; i < 10000; ++i)
    ASSERT_EQ(list->Find(words[static_cast<size_t>(i)], TextHash(words[static_cast<size_t>(i)])), i);
  EXPECT_EQ(list->Find("w10000", TextHash("w10000")), WordList::kNone);
  // Another text with the hash of a word is not that word.
  EXPECT_EQ(list->Find("x", TextHash("w1")), WordList::kNone);
  EXPECT_EQ(WordList().Find("x", 0), WordList::kNone);
}

TEST(WordListTest, WordsDifferAndAreNotEmpty) {
  EXPECT_EQ(WordList::Create({"a", ""}).status().message(), "word 2 is empty: an empty value is a missing one");
  EXPECT_EQ(WordList::Create({"a", "b", "a"}).status().message(), "word 3, \"a\", stands there twice");
}

}  // namespace
}  // namespace millrace
