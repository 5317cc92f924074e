#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "python/bindings.h"
#include "python/interruptible.h"
#include "python/tensor_array.h"
#include "reader/array_queue.h"

namespace py = pybind11;

namespace millrace {
namespace {

/// Lets go of a Python object on any thread, until the interpreter itself is gone.
struct LetGo {
  void operator()(const void* pointer) const {
    if (Py_IsInitialized() == 0) return;
    const py::gil_scoped_acquire acquired;
    Py_DECREF(static_cast<PyObject*>(const_cast<void*>(pointer)));
  }
};

std::shared_ptr<const void> Hold(const py::object& object) {
  PyObject* held = object.ptr();
  Py_INCREF(held);
  return {held, LetGo()};
}

/// A queue that Python pushes into holds arrays of Python alone.
py::handle HeldObject(const HeldArray& held) { return static_cast<PyObject*>(const_cast<void*>(held.owner.get())); }

HeldArray ToHeld(const py::array& array, DType dtype, size_t number) {
  HeldArray held;
  held.dtype = dtype;
  const std::vector<int64_t> shape(array.shape(), array.shape() + array.ndim());
  held.dims = Dims(std::span<const int64_t>(shape));
  if (held.dims.too_many()) {
    throw StatusError(InvalidConfig("array " + std::to_string(number) + ": a tensor has at most 8 axes"));
  }
  held.data = array.data();
  held.is_writable = array.writeable();
  held.owner = Hold(array);
  return held;
}

HeldArray ToHeld(const py::array& array, size_t number) {
  return ToHeld(array, DTypeOfArray(array, "array " + std::to_string(number)), number);
}

/// Whether it is an array of numpy itself, contiguous, with values of this type.
bool IsPlainArray(const py::handle& given, DType dtype) {
  if (!Py_IS_TYPE(given.ptr(), py::detail::npy_api::get().PyArray_Type_)) return false;
  const auto array = py::reinterpret_borrow<py::array>(given);
  return (array.flags() & py::array::c_style) != 0 && array.ndim() <= Dims::kMaxRank &&
         array.dtype().equal(ArrayTypeOf(dtype));
}

/// A numpy array over the held memory.
py::array ToView(const HeldArray& held) {
  const auto sizes = held.dims.sizes();
  py::array view(ArrayTypeOf(held.dtype), std::vector<py::ssize_t>(sizes.begin(), sizes.end()), held.data,
                 HeldObject(held));
  if (view.writeable() != held.is_writable) view.attr("setflags")(py::arg("write") = held.is_writable);
  return view;
}

template <class Bits>
Bits LoadBits(const std::byte* values, size_t number) {
  Bits bits;
  std::memcpy(&bits, values + number * sizeof(Bits), sizeof(Bits));  // an array of numpy need not be aligned
  return bits;
}

/// Whether a value is NaN or infinite: whether all bits of its exponent are set.
template <class Bits>
bool HasNonFinite(const std::byte* values, size_t count, Bits exponent) {
  Bits found = 0;
  for (size_t i = 0; i < count; ++i) found |= Bits{(LoadBits<Bits>(values, i) & exponent) == exponent};
  return found != 0;
}

template <class Bits>
bool HasNegative(const std::byte* values, size_t count) {
  Bits found = 0;
  for (size_t i = 0; i < count; ++i) found |= LoadBits<Bits>(values, i);
  return found < 0;
}

/// Whether there is nothing to say of the values: they are finite, and could be ids.
bool ArePlain(const HeldArray& held) {
  const auto* const values = static_cast<const std::byte*>(held.data);
  const auto count = static_cast<size_t>(held.dims.numel());
  switch (held.dtype) {
    case DType::kFloat32: return !HasNonFinite<uint32_t>(values, count, 0x7f800000);
    case DType::kFloat64: return !HasNonFinite<uint64_t>(values, count, 0x7ff0000000000000);
    case DType::kFloat16: return !HasNonFinite<uint16_t>(values, count, 0x7c00);
    case DType::kInt8: return !HasNegative<int8_t>(values, count);
    case DType::kInt16: return !HasNegative<int16_t>(values, count);
    case DType::kInt32: return !HasNegative<int32_t>(values, count);
    case DType::kInt64: return !HasNegative<int64_t>(values, count);
    case DType::kBool:
    case DType::kUint8: return true;
    case DType::kBFloat16: break;
  }
  return false;
}

bool ArePlain(const HeldArrays& arrays) {
  constexpr size_t kSoon = 1 << 14;
  size_t bytes = 0;
  for (const HeldArray& array : arrays) bytes += static_cast<size_t>(array.dims.numel()) * SizeOf(array.dtype);
  const auto all_are = [&] {
    return std::all_of(arrays.begin(), arrays.end(), [](const HeldArray& a) { return ArePlain(a); });
  };
  if (bytes <= kSoon) return all_are();
  bool result = false;
  WithoutGil([&] { result = all_are(); });
  return result;
}

py::tuple ToViews(const HeldArrays& held) {
  py::tuple views(held.size());
  for (size_t i = 0; i < held.size(); ++i) views[i] = ToView(held[i]);
  return views;
}

/// Waits without the GIL; on Python's main thread it looks for Ctrl-C meanwhile. `wait` is given what says whether to
/// stop, or nothing that does.
template <class T, class Wait>
T WaitFor(const Wait& wait) {
  const bool may_be_interrupted = OnMainThread();
  bool is_interrupted = false;
  const std::function<bool()> looks = [&] {
    const py::gil_scoped_acquire acquired;
    is_interrupted = PyErr_CheckSignals() != 0;
    return is_interrupted;
  };
  std::optional<Result<T>> result;
  WithoutGil([&] { result.emplace(wait(may_be_interrupted ? &looks : nullptr)); });
  if (is_interrupted) throw py::error_already_set();
  return ValueOrThrow(*std::move(result));
}

/// A queue as Python sees it; one object for its queue, however often the holder is asked.
class PyQueue {
 public:
  explicit PyQueue(std::shared_ptr<PyArrayFeedQueue> queue) : queue_(std::move(queue)) {}
  PyQueue(const PyQueue&) = delete;
  PyQueue& operator=(const PyQueue&) = delete;
  ~PyQueue() {
    // What is inside lets go of Python's objects, which takes the GIL.
    queue_.reset();
  }

  /// True when the queue took the arrays, false when it is full or closed, None when they are not as they mostly are:
  /// arrays of numpy, as shapes() has them, of which nothing needs to be said.
  py::object TryPush(const py::handle& arrays) {
    if (!PyTuple_CheckExact(arrays.ptr()) && !PyList_CheckExact(arrays.ptr())) return py::none();
    const std::vector<TensorSpec>& shapes = queue_->shapes();
    HeldArrays held;
    held.reserve(shapes.size());
    for (const py::handle given : py::reinterpret_borrow<py::sequence>(arrays)) {
      if (held.size() == shapes.size() || !IsPlainArray(given, shapes[held.size()].dtype)) return py::none();
      held.push_back(ToHeld(py::reinterpret_borrow<py::array>(given), shapes[held.size()].dtype, held.size()));
    }
    if (!queue_->Check(held).ok() || !ArePlain(held)) return py::none();
    return py::bool_(queue_->TryPush(held));
  }
  /// Waits while the queue is full.
  void Push(const std::vector<py::array>& arrays) {
    HeldArrays held;
    for (size_t i = 0; i < arrays.size(); ++i) held.push_back(ToHeld(arrays[i], i));
    ThrowUnlessOk(queue_->Check(held));
    if (!queue_->TryPush(held)) PushSlowly(std::move(held));
  }
  void EndPass() { PushSlowly({}); }
  void Reopen() { queue_->Reopen(); }
  /// A tuple of arrays, empty at the end of a pass, or None when there is nothing.
  py::object TryPop() {
    const std::optional<HeldArrays> held = queue_->TryPop();
    if (!held) return py::none();
    return ToViews(*held);
  }
  /// Waits while there is nothing: a tuple of arrays, or None at the end of a pass and of the queue.
  py::object Pop() {
    const auto held = WaitFor<std::optional<HeldArrays>>([&](const std::function<bool()>* stops) {
      return stops != nullptr ? queue_->PopUnless(*stops) : queue_->Pop({});
    });
    if (!held || held->empty()) return py::none();
    return ToViews(*held);
  }
  void Close(const std::string& failure) { queue_->Close(failure.empty() ? Status::Ok() : Cancelled(failure)); }
  size_t size() const { return queue_->size(); }
  size_t capacity() const { return queue_->capacity(); }
  bool is_full() const { return queue_->is_full(); }
  bool is_empty() const { return queue_->is_empty(); }
  bool is_closed() const { return queue_->is_closed(); }
  py::list Shapes() const {
    py::list shapes;
    for (const TensorSpec& spec : queue_->shapes()) {
      const auto sizes = spec.dims.sizes();
      shapes.append(py::make_tuple(py::tuple(py::cast(std::vector<int64_t>(sizes.begin(), sizes.end()))),
                                   std::string(DTypeName(spec.dtype))));
    }
    return shapes;
  }

 private:
  void PushSlowly(HeldArrays held) {
    WaitFor<bool>([&](const std::function<bool()>* stops) -> Result<bool> {
      if (stops != nullptr) {
        MR_TRY(queue_->PushUnless(*stops, std::move(held)));
      } else {
        MR_TRY(held.empty() ? queue_->EndPass({}) : queue_->Push(std::move(held), {}));
      }
      return true;
    });
  }

  std::shared_ptr<PyArrayFeedQueue> queue_;
};

void InitQueue(PyArrayFeedQueueHolder& holder, size_t capacity, const std::vector<std::vector<int64_t>>& shapes,
               const std::vector<std::string>& dtypes) {
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    specs.push_back({DTypeNamed(dtypes.at(i)), Dims(std::span<const int64_t>(shapes[i])), 0});
  }
  ThrowUnlessOk(holder.InitOnce(capacity, std::move(specs)));
}

}  // namespace

void BindQueue(py::module_& module) {
  py::class_<PyQueue, std::shared_ptr<PyQueue>>(module, "ArrayQueue")
      .def("push", &PyQueue::Push)
      .def("try_push", &PyQueue::TryPush)
      .def("pop", &PyQueue::Pop)
      .def("try_pop", &PyQueue::TryPop)
      .def("end_pass", &PyQueue::EndPass)
      .def("reopen", &PyQueue::Reopen)
      .def("close", &PyQueue::Close)
      .def("size", &PyQueue::size)
      .def("capacity", &PyQueue::capacity)
      .def("is_full", &PyQueue::is_full)
      .def("is_empty", &PyQueue::is_empty)
      .def("is_closed", &PyQueue::is_closed)
      .def("shapes", &PyQueue::Shapes);
  py::class_<PyArrayFeedQueueHolder>(module, "ArrayQueueHolder")
      .def(py::init<>())
      .def("init_once", &InitQueue)
      .def("feeder", [](const PyArrayFeedQueueHolder& holder) -> py::object {
        if (holder.feeder() == nullptr) return py::none();
        return py::cast(std::make_shared<PyQueue>(holder.feeder()));
      });
}

}  // namespace millrace
