// JPEG pictures of files and folders: pixels where they belong, labels, and what is not a whole picture of the right
// size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/rng.h"
#include "reader/format_files.h"
#include "reader/jpeg_picture.h"
#include "reader/multiple_reader.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TensorSpec Picture(int64_t channels, int64_t height, int64_t width, DType type = DType::kFloat32) {
  return {type, {-1, channels, height, width}, 0};
}
const TensorSpec kPictureLabel = {DType::kInt64, {-1, 1}, 0};

/// One shade of grey.
std::string Grey(int shade, int width = 4, int height = 2) {
  return JpegPicture(width, height, 1, [shade](int, int, int) { return shade; });
}

class JpegFiles : public FormatFiles {
 protected:
  void SetUp() override {
    if (!HasJpeg()) GTEST_SKIP() << "this is built without JPEG: MILLRACE_JPEG is OFF, or libjpeg is not at hand";
  }
  /// First value and label of every picture, "10 | 0", or the failure; `name` is "TAG:NAME" or a NAME in the folder.
  std::vector<std::string> Labelled(const std::string& name) const {
    std::vector<std::string> records = Records(name, {Picture(1, 2, 4), kPictureLabel});
    for (std::string& record : records) {
      if (const size_t bar = record.find(" | "); bar != std::string::npos) {
        record = record.substr(0, record.find(' ')) + record.substr(bar);
      }
    }
    return records;
  }
  std::string InFolder(const std::string& name) const { return "jpeg:" + folder() + "/" + name; }
};

class JpegAbsent : public FormatFiles {
 protected:
  void SetUp() override {
    if (HasJpeg()) GTEST_SKIP() << "this is built with JPEG";
  }
};

TEST_F(JpegAbsent, UsesSayWhatToDo) {
  for (const std::string& file : {"jpeg:" + folder(), folder() + "/a.jpg"}) {
    const Status status = BuiltinFormats().Open(file, "", {Picture(1, 2, 4)}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidConfig);
    EXPECT_THAT(status.message(), StartsWith("jpeg file or folder \"" + folder()));
    EXPECT_THAT(status.message(), HasSubstr("built without JPEG"));
    EXPECT_THAT(status.message(), HasSubstr("build again with -DMILLRACE_JPEG=ON"));
  }
}

/// Red grows to the right, green downwards, blue is 200.
int Slopes(int x, int y, int channel) { return channel == 0 ? 16 * x : channel == 1 ? 16 * y : 200; }

TEST_F(JpegFiles, ColoursArePlanesOfRows) {
  const std::string path = Write("a.jpg", JpegPicture(16, 8, 3, Slopes));
  for (const bool progressive : {false, true}) {
    Write("a.jpg", JpegPicture(16, 8, 3, Slopes, {.progressive = progressive}));
    for (const DType type : {DType::kFloat32, DType::kUint8}) {
      const auto reader = BuiltinFormats().Open(path, "", {Picture(3, 8, 16, type)}).value();
      std::vector<LoDTensor> item;
      ASSERT_TRUE(*reader->ReadNext(&item, {}));
      ASSERT_EQ(item[0].values.dims(), (Dims{1, 3, 8, 16}));
      for (int c = 0; c < 3; ++c) {
        for (int y = 0; y < 8; ++y) {
          for (int x = 0; x < 16; ++x) {
            const int at = (c * 8 + y) * 16 + x;
            const int value = type == DType::kUint8 ? item[0].values.data<uint8_t>()[at]
                                                    : static_cast<int>(item[0].values.data<float>()[at]);
            EXPECT_LE(std::abs(value - Slopes(x, y, c)), 3) << c << ' ' << y << ' ' << x;
          }
        }
      }
      EXPECT_FALSE(*reader->ReadNext(&item, {}));
    }
  }
}

// The decoder lets libjpeg read on behind the file and takes words of four bytes apart: it is to change nothing.
TEST_F(JpegFiles, PixelsAreThoseOfLibjpegItself) {
  const JpegKind kinds[] = {{}, {.subsampled = true}, {.progressive = true, .subsampled = true}, {.restart_rows = 1}};
  Rng rng(7);
  for (int i = 0; i < 120; ++i) {
    const auto width = static_cast<int>(1 + rng.Below(90));
    const auto height = static_cast<int>(1 + rng.Below(60));
    const auto noise = static_cast<int>(1 + rng.Below(200));
    const int file_channels = rng.Below(4) == 0 ? 1 : 3;
    const auto value = [&](int x, int y, int c) { return (2 * x + 3 * y + 50 * c + rng.Below(noise)) % 256; };
    const std::string picture = JpegPicture(
        width, height, file_channels, [&](int x, int y, int c) { return static_cast<int>(value(x, y, c)); },
        kinds[i % 4]);
    const std::string path = Write("a.jpg", picture);
    for (const int channels : {1, 3}) {
      const std::vector<uint8_t> expected = PixelsByLibjpeg(picture, channels);
      std::vector<LoDTensor> bytes;
      std::vector<LoDTensor> floats;
      const auto read = [&](DType type, std::vector<LoDTensor>* item) {
        const auto reader = BuiltinFormats().Open(path, "", {Picture(channels, height, width, type)}).value();
        ASSERT_TRUE(*reader->ReadNext(item, {}));
      };
      read(DType::kUint8, &bytes);
      read(DType::kFloat32, &floats);
      for (size_t at = 0; at < expected.size(); ++at) {
        const size_t area = expected.size() / static_cast<size_t>(channels);
        const size_t pixel = at % area;
        const uint8_t wanted = expected[pixel * static_cast<size_t>(channels) + at / area];
        ASSERT_EQ(bytes[0].values.data<uint8_t>()[at], wanted) << i << ' ' << at;
        ASSERT_EQ(floats[0].values.data<float>()[at], wanted) << i << ' ' << at;
      }
    }
  }
}

TEST_F(JpegFiles, AProgressiveOrSubsampledPictureThatIsCutShortAnywhereIsAnError) {
  for (const JpegKind& kind :
       {JpegKind{.subsampled = true}, JpegKind{.progressive = true}, JpegKind{.restart_rows = 1}}) {
    const std::string whole = JpegPicture(24, 40, 3, Slopes, kind);
    EXPECT_EQ(Records(Write("a.jpg", whole), {Picture(3, 40, 24)}).size(), 1U);
    // Every byte of the end, and one of eleven before.
    for (size_t size = 1; size < whole.size(); size += size + 60 < whole.size() ? 11 : 1) {
      const std::vector<std::string> records = Records(Write("a.jpg", whole.substr(0, size)), {Picture(3, 40, 24)});
      ASSERT_EQ(records.size(), 1U) << size;
      ASSERT_THAT(records[0], StartsWith("bad data: a.jpg: ")) << size;
    }
  }
}

TEST_F(JpegFiles, GreyAndColourAreWhatTheOutputAsksFor) {
  const std::string grey = Write("grey.jpg", Grey(77, 1, 1));
  EXPECT_THAT(Records(grey, {Picture(3, 1, 1)}), ElementsAre("77 77 77"));
  const std::string colour =
      Write("colour.jpeg", JpegPicture(1, 1, 3, [](int, int, int c) { return c == 1 ? 255 : 0; }));
  const std::vector<std::string> light = Records(colour, {Picture(1, 1, 1)});
  ASSERT_EQ(light.size(), 1U);
  EXPECT_NEAR(std::stod(light[0]), 0.587 * 255, 2);
  EXPECT_THAT(Records(Write("inks.jpg", JpegPicture(1, 1, 4, [](int, int, int) { return 9; })), {Picture(3, 1, 1)}),
              ElementsAre("bad data: inks.jpg: the JPEG picture is damaged or not whole: Unsupported color conversion "
                          "request"));
}

TEST_F(JpegFiles, FoldersOfClassesLabelTheirPictures) {
  Write("named/dog/b.jpg", Grey(40));
  Write("named/dog/a.JPG", Grey(30));
  Write("named/cat/z.jpg", Grey(20));
  Write("named/.cache/x", "no picture");
  Write("named/cat/.DS_Store", "no picture");
  std::filesystem::create_directories(folder() + "/named/eel");
  Write("named/fox/f.jpg", Grey(60));
  EXPECT_THAT(Labelled(InFolder("named")), ElementsAre("20 | 0", "30 | 1", "40 | 1", "60 | 3"));
  EXPECT_THAT(Labelled(InFolder("named/")), ElementsAre("20 | 0", "30 | 1", "40 | 1", "60 | 3"));
  for (const int digit : {10, 2, 7}) Write("numbers/" + std::to_string(digit) + "/a.jpg", Grey(digit));
  EXPECT_THAT(Labelled(InFolder("numbers")), ElementsAre("10 | 10", "2 | 2", "7 | 7"));
  EXPECT_THAT(Labelled(InFolder("numbers/7")), ElementsAre("7 | 7"));
  EXPECT_THAT(Labelled(InFolder("numbers/7/")), ElementsAre("7 | 7"));
  EXPECT_THAT(Labelled(folder() + "/numbers/10/a.jpg"), ElementsAre("10 | 10"));
}

TEST_F(JpegFiles, APictureNamedWithoutItsFolderThrewForItsLabel) {
  Write("numbers/7/a.jpg", Grey(7));
  std::filesystem::create_directory(folder() + "/gone");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder() + "/numbers/7");
  EXPECT_THAT(Labelled("a.jpg"), ElementsAre("7 | 7"));
  std::filesystem::current_path(folder() + "/numbers");
  Write("numbers/a.jpg", Grey(7));
  EXPECT_THAT(Labelled("a.jpg"), ElementsAre(StartsWith("invalid configuration: the pictures in \".\" have no label")));
  // A working directory without a name: what is relative to it can be read and not be told.
  std::filesystem::current_path(folder() + "/gone");
  std::filesystem::remove(folder() + "/gone");
  EXPECT_THAT(
      Labelled("jpeg:../numbers/7"),
      ElementsAre(
          "input/output error: the pictures in \"../numbers/7\" have no label, as the path of their folder cannot "
          "be told: No such file or directory; give the whole path"));
  std::filesystem::current_path(before);
}

TEST_F(JpegFiles, LabelsNeedNotBe) {
  Write("pictures/b.jpg", Grey(2, 1, 1));
  Write("pictures/a.jpg", Grey(1, 1, 1));
  EXPECT_THAT(Records(InFolder("pictures"), {Picture(1, 1, 1)}), ElementsAre("1", "2"));
  const std::string why =
      "\" have no label: put them into folders of their classes, or name their folder by the number of its class, or "
      "leave the output of labels away; the folder's name is \"pictures\"";
  EXPECT_THAT(Labelled(InFolder("pictures")), ElementsAre("invalid configuration: the pictures in \"pictures" + why));
  EXPECT_THAT(Labelled(folder() + "/pictures/a.jpg"),
              ElementsAre("invalid configuration: the pictures in \"pictures" + why));
}

TEST_F(JpegFiles, APictureOfAnotherSizeIsNamedWithBothSizes) {
  Write("0/a.jpg", Grey(1));
  Write("0/b.jpg", Grey(2, 2, 4));
  EXPECT_THAT(Labelled(InFolder("0")),
              ElementsAre("1 | 0",
                          "bad data: 0/b.jpg: the picture is 4 high and 2 wide; the output takes float32 [-1, "
                          "1, 2, 4]: scale the pictures before"));
}

TEST_F(JpegFiles, AFileThatIsNoPictureIsNamed) {
  Write("0/a.jpg", Grey(1));
  Write("0/notes.txt", "where they are from");
  EXPECT_THAT(Labelled(InFolder("0")),
              ElementsAre("1 | 0", "bad data: 0/notes.txt: no JPEG picture: Not a JPEG file: starts with 0x77 0x68"));
  Write("0/notes.txt", "");
  EXPECT_THAT(Labelled(InFolder("0")),
              ElementsAre("1 | 0", "bad data: 0/notes.txt: no JPEG picture: Empty input file"));
}

TEST_F(JpegFiles, APackedPictureIsToldToBePackedNotToBeNoPicture) {
  for (const std::string magic : {"\x1f\x8b\x08", "\x28\xb5\x2f\xfd"}) {
    EXPECT_THAT(Labelled(Write("5/a.jpg.gz", magic + "whatever is in it")),
                ElementsAre("bad data: 5/a.jpg.gz: the file is packed, and pictures are read as they are: unpack it"));
  }
}

TEST_F(JpegFiles, APictureThatIsCutShortAnywhereIsAnErrorWithItsName) {
  const std::string whole = JpegPicture(16, 16, 3, Slopes);
  const TensorSpec spec = Picture(3, 16, 16);
  EXPECT_EQ(Records(Write("a.jpg", whole), {spec}).size(), 1U);
  for (size_t size = 1; size < whole.size(); ++size) {
    const std::vector<std::string> records = Records(Write("a.jpg", whole.substr(0, size)), {spec});
    ASSERT_EQ(records.size(), 1U) << size;
    ASSERT_THAT(records[0], StartsWith("bad data: a.jpg: ")) << size;
  }
  EXPECT_THAT(Records(Write("a.jpg", whole.substr(0, whole.size() - 1)), {spec}),
              ElementsAre("bad data: a.jpg: the JPEG picture is damaged or not whole: Premature end of JPEG file"));
}

TEST_F(JpegFiles, ReadingGoesOnAfterADamagedPicture) {
  const std::string whole = JpegPicture(16, 16, 3, Slopes);
  Write("a.jpg", whole.substr(0, whole.size() / 2));
  const auto reader = BuiltinFormats().Open(folder() + "/a.jpg", "", {Picture(3, 16, 16)}).value();
  std::vector<LoDTensor> item;
  EXPECT_FALSE(reader->ReadNext(&item, {}).ok());
  Write("a.jpg", whole);
  ASSERT_TRUE(reader->ReInit().ok());
  EXPECT_TRUE(*reader->ReadNext(&item, {}));
}

TEST_F(JpegFiles, BytesBetweenThePartsOfAPictureAreLetPass) {
  std::string picture = Grey(5, 1, 1);
  picture.insert(picture.size() - 2, std::string(3, '\0'));
  EXPECT_THAT(Records(Write("a.jpg", picture), {Picture(1, 1, 1)}), ElementsAre("5"));
}

TEST_F(JpegFiles, FoldersThatAreNeitherKindAreRefused) {
  Write("mixed/a.jpg", Grey(1));
  Write("mixed/cat/b.jpg", Grey(1));
  EXPECT_THAT(
      Labelled(InFolder("mixed")),
      ElementsAre("invalid configuration: \"mixed\" holds pictures (\"a.jpg\") beside folders (\"cat\"): all of "
                  "them belong into folders of their classes, or none"));
  Write("deep/cat/tabby/b.jpg", Grey(1));
  EXPECT_THAT(Labelled(InFolder("deep")),
              ElementsAre("invalid configuration: \"deep/cat\" is the folder of a class and holds another folder, "
                          "\"tabby\": pictures lie in the folder of their class itself"));
  std::filesystem::create_directories(folder() + "/empty/cat");
  EXPECT_THAT(Labelled(InFolder("empty")), ElementsAre("not found: there are no pictures in the folder \"empty\""));
  EXPECT_THAT(Labelled(InFolder("nowhere")), ElementsAre("not found: no such file or folder: \"nowhere\""));
  EXPECT_THAT(Labelled("jpeg:/dev/zero"),
              ElementsAre("input/output error: cannot read \"/dev/zero\": it is neither a file nor a folder"));
  std::filesystem::create_directories(folder() + "/links");
  std::filesystem::create_symlink("/dev/zero", folder() + "/links/a.jpg");
  EXPECT_THAT(Labelled(InFolder("links")),
              ElementsAre("invalid configuration: links/a.jpg: neither a file nor a folder; pictures are files"));
}

TEST_F(JpegFiles, OutputsAreAPictureAndItsLabel) {
  const std::string path = Write("0/a.jpg", Grey(1));
  const std::string takes =
      "invalid configuration: jpeg file or folder \"0/a.jpg\": the outputs are a picture, float32 or uint8 [-1, 1 or "
      "3, "
      "height, width], and its label, int64 [-1, 1], or the picture alone; they are ";
  EXPECT_THAT(Records(path, {{DType::kFloat32, {-1, 8}, 0}}), ElementsAre(takes + "float32 [-1, 8]"));
  EXPECT_THAT(Records(path, {Picture(2, 2, 4)}), ElementsAre(takes + "float32 [-1, 2, 2, 4]"));
  EXPECT_THAT(Records(path, {Picture(1, -1, 4)}), ElementsAre(takes + "float32 [-1, 1, -1, 4]"));
  EXPECT_THAT(Records(path, {Picture(1, 2, 4, DType::kInt64)}), ElementsAre(takes + "int64 [-1, 1, 2, 4]"));
  EXPECT_THAT(Records(path, {Picture(1, 2, 4), {DType::kFloat32, {-1, 1}, 0}}),
              ElementsAre(takes + "float32 [-1, 1, 2, 4], float32 [-1, 1]"));
}

TEST_F(JpegFiles, FoldersOfManyClassesAreReadByManyThreads) {
  std::vector<std::string> folders;
  std::vector<std::string> expected;
  for (int label = 0; label < 6; ++label) {
    folders.push_back(InFolder("all/" + std::to_string(label)));
    for (int i = 0; i < 5; ++i) {
      Write("all/" + std::to_string(label) + "/" + std::to_string(i) + ".jpg", Grey(10 * label + i, 1, 1));
      expected.push_back(std::to_string(10 * label + i) + " | " + std::to_string(label));
    }
  }
  const auto reader =
      MultipleReader::Create({folders, "", 3, 4}, BuiltinFormats(), {Picture(1, 1, 1), kPictureLabel}).value();
  std::vector<std::string> read;
  std::vector<LoDTensor> item;
  while (*reader->ReadNext(&item, {})) read.push_back(ItemText(item));
  EXPECT_THAT(read, testing::UnorderedElementsAreArray(expected));
}

}  // namespace
}  // namespace millrace
