#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/feature_slots.h"
#include "core/file.h"
#include "core/gzip_member.h"
#include "data_feed.pb.h"

namespace millrace {
namespace {

/// The words of a file, or what is wrong with it, without its folder.
std::vector<std::string> Words(const std::string& bytes, bool keeps_spaces = false) {
  const TempDir folder = TempDir::Create("millrace_words").value();
  const std::string file = folder.path() + "/words.txt";
  EXPECT_TRUE(WriteFileAtomically(file, bytes).ok());
  DataFeedDesc desc;
  FeatureDesc& feature = *desc.add_feature();
  feature.set_name("v");
  feature.mutable_vocabulary()->set_file(file);
  if (keeps_spaces) desc.mutable_csv()->set_keep_spaces(true);
  const std::vector<FeatureMistake> mistakes = ReadVocabularyFiles(&desc, {});
  if (mistakes.empty()) {
    const auto& words = desc.feature_states().feature(0).word();
    return {words.begin(), words.end()};
  }
  EXPECT_EQ(mistakes[0].path, "feature[0].vocabulary.file");
  std::string message = mistakes[0].message;
  if (const size_t at = message.find(folder.path() + "/"); at != std::string::npos) {
    message.erase(at, folder.path().size() + 1);
  }
  return {message};
}

using Texts = std::vector<std::string>;

// Each of these was read as other words than the data has, of which none was found.
TEST(VocabularyFileTest, WordsAreReadAsCsvReadsValues) {
  const Texts expected = {"Wien", "New York", "a \"b\""};
  EXPECT_EQ(Words("Wien\nNew York\na \"b\"\n"), expected);
  EXPECT_EQ(Words("\xEF\xBB\xBFWien\nNew York\na \"b\""), expected);
  EXPECT_EQ(Words("Wien  \n\n New York\t\na \"b\" \n"), expected);
  EXPECT_EQ(Words("Wien\r\nNew York\r\na \"b\"\r\n"), expected);
  EXPECT_EQ(Words("Wien\rNew York\ra \"b\"\r"), expected);
  EXPECT_EQ(Words("\"Wien\"\n\"New York\" \n\"a \"\"b\"\"\"\n"), expected);
  EXPECT_EQ(Words("\t\"Wien\"\n\"New York\"\t\n \t\"a \"\"b\"\"\" \t\n"), expected);
  EXPECT_EQ(Words(GzipMember("Wien\nNew York\na \"b\"\n")), expected);
  EXPECT_EQ(Words("\"a\tb\"\n\" c \"\n"), (Texts{"a\tb", "c"}));
  EXPECT_EQ(Words(" a \nb\n\" c \"\n", true), (Texts{" a ", "b", " c "}));
}

TEST(VocabularyFileTest, WordsThatAreNotUtf8AreRefusedWithTheirLine) {
  EXPECT_EQ(Words("Wien\nZ\xFCrich\n"),
            Texts{"\"words.txt\": line 2: a word is not UTF-8; convert the file: iconv -f LATIN1 -t UTF-8"});
  EXPECT_EQ(Words("Z\xC3\xBCrich\n"), Texts{"Z\xC3\xBCrich"});
}

TEST(VocabularyFileTest, WhatIsMoreThanAWordALineIsRefused) {
  EXPECT_EQ(Words("Wien\nGraz\t41\n"),
            Texts{"\"words.txt\": line 2: expected a word, found a tab behind it; a file has a word a line and nothing "
                  "else (cut -f1 takes the first column), and a word with a tab in it stands in quotes"});
  EXPECT_EQ(Words("\"Wien\nGraz\n"),
            Texts{"\"words.txt\": line 1: expected a closing quote on the line (a value with a line break in it cannot "
                  "be read), found the end of the line; a word that begins with a quote stands in quotes, and each of "
                  "its own twice"});
  EXPECT_EQ(Words(std::string("\xFF\xFEW\0i\0", 6)),
            Texts{"\"words.txt\" is UTF-16; words are texts of UTF-8 here: iconv -f UTF-16 -t UTF-8"});
  EXPECT_EQ(Words(std::string("W\0i\0", 4)),
            Texts{"\"words.txt\" is no text in UTF-8: it has a byte 0 (of UTF-16? iconv -f UTF-16 -t UTF-8)"});
  EXPECT_EQ(Words("\xfd\x37\x7a\x58Z"),
            Texts{"\"words.txt\" is packed; gz and zstd are read, this unpacks it: xz -dc"});
  EXPECT_EQ(Words("\xEF\xBB\xBF\n \n"), Texts{"\"words.txt\" has no words"});
  EXPECT_EQ(Words("a\na \n"), Texts{"\"words.txt\": word 2, \"a\", stands there twice"});
}

}  // namespace
}  // namespace millrace
