#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reader/reader_holder.h"
#include "runtime/frame.h"
#include "runtime/scope.h"
#include "session/call_context.h"
#include "session/quick_amount.h"

namespace millrace {

/// The values of one variable for one run of a program. The caller keeps `data` until the run ends.
struct FedTensor {
  std::string name;
  std::optional<DType> dtype;  ///< nullopt: a type that tensors do not support
  std::string type_name;       ///< of such a type, for errors
  Dims dims;
  const void* data = nullptr;                ///< dense, row-major
  std::optional<std::vector<uint32_t>> lod;  ///< offsets of the rows of a variable of lod_level 1

  int64_t rows() const;
  uint64_t bytes() const;
};

/// Rows of the largest tensor.
int RowsOf(std::span<const FedTensor> feeds);

/// A program with its kernels, run on tensors again and again. Destroyed before its scope.
class PreparedProgram {
 public:
  /// Runs with equal keys share a prepared program.
  struct Key {
    int64_t program = 0;  ///< unique within the process
    int64_t version = 0;  ///< changes with the program
    std::vector<std::string> fetches;
    uint64_t seed = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// Steps and examples trained, counted as `trainer` counts them.
  struct Trained {
    int64_t step = 0;
    int64_t examples = 0;
  };

  /// Compiles `program`, the serialized program of `key`. kInvalidConfig if it cannot be compiled, or updates
  /// parameters while there are several ranks; the errors of Frame::Create.
  static Result<std::unique_ptr<PreparedProgram>> Create(Key key, const std::string& program, int max_rows, Scope& root,
                                                         const CallContext& context);
  /// Programs prepared by this process.
  static int64_t made();

  const Key& key() const { return key_; }
  int max_rows() const { return max_rows_; }
  /// Whether a run can block on a reader or never end.
  bool may_wait() const { return may_wait_; }
  /// In bytes of feeds.
  QuickAmount& quick() { return quick_; }

  /// Runs one batch. `feeds` contains every slot that the program reads, all with the same number of rows. Advances
  /// `*trained` even if the run fails: one step per run that updates parameters, and in a loop that updates them one
  /// step per round, or per round that read an item if the program has readers.
  ///
  /// kInvalidConfig for feeds that do not fit the program; the errors of Frame::Run.
  Status Run(std::span<const FedTensor> feeds, Trained* trained, const std::stop_token& stop);
  /// The tensor of a fetch after a run. kInvalidConfig if it holds no tensor, or no value.
  Result<const Tensor*> Fetched(const std::string& name) const;
  /// Drops the views of a run's feeds.
  void ForgetFeeds(std::span<const FedTensor> feeds);

 private:
  PreparedProgram(Key key, int max_rows) : key_(std::move(key)), max_rows_(max_rows) {}
  void ReadOps(const ProgramDesc& program);
  Result<int> BindFeeds(std::span<const FedTensor> feeds);

  Key key_;
  int max_rows_;
  std::unique_ptr<const Executable> executable_;
  std::unique_ptr<Frame> frame_;
  std::vector<std::string> slots_;      ///< read by its operators
  std::vector<ReaderHolder*> readers_;  ///< likewise
  bool trains_ = false;                 ///< updates parameters
  bool updates_ = false;                ///< updates parameters outside of loops
  bool is_loop_ = false;                ///< has one `while`, whose rounds update parameters
  bool may_wait_ = false;
  QuickAmount quick_;
};

}  // namespace millrace
