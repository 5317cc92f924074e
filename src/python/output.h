#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "core/status.h"

namespace millrace {

/// Writes to sys.stdout, so that a notebook shows it and a test can catch it. From any thread that does not hold the
/// GIL; it is taken meanwhile. kIo with what sys.stdout raised.
Status PrintInPython(const std::string& text);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// A stream whose lines go to the logger "millrace" of Python's logging, or to sys.stderr while nobody listens to that
/// one; with `is_quiet` to nobody. Written to from any thread that does not hold the GIL. kIo.
Result<std::unique_ptr<std::FILE, CloseFile>> OpenPythonLog(bool is_quiet);

/// Takes the words that readers and workers say from here on: kept until DeliverWords, as a thread that waited for the
/// GIL might be one that its holder waits for.
void TakeWords();

/// Gives what was said meanwhile to where the lines of OpenPythonLog go, `is_quiet` or not. Under the GIL; an exception
/// that is set stays so.
void DeliverWords();

}  // namespace millrace
