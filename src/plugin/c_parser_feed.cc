#include <algorithm>
#include <cmath>
#include <span>

#include "core/exception_text.h"
#include "data_feed.pb.h"
#include "datafeed/column_sink.h"
#include "datafeed/put_row.h"
#include "plugin/c_open_args.h"
#include "plugin/c_plugin.h"
#include "plugin/c_row_values.h"

namespace millrace {
namespace {

class CParserFeed final : public DataFeed {
 public:
  CParserFeed(const millrace_parser& parser, std::string where, const SlotSchema& schema,
              std::unique_ptr<COpenArgs> args, bool rejects_non_finite)
      : parser_(parser),
        rejects_non_finite_(rejects_non_finite),
        where_(std::move(where)),
        schema_(&schema),
        args_(std::move(args)),
        row_(args_->columns()),
        sink_(schema) {}
  ~CParserFeed() override {
    try {
      if (state_ != nullptr) parser_.close(state_);
    } catch (...) {
      // All lines were parsed, so an exception here does no harm.
    }
  }

  Status Open() {
    try {
      state_ = parser_.open(&args_->args(), error_text_.get());
    } catch (...) {
      return InvalidConfig(where_ + " threw " + DescribeException());
    }
    if (state_ != nullptr && !error_text_.overran()) return Status::Ok();
    return InvalidConfig(where_ + " cannot be opened: " + error_text_.text(where_, " gives no reason"));
  }

  Status Attach(SlotBatch* batch) override {
    sink_.Attach(batch);
    return Status::Ok();
  }
  Status Detach() override {
    sink_.Detach();
    return Status::Ok();
  }
  int rows() const override { return sink_.rows(); }
  const LineError& error() const override { return error_; }
  const ValueCounters& counters() const override { return counters_; }

  Result<LineResult> ParseLine(std::string_view line) override {
    row_.Clear();
    int result = MILLRACE_FAILED;
    try {
      result = parser_.parse(state_, line.data(), line.size(), &row_.sink(), error_text_.get());
    } catch (...) {
      return Bad("", where_ + " threw " + DescribeException());
    }
    if (const std::string text = row_.NoMemory(); !text.empty()) {
      return Unavailable("data_desc.name: " + where_ + ": slot \"" + SlotName(row_.column()) + "\": " + text);
    }
    if (result == MILLRACE_NONE && !error_text_.overran()) {
      ++counters_.blank_lines;
      return LineResult::kBlank;
    }
    if (result != MILLRACE_ROW || error_text_.overran()) {
      return Bad("", error_text_.text(where_, " refuses the line and gives no reason"));
    }
    if (!row_.Check()) return Bad(SlotName(row_.column()), row_.misfit());
    for (const SlotSpec& slot : schema_->used()) {
      if (slot.type != SlotType::kFloat) continue;
      const std::span<const float> values = row_.floats(slot.id);
      const auto count = std::count_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
      if (count > 0 && rejects_non_finite_) {
        return Bad(slot.name, "a value is not finite (non_finite: ACCEPT takes it)");
      }
      counters_.non_finite += count;
    }
    PutRow(*schema_, row_, sink_);
    return LineResult::kRow;
  }

 private:
  LineResult Bad(std::string slot, std::string message) {
    error_ = LineError();
    error_.kind = LineErrorKind::kRefused;
    error_.slot = std::move(slot);
    error_.message = std::move(message);
    return LineResult::kBad;
  }
  std::string SlotName(size_t column) const {
    return column < schema_->used().size() ? schema_->used()[column].name : "";
  }

  const millrace_parser parser_;
  const bool rejects_non_finite_;
  const std::string where_;
  const SlotSchema* schema_;
  const std::unique_ptr<COpenArgs> args_;
  void* state_ = nullptr;
  CRowValues row_;
  ColumnSink sink_;
  CError error_text_;
  LineError error_;
  ValueCounters counters_;
};

}  // namespace

Result<std::unique_ptr<DataFeed>> MakeCParserFeed(const millrace_parser& parser, const std::string& path,
                                                  const SlotSchema& schema, const DataFeedDesc& desc) {
  const std::string where = "parser \"" + std::string(parser.name) + "\" of plugin \"" + path + "\"";
  if (desc.parse_ins_id() || desc.parse_content() || desc.parse_logkey()) {
    return InvalidConfig("data_desc: " + where + " gives no names of examples (parse_ins_id, parse_content, " +
                         "parse_logkey)");
  }
  if (desc.zeros() == DataFeedDesc::DROP || desc.trailing_values() == DataFeedDesc::IGNORE) {
    return InvalidConfig(
        "data_desc: " + where +
        " decides by itself which values a line has; zeros: DROP and trailing_values: IGNORE are for " +
        "MultiSlot text");
  }
  MR_ASSIGN(std::unique_ptr<COpenArgs> args,
            COpenArgs::ForSlots({parser.attrs, parser.attr_count}, schema, desc, where));
  auto feed = std::make_unique<CParserFeed>(parser, where, schema, std::move(args),
                                            desc.non_finite() == DataFeedDesc::REJECT_NON_FINITE);
  MR_TRY(feed->Open());
  return std::unique_ptr<DataFeed>(std::move(feed));
}

}  // namespace millrace
