#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>

#include "config/feed_names.h"
#include "datafeed/data_feed.h"
#include "datafeed/drop_zeros.h"
#include "program/text_proto.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/interruptible.h"
#include "serving/predictor.h"

namespace py = pybind11;

namespace millrace {
namespace {

constexpr int kRowsAtOnce = 1024;

/// Values of one slot for all rows of a call; views of numpy arrays that the caller keeps.
struct FedColumn {
  const SlotSpec* slot = nullptr;
  const void* values = nullptr;
  int64_t count = 0;
  const int64_t* offsets = nullptr;  ///< rows + 1 of a sparse slot
};

/// Rows [begin, end) of the columns as a batch. Slots that are not fed are zeros, or empty.
void FillBatch(const std::vector<FedColumn>& columns, int64_t begin, int64_t end, SlotBatch* batch) {
  batch->Clear();
  const auto rows = static_cast<size_t>(end - begin);
  batch->set_rows(static_cast<int>(rows));
  for (const SlotSpec& slot : batch->schema().used()) {
    SlotColumn& column = batch->column(slot.id);
    const auto fed = std::find_if(columns.begin(), columns.end(), [&](const FedColumn& c) { return c.slot == &slot; });
    int64_t first = 0;
    auto count = slot.is_dense ? rows * static_cast<size_t>(slot.width) : 0;
    if (fed != columns.end()) {
      first = slot.is_dense ? begin * slot.width : fed->offsets[begin];
      if (!slot.is_dense) count = static_cast<size_t>(fed->offsets[end] - first);
    }
    if (!slot.is_dense) {
      column.offsets.resize(rows + 1);
      for (size_t row = 0; row <= rows; ++row) {
        column.offsets[row] =
            fed == columns.end() ? 0 : static_cast<uint32_t>(fed->offsets[begin + static_cast<int64_t>(row)] - first);
      }
    }
    const auto fill = [&](auto& into) {
      into.resize(count);
      if (count == 0) return;
      using Value = std::remove_reference_t<decltype(into[0])>;
      if (fed == columns.end()) {
        std::fill(into.begin(), into.end(), Value{});
      } else {
        std::memcpy(into.data(), static_cast<const Value*>(fed->values) + first, count * sizeof(Value));
      }
    };
    if (slot.type == SlotType::kFloat) {
      fill(column.floats);
    } else {
      fill(column.ids);
    }
  }
}

/// A saved model. Any number of threads may score at once: each takes a session of its own from the pool.
class PyPredictor {
 public:
  PyPredictor(const std::string& folder, const std::string& feed, const std::string& prediction,
              const std::optional<std::string>& data_desc) {
    PredictorOptions options;
    options.feed = feed;
    options.prediction = prediction;
    DataFeedDesc desc;
    if (data_desc.has_value()) {
      ThrowUnlessOk(ParseTextProto(*data_desc, "data_desc", &desc));
      options.data_desc = &desc;
    }
    const Environment& environment = SharedEnvironment();
    options.feeds = &environment.feeds;
    const py::gil_scoped_release released;
    predictor_ = ValueOrThrow(Predictor::Load(folder, environment.ops, options));
  }

  std::vector<std::string> Warnings() const { return predictor_->warnings(); }

  py::list Slots() const {
    py::list slots;
    for (const SlotSpec& slot : predictor_->schema().all()) {
      const auto& feeds = predictor_->feeds();
      py::dict dict;
      dict["name"] = slot.name;
      dict["type"] = slot.type == SlotType::kFloat ? "float" : "uint64";
      dict["is_dense"] = slot.is_dense;
      dict["width"] = slot.width;
      dict["is_needed"] = std::find(feeds.begin(), feeds.end(), slot.name) != feeds.end();
      slots.append(dict);
    }
    return slots;
  }

  /// Scores lines of MultiSlot text (or of the text that the model was trained on, where that is another), which lack
  /// the slots of `without`: the scores, and how many zeros were left out.
  py::tuple ScoreText(const std::string& text, const std::vector<std::string>& without) {
    ThrowUnlessOk(predictor_->CheckLines(SharedEnvironment().feeds));
    DataFeedDesc desc = predictor_->data_desc();
    ForgetOwnFeed(&desc);
    auto* slots = desc.mutable_multi_slot_desc()->mutable_slots();
    for (const std::string& name : without) {
      slots->erase(std::remove_if(slots->begin(), slots->end(), [&](const Slot& s) { return s.name() == name; }),
                   slots->end());
    }
    const SlotSchema schema = ValueOrThrow(SlotSchema::Create(desc));
    std::vector<float> scores;
    int64_t zeros_dropped = 0;
    const Environment& environment = SharedEnvironment();
    RunInterruptibly<bool>([&](const std::stop_token& stop) -> Result<bool> {
      const bool is_text = environment.feeds.ReadsText(desc.name());
      const std::string feed_class = desc.name().empty() || !is_text ? "MultiSlotDataFeed" : desc.name();
      MR_ASSIGN(const std::unique_ptr<DataFeed> feed, environment.feeds.Create(feed_class, schema, desc));
      MR_ASSIGN(const std::unique_ptr<PredictSession> session,
                PredictSession::Create(*predictor_, schema, kRowsAtOnce));
      MR_TRY(ScoreLines(text, schema, *feed, *session, stop, &scores));
      zeros_dropped = feed->counters().zeros_dropped;
      return true;
    });
    return py::make_tuple(ToScores(scores), zeros_dropped);
  }

  /// The same of columns: (slot, values, offsets or None) each, contiguous and of the slot's type.
  py::tuple ScoreColumns(const std::vector<std::tuple<std::string, py::array, py::object>>& given, int64_t rows) {
    std::vector<FedColumn> columns;
    std::vector<py::array_t<int64_t>> kept;
    for (const auto& [name, values, offsets] : given) {
      const SlotSpec& slot = predictor_->schema().used()[static_cast<size_t>(predictor_->schema().Find(name))];
      FedColumn column{&slot, values.data(), values.size(), nullptr};
      if (!slot.is_dense) {
        kept.push_back(offsets.cast<py::array_t<int64_t>>());
        column.offsets = kept.back().data();
      }
      columns.push_back(column);
    }
    std::vector<float> scores;
    int64_t zeros_dropped = 0;
    const bool drops_zeros = predictor_->data_desc().zeros() == DataFeedDesc::DROP;
    RunInterruptibly<bool>([&](const std::stop_token& stop) -> Result<bool> {
      MR_ASSIGN(std::unique_ptr<PredictSession> session, TakeSession());
      SlotBatch batch(predictor_->schema());
      for (int64_t begin = 0; begin < rows; begin += kRowsAtOnce) {
        if (stop.stop_requested()) return Cancelled("interrupted");
        FillBatch(columns, begin, std::min<int64_t>(begin + kRowsAtOnce, rows), &batch);
        if (drops_zeros) zeros_dropped += DropZeros(batch);
        MR_ASSIGN(const std::span<const float> some, session->Run(batch));
        scores.insert(scores.end(), some.begin(), some.end());
      }
      GiveBack(std::move(session));
      return true;
    });
    return py::make_tuple(ToScores(scores), zeros_dropped);
  }

 private:
  static py::array_t<float> ToScores(const std::vector<float>& scores) {
    py::array_t<float> array(static_cast<py::ssize_t>(scores.size()));
    if (!scores.empty()) std::memcpy(array.mutable_data(), scores.data(), scores.size() * sizeof(float));
    return array;
  }

  static Status ScoreLines(const std::string& text, const SlotSchema& schema, DataFeed& feed, PredictSession& session,
                           const std::stop_token& stop, std::vector<float>* scores) {
    // Bytes behind the last line may be read.
    std::string padded = text;
    padded.append(kLinePadding + 1, '\0');
    SlotBatch batch(schema);
    uint64_t number = 0;
    for (size_t start = 0; start < text.size();) {
      if (stop.stop_requested()) return Cancelled("interrupted");
      batch.Clear();
      MR_TRY(feed.Attach(&batch));
      while (start < text.size() && feed.rows() < kRowsAtOnce) {
        const size_t end = std::min(text.find('\n', start), text.size());
        ++number;
        MR_ASSIGN(const LineResult result, feed.ParseLine({padded.data() + start, end - start}));
        if (result == LineResult::kBad) {
          MR_TRY(feed.Detach());
          return feed.error().ToStatus("lines", number);
        }
        start = end + 1;
      }
      const int rows = feed.rows();
      MR_TRY(feed.Detach());
      if (rows == 0) continue;
      MR_ASSIGN(const std::span<const float> some, session.Run(batch));
      scores->insert(scores->end(), some.begin(), some.end());
    }
    return Status::Ok();
  }

  Result<std::unique_ptr<PredictSession>> TakeSession() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<PredictSession> session = std::move(free_.back());
        free_.pop_back();
        return session;
      }
    }
    return PredictSession::Create(*predictor_, predictor_->schema(), kRowsAtOnce);
  }
  void GiveBack(std::unique_ptr<PredictSession> session) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(session));
  }

  std::unique_ptr<const Predictor> predictor_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<PredictSession>> free_;  ///< for whole schemas
};

}  // namespace

void BindPredictor(py::module_& module) {
  py::class_<PyPredictor>(module, "Predictor")
      .def(py::init<const std::string&, const std::string&, const std::string&, const std::optional<std::string>&>(),
           py::arg("folder"), py::arg("feed"), py::arg("prediction"), py::arg("data_desc"))
      .def("warnings", &PyPredictor::Warnings)
      .def("slots", &PyPredictor::Slots)
      .def("score_text", &PyPredictor::ScoreText, py::arg("text"), py::arg("without"))
      .def("score_columns", &PyPredictor::ScoreColumns, py::arg("columns"), py::arg("rows"));
}

}  // namespace millrace
