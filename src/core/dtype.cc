#include "core/dtype.h"

#include <glog/logging.h>

namespace millrace {

size_t SizeOf(DType type) {
  switch (type) {
    case DType::kBool:
    case DType::kUint8:
    case DType::kInt8: return 1;
    case DType::kInt16:
    case DType::kFloat16:
    case DType::kBFloat16: return 2;
    case DType::kInt32:
    case DType::kFloat32: return 4;
    case DType::kInt64:
    case DType::kFloat64: return 8;
  }
  LOG(FATAL) << "unknown data type " << static_cast<int>(type);
}

std::string_view DTypeName(DType type) {
  switch (type) {
    case DType::kBool: return "bool";
    case DType::kUint8: return "uint8";
    case DType::kInt8: return "int8";
    case DType::kInt16: return "int16";
    case DType::kInt32: return "int32";
    case DType::kInt64: return "int64";
    case DType::kFloat16: return "float16";
    case DType::kBFloat16: return "bfloat16";
    case DType::kFloat32: return "float32";
    case DType::kFloat64: return "float64";
  }
  return "unknown";
}

}  // namespace millrace
