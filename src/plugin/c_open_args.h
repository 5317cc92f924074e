#pragma once

#include <array>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "batch/slot_schema.h"
#include "core/byte_source.h"
#include "core/status.h"
#include "plugin/plugin_abi.h"

namespace millrace {

class DataFeedDesc;

/// The arguments for opening a parser or loader of the C tier, with everything they point to. Must outlive what was
/// opened with it. One thread.
class COpenArgs {
 public:
  using Given = std::vector<std::pair<std::string, std::string>>;

  /// Completes the attributes of `infos` with their defaults. Fails with kInvalidConfig for an unknown or duplicated
  /// attribute, or one without value and default.
  static Result<std::unique_ptr<COpenArgs>> Create(std::span<const millrace_attr_info> infos, const Given& given,
                                                   std::vector<std::pair<std::string, millrace_column>> columns);
  COpenArgs(const COpenArgs&) = delete;
  COpenArgs& operator=(const COpenArgs&) = delete;

  /// The same for a data_desc, with a column for each used slot. `where` is the attributes' owner in messages. Fails
  /// like Create.
  static Result<std::unique_ptr<COpenArgs>> ForSlots(std::span<const millrace_attr_info> infos,
                                                     const SlotSchema& schema, const DataFeedDesc& desc,
                                                     const std::string& where);

  /// Sets the file content for the loader opened next.
  void ReadFrom(std::unique_ptr<ByteSource> bytes, const std::string& file);
  /// Makes a request of `stop` end the plugin's wait for bytes, for example of an idle pipe.
  void ReadUntil(std::stop_token stop) { stop_ = std::move(stop); }
  const millrace_open_args& args() const { return args_; }
  std::span<const millrace_column> columns() const { return columns_; }
  /// Why `read` failed; ok otherwise.
  const Status& read_failure() const { return read_failure_; }

 private:
  COpenArgs() = default;
  static ptrdiff_t Read(void* host, char* bytes, size_t room);

  std::vector<std::string> texts_;  ///< attribute values and column names
  std::vector<millrace_attr> attrs_;
  std::vector<millrace_column> columns_;
  std::string file_;
  std::unique_ptr<ByteSource> source_;
  std::stop_token stop_;
  Status read_failure_;
  millrace_open_args args_{};
};

/// Buffer for the message of one call into a plugin of the C tier, followed by a margin to detect overruns.
class CError {
 public:
  CError() { text_.fill(kUntouched); }
  CError(const CError&) = delete;
  CError& operator=(const CError&) = delete;

  millrace_error* get() {
    if (overran()) text_.fill(kUntouched);
    text_[0] = '\0';
    error_ = {sizeof(millrace_error), text_.data(), kRoom};  // a plugin may have overwritten it
    return &error_;
  }
  /// Whether the plugin wrote past the end of its buffer.
  bool overran() const { return text_[kRoom] != kUntouched || text_[kRoom + 1] != kUntouched; }
  /// The plugin's message; `where` + `otherwise` if it is empty.
  std::string text(const std::string& where, const std::string& otherwise) {
    if (overran()) {
      return where + " wrote behind the " + std::to_string(kRoom) +
             " bytes that there are for its message (error->room); memory may be damaged";
    }
    text_[kRoom - 1] = '\0';
    return text_[0] == '\0' ? where + otherwise : text_.data();
  }

 private:
  static constexpr size_t kRoom = 1024;
  static constexpr char kUntouched = '\x5a';
  std::array<char, 2 * kRoom> text_;
  millrace_error error_{};
};

}  // namespace millrace
