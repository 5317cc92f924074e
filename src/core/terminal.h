#pragma once

#include <cstdio>
#include <string>

namespace millrace {

/// From here on what this process writes to `stderr` and std::cerr, and what glog logs there, is Harmless: control
/// characters but for "\n" and "\t", and bytes that are no UTF-8, are shown as "\x1b". So no message has to think of
/// names and values that came with data or a model. For programs, once, before threads are started.
void GuardStandardError();

/// The stream itself, for what moves the cursor on purpose.
std::FILE* Unguarded(std::FILE* stream);

/// Writes text to standard output with the same escaping. Do not use it for data. False if it could not be written,
/// with the reason in errno.
bool PrintOut(const std::string& text);

}  // namespace millrace
