// A data feed of the C++ tier whose lines say which promise it breaks.

#include "datafeed/column_sink.h"
#include "plugin/plugin.h"

namespace {

using namespace millrace;  // NOLINT(google-build-using-namespace)

/// Slots: x (dense floats), id (dense ids), more (sparse ids).
class UntrueFeed : public DataFeed {
 public:
  explicit UntrueFeed(const SlotSchema& schema) : sink_(schema) {}

  Status Attach(SlotBatch* batch) override {
    batch_ = batch;
    sink_.Attach(batch);
    more_ = 0;
    return Status::Ok();
  }
  Status Detach() override {
    sink_.Detach();
    if (!cuts_) batch_->column(2).offsets.back() = 0;
    cuts_ = true;
    return Status::Ok();
  }
  int rows() const override { return sink_.rows() + more_; }
  Result<LineResult> ParseLine(std::string_view line) override {
    if (line == "no row") return LineResult::kRow;
    if (line == "odd") return static_cast<LineResult>(77);
    if (line == "silent") return LineResult::kBad;
    if (line == "fails") return Unavailable("the device is gone");
    if (line == "stops") return Cancelled("enough");
    cuts_ = line != "offsets";
    if (line == "two") more_ = 1;
    sink_.BeginRow();
    float* const to = sink_.BeginFloats(0, 1);
    *to = 1;
    sink_.EndFloats(0, line == "narrow" ? to : to + 1);
    sink_.PutOneId(1, 7);
    sink_.PutOneId(2, 7);
    if (line == "half") return LineResult::kRow;
    sink_.EndRow();
    return line == "bad with a row" ? LineResult::kBad : LineResult::kRow;
  }
  const LineError& error() const override { return error_; }
  const ValueCounters& counters() const override { return counters_; }

 private:
  ColumnSink sink_;
  SlotBatch* batch_ = nullptr;
  bool cuts_ = true;
  int more_ = 0;
  LineError error_;
  ValueCounters counters_;
};

}  // namespace

MILLRACE_PLUGIN(Registries& registries) {
  const auto make = [](const SlotSchema& schema, const DataFeedDesc&) {
    return Result<std::unique_ptr<DataFeed>>(std::make_unique<UntrueFeed>(schema));
  };
  return registries.feeds.Add("UntrueFeed", "breaks promises", {make});
}
