#include <gtest/gtest.h>

#include "reader/reader_registry.h"
#include "reader/row_reader.h"

namespace millrace {
namespace {

FileFormat Format(std::string tag, std::vector<std::string> suffixes) {
  return {std::move(tag), std::move(suffixes), "rows that count up",
          [](const std::string& file, const std::vector<TensorSpec>&) -> Result<std::unique_ptr<FileReader>> {
            return MakeRowReader(file, 0, 1);
          }};
}

ReaderRegistry SmallRegistry() {
  ReaderRegistry registry;
  EXPECT_TRUE(registry.Add(Format("csv", {".csv"})).ok());
  EXPECT_TRUE(registry.Add(Format("recordio", {".recordio", ".part.csv"})).ok());
  return registry;
}

std::string Resolved(const ReaderRegistry& registry, std::string_view name, std::string_view tag = {}) {
  const Result<ReaderRegistry::NamedFile> file = registry.Resolve(name, tag);
  return file.ok() ? file.value().format->tag + " " + file.value().path : file.status().ToString();
}

TEST(ReaderRegistry, FindsTheFormatByTagPrefixOrSuffix) {
  const ReaderRegistry registry = SmallRegistry();
  EXPECT_EQ(Resolved(registry, "a/b.txt", "csv"), "csv a/b.txt");
  EXPECT_EQ(Resolved(registry, "csv:a/b.txt"), "csv a/b.txt");
  EXPECT_EQ(Resolved(registry, "csv:a/b.txt", "csv"), "csv a/b.txt");
  EXPECT_EQ(Resolved(registry, "recordio:b.csv"), "recordio b.csv");
  EXPECT_EQ(Resolved(registry, "a/b.csv"), "csv a/b.csv");
  EXPECT_EQ(Resolved(registry, "a/b.csv.gz"), "csv a/b.csv.gz");
  EXPECT_EQ(Resolved(registry, "a/b.csv.zst"), "csv a/b.csv.zst");
  EXPECT_EQ(Resolved(registry, "a/b.part.csv"), "recordio a/b.part.csv");
  EXPECT_EQ(Resolved(registry, "a:b/c.csv", "csv"), "csv a:b/c.csv");
}

TEST(ReaderRegistry, SaysWhichFormatsThereAre) {
  const ReaderRegistry registry = SmallRegistry();
  EXPECT_EQ(
      Resolved(registry, "a/b.txt"),
      "invalid configuration: file \"a/b.txt\": its name does not say its format: write FORMAT: before it, or give "
      "the format; there are: csv, recordio");
  EXPECT_EQ(Resolved(registry, "recordoi:b"),
            "invalid configuration: file \"recordoi:b\": no file format \"recordoi\"; did you mean "
            "\"recordio\"?; there are: csv, recordio");
  EXPECT_EQ(Resolved(registry, "b", "cvs"),
            "invalid configuration: no file format \"cvs\"; did you mean \"csv\"?; there are: csv, recordio");
}

TEST(ReaderRegistry, RefusesWhatIsTaken) {
  ReaderRegistry registry = SmallRegistry();
  EXPECT_EQ(registry.Add(Format("csv", {})).message(), "a file format \"csv\" is registered already");
  EXPECT_EQ(registry.Add(Format("table", {".csv"})).message(), "file format \"table\": files named *.csv are \"csv\"");
  EXPECT_EQ(registry.Add(Format("a:b", {})).message(), "a file format's tag is made of a-z, 0-9 and _, not \"a:b\"");
  EXPECT_EQ(registry.entries().size(), 2U);
}

TEST(ReaderRegistry, OpensAFileWithItsFormat) {
  const ReaderRegistry registry = SmallRegistry();
  const Result<std::unique_ptr<FileReader>> reader = registry.Open("csv:x", "", RowShapes());
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader.value()->file(), "x");
}

}  // namespace
}  // namespace millrace
