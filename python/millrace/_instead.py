"""Names of Paddle that are not here, each with what to do in its place."""

from .errors import ConfigError


class _NotHere(ConfigError, AttributeError):
    """So that hasattr is False and the message says what to do."""


def refuse(what, name, instead):
    """Raises for a name of `what`, an object or a module, which may be in the dict `instead`."""
    if name in instead:
        raise _NotHere("%s.%s is not here: %s" % (what, name, instead[name]))
    raise AttributeError("%s has no attribute '%s'" % (what, name))


class Instead:
    """Raises for such names of an object."""

    _what: str = ""      # the object is
    _instead: dict = {}  # name: what to do

    def __getattr__(self, name):
        refuse(self._what, name, self._instead)
