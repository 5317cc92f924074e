#include "report/rank_progress.h"

#include <array>
#include <cstring>
#include <span>
#include <sstream>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "dataset/stream_dataset.h"

namespace millrace {
namespace {

template <class T, class Plain>
concept Like = std::is_same_v<std::remove_const_t<T>, Plain>;

// The fields of a struct in the order in which they travel. Each has a name here: one more does not compile.

template <Like<NumberForm> T>
auto FieldsOf(T& form) {
  auto& [text, place, file, line, column, nth] = form;
  return std::tie(text, place, file, line, column, nth);
}

template <Like<SeenTimes::Time> T>
auto FieldsOf(T& time) {
  auto& [seconds, text] = time;
  return std::tie(seconds, text);
}

template <Like<SeenTimes> T>
auto FieldsOf(T& times) {
  auto& [column, first, last] = times;
  return std::tie(column, first, last);
}

template <Like<SeenWords> T>
auto FieldsOf(T& words) {
  auto& [has_some, other] = words;
  return std::tie(has_some, other);
}

template <Like<SlotShare> T>
auto FieldsOf(T& share) {
  auto& [rows, empty, ids, unknown, has_vocabulary] = share;
  return std::tie(rows, empty, ids, unknown, has_vocabulary);
}

template <Like<ValueNames> T>
auto FieldsOf(T& names) {
  auto& [lines, is_partial, some, absent, times, words, all_ones, whole_floats, whole, truths, not_utf8,
         not_utf8_values, others, trained, shares, trained_shares, zones, trained_zones, clocks, of_1970, later] =
      names;
  return std::tie(lines, is_partial, some, absent, times, words, all_ones, whole_floats, whole, truths, not_utf8,
                  not_utf8_values, others, trained, shares, trained_shares, zones, trained_zones, clocks, of_1970,
                  later);
}

template <Like<PassStats> T>
auto FieldsOf(T& data) {
  auto& [files, bytes, lines, rows, bad_lines, first_bad_lines, quarantine_path, counters, stage_seconds, names] = data;
  return std::tie(files, bytes, lines, rows, bad_lines, first_bad_lines, quarantine_path, counters, stage_seconds,
                  names);
}

template <class T>
concept Container = requires(const T& all) {
  typename T::value_type;
  all.begin();
};

template <class T>
void PutOne(const T& one, WireWriter* out) {
  if constexpr (std::is_arithmetic_v<T>) {
    out->Put(one);
  } else if constexpr (std::is_same_v<T, std::string>) {
    out->PutText(one);
  } else if constexpr (Container<T>) {
    out->Put(static_cast<uint64_t>(one.size()));
    for (const auto& element : one) PutOne(element, out);
  } else if constexpr (requires { typename T::second_type; }) {
    PutOne(one.first, out);
    PutOne(one.second, out);
  } else {
    std::apply([&](const auto&... fields) { (PutOne(fields, out), ...); }, FieldsOf(one));
  }
}

template <class T>
void GetOne(WireReader* in, T* one) {
  if constexpr (std::is_arithmetic_v<T>) {
    *one = in->Get<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    *one = in->GetText();
  } else if constexpr (requires { typename T::mapped_type; }) {
    const auto count = in->Get<uint64_t>();
    for (uint64_t i = 0; i < count && in->ok(); ++i) {
      std::string key(in->GetText());
      GetOne(in, &(*one)[std::move(key)]);
    }
  } else if constexpr (Container<T>) {
    const auto count = in->Get<uint64_t>();
    for (uint64_t i = 0; i < count && in->ok(); ++i) one->insert(one->end(), std::string(in->GetText()));
  } else {
    std::apply([&](auto&... fields) { (GetOne(in, &fields), ...); }, FieldsOf(*one));
  }
}

}  // namespace

void PutTotals(const MetricTotals& totals, WireWriter* out) {
  // The buckets of an AUC are 1 MB, most of them zeros until there are many rows.
  const std::span<const double> sums = totals.sums;
  const auto end_of = [&](size_t at, bool of_zeros) {
    while (at < sums.size() && (sums[at] == 0) == of_zeros) ++at;
    return at;
  };
  out->Put(static_cast<uint64_t>(sums.size()));
  for (size_t at = 0; at < sums.size();) {
    const size_t first = end_of(at, true);
    out->Put(static_cast<uint64_t>(first - at));
    at = end_of(first, false);
    out->PutAll(sums.subspan(first, at - first));
  }
  std::ostringstream samples;
  for (const GroupSample& sample : totals.samples) sample.Write(samples);
  for (const ExampleRows& examples : totals.examples) examples.Write(samples);
  out->PutText(std::move(samples).str());
}

std::optional<MetricTotals> GetTotals(WireReader* in, const MetricSet& metrics) {
  MetricTotals totals = metrics.NewTotals();
  if (in->Get<uint64_t>() != totals.sums.size()) return std::nullopt;
  const std::span<double> sums = totals.sums;
  for (size_t at = 0; at < sums.size() && in->ok();) {
    const auto zeros = in->Get<uint64_t>();
    const std::string_view values = in->GetBytesOfAll<double>();
    if (zeros > sums.size() - at || values.size() > (sums.size() - at - zeros) * sizeof(double)) return std::nullopt;
    std::memcpy(sums.data() + at + zeros, values.data(), values.size());
    at += zeros + values.size() / sizeof(double);
  }
  std::string_view samples = in->GetText();
  for (GroupSample& sample : totals.samples) {
    if (!sample.TakeBytes(&samples)) return std::nullopt;
  }
  // Of metrics that are computed from their sums there are none.
  if (!samples.empty()) totals.examples.resize(metrics.exact_metrics());
  for (ExampleRows& examples : totals.examples) {
    if (!examples.TakeBytes(&samples)) return std::nullopt;
  }
  return in->ok() && samples.empty() ? std::optional(std::move(totals)) : std::nullopt;
}

void PutPassStats(const PassStats& data, WireWriter* out) { PutOne(data, out); }

void GetPassStats(WireReader* in, PassStats* data) { GetOne(in, data); }

std::string RankProgress::ToBytes() const {
  std::string bytes;
  WireWriter out(&bytes);
  out.PutText(trained.ToText());
  PutOne(bad_lines, &out);
  PutTotals(totals, &out);
  for (const int64_t value : {batches, examples, read_nanoseconds, run_nanoseconds, exchange_nanoseconds})
    out.Put(value);
  PutPassStats(data, &out);
  return bytes;
}

Result<RankProgress> RankProgress::FromBytes(std::string_view bytes, const MetricSet& metrics) {
  RankProgress progress;
  WireReader in(bytes);
  MR_ASSIGN(progress.trained, ConsumedRanges::FromText(in.GetText()));
  GetOne(&in, &progress.bad_lines);
  std::optional<MetricTotals> totals = GetTotals(&in, metrics);
  for (int64_t* value : {&progress.batches, &progress.examples, &progress.read_nanoseconds, &progress.run_nanoseconds,
                         &progress.exchange_nanoseconds}) {
    *value = in.Get<int64_t>();
  }
  GetPassStats(&in, &progress.data);
  if (!in.ok() || !totals.has_value()) return Internal("another rank tells its progress in other words");
  progress.totals = *std::move(totals);
  return progress;
}

void RankProgress::AddWorker(const WorkerReport& worker) {
  batches += worker.batches;
  examples += worker.examples;
  read_nanoseconds += worker.read_nanoseconds;
  run_nanoseconds += worker.run_nanoseconds;
  exchange_nanoseconds += worker.exchange_nanoseconds;
}

void RankProgress::Add(const RankProgress& other) {
  trained.Merge(other.trained);
  for (const auto& [kind, count] : other.bad_lines) bad_lines[kind] += count;
  MetricSet::Add(other.totals, &totals);
  AddCounts(other);
}

void RankProgress::AddCounts(const RankProgress& other) {
  batches += other.batches;
  examples += other.examples;
  read_nanoseconds += other.read_nanoseconds;
  run_nanoseconds += other.run_nanoseconds;
  exchange_nanoseconds += other.exchange_nanoseconds;
  AddPassStats(other.data, &data);
}

Status GatheredProgress::Gather(const std::function<RankProgress()>& mine, RunState* state, bool* is_sound,
                                bool* is_asked_to_stop) {
  std::array<int64_t, 2> sums = {*is_sound ? 0 : 1, *is_asked_to_stop ? 1 : 0};
  MR_TRY(ranks_->communicator().SumOverRanks(sums));
  *is_sound = sums[0] == 0;
  *is_asked_to_stop = sums[1] > 0;
  std::vector<std::string> all;
  MR_TRY(ranks_->ToLeader(ranks_->leads() ? "" : mine().ToBytes(), &all));
  if (!ranks_->leads()) return Status::Ok();
  others_ = {};
  for (size_t r = 1; r < all.size(); ++r) {
    MR_ASSIGN(RankProgress theirs, RankProgress::FromBytes(all[r], *metrics_));
    if (r == 1) {
      others_ = std::move(theirs);
    } else {
      others_.Add(theirs);
    }
  }
  state->trained.Merge(others_.trained);
  if (all.size() > 1) MetricSet::Add(others_.totals, &state->metric_totals);
  for (const auto& [kind, count] : others_.bad_lines) state->bad_lines[kind] += count;
  for (const auto& [kind, count] : earlier_bad_lines_) state->bad_lines[kind] += count;
  return Status::Ok();
}

Status GatheredProgress::SumLoads(PassStats* load, int64_t* rows) const {
  MR_TRY(ranks_->communicator().SumOverRanks({rows, 1}));
  std::string bytes;
  if (!ranks_->leads()) {
    WireWriter out(&bytes);
    PutPassStats(*load, &out);
  }
  std::vector<std::string> all;
  MR_TRY(ranks_->ToLeader(std::move(bytes), &all));
  for (size_t r = 1; ranks_->leads() && r < all.size(); ++r) {
    WireReader in(all[r]);
    PassStats theirs;
    GetPassStats(&in, &theirs);
    if (!in.ok()) return Internal("what another rank has loaded ends too soon");
    AddPassStats(theirs, load);
  }
  return Status::Ok();
}

}  // namespace millrace
