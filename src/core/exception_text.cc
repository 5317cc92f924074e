#include "core/exception_text.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <typeinfo>

namespace millrace {

std::string Demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result;
}

std::string DescribeException() {
  try {
    throw;
  } catch (const std::exception& error) {
    return Demangled(typeid(error).name()) + ": " + error.what();
  } catch (const std::string& text) {
    return "a text: " + text;
  } catch (const char* text) {
    return std::string("a text: ") + text;
  } catch (...) {
    return "what is no std::exception";
  }
}

}  // namespace millrace
