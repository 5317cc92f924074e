#pragma once

#include <atomic>
#include <cstdint>

#include "table/table_factory.h"

namespace millrace {

/// How often FarTables were asked for rows and brought gradients.
struct FarTableCalls {
  std::atomic<int64_t> pulls = 0;
  std::atomic<int64_t> pushes = 0;
};

/// Makes tables that lie elsewhere, as far as a program can tell: a pull brings keys and copies of the weights, and a
/// push sends the keys back. Behind each is a HashTable. `calls` outlives them.
TableMaker FarTableMaker(FarTableCalls* calls);

}  // namespace millrace
