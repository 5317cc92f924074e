// Many seeds of a simulation: each draws a job of ranks, what the network does to it, and perhaps the death of a rank.
// What was pushed, handed out and exchanged is counted beside the product, and must be there exactly, whatever happens.
//
// MILLRACE_SEEDS says how many (150), MILLRACE_FIRST_SEED which is the first (1). A failure prints the command that
// repeats it.

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "comm/simulated_cluster.h"
#include "core/hash.h"
#include "core/rng.h"
#include "dense_copy.h"
#include "model.pb.h"
#include "ops/builtin_ops.h"
#include "ranks/dense_exchange.h"
#include "ranks/rank_file_queue.h"
#include "ranks/rank_group.h"
#include "ranks/rank_pace.h"
#include "table/ctr_rows.h"

namespace millrace {
namespace {

constexpr int kMostRanks = 8;
constexpr size_t kKeys = 40;
constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max() / 2;
constexpr const char* kDenseNames[] = {"w", "b", "acc", "mean"};

/// One dimension a rank, which counts its pushes of the row, and one that tells rows apart (MarkOf).
constexpr char kPlainTable[] =
    R"(name: "plain" dim: 9 init { constant: 0 } optimizer { sgd { lr: 1 } } initial_rows: 64)";
constexpr char kCountedTable[] = R"(name: "counted" initial_rows: 64 accessor { embedx_dim: 3 embedx_threshold: 1 })";

enum class Update : uint8_t {
  kLockstep,  ///< all pull, then all push, as in steps of dist { update: SYNC }
  kAsync,
  kBounded,  ///< SSP
};

/// A file is a batch. All that it has follows from its number.
struct File {
  std::vector<size_t> keys;  ///< numbers of keys
  bool calls_meeting = false;
  bool fetches_ahead = false;
};

/// What a seed draws.
struct Job {
  SimulationOptions simulation;
  Update update = Update::kAsync;
  int64_t ahead = kNoBound;
  RankTableOptions tables;
  RankTableOptions copies;  ///< of the plain table
  bool has_plain = true;
  bool has_counted = true;
  DenseExchange::Options dense;
  std::vector<File> files;

  int ranks() const { return simulation.size; }
};

uint64_t KeyOf(size_t number) { return HashedNumber(77, number); }
/// Tells rows of keys apart by their values.
float MarkOf(size_t key) { return static_cast<float>(key % 3 + 1); }
float MoveOf(size_t file) { return static_cast<float>(file % 3 + 1); }

std::vector<File> DrawFiles(Rng& rng, size_t count) {
  std::vector<File> files;
  const bool repeats = rng.Below(2) == 0;
  const uint64_t meetings_of_ten = rng.Below(4);
  for (size_t f = 0; f < count; ++f) {
    File file;
    std::set<size_t> keys;
    for (uint64_t i = 1 + rng.Below(12); i > 0; --i) keys.insert(rng.Below(kKeys));
    file.keys.assign(keys.begin(), keys.end());
    // Lists of keys that come back are known by their numbers.
    if (repeats && f > 0 && rng.Below(2) == 0) file.keys = files[rng.Below(f)].keys;
    file.calls_meeting = rng.Below(10) < meetings_of_ten;
    file.fetches_ahead = rng.Below(2) == 0;
    files.push_back(std::move(file));
  }
  return files;
}

Job DrawJob(uint64_t seed) {
  Rng rng(seed);
  Job job;
  SimulationOptions& simulation = job.simulation;
  simulation.size = 1 + static_cast<int>(rng.Below(kMostRanks));
  simulation.seed = rng.Next();
  simulation.longest_delay = static_cast<int64_t>(rng.Below(60));
  simulation.most_events = 1'000'000;
  for (uint64_t i = rng.Below(3); i > 0; --i) {
    SimulationOptions::Partition partition;
    for (int r = 0; r < simulation.size; ++r) (rng.Below(2) == 0 ? partition.one : partition.other).push_back(r);
    partition.begin = static_cast<int64_t>(rng.Below(1500));
    partition.end = partition.begin + static_cast<int64_t>(rng.Below(1000));
    simulation.partitions.push_back(std::move(partition));
  }
  if (rng.Below(3) == 0) {
    simulation.losses.push_back({.rank = static_cast<int>(rng.Below(static_cast<uint64_t>(simulation.size))),
                                 .at = static_cast<int64_t>(rng.Below(uint64_t{200} << rng.Below(6)))});
  }
  job.update = static_cast<Update>(rng.Below(3));
  if (job.update == Update::kBounded) job.ahead = static_cast<int64_t>(rng.Below(4));
  job.tables.wire = rng.Below(2) == 0 ? WireFloat::kFloat32 : WireFloat::kBFloat16;
  job.tables.pushes_under_way = 1 + rng.Below(3);
  job.copies = job.tables;
  // Rows that count have no copies. With more than two ranks one that several pushes use moves less than their sum.
  if (job.update == Update::kAsync && rng.Below(2) == 0) {
    job.copies.geo_steps = simulation.size <= 2 ? 1 + static_cast<int>(rng.Below(4)) : 1;
  }
  const uint64_t kinds = rng.Below(3);
  job.has_plain = kinds != 1;
  job.has_counted = kinds != 2;
  job.dense.every = 1 + static_cast<int>(rng.Below(3));
  job.dense.parameters_every = 1 + static_cast<int>(rng.Below(6));
  job.dense.small = rng.Below(2) == 0 ? 0 : kSmallSize;
  job.dense.rest_every = 1 + static_cast<int>(rng.Below(3));
  job.dense.wire = job.tables.wire;
  job.files = DrawFiles(rng, rng.Below(static_cast<uint64_t>(6 * simulation.size)));
  return job;
}

/// What a run can start again from.
struct Checkpoint {
  std::vector<std::vector<size_t>> trained = {};  ///< files, by the rank that trained them
  std::optional<std::string> plain = {};
  std::optional<std::string> counted = {};
  std::vector<std::vector<float>> dense = {};
  int64_t count = 0;
};

/// What the test knows of a run besides the product. One rank runs at a time: nothing here has a lock.
struct Run {
  const Job& job;
  const Executable& step;
  const Checkpoint start;
  std::vector<size_t> left = {};                ///< files that `start` has not
  Checkpoint last = {};                         ///< the last one that was whole
  std::vector<std::vector<size_t>> begun = {};  ///< files that were pushed, by rank, since `start`
  std::vector<int64_t> trained = {};            ///< batches, by rank, since `start`
  std::vector<bool> are_through = {};           ///< ranks that found no more files
  std::vector<size_t> flushed = {};             ///< of `begun`, those that are applied for certain
  std::vector<size_t> taken = {};               ///< numbers that the queue handed out
  std::vector<Status> ended = {};               ///< by rank
  RankPushes pushes = {};                       ///< of all ranks
  int64_t expected_pushes = 0;                  ///< one for each table, batch and owner
  std::string mistake = {};                     ///< the first one

  Run(const Job& of, const Executable& of_step, Checkpoint from)
      : job(of), step(of_step), start(std::move(from)), last(start) {
    const auto ranks = static_cast<size_t>(job.ranks());
    begun.resize(ranks);
    trained.resize(ranks);
    are_through.resize(ranks);
    flushed.resize(ranks);
    ended.resize(ranks);
    std::set<size_t> before;
    for (const auto& files : start.trained) before.insert(files.begin(), files.end());
    for (size_t f = 0; f < job.files.size(); ++f) {
      if (before.count(f) == 0) left.push_back(f);
    }
  }

  /// How often the first `count` files that rank `rank` pushed have the key.
  int64_t Pushed(size_t rank, size_t key, int64_t count) const {
    const auto has = [&](size_t f) { return std::count(job.files[f].keys.begin(), job.files[f].keys.end(), key); };
    int64_t times = 0;
    if (rank < start.trained.size()) {
      for (const size_t f : start.trained[rank]) times += has(f);
    }
    const std::vector<size_t>& files = begun[rank];
    for (size_t i = 0; i < files.size() && static_cast<int64_t>(i) < count; ++i) times += has(files[i]);
    return times;
  }
  Status Mistake(const std::string& what) {
    if (mistake.empty()) mistake = what;
    return Internal(what);
  }
};

TableDesc DescOf(const char* text) {
  TableDesc desc;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &desc));
  return desc;
}

/// A rank of a run.
class SimulatedRank {
 public:
  SimulatedRank(Run& run, Communicator& communicator)
      : run_(&run),
        me_(static_cast<size_t>(communicator.rank())),
        group_(communicator),
        queue_(group_.calls(), group_.size()),
        pace_(group_.calls(), RankPace::Tell::kEveryBatch,  // kNowAndThen would ask a clock
              {[this] { IsDue(); }, [this](int64_t batches, int64_t) { of_others_ += batches; }}),
        copy_(100) {}

  Status Train() {
    MR_TRY(Start());
    MR_TRY(run_->job.update == Update::kLockstep ? TrainInLockstep() : TrainAtOwnPace());
    MR_TRY(CheckEnd());
    // Nobody goes while others ask.
    MR_TRY(group_.communicator().Barrier());
    run_->pushes.Add(group_.tables().pushes());
    return Status::Ok();
  }

 private:
  const Job& job() const { return run_->job; }
  std::string name() const { return "rank " + std::to_string(me_); }

  void IsDue() {
    const std::lock_guard lock(mutex_);
    due_.request_stop();
  }
  std::stop_token NewToken() {
    const std::lock_guard lock(mutex_);
    due_ = std::stop_source();
    return due_.get_token();
  }

  Status MakeTable(const char* text, const RankTableOptions& options, const std::optional<std::string>& saved,
                   std::unique_ptr<SparseTable>* table) {
    const TableFactory factory = RankTableFactory(TableFactory::Builtin(), group_.tables(), options);
    MR_ASSIGN(*table, factory.Create(DescOf(text), 5));
    if (!saved) return Status::Ok();
    std::istringstream in(*saved);
    return (*table)->Load(kAllShards, in, LoadMode::kNew);
  }

  Status Start() {
    const Checkpoint& start = run_->start;
    if (job().has_plain) MR_TRY(MakeTable(kPlainTable, job().copies, start.plain, &plain_));
    if (job().has_counted) MR_TRY(MakeTable(kCountedTable, job().tables, start.counted, &counted_));
    for (size_t i = 0; i < start.dense.size(); ++i) {
      std::copy(start.dense[i].begin(), start.dense[i].end(),
                copy_.root.Var(kDenseNames[i])->GetMutable<Tensor>()->mutable_data<float>());
    }
    if (!start.dense.empty()) *copy_.root.Var("count")->GetMutable<Tensor>()->mutable_data<int64_t>() = start.count;
    MR_ASSIGN(dense_, DenseExchange::Create(run_->step, copy_.root, group_, job().dense));
    dense_->Start();
    pace_.StartPass(0, 0);
    return group_.communicator().Barrier();
  }

  Status TrainInLockstep() {
    const auto ranks = static_cast<size_t>(job().ranks());
    for (size_t first = 0; first < run_->left.size(); first += ranks) {
      const bool has_file = first + me_ < run_->left.size();
      const size_t file = has_file ? run_->left[first + me_] : 0;
      if (has_file) {
        run_->taken.push_back(first + me_);
        MR_TRY(PullFile(file));
      }
      MR_TRY(group_.communicator().Barrier());
      if (has_file) MR_TRY(PushFile(file));
      MR_TRY(group_.tables().Flush());
      MR_TRY(group_.communicator().Barrier());
      MR_TRY(Save());
    }
    return Save();
  }

  Status TrainAtOwnPace() {
    const std::unique_ptr<FileQueue> files = queue_.OfPass(0, run_->left.size());
    while (true) {
      const std::stop_token is_called = NewToken();
      if (pace_.is_due()) {
        MR_TRY(Meet());
        continue;
      }
      if (job().update == Update::kBounded) MR_TRY(pace_.WaitForOthers(job().ahead, is_called));
      if (is_called.stop_requested()) continue;
      MR_TRY(CheckAhead());
      MR_ASSIGN(const size_t number, files->Next(FileTurn::kLater, {}));
      if (number >= run_->left.size()) break;
      run_->taken.push_back(number);
      const size_t file = run_->left[number];
      MR_TRY(PullFile(file));
      MR_TRY(PushFile(file));
      MR_TRY(dense_->Step());
      ++run_->trained[me_];
      MR_TRY(pace_.Trained(1));
      if (job().files[file].calls_meeting) pace_.Call();
    }
    run_->are_through[me_] = true;
    MR_TRY(pace_.End());
    while (!is_over_) {
      MR_TRY(group_.communicator().WaitUntil([this] { return pace_.is_due(); }));
      MR_TRY(Meet());
    }
    if (of_others_ + static_cast<int64_t>(run_->begun[me_].size()) != static_cast<int64_t>(run_->left.size())) {
      return run_->Mistake(name() + " was told of " + std::to_string(of_others_) + " batches of others");
    }
    return Status::Ok();
  }

  /// No rank that is not through is further behind than the job allows.
  Status CheckAhead() const {
    for (size_t r = 0; r < run_->trained.size(); ++r) {
      const int64_t ahead = run_->trained[me_] - run_->trained[r];
      if (ahead <= job().ahead || run_->are_through[r]) continue;
      return run_->Mistake(name() + " goes on " + std::to_string(ahead) + " batches ahead of rank " +
                           std::to_string(r) + ", and may be " + std::to_string(job().ahead));
    }
    return Status::Ok();
  }

  Status Meet() {
    MR_TRY(group_.tables().Flush());
    MR_ASSIGN(is_over_, pace_.Meet({}));
    return Save();
  }

  /// Makes a checkpoint, while no rank trains and all pushes are applied.
  Status Save() {
    MR_TRY(dense_->Settle());
    if (me_ == 0) {
      Checkpoint made;
      made.trained = run_->start.trained;
      made.trained.resize(run_->begun.size());
      for (size_t r = 0; r < run_->begun.size(); ++r) {
        made.trained[r].insert(made.trained[r].end(), run_->begun[r].begin(), run_->begun[r].end());
        run_->flushed[r] = run_->begun[r].size();
      }
      if (plain_ != nullptr) MR_TRY(SaveTable(*plain_, &made.plain));
      if (counted_ != nullptr) MR_TRY(SaveTable(*counted_, &made.counted));
      for (const char* dense : kDenseNames) made.dense.push_back(copy_.Values(dense));
      made.count = copy_.count();
      run_->last = std::move(made);
    }
    return group_.communicator().Barrier();
  }
  static Status SaveTable(const SparseTable& table, std::optional<std::string>* saved) {
    std::ostringstream out;
    MR_TRY(table.Save(kAllShards, TableContent::kAll, out));
    *saved = std::move(out).str();
    return Status::Ok();
  }

  Status PullFile(size_t file) {
    const std::vector<size_t>& keys = job().files[file].keys;
    if (job().files[file].fetches_ahead && plain_ != nullptr) {
      MR_TRY(dynamic_cast<Prefetchable&>(*plain_).Fetch(IdsOf(keys)));
    }
    if (counted_ != nullptr) MR_TRY(PullCounted(keys, PullMode::kInsert));
    if (plain_ != nullptr) MR_TRY(PullPlain(keys, PullMode::kInsert));
    return Status::Ok();
  }

  Status PushFile(size_t file) {
    const std::vector<size_t>& keys = job().files[file].keys;
    run_->begun[me_].push_back(file);
    std::set<int> owners;
    for (const size_t key : keys) owners.insert(group_.tables().OwnerOf(VirtualShardOf(KeyOf(key))));
    const int tables = (job().has_plain ? 1 : 0) + (job().has_counted ? 1 : 0);
    run_->expected_pushes += tables * static_cast<int64_t>(owners.size());
    std::vector<float> values;
    if (plain_ != nullptr) {
      for (const size_t key : keys) {
        for (size_t d = 0; d < kMostRanks; ++d) values.push_back(d == me_ ? 1 : 0);
        values.push_back(MarkOf(key));
      }
      MR_TRY(plain_->Push(plain_rows_, values, {.lr = 1}));
    }
    if (counted_ != nullptr) {
      values.clear();
      for (const size_t key : keys) values.insert(values.end(), {MarkOf(key), 1, 0, 0, 0, 0});
      MR_TRY(counted_->Push(counted_rows_, values, {.examples = 1}));
    }
    copy_.Move(MoveOf(file));
    return Status::Ok();
  }

  static std::vector<uint64_t> IdsOf(const std::vector<size_t>& keys) {
    std::vector<uint64_t> ids;
    for (const size_t key : keys) ids.push_back(KeyOf(key));
    return ids;
  }

  /// How many pushes of a rank this one must see by now.
  int64_t MustSee(size_t rank) const {
    const auto mine = static_cast<int64_t>(run_->begun[me_].size());
    const auto theirs = static_cast<int64_t>(run_->begun[rank].size());
    const auto under_way = static_cast<int64_t>(job().tables.pushes_under_way);
    const int64_t trained = rank == me_ ? mine : std::min(mine - job().ahead, theirs);
    return std::max(static_cast<int64_t>(run_->flushed[rank]), trained - under_way);
  }

  Status PullPlain(const std::vector<size_t>& keys, PullMode mode) {
    MR_TRY(plain_->Pull(IdsOf(keys), mode, &plain_rows_));
    for (size_t i = 0; i < keys.size(); ++i) {
      const float* const row = plain_rows_.weights()[i];
      float pushes = 0;
      for (size_t r = 0; r < run_->begun.size(); ++r) {
        const float seen = -row[r];
        pushes += seen;
        const int64_t least = run_->Pushed(r, keys[i], MustSee(r));
        const int64_t most = run_->Pushed(r, keys[i], kNoBound);
        if (seen >= static_cast<float>(least) && seen <= static_cast<float>(most)) continue;
        std::ostringstream what;
        what << name() << " sees " << seen << " pushes of rank " << r << " to key " << keys[i] << ", where " << least
             << " to " << most << " can be there";
        return run_->Mistake(what.str());
      }
      if (-row[kMostRanks] != pushes * MarkOf(keys[i])) {
        return run_->Mistake(name() + " pulled key " + std::to_string(keys[i]) + " and got the row of another one");
      }
    }
    return Status::Ok();
  }

  Status PullCounted(const std::vector<size_t>& keys, PullMode mode) {
    MR_TRY(counted_->Pull(IdsOf(keys), mode, &counted_rows_));
    for (size_t i = 0; i < keys.size(); ++i) {
      const float* const row = counted_rows_.weights()[i];
      const float seen = row[CtrRows::kClick];
      int64_t least = 0;
      int64_t most = 0;
      for (size_t r = 0; r < run_->begun.size(); ++r) {
        least += run_->Pushed(r, keys[i], MustSee(r));
        most += run_->Pushed(r, keys[i], kNoBound);
      }
      if (seen < static_cast<float>(least) || seen > static_cast<float>(most)) {
        std::ostringstream what;
        what << name() << " sees " << seen << " clicks of key " << keys[i] << ", where " << least << " to " << most
             << " can be there";
        return run_->Mistake(what.str());
      }
      if (row[CtrRows::kShow] != seen * MarkOf(keys[i])) {
        return run_->Mistake(name() + " pulled key " + std::to_string(keys[i]) + " and got the counts of another one");
      }
    }
    return Status::Ok();
  }

  /// All pushes are there, and every rank has the same dense values, which are those of all files.
  Status CheckEnd() {
    std::vector<size_t> keys(kKeys);
    for (size_t k = 0; k < kKeys; ++k) keys[k] = k;
    if (plain_ != nullptr) MR_TRY(PullPlain(keys, PullMode::kReadOnly));
    if (counted_ != nullptr) MR_TRY(PullCounted(keys, PullMode::kReadOnly));
    float moved = 0;
    for (size_t f = 0; f < job().files.size(); ++f) moved += MoveOf(f);
    const auto ranks = static_cast<float>(job().ranks());
    for (size_t i = 0; i < std::size(kDenseNames); ++i) {
      const std::vector<float> values = copy_.Values(kDenseNames[i]);
      if (values != run_->last.dense[i]) {
        return run_->Mistake(name() + " has another " + std::string(kDenseNames[i]) + " than rank 0");
      }
      // Of parameters, what no exchange had where ranks stood still is there with its mean, and of the rest some may be
      // held back.
      const bool is_parameter = i < 2;
      const float most = 100 + moved * (is_parameter ? 1 : i == 2 ? std::min(1.0F, 2 / ranks) : 1 / ranks);
      const float least = is_parameter ? 100 + moved / ranks : most;
      for (const float value : values) {
        if (value >= least - 0.01F && value <= most + 0.01F) continue;
        std::ostringstream what;
        what << name() << " has " << kDenseNames[i] << " = " << value << " in place of " << least << " to " << most;
        return run_->Mistake(what.str());
      }
    }
    if (copy_.count() != 5 + static_cast<int64_t>(job().files.size())) {
      return run_->Mistake(name() + " counts " + std::to_string(copy_.count()) + " moves");
    }
    return Status::Ok();
  }

  Run* run_;
  const size_t me_;
  std::mutex mutex_;
  std::stop_source due_;
  int64_t of_others_ = 0;
  bool is_over_ = false;
  RankGroup group_;
  RankFileQueue queue_;
  RankPace pace_;
  Copy copy_;
  std::unique_ptr<DenseExchange> dense_;
  std::unique_ptr<SparseTable> plain_;
  std::unique_ptr<SparseTable> counted_;
  RowBatch plain_rows_;
  RowBatch counted_rows_;
};

/// Runs until all have ended; *was_lost: one of them died. What is wrong, or nothing.
std::string RunAll(Run& run, const SimulationOptions& simulation, bool* was_lost) {
  SimulatedCluster cluster(simulation);
  const Status ran = cluster.Run([&run](Communicator& communicator) {
    SimulatedRank rank(run, communicator);
    run.ended[static_cast<size_t>(communicator.rank())] = rank.Train();
  });
  *was_lost = std::any_of(cluster.events().begin(), cluster.events().end(),
                          [](const auto& event) { return event.kind == SimulatedEvent::Kind::kLose; });
  if (!run.mistake.empty()) return run.mistake;
  if (!ran.ok()) {
    std::string what = ran.ToString();
    for (const Status& ended : run.ended) what += "; " + ended.ToString();
    return what;
  }
  for (size_t r = 0; r < run.ended.size(); ++r) {
    const Status& ended = run.ended[r];
    if (ended.ok()) continue;
    const std::string what = "rank " + std::to_string(r) + " ended with " + ended.ToString();
    if (!*was_lost) return what;
    const std::string name = "rank " + std::to_string(simulation.losses[0].rank) + " of ";
    const bool names_it = ended.message().find(name) != std::string::npos;
    if (ended.code() != StatusCode::kUnavailable || !names_it) return what + ", which does not name who was lost";
  }
  return "";
}

/// What a run that nobody left has done, beside what each rank checked.
std::string CheckCounts(const Run& run) {
  // How many exchanges of copies there are depends on the network.
  const int64_t expected = run.job.copies.geo_steps > 0 ? run.pushes.sent : run.expected_pushes;
  if (run.pushes.sent != expected || run.pushes.applied != expected) {
    return std::to_string(expected) + " pushes were made, " + std::to_string(run.pushes.sent) +
           " counted as sent and " + std::to_string(run.pushes.applied) + " applied";
  }
  std::vector<size_t> taken = run.taken;
  std::sort(taken.begin(), taken.end());
  for (size_t i = 0; i < std::max(taken.size(), run.left.size()); ++i) {
    if (i >= taken.size() || taken[i] != i)
      return "not every file was handed out once: see number " + std::to_string(i);
  }
  return "";
}

/// What a number of seeds came to, so that no kind of job is missing unseen.
struct Seen {
  int whole = 0;
  int lost = 0;
  int resumed = 0;  ///< of `lost`, from a checkpoint that has files
};

std::string TrySeed(uint64_t seed, const Executable& step, Seen* seen) {
  Job job = DrawJob(seed);
  bool was_lost = false;
  Run run(job, step, {});
  std::string mistake = RunAll(run, job.simulation, &was_lost);
  if (!mistake.empty()) return mistake;
  if (!was_lost) {
    ++seen->whole;
    return CheckCounts(run);
  }
  // Started again from the last checkpoint, all ends as if nobody had died.
  ++seen->lost;
  job.simulation.losses.clear();
  ++job.simulation.seed;
  Run again(job, step, run.last);
  if (again.left.size() < run.left.size()) ++seen->resumed;
  mistake = RunAll(again, job.simulation, &was_lost);
  if (mistake.empty()) mistake = CheckCounts(again);
  return mistake.empty() ? "" : "started again after a rank died: " + mistake;
}

uint64_t NumberFrom(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  char* end = nullptr;
  const uint64_t number = std::strtoull(text, &end, 10);
  EXPECT_TRUE(end != text && *end == '\0') << variable << " is no number: \"" << text << "\"";
  return number;
}

TEST(SimulatedSeedsTest, WhateverTheNetworkDoesNothingIsLostOrDoneTwice) {
  OpRegistry ops;
  RegisterBuiltinOps(ops);
  ProgramDesc program;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kProgram, &program));
  const std::unique_ptr<const Executable> step = Executable::Compile(program, ops, {}).value();
  const uint64_t first = NumberFrom("MILLRACE_FIRST_SEED", 1);
  const uint64_t count = NumberFrom("MILLRACE_SEEDS", 150);
  ASSERT_GT(count, 0U);
  Seen seen;
  for (uint64_t seed = first; seed - first < count; ++seed) {
    const std::string mistake = TrySeed(seed, *step, &seen);
    ASSERT_EQ(mistake, "") << "seed " << seed << ", after " << seed - first << " others. To repeat it:\n"
                           << "MILLRACE_FIRST_SEED=" << seed << " MILLRACE_SEEDS=1 " << testing::internal::GetArgvs()[0]
                           << " --gtest_filter='SimulatedSeedsTest.*'";
  }
  std::cout << count << " seeds from " << first << ": " << seen.whole << " jobs ran through, " << seen.lost
            << " lost a rank, " << seen.resumed << " of them behind a checkpoint" << std::endl;
  if (count < 100) return;
  EXPECT_GT(seen.whole, 0);
  EXPECT_GT(seen.resumed, 0);
}

}  // namespace
}  // namespace millrace
