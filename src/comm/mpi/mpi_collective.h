#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/mpi/mpi_call.h"
#include "core/status.h"

namespace millrace {

/// A collective that is under way: calls of MPI that do not block, one after the other. Made and read by who calls the
/// collective; Poll is for the thread that may call MPI.
///
/// Its buffers are its own, for when a rank is lost MPI never lets go of them.
class MpiCollective {
 public:
  virtual ~MpiCollective() = default;

  /// Carries on. True in `moved` when a call of MPI ended or began, in `done` when the last one ended.
  Status Poll(MPI_Comm comm, bool* moved, bool* done);
  /// Whether all ranks it needs are there, so that bytes are on their way, which only move while MPI is called.
  virtual bool are_bytes_moving() const { return false; }

 protected:
  /// Starts the next call, or sets `begun` to false when there is none any more.
  virtual Status Next(MPI_Comm comm, MPI_Request* request, bool* begun) = 0;

 private:
  bool has_begun_ = false;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

class MpiBarrier : public MpiCollective {
 protected:
  Status Next(MPI_Comm comm, MPI_Request* request, bool* begun) override;

 private:
  bool has_begun_ = false;
};

class MpiSum : public MpiCollective {
 public:
  explicit MpiSum(std::span<const int64_t> values) : values_(values.begin(), values.end()) {}
  const std::vector<int64_t>& sums() const { return values_; }
  // Of the second piece nobody is missing that was there for the first.
  bool are_bytes_moving() const override { return begun_ > kMpiPiece / sizeof(int64_t); }

 protected:
  Status Next(MPI_Comm comm, MPI_Request* request, bool* begun) override;

 private:
  std::vector<int64_t> values_;
  size_t begun_ = 0;  ///< values that a call was made for
};

class MpiBroadcast : public MpiCollective {
 public:
  /// `bytes` counts at the root.
  MpiBroadcast(int root, std::string bytes) : root_(root), length_(bytes.size()), bytes_(std::move(bytes)) {}
  std::string& bytes() { return bytes_; }
  bool are_bytes_moving() const override { return begun_ > 0; }

 protected:
  Status Next(MPI_Comm comm, MPI_Request* request, bool* begun) override;

 private:
  const int root_;
  bool has_length_ = false;
  uint64_t length_;
  std::string bytes_;
  size_t begun_ = 0;
};

class MpiAllToAll : public MpiCollective {
 public:
  /// `in` gives its strings, to be written to; `copies` those that hold what goes out, from an earlier exchange.
  MpiAllToAll(int rank, std::span<const std::string> out, std::vector<std::string>* in,
              std::vector<std::string>* copies);
  std::vector<std::string>& in() { return in_; }
  std::vector<std::string>& copies() { return out_; }
  bool are_bytes_moving() const override { return step_ == Step::kEnd; }

 protected:
  Status Next(MPI_Comm comm, MPI_Request* request, bool* begun) override;

 private:
  enum class Step : uint8_t { kLengths, kBytes, kEnd };

  Status ExchangeBytes(MPI_Comm comm, MPI_Request* request);

  const size_t rank_;
  Step step_ = Step::kLengths;
  std::vector<std::string> out_;
  std::vector<std::string> in_;
  std::vector<uint64_t> out_lengths_;
  std::vector<uint64_t> in_lengths_;
  // What a call may look at until it ends: a type for each string that is not empty.
  std::vector<MPI_Datatype> out_types_;
  std::vector<MPI_Datatype> in_types_;
  std::vector<int> out_counts_;
  std::vector<int> in_counts_;
  std::vector<int> zeros_;
};

}  // namespace millrace
