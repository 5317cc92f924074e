#pragma once

#include <cstdint>
#include <string>

namespace millrace {

class SlotBatch;

/// Returns a batch as one line of JSON, without a newline:
///
///     {"batch":0,"rows":2,"slots":{"label":{"shape":[2,1],"values":[0,1]},
///                                  "C1":{"shape":[3,1],"lod":[0,1,3],"values":[7,5,9]}}}
///
/// Shapes are those of the tensors that a program sees; dense slots have no "lod". Ids are unsigned, floats have the
/// shortest form that reads back to the same bits; NaN and infinite ones are NaN, Infinity and -Infinity, which JSON
/// proper lacks but most readers know. Names of examples follow as "ins_ids" when the feed keeps them, and their
/// texts as "contents". Any thread.
std::string BatchAsJson(const SlotBatch& batch, int64_t number);

/// Returns a batch for people: a heading and a line for each row with its slots, long lists cut after `max_values`.
std::string BatchAsTable(const SlotBatch& batch, int64_t number, int max_values);

}  // namespace millrace
