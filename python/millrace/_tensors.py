"""Layers that make variables and move values about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, SupportsFloat, SupportsIndex, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import _checks
from ._append import DTYPES, as_ints, as_list, checked, dtype_name, dtype_number, op, parameter, program_of
from ._rules import Initializer
from .errors import ConfigError
from .framework import ParamAttr, ParamLike, Variable, default_main_program
from .initializer import Constant, Xavier

__all__ = ["argmax", "argmin", "argsort", "assign", "cast", "create_global_var", "create_parameter", "cumsum", "expand",
           "expand_as", "fill_constant", "fill_constant_batch_size_like", "flatten", "gather", "gather_nd",
           "gaussian_random", "one_hot", "ones", "ones_like", "range", "shape", "strided_slice", "tile", "uniform_random",
           "unstack", "where", "zeros", "zeros_like"]


def create_parameter(shape: Iterable[SupportsIndex], dtype: DTypeLike = "float32", name: Optional[str] = None,
                     attr: ParamLike = None, is_bias: bool = False,
                     default_initializer: Optional[Initializer] = None) -> Variable:
    """A parameter of this shape, for layers.op and formulas. It starts as `attr` says, else by default_initializer, else as 0 if it
    is_bias, else by Xavier."""
    if dtype_name(dtype) != "float32":
        raise ConfigError("create_parameter: parameters are float32, not %s" % (dtype,))
    program = default_main_program()
    given = ParamAttr.of(attr)
    if name is not None and given.name is None:
        given = given._named(_checks.text("create_parameter: name", name))
    sizes = [_checks.whole("create_parameter: shape", size) for size in _checks.listed("create_parameter: shape", shape, "sizes")]
    default = default_initializer or (Constant(0.0) if is_bias else Xavier())
    stem = program.unique_name("create_parameter")
    return parameter(program, given, stem + (".b" if is_bias else ".w"), sizes, default)


def create_global_var(shape: Iterable[SupportsIndex], value: SupportsFloat, dtype: DTypeLike, persistable: bool = False,
                      force_cpu: bool = False, name: Optional[str] = None) -> Variable:
    """A variable of this shape that the startup program sets to `value` and that stays from batch to batch; no optimizer moves
    it. For counters and what operators write by outputs=."""
    program = default_main_program()
    if not persistable:
        raise ConfigError("create_global_var: persistable=True; a variable that is made in each batch is fill_constant's")
    name = program.unique_name("global_var") if name is None else _checks.text("create_global_var: name", name)
    sizes = [_checks.whole("create_global_var: shape", size) for size in _checks.listed("create_global_var: shape", shape, "sizes")]
    known = _known(dtype)
    start = _checks.float32_of("create_global_var: value", value, known, "start at 0 and write it by assign(array, output=...)")
    program._author.add_state(name, known, sizes, start)
    return Variable(program, name)


def fill_constant(shape: Iterable[int], dtype: DTypeLike, value: SupportsFloat, force_cpu: bool = False,
                  out: Optional[Variable] = None, name: Optional[str] = None) -> Variable:
    """One value everywhere in a new variable of this shape, or in `out`."""
    return constant("fill_constant: value", shape, dtype, value, out, name)


def constant(what: str, shape: Iterable[int], dtype: DTypeLike, value: SupportsFloat, out: Optional[Variable] = None,
             name: Optional[str] = None) -> Variable:
    """fill_constant for any layer; `what` begins the error about a value that the dtype does not hold."""
    attrs = {"shape": list(shape), "dtype": dtype_number(dtype), **_value(what, dtype_name(dtype), value)}
    inputs = {}
    if "str_value" in attrs and not _checks.fits_bits(int(attrs["str_value"]), 53):
        # The operator reads both of its attributes as floating-point numbers.
        inputs = {"ValueTensor": assign(np.array([int(attrs["str_value"])], dtype_name(dtype)))}
    return op("fill_constant", inputs, attrs, _into(out), name=name)


def _value(what: str, dtype: str, given: SupportsFloat) -> dict[str, Any]:
    """The attributes that say a value. Only the text keeps whole numbers, as `value` is float32."""
    value = _checks.value_of(what, given, dtype)
    return {"value": float(value), "str_value": str(value)} if dtype in _checks.WHOLE else {"value": value}


def zeros(shape: Iterable[int], dtype: DTypeLike = "float32", force_cpu: bool = False) -> Variable:
    """Zeros in a new variable of this shape."""
    return fill_constant(shape, dtype, 0)


def ones(shape: Iterable[int], dtype: DTypeLike = "float32", force_cpu: bool = False) -> Variable:
    """Ones in a new variable of this shape."""
    return fill_constant(shape, dtype, 1)


def ones_like(x: Variable, out: Optional[Variable] = None) -> Variable:
    """Ones in the shape and type of x."""
    return _filled("fill_any_like", {"X": x}, {"value": 1.0}, out)


def zeros_like(x: Variable, out: Optional[Variable] = None) -> Variable:
    """Zeros in the shape and type of x."""
    return _filled("fill_any_like", {"X": x}, {"value": 0.0}, out)


def _filled(kind: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any],
            out: Optional[Variable] = None) -> Variable:
    """A value everywhere, in the size of an input: as in fluid, no gradient goes on from it."""
    filled = op(kind, inputs, attrs, _into(out))
    if out is None:
        filled.stop_gradient = True
    return filled


def fill_constant_batch_size_like(input: Variable, shape: Iterable[int], dtype: DTypeLike, value: SupportsFloat,
                                  input_dim_idx: int = 0, output_dim_idx: int = 0, force_cpu: bool = False) -> Variable:
    """One value everywhere in this shape, whose axis output_dim_idx has the size of axis input_dim_idx of input: the batch."""
    attrs = _value("fill_constant_batch_size_like: value", _known(dtype), value)
    if "str_value" in attrs and not _checks.fits_bits(int(attrs["str_value"]), 53):
        raise ConfigError("fill_constant_batch_size_like: value: %s needs more than the 53 bits that are kept; add it to zeros: "
                          "elementwise_add(zeros, fill_constant([1], ...))" % attrs["str_value"])
    return _filled("fill_constant_batch_size_like", {"Input": input},
                   {"shape": list(shape), "dtype": dtype_number(dtype), "input_dim_idx": input_dim_idx,
                    "output_dim_idx": output_dim_idx, **attrs})


def uniform_random(shape: Iterable[int], dtype: DTypeLike = "float32", min: float = -1.0, max: float = 1.0, seed: int = 0,
                   name: Optional[str] = None) -> Variable:
    """Random values in [min, max), of this shape."""
    return op("uniform_random", {}, {"shape": list(shape), "dtype": dtype_number(dtype), "min": min, "max": max,
                                     "seed": seed}, name=name)


def gaussian_random(shape: Iterable[int], mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: DTypeLike = "float32",
                    name: Optional[str] = None) -> Variable:
    """Normal random values, of this shape."""
    return op("gaussian_random", {}, {"shape": list(shape), "dtype": dtype_number(dtype), "mean": mean, "std": std,
                                      "seed": seed}, name=name)


def assign(input: Union[Variable, ArrayLike], output: Optional[Variable] = None) -> Variable:
    """A copy, of the same shape and type; into `output` if it is given. A number or an array becomes a variable."""
    if isinstance(input, Variable):
        return op("assign", {"X": input}, None, _into(output))
    try:
        array = np.asarray(_checks.unmasked("assign: input", input))
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        field = {"bool": "bool_values", "int32": "int32_values", "int64": "int64_values",
                 "float32": "fp32_values"}[array.dtype.name]
    except ConfigError:
        raise
    except (KeyError, ValueError):
        raise ConfigError("assign: input is a Variable or an array of float32, int32, int64 or bool, not %r" % (input,)) from None
    attrs = {"shape": list(array.shape) or [1], "dtype": DTYPES[array.dtype.name], field: array.reshape(-1).tolist()}
    return op("assign_value", {}, attrs, _into(output))


def cast(x: Variable, dtype: DTypeLike) -> Variable:
    """The same values in another type ("float32", numpy.int64); the shape of x."""
    given = checked(x, program_of({"x": x}), "cast", "x").dtype
    return op("cast", {"X": x}, {"in_dtype": DTYPES[given], "out_dtype": dtype_number(dtype)})


def where(condition: Variable, x: Variable, y: Variable, name: Optional[str] = None) -> Variable:
    """x where the condition is true, else y; all of one shape."""
    return op("where", {"Condition": condition, "X": x, "Y": y}, name=name)


def gather(input: Variable, index: Variable, overwrite: bool = True) -> Variable:
    """Rows of `input` by number: of [n, dim], with an index [m] or [m, 1], [m, dim]. Gradients of a row that is taken twice add up;
    overwrite=False asks for that, and True changes nothing."""
    return op("gather", {"X": input, "Index": index})


def gather_nd(input: Variable, index: Variable, name: Optional[str] = None) -> Variable:
    """Parts of `input` by the numbers in the last axis of index: of [n, m, dim], with an index [k, 2], [k, dim]."""
    return op("gather_nd", {"X": input, "Index": index}, name=name)


def one_hot(input: Variable, depth: int, allow_out_of_range: bool = False) -> Variable:
    """[batch, 1] classes as [batch, depth] floats; with allow_out_of_range a class beyond is a row of zeros."""
    return op("one_hot", {"X": input}, {"depth": depth, "allow_out_of_range": allow_out_of_range})


def argmax(x: Variable, axis: int = 0) -> Variable:
    """The place of the largest value along an axis, which goes: [batch, n] along axis 1 is int64 [batch]."""
    return op("arg_max", {"X": x}, {"axis": axis})


def argmin(x: Variable, axis: int = 0) -> Variable:
    """The place of the smallest value along an axis, which goes: [batch, n] along axis 1 is int64 [batch]."""
    return op("arg_min", {"X": x}, {"axis": axis})


def argsort(input: Variable, axis: int = -1, descending: bool = False, name: Optional[str] = None) -> tuple[Variable, Variable]:
    """(values sorted along an axis, their places before): both of the shape of input, the second int64."""
    return op("argsort", {"X": input}, {"axis": axis, "descending": descending}, ["Out", "Indices"], name=name)


def cumsum(x: Variable, axis: Optional[int] = None, exclusive: bool = False, reverse: bool = False) -> Variable:
    """Sums of the values up to each along an axis, by default the last; the shape of x. exclusive: without itself; reverse: from
    the end."""
    return op("cumsum", {"X": x}, {"axis": -1 if axis is None else axis, "exclusive": exclusive, "reverse": reverse})


def range(start: Union[Variable, SupportsFloat], end: Union[Variable, SupportsFloat], step: Union[Variable, SupportsFloat],
          dtype: DTypeLike = "int64", name: Optional[str] = None) -> Variable:
    """start, start + step, ... below end: [n]. Each is a number or a Variable [1]."""
    given = {"Start": start, "End": end, "Step": step}
    known = _known(dtype)
    for parameter, value in given.items():
        if not isinstance(value, Variable):
            number = given[parameter] = _checks.value_of("range: " + parameter.lower(), value, known)
            if known in _checks.WHOLE and abs(number) > 2 ** 53:
                raise ConfigError("range: %s: the operator counts in float64, which rounds numbers beyond 2**53, as %d is; add "
                                  "what is beyond to a range from 0" % (parameter.lower(), number))
    made = {parameter: value if isinstance(value, Variable) else fill_constant([1], known, value)
            for parameter, value in given.items()}
    return op("range", made, name=name)


def shape(input: Variable) -> Variable:
    """The sizes of a batch's variable: int32 [axes]."""
    return op("shape", {"Input": input})


def expand(x: Variable, expand_times: Union[SupportsIndex, Sequence[SupportsIndex]], name: Optional[str] = None) -> Variable:
    """x as often as expand_times says along each axis: [batch, 1] by [1, 3] is [batch, 3]."""
    return op("expand", {"X": x}, {"expand_times": as_ints(expand_times)}, name=name)


def expand_as(x: Variable, target_tensor: Variable, name: Optional[str] = None) -> Variable:
    """x repeated to the shape of another variable: [batch, 1] as [batch, n] is [batch, n]."""
    return op("expand_as_v2", {"X": x, "Y": target_tensor}, {"target_shape": list(target_tensor.shape)}, name=name)


def tile(x: Variable, repeat_times: Union[SupportsIndex, Sequence[SupportsIndex]], name: Optional[str] = None) -> Variable:
    """x as often as repeat_times says along its last axes: [batch, 2] by [1, 3] is [batch, 6]."""
    return op("tile", {"X": x}, {"repeat_times": as_ints(repeat_times)}, name=name)


def flatten(x: Variable, axis: int = 1, name: Optional[str] = None) -> Variable:
    """Two axes, cut before `axis`: [batch, 2, 3] is [batch, 6]."""
    return op("flatten2", {"X": x}, {"axis": axis}, ["Out", "XShape"], name=name)[0]


def strided_slice(input: Variable, axes: Union[SupportsIndex, Sequence[SupportsIndex]],
                  starts: Union[SupportsIndex, Sequence[SupportsIndex]], ends: Union[SupportsIndex, Sequence[SupportsIndex]],
                  strides: Union[SupportsIndex, Sequence[SupportsIndex]]) -> Variable:
    """A part with steps: input[starts:ends:strides] along the axes; [batch, 6] from 0 to 6 by 2 along axis 1 is [batch, 3]."""
    return op("strided_slice", {"Input": input}, {"axes": as_ints(axes), "starts": as_ints(starts), "ends": as_ints(ends),
                                                  "strides": as_ints(strides)})


def unstack(x: Variable, axis: int = 0, num: Optional[int] = None) -> list[Variable]:
    """A list of variables without an axis: [batch, 3, n] along axis 1 is three of [batch, n]."""
    size = checked(x, program_of({"x": x}), "unstack", "x").shape[axis] if num is None else num
    if size < 1:
        raise ConfigError('unstack: the size of axis %d of "%s" %s is not known; say num' % (axis, x.name, list(x.shape)))
    return as_list(op("unstack", {"X": x}, {"axis": axis, "num": size}, {"Y": size}))


def _known(dtype: DTypeLike) -> str:
    dtype_number(dtype)
    return dtype_name(dtype)


def _into(out: Optional[Variable], parameter: str = "Out") -> Optional[dict[str, Any]]:
    """The outputs of an operator that may write to a variable that is there."""
    if out is None:
        return None
    if not isinstance(out, Variable):
        raise ConfigError("%s: a Variable to write to, not %r" % (parameter.lower(), out))
    return {parameter: out}
