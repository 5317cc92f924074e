// The exported symbols of the shared object; all others are hidden.
#include <memory>
#include <string>

#include "comm/mpi/exported.h"
#include "comm/mpi/mpi_communicator.h"

extern "C" {

[[gnu::visibility("default")]] const char* millrace_mpi_tag() {
  static const std::string tag = millrace::MpiTag();
  return tag.c_str();
}

[[gnu::visibility("default")]] void millrace_mpi_open(std::unique_ptr<millrace::Communicator>* communicator,
                                                      millrace::Status* status) {
  millrace::Result<std::unique_ptr<millrace::Communicator>> made = millrace::MpiCommunicator::Create();
  *status = made.status();
  if (made.ok()) *communicator = std::move(made).value();
}

}  // extern "C"
