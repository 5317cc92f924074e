#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/shortened.h"
#include "datafeed/cell_records.h"
#include "features/time_text.h"
#include "features/value_text.h"
#include "python/bindings.h"
#include "python/errors.h"
#include "python/interruptible.h"
#include "python/py_frame.h"

namespace py = pybind11;

namespace millrace {
namespace {

/// The texts of what a column of Python's objects holds; rows that hold several values, as lists.
class ObjectTexts {
 public:
  explicit ObjectTexts(std::string column) : column_(std::move(column)) {}

  void Add(PyObject* row) {
    if (PyList_Check(row) != 0 || PyTuple_Check(row) != 0 || py::isinstance<py::array>(row)) {
      has_lists_ = true;
      const auto values = py::reinterpret_steal<py::object>(PySequence_Fast(row, "a list"));
      if (!values) throw py::error_already_set();
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values.ptr()); ++i) {
        AddValue(PySequence_Fast_GET_ITEM(values.ptr(), i));
      }
    } else {
      AddValue(row);
    }
    rows.push_back(static_cast<int64_t>(offsets.size()) - 1);
  }
  bool has_lists() const { return has_lists_; }

  std::string bytes;
  std::vector<int64_t> offsets{0};  ///< of values in bytes
  std::vector<int64_t> rows{0};     ///< of rows in values

 private:
  void AddValue(PyObject* value) {
    AppendText(value);
    offsets.push_back(static_cast<int64_t>(bytes.size()));
  }
  void AppendText(PyObject* value) {
    if (value == Py_None) return;
    if (PyUnicode_Check(value) != 0) {
      bytes += Utf8Of(value);
    } else if (PyBytes_Check(value) != 0) {
      bytes.append(PyBytes_AS_STRING(value), static_cast<size_t>(PyBytes_GET_SIZE(value)));
    } else if (PyBool_Check(value) != 0) {
      bytes += value == Py_True ? '1' : '0';
    } else if (PyFloat_Check(value) != 0) {
      const double number = PyFloat_AS_DOUBLE(value);
      if (!std::isnan(number)) bytes += TextOfFloat(number, &scratch_);
    } else {
      AppendOther(value);
    }
  }
  /// Of whole numbers, numpy's numbers, decimals, dates and times.
  void AppendOther(PyObject* value) {
    const std::string type = Py_TYPE(value)->tp_name;
    if (type.ends_with("NAType") || type.ends_with("NaTType")) return;
    if (type == "numpy.bool" || type == "numpy.bool_") {
      bytes += PyObject_IsTrue(value) == 1 ? '1' : '0';
      return;
    }
    if (PyNumber_Check(value) == 0 && PyObject_HasAttrString(value, "isoformat") == 0) {
      throw StatusError(BadData(Place() + "expected a number, a text, a time or a list of these, found a " + type));
    }
    const py::str shown{py::handle(value)};
    const std::string_view text = Utf8Of(shown.ptr());
    if (text != "nan" && text != "NaT") bytes += text;
  }

  /// The UTF-8 of a string of Python, as long as that lives.
  std::string_view Utf8Of(PyObject* value) const {
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(value, &size);
    if (text != nullptr) return {text, static_cast<size_t>(size)};
    if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError) == 0) throw py::error_already_set();
    PyErr_Clear();
    const std::string shown = py::str(py::module_::import("builtins").attr("ascii")(py::handle(value)));
    throw StatusError(BadData(Place() + "expected text that UTF-8 can encode, found " + Shortened(shown, kMostShown) +
                              ", which has a surrogate"));
  }
  std::string Place() const { return "column \"" + column_ + "\": row " + std::to_string(rows.size() - 1) + ": "; }

  static constexpr size_t kMostShown = 80;  ///< bytes of a value in a message
  const std::string column_;
  bool has_lists_ = false;
  std::string scratch_;
};

/// A column of arrays of Python, in the form of Arrow.
struct HeldColumn {
  py::object values;
  py::array_t<int64_t> begins;  ///< of lists
  std::unique_ptr<ObjectTexts> texts;
  std::vector<uint8_t> validity;
  std::string name;
  std::string format;
  ArrowSchema schema{};
  ArrowArray array{};
  const void* buffers[3] = {};
  ArrowSchema item_schema{};
  ArrowArray item_array{};
  const void* item_buffers[3] = {};
  ArrowSchema* item_schemas[1] = {};
  ArrowArray* item_arrays[1] = {};
};

/// Columns of a frame; it goes with the last of the structs that refer to it.
struct HeldColumns {
  std::deque<HeldColumn> columns;
  std::vector<ArrowSchema*> schemas;
  std::vector<ArrowArray*> arrays;
  const void* no_validity[1] = {nullptr};
};

/// What releases the columns, on any thread.
template <class T>
void Release(T* given) {
  auto* const held = static_cast<std::shared_ptr<HeldColumns>*>(given->private_data);
  given->release = nullptr;
  if (Py_IsInitialized() == 0) return;
  const py::gil_scoped_acquire gil;
  delete held;
}
/// Of parts, which go with the whole.
template <class T>
void ReleaseNothing(T* given) {
  given->release = nullptr;
}

const void* ValidityOf(const py::object& missing, HeldColumn* column) {
  if (missing.is_none()) return nullptr;
  const auto mask = py::cast<py::array_t<bool, py::array::c_style | py::array::forcecast>>(missing);
  column->validity.assign(static_cast<size_t>(mask.size() + 7) / 8, 0);
  for (py::ssize_t i = 0; i < mask.size(); ++i) {
    if (!mask.data()[i]) column->validity[static_cast<size_t>(i / 8)] |= static_cast<uint8_t>(1U << (i % 8));
  }
  return column->validity.data();
}

void FillTexts(HeldColumn* column) {
  const ObjectTexts& texts = *column->texts;
  const auto values = static_cast<int64_t>(texts.offsets.size()) - 1;
  const auto fill = [&](ArrowSchema* schema, ArrowArray* array, const void** buffers) {
    buffers[1] = texts.offsets.data();
    buffers[2] = texts.bytes.data();
    *schema = {"U", "", nullptr, 0, 0, nullptr, nullptr, ReleaseNothing<ArrowSchema>, nullptr};
    *array = {values, 0, 0, 3, 0, buffers, nullptr, nullptr, ReleaseNothing<ArrowArray>, nullptr};
  };
  if (!texts.has_lists()) {
    fill(&column->schema, &column->array, column->buffers);
    return;
  }
  fill(&column->item_schema, &column->item_array, column->item_buffers);
  column->item_schemas[0] = &column->item_schema;
  column->item_arrays[0] = &column->item_array;
  column->buffers[1] = texts.rows.data();
  column->schema = {"+L", "", nullptr, 0, 1, column->item_schemas, nullptr, ReleaseNothing<ArrowSchema>, nullptr};
  column->array = {static_cast<int64_t>(texts.rows.size()) - 1,
                   0,
                   0,
                   2,
                   1,
                   column->buffers,
                   column->item_arrays,
                   nullptr,
                   ReleaseNothing<ArrowArray>,
                   nullptr};
}

/// (name, format, values, more): numbers in an array that is contiguous, of Arrow's format, and true where one is
/// missing, or None; with "+" before the format, numbers of lists, and where each list begins, int64, and the end of
/// the last; with the format "", objects in a list; with "n", nothing, as often as the list is long.
using GivenColumn = std::tuple<std::string, std::string, py::object, py::object>;

void FillColumn(const GivenColumn& given, HeldColumn* column) {
  const auto& [name, format, values, more] = given;
  column->name = name;
  column->format = format;
  const auto type = [](const std::string& text) {
    return ArrowSchema{text.c_str(), "", nullptr, 0, 0, nullptr, nullptr, ReleaseNothing<ArrowSchema>, nullptr};
  };
  column->values = values;
  if (format.empty()) {
    column->texts = std::make_unique<ObjectTexts>(name);
    const auto rows = py::reinterpret_steal<py::object>(PySequence_Fast(values.ptr(), "a list"));
    if (!rows) throw py::error_already_set();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(rows.ptr()); ++i) {
      column->texts->Add(PySequence_Fast_GET_ITEM(rows.ptr(), i));
    }
    column->values = py::none();
    FillTexts(column);
  } else if (format == "n") {
    column->schema = type(column->format);
    column->array = {static_cast<int64_t>(py::len(values)),
                     -1,
                     0,
                     0,
                     0,
                     column->buffers,
                     nullptr,
                     nullptr,
                     ReleaseNothing<ArrowArray>,
                     nullptr};
    column->values = py::none();
  } else if (format.starts_with("+")) {
    const auto items = py::cast<py::array>(values);
    column->begins = py::cast<py::array_t<int64_t, py::array::c_style>>(more);
    const auto& begins = column->begins;
    column->format = format.substr(1);
    column->item_buffers[1] = items.data();
    column->item_schema = type(column->format);
    column->item_array = {items.size(), 0, 0, 2, 0, column->item_buffers, nullptr, nullptr, ReleaseNothing<ArrowArray>,
                          nullptr};
    column->item_schemas[0] = &column->item_schema;
    column->item_arrays[0] = &column->item_array;
    column->buffers[1] = begins.data();
    column->schema = {"+L", "", nullptr, 0, 1, column->item_schemas, nullptr, ReleaseNothing<ArrowSchema>, nullptr};
    column->array = {begins.size() - 1,          0,      0, 2, 1, column->buffers, column->item_arrays, nullptr,
                     ReleaseNothing<ArrowArray>, nullptr};
  } else {
    const auto array = py::cast<py::array>(values);
    column->buffers[0] = ValidityOf(more, column);
    column->buffers[1] = array.data();
    column->schema = type(column->format);
    column->array = {array.size(),
                     column->buffers[0] == nullptr ? 0 : -1,
                     0,
                     2,
                     0,
                     column->buffers,
                     nullptr,
                     nullptr,
                     ReleaseNothing<ArrowArray>,
                     nullptr};
  }
  column->schema.name = column->name.c_str();
}

PyFrame FrameOfColumns(const std::vector<GivenColumn>& given, const std::string& name,
                       const std::map<std::string, std::string>& units) {
  auto held = std::make_shared<HeldColumns>();
  for (const GivenColumn& one : given) {
    HeldColumn& column = held->columns.emplace_back();
    FillColumn(one, &column);
    held->schemas.push_back(&column.schema);
    held->arrays.push_back(&column.array);
    if (held->arrays[0]->length == column.array.length) continue;
    throw StatusError(BadData(name + ": column \"" + column.name + "\" has " + std::to_string(column.array.length) +
                              " rows, and column \"" + held->columns[0].name + "\" " +
                              std::to_string(held->arrays[0]->length)));
  }
  const auto count = static_cast<int64_t>(held->columns.size());
  ArrowSchema schema{
      "+s", "", nullptr, 0, count, held->schemas.data(), nullptr, Release, new std::shared_ptr<HeldColumns>(held)};
  const int64_t rows = count == 0 ? 0 : held->arrays[0]->length;
  ArrowArray array{rows,
                   0,
                   0,
                   1,
                   count,
                   held->no_validity,
                   held->arrays.data(),
                   nullptr,
                   Release,
                   new std::shared_ptr<HeldColumns>(held)};
  std::vector<ArrowOwner<ArrowArray>> parts;
  parts.emplace_back(&array);
  return {ValueOrThrow(DataFrame::Create(ArrowOwner<ArrowSchema>(&schema), std::move(parts), name, units))};
}

PyFrame FrameOfStream(const py::capsule& capsule, const std::string& name,
                      const std::map<std::string, std::string>& units) {
  auto* const given = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule.ptr(), "arrow_array_stream"));
  if (given == nullptr) throw py::error_already_set();
  ArrowOwner<ArrowArrayStream> stream(given);
  // Code of Python that the stream may run is not interrupted itself: Ctrl-C is the caller's.
  return {RunInterruptibly<std::shared_ptr<const DataFrame>>(
      [&](const std::stop_token& stop) { return DataFrame::Take(std::move(stream), name, stop, units); })};
}

/// Looks for the first whole number of a part's column, "5" of one of integers or truth values and "5.0" of one of
/// floats; false where it has other values.
bool FindWholeNumber(const FrameColumn& column, const ArrowArray& rows, std::string* first) {
  const FrameColumn& values = column.is_list() ? column.items() : column;
  std::string_view type = values ? std::string_view(values.type_name()) : std::string_view();
  if (constexpr std::string_view kDictionary = "a dictionary of "; type.starts_with(kDictionary)) {
    type.remove_prefix(kDictionary.size());  // pandas' categories
  }
  const bool are_floats = type.starts_with("float");
  const bool are_integers = type.starts_with("int") || type.starts_with("uint") || type == "bool";
  std::string scratch;
  for (int64_t row = rows.offset; row < rows.offset + rows.length; ++row) {
    int64_t begin = row;
    int64_t end = row + 1;
    if (column.is_list()) column.List(row, &begin, &end);
    for (; begin < end; ++begin) {
      const std::string_view text = values ? values.Text(begin, kNewTextRule, &scratch) : std::string_view();
      if (text.empty() || (are_floats && text == "nan")) continue;
      const bool is_whole = text.ends_with(".0") || text.find("e+") != std::string_view::npos;
      if (!are_integers && !(are_floats && is_whole)) return false;
      if (first->empty()) *first = text;
      if (are_integers) return true;
    }
  }
  return true;
}

}  // namespace

std::map<std::string, std::string> WholeNumbersOf(const DataFrame& frame, const std::vector<std::string>& wanted) {
  std::map<std::string, std::string> found;
  for (size_t i = 0; i < frame.columns().size(); ++i) {
    const std::string& name = frame.columns()[i];
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    std::string whole;
    std::string floats;
    bool has_others = false;
    for (const std::shared_ptr<const FramePart>& part : frame.parts()) {
      std::string first;
      has_others = !FindWholeNumber(part->columns[i], *part->array.get(), &first) || has_others;
      std::string& kept = first.find_first_of(".e") != std::string::npos ? floats : whole;
      if (kept.empty()) kept = first;
    }
    if (!floats.empty()) {
      found[name] = floats;
    } else if (has_others || !whole.empty()) {
      found[name] = has_others ? "" : whole;
    }
  }
  return found;
}

std::map<std::string, FrameTimes> TimesOf(const DataFrame& frame, const std::vector<std::string>& wanted) {
  std::map<std::string, FrameTimes> found;
  std::string scratch;
  for (size_t i = 0; i < frame.columns().size(); ++i) {
    const std::string& name = frame.columns()[i];
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    constexpr int kLookedAt = 4096;
    int left = kLookedAt;
    for (const std::shared_ptr<const FramePart>& part : frame.parts()) {
      const FrameColumn& column = part->columns[i];
      if (!column) break;
      const FrameColumn& values = column.is_list() ? column.items() : column;
      for (int64_t row = 0; row < part->array->length && left > 0; ++row) {
        int64_t at = part->array->offset + row;
        int64_t end = at + 1;
        if (column.is_list()) column.List(at, &at, &end);
        for (; at < end && left > 0; ++at) {
          const std::string_view text = values.Text(at, kNewTextRule, &scratch);
          if (text.empty()) continue;
          IsoTime time;
          const bool is_time = ReadIsoTime(WithoutSpaces(text), &time) && time.has_clock;
          left = is_time ? left - 1 : 0;
          if (!is_time) break;
          FrameTimes& times = found[name];
          times.zones.insert(ZoneText(time.offset_minutes));
          times.unit = values.unit();
        }
      }
    }
  }
  std::erase_if(found, [](const auto& one) { return one.second.zones.size() > 1 && one.second.zones.contains(""); });
  return found;
}

void BindFrame(py::module_& module) {
  py::class_<PyFrame>(module, "Frame")
      .def_static("of_stream", FrameOfStream, py::arg("capsule"), py::arg("name"), py::arg("units"))
      .def_static("of_columns", FrameOfColumns, py::arg("columns"), py::arg("name"), py::arg("units"))
      .def_static(
          "join",
          [](const std::vector<PyFrame>& frames, const std::string& name) {
            std::vector<std::shared_ptr<const DataFrame>> all;
            for (const PyFrame& one : frames) all.push_back(one.frame);
            return PyFrame{ValueOrThrow(DataFrame::Join(all, name))};
          },
          py::arg("frames"), py::arg("name"))
      .def(
          "cell_records",
          [](const PyFrame& self, const std::vector<std::string>& columns, int text_rule) {
            std::string bytes;
            ThrowUnlessOk(AppendCellRecords(*self.frame, columns, static_cast<TextRule>(text_rule), &bytes));
            return py::bytes(bytes);
          },
          py::arg("columns"), py::arg("text_rule"))
      .def(
          "whole_numbers",
          [](const PyFrame& self, const std::vector<std::string>& columns) {
            return WholeNumbersOf(*self.frame, columns);
          },
          py::arg("columns"))
      .def_property_readonly("rows", [](const PyFrame& self) { return self.frame->rows(); })
      .def_property_readonly("columns", [](const PyFrame& self) { return self.frame->columns(); });
}

}  // namespace millrace
