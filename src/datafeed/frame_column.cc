#include "datafeed/frame_column.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/numbers.h"
#include "features/time_text.h"

namespace millrace {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr size_t kMostDigits = 400;  ///< of a number with sign and point
constexpr int kMostScale = 63;       ///< digits of a decimal on either side of the point
constexpr int kDecimalDigits = 39;   ///< for 128 bits
static_assert(kDecimalDigits <= kMostScale + 1 && kDecimalDigits + kMostScale + 2 <= kMostDigits);

/// Resizes the output buffer.
char* Room(std::string* text) {
  text->resize(kMostDigits);
  return text->data();
}

std::string_view Padded(const char* end, std::string* text) {
  const auto size = static_cast<size_t>(end - text->data());
  text->resize(size + kNumberPadding);
  return std::string_view(*text).substr(0, size);
}

template <class T>
std::string_view TextOfInteger(T value, std::string* text) {
  char* const begin = Room(text);
  return Padded(std::to_chars(begin, begin + kMostDigits, value).ptr, text);
}

/// The number given by the fewest digits that read back as this float.
double OfFewestDigits(float value) {
  std::array<char, 32> digits;
  const char* const end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::scientific).ptr;
  double number = 0;
  std::from_chars(digits.data(), end, number);
  return number;
}

std::string_view TextOfSingle(float value, TextRule rule, std::string* text) {
  if (!std::isfinite(value)) return TextOfFloat(static_cast<double>(value), text);
  // Earlier models use all digits of a large integer.
  const bool has_all_digits = rule == TextRule::kByFormat && std::abs(value) >= 0x1p24F && std::abs(value) < 1e16F;
  return TextOfFloat(has_all_digits ? static_cast<double>(value) : OfFewestDigits(value), text);
}

/// Rounded-down quotient; the divisor is positive.
int64_t Floor(int64_t value, int64_t by) { return value / by - (value % by < 0 ? 1 : 0); }

std::string_view DateText(int64_t day, std::string* text) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(day))};
  char* const begin = Room(text);
  const int written = std::snprintf(begin, kMostDigits, "%04d-%02u-%02u", static_cast<int>(date.year()),
                                    static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  return Padded(begin + written, text);
}

/// Writes "2026-11-26 10:00:00" for seconds since 1970; returns its end in `text`, which has kMostDigits bytes.
char* ClockText(int64_t seconds, std::string* text) {
  const int64_t day = Floor(seconds, 86400);
  const int64_t in_day = seconds - day * 86400;
  const size_t date = DateText(day, text).size();
  char* const begin = Room(text);
  const int written =
      std::snprintf(begin + date, kMostDigits - date, " %02d:%02d:%02d", static_cast<int>(in_day / 3600),
                    static_cast<int>(in_day / 60 % 60), static_cast<int>(in_day % 60));
  return begin + date + written;
}

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 0x1FU;
  const uint32_t fraction = half & 0x3FFU;
  if (exponent == 0)
    return std::copysign(std::ldexp(static_cast<float>(fraction), -24), std::bit_cast<float>(sign | 1U));
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

/// The number given by the fewest digits that read back as this half float.
double OfFewestDigits(uint16_t half) {
  constexpr int kMostDigitsOfHalf = 5;
  const auto of_bits = [](int bits) { return std::abs(static_cast<double>(HalfToFloat(static_cast<uint16_t>(bits)))); };
  const auto value = static_cast<double>(HalfToFloat(half));
  const int size = half & 0x7FFF;
  if (size == 0 || size >= 0x7C00) return value;
  // Rounds to it rather than to its neighbors.
  const double least = (of_bits(size - 1) + of_bits(size)) / 2;
  const double most = size == 0x7BFF ? 65520 : (of_bits(size) + of_bits(size + 1)) / 2;
  for (int digits = 0; digits < kMostDigitsOfHalf; ++digits) {
    std::array<char, 32> text;
    const char* const end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific, digits).ptr;
    double number = 0;
    std::from_chars(text.data(), end, number);
    if (std::abs(number) > least && std::abs(number) < most) return number;
  }
  return value;
}

int64_t UnitOf(char c) {
  switch (c) {
    case 's': return 1;
    case 'm': return 1'000;
    case 'u': return 1'000'000;
    default: return 1'000'000'000;
  }
}

bool IsUtc(std::string_view zone) {
  constexpr std::string_view kNames[] = {"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Z", "+00:00", "+00"};
  return std::find(std::begin(kNames), std::end(kNames), zone) != std::end(kNames);
}

int NumberAfter(std::string_view text, char c) {
  const size_t at = text.find(c);
  int number = 0;
  if (at != std::string_view::npos) std::from_chars(text.data() + at + 1, text.data() + text.size(), number);
  return number;
}

}  // namespace

FrameColumn::FrameColumn(const ArrowSchema& schema, const ArrowArray& array, const std::string& zoned_unit)
    : has_offsets_(!zoned_unit.empty()),
      is_instant_(zoned_unit.ends_with('Z')),
      unit_(zoned_unit.substr(0, zoned_unit.size() - (is_instant_ ? 1 : 0))),
      offset_(array.offset),
      end_(array.offset + array.length) {
  const std::string_view format = schema.format;
  if (array.n_buffers > 0 && array.null_count != 0) validity_ = static_cast<const uint8_t*>(array.buffers[0]);
  if (array.n_buffers > 1) values_ = array.buffers[1];
  if (array.n_buffers > 2) bytes_ = static_cast<const char*>(array.buffers[2]);
  if (!TakeType(format)) return;
  if (schema.dictionary != nullptr) {
    index_ = kind_;
    kind_ = Kind::kNone;
    inner_ = std::make_unique<const FrameColumn>(*schema.dictionary, *array.dictionary, zoned_unit);
    type_name_ = "a dictionary of " + inner_->type_name();
    const bool is_index = index_ == Kind::kSigned || index_ == Kind::kUnsigned;
    if (is_index && *inner_ && !inner_->is_list()) kind_ = Kind::kDictionary;
  } else if (kind_ == Kind::kList) {
    inner_ = std::make_unique<const FrameColumn>(*schema.children[0], *array.children[0], zoned_unit);
    type_name_ = "a list of " + inner_->type_name();
    if (!*inner_ || inner_->is_list()) kind_ = Kind::kNone;
  } else if (kind_ == Kind::kTextView) {
    buffers_ = array.buffers + 2;
    buffer_sizes_ = static_cast<const int64_t*>(array.buffers[array.n_buffers - 1]);
  }
  if (inner_ != nullptr) has_offsets_ = false;
}

bool FrameColumn::TakeType(std::string_view format) {
  struct Plain {
    char format;
    Kind kind;
    int width;
    const char* name;
  };
  static constexpr Plain kPlain[] = {
      {'n', Kind::kNull, 0, "null"},       {'b', Kind::kBool, 0, "bool"},       {'c', Kind::kSigned, 1, "int8"},
      {'C', Kind::kUnsigned, 1, "uint8"},  {'s', Kind::kSigned, 2, "int16"},    {'S', Kind::kUnsigned, 2, "uint16"},
      {'i', Kind::kSigned, 4, "int32"},    {'I', Kind::kUnsigned, 4, "uint32"}, {'l', Kind::kSigned, 8, "int64"},
      {'L', Kind::kUnsigned, 8, "uint64"}, {'e', Kind::kFloat16, 2, "float16"}, {'f', Kind::kFloat32, 4, "float32"},
      {'g', Kind::kFloat64, 8, "float64"}, {'u', Kind::kText, 4, "text"},       {'U', Kind::kText, 8, "text"},
      {'z', Kind::kText, 4, "bytes"},      {'Z', Kind::kText, 8, "bytes"},
  };
  for (const Plain& plain : kPlain) {
    if (format.size() != 1 || format[0] != plain.format) continue;
    kind_ = plain.kind;
    width_ = plain.width;
    type_name_ = plain.name;
    return true;
  }
  type_name_ = "\"" + std::string(format) + "\" of Arrow";
  if (format == "vu" || format == "vz") {
    kind_ = Kind::kTextView;
    type_name_ = "text";
  } else if (format == "tdD") {
    kind_ = Kind::kDays;
    width_ = 4;
    type_name_ = "a date";
  } else if (format == "tdm") {
    kind_ = Kind::kTime;
    per_second_ = 1000;
    type_name_ = "a date";
  } else if (format.starts_with("ts") && format.size() >= 4) {
    kind_ = Kind::kTime;
    per_second_ = UnitOf(format[2]);
    unit_ = format[2] == 's' ? "s" : std::string(1, format[2]) + "s";
    has_zone_ = format.size() > 4;
    type_name_ = "a time";
    // Local times are known where strings are made of them (millrace._frames); hours in UTC would differ.
    if (has_zone_ && !IsUtc(format.substr(4))) {
      kind_ = Kind::kNone;
      type_name_ += " with the zone \"" + std::string(format.substr(4)) + "\"";
    }
  } else if (format.starts_with("d:") && (format.find(',') == format.rfind(',') || format.ends_with(",128"))) {
    scale_ = NumberAfter(format, ',');
    const bool is_written = scale_ >= -kMostScale && scale_ <= kMostScale;
    if (is_written) kind_ = Kind::kDecimal;
    type_name_ = is_written ? "a decimal" : "a decimal of scale " + std::to_string(scale_);
  } else if (format == "+l" || format == "+L") {
    kind_ = Kind::kList;
    width_ = format == "+l" ? 4 : 8;
  } else if (format.starts_with("+w:")) {
    list_size_ = NumberAfter(format, ':');
    if (list_size_ >= 0) kind_ = Kind::kList;
  } else if (format == "+s" || format == "+m") {
    type_name_ = format == "+s" ? "a struct" : "a map";
  } else if (format.starts_with("tD") || format.starts_with("tt")) {
    type_name_ = format.starts_with("tD") ? "a duration" : "a time of day";
  } else if (format.starts_with("d:")) {
    type_name_ = "a decimal of more than 128 bits";
  }
  return kind_ != Kind::kNone;
}

int64_t FrameColumn::SignedAt(int64_t at) const {
  switch (width_) {
    case 1: return At<int8_t>(at);
    case 2: return At<int16_t>(at);
    case 4: return At<int32_t>(at);
    default: return At<int64_t>(at);
  }
}

uint64_t FrameColumn::UnsignedAt(int64_t at) const {
  switch (width_) {
    case 1: return At<uint8_t>(at);
    case 2: return At<uint16_t>(at);
    case 4: return At<uint32_t>(at);
    default: return At<uint64_t>(at);
  }
}

std::string_view FrameColumn::Text(int64_t row, TextRule rule, std::string* scratch) const {
  const std::string_view text = Written(row, rule, scratch);
  return has_offsets_ && rule == TextRule::kByFormat ? FaceOf(text, scratch) : text;
}

std::string_view FrameColumn::FaceOf(std::string_view text, std::string* scratch) const {
  IsoTime time;
  if (!ReadIsoTime(text, &time) || !time.offset_minutes.has_value()) return text;
  std::string face(text.substr(0, sizeof("2026-11-26 10:00:00") - 1));
  face[sizeof("2026-11-26") - 1] = ' ';
  if (is_instant_) face.resize(ClockText(time.seconds - int64_t{60} * *time.offset_minutes, &face) - face.data());
  if (time.fraction.find_first_not_of('0') != std::string_view::npos) {
    std::string digits(time.fraction);
    digits.resize(unit_ == "ms" ? 3 : unit_ == "us" ? 6 : 9, '0');
    face += "." + digits;
  }
  if (is_instant_) face += 'Z';
  *scratch = std::move(face);
  return Padded(scratch->data() + scratch->size(), scratch);
}

std::string_view FrameColumn::Written(int64_t row, TextRule rule, std::string* scratch) const {
  const int64_t at = offset_ + row;
  if (kind_ == Kind::kNull || IsNull(at)) return {};
  switch (kind_) {
    case Kind::kBool: return TextOfInteger((static_cast<const uint8_t*>(values_)[at >> 3] >> (at & 7)) & 1, scratch);
    case Kind::kSigned: return TextOfInteger(SignedAt(at), scratch);
    case Kind::kUnsigned: return TextOfInteger(UnsignedAt(at), scratch);
    case Kind::kFloat16:
      return rule == TextRule::kByFormat ? TextOfSingle(HalfToFloat(At<uint16_t>(at)), rule, scratch)
                                         : TextOfFloat(OfFewestDigits(At<uint16_t>(at)), scratch);
    case Kind::kFloat32: return TextOfSingle(At<float>(at), rule, scratch);
    case Kind::kFloat64: return TextOfFloat(At<double>(at), scratch);
    case Kind::kText: return TextAt(at, scratch);
    case Kind::kTextView: return ViewAt(at, scratch);
    case Kind::kDays: return DateText(At<int32_t>(at), scratch);
    case Kind::kTime: return TimeAt(at, scratch);
    case Kind::kDecimal: return DecimalAt(at, scratch);
    case Kind::kDictionary:
      return inner_->Text(index_ == Kind::kSigned ? SignedAt(at) : static_cast<int64_t>(UnsignedAt(at)), rule, scratch);
    case Kind::kList:
    case Kind::kNull:
    case Kind::kNone: break;
  }
  return {};
}

std::string_view FrameColumn::TextAt(int64_t at, std::string* scratch) const {
  const int64_t begin = OffsetAt(at);
  const std::string_view text(bytes_ + begin, static_cast<size_t>(OffsetAt(at + 1) - begin));
  // After the last strings of a column, no padding is readable.
  if (OffsetAt(at + 1) + static_cast<int64_t>(kNumberPadding) <= OffsetAt(end_)) return text;
  scratch->assign(text);
  return Padded(scratch->data() + text.size(), scratch);
}

std::string_view FrameColumn::ViewAt(int64_t at, std::string* scratch) const {
  struct View {
    int32_t size;
    int32_t start;  ///< the first bytes; short strings have all 12 here
    int32_t buffer;
    int32_t begin;
  };
  View view{};
  const char* const where = static_cast<const char*>(values_) + at * static_cast<int64_t>(sizeof(View));
  std::memcpy(&view, where, sizeof(view));
  const auto size = static_cast<size_t>(view.size);
  const bool is_short = view.size <= 12;
  const std::string_view text =
      is_short ? std::string_view(where + sizeof(view.size), size)
               : std::string_view(static_cast<const char*>(buffers_[view.buffer]) + view.begin, size);
  if (!is_short && view.begin + view.size + static_cast<int64_t>(kNumberPadding) <= buffer_sizes_[view.buffer]) {
    return text;
  }
  scratch->assign(text);
  return Padded(scratch->data() + size, scratch);
}

std::string_view FrameColumn::TimeAt(int64_t at, std::string* scratch) const {
  const auto value = At<int64_t>(at);
  const int64_t seconds = Floor(value, per_second_);
  const int64_t part = value - seconds * per_second_;
  char* end = ClockText(seconds, scratch);
  if (part != 0) {
    const int digits = per_second_ == 1000 ? 3 : per_second_ == 1'000'000 ? 6 : 9;
    const int written = std::snprintf(end, 16, ".%0*lld", digits, static_cast<long long>(part));
    end += written;
  }
  if (has_zone_) *end++ = 'Z';
  return Padded(end, scratch);
}

std::string_view FrameColumn::DecimalAt(int64_t at, std::string* scratch) const {
  Wide size = 0;
  std::memcpy(&size, static_cast<const char*>(values_) + at * static_cast<int64_t>(sizeof(size)), sizeof(size));
  const bool is_negative = (size >> 127) != 0;
  if (is_negative) size = -size;
  char digits[kMostScale + 1];
  int count = 0;
  for (; size != 0 || count <= scale_; size /= 10)
    digits[count++] = static_cast<char>('0' + static_cast<int>(size % 10));
  char* end = Room(scratch);
  if (is_negative) *end++ = '-';
  while (count > 0) {
    if (count == scale_) *end++ = '.';
    *end++ = digits[--count];
  }
  for (int zeros = scale_; zeros < 0; ++zeros) *end++ = '0';
  return Padded(end, scratch);
}

void FrameColumn::List(int64_t row, int64_t* begin, int64_t* end) const {
  const int64_t at = offset_ + row;
  *begin = *end = 0;
  if (IsNull(at)) return;
  *begin = list_size_ >= 0 ? at * list_size_ : OffsetAt(at);
  *end = list_size_ >= 0 ? *begin + list_size_ : OffsetAt(at + 1);
}

}  // namespace millrace
