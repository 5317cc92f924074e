#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/wire.h"
#include "ranks/rank_group.h"
#include "runtime/executable.h"
#include "runtime/scope.h"
#include "runtime/tensor.h"

namespace millrace {

/// How ranks that train at their own pace (dist { update: ASYNC | SSP }) share what is not in tables: parameters, what
/// optimizers keep beside them, statistics.
///
/// Every rank trains on a copy. The values of all copies lie in a row, of which each rank owns a part and holds what
/// all ranks have made of it. From time to time a rank tells each owner how its copy has moved, and is told how the
/// others' have. So a rank sees the others' updates late by the batches between two exchanges, and none is lost:
///
///     owner: shared += weight * moved        rank: copy += shared - (what this rank knew of it)
///
/// For parameters, and for what optimizers sum up, the weight is 1 with two ranks, whose updates then add up as those
/// of the workers of one process do (Hogwild), and 2 / trainers with more: whole updates of many, made from the same
/// parameters, overshoot. It is 1 / trainers for the rest, running means among them, and 1 for what the program counts:
/// int64, and float32 that it adds to.
///
/// What the weight leaves of a parameter's moves is held back, and comes little by little with the next exchanges of
/// all ranks: 1 / (5 trainers) of it with each. So all that was learnt arrives, as in one process. Where ranks together
/// moved too far, they move back before the rest has come, and that cancels it. Not so with optimizers that scale their
/// steps (adam and its like): these do not get shorter on the way back. With more than two ranks they have the weight
/// 1 / trainers, and nothing is held back.
///
/// Where ranks stand still (Settle), what parameters have moved since the last exchange comes with the weight 1 / the
/// ranks that moved the value, if that is less: their mean. What the last exchange brought is brought down to that,
/// too, but for the share of the batches until the next one that have been trained on it. A sum of moves overshoots, as
/// each rank has moved the whole way by itself; training on it corrects that, and what is evaluated and saved here
/// would be without.
///
/// Small variables, biases and output layers as a rule, go more often than large ones: they decide how far predictions
/// are off as a whole, turn round within few batches, and cost next to nothing.
///
/// An exchange costs twice the bytes of the values that go with it, but for this rank's part; in memory two copies of
/// the values, and of the part two for each rank.
///
/// Step is for one worker of a rank, Settle for the thread that coordinates them while they stand still; other ranks'
/// exchanges are answered on the communicator's thread meanwhile. kUnavailable when a rank is lost, kInternal for one
/// that sends other values than it should.
class DenseExchange {
 public:
  struct Options {
    int every = 1;                         ///< batches of this rank between the beginnings of two exchanges
    int parameters_every = 1;              ///< batches between two that have all parameters, not small variables alone
    int rest_every = 1;                    ///< exchanges of parameters for one that has the rest, too
    size_t small = 4096;                   ///< values that a small variable has at most
    size_t all_small = 65536;              ///< and small ones together: the smallest of all
    WireFloat wire = WireFloat::kFloat32;  ///< what 16 bits cut off travels with the next exchange
    std::vector<std::string> counters = {};  ///< what CountersOf finds
  };

  /// For the variables that `step` writes and that outlive a batch, in `root`. kInvalidConfig for one of another type
  /// than float32 and int64. What is given outlives the object. A collective is not needed.
  static Result<std::unique_ptr<DenseExchange>> Create(const Executable& step, Scope& root, RankGroup& ranks,
                                                       const Options& options);
  ~DenseExchange();
  DenseExchange(const DenseExchange&) = delete;
  DenseExchange& operator=(const DenseExchange&) = delete;

  /// Takes the values as they are, which are the same on all ranks, for what all share. Before any rank trains: a
  /// collective comes between this and the first batch.
  void Start();
  /// After a batch, by one worker of this rank: takes what has come, and begins an exchange when one is due. Waits for
  /// nothing.
  Status Step();
  /// Until what the last Step began is over, and takes it.
  Status Wait() { return is_under_way_ ? TakeAnswers() : Status::Ok(); }
  /// A whole exchange, by one worker of this rank; waits for its end.
  Status ExchangeNow();
  /// Makes the values the same on all ranks, with all that each has done. A collective, while no worker trains.
  Status Settle();

 private:
  /// What the row consists of, one behind the other; an exchange has the first ones.
  enum Section : uint8_t { kSmall, kParameters, kRest };
  static constexpr size_t kSections = 3;
  /// Values [begin, end) of the row.
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };
  enum class Kind : uint8_t {
    kOther,
    kParameter,
    kScaledParameter,  ///< its steps are as long however small the gradients are
  };
  /// Where a variable's values lie in the row.
  struct Place {
    Tensor* tensor = nullptr;
    size_t begin = 0;
    size_t count = 0;
    float weight = 1;
    Kind kind = Kind::kOther;
  };

  DenseExchange(RankGroup& ranks, const Options& options) : ranks_(&ranks), options_(options) {}
  Status FindVariables(const Executable& step, Scope& root);
  int rank() const { return ranks_->rank(); }
  size_t ranks() const { return static_cast<size_t>(ranks_->size()); }
  /// Reads the values of this rank into now_, up to a section, and counts_now_.
  void ReadCopy(Section last);
  /// The part of a rank, of the sections up to `last`, in the order in which it keeps and sends them; others are empty.
  std::array<Range, kSections> PartsOf(int rank, Section last) const;
  size_t PartSize(int rank, Section last) const;
  /// The part of a rank of the counts; they go with all parameters.
  Range CountsOf(int rank, Section last) const;
  Status Begin(Section last);
  Status TakeAnswers();
  /// Adds `moved`, of float `begin` on, to the tensors.
  void Move(std::span<const float> moved, size_t begin);
  /// What another rank, or this one, tells of this rank's part; answers with what it does not know.
  Status Answer(int from, std::string_view request, std::string* answer);
  /// Steps of Settle. What this rank's copy of a rank's part has moved since its last exchange, whole, as bytes.
  std::string MovedOf(int rank);
  /// Adds what all ranks moved (`in`, by rank) to this rank's part, and writes the part to `part`. kInternal for values
  /// of another job.
  Status SettlePart(const std::vector<std::string>& in, std::string* part);
  /// Takes the parts of all ranks over into the tensors.
  Status TakeSettled(const std::vector<std::string>& in);
  /// Holds back `more` of what parameter `i` moved. What comes now of all that is held back.
  float HoldBack(size_t i, float more);

  RankGroup* ranks_;
  const Options options_;
  std::vector<Place> floats_;                      ///< by section
  std::array<size_t, kSections + 1> begins_ = {};  ///< of sections, and the end of the last
  std::vector<Place> counts_;                      ///< int64
  size_t count_count_ = 0;

  // Of this rank's copy. The worker's.
  std::vector<float> known_;  ///< what the owners take the copy for
  std::vector<float> now_;
  std::vector<int64_t> counts_known_;
  std::vector<int64_t> counts_now_;
  std::vector<std::optional<std::string>> requests_;
  std::vector<std::string_view> answers_;
  RankCalls::Call call_;
  bool is_under_way_ = false;
  Section last_ = kSmall;     ///< of what is under way
  int since_last_ = 0;        ///< batches since the last exchange began
  int since_parameters_ = 0;  ///< batches since the last one began that has all parameters
  int with_parameters_ = 0;   ///< exchanges that had them

  // Of this rank's part.
  std::mutex mutex_;
  std::vector<float> shared_;
  float released_ = 0;                          ///< of what is held back, by an exchange; 0: nothing is
  std::vector<float> held_back_;                ///< of the moves of parameters
  std::vector<std::vector<float>> copies_;      ///< by rank, as it knows it
  std::vector<std::vector<float>> last_moved_;  ///< by rank, in its last exchange of each value
  std::vector<int64_t> counts_shared_;
  std::vector<std::vector<int64_t>> count_copies_;
  std::vector<float> weights_;
  std::vector<Kind> kinds_;
};

}  // namespace millrace
