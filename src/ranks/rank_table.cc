// A table of which each rank has a part (ranks/rank_tables.h).

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>

#include "kernels/racy.h"
#include "model.pb.h"
#include "ranks/key_lists.h"
#include "ranks/object_pool.h"
#include "ranks/pending_fetches.h"
#include "ranks/rank_files.h"
#include "ranks/rank_tables.h"
#include "ranks/row_copies.h"
#include "ranks/row_wire.h"
#include "table/counted_table.h"
#include "table/table_files.h"

namespace millrace {
namespace {

/// What a pull came to, or is coming to.
struct Pulled {
  std::shared_ptr<KeyList> list;
  RankCalls::Call call;
  std::vector<std::string_view> answers;
  WireFloat wire = WireFloat::kFloat32;  ///< how the rows come
  std::vector<int64_t> seen;             ///< by owner: pushes that its part had
  RowBatch own;                          ///< the rows of this rank's part
  std::vector<float*> copies;            ///< of rows of others, by position; or empty
};

/// TableStats::changes_since of two parts: as of pushes, that of the rank which was pushed to most.
int64_t SinceOfBoth(int64_t a, int64_t b) { return a < 0 || b < 0 ? -1 : std::max(a, b); }

class RankTable : public SparseTable, public Prefetchable, public SavesThroughOthers, public ChangeTracking {
 public:
  RankTable(std::unique_ptr<SparseTable> part, RankTables& ranks)
      : part_(std::move(part)),
        ranks_(&ranks),
        mine_(ranks.ShardsOf(ranks.rank())),
        locks_(part_->shape().counts ? std::make_unique<RowLocks>() : nullptr),
        seen_(static_cast<size_t>(ranks.ranks())),
        fetched_(ranks) {
    ranks_->Add(shape().name, {part_.get(), &applied_, locks_.get(), [this] { return Flush(0); }});
  }
  ~RankTable() override {
    // Answers are written to what is under way. What went wrong with that ended the run before.
    while (!under_way_.empty()) (void)FlushPushes(0).ok();
    fetched_.GiveUp(0);
    copies_ = nullptr;
    ranks_->Remove(shape().name, part_.get());
  }

  Status Fetch(std::span<const uint64_t> keys) override;
  Status Pull(std::span<const uint64_t> keys, PullMode mode, RowBatch* out) override;
  Status Push(const RowBatch& rows, std::span<const float> gradients, const PushContext& context) override;
  Status Save(ShardRange shards, TableContent content, std::ostream& out) const override;
  Result<std::optional<FileSum>> SaveThroughOwner(ShardRange shards, TableContent content,
                                                  const std::string& path) const override;
  Status Load(ShardRange shards, std::istream& in, LoadMode mode) override {
    ForgetRows();
    const ShardRange wanted{std::max(shards.begin, mine_.begin), std::min(shards.end, mine_.end)};
    // Also where no row is ours: the count of updates is every rank's. Whoever has the rows finds what is damaged.
    return part_->Load(wanted.begin < wanted.end ? wanted : ShardRange{}, in, mode);
  }
  NonFiniteRows FindNonFinite() const override;
  TableStats stats() const override;
  bool IsEmptyHere() const override { return part_->IsEmptyHere(); }
  Status BeginChanges() override {
    BeginChangesHere();
    return AskOthers(RankTables::Request::kBeginChanges, "", [](WireReader) {});
  }
  void BeginChangesHere() override { ResetLocalChanges(*part_); }
  Result<ChangedRows> CountChanges() const override;
  int64_t EstimateLocalChanges() const override { return AboutChangedHereOf(*part_); }
  const TableShape& shape() const final { return part_->shape(); }
  Status SetOptions(const RankTableOptions& options) {
    options_ = options;
    copies_ = nullptr;
    if (options.geo_steps == 0 || ranks() == 1) return Status::Ok();
    MR_ASSIGN(copies_, RowCopies::Create(*part_, *ranks_, options));
    return Status::Ok();
  }

 protected:
  SparseTable* part() const { return part_.get(); }
  /// Before rows go elsewhere.
  void ForgetRows() {
    fetched_.GiveUp(0);
    ranks_->ForgetRows(part_.get());
  }
  /// Asks all other ranks the same, and calls add(answer) for each answer.
  template <class Add>
  Status AskOthers(RankTables::Request what, std::string_view payload, const Add& add) const {
    std::vector<std::optional<std::string>> requests(ranks());
    for (size_t r = 0; r < ranks(); ++r) {
      if (r == rank()) continue;
      WireWriter request(&requests[r].emplace());
      RankTables::Start(what, shape().name, &request);
      *requests[r] += payload;
    }
    std::vector<std::string> answers;
    MR_TRY(ranks_->Ask(std::move(requests), &answers));
    for (size_t r = 0; r < ranks(); ++r) {
      if (r != rank()) add(WireReader(answers[r]));
    }
    return Status::Ok();
  }

 private:
  /// The pushes that a save of changes begins behind; of any other save none.
  Result<std::optional<uint64_t>> SinceOf(TableContent content, const TableStats& now) const;

  /// A push that is under way.
  struct Pushed {
    std::vector<std::optional<std::string>> requests;
    RankCalls::Call call;
    std::vector<std::string_view> answers;
    RowBatch own;
    std::vector<float> values;
  };

  size_t rank() const { return static_cast<size_t>(ranks_->rank()); }
  size_t ranks() const { return static_cast<size_t>(ranks_->ranks()); }
  /// Asks the owners for the rows of `keys`; the answers are to be waited for.
  Status BeginPull(std::span<const uint64_t> keys, PullMode mode, std::shared_ptr<Pulled>* pulled);
  /// Shows the rows of this rank, and copies of the others.
  Status PullCopies(std::span<const uint64_t> keys, RowBatch* out);
  Status PushCopies(const RowBatch& rows, std::span<const float> gradients, const PushContext& context);
  /// Puts what has come into `out`.
  Status TakeAnswers(Pulled& pulled, RowPlaces* out);
  /// The gradients of an owner's rows, in *values.
  void GatherGradients(const KeyList::Part& part, std::span<const float> gradients, std::vector<float>* values) const;
  Status PushOwn(const KeyList& list, Pulled* pulled, std::span<const float> gradients, const PushContext& context,
                 Pushed* pushed);
  /// Waits until no more than `pushes` are under way.
  Status FlushPushes(size_t pushes);
  /// The same, and until all fetches have come; of copies, all that they have learnt goes to the owners.
  Status Flush(size_t pushes);

  std::unique_ptr<SparseTable> part_;
  RankTables* ranks_;
  RankTableOptions options_;
  ShardRange mine_;
  std::unique_ptr<RowLocks> locks_;         ///< of part_, where its rows count
  std::atomic<int64_t> applied_{0};         ///< pushes to part_
  std::vector<std::atomic<int64_t>> seen_;  ///< by owner: pushes that its part had at the last pull
  std::unique_ptr<RowCopies> copies_;       ///< null: the owners are asked
  ObjectPool<Pulled> pulls_;
  PendingFetches<Pulled> fetched_;
  ObjectPool<Pushed> pushes_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<Pushed>> under_way_;
};

Status RankTable::BeginPull(std::span<const uint64_t> keys, PullMode mode, std::shared_ptr<Pulled>* pulled) {
  *pulled = pulls_.Take();
  Pulled& pull = **pulled;
  pull.own.Start(nullptr);
  pull.seen.assign(ranks(), 0);
  // What measures a model sees the rows as they are, whichever rank has them.
  pull.wire = mode == PullMode::kInsert ? options_.wire : WireFloat::kFloat32;
  pull.list = ranks_->lists().Find(keys);
  std::vector<std::optional<std::string>> requests(ranks());
  const std::lock_guard lock(pull.list->sending());
  for (size_t r = 0; r < ranks(); ++r) {
    if (r == rank() || pull.list->of(r).keys.empty()) continue;
    WireWriter request(&requests[r].emplace());
    RankTables::Start(RankTables::Request::kPull, shape().name, &request);
    ranks_->lists().Put(*pull.list, static_cast<int>(r), &request);
    request.Put(mode);
    request.Put(pull.wire);
  }
  return ranks_->Begin(requests, &pull.call);
}

Status RankTable::Fetch(std::span<const uint64_t> keys) {
  if (copies_ != nullptr) return copies_->Fetch(ranks_->lists().Find(keys));
  // Each worker fetches for a batch, before it pulls for it.
  fetched_.GiveUp(4 * options_.pushes_under_way);
  std::shared_ptr<Pulled> pulled;
  MR_TRY(BeginPull(keys, PullMode::kInsert, &pulled));
  fetched_.Add(std::move(pulled));
  return Status::Ok();
}

Status RankTable::Pull(std::span<const uint64_t> keys, PullMode mode, RowBatch* out) {
  if (copies_ != nullptr && mode == PullMode::kInsert) return PullCopies(keys, out);
  std::shared_ptr<Pulled> pulled;
  if (mode == PullMode::kInsert) {
    pulled = fetched_.Take([keys](const Pulled& asked) {
      return std::equal(keys.begin(), keys.end(), asked.list->keys().begin(), asked.list->keys().end());
    });
  }
  out->Start(this);
  if (mode == PullMode::kInsert) ranks_->CountPull(pulled != nullptr);
  if (pulled == nullptr) MR_TRY(BeginPull(keys, mode, &pulled));
  seen_[rank()] = pulled->seen[rank()] = applied_.load(std::memory_order_relaxed);
  // Whatever comes of this, the answers are waited for: they are written to what was pulled.
  Status own = part_->Pull(pulled->list->of(rank()).keys, mode, &pulled->own);
  MR_TRY(ranks_->Wait(&pulled->call, &pulled->answers));
  MR_TRY(std::move(own));
  RowPlaces& places = StartRows(keys.size(), out);
  MR_TRY(TakeAnswers(*pulled, &places));
  if (mode == PullMode::kInsert) places.origin = std::move(pulled);
  return Status::Ok();
}

Status RankTable::PullCopies(std::span<const uint64_t> keys, RowBatch* out) {
  out->Start(this);
  std::shared_ptr<Pulled> pulled = pulls_.Take();
  pulled->list = ranks_->lists().Find(keys);
  pulled->seen.assign(ranks(), applied_.load(std::memory_order_relaxed));
  const KeyList::Part& mine = pulled->list->of(rank());
  MR_TRY(part_->Pull(mine.keys, PullMode::kInsert, &pulled->own));
  MR_TRY(copies_->Find(pulled->list, &pulled->copies));
  RowPlaces& places = StartRows(keys.size(), out);
  places.keys.assign(keys.begin(), keys.end());
  std::copy(pulled->copies.begin(), pulled->copies.end(), places.rows.begin());
  for (size_t i = 0; i < mine.keys.size(); ++i) places.rows[mine.positions[i]] = PlacesOf(pulled->own).rows[i];
  places.origin = std::move(pulled);
  return Status::Ok();
}

Status RankTable::TakeAnswers(Pulled& pulled, RowPlaces* out) {
  const auto dim = static_cast<size_t>(shape().dim);
  const std::span<const uint64_t> keys = pulled.list->keys();
  RowPlaces& places = *out;
  places.keys.assign(keys.begin(), keys.end());
  places.values.resize(keys.size() * dim);
  for (size_t i = 0; i < keys.size(); ++i) places.rows[i] = places.values.data() + i * dim;
  const std::vector<uint32_t>& mine = pulled.list->of(rank()).positions;
  for (size_t i = 0; i < pulled.own.size(); ++i) {
    racy::Best().copy_row(pulled.own.weights()[i], places.rows[mine[i]], dim);
  }
  for (const uint32_t i : pulled.own.missing()) places.missing.push_back(mine[i]);
  for (size_t r = 0; r < ranks(); ++r) {
    const std::vector<uint32_t>& theirs = pulled.list->of(r).positions;
    if (r == rank() || theirs.empty()) continue;
    WireReader answer(pulled.answers[r]);
    seen_[r] = pulled.seen[r] = answer.Get<int64_t>();
    const auto missing = answer.Get<uint64_t>();
    for (uint64_t i = 0; i < missing && answer.ok(); ++i) {
      const auto at = answer.Get<uint32_t>();
      if (at < theirs.size()) places.missing.push_back(theirs[at]);
    }
    if (answer.Get<uint64_t>() != theirs.size() * dim) answer.Fail();
    for (const uint32_t position : theirs) GetRow(&answer, shape(), pulled.wire, places.rows[position]);
    if (!answer.ok()) {
      return Internal("table \"" + shape().name + "\": rank " + std::to_string(r) +
                      " sent other rows than were asked for");
    }
  }
  std::sort(places.missing.begin(), places.missing.end());
  return Status::Ok();
}

Status RankTable::Push(const RowBatch& rows, std::span<const float> gradients, const PushContext& context) {
  MR_TRY(CheckPush(rows, gradients));
  if (copies_ != nullptr) return PushCopies(rows, gradients, context);
  MR_TRY(FlushPushes(options_.pushes_under_way - 1));
  const auto pulled = std::static_pointer_cast<Pulled>(PlacesOf(rows).origin);
  const std::shared_ptr<KeyList> list = pulled != nullptr ? pulled->list : ranks_->lists().Find(PlacesOf(rows).keys);
  std::shared_ptr<Pushed> pushed = pushes_.Take();
  pushed->requests.assign(ranks(), std::nullopt);
  int64_t sent = 0;
  {
    const std::lock_guard lock(list->sending());
    for (size_t r = 0; r < ranks(); ++r) {
      const KeyList::Part& part = list->of(r);
      if (part.keys.empty()) continue;
      ++sent;
      if (r == rank()) continue;
      GatherGradients(part, gradients, &pushed->values);
      WireWriter request(&pushed->requests[r].emplace());
      RankTables::Start(RankTables::Request::kPush, shape().name, &request);
      ranks_->lists().Put(*list, static_cast<int>(r), &request);
      request.Put(options_.wire);
      request.Put(pulled != nullptr ? pulled->seen[r] : seen_[r].load());
      request.Put(context.lr);
      request.Put(static_cast<int32_t>(context.examples));
      PutRows(pushed->values, shape(), options_.wire, &request);
    }
    MR_TRY(ranks_->Begin(pushed->requests, &pushed->call));
  }
  ranks_->CountSent(sent);
  Status own = PushOwn(*list, pulled.get(), gradients, context, pushed.get());
  const auto asked = [](const std::optional<std::string>& request) { return request.has_value(); };
  if (std::none_of(pushed->requests.begin(), pushed->requests.end(), asked)) return own;
  const std::lock_guard lock(mutex_);
  under_way_.push_back(std::move(pushed));
  return own;
}

Status RankTable::PushCopies(const RowBatch& rows, std::span<const float> gradients, const PushContext& context) {
  auto pulled = std::static_pointer_cast<Pulled>(PlacesOf(rows).origin);
  RowBatch again;
  if (pulled == nullptr) {
    MR_TRY(PullCopies(PlacesOf(rows).keys, &again));
    pulled = std::static_pointer_cast<Pulled>(PlacesOf(again).origin);
  }
  const std::shared_ptr<Pushed> pushed = pushes_.Take();
  if (!pulled->list->of(rank()).keys.empty()) ranks_->CountSent(1);
  MR_TRY(PushOwn(*pulled->list, pulled.get(), gradients, context, pushed.get()));
  return copies_->Update(*pulled->list, pulled->copies, gradients, context);
}

void RankTable::GatherGradients(const KeyList::Part& part, std::span<const float> gradients,
                                std::vector<float>* values) const {
  const auto dim = static_cast<size_t>(shape().dim);
  values->clear();
  for (const uint32_t i : part.positions) {
    values->insert(values->end(), gradients.data() + i * dim, gradients.data() + (i + 1) * dim);
  }
}

Status RankTable::PushOwn(const KeyList& list, Pulled* pulled, std::span<const float> gradients,
                          const PushContext& context, Pushed* pushed) {
  const KeyList::Part& mine = list.of(rank());
  if (mine.keys.empty()) return Status::Ok();
  GatherGradients(mine, gradients, &pushed->values);
  RowBatch& own = pulled != nullptr ? pulled->own : pushed->own;
  if (pulled == nullptr) MR_TRY(part_->Pull(mine.keys, PullMode::kInsert, &own));
  ranks_->CountApplied(applied_, pulled != nullptr ? pulled->seen[rank()] : seen_[rank()].load());
  PushContext locked = context;
  if (locked.locks == nullptr) locked.locks = locks_.get();
  return part_->Push(own, pushed->values, locked);
}

Status RankTable::FlushPushes(size_t pushes) {
  while (true) {
    std::shared_ptr<Pushed> first;
    {
      const std::lock_guard lock(mutex_);
      if (under_way_.size() <= pushes) return Status::Ok();
      first = std::move(under_way_.front());
      under_way_.pop_front();
    }
    MR_TRY(ranks_->Wait(&first->call, &first->answers).Context("a push to table \"" + shape().name + "\""));
  }
}

Status RankTable::Flush(size_t pushes) {
  if (copies_ != nullptr) return copies_->Flush();
  MR_TRY(FlushPushes(pushes));
  return fetched_.WaitUntilHere();
}

Status RankTable::Save(ShardRange shards, TableContent content, std::ostream& out) const {
  if (ranks() == 1) return part_->Save(shards, content, out);
  // The parts ascend with their ranks, as the rows of a file do with their shards.
  std::vector<std::istringstream> parts;
  for (size_t r = 0; r < ranks(); ++r) {
    const ShardRange theirs = ranks_->ShardsOf(static_cast<int>(r));
    if (!theirs.Meets(shards)) continue;
    const ShardRange wanted{std::max(shards.begin, theirs.begin), std::min(shards.end, theirs.end)};
    if (r == rank()) {
      std::ostringstream bytes;
      MR_TRY(part_->Save(wanted, content, bytes));
      parts.emplace_back(std::move(bytes).str());
      continue;
    }
    std::vector<std::optional<std::string>> requests(ranks());
    WireWriter request(&requests[r].emplace());
    RankTables::Start(RankTables::Request::kSave, shape().name, &request);
    request.Put(wanted);
    request.Put(content);
    std::vector<std::string> answers;
    MR_TRY(ranks_->Ask(std::move(requests), &answers));
    parts.emplace_back(std::move(answers[r]));
  }
  const TableStats now = stats();
  MR_ASSIGN(const std::optional<uint64_t> since, SinceOf(content, now));
  return PutTogether(std::move(parts), shards, static_cast<uint64_t>(now.pushes), since, &out);
}

Result<ChangedRows> RankTable::CountChanges() const {
  MR_ASSIGN(ChangedRows all, CountChangesOf(*part_));
  MR_TRY(AskOthers(RankTables::Request::kCountChanges, "", [&all](WireReader answer) {
    const auto theirs = answer.Get<ChangedRows>();
    all.since = SinceOfBoth(all.since, theirs.since);
    all.rows += theirs.rows;
  }));
  return all;
}

Result<std::optional<uint64_t>> RankTable::SinceOf(TableContent content, const TableStats& now) const {
  if (content != TableContent::kChanges) return std::optional<uint64_t>();
  if (now.changes_since >= 0) return std::optional(static_cast<uint64_t>(now.changes_since));
  return Internal("table \"" + shape().name + "\" does not know on every rank which of its rows changed");
}

Result<std::optional<FileSum>> RankTable::SaveThroughOwner(ShardRange shards, TableContent content,
                                                           const std::string& path) const {
  const auto owner = static_cast<size_t>(ranks_->OwnerOf(shards.begin));
  const bool is_of_one = static_cast<size_t>(ranks_->OwnerOf(shards.end - 1)) == owner;
  if (owner == rank() || !is_of_one || ranks_->gathers_files()) return std::optional<FileSum>();
  OwnersFile file;
  file.shards = shards;
  file.content = content;
  const TableStats now = stats();
  file.pushes = static_cast<uint64_t>(now.pushes);
  MR_ASSIGN(file.since, SinceOf(content, now));
  std::error_code unknown;
  file.path = std::filesystem::absolute(path, unknown).string();
  if (unknown) return std::optional<FileSum>();
  MR_ASSIGN(file.mark, MarkFile(path));
  std::vector<std::optional<std::string>> requests(ranks());
  WireWriter request(&requests[owner].emplace());
  RankTables::Start(RankTables::Request::kSaveFile, shape().name, &request);
  PutOwnersFile(file, &request);
  std::vector<std::string> answers;
  MR_TRY(ranks_->Ask(std::move(requests), &answers));
  WireReader answer(answers[owner]);
  const auto written = answer.Get<std::optional<FileSum>>();
  std::string reason(answer.GetText());
  if (written) {
    if (HasBytes(path, written->bytes)) return written;
    reason += "what it has written is not seen here";
  }
  ranks_->GatherFiles(file.path, reason);
  return std::optional<FileSum>();
}

NonFiniteRows RankTable::FindNonFinite() const {
  NonFiniteRows all = part_->FindNonFinite();
  // A lost rank ends the run at its next step, with a message.
  (void)AskOthers(RankTables::Request::kFindNonFinite, "", [&all](WireReader answer) {
    const auto theirs = answer.Get<NonFiniteRows>();
    if (theirs.rows == 0) return;
    all.least_key = all.rows == 0 ? theirs.least_key : std::min(all.least_key, theirs.least_key);
    all.rows += theirs.rows;
  }).ok();
  return all;
}

TableStats RankTable::stats() const {
  TableStats all = part_->stats();
  (void)AskOthers(RankTables::Request::kStats, "", [&all](WireReader answer) {
    const auto theirs = answer.Get<TableStats>();
    all.rows += theirs.rows;
    all.bytes += theirs.bytes;
    all.pushes = std::max(all.pushes, theirs.pushes);
    all.changes_since = SinceOfBoth(all.changes_since, theirs.changes_since);
  }).ok();
  return all;
}

/// One whose rows count shows and clicks: each rank does to its part what is done to the whole.
class CountedRankTable final : public RankTable, public CountedTable {
 public:
  using RankTable::RankTable;

  Result<ShrinkReport> Shrink(int threads) override {
    ForgetRows();
    MR_ASSIGN(ShrinkReport all, AsCounted(part())->Shrink(threads));
    std::string payload;
    WireWriter(&payload).Put(static_cast<int32_t>(threads));
    MR_TRY(AskOthers(RankTables::Request::kShrink, payload, [&all](WireReader answer) {
      const auto theirs = answer.Get<ShrinkReport>();
      all.rows += theirs.rows;
      all.deleted += theirs.deleted;
    }));
    return all;
  }

  Status WasSaved(TableContent content) override {
    MR_TRY(AsCounted(part())->WasSaved(content));
    std::string payload;
    WireWriter(&payload).Put(content);
    return AskOthers(RankTables::Request::kWasSaved, payload, [](WireReader) {});
  }

  Result<CountedRows> Count() const override {
    MR_ASSIGN(CountedRows all, AsCounted(part())->Count());
    MR_TRY(AskOthers(RankTables::Request::kCount, "", [&all](WireReader answer) {
      const auto theirs = answer.Get<CountedRows>();
      all.rows += theirs.rows;
      all.with_embedx += theirs.with_embedx;
      all.shows += theirs.shows;
      all.clicks += theirs.clicks;
    }));
    return all;
  }

  const CtrRows& policy() const override { return AsCounted(part())->policy(); }
};

}  // namespace

TableFactory RankTableFactory(const TableFactory& parts, RankTables& ranks, const RankTableOptions& options) {
  TableFactory factory;
  for (const TableFactory::Entry& entry : parts.entries()) {
    const auto make = [maker = entry.value, &ranks, options](const TableDesc& desc,
                                                             uint64_t seed) -> Result<std::unique_ptr<SparseTable>> {
      MR_ASSIGN(std::unique_ptr<SparseTable> part, maker(desc, seed));
      if (part == nullptr) return part;
      std::unique_ptr<RankTable> table;
      if (AsCounted(part.get()) == nullptr) {
        table = std::make_unique<RankTable>(std::move(part), ranks);
      } else {
        table = std::make_unique<CountedRankTable>(std::move(part), ranks);
      }
      MR_TRY(table->SetOptions(options));
      return std::unique_ptr<SparseTable>(std::move(table));
    };
    CHECK(factory.Add(entry.name, entry.doc, make).ok());
  }
  return factory;
}

Result<bool> SetRankTableOptions(SparseTable& table, const RankTableOptions& options) {
  auto* const of_ranks = dynamic_cast<RankTable*>(&table);
  if (of_ranks != nullptr) MR_TRY(of_ranks->SetOptions(options));
  return of_ranks != nullptr;
}

}  // namespace millrace
