#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "config/feed_names.h"
#include "core/words.h"
#include "datafeed/csv_column_feed.h"
#include "datafeed/data_feed.h"
#include "datafeed/drop_zeros.h"
#include "datafeed/file_columns.h"
#include "datafeed/frame_feed.h"
#include "datafeed/scoring_feeds.h"
#include "dataset/dataset.h"
#include "features/feature_spec.h"
#include "program/text_proto.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/interruptible.h"
#include "python/py_frame.h"
#include "serving/absent_slots.h"
#include "serving/inference_model.h"
#include "serving/predictor.h"

namespace py = pybind11;

namespace millrace {
namespace {

constexpr int kRowsAtOnce = 1024;

/// Values of one slot for all rows of a call; views of numpy arrays that the caller keeps.
struct FedColumn {
  SlotId slot = -1;
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
    const auto fed =
        std::find_if(columns.begin(), columns.end(), [&](const FedColumn& c) { return c.slot == slot.id; });
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

/// What a call works with, and the next one after it.
struct Scorer {
  std::vector<std::string> without;  ///< slots that the lines lack
  std::unique_ptr<const SlotSchema> schema;
  std::unique_ptr<SlotBatch> batch;
  std::unique_ptr<PredictSession> session;
  std::unique_ptr<DataFeed> feed;  ///< null until it reads lines
  LineCut cut;                     ///< what these lines are
};

/// A saved model. Any number of threads may score at once, each by a scorer of its own.
class PyPredictor {
 public:
  /// `given` names variables that are fed in place of what computes them.
  PyPredictor(const std::string& folder, const std::string& feed, const std::vector<std::string>& given,
              const std::string& prediction, const std::optional<std::string>& data_desc) {
    PredictorOptions options;
    options.feed = feed;
    options.given = given;
    options.prediction = prediction;
    DataFeedDesc desc;
    if (data_desc.has_value()) {
      ThrowUnlessOk(ParseTextProto(*data_desc, "data_desc", &desc));
      options.data_desc = &desc;
    }
    const Environment& environment = SharedEnvironment();
    options.feeds = &environment.feeds;
    predictor_ = RunInterruptibly<std::unique_ptr<const Predictor>>([&](std::stop_token stop) {
      options.stop = std::move(stop);
      return Predictor::Load(folder, environment.ops, options);
    });
    names_ = predictor_->columns();
    if (has_features()) feeds_of_columns_ = ValueOrThrow(ScoringFeeds(environment.feeds, predictor_->data_desc()));
  }

  /// Names of the columns of scores.
  const std::vector<std::string>& Predictions() const { return names_; }

  std::vector<std::string> Warnings() const { return predictor_->warnings(); }

  /// Scorers that were made so far.
  int scorers_made() const { return scorers_made_; }

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

  /// Scores lines of MultiSlot text (or of the text that the model was trained on, where that is another, with its
  /// header if it has one), which lack the slots of `without`: the scores, how many zeros were left out, and warnings.
  /// Slots that no score depends on may be lacking without a word where lines name their columns.
  py::tuple ScoreText(const std::string& text, const std::vector<std::string>& without) {
    const Environment& environment = SharedEnvironment();
    ThrowUnlessOk(predictor_->CheckLines(environment.feeds));
    return Score(static_cast<int64_t>(text.size()), &quick_text_, [&](const std::stop_token& stop, Scored* scored) {
      MR_ASSIGN(std::unique_ptr<Scorer> scorer, TakeScorer(WithAbsent(without, text)));
      if (scorer->feed == nullptr) {
        const DataFeedDesc desc = LinesWithout(scorer->without);
        const DataFeedFactory& feeds = has_features() ? feeds_of_columns_ : environment.feeds;
        const bool is_text = feeds.ReadsText(desc.name());
        if (!is_text && desc.feature_size() > 0) {
          return InvalidConfig("predict_lines: the model reads files of \"" + desc.name() +
                               "\", which are no text; predict takes a data frame, or the path of a .parquet file");
        }
        const std::string feed_class = desc.name().empty() || !is_text ? "MultiSlotDataFeed" : desc.name();
        MR_ASSIGN(scorer->feed, feeds.Create(feed_class, *scorer->schema, desc));
        MR_ASSIGN(scorer->cut, feeds.CutOf(feed_class, *scorer->schema, desc));
      }
      const int64_t before = scorer->feed->counters().zeros_dropped;
      MR_TRY(ScoreLines(text, *scorer, stop, &scored->scores));
      scored->zeros_dropped = scorer->feed->counters().zeros_dropped - before;
      scored->warnings = WarningsOf(*scorer->feed, false);
      return Finish(std::move(scorer), &scored->warnings);
    });
  }

  /// The same of rows in memory, with the columns that the model's features take; slots of `without` are not made.
  py::tuple ScoreFrame(const PyFrame& given, const std::vector<std::string>& without) {
    const Environment& environment = SharedEnvironment();
    ThrowUnlessOk(predictor_->CheckLines(environment.feeds));
    return Score(given.frame->rows(), &quick_frames_, [&](const std::stop_token& stop, Scored* scored) {
      MR_ASSIGN(std::unique_ptr<Scorer> scorer, TakeScorer(without));
      const DataFeedDesc desc = LinesWithout(without);
      MR_ASSIGN(const DataFeedFactory feeds, FrameFeeds(environment.feeds, desc, {given.frame}, plans_));
      MR_ASSIGN(const std::unique_ptr<DataFeed> feed, feeds.Create(desc.name(), *scorer->schema, desc));
      MR_ASSIGN(const LineCut cut, feeds.CutOf(desc.name(), *scorer->schema, desc));
      MR_ASSIGN(const auto rows, cut.records(nullptr, FileOfFrame(given.frame->name()), LineLimit()));
      MR_TRY(ScoreRows(given.frame->name(), *rows, *feed, *scorer, stop, &scored->scores));
      scored->zeros_dropped = feed->counters().zeros_dropped;
      scored->warnings = WarningsOf(*feed, true);
      return Finish(std::move(scorer), &scored->warnings);
    });
  }

  /// Columns that scoring takes, whose rows lack the slots of `without`.
  std::vector<std::string> Columns(const std::vector<std::string>& without) const {
    const DataFeedDesc desc = LinesWithout(without);
    const SlotSchema schema = ValueOrThrow(SlotSchema::Create(desc));
    return ValueOrThrow(plans_->Setup(schema, desc)).plan->columns();
  }

  std::vector<std::string> WordColumnsOfModel() const { return WordColumns(predictor_->data_desc()); }

  /// By column, how the training wrote whole numbers that are words: "5" or "5.0", or "" where it had other words.
  std::map<std::string, std::string> WholeNumbers() const {
    std::map<std::string, std::string> texts;
    for (const FeatureStates::WholeNumber& number : predictor_->data_desc().feature_states().whole_number()) {
      texts[number.column()] = number.text();
    }
    return texts;
  }

  bool has_features() const { return predictor_->data_desc().feature_size() > 0; }

  /// The same of columns: (slot, values, offsets or None) each, contiguous and of the slot's type.
  py::tuple ScoreColumns(const std::vector<std::tuple<std::string, py::array, py::object>>& given, int64_t rows) {
    std::vector<FedColumn> columns;
    std::vector<py::array_t<int64_t>> kept;
    int64_t values_given = rows;
    for (const auto& [name, values, offsets] : given) {
      const SlotSpec& slot = predictor_->schema().used()[static_cast<size_t>(predictor_->schema().Find(name))];
      FedColumn column{slot.id, values.data(), values.size(), nullptr};
      if (!slot.is_dense) {
        kept.push_back(offsets.cast<py::array_t<int64_t>>());
        column.offsets = kept.back().data();
      }
      columns.push_back(column);
      values_given += column.count;
    }
    const bool drops_zeros = predictor_->data_desc().zeros() == DataFeedDesc::DROP;
    return Score(values_given, &quick_columns_, [&](const std::stop_token& stop, Scored* scored) {
      MR_ASSIGN(std::unique_ptr<Scorer> scorer, TakeScorer({}));
      for (int64_t begin = 0; begin < rows; begin += kRowsAtOnce) {
        if (stop.stop_requested()) return Cancelled("interrupted");
        FillBatch(columns, begin, std::min<int64_t>(begin + kRowsAtOnce, rows), scorer->batch.get());
        if (drops_zeros) scored->zeros_dropped += DropZeros(*scorer->batch);
        MR_ASSIGN(const std::span<const float> some, scorer->session->Run(*scorer->batch));
        scored->scores.insert(scored->scores.end(), some.begin(), some.end());
      }
      return Finish(std::move(scorer), &scored->warnings);
    });
  }

 private:
  struct Scored {
    std::vector<float> scores;
    int64_t zeros_dropped = 0;
    std::map<std::string, std::string> warnings;  ///< each once for the same key
  };

  /// Of numbers and times that lines write otherwise than those of the training. A line may lack any key, since few
  /// come at once.
  static std::map<std::string, std::string> WarningsOf(const DataFeed& feed, bool is_frame) {
    const auto* const naming = dynamic_cast<const NamedValuesFeed*>(&feed);
    if (naming == nullptr) return {};
    PassStats read;
    read.names = naming->names();
    read.names.absent.clear();
    const auto find_place = [is_frame](NumberForm* value) {
      value->place = is_frame ? "in the rows" : "byte " + std::to_string(value->column) + " of its line";
    };
    for (auto* const numbers : read.names.forms()) {
      for (auto& [column, number] : *numbers) find_place(&number);
    }
    for (auto& [column, of_column] : read.names.zones) {
      for (auto& [zone, time] : of_column) find_place(&time);
    }
    for (auto& [column, time] : read.names.of_1970) find_place(&time);
    return ValueWarnings(read, Reads::kModel);
  }

  template <class Work>
  py::tuple Score(int64_t amount, QuickWork* quick, const Work& work) {
    Scored scored;
    const auto run = [&](const std::stop_token& stop) { ThrowUnlessOk(work(stop, &scored)); };
    if (predictor_->has_blocks()) {
      RunInterruptibly(run);
    } else {
      quick->Run(amount, run);
    }
    const auto columns = static_cast<py::ssize_t>(names_.size());
    const auto count = static_cast<py::ssize_t>(scored.scores.size());
    py::array_t<float> array = columns == 1 ? py::array_t<float>(count)
                                            : py::array_t<float>(std::vector<py::ssize_t>{count / columns, columns});
    if (!scored.scores.empty()) {
      std::memcpy(array.mutable_data(), scored.scores.data(), scored.scores.size() * sizeof(float));
    }
    return py::make_tuple(array, scored.zeros_dropped, scored.warnings);
  }

  static Status ScoreLines(const std::string& text, Scorer& scorer, const std::stop_token& stop,
                           std::vector<float>* scores) {
    // Bytes behind the last line may be read.
    std::string padded = text;
    padded.append(kLinePadding + 1, '\0');
    DataFeed& feed = *scorer.feed;
    SlotBatch& batch = *scorer.batch;
    uint64_t number = 0;
    size_t start = 0;
    if (auto* const headed = dynamic_cast<HeadedFeed*>(&feed)) {
      const std::string_view first = std::string_view(text).substr(0, text.find('\n'));
      const std::string_view header = scorer.cut.header == nullptr ? std::string_view() : scorer.cut.header(first);
      const bool is_there = !header.empty();
      if (is_there || !text.empty()) MR_TRY(headed->TakeHeader(header).Context("lines:1"));
      if (!headed->note().empty()) Say("note: lines:1: " + headed->note() + "\n");
      if (is_there) {
        number = 1;
        start = first.size() + 1;
      }
    }
    while (start < text.size()) {
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
      MR_ASSIGN(const std::span<const float> some, scorer.session->Run(batch));
      scores->insert(scores->end(), some.begin(), some.end());
    }
    return Status::Ok();
  }

  static Status ScoreRows(const std::string& name, RecordSource& rows, DataFeed& feed, Scorer& scorer,
                          const std::stop_token& stop, std::vector<float>* scores) {
    SlotBatch& batch = *scorer.batch;
    uint64_t number = 0;
    for (bool more = true; more;) {
      batch.Clear();
      MR_TRY(feed.Attach(&batch));
      while (more && feed.rows() < kRowsAtOnce) {
        RecordFrame some;
        MR_ASSIGN(more, rows.Next(&some, stop));
        for (std::string_view records = some.body; more && !records.empty(); ++number) {
          MR_ASSIGN(const LineResult result, feed.ParseLine(TakeSized(&records)));
          if (result != LineResult::kBad) continue;
          MR_TRY(feed.Detach());
          return BadData(name + ": row " + std::to_string(number) + ": " + feed.error().ToString());
        }
      }
      const int count = feed.rows();
      MR_TRY(feed.Detach());
      if (count == 0) continue;
      MR_ASSIGN(const std::span<const float> scored, scorer.session->Run(batch));
      scores->insert(scores->end(), scored.begin(), scored.end());
    }
    return Status::Ok();
  }

  /// `without`, and the slots that no score depends on and whose columns the header of `text` lacks.
  std::vector<std::string> WithAbsent(std::vector<std::string> without, std::string_view text) {
    const DataFeedDesc& desc = predictor_->data_desc();
    if (!HasHeader(desc)) return without;
    const std::string_view header = CsvHeaderOf(desc)(text.substr(0, text.find('\n')));
    const std::lock_guard lock(mutex_);
    if (header != last_header_) {
      absent_.clear();
      const Result<std::vector<std::string>> names = CsvHeaderNames(header, desc);
      if (names.ok()) {
        for (AbsentSlot& one : AbsentSlotsOf(*predictor_, desc, *names)) absent_.push_back(std::move(one.slot));
      }
      last_header_ = header;
    }
    without.insert(without.end(), absent_.begin(), absent_.end());
    return without;
  }

  DataFeedDesc LinesWithout(const std::vector<std::string>& without) const {
    DataFeedDesc desc = predictor_->data_desc();
    ForgetOwnFeed(&desc);
    auto* slots = desc.mutable_multi_slot_desc()->mutable_slots();
    for (const std::string& name : without) {
      slots->erase(std::remove_if(slots->begin(), slots->end(), [&](const Slot& s) { return s.name() == name; }),
                   slots->end());
    }
    return desc;
  }

  Result<std::unique_ptr<Scorer>> TakeScorer(const std::vector<std::string>& without) {
    {
      const std::lock_guard lock(mutex_);
      const auto found =
          std::find_if(free_.begin(), free_.end(), [&](const auto& scorer) { return scorer->without == without; });
      if (found != free_.end()) {
        std::unique_ptr<Scorer> scorer = std::move(*found);
        free_.erase(found);
        return scorer;
      }
    }
    auto scorer = std::make_unique<Scorer>();
    scorer->without = without;
    MR_ASSIGN(SlotSchema schema, SlotSchema::Create(LinesWithout(without)));
    scorer->schema = std::make_unique<const SlotSchema>(std::move(schema));
    scorer->batch = std::make_unique<SlotBatch>(*scorer->schema);
    MR_ASSIGN(scorer->session, PredictSession::Create(*predictor_, *scorer->schema, kRowsAtOnce));
    ++scorers_made_;
    return scorer;
  }
  /// Adds to `warnings` what is unlike the last evaluation in the latest rows, and gives the scorer back. A few rows
  /// wait for more, as they show nothing.
  Status Finish(std::unique_ptr<Scorer> scorer, std::map<std::string, std::string>* warnings) {
    constexpr int64_t kWorthALook = 16;
    if (scorer->session->rows_looked() >= kWorthALook) {
      PassStats read;
      {
        const std::lock_guard lock(mutex_);
        MR_TRY(scorer->session->TakeShares(&shares_));
        read.names.shares = shares_;
        for (auto& [slot, share] : shares_) WeighLess(&share);
      }
      read.names.trained_shares = predictor_->slot_shares();
      warnings->merge(ValueWarnings(read, Reads::kModel));
    }
    GiveBack(std::move(scorer));
    return Status::Ok();
  }
  /// Lets earlier rows weigh no more than a few thousand: a server that scored millions must notice what comes now.
  static void WeighLess(SlotShare* share) {
    constexpr int64_t kRemembered = 4096;
    if (share->rows <= kRemembered) return;
    const double part = static_cast<double>(kRemembered) / static_cast<double>(share->rows);
    for (int64_t* count : {&share->rows, &share->empty, &share->ids, &share->unknown}) {
      *count = std::llround(part * static_cast<double>(*count));
    }
  }
  void GiveBack(std::unique_ptr<Scorer> scorer) {
    constexpr size_t kKept = 64;
    const std::lock_guard lock(mutex_);
    if (free_.size() == kKept) free_.erase(free_.begin());
    free_.push_back(std::move(scorer));
  }

  std::unique_ptr<const Predictor> predictor_;
  DataFeedFactory feeds_of_columns_;  ///< of a model with features
  std::vector<std::string> names_;    ///< of the columns of scores
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scorer>> free_;
  SlotShares shares_;                ///< of the latest rows
  std::string last_header_;          ///< of CSV
  std::vector<std::string> absent_;  ///< slots whose columns it lacks
  std::atomic<int> scorers_made_{0};
  const std::shared_ptr<const FeaturePlans> plans_ = std::make_shared<const FeaturePlans>();  ///< of frames
  QuickWork quick_text_, quick_columns_, quick_frames_;
};

/// Whether an array's memory is as a slot has its values: ids, or float32.
bool IsPlain(const py::array& array, bool are_ids) {
  const py::dtype type = array.dtype();
  const auto size = static_cast<uintptr_t>(type.itemsize());
  if ((array.flags() & py::array::c_style) == 0 || type.byteorder() != '=') return false;
  if (size == 0 || reinterpret_cast<uintptr_t>(array.data()) % size != 0) return false;
  if (!are_ids) return type.kind() == 'f' && size == sizeof(float);
  if (size != sizeof(uint64_t) || (type.kind() != 'u' && type.kind() != 'i')) return false;
  const auto* ids = static_cast<const int64_t*>(array.data());
  return type.kind() == 'u' || std::all_of(ids, ids + array.size(), [](int64_t id) { return id >= 0; });
}

/// Puts numbers end to end, as a slot has them. False where one is not that plain, and numpy is to look at it.
class PlainNumbers {
 public:
  explicit PlainNumbers(bool are_ids) : are_ids_(are_ids) {}

  bool Take(PyObject* number) { return are_ids_ ? TakeId(number) : TakeFloat(number); }
  bool TakeArray(const py::array& array) {
    if (array.ndim() != 1 || !IsPlain(array, are_ids_)) return false;
    const auto append = [&](auto& to) {
      const auto* values = static_cast<const std::remove_reference_t<decltype(to[0])>*>(array.data());
      to.insert(to.end(), values, values + array.size());
    };
    if (are_ids_) {
      append(ids_);
    } else {
      append(floats_);
    }
    return true;
  }
  size_t size() const { return are_ids_ ? ids_.size() : floats_.size(); }
  py::array ToArray() const {
    if (are_ids_) return py::array_t<uint64_t>(static_cast<py::ssize_t>(ids_.size()), ids_.data());
    return py::array_t<float>(static_cast<py::ssize_t>(floats_.size()), floats_.data());
  }

 private:
  bool TakeId(PyObject* number) {
    if (!PyLong_CheckExact(number)) return false;
    const unsigned long long id = PyLong_AsUnsignedLongLong(number);
    if (id == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return false;
    }
    ids_.push_back(id);
    return true;
  }
  bool TakeFloat(PyObject* number) {
    if (!PyFloat_CheckExact(number)) return false;
    const double value = PyFloat_AS_DOUBLE(number);
    if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max())) return false;
    floats_.push_back(static_cast<float>(value));
    return true;
  }

  const bool are_ids_;
  std::vector<uint64_t> ids_;
  std::vector<float> floats_;
};

/// The rows of an array [rows] or [rows, k], over its memory, as CutRows gives them.
py::object CutArray(const py::array& array, bool are_ids) {
  if (array.ndim() < 1 || array.ndim() > 2 || !IsPlain(array, are_ids)) return py::none();
  const py::ssize_t rows = array.shape(0);
  const int64_t width = array.ndim() == 1 ? 1 : array.shape(1);
  py::array_t<int64_t> offsets(rows + 1);
  int64_t* const ends = offsets.mutable_data();
  for (py::ssize_t row = 0; row <= rows; ++row) ends[row] = row * width;
  const py::dtype type = are_ids ? py::dtype::of<uint64_t>() : py::dtype::of<float>();
  return py::make_tuple(py::array(type, {array.size()}, array.data(), array), offsets);
}

/// The rows of an array, or of a list or tuple of numbers or of lists, tuples and vectors of them: (values end to end,
/// offsets), or None where something is not that plain.
py::object CutRows(const py::handle& given, bool are_ids) {
  const auto is_list = [](PyObject* o) { return PyList_CheckExact(o) || PyTuple_CheckExact(o); };
  const py::array_t<int64_t> none;
  // One of a class of its own, masked say, is none of ours.
  const auto is_array = [&](PyObject* o) { return Py_TYPE(o) == Py_TYPE(none.ptr()); };
  if (is_array(given.ptr())) return CutArray(py::reinterpret_borrow<py::array>(given), are_ids);
  if (!is_list(given.ptr())) return py::none();
  const Py_ssize_t rows = PySequence_Fast_GET_SIZE(given.ptr());
  PlainNumbers numbers(are_ids);
  py::array_t<int64_t> offsets(rows + 1);
  int64_t* const ends = offsets.mutable_data();
  ends[0] = 0;
  for (Py_ssize_t row = 0; row < rows; ++row) {
    PyObject* const values = PySequence_Fast_GET_ITEM(given.ptr(), row);
    bool is_plain = true;
    if (is_list(values)) {
      const Py_ssize_t count = PySequence_Fast_GET_SIZE(values);
      for (Py_ssize_t i = 0; is_plain && i < count; ++i) is_plain = numbers.Take(PySequence_Fast_GET_ITEM(values, i));
    } else {
      is_plain = is_array(values) ? numbers.TakeArray(py::reinterpret_borrow<py::array>(values)) : numbers.Take(values);
    }
    if (!is_plain) return py::none();
    ends[row + 1] = static_cast<int64_t>(numbers.size());
  }
  return py::make_tuple(numbers.ToArray(), offsets);
}

/// The model of an estimator, as a pickle of anybody's may have it.
std::map<std::string, std::string> ModelFilesOf(const py::dict& given) {
  std::map<std::string, std::string> files;
  for (const auto& [name, content] : given) {
    if (!py::isinstance<py::str>(name) || !py::isinstance<py::bytes>(content)) {
      throw StatusError(BadData("the model of an estimator is bytes by the names of its files"));
    }
    files[name.cast<std::string>()] = content.cast<std::string>();
  }
  return files;
}

}  // namespace

void BindPredictor(py::module_& module) {
  py::class_<PyPredictor>(module, "Predictor")
      .def(py::init<const std::string&, const std::string&, const std::vector<std::string>&, const std::string&,
                    const std::optional<std::string>&>(),
           py::arg("folder"), py::arg("feed"), py::arg("given"), py::arg("prediction"), py::arg("data_desc"))
      .def("warnings", &PyPredictor::Warnings)
      .def("predictions", &PyPredictor::Predictions)
      .def("slots", &PyPredictor::Slots)
      .def("scorers_made", &PyPredictor::scorers_made)
      .def("score_text", &PyPredictor::ScoreText, py::arg("text"), py::arg("without"))
      .def("columns", &PyPredictor::Columns, py::arg("without"))
      .def("word_columns", &PyPredictor::WordColumnsOfModel)
      .def("whole_numbers", &PyPredictor::WholeNumbers)
      .def("has_features", &PyPredictor::has_features)
      .def("score_frame", &PyPredictor::ScoreFrame, py::arg("frame"), py::arg("without"))
      .def("score_columns", &PyPredictor::ScoreColumns, py::arg("columns"), py::arg("rows"));
  module.def("check_model_files", [](const py::dict& files) { ThrowUnlessOk(CheckModelFiles(ModelFilesOf(files))); });
  module.def("write_model_files", [](const py::dict& files, const std::string& folder) {
    const std::map<std::string, std::string> all = ModelFilesOf(files);
    const py::gil_scoped_release others_may_run;
    ThrowUnlessOk(WriteModelFiles(all, folder));
  });
  module.def("cut_rows", &CutRows, py::arg("given"), py::arg("are_ids"));
}

}  // namespace millrace
