#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "data_feed.pb.h"

namespace millrace {

/// How times are read, and which part of them is a feature's number (DatePartStep). Plain values.
struct TimePart {
  DatePartStep::Part part = DatePartStep::HOUR;
  DatePartStep::Format format = DatePartStep::ISO_8601;
  int utc_offset_minutes = 0;
};

/// A time of ISO 8601 in its parts.
struct IsoTime {
  int64_t seconds = 0;  ///< since 1970-01-01 00:00, as the clock shows it; of a leap second those of the one before
  bool has_clock = false;
  bool is_leap_second = false;
  std::string_view fraction = {};          ///< digits behind the seconds' point
  std::optional<int> offset_minutes = {};  ///< of its zone; nullopt: it has none
};
/// Reads all of `text`: "2026-11-26", "2026-11-26T18:30", "2026-11-26 18:30:00.5+01:00".
bool ReadIsoTime(std::string_view text, IsoTime* time);

/// "UTC" of an offset of 0, "+09:00", or "" of none.
std::string ZoneText(std::optional<int> offset_minutes);

/// What calendars and clocks show so many seconds after 1970-01-01 00:00.
struct CivilTime {
  int year = 0;
  int month = 0;
  int day = 0;
  int second_of_day = 0;
};
CivilTime CivilTimeOf(int64_t seconds);

/// The seconds since 1970-01-01 00:00 on the clock's face that all of `text` says, as ReadTimePart reads it.
bool ReadTime(std::string_view text, const TimePart& how, int64_t* seconds);

/// Takes the part of the time that all of `text` says; false where it says none. kNumberPadding bytes behind it may be
/// read.
bool ReadTimePart(std::string_view text, const TimePart& how, int64_t* value);

/// What a text of a format looks like, for messages.
std::string_view ExpectedTime(DatePartStep::Format format);
/// The same, with the format that reads `found`, where it seems to be a time of another one.
std::string ExpectedTimeFor(std::string_view found, DatePartStep::Format format);

}  // namespace millrace
