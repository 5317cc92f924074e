"""Names of Paddle that are not here, each with what to do in its place."""

from ..errors import ConfigError


class _NotHere(ConfigError, AttributeError):
    """So that hasattr is False and the message says what to do."""


class Instead:
    """Raises for such names of an object."""

    _what: str = ""      # the object is
    _instead: dict = {}  # name: what to do

    def __getattr__(self, name):
        if name in self._instead:
            raise _NotHere("%s.%s is not here: %s" % (self._what, name, self._instead[name]))
        raise AttributeError("%s has no attribute '%s'" % (self._what, name))
