#include "python/table_rows.h"

#include <pybind11/numpy.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "python/errors.h"
#include "table/table_io.h"

namespace py = pybind11;

namespace millrace {

py::tuple ToRows(const SparseTable& table) {
  std::stringstream saved;
  ThrowUnlessOk(table.Save(kAllShards, TableContent::kWeights, saved));
  TableReader reader = ValueOrThrow(TableReader::Open(saved));
  const size_t dim = reader.header().dim;
  std::vector<float> values;
  std::vector<std::pair<uint64_t, size_t>> rows;  // a key, and where its row is
  while (const TableBlock* const block = ValueOrThrow(reader.Next())) {
    for (const uint64_t key : block->keys) rows.emplace_back(key, rows.size());
    values.insert(values.end(), block->values.begin(), block->values.end());
  }
  std::sort(rows.begin(), rows.end());
  const auto count = static_cast<py::ssize_t>(rows.size());
  py::array_t<uint64_t> keys(count);
  py::array_t<float> weights({count, static_cast<py::ssize_t>(dim)});
  uint64_t* key = keys.mutable_data();
  float* weight = weights.mutable_data();
  for (const auto& [of, row] : rows) {
    *key++ = of;
    weight = std::copy_n(values.data() + row * dim, dim, weight);
  }
  return py::make_tuple(std::move(keys), std::move(weights));
}

}  // namespace millrace
