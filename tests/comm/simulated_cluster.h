#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace millrace {

/// Settings of a simulation. Time is counted in events (SimulatedEvent).
struct SimulationOptions {
  /// From event `begin` until `end`, messages and collectives between the ranks of `one` and those of `other` wait.
  struct Partition {
    std::vector<int> one;
    std::vector<int> other;
    int64_t begin = 0;
    int64_t end = 0;
  };
  /// Loses rank `rank`, given by its initial number, at event `at`, if its body still runs.
  struct Loss {
    int rank = 0;
    int64_t at = 0;
  };

  int size = 2;
  uint64_t seed = 0;
  /// Maximum delay of a message in events; the seed chooses from 0.
  int64_t longest_delay = 0;
  std::vector<Partition> partitions = {};
  std::vector<Loss> losses = {};
  /// Longer runs are stopped with a failure.
  int64_t most_events = 10'000'000;
};

/// A scheduling decision of the simulation.
struct SimulatedEvent {
  enum class Kind : uint8_t {
    kRun,      ///< rank `to` runs
    kDeliver,  ///< a message of `from` reaches the receiver of `to`
    kMeet,     ///< a collective's data arrives: from `from` at `to` in a broadcast, from all at all otherwise
    kLose,     ///< rank `to` is lost
    kTell,     ///< rank `to` notices the loss of `from`
    kShrink,   ///< the remaining ranks restart
  };
  int64_t time = 0;
  Kind kind = Kind::kRun;
  int from = 0;
  int to = 0;
  uint32_t checksum = 0;  ///< checksum of a message

  bool operator==(const SimulatedEvent&) const = default;
};

/// "17 deliver 0 to 1 (5a0c33f1)".
std::string ToString(const SimulatedEvent& event);

/// Ranks as threads, of which one runs at a time. A seed chooses the rank to run and the next message to arrive: the
/// same seed, options and bodies give the same events, and another seed can give another order. For tests.
///
/// Scheduling happens only when a body sends, waits, or calls a collective; messages between two ranks stay in order.
/// The running rank calls the receivers of the others: between its calls a rank receives nothing. The root of a
/// broadcast continues before the others have joined. After a rank is lost, its next call fails. Messages it sent can
/// still arrive, messages to it do not. The others notice one by one and continue until then.
///
/// Only a body's thread, and a receiver, can use its communicator: another thread, or a receiver that waits, fails with
/// kInternal.
class SimulatedCluster {
 public:
  explicit SimulatedCluster(SimulationOptions options);
  ~SimulatedCluster();
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  /// Runs `body` as each rank, and returns when all have ended. Each run starts new, with new communicators.
  ///
  /// Fails with kInternal if all bodies wait (a deadlock; the message lists who waits for what, and their calls fail
  /// likewise), if the run exceeds most_events, or for a size below 1; with the converted exception if a body throws.
  Status Run(const std::function<void(Communicator&)>& body);

  /// The events of the last run.
  const std::vector<SimulatedEvent>& events() const { return events_; }

 private:
  class Simulation;
  class Rank;
  const SimulationOptions options_;
  std::vector<SimulatedEvent> events_;
};

}  // namespace millrace
