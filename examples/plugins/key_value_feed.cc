// A data feed of lines "click=1 buy=0 user=7 item=3,12": slots by name, in any order.

#include <algorithm>
#include <charconv>
#include <string>

#include "datafeed/column_sink.h"
#include "plugin/plugin.h"

namespace {

using namespace millrace;

class KeyValueFeed final : public DataFeed {
 public:
  explicit KeyValueFeed(const SlotSchema& schema) : schema_(&schema), sink_(schema), values_(schema.used().size()) {}

  Status Attach(SlotBatch* batch) override {
    sink_.Attach(batch);
    return Status::Ok();
  }
  Status Detach() override {
    sink_.Detach();
    return Status::Ok();
  }
  int rows() const override { return sink_.rows(); }

  Result<LineResult> ParseLine(std::string_view line) override {
    if (line.empty()) return LineResult::kBlank;
    if (!Split(line)) return LineResult::kBad;
    sink_.BeginRow();
    for (const SlotSpec& slot : schema_->used()) {
      if (Put(slot, values_[static_cast<size_t>(slot.id)])) continue;
      sink_.Rollback();  // a bad line leaves nothing behind
      return LineResult::kBad;
    }
    sink_.EndRow();
    return LineResult::kRow;
  }
  const LineError& error() const override { return error_; }
  const ValueCounters& counters() const override { return counters_; }

 private:
  bool Bad(LineErrorKind kind, const std::string& slot, std::string message) {
    error_ = {};
    error_.kind = kind;
    error_.slot = slot;
    error_.message = std::move(message);
    return false;
  }

  /// Notes the text of each slot's values; those of slots that are not used are passed over.
  bool Split(std::string_view line) {
    values_.assign(values_.size(), {});
    while (!line.empty()) {
      const std::string_view pair = line.substr(0, line.find(' '));
      line.remove_prefix(std::min(pair.size() + 1, line.size()));
      const size_t equals = pair.find('=');
      if (equals == std::string_view::npos) {
        return Bad(LineErrorKind::kRefused, "", "expected SLOT=VALUES, found \"" + std::string(pair) + "\"");
      }
      const SlotId id = schema_->Find(pair.substr(0, equals));
      if (id >= 0) values_[static_cast<size_t>(id)] = pair.substr(equals + 1);
    }
    return true;
  }

  bool Put(const SlotSpec& slot, std::string_view text) {
    const size_t count = text.empty() ? 0 : static_cast<size_t>(std::count(text.begin(), text.end(), ',')) + 1;
    if (slot.is_dense && count != static_cast<size_t>(slot.width)) {
      return Bad(LineErrorKind::kWrongWidth, slot.name,
                 std::to_string(count) + " values, and the slot has " + std::to_string(slot.width));
    }
    if (slot.type == SlotType::kFloat) {
      float* to = sink_.BeginFloats(slot.id, count);
      if (!Parse(slot, text, count, to)) return false;
      sink_.EndFloats(slot.id, to + count);
    } else {
      uint64_t* to = sink_.BeginIds(slot.id, count);
      if (!Parse(slot, text, count, to)) return false;
      sink_.EndIds(slot.id, to + count);
    }
    return true;
  }

  template <class T>
  bool Parse(const SlotSpec& slot, std::string_view text, size_t count, T* to) {
    for (size_t i = 0; i < count; ++i) {
      const std::string_view value = text.substr(0, text.find(','));
      text.remove_prefix(std::min(value.size() + 1, text.size()));
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), to[i]);
      if (error != std::errc() || end != value.data() + value.size()) {
        return Bad(LineErrorKind::kBadValue, slot.name, "expected a number, found \"" + std::string(value) + "\"");
      }
    }
    return true;
  }

  const SlotSchema* schema_;
  ColumnSink sink_;
  std::vector<std::string_view> values_;  ///< by slot
  LineError error_;
  ValueCounters counters_;
};

}  // namespace

MILLRACE_PLUGIN(Registries& registries) {
  const auto make = [](const SlotSchema& schema, const DataFeedDesc&) {
    return Result<std::unique_ptr<DataFeed>>(std::make_unique<KeyValueFeed>(schema));
  };
  return registries.feeds.Add("KeyValueFeed", "lines of slots by name: user=7 item=3,12", {make});
}
