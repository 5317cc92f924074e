"""What callers give, as the text of a job says it."""

from __future__ import annotations

from typing import Union

from .errors import ConfigError
from .framework import Program, Variable

Named = Union[Variable, str]  # a variable, or its name


def quoted(text: object) -> str:
    """A string of a text proto."""
    return '"%s"' % str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def flag(value: object) -> str:
    """A bool of a text proto."""
    return "true" if value else "false"


def name_of(var: Named, caller: str = "") -> str:
    """The name of a Variable, or the name that stands in its place; `caller` begins the error about anything else."""
    if isinstance(var, (Variable, str)):
        return var if isinstance(var, str) else var.name
    raise ConfigError("%sa Variable or its name, not %r" % (caller, var))


def name_in(program: Program, var: Named, caller: str = "") -> str:
    """name_of, for what the program is to have: a Variable of another program is refused, whose name may be one of this, too."""
    name = name_of(var, caller)
    if isinstance(var, Variable) and var.program._root() is not program._root():
        made = var.program._lines.get(name)
        raise ConfigError('%s"%s" is a variable of another program%s; give one of the program that is run' % (
            caller, name, ", made at " + made if made else ""))
    return name
