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

// Rows of columnar files travel as records of the texts of their cells. A command (python/millrace/columnar_records.py)
// reads the file and writes them; a feed reads them. Both are of one version, on one machine: this is no file format.
// Numbers are little endian.
//
//   frame:   "MRCELLS1", uint32 bytes of the records, uint32 how many
//   record:  uint32 bytes of its cells; for each column, in the order that was asked for, a cell
//   cell:    int32 bytes of the text, 0 for what is missing, and the text; or int32 -1 - n and n values
//   value:   uint32 bytes of the text, and the text
extern const Framing kCellFraming;

/// Appends the rows of `frame` as frames of that form, of the columns `columns`. kBadData for those that it lacks, has
/// twice, or makes no texts of, and for a row of more than 2^31 bytes.
Status AppendCellRecords(const DataFrame& frame, std::span<const std::string> columns, TextRule rule,
                         std::string* bytes);

/// Rows of such records, whose cells are the columns of the feed's plan.
struct CellFeed {
  static Result<std::unique_ptr<DataFeed>> Create(const SlotSchema& schema, const DataFeedDesc& desc,
                                                  const ColumnSetup& setup);
};

/// The interpreter that runs our Python: that of SetPythonOfCells, or else that of MILLRACE_PYTHON, or the one beside
/// this program, as in an environment of Python, or "python3", which is that of PATH.
std::string PythonProgram();

/// The command that writes the records of a file of `format` ("parquet", "arrow") which is its standard input. It is
/// run by PythonProgram, which needs the package for it. It explains its failures (SubprocessOptions). One is a column
/// of words whose type makes other texts than that of the first file that trained (FeatureStates).
std::vector<std::string> CellCommand(std::string_view format, const DataFeedDesc& desc,
                                     std::span<const std::string> columns);
/// The like, which writes the name and the type of each of the file's columns, a NUL behind each.
std::vector<std::string> CellNamesCommand(std::string_view format);
/// Names the interpreter that this process is in: it has the package. Empty: none. Before there are other threads.
void SetPythonOfCells(std::string program);

}  // namespace millrace
