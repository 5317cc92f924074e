#include "app/list_table.h"

#include <fstream>
#include <iomanip>
#include <map>
#include <sstream>

#include "core/plain_file.h"
#include "table/ctr_rows.h"
#include "table/table_io.h"

namespace millrace {
namespace {

/// Of the rows of a table with an accessor.
struct Counts {
  int64_t rows = 0;
  int64_t with_embedx = 0;
  double shows = 0;
  double clicks = 0;
  std::map<int64_t, int64_t> by_unseen_days;

  void Add(const float* row, size_t dim) {
    ++rows;
    shows += static_cast<double>(row[CtrRows::kShow]);
    clicks += static_cast<double>(row[CtrRows::kClick]);
    with_embedx += row[dim + 2] == 0 ? 1 : 0;
    ++by_unseen_days[static_cast<int64_t>(row[dim])];
  }

  std::string Text() const {
    std::ostringstream text;
    text << std::fixed << std::setprecision(1) << "  shows " << shows << ", clicks " << clicks << "; " << with_embedx
         << " rows have their embedx\n  rows by days unseen:";
    for (const auto& [days, count] : by_unseen_days) text << " " << days << ": " << count;
    return text.str() + "\n";
  }
};

Result<std::string> ListTable(const std::string& path) {
  MR_TRY(CheckPlainFile(path));
  std::ifstream file(path, std::ios::binary);
  if (!file) return IoError("cannot open \"" + path + "\"");
  MR_ASSIGN(TableReader reader, TableReader::Open(file));
  const TableHeader& header = reader.header();
  const bool counts = header.optimizer.starts_with("CtrCommonAccessor") &&
                      header.row_floats >= header.dim + CtrRows::kCounters && header.dim > CtrRows::kEmbedx;
  Counts sums;
  while (true) {
    MR_ASSIGN(const TableBlock* const block, reader.Next());
    if (block == nullptr) break;
    for (size_t i = 0; counts && i < block->keys.size(); ++i) {
      sums.Add(block->values.data() + i * header.row_floats, header.dim);
    }
  }
  std::ostringstream text;
  text << path << ": table " << header.name << ", " << header.rows << " rows of " << header.dim << " weights";
  if (header.optimizer.empty()) {
    text << ", without state\n";
  } else {
    text << " in " << header.row_floats << " floats, after " << header.pushes << " updates";
    if (header.since) text << ": those that changed since update " << *header.since;
    text << "\n  " << header.optimizer << "\n";
  }
  return text.str() + (counts ? sums.Text() : "");
}

}  // namespace

Result<std::string> ListTables(const std::vector<std::string>& paths) {
  std::string all;
  for (const std::string& path : paths) {
    MR_ASSIGN(const std::string text, ListTable(path).Context(path));
    all += text;
  }
  return all;
}

}  // namespace millrace
