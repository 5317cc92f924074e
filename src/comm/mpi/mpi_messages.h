#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"

namespace millrace {

/// Sends and receives messages of any length over a dedicated MPI communicator. Never blocks.
///
/// Long messages are split into pieces. Messages from one rank arrive in order, because MPI preserves it. Used by the
/// one thread that may call MPI. Functions fail like MpiStatus; such failures are final.
class MpiMessages {
 public:
  /// The last message of a rank.
  struct Farewell {
    int64_t collectives = 0;  ///< number of collectives it joined
    int64_t missed = -1;      ///< the lost rank that made it leave; -1: it leaves regularly
  };
  struct Arrival {
    int from = 0;
    std::string bytes;
    std::optional<Farewell> farewell;  ///< instead of bytes
  };

  MpiMessages(MPI_Comm comm, int size);

  Status Send(int to, std::string message);
  Status Send(int to, const Farewell& farewell);
  /// Makes progress and appends received messages to `arrivals`. Sets `moved` if anything happened.
  Status Poll(std::vector<Arrival>* arrivals, bool* moved);
  /// Whether data is in transit, which progresses only while MPI is called.
  bool are_bytes_moving() const { return receiving_ > 0 || !sending_.empty(); }
  /// Whether everything sent has left.
  bool all_sent() const { return sending_.empty(); }

 private:
  struct Sending {
    int to = 0;
    std::string bytes;
    uint64_t length = 0;  ///< content of the announcement of a long message
    std::vector<MPI_Request> requests;
  };
  struct Receiving {
    int tag = 0;
    std::string bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  struct Source {
    std::deque<Receiving> receiving;  ///< in sending order
    uint64_t announced = 0;           ///< length of a message whose pieces are arriving
    std::string pieces;
  };

  Status Start(Sending* sending, int tag, const char* bytes, size_t length);
  /// Posts a receive for each arriving message.
  Status Receive(bool* moved);
  Status Finish(int from, std::vector<Arrival>* arrivals, bool* moved);
  void Take(int from, Receiving received, std::vector<Arrival>* arrivals);

  const MPI_Comm comm_;
  std::list<Sending> sending_;
  std::vector<Source> sources_;  ///< by rank
  size_t receiving_ = 0;         ///< number of posted receives
};

}  // namespace millrace
