#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "features/feature_spec.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/interruptible.h"
#include "python/py_frame.h"
#include "serving/inference_model.h"
#include "session/model_scorer.h"

namespace py = pybind11;

namespace millrace {
namespace {

/// A ModelScorer as Python sees it.
class PyPredictor {
 public:
  /// `given` names variables that are fed instead of computed.
  PyPredictor(const std::string& folder, const std::string& feed, const std::vector<std::string>& given,
              const std::string& prediction, const std::optional<std::string>& data_desc) {
    const Environment& environment = SharedEnvironment();
    scorer_ = RunInterruptibly<std::unique_ptr<ModelScorer>>([&](std::stop_token stop) {
      return ModelScorer::Load(folder, {feed, given, prediction, data_desc}, environment, std::move(stop));
    });
  }

  const std::vector<std::string>& Predictions() const { return scorer_->predictions(); }
  std::vector<std::string> Warnings() const { return predictor().warnings(); }
  int scorers_made() const { return scorer_->buffers_made(); }
  bool has_features() const { return scorer_->has_features(); }

  py::list Slots() const {
    py::list slots;
    for (const SlotSpec& slot : predictor().schema().all()) {
      const auto& feeds = predictor().feeds();
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

  /// (scores, zeros left out, warnings), as the calls below.
  py::tuple ScoreText(const std::string& text, const std::vector<std::string>& without) {
    const Environment& environment = SharedEnvironment();
    return Score(static_cast<int64_t>(text.size()), &quick_text_,
                 [&](const std::stop_token& stop) { return scorer_->ScoreText(environment, text, without, stop); });
  }
  py::tuple ScoreFrame(const PyFrame& given, const std::vector<std::string>& without) {
    const Environment& environment = SharedEnvironment();
    return Score(given.frame->rows(), &quick_frames_, [&](const std::stop_token& stop) {
      return scorer_->ScoreFrame(environment, given.frame, without, stop);
    });
  }
  /// (slot, values, offsets or None) each, contiguous and of the slot's type.
  py::tuple ScoreColumns(const std::vector<std::tuple<std::string, py::array, py::object>>& given, int64_t rows) {
    std::vector<ScoredColumn> columns;
    std::vector<py::array_t<int64_t>> kept;
    int64_t values_given = rows;
    const SlotSchema& schema = predictor().schema();
    for (const auto& [name, values, offsets] : given) {
      const SlotSpec& slot = schema.used()[static_cast<size_t>(schema.Find(name))];
      ScoredColumn column{slot.id, values.data(), values.size(), nullptr};
      if (!slot.is_dense) {
        kept.push_back(offsets.cast<py::array_t<int64_t>>());
        column.offsets = kept.back().data();
      }
      columns.push_back(column);
      values_given += column.count;
    }
    return Score(values_given, &quick_columns_,
                 [&](const std::stop_token& stop) { return scorer_->ScoreColumns(columns, rows, stop); });
  }

  std::vector<std::string> Columns(const std::vector<std::string>& without) const {
    return ValueOrThrow(scorer_->Columns(without));
  }
  std::vector<std::string> WordColumnsOfModel() const { return WordColumns(predictor().data_desc()); }
  /// By column, how the training wrote whole numbers that are words: "5" or "5.0", or "" where it had other words.
  std::map<std::string, std::string> WholeNumbers() const {
    std::map<std::string, std::string> texts;
    for (const FeatureStates::WholeNumber& number : predictor().data_desc().feature_states().whole_number()) {
      texts[number.column()] = number.text();
    }
    return texts;
  }

 private:
  const Predictor& predictor() const { return scorer_->predictor(); }

  template <class Work>
  py::tuple Score(int64_t amount, QuickAmount* quick, const Work& work) {
    Scores scores;
    const auto run = [&](const std::stop_token& stop) { scores = ValueOrThrow(work(stop)); };
    if (predictor().has_blocks()) {
      RunInterruptibly(run);
    } else {
      RunQuickly(quick, amount, run);
    }
    const auto columns = static_cast<py::ssize_t>(scorer_->predictions().size());
    const auto count = static_cast<py::ssize_t>(scores.values.size());
    py::array_t<float> array = columns == 1 ? py::array_t<float>(count)
                                            : py::array_t<float>(std::vector<py::ssize_t>{count / columns, columns});
    if (count > 0) std::memcpy(array.mutable_data(), scores.values.data(), scores.values.size() * sizeof(float));
    return py::make_tuple(array, scores.zeros_dropped, scores.warnings);
  }

  std::unique_ptr<ModelScorer> scorer_;
  QuickAmount quick_text_, quick_columns_, quick_frames_;
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
