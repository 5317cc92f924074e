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

/// Sends and receives messages of any length through an MPI communicator that has nothing else in it. Never blocks.
///
/// A long message is cut into pieces. Those from one rank arrive in order, since MPI keeps the order of what is sent
/// from one rank to another. One thread, the one that may call MPI. Failures of MPI come back and are final.
class MpiMessages {
 public:
  /// The last thing that is heard of a rank.
  struct Farewell {
    int64_t collectives = 0;  ///< that it has been in
    int64_t missed = -1;      ///< the rank that left it in the lurch, -1 when it goes of itself
  };
  struct Arrival {
    int from = 0;
    std::string bytes;
    std::optional<Farewell> farewell;  ///< in place of bytes
  };

  MpiMessages(MPI_Comm comm, int size);

  Status Send(int to, std::string message);
  Status Send(int to, const Farewell& farewell);
  /// Carries on with what is under way, and puts what has arrived behind `arrivals`. True in `moved` when anything
  /// happened.
  Status Poll(std::vector<Arrival>* arrivals, bool* moved);
  /// Whether bytes are on their way, which only move while MPI is called.
  bool are_bytes_moving() const { return receiving_ > 0 || !sending_.empty(); }
  /// Whether all that was sent has left.
  bool all_sent() const { return sending_.empty(); }

 private:
  struct Sending {
    int to = 0;
    std::string bytes;
    uint64_t length = 0;  ///< what the announcement of a long message consists of
    std::vector<MPI_Request> requests;
  };
  struct Receiving {
    int tag = 0;
    std::string bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  struct Source {
    std::deque<Receiving> receiving;  ///< in the order of sending
    uint64_t announced = 0;           ///< the length of a message whose pieces come
    std::string pieces;
  };

  Status Start(Sending* sending, int tag, const char* bytes, size_t length);
  /// Posts a receive for whatever has come to the door.
  Status Receive(bool* moved);
  Status Finish(int from, std::vector<Arrival>* arrivals, bool* moved);
  void Take(int from, Receiving received, std::vector<Arrival>* arrivals);

  const MPI_Comm comm_;
  std::list<Sending> sending_;
  std::vector<Source> sources_;  ///< by rank
  size_t receiving_ = 0;         ///< receives that are posted
};

}  // namespace millrace
