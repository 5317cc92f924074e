"""Feeds layers.data variables from Python generators, and contains the save and load functions of fluid.io."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import queue
import random
import threading
from typing import Any, NoReturn, Optional, SupportsIndex, Union

from . import _checks
from ._append import as_list
from ._settings import Named, name_of
from ._types import T
from .errors import ConfigError, EOFException
from .executor import load_inference_model, load_persistables, save_inference_model, save_persistables
from .framework import CPUPlace, Program, Variable, default_main_program
from .reader import Places, _batches, _columns, _generated, _places, _rows

__all__ = ["DataFeeder", "DataLoader", "PyReader", "batch", "load_inference_model", "load_persistables", "save_inference_model",
           "save_persistables", "shuffle"]


class DataFeeder:
    """Converts a batch of samples to a feed: exe.run(main, feed=DataFeeder([x, y]).feed(samples)).

    feed_list  Variables of layers.data, or their names in `program` (default: the default main program)
    """

    def __init__(self, feed_list: Union[Named, Sequence[Named]], place: Optional[CPUPlace] = None,
                 program: Optional[Program] = None) -> None:
        _places("DataFeeder", place)
        program = default_main_program() if program is None else program
        self._variables = _fed_variables("DataFeeder", [
            program.var(given) if isinstance(given, str) else given for given in as_list(feed_list)])

    def feed(self, iterable: Iterable[Any]) -> dict[str, Any]:
        """Returns the feed of a batch. `iterable` yields its samples, each a tuple with one value per variable."""
        return dict(zip([var.name for var in self._variables], _values_of_samples(self._variables, list(iterable))))


class PyReader:
    """Feeds variables from a generator that a background thread reads ahead.

    feed_list    Variables of layers.data
    capacity     number of batches to read ahead
    iterable     True: `for feed in reader(): exe.run(main, feed=feed)`. False: start() begins a pass, exe.run(main) reads its
                 next batch and raises EOFException at the end; then call reset()
    return_list  if iterable: yields a list of values instead of a list with one dict

    use_double_buffer is ignored; the thread always reads ahead.
    """

    def __init__(self, feed_list: Union[Variable, Sequence[Variable], None] = None, capacity: SupportsIndex = 16,
                 use_double_buffer: bool = True, iterable: bool = True, return_list: bool = False) -> None:
        variables = self._variables = _fed_variables("PyReader", feed_list)
        self._capacity = _checks.whole("PyReader: capacity", capacity, 1)
        self._iterable, self._return_list = bool(iterable), bool(return_list)
        self._generator: Optional[Callable[[], Iterator[dict[str, Any]]]] = None
        self._pass: Optional[_ReadAhead] = None
        if not self._iterable:
            variables[0].program._sources.append(self)

    def __repr__(self) -> str:
        return "PyReader(%s)" % ", ".join(var.name for var in self._variables)

    def decorate_sample_generator(self, sample_generator: Callable[[], Iterable[Any]], batch_size: SupportsIndex,
                                  drop_last: bool = True, places: Places = None) -> PyReader:
        """Sets a function that returns a generator of samples, each a tuple with one value per variable. Groups batch_size
        samples into a batch. The function is called once per pass."""
        return self.decorate_sample_list_generator(_batches(sample_generator, batch_size, drop_last), places)

    def decorate_sample_list_generator(self, reader: Callable[[], Iterable[Any]], places: Places = None) -> PyReader:
        """Sets a function that returns a generator of batches, each a list of samples."""
        return self._decorate("decorate_sample_list_generator", reader, places, self._of_samples)

    def decorate_batch_generator(self, reader: Callable[[], Iterable[Any]], places: Places = None) -> PyReader:
        """Sets a function that returns a generator of batches, each a tuple with one feed value of exe.run per variable."""
        return self._decorate("decorate_batch_generator", reader, places, self._of_batch)

    set_sample_generator = decorate_sample_generator
    set_sample_list_generator = decorate_sample_list_generator
    set_batch_generator = decorate_batch_generator

    def start(self) -> None:
        """Begins a pass."""
        self._check_iterable("start", False)
        if self._pass is not None:
            raise ConfigError("PyReader: start: the pass before is not over: reset() it first")
        self._pass = self._begin("start")

    def reset(self) -> None:
        """Ends the current pass at any position."""
        self._check_iterable("reset", False)
        if self._pass is not None:
            self._pass.close()
            self._pass = None

    def __call__(self) -> Iterator[list[Any]]:
        """Iterates over the feeds of a pass. Requires iterable=True."""
        self._check_iterable("a loop over it", True)
        return self._feeds(self._begin("a loop over it"))

    def __iter__(self) -> Iterator[list[Any]]:
        return self()

    def _feeds(self, batches: _ReadAhead) -> Iterator[list[Any]]:
        try:
            for feed in batches:
                yield list(feed.values()) if self._return_list else [feed]
        finally:
            batches.close()

    def _decorate(self, method: str, reader: Callable[[], Iterable[Any]], places: Places,
                  convert: Callable[[Any], dict[str, Any]]) -> PyReader:
        _places(method, places)
        self._generator = _generated(method, reader, convert)
        return self

    def _begin(self, what: str) -> _ReadAhead:
        if self._generator is None:
            raise ConfigError("PyReader: %s: call decorate_sample_generator, decorate_sample_list_generator or "
                              "decorate_batch_generator first" % what)
        return _ReadAhead(self._generator, self._capacity)

    def _check_iterable(self, what: str, wanted: bool) -> None:
        if self._iterable != wanted:
            raise ConfigError("PyReader: %s is for iterable=%s; this one is iterable=%s" % (what, wanted, self._iterable))

    def _of_samples(self, samples: Sequence[Any]) -> dict[str, Any]:
        return self._of_batch(_values_of_samples(self._variables, samples))

    def _of_batch(self, given: Any) -> dict[str, Any]:
        values = list(given) if isinstance(given, (list, tuple)) else [given]
        if len(values) != len(self._variables):
            raise ConfigError("a batch of the PyReader has %d values, and feed_list %d variables" % (
                len(values), len(self._variables)))
        return {var.name: value for var, value in zip(self._variables, values)}

    # Called by executors.

    def _next_feed(self, feed: Mapping[Any, Any]) -> dict[str, Any]:
        fed = {name_of(key) for key in feed}
        if self._pass is None or any(var.name in fed for var in self._variables):
            return {}
        for batch_feed in self._pass:
            return batch_feed
        raise EOFException("%r is at the end of its pass: reset() it, then start() begins the next one" % self)

    def _start_passes(self, epochs: int) -> NoReturn:
        raise ConfigError("train_from_reader: the program is fed by %r, batch by batch: call start() and exe.run(program) until "
                          "EOFException" % self)

    def _ended(self) -> None:
        pass

    def _stop(self, error: Optional[BaseException]) -> None:
        pass


def _fed_variables(what: str, given: Any) -> list[Variable]:
    variables = as_list(given) if given is not None else []
    if not variables or not all(isinstance(var, Variable) for var in variables):
        raise ConfigError("%s: feed_list: Variables of layers.data, not %r" % (what, given))
    return variables


def _values_of_samples(variables: Sequence[Variable], samples: Sequence[Any]) -> list[Any]:
    """Returns the feed value of each variable."""
    columns = _columns(samples, len(variables))
    if not columns:
        raise ConfigError("a batch needs at least one sample")
    return [list(column) if var.lod_level else _rows(column, var.shape, var.dtype, '"%s"' % var.name)
            for var, column in zip(variables, columns)]


class DataLoader:
    """Creates PyReaders with fluid's other name."""

    @staticmethod
    def from_generator(feed_list: Union[Variable, Sequence[Variable], None] = None, capacity: SupportsIndex = 16,
                       use_double_buffer: bool = True, iterable: bool = True, return_list: bool = False,
                       use_multiprocess: bool = False, drop_last: bool = True) -> PyReader:
        """Creates a PyReader. Set its generator with set_sample_generator, set_sample_list_generator or set_batch_generator.
        drop_last is ignored, because it applies to several places; set_sample_generator has its own drop_last."""
        if use_multiprocess:
            raise ConfigError("DataLoader.from_generator: use_multiprocess: the generator runs in a thread; leave it out")
        return PyReader(feed_list, capacity, use_double_buffer, iterable, return_list)


def batch(reader: Callable[[], Iterable[T]], batch_size: SupportsIndex,
          drop_last: bool = False) -> Callable[[], Iterator[list[T]]]:
    """Returns a reader function that groups the items of another reader into lists of batch_size."""
    return _batches(reader, batch_size, drop_last)


def shuffle(reader: Callable[[], Iterable[T]], buf_size: SupportsIndex) -> Callable[[], Iterator[T]]:
    """Returns a reader function that shuffles the items of another reader in blocks of buf_size with Python's random."""
    def made() -> Iterator[T]:
        for some in _batches(reader, buf_size, False)():
            random.shuffle(some)
            yield from some
    return made


class _ReadAhead:
    """Runs a generator in a thread, up to `capacity` items ahead of the consumer."""

    _END = object()

    def __init__(self, make: Callable[[], Iterable[Any]], capacity: int) -> None:
        self._items: queue.Queue[tuple[Any, Optional[BaseException]]] = queue.Queue(capacity)
        self._stopped = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._read, args=(make,), daemon=True)
        self._thread.start()

    def _read(self, make: Callable[[], Iterable[Any]]) -> None:
        try:
            for item in make():
                if not self._put((item, None)):
                    return
            self._put((self._END, None))
        except BaseException as error:  # pylint: disable=broad-except
            self._put((self._END, error))

    def _put(self, item: tuple[Any, Optional[BaseException]]) -> bool:
        while not self._stopped.is_set():
            try:
                self._items.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def __iter__(self) -> _ReadAhead:
        return self

    def __next__(self) -> dict[str, Any]:
        if self._ended:
            raise StopIteration
        item, error = self._items.get()
        if item is self._END:
            self._ended = True
            if error is not None:
                raise error
            raise StopIteration
        return item

    def close(self) -> None:
        self._stopped.set()
        self._ended = True
