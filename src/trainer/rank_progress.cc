#include "trainer/rank_progress.h"

#include <cstring>
#include <span>
#include <sstream>
#include <type_traits>
#include <utility>

#include "dataset/stream_dataset.h"

namespace millrace {
namespace {

template <class Value>
void PutMap(const std::map<std::string, Value>& map, WireWriter* out) {
  out->Put(static_cast<uint64_t>(map.size()));
  for (const auto& [key, value] : map) {
    out->PutText(key);
    if constexpr (std::is_same_v<Value, std::string>) {
      out->PutText(value);
    } else if constexpr (std::is_same_v<Value, NumberForm>) {
      out->PutText(value.text);
      out->PutText(value.place);
      out->Put(value.file);
      out->Put(value.line);
    } else {
      out->Put(value);
    }
  }
}

template <class Value>
void GetMap(WireReader* in, std::map<std::string, Value>* map) {
  const auto count = in->Get<uint64_t>();
  for (uint64_t i = 0; i < count && in->ok(); ++i) {
    const std::string key(in->GetText());
    if constexpr (std::is_same_v<Value, std::string>) {
      (*map)[key] = in->GetText();
    } else if constexpr (std::is_same_v<Value, NumberForm>) {
      NumberForm& number = (*map)[key];
      number.text = in->GetText();
      number.place = in->GetText();
      number.file = in->Get<uint32_t>();
      number.line = in->Get<uint64_t>();
    } else {
      (*map)[key] = in->Get<Value>();
    }
  }
}

void PutSet(const std::set<std::string>& set, WireWriter* out) {
  out->Put(static_cast<uint64_t>(set.size()));
  for (const std::string& text : set) out->PutText(text);
}

void GetSet(WireReader* in, std::set<std::string>* set) {
  const auto size = in->Get<uint64_t>();
  for (uint64_t i = 0; i < size && in->ok(); ++i) set->emplace(in->GetText());
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

void PutPassStats(const PassStats& data, WireWriter* out) {
  for (const int64_t value : {data.files, data.bytes, data.lines, data.rows, data.bad_lines}) out->Put(value);
  out->Put(static_cast<uint64_t>(data.first_bad_lines.size()));
  for (const std::string& line : data.first_bad_lines) out->PutText(line);
  out->PutText(data.quarantine_path);
  PutMap(data.counters, out);
  PutMap(data.stage_seconds, out);
  out->Put(data.names.lines);
  out->Put(data.names.is_partial);
  PutSet(data.names.some, out);
  PutSet(data.names.absent, out);
  PutSet(data.names.others, out);
  out->PutText(data.names.times.column);
  for (const SeenTimes::Time& time : {data.names.times.first, data.names.times.last}) {
    out->Put(time.seconds);
    out->PutText(time.text);
  }
  for (const auto* const numbers : data.names.forms()) PutMap(*numbers, out);
  PutMap(data.names.trained, out);
  PutMap(data.names.not_utf8_values, out);
  PutMap(data.names.shares, out);
  PutMap(data.names.trained_shares, out);
}

void GetPassStats(WireReader* in, PassStats* data) {
  for (int64_t* value : {&data->files, &data->bytes, &data->lines, &data->rows, &data->bad_lines}) {
    *value = in->Get<int64_t>();
  }
  const auto lines = in->Get<uint64_t>();
  for (uint64_t i = 0; i < lines && in->ok(); ++i) data->first_bad_lines.emplace_back(in->GetText());
  data->quarantine_path = in->GetText();
  GetMap(in, &data->counters);
  GetMap(in, &data->stage_seconds);
  data->names.lines = in->Get<int64_t>();
  data->names.is_partial = in->Get<bool>();
  GetSet(in, &data->names.some);
  GetSet(in, &data->names.absent);
  GetSet(in, &data->names.others);
  data->names.times.column = in->GetText();
  for (SeenTimes::Time* const time : {&data->names.times.first, &data->names.times.last}) {
    time->seconds = in->Get<int64_t>();
    time->text = in->GetText();
  }
  for (auto* const numbers : data->names.forms()) GetMap(in, numbers);
  GetMap(in, &data->names.trained);
  GetMap(in, &data->names.not_utf8_values);
  GetMap(in, &data->names.shares);
  GetMap(in, &data->names.trained_shares);
}

std::string RankProgress::ToBytes() const {
  std::string bytes;
  WireWriter out(&bytes);
  out.PutText(trained.ToText());
  PutMap(bad_lines, &out);
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
  GetMap(&in, &progress.bad_lines);
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

}  // namespace millrace
