#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include "core/numbers.h"

namespace millrace {

class SlotBatch;

/// Appends ExactNumber, or NaN, Infinity or -Infinity, which strict JSON lacks but most parsers accept.
template <class Number>
void AppendNumber(Number number, std::string* out) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(number)) {
      *out += std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
      return;
    }
  }
  AppendExact(number, out);
}

/// Returns a batch as one line of JSON, without a newline:
///
///     {"batch":0,"rows":2,"slots":{"label":{"shape":[2,1],"values":[0,1]},
///                                  "C1":{"shape":[3,1],"lod":[0,1,3],"values":[7,5,9]}}}
///
/// Shapes are those of a program's tensors; dense slots have no "lod". Ids are unsigned, numbers as AppendNumber writes
/// them. Names and content strings of examples follow as "ins_ids" and "contents" if the feed provides them. Any
/// thread.
std::string BatchAsJson(const SlotBatch& batch, int64_t number);

/// Returns a batch as readable text: a heading and a line per row with its slots; long lists are cut after
/// `max_values`.
std::string BatchAsTable(const SlotBatch& batch, int64_t number, int max_values);

}  // namespace millrace
