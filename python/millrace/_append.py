"""How layers append operators to a program: for the modules of layers.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import os
import traceback
from typing import Any, Optional, SupportsIndex, Union

import numpy as np
from numpy.typing import DTypeLike

from . import _checks, _millrace
from ._rules import Initializer
from .errors import ConfigError
from .framework import ParamAttr, Program, Variable, default_main_program

__all__ = ["op"]

Inputs = Union[Variable, Sequence[Variable]]
Outputs = Union[Iterable[str], Mapping[str, Union[int, Variable, Sequence[Variable]]], None]


def op(type: str, inputs: Mapping[str, Inputs], attrs: Optional[Mapping[str, Any]] = None, outputs: Optional[Outputs] = None,
       name: Optional[str] = None) -> Any:
    """Appends any operator and returns its outputs: one Variable, or a tuple in the order of `outputs`.

    inputs   {"X": variable or list of them}
    attrs    {"axis": 1}; what is not there has the operator's default
    outputs  names of outputs to bind, ["Out"] or {"Out": number, or variables to write}; by default every output that
             the operator must have
    name     of the first output, and the start of the others' names

    millrace.op_info(type) shows inputs, outputs and attributes, millrace.op_types() every operator.
    """
    if not isinstance(inputs, Mapping):
        raise ConfigError('%s: inputs are a dict, {"X": variable}, not %r' % (type, inputs))
    if attrs is not None and not isinstance(attrs, Mapping):
        raise ConfigError('%s: attrs are a dict, {"axis": 1}, not %r' % (type, attrs))
    program = program_of(inputs)
    info = _millrace.op_info(type)
    if type == "open_files" or type.startswith("create_") and type.endswith(("_reader", "_generator")):
        raise ConfigError("%s: it makes a reader, which the startup program does: millrace.reader.made_by(%r, ...)" % (type, type))
    bound = [(parameter, [checked(var, program, type, parameter).name for var in as_list(given)])
             for parameter, given in inputs.items()]
    wanted = outputs
    if wanted is None:
        wanted = [output for output, _, _, optional in info["outputs"] if not optional]
    if not isinstance(wanted, dict):
        wanted = {parameter: 1 for parameter in wanted}
    stem = name or program.unique_name(type)
    made, names = [], []
    for position, (parameter, count) in enumerate(wanted.items()):
        if isinstance(count, int):
            plain = stem if position == 0 and name else "%s.%s" % (stem, parameter.lower())
            fresh = [plain if count == 1 else "%s_%d" % (plain, i) for i in range(count)]
            for output in fresh:
                if program._author.has(output):
                    raise ConfigError('%s: there is a variable "%s" already; give another name, or write to it by outputs={"%s": '
                                      "variable}" % (type, output, parameter))
        else:
            fresh = [checked(var, program, type, parameter).name for var in as_list(count)]
        names.append((parameter, fresh))
        made += fresh
    program._author.append(type, bound, names, dict(attrs or {}))
    place = caller()
    for output in made:
        program._lines[output] = place
    variables = tuple(Variable(program, output) for output in made)
    return variables[0] if len(variables) == 1 else variables


# Numbers of VarType.Type.
DTYPES = {"bool": 0, "int16": 1, "int32": 2, "int64": 3, "float16": 4, "float32": 5, "float64": 6, "uint8": 20, "int8": 21}


def dtype_name(given: DTypeLike) -> str:
    """"float32" for numpy.float32 and numpy.dtype("float32"), too."""
    if isinstance(given, str):
        return given
    try:
        return np.dtype(given).name
    except TypeError:
        raise ConfigError("a dtype is a name, for example \"float32\", not %r" % (given,)) from None


def dtype_number(given: DTypeLike) -> int:
    name = dtype_name(given)
    if name not in DTYPES:
        raise ConfigError('there is no dtype "%s"; there are %s' % (name, ", ".join(DTYPES)))
    return DTYPES[name]


def as_list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def as_ints(given: Union[SupportsIndex, Sequence[SupportsIndex]], what: str = "axes and sizes") -> list[int]:
    """Whole numbers, alone or in a list."""
    return [_checks.whole(what, value) for value in as_list(given)]


def checked(var: object, program: Program, layer: str, argument: str) -> Variable:
    if not isinstance(var, Variable):
        raise ConfigError("%s: %s is a Variable, not %r" % (layer, argument, var))
    if var.program is not program:
        raise ConfigError('%s: "%s" is a variable of another program' % (layer, var.name))
    return var


def program_of(inputs: Mapping[str, Any]) -> Program:
    for given in inputs.values():
        for var in as_list(given):
            if isinstance(var, Variable):
                return var.program
    return default_main_program()


def parameter(program: Program, attr: ParamAttr, stem: str, shape: Sequence[int], default_initializer: Initializer,
              index: Optional[int] = None) -> Variable:
    """The parameter that `attr` names, made unless it is there; without a name a new one, STEM_0, STEM_1, ..."""
    name = attr.name
    if name and index is not None:
        name = "%s_%d" % (name, index)
    while not name or not attr.name and program._author.has(name):
        name = program.unique_name(stem)
    if program._author.has(name):
        made = Variable(program, name)
        if not made.persistable:
            raise ConfigError('parameter "%s": that is the name of a variable that is no parameter' % name)
        if list(made.shape) != list(shape):
            raise ConfigError('parameter "%s" is %s already, not %s' % (name, list(made.shape), list(shape)))
        return made
    initializer = attr.initializer or default_initializer
    check_values(program, initializer, name, shape)
    program._author.add_parameter(name, shape, initializer.text, attr.trainable)
    fill(program, initializer, name)
    if attr._rule():
        program._author.set_rule(name, attr._rule())
    return Variable(program, name)


def check_values(program: Program, initializer: Optional[Initializer], name: str, shape: Sequence[Optional[int]]) -> None:
    """Refuses an array that does not fit a parameter which is to start as one."""
    values = None if initializer is None else initializer._values
    if values is not None and list(values.shape) != list(shape):
        raise ConfigError('parameter "%s" is %s, and its NumpyArrayInitializer has an array %s' % (
            name, [None if size is None else size for size in shape], list(values.shape)))
    before = program._initial_values.get(name)
    if program._author.has(name) and (before is not values) and (
            before is None or values is None or before.tobytes() != values.tobytes()):
        raise ConfigError('parameter "%s" is there already, and starts by another initializer' % name)


def fill(program: Program, initializer: Optional[Initializer], name: str) -> None:
    """Lets a parameter that was just made start as the initializer's array, if it has one."""
    if initializer is not None and initializer._values is not None and name not in program._initial_values:
        program._author.set_initial_values(name, initializer._values)
        program._initial_values[name] = initializer._values


def activate(var: Variable, act: Optional[str], stem: str, name: Optional[str] = None) -> Variable:
    """act(var), by the name of its operator."""
    if act is None:
        return var
    if not isinstance(act, str):
        raise ConfigError('%s: act is the name of an operator, "relu", not %r' % (stem, act))
    return op(act, {"X": var}, name=name or var.program.unique_name(stem + ".tmp"))


def caller() -> str:
    """file:line of the first frame outside this package."""
    package = os.path.dirname(__file__) + os.sep
    for frame in reversed(traceback.extract_stack(limit=12)):
        if not frame.filename.startswith(package):
            return "%s:%d" % (frame.filename, frame.lineno or 0)
    return ""
