"""Arrays from Python into programs that feed themselves."""

import numpy as np

from . import _millrace
from .errors import ConfigError, Error

__all__ = ["PyArrayFeedQueue", "PyArrayFeedQueueHolder"]


class PyArrayFeedQueue:
    """A blocking queue of a fixed capacity. Any number of threads may push and pop; waiting leaves others alone.

    Each push holds one array for each shape. Arrays come out first in, first out, each once, over the memory that they
    were pushed with: nothing is copied, so leave an array alone after it was pushed. Made by a PyArrayFeedQueueHolder.
    """

    def __init__(self, queue):
        if not isinstance(queue, _millrace.ArrayQueue):
            raise TypeError("a PyArrayFeedQueue is made by PyArrayFeedQueueHolder.init_once")
        self._queue = queue
        self._raised = None

    def __copy__(self):
        raise TypeError("a PyArrayFeedQueue cannot be copied")

    def __deepcopy__(self, memo):
        raise TypeError("a PyArrayFeedQueue cannot be copied")

    def __reduce__(self):
        raise TypeError("a PyArrayFeedQueue cannot be copied")

    def push(self, arrays):
        """Waits while the queue is full, then puts a tuple of arrays into it.

        Takes numpy arrays, pyarrow arrays, pandas columns, and what speaks DLPack or the buffer protocol; contiguous ones
        of the right dtype without a copy. ConfigError for another shape or dtype; CancelledError after close.
        """
        if not isinstance(arrays, (tuple, list)):
            arrays = (arrays,)
        try:
            self._queue.push([_array(array) for array in arrays])
        except Error as error:
            raise self._chained(error)

    def pop(self):
        """Waits while the queue is empty, then takes a tuple of arrays; None when it was closed and all were taken."""
        try:
            arrays = self._queue.pop()
        except Error as error:
            raise self._chained(error)
        return None if arrays is None else tuple(arrays)

    def close(self, error=None):
        """Ends the queue for both sides: no push from now on, and no pop after the last array.

        With an exception, that is what the other side sees: CancelledError, raised from it.
        """
        if error is not None and self._raised is None and not self._queue.is_closed():
            self._raised = error
        self._queue.close("" if error is None else "the queue was closed by %s: %s" % (type(error).__name__, error))

    def __iter__(self):
        """Pops until the end."""
        return iter(self.pop, None)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        """`with queue:` around a producer closes it at the end, by the exception if there was one."""
        self.close(error)
        return False

    def size(self):
        """Pushes that wait to be popped."""
        return self._queue.size()

    __len__ = size

    def capacity(self):
        return self._queue.capacity()

    def is_full(self):
        return self._queue.is_full()

    def is_empty(self):
        return self._queue.is_empty()

    def is_closed(self):
        return self._queue.is_closed()

    @property
    def shapes(self):
        """[((-1, 3), "float32"), ...]: what a push holds."""
        return self._queue.shapes()

    def _chained(self, error):
        if self._raised is not None:
            error.__cause__ = self._raised
        return error


class PyArrayFeedQueueHolder:
    """What a scope's variable keeps: a queue that is made once its capacity and shapes are known."""

    def __init__(self):
        self._holder = _millrace.ArrayQueueHolder()
        self._feeder = None

    def init_once(self, capacity, shapes, place=None, dtypes=None):
        """Makes the queue. `shapes` has a shape for each array, -1 for any size; `dtypes` their types, by default
        "float32". A second call is AlreadyExistsError."""
        shapes = [[int(size) for size in shape] for shape in shapes]
        dtypes = ["float32"] * len(shapes) if dtypes is None else [str(np.dtype(dtype)) for dtype in dtypes]
        if len(dtypes) != len(shapes):
            raise ConfigError("init_once: %d dtypes for %d shapes" % (len(dtypes), len(shapes)))
        if int(capacity) < 0:
            raise ConfigError("init_once: a queue's capacity must be at least 1; %d" % capacity)
        self._holder.init_once(int(capacity), shapes, dtypes)
        self._feeder = PyArrayFeedQueue(self._holder.feeder())

    def feeder(self):
        """The queue; None before init_once."""
        return self._feeder


def _array(given):
    """A C-contiguous array over the same memory, where it can be."""
    if not isinstance(given, np.ndarray):
        if hasattr(given, "__dlpack__") and not hasattr(given, "to_numpy"):
            given = np.from_dlpack(given)
        elif hasattr(given, "to_numpy"):
            given = given.to_numpy()
        else:
            given = np.asarray(given)
    return np.ascontiguousarray(given) if given.ndim else given.reshape(())
