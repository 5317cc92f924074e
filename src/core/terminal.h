#pragma once

#include <cstdio>
#include <string>

namespace millrace {

/// Escapes all later output of this process to `stderr`, std::cerr and glog's log there like Harmless: control
/// characters except "\n" and "\t", and invalid UTF-8, become "\x1b". Messages then need not escape names and values
/// from data or a model. Call it once per program, before starting threads.
void GuardStandardError();

/// The unescaped stream, for intentional cursor movement.
std::FILE* Unguarded(std::FILE* stream);

/// Writes text to standard output with the same escaping. Do not use it for data. Returns false, with the reason in
/// errno, if it could not be written.
bool PrintOut(const std::string& text);

}  // namespace millrace
