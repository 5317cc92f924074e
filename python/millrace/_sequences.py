"""Layers over variables of lod_level 1, whose rows are cut into sequences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Optional, SupportsIndex, Union

from numpy.typing import DTypeLike

from . import _checks
from ._append import activate, as_list, checked, dtype_number, op, parameter, program_of
from .errors import ConfigError
from .framework import BiasLike, ParamAttr, ParamLike, Variable
from .initializer import Constant, Xavier

__all__ = ["lod_reset", "sequence_concat", "sequence_conv", "sequence_enumerate", "sequence_expand", "sequence_expand_as",
           "sequence_first_step", "sequence_last_step", "sequence_mask", "sequence_pad", "sequence_pool", "sequence_reshape",
           "sequence_reverse", "sequence_slice", "sequence_softmax", "sequence_unpad"]


def sequence_pool(input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0) -> Variable:
    """One row for the rows of each sequence: "sum", "average", "sqrt", "max", "first" or "last"; pad_value where there are none.
    [batch, dim]"""
    _checks.text("sequence_pool: pool_type", pool_type)
    if not isinstance(is_test, bool):
        raise ConfigError("sequence_pool: is_test stands third, as in fluid, and is a bool, not %r; give pad_value by its name" % (
            is_test,))
    outputs = ["Out", "MaxIndex"] if pool_type.upper() == "MAX" else ["Out"]
    made = op("sequence_pool", {"X": input}, {"pooltype": pool_type.upper(), "pad_value": pad_value,
                                               "is_test": is_test}, outputs)
    return made[0] if isinstance(made, tuple) else made


def sequence_first_step(input: Variable) -> Variable:
    """The first row of each sequence: [batch, dim]."""
    return sequence_pool(input, "first")


def sequence_last_step(input: Variable) -> Variable:
    """The last row of each sequence: [batch, dim]."""
    return sequence_pool(input, "last")


def sequence_conv(input: Variable, num_filters: SupportsIndex, filter_size: SupportsIndex = 3, filter_stride: SupportsIndex = 1,
                  padding: bool = True, padding_start: Optional[SupportsIndex] = None, bias_attr: BiasLike = None,
                  param_attr: ParamLike = None, act: Optional[str] = None, name: Optional[str] = None) -> Variable:
    """Rows beside a row, filter_size of them from padding_start on (by default as many before as behind), times a filter
    [filter_size * dim, num_filters]: [values, num_filters]. Beyond the ends of a sequence there are zeros."""
    program = program_of({"input": input})
    filter_size = _checks.whole("sequence_conv: filter_size", filter_size, 1)
    filters = _checks.whole("sequence_conv: num_filters", num_filters, 1)
    dim = checked(input, program, "sequence_conv", "input").shape[-1]
    stem = name or program.unique_name("sequence_conv")
    weight = parameter(program, ParamAttr.of(param_attr), stem + ".w", [filter_size * dim, filters], Xavier())
    start = -(filter_size // 2) if padding_start is None else _checks.whole("sequence_conv: padding_start", padding_start)
    stride = _checks.whole("sequence_conv: filter_stride", filter_stride)
    out = op("sequence_conv", {"X": input, "Filter": weight},
             {"contextLength": filter_size, "contextStart": start, "contextStride": stride},
             name=program.unique_name(stem + ".tmp"))
    if bias_attr is not False:
        bias = parameter(program, ParamAttr.of(bias_attr), stem + ".b", [filters], Constant(0.0))
        out = op("elementwise_add", {"X": out, "Y": bias}, {"axis": 1}, name=program.unique_name(stem + ".tmp"))
    return activate(out, act, stem)


def sequence_softmax(input: Variable, use_cudnn: bool = False, name: Optional[str] = None) -> Variable:
    """Probabilities among the rows of each sequence; the shape of input, [values, 1]."""
    return op("sequence_softmax", {"X": input}, name=name)


def sequence_expand(x: Variable, y: Variable, ref_level: int = -1, name: Optional[str] = None) -> Variable:
    """Each row (or sequence) of x as often as the sequence of y at its place has rows: [values of y, dim]."""
    return op("sequence_expand", {"X": x, "Y": y}, {"ref_level": ref_level}, name=name)


def sequence_expand_as(x: Variable, y: Variable, name: Optional[str] = None) -> Variable:
    """Each row of x as often as the sequence of y at its place has rows, as sequences like those of y: [values of y, dim]."""
    return op("sequence_expand_as", {"X": x, "Y": y}, name=name)


def sequence_concat(input: Union[Variable, Sequence[Variable]], name: Optional[str] = None) -> Variable:
    """The sequences of several variables end to end, row by row of the batch: [values of all, dim]."""
    return op("sequence_concat", {"X": as_list(input)}, name=name)


def sequence_reverse(x: Variable, name: Optional[str] = None) -> Variable:
    """The rows of each sequence in reverse; the shape of x."""
    return op("sequence_reverse", {"X": x}, name=name)


def sequence_reshape(input: Variable, new_dim: int) -> Variable:
    """Rows of another width: [values, dim] becomes [values * dim / new_dim, new_dim]; each sequence keeps its values."""
    return op("sequence_reshape", {"X": input}, {"new_dim": new_dim})


def sequence_slice(input: Variable, offset: Variable, length: Variable, name: Optional[str] = None) -> Variable:
    """A part of each sequence: `length` rows from `offset` on, both int64 [batch, 1]. [values, dim]"""
    return op("sequence_slice", {"X": input, "Offset": offset, "Length": length}, name=name)


def sequence_enumerate(input: Variable, win_size: int, pad_value: int = 0, name: Optional[str] = None) -> Variable:
    """Each id with those behind it: [values, 1] becomes [values, win_size], filled up by pad_value."""
    return op("sequence_enumerate", {"X": input}, {"win_size": win_size, "pad_value": pad_value}, name=name)


def sequence_pad(x: Variable, pad_value: Variable, maxlen: Optional[int] = None,
                 name: Optional[str] = None) -> tuple[Variable, Variable]:
    """(sequences side by side, [batch, longest or maxlen, dim], their lengths, int64 [batch]). pad_value is a Variable [1]."""
    return op("sequence_pad", {"X": x, "PadValue": pad_value}, {"padded_length": -1 if maxlen is None else maxlen},
              ["Out", "Length"], name=name)


def sequence_unpad(x: Variable, length: Variable, name: Optional[str] = None) -> Variable:
    """The reverse of sequence_pad: [batch, n, dim] and lengths become [values, dim]."""
    return op("sequence_unpad", {"X": x, "Length": length}, name=name)


def sequence_mask(x: Variable, maxlen: Optional[int] = None, dtype: DTypeLike = "int64",
                  name: Optional[str] = None) -> Variable:
    """Lengths [batch] as rows of ones, then zeros: [batch, maxlen], by default the largest."""
    return op("sequence_mask", {"X": x}, {"maxlen": -1 if maxlen is None else maxlen, "out_dtype": dtype_number(dtype)}, name=name)


def lod_reset(x: Variable, y: Optional[Variable] = None, target_lod: Optional[Iterable[int]] = None) -> Variable:
    """x cut into other sequences: those of y, or at the offsets target_lod; the shape of x."""
    return op("lod_reset", {"X": x} if y is None else {"X": x, "Y": y}, {"target_lod": list(target_lod or [])})
