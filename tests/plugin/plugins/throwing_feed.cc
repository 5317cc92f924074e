// A data feed of the C++ tier that throws while it parses.

#include <stdexcept>

#include "plugin/plugin.h"

namespace {

using namespace millrace;  // NOLINT(google-build-using-namespace)

class ThrowingFeed : public DataFeed {
 public:
  Status Attach(SlotBatch*) override { return Status::Ok(); }
  Status Detach() override { return Status::Ok(); }
  int rows() const override { return 0; }
  Result<LineResult> ParseLine(std::string_view) override { throw std::logic_error("no idea"); }
  const LineError& error() const override { return error_; }
  const ValueCounters& counters() const override { return counters_; }

 private:
  LineError error_;
  ValueCounters counters_;
};

}  // namespace

MILLRACE_PLUGIN(Registries& registries) {
  const auto none = [](const SlotSchema&, const DataFeedDesc&) { return Result<std::unique_ptr<DataFeed>>(nullptr); };
  const auto throwing = [](const SlotSchema&, const DataFeedDesc&) {
    return Result<std::unique_ptr<DataFeed>>(std::make_unique<ThrowingFeed>());
  };
  MR_TRY(registries.feeds.Add("NoFeed", "none", {none}));
  return registries.feeds.Add("ThrowingCppFeed", "throws", {throwing});
}
