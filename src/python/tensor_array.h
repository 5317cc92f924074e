#pragma once

#include <pybind11/numpy.h>

#include <optional>
#include <string>

#include "runtime/tensor.h"

namespace millrace {

/// A copy of a tensor's values as a numpy array of its shape and type. bfloat16 comes as uint16's bits.
pybind11::array ToArray(const Tensor& tensor);

/// The numpy type of a tensor type.
pybind11::dtype ArrayTypeOf(DType type);

/// The tensor type of a name, "float32", or StatusError with the names that there are.
DType DTypeNamed(const std::string& name);

/// The tensor type of an array, or nullopt if tensors do not support its type.
std::optional<DType> FindDType(const pybind11::array& array);

/// The shape of an array.
Dims DimsOfArray(const pybind11::array& array);

/// The tensor type of an array, or StatusError that says which there are; `what` begins the message.
DType DTypeOfArray(const pybind11::array& array, const std::string& what);

}  // namespace millrace
