#include "plugin/exported_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "core/file.h"
#include "plugin/plugin_loader.h"
#include "plugin/test_plugins.h"

namespace millrace {
namespace {

using testing::StartsWith;

TEST(ExportedTextTest, ReadsWhatAPluginWasBuiltWith) {
  EXPECT_EQ(ReadExportedText(TestPlugin("soft_clip"), "millrace_plugin_tag").value(), CppPluginTag());
  EXPECT_THAT(std::string(CppPluginTag()), StartsWith("millrace plugin, C++ 7: "));
}

TEST(ExportedTextTest, SaysWhatAFileIsNot) {
  const TempDir folder = TempDir::Create("exported_text").value();
  const std::string path = folder.path() + "/x.so";
  EXPECT_EQ(ReadExportedText(path, "a").status().code(), StatusCode::kNotFound);
  std::ofstream(path) << "#!/bin/sh\n";
  EXPECT_EQ(ReadExportedText(path, "a").status().message(), "\"" + path + "\" is no shared object");
  std::ofstream(path) << "";
  EXPECT_EQ(ReadExportedText(path, "a").status().message(), "\"" + path + "\" is no shared object");
  EXPECT_EQ(ReadExportedText(folder.path(), "a").status().code(), StatusCode::kIo);

  const std::string pipe = folder.path() + "/pipe.so";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadExportedText(pipe, "a").status().message(), "\"" + pipe + "\" is no shared object");

  std::string other = ReadFile(TestPlugin("no_plugin")).value();
  other[18] = 0x28;  // e_machine
  std::ofstream(path) << other;
  EXPECT_EQ(ReadExportedText(path, "a").status().message(), "\"" + path + "\" is a shared object for another machine");

  const std::string no_plugin = TestPlugin("no_plugin");
  EXPECT_EQ(ReadExportedText(no_plugin, "answer").status().message(), "\"" + no_plugin + "\" exports no text answer")
      << "a function is no text";
}

TEST(ExportedTextTest, ABrokenFileGivesTheTextOrAFailure) {
  const TempDir folder = TempDir::Create("exported_text").value();
  const std::string path = folder.path() + "/x.so";
  const std::string whole = ReadFile(TestPlugin("wrong_abi")).value();
  for (size_t size = 0; size < whole.size(); size += 64) {
    std::ofstream(path) << whole.substr(0, size);
    const Result<std::string> text = ReadExportedText(path, "millrace_plugin_tag");
    EXPECT_FALSE(text.ok()) << size;
    // The table of sections is the end of the file.
    if (size >= 64) {
      EXPECT_THAT(text.status().message(), StartsWith("\"" + path + "\" is cut off: it has " + std::to_string(size) +
                                                      " bytes, and its sections are listed from byte "));
    }
  }
  // Any byte may be wrong; what comes back is a text or a failure.
  for (size_t i = 0; i < whole.size(); i += 7) {
    std::string broken = whole;
    broken[i] = static_cast<char>(broken[i] ^ 0xff);
    std::ofstream(path) << broken;
    const Result<std::string> text = ReadExportedText(path, "millrace_plugin_tag");
    EXPECT_LE(text.ok() ? text->size() : 0, 4096U);
  }
}

}  // namespace
}  // namespace millrace
