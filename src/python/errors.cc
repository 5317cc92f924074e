#include "python/errors.h"

namespace py = pybind11;

namespace millrace {

void ThrowUnlessOk(Status status) {
  if (!status.ok()) throw StatusError(std::move(status));
}

void RegisterErrors() {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const StatusError& error) {
      const bool is_end = dynamic_cast<const EndOfDataError*>(&error) != nullptr;
      const std::string code(is_end ? "end of data" : StatusCodeName(error.status().code()));
      // Names of files may be any bytes.
      const std::string& message = error.status().message();
      const auto text = py::reinterpret_steal<py::object>(
          PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
      const py::object made = py::module_::import("millrace.errors").attr("error_of")(code, text);
      PyErr_SetObject(py::type::handle_of(made).ptr(), made.ptr());
    }
  });
}

}  // namespace millrace
