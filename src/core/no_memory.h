#pragma once

#include <new>
#include <string>

#include "core/dims.h"
#include "core/dtype.h"

namespace millrace {

/// There is no memory for a tensor. Frame::Run turns it into the failure of the operator that wanted it.
class NoMemory : public std::bad_alloc {
 public:
  NoMemory(DType type, const Dims& dims);
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

}  // namespace millrace
