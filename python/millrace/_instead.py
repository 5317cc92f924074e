"""Names of Paddle that are not here, each with what to do in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, TYPE_CHECKING

from .errors import ConfigError


class _NotHere(ConfigError, AttributeError):
    """So that hasattr is False and the message says what to do."""


def refuse(what: str, name: str, instead: Mapping[str, str]) -> NoReturn:
    """Raises for a name of `what`, an object or a module, which may be in the dict `instead`."""
    if name in instead:
        raise _NotHere("%s.%s is not here: %s" % (what, name, instead[name]))
    raise AttributeError("%s has no attribute '%s'" % (what, name))


class Instead:
    """Raises for such names of an object."""

    _what: str = ""      # the object is
    _instead: Mapping[str, str] = {}  # name: what to do

    if not TYPE_CHECKING:  # which would take it for attributes of any name
        def __getattr__(self, name):
            refuse(self._what, name, self._instead)
