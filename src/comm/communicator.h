#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// Receives the messages for a rank. Called by one thread, which must not wait for another rank in it.
class MessageReceiver {
 public:
  virtual ~MessageReceiver() = default;
  /// The receiver can keep `message`.
  virtual void OnMessage(int from, std::string message) = 0;
};

/// Connects one rank of a job to the others. A rank is a process, in tests also a thread; it has one communicator.
///
/// Ranks started by a launcher use an MPI plugin (comm/mpi_plugin.h). A job without a launcher has one rank
/// (comm/solo_communicator.h). In tests ranks are threads (tests/comm).
///
/// There is no encryption or authentication: ranks trust their network.
///
/// When a rank is lost, every waiting call and every later one fails with kUnavailable, naming the rank. The remaining
/// ranks may continue with Shrink. A detected violation of the rules below, such as ranks calling different
/// collectives, fails with kInternal.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Messages: any thread, while others wait.

  /// Sets the receiver of this rank; messages queue until it is set. Queued messages are delivered before this returns
  /// or by the communicator's thread, one at a time. Null: messages queue again, and the old receiver is not called
  /// after this returns.
  virtual void SetReceiver(MessageReceiver* receiver) = 0;
  /// Sends `message`, of any length, to rank `to`, which can be this one, and returns before it arrives. Messages
  /// between two ranks stay in order. Costs a copy. Fails with kInternal for a rank that does not exist, otherwise as
  /// stated for the class.
  virtual Status Send(int to, std::string message) = 0;
  /// Waits until `done` returns true. It is called immediately and after each message handled by this rank's receiver,
  /// never concurrently with it; it must be fast and must not block. Fails as stated for the class.
  virtual Status WaitUntil(const std::function<bool()>& done) = 0;

  // Collectives: every rank calls the same one, in the same order, one thread at a time. Messages arrive meanwhile.
  // They fail as stated for the class.

  /// Sends out[r] to each rank r, and stores in (*in)[r] what r sent here. `out` has size() strings (kInternal
  /// otherwise); strings of `in` keep their capacity.
  virtual Status AllToAll(std::span<const std::string> out, std::vector<std::string>* in) = 0;
  /// Replaces each value by its sum over all ranks, which pass the same number of values.
  virtual Status SumOverRanks(std::span<int64_t> values) = 0;
  /// Copies `bytes` of rank `root` to all others.
  virtual Status Broadcast(int root, std::string* bytes) = 0;
  /// Returns when every rank has called it.
  virtual Status Barrier() = 0;

  /// Becomes the communicator of the remaining ranks after some were lost. They keep their order, so rank() and size()
  /// change; undelivered messages are dropped. A collective of the remaining ranks; a rank lost meanwhile is also
  /// excluded. Nothing may use a rank's communicator meanwhile: no receiver, no other thread.
  ///
  /// Fails with the failure of the other calls if the ranks cannot continue, kInternal if no rank was lost. MPI needs
  /// User Level Failure Mitigation, available in Open MPI 5 with `mpirun --with-ft ulfm`.
  virtual Status Shrink() = 0;

  /// Bytes this rank has sent to others in messages and collectives, without network headers.
  virtual int64_t bytes_sent() const = 0;
};

}  // namespace millrace
