#pragma once

#include <cstdint>
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
