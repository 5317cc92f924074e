#include <algorithm>
#include <cmath>

#include "core/json_writer.h"
#include "core/numbers.h"
#include "inspect/batch_json.h"
#include "inspect/slot_stats.h"

namespace millrace {
namespace {

double Ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }
double Ratio(int64_t part, int64_t whole) { return Ratio(static_cast<double>(part), static_cast<double>(whole)); }

struct Moments {
  double mean = 0;
  double deviation = 0;
};

Moments MomentsOf(const SlotStats& stats) {
  const int64_t finite = stats.values - stats.non_finite;
  if (finite == 0) return {};
  return {static_cast<double>(stats.sum.Value() / static_cast<long double>(finite)),
          static_cast<double>(ExactSum::Deviation(stats.sum, stats.squares, finite))};
}

template <class Number>
void AppendField(std::string_view name, Number number, std::string* json) {
  AppendNumber(number, &json->append(",\"").append(name).append("\":"));
}

void AppendIds(const SlotStats& stats, bool with_clicks, size_t top, std::string* json) {
  AppendField("cardinality", std::round(stats.ids.cardinality()), json);
  json->append(",\"cardinality_exact\":").append(stats.ids.exact() ? "true" : "false");
  AppendField("top_counts_low_by_at_most", stats.ids.largest_error(), json);
  json->append(",\"top\":[");
  bool first = true;
  for (const IdCounts::Entry& entry : stats.ids.Top(top)) {
    if (!first) json->push_back(',');
    first = false;
    json->append("{\"id\":");
    AppendNumber(entry.id, json);
    AppendField("count", entry.count, json);
    if (with_clicks) AppendField("label_rate", Ratio(entry.clicks, entry.count), json);
    json->push_back('}');
  }
  json->push_back(']');
}

void AppendFloats(const SlotStats& stats, std::string* json) {
  const Moments moments = MomentsOf(stats);
  AppendField("min", stats.minimum, json);
  AppendField("max", stats.maximum, json);
  AppendField("mean", moments.mean, json);
  AppendField("deviation", moments.deviation, json);
  AppendField("non_finite", stats.non_finite, json);
}

// "1" or "17-32" for a key of SlotStats::lengths.
std::string LengthName(uint64_t bucket) {
  return bucket <= 16 ? std::to_string(bucket) : std::to_string(bucket / 2 + 1) + "-" + std::to_string(bucket);
}

std::string Right(std::string text, size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

std::string SlotRow(const SlotSpec& slot, const SlotStats& stats, int64_t rows, size_t name_width) {
  std::string row = slot.name + std::string(name_width - slot.name.size(), ' ');
  row += slot.type == SlotType::kUint64 ? "  uint64  " : "  float   ";
  row += Right(FixedNumber(100 * Ratio(stats.covered_rows, rows), 2), 6) + " %  " +
         Right(FixedNumber(Ratio(stats.values, rows), 2), 8);
  if (slot.type == SlotType::kFloat) {
    const Moments moments = MomentsOf(stats);
    row += "               " + GeneralNumber(stats.minimum) + " to " + GeneralNumber(stats.maximum) + ", mean " +
           GeneralNumber(moments.mean) + ", deviation " + GeneralNumber(moments.deviation);
    if (stats.non_finite > 0) row += ", " + std::to_string(stats.non_finite) + " not finite";
  } else {
    row += (stats.ids.exact() ? "   " : "  ~") + Right(FixedNumber(stats.ids.cardinality(), 0), 11);
  }
  return row;
}

}  // namespace

std::string DatasetStats::AsJson(size_t top) const {
  std::string json = "{\"rows\":" + std::to_string(rows_);
  if (label_rate()) {
    json.append(",\"label\":");
    AppendQuoted(schema_->used()[static_cast<size_t>(label_)].name, &json);
    AppendField("label_rate", *label_rate(), &json);
    if (odd_labels_ > 0) AppendField("odd_labels", odd_labels_, &json);
  }
  json.append(",\"slots\":{");
  for (const SlotSpec& slot : schema_->used()) {
    const SlotStats& stats = slots_[static_cast<size_t>(slot.id)];
    if (slot.id > 0) json.push_back(',');
    AppendQuoted(slot.name, &json);
    const bool ids = slot.type == SlotType::kUint64;
    json.append(ids ? ":{\"type\":\"uint64\"" : ":{\"type\":\"float\"");
    AppendField("coverage", Ratio(stats.covered_rows, rows_), &json);
    AppendField("values", stats.values, &json);
    AppendField("zeros", stats.zeros, &json);
    json.append(",\"lengths\":{");
    for (auto it = stats.lengths.begin(); it != stats.lengths.end(); ++it) {
      json.append(it == stats.lengths.begin() ? "\"" : ",\"").append(LengthName(it->first)).append("\":");
      json.append(std::to_string(it->second));
    }
    json.push_back('}');
    if (ids) {
      AppendIds(stats, label_ >= 0, top, &json);
    } else {
      AppendFloats(stats, &json);
    }
    json.push_back('}');
  }
  return json + "}}";
}

std::string DatasetStats::AsTable(size_t top) const {
  std::string table = std::to_string(rows_) + " rows";
  if (label_rate()) {
    table += ", label rate " + FixedNumber(*label_rate(), 4) + " (" +
             schema_->used()[static_cast<size_t>(label_)].name + ")";
    if (odd_labels_ > 0) table += "; labels neither 0 nor 1: " + std::to_string(odd_labels_);
  }
  size_t name_width = 4;
  for (const SlotSpec& slot : schema_->used()) name_width = std::max(name_width, slot.name.size());
  table +=
      "\nslot" + std::string(name_width - 4, ' ') + "  type    coverage  values/row   cardinality   ~: estimated\n";
  for (const SlotSpec& slot : schema_->used()) {
    const SlotStats& stats = slots_[static_cast<size_t>(slot.id)];
    table += SlotRow(slot, stats, rows_, name_width) + "\n";
    if (slot.is_dense) continue;
    table += "    lengths:";
    for (const auto& [bucket, rows] : stats.lengths) table += " " + LengthName(bucket) + ": " + std::to_string(rows);
    table.push_back('\n');
    if (slot.type == SlotType::kFloat) continue;
    table += "    top:";
    for (const IdCounts::Entry& entry : stats.ids.Top(top)) {
      table += " " + std::to_string(entry.id) + ": " + std::to_string(entry.count);
      if (label_ >= 0) table += " (" + FixedNumber(Ratio(entry.clicks, entry.count), 3) + ")";
    }
    table.push_back('\n');
  }
  return table;
}

}  // namespace millrace
