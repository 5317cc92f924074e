#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

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

/// Keeps a Python object alive from any thread, until the interpreter itself is gone.
std::shared_ptr<const void> Hold(const py::object& object) {
  PyObject* held = object.ptr();
  Py_INCREF(held);
  return {held, [](const void* pointer) {
            if (Py_IsInitialized() == 0) return;
            const py::gil_scoped_acquire acquired;
            Py_DECREF(static_cast<PyObject*>(const_cast<void*>(pointer)));
          }};
}

HeldArray ToHeld(const py::array& array, size_t number) {
  HeldArray held;
  held.dtype = DTypeOfArray(array, "array " + std::to_string(number));
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

/// A numpy array over the held memory.
py::array ToView(const HeldArray& held) {
  auto keep = std::make_unique<std::shared_ptr<const void>>(held.owner);
  const py::capsule owner(keep.get(), [](void* pointer) { delete static_cast<std::shared_ptr<const void>*>(pointer); });
  (void)keep.release();
  const auto sizes = held.dims.sizes();
  py::array view(ArrayTypeOf(held.dtype), std::vector<py::ssize_t>(sizes.begin(), sizes.end()), held.data, owner);
  if (!held.is_writable) view.attr("setflags")(py::arg("write") = false);
  return view;
}

/// Waits without the GIL; on Python's main thread it looks for Ctrl-C meanwhile.
template <class T>
T WaitFor(const std::function<Result<T>(std::stop_token)>& wait) {
  if (OnMainThread()) return RunInterruptibly<T>(wait);
  std::optional<Result<T>> result;
  WithoutGil([&] { result.emplace(wait(std::stop_token())); });
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

  void Push(const std::vector<py::array>& arrays) {
    HeldArrays held;
    for (size_t i = 0; i < arrays.size(); ++i) held.push_back(ToHeld(arrays[i], i));
    ThrowUnlessOk(queue_->Check(held));
    if (queue_->TryPush(held)) return;
    WaitFor<bool>([&](const std::stop_token& stop) -> Result<bool> {
      MR_TRY(queue_->Push(std::move(held), stop));
      return true;
    });
  }
  void EndPass() {
    WaitFor<bool>([&](const std::stop_token& stop) -> Result<bool> {
      MR_TRY(queue_->EndPass(stop));
      return true;
    });
  }
  void Reopen() { queue_->Reopen(); }
  /// A list of arrays, or None at the end of a pass and of the queue.
  py::object Pop() {
    std::optional<HeldArrays> held = queue_->TryPop();
    if (!held) {
      held = WaitFor<std::optional<HeldArrays>>([&](const std::stop_token& stop) { return queue_->Pop(stop); });
    }
    if (!held || held->empty()) return py::none();
    py::list arrays;
    for (const HeldArray& array : *held) arrays.append(ToView(array));
    return arrays;
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
      .def("pop", &PyQueue::Pop)
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
