#include "core/decompress.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <string>
#include <vector>

namespace millrace {
namespace {

/// Delivers a string in pieces of at most `piece` bytes.
class StringSource final : public ByteSource {
 public:
  StringSource(std::string bytes, size_t piece) : bytes_(std::move(bytes)), piece_(piece) {}
  Result<size_t> Read(std::span<char> out, const std::stop_token&) override {
    const size_t n = std::min({out.size(), piece_, bytes_.size() - at_});
    bytes_.copy(out.data(), n, at_);
    at_ += n;
    return n;
  }
  bool WaitReadable(std::chrono::milliseconds) override { return at_ == bytes_.size(); }

 private:
  std::string bytes_;
  size_t piece_;
  size_t at_ = 0;
};

std::string Gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string Zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::string Text(size_t lines) {
  std::string text;
  for (size_t i = 0; i < lines; ++i) text += "1 " + std::to_string(i * 2654435761U % 1000003) + "\n";
  return text;
}

Result<std::string> Unpack(const std::string& packed, size_t piece, size_t out_size) {
  const auto source = Decompress(std::make_unique<StringSource>(packed, piece), "part-0");
  std::string text;
  std::vector<char> out(out_size);
  for (;;) {
    MR_ASSIGN(const size_t n, source->Read(out, {}));
    if (n == 0) return text;
    text.append(out.data(), n);
  }
}

class DecompressPieces : public testing::TestWithParam<std::pair<size_t, size_t>> {};

TEST_P(DecompressPieces, UnpacksWhateverThePieces) {
  const auto [piece, out] = GetParam();
  const std::string text = Text(3000);
  EXPECT_EQ(Unpack(Gzip(text), piece, out).value(), text);
  EXPECT_EQ(Unpack(Zstd(text), piece, out).value(), text);
  EXPECT_EQ(Unpack(text, piece, out).value(), text);
  EXPECT_EQ(Unpack(Gzip(text) + Gzip("") + Gzip("tail\n"), piece, out).value(), text + "tail\n");
  EXPECT_EQ(Unpack(Zstd(text) + Zstd("tail\n"), piece, out).value(), text + "tail\n");
  EXPECT_EQ(Unpack(Gzip(text) + std::string(512, '\0'), piece, out).value(), text);
}

INSTANTIATE_TEST_SUITE_P(Sizes, DecompressPieces,
                         testing::Values(std::pair(1, 1000), std::pair(7, 1), std::pair(4096, 4096),
                                         std::pair(1 << 20, 1 << 20)));

TEST(Decompress, ShortFilesAreThemselves) {
  EXPECT_EQ(Unpack("", 8, 8).value(), "");
  EXPECT_EQ(Unpack("a", 8, 8).value(), "a");
  EXPECT_EQ(Unpack("\x28\xb5\x2f", 1, 8).value(), "\x28\xb5\x2f");
}

TEST(Decompress, EveryTruncationIsAnError) {
  const std::string gz = Gzip(Text(20));
  for (size_t size = 2; size < gz.size(); ++size) {
    EXPECT_EQ(Unpack(gz.substr(0, size), 64, 64).status().message(), "part-0: gzip: unexpected end of file") << size;
  }
  const std::string zst = Zstd(Text(20));
  for (size_t size = 4; size < zst.size(); ++size) {
    EXPECT_EQ(Unpack(zst.substr(0, size), 64, 64).status().message(), "part-0: zstd: unexpected end of file") << size;
  }
}

TEST(Decompress, AFileThatIsCutWithinItsFirstBytesIsAnError) {
  const auto error = [](const std::string& bytes, const std::string& name) {
    std::vector<char> out(64);
    return Decompress(std::make_unique<StringSource>(bytes, bytes.size()), name)->Read(out, {}).status().message();
  };
  EXPECT_EQ(error(Gzip(Text(20)).substr(0, 1), "a.csv.gz"), "a.csv.gz: gzip: unexpected end of file");
  for (size_t size = 1; size < 4; ++size) {
    EXPECT_EQ(error(Zstd(Text(20)).substr(0, size), "a.zst"), "a.zst: zstd: unexpected end of file") << size;
  }
  for (const char* name : {"a.csv.gz", "a.zst"}) {
    EXPECT_EQ(
        error("", name),
        std::string(name) + ": the file has no byte, and what is packed has some, however empty: it was cut short");
  }
  EXPECT_EQ(error("", "a.csv"), "");
  EXPECT_EQ(error("(", "a.gz"), "") << "text by the name of gzip";
}

TEST(Decompress, IsAsSlowAsItsSourceWhenEverythingIsUnpacked) {
  const std::string text = Text(20);
  for (const auto& [first, second] : {std::pair(text, std::string("tail\n")), std::pair(Gzip(text), Gzip("tail\n")),
                                      std::pair(Zstd(text), Zstd("tail\n"))}) {
    const auto source = Decompress(std::make_unique<StringSource>(first + second, first.size()), "part-0");
    std::vector<char> out(1 << 20);
    ASSERT_EQ(source->Read(out, {}).value(), text.size());
    EXPECT_FALSE(source->WaitReadable(std::chrono::milliseconds(0)));
    ASSERT_EQ(source->Read(out, {}).value(), 5U);
    EXPECT_TRUE(source->WaitReadable(std::chrono::milliseconds(0)));
  }
}

TEST(Decompress, DamageIsAnError) {
  std::string gz = Gzip(Text(20));
  gz[gz.size() - 6] = static_cast<char>(gz[gz.size() - 6] ^ 0x55);
  EXPECT_EQ(Unpack(gz, 64, 64).status().message(), "part-0: gzip: invalid data: incorrect data check");
  EXPECT_EQ(Unpack(Gzip("x") + "garbage", 64, 64).status().message(),
            "part-0: gzip: invalid data: incorrect header check");
  std::string zst = Zstd(Text(2000));
  zst[10] = static_cast<char>(zst[10] ^ 0xff);
  EXPECT_EQ(Unpack(zst, 64, 64).status().code(), StatusCode::kBadData);
}

TEST(ForeignUnpackerTest, TextThatBeginsLikeBzip2IsText) {
  EXPECT_EQ(ForeignUnpacker("BZh11AY&SY"), "bzip2 -dc");
  EXPECT_EQ(ForeignUnpacker("BZh9\x17\x72\x45\x38\x50\x90"), "bzip2 -dc");  // a file of nothing
  EXPECT_EQ(ForeignUnpacker("BZh1"), "");
  EXPECT_EQ(ForeignUnpacker("BZh1 0.5 b"), "");
  EXPECT_EQ(ForeignUnpacker("BZh01AY&SY"), "");
}

}  // namespace
}  // namespace millrace
