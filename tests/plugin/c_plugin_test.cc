// Parsers and loaders of the C tier: what they give arrives, and what they do wrong is told by file, line and plugin.

#include "plugin/c_plugin.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <thread>

#include "core/file.h"
#include "data_feed.pb.h"
#include "dataset/in_memory_dataset.h"
#include "dataset/queue_dataset.h"
#include "plugin/c_row_values.h"
#include "plugin/plugin_loader.h"
#include "plugin/test_plugins.h"
#include "program/text_proto.h"
#include "sanitized.h"

namespace millrace {
namespace {

using testing::HasSubstr;

class CPluginTest : public testing::Test {
 protected:
  CPluginTest() : folder_(TempDir::Create("c_plugin").value()) {
    feeds_ = DataFeedFactory::Builtin();
    Load("pairs");
    Load("c_throwing");
  }

  void Load(const std::string& name) {
    const Status status = LoadPlugin(TestPlugin(name), &registries_);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  std::string Write(const std::string& name, const std::string& bytes) const {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << bytes;
    return path;
  }
  static DataFeedDesc Desc(const std::string& extra) {
    DataFeedDesc desc;
    const Status status = ParseTextProto(extra + R"(
      batch_size: 4
      multi_slot_desc {
        slots { name: "x" type: "float" is_used: true is_dense: true shape: [-1, 1] }
        slots { name: "id" type: "uint64" is_used: true is_dense: true shape: [-1, 1] }
        slots { name: "more" type: "uint64" is_used: true }
      })",
                                         "desc", &desc);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return desc;
  }
  /// All rows of one pass, "x/id/more,more" each.
  static Result<std::string> Rows(Dataset& dataset) {
    MR_TRY(dataset.BeginPass({.workers = 1, .ordered = true}));
    std::string text;
    for (;;) {
      MR_ASSIGN(const BatchPtr batch, dataset.source(0).Next({}));
      if (batch == nullptr) break;
      for (int row = 0; row < batch->rows(); ++row) {
        const auto i = static_cast<size_t>(row);
        text += std::to_string(static_cast<int>(batch->floats(0)[i])) + "/" + std::to_string(batch->ids(1)[i]) + "/";
        for (size_t j = batch->offsets(2)[i]; j < batch->offsets(2)[i + 1]; ++j) {
          text += std::to_string(batch->ids(2)[j]) + ",";
        }
        text += " ";
      }
    }
    MR_TRY(dataset.EndPass().status());
    return text;
  }
  Result<std::string> RowsOf(const std::string& desc, const std::string& lines) {
    const std::string file = Write("part-0", lines);
    MR_ASSIGN(const auto dataset, QueueDataset::Create(Desc(desc), {file}, feeds_, {}));
    return Rows(*dataset);
  }

  const TempDir folder_;
  Registries registries_;
  OpRegistry& ops_ = registries_.ops;
  DataFeedFactory& feeds_ = registries_.feeds;
  ReaderRegistry& readers_ = registries_.readers;
};

constexpr char kPairs[] = R"(name: "PairFeed" attrs { name: "separator" value: ";" })";

TEST_F(CPluginTest, AParserFeedsDatasetsByItsName) {
  const std::string lines = "1;10;7;8\n# nothing\n2;20\n\n3;30;\n-4;40;9\n5;50;1\n";
  const std::string rows = "1/10/7,8, 2/20/ 3/30/ -4/40/9, 5/50/1, ";
  EXPECT_EQ(RowsOf(kPairs, lines).value(), rows);

  InMemoryDatasetOptions options;
  options.feeds = feeds_;
  const auto memory = InMemoryDataset::Create(Desc(kPairs), {folder_.path() + "/part-0"}, options).value();
  const PassStats stats = memory->LoadIntoMemory({}).value();
  EXPECT_EQ(stats.rows, 5);
  EXPECT_EQ(stats.counters.at("blank_line"), 2);
  EXPECT_EQ(Rows(*memory).value(), rows);
}

TEST_F(CPluginTest, ABadLineHasItsPlaceAndTheParsersWords) {
  const std::string start = folder_.path() + "/part-0:2:1: ";
  EXPECT_EQ(RowsOf(kPairs, "1;10;7\nx;1\n").status().message(), start + "field 1: expected a number, found \"x\"");
  EXPECT_EQ(RowsOf(kPairs, "1;10;7\n;1\n").status().message(), start + "slot \"x\": expected 1 value, found 0");
  EXPECT_EQ(RowsOf(std::string(kPairs) + " bad_lines { action: SKIP max_fraction: 1 }", "1;10;7\nx;1\n2;20\n").value(),
            "1/10/7, 2/20/ ");
}

TEST_F(CPluginTest, AttributesAreCheckedBeforeAnythingIsRead) {
  const std::string of = "data_desc.attrs: parser \"PairFeed\" of plugin \"" + TestPlugin("pairs") + "\": ";
  EXPECT_EQ(RowsOf("name: \"PairFeed\"", "").status().message(),
            of + "attribute \"separator\" is missing: what stands between two fields");
  EXPECT_EQ(RowsOf("name: \"PairFeed\" attrs { name: \"seperator\" value: \";\" }", "").status().message(),
            of + "there is no attribute \"seperator\"; did you mean \"separator\"?");
  EXPECT_EQ(RowsOf(std::string(kPairs) + " attrs { name: \"separator\" value: \",\" }", "").status().message(),
            of + "attribute \"separator\" is given twice");
  EXPECT_EQ(RowsOf("name: \"PairFeed\" attrs { name: \"separator\" value: \"ab\" }", "").status().message(),
            "parser \"PairFeed\" of plugin \"" + TestPlugin("pairs") +
                "\" cannot be opened: separator is one character, not \"ab\"");
  EXPECT_EQ(RowsOf(std::string(kPairs) + " attrs { name: \"comment\" value: \"/\" }", "/\n1;1;\n").value(), "1/1/ ");
}

TEST_F(CPluginTest, SettingsOfMultiSlotTextHoldForAParserOrAreRefused) {
  EXPECT_EQ(RowsOf(std::string(kPairs) + " non_finite: REJECT_NON_FINITE", "1;1;\nnan;1;\n").status().message(),
            folder_.path() + "/part-0:2:1: slot \"x\": a value is not finite (non_finite: ACCEPT takes it)");
  for (const std::string setting : {"zeros: DROP", "trailing_values: IGNORE"}) {
    EXPECT_THAT(RowsOf(std::string(kPairs) + " " + setting, "1;1;\n").status().message(),
                HasSubstr("data_desc: parser \"PairFeed\" of plugin \"" + TestPlugin("pairs") +
                          "\" decides by itself which values a line has"));
  }
}

TEST_F(CPluginTest, AFeedOfTheCppTierIsHeldToWhatFeedsPromise) {
  Load("untrue_feed");
  const std::string who = "data feed \"UntrueFeed\" of plugin \"" + TestPlugin("untrue_feed") + "\" ";
  const std::string second = folder_.path() + "/part-0:2:1: " + who;
  const std::map<std::string, std::string> said = {
      {"no row", "data_desc.name: " + who + "says that it made a row, and made none"},
      {"odd", "data_desc.name: " + who + "gave the result 77, which there is not"},
      {"fails", "data_desc.name: " + who.substr(0, who.size() - 1) + ": the device is gone"},
      {"stops",
       "data_desc.name: " + who + "ends its work as if it had been asked to stop, and nobody has asked: enough"},
      {"silent", second + "refuses the line and gives no reason"},
      {"two", "data_desc.name: " + who + "counts 3 rows behind a line that gave one to 1"},
      {"bad with a row", "data_desc.name: " + who + "counts 2 rows behind a line that gave none to 1"},
      {"narrow", "data_desc.name: " + who + "gave slot \"x\" 1 values in 2 rows of 1"},
      {"offsets",
       "data_desc.name: " + who + "gave slot \"more\" 2 values in 2 rows, which its offsets do not cut into rows"}};
  for (const auto& [line, message] : said) {
    EXPECT_EQ(RowsOf("name: \"UntrueFeed\"", "true\n" + line + "\n").status().message(), message) << line;
  }
  EXPECT_TRUE(RowsOf("name: \"UntrueFeed\"", "true\ntrue\n").ok());

  // Rows in memory are parsed one by one.
  InMemoryDatasetOptions options;
  options.feeds = feeds_;
  Write("part-0", "true\nnarrow\n");
  const auto memory = InMemoryDataset::Create(Desc("name: \"UntrueFeed\""), {folder_.path() + "/part-0"}, options);
  EXPECT_EQ((*memory)->LoadIntoMemory({}).status().message(),
            "data_desc.name: " + who + "gave slot \"x\" 0 values in 1 row of 1");
}

TEST_F(CPluginTest, ARowThatAFeedBeganAndDidNotEndIsNoBadLineToSkip) {
  Load("untrue_feed");
  const std::string desc = R"(name: "UntrueFeed" bad_lines { action: SKIP max_fraction: 1 })";
  EXPECT_EQ(RowsOf(desc, "true\nhalf\ntrue\n").status().message(),
            "data_desc.name: data feed \"UntrueFeed\" of plugin \"" + TestPlugin("untrue_feed") +
                "\" says that it made a row, and made none");
  EXPECT_EQ(RowsOf(desc, "true\nsilent\ntrue\n").value(), RowsOf(desc, "true\ntrue\n").value());
}

TEST_F(CPluginTest, WhatAParserThrowsIsReportedByItsName) {
  const std::string threw =
      "parser \"ThrowingFeed\" of plugin \"" + TestPlugin("c_throwing") + "\" threw std::runtime_error: ";
  EXPECT_EQ(RowsOf("name: \"ThrowingFeed\" attrs { name: \"where\" value: \"open\" }", "1\n").status().message(),
            threw + "thrown by open");
  EXPECT_EQ(RowsOf("name: \"ThrowingFeed\"", "1\n").status().message(),
            folder_.path() + "/part-0:1:1: " + threw + "thrown by parse");
}

TEST_F(CPluginTest, WhatAFeedOfTheCppTierThrowsEndsThePass) {
  Load("throwing_feed");
  const std::string threw = "data_desc.name: data feed \"ThrowingCppFeed\" of plugin \"" + TestPlugin("throwing_feed") +
                            "\" threw std::logic_error: no idea";
  EXPECT_EQ(RowsOf("name: \"ThrowingCppFeed\"", "1\n").status().message(), threw);
  EXPECT_EQ(RowsOf("name: \"NoFeed\"", "1\n").status().message(), "data_desc.name: \"NoFeed\" made no data feed");
  InMemoryDatasetOptions options;
  options.feeds = feeds_;
  const auto memory =
      InMemoryDataset::Create(Desc("name: \"ThrowingCppFeed\""), {folder_.path() + "/part-0"}, options).value();
  EXPECT_EQ(memory->LoadIntoMemory({}).status().message(), threw);
}

/// "PAIR" and records of a float and a uint32.
std::string PairBytes(const std::vector<std::pair<float, uint32_t>>& records) {
  std::string bytes = "PAIR";
  for (const auto& [x, id] : records) {
    bytes.append(reinterpret_cast<const char*>(&x), sizeof(x)).append(reinterpret_cast<const char*>(&id), sizeof(id));
  }
  return bytes;
}

const std::vector<TensorSpec>& PairShapes() {
  static const std::vector<TensorSpec> shapes = {{DType::kFloat32, {-1, 1}, 0}, {DType::kInt64, {-1, 1}, 1}};
  return shapes;
}

/// The first failure of a reader, or its records as "x:id,id".
std::string Records(ReaderBase& reader) {
  std::string text;
  std::vector<LoDTensor> out;
  for (;;) {
    const Result<bool> more = reader.ReadNext(&out, {});
    if (!more.ok()) return more.status().message();
    if (!*more) return text;
    text += std::to_string(static_cast<int>(out[0].values.data<float>()[0])) + ":";
    EXPECT_EQ(out[1].lod.size(), 2U);
    for (int64_t i = 0; i < out[1].values.numel(); ++i) {
      text += std::to_string(out[1].values.data<int64_t>()[i]) + ",";
    }
    text += " ";
  }
}

TEST_F(CPluginTest, ALoaderIsAFileFormatOfReaders) {
  const std::string file = Write("a.pairs", PairBytes({{1, 10}, {2, 21}, {-3, 30}}));
  const auto reader = readers_.Open(file, "", PairShapes()).value();
  EXPECT_EQ(Records(*reader), "1:10, 2:21,22, -3:30, ");
  ASSERT_TRUE(reader->ReInit().ok());
  EXPECT_EQ(Records(*reader), "1:10, 2:21,22, -3:30, ");

  ASSERT_EQ(std::system(("gzip -k " + file).c_str()), 0);
  EXPECT_EQ(Records(*readers_.Open(file + ".gz", "", PairShapes()).value()), "1:10, 2:21,22, -3:30, ");
}

TEST_F(CPluginTest, ALoadersFailuresNameFileAndRecord) {
  const std::string cut = Write("cut.pairs", PairBytes({{1, 10}, {2, 21}}).substr(0, 17));
  EXPECT_EQ(Records(*readers_.Open(cut, "", PairShapes()).value()), cut + ": record 2: the file ends within it");
  const std::string other = Write("other.pairs", "RIFF");
  const std::string loader = "loader \"pairs\" of plugin \"" + TestPlugin("pairs") + "\"";
  EXPECT_EQ(Records(*readers_.Open(other, "", PairShapes()).value()),
            other + ": " + loader + " cannot open it: it does not begin with PAIR");
  const std::string missing = folder_.path() + "/missing.pairs";
  EXPECT_THAT(Records(*readers_.Open(missing, "", PairShapes()).value()), HasSubstr(missing));

  const std::string file = Write("b.pairs", PairBytes({{1, 11}}));
  EXPECT_EQ(Records(*readers_.Open(file, "", {{DType::kFloat32, {-1, 1}, 0}, {DType::kInt64, {-1, 1}, 0}}).value()),
            file + ": record 1: output 1: expected 1 value, found 2");
  EXPECT_EQ(Records(*readers_.Open(file, "", {{DType::kInt64, {-1, 1}, 0}}).value()),
            file + ": record 1: output 0: expected ids, found floats");
  EXPECT_EQ(readers_.Open(file, "", {{DType::kBool, {-1, 1}, 0}}).status().message(),
            loader + ": output 0: loaders give int64, int32, float32 and float64, not bool [-1, 1]");
  EXPECT_EQ(Records(*readers_.Open(file, "throwing", PairShapes()).value()),
            file + ": loader \"throwing\" of plugin \"" + TestPlugin("c_throwing") +
                "\" threw std::runtime_error: thrown by next");

  const std::string packed = file + ".gz";
  ASSERT_EQ(std::system(("gzip -kf " + file).c_str()), 0);
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) - 10);
  EXPECT_THAT(Records(*readers_.Open(packed, "", PairShapes()).value()), HasSubstr("gzip: unexpected end of file"));
}

/// Of "pairs" files, "x/id,id".
std::string LoaderDesc(const std::string& extra, const std::string& x, const std::string& ids) {
  return extra + " batch_size: 2 multi_slot_desc { slots { name: \"x\" is_used: true " + x +
         " } slots { name: \"ids\" is_used: true " + ids + " } }";
}

class CLoaderFeedTest : public CPluginTest {
 protected:
  Result<std::unique_ptr<QueueDataset>> Dataset(const std::string& bytes, const std::string& extra = "",
                                                const std::string& x = kX, const std::string& ids = kIds) {
    const std::string name = extra.find("name:") == std::string::npos ? "name: \"pairs\" " : "";
    EXPECT_TRUE(ParseTextProto(LoaderDesc(name + extra, x, ids), "desc", &desc_).ok());
    return QueueDataset::Create(desc_, {Write("part-0", bytes)}, feeds_, {});
  }
  /// "x:id,id " of each row, or the failure that ended them behind what came before.
  Result<std::string> RowsOf(const std::string& bytes, const std::string& extra = "", const std::string& x = kX,
                             const std::string& ids = kIds) {
    MR_ASSIGN(const std::unique_ptr<QueueDataset> dataset, Dataset(bytes, extra, x, ids));
    MR_TRY(dataset->BeginPass({.workers = 1, .ordered = true}));
    std::string text;
    for (;;) {
      MR_ASSIGN(const BatchPtr batch, dataset->source(0).Next({}));
      if (batch == nullptr) break;
      for (size_t row = 0; row < static_cast<size_t>(batch->rows()); ++row) {
        text += std::to_string(static_cast<int>(batch->floats(0)[row])) + ":";
        for (size_t i = batch->offsets(1)[row]; i < batch->offsets(1)[row + 1]; ++i) {
          text += std::to_string(batch->ids(1)[i]) + ",";
        }
        text += " ";
      }
    }
    MR_ASSIGN(stats_, dataset->EndPass());
    return text;
  }
  std::string Where() const { return folder_.path() + "/part-0: "; }

  static constexpr char kX[] = "type: \"float\" is_dense: true shape: [-1, 1]";
  static constexpr char kIds[] = "type: \"uint64\"";
  DataFeedDesc desc_;
  PassStats stats_;
};

TEST_F(CLoaderFeedTest, ALoaderFeedsDatasetsByItsName) {
  const std::string bytes = PairBytes({{1, 10}, {2, 21}, {-3, 30}});
  EXPECT_EQ(RowsOf(bytes).value(), "1:10, 2:21,22, -3:30, ");
  EXPECT_EQ(stats_.lines, 3);
  EXPECT_EQ(stats_.bytes, 28);
  EXPECT_EQ(RowsOf("").status().message(), Where() + "record 1: loader \"pairs\" of plugin \"" + TestPlugin("pairs") +
                                               "\" cannot open it: it does not begin with PAIR");
  EXPECT_EQ(RowsOf(bytes, "pipe_command: \"head -c 20\"").value(), "1:10, 2:21,22, ") << "what a command makes of it";
}

TEST_F(CLoaderFeedTest, WhatAFileCannotGiveEndsThePassWithFileAndRecord) {
  const std::string cut = PairBytes({{1, 10}, {2, 21}}).substr(0, 17);
  const std::string skips = "bad_lines { action: SKIP max_fraction: 1 }";
  EXPECT_EQ(RowsOf(cut, skips).status().message(), Where() + "record 2: the file ends within it");
  EXPECT_EQ(RowsOf(PairBytes({{1, 10}}), "name: \"throwing\"").status().message(),
            Where() + "record 1: loader \"throwing\" of plugin \"" + TestPlugin("c_throwing") +
                "\" threw std::runtime_error: thrown by next");
  EXPECT_EQ(RowsOf(PairBytes({{1, 10}, {2, 20}}), "pipe_command: \"head -c 14; exit 3\"").status().message(),
            Where() + "command exited with status 3 after 1 rows; last record incomplete");
}

TEST_F(CLoaderFeedTest, ARowThatDoesNotFitIsABadLine) {
  const std::string bytes = PairBytes({{1, 10}, {2, 21}, {3, 30}});
  const std::string one_id = "type: \"uint64\" is_dense: true shape: [-1, 1]";
  const auto dataset = Dataset(bytes, "", kX, one_id).value();
  ASSERT_TRUE(dataset->BeginPass({.workers = 1, .ordered = true}).ok());
  EXPECT_EQ(dataset->source(0).Next({}).status().message(),
            Where() + "record 2: slot \"ids\": expected 1 value, found 2");
  const auto skips = Dataset(bytes, "bad_lines { action: SKIP max_fraction: 1 }", kX, one_id).value();
  ASSERT_TRUE(skips->BeginPass({.workers = 1, .ordered = true}).ok());
  const BatchPtr batch = skips->source(0).Next({}).value();
  EXPECT_EQ(batch->rows(), 2);
  EXPECT_THAT(batch->ids(1), testing::ElementsAre(10, 30));
  EXPECT_EQ(RowsOf(bytes, "", kIds).status().message(), Where() + "record 1: slot \"x\": expected ids, found floats");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(RowsOf(PairBytes({{nan, 10}}), "non_finite: REJECT_NON_FINITE").status().message(),
            Where() +
                "record 1: slot \"x\": expected finite values (non_finite: ACCEPT takes others), found NaN or "
                "infinite ones");
  EXPECT_EQ(RowsOf(PairBytes({{1, 0}}), "zeros: DROP").value(), "1:0, ") << "a list keeps one zero";
}

TEST_F(CLoaderFeedTest, WhatALoaderCannotFollowIsSaidBeforeAnythingIsRead) {
  Load("rows");
  const std::string of = "data_desc.attrs: loader \"rows\" of plugin \"" + TestPlugin("rows") + "\": ";
  EXPECT_EQ(Dataset("", "name: \"rows\"").status().message(),
            of + "attribute \"key\" is missing: what bytes are mixed with");
  EXPECT_EQ(Dataset("", "name: \"rows\" attrs { name: \"kei\" value: \"1\" }").status().message(),
            of + "there is no attribute \"kei\"; did you mean \"key\"?");
  EXPECT_THAT(Dataset("", "parse_ins_id: true").status().message(),
              HasSubstr("data_desc.parse_ins_id: a file of the format \"pairs\" holds slots alone"));
  EXPECT_THAT(Dataset("", "trailing_values: IGNORE").status().message(), HasSubstr("data_desc.trailing_values"));
  // Nothing gives attributes to a file of a program.
  EXPECT_EQ(readers_.Open(Write("a.rows", ""), "", PairShapes()).status().message(),
            of.substr(17) + "attribute \"key\" is missing: what bytes are mixed with");
}

TEST_F(CPluginTest, ALoadersIdThatDoesNotFitInt32IsRefused) {
  const std::vector<TensorSpec> shapes = {{DType::kFloat32, {-1, 1}, 0}, {DType::kInt32, {-1, 1}, 1}};
  std::vector<LoDTensor> out;
  const std::string file = Write("small.pairs", PairBytes({{1, 0x7ffffffe}}));
  ASSERT_TRUE(readers_.Open(file, "", shapes).value()->ReadNext(&out, {}).value());
  EXPECT_EQ(out[1].values.data<int32_t>()[0], 0x7ffffffe);
  const std::string large = Write("large.pairs", PairBytes({{1, 0x7ffffffe}, {1, 0x80000000}}));
  const auto reader = readers_.Open(large, "", shapes).value();
  ASSERT_TRUE(reader->ReadNext(&out, {}).value());
  EXPECT_EQ(reader->ReadNext(&out, {}).status().message(),
            large + ": record 2: output 1: 2147483648 does not fit int32; declare the output int64");
}

TEST_F(CPluginTest, ALoaderThatWaitsForASilentPipeIsStopped) {
  const std::string pipe = folder_.path() + "/pipe.pairs";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int writer = open(pipe.c_str(), O_RDWR);  // so that the pipe has somebody who may still write
  ASSERT_GE(writer, 0);
  const auto reader = readers_.Open(pipe, "", PairShapes()).value();
  std::stop_source stop;
  Status read;
  std::jthread waiting([&] {
    std::vector<LoDTensor> out;
    read = reader->ReadNext(&out, stop.get_token()).status();
  });
  ASSERT_EQ(write(writer, "PAIR", 4), 4);
  for (int left = 4; left > 0;) ASSERT_EQ(ioctl(writer, FIONREAD, &left), 0) << "until the loader has what there is";
  stop.request_stop();
  waiting.join();
  close(writer);
  EXPECT_EQ(read.code(), StatusCode::kCancelled) << read.ToString();
}

TEST_F(CPluginTest, StructuresThatLackWhatTheyNeedAreRefused) {
  millrace_parser parser = {sizeof(millrace_parser), "F", "Doc.", nullptr, 0, nullptr, nullptr, nullptr};
  const millrace_parser* const parsers[] = {&parser};
  millrace_c_plugin plugin = {sizeof(millrace_c_plugin), parsers, 1, nullptr, 0};
  const auto refusal = [&] { return RegisterCPlugin(plugin, "p.so", registries_).message(); };
  EXPECT_EQ(refusal(), "parser \"F\" has no functions");
  parser.name = nullptr;
  EXPECT_EQ(refusal(), "a parser has no name");
  // A plugin whose structure ends before the doc was built against a contract that never was.
  parser.name = "F";
  parser.size = offsetof(millrace_parser, doc);
  EXPECT_EQ(refusal(), "parser \"F\" has no doc");
  plugin.parser_count = 0;
  EXPECT_EQ(refusal(), "it has no parser and no loader");
}

TEST_F(CPluginTest, AParserAndALoaderOfOneNameWereRefused) {
  millrace_parser parser = {sizeof(millrace_parser), "twin", "Lines.", nullptr, 0, nullptr, nullptr, nullptr};
  parser.open = [](const millrace_open_args*, millrace_error*) -> void* { return nullptr; };
  parser.parse = [](void*, const char*, size_t, const millrace_sink*, millrace_error*) { return 0; };
  parser.close = [](void*) {};
  millrace_loader loader = {
      sizeof(millrace_loader), "twin", nullptr, "Files.", nullptr, 0, parser.open, nullptr, parser.close};
  loader.next = [](void*, const millrace_sink*, millrace_error*) { return 0; };
  const millrace_parser* const parsers[] = {&parser};
  const millrace_loader* const loaders[] = {&loader};
  const millrace_c_plugin plugin = {sizeof(millrace_c_plugin), parsers, 1, loaders, 1};
  Registries registries;
  ASSERT_EQ(RegisterCPlugin(plugin, "p.so", registries).message(), "");
  EXPECT_TRUE(registries.feeds.ReadsText("twin")) << "datasets mean the parser";
  EXPECT_EQ(registries.readers.Resolve("a", "twin")->format->doc, "Files.");
}

TEST_F(CPluginTest, CountsAndPointersThatLieAreRefused) {
  const millrace_attr_info twice[] = {{"a", "1", ""}, {"b", "1", ""}, {"a", "2", ""}};
  millrace_parser parser = {sizeof(millrace_parser), "F", "Doc.", nullptr, 0, nullptr, nullptr, nullptr};
  parser.open = [](const millrace_open_args*, millrace_error*) -> void* { return nullptr; };
  parser.parse = [](void*, const char*, size_t, const millrace_sink*, millrace_error*) { return 0; };
  parser.close = [](void*) {};
  const millrace_parser* const parsers[] = {&parser, nullptr};
  millrace_c_plugin plugin = {sizeof(millrace_c_plugin), parsers, 1, nullptr, 0};
  const auto refusal = [&] {
    Registries registries;
    return RegisterCPlugin(plugin, "p.so", registries).message();
  };
  EXPECT_EQ(refusal(), "");
  parser.attr_count = 3;
  EXPECT_EQ(refusal(), "parser \"F\" has no attributes where it counts 3");
  parser.attrs = twice;
  EXPECT_EQ(refusal(), "parser \"F\" has two attributes \"a\"");
  parser.attr_count = SIZE_MAX;
  EXPECT_EQ(refusal(), "parser \"F\" counts 18446744073709551615 attributes; at most 1000 are believed");
  parser.attr_count = 2;
  plugin.parser_count = 2;
  EXPECT_EQ(refusal(), "it has no parser 1");
  plugin.parser_count = SIZE_MAX;
  EXPECT_EQ(refusal(), "it counts 18446744073709551615 parsers; at most 1000 are believed");
  plugin.parser_count = 1;
  plugin.loader_count = 1;
  EXPECT_EQ(refusal(), "it has no loaders where it counts 1");
  millrace_loader loader = {
      sizeof(millrace_loader), "l", nullptr, "Doc.", nullptr, 1, parser.open, nullptr, parser.close};
  loader.next = [](void*, const millrace_sink*, millrace_error*) { return 0; };
  const millrace_attr_info needed[] = {{"a", nullptr, ""}};
  loader.attrs = needed;
  const millrace_loader* const loaders[] = {&loader};
  plugin.loaders = loaders;
  EXPECT_EQ(refusal(), "");
  // A size of nothing at all: there is nothing that both know.
  plugin.size = 0;
  EXPECT_EQ(refusal(), "it has no parser and no loader");
}

TEST_F(CPluginTest, WhatAHostileParserGivesIsABadLine) {
  Load("hostile");
  const auto bad = [this](const std::string& line) {
    const Status status = RowsOf("name: \"HostileFeed\"", line + "\n").status();
    const std::string start = folder_.path() + "/part-0:1:1: ";
    EXPECT_EQ(status.message().substr(0, start.size()), start);
    return status.message().substr(std::min(start.size(), status.message().size()));
  };
  EXPECT_EQ(bad("null"), "slot \"x\": 1 value at no address (null)");
  EXPECT_EQ(bad("huge"), "slot \"x\": 18446744073709551615 values, more than a row may have (2147483647)");
  EXPECT_EQ(bad("kind"), "slot \"x\": expected floats, found ids");
  EXPECT_EQ(bad("column"), "there are 3 columns, and values came for number 18446744073709551615 (from 0)");
  const std::string parser = "parser \"HostileFeed\" of plugin \"" + TestPlugin("hostile") + "\"";
  EXPECT_EQ(bad("silent"), parser + " refuses the line and gives no reason");
  EXPECT_EQ(bad("odd"), parser + " refuses the line and gives no reason");
  EXPECT_EQ(bad("elsewhere"), parser + " refuses the line and gives no reason");
  EXPECT_EQ(bad("long"), std::string(1023, 'x'));
  const std::string overrun = parser + " wrote behind the 1024 bytes that there are for its message (error->room); ";
  EXPECT_EQ(bad("overrun"), overrun + "memory may be damaged");
  EXPECT_EQ(bad("overrun and a row"), overrun + "memory may be damaged");
  EXPECT_EQ(RowsOf("name: \"HostileFeed\"", "nothing at null\nkept back\na row\n").value(), "1/7/ 1/7/ ");
}

TEST_F(CPluginTest, EscapeCharactersOfAPluginsMessageAreShownAndNotObeyed) {
  Load("hostile");
  const std::string shown = "\\x1b[2J\\x1b[1;31mall is well\\x07\\x0d";
  EXPECT_EQ(RowsOf("name: \"HostileFeed\"", "escapes\n").status().message(), folder_.path() + "/part-0:1:1: " + shown);
  const std::string file = Write("a.hostile", "escapes");
  std::vector<LoDTensor> out;
  EXPECT_EQ(readers_.Open(file, "", PairShapes()).value()->ReadNext(&out, {}).status().message(),
            file + ": record 1: " + shown);
}

/// Lets the process have no more memory than it has, for as long as it lives.
class NoMoreMemory {
 public:
  NoMoreMemory() {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit none{1, before_.rlim_max};
    setrlimit(RLIMIT_AS, &none);
  }
  ~NoMoreMemory() { setrlimit(RLIMIT_AS, &before_); }
  NoMoreMemory(const NoMoreMemory&) = delete;
  NoMoreMemory& operator=(const NoMoreMemory&) = delete;

 private:
  rlimit before_{};
};

/// Values that there is no memory for; none of them is looked at.
constexpr size_t kTooMany = size_t{1} << 28;

TEST(CRowValuesTest, ASinkThatRanOutOfMemoryTakesNothingMore) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer ends the program instead";
  const millrace_column columns[] = {{"a", MILLRACE_FLOATS, -1}, {"b", MILLRACE_IDS, -1}};
  CRowValues row(columns);
  const uint64_t id = 7;
  {
    const NoMoreMemory none;
    row.sink().ids(row.sink().host, 1, &id, kTooMany);
  }
  // There is memory again, and each of these would be taken by whoever tries.
  const float x = 1;
  for (int i = 0; i < 3; ++i) {
    row.sink().ids(row.sink().host, 1, &id, 1);
    row.sink().floats(row.sink().host, 0, &x, 1);
    EXPECT_TRUE(row.ids(1).empty());
    EXPECT_TRUE(row.floats(0).empty());
    EXPECT_EQ(row.NoMemory(), "no memory for 268435456 values of a row");
    EXPECT_EQ(row.column(), 1U);
    row.Clear();
  }
}

TEST_F(CPluginTest, MemoryThatRanOutInASinkEndsTheRunAndIsNoBadLineToSkip) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer ends the program instead";
  static int lines;
  lines = 0;
  millrace_parser parser = {sizeof(millrace_parser), "HungryFeed", "Doc.", nullptr, 0, nullptr, nullptr, nullptr};
  parser.open = [](const millrace_open_args*, millrace_error*) -> void* { return &lines; };
  parser.parse = [](void*, const char*, size_t, const millrace_sink* sink, millrace_error*) {
    ++lines;
    const uint64_t id = 7;
    const NoMoreMemory none;
    sink->ids(sink->host, 2, &id, kTooMany);
    return MILLRACE_FAILED;
  };
  parser.close = [](void*) {};
  const millrace_parser* const parsers[] = {&parser};
  ASSERT_TRUE(RegisterCPlugin({sizeof(millrace_c_plugin), parsers, 1, nullptr, 0}, "p.so", registries_).ok());
  const Status status =
      RowsOf(R"(name: "HungryFeed" bad_lines { action: SKIP max_fraction: 1 })", "a\nb\nc\n").status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "data_desc.name: parser \"HungryFeed\" of plugin \"p.so\": slot \"more\": no memory for 268435456 values "
            "of a row");
  EXPECT_EQ(lines, 1) << "lines that were tried";
}

TEST_F(CPluginTest, AMessageBeyondItsRoomIsToldWhateverElseComes) {
  Load("hostile");
  const auto overrun = [](const std::string& who) {
    return who + " of plugin \"" + TestPlugin("hostile") +
           "\" wrote behind the 1024 bytes that there are for its message (error->room); memory may be damaged";
  };
  EXPECT_EQ(RowsOf("name: \"HostileFeed\"", "a row\noverrun and nothing\na row\n").status().message(),
            folder_.path() + "/part-0:2:1: " + overrun("parser \"HostileFeed\""));
  const auto first = [this](const std::string& what) {
    std::vector<LoDTensor> out;
    return readers_.Open(Write("a.hostile", what), "", PairShapes()).value()->ReadNext(&out, {}).status().message();
  };
  EXPECT_EQ(first("overrun and nothing"), folder_.path() + "/a.hostile: record 1: " + overrun("loader \"hostile\""));
  EXPECT_THAT(first("open overruns"), HasSubstr("cannot open it: " + overrun("loader \"hostile\"")));

  static int opened;
  millrace_parser parser = {sizeof(millrace_parser), "LongOpenFeed", "Doc.", nullptr, 0, nullptr, nullptr, nullptr};
  parser.open = [](const millrace_open_args*, millrace_error* error) -> void* {
    std::fill_n(error->text, error->room + 64, 'x');
    return &opened;
  };
  parser.parse = [](void*, const char*, size_t, const millrace_sink*, millrace_error*) { return 0; };
  parser.close = [](void*) {};
  const millrace_parser* const parsers[] = {&parser};
  ASSERT_TRUE(RegisterCPlugin({sizeof(millrace_c_plugin), parsers, 1, nullptr, 0}, "p.so", registries_).ok());
  EXPECT_THAT(RowsOf("name: \"LongOpenFeed\"", "a\n").status().message(),
              HasSubstr("parser \"LongOpenFeed\" of plugin \"p.so\" wrote behind the 1024 bytes"));
}

TEST_F(CPluginTest, ALongerStructureOfALaterMillraceIsReadAsFarAsItIsKnown) {
  struct LaterParser {
    millrace_parser known;
    void* later[4];
  };
  static int opened;
  const LaterParser later = {
      {sizeof(LaterParser), "LaterFeed", "Doc.", nullptr, 0,
       [](const millrace_open_args*, millrace_error*) -> void* { return &opened; },
       [](void*, const char*, size_t, const millrace_sink*, millrace_error*) { return 0; }, [](void*) {}},
      {}};
  const millrace_parser* const parsers[] = {&later.known};
  const millrace_c_plugin plugin = {sizeof(millrace_c_plugin), parsers, 1, nullptr, 0};
  ASSERT_TRUE(RegisterCPlugin(plugin, "p.so", registries_).ok());
  EXPECT_EQ(RowsOf("name: \"LaterFeed\"", "a\nb\n").value(), "");
}

TEST_F(CPluginTest, WhatAHostileLoaderGivesIsAFailureOfItsFile) {
  Load("hostile");
  const auto first = [this](const std::string& what, const std::vector<TensorSpec>& shapes) {
    const std::string file = Write("a.hostile", what);
    std::vector<LoDTensor> out;
    const std::string message = readers_.Open(file, "", shapes).value()->ReadNext(&out, {}).status().message();
    return message.substr(std::min(message.size(), file.size()));
  };
  EXPECT_EQ(first("null", PairShapes()), ": record 1: output 0: 1 value at no address (null)");
  EXPECT_EQ(first("silent", PairShapes()),
            ": record 1: loader \"hostile\" of plugin \"" + TestPlugin("hostile") + "\" failed and gives no reason");
  EXPECT_EQ(first("read to null", PairShapes()), "");
  // A column whose first axis is fixed has as many values as it says, sequences or not.
  EXPECT_EQ(first("a row", {{DType::kFloat32, {-1, 1}, 0}, {DType::kInt64, {3, 1}, 1}}),
            ": record 1: output 1: expected 3 values, found 1");
  EXPECT_EQ(readers_.Open("a.hostile", "", {{DType::kFloat32, {1 << 20, 1 << 20}, 0}}).status().message(),
            "loader \"hostile\" of plugin \"" + TestPlugin("hostile") +
                "\": output 0: a record has at most 2147483647 values, not float32 [1048576, 1048576]");
}

TEST_F(CPluginTest, APluginThatCallsExitIsNamedAndEndsNothingWell) {
  Load("hostile");
  const auto reader = readers_.Open(Write("a.hostile", "exit"), "", PairShapes()).value();
  std::vector<LoDTensor> out;
  EXPECT_EXIT((void)reader->ReadNext(&out, {}), testing::ExitedWithCode(2),
              "plugin \"" + TestPlugin("hostile") + "\" called exit\\(0\\), which ends the program");
  EXPECT_EXIT((void)LoadPlugin(TestPlugin("exits_at_load"), &registries_), testing::ExitedWithCode(2),
              "plugin \"" + TestPlugin("exits_at_load") + "\" called exit\\(0\\)");
  EXPECT_EXIT(std::exit(3), testing::ExitedWithCode(3), "") << "who else calls it";
}

TEST_F(CPluginTest, ALoaderWithoutEndIsStopped) {
  Load("hostile");
  const auto reader = readers_.Open(Write("a.hostile", "a row"), "", PairShapes()).value();
  std::stop_source stop;
  std::vector<LoDTensor> out;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(reader->ReadNext(&out, stop.get_token()).value());
  stop.request_stop();
  EXPECT_EQ(reader->ReadNext(&out, stop.get_token()).status().code(), StatusCode::kCancelled);
  ASSERT_TRUE(reader->ReInit().ok());
  EXPECT_TRUE(reader->ReadNext(&out, {}).value());
}

TEST_F(CPluginTest, RefusesAnotherContractWithBothNumbers) {
  const std::string path = TestPlugin("c_of_tomorrow");
  EXPECT_EQ(LoadPlugin(path, &registries_).message(), "plugin \"" + path +
                                                          "\": it was built for another program:\n"
                                                          "  built as      \"millrace plugin, C: 2\"\n"
                                                          "  needed here   \"millrace plugin, C: 1\"\n"
                                                          "  build it again with this Millrace's headers");
}

TEST_F(CPluginTest, NamesThatAreTakenAreRefused) {
  const std::string path = folder_.path() + "/other.so";
  std::filesystem::copy_file(TestPlugin("pairs"), path);
  EXPECT_EQ(LoadPlugin(path, &registries_).message(),
            "plugin \"" + path + "\": a data feed of the class \"PairFeed\" is registered already, from plugin \"" +
                TestPlugin("pairs") +
                "\"\n  nothing is replaced: give what is new a name of its own, or leave this plugin out");
  Registries no_feeds;
  no_feeds.readers = readers_;
  EXPECT_THAT(
      LoadPlugin(path, &no_feeds).message(),
      HasSubstr("a file format \"pairs\" is registered already, from plugin \"" + TestPlugin("pairs") + "\"\n"));
  EXPECT_TRUE(no_feeds.feeds.names().empty()) << "of a plugin that is refused, nothing is there";
  EXPECT_THAT(feeds_.names(), testing::Contains("PairFeed"));
  EXPECT_EQ(readers_.entries().size(), 2U);
}

}  // namespace
}  // namespace millrace
