#include "python/table_rows.h"

#include <pybind11/numpy.h>

#include <algorithm>
#include <sstream>

#include "python/errors.h"
#include "table/table_io.h"

namespace py = pybind11;

namespace millrace {

py::tuple ToRows(const SparseTable& table) {
  std::stringstream saved;
  ThrowUnlessOk(table.Save(saved, TableContent::kWeights));
  const TableHeader header = ValueOrThrow(ReadTableHeader(saved));
  const auto rows = static_cast<py::ssize_t>(header.rows);
  py::array_t<uint64_t> keys(rows);
  py::array_t<float> weights({rows, static_cast<py::ssize_t>(header.dim)});
  uint64_t* key = keys.mutable_data();
  float* weight = weights.mutable_data();
  TableBlock block;
  for (uint64_t b = 0; b < TableBlocks(header); ++b) {
    ThrowUnlessOk(ReadTableBlock(saved, header, b, &block));
    key = std::copy(block.keys.begin(), block.keys.end(), key);
    weight = std::copy(block.values.begin(), block.values.end(), weight);
  }
  return py::make_tuple(std::move(keys), std::move(weights));
}

}  // namespace millrace
