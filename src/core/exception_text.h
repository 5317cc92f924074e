#pragma once

#include <string>

namespace millrace {

/// Describes the current exception where foreign code can throw: "std::runtime_error: no such user", or that it is not
/// a std::exception. Escapes control characters. Call it within a catch block.
std::string DescribeException();

/// The C++ name of a symbol or type, "millrace::Tensor::View(…)"; unchanged if it is not a mangled name.
std::string Demangled(const char* name);

}  // namespace millrace
