#include "table/row_initializer.h"

#include <string>

#include "core/hash.h"
#include "model.pb.h"

namespace millrace {

Result<RowInitializer> RowInitializer::Create(const Initializer& init, std::string_view table, uint64_t seed) {
  const uint64_t table_seed = Mix64(seed ^ HashName(table));
  switch (init.kind_case()) {
    case Initializer::kConstant: return RowInitializer(Kind::kConstant, init.constant(), table_seed);
    case Initializer::kUniform: return RowInitializer(Kind::kUniform, init.uniform(), table_seed);
    case Initializer::kNormal: return RowInitializer(Kind::kNormal, init.normal(), table_seed);
    case Initializer::kXavier:
    case Initializer::kXavierNormal:
      return InvalidConfig("table \"" + std::string(table) +
                           "\": init: xavier needs a vocabulary, and this table grows; use uniform or normal");
    case Initializer::kCustom:
      return InvalidConfig("table \"" + std::string(table) +
                           "\": init: custom needs a vocabulary, and this table grows; use uniform or normal");
    case Initializer::KIND_NOT_SET: break;
  }
  return RowInitializer(Kind::kUniform, 0.01F, table_seed);
}

void RowInitializer::Fill(uint64_t key, float* row, int dim) const {
  const uint64_t row_seed = Mix64(seed_ ^ Mix64(key));
  for (int i = 0; i < dim; ++i) {
    const auto column = static_cast<uint64_t>(i);
    switch (kind_) {
      case Kind::kConstant: row[i] = scale_; break;
      case Kind::kUniform: row[i] = scale_ * (2.0F * HashedUniform(row_seed, column) - 1.0F); break;
      case Kind::kNormal: row[i] = scale_ * HashedNormal(row_seed, column); break;
    }
  }
}

}  // namespace millrace
