#include "core/line_blocks.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "allocation_counter.h"
#include "slow_source.h"

namespace millrace {
namespace {

constexpr auto kForAMoment = BlockReader::Fill::kForAMoment;

/// Delivers a string in random pieces, then ends or fails.
class PiecesSource final : public ByteSource {
 public:
  PiecesSource(std::string bytes, uint32_t seed, Status end)
      : bytes_(std::move(bytes)), random_(seed), end_(std::move(end)) {}
  Result<size_t> Read(std::span<char> out, const std::stop_token&) override {
    if (at_ == bytes_.size() && !end_.ok()) return end_;
    const size_t n = std::min({out.size(), bytes_.size() - at_, size_t{1} + random_() % 40});
    bytes_.copy(out.data(), n, at_);
    at_ += n;
    return n;
  }
  bool WaitReadable(std::chrono::milliseconds) override { return true; }

 private:
  std::string bytes_;
  std::mt19937 random_;
  Status end_;
  size_t at_ = 0;
};

LineBlockReader Reader(std::string text, size_t block_size, Status end = {}, uint32_t seed = 1) {
  return LineBlockReader(std::make_unique<PiecesSource>(std::move(text), seed, std::move(end)), 5, LineLimit(),
                         block_size);
}

TEST(LineBlocks, BlocksPutTogetherAreTheText) {
  std::mt19937 random(7);
  for (uint32_t round = 0; round < 300; ++round) {
    std::string text;
    const size_t lines = random() % 30;
    for (size_t i = 0; i < lines; ++i) text += std::string(random() % (i % 7 == 6 ? 300 : 20), 'x') + "\n";
    const bool open_end = random() % 3 == 0;
    if (open_end) text += "no newline";
    LineBlockReader reader = Reader(text, 1 + random() % 100, {}, round);
    LineBlock block;
    std::string together;
    uint64_t next_line = 1;
    for (;;) {
      Result<bool> more = reader.Next(block, {}, kForAMoment);
      ASSERT_TRUE(more.ok());
      if (!*more) break;
      ASSERT_EQ(block.file, 5U);
      ASSERT_EQ(block.first_line, next_line);
      ASSERT_EQ(block.offset, together.size());
      ASSERT_FALSE(block.text().empty());
      ASSERT_EQ(block.text().back(), '\n');
      ASSERT_EQ(block.lines, static_cast<uint64_t>(std::count(block.text().begin(), block.text().end(), '\n')));
      for (size_t i = 0; i < LineBlock::kPadding; ++i) ASSERT_EQ(block.data[block.size + i], '\0');
      together += block.text();
      next_line += block.lines;
    }
    ASSERT_EQ(together, open_end ? text + "\n" : text);
    ASSERT_EQ(reader.lines(), next_line - 1);
  }
}

TEST(LineBlocks, AFailureComesAfterTheWholeLines) {
  LineBlockReader reader = Reader("a\nb\nhal", 1000, IoError("gone"));
  LineBlock block;
  ASSERT_TRUE(reader.Next(block, {}, kForAMoment).value());
  EXPECT_EQ(block.text(), "a\nb\n");
  EXPECT_EQ(reader.Next(block, {}, kForAMoment).status().message(), "gone");
  EXPECT_TRUE(reader.ends_in_a_line());
}

TEST(LineBlocks, AFailureAtALineEndLeavesNothingOut) {
  LineBlockReader reader = Reader("a\n", 1000, IoError("gone"));
  LineBlock block;
  ASSERT_TRUE(reader.Next(block, {}, kForAMoment).value());
  EXPECT_EQ(reader.Next(block, {}, kForAMoment).status().message(), "gone");
  EXPECT_FALSE(reader.ends_in_a_line());
}

std::vector<std::string> BlocksOf(std::vector<std::string> pieces, LineBlockReader::Fill fill) {
  LineBlockReader reader(std::make_unique<SlowSource>(std::move(pieces)), 0, LineLimit());
  std::vector<std::string> blocks;
  LineBlock block;
  while (reader.Next(block, {}, fill).value()) blocks.emplace_back(block.text());
  return blocks;
}

TEST(LineBlocks, LinesOfASlowSourceAreNotHeldBackUntilABlockIsFull) {
  const std::vector<std::string> pieces = {"a\n", "b\nc", "", "c\nd\n", "", "e", "", "e", "", "\nf\n", "g\n"};
  EXPECT_EQ(BlocksOf(pieces, LineBlockReader::Fill::kForAMoment),
            (std::vector<std::string>{"a\nb\n", "cc\nd\n", "ee\nf\ng\n"}));
  EXPECT_EQ(BlocksOf(pieces, LineBlockReader::Fill::kUntilFull), (std::vector<std::string>{"a\nb\ncc\nd\nee\nf\ng\n"}));
}

/// What comes of a text whose lines may have `longest` bytes: the lines, or the failure as the last one.
std::vector<std::string> LinesUpTo(size_t longest, const std::string& text, size_t block_size) {
  LineBlockReader reader(std::make_unique<PiecesSource>(text, 1, Status::Ok()), 5, {longest, "Cut it"}, block_size);
  std::vector<std::string> lines;
  LineBlock block;
  for (;;) {
    const Result<bool> more = reader.Next(block, {}, kForAMoment);
    if (!more.ok()) lines.push_back(more.status().ToString());
    if (!more.ok() || !*more) return lines;
    for (std::string_view rest = block.text(); !rest.empty(); rest.remove_prefix(rest.find('\n') + 1)) {
      lines.emplace_back(rest.substr(0, rest.find('\n')));
    }
  }
}

TEST(LineBlocks, ALineIsAsLongAsItsLimitAndNoLonger) {
  const std::string longest(100, 'x');
  const std::string refusal = "bad data: line 3 is longer than 100 bytes; is this text? Cut it";
  for (const size_t block_size : {1, 7, 64, 99, 100}) {
    const std::vector<std::string> whole = {"a", "b", longest};
    EXPECT_EQ(LinesUpTo(100, "a\nb\n" + longest + "\n", block_size), whole) << block_size;
    EXPECT_EQ(LinesUpTo(100, "a\nb\n" + longest, block_size), whole) << block_size;
    const std::vector<std::string> refused = {"a", "b", refusal};
    EXPECT_EQ(LinesUpTo(100, "a\nb\n" + longest + "x\n", block_size), refused) << block_size;
    EXPECT_EQ(LinesUpTo(100, "a\nb\n" + longest + "x", block_size), refused) << block_size;
    EXPECT_EQ(LinesUpTo(100, "a\nb\n" + std::string(5000, 'x'), block_size), refused) << block_size;
  }
}

TEST(LineBlocks, AWarmBlockAllocatesNothing) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i % 100 + 100) + "\n";
  LineBlockReader reader = Reader(text, 1000);
  LineBlock block;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(reader.Next(block, {}, kForAMoment).value());
  const AllocationCounter allocations;
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(reader.Next(block, {}, kForAMoment).value());
  EXPECT_EQ(allocations.count(), 0);
}

TEST(LineBlocks, CountsLines) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::string text(random() % 70000, 'x');
    for (char& c : text) c = random() % 3 == 0 ? '\n' : 'y';
    ASSERT_EQ(CountLines(text), static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n')));
  }
  EXPECT_EQ(CountLines(std::string(64 * 256 * 3, '\n')), 64U * 256 * 3);
}

}  // namespace
}  // namespace millrace
