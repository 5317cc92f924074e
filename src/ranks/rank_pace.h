#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <stop_token>
#include <vector>

#include "core/status.h"
#include "ranks/rank_calls.h"

namespace millrace {

/// What ranks that train at their own pace (dist { update: ASYNC | SSP }) know of each other: how many batches each has
/// trained in the pass, which of them are through with it, and when all are to stand still together.
///
/// Ranks stand still at a *meeting*: when one of them calls it, for a checkpoint, an evaluation, a stop or a failure,
/// or when all are through with the pass. Every rank then lets its workers end their batches and comes to Meet.
///
/// Costs a message to each rank after a batch, with kEveryBatch; otherwise a few messages a second. `calls` outlives
/// it.
class RankPace {
 public:
  enum class Tell {
    kNowAndThen,  ///< for the progress of all
    kEveryBatch,  ///< ranks wait for each other
  };
  struct Events {
    /// A meeting is due. Called once for each meeting or more, by any thread; must be quick, and call nothing here.
    std::function<void()> on_due;
    /// Other ranks trained so many batches and examples more in this pass. By any thread, and by Meet; must be quick,
    /// and may Call the next meeting.
    std::function<void(int64_t batches, int64_t examples)> on_others;
  };

  RankPace(RankCalls& calls, Tell tell, Events events);
  ~RankPace();
  RankPace(const RankPace&) = delete;
  RankPace& operator=(const RankPace&) = delete;

  /// Before any rank trains in `pass`: a collective comes between this and the first batch. No rank has trained in it.
  /// At first ranks take turns, one for each of them: of `turn` batches, or 0.
  void StartPass(int64_t pass, int64_t turn);

  // Workers.

  /// Whether ranks still take turns.
  bool takes_turns() const;
  /// Whether the batch in hand is the last one of this rank's turn.
  bool EndsTurn() const;
  /// Batches that this rank has trained in the pass.
  int64_t batches() const;
  /// Waits until those before this rank have had their turns, or, behind its own, until all have.
  Status WaitForTurn(const std::stop_token& stop);
  /// This rank's turn is over, though it has not trained all of its batches: there are no more.
  void EndTurn();
  /// Waits until all have had their turns.
  Status WaitForEndOfTurns(const std::stop_token& stop);

  /// This rank has trained another batch.
  Status Trained(int64_t examples);
  /// Waits while a rank that is not through with the pass is more than `ahead` batches behind this one.
  Status WaitForOthers(int64_t ahead, const std::stop_token& stop);

  // Any thread.

  /// Calls a meeting of all ranks; those that are called meanwhile are the same one.
  void Call();
  bool is_due() const;

  // The thread that coordinates this rank's workers.

  /// This rank is through with the pass. To be called again while it waits for others, of which one may be lost.
  Status End();
  /// A meeting, while no worker of this rank trains. A collective of all ranks: each of `sums` becomes the sum over
  /// them. Afterwards on_others has told all that others trained. True when all are through with the pass.
  Result<bool> Meet(std::span<int64_t> sums);

 private:
  struct Clock {
    int64_t batches = 0;
    int64_t examples = 0;
    bool has_ended_turn = false;
    int64_t ended_pass = -1;  ///< the last pass that the rank was through with
  };
  enum class What : uint8_t { kCall, kEndTurn, kEnd, kClock };
  struct Message {
    What what = What::kClock;
    int64_t number = 0;  ///< of the meeting or of the pass
    int64_t batches = 0;
    int64_t examples = 0;
  };

  int rank() const { return calls_->communicator().rank(); }
  /// Waits for `may_go`, which is asked with mutex_ held, or a stop.
  template <class MayGo>
  Status WaitUntil(const MayGo& may_go, const std::stop_token& stop);
  bool HasHadTurn(size_t rank) const;
  bool TakesTurns() const;
  Status TellOthers(const Message& message);
  void Take(int from, const Message& message);
  bool IsDue() const;
  /// Takes over how far a rank is; what it has trained more.
  Message Advance(int rank, int64_t batches, int64_t examples);

  RankCalls* calls_;
  const Tell tell_;
  const Events events_;
  mutable std::mutex mutex_;
  std::vector<Clock> clocks_;  ///< by rank
  int64_t pass_ = -1;
  int64_t turn_ = 0;
  int64_t meeting_ = 0;       ///< the number of the next one
  int64_t called_ = -1;       ///< the last one that was called
  int64_t called_here_ = -1;  ///< by this rank
  int64_t last_told_ = 0;     ///< nanoseconds
};

}  // namespace millrace
