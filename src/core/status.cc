#include "core/status.h"

#include <cerrno>
#include <cstring>

namespace millrace {

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: return "ok";
    case StatusCode::kInvalidConfig: return "invalid configuration";
    case StatusCode::kBadData: return "bad data";
    case StatusCode::kNotFound: return "not found";
    case StatusCode::kAlreadyExists: return "already exists";
    case StatusCode::kIo: return "input/output error";
    case StatusCode::kUnavailable: return "unavailable";
    case StatusCode::kCancelled: return "cancelled";
    case StatusCode::kInternal: return "internal error";
  }
  return "unknown";
}

Status::Status(StatusCode code, std::string message) {
  if (code != StatusCode::kOk) rep_ = std::make_unique<Rep>(Rep{code, std::move(message)});
}

Status::Status(const Status& other) : rep_(other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) rep_ = other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr;
  return *this;
}

const std::string& Status::message() const {
  static const std::string empty;
  return rep_ ? rep_->message : empty;
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  return std::string(StatusCodeName(rep_->code)) + ": " + rep_->message;
}

Status&& Status::Context(std::string_view where) && {
  if (rep_) rep_->message = std::string(where) + ": " + rep_->message;
  return std::move(*this);
}

Status InvalidConfig(std::string message) { return {StatusCode::kInvalidConfig, std::move(message)}; }
Status BadData(std::string message) { return {StatusCode::kBadData, std::move(message)}; }
Status NotFound(std::string message) { return {StatusCode::kNotFound, std::move(message)}; }
Status AlreadyExists(std::string message) { return {StatusCode::kAlreadyExists, std::move(message)}; }
Status IoError(std::string message) { return {StatusCode::kIo, std::move(message)}; }
Status IoErrorFromErrno(std::string message, int error_number) {
  const char* what_to_do = error_number == EMFILE ? "; raise the limit (ulimit -n), or read with fewer threads" : "";
  return {StatusCode::kIo, std::move(message) + ": " + std::strerror(error_number) + what_to_do};
}
Status Unavailable(std::string message) { return {StatusCode::kUnavailable, std::move(message)}; }
Status Cancelled(std::string message) { return {StatusCode::kCancelled, std::move(message)}; }
Status Internal(std::string message) { return {StatusCode::kInternal, std::move(message)}; }

}  // namespace millrace
