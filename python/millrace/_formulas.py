"""Formulas of variables: x + y, x < 1, x[:, 0:2]."""

from __future__ import annotations

from functools import partial
from typing import SupportsFloat

from . import _checks, _control_flow
from ._append import op
from ._tensors import cast, fill_constant, ones_like
from .errors import ConfigError
from .framework import Key, Operand, Variable, _formulas


def _elementwise(name: str, x: Variable, y: Variable) -> Variable:
    return op("elementwise_" + name, {"X": x, "Y": y}, {"axis": -1})


def _scale(x: Variable, scale: float = 1.0, bias: float = 0.0) -> Variable:
    return op("scale", {"X": x}, {"scale": scale, "bias": bias, "bias_after_scale": True})


def _binary(name: str, x: Variable, other: Operand, swapped: bool = False) -> Variable:
    if isinstance(other, Variable):
        return _elementwise(name, _counted(x, other), _counted(other, x))
    if x.dtype == "bool":
        return _binary(name, _counted(x, x), other, swapped)
    what = '"%s" and what stands beside it in a formula' % x.name
    number = _checks.number(what, other)
    if x.dtype in _checks.WHOLE:
        if name == "div" or not _checks.is_int(other):
            return _binary(name, cast(x, "float32"), other, swapped)  # as in Paddle
        if not _checks.fits_bits(int(_checks.value_of(what, other, x.dtype)), 24):
            return _with_large(name, x, other, swapped)
    if name == "pow":
        return op("pow", {"X": x}, {"factor": number})
    if name == "add" or (name == "sub" and not swapped):
        return _scale(x, bias=number if name == "add" else -number)
    if name == "sub":
        return _scale(x, scale=-1.0, bias=number)
    if name == "div" and not swapped and not number:
        raise ConfigError('"%s" is divided by 0' % x.name)
    if name == "mul" or not swapped:
        return _scale(x, scale=number if name == "mul" else 1 / number)
    constant = fill_constant(shape=[1], dtype=x.dtype, value=number)
    return _elementwise("div", _elementwise("mul", ones_like(x), constant), x)


def _counted(x: Variable, beside: Variable) -> Variable:
    """A bool beside something in a formula as 1 where it holds and 0 where it does not, in the other's type."""
    if x.dtype != "bool":
        return x
    return cast(x, "float32" if beside.dtype == "bool" else beside.dtype)


def _with_large(name: str, x: Variable, other: SupportsFloat, swapped: bool) -> Variable:
    """_binary of whole numbers that float32, in which scale has its attributes, would round."""
    if swapped and name == "sub":
        return _with_large("add", -x, other, False)
    return _elementwise(name, x, fill_constant(shape=[1], dtype=x.dtype, value=other))


def _part(x: Variable, key: Key) -> Variable:
    keys = list(key) if isinstance(key, tuple) else [key]
    if len(keys) > len(x.shape):
        raise ConfigError('"%s" %s has no %d axes' % (x.name, list(x.shape), len(keys)))
    axes, starts, ends, gone = [], [], [], []
    for axis, one in enumerate(keys):
        if isinstance(one, slice):
            if one.step not in (None, 1):
                raise ConfigError('"%s": a part has no steps; take layers.strided_slice' % x.name)
            if one.start is None and one.stop is None:
                continue
            axes.append(axis)
            starts.append(0 if one.start is None else _checks.whole("the start of a part", one.start))
            ends.append(2 ** 31 - 1 if one.stop is None else _checks.whole("the end of a part", one.stop))
        else:
            at = _checks.whole('"%s": a part is x[2, 0:3], of numbers and slices' % x.name, one)
            axes.append(axis)
            gone.append(axis)
            starts.append(at)
            ends.append(at + 1 if at != -1 else 2 ** 31 - 1)
    if not axes:
        return x
    return op("slice", {"Input": x}, {"axes": axes, "starts": starts, "ends": ends, "decrease_axis": gone})


_formulas.update({name: partial(_binary, name) for name in ("add", "sub", "mul", "div", "pow")}, part=_part)
_formulas.update({name: getattr(_control_flow, name) for name in ("equal", "not_equal", "less_than", "less_equal",
                                                                  "greater_than", "greater_equal")})
