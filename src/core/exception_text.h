#pragma once

#include <string>

namespace millrace {

/// What the exception that is being handled says, for the edges where foreign code may throw: "std::runtime_error: no
/// such user", or that it is no std::exception; as a terminal may show it. To be called within a catch block.
std::string DescribeException();

/// The C++ name of a symbol or of a type, "millrace::Tensor::View(…)"; what the compiler did not make stays as it is.
std::string Demangled(const char* name);

}  // namespace millrace
