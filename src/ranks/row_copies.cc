#include "ranks/row_copies.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "core/caught.h"
#include "kernels/flush_tiny.h"
#include "kernels/racy.h"
#include "table/virtual_shards.h"

namespace millrace {

size_t RowCopies::CopyFloats(const TableShape& shape) {
  return 2 * static_cast<size_t>(shape.row_floats) + sizeof(Marks) / sizeof(float);
}

Result<std::unique_ptr<RowCopies>> RowCopies::Create(SparseTable& part, RankTables& ranks,
                                                     const RankTableOptions& options) {
  auto* const rows = dynamic_cast<ReplicaSource*>(&part);
  const std::string table = "dist.update: GEO: table \"" + part.shape().name + "\": ";
  if (rows == nullptr) return InvalidConfig(table + "its class does not give its rows away; use update: ASYNC");
  if (part.shape().counts) {
    return InvalidConfig(table + "its rows count shows and clicks, which copies do not; use update: ASYNC");
  }
  if (rows->row_policy().copies() == CopiesOfRow::kApart) {
    return InvalidConfig(table + "what ranks learn apart adds up with sgd, adagrad and ftrl, and not with \"" +
                         rows->row_policy().Describe() + "\"; use one of these, or update: ASYNC");
  }
  if (CopyFloats(part.shape()) > SlabRows::kMostFloats) {
    return InvalidConfig(table + "a copy of a row of " + std::to_string(part.shape().row_floats) +
                         " floats is too long; use a smaller dim, or update: ASYNC");
  }
  return std::unique_ptr<RowCopies>(new RowCopies(part, *rows, ranks, options));
}

RowCopies::RowCopies(SparseTable& part, ReplicaSource& rows, RankTables& ranks, const RankTableOptions& options)
    : part_(&part),
      policy_(&rows.row_policy()),
      ranks_(&ranks),
      options_(options),
      dim_(static_cast<size_t>(part.shape().dim)),
      floats_(static_cast<size_t>(part.shape().row_floats)),
      rows_(CopyFloats(part.shape())),
      seen_(static_cast<size_t>(ranks.ranks())),
      fetched_(ranks),
      moved_(static_cast<size_t>(ranks.ranks())) {
  for (uint32_t i = 0; i < kShards; ++i) shards_.push_back(std::make_unique<KeyIndexShard>(0));
}

RowCopies::~RowCopies() {
  // Answers are written to what is under way. What went wrong with that ended the run before.
  fetched_.GiveUp(0);
  (void)ranks_->Wait(&under_way_.call, &under_way_.answers).ok();
}

RowCopies::Marks& RowCopies::MarksOf(float* row) const {
  return *std::launder(reinterpret_cast<Marks*>(row + 2 * floats_));
}

float* RowCopies::FindOrMake(uint64_t key) {
  const uint64_t hash = HashKey(key);
  KeyIndexShard& shard = ShardOf(hash);
  float* const found = shard.cells().Find(key, hash);
  if (found != nullptr) return found;
  return shard.FindOrAdd(key, hash, reclaimer_, [this, key] {
    float* const row = rows_.Allocate();
    policy_->Start(key, row);
    std::copy_n(row, floats_, KnownOf(row));
    new (row + 2 * floats_) Marks;
    return row;
  });
}

void RowCopies::Asked::Start(size_t ranks) {
  list = nullptr;
  rows.resize(ranks);
  for (std::vector<Used>& of_rank : rows) of_rank.clear();
}

Result<bool> RowCopies::FindOld(const KeyList& list, Asked* asked, std::vector<float*>* copies) {
  asked->Start(ranks());
  copies->assign(list.keys().size(), nullptr);
  bool found = false;
  reclaimer_.Enter();
  const Status looked = Caught("copying rows of table \"" + part_->shape().name + "\" that other ranks own", [&] {
    for (size_t r = 0; r < ranks(); ++r) {
      if (r == rank()) continue;
      const KeyList::Part& part = list.of(r);
      for (size_t i = 0; i < part.keys.size(); ++i) {
        float* const row = FindOrMake(part.keys[i]);
        (*copies)[part.positions[i]] = row;
        if (!IsOld(row)) continue;
        asked->rows[r].push_back({part.keys[i], row});
        found = true;
      }
    }
    return Status::Ok();
  });
  reclaimer_.Leave();
  MR_TRY(looked);
  return found;
}

Status RowCopies::Begin(std::span<const Moved> moved, Asked* asked) {
  asked->requests.assign(ranks(), std::nullopt);
  asked->at = exchange_.load();
  for (size_t r = 0; r < ranks(); ++r) {
    if (asked->rows[r].empty()) continue;
    asked->keys.clear();
    for (const Used& used : asked->rows[r]) asked->keys.push_back(used.key);
    WireWriter request(&asked->requests[r].emplace());
    RankTables::Start(RankTables::Request::kCopyRows, part_->shape().name, &request);
    request.PutAll(std::span<const uint64_t>(asked->keys));
    request.Put(options_.wire);
    request.Put(seen_[r].load());
    request.Put(lr_.load());
    request.PutFloats(moved.empty() ? std::span<const float>() : moved[r].floats, options_.wire);
    request.PutAll(moved.empty() ? std::span<const float>() : moved[r].squares);
  }
  return ranks_->Begin(asked->requests, &asked->call);
}

Status RowCopies::Take(bool all, Asked* asked) {
  MR_TRY(ranks_->Wait(&asked->call, &asked->answers).Context("rows of table \"" + part_->shape().name + "\""));
  std::vector<float>& now = asked->now;
  const FlushTiny flush;
  const std::lock_guard lock(take_mutex_);
  for (size_t r = 0; r < ranks(); ++r) {
    const std::vector<Used>& rows = asked->rows[r];
    if (rows.empty()) continue;
    WireReader answer(asked->answers[r]);
    seen_[r] = answer.Get<int64_t>();
    answer.GetFloats(options_.wire, &now);
    if (!answer.ok() || now.size() != rows.size() * floats_) {
      return Internal("table \"" + part_->shape().name + "\": rank " + std::to_string(r) +
                      " sent other rows than were asked for");
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      float* const row = rows[i].row;
      // Another answer was here before; or this one may lack what this rank has sent since, whose answer is to come.
      if (!all && (!IsOld(row) || asked->at <= MarksOf(row).sent_at)) continue;
      float* const known = KnownOf(row);
      float* const moved = now.data() + i * floats_;
      for (size_t f = 0; f < floats_; ++f) {
        const float value = moved[f];
        moved[f] -= known[f];
        known[f] = value;
      }
      {
        const RowGuard guard(locks_, row);
        policy_->AddTo(moved, lr_.load(), row);
      }
      MarksOf(row).read_at = asked->at;
    }
  }
  return Status::Ok();
}

Status RowCopies::Fetch(const std::shared_ptr<KeyList>& list) {
  // Each worker fetches for a batch, before it looks for its rows.
  fetched_.GiveUp(4 * options_.pushes_under_way);
  std::shared_ptr<Asked> asked = asked_.Take();
  MR_ASSIGN(const bool wants_any, FindOld(*list, asked.get(), &asked->copies));
  if (!wants_any) return Status::Ok();
  MR_TRY(Begin({}, asked.get()));
  asked->list = list;
  fetched_.Add(std::move(asked));
  return Status::Ok();
}

Status RowCopies::Find(const std::shared_ptr<KeyList>& list, std::vector<float*>* copies) {
  const std::shared_ptr<Asked> fetched = fetched_.Take([&](const Asked& asked) { return asked.list == list; });
  if (fetched != nullptr) MR_TRY(Take(false, fetched.get()));
  const std::shared_ptr<Asked> asked = asked_.Take();
  MR_ASSIGN(const bool wants_more, FindOld(*list, asked.get(), copies));
  ranks_->CountPull(!wants_more);
  if (!wants_more) return Status::Ok();
  MR_TRY(Begin({}, asked.get()));
  return Take(false, asked.get());
}

Status RowCopies::Update(const KeyList& list, const std::vector<float*>& copies, std::span<const float> gradients,
                         const PushContext& context) {
  const int64_t push = pushes_.fetch_add(1) + 1;
  lr_ = context.lr;
  const RowStep step{context.lr, push, static_cast<float>(context.examples)};
  const std::shared_ptr<std::vector<Used>> first_uses = first_uses_.Take();
  first_uses->clear();
  {
    const FlushTiny flush;
    for (size_t i = 0; i < copies.size(); ++i) {
      float* row = copies[i];
      if (row == nullptr) continue;
      const RowGuard guard(locks_, row);
      policy_->Update(racy::Best(), step, &row, gradients.data() + i * dim_, 1);
      if (MarksOf(row).uses++ == 0) first_uses->push_back({list.keys()[i], row});
    }
  }
  if (!first_uses->empty()) {
    const std::lock_guard lock(used_mutex_);
    used_.insert(used_.end(), first_uses->begin(), first_uses->end());
  }
  if (push % options_.geo_steps == 0) {
    const std::lock_guard lock(exchange_mutex_);
    MR_TRY(EndExchange());
    return BeginExchange();
  }
  const std::unique_lock lock(exchange_mutex_, std::try_to_lock);
  return lock.owns_lock() && under_way_.call.is_over() ? EndExchange() : Status::Ok();
}

float RowCopies::WeightOf(uint32_t uses, int64_t pushes) const {
  const float others = static_cast<float>(ranks_->trainers()) / 2 - 1;
  if (floats_ > dim_ || others <= 0 || uses <= 1 || pushes <= 1) return 1;
  const float share = static_cast<float>(uses - 1) / static_cast<float>(pushes - 1);
  return 1 / (1 + std::min(share, 1.0f) * others);
}

Status RowCopies::BeginExchange() {
  {
    const std::lock_guard lock(used_mutex_);
    std::swap(sent_, used_);
  }
  ++exchange_;
  const int64_t all_pushes = pushes_.load();
  const int64_t pushes = all_pushes - std::exchange(exchanged_pushes_, all_pushes);
  if (sent_.empty()) return Status::Ok();
  under_way_.Start(ranks());
  for (Moved& moved : moved_) {
    moved.floats.clear();
    moved.squares.clear();
  }
  std::vector<float>& now = under_way_.now;
  now.resize(floats_);
  int64_t messages = 0;
  {
    const std::lock_guard lock(take_mutex_);
    for (const Used& used : sent_) {
      const auto owner = static_cast<size_t>(ranks_->OwnerOf(VirtualShardOf(used.key)));
      if (under_way_.rows[owner].empty()) ++messages;
      under_way_.rows[owner].push_back(used);
      float weight = 1;
      {
        const RowGuard guard(locks_, used.row);
        weight = WeightOf(std::exchange(MarksOf(used.row).uses, 0), pushes);
        racy::CopyRow(used.row, now.data(), floats_);
      }
      MarksOf(used.row).sent_at = exchange_.load();
      float* const known = KnownOf(used.row);
      Moved& moved = moved_[owner];
      if (policy_->has_squares()) moved.squares.push_back(policy_->SquaresOf(known));
      for (size_t f = 0; f < floats_; ++f) {
        const float wanted = weight * (now[f] - known[f]);
        const float sent = AsSent(wanted, options_.wire);
        moved.floats.push_back(sent);
        known[f] = now[f] - (wanted - sent);
      }
    }
  }
  sent_.clear();
  ranks_->CountSent(messages);
  is_under_way_ = true;
  return Begin(moved_, &under_way_);
}

Status RowCopies::EndExchange() { return std::exchange(is_under_way_, false) ? Take(true, &under_way_) : Status::Ok(); }

Status RowCopies::Flush() {
  const std::lock_guard lock(exchange_mutex_);
  MR_TRY(EndExchange());
  MR_TRY(BeginExchange());
  MR_TRY(EndExchange());
  MR_TRY(fetched_.WaitUntilHere());
  exchange_ += kOld;
  return Status::Ok();
}

}  // namespace millrace
