#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datafeed/data_frame.h"

namespace millrace {

/// A frame as Python holds it: millrace._millrace.Frame.
struct PyFrame {
  std::shared_ptr<const DataFrame> frame;
};

/// By column, of those of `wanted` whose first values are times, all of them with a zone or none: the zone of the
/// first, as ZoneText has it, and the unit of the column, "" of texts.
std::map<std::string, std::pair<std::string, std::string>> TimesOf(const DataFrame& frame,
                                                                   const std::vector<std::string>& wanted);

/// By column, of those of `wanted` that have values: the first whole number, "5" of integers and "5.0" of floats in a
/// part of the frame that has no others; or "" where there are other values.
std::map<std::string, std::string> WholeNumbersOf(const DataFrame& frame, const std::vector<std::string>& wanted);

}  // namespace millrace
