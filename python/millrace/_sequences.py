"""Layers over variables of lod_level 1, whose rows are cut into sequences."""

from . import _checks
from ._append import activate, as_list, checked, dtype_number, op, parameter, program_of
from .errors import ConfigError
from .framework import ParamAttr
from .initializer import Constant, Xavier

__all__ = ["lod_reset", "sequence_concat", "sequence_conv", "sequence_enumerate", "sequence_expand", "sequence_expand_as",
           "sequence_first_step", "sequence_last_step", "sequence_mask", "sequence_pad", "sequence_pool", "sequence_reshape",
           "sequence_reverse", "sequence_slice", "sequence_softmax", "sequence_unpad"]


def sequence_pool(input, pool_type, is_test=False, pad_value=0.0):
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


def sequence_first_step(input):
    """The first row of each sequence: [batch, dim]."""
    return sequence_pool(input, "first")


def sequence_last_step(input):
    """The last row of each sequence: [batch, dim]."""
    return sequence_pool(input, "last")


def sequence_conv(input, num_filters, filter_size=3, filter_stride=1, padding=True, padding_start=None, bias_attr=None,
                  param_attr=None, act=None, name=None):
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


def sequence_softmax(input, use_cudnn=False, name=None):
    """Probabilities among the rows of each sequence; the shape of input, [values, 1]."""
    return op("sequence_softmax", {"X": input}, name=name)


def sequence_expand(x, y, ref_level=-1, name=None):
    """Each row (or sequence) of x as often as the sequence of y at its place has rows: [values of y, dim]."""
    return op("sequence_expand", {"X": x, "Y": y}, {"ref_level": ref_level}, name=name)


def sequence_expand_as(x, y, name=None):
    """Each row of x as often as the sequence of y at its place has rows, as sequences like those of y: [values of y, dim]."""
    return op("sequence_expand_as", {"X": x, "Y": y}, name=name)


def sequence_concat(input, name=None):
    """The sequences of several variables end to end, row by row of the batch: [values of all, dim]."""
    return op("sequence_concat", {"X": as_list(input)}, name=name)


def sequence_reverse(x, name=None):
    """The rows of each sequence in reverse; the shape of x."""
    return op("sequence_reverse", {"X": x}, name=name)


def sequence_reshape(input, new_dim):
    """Rows of another width: [values, dim] becomes [values * dim / new_dim, new_dim]; each sequence keeps its values."""
    return op("sequence_reshape", {"X": input}, {"new_dim": new_dim})


def sequence_slice(input, offset, length, name=None):
    """A part of each sequence: `length` rows from `offset` on, both int64 [batch, 1]. [values, dim]"""
    return op("sequence_slice", {"X": input, "Offset": offset, "Length": length}, name=name)


def sequence_enumerate(input, win_size, pad_value=0, name=None):
    """Each id with those behind it: [values, 1] becomes [values, win_size], filled up by pad_value."""
    return op("sequence_enumerate", {"X": input}, {"win_size": win_size, "pad_value": pad_value}, name=name)


def sequence_pad(x, pad_value, maxlen=None, name=None):
    """(sequences side by side, [batch, longest or maxlen, dim], their lengths, int64 [batch]). pad_value is a Variable [1]."""
    return op("sequence_pad", {"X": x, "PadValue": pad_value}, {"padded_length": -1 if maxlen is None else maxlen},
              ["Out", "Length"], name=name)


def sequence_unpad(x, length, name=None):
    """The reverse of sequence_pad: [batch, n, dim] and lengths become [values, dim]."""
    return op("sequence_unpad", {"X": x, "Length": length}, name=name)


def sequence_mask(x, maxlen=None, dtype="int64", name=None):
    """Lengths [batch] as rows of ones, then zeros: [batch, maxlen], by default the largest."""
    return op("sequence_mask", {"X": x}, {"maxlen": -1 if maxlen is None else maxlen, "out_dtype": dtype_number(dtype)}, name=name)


def lod_reset(x, y=None, target_lod=None):
    """x cut into other sequences: those of y, or at the offsets target_lod; the shape of x."""
    return op("lod_reset", {"X": x} if y is None else {"X": x, "Y": y}, {"target_lod": list(target_lod or [])})
