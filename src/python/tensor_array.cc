#include "python/tensor_array.h"

#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "python/errors.h"
#include "runtime/transfer.h"

namespace py = pybind11;

namespace millrace {

py::dtype ArrayTypeOf(DType type) {
  switch (type) {
    case DType::kBool: return py::dtype::of<bool>();
    case DType::kUint8: return py::dtype::of<uint8_t>();
    case DType::kInt8: return py::dtype::of<int8_t>();
    case DType::kInt16: return py::dtype::of<int16_t>();
    case DType::kInt32: return py::dtype::of<int32_t>();
    case DType::kInt64: return py::dtype::of<int64_t>();
    case DType::kFloat16: return py::dtype("float16");
    case DType::kBFloat16: return py::dtype::of<uint16_t>();
    case DType::kFloat32: return py::dtype::of<float>();
    case DType::kFloat64: return py::dtype::of<double>();
  }
  return py::dtype::of<float>();
}

DType DTypeNamed(const std::string& name) {
  constexpr std::array kTypes = {DType::kFloat32, DType::kInt64, DType::kFloat64, DType::kInt32,  DType::kBool,
                                 DType::kUint8,   DType::kInt8,  DType::kInt16,   DType::kFloat16};
  std::string known;
  for (const DType type : kTypes) {
    if (DTypeName(type) == name) return type;
    known += (known.empty() ? "" : ", ") + std::string(DTypeName(type));
  }
  throw StatusError(InvalidConfig("there is no dtype \"" + name + "\"; there are " + known));
}

py::array ToArray(const Tensor& tensor) {
  const auto sizes = tensor.dims().sizes();
  py::array array(ArrayTypeOf(tensor.dtype()), std::vector<py::ssize_t>(sizes.begin(), sizes.end()));
  if (array.nbytes() > 0) {
    HostView host_view;
    const Tensor* const shown = ValueOrThrow(host_view.Of(tensor));
    std::memcpy(array.mutable_data(), shown->raw_data(), static_cast<size_t>(array.nbytes()));
  }
  return array;
}

std::optional<DType> FindDType(const py::array& array) {
  for (const DType type : {DType::kFloat32, DType::kInt64, DType::kFloat64, DType::kInt32, DType::kBool, DType::kUint8,
                           DType::kInt8, DType::kInt16, DType::kFloat16}) {
    if (array.dtype().equal(ArrayTypeOf(type))) return type;
  }
  return std::nullopt;
}

Dims DimsOfArray(const py::array& array) {
  const std::vector<int64_t> shape(array.shape(), array.shape() + array.ndim());
  return Dims(std::span<const int64_t>(shape));
}

DType DTypeOfArray(const py::array& array, const std::string& what) {
  if (const std::optional<DType> type = FindDType(array)) return *type;
  throw StatusError(InvalidConfig(what + ": no tensor holds values of dtype " +
                                  py::str(array.dtype()).cast<std::string>() +
                                  "; convert them, for example by .astype(\"float32\")"));
}

}  // namespace millrace
