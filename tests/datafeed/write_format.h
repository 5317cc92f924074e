#pragma once

#include <string>
#include <vector>

namespace millrace {

/// What "rows" files are mixed with: the attribute "key" of their loader (tests/plugin/plugins/rows.c).
inline constexpr char kRowsKey = 90;

/// Writes rows as a file of a format: "csv", "libsvm", "tfrecord", "ofrecord", "recordio", "rows" or "words".
///
/// A row is "a=3,4 b=0.5 c=": the values of each slot by name, floats with a point (or nan, inf), others ids. A slot
/// without values is a feature without a list, or an empty list of ids. For RecordIO alone, "a=3,4/5" are the lists of
/// two examples. CSV and "rows" get the
/// names of the first row. For libsvm the slots are a label, indices and their values.
void WriteFormat(const std::string& path, const std::string& format, const std::vector<std::string>& rows);

}  // namespace millrace
