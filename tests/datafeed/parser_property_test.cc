// The fast parser and the packed rows give what the scalar parser gives, on lines that are right, nearly right and
// wrong.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>

#include "core/digits.h"
#include "core/numbers.h"
#include "core/rng.h"
#include "datafeed/batch_text.h"
#include "datafeed/parser_comparison.h"

namespace millrace {
namespace {

std::string RandomId(Rng& rng) {
  switch (rng.Below(12)) {
    case 0: return "0";
    case 1: return std::to_string(0 - rng.Below(5));  // at the upper end
    case 2: return std::to_string(rng.Next());
    case 3: return "1844674407370955161" + std::to_string(rng.Below(12));  // around 2^64
    case 4: return std::string(rng.Below(25), '0') + std::to_string(rng.Below(100));
    case 5: return "+" + std::to_string(rng.Below(100));
    default: return std::to_string(rng.Next() >> rng.Below(64));
  }
}

std::string RandomFloat(Rng& rng) {
  char text[64];
  switch (rng.Below(10)) {
    case 0: return rng.Below(2) == 0 ? "nan" : "-inf";
    case 1:
      return std::string(rng.Below(2) == 0 ? "-" : "") + "1e" + std::to_string(static_cast<int>(rng.Below(120)) - 60);
    case 2:
      std::snprintf(text, sizeof(text), "%a",
                    static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(rng.Next()))));
      return text;
    case 3:
      std::snprintf(text, sizeof(text), "%.*g", static_cast<int>(1 + rng.Below(20)),
                    static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(rng.Next()))));
      return text;
    case 4: return "." + std::to_string(rng.Next() >> rng.Below(64));
    default: {
      const int digits = static_cast<int>(rng.Below(9));
      std::snprintf(
          text, sizeof(text), "%s%llu.%0*llu", rng.Below(3) == 0 ? "-" : "",
          static_cast<unsigned long long>(rng.Next() >> (38 + rng.Below(26))), digits,
          static_cast<unsigned long long>(rng.Below(digits == 0 ? 1 : static_cast<uint64_t>(std::pow(10, digits)))));
      return text;
    }
  }
}

std::string RandomLine(const SlotSchema& schema, const MultiSlotOptions& options, Rng& rng) {
  std::string line;
  const auto separator = [&rng] { return std::string(rng.Below(30) != 0 ? " " : (rng.Below(2) == 0 ? "\t" : "  ")); };
  if (options.parse_ins_id) line += "1 id" + std::to_string(rng.Below(1000)) + separator();
  if (options.parse_content) line += "1 " + std::string(1 + rng.Below(20), 'c') + separator();
  for (const SlotSpec& slot : schema.all()) {
    const uint64_t count = slot.is_dense && rng.Below(40) != 0 ? static_cast<uint64_t>(slot.width)
                                                               : rng.Below(4) + (rng.Below(20) == 0 ? 40 : 0);
    line += std::to_string(count) + separator();
    for (uint64_t i = 0; i < count; ++i) {
      line += (slot.type == SlotType::kUint64 ? RandomId(rng) : RandomFloat(rng)) + separator();
    }
  }
  if (rng.Below(3) != 0) line.pop_back();
  if (rng.Below(10) == 0) line += "\r";
  return line;
}

void Mutate(std::string& line, Rng& rng) {
  constexpr std::string_view bytes = "0123456789 \t\r\v.-+eExXnainf\0\xEF\xBB\xBF";
  for (uint64_t changes = 1 + rng.Below(3); changes > 0 && !line.empty(); --changes) {
    const size_t at = rng.Below(line.size());
    const char byte = bytes[rng.Below(bytes.size())];
    switch (rng.Below(3)) {
      case 0: line[at] = byte; break;
      case 1: line.insert(at, 1, byte); break;
      default: line.erase(at, 1 + rng.Below(3));
    }
  }
}

class ParserProperty : public ::testing::TestWithParam<uint64_t> {};

TEST_P(ParserProperty, AllWaysGiveTheSame) {
  const std::vector<std::string> schemas = {
      "a:uint64 b:float",
      "label:uint64[1] d:float[3] a:uint64 b:uint64 c:uint64",
      "skip:uint64:unused a:uint64 x:float:unused f:float d:uint64[2] y:uint64:unused",
      "f:float g:float a:uint64",
  };
  Rng rng(GetParam());
  for (int trial = 0; trial < 300; ++trial) {
    const SlotSchema schema = SlotSchema::Create(testing::DescOf(schemas[rng.Below(schemas.size())])).value();
    const uint64_t bits = rng.Next();
    MultiSlotOptions options;
    options.parse_ins_id = (bits & 7) == 0;
    options.parse_content = (bits & 0x38) == 0;
    options.allow_empty_slots = (bits & 0x40) == 0;
    options.drop_zeros = (bits & 0x80) == 0;
    options.ignore_trailing = (bits & 0x100) == 0;
    options.reject_non_finite = (bits & 0x600) == 0;
    std::string text;
    for (int line_number = 0; line_number < 20; ++line_number) {
      std::string line = RandomLine(schema, options, rng);
      if (rng.Below(3) == 0) Mutate(line, rng);
      std::erase(line, '\n');
      text += line + "\n";
    }
    if (rng.Below(2) == 0) text.pop_back();
    ASSERT_EQ(testing::CompareParsers(schema, options, text), "")
        << "seed " << GetParam() << ", trial " << trial << ":\n"
        << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ParserProperty, ::testing::Values(1, 2, 3, 20240607));

TEST(SwarDigitsTest, ReadsZeroToEightDigitsBeforeAnyOtherByte) {
  Rng rng(5);
  for (int trial = 0; trial < 20000; ++trial) {
    char text[16];
    uint32_t digits = 0;
    uint64_t value = 0;
    for (char& c : text) c = static_cast<char>(rng.Next());
    const auto wanted = static_cast<uint32_t>(rng.Below(9));
    for (; digits < wanted; ++digits) {
      text[digits] = static_cast<char>('0' + rng.Below(10));
      value = value * 10 + static_cast<uint64_t>(text[digits] - '0');
    }
    // What ends digits is white space, a point, a sign, an 'e': no 0x10. Another character makes it no number.
    if (trial % 2 == 0) text[digits] = " \t\n\r.-+eE"[rng.Below(10)];
    uint32_t end = 0;
    while (end < 8 && (text[end] & 0x10) != 0) ++end;
    if (!std::all_of(text, text + end, [](char c) { return c >= '0' && c <= '9'; })) end = 0;
    if (end != digits) value = 0;
    for (uint32_t i = 0; i < end && end != digits; ++i) value = value * 10 + static_cast<uint64_t>(text[i] - '0');
    const DigitRun run = ReadDigits(text);
    ASSERT_EQ(run.digits, end) << trial;
    ASSERT_EQ(run.value, value) << trial;
  }
}

TEST(SwarDigitsTest, TakesThePointOutOfAShortDecimal) {
  Rng rng(7);
  for (int trial = 0; trial < 20000; ++trial) {
    const auto whole = static_cast<uint32_t>(rng.Below(6));
    const auto part = static_cast<uint32_t>(rng.Below(6));
    std::string text;
    uint32_t mantissa = 0;
    for (uint32_t i = 0; i < whole + part; ++i) {
      if (i == whole) text += '.';
      text += static_cast<char>('0' + rng.Below(10));
      mantissa = mantissa * 10 + static_cast<uint32_t>(text.back() - '0');
    }
    if (part == 0) text += '.';
    const bool fits = whole > 0 && whole + 1 + part < 8;
    const auto bytes = static_cast<uint32_t>(text.size());
    text += " \t\n.-e"[rng.Below(6)];
    text.resize(16, '7');
    DecimalRun run = ReadShortDecimal(text.data());
    ASSERT_EQ(run.bytes, fits ? bytes : 0) << text;
    if (!fits) continue;
    ASSERT_EQ(run.mantissa, mantissa) << text;
    ASSERT_EQ(run.after_point, part) << text;
    text[rng.Below(bytes)] = 'p';
    run = ReadShortDecimal(text.data());
    ASSERT_EQ(run.bytes, 0) << text;
  }
}

TEST(FloatTextTest, ReadsBackEveryFloatThatIsPrinted) {
  Rng rng(6);
  for (int trial = 0; trial < 100000; ++trial) {
    const auto bits = static_cast<uint32_t>(rng.Next());
    const auto value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) continue;
    char text[64];
    std::snprintf(text, sizeof(text), trial % 2 == 0 ? "%.9g" : "%a", static_cast<double>(value));
    float read = 0;
    const FloatText result = ParseFloat(text, &read);
    ASSERT_EQ(result, FloatText::kFinite) << text;
    ASSERT_EQ(std::bit_cast<uint32_t>(read), bits) << text;
  }
}

}  // namespace
}  // namespace millrace
