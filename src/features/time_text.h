#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "data_feed.pb.h"

namespace millrace {

/// How to parse times, and the part used as a feature's number (DatePartStep). Plain values.
struct TimePart {
  DatePartStep::Part part = DatePartStep::HOUR;
  DatePartStep::Format format = DatePartStep::ISO_8601;
  int utc_offset_minutes = 0;
};

/// The parts of an ISO 8601 time.
struct IsoTime {
  int64_t seconds = 0;  ///< since 1970-01-01 00:00 in local time; a leap second has the value of the previous second
  bool has_clock = false;
  bool is_leap_second = false;
  std::string_view fraction = {};          ///< digits after the seconds' point
  std::optional<int> offset_minutes = {};  ///< of its zone; nullopt: none
};
/// Parses all of `text`: "2026-11-26", "2026-11-26T18:30", "2026-11-26 18:30:00.5+01:00".
bool ReadIsoTime(std::string_view text, IsoTime* time);

/// "UTC" for an offset of 0, "+09:00", or "" for none.
std::string ZoneText(std::optional<int> offset_minutes);

/// Calendar and clock values of a number of seconds after 1970-01-01 00:00.
struct CivilTime {
  int year = 0;
  int month = 0;
  int day = 0;
  int second_of_day = 0;
};
CivilTime CivilTimeOf(int64_t seconds);

/// Parses all of `text` as seconds since 1970-01-01 00:00 in local time, like ReadTimePart.
bool ReadTime(std::string_view text, const TimePart& how, int64_t* seconds);

/// Parses all of `text` and returns the selected part in `value`; false if it is not a time. kNumberPadding bytes after
/// it are readable.
bool ReadTimePart(std::string_view text, const TimePart& how, int64_t* value);

/// An example of a format, for messages.
std::string_view ExpectedTime(DatePartStep::Format format);
/// The same, with the format that would read `found` if it looks like a time in another format.
std::string ExpectedTimeFor(std::string_view found, DatePartStep::Format format);

}  // namespace millrace
