#pragma once

#include <cstdint>
#include <string_view>

#include "core/status.h"

namespace millrace {

class Initializer;

/// Computes the initial values of a row only from the seed, the table's name, the key and the column, so every thread,
/// run and machine gets the same row. Immutable, thread-safe.
class RowInitializer {
 public:
  /// Fails with kInvalidConfig for an initializer that needs the number of rows (xavier).
  static Result<RowInitializer> Create(const Initializer& init, std::string_view table, uint64_t seed);

  void Fill(uint64_t key, float* row, int dim) const;

 private:
  enum class Kind : uint8_t { kConstant, kUniform, kNormal };
  RowInitializer(Kind kind, float scale, uint64_t seed) : kind_(kind), scale_(scale), seed_(seed) {}

  Kind kind_;
  float scale_;
  uint64_t seed_;
};

}  // namespace millrace
