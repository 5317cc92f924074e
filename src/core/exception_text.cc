#include "core/exception_text.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <typeinfo>

#include "core/harmless_text.h"

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
    return Demangled(typeid(error).name()) + ": " + Harmless(error.what(), "\n\t");
  } catch (const std::string& text) {
    return "a text: " + Harmless(text, "\n\t");
  } catch (const char* text) {
    return "a text: " + Harmless(text, "\n\t");
  } catch (...) {
    return "what is no std::exception";
  }
}

}  // namespace millrace
