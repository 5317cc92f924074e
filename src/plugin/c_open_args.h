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

/// What a parser or loader of the C tier is opened with, and everything that it points to. Must outlive what was opened
/// with it. One thread.
class COpenArgs {
 public:
  using Given = std::vector<std::pair<std::string, std::string>>;

  /// Completes the attributes of `infos` by their defaults. kInvalidConfig for one that is unknown, given twice, or
  /// missing without a default.
  static Result<std::unique_ptr<COpenArgs>> Create(std::span<const millrace_attr_info> infos, const Given& given,
                                                   std::vector<std::pair<std::string, millrace_column>> columns);
  COpenArgs(const COpenArgs&) = delete;
  COpenArgs& operator=(const COpenArgs&) = delete;

  /// Completes what a data_desc gives, with a column for each used slot. `where` says whose attributes they are.
  static Result<std::unique_ptr<COpenArgs>> ForSlots(std::span<const millrace_attr_info> infos,
                                                     const SlotSchema& schema, const DataFeedDesc& desc,
                                                     const std::string& where);

  /// Gives the bytes of a file to the loader that is opened next.
  void ReadFrom(std::unique_ptr<ByteSource> bytes, const std::string& file);
  /// From now on a request of `stop` ends the plugin's wait for bytes, of a pipe that stays silent.
  void ReadUntil(std::stop_token stop) { stop_ = std::move(stop); }
  const millrace_open_args& args() const { return args_; }
  std::span<const millrace_column> columns() const { return columns_; }
  /// Why `read` failed; ok when it did not.
  const Status& read_failure() const { return read_failure_; }

 private:
  COpenArgs() = default;
  static ptrdiff_t Read(void* host, char* bytes, size_t room);

  std::vector<std::string> texts_;  ///< values of attributes, names of columns
  std::vector<millrace_attr> attrs_;
  std::vector<millrace_column> columns_;
  std::string file_;
  std::unique_ptr<ByteSource> source_;
  std::stop_token stop_;
  Status read_failure_;
  millrace_open_args args_{};
};

/// Room for the message of one call into a plugin of the C tier, and a margin behind it that shows who writes too much.
class CError {
 public:
  CError() { text_.fill(kUntouched); }
  CError(const CError&) = delete;
  CError& operator=(const CError&) = delete;

  millrace_error* get() {
    if (overran()) text_.fill(kUntouched);
    text_[0] = '\0';
    error_ = {sizeof(millrace_error), text_.data(), kRoom};  // a plugin may have written over it
    return &error_;
  }
  /// Whether the plugin wrote behind the room it was given.
  bool overran() const { return text_[kRoom] != kUntouched || text_[kRoom + 1] != kUntouched; }
  /// What the plugin wrote; `where` and `otherwise` when it wrote nothing.
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
