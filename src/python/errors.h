#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <string>
#include <utility>

#include "core/status.h"

namespace millrace {

/// A failure on its way to Python, where it arrives as a subclass of millrace.Error whose text is the whole message.
class StatusError : public std::exception {
 public:
  explicit StatusError(Status status) : status_(std::move(status)) {}
  const Status& status() const { return status_; }
  const char* what() const noexcept override { return status_.message().c_str(); }

 private:
  Status status_;
};

/// A read past the end of a reader.
class EndOfDataError final : public StatusError {
  using StatusError::StatusError;
};

/// Throws StatusError for a failure. For the edge to Python alone; no room throws.
void ThrowUnlessOk(Status status);

/// The value, or StatusError.
template <class T>
T ValueOrThrow(Result<T> result) {
  if (!result.ok()) throw StatusError(std::move(result).status());
  return std::move(result).value();
}

/// Lets StatusError arrive in Python as the class that millrace.errors has for its code.
void RegisterErrors();

}  // namespace millrace
