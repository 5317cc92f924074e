#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "allocation_counter.h"
#include "core/crc32.h"
#include "core/crc32c.h"
#include "core/file.h"
#include "core/numbers.h"
#include "core/rng.h"
#include "reader/format_files.h"
#include "reader/jpeg_picture.h"
#include "reader/recordio.h"
#include "record_features.pb.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<TensorSpec> kPixelsAndLabel = {{DType::kFloat32, {-1, 3}, 0}, {DType::kInt64, {-1, 1}, 0}};

TEST_F(FormatFiles, CsvColumnsGoToTheOutputsInTheirOrder) {
  EXPECT_THAT(Records(Write("a.csv", "a,b,c,label\n1,2.5,-3e2,7\r\n\n4, 5 ,6,8"), kPixelsAndLabel),
              ElementsAre("1 2.5 -300 | 7", "4 5 6 | 8"));
  EXPECT_THAT(Records(Write("b.csv",
                            "\xef\xbb\xbf"
                            "1,2,3,4\n"),
                      kPixelsAndLabel),
              ElementsAre("1 2 3 | 4"));
  EXPECT_THAT(Records(Write("c.csv", ""), kPixelsAndLabel), ElementsAre());
}

TEST_F(FormatFiles, CsvFieldsMayHoldLists) {
  const std::vector<TensorSpec> shapes = {{DType::kInt64, {-1, 1}, 1}, {DType::kFloat32, {1}, 0}};
  EXPECT_THAT(Records(Write("a.csv", "3 5  18446744073709551615,1\n,2\n"), shapes), ElementsAre("3 5 -1 | 1", " | 2"));
}

TEST_F(FormatFiles, CsvMistakesNameLineAndColumn) {
  EXPECT_THAT(Records(Write("a.csv", "1,2,3,4\n1,2,x,4\n"), kPixelsAndLabel),
              ElementsAre("1 2 3 | 4", "bad data: a.csv:2: column 3: expected a number of type float32, found \"x\""));
  EXPECT_THAT(Records(Write("b.csv", "1,2,3,4.5\n"), kPixelsAndLabel),
              ElementsAre("bad data: b.csv:1: column 4: expected a number of type int64, found \"4.5\""));
  EXPECT_THAT(Records(Write("c.csv", "1,2,3\n"), kPixelsAndLabel),
              ElementsAre("bad data: c.csv:1: 3 columns; the outputs take 4"));
  EXPECT_THAT(Records(Write("d.csv", "1,2,3,4,5\n"), kPixelsAndLabel),
              ElementsAre("bad data: d.csv:1: more than the 4 columns that the outputs take"));
  EXPECT_THAT(Records("nowhere.csv", kPixelsAndLabel), ElementsAre("not found: no such file: \"nowhere.csv\""));
  EXPECT_THAT(
      Records(Write("e.csv", ""), {{DType::kFloat32, {-1, -1}, 0}}),
      ElementsAre("invalid configuration: csv file \"e.csv\": output 0: float32 [-1, -1]: only the first size of "
                  "a record may be -1"));
  EXPECT_THAT(Records(Write("f.csv", ""), {{DType::kBool, {1}, 0}}),
              ElementsAre("invalid configuration: csv file \"f.csv\": output 0: bool [1]: text holds float32, float64, "
                          "int32, int64 and uint8"));
}

// Names were once not looked at, and columns of another order went to the wrong outputs.
/// `spec`, of whose values a table is asked.
TensorSpec Ids(TensorSpec spec) {
  spec.is_id = true;
  return spec;
}

TEST_F(FormatFiles, AnIdBelow0WasTheRowOfAnother) {
  const TensorSpec one = {DType::kInt64, {-1, 1}};
  const TensorSpec list = {DType::kInt64, {-1, 1}, 1};
  const std::string path = Write("a.csv", "7,1 18446744073709551615\n8,3 -1\n");
  EXPECT_THAT(Records(path, {one, list}), ElementsAre("7 | 1 -1", "8 | 3 -1"));
  EXPECT_THAT(Records(path, {one, Ids(list)}),
              ElementsAre("7 | 1 -1",
                          "bad data: a.csv:2: column 2: \"-1\" is below 0, and no id of a table; ids are 0 to "
                          "18446744073709551615: leave out what only fills up a list, or give it an id of "
                          "its own"));
  EXPECT_THAT(Records(Write("b.csv", "-0\n -12 \n"), {Ids(one)}),
              ElementsAre("0", HasSubstr("b.csv:2: column 1: \" -12 \" is below 0")));
  EXPECT_THAT(Records(Write("c.libsvm", "-1 2:0.5\n"), {Ids(one), {DType::kFloat32, {-1, 2}}}),
              ElementsAre(HasSubstr("c.libsvm:1: the label: \"-1\" is below 0, and no id of a table")));
}

TEST_F(FormatFiles, ACsvHeaderWhoseNamesStandInAnotherOrderIsAnError) {
  const std::vector<TensorSpec> named = {{DType::kFloat32, {-1, 2}, 0, "x"}, {DType::kInt64, {-1, 1}, 0, "y"}};
  EXPECT_THAT(Records(Write("a.csv", "y,x,x2\n1,2,3\n"), named),
              ElementsAre("bad data: a.csv:1: column 1 is named \"y\", and the output of this name takes column 3: "
                          "columns go to the outputs in their order"));
  EXPECT_THAT(Records(Write("a.csv", "a,\"x\", y \n1,2,3\n"), named), ElementsAre("1 2 | 3"));
}

// Nothing, packed, has a header; an upload that failed leaves none, and its rows would be missed by nobody.
TEST_F(FormatFiles, APackedFileWithoutAByteIsAnError) {
  const std::string why = ": the file has no byte, and what is packed has some, however empty: it was cut short";
  EXPECT_THAT(Records(Write("a.csv.gz", ""), kPixelsAndLabel), ElementsAre("bad data: a.csv.gz" + why));
  EXPECT_THAT(Records(Write("a.csv.zst", ""), kPixelsAndLabel), ElementsAre("bad data: a.csv.zst" + why));
  EXPECT_THAT(Records(Write("a.csv", ""), kPixelsAndLabel), ElementsAre());
}

// One bad value in a first line once made a header of it, and the row was gone.
TEST_F(FormatFiles, ACsvFileWhoseFirstRowIsBadIsAnError) {
  const std::string hint = " (a first line is a header where most columns are names)";
  EXPECT_THAT(Records(Write("a.csv", "1,x,3,4\n1,2,3,4\n"), kPixelsAndLabel),
              ElementsAre("bad data: a.csv:1: column 2: expected a number of type float32, found \"x\"" + hint));
  EXPECT_THAT(Records(Write("a.csv", "NA,NA,3,4\n1,2,3,4\n"), kPixelsAndLabel),
              ElementsAre("bad data: a.csv:1: column 1: expected a number of type float32, found \"NA\"" + hint));
  EXPECT_THAT(Records(Write("a.csv", "1,2,3,\n1,2,3,4\n"), kPixelsAndLabel),
              ElementsAre("bad data: a.csv:1: column 4: expected a number of type int64, found nothing"));
  EXPECT_THAT(Records(Write("a.csv", "\"1\",\"2\",\"3\",\"4\"\n1,2,3,4\n"), kPixelsAndLabel),
              ElementsAre("bad data: a.csv:1: column 1: expected a number of type float32, found \"\"1\"\""));
  EXPECT_THAT(Records(Write("a.csv", "0x10,1e400,3,4\n"), kPixelsAndLabel), ElementsAre("16 inf 3 | 4"));
  EXPECT_THAT(Records(Write("a.csv", "150,4,setosa,versicolor,virginica\n1,2,3,4\n"), kPixelsAndLabel),
              ElementsAre("1 2 3 | 4"));
  EXPECT_THAT(Records(Write("a.csv", ",a,b,c\n1,2,3,4\n"), kPixelsAndLabel), ElementsAre("1 2 3 | 4"));
}

TEST_F(FormatFiles, ACsvFileThatIsCutWithinItsHeaderIsAnError) {
  EXPECT_THAT(Records(Write("a.csv", "x0,x"), kPixelsAndLabel),
              ElementsAre("bad data: a.csv:1: no row, and a header of 2 columns; the outputs take 4"));
  EXPECT_THAT(Records(Write("a.csv", "x0,x1,x2,label\n"), kPixelsAndLabel), ElementsAre());
  EXPECT_THAT(Records(Write("a.csv", "# made on Monday\n1,2,3,4\n"), kPixelsAndLabel), ElementsAre("1 2 3 | 4"));
}

TEST_F(FormatFiles, WhatHasNoLineEndsIsRefusedByItsName) {
  EXPECT_THAT(
      Records("csv:/dev/zero", kPixelsAndLabel),
      ElementsAre("bad data: /dev/zero: line 1 is longer than 67108864 bytes; is this text? Records that are so "
                  "large are read from recordio, tfrecord or ofrecord files"));
}

TEST_F(FormatFiles, LibsvmIsDenseOrSparseAsTheOutputsSay) {
  const std::string text = "1 2:0.5 3:-1 # a comment\n\n-1\n+1 1:2\n";
  EXPECT_THAT(Records(Write("a.libsvm", text), {{DType::kFloat32, {-1, 1}, 0}, {DType::kFloat32, {-1, 3}, 0}}),
              ElementsAre("1 | 0 0.5 -1", "-1 | 0 0 0", "1 | 2 0 0"));
  EXPECT_THAT(Records(Write("b.libsvm", text),
                      {{DType::kInt64, {-1, 1}, 0}, {DType::kInt64, {-1, 1}, 1}, {DType::kFloat32, {-1, 1}, 1}}),
              ElementsAre("1 | 2 3 | 0.5 -1", "-1 | |", "1 | 1 | 2"));
}

TEST_F(FormatFiles, LibsvmMistakesNameLineAndToken) {
  const std::vector<TensorSpec> shapes = {{DType::kInt64, {1}, 0}, {DType::kFloat32, {3}, 0}};
  EXPECT_THAT(Records(Write("a.svm", "1 4:1\n"), shapes),
              ElementsAre("bad data: a.svm:1: expected an index up to 3, found \"4:1\""));
  EXPECT_THAT(Records(Write("b.svm", "1 2:1 2:1\n"), shapes),
              ElementsAre("bad data: b.svm:1: expected an index above 2, found \"2:1\""));
  EXPECT_THAT(Records(Write("c.svm", "1 2=1\n"), shapes),
              ElementsAre("bad data: c.svm:1: expected INDEX:VALUE, found \"2=1\""));
  EXPECT_THAT(Records(Write("d.svm", "1 2:\n"), shapes),
              ElementsAre("bad data: d.svm:1: expected a value after the index, found \"2:\""));
  EXPECT_THAT(Records(Write("e.svm", "0.5 2:1\n"), shapes),
              ElementsAre("bad data: e.svm:1: expected a label of type int64, found \"0.5\""));
}

/// Numbers as people and programs write them, most of them short decimals.
std::string SpelledNumber(Rng& rng) {
  const auto digits = [&rng](uint64_t most) {
    std::string text;
    for (uint64_t i = rng.Below(most) + 1; i > 0; --i) text += static_cast<char>('0' + rng.Below(10));
    return text;
  };
  const std::string sign = rng.Below(3) == 0 ? "-" : rng.Below(20) == 0 ? "+" : "";
  switch (rng.Below(10)) {
    case 0: return sign + digits(3);
    case 1: return sign + digits(9) + "." + digits(9);
    case 2: return sign + "." + digits(3);
    case 3: return sign + digits(3) + ".";
    case 4: return sign + digits(2) + "." + digits(4) + "e" + (rng.Below(2) == 0 ? "-" : "") + digits(2);
    case 5: return sign + "0x1.8p3";
    case 6: return sign + "inf";
    default: return sign + digits(2) + "." + digits(4);
  }
}

// The way that reads short decimals at once is to give what ParseFloat gives.
TEST_F(FormatFiles, EverySpellingOfANumberIsReadAsParseFloatReadsIt) {
  constexpr int kValues = 40;
  Rng rng(11);
  std::string csv = "a header\n";
  std::string svm;
  std::vector<std::vector<float>> expected(300, std::vector<float>(kValues));
  for (std::vector<float>& row : expected) {
    svm += "3";
    for (int i = 0; i < kValues; ++i) {
      const std::string number = SpelledNumber(rng);
      ASSERT_NE(ParseFloat(number, &row[static_cast<size_t>(i)]), FloatText::kNoNumber) << number;
      csv += number + ",";
      svm += (rng.Below(9) == 0 ? " \t" : " ") + std::string(rng.Below(30) == 0 ? "+" : "") + std::to_string(i + 1) +
             ":" + number;
    }
    csv += "3\n";
    svm += rng.Below(5) == 0 ? "# 1:2\n" : rng.Below(5) == 0 ? "\r\n" : "\n";
  }
  const TensorSpec label = {DType::kInt64, {-1, 1}, 0};
  const TensorSpec dense = {DType::kFloat32, {-1, kValues}, 0};
  const TensorSpec indices = {DType::kInt64, {-1, 1}, 1};
  const TensorSpec values = {DType::kFloat32, {-1, 1}, 1};
  const auto compare = [&](const std::string& path, const std::vector<TensorSpec>& specs, size_t output) {
    const auto reader = BuiltinFormats().Open(path, "", specs).value();
    std::vector<LoDTensor> item;
    for (const std::vector<float>& row : expected) {
      const Result<bool> more = reader->ReadNext(&item, {});
      ASSERT_TRUE(more.ok()) << more.status().ToString();
      ASSERT_EQ(item[output].values.numel(), kValues);
      ASSERT_EQ(std::memcmp(item[output].values.data<float>(), row.data(), kValues * sizeof(float)), 0);
      for (int i = 0; specs.size() == 3 && i < kValues; ++i) ASSERT_EQ(item[1].values.data<int64_t>()[i], i + 1);
    }
    EXPECT_FALSE(*reader->ReadNext(&item, {}));
  };
  compare(Write("a.csv", csv), {dense, label}, 0);
  compare(Write("a.svm", svm), {label, dense}, 1);
  compare(Write("b.svm", svm), {label, indices, values}, 2);
}

TEST_F(FormatFiles, PairsOfLibsvmThatLookPlainAreCheckedAsWell) {
  const std::vector<TensorSpec> dense = {{DType::kInt64, {1}, 0}, {DType::kFloat32, {30}, 0}};
  const std::vector<TensorSpec> sparse = {
      {DType::kInt64, {-1, 1}, 0}, {DType::kInt64, {-1, 1}, 1}, {DType::kFloat32, {-1, 1}, 1}};
  for (const std::vector<TensorSpec>& specs : {dense, sparse}) {
    const auto says = [&](const std::string& line) { return Records(Write("a.svm", line + "\n"), specs).back(); };
    EXPECT_EQ(says("1 1:0.5 0:1"), "bad data: a.svm:1: expected an index above 1, found \"0:1\"");
    EXPECT_EQ(says("1 1:0.5 1:0.5"), "bad data: a.svm:1: expected an index above 1, found \"1:0.5\"");
    EXPECT_EQ(says("1 1:0.5 2:0.5x 3:1"), "bad data: a.svm:1: expected a value after the index, found \"2:0.5x\"");
    EXPECT_EQ(says("1 1:0.5 2:0.5:3 4:1"), "bad data: a.svm:1: expected a value after the index, found \"2:0.5:3\"");
    EXPECT_EQ(says("1 1:0.5 2 3:1"), "bad data: a.svm:1: expected INDEX:VALUE, found \"2\"");
    EXPECT_EQ(says("1 1:0.5 99999999999999999999:1"),
              "bad data: a.svm:1: expected INDEX:VALUE, found \"99999999999999999999:1\"");
  }
  EXPECT_EQ(Records(Write("a.svm", "1 1:0.5 31:1\n"), dense).back(),
            "bad data: a.svm:1: expected an index up to 30, found \"31:1\"");
}

TEST_F(FormatFiles, AWarmReaderAllocatesNothing) {
  std::string csv;
  std::string svm;
  for (int i = 0; i < 50; ++i) {
    csv += "0.5,-1.25,3,7\n";
    svm += "7 1:0.5 3:-1.25\n";
  }
  const TensorSpec label = {DType::kInt64, {-1, 1}, 0};
  const auto allocations = [&](const std::string& path, const std::vector<TensorSpec>& specs) {
    const auto reader = BuiltinFormats().Open(path, "", specs).value();
    std::vector<LoDTensor> item;
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(*reader->ReadNext(&item, {}));
    const AllocationCounter counter;
    for (int i = 0; i < 40; ++i) EXPECT_TRUE(*reader->ReadNext(&item, {}));
    return counter.count();
  };
  EXPECT_EQ(allocations(Write("a.csv", csv), kPixelsAndLabel), 0);
  EXPECT_EQ(allocations(Write("a.svm", svm), {label, {DType::kFloat32, {-1, 3}, 0}}), 0);
  EXPECT_EQ(allocations(Write("b.svm", svm), {label, {DType::kInt64, {-1, 1}, 1}, {DType::kFloat32, {-1, 1}, 1}}), 0);
  if (!HasJpeg()) return;
  for (int i = 0; i < 50; ++i) {
    Write("pictures/" + std::to_string(100 + i) + ".jpg", JpegPicture(20, 10, 3, [](int x, int, int) { return x; }));
  }
  EXPECT_EQ(allocations("jpeg:" + folder() + "/pictures", {{DType::kUint8, {-1, 3, 10, 20}, 0}}), 0);
}

TEST_F(FormatFiles, MultiSlotIsReadByTheParserOfTheDatasets) {
  const std::vector<TensorSpec> shapes = {
      {DType::kInt64, {-1, 1}, 0}, {DType::kFloat32, {-1, 2}, 0}, {DType::kInt64, {-1, 1}, 1, "C1"}};
  std::string text;
  for (int i = 0; i < 150; ++i) text += "1 " + std::to_string(i) + " 2 0.5 1 2 7 8\r\n";
  const std::vector<std::string> records = Records(Write("a.multi_slot", text), shapes);
  ASSERT_EQ(records.size(), 150U);
  EXPECT_EQ(records[0], "0 | 0.5 1 | 7 8");
  EXPECT_EQ(records[149], "149 | 0.5 1 | 7 8");
  EXPECT_THAT(Records(Write("b.multi_slot", "1 1 2 0.5 1 2 7 8\n1 1 2 0.5 1 2 7 x\n"), shapes),
              ElementsAre("1 | 0.5 1 | 7 8",
                          "bad data: b.multi_slot:2:17: slot \"C1\": expected value 2 of 2 to be an unsigned integer, "
                          "found \"x\""));
}

class FeatureFiles : public FormatFiles {
 protected:
  template <class T>
  static std::string Bytes(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof(value)};
  }
  static uint32_t Masked(const std::string& bytes) {
    const uint32_t crc = Crc32c(0, bytes.data(), bytes.size());
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
  }
  static std::string TfRecord(const std::string& message) {
    const std::string length = Bytes<uint64_t>(message.size());
    return length + Bytes(Masked(length)) + message + Bytes(Masked(message));
  }
  static std::string Example(float x, std::vector<int64_t> ids) {
    TfExample example;
    auto& features = *example.mutable_features()->mutable_feature();
    features["x"].mutable_float_list()->add_value(x);
    for (const int64_t id : ids) features["ids"].mutable_int64_list()->add_value(id);
    return example.SerializeAsString();
  }
  const std::vector<TensorSpec> shapes_ = {{DType::kInt64, {-1, 1}, 1, "ids"}, {DType::kFloat32, {-1, 1}, 0, "x"}};
};

TEST_F(FeatureFiles, TfRecordsAreReadByName) {
  EXPECT_THAT(Records(Write("a.tfrecord", TfRecord(Example(0.5F, {7, 8})) + TfRecord(Example(2, {9}))), shapes_),
              ElementsAre("7 8 | 0.5", "9 | 2"));
  EXPECT_THAT(Records(Write("b.tfrecord", TfRecord("")), shapes_),
              ElementsAre("bad data: b.tfrecord: byte 12: the record has no feature \"ids\""));
}

TEST_F(FeatureFiles, OfRecordsAreReadByName) {
  OfRecord record;
  (*record.mutable_feature())["ids"].mutable_int64_list()->add_value(-3);
  (*record.mutable_feature())["x"].mutable_float_list()->add_value(1.5F);
  const std::string message = record.SerializeAsString();
  const std::string path = Write("a.ofrecord", Bytes<int64_t>(static_cast<int64_t>(message.size())) + message);
  EXPECT_THAT(Records(path, shapes_), ElementsAre("-3 | 1.5"));
  EXPECT_THAT(Records(path, {Ids(shapes_[0])}),
              ElementsAre(HasSubstr("a.ofrecord: record 1: feature \"ids\", value 0 (from 0): -3 is below 0")));
}

TEST_F(FeatureFiles, AnIdBelow0WasTheRowOfAnother) {
  EXPECT_THAT(
      Records(Write("a.tfrecord", TfRecord(Example(0.5F, {7})) + TfRecord(Example(2, {9, -1}))), {Ids(shapes_[0])}),
      ElementsAre("7",
                  "bad data: a.tfrecord: record 2: feature \"ids\", value 1 (from 0): -1 is below 0, and no id of a "
                  "table; leave out what only fills up a list; hashes are written without their sign, by hash & "
                  "0x7fffffffffffffff"));
}

TEST_F(FeatureFiles, SayWhatIsBroken) {
  const std::string good = TfRecord(Example(0.5F, {7}));
  const auto error = [&](const std::string& bytes) { return Records(Write("a.tfrecord", bytes), shapes_).back(); };
  EXPECT_THAT(error(good.substr(0, 5)), HasSubstr("byte 0: the file ends within the length of a record"));
  EXPECT_THAT(error(good.substr(0, good.size() - 2)), HasSubstr("byte 12: the file ends within a record"));
  std::string wrong = good;
  wrong[2] ^= 1;
  EXPECT_EQ(error(wrong),
            "bad data: a.tfrecord: byte 0: the checksum of the record's length is wrong: the file is damaged");
  wrong = good;
  wrong[15] ^= 1;
  EXPECT_EQ(error(wrong),
            "bad data: a.tfrecord: byte 12: the checksum of the record's data is wrong: the file is damaged");
  EXPECT_EQ(error(TfRecord("\xff")), "bad data: a.tfrecord: byte 12: the record is no TfExample message");
  EXPECT_THAT(Records(Write("b.tfrecord", good), {{DType::kFloat32, {-1, 1}, 0, "ids"}}),
              ElementsAre("bad data: b.tfrecord: byte 12: feature \"ids\" holds no list of float32"));
  EXPECT_THAT(Records(Write("c.tfrecord", good), {{DType::kInt64, {-1, 2}, 0, "ids"}}),
              ElementsAre("bad data: c.tfrecord: byte 12: feature \"ids\" has 1 values; the output takes 2"));
  EXPECT_THAT(
      Records(Write("d.tfrecord", good), {{DType::kInt64, {-1, 1}, 0}}),
      ElementsAre("invalid configuration: tfrecord file \"d.tfrecord\": output 0 has no name: which feature is it? "
                  "Give `names`, one for each output"));
}

class RecordIOFiles : public FormatFiles {
 protected:
  std::string WriteRecords(const std::string& name, int records) {
    std::string path = Write(name, "");
    RecordIOWriter writer = RecordIOWriter::Create(path).value();
    for (int i = 0; i < records; ++i) {
      std::vector<LoDTensor> record(2);
      record[0].values.Resize<float>({1, 1})[0] = static_cast<float>(i);
      int64_t* ids = record[1].values.Resize<int64_t>({2, 1});
      ids[0] = i;
      ids[1] = -i;
      record[1].lod = {0, 2};
      EXPECT_TRUE(writer.Append(record).ok());
    }
    EXPECT_TRUE(writer.Finish().ok());
    return path;
  }
  const std::vector<TensorSpec> shapes_ = {{DType::kFloat32, {-1, 1}, 0}, {DType::kInt64, {-1, 1}, 1}};
};

TEST_F(RecordIOFiles, KeepTypesShapesAndLoD) {
  const std::vector<std::string> records = Records(WriteRecords("a.recordio", 2500), shapes_);
  ASSERT_EQ(records.size(), 2500U);
  EXPECT_EQ(records[0], "0 | 0 0");
  EXPECT_EQ(records[2499], "2499 | 2499 -2499");
  EXPECT_THAT(Records(WriteRecords("b.recordio", 0), shapes_), ElementsAre());
}

TEST_F(RecordIOFiles, AreOfPaddlesBytes) {
  const std::string bytes = ReadFile(WriteRecords("a.recordio", 1)).value();
  // magic, records, crc, compressor, bytes; size of the record, tensors
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x04\x03\x02\x01\x01\0\0\0", 8));
  EXPECT_EQ(bytes.substr(12, 4), std::string(4, '\0'));
  const size_t payload = bytes.size() - 20;
  EXPECT_EQ(static_cast<unsigned char>(bytes[16]), payload);
  EXPECT_EQ(static_cast<unsigned char>(bytes[20]), payload - 4);
  EXPECT_EQ(bytes.substr(24, 4), std::string("\x02\0\0\0", 4));
  uint32_t crc = 0;
  std::memcpy(&crc, bytes.data() + 8, 4);
  EXPECT_EQ(crc, Crc32(0, bytes.data() + 20, payload));
}

TEST_F(RecordIOFiles, SayWhatIsBroken) {
  const std::string good = ReadFile(WriteRecords("good.recordio", 3)).value();
  const auto records = [&](const std::string& bytes) { return Records(Write("a.recordio", bytes), shapes_); };
  EXPECT_THAT(
      records(good.substr(0, 10)),
      ElementsAre("bad data: a.recordio: byte 0: the file ends within the header of a chunk: 20 bytes wanted, 10 "
                  "left"));
  EXPECT_THAT(
      records(good.substr(0, good.size() - 1)),
      ElementsAre("bad data: a.recordio: byte 20: the file ends within a chunk: " + std::to_string(good.size() - 20) +
                  " bytes wanted, " + std::to_string(good.size() - 21) + " left"));
  EXPECT_THAT(records(good.substr(0, 20)),
              ElementsAre("bad data: a.recordio: byte 20: the file ends behind the header of a chunk"));
  std::string wrong = good;
  wrong[40] ^= 1;
  EXPECT_THAT(records(wrong),
              ElementsAre("bad data: a.recordio: byte 20: the chunk's checksum is wrong: the file is damaged"));
  EXPECT_THAT(records("text, not records at all"),
              ElementsAre("bad data: a.recordio: byte 0: no RecordIO chunk begins here"));
  std::string packed = good;
  packed[12] = 1;
  EXPECT_THAT(records(packed), ElementsAre("bad data: a.recordio: byte 0: the chunk is compressed (snappy); write it "
                                           "without, and compress the file by gzip or zstd"));
  EXPECT_THAT(Records(Write("b.recordio", good), {shapes_[0]}),
              ElementsAre("bad data: b.recordio: record 1: wanted 1 tensors, got 2"));
  EXPECT_THAT(Records(Write("c.recordio", good), {shapes_[1], shapes_[0]}),
              ElementsAre("bad data: c.recordio: record 1: output 0: wanted int64 [-1, 1] of lod_level 1, got float32 "
                          "[1, 1]"));
}

TEST_F(RecordIOFiles, WhoseSizesLieCostNoMemory) {
  std::string bytes = ReadFile(WriteRecords("good.recordio", 1)).value();
  for (size_t i = 16; i < 20; ++i) bytes[i] = '\xff';
  EXPECT_THAT(Records(Write("a.recordio", bytes), shapes_),
              ElementsAre(HasSubstr("the file ends within a chunk: 4294967295 bytes wanted")));
}

}  // namespace
}  // namespace millrace
