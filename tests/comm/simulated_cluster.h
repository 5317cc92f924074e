#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace millrace {

/// What happens to the ranks of a simulation. Time is counted in events (SimulatedEvent).
struct SimulationOptions {
  /// Messages between the ranks of `one` and those of `other` wait from event `begin` to before event `end`, and so do
  /// collectives.
  struct Partition {
    std::vector<int> one;
    std::vector<int> other;
    int64_t begin = 0;
    int64_t end = 0;
  };
  /// Rank `rank`, by the number that it had at first, is lost at event `at`, if its body still runs then.
  struct Loss {
    int rank = 0;
    int64_t at = 0;
  };

  int size = 2;
  uint64_t seed = 0;
  /// A message is under way for 0 to so many events, as the seed decides.
  int64_t longest_delay = 0;
  std::vector<Partition> partitions = {};
  std::vector<Loss> losses = {};
  /// Bodies that go on for longer are stopped with a failure.
  int64_t most_events = 10'000'000;
};

/// What a simulation chose next.
struct SimulatedEvent {
  enum class Kind : uint8_t {
    kRun,      ///< rank `to` goes on
    kDeliver,  ///< a message of `from` goes to the receiver of `to`
    kMeet,     ///< a collective's bytes have arrived: of `from` at `to` in a broadcast, of all at all otherwise
    kLose,     ///< rank `to` is lost
    kTell,     ///< rank `to` learns that `from` is lost
    kShrink,   ///< those that are left begin anew
  };
  int64_t time = 0;
  Kind kind = Kind::kRun;
  int from = 0;
  int to = 0;
  uint32_t checksum = 0;  ///< of a message's bytes

  bool operator==(const SimulatedEvent&) const = default;
};

/// "17 deliver 0 to 1 (5a0c33f1)".
std::string ToString(const SimulatedEvent& event);

/// Ranks that are threads of which one runs at a time. A seed chooses which, and which message arrives next: the same
/// seed, options and bodies give the same events, and another seed may give another order of them. For tests.
///
/// Another rank or a message may be chosen whenever a body sends, waits, or calls a collective, and only there;
/// messages of a rank to another stay in order. Who runs calls the receivers of the others: between its calls a rank
/// takes no messages. The root of a broadcast goes on before the others have come. When a rank is lost its next call
/// fails; its messages that are under way may arrive, those to it do not; the others learn of it one by one, and go on
/// for a while.
///
/// Only a body's own thread, and a receiver, may use its communicator: another thread is refused with kInternal, and so
/// is a receiver that waits.
class SimulatedCluster {
 public:
  explicit SimulatedCluster(SimulationOptions options);
  ~SimulatedCluster();
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  /// Runs `body` as each rank, and returns when all have ended. Each run begins anew, with communicators of its own.
  ///
  /// kInternal when nobody could go on, although bodies waited: with who waited for what, and so do their calls. What a
  /// body throws is returned as a failure, too.
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
