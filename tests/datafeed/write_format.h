#pragma once

#include <string>
#include <vector>

namespace millrace {

/// Writes rows as a file of a format: "csv", "tfrecord", "ofrecord" or "recordio".
///
/// A row is "a=3,4 b=0.5 c=": the values of each slot by name, floats with a point (or nan, inf), others ids. A slot
/// without values is a feature without a list, or an empty list of ids. For RecordIO alone, "a=3,4/5" are the lists of
/// two instances. CSV gets a header of the names of the first row.
void WriteFormat(const std::string& path, const std::string& format, const std::vector<std::string>& rows);

}  // namespace millrace
