#include "comm/mpi/mpi_collective.h"

#include <algorithm>
#include <utility>

#include "comm/mpi/mpi_call.h"

namespace millrace {
namespace {

/// A type for a string's bytes in place, in blocks, because a count is an int.
Status MakeType(std::string& bytes, MPI_Datatype* type, int* count) {
  *count = 0;
  *type = MPI_BYTE;
  if (bytes.empty()) return Status::Ok();
  std::vector<int> lengths;
  std::vector<MPI_Aint> places;
  for (size_t begin = 0; begin < bytes.size(); begin += kMpiPiece) {
    lengths.push_back(static_cast<int>(std::min(kMpiPiece, bytes.size() - begin)));
    MR_TRY(MpiStatus("MPI_Get_address", MPI_Get_address(bytes.data() + begin, &places.emplace_back())));
  }
  MR_TRY(MpiStatus(
      "MPI_Type_create_hindexed",
      MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), MPI_BYTE, type)));
  *count = 1;
  return MpiStatus("MPI_Type_commit", MPI_Type_commit(type));
}

Status FreeTypes(std::vector<MPI_Datatype>* types) {
  for (MPI_Datatype& type : *types) {
    if (type != MPI_BYTE) MR_TRY(MpiStatus("MPI_Type_free", MPI_Type_free(&type)));
  }
  types->clear();
  return Status::Ok();
}

}  // namespace

Status MpiCollective::Poll(MPI_Comm comm, bool* moved, bool* done) {
  *done = false;
  if (has_begun_) {
    int ended = 0;
    MR_TRY(MpiStatus("MPI_Test of a collective", MPI_Test(&request_, &ended, MPI_STATUS_IGNORE)));
    if (ended == 0) return Status::Ok();
  }
  has_begun_ = true;
  *moved = true;
  request_ = MPI_REQUEST_NULL;
  bool begun = true;
  MR_TRY(Next(comm, &request_, &begun));
  *done = !begun;
  return Status::Ok();
}

Status MpiBarrier::Next(MPI_Comm comm, MPI_Request* request, bool* begun) {
  *begun = !std::exchange(has_begun_, true);
  if (!*begun) return Status::Ok();
  return MpiStatus("MPI_Ibarrier", MPI_Ibarrier(comm, request));
}

Status MpiSum::Next(MPI_Comm comm, MPI_Request* request, bool* begun) {
  *begun = begun_ < values_.size();
  if (!*begun) return Status::Ok();
  const size_t count = std::min(kMpiPiece / sizeof(int64_t), values_.size() - begun_);
  int64_t* const values = values_.data() + std::exchange(begun_, begun_ + count);
  return MpiStatus("MPI_Iallreduce",
                   MPI_Iallreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_INT64_T, MPI_SUM, comm, request));
}

Status MpiBroadcast::Next(MPI_Comm comm, MPI_Request* request, bool* begun) {
  if (!std::exchange(has_length_, true)) {
    return MpiStatus("MPI_Ibcast", MPI_Ibcast(&length_, 1, MPI_UINT64_T, root_, comm, request), root_);
  }
  if (begun_ == 0) bytes_.resize(length_);
  *begun = begun_ < length_;
  if (!*begun) return Status::Ok();
  const size_t count = std::min(kMpiPiece, bytes_.size() - begun_);
  char* const bytes = bytes_.data() + std::exchange(begun_, begun_ + count);
  return MpiStatus("MPI_Ibcast", MPI_Ibcast(bytes, static_cast<int>(count), MPI_BYTE, root_, comm, request), root_);
}

MpiAllToAll::MpiAllToAll(int rank, std::span<const std::string> out, std::vector<std::string>* in,
                         std::vector<std::string>* copies)
    : rank_(static_cast<size_t>(rank)), in_lengths_(out.size()), zeros_(out.size()) {
  in_.swap(*in);
  in_.resize(out.size());
  out_.swap(*copies);
  out_.resize(out.size());
  for (size_t r = 0; r < out.size(); ++r) {
    (r == rank_ ? in_ : out_)[r] = out[r];
    out_lengths_.push_back(out[r].size());
  }
}

Status MpiAllToAll::Next(MPI_Comm comm, MPI_Request* request, bool* begun) {
  switch (step_) {
    case Step::kLengths:
      step_ = Step::kBytes;
      return MpiStatus("MPI_Ialltoall", MPI_Ialltoall(out_lengths_.data(), 1, MPI_UINT64_T, in_lengths_.data(), 1,
                                                      MPI_UINT64_T, comm, request));
    case Step::kBytes: step_ = Step::kEnd; return ExchangeBytes(comm, request);
    case Step::kEnd: *begun = false; break;
  }
  MR_TRY(FreeTypes(&out_types_));
  return FreeTypes(&in_types_);
}

Status MpiAllToAll::ExchangeBytes(MPI_Comm comm, MPI_Request* request) {
  const size_t size = out_.size();
  out_types_.resize(size, MPI_BYTE);
  in_types_.resize(size, MPI_BYTE);
  out_counts_.resize(size);
  in_counts_.resize(size);
  for (size_t r = 0; r < size; ++r) {
    if (r == rank_) continue;
    in_[r].resize(in_lengths_[r]);
    MR_TRY(MakeType(out_[r], &out_types_[r], &out_counts_[r]));
    MR_TRY(MakeType(in_[r], &in_types_[r], &in_counts_[r]));
  }
  // Not MPI_Ialltoallv, which needs all strings in one buffer and int displacements.
  return MpiStatus("MPI_Ialltoallw",
                   MPI_Ialltoallw(MPI_BOTTOM, out_counts_.data(), zeros_.data(), out_types_.data(), MPI_BOTTOM,
                                  in_counts_.data(), zeros_.data(), in_types_.data(), comm, request));
}

}  // namespace millrace
