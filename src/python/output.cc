#include "python/output.h"

#include <pybind11/pybind11.h>

#include <cerrno>
#include <mutex>

#include "core/harmless_text.h"
#include "core/words.h"

namespace py = pybind11;

namespace millrace {
namespace {

/// As a terminal may show it, and a logger that writes to one.
std::string Shown(std::string_view text) { return Harmless(text, "\n\t"); }

/// Under the GIL.
void Log(const char* text, size_t size) {
  try {
    py::module_::import("millrace._output").attr("log")(py::str(Shown({text, size})));
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable("millrace's words");
  }
}

// Whole lines, as the stream is buffered by lines. Of a process that goes there is no Python to ask.
ssize_t WriteLog(void* /*cookie*/, const char* text, size_t size) {
  if (Py_IsInitialized() == 0) {
    std::fputs(Shown({text, size}).c_str(), stderr);
    return static_cast<ssize_t>(size);
  }
  const py::gil_scoped_acquire acquired;
  Log(text, size);
  return static_cast<ssize_t>(size);
}

/// What was said and not delivered.
struct Words {
  std::mutex mutex;
  std::string lines;
};

Words& Said() {
  static auto* words = new Words;  // threads may outlive what is static
  return *words;
}

void KeepWords(const std::string& lines) {
  if (Py_IsInitialized() == 0) {
    std::fputs(Shown(lines).c_str(), stderr);
    return;
  }
  const std::lock_guard lock(Said().mutex);
  Said().lines += lines;
}

ssize_t WriteNowhere(void* /*cookie*/, const char* /*text*/, size_t size) { return static_cast<ssize_t>(size); }

}  // namespace

Status PrintInPython(const std::string& text) {
  const py::gil_scoped_acquire acquired;
  try {
    py::module_::import("millrace._output").attr("print")(py::str(Shown(text)));
    return Status::Ok();
  } catch (py::error_already_set& error) {
    return IoError(std::string("sys.stdout: ") + error.what());
  }
}

Result<std::unique_ptr<std::FILE, CloseFile>> OpenPythonLog(bool is_quiet) {
  cookie_io_functions_t functions{};
  functions.write = is_quiet ? WriteNowhere : WriteLog;
  std::unique_ptr<std::FILE, CloseFile> file(::fopencookie(nullptr, "w", functions));
  if (file == nullptr) return IoErrorFromErrno("cannot open Python's log", errno);
  std::setvbuf(file.get(), nullptr, _IOLBF, BUFSIZ);
  return file;
}

void TakeWords() { ListenToWords(KeepWords); }

void DeliverWords() {
  std::string lines;
  {
    const std::lock_guard lock(Said().mutex);
    lines.swap(Said().lines);
  }
  if (lines.empty()) return;
  const py::error_scope kept;
  Log(lines.data(), lines.size());
}

}  // namespace millrace
