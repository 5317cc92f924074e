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

/// A collective in progress, as a sequence of nonblocking MPI calls. The calling thread creates and reads it; only the
/// thread that may call MPI calls Poll.
///
/// It owns its buffers, because MPI never releases them after a rank is lost.
class MpiCollective {
 public:
  virtual ~MpiCollective() = default;

  /// Makes progress. Sets `moved` if an MPI call ended or started, `done` if the last one ended. Fails like MpiStatus.
  Status Poll(MPI_Comm comm, bool* moved, bool* done);
  /// Whether all required ranks have joined, so data is in transit, which progresses only while MPI is called.
  virtual bool are_bytes_moving() const { return false; }

 protected:
  /// Starts the next call, or sets `begun` to false if there is none. Fails like MpiStatus.
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
  // After the first piece, all ranks have joined.
  bool are_bytes_moving() const override { return begun_ > kMpiPiece / sizeof(int64_t); }

 protected:
  Status Next(MPI_Comm comm, MPI_Request* request, bool* begun) override;

 private:
  std::vector<int64_t> values_;
  size_t begun_ = 0;  ///< values for which a call was made
};

class MpiBroadcast : public MpiCollective {
 public:
  /// `bytes` is used only at the root.
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
  /// Writes to the strings of `in`; reuses `copies`, the outgoing strings of an earlier exchange.
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
  // Buffers that a call can read until it ends: one type per non-empty string.
  std::vector<MPI_Datatype> out_types_;
  std::vector<MPI_Datatype> in_types_;
  std::vector<int> out_counts_;
  std::vector<int> in_counts_;
  std::vector<int> zeros_;
};

}  // namespace millrace
