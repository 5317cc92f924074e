#include "table/table_factory.h"

#include <glog/logging.h>

#include "core/caught.h"
#include "model.pb.h"
#include "table/hash_table.h"

namespace millrace {

TableFactory TableFactory::Builtin() {
  TableFactory factory;
  CHECK(factory.Add("HashTable", "keeps its rows in the memory of this process", CreateHashTable).ok());
  return factory;
}

Result<std::unique_ptr<SparseTable>> TableFactory::Create(const TableDesc& desc, uint64_t seed) const {
  MR_ASSIGN(const TableMaker* maker, Get(desc.class_name()).Context("table \"" + desc.name() + "\": class_name"));
  return CaughtMaking("the table \"" + desc.name() + "\"", [&] { return (*maker)(desc, seed); });
}

}  // namespace millrace
