#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "batch/slot_schema.h"

namespace millrace {
class DataFeedDesc;
}

namespace millrace::bench {

/// Lines with the shape of the Criteo log: a label, 13 floats, 26 slots of which 4 hold several ids; about 331 bytes a
/// line, or 984 with `wide_ids` (64 bits). Ends in padding that parsers may read.
struct CriteoLog {
  std::string buffer;
  size_t size = 0;
  std::vector<std::string_view> lines;

  std::string_view text() const { return {buffer.data(), size}; }
};
CriteoLog MakeCriteoLog(bool wide_ids, size_t lines);

/// label, dense[13], C1..C26.
DataFeedDesc CriteoDesc();
SlotSchema CriteoSchema();

}  // namespace millrace::bench
