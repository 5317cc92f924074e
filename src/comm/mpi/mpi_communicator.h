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

/// The rank of this process among those started by an MPI launcher.
///
/// One thread makes all MPI calls, from MPI_Init_thread to MPI_Finalize, none of them blocking, and calls the receiver.
/// Its work is queued. When idle it first polls, then yields, then sleeps for up to 0.2 ms at a time; queuing work
/// wakes it. While data is in transit, which progresses only while MPI is called, it yields for longer.
///
/// Ranks end together: the destructor announces the end to the others, waits for all, and finalizes MPI. After a lost
/// rank it does not, and the process should end. A rank counts as lost if it has left while others wait for messages or
/// for a collective it did not join.
class MpiCommunicator : public Communicator {
 public:
  /// Initializes MPI, once per process, and waits for the other ranks, up to MILLRACE_MPI_WAIT_SECONDS, or two minutes
  /// with mpirun --with-ft. Fails with kUnavailable if MPI or the other ranks do not start (the process should then
  /// end), kInvalidConfig for an invalid setting or if other code initialized MPI, kInternal the second time.
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
  /// A collective and its waiting caller.
  struct Call {
    explicit Call(std::shared_ptr<MpiCollective> c) : collective(std::move(c)) {}
    std::shared_ptr<MpiCollective> collective;
    std::optional<Status> ended;  ///< under mutex_
  };

  MpiCommunicator() = default;

  Status RunCollective(std::shared_ptr<MpiCollective> collective);

  // Run by the MPI thread.
  void Serve();
  Status Begin();
  /// Starts with the ranks of comms_.
  Status Enter();
  /// Implements Shrink on the MPI thread; returns `failure` if that is impossible.
  Status EnterWithWhoIsLeft(const Status& failure);
  /// Does all possible work and reports whether there was any.
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

  std::optional<std::chrono::seconds> longest_wait_;  ///< for other ranks, during start and end of MPI
  int rank_ = 0;
  int size_ = 1;
  std::atomic<int64_t> bytes_sent_{0};
  std::vector<std::string> copies_;  ///< for AllToAll, which one thread at a time calls
  Inbox inbox_;
  /// By rank: the rank responsible for its leaving; kIsHere while present. Null before MPI starts.
  std::unique_ptr<std::atomic<int>[]> blamed_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable begun_or_ended_;
  std::condition_variable wake_;
  bool is_awake_ = false;  ///< the thread was asked to look for work
  bool is_ending_ = false;
  bool is_to_shrink_ = false;
  std::optional<Status> begun_;
  std::optional<Status> shrunk_;
  std::deque<Message> messages_;
  std::shared_ptr<Call> next_call_;

  // Used only by the MPI thread.
  MPI_Comm world_ = MPI_COMM_NULL;  ///< the members below are copies of it
  std::array<MPI_Comm, 3> comms_ = {MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL};
  std::unique_ptr<MpiMessages> transport_;
  std::vector<std::unique_ptr<MpiMessages>> left_behind_;  ///< of earlier worlds; MPI can still write to their buffers
  std::shared_ptr<Call> call_;
  std::vector<std::shared_ptr<MpiCollective>> given_up_;  ///< MPI can still write to their buffers
  int64_t calls_ = 0;                                     ///< number of started collectives
  int missed_ = -1;                                       ///< the rank whose loss this one fails for
  std::vector<int> left_;                                 ///< ranks that have left
  std::vector<int64_t> calls_of_left_;                    ///< by rank: the collectives it joined before leaving
  std::vector<MpiMessages::Arrival> arrivals_;
  bool is_broken_ = false;  ///< MPI is no longer called
  Clock::time_point last_work_;
  std::chrono::microseconds nap_{0};

  std::jthread thread_;  ///< last member: ends before what it uses
};

}  // namespace millrace
