"""Names that nothing else of this process has: layers take theirs from here, so that programs may share a scope.

Whoever builds the same model twice, for training and for tests, gives both the same names by `with unique_name.guard():`
around each.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import threading
from typing import Optional, Union

from . import _checks

__all__ = ["UniqueNameGenerator", "generate", "guard", "switch"]


class UniqueNameGenerator:
    """Counts the names of each kind. Threads may share one."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def __call__(self, key: str) -> str:
        with self._lock:
            number = self._counts.get(key, 0)
            self._counts[key] = number + 1
        return "%s%s_%d" % (self.prefix, key, number)


# A guard is of the thread that entered it; all others count together.
_OF_PROCESS = UniqueNameGenerator()
_current = threading.local()


def generate(key: str) -> str:
    """"fc_0", then "fc_1", ... for the key "fc"."""
    return getattr(_current, "generator", _OF_PROCESS)(_checks.text("unique_name.generate: key", key))


def of_process(key: str) -> str:
    """The same, and under a guard, too, a name that the process has not had: of what two programs may share in a scope, as readers."""
    return _OF_PROCESS(_checks.text("unique_name.of_process: key", key))


def switch(new_generator: Optional[UniqueNameGenerator] = None) -> UniqueNameGenerator:
    """Lets names of this thread come from another UniqueNameGenerator, by default a new one; returns the one before."""
    before = getattr(_current, "generator", _OF_PROCESS)
    if new_generator is not None:
        _checks.one_of("unique_name.switch", new_generator, UniqueNameGenerator)
    _current.generator = UniqueNameGenerator() if new_generator is None else new_generator
    return before


@contextlib.contextmanager
def guard(new_generator: Union[str, UniqueNameGenerator, None] = None) -> Iterator[None]:
    """Names of what is built within start from 0 again; a str is put before them, a UniqueNameGenerator counts on."""
    if isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator)
    before = switch(new_generator)
    try:
        yield
    finally:
        switch(before)
