"""The ranks of a script: the processes that mpirun started with it. One that nobody else is with is rank 0 of 1.

The first call begins MPI and waits for the first calls of the others. All ranks make the same calls in the same order; where
they do not, each gets a ConfigError that says who is where.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import pickle
import signal
import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _checks, _millrace
from ._types import T
from .errors import ConfigError

_OPERATIONS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def rank() -> int:
    """The number of this process, from 0."""
    return _millrace.rank()


def size() -> int:
    """How many there are."""
    return _millrace.ranks()


def leads() -> bool:
    """Whether this process prints and writes for all of them: that of rank 0."""
    return rank() == 0


def barrier() -> None:
    """Returns when all ranks have called it."""
    _millrace.together("barrier", b"")


def allreduce(values: ArrayLike, op: str = "sum") -> Any:
    """A number or an array of what all ranks have: their "sum", the "max" or the "min" of each element. Every rank gets the same,
    to the bit. A sum of whole numbers has 64 bits, as numpy's has; everything else keeps its type. Ranks send each other all they
    have, so it is for small arrays."""
    if op not in _OPERATIONS:
        raise ConfigError('allreduce: op is "sum", "max" or "min", not %r' % (op,))
    try:
        mine = np.ascontiguousarray(values)
    except (OverflowError, TypeError, ValueError) as error:
        raise ConfigError("allreduce: %s" % error) from None
    if mine.dtype.kind not in "iuf":
        raise ConfigError("allreduce: numbers, not %s" % mine.dtype)
    mine = mine.reshape(np.shape(values))
    if op == "sum" and mine.dtype.kind in "iu":
        mine = mine.astype(np.int64 if mine.dtype.kind == "i" else np.uint64)
    form = "%s %s %s" % (op, mine.dtype.str, list(mine.shape))
    every = _millrace.together("allreduce", form.encode() + b"\n" + mine.tobytes())
    total = mine
    for number, brought in enumerate(every):
        theirs, _, data = brought.partition(b"\n")
        if theirs.decode() != form:
            raise ConfigError("allreduce: rank %d brought %s and rank %d %s; all bring arrays of one shape and type" % (
                rank(), form, number, theirs.decode()))
        array = np.frombuffer(data, mine.dtype).reshape(mine.shape)
        total = array.copy() if number == 0 else _OPERATIONS[op](total, array)
    return total[()]


def write_to(output: Any, total: np.ndarray, call: str) -> None:
    """Writes what allreduce gave to an array, which has to hold it."""
    dtype = getattr(output, "dtype", None)
    if dtype is not None and dtype.kind in "iu" and total.dtype.kind in "iu" and total.size:
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        for value in (int(total.min()), int(total.max())):
            if not least <= value <= most:
                raise ConfigError("%s: output holds %s, %d to %d, not %d; give an array of int64" % (
                    call, dtype, least, most, value))
    output[:] = total


def of_leader(value: T, what: str) -> T:
    """What rank 0 has, on all ranks; `what` names it."""
    if size() == 1:
        return value
    return pickle.loads(_millrace.together(what, pickle.dumps(value) if leads() else b"")[0])


@contextlib.contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Within it what ends ranks interrupts as Ctrl-C does: SIGTERM, by which mpirun ends them behind its own Ctrl-C, and SIGUSR1,
    which it passes on. Signals that the script handles are left to it, as are all where there is one rank."""
    taken = []
    if size() > 1 and threading.current_thread() is threading.main_thread():
        taken = [one for one in (signal.SIGTERM, signal.SIGUSR1) if signal.getsignal(one) == signal.SIG_DFL]
    for one in taken:
        signal.signal(one, signal.default_int_handler)
    try:
        yield
    finally:
        for one in taken:
            signal.signal(one, signal.SIG_DFL)


def gather_objects(value: T, what: str) -> list[T]:
    """A list of what each rank has, by rank, on all ranks; `what` names what it is for."""
    return [value] if size() == 1 else [pickle.loads(brought) for brought in _millrace.together(what, pickle.dumps(value))]


def gather(data: bytes, call: str = "gather") -> list[bytes]:
    """A list of the bytes that each rank has, by rank, on all ranks. `call` names what it is for."""
    return _millrace.together(_checks.text("gather: call", call), data)
