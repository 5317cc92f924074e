#include "comm/mpi/mpi_call.h"

#include <array>
#include <string>

namespace millrace {

Status MpiStatus(const char* call, int error, int peer) {
  if (error == MPI_SUCCESS) return Status::Ok();
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(error, text.data(), &length) != MPI_SUCCESS) length = 0;
  return Unavailable((peer >= 0 ? "rank " + std::to_string(peer) + " cannot be reached: " : "") + std::string(call) +
                     " failed: " + std::string(text.data(), static_cast<size_t>(length)) + " (error " +
                     std::to_string(error) + ")");
}

}  // namespace millrace
