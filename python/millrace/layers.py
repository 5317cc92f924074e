"""Layers: functions that append operators to the default main program and return their outputs.

Names and arguments follow Paddle's fluid.layers. Invalid arguments raise ConfigError at the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Optional, Protocol, SupportsIndex, TYPE_CHECKING, Union, overload

from numpy.typing import DTypeLike

from . import _activations, _checks, _control_flow, _losses, _norms, _recurrent, _sequences, _tensors
from . import _formulas  # noqa: F401
from . import _instead
from ._activations import *  # noqa: F401,F403
from ._append import activate, as_ints, as_list, caller, check_values, checked, dtype_name, fill, op, parameter, program_of
from ._control_flow import *  # noqa: F401,F403
from ._losses import *  # noqa: F401,F403
from ._norms import *  # noqa: F401,F403
from ._recurrent import *  # noqa: F401,F403
from ._sequences import *  # noqa: F401,F403
from ._settings import quoted
from ._tensors import *  # noqa: F401,F403
from .errors import ConfigError
from .framework import BiasLike, ParamAttr, ParamLike, Variable, default_main_program
from .initializer import Constant, Xavier
from .optimizer import Optimizer

__all__ = ["abs", "ceil", "clip", "concat", "cos", "data", "dropout", "elementwise_add", "elementwise_div",
           "elementwise_floordiv", "elementwise_max", "elementwise_min", "elementwise_mod", "elementwise_mul",
           "elementwise_pow", "elementwise_sub", "embedding", "erf", "exp", "expand_dims", "fc", "floor", "log", "logsigmoid",
           "matmul", "mean", "mul", "op", "reciprocal", "reduce_all", "reduce_any", "reduce_max", "reduce_mean", "reduce_min",
           "reduce_prod", "reduce_sum", "relu", "reshape", "round", "rsqrt", "scale", "sigmoid", "sign", "sin", "slice",
           "softmax", "softplus", "softsign", "split", "sqrt", "square", "squeeze", "stack", "sum", "sums", "tanh", "topk",
           "transpose", "unsqueeze"]
__all__ += _activations.__all__
__all__ += _control_flow.__all__
__all__ += _losses.__all__
__all__ += _norms.__all__
__all__ += _recurrent.__all__
__all__ += _sequences.__all__
__all__ += _tensors.__all__


# Unsupported layers of Paddle and their replacements.
_INSTEAD = {
    "data_norm": "batch_norm and layer_norm are; a program of Paddle that has data_norm is brought by "
                 "scripts/export_from_paddle.py (docs/from_paddle.md)",
    "ctr_metric_bundle": "auc(input, label), and mean of what is to be watched",
    "py_reader": "millrace.reader.py_reader(capacity, shapes, dtypes)",
}


if not TYPE_CHECKING:  # which would take it for layers of any name
    def __getattr__(name):
        _instead.refuse(__name__, name, _INSTEAD)


@overload
def data(name: str, shape: Iterable[Optional[SupportsIndex]], append_batch_size: bool = True, dtype: Optional[DTypeLike] = None,
         lod_level: SupportsIndex = 0) -> Variable: ...


@overload
def data(name: str, shape: Iterable[Optional[SupportsIndex]], dtype: DTypeLike, /, *, lod_level: SupportsIndex = 0) -> Variable: ...


@overload
def data(name: str, shape: Iterable[Optional[SupportsIndex]], dtype: DTypeLike, lod_level: SupportsIndex, /) -> Variable: ...


def data(name: str, shape: Iterable[Optional[SupportsIndex]], append_batch_size: Any = True, dtype: Any = None,
         lod_level: SupportsIndex = 0) -> Variable:
    """Adds an input slot: a variable fed with batches. Also accepts data(name, shape, dtype, lod_level), like fluid.data.

    shape      shape of a row, such as [13]; -1 for the batch is prepended unless the shape contains it. With lod_level 1
               (sparse slots, any number of values per row) the variable is [values, 1].
    dtype      "float32" (default), or "int64" for ids and classes
    """
    program = default_main_program()
    if not isinstance(append_batch_size, bool):
        lod_level = lod_level if dtype is None else dtype
        append_batch_size, dtype = True, append_batch_size
    if not isinstance(name, str):
        raise ConfigError("data: a slot's name is a str, not %r" % (name,))
    sizes = [-1 if size is None else _checks.whole('data "%s": shape' % name, size)
             for size in _checks.listed('data "%s": shape' % name, shape, "sizes")]
    if isinstance(lod_level, bool) or isinstance(dtype, bool):
        raise ConfigError('data "%s": %r stands where dtype or lod_level do; give append_batch_size by its name' % (
            name, lod_level if isinstance(lod_level, bool) else dtype))
    if append_batch_size and -1 not in sizes:
        sizes = [-1] + sizes
    if program._author.has(name):
        raise ConfigError('data: there is a variable "%s" already; a model that is written again, as when a notebook\'s cell runs '
                          "twice, goes to new programs: with millrace.program_guard(millrace.Program(), millrace.Program())" % name)
    program._author.add_data(name, dtype_name("float32" if dtype is None else dtype), sizes,
                             _checks.whole('data "%s": lod_level' % name, lod_level, 0))
    return Variable(program, name)


def embedding(input: Variable, size: Sequence[Optional[SupportsIndex]], is_sparse: bool = False, is_distributed: bool = False,
              padding_idx: Optional[SupportsIndex] = None, param_attr: ParamLike = None, dtype: str = "float32",
              per_slot: bool = False, optimizer: Optional[Optimizer] = None, out_of_range: Optional[str] = None,
              initial_rows: Optional[int] = None, accessor: Optional[str] = None) -> Variable:
    """Looks up table rows by id. Returns [values, dim], or [batch, dim] for a dense slot [batch, 1].

    size          [vocabulary, dim], or [None, dim] for a growing table, which accepts any id from 0 to 2**64 - 1
    padding_idx   the id whose row is zero and is never updated
    param_attr    parameter settings; layers with the same parameter name share a table
    is_sparse     True: fleet's distributed_optimizer may distribute the rows over ranks (docs/fleet.md)
    is_distributed True: makes the table grow and, in a job with ranks, distributes its rows; it accepts any id, and the
                  vocabulary is not a limit
    per_slot      True: a growing table keeps equal ids of different slots apart
    optimizer     the optimizer of this table; default: that of minimize
    out_of_range  "ERROR", "ZERO" or "MODULO" for ids beyond the vocabulary
    accessor      Paddle's TableAccessorParameter as text, "" for its defaults: rows of a growing table count shows and clicks
                  and use their own optimizer. size is [None, 3 + embedx_dim]. A continuous_value_model layer must follow,
                  which gets the shows and clicks of the batch

    Gradients are always sparse, regardless of is_sparse: rows that a batch does not use get no gradient, and most optimizers
    do not change them. In a table with a vocabulary, Adam still updates them from its running means unless lazy_mode is True.
    Momentum, LarsMomentum, DecayedAdagrad, RMSProp, Adamax, Adadelta, Lamb and regularization update every row at each step.
    """
    if dtype != "float32":
        raise ConfigError("embedding: rows are float32, not %s" % dtype)
    for name, flag in (("is_sparse", is_sparse), ("is_distributed", is_distributed)):
        if not isinstance(flag, bool):
            raise ConfigError("embedding: %s is True or False, not %r" % (name, flag))
    program = program_of({"input": input})
    attr = ParamAttr.of(param_attr)
    stem = program.unique_name("embedding")
    table = attr.name or stem + ".w_0"
    if len(as_list(size)) != 2:
        raise ConfigError("embedding: size is [vocabulary, dim], not %r" % (size,))
    vocabulary, dim = [None if part is None else _checks.whole("embedding: size", part) for part in size]
    if dim is None:
        raise ConfigError("embedding: size is [vocabulary, dim], not %r" % (size,))
    if vocabulary is not None and vocabulary < 1:
        raise ConfigError("embedding: size: a vocabulary has at least 1 id, not %d; a table that grows is [None, %d]" % (
            vocabulary, dim))
    if padding_idx is not None:
        padding_idx = _checks.whole("embedding: padding_idx", padding_idx)
        if padding_idx < 0 and vocabulary is None:
            raise ConfigError("embedding: padding_idx %d counts from the end of a vocabulary, and a table that grows has none" %
                              padding_idx)
        if padding_idx < 0 and vocabulary is not None:
            padding_idx += vocabulary
    if is_distributed:
        vocabulary = None
    fields = ["name: %s" % quoted(table), "dim: %d" % dim]
    if vocabulary is not None:
        fields.append("vocabulary: %d" % vocabulary)
    if padding_idx is not None:
        fields.append("padding_idx: %d" % padding_idx)
    if per_slot:
        fields.append("key: SLOT_AND_ID")
    if out_of_range is not None:
        if out_of_range not in ("ERROR", "ZERO", "MODULO"):
            raise ConfigError('embedding: out_of_range is "ERROR", "ZERO" or "MODULO", not %r' % (out_of_range,))
        fields.append("out_of_range: %s" % out_of_range)
    if initial_rows is not None:
        fields.append("initial_rows: %d" % initial_rows)
    default = Xavier() if vocabulary is not None else None
    initializer = attr.initializer or default
    if initializer is not None:
        fields.append("init { %s }" % initializer.text)
    if optimizer is not None:
        fields.append("optimizer { %s }" % optimizer.text)
    if accessor is not None:
        fields.append("accessor { %s }" % accessor)
    check_values(program, initializer, table, [vocabulary, dim])
    program._author.add_table(" ".join(fields))
    fill(program, initializer, table)
    if is_sparse and vocabulary is not None:
        program._sparse_tables[table] = None if optimizer is None else optimizer.text
    out = stem + ".tmp_0"
    if attr._rule():
        program._author.set_rule(table, attr._rule())
    program._author.look_up(checked(input, program, "embedding", "input").name, table, out)
    program._looked_up.add(input.name)
    if table not in program._tables:
        program._tables.append(table)
    program._lines[out] = caller()
    return Variable(program, out)


def fc(input: Union[Variable, Sequence[Variable]], size: SupportsIndex, num_flatten_dims: SupportsIndex = 1,
       param_attr: ParamLike = None, bias_attr: BiasLike = None, act: Optional[str] = None,
       name: Optional[str] = None) -> Variable:
    """Adds a fully connected layer: act(input W + b), [batch, size]. Each input has its own W; the products are added.

    bias_attr=False omits b. Parameters are NAME.w_0 (NAME.w_1, ... for more inputs) and NAME.b_0. A second layer with the same
    name gets new parameters, NAME.w_1. Layers share parameters that have the same name in param_attr or bias_attr.
    """
    inputs = as_list(input)
    if not inputs:
        raise ConfigError("fc: input is an empty list")
    size = _checks.whole("fc: size", size)
    num_flatten_dims = _checks.whole("fc: num_flatten_dims", num_flatten_dims, 1)
    program = program_of({"input": inputs})
    stem = name or program.unique_name("fc")
    attr = ParamAttr.of(param_attr)
    products = []
    for i, x in enumerate(inputs):
        shape = checked(x, program, "fc", "input").shape
        columns = 1
        for extent in shape[num_flatten_dims:]:
            columns *= extent
        if len(shape) <= num_flatten_dims or columns < 1:
            raise ConfigError('fc: "%s" %s has no columns behind its first %d axes' % (
                x.name, list(shape), num_flatten_dims))
        weight = parameter(program, attr, stem + ".w", [columns, size], Xavier(), i if len(inputs) > 1 else None)
        products.append(op("mul", {"X": x, "Y": weight}, {"x_num_col_dims": num_flatten_dims, "y_num_col_dims": 1},
                           name=program.unique_name(stem + ".tmp")))
    out = products[0] if len(products) == 1 else sums(products)
    if bias_attr is not False:
        bias = parameter(program, ParamAttr.of(bias_attr), stem + ".b", [size], Constant(0.0))
        out = op("elementwise_add", {"X": out, "Y": bias}, {"axis": num_flatten_dims},
                 name=program.unique_name(stem + ".tmp"))
    return activate(out, act, stem)


def concat(input: Union[Variable, Sequence[Variable]], axis: int = 0, name: Optional[str] = None) -> Variable:
    """Concatenates variables along an axis. With axis 1, [batch, a] and [batch, b] become [batch, a + b]. With axis 0 (default),
    [n, a] and [m, a] become [n + m, a]."""
    return op("concat", {"X": as_list(input)}, {"axis": axis}, name=name)


def mean(x: Variable, name: Optional[str] = None) -> Variable:
    """Returns the mean of all values, [1]."""
    return op("mean", {"X": x}, name=name)


def dropout(x: Variable, dropout_prob: float, is_test: bool = False, seed: Optional[int] = None, name: Optional[str] = None,
            dropout_implementation: str = "downgrade_in_infer") -> Variable:
    """Sets random elements to zero during training. Returns the shape of x."""
    attrs = {"dropout_prob": dropout_prob, "is_test": is_test, "dropout_implementation": dropout_implementation}
    if seed is not None:
        attrs.update(seed=seed, fix_seed=True)
    return op("dropout", {"X": x}, attrs, ["Out", "Mask"], name=name)[0]


def softmax(input: Variable, use_cudnn: bool = False, name: Optional[str] = None, axis: int = -1) -> Variable:
    """Returns probabilities along an axis, in the shape of input. Pass axis by keyword. use_cudnn is ignored."""
    if not isinstance(use_cudnn, bool):
        raise ConfigError("softmax: use_cudnn stands second, as in fluid, and is a bool, not %r; give axis by its name" % (
            use_cudnn,))
    return op("softmax", {"X": input}, {"axis": axis}, name=name)


def scale(x: Variable, scale: float = 1.0, bias: float = 0.0, bias_after_scale: bool = True, act: Optional[str] = None,
          name: Optional[str] = None) -> Variable:
    """Returns scale * x + bias, or scale * (x + bias) if bias_after_scale is False, then applies act. Keeps the shape of x."""
    return activate(op("scale", {"X": x}, {"scale": scale, "bias": bias, "bias_after_scale": bias_after_scale},
                       name=name if act is None else None), act, "scale", name)


def clip(x: Variable, min: float, max: float, name: Optional[str] = None) -> Variable:
    """Clips values to [min, max]."""
    return op("clip", {"X": x}, {"min": min, "max": max}, name=name)


def matmul(x: Variable, y: Variable, transpose_x: bool = False, transpose_y: bool = False, alpha: float = 1.0,
           name: Optional[str] = None) -> Variable:
    """Returns alpha * x y: [..., m, k] and [..., k, n] become [..., m, n]. transpose_x: x is [..., k, m]. transpose_y: y is [..., n, k]."""
    return op("matmul", {"X": x, "Y": y}, {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": alpha}, name=name)


def mul(x: Variable, y: Variable, x_num_col_dims: int = 1, y_num_col_dims: int = 1, name: Optional[str] = None) -> Variable:
    """Multiplies x and y as matrices, split after *_num_col_dims axes: [batch, k] and [k, n] become [batch, n]."""
    return op("mul", {"X": x, "Y": y}, {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}, name=name)


def reshape(x: Variable, shape: Iterable[SupportsIndex], actual_shape: None = None, act: Optional[str] = None,
            inplace: bool = False, name: Optional[str] = None) -> Variable:
    """Returns the values in a new shape and applies act. 0 keeps an axis and -1 infers it: [batch, 6] with [0, 2, -1] becomes
    [batch, 2, 3]. Never copies values, regardless of inplace."""
    if actual_shape is not None:
        raise ConfigError("reshape: actual_shape: give sizes as shape, with -1 for what is left, not %r" % (actual_shape,))
    sizes = as_ints(_checks.listed("reshape: shape", shape, "sizes"), "reshape: shape")
    out = op("reshape2", {"X": x}, {"shape": sizes}, ["Out", "XShape"], name=name if act is None else None)[0]
    return activate(out, act, "reshape", name)


def transpose(x: Variable, perm: Iterable[int], name: Optional[str] = None) -> Variable:
    """Reorders axes: [a, b, c] with perm [0, 2, 1] becomes [a, c, b]."""
    return op("transpose2", {"X": x}, {"axis": list(perm)}, ["Out", "XShape"], name=name)[0]


def squeeze(input: Variable, axes: Iterable[int], name: Optional[str] = None) -> Variable:
    """Removes axes of size 1: [batch, 1, 3] with axes [1] becomes [batch, 3]."""
    return op("squeeze2", {"X": input}, {"axes": list(axes)}, ["Out", "XShape"], name=name)[0]


def unsqueeze(input: Variable, axes: Union[SupportsIndex, Sequence[SupportsIndex]], name: Optional[str] = None) -> Variable:
    """Inserts axes of size 1: [batch, 3] with axes [1] becomes [batch, 1, 3]."""
    return op("unsqueeze2", {"X": input}, {"axes": as_ints(axes)}, ["Out", "XShape"], name=name)[0]


expand_dims = unsqueeze


def slice(input: Variable, axes: Iterable[int], starts: Iterable[int], ends: Iterable[int]) -> Variable:
    """Returns the slice input[starts:ends] along the axes."""
    return op("slice", {"Input": input}, {"axes": list(axes), "starts": list(starts), "ends": list(ends)})


def split(input: Variable, num_or_sections: Union[int, Sequence[int]], dim: int = -1,
          name: Optional[str] = None) -> list[Variable]:
    """Splits along an axis into equal parts or given sizes. Returns a list: [batch, 6] split in 3 gives three [batch, 2]."""
    attrs: dict[str, Any]
    if isinstance(num_or_sections, int):
        count, attrs = num_or_sections, {"num": num_or_sections, "axis": dim}
    else:
        count, attrs = len(num_or_sections), {"sections": list(num_or_sections), "axis": dim}
    made = op("split", {"X": input}, attrs, {"Out": count}, name=name)
    return list(made) if isinstance(made, tuple) else [made]


def stack(x: Union[Variable, Sequence[Variable]], axis: int = 0, name: Optional[str] = None) -> Variable:
    """Stacks variables of one shape along a new axis: n times [batch, a] becomes [n, batch, a], or with axis 1 [batch, n, a]."""
    return op("stack", {"X": as_list(x)}, {"axis": axis}, ["Y"], name=name)


def sums(input: Union[Variable, Sequence[Variable]], out: Optional[Variable] = None) -> Variable:
    """Returns the sum of variables of one shape, in the same shape. Writes to `out` if given."""
    return op("sum", {"X": as_list(input)}, None, None if out is None else {"Out": out})


sum = sums


def topk(input: Variable, k: int, name: Optional[str] = None) -> tuple[Variable, Variable]:
    """Returns (the k largest values of each row, their columns as int64). For [batch, n] both are [batch, k]."""
    return op("top_k", {"X": input}, {"k": k}, ["Out", "Indices"], name=name)


class _Unary(Protocol):
    def __call__(self, x: Variable, name: Optional[str] = None) -> Variable: ...


class _Elementwise(Protocol):
    def __call__(self, x: Variable, y: Variable, axis: int = -1, act: Optional[str] = None,
                 name: Optional[str] = None) -> Variable: ...


class _Reduce(Protocol):
    def __call__(self, input: Variable, dim: Union[SupportsIndex, Sequence[SupportsIndex], None] = None, keep_dim: bool = False,
                 name: Optional[str] = None) -> Variable: ...


def _unary(type: str) -> _Unary:
    def layer(x: Variable, name: Optional[str] = None) -> Variable:
        return op(type, {"X": x}, name=name)
    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = "Applies %s to every value. Keeps the shape of x." % type
    return layer


def _elementwise(type: str) -> _Elementwise:
    def layer(x: Variable, y: Variable, axis: int = -1, act: Optional[str] = None, name: Optional[str] = None) -> Variable:
        if act is None:
            return op(type, {"X": x, "Y": y}, {"axis": axis}, name=name)
        return activate(op(type, {"X": x, "Y": y}, {"axis": axis}), act, type, name)
    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = ("Applies %s to two variables. Returns the shape of x. y matches the axes of x starting at `axis`, by default the "
                     "last ones: for x [batch, n], y is [batch, n] or [n], or [batch] with axis=0." % type)
    return layer


def _reduce(type: str) -> _Reduce:
    def layer(input: Variable, dim: Union[SupportsIndex, Sequence[SupportsIndex], None] = None, keep_dim: bool = False,
              name: Optional[str] = None) -> Variable:
        return op(type, {"X": input}, {"dim": [0] if dim is None else as_ints(dim), "keep_dim": keep_dim,
                                       "reduce_all": dim is None}, name=name)
    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = ("Applies %s over the axes `dim` and removes them, or keeps them with size 1 if keep_dim is set: [batch, n] with dim "
                     "1 gives [batch]. Default: all axes, [1]." % type)
    return layer


relu = _unary("relu")
sigmoid = _unary("sigmoid")
tanh = _unary("tanh")
square = _unary("square")
sqrt = _unary("sqrt")
exp = _unary("exp")
log = _unary("log")
abs = _unary("abs")
sign = _unary("sign")
logsigmoid = _unary("logsigmoid")
softplus = _unary("softplus")
softsign = _unary("softsign")
reciprocal = _unary("reciprocal")
rsqrt = _unary("rsqrt")
floor = _unary("floor")
ceil = _unary("ceil")
round = _unary("round")
sin = _unary("sin")
cos = _unary("cos")
erf = _unary("erf")
elementwise_add = _elementwise("elementwise_add")
elementwise_sub = _elementwise("elementwise_sub")
elementwise_mul = _elementwise("elementwise_mul")
elementwise_div = _elementwise("elementwise_div")
elementwise_max = _elementwise("elementwise_max")
elementwise_min = _elementwise("elementwise_min")
elementwise_pow = _elementwise("elementwise_pow")
elementwise_mod = _elementwise("elementwise_mod")
elementwise_floordiv = _elementwise("elementwise_floordiv")
reduce_sum = _reduce("reduce_sum")
reduce_mean = _reduce("reduce_mean")
reduce_max = _reduce("reduce_max")
reduce_min = _reduce("reduce_min")
reduce_prod = _reduce("reduce_prod")
reduce_all = _reduce("reduce_all")
reduce_any = _reduce("reduce_any")
