#include "clickgen/row_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/numbers.h"

namespace millrace {
namespace {

constexpr size_t kMostDigits = 20;
constexpr size_t kFeatureChars = 7;

constexpr uint64_t kFourDigits = 10000;

/// "0000" to "9999", concatenated, with padding for the size of one number write.
constexpr std::array<char, 4 * kFourDigits + 4> kDigits = [] {
  std::array<char, 4 * kFourDigits + 4> digits{};
  for (uint64_t number = 0; number < kFourDigits; ++number) {
    uint64_t rest = number;
    for (size_t i = 4; i-- > 0; rest /= 10) digits[4 * number + i] = static_cast<char>('0' + rest % 10);
  }
  return digits;
}();

/// Without a branch on the number of digits, which is unpredictable. Also writes up to three bytes after the end.
char* WriteUpToFour(uint64_t number, char* out) {
  const size_t zeros = size_t{number < 1000} + size_t{number < 100} + size_t{number < 10};
  std::memcpy(out, kDigits.data() + 4 * number + zeros, 4);
  return out + 4 - zeros;
}

char* WriteNumber(uint64_t number, char* out) {
  if (number < kFourDigits) return WriteUpToFour(number, out);
  if (number >= kFourDigits * kFourDigits) return std::to_chars(out, out + kMostDigits, number).ptr;
  out = WriteUpToFour(number / kFourDigits, out);
  std::memcpy(out, kDigits.data() + 4 * (number % kFourDigits), 4);
  return out + 4;
}

}  // namespace

RowText::RowText(ClickLogOptions::Format format) : format_(format) {
  for (int count = 0; count < 10000; ++count) {
    const std::string text = " " + FixedNumber(std::log1p(count), 4);
    std::copy_n(text.begin(), kFeatureChars, features_.emplace_back().begin());
  }
}

void RowText::Append(const ClickRow& row, std::string* out) const {
  const size_t at = out->size();
  out->resize(at + (4 + row.dense.size() + row.ends.size() + row.ids.size()) * (1 + kMostDigits));
  char* const begin = out->data() + at;
  char* const end = format_ == ClickLogOptions::Format::kMultiSlot ? WriteMultiSlot(row, begin) : WriteRaw(row, begin);
  *end = '\n';
  out->resize(static_cast<size_t>(end + 1 - out->data()));
}

char* RowText::WriteMultiSlot(const ClickRow& row, char* out) const {
  out = std::copy_n(row.clicked ? "1 1" : "1 0", 3, out);
  if (!row.dense.empty()) {
    *out++ = ' ';
    out = WriteNumber(row.dense.size(), out);
  }
  for (int count : row.dense) {
    const std::array<char, 8>& feature = features_[static_cast<size_t>(count < 0 ? 0 : count)];
    std::memcpy(out, feature.data(), feature.size());
    out += kFeatureChars;
  }
  uint32_t begin = 0;
  for (uint32_t end : row.ends) {
    *out++ = ' ';
    if (begin == end) {
      out = std::copy_n("1 0", 3, out);  // a slot must not be empty; 0 is not an id
      continue;
    }
    out = WriteNumber(end - begin, out);
    for (; begin < end; ++begin) {
      *out++ = ' ';
      out = WriteNumber(row.ids[begin], out);
    }
  }
  return out;
}

char* RowText::WriteRaw(const ClickRow& row, char* out) const {
  *out++ = row.clicked ? '1' : '0';
  for (int count : row.dense) {
    *out++ = '\t';
    if (count >= 0) out = WriteNumber(static_cast<uint64_t>(count), out);
  }
  uint32_t begin = 0;
  for (uint32_t end : row.ends) {
    *out++ = '\t';
    for (uint32_t i = begin; i < end; ++i) {
      if (i > begin) *out++ = ',';
      out = WriteNumber(row.ids[i], out);
    }
    begin = end;
  }
  return out;
}

std::string SlotsAsPrototxt(const ClickLogOptions& options) {
  std::string text =
      "multi_slot_desc {\n  slots { name: \"label\" type: \"uint64\" is_used: true is_dense: true shape: -1 shape: 1 "
      "}\n";
  if (options.dense > 0) {
    text += "  slots { name: \"dense\" type: \"float\" is_used: true is_dense: true shape: -1 shape: " +
            std::to_string(options.dense) + " }\n";
  }
  const std::string last = options.slots > 1 ? "..C" + std::to_string(options.slots) : "";
  return text + "  slots { name: \"C1" + last + "\" type: \"uint64\" is_used: true }\n}\n";
}

}  // namespace millrace
