#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "datafeed/data_frame.h"

namespace millrace {

/// A frame as Python holds it: millrace._millrace.Frame.
struct PyFrame {
  std::shared_ptr<const DataFrame> frame;
};

/// The first times of a column.
struct FrameTimes {
  std::set<std::string> zones;  ///< as ZoneText has them
  std::string unit;             ///< of the column, "" of texts
};
/// By column, of those of `wanted` whose first values are times, all of them with a zone or none.
std::map<std::string, FrameTimes> TimesOf(const DataFrame& frame, const std::vector<std::string>& wanted);

/// By column, of those of `wanted` that have values: the first whole number, "5" of integers and "5.0" of floats in a
/// part of the frame that has no others; or "" where there are other values.
std::map<std::string, std::string> WholeNumbersOf(const DataFrame& frame, const std::vector<std::string>& wanted);

}  // namespace millrace
