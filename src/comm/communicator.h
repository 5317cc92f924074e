#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// Takes the messages that come to a rank. Called by one thread, which must not wait for another rank in it.
class MessageReceiver {
 public:
  virtual ~MessageReceiver() = default;
  /// `message` is the receiver's to keep.
  virtual void OnMessage(int from, std::string message) = 0;
};

/// The way from one rank of a job to the others. A rank is a process, in tests also a thread; it has one object.
///
/// Ranks that a launcher started talk through an MPI plugin (comm/mpi_plugin.h). A job without a launcher has one rank
/// (comm/solo_communicator.h). In tests ranks are threads (tests/comm).
///
/// Nothing is encrypted and nobody is asked who he is: ranks trust their network.
///
/// When a rank is lost, every call that waits and every later one returns kUnavailable, which names the rank. Those
/// that are left may go on by themselves: Shrink.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Messages: any thread, while others wait.

  /// Who takes the messages of this rank; they wait until it is there. It is called with those that wait before this
  /// returns or by the communicator's thread, one at a time. Null: they wait again; the old one is not called any more
  /// when this returns.
  virtual void SetReceiver(MessageReceiver* receiver) = 0;
  /// Sends `message` to rank `to`, which may be this one, and returns before it has arrived. Messages from one rank to
  /// another arrive in their order. One of any length is allowed; it costs a copy.
  virtual Status Send(int to, std::string message) = 0;
  /// Waits until `done` says so. It is asked at once, and after each message that the receiver of this rank took, never
  /// while that runs; it must be quick and wait for nothing.
  virtual Status WaitUntil(const std::function<bool()>& done) = 0;

  // Collectives: every rank calls the same, in the same order, one thread at a time. Messages come meanwhile.

  /// Sends out[r] to each rank r, and gives in (*in)[r] what r sent here. `out` has size() strings; those of `in` keep
  /// their capacity.
  virtual Status AllToAll(std::span<const std::string> out, std::vector<std::string>* in) = 0;
  /// Each value becomes the sum of this value over all ranks. All ranks have as many.
  virtual Status SumOverRanks(std::span<int64_t> values) = 0;
  /// `bytes` of rank `root` goes to all others.
  virtual Status Broadcast(int root, std::string* bytes) = 0;
  /// Returns when every rank has called it.
  virtual Status Barrier() = 0;

  /// Becomes the communicator of the ranks that are left when some were lost: they keep their order, so that rank() and
  /// size() change, and messages that nobody took are dropped. A collective of those that are left; one that is lost
  /// meanwhile is left out, too. Nothing of a rank may use its communicator meanwhile: no receiver, no other thread.
  ///
  /// Fails with what the other calls fail with, or with kInternal where nobody was lost, when the ranks cannot go on.
  /// Those of MPI can with User Level Failure Mitigation, which Open MPI 5 has under `mpirun --with-ft ulfm`.
  virtual Status Shrink() = 0;

  /// Bytes that this rank has sent to others so far, in messages and collectives, without headers of the network.
  virtual int64_t bytes_sent() const = 0;
};

}  // namespace millrace
