#include "table/matrix_rows.h"

#include <algorithm>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

#include "table/table_io.h"
#include "table/virtual_shards.h"

namespace millrace {

Status LoadMatrixRows(std::span<const float> matrix, SparseTable* table) {
  const TableShape& shape = table->shape();
  if (shape.counts) {
    return InvalidConfig("table \"" + shape.name + "\": rows that count shows and clicks are not those of a matrix");
  }
  const auto dim = static_cast<size_t>(shape.dim);
  std::vector<uint64_t> keys(matrix.size() / dim);
  std::iota(keys.begin(), keys.end(), uint64_t{0});
  const auto place = [](uint64_t key) { return std::pair(VirtualShardOf(key), key); };
  std::sort(keys.begin(), keys.end(), [&](uint64_t a, uint64_t b) { return place(a) < place(b); });
  TableHeader header;
  header.name = shape.name;
  header.dim = static_cast<uint32_t>(dim);
  header.row_floats = header.dim;
  header.rows = keys.size();
  std::stringstream bytes;
  MR_ASSIGN(TableWriter writer, TableWriter::Create(bytes, header));
  for (const uint64_t key : keys) MR_TRY(writer.Add(key, matrix.data() + key * dim));
  MR_TRY(writer.Finish());
  return table->Load(kAllShards, bytes, LoadMode::kNew);
}

}  // namespace millrace
