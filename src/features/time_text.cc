#include "features/time_text.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "core/numbers.h"

namespace millrace {
namespace {

using std::chrono::days;
using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr int64_t kSecondsOfDay = 24 * 60 * 60;

/// Takes `count` decimal digits off the front of `text`.
bool TakeDigits(std::string_view* text, size_t count, int* number) {
  if (text->size() < count) return false;
  *number = 0;
  for (size_t i = 0; i < count; ++i) {
    const char c = (*text)[i];
    if (c < '0' || c > '9') return false;
    *number = *number * 10 + (c - '0');
  }
  text->remove_prefix(count);
  return true;
}

bool Take(std::string_view* text, char c) {
  if (text->empty() || text->front() != c) return false;
  text->remove_prefix(1);
  return true;
}

/// Z, +01, +01:00, +0100 or empty.
bool ReadZone(std::string_view text, std::optional<int>* offset_minutes) {
  *offset_minutes = std::nullopt;
  if (text.empty()) return true;
  *offset_minutes = 0;
  if (text == "Z" || text == "z") return true;
  const int sign = text.front() == '-' ? -1 : 1;
  if (!Take(&text, '+') && !Take(&text, '-')) return false;
  int hours = 0;
  int minutes = 0;
  if (!TakeDigits(&text, 2, &hours) || hours > 23) return false;
  if (!text.empty()) {
    Take(&text, ':');
    if (!TakeDigits(&text, 2, &minutes) || minutes > 59 || !text.empty()) return false;
  }
  *offset_minutes = sign * (hours * 60 + minutes);
  return true;
}

bool ReadEpoch(std::string_view text, const TimePart& how, int64_t* seconds) {
  double number = 0;
  if (!ReadNumber(text, &number)) return false;
  if (how.format == DatePartStep::EPOCH_MILLISECONDS) number /= 1000;
  // About 8,000 years; a larger number has another unit. Also rejects NaN.
  constexpr double kMost = 2.5e11;
  if (!(std::abs(number) <= kMost)) return false;
  *seconds = static_cast<int64_t>(std::floor(number)) + int64_t{60} * how.utc_offset_minutes;
  return true;
}

int64_t DayOf(int64_t seconds) {
  return seconds >= 0 ? seconds / kSecondsOfDay : -((kSecondsOfDay - 1 - seconds) / kSecondsOfDay);
}

int64_t PartOf(int64_t seconds, DatePartStep::Part part) {
  const int64_t day = DayOf(seconds);
  const int64_t in_day = seconds - day * kSecondsOfDay;
  const int64_t hour = in_day / 3600;
  const sys_days date{days(day)};
  const int64_t weekday = std::chrono::weekday(date).iso_encoding();
  const year_month_day ymd(date);
  switch (part) {
    case DatePartStep::HOUR: return hour;
    case DatePartStep::WEEKDAY: return weekday;
    case DatePartStep::DAY: return static_cast<unsigned>(ymd.day());
    case DatePartStep::MONTH: return static_cast<unsigned>(ymd.month());
    case DatePartStep::YEAR: return static_cast<int>(ymd.year());
    case DatePartStep::MINUTE: return in_day / 60 % 60;
    case DatePartStep::DAY_OF_YEAR: return (date - sys_days(ymd.year() / std::chrono::January / 1)).count() + 1;
    case DatePartStep::HOUR_OF_WEEK: return (weekday - 1) * 24 + hour;
    case DatePartStep::DAYS: return day;
  }
  return 0;
}

}  // namespace

bool ReadIsoTime(std::string_view text, IsoTime* time) {
  int year = 0;
  int month = 0;
  int day = 0;
  if (!TakeDigits(&text, 4, &year) || !Take(&text, '-') || !TakeDigits(&text, 2, &month) || !Take(&text, '-') ||
      !TakeDigits(&text, 2, &day)) {
    return false;
  }
  const year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                            std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return false;
  time->seconds = sys_days(date).time_since_epoch().count() * kSecondsOfDay;
  time->has_clock = !text.empty();
  if (text.empty()) return true;
  int hour = 0;
  int minute = 0;
  int second = 0;
  if (!Take(&text, 'T') && !Take(&text, ' ')) return false;
  if (!TakeDigits(&text, 2, &hour) || !Take(&text, ':') || !TakeDigits(&text, 2, &minute)) return false;
  if (Take(&text, ':')) {
    if (!TakeDigits(&text, 2, &second)) return false;
    if (Take(&text, '.')) {
      const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
      if (digits == 0) return false;
      time->fraction = text.substr(0, digits);
      text.remove_prefix(digits);
    }
  }
  // A leap second is the last one of its minute.
  if (hour > 23 || minute > 59 || second > 60 || !ReadZone(text, &time->offset_minutes)) return false;
  time->is_leap_second = second == 60;
  time->seconds += (hour * 60 + minute) * 60 + (second == 60 ? 59 : second);
  return true;
}

std::string ZoneText(std::optional<int> offset_minutes) {
  if (!offset_minutes.has_value()) return "";
  if (*offset_minutes == 0) return "UTC";
  const int size = std::abs(*offset_minutes);
  const auto two_digits = [](int number) { return (number < 10 ? "0" : "") + std::to_string(number); };
  return (*offset_minutes < 0 ? "-" : "+") + two_digits(size / 60) + ":" + two_digits(size % 60);
}

CivilTime CivilTimeOf(int64_t seconds) {
  const int64_t day = DayOf(seconds);
  const year_month_day date{sys_days(days(day))};
  return {static_cast<int>(date.year()), static_cast<int>(static_cast<unsigned>(date.month())),
          static_cast<int>(static_cast<unsigned>(date.day())), static_cast<int>(seconds - day * kSecondsOfDay)};
}

bool ReadTime(std::string_view text, const TimePart& how, int64_t* seconds) {
  if (how.format != DatePartStep::ISO_8601) return ReadEpoch(text, how, seconds);
  IsoTime time;
  const bool is_read = ReadIsoTime(text, &time);
  *seconds = time.seconds;
  return is_read;
}

bool ReadTimePart(std::string_view text, const TimePart& how, int64_t* value) {
  int64_t seconds = 0;
  const bool is_read = ReadTime(text, how, &seconds);
  if (is_read) *value = PartOf(seconds, how.part);
  return is_read;
}

std::string_view ExpectedTime(DatePartStep::Format format) {
  switch (format) {
    case DatePartStep::ISO_8601: return "a time of ISO 8601, as 2026-11-26 or 2026-11-26T18:30:00Z";
    case DatePartStep::EPOCH_SECONDS: return "seconds since 1970";
    case DatePartStep::EPOCH_MILLISECONDS: return "milliseconds since 1970";
  }
  return "a time";
}

std::string ExpectedTimeFor(std::string_view found, DatePartStep::Format format) {
  std::string expected(ExpectedTime(format));
  if (IsoTime time; ReadIsoTime(found, &time)) return expected + " (format: ISO_8601 reads what was found)";
  // Times from 1973 to 2286.
  const size_t digits = std::min(found.find_first_not_of("0123456789"), found.size());
  const bool is_number = digits == found.size() || found.substr(digits) == ".0";
  const bool is_seconds = digits == 9 || digits == 10;
  if (!is_number || format == (is_seconds ? DatePartStep::EPOCH_SECONDS : DatePartStep::EPOCH_MILLISECONDS) ||
      (!is_seconds && digits != 12 && digits != 13)) {
    return expected;
  }
  return expected + (is_seconds ? " (format: EPOCH_SECONDS reads seconds since 1970)"
                                : " (format: EPOCH_MILLISECONDS reads milliseconds since 1970)");
}

}  // namespace millrace
