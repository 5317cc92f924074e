#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "datafeed/column_feed.h"
#include "datafeed/data_frame.h"
#include "reader/record_stream.h"

namespace millrace {

// Rows of columnar files are passed as records of their cells' text. A command (python/millrace/columnar_records.py)
// reads the file and writes the records; a feed reads them. Both have the same version and run on one machine, so this
// is not a file format. Numbers are little endian.
//
//   frame:   "MRCELLS1", uint32 bytes of the records, uint32 number of records
//   record:  uint32 bytes of its cells; for each column, in the requested order, a cell
//   cell:    int32 bytes of the text, 0 if missing, and the text; or int32 -1 - n and n values
//   value:   uint32 bytes of the text, and the text
extern const Framing kCellFraming;

/// Appends the rows of `frame` as frames with the columns `columns`. Fails with kBadData for a column that is missing,
/// duplicated or of a type without text form, and for a row of more than 2^31 bytes.
Status AppendCellRecords(const DataFrame& frame, std::span<const std::string> columns, TextRule rule,
                         std::string* bytes);

/// Reads such records; their cells are the columns of the feed's plan. Create does not fail.
struct CellFeed {
  static Result<std::unique_ptr<DataFeed>> Create(const SlotSchema& schema, const DataFeedDesc& desc,
                                                  const ColumnSetup& setup);
};

/// The interpreter that runs our Python: that of SetPythonOfCells, else MILLRACE_PYTHON, else the one next to this
/// program (as in a Python environment), else "python3" in PATH.
std::string PythonProgram();

/// The command that reads a file of `format` ("parquet", "arrow") from standard input and writes its records. It runs
/// PythonProgram, which needs the package. It explains its failures (SubprocessOptions); one of them is a column of
/// words whose type gives other strings than in the first training file (FeatureStates).
std::vector<std::string> CellCommand(std::string_view format, const DataFeedDesc& desc,
                                     std::span<const std::string> columns);
/// The command that writes name and type of each column of the file, each followed by a NUL.
std::vector<std::string> CellNamesCommand(std::string_view format);
/// Sets the interpreter of this process, which has the package. Empty: none. Call it before starting threads.
void SetPythonOfCells(std::string program);

}  // namespace millrace
