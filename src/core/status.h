#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace millrace {

/// Classifies a failure, so that a process can choose its exit code and a caller its reaction.
enum class StatusCode {
  kOk = 0,
  kInvalidConfig,  ///< a flag or a configuration file is wrong: exit code 2
  kBadData,        ///< an input line or a data file does not parse: exit code 3
  kNotFound,       ///< a named file, variable or class does not exist: exit code 3
  kAlreadyExists,  ///< a name or a file is taken already
  kIo,             ///< the system failed to read or write, or a child failed: exit code 3
  kUnavailable,    ///< may succeed later (memory, a peer, a lock): exit code 3
  kCancelled,      ///< the user, or another thread's failure, stopped it: exit code 130
  kInternal,       ///< our bug: exit code 4
};

/// Returns the name of a code as logs print it, for example "bad data".
std::string_view StatusCodeName(StatusCode code);

/// Success, or a code with a message that a user can act on.
///
/// A message states what failed, where (file:line:column, slot, operator, variable), why, and what to do, and shows the
/// values. Success is a null pointer and costs a move. Immutable except for Context; can be moved between threads.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message);

  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;

  static Status Ok() { return {}; }

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ == nullptr ? StatusCode::kOk : rep_->code; }
  /// Returns the message without the code; empty when ok().
  const std::string& message() const;
  /// Returns "bad data: part-0:7:3: ..." or "ok".
  std::string ToString() const;

  /// Prepends "where: " to the message of a failure; no-op on success.
  Status&& Context(std::string_view where) &&;

 private:
  struct Rep {
    StatusCode code;
    std::string message;
  };
  std::unique_ptr<Rep> rep_;
};

Status InvalidConfig(std::string message);
Status BadData(std::string message);
Status NotFound(std::string message);
Status AlreadyExists(std::string message);
Status IoError(std::string message);
/// Appends ": " and the text of `error_number`, for example "No such file or directory".
Status IoErrorFromErrno(std::string message, int error_number);
Status Unavailable(std::string message);
Status Cancelled(std::string message);
Status Internal(std::string message);

/// A value, or the Status that explains its absence.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}        // NOLINT(google-explicit-constructor)
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {  // NOLINT(google-explicit-constructor)
    if (std::get<1>(state_).ok()) std::get<1>(state_) = Internal("a Result was made from an ok Status");
  }

  bool ok() const { return state_.index() == 0; }
  Status status() const& { return ok() ? Status::Ok() : std::get<1>(state_); }
  Status status() && { return ok() ? Status::Ok() : std::move(std::get<1>(state_)); }

  /// The value; must not be called when !ok().
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::move(std::get<0>(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Result&& Context(std::string_view where) && {
    if (!ok()) std::get<1>(state_) = std::move(std::get<1>(state_)).Context(where);
    return std::move(*this);
  }

 private:
  std::variant<T, Status> state_;
};

}  // namespace millrace

#define MR_CONCAT_INNER(a, b) a##b
#define MR_CONCAT(a, b) MR_CONCAT_INNER(a, b)

/// Returns from the calling function if `expression` (a Status) is a failure.
#define MR_TRY(expression)                       \
  do {                                           \
    ::millrace::Status mr_status = (expression); \
    if (!mr_status.ok()) return mr_status;       \
  } while (false)

/// Assigns the value of a Result to `target` (which can declare a variable), or returns its Status.
#define MR_ASSIGN(target, expression) MR_ASSIGN_INNER(target, expression, MR_CONCAT(mr_result_, __COUNTER__))
#define MR_ASSIGN_INNER(target, expression, temporary)       \
  auto temporary = (expression);                             \
  if (!temporary.ok()) return std::move(temporary).status(); \
  target = std::move(temporary).value()
