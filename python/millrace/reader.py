"""Readers for programs that read their own data, and queues that feed them arrays from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import contextlib
import importlib
import itertools
import os
import sys
import threading
import time
from types import TracebackType
from typing import Any, Literal, NoReturn, Optional, SupportsFloat, SupportsIndex, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import _checks, _millrace, unique_name
from . import _formulas  # noqa: F401
from ._append import caller, dtype_name, dtype_number
from ._types import DLPack, Path, T
from .errors import AlreadyExistsError, CancelledError, ConfigError, Error, NotFoundError
from .framework import CPUPlace, Program, ScopeVariable, Variable, default_main_program, global_scope

__all__ = ["PyArrayFeedQueue", "PyArrayFeedQueueHolder", "Reader", "batch", "double_buffer",
           "init_py_array_feed_queue", "made_by", "multi_pass", "open_files",
           "py_array_reader", "py_reader", "random_data_generator", "read_file", "shuffle"]

Shapes = Sequence[Sequence[SupportsIndex]]  # one for each output
Places = Union[CPUPlace, Sequence[CPUPlace], None]
_Call = tuple["PyArrayFeedQueue", Callable[[], bool]]

# Pushes and pops in progress, keyed by thread: (queue, whether it has to wait).
_calls: dict[int, _Call] = {}
os.register_at_fork(after_in_child=_calls.clear)  # a forked child has none of those threads


class PyArrayFeedQueue:
    """A blocking queue with a fixed capacity. Any number of threads can push and pop; waiting does not block other threads.

    Each push contains one array per shape. Arrays are returned first in, first out, exactly once, and share memory with the
    pushed arrays: nothing is copied, so do not modify an array after pushing it. Created by a PyArrayFeedQueueHolder.
    """

    def __init__(self, *made: object) -> None:
        if len(made) != 1 or not isinstance(made[0], _millrace.ArrayQueue):
            raise TypeError("a PyArrayFeedQueue is made by PyArrayFeedQueueHolder.init_once, or by py_array_reader")
        self._queue = made[0]
        self._raised: Optional[BaseException] = None
        self._ended = False  # by close() without an error
        self._reader: Optional[Reader] = None  # of a program, that takes from it
        self._outputs: list[list[str]] = []  # names of the variables that show the arrays of a push, for each read_file
        # Why an array's numbers are no ids, by its number: what nobody looked up when it was pushed.
        self._no_ids: dict[int, ConfigError] = {}
        self._producers = threading.Lock()
        self._inside, self._left, self._expected = 0, 0, 1  # producers within `with`, behind it, and how many are to come

    def __repr__(self) -> str:
        shapes = ", ".join("%s %s" % (dtype, list(shape)) for shape, dtype in self.shapes)
        return "PyArrayFeedQueue(%d of %d: %s)" % (self.size(), self.capacity(), shapes)

    def __copy__(self) -> NoReturn:
        raise TypeError("a PyArrayFeedQueue cannot be copied")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError("a PyArrayFeedQueue cannot be copied")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PyArrayFeedQueue cannot be copied")

    def push(self, array_tuple: Union[ArrayLike, DLPack, Sequence[Union[ArrayLike, DLPack]]]) -> None:
        """Waits while the queue is full, then pushes a tuple of arrays.

        Accepts numpy arrays, pyarrow arrays, pandas columns, and objects with DLPack or the buffer protocol. Contiguous arrays
        of the right dtype are not copied. Raises ConfigError for a wrong shape or dtype, and for a table id below 0 (at run if
        the table is added later), and CancelledError after close. Floats that are not finite cause a MillraceWarning with
        their position, and end a run that trains on them.
        """
        is_taken = self._queue.try_push(array_tuple)
        if is_taken:
            return
        pushed: Any = array_tuple if isinstance(array_tuple, (tuple, list)) else (array_tuple,)
        arrays = pushed if is_taken is not None else [_array(number, array) for number, array in enumerate(pushed)]
        for number, array in enumerate(arrays if is_taken is None else ()):
            if array.dtype.kind == "f":
                _checks.finite("array %d" % number, array)
            try:
                _checks.ids("array %d" % number, array)
            except ConfigError as error:
                if self._is_looked_up(number):
                    raise
                self._no_ids.setdefault(number, error)
            if array.dtype == np.uint64 and self._is_looked_up(number):
                arrays[number] = array.view(np.int64)  # ids by their 64 bits
        thread = threading.get_ident()
        _calls[thread] = (self, self.is_full)
        try:
            self._queue.push(arrays)
        except CancelledError as error:
            if self._ended:
                error = CancelledError("the queue is closed: it takes no more arrays; where several producers push, tell it how "
                                       "many by expect(number) before the first begins, and reopen() opens it for another pass")
            raise error from self._raised
        except Error as error:
            raise error from self._raised
        finally:
            _calls.pop(thread, None)

    def pop(self) -> Optional[tuple[np.ndarray, ...]]:
        """Waits while the queue is empty, then returns a tuple of arrays. Returns None at the end of a pass, and once a closed
        queue is empty."""
        arrays = self._queue.try_pop()
        if arrays is not None:
            return arrays or None
        thread = threading.get_ident()
        _calls[thread] = (self, self.is_empty)
        try:
            return self._queue.pop()
        except Error as error:
            raise error from self._raised
        finally:
            _calls.pop(thread, None)

    def end_pass(self) -> None:
        """Ends the pass and keeps the queue open for the next one. After the pushed arrays, pop returns None once, and a reader
        is at its end until it starts over. Waits while the queue is full."""
        try:
            self._queue.end_pass()
        except Error as error:
            raise error from self._raised

    def reopen(self) -> None:
        """Reopens a closed queue, empty, for another pass. Does nothing if the queue is open."""
        if self._queue.is_closed():
            self._raised, self._ended, self._left, self._no_ids = None, False, 0, {}
            self._queue.reopen()
            if self._reader is not None:
                self._reader._start_over()

    def _is_looked_up(self, number: int) -> bool:
        """Returns whether the arrays at this position contain table ids."""
        looked_up = self._reader.program._looked_up if self._reader is not None else ()
        return any(names[number] in looked_up for names in self._outputs if number < len(names))

    def _check_ids(self) -> None:
        """Before a run: rejects invalid ids that were pushed before the program looked them up."""
        for number, error in list(self._no_ids.items()):
            if self._is_looked_up(number):
                raise ConfigError("%s, which was pushed into the queue of \"%s\"; reset the reader, or reopen() the closed queue, to "
                                  "empty it" % (error, self._outputs[0][number]))

    def expect(self, producers: SupportsIndex) -> None:
        """Sets how many producers use `with queue:`. The last of them closes the queue when it leaves. Default: the queue closes
        when no producer is inside."""
        self._expected = _checks.whole("expect: producers", producers, 1)

    def close(self, error: Union[BaseException, type[BaseException], None] = None) -> None:
        """Closes the queue: push is no longer allowed, and pop ends after the last array.

        If an exception is given, the other side gets a CancelledError raised from it.
        """
        if isinstance(error, type) and issubclass(error, BaseException):
            error = error()
        if error is not None and not isinstance(error, BaseException):
            raise ConfigError("close: the exception that ends the queue, or nothing, not %r" % (error,))
        if error is not None and self._raised is None and not self._queue.is_closed():
            self._raised = error
        self._ended = self._ended or error is None and not self._queue.is_closed()
        self._queue.close("" if error is None else "the queue was closed by " + _named(error))

    def __iter__(self) -> Iterator[tuple[np.ndarray, ...]]:
        """Pops until the end of the pass."""
        return iter(self.pop, None)

    def __enter__(self) -> PyArrayFeedQueue:
        with self._producers:
            self._inside += 1
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> Literal[False]:
        """Closes the queue when the last producer leaves `with queue:` (see expect), or immediately on an exception."""
        with self._producers:
            self._inside -= 1
            self._left += 1
            is_last = self._inside == 0 and self._left >= self._expected
        if is_last or error is not None:
            self.close(error)
        return False

    def size(self) -> int:
        """Returns the number of pushes not yet popped."""
        return self._queue.size()

    __len__ = size

    def capacity(self) -> int:
        """Returns the maximum number of pushes in the queue."""
        return self._queue.capacity()

    def is_full(self) -> bool:
        """Returns whether the next push would wait."""
        return self._queue.is_full()

    def is_empty(self) -> bool:
        """Returns whether the next pop would wait."""
        return self._queue.is_empty()

    def is_closed(self) -> bool:
        """Returns whether close was called. The queue can still contain arrays."""
        return self._queue.is_closed()

    @property
    def shapes(self) -> list[tuple[tuple[int, ...], str]]:
        """Returns the shapes and dtypes of a push: [((-1, 3), "float32"), ...]."""
        return self._queue.shapes()

    def _training_failed(self, error: BaseException) -> None:
        if self._raised is None:
            self.close(error)
        elif isinstance(error, Error) and error.__cause__ is None:
            error.__cause__ = self._raised


class PyArrayFeedQueueHolder:
    """Holder of a queue in a scope variable. The queue is created once its capacity and shapes are known."""

    def __init__(self, holder: Optional[_millrace.ArrayQueueHolder] = None) -> None:
        self._holder = holder or _millrace.ArrayQueueHolder()
        self._feeder: Optional[PyArrayFeedQueue] = None

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PyArrayFeedQueueHolder cannot be copied: its queue is one")

    def init_once(self, capacity: SupportsIndex, dims: Shapes, place: Optional[CPUPlace] = None,
                  dtypes: Optional[Iterable[DTypeLike]] = None) -> None:
        """Creates the queue. `dims` contains one shape per array, with -1 for any size, and `dtypes` the types (default:
        "float32"). Raises AlreadyExistsError on a second call."""
        if place is not None:
            _checks.one_of("init_once: place", place, CPUPlace)
        shapes = _sizes("init_once: dims", dims)
        dtypes = ["float32"] * len(shapes) if dtypes is None else _checks.listed("init_once: dtypes", dtypes, "types")
        try:
            names = ["float32" if dtype is None else str(np.dtype(dtype)) for dtype in dtypes]
        except TypeError as error:
            raise ConfigError("init_once: dtypes: %s" % error) from None
        if len(names) != len(shapes):
            raise ConfigError("init_once: %d dtypes for %d shapes" % (len(names), len(shapes)))
        size = _size("init_once: capacity", capacity)
        if size < 0:
            raise ConfigError("init_once: a queue's capacity must be at least 1; %d" % size)
        self._holder.init_once(size, shapes, names)
        self._feeder = PyArrayFeedQueue(self._holder.feeder())

    def feeder(self) -> Union[PyArrayFeedQueue, Any]:  # who has called init_once need not ask for None
        """Returns the queue, or None before init_once."""
        return self._feeder


class Reader:
    """A reader variable of a program, created by its startup program. read_file returns its next item.

    shapes, dtypes and lod_levels describe an item. A reader created by py_array_reader can get its arrays from a
    generator, as in fluid:

        reader.decorate_batch_generator(lambda: ((x, y) for x, y in day))
        reader.start()
        try:
            while True:
                exe.run(main)
        except millrace.EOFException:
            reader.reset()              # and start() again

    train_from_reader(main, epochs=3) starts the reader automatically.
    """

    def __init__(self, program: Program, name: str, shapes: list[list[int]], dtypes: list[str], lod_levels: list[int]) -> None:
        self.program, self.name = program, name
        self.shapes, self.dtypes, self.lod_levels = shapes, dtypes, lod_levels
        self._scope = global_scope()
        self._outer: Optional[Reader] = None  # what was made of it
        self._passes: Optional[_Passes] = None  # what pushes, of py_array_reader and of what was made of it

    def __repr__(self) -> str:
        items = ", ".join("%s %s" % (dtype, list(shape)) for shape, dtype in zip(self.shapes, self.dtypes))
        return 'Reader("%s": %s)' % (self.name, items)

    def decorate_batch_generator(self, reader: Callable[[], Iterable[Any]], places: Places = None) -> None:
        """Sets a function that returns a generator of batches, each a tuple with one array per output. The function is called
        once per pass."""
        self._decorate("decorate_batch_generator", reader, places, lambda batch: batch)

    def decorate_sample_list_generator(self, reader: Callable[[], Iterable[Any]], places: Places = None) -> None:
        """Sets a function whose generator yields batches as lists of samples, each a tuple with one value per output."""
        def stacked(samples: Sequence[Any]) -> list[np.ndarray]:
            pushed = self._passes.queue.shapes if self._passes is not None else []
            return [_stacked(column, shape, dtype, "output %d" % i)
                    for i, (column, (shape, dtype)) in enumerate(zip(_columns(samples, len(pushed)), pushed))]
        self._decorate("decorate_sample_list_generator", reader, places, stacked)

    def decorate_sample_generator(self, sample_generator: Callable[[], Iterable[Any]], batch_size: SupportsIndex,
                                  drop_last: bool = True, places: Places = None) -> None:
        """Sets a function whose generator yields single samples, which are grouped into batches of batch_size."""
        self.decorate_sample_list_generator(_batches(sample_generator, batch_size, drop_last), places)

    decorate_tensor_provider = decorate_batch_generator
    decorate_paddle_reader = decorate_sample_list_generator
    set_batch_generator = decorate_batch_generator
    set_sample_list_generator = decorate_sample_list_generator
    set_sample_generator = decorate_sample_generator

    def start(self) -> None:
        """Begins a pass: calls the generator function and pushes its batches. If no generator is set, reopens a closed queue
        for other producers."""
        if self._passes is None:
            return  # files need nobody
        self._passes.start()

    def reset(self) -> None:
        """Ends the current pass and drops its pushed batches, so the next pass can start. Parameters do not change."""
        if self._passes is None:
            self._restart()
        else:
            self._passes.stop()
            self._passes.queue.close(CancelledError("its reader was reset"))
            self._passes.queue.reopen()

    def _restart(self) -> None:
        outermost = self
        while outermost._outer is not None:
            outermost = outermost._outer
        self._scope._scope.reset_reader(outermost.name)

    def _start_over(self) -> None:
        """After its queue was opened again."""
        with contextlib.suppress(NotFoundError, AlreadyExistsError):  # not made yet; or in a run, which starts it over itself
            self._restart()

    def _decorate(self, method: str, reader: Callable[[], Iterable[Any]], places: Places,
                  convert: Callable[[Any], Any]) -> None:
        if self._passes is None:
            raise ConfigError('%s: the reader "%s" reads files; a generator pushes into one of py_array_reader' % (
                method, self.name))
        _places(method, places)
        self._passes.batches = _generated(method, reader, convert)
        if self._passes not in self.program._sources:
            self.program._sources.append(self._passes)


class _Passes:
    """Pushes the batches of a generator into a queue, pass by pass, from its own thread."""

    def __init__(self, queue: PyArrayFeedQueue) -> None:
        self.queue, self._epochs = queue, 0
        self.batches: Optional[Callable[[], Iterator[Any]]] = None
        self._thread: Optional[threading.Thread] = None
        self._is_started = False  # by start(), and not reset since

    def start(self) -> None:
        """Begins a pass."""
        if self.batches is None:
            self.queue.reopen()  # somebody else pushes
            return
        if self._is_started or self._is_pushing():
            raise ConfigError("the reader was started and its pass is not over: reset() it first")
        self._begin(1)
        self._is_started = True

    def _begin(self, epochs: int) -> None:
        self.queue.reopen()
        self._epochs = epochs
        self._thread = threading.Thread(target=self._push, args=(epochs,), daemon=True)
        self._thread.start()

    def stop(self, error: Optional[BaseException] = None) -> None:
        """Lets the thread end at its next push, and waits for it."""
        if self._thread is not None:
            self.queue.close(error or CancelledError("its reader was reset"))
            self._thread.join()
            self._thread = None
        self._is_started = False

    def _is_pushing(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _push(self, epochs: int) -> None:
        try:
            for _ in range(epochs):
                for arrays in self.batches() if self.batches is not None else ():
                    self.queue.push(arrays)
                self.queue.end_pass()
        except CancelledError as error:
            if not self.queue.is_closed():
                self.queue.close(error)  # of the generator's own
        except BaseException as error:  # pylint: disable=broad-except
            self.queue.close(error)  # the training ends by it

    def _next_feed(self, feed: Mapping[Any, Any]) -> dict[str, Any]:
        return {}  # the program reads it

    def _start_passes(self, epochs: int) -> bool:
        """For train_from_reader: begins them, unless start() has begun one; whether it did."""
        if not self._is_pushing() and not self.queue.size():
            self._begin(epochs)
            return True
        if epochs > self._epochs:
            raise ConfigError("train_from_reader: the reader was started for one pass, and epochs is %d: leave out start(), "
                              "train_from_reader starts it" % epochs)
        return False

    def _ended(self) -> None:
        """After a training has read to the end."""
        self._is_started = False

    def _stop(self, error: Optional[BaseException]) -> None:
        self.stop(error)


def init_py_array_feed_queue(var: ScopeVariable, capacity: SupportsIndex, shapes: Shapes, place: Optional[CPUPlace] = None,
                             dtypes: Optional[Iterable[DTypeLike]] = None) -> PyArrayFeedQueue:
    """Creates and returns the PyArrayFeedQueue of a scope variable, such as global_scope().var(name). The operator
    create_py_array_reader finds it with its feeder_name."""
    holder = PyArrayFeedQueueHolder(_checks.one_of("init_py_array_feed_queue: var", var, ScopeVariable)._queue_holder())
    holder.init_once(capacity, shapes, place, dtypes)
    return holder.feeder()


def py_array_reader(capacity: SupportsIndex, shapes: Shapes, place: Optional[CPUPlace] = None,
                    dtypes: Optional[Iterable[DTypeLike]] = None) -> tuple[Reader, PyArrayFeedQueue]:
    """Creates a reader of arrays pushed from Python. Returns (Reader, PyArrayFeedQueue).

    The queue is stored in global_scope(); create both before the startup program runs there. A pass of the reader ends where
    queue.end_pass() or close() was called. The next pass starts with the next push, after reset() or queue.reopen() if the queue
    was closed. Ids range from 0 to 2**64 - 1; for table lookups, pass ids of 64 bits as uint64.
    """
    program = default_main_program()
    name = unique_name.of_process("py_array_feed_queue")
    feeder = init_py_array_feed_queue(global_scope().var(name), capacity, shapes, place, dtypes)
    program._queues.append(feeder)
    kinds = [dtype for _, dtype in feeder.shapes]
    reader = _make(program, "create_py_array_reader", [list(shape) for shape, _ in feeder.shapes], kinds, [0] * len(kinds),
                   {"feeder_name": name})
    reader._passes = _Passes(feeder)
    feeder._reader = reader
    return reader, feeder


def py_reader(capacity: SupportsIndex, shapes: Shapes, dtypes: Sequence[DTypeLike], lod_levels: Optional[Sequence[int]] = None,
              name: Optional[str] = None, use_double_buffer: bool = True) -> Reader:
    """fluid's name for a reader with a generator: py_array_reader without its queue. lod_levels are 0: sequences are fed by
    io.PyReader."""
    if any(lod_levels or ()):
        raise ConfigError("py_reader: lod_levels: a queue holds arrays that are not cut into sequences; feed those by "
                          "io.PyReader(feed_list=[...]), not %r" % (lod_levels,))
    made = py_array_reader(capacity, shapes, None, dtypes)[0]
    return double_buffer(made) if use_double_buffer else made


def open_files(filenames: Union[Path, Iterable[Path]], shapes: Shapes, dtypes: Sequence[DTypeLike],
               lod_levels: Optional[Sequence[int]] = None, thread_num: int = 1, buffer_size: int = 100, format: str = "",
               names: Optional[Iterable[str]] = None) -> Reader:
    """Creates a reader of files, one example at a time: CSV, RecordIO, libsvm and others, chosen by name prefix ("csv:part-0")
    or suffix. `names` are the TFRecord or OFRecord fields of the outputs. docs/readers.md lists the formats."""
    attrs = dict(_described("open_files", shapes, dtypes, lod_levels), file_names=_files(filenames), thread_num=thread_num,
                 buffer_size=buffer_size, format=format)
    if names is not None:
        attrs["names"] = _checks.listed("open_files: names", names, "names")
    return _make(default_main_program(), "open_files", shapes, dtypes, lod_levels, attrs)


def random_data_generator(low: SupportsFloat, high: SupportsFloat, shapes: Shapes,
                          lod_levels: Optional[Sequence[int]] = None) -> Reader:
    """Creates an endless reader of random float32 values in [low, high)."""
    dtypes = ["float32"] * len(_sizes("shapes", shapes))
    return _make(default_main_program(), "create_random_data_generator", shapes, dtypes, lod_levels,
                 dict(_described("random_data_generator", shapes, dtypes, lod_levels), low=float(low), high=float(high)))


def made_by(type: str, attrs: Optional[Mapping[str, Any]] = None, reader: Optional[Reader] = None,
            shapes: Optional[Shapes] = None, dtypes: Optional[Sequence[DTypeLike]] = None,
            lod_levels: Optional[Sequence[int]] = None) -> Reader:
    """Creates a reader with any reader operator, for example from a plugin. The reader is its output Out.

    reader  the operator's input UnderlyingReader; None: the operator reads files or generates data
    shapes, dtypes, lod_levels  contents of an item; default: those of `reader`, or float32 without sequences
    """
    known = {name for name, _, _ in _millrace.op_info(_checks.text("made_by: type", type))["attrs"]}
    program = default_main_program()
    inputs = []
    if reader is not None:
        program = _checks.one_of(type + ": reader", reader, Reader).program
        inputs = [("UnderlyingReader", [reader.name])]
        shapes, dtypes = shapes or reader.shapes, dtypes or reader.dtypes
        lod_levels = lod_levels or reader.lod_levels
    shapes = _sizes(type + ": shapes", shapes or ())
    described = _described(type, shapes, dtypes or ["float32"] * len(shapes), lod_levels)
    attrs = dict({name: value for name, value in described.items() if name in known}, **(attrs or {}))
    made = _make(program, type, shapes, dtypes or ["float32"] * len(shapes), lod_levels, attrs, inputs)
    return made if reader is None else _around(reader, made)


def shuffle(reader: Reader, buffer_size: int, seed: int = 0) -> Reader:
    """Creates a reader that shuffles another one in blocks of buffer_size items. The other one cannot be read directly then."""
    return _decorate("create_shuffle_reader", reader, {"buffer_size": buffer_size, "seed": seed})


def batch(reader: Reader, batch_size: int, discard_leftover: bool = False) -> Reader:
    """Creates a reader that joins batch_size items of another one along axis 0."""
    made = _decorate("create_batch_reader", reader, {"batch_size": batch_size, "discard_leftover": discard_leftover})
    made.shapes = [[-1] + list(shape[1:]) for shape in reader.shapes]
    return made


def multi_pass(reader: Reader, pass_num: int) -> Reader:
    """Creates a reader that repeats another one pass_num times."""
    return _decorate("create_multi_pass_reader", reader, {"pass_num": pass_num})


def double_buffer(reader: Reader, place: Optional[CPUPlace] = None) -> Reader:
    """Creates a reader that prefetches another one in its own thread."""
    return _decorate("create_double_buffer_reader", reader, {})


def has_next(reader: Reader) -> Variable:
    """Returns whether the reader has another item, by prefetching it: bool [1], for layers.While and layers.cond."""
    program = _checks.one_of("has_next: reader", reader, Reader).program
    name = program.unique_name("has_next")
    program._lines[name] = caller()
    program._author.append("has_next", [("Reader", [reader.name])], [("Out", [name])], {})
    return Variable(program, name)


def reset(reader: Reader) -> None:
    """Appends an operator that restarts the reader."""
    program = _checks.one_of("reset: reader", reader, Reader).program
    program._author.append("reset", [("Reader", [reader.name])], [], {})


def read_file(reader: Reader, throw_eof_exp: bool = True) -> Any:
    """Returns the variables of the reader's next item: a list, or the only one. At the end of a pass the run raises
    EOFException, or with throw_eof_exp=False the variables have no rows."""
    program = _checks.one_of("read_file: reader", reader, Reader).program
    stem = program.unique_name("read_file")
    names = ["%s.tmp_%d" % (stem, i) for i in range(len(reader.shapes))]
    for name, shape, dtype, lod_level in zip(names, reader.shapes, reader.dtypes, reader.lod_levels):
        program._author.add_variable(name, dtype, [int(size) for size in shape], lod_level)
        program._lines[name] = caller()
    program._author.append("read", [("Reader", [reader.name])], [("Out", names)],
                           {} if _checks.one_of("read_file: throw_eof_exp", throw_eof_exp, bool) else {"throw_eof_exp": False})
    if reader._passes is not None:
        reader._passes.queue._outputs.append(names)
    variables = [Variable(program, name) for name in names]
    return variables[0] if len(variables) == 1 else variables


def _files(given: Union[Path, Iterable[Path]]) -> list[str]:
    files = [given] if isinstance(given, (str, os.PathLike)) else _checks.listed("open_files: filenames", given, "files")
    return [_checks.path("open_files: filenames", file) for file in files]


def _sizes(what: str, given: Any) -> list[list[int]]:
    """Shapes as lists of ints."""
    wanted = "shapes, one for each output, as in [[-1, 13], [-1, 1]]"
    shapes = []
    for shape in _checks.listed(what, given, wanted):
        if not np.iterable(shape) or isinstance(shape, str):
            raise ConfigError("%s: a list of %s, not %r" % (what, wanted, given))
        shapes.append([_size(what, size) for size in shape])
    return shapes


def _described(what: str, shapes: Shapes, dtypes: Sequence[DTypeLike], lod_levels: Optional[Sequence[int]]) -> dict[str, Any]:
    shapes = _sizes("shapes", shapes)
    if not shapes:
        raise ConfigError("%s: shapes is empty; a reader has one for each output, as in [[-1, 13], [-1, 1]]" % what)
    dtypes = _checks.listed("dtypes", dtypes, "types")
    if len(dtypes) != len(shapes):
        raise ConfigError("dtypes: one for each output; there are %d for %d shapes" % (len(dtypes), len(shapes)))
    return {"shape_concat": [size for shape in shapes for size in shape], "ranks": [len(shape) for shape in shapes],
            "lod_levels": list(lod_levels or [0] * len(shapes)), "dtypes": [dtype_number(dtype) for dtype in dtypes]}


def _make(program: Program, type: str, shapes: Shapes, dtypes: Sequence[DTypeLike], lod_levels: Optional[Sequence[int]],
          attrs: dict[str, Any], inputs: Sequence[tuple[str, list[str]]] = ()) -> Reader:
    name = unique_name.of_process(type.replace("create_", ""))
    program._author.add_reader(type, list(inputs), name, attrs)
    return Reader(program, name, _sizes("shapes", shapes), [dtype_name(dtype) for dtype in dtypes],
                  list(lod_levels or [0] * len(shapes)))


def _decorate(type: str, reader: Reader, attrs: dict[str, Any]) -> Reader:
    _checks.one_of(type.replace("create_", "") + ": reader", reader, Reader)
    made = _make(reader.program, type, reader.shapes, reader.dtypes, reader.lod_levels, attrs,
                 [("UnderlyingReader", [reader.name])])
    return _around(reader, made)


def _around(reader: Reader, made: Reader) -> Reader:
    """Notes that `made` reads `reader`."""
    made._scope, made._passes, reader._outer = reader._scope, reader._passes, made
    return made


def _places(what: str, given: Places) -> None:
    for place in given if isinstance(given, (list, tuple)) else [given]:
        if place is not None:
            _checks.one_of(what + ": places", place, CPUPlace)


def _generated(method: str, reader: Callable[[], Iterable[Any]], convert: Callable[[Any], T]) -> Callable[[], Iterator[T]]:
    """Returns a function that yields the batches of a pass."""
    if not callable(reader):
        raise ConfigError("%s: a function that returns a generator, which is called for each pass, not %r" % (method, reader))
    return lambda: map(convert, reader())


def _batches(sample_generator: Callable[[], Iterable[T]], batch_size: SupportsIndex,
             drop_last: bool) -> Callable[[], Iterator[list[T]]]:
    """Returns a function that yields lists of batch_size samples."""
    batch_size = _checks.whole("batch_size", batch_size, 1)
    if not callable(sample_generator):
        raise ConfigError("a function that returns a generator of samples, which is called for each pass, not %r" % (
            sample_generator,))

    def made() -> Iterator[list[T]]:
        samples = iter(sample_generator())
        while True:
            some = list(itertools.islice(samples, batch_size))
            if not some or drop_last and len(some) < batch_size:
                return
            yield some
    return made


def _columns(samples: Sequence[Any], count: int) -> list[tuple[Any, ...]]:
    """Transposes samples (tuples) into one sequence of values per output or variable."""
    samples = [sample if isinstance(sample, (list, tuple)) else (sample,) for sample in samples]
    for row, sample in enumerate(samples):
        if len(sample) != count:
            raise ConfigError("sample %d (from 0) of a batch has %d values, and there are %d variables" % (row, len(sample), count))
    return list(zip(*samples))


def _stacked(column: Sequence[Any], shape: Sequence[int], dtype: str, what: str) -> np.ndarray:
    """Returns the samples' values as rows of an array of that type."""
    array = _rows(column, shape, dtype, what)
    if np.dtype(dtype).kind in "iu" and array.dtype.kind not in "biu":
        raise ConfigError("%s holds %s; give whole numbers, not %s" % (what, dtype, array.dtype))
    least, most = _checks.WHOLE.get(np.dtype(dtype).name, (0, 0))
    if np.dtype(dtype).itemsize < 8 and most and array.size and (array.min() < least or array.max() > most):
        raise ConfigError("%s holds %s, from %d to %d; there are values from %d to %d" % (
            what, dtype, least, most, array.min(), array.max()))
    return array.astype(dtype, copy=False)


def _rows(column: Sequence[Any], shape: Sequence[int], dtype: str, what: str) -> np.ndarray:
    """Returns the samples' values as rows of an array with their own type."""
    sizes = [int(size) for size in shape[1:]]
    _checks.unmasked(what, column)
    try:
        rows = [_checks.whole_array(value) if np.dtype(dtype).kind in "iu" else np.asarray(value) for value in column]
        return np.stack([row.reshape(sizes) if -1 not in sizes else row for row in rows])
    except (OverflowError, TypeError, ValueError) as error:
        raise ConfigError("%s: the samples of a batch do not make %s %s: %s" % (what, dtype, list(shape), error)) from None


def _size(what: str, given: Any) -> int:
    """A capacity, or a size of a shape."""
    size = _checks.whole(what, given)
    if not -2 ** 63 <= size < 2 ** 63:
        raise ConfigError("%s: no array is that large: %d" % (what, size))
    return size


def _named(error: BaseException) -> str:
    """"KeyError: 'x'", "KeyboardInterrupt"."""
    return ": ".join(filter(None, (type(error).__name__, str(error))))


def _has_nulls(column: Any) -> bool:
    """Whether a column of Arrow or pandas lacks values; nan is a value of floats."""
    nulls = getattr(column, "null_count", 0)
    if callable(nulls):
        nulls = nulls()
    is_numpys = isinstance(getattr(column, "dtype", None), (type(None), np.dtype))
    return bool(nulls or not is_numpys and getattr(column, "hasnans", False))


def _array(number: int, given: Any) -> np.ndarray:
    """Returns a C-contiguous array, over the same memory if possible."""
    if type(given) is np.ndarray and given.dtype.kind in "biuf" and given.flags.c_contiguous:
        return given
    if given is None:
        raise ConfigError("array %d is None" % number)
    if _has_nulls(given):
        raise ConfigError("array %d has missing values, which no tensor holds; fill them first, by .fillna(value) or "
                          ".fill_null(value)" % number)
    made_of = type(given).__name__
    _checks.unmasked("array %d" % number, given)
    if not isinstance(given, np.ndarray):
        try:
            if hasattr(given, "__dlpack__") and not hasattr(given, "to_numpy"):
                given = np.from_dlpack(given)
            elif hasattr(given, "to_numpy"):
                given = given.to_numpy()
            else:
                given = np.asarray(given)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise ConfigError("array %d: %s does not come in as an array: %s" % (number, made_of, error)) from error
    if given.dtype == object and not given.ndim:
        raise ConfigError("array %d: %s does not come in as an array; push a tuple of arrays" % (number, made_of))
    return np.ascontiguousarray(given) if given.ndim else given.reshape(())


def _end_waits_for_nobody() -> None:
    """Python waits for its threads before it ends. Where all that are left wait for a queue, they would for ever: a
    producer whose consumer failed, for one. They get a CancelledError then."""
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        with contextlib.suppress(RuntimeError):  # Python 3.12.0 and 3.12.1 let no thread begin here
            threading.Thread(target=_watch, daemon=True).start()


def _watch(look_seconds: float = 0.1, patience_seconds: float = 60) -> None:
    """The threads that Python waits for are given up when nobody is left to wake them. A daemon thread that does something
    else could: it gets patience_seconds for it."""
    apart = {threading.get_ident(), threading.main_thread().ident}
    before: dict[Optional[int], Optional[_Call]] = {}
    since = 0.0
    while True:
        time.sleep(look_seconds)
        calls = {thread.ident: _calls.get(thread.ident or 0) for thread in threading.enumerate()
                 if not thread.daemon and thread.ident not in apart}
        if not calls or not all(map(_waits, calls.values())):
            before = {}
        elif before.keys() != calls.keys() or any(before[thread] is not calls[thread] for thread in calls):
            before, since = calls, time.monotonic()
        elif (time.monotonic() - since > patience_seconds
              or all(_waits(_calls.get(thread)) for thread in sys._current_frames() if thread not in apart)):
            for call in filter(None, calls.values()):
                call[0]._queue.close("Python ends, and whatever threads are left wait for a queue, so that nobody will push or "
                                   "pop; close() tells the other side of a queue that one is done with it")
            before = {}


def _waits(call: Optional[_Call]) -> bool:
    return call is not None and call[1]()


# What runs at Python's end runs last in, first out; an executor's threads are waited for there, by what its module adds.
with contextlib.suppress(AttributeError, RuntimeError):  # another Python than CPython, or one that ends already
    importlib.import_module("concurrent.futures.thread")
    threading._register_atexit(_end_waits_for_nobody)  # type: ignore[attr-defined]
