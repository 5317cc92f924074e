#include "datafeed/column_feed.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>

#include "core/numbers.h"
#include "core/utf8.h"
#include "data_feed.pb.h"
#include "reader/field_value.h"

namespace millrace {
namespace {

LineErrorKind LineKindOf(FeatureError::Kind kind) {
  switch (kind) {
    case FeatureError::Kind::kBadValue: return LineErrorKind::kBadValue;
    case FeatureError::Kind::kNegative: return LineErrorKind::kNegativeId;
    case FeatureError::Kind::kOverflow: return LineErrorKind::kOverflow;
    case FeatureError::Kind::kMissing: return LineErrorKind::kMissingValues;
    case FeatureError::Kind::kTooMany: return LineErrorKind::kWrongWidth;
  }
  return LineErrorKind::kBadValue;
}

/// The input of a plan's compilation, as bytes.
std::string KeyOf(const SlotSchema& schema, const DataFeedDesc& desc) {
  DataFeedDesc of_plan;
  *of_plan.mutable_feature() = desc.feature();
  if (desc.has_csv()) *of_plan.mutable_csv() = desc.csv();
  if (desc.has_feature_states()) *of_plan.mutable_feature_states() = desc.feature_states();
  if (desc.has_rows()) *of_plan.mutable_rows() = desc.rows();
  for (const SlotSpec& slot : schema.used()) of_plan.mutable_multi_slot_desc()->add_slots()->set_name(slot.name);
  return of_plan.SerializeAsString();
}

/// Advice for a string like "NA", by which other programs mean a missing value; empty for other strings.
std::string AdviceOnMissing(const FeaturePlan::Feature& feature, std::string_view text, bool scores) {
  if (!IsMissingMarker(text)) return "";
  const std::string missing = "csv { missing: \"" + (text == "\\N" ? "\\\\N" : std::string(text)) + "\" }";
  const bool needs_default = feature.is_dense && !feature.has_default && feature.defaults.empty();
  const std::string advice = needs_default ? missing + " and what stands for one, " +
                                                 (feature.makes_ids ? "default: \"...\"" : "default_from: MEDIAN") +
                                                 " of the feature, as its slot is dense"
                                           : missing;
  if (!scores) return "; where it means that there is no value, say " + advice;
  return std::string("; where it means that there is no value, ") + (needs_default ? "" : "leave it empty, or ") +
         "train again with " + advice;
}

/// "too large" or "too small" for a number beyond the range of double; otherwise empty.
std::string_view BeyondDouble(std::string_view text) {
  double unused = 0;
  switch (ParseDouble(text, &unused)) {
    case FloatText::kOverflow: return "too large";
    case FloatText::kUnderflow: return "too small";
    default: return "";
  }
}

/// Whether the settings in `csv` for spaces and missing values apply to the format.
bool TakesCsv(const DataFeedDesc& desc) { return desc.name() == "csv" || TextRuleOf(desc) == TextRule::kCanonical; }

}  // namespace

std::string FormatAdvice(const std::string& what, const std::string& format) {
  return "this is " + what + ": data_desc.name: \"" + format + "\" trains on it, and predictor --format=" + format +
         " scores it";
}

std::string ColumnarFormatAdvice(std::string_view line) {
  if (line.starts_with("PAR1")) return FormatAdvice("a Parquet file", "parquet");
  if (line.starts_with("ARROW1")) return FormatAdvice("an Arrow file", "arrow");
  return "";
}

bool IsMissingMarker(std::string_view text) {
  constexpr std::string_view kWords[] = {"NA",   "N/A", "#N/A", "n/a", "na", "NULL", "null", "Null", "None",
                                         "none", "nil", "\\N",  "?",   "-",  ".",    "NaN",  "nan",  "<NA>"};
  return std::find(std::begin(kWords), std::end(kWords), text) != std::end(kWords);
}

struct FeaturePlans::Last {
  std::mutex mutex;
  std::string key;
  std::weak_ptr<const FeaturePlan> plan;
  std::shared_ptr<WarnOnce> said = std::make_shared<WarnOnce>();
};

FeaturePlans::FeaturePlans() : last_(std::make_unique<Last>()) {}
FeaturePlans::~FeaturePlans() = default;

Result<ColumnSetup> FeaturePlans::Setup(const SlotSchema& schema, const DataFeedDesc& desc) const {
  ColumnSetup setup;
  setup.options = MultiSlotOptions::FromDesc(desc);
  // Missing values are common in tables of columns.
  if (!desc.has_empty_slot()) setup.options.allow_empty_slots = true;
  std::string key = KeyOf(schema, desc);
  const std::lock_guard lock(last_->mutex);
  setup.said = last_->said;
  setup.plan = last_->key == key ? last_->plan.lock() : nullptr;
  if (setup.plan != nullptr) return setup;
  std::vector<std::string> slots;
  for (const SlotSpec& slot : schema.used()) slots.push_back(slot.name);
  MR_ASSIGN(setup.plan, FeaturePlan::Create(desc, slots));
  last_->key = std::move(key);
  last_->plan = setup.plan;
  return setup;
}

void FeaturePlans::ForgetSaid() const {
  const std::lock_guard lock(last_->mutex);
  last_->said = std::make_shared<WarnOnce>();
}

ColumnFeed::ColumnFeed(const SlotSchema& schema, const ColumnSetup& setup, const DataFeedDesc& desc, Source source)
    : FormatFeed(schema, setup.options),
      source_(source),
      scores_(setup.scores),
      takes_missing_(TakesCsv(desc)),
      statistics_(setup.statistics),
      row_(setup.plan),
      plan_(statistics_ != nullptr ? statistics_->plan() : row_.plan()),
      trims_(!desc.csv().keep_spaces() && TakesCsv(desc)),
      missing_(TakesCsv(desc) ? std::vector<std::string>(desc.csv().missing().begin(), desc.csv().missing().end())
                              : std::vector<std::string>()),
      texts_(plan_.columns().size()),
      begins_(plan_.columns().size()),
      forms_(plan_.columns(), desc, source == Source::kFiles) {}

bool ColumnFeed::IsMissing(std::string_view text) const {
  return std::find(missing_.begin(), missing_.end(), text) != missing_.end();
}

ValueNames ColumnFeed::names() const {
  ValueNames names;
  names.times = times_;
  for (size_t i = 0; statistics_ == nullptr && i < plan_.features().size(); ++i) {
    const FeaturePlan::Feature& feature = plan_.features()[i];
    if (!feature.has_words_of_job) continue;
    const auto place = static_cast<int>(i);
    names.words[feature.name] = {row_.has_words(place), row_.other_word(place)};
  }
  names.lines = rows_;
  forms_.AddTo(&names);
  return names;
}

LineResult ColumnFeed::LookAtTime() {
  const FeaturePlan::Times& times = *plan_.times();
  const auto column = static_cast<size_t>(times.column);
  int64_t seconds = 0;
  if (ReadTime(texts_[column], times.how, &seconds)) {
    const bool is_first = times_.column.empty();
    if (is_first) times_.column = plan_.columns()[column];
    const auto note = [&](SeenTimes::Time* time) {
      time->seconds = seconds;
      time->text.assign(texts_[column]);
    };
    if (is_first || seconds < times_.first.seconds) note(&times_.first);
    if (is_first || seconds > times_.last.seconds) note(&times_.last);
    if (seconds >= times.from && seconds < times.until) return LineResult::kRow;
    ++counted().other_times;
    return LineResult::kBlank;
  }
  Fail(LineErrorKind::kBadValue, "",
       "column \"" + plan_.columns()[column] + "\": expected " + ExpectedTimeFor(texts_[column], times.how.format) +
           ", by which eval.set.since parts rows, found " + ShownField(texts_[column]),
       begins_[column] + 1);
  return LineResult::kBad;
}

LineResult ColumnFeed::PutRow(std::string_view line, std::span<const FeatureRow::List> lists) {
  const LineResult result = MakeRow(line, lists);
  if (result != LineResult::kRow) return result;
  ++rows_;
  const NumberForms::Line values = {line, texts_, begins_, lists};
  if (source_ == Source::kFrames || !IsAscii(line)) [[unlikely]]
    forms_.LookForOtherBytes(values);
  counted().number_forms = forms_.TakeLine(values);
  return result;
}

LineResult ColumnFeed::MakeRow(std::string_view line, std::span<const FeatureRow::List> lists) {
  if (plan_.times().has_value()) [[unlikely]] {
    if (const LineResult found = LookAtTime(); found != LineResult::kRow) return found;
  }
  if (statistics_ != nullptr) {
    return statistics_->AddRow(texts_, lists) ? PutNothing() : FailRow(line, statistics_->error());
  }
  if (!row_.Make(texts_, lists)) [[unlikely]]
    return FailRow(line, row_.error());
  const std::vector<SlotSpec>& slots = schema().used();
  for (size_t i = 0; i < slots.size(); ++i) {
    const int feature = plan_.FeatureOfSlot(i);
    const bool is_put =
        slots[i].type == SlotType::kFloat ? Put(slots[i], row_.floats(feature)) : Put(slots[i], row_.ids(feature));
    if (is_put) [[likely]]
      continue;
    FailPut(plan_.features()[static_cast<size_t>(feature)]);
    return LineResult::kBad;
  }
  return LineResult::kRow;
}

void ColumnFeed::FailPut(const FeaturePlan::Feature& feature) {
  if (feature.columns.empty()) return;
  At(begins_[static_cast<size_t>(feature.columns[0])] + 1);
  if (error().kind != LineErrorKind::kNonFinite || !takes_missing_) return;
  for (const int column : feature.columns) {
    const std::string advice = AdviceOnMissing(feature, texts_[static_cast<size_t>(column)], scores_);
    if (advice.empty()) continue;
    Fail(LineErrorKind::kNonFinite, feature.name, error().message + advice, begins_[static_cast<size_t>(column)] + 1);
    return;
  }
}

LineResult ColumnFeed::PutNothing() {
  for (const SlotSpec& slot : schema().used()) Put(slot, std::span<const uint64_t>());
  return LineResult::kRow;
}

LineResult ColumnFeed::FailRow(std::string_view line, const FeatureError& error) {
  const FeaturePlan::Feature& feature = plan_.features()[static_cast<size_t>(error.feature)];
  const auto column = static_cast<size_t>(error.column);
  const std::string of_column = feature.columns.empty() ? "" : "column \"" + plan_.columns()[column] + "\": ";
  const char* const found = error.text.data();
  const std::less<> before;
  const bool is_in_line =
      !error.text.empty() && !before(found, line.data()) && before(found, line.data() + line.size());
  const size_t at = is_in_line ? static_cast<size_t>(found - line.data()) : begins_.empty() ? 0 : begins_[column];
  const std::string shown = error.kind == FeatureError::Kind::kTooMany ? "more" : ShownField(error.text);
  const std::string_view beyond = error.expected == "a number" ? BeyondDouble(error.text) : "";
  const bool may_be_missing = takes_missing_ && error.kind == FeatureError::Kind::kBadValue;
  Fail(LineKindOf(error.kind), feature.name,
       of_column + "expected " + (beyond.empty() ? error.expected : "a number that a 32-bit float holds") + ", found " +
           shown + (beyond.empty() ? "" : ", which is " + std::string(beyond)) +
           (may_be_missing ? AdviceOnMissing(feature, error.text, scores_) : ""),
       at + 1);
  return LineResult::kBad;
}

}  // namespace millrace
