#include "ranks/dense_exchange.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "kernels/racy.h"
#include "ranks/part_of.h"

namespace millrace {
namespace {

/// The inputs of optimizers that are parameters, those of them whose steps are scaled, and what is a sum over all
/// steps.
struct Updated {
  std::set<std::string, std::less<>> parameters;
  std::set<std::string, std::less<>> scaled;
  std::set<std::string, std::less<>> sums;
};

Updated UpdatedBy(const Executable& step) {
  Updated updated;
  const auto add = [](const OpDesc& op, std::string_view input, std::set<std::string, std::less<>>* names) {
    for (std::string& name : InputArguments(op, input)) names->insert(std::move(name));
  };
  for (int block = 0; block < step.block_count(); ++block) {
    for (const OpDesc& op : step.ops(block)) {
      const OpInfo* const info = step.registry().Find(op.type());
      if (info == nullptr || !info->is_optimizer) continue;
      add(op, "Param", &updated.parameters);
      if (info->scales_steps) add(op, "Param", &updated.scaled);
      for (const StateInfo& state : info->states) {
        if (state.adds_up) add(op, state.in, &updated.sums);
      }
    }
  }
  return updated;
}

/// Adds `moved` to `values`.
template <class T>
void AddTo(std::span<const T> moved, T* values) {
  for (size_t i = 0; i < moved.size(); ++i) values[i] += moved[i];
}

/// Exchanges of each rank after which most of what was held back has come. Measured with 4 and 8 ranks: 2 overshoots,
/// 10 is slow (docs/adr/0019-ranks-at-their-own-pace.md).
constexpr float kRoundsHeldBack = 5;

/// How much of an exchange has not been trained on, so many batches behind it, where the next one comes after `every`.
float UntrainedShare(int since, int every) {
  return std::max(0.0f, 1 - static_cast<float>(since) / static_cast<float>(every));
}

/// What a rank sent does not fit what is here.
Status OthersThanHere(int rank) {
  return Internal("rank " + std::to_string(rank) + " has other dense parameters than this one");
}

/// Takes differences from the front of a message: as many as `values` has.
bool TakeCounts(WireReader* in, std::vector<int64_t>* buffer, size_t count) {
  in->GetAll(buffer);
  return in->ok() && buffer->size() == count;
}

}  // namespace

Result<std::unique_ptr<DenseExchange>> DenseExchange::Create(const Executable& step, Scope& root, RankGroup& ranks,
                                                             const Options& options) {
  std::unique_ptr<DenseExchange> exchange(new DenseExchange(ranks, options));
  MR_TRY(exchange->FindVariables(step, root));
  ranks.calls().Serve(RankService::kDense,
                      [at = exchange.get()](int from, std::string_view request, std::string* answer) {
                        return at->Answer(from, request, answer);
                      });
  return exchange;
}

DenseExchange::~DenseExchange() {
  // Answers are written to the call. What went wrong with it ended the run before.
  if (is_under_way_) (void)ranks_->calls().Wait(&call_, &answers_).ok();
  ranks_->calls().Serve(RankService::kDense, nullptr);
}

Status DenseExchange::FindVariables(const Executable& step, Scope& root) {
  std::set<std::string> written;
  for (int block = 0; block < step.block_count(); ++block) {
    for (const OpDesc& op : step.ops(block)) {
      for (const OpDesc::Var& output : op.outputs()) {
        for (const std::string& name : output.arguments()) {
          const auto meta = step.vars().find(name);
          if (meta != step.vars().end() && meta->second.persistable) written.insert(name);
        }
      }
    }
  }
  const Updated updated = UpdatedBy(step);
  const std::set<std::string_view> counters(options_.counters.begin(), options_.counters.end());
  const float share = 1.0f / static_cast<float>(ranks_->trainers());
  const float sum_share = std::min(1.0f, 2 * share);
  const float scaled_share = ranks_->trainers() > 2 ? share : sum_share;
  std::array<std::vector<Place>, kSections> sections;
  std::vector<std::pair<Section, Place>> floats;
  for (const std::string& name : written) {
    Variable* const variable = root.Find(name);
    if (variable == nullptr || !variable->Is<Tensor>()) continue;
    auto* const tensor = variable->GetMutable<Tensor>();
    const auto count = static_cast<size_t>(tensor->numel());
    if (tensor->dtype() == DType::kInt64) {
      counts_.push_back({tensor, count_count_, count, 1.0f, Kind::kOther});
      count_count_ += count;
    } else if (tensor->dtype() != DType::kFloat32) {
      return InvalidConfig("dist.update: ASYNC: \"" + name + "\" is " + std::string(DTypeName(tensor->dtype())) +
                           " and is written by every batch; ranks share float32 and int64");
    } else {
      const bool is_parameter = updated.parameters.contains(name);
      Place place{tensor, 0, count, updated.sums.contains(name) ? sum_share : share, Kind::kOther};
      if (counters.contains(name) && !is_parameter) {
        place.weight = 1;
      } else if (updated.scaled.contains(name)) {
        place.weight = scaled_share;
        place.kind = Kind::kScaledParameter;
      } else if (is_parameter) {
        place.weight = sum_share;
        place.kind = Kind::kParameter;
      }
      floats.push_back({is_parameter ? kParameters : kRest, place});
    }
  }
  std::stable_sort(floats.begin(), floats.end(),
                   [](const auto& a, const auto& b) { return a.second.count < b.second.count; });
  size_t small = 0;
  for (const auto& [section, place] : floats) {
    small += place.count;
    const bool is_small = place.count <= options_.small && small <= options_.all_small;
    sections[is_small ? kSmall : section].push_back(place);
  }
  size_t end = 0;
  for (size_t s = 0; s < kSections; ++s) {
    begins_[s] = end;
    for (Place& place : sections[s]) {
      place.begin = end;
      end += place.count;
      floats_.push_back(place);
    }
  }
  begins_[kSections] = end;
  return Status::Ok();
}

std::array<DenseExchange::Range, DenseExchange::kSections> DenseExchange::PartsOf(int rank, Section last) const {
  std::array<Range, kSections> parts;
  for (size_t s = 0; s <= last; ++s) {
    const auto [begin, end] = PartOf(begins_[s + 1] - begins_[s], rank, ranks_->size());
    parts[s] = {begins_[s] + begin, begins_[s] + end};
  }
  return parts;
}

DenseExchange::Range DenseExchange::CountsOf(int rank, Section last) const {
  if (last == kSmall) return {};
  const auto [begin, end] = PartOf(count_count_, rank, ranks_->size());
  return {begin, end};
}

size_t DenseExchange::PartSize(int rank, Section last) const {
  size_t size = 0;
  for (const auto& [begin, end] : PartsOf(rank, last)) size += end - begin;
  return size;
}

void DenseExchange::ReadCopy(Section last) {
  for (const Place& place : floats_) {
    if (place.begin >= begins_[last + 1]) break;
    racy::Best().copy_row(place.tensor->data<float>(), now_.data() + place.begin, place.count);
  }
  if (last == kSmall) return;
  for (const Place& place : counts_) {
    std::copy_n(place.tensor->data<int64_t>(), place.count, counts_now_.data() + place.begin);
  }
}

void DenseExchange::Start() {
  if (ranks() == 1) return;
  now_.resize(begins_[kSections]);
  counts_now_.resize(count_count_);
  requests_.resize(ranks());
  ReadCopy(kRest);
  known_ = now_;
  counts_known_ = counts_now_;
  since_last_ = 0;
  since_parameters_ = 0;

  const std::lock_guard lock(mutex_);
  std::vector<float> all_weights(now_.size());
  std::vector<Kind> all_kinds(now_.size());
  for (const Place& place : floats_) {
    std::fill_n(all_weights.data() + place.begin, place.count, place.weight);
    std::fill_n(all_kinds.data() + place.begin, place.count, place.kind);
  }
  shared_.clear();
  weights_.clear();
  kinds_.clear();
  for (const auto& [begin, end] : PartsOf(rank(), kRest)) {
    shared_.insert(shared_.end(), now_.data() + begin, now_.data() + end);
    weights_.insert(weights_.end(), all_weights.data() + begin, all_weights.data() + end);
    kinds_.insert(kinds_.end(), all_kinds.data() + begin, all_kinds.data() + end);
  }
  const auto [counts_begin, counts_end] = PartOf(count_count_, rank(), ranks_->size());
  counts_shared_.assign(counts_now_.data() + counts_begin, counts_now_.data() + counts_end);
  // With two all comes at once.
  released_ = ranks_->trainers() > 2 ? 1 / (kRoundsHeldBack * static_cast<float>(ranks_->trainers())) : 0;
  held_back_.resize(shared_.size());  // what is left of the pass before comes as well
  copies_.assign(ranks(), shared_);
  last_moved_.assign(ranks(), std::vector<float>(shared_.size()));
  count_copies_.assign(ranks(), counts_shared_);
}

Status DenseExchange::Step() {
  if (ranks() == 1) return Status::Ok();
  ++since_last_;
  ++since_parameters_;
  if (is_under_way_ && call_.is_over()) MR_TRY(TakeAnswers());
  if (is_under_way_ || since_last_ < options_.every) return Status::Ok();
  if (since_parameters_ < options_.parameters_every) return Begin(kSmall);
  return Begin(++with_parameters_ % options_.rest_every == 0 ? kRest : kParameters);
}

Status DenseExchange::ExchangeNow() {
  if (ranks() == 1) return Status::Ok();
  MR_TRY(Wait());
  MR_TRY(Begin(kRest));
  return TakeAnswers();
}

Status DenseExchange::Begin(Section last) {
  since_last_ = 0;
  if (last >= kParameters) since_parameters_ = 0;
  last_ = last;
  ReadCopy(last);
  std::vector<float> moved;
  std::vector<int64_t> counts_moved;
  for (int r = 0; r < ranks_->size(); ++r) {
    std::string& request = requests_[static_cast<size_t>(r)].emplace();
    moved.clear();
    for (const auto& [begin, end] : PartsOf(r, last)) {
      for (size_t i = begin; i < end; ++i) {
        const float difference = AsSent(now_[i] - known_[i], options_.wire);
        moved.push_back(difference);
        known_[i] += difference;
      }
    }
    const auto [counts_begin, counts_end] = CountsOf(r, last);
    counts_moved.resize(counts_end - counts_begin);
    for (size_t i = counts_begin; i < counts_end; ++i) {
      counts_moved[i - counts_begin] = counts_now_[i] - counts_known_[i];
      counts_known_[i] = counts_now_[i];
    }
    WireWriter out(&request);
    out.Put(last);
    out.PutFloats(moved, options_.wire);
    out.PutAll(std::span<const int64_t>(counts_moved));
  }
  MR_TRY(ranks_->calls().Begin(RankService::kDense, requests_, &call_));
  is_under_way_ = true;
  return Status::Ok();
}

float DenseExchange::HoldBack(size_t i, float more) {
  held_back_[i] += more;
  const float now = released_ * held_back_[i];
  held_back_[i] -= now;
  return now;
}

Status DenseExchange::Answer(int from, std::string_view request, std::string* answer) {
  std::vector<float> moved;
  std::vector<int64_t> counts_moved;
  WireReader in(request);
  const auto last = in.Get<Section>();
  in.GetFloats(options_.wire, &moved);
  const std::lock_guard lock(mutex_);
  if (last > kRest || !TakeCounts(&in, &counts_moved, last == kSmall ? 0 : counts_shared_.size()) ||
      moved.size() != PartSize(rank(), last)) {
    return OthersThanHere(from);
  }
  std::vector<float>& copy = copies_[static_cast<size_t>(from)];
  std::vector<float>& last_moved = last_moved_[static_cast<size_t>(from)];
  for (size_t i = 0; i < moved.size(); ++i) {
    last_moved[i] = moved[i];
    shared_[i] += weights_[i] * moved[i];
    if (released_ > 0 && kinds_[i] == Kind::kParameter) shared_[i] += HoldBack(i, (1 - weights_[i]) * moved[i]);
    copy[i] += moved[i];
    moved[i] = AsSent(shared_[i] - copy[i], options_.wire);
    copy[i] += moved[i];
  }
  std::vector<int64_t>& count_copy = count_copies_[static_cast<size_t>(from)];
  for (size_t i = 0; i < counts_moved.size(); ++i) {
    counts_shared_[i] += counts_moved[i];
    count_copy[i] += counts_moved[i];
    counts_moved[i] = counts_shared_[i] - count_copy[i];
    count_copy[i] = counts_shared_[i];
  }
  WireWriter out(answer);
  out.PutFloats(moved, options_.wire);
  out.PutAll(std::span<const int64_t>(counts_moved));
  return Status::Ok();
}

void DenseExchange::Move(std::span<const float> moved, size_t begin) {
  const size_t end = begin + moved.size();
  for (const Place& place : floats_) {
    const size_t first = std::max(begin, place.begin);
    const size_t last = std::min(end, place.begin + place.count);
    if (first >= last) continue;
    racy::Best().add_row(moved.data() + (first - begin), place.tensor->mutable_data<float>() + (first - place.begin),
                         last - first);
  }
}

Status DenseExchange::TakeAnswers() {
  MR_TRY(ranks_->calls().Wait(&call_, &answers_).Context("dense parameters"));
  is_under_way_ = false;
  std::vector<float> moved;
  std::vector<int64_t> counts_moved;
  for (int r = 0; r < ranks_->size(); ++r) {
    const auto [counts_begin, counts_end] = CountsOf(r, last_);
    WireReader in(answers_[static_cast<size_t>(r)]);
    in.GetFloats(options_.wire, &moved);
    if (!TakeCounts(&in, &counts_moved, counts_end - counts_begin) || moved.size() != PartSize(r, last_)) {
      return OthersThanHere(r);
    }
    std::span<const float> left = moved;
    for (const auto& [begin, end] : PartsOf(r, last_)) {
      Move(left.first(end - begin), begin);
      AddTo<float>(left.first(end - begin), known_.data() + begin);
      left = left.subspan(end - begin);
    }
    AddTo<int64_t>(counts_moved, counts_known_.data() + counts_begin);
    for (const Place& place : counts_) {
      const size_t first = std::max(counts_begin, place.begin);
      const size_t last = std::min(counts_end, place.begin + place.count);
      for (size_t i = first; i < last; ++i) {
        place.tensor->mutable_data<int64_t>()[i - place.begin] += counts_moved[i - counts_begin];
      }
    }
  }
  return Status::Ok();
}

Status DenseExchange::Settle() {
  if (ranks() == 1) return Status::Ok();
  MR_TRY(Wait());
  ReadCopy(kRest);
  // What each copy has moved since its last exchange, whole.
  std::vector<std::string> out;
  std::vector<std::string> in;
  for (int r = 0; r < ranks_->size(); ++r) out.push_back(MovedOf(r));
  MR_TRY(ranks_->communicator().AllToAll(out, &in));
  std::string part;
  MR_TRY(SettlePart(in, &part));
  std::fill(out.begin(), out.end(), part);
  MR_TRY(ranks_->communicator().AllToAll(out, &in));
  MR_TRY(TakeSettled(in));
  since_last_ = 0;
  since_parameters_ = 0;
  return Status::Ok();
}

std::string DenseExchange::MovedOf(int rank) {
  std::vector<float> moved;
  for (const auto& [begin, end] : PartsOf(rank, kRest)) {
    for (size_t i = begin; i < end; ++i) moved.push_back(now_[i] - known_[i]);
  }
  const auto [counts_begin, counts_end] = CountsOf(rank, kRest);
  for (size_t i = counts_begin; i < counts_end; ++i) counts_now_[i] -= counts_known_[i];
  std::string bytes;
  WireWriter to(&bytes);
  to.Put(UntrainedShare(since_last_, options_.every));
  to.Put(UntrainedShare(since_parameters_, options_.parameters_every));
  to.PutAll(std::span<const float>(moved));
  to.PutAll(std::span<const int64_t>(counts_now_).subspan(counts_begin, counts_end - counts_begin));
  return bytes;
}

Status DenseExchange::SettlePart(const std::vector<std::string>& in, std::string* part) {
  const std::lock_guard lock(mutex_);
  std::vector<int64_t> counts_moved;
  std::vector<std::vector<float>>& moved = copies_;  // which are all to be the same
  for (int r = 0; r < ranks_->size(); ++r) {
    WireReader from(in[static_cast<size_t>(r)]);
    const auto of_small = from.Get<float>();
    const auto of_parameters = from.Get<float>();
    std::vector<float>& theirs = moved[static_cast<size_t>(r)];
    from.GetAll(&theirs);
    if (!TakeCounts(&from, &counts_moved, counts_shared_.size()) || theirs.size() != shared_.size()) {
      return OthersThanHere(r);
    }
    AddTo<int64_t>(counts_moved, counts_shared_.data());
    std::vector<float>& last_moved = last_moved_[static_cast<size_t>(r)];
    const size_t small = PartSize(rank(), kSmall);
    for (size_t i = 0; i < theirs.size(); ++i) {
      if (kinds_[i] == Kind::kOther) continue;
      last_moved[i] *= i < small ? of_small : of_parameters;
      shared_[i] -= weights_[i] * last_moved[i];
      if (kinds_[i] == Kind::kParameter) held_back_[i] -= (1 - weights_[i]) * last_moved[i];
      theirs[i] += last_moved[i];
    }
    std::fill(last_moved.begin(), last_moved.end(), 0.0f);
  }
  for (size_t i = 0; i < shared_.size(); ++i) {
    float sum = 0;
    float movers = 0;
    for (const std::vector<float>& theirs : moved) {
      sum += theirs[i];
      if (theirs[i] != 0) ++movers;
    }
    const float weight = kinds_[i] != Kind::kOther && movers > 0 ? std::min(weights_[i], 1 / movers) : weights_[i];
    shared_[i] += weight * sum;
    if (kinds_[i] == Kind::kParameter) held_back_[i] += (1 - weight) * sum;
  }
  if (released_ == 0) std::fill(held_back_.begin(), held_back_.end(), 0.0f);
  for (std::vector<float>& copy : copies_) copy = shared_;
  for (std::vector<int64_t>& copy : count_copies_) copy = counts_shared_;
  WireWriter to(part);
  to.PutAll(std::span<const float>(shared_));
  to.PutAll(std::span<const int64_t>(counts_shared_));
  return Status::Ok();
}

Status DenseExchange::TakeSettled(const std::vector<std::string>& in) {
  counts_known_.clear();
  std::vector<float> values;
  std::vector<int64_t> counts;
  for (int r = 0; r < ranks_->size(); ++r) {
    WireReader from(in[static_cast<size_t>(r)]);
    from.GetAll(&values);
    const auto [counts_begin, counts_end] = CountsOf(r, kRest);
    if (!TakeCounts(&from, &counts, counts_end - counts_begin) || values.size() != PartSize(r, kRest)) {
      return OthersThanHere(r);
    }
    const float* value = values.data();
    for (const auto& [begin, end] : PartsOf(r, kRest)) {
      std::copy_n(value, end - begin, known_.data() + begin);
      value += end - begin;
    }
    counts_known_.insert(counts_known_.end(), counts.begin(), counts.end());
  }
  for (const Place& place : floats_) {
    std::copy_n(known_.data() + place.begin, place.count, place.tensor->mutable_data<float>());
  }
  for (const Place& place : counts_) {
    std::copy_n(counts_known_.data() + place.begin, place.count, place.tensor->mutable_data<int64_t>());
  }
  return Status::Ok();
}

}  // namespace millrace
