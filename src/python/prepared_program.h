#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "python/interruptible.h"
#include "reader/reader_holder.h"
#include "runtime/frame.h"
#include "runtime/scope.h"

namespace millrace {

/// A variable's array, with the offsets of its rows for a variable of lod_level 1 (None for others).
using FedArray = std::tuple<std::string, pybind11::array, pybind11::object>;

/// A program with its kernels, to be run on arrays again and again. Goes before its scope. Errors are StatusError.
class PreparedProgram {
 public:
  /// What a run has to be like for one that was prepared to do.
  struct Key {
    int64_t program = 0;  ///< a number that no other program of the process has
    int64_t version = 0;  ///< of the program: another one after all that changes it
    std::vector<std::string> fetches;
    uint64_t seed = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };

  /// `program` is what `key` stands for, serialized.
  PreparedProgram(Key key, const std::string& program, int max_rows, Scope& root);
  /// Programs that this process has prepared so far.
  static int64_t made();

  const Key& key() const { return key_; }
  int max_rows() const { return max_rows_; }
  /// Steps as `trainer` counts them, and their rows.
  struct Trained {
    int64_t step = 0;
    int64_t examples = 0;
  };
  /// Runs it on one batch: every slot that it reads is in `feeds`, of its type and sizes, all with the same rows.
  /// `trained` is what was before it, and goes on by what this run trains, also where it fails behind some: of a loop
  /// that updates parameters each round is a step, or, where the program has readers, each that read an item.
  pybind11::list Run(const std::vector<FedArray>& feeds, Trained* trained);

 private:
  pybind11::object Fetched(const std::string& name) const;
  int BindFeeds(const std::vector<FedArray>& feeds);
  void ForgetFeeds(const std::vector<FedArray>& feeds);

  Key key_;
  int max_rows_;
  std::unique_ptr<const Executable> executable_;
  std::unique_ptr<Frame> frame_;
  std::vector<std::string> slots_;           ///< that its operators read
  std::vector<ReaderHolder*> readers_;       ///< that they read, too
  bool trains_ = false;                      ///< updates parameters
  bool updates_ = false;                     ///< parameters, outside of loops
  bool is_loop_ = false;                     ///< it has one `while`, whose rounds update parameters
  bool may_wait_ = false;                    ///< for a reader, or in a loop that does not end
  QuickWork quick_;                          ///< measured in bytes that are fed
  std::vector<pybind11::array> kept_;        ///< of the run that goes on
  std::vector<std::vector<uint32_t>> lods_;  ///< likewise
};

/// Rows of the largest array.
int RowsOf(const std::vector<FedArray>& feeds);

}  // namespace millrace
