#pragma once

#include <new>
#include <string>

#include "core/dims.h"
#include "core/dtype.h"

namespace millrace {

/// Thrown if there is no memory for a tensor. BlockKernels::Run converts it to the operator's failure.
class NoMemory : public std::bad_alloc {
 public:
  NoMemory(DType type, const Dims& dims);
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

}  // namespace millrace
