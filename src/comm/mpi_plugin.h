#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "core/status.h"

namespace millrace {

/// Whether this process is one of several started by an MPI launcher (mpirun, srun with PMI, and so on).
bool StartedByLauncher();

/// How long Open MPI's launcher lets this rank's process live after it starts to end it, which happens if mpirun is
/// interrupted or another rank is lost: it sends SIGCONT at once, SIGTERM after half of this time and SIGKILL at its
/// end. Nullopt without Open MPI's launcher, or if SIGCONT resumes a suspended run (`orte_forward_job_control`).
std::optional<std::chrono::seconds> TimeBehindSigcont();

/// Creates the communicator of this process's rank. Initializes MPI, once per process, and waits for the other ranks,
/// up to MILLRACE_MPI_WAIT_SECONDS, or two minutes with mpirun --with-ft.
///
/// MPI is in a shared object, libmillrace_mpi.so, so training on one machine does not need it. It is searched next to
/// the program or Python's module, and in the adjacent lib folder; it stays loaded until the process ends. Settings of
/// Open MPI for ranks that share CPUs are added to the environment unless set; no other thread may read the environment
/// meanwhile.
///
/// Ranks end together: before destroying its communicator a rank calls Barrier, or has failed. A rank that ends earlier
/// is lost to the others, whose waiting calls then fail instead of blocking forever. The destructor waits until all
/// ranks are in theirs; messages sent before have arrived then, and are dropped without a receiver.
///
/// Fails with kNotFound if the shared object or MPI is not installed, naming what to install; kInvalidConfig for
/// another version of Millrace, or MPI of another kind than the launcher's; otherwise like MpiCommunicator::Create.
Result<std::unique_ptr<Communicator>> OpenMpi();

/// The same for the shared object `path`, with the same failures.
Result<std::unique_ptr<Communicator>> OpenMpiPlugin(const std::string& path);

}  // namespace millrace
