"""What callers give, as the text of a job says it."""

from .errors import ConfigError
from .framework import Variable


def quoted(text):
    """A string of a text proto."""
    return '"%s"' % str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def flag(value):
    """A bool of a text proto."""
    return "true" if value else "false"


def name_of(var, caller=""):
    """The name of a Variable, or the name that stands in its place; `caller` begins the error about anything else."""
    if isinstance(var, (Variable, str)):
        return getattr(var, "name", var)
    raise ConfigError("%sa Variable or its name, not %r" % (caller, var))
