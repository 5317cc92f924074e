#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/inbox.h"
#include "comm/mpi/mpi_collective.h"
#include "comm/mpi/mpi_messages.h"
#include "core/status.h"

namespace millrace {

/// The rank that this process is among those that a launcher of MPI started.
///
/// One thread makes all calls of MPI, from MPI_Init_thread to MPI_Finalize, none of which blocks, and calls the
/// receiver. What it is to do waits in a queue. While there is nothing to do it looks for messages without a pause,
/// then yields, then sleeps for up to 0.2 ms at a time; who queues something wakes it. While bytes are on their way,
/// which only move while MPI is called, it yields for longer.
///
/// Ranks end together: the destructor tells the others that this one goes, waits until all of them go, and finalizes
/// MPI, but where ranks were lost: then the process should end. A rank is lost to those that wait for messages when it
/// goes, or for a collective that it had no part in.
class MpiCommunicator : public Communicator {
 public:
  /// Begins MPI, once a process. Waits for the other ranks to do so, no longer than MILLRACE_MPI_WAIT_SECONDS says, or
  /// two minutes with mpirun --with-ft; where they do not, kUnavailable, and the process should end.
  static Result<std::unique_ptr<Communicator>> Create();
  ~MpiCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void SetReceiver(MessageReceiver* receiver) override;
  Status Send(int to, std::string message) override;
  Status WaitUntil(const std::function<bool()>& done) override { return inbox_.WaitUntil(done); }
  Status AllToAll(std::span<const std::string> out, std::vector<std::string>* in) override;
  Status SumOverRanks(std::span<int64_t> values) override;
  Status Broadcast(int root, std::string* bytes) override;
  Status Barrier() override;
  Status Shrink() override;
  int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Message {
    int to;
    std::string bytes;
  };
  /// A collective and who waits for it.
  struct Call {
    explicit Call(std::shared_ptr<MpiCollective> c) : collective(std::move(c)) {}
    std::shared_ptr<MpiCollective> collective;
    std::optional<Status> ended;  ///< under mutex_
  };

  MpiCommunicator() = default;

  Status RunCollective(std::shared_ptr<MpiCollective> collective);

  // Of the thread.
  void Serve();
  Status Begin();
  /// Begins with the ranks of comms_.
  Status Enter();
  /// Shrink, as MPI's thread does it; `failure` comes back where that cannot be.
  Status EnterWithWhoIsLeft(const Status& failure);
  /// Does all that can be done now, and says whether there was anything.
  Status Work(bool* moved);
  Status TakeOrders(bool* moved);
  Status TakeArrivals(bool* moved);
  Status CarryOnCall(bool* moved);
  void MissWhoLeft();
  void Rest();
  void WorkUntil(const std::function<bool()>& done);
  Status End();
  void Fail(const Status& status);
  void EndCall(Status status);

  std::optional<std::chrono::seconds> longest_wait_;  ///< for the other ranks, while MPI begins and ends
  int rank_ = 0;
  int size_ = 1;
  std::atomic<int64_t> bytes_sent_{0};
  std::vector<std::string> copies_;  ///< of AllToAll, which one thread at a time calls
  Inbox inbox_;
  /// By rank: who is to blame that it has left, kIsHere while it has not. Null before MPI has begun.
  std::unique_ptr<std::atomic<int>[]> blamed_;

  std::mutex mutex_;  // of what follows
  std::condition_variable begun_or_ended_;
  std::condition_variable wake_;
  bool is_awake_ = false;  ///< somebody wants the thread to look around
  bool is_ending_ = false;
  bool is_to_shrink_ = false;
  std::optional<Status> begun_;
  std::optional<Status> shrunk_;
  std::deque<Message> messages_;
  std::shared_ptr<Call> next_call_;

  // Of the thread alone.
  MPI_Comm world_ = MPI_COMM_NULL;  ///< of which those that follow are copies
  std::array<MPI_Comm, 3> comms_ = {MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL};
  std::unique_ptr<MpiMessages> transport_;
  std::vector<std::unique_ptr<MpiMessages>> left_behind_;  ///< of worlds before; MPI may still write to their buffers
  std::shared_ptr<Call> call_;
  std::vector<std::shared_ptr<MpiCollective>> given_up_;  ///< MPI may still write to their buffers
  int64_t calls_ = 0;                                     ///< collectives that have begun
  int missed_ = -1;                                       ///< the rank that this one fails for
  std::vector<int> left_;                                 ///< ranks that have left
  std::vector<int64_t> calls_of_left_;                    ///< by rank: the collectives it has been in by then
  std::vector<MpiMessages::Arrival> arrivals_;
  bool is_broken_ = false;  ///< MPI is not called any more
  Clock::time_point last_work_;
  std::chrono::microseconds nap_{0};

  std::jthread thread_;  ///< last, so that it ends before what it uses
};

}  // namespace millrace
