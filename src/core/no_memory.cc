#include "core/no_memory.h"

namespace millrace {

NoMemory::NoMemory(DType type, const Dims& dims)
    : message_("no memory for a tensor of " + std::string(DTypeName(type)) + " " + dims.ToString()) {}

}  // namespace millrace
