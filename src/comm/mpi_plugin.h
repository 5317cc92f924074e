#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "core/status.h"

namespace millrace {

/// Whether this process is one of several that a launcher of MPI started: mpirun, srun with PMI, or the like.
bool StartedByLauncher();

/// How long Open MPI's launcher lets this process, a rank of its own, live once it has begun to end it, as it does when
/// mpirun is interrupted or another rank is lost: it sends SIGCONT at once, SIGTERM after half of that time and SIGKILL
/// at its end. Nothing where no launcher of Open MPI started this process, and where `orte_forward_job_control` says
/// that SIGCONT lets a suspended run go on.
std::optional<std::chrono::seconds> TimeBehindSigcont();

/// The rank that this process is. It begins MPI, which a process does once; waits for the other ranks to begin, no
/// longer than MILLRACE_MPI_WAIT_SECONDS says, or two minutes with mpirun --with-ft.
///
/// MPI is in a shared object, libmillrace_mpi.so, so that who trains on one machine needs none. It is looked for beside
/// the program, or Python's module, and in the lib folder beside that one's; it stays loaded until the process ends.
/// Settings of Open MPI that ranks need which share processors are put into the environment, where it does not say
/// otherwise: no other thread may read the environment meanwhile.
///
/// Ranks end together: before it destroys its communicator a rank calls Barrier, or has failed. A rank that goes
/// earlier is lost to the others, which then fail in the calls that wait, and need not wait for ever. The destructor
/// waits until all ranks are in theirs; what was sent before has arrived then, and is dropped where no receiver took
/// it.
///
/// kNotFound when the shared object or MPI is not installed, with what to install; kInvalidConfig when it is of another
/// version of Millrace, or its MPI is not the launcher's; kUnavailable when MPI cannot begin, or
/// other ranks do not.
Result<std::unique_ptr<Communicator>> OpenMpi();

/// The same of a shared object that is named.
Result<std::unique_ptr<Communicator>> OpenMpiPlugin(const std::string& path);

}  // namespace millrace
