#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "core/status.h"
#include "core/wire.h"

namespace millrace {

/// What ranks ask each other for. One object of each rank answers to each.
enum class RankService : uint8_t {
  kTables,   ///< rows of tables: RankTables
  kFiles,    ///< the next file to read
  kDense,    ///< dense parameters
  kMeeting,  ///< when all ranks stand still
  kScript,   ///< what ranks of a script call together
  kEnd,      ///< the end of what all do: GroupCancellation
  kCount
};

/// Requests from rank to rank, and the answers, over the messages of a communicator.
///
/// Any thread may ask. Requests are answered by the communicator's thread, one at a time. Costs a message and one back
/// for each rank asked. The communicator outlives it.
class RankCalls final : public MessageReceiver {
 public:
  /// Appends the answer to a request of rank `from` to `answer`; a failure goes back in its place. Must not wait for
  /// another rank, nor call Serve.
  using Answer = std::function<Status(int from, std::string_view request, std::string* answer)>;

  /// Requests that are under way. Belongs to one thread, and lives until Wait has returned.
  class Call {
   public:
    Call() = default;
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    /// Whether nothing is under way: all have answered, or none was asked.
    bool is_over() const { return open_.load(std::memory_order_acquire) == 0; }

   private:
    friend class RankCalls;
    uint64_t number_ = 0;
    std::atomic<int> open_{0};
    std::vector<std::optional<std::string>> answers_;  ///< by rank, as they came; none: was not asked
  };

  explicit RankCalls(Communicator& communicator);
  ~RankCalls() override;
  RankCalls(const RankCalls&) = delete;
  RankCalls& operator=(const RankCalls&) = delete;

  Communicator& communicator() const { return *communicator_; }

  /// From now on `answer` answers to `service`. Null: nobody does, and the last one is not called any more when this
  /// returns. A request to nobody is kNotFound where it is asked.
  void Serve(RankService service, Answer answer);

  /// Asks each rank r whose requests[r] has a value, without waiting, and takes what these strings hold. `call` is over
  /// when this begins.
  Status Begin(RankService service, std::span<std::optional<std::string>> requests, Call* call);
  /// Waits for the answers of `call`: (*answers)[r] is what rank r answered, empty where it was not asked, until `call`
  /// begins again. The first failure comes back, with its rank; kCancelled when a stop request ends the wait.
  Status Wait(Call* call, std::vector<std::string_view>* answers, const std::stop_token& stop = {});
  /// Both; the answers are copies.
  Status Ask(RankService service, std::vector<std::optional<std::string>> requests, std::vector<std::string>* answers,
             const std::stop_token& stop = {});
  /// Waits until `done` says so (Communicator::WaitUntil), or for a stop request.
  Status WaitUntil(const std::function<bool()>& done, const std::stop_token& stop);
  /// Lets those who wait look again. Any thread.
  void Wake();
  /// Asks rank `to` and wants no answer; a failure there is lost.
  Status Tell(int to, RankService service, std::string message);

  void OnMessage(int from, std::string message) override;

 private:
  void AnswerTo(int from, uint64_t number, WireReader request);

  Communicator* communicator_;
  std::mutex services_mutex_;  ///< held while one of them answers
  std::array<Answer, static_cast<size_t>(RankService::kCount)> services_;
  std::mutex calls_mutex_;
  std::map<uint64_t, Call*> calls_;
  uint64_t next_call_ = 1;  ///< 0: no answer is wanted
};

}  // namespace millrace
