#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/reader.h"

namespace millrace {

/// What a RowReader does beside delivering rows.
struct RowScript {
  std::optional<int> fails_at = {};    ///< this record is an error
  std::optional<int> misfits_at = {};  ///< this record has another shape
  std::optional<int> waits_at = {};    ///< before this record it waits until it is told to stop
  int values_of_last = 1;              ///< LoD: row i has i % values_of_last + 1 ids
};

/// Delivers `rows` records: output 0 is float32 [1, 2] {first + i, -(first + i)}, output 1 int64 ids with a LoD.
std::unique_ptr<FileReader> MakeRowReader(std::string file, int first, int rows, RowScript script = {});
std::vector<TensorSpec> RowShapes();

/// "3", "3 4 5": the first value of every row of output 0.
std::string FirstValues(const std::vector<LoDTensor>& item);
/// All items up to the end, one text an item, or the failure as the last one.
std::vector<std::string> ReadToEnd(ReaderBase& reader);
/// "3", "4", ... for items of one row.
std::vector<std::string> Numbers(int first, int end);

}  // namespace millrace
