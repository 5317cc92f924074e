// The extension module millrace._lines: turns what a data generator yields into lines of MultiSlot text. It knows
// nothing of the rooms, so that a pipe_command that needs it alone starts at once. python/millrace/data_generator.py
// has the rules; whatever is not plain here (another type, a slot that becomes float, a mistake) is left to it.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

namespace {

void AppendInt(long long value, std::string* out) {
  char digits[24];
  out->append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

/// As Python's repr: the shortest digits that read back alike, with an exponent below 1e-4 and from 1e16 on.
void AppendFloat(double value, std::string* out) {
  if (!std::isfinite(value)) {
    out->append(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    return;
  }
  char text[40];
  const char* end = std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific).ptr;
  const char* at = text;
  if (*at == '-') out->push_back(*at++);
  const char* e = at;
  while (*e != 'e') ++e;
  int exponent = 0;
  std::from_chars(e[1] == '+' ? e + 2 : e + 1, end, exponent);
  if (exponent < -4 || exponent >= 16) {
    out->append(at, end);
    return;
  }
  std::string digits(1, *at);
  if (e - at > 2) digits.append(at + 2, e);
  const auto count = static_cast<int>(digits.size());
  if (exponent < 0) {
    out->append("0.").append(static_cast<size_t>(-exponent - 1), '0').append(digits);
  } else if (count <= exponent + 1) {
    out->append(digits).append(static_cast<size_t>(exponent + 1 - count), '0').append(".0");
  } else {
    const auto whole = static_cast<size_t>(exponent + 1);
    out->append(digits, 0, whole).append(1, '.').append(digits, whole);
  }
}

/// Appends one number; false when it is not a plain int, or a plain float in a slot of floats.
bool AppendNumber(PyObject* value, bool is_float, std::string* out) {
  if (PyLong_CheckExact(value)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow != 0) return false;
    AppendInt(number, out);
    return true;
  }
  if (!is_float || !PyFloat_CheckExact(value)) return false;
  AppendFloat(PyFloat_AS_DOUBLE(value), out);
  return true;
}

/// The name and the elements of a field; false when it is no pair.
bool Field(PyObject* item, PyObject** name, PyObject** elements) {
  if (!(PyTuple_CheckExact(item) || PyList_CheckExact(item)) || PySequence_Fast_GET_SIZE(item) != 2) return false;
  *name = PySequence_Fast_GET_ITEM(item, 0);
  *elements = PySequence_Fast_GET_ITEM(item, 1);
  return true;
}

bool SameName(PyObject* name, PyObject* wanted) {
  return name == wanted || (PyUnicode_CheckExact(name) && PyUnicode_Compare(name, wanted) == 0);
}

bool AppendNumbers(PyObject* sample, PyObject* names, std::string_view floats, std::string* out) {
  if (!(PyTuple_CheckExact(sample) || PyList_CheckExact(sample))) return false;
  const Py_ssize_t fields = PySequence_Fast_GET_SIZE(sample);
  if (fields != PyTuple_GET_SIZE(names)) return false;
  for (Py_ssize_t i = 0; i < fields; ++i) {
    PyObject* name = nullptr;
    PyObject* elements = nullptr;
    if (!Field(PySequence_Fast_GET_ITEM(sample, i), &name, &elements)) return false;
    if (!SameName(name, PyTuple_GET_ITEM(names, i)) || !PyList_CheckExact(elements)) return false;
    const Py_ssize_t count = PyList_GET_SIZE(elements);
    if (count == 0) return false;
    if (i > 0) out->push_back(' ');
    AppendInt(count, out);
    for (Py_ssize_t k = 0; k < count; ++k) {
      out->push_back(' ');
      if (!AppendNumber(PyList_GET_ITEM(elements, k), floats[static_cast<size_t>(i)] != 0, out)) return false;
    }
  }
  out->push_back('\n');
  return true;
}

bool AppendStrings(PyObject* sample, std::string* out) {
  if (!(PyTuple_CheckExact(sample) || PyList_CheckExact(sample))) return false;
  const Py_ssize_t fields = PySequence_Fast_GET_SIZE(sample);
  for (Py_ssize_t i = 0; i < fields; ++i) {
    PyObject* name = nullptr;
    PyObject* elements = nullptr;
    if (!Field(PySequence_Fast_GET_ITEM(sample, i), &name, &elements)) return false;
    if (!(PyList_CheckExact(elements) || PyTuple_CheckExact(elements))) return false;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(elements);
    if (i > 0) out->push_back(' ');
    AppendInt(count, out);
    for (Py_ssize_t k = 0; k < count; ++k) {
      PyObject* element = PySequence_Fast_GET_ITEM(elements, k);
      if (!PyUnicode_CheckExact(element)) return false;
      Py_ssize_t size = 0;
      const char* text = PyUnicode_AsUTF8AndSize(element, &size);
      if (text == nullptr) {
        PyErr_Clear();
        return false;
      }
      out->push_back(' ');
      out->append(text, static_cast<size_t>(size));
    }
  }
  out->push_back('\n');
  return true;
}

/// Lines of samples [first, ...) up to one that is not plain: (text, the number of that one, or of samples).
template <class Append>
PyObject* Lines(PyObject* samples, Py_ssize_t first, const Append& append) {
  std::string text;
  Py_ssize_t at = first;
  for (; at < PyList_GET_SIZE(samples); ++at) {
    const size_t before = text.size();
    if (append(PyList_GET_ITEM(samples, at), &text)) continue;
    text.resize(before);
    break;
  }
  return Py_BuildValue("(s#n)", text.data(), static_cast<Py_ssize_t>(text.size()), at);
}

PyObject* NumberLines(PyObject* /*module*/, PyObject* arguments) {
  PyObject* samples = nullptr;
  Py_ssize_t first = 0;
  PyObject* names = nullptr;
  const char* floats = nullptr;
  Py_ssize_t count = 0;
  if (!PyArg_ParseTuple(arguments, "O!nO!y#", &PyList_Type, &samples, &first, &PyTuple_Type, &names, &floats, &count)) {
    return nullptr;
  }
  if (count != PyTuple_GET_SIZE(names)) {
    PyErr_SetString(PyExc_ValueError, "one flag for each name");
    return nullptr;
  }
  return Lines(samples, first, [&](PyObject* sample, std::string* out) {
    return AppendNumbers(sample, names, {floats, static_cast<size_t>(count)}, out);
  });
}

PyObject* StringLines(PyObject* /*module*/, PyObject* arguments) {
  PyObject* samples = nullptr;
  Py_ssize_t first = 0;
  if (!PyArg_ParseTuple(arguments, "O!n", &PyList_Type, &samples, &first)) return nullptr;
  return Lines(samples, first, [](PyObject* sample, std::string* out) { return AppendStrings(sample, out); });
}

PyMethodDef kMethods[] = {
    {"number_lines", NumberLines, METH_VARARGS, "number_lines(samples, first, names, floats) -> (text, next)"},
    {"string_lines", StringLines, METH_VARARGS, "string_lines(samples, first) -> (text, next)"},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef kModule = {PyModuleDef_HEAD_INIT,
                       "_lines",
                       "Lines of MultiSlot text from Python lists.",
                       -1,
                       kMethods,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__lines() { return PyModule_Create(&kModule); }
