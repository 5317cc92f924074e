#!/usr/bin/env python3
"""Runs Paddle's operators on random shapes and LoDs, forward and backward, and writes programs, inputs and answers.

    python random_ops.py --out DIR [--seed 1] [--each 4] [--ops REGEX]

Each folder DIR/OP.N holds program.bin (a ProgramDesc with the operator and the gradient that Paddle makes of it), a
LoDTensor file for each variable, and case.txt, which says what the files are. tests/runtime/paddle_ops_test.cc runs
the programs. ops.py takes the golden cases of many operators from the same list. See README.md beside this file.
"""
import argparse
import os
import re
import struct

import numpy as np
import paddle

GENERATORS = {}


class Rows:
    """A SelectedRows gradient."""

    def __init__(self, height, rows, values):
        self.height, self.rows, self.values = height, rows, np.asarray(values, np.float32)


class Draw:
    """Draws values; arrays with LoD are pairs (array, offsets)."""

    def __init__(self, seed):
        self.rng = np.random.RandomState(seed)

    def size(self, low=1, high=5):
        return int(self.rng.randint(low, high + 1))

    def shape(self, low=1, high=4, axes=None):
        return [self.size(low, high) for _ in range(axes or self.size(1, 4))]

    def choice(self, *values):
        return values[self.rng.randint(len(values))]

    def floats(self, *shape, low=-1.0, high=1.0):
        return self.rng.uniform(low, high, shape).astype(np.float32)

    def away(self, *shape):
        """Off zero, where functions have kinks."""
        return ((self.rng.uniform(0.1, 2.0, shape)) * self.rng.choice([-1, 1], shape)).astype(np.float32)

    def distinct(self, *shape):
        count = int(np.prod(shape))
        return (self.rng.permutation(count).reshape(shape) * 0.1 - count * 0.05).astype(np.float32)

    def ids(self, high, *shape):
        return self.rng.randint(0, high, shape).astype(np.int64)

    def numbers(self, *shape):
        """Whole numbers, of 64 bits or of 32."""
        values = self.ids(19, *shape) - 9
        return self.choice(values, values.astype(np.int32))

    def bools(self, *shape):
        return self.rng.randint(0, 2, shape).astype(bool)

    def lod(self, sequences=None, least=0, most=4):
        sequences = sequences or self.size(1, 5)
        offsets = np.concatenate([[0], np.cumsum(self.rng.randint(least, most + 1, sequences))]).tolist()
        if offsets[-1] == 0:
            offsets[-1] = 1
        return offsets

    def sequence(self, *width, least=0, sequences=None):
        offsets = self.lod(sequences, least)
        return self.floats(offsets[-1], *width), offsets

    def simplex(self, *shape):
        values = self.rng.uniform(0.1, 1, shape)
        return (values / values.sum(-1, keepdims=True)).astype(np.float32)


class Case:
    """One operator with its inputs ({parameter: [(name, value)]}), outputs ({parameter: [names]}) and attributes.

    `grad` names the inputs whose gradients are compared, `of` the outputs that they come from (default: all that are
    compared), `check` the outputs to compare.
    """

    def __init__(self, inputs, outputs, attrs=None, grad=(), check=None, of=None, sparse=()):
        self.sparse = list(sparse)
        self.inputs, self.outputs, self.attrs, self.grad = inputs, outputs, attrs or {}, list(grad)
        names = [name for bound in outputs.values() for name in bound]
        self.check = names if check is None else check
        self.of = self.check if of is None else of


def one(inputs, attrs=None, grad=True, out="Out", more=None, check=None):
    """A case whose inputs each have one variable, named after the parameter, and whose output is "out"."""
    bound = {p: [(p.lower(), v)] for p, v in inputs.items()}
    floats = [p.lower() for p, v in inputs.items() if (v[0] if isinstance(v, tuple) else v).dtype == np.float32]
    outputs = {out: ["out"], **(more or {})}
    return Case(bound, outputs, attrs, floats if grad is True else (grad or ()), check or ["out"], ["out"])


def op(*types):
    def register(make):
        for kind in types:
            GENERATORS.setdefault(kind, []).append(make)
        return make
    return register


# ---------------------------------------------------------------------------------------------------------------------
# Functions of one value


@op("sigmoid", "tanh", "square", "assign", "mean", "squared_l2_norm", "exp", "softsign", "logsigmoid", "sin", "cos", "silu",
    "tan", "atan", "erf", "expm1", "tanh_shrink")
def _smooth(d, kind):
    limit = 1.2 if kind == "tan" else 3
    return one({"X": d.floats(*d.shape(), low=-limit, high=limit)})


@op("relu", "abs", "l1_norm", "hard_swish")
def _kinked(d, kind):
    return one({"X": d.away(*d.shape())})


@op("sqrt", "rsqrt", "log", "log1p", "log2", "log10", "reciprocal")
def _positive(d, kind):
    return one({"X": d.floats(*d.shape(), low=0.3, high=4)})


@op("sign", "floor", "ceil", "round")
def _steps(d, kind):
    return one({"X": d.floats(*d.shape(), low=-3, high=3)})


@op("leaky_relu", "elu", "relu6", "swish", "softplus", "gelu", "hard_sigmoid", "pow")
def _with_attribute(d, kind):
    low, high = (0.2, 3) if kind == "pow" else (-8, 8)
    attrs = {"leaky_relu": {"alpha": 0.1}, "elu": {"alpha": 0.7}, "relu6": {}, "swish": {},
             "softplus": {"beta": 1.5, "threshold": 5.0}, "gelu": {"approximate": d.choice(True, False)},
             "hard_sigmoid": {"slope": 0.15, "offset": 0.45}, "pow": {"factor": d.choice(2.0, 0.5, -1.0, 3.0)}}[kind]
    return one({"X": d.floats(*d.shape(), low=low, high=high)}, attrs)


BENT = {"hard_shrink": {"threshold": 0.6}, "softshrink": {"lambda": 0.4}, "thresholded_relu": {"threshold": 0.9}, "brelu": {"t_min": -1.0, "t_max": 2.0},
        "selu": {"scale": 1.1, "alpha": 1.6}, "celu": {"alpha": 0.7}, "stanh": {"scale_a": 0.6, "scale_b": 1.5}, "soft_relu": {"threshold": 4.5}, "mish": {"threshold": 20.0}}


@op(*BENT)
def _bent(d, kind):
    return one({"X": d.floats(*d.shape(), low=-6, high=6)}, BENT[kind])


@op("prelu")
def _prelu(d, kind):
    shape, mode = d.shape(low=2, axes=d.size(2, 4)), d.choice("all", "channel", "element")
    last = len(shape) == 4 and d.choice(True, False)
    alpha = {"all": [1], "channel": [shape[-1 if last else 1]], "element": [1] + shape[1:]}[mode]
    return one({"X": d.away(*shape), "Alpha": d.floats(*alpha)}, {"mode": mode, "data_format": "NHWC" if last else "NCHW"})


@op("log_softmax")
def _log_softmax(d, kind):
    shape = d.shape(axes=d.size(1, 3))
    return one({"X": d.floats(*shape, low=-4, high=4)}, {"axis": d.choice(-1, 0, len(shape) - 1)})


@op("clip")
def _clip(d, kind):
    more = d.choice({}, {"Min": np.array([-0.5], np.float32), "Max": np.array([0.75], np.float32)})
    return one({"X": d.floats(*d.shape(), low=-2, high=2), **more}, {"min": 5.0, "max": 6.0} if more else {"min": -0.5, "max": 0.75}, grad=["x"])


@op("scale")
def _scale(d, kind):
    more = d.choice({}, {"ScaleTensor": np.array([-1.5], np.float32)})
    return one({"X": d.floats(*d.shape()), **more}, {"scale": 2.5, "bias": 0.5, "bias_after_scale": d.choice(True, False)}, grad=["x"])


@op("softmax")
def _softmax(d, kind):
    shape = d.shape(axes=d.size(1, 3))
    return one({"X": d.floats(*shape, low=-4, high=4)}, {"axis": d.choice(-1, 0, len(shape) - 1)})


@op("clip_by_norm")
def _clip_by_norm(d, kind):
    return one({"X": d.floats(*d.shape())}, {"max_norm": d.choice(0.2, 100.0)}, grad=False)


@op("cumsum")
def _cumsum(d, kind):
    shape = d.shape(axes=3)
    shape[0] += int(np.prod(shape) == 1)  # of a single value Paddle ignores `exclusive`
    return one({"X": d.floats(*shape)}, {"axis": d.choice(0, 1, -1), "exclusive": d.choice(True, False), "reverse": d.choice(True, False)})


@op("tril_triu")
def _tril_triu(d, kind):
    return one({"X": d.floats(d.size(), d.size(2), d.size(2))}, {"diagonal": d.choice(-1, 0, 1), "lower": d.choice(True, False)})


@op("increment")
def _increment(d, kind):
    return one({"X": d.floats(1)}, {"step": 2.0}, grad=False)


@op("cast")
def _cast(d, kind):
    if d.choice(True, False):
        return one({"X": d.ids(9, *d.shape())}, {"in_dtype": 3, "out_dtype": 5}, grad=False)
    return one({"X": d.floats(*d.shape(), low=-5, high=5)}, {"in_dtype": 5, "out_dtype": d.choice(3, 2, 0)}, grad=False)


# ---------------------------------------------------------------------------------------------------------------------
# Functions of whole numbers


@op("abs", "square", "sign", "clip", "cumsum", "tril_triu", "scale")
def _of_whole_numbers(d, kind):
    attrs = {"clip": {"min": -3.5, "max": 4.0}, "cumsum": {"axis": d.choice(0, 1, -1), "exclusive": d.choice(True, False), "reverse": d.choice(True, False)},
             "tril_triu": {"diagonal": d.choice(-1, 0, 1), "lower": d.choice(True, False)}, "scale": {"scale": 2.0, "bias": -1.0, "bias_after_scale": True}}
    return one({"X": d.numbers(3, d.size(2), 4)}, attrs.get(kind, {}), grad=False)


@op("arg_max", "arg_min", "argsort", "top_k_v2")
def _order_of_whole_numbers(d, kind):
    x = d.rng.permutation(24).reshape(4, 6).astype(d.choice(np.int64, np.int32)) - 12
    axis = d.choice(0, -1)
    if kind.startswith("arg_"):
        return one({"X": x}, {"axis": axis, "keepdims": d.choice(True, False), "dtype": 3, "flatten": False}, grad=False)
    attrs = {"axis": axis, "descending": d.choice(True, False)} if kind == "argsort" else {"k": 2, "axis": axis, "largest": d.choice(True, False), "sorted": True}
    return one({"X": x}, attrs, grad=False, more={"Indices": ["indices"]}, check=["out", "indices"])


@op("sum")
def _sum_of_whole_numbers(d, kind):
    x = d.numbers(3, 2)
    return Case({"X": [("x0", x), ("x1", x[::-1].copy())]}, {"Out": ["out"]})


def ids_of(d, *width, sequences=None, least=0):
    """A sequence of ids."""
    values, offsets = d.sequence(*width, sequences=sequences, least=least)
    return d.ids(50, *values.shape).astype(d.choice(np.int64, np.int32)), offsets


@op("sequence_reverse", "sequence_reshape", "sequence_expand", "sequence_expand_as", "sequence_concat", "sequence_pad", "sequence_unpad", "sequence_slice")
def _sequences_of_ids(d, kind):
    if kind == "sequence_reverse":
        return one({"X": ids_of(d, 1)}, grad=False, out="Y")
    if kind == "sequence_reshape":
        return one({"X": ids_of(d, 4)}, {"new_dim": d.choice(2, 4, 1)}, grad=False)
    if kind.startswith("sequence_expand"):
        y = d.sequence(2, least=1)
        return one({"X": d.ids(50, len(y[1]) - 1, 2), "Y": y}, {"ref_level": 0} if kind == "sequence_expand" else {}, grad=False)
    if kind == "sequence_concat":
        x = ids_of(d, 1, sequences=3, least=1)
        return Case({"X": [("x0", x), ("x1", (x[0][::-1].copy(), x[1]))]}, {"Out": ["out"]})
    if kind == "sequence_pad":
        x = ids_of(d, 1)
        return one({"X": x, "PadValue": np.array([7], x[0].dtype)}, {"padded_length": d.choice(-1, 6)}, grad=False, more={"Length": ["length"]},
                   check=["out", "length"])
    if kind == "sequence_unpad":
        return one({"X": d.ids(50, 3, 4), "Length": d.ids(4, 3) + 1}, grad=False)
    x = ids_of(d, 1, least=3)
    return one({"X": x, "Offset": d.ids(2, len(x[1]) - 1, 1), "Length": d.ids(2, len(x[1]) - 1, 1) + 1}, grad=False)


# ---------------------------------------------------------------------------------------------------------------------
# Functions of sequences, whose LoD the result has

OF_SEQUENCES = {"relu": {}, "sigmoid": {}, "square": {}, "softmax": {"axis": -1}, "scale": {"scale": 2.0, "bias": 0.5}, "clip": {"min": -0.5, "max": 0.5},
                "leaky_relu": {"alpha": 0.2}, "assign": {}, "elementwise_add": {"axis": -1}, "elementwise_mul": {"axis": 0}, "cast": {"in_dtype": 5, "out_dtype": 5},
                "mul": {"x_num_col_dims": 1, "y_num_col_dims": 1}, "matmul_v2": {"trans_x": False, "trans_y": False}}


@op(*OF_SEQUENCES)
def _of_sequences(d, kind):
    x, offsets = d.away(d.lod()[-1], 3), None
    offsets = [0, 0, len(x)] if d.choice(True, False) else [0, len(x)]
    inputs = {"X": (x, offsets)}
    if kind in ("mul", "matmul_v2"):
        inputs["Y"] = d.floats(3, d.size())
    if kind == "elementwise_add":
        inputs["Y"] = d.floats(3)
    if kind == "elementwise_mul":
        inputs["Y"] = (d.floats(len(x), 1), offsets)
        return one(inputs, {"axis": -1})
    return one(inputs, OF_SEQUENCES[kind])


# ---------------------------------------------------------------------------------------------------------------------
# Functions of two values, and reductions


@op("elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div", "elementwise_max", "elementwise_min", "elementwise_pow")
def _elementwise(d, kind):
    x, y, axis = d.choice(([3, 4], [3, 4], -1), ([3, 4], [4], -1), ([3, 4], [3], 0), ([3, 4], [3, 1], -1), ([2, 3, 4], [3], 1),
                          ([2, 3, 4], [2, 3], 0), ([5, 2], [1], -1), ([4, 1], [4, 3], -1), ([2, 1, 3], [2, 4, 1], -1))
    if kind in ("elementwise_max", "elementwise_min", "elementwise_pow") and axis >= 0:
        x, y, axis = [2, 3], [2, 3], -1  # Paddle fails on these gradients
    if kind in ("elementwise_max", "elementwise_min"):  # no ties
        return one({"X": d.distinct(*x), "Y": d.distinct(*y) + np.float32(0.03)}, {"axis": axis})
    return one({"X": d.floats(*x, low=0.3, high=2), "Y": d.floats(*y, low=0.5, high=2)}, {"axis": axis})


@op("elementwise_add", "elementwise_sub", "elementwise_mul")
def _elementwise_whole(d, kind):
    x, y, axis = d.choice(([3, 4], [3, 4], -1), ([3, 4], [3], 0), ([5, 2], [1], -1))
    return one({"X": d.ids(9, *x), "Y": d.ids(9, *y)}, {"axis": axis}, grad=False)


@op("elementwise_mod", "elementwise_floordiv")
def _whole(d, kind):
    return one({"X": d.ids(20, 3, 4) - 10, "Y": d.ids(5, 4) + 1}, {"axis": -1}, grad=False)


@op("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal")
def _compare(d, kind):
    shape = d.shape()
    draw = d.choice(lambda: d.ids(3, *shape), lambda: d.ids(3, *shape).astype(np.float32))
    return one({"X": draw(), "Y": draw()}, {"axis": -1}, grad=False)


@op("logical_and", "logical_or", "logical_xor", "logical_not")
def _logical(d, kind):
    shape = d.shape()
    inputs = {"X": d.bools(*shape)}
    if kind != "logical_not":
        inputs["Y"] = d.bools(*shape)
    return one(inputs, grad=False)


@op("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod")
def _reduce(d, kind):
    shape = d.shape(low=2, axes=3)
    dim, everything = d.choice(([1], False), ([-1], False), ([0], False), ([0, 2], False), ([0], True))
    x = d.distinct(*shape) if kind in ("reduce_max", "reduce_min") else d.floats(*shape, low=0.3, high=1.5)
    return one({"X": x}, {"dim": dim, "keep_dim": d.choice(True, False), "reduce_all": everything})


@op("frobenius_norm", "logsumexp")
def _reduce_curved(d, kind):
    dim, everything = d.choice(([1], False), ([-1], False), ([0, 2], False), ([0], True))
    names = ("dim", "keep_dim") if kind == "frobenius_norm" else ("axis", "keepdim")
    return one({"X": d.floats(*d.shape(low=2, axes=3), low=-3, high=3)}, {names[0]: dim, names[1]: d.choice(True, False), "reduce_all": everything})


@op("reduce_sum", "reduce_mean")
def _reduce_more(d, kind):
    dim = d.choice([-1, -2], [0, -1], [2, 0, 1], [1, 2])
    return one({"X": d.floats(2, 3, 4)}, {"dim": dim, "keep_dim": d.choice(True, False), "reduce_all": False})


@op("reduce_sum")
def _reduce_whole(d, kind):
    return one({"X": d.ids(9, 3, 4)}, {"dim": d.choice([0], [1], [-1]), "keep_dim": d.choice(True, False), "reduce_all": False}, grad=False)


@op("reduce_max", "reduce_min", "reduce_prod")
def _reduce_extreme_whole(d, kind):
    x = d.ids(9, 3, 4, 2) - 4
    return one({"X": d.choice(x, x.astype(np.int32))}, {"dim": d.choice([0], [1, 2], [-1]), "keep_dim": d.choice(True, False), "reduce_all": d.choice(True, False, False)}, grad=False)


@op("reduce_any", "reduce_all")
def _reduce_bool(d, kind):
    return one({"X": d.bools(3, 2)}, {"dim": [d.choice(0, 1)], "keep_dim": d.choice(True, False), "reduce_all": d.choice(True, False)}, grad=False)


@op("arg_max", "arg_min")
def _arg(d, kind):
    return one({"X": d.distinct(*d.shape(axes=3))}, {"axis": d.choice(0, 1, -1), "keepdims": d.choice(True, False), "dtype": 3, "flatten": False}, grad=False)


@op("argsort")
def _argsort(d, kind):
    return one({"X": d.distinct(*d.shape(axes=2))}, {"axis": d.choice(0, -1), "descending": d.choice(True, False)},
               more={"Indices": ["indices"]}, check=["out", "indices"])


@op("mul")
def _mul(d, kind):
    k = d.size()
    return one({"X": d.floats(d.size(), k), "Y": d.floats(k, d.size())}, {"x_num_col_dims": 1, "y_num_col_dims": 1})


@op("matmul", "matmul_v2")
def _matmul(d, kind):
    m, k, n, b = d.size(), d.size(), d.size(), d.size(2)
    tx, ty = d.choice(True, False), d.choice(True, False)
    batch = d.choice([], [b])
    x = batch + ([k, m] if tx else [m, k])
    y = d.choice(batch, []) + ([n, k] if ty else [k, n])
    attrs = {"transpose_X": tx, "transpose_Y": ty, "alpha": 0.5} if kind == "matmul" else {"trans_x": tx, "trans_y": ty}
    if len(y) < len(x) and tx:
        return _matmul(d, kind)
    return one({"X": d.floats(*x), "Y": d.floats(*y)}, attrs)


@op("matmul", "matmul_v2")
def _matmul_ranks(d, kind):
    x, y, tx, ty = d.choice(([4], [4], False, False), ([3, 4], [4], False, False),
                            ([2, 5, 3, 4], [2, 5, 6, 4], False, True), ([2, 3, 4], [4, 5], False, False),
                            *([([2, 1, 3, 4], [1, 5, 4, 2], False, False), ([2, 1, 4, 3], [1, 5, 4, 2], True, False)] if kind == "matmul_v2" else []))
    attrs = {"transpose_X": tx, "transpose_Y": ty, "alpha": 1.0} if kind == "matmul" else {"trans_x": tx, "trans_y": ty}
    return one({"X": d.floats(*x), "Y": d.floats(*y)}, attrs, grad=min(len(x), len(y)) > 1)  # those of vectors fail in Paddle


@op("mul")
def _mul_columns(d, kind):
    y, columns = d.choice(((4, 5), (2, 1)), ((2, 2, 5), (2, 2)), ((3, 4, 5), (1, 2)))
    return one({"X": d.floats(2, 3, 4), "Y": d.floats(*y)}, {"x_num_col_dims": columns[0], "y_num_col_dims": columns[1]})


EQUATIONS = ["bi,ij->bj", "bij,bj->bi", "bik,bkj->bij", "bhid,bhjd->bhij", "bij->b", "bij->bji", "bi,bi->b", "i,j->ij", "bij,kj->bik", "bij,jkl->bikl", "...i,ij->...j",
             "bi,bi", "bfd,fde->bfe", "bij,ij->b", "bij,b->i"]


@op("einsum")
def _einsum(d, kind):
    equation, sizes = d.choice(*EQUATIONS), {}
    terms = equation.split("->")[0].replace("...", "xy").split(",")
    shapes = [[sizes.setdefault(letter, d.size(2, 4)) for letter in term] for term in terms]
    names = ["x", "y"][:len(terms)]
    return Case({"Operands": [(name, d.floats(*shape)) for name, shape in zip(names, shapes)]},
                {"Out": ["out"], "InnerCache": [name + ".kept" for name in names], "XShape": [name + ".shape" for name in names]},
                {"equation": equation}, names, ["out"])


@op("bmm")
def _bmm(d, kind):
    m, k, n, b = d.size(), d.size(), d.size(), d.size()
    return one({"X": d.floats(b, m, k), "Y": d.floats(b, k, n)})


@op("sum")
def _sum(d, kind):
    shape, names = d.shape(), ["x%d" % i for i in range(d.size(1, 4))]
    return Case({"X": [(n, d.floats(*shape)) for n in names]}, {"Out": ["out"]}, {}, names)


@op("select_input")
def _select_input(d, kind):
    shape = d.shape()
    return Case({"X": [("x0", d.floats(*shape)), ("x1", d.floats(*shape))], "Mask": [("mask", whole(d.choice(0, 1)))]}, {"Out": ["out"]})


@op("share_data")
def _share_data(d, kind):
    return one({"X": d.choice(d.floats(*d.shape()), d.ids(9, 3))}, grad=False)


@op("where")
def _where(d, kind):
    shape = d.shape()
    return one({"Condition": d.bools(*shape), "X": d.floats(*shape), "Y": d.floats(*shape)})


@op("where_index")
def _where_index(d, kind):
    condition = d.bools(3, d.size())
    return one({"Condition": d.choice(condition, condition.astype(np.int64), condition.astype(np.float32))}, grad=False)


@op("scatter")
def _scatter(d, kind):
    rows, overwrite = d.size(3, 6), d.choice(True, False)
    # Of a row that is overwritten, Paddle gives each update the gradient that only the last has.
    ids = d.rng.permutation(rows)[:d.size(1, 3)] if overwrite else d.ids(rows, d.size(2, 5))
    ids = ids.astype(d.choice(np.int64, np.int32))
    return one({"X": d.floats(rows, 2, 2), "Ids": ids, "Updates": d.floats(len(ids), 2, 2)}, {"overwrite": overwrite})


@op("masked_select")
def _masked_select(d, kind):
    shape = d.shape(low=2)
    mask = d.bools(*shape)
    mask.reshape(-1)[0] = True
    return one({"X": d.floats(*shape), "Mask": mask}, out="Y")


# ---------------------------------------------------------------------------------------------------------------------
# Shapes

SHAPE = {"XShape": ["x_shape"]}


def whole(*numbers):
    """A tensor that says what an attribute could."""
    return np.array(numbers, np.int32)


def told(d, attribute, values, tensor, tensors):
    """({inputs}, {attributes}) that give an operator a list: by its attribute, a tensor, or a tensor for each number."""
    how = d.choice("attribute", "tensor", "tensors")
    if how == "attribute":
        return {}, {attribute: values}
    if how == "tensor":
        return {tensor: [(tensor.lower(), whole(*values))]}, {attribute: []}
    return {tensors: [("%s%d" % (tensors.lower(), i), whole(v)) for i, v in enumerate(values)]}, {attribute: [-1] * len(values)}


@op("reshape2", "reshape")
def _reshape(d, kind):
    shape = d.choice([-1, 3], [0, 2, 3], [-1], [0, 6, 1])
    if kind == "reshape":  # whose gradient cannot do with a list of tensors in Paddle
        return one({"X": d.floats(d.size(), 6)}, {"shape": shape})
    inputs, attrs = told(d, "shape", shape, "Shape", "ShapeTensor")
    return Case({"X": [("x", d.floats(d.size(), 6))], **inputs}, {"Out": ["out"], **SHAPE}, attrs, ["x"], ["out"])


@op("unsqueeze2")
def _unsqueeze(d, kind):
    inputs, attrs = told(d, "axes", d.choice([0], [1, -1], [-1], [0, 1]), "AxesTensor", "AxesTensorList")
    return Case({"X": [("x", d.floats(2, 3))], **inputs}, {"Out": ["out"], **SHAPE}, attrs, ["x"], ["out"])


@op("squeeze2")
def _squeeze(d, kind):
    return one({"X": d.floats(2, 1, 3, 1)}, {"axes": d.choice([1], [-1], [1, 3], [])}, more=SHAPE)


@op("flatten2")
def _flatten2(d, kind):
    return one({"X": d.floats(*d.shape(axes=3))}, {"axis": d.choice(0, 1, 2, 3)}, more=SHAPE)


@op("flatten_contiguous_range")
def _flatten_range(d, kind):
    return one({"X": d.floats(*d.shape(axes=4))}, dict(zip(("start_axis", "stop_axis"), d.choice((1, 2), (0, -1), (1, -1), (2, 3)))), more=SHAPE)


@op("transpose", "transpose2")
def _transpose(d, kind):
    shape = d.shape(axes=d.size(2, 4))
    axes = d.rng.permutation(len(shape)).tolist()
    return one({"X": d.floats(*shape)}, {"axis": axes}, more=SHAPE if kind == "transpose2" else None)


@op("expand")
def _expand(d, kind):
    shape = d.shape()
    inputs, attrs = told(d, "expand_times", [d.size(1, 3) for _ in shape], "ExpandTimes", "expand_times_tensor")
    return Case({"X": [("x", d.floats(*shape))], **inputs}, {"Out": ["out"]}, attrs, ["x"])


@op("tile")
def _tile(d, kind):
    shape = d.shape(axes=2)
    inputs, attrs = told(d, "repeat_times", d.choice([2], [3, 1], [2, 2], [2, 1, 3]), "RepeatTimes", "repeat_times_tensor")
    return Case({"X": [("x", d.floats(*shape))], **inputs}, {"Out": ["out"]}, attrs, ["x"])


@op("expand_v2")
def _expand_v2(d, kind):
    shape = d.choice([3, 4, 2], [-1, 4, -1], [2, 3, 5, 2], [-1, 2, 2])
    if len(shape) > 3:  # Paddle describes new axes wrongly where tensors bring them
        return one({"X": d.floats(3, 1, 2)}, {"shape": shape})
    inputs, attrs = told(d, "shape", shape, "Shape", "expand_shapes_tensor")
    return Case({"X": [("x", d.floats(3, 1, 2))], **inputs}, {"Out": ["out"]}, attrs, ["x"])


@op("expand_as_v2")
def _expand_as(d, kind):
    n = d.size()
    return Case({"X": [("x", d.floats(1, n))], "Y": [("y", d.floats(4, n))]}, {"Out": ["out"]}, {"target_shape": [4, n]}, ["x"])


@op("concat")
def _concat(d, kind):
    shape, axis, names = d.shape(axes=3), d.choice(0, 1, 2, -1), ["x%d" % i for i in range(d.size(1, 4))]
    sized = []
    for name in names:
        own = list(shape)
        own[axis] = d.size()
        sized.append((name, d.floats(*own)))
    return Case({"X": sized}, {"Out": ["out"]}, {"axis": axis}, names)


@op("concat")
def _concat_told(d, kind):
    axis, shape = d.choice(0, 1, -1), d.shape(axes=2)
    names = ["x%d" % i for i in range(d.size(1, 3))]
    return Case({"X": [(n, d.floats(*shape)) for n in names], "AxisTensor": [("axis", whole(axis))]}, {"Out": ["out"]}, {"axis": 0}, names)


@op("concat")
def _concat_others(d, kind):
    if d.choice(True, False):
        return Case({"X": [("x0", d.ids(9, 2, 3)), ("x1", d.ids(9, 2, 1))]}, {"Out": ["out"]}, {"axis": -1})
    x, offsets = d.sequence(3)
    return Case({"X": [("x0", (x, offsets)), ("x1", (d.floats(len(x), 2), offsets))]}, {"Out": ["out"]}, {"axis": 1}, ["x0", "x1"])


@op("split")
def _split_told(d, kind):
    shape, names = [6, 6], ["out0", "out1"]
    inputs, attrs = {"X": [("x", d.floats(*shape))]}, {"axis": 1, "sections": [], "num": 0}
    if d.choice(True, False):
        inputs["AxisTensor"] = [("axis", whole(d.choice(0, 1)))]
    how = d.choice("num", "sections", "tensors")
    if how == "num":
        attrs["num"] = 2
    if how == "sections":
        attrs["sections"] = d.choice([2, 4], [5, -1])
    if how == "tensors":
        attrs["sections"] = [-1, -1]
        inputs["SectionsTensorList"] = [("part0", whole(4)), ("part1", whole(2))]
    return Case(inputs, {"Out": names}, attrs, ["x"])


@op("split")
def _split(d, kind):
    sections = d.choice([], [1, 3, 2], [2, -1])
    axis = d.choice(0, 1)  # Paddle's operator itself takes no axis from the end
    shape = d.shape(axes=2)
    shape[axis] = 6
    names = ["out%d" % i for i in range(len(sections) or 3)]
    return Case({"X": [("x", d.floats(*shape))]}, {"Out": names}, {"axis": axis, "sections": sections, "num": 0 if sections else 3}, ["x"])


@op("stack")
def _stack(d, kind):
    shape, names = d.shape(axes=2), ["x%d" % i for i in range(d.size(1, 4))]
    return Case({"X": [(n, d.floats(*shape)) for n in names]}, {"Y": ["out"]}, {"axis": d.choice(0, 1, 2, -1)}, names)


@op("unstack")
def _unstack(d, kind):
    shape, axis = d.shape(axes=3), d.choice(0, 1, -1)
    names = ["out%d" % i for i in range(shape[axis])]
    return Case({"X": [("x", d.floats(*shape))]}, {"Y": names}, {"axis": axis, "num": shape[axis]}, ["x"])


@op("slice")
def _slice(d, kind):
    attrs = d.choice({"axes": [0], "starts": [1], "ends": [3], "decrease_axis": []},
                     {"axes": [1], "starts": [-3], "ends": [100], "decrease_axis": []},
                     {"axes": [0, 1], "starts": [2, 1], "ends": [3, 4], "decrease_axis": [0]})
    starts, start_attrs = told(d, "starts", attrs["starts"], "StartsTensor", "StartsTensorList")
    ends, end_attrs = told(d, "ends", attrs["ends"], "EndsTensor", "EndsTensorList")
    attrs = {**attrs, **start_attrs, **end_attrs, "infer_flags": [-1 if starts or ends else 1] * len(attrs["axes"])}
    return Case({"Input": [("input", d.floats(4, 5))], **starts, **ends}, {"Out": ["out"]}, attrs, ["input"])


@op("strided_slice")
def _strided_slice(d, kind):
    attrs = d.choice({"axes": [0], "starts": [1], "ends": [6], "strides": [2]},
                     {"axes": [1], "starts": [-1], "ends": [-5], "strides": [-2]},
                     {"axes": [0, 1], "starts": [6, 0], "ends": [1, 100], "strides": [-3, 2]},
                     {"axes": [1, 0], "starts": [0, 2], "ends": [5, 3], "strides": [1, 1], "decrease_axis": [0]})
    inputs = {"Input": [("input", d.floats(7, 5, 2))]}
    told_attrs = {"infer_flags": [1] * len(attrs["axes"]), "decrease_axis": attrs.get("decrease_axis", [])}
    if "decrease_axis" in attrs:  # with tensors Paddle does not see that the axis is of size 1; its gradient fails
        return Case(inputs, {"Out": ["out"]}, {**told_attrs, **attrs})
    for name, tensor in (("starts", "Starts"), ("ends", "Ends"), ("strides", "Strides")):
        more, given = told(d, name, attrs[name], tensor + "Tensor", tensor + "TensorList")
        inputs.update(more)
        told_attrs.update(given)
        if more:
            told_attrs["infer_flags"] = [-1] * len(attrs["axes"])
    return Case(inputs, {"Out": ["out"]}, {**told_attrs, "axes": attrs["axes"]}, ["input"])


@op("gather")
def _gather_told(d, kind):
    # Paddle describes Out wrongly, so that nothing can be computed from it, not even a gradient.
    return one({"X": d.floats(1, 4, 2), "Index": d.ids(4, d.size()), "Axis": whole(1)}, {"axis": 0}, grad=False)


@op("gather")
def _gather_whole(d, kind):
    return one({"X": d.ids(90, 4, 2), "Index": d.ids(4, d.size()).astype(np.int32)}, {"axis": 0}, grad=False)


@op("gather")
def _gather(d, kind):
    axis, shape = d.choice(0, 1), d.shape(low=2, axes=3)
    if axis == 1:
        shape[0] = 1  # Paddle's gradient along axis 1 repeats that of the first row
    return one({"X": d.floats(*shape), "Index": d.ids(shape[axis], d.size())}, {"axis": axis})


@op("gather_nd")
def _gather_nd(d, kind):
    return one({"X": d.floats(4, 3, 2), "Index": np.stack([d.ids(4, 5), d.ids(3, 5)], 1)})


@op("index_select")
def _index_select(d, kind):
    return one({"X": d.floats(4, 3), "Index": d.ids(3, d.size())}, {"dim": 1})


@op("one_hot_v2")
def _one_hot_v2(d, kind):
    more = d.choice({}, {"depth_tensor": whole(5)})
    return one({"X": d.ids(4, *d.shape(axes=2)), **more}, {"depth": 4, "dtype": 5}, grad=False)


@op("rnn")
def _rnn(d, kind):
    mode, layers, directions = d.choice("LSTM", "GRU", "RNN_TANH", "RNN_RELU"), d.size(1, 2), d.size(1, 2)
    steps, rows, width, hidden = d.size(1, 4), d.size(), d.size(), d.size()
    gates, cells = {"LSTM": 4, "GRU": 3}.get(mode, 1), layers * directions
    states = ["state%d" % i for i in range(2 if mode == "LSTM" else 1)]
    weights = []
    for cell in range(cells):
        weights += [(gates * hidden, hidden * directions if cell >= directions else width), (gates * hidden, hidden)]
    weights += [(gates * hidden,)] * (2 * cells)
    inputs = {"Input": [("x", d.floats(steps, rows, width))], "PreState": [("first_" + s, d.floats(cells, rows, hidden)) for s in states],
              "WeightList": [("w%d" % i, d.floats(*shape)) for i, shape in enumerate(weights)]}
    if d.choice(True, False):
        inputs["SequenceLength"] = [("lengths", (d.ids(steps, rows) + 1).astype(np.int32))]
        inputs["SequenceLength"][0][1][0] = steps
        if directions == 2 and mode.startswith("RNN"):
            # Of rows that are shorter than others, Paddle's weights miss what the first state of the way back gives.
            inputs["PreState"] = [(name, np.zeros_like(state)) for name, state in inputs["PreState"]]
    grad = ["x"] + [name for name, _ in inputs["PreState"] + inputs["WeightList"]]
    return Case(inputs, {"Out": ["out"], "State": states, "Reserve": ["reserve"], "DropoutState": ["dropped"]},
                {"mode": mode, "num_layers": layers, "is_bidirec": directions == 2, "input_size": width, "hidden_size": hidden, "dropout_prob": 0.0,
                 "is_test": False, "seed": 0}, grad, ["out"] + states)


@op("coalesce_tensor")
def _coalesce_tensor(d, kind):
    names = ["x%d" % i for i in range(d.size(1, 3))]
    return Case({"Input": [(n, d.floats(*d.shape())) for n in names]}, {"Output": names, "FusedOutput": ["out"]},
                {"copy_data": True, "use_align": False, "dtype": 5})


@op("shape", "size")
def _shape(d, kind):
    return one({"Input": d.floats(*d.shape())}, grad=False)


@op("fill_any_like")
def _fill_any_like(d, kind):
    return one({"X": d.floats(*d.shape())}, {"value": 1.5, "dtype": d.choice(-1, 3, 5)}, grad=False)


@op("fill_zeros_like")
def _fill_zeros_like(d, kind):
    return one({"X": d.floats(*d.shape())}, grad=False)


@op("fill_constant")
def _fill_constant(d, kind):
    dtype = d.choice(2, 3, 5)
    inputs, attrs = told(d, "shape", d.shape(), "ShapeTensor", "ShapeTensorList")
    if d.choice(True, False):
        inputs["ValueTensor"] = [("value", np.array([7], {2: np.int32, 3: np.int64, 5: np.float32}[dtype]))]
    return Case(inputs, {"Out": ["out"]}, {**attrs, "dtype": dtype, "value": 3.0})


@op("fill_constant_batch_size_like")
def _fill_batch(d, kind):
    return one({"Input": d.floats(d.size(), 3)}, {"shape": [-1, 4], "dtype": d.choice(3, 5), "value": 2.0, "input_dim_idx": 0, "output_dim_idx": 0}, grad=False)


@op("assign_value")
def _assign_value(d, kind):
    dtype = d.choice(2, 3, 5)
    name = {2: "int32_values", 3: "int64_values", 5: "fp32_values"}[dtype]
    values = [float(v) for v in d.floats(6)] if dtype == 5 else d.ids(9, 6).tolist()
    return one({}, {"shape": [2, 3], "dtype": dtype, name: values}, grad=False)


@op("range")
def _range(d, kind):
    return one({"Start": np.array([d.size()], np.int64), "End": np.array([12], np.int64), "Step": np.array([d.size()], np.int64)}, grad=False)


# ---------------------------------------------------------------------------------------------------------------------
# Sequences


@op("sequence_pool")
def _sequence_pool(d, kind):
    offsets = d.lod(least=1) + []
    offsets.insert(1, offsets[1] if d.choice(True, False) and offsets[-1] > len(offsets) else 0)  # an empty one
    offsets = offsets if offsets[-1] >= len(offsets) - 1 else offsets[1:]
    return one({"X": (d.distinct(offsets[-1], 3), offsets)}, {"pooltype": d.choice("SUM", "AVERAGE", "SQRT", "MAX", "FIRST", "LAST"), "pad_value": d.choice(0.0, -1.5)},
               more={"MaxIndex": ["index"]})


@op("sequence_softmax")
def _sequence_softmax(d, kind):
    return one({"X": d.sequence(1, least=1)})


@op("sequence_expand", "sequence_expand_as")
def _sequence_expand(d, kind):
    y = d.sequence(2, least=1)
    rows = len(y[1]) - 1
    if kind == "sequence_expand" and d.choice(True, False):
        x = d.sequence(3, sequences=rows)
    else:
        x = d.floats(rows, 3)
    return one({"X": x, "Y": y}, {"ref_level": d.choice(-1, 0)} if kind == "sequence_expand" else {}, grad=["x"])


@op("sequence_concat")
def _sequence_concat(d, kind):
    rows, names = d.size(), ["x%d" % i for i in range(d.size(2, 3))]
    return Case({"X": [(n, d.sequence(2, sequences=rows)) for n in names]}, {"Out": ["out"]}, {}, names)


@op("sequence_mask")
def _sequence_mask(d, kind):
    more = d.choice({}, {"MaxLenTensor": whole(6)})
    return one({"X": d.ids(5, d.size(), 1).reshape(-1) + 1, **more}, {"maxlen": d.choice(-1, 7), "out_dtype": d.choice(2, 3, 5)}, grad=False, out="Y")


@op("sequence_pad")
def _sequence_pad(d, kind):
    x = d.sequence(2)
    return one({"X": x, "PadValue": d.floats(*d.choice((1,), (2,)))}, {"padded_length": d.choice(-1, 6)}, grad=["x"],
               more={"Length": ["length"]}, check=["out", "length"])


@op("sequence_unpad")
def _sequence_unpad(d, kind):
    n = d.size()
    return one({"X": d.floats(n, 4, 2), "Length": d.ids(4, n) + 1}, grad=["x"])


@op("sequence_reverse")
def _sequence_reverse(d, kind):
    return one({"X": d.sequence(2)}, out="Y")


@op("sequence_conv")
def _sequence_conv(d, kind):
    x, length = d.sequence(3, least=1), d.size(1, 4)
    return one({"X": x, "Filter": d.floats(3 * length, d.size())}, {"contextLength": length, "contextStart": -d.size(0, length - 1), "contextStride": 1})


@op("lod_reset")
def _lod_reset(d, kind):
    x = d.sequence(2)
    wanted = sorted([0, len(x[0])] + d.ids(len(x[0]) + 1, d.size(1, 2)).tolist())
    how = d.choice("sequences", "numbers", "told")
    told = {"sequences": {"Y": (d.floats(len(x[0]), 1), wanted)}, "numbers": {"Y": np.array(wanted, np.int32)}, "told": {}}[how]
    return one({"X": x, **told}, {"target_lod": wanted} if how == "told" else {}, grad=["x"])


@op("sequence_reshape")
def _sequence_reshape(d, kind):
    return one({"X": d.sequence(4)}, {"new_dim": d.choice(2, 4, 1)})


@op("sequence_slice")
def _sequence_slice(d, kind):
    x = d.sequence(2, least=3)
    rows = len(x[1]) - 1
    return one({"X": x, "Offset": d.ids(2, rows, 1), "Length": d.ids(2, rows, 1) + 1})


@op("sequence_enumerate")
def _sequence_enumerate(d, kind):
    offsets = d.lod()
    return one({"X": (d.ids(9, offsets[-1], 1), offsets)}, {"win_size": d.size(2, 3), "pad_value": 0}, grad=False)


@op("lookup_table", "lookup_table_v2")
def _lookup(d, kind):
    shape = (5, 1) if kind == "lookup_table" else d.choice((5, 1), (4, 2), (3,))
    numbers = d.ids(6, *shape)
    sequence = kind == "lookup_table" or shape[-1] == 1 and len(shape) == 2
    return one({"Ids": (numbers, [0, 2, 2, len(numbers)]) if sequence else numbers, "W": d.floats(6, 3)},
               {"padding_idx": d.choice(-1, 2), "is_sparse": d.choice(True, False)}, grad=["w"])


@op("merge_selected_rows", "get_tensor_from_selected_rows")
def _rows(d, kind):
    rows = d.ids(5, 6).tolist() if kind.startswith("merge") else [3, 0, 4]
    sparse = ["out"] if kind.startswith("merge") else []
    return Case({"X": [("x", Rows(5, rows, d.floats(len(rows), 2)))]}, {"Out": ["out"]}, sparse=sparse)


@op("hash")
def _hash(d, kind):
    offsets = d.lod()
    return one({"X": (d.ids(1000, offsets[-1], d.choice(1, 2, 5, 9)), offsets)}, {"num_hash": d.size(1, 3), "mod_by": 1000}, grad=False)


@op("cvm")
def _cvm(d, kind):
    n, use = d.size(), d.choice(True, False)
    clicks = d.floats(n, 2, low=0, high=5)
    x = np.concatenate([clicks, d.floats(n, 4)], 1)
    return one({"X": x, "CVM": clicks}, {"use_cvm": use}, grad=["x"], out="Y")


# ---------------------------------------------------------------------------------------------------------------------
# Normalisation


@op("batch_norm")
def _batch_norm(d, kind):
    c = d.size(2)
    shape = d.choice((d.size(3, 6), c), (3, c, 2, 2))
    inputs = {"X": d.floats(*shape), "Scale": d.floats(c), "Bias": d.floats(c), "Mean": d.floats(c), "Variance": d.floats(c, low=0.5, high=2)}
    test = d.choice(True, False)
    outputs = {"Y": ["out"], "MeanOut": ["mean"], "VarianceOut": ["variance"], "SavedMean": ["saved_mean"], "SavedVariance": ["saved_variance"], "ReserveSpace": ["reserve"]}
    return Case({p: [(p.lower(), v)] for p, v in inputs.items()}, outputs,
                {"momentum": 0.8, "epsilon": 1e-5, "is_test": False, "use_global_stats": test, "data_layout": "NCHW"},
                ["x", "scale", "bias"], ["out", "mean", "variance"], ["out"])


@op("batch_norm")
def _batch_norm_told(d, kind):
    case = _batch_norm(d, kind)
    case.inputs["MomentumTensor"] = [("momentum", np.array([0.3], np.float32))]
    return case


@op("layer_norm")
def _layer_norm(d, kind):
    shape = d.shape(low=2, axes=3)
    axis = d.choice(1, 2)
    n = int(np.prod(shape[axis:]))
    inputs = {"X": d.floats(*shape)}
    if d.choice(True, False):
        inputs.update({"Scale": d.floats(n), "Bias": d.floats(n)})
    return one(inputs, {"epsilon": 1e-5, "begin_norm_axis": axis}, out="Y", more={"Mean": ["mean"], "Variance": ["variance"]}, check=["out", "mean", "variance"])


@op("data_norm")
def _data_norm(d, kind):
    n, c = d.size(2), d.size(2)
    size, square = d.floats(c, low=5, high=9), d.floats(c, low=2, high=9)
    inputs = {"X": d.floats(n, c), "BatchSize": size, "BatchSum": d.floats(c), "BatchSquareSum": square}
    return one(inputs, {"epsilon": 1e-4}, out="Y", more={"Means": ["means"], "Scales": ["scales"]}, check=["out", "means", "scales"])


@op("data_norm")
def _data_norm_slots(d, kind):
    n, c = d.size(2), 6
    x = d.away(n, c)
    x[0, 0] = x[-1, 3] = 0  # never shown
    inputs = {"X": x, "BatchSize": d.floats(c, low=5, high=9), "BatchSum": d.floats(c), "BatchSquareSum": d.floats(c, low=2, high=9)}
    return one(inputs, {"epsilon": 1e-4, "slot_dim": 3}, out="Y", more={"Means": ["means"], "Scales": ["scales"]}, check=["out", "means", "scales"])


@op("norm")
def _norm(d, kind):
    return one({"X": d.floats(*d.shape(axes=3))}, {"axis": d.choice(0, 1, -1), "epsilon": 1e-10}, more={"Norm": ["norm"]}, check=["out", "norm"])


@op("p_norm")
def _p_norm(d, kind):
    return one({"X": d.away(*d.shape(axes=3))}, {"porder": d.choice(1.0, 2.0, 3.0), "axis": d.choice(0, 1, -1), "keepdim": d.choice(True, False), "epsilon": 1e-12, "asvector": False})


@op("conv2d")
def _conv2d(d, kind):
    c = d.size()
    return Case({"Input": [("x", d.floats(d.size(), c, d.size(), d.size()))], "Filter": [("w", d.floats(d.size(), c, 1, 1))]}, {"Output": ["out"]},
                {"strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1], "groups": 1, "data_format": "NCHW", "padding_algorithm": "EXPLICIT"}, ["x", "w"])


@op("conv2d", "depthwise_conv2d")
def _conv2d_window(d, kind):
    last = kind == "conv2d" and d.choice(True, False)
    groups = 1 if last else 3 if kind == "depthwise_conv2d" else d.choice(1, 3)
    channels = 3 if groups == 3 else d.size()
    how, height, width = d.choice("EXPLICIT", "SAME", "VALID"), d.size(4, 7), d.size(4, 7)
    x = [d.size(1, 3), height, width, channels] if last else [d.size(1, 3), channels, height, width]
    attrs = {"strides": [d.size(1, 2), d.size(1, 3)], "paddings": d.choice([1, 0], [0, 1, 2, 1]), "dilations": [d.size(1, 2), 1], "groups": groups,
             "data_format": "NHWC" if last else "NCHW", "padding_algorithm": how}
    if kind == "depthwise_conv2d":
        attrs["use_cudnn"] = False
    return Case({"Input": [("x", d.floats(*x))], "Filter": [("w", d.floats(groups * d.size(1, 2), channels // groups, d.size(1, 2), d.size(1, 3)))]},
                {"Output": ["out"]}, attrs, ["x", "w"])


@op("pool2d")
def _pool2d(d, kind):
    how, last = d.choice("max", "avg"), d.choice(True, False)
    adaptive = how == "avg" and d.choice(True, False)  # of max, Paddle looks at other pixels than the window's
    x = [d.size(1, 3), d.size(4, 7), d.size(4, 7), d.size()]
    x = x if last else [x[0], x[3], x[1], x[2]]
    attrs = {"pooling_type": how, "ksize": [d.size(2, 3), d.size(2, 3)], "strides": [d.size(1, 2), d.size(1, 3)], "paddings": d.choice([0, 0], [1, 1], [0, 1, 1, 0]),
             "padding_algorithm": d.choice("EXPLICIT", "SAME", "VALID"), "adaptive": adaptive, "global_pooling": not adaptive and d.choice(True, False, False),
             "exclusive": d.choice(True, False), "ceil_mode": d.choice(True, False), "data_format": "NHWC" if last else "NCHW"}
    return one({"X": d.distinct(*x)}, attrs)


@op("dropout")
def _dropout(d, kind):
    shape = d.shape(axes=d.size(2, 4))  # with one axis Paddle fails
    return one({"X": d.floats(*shape)}, {"dropout_prob": 0.25, "is_test": True, "dropout_implementation": d.choice("downgrade_in_infer", "upscale_in_train")},
               grad=False, more={"Mask": ["mask"]})


# ---------------------------------------------------------------------------------------------------------------------
# Losses and metrics


@op("cross_entropy")
def _cross_entropy(d, kind):
    n, c, soft = d.size(), d.size(2), d.choice(True, False)
    return one({"X": d.simplex(n, c), "Label": d.simplex(n, c) if soft else d.ids(c, n, 1)}, {"soft_label": soft, "ignore_index": -100}, grad=["x"], out="Y")


@op("cross_entropy2")
def _cross_entropy2(d, kind):
    n, c = d.size(), d.size(2)
    return one({"X": d.simplex(n, c), "Label": d.ids(c, n, 1)}, {"ignore_index": -100}, grad=["x"], out="Y", more={"MatchX": ["match"], "XShape": ["x_shape"]})


@op("softmax_with_cross_entropy")
def _softmax_ce(d, kind):
    n, c, soft = d.size(), d.size(2), d.choice(True, False)
    label = d.simplex(n, c) if soft else d.ids(c, n, 1)
    return Case({"Logits": [("x", d.floats(n, c, low=-3, high=3))], "Label": [("label", label)]}, {"Softmax": ["softmax"], "Loss": ["loss"]},
                {"soft_label": soft, "ignore_index": -100, "axis": -1}, ["x"], of=["loss"])


@op("softmax_with_cross_entropy")
def _softmax_ce_forms(d, kind):
    n, c = d.size(2), d.size(2)
    how = d.choice("ignored", "three", "flat", "done")
    shape, labels = ((n, 2, c), (n, 2, 1)) if how == "three" else ((n, c), (n, 1))
    label = d.ids(c, *labels)
    if how == "ignored":
        label.reshape(-1)[0] = 1
    logits = d.simplex(*shape) if how == "done" else d.floats(*shape, low=-3, high=3)
    return Case({"Logits": [("x", logits)], "Label": [("label", label)]}, {"Softmax": ["softmax"], "Loss": ["loss"]},
                {"soft_label": False, "ignore_index": 1 if how == "ignored" else -100, "axis": -1, "use_softmax": how != "done"}, ["x"],
                check=["loss"], of=["loss"])


@op("softmax_with_cross_entropy")
def _softmax_ce_axis(d, kind):
    shape, axis, soft = d.shape(low=2, axes=3), d.choice(0, 1, -2), d.choice(True, False)
    labels = list(shape)
    labels[axis] = 1
    label = np.moveaxis(d.simplex(*np.moveaxis(np.empty(shape), axis, -1).shape), -1, axis) if soft else d.ids(shape[axis], *labels)
    return Case({"Logits": [("x", d.floats(*shape, low=-3, high=3))], "Label": [("label", np.ascontiguousarray(label))]}, {"Softmax": ["softmax"], "Loss": ["loss"]},
                {"soft_label": soft, "ignore_index": -100, "axis": axis}, ["x"], of=["loss"])


@op("cross_entropy", "cross_entropy2")
def _cross_entropy_forms(d, kind):
    n, c = d.size(2), d.size(2)
    shape = d.choice((n, c), (2, n, c))
    more = {"MatchX": ["match"], "XShape": ["x_shape"]} if kind == "cross_entropy2" else {}
    return one({"X": d.simplex(*shape), "Label": d.ids(c, *shape[:-1], 1)}, {"ignore_index": d.choice(0, 1), **({} if more else {"soft_label": False})},
               grad=["x"], out="Y", more=more)


@op("sigmoid_cross_entropy_with_logits")
def _sigmoid_ce_ignored(d, kind):
    label = d.ids(2, 4, 3).astype(np.float32)
    label[0, 0], label[2, 1] = -1, -1
    return one({"X": d.floats(4, 3, low=-9, high=9), "Label": label}, {"ignore_index": -1, "normalize": d.choice(True, False)}, grad=["x"])


@op("log_loss")
def _log_loss(d, kind):
    n = d.size()
    return one({"Predicted": d.floats(n, 1, low=0.05, high=0.95), "Labels": d.ids(2, n, 1).astype(np.float32)}, {"epsilon": 1e-4}, grad=["predicted"], out="Loss")


@op("sigmoid_cross_entropy_with_logits")
def _sigmoid_ce(d, kind):
    n = d.size()
    return one({"X": d.floats(n, 2, low=-9, high=9), "Label": d.ids(2, n, 2).astype(np.float32)}, {"ignore_index": -100, "normalize": d.choice(True, False)}, grad=["x"])


@op("sigmoid_cross_entropy_with_logits")
def _sigmoid_ce_weighted(d, kind):
    n = d.size()
    return one({"X": d.floats(n, 2, low=-9, high=9), "Label": d.floats(n, 2, low=0), "pos_weight": d.floats(n, 2, low=0.5, high=3)},
               {"ignore_index": -100, "normalize": False}, grad=["x"])


@op("teacher_student_sigmoid_loss")
def _teacher_student(d, kind):
    n = d.size(3, 6)
    label = np.array([[d.choice(-2.0, -1.0, 0.3, 0.8, 1.0, 1.4)] for _ in range(n)], np.float32)
    return one({"X": d.floats(n, 1, low=-4, high=4), "Label": label}, {"soft_max_up_bound": 3.0, "soft_max_lower_bound": -3.0}, grad=["x"], out="Y")


@op("hinge_loss")
def _hinge(d, kind):
    n = d.size()
    return one({"Logits": d.away(n, 1), "Labels": d.ids(2, n, 1).astype(np.float32)}, grad=["logits"], out="Loss")


@op("kldiv_loss")
def _kldiv(d, kind):
    shape = d.shape(low=2, axes=d.size(2, 3))
    target = d.simplex(*shape)
    target.reshape(-1)[0] = 0
    return one({"X": np.log(d.simplex(*shape)), "Target": target}, {"reduction": d.choice("none", "mean", "sum", "batchmean")}, grad=["x"], out="Loss")


@op("nll_loss")
def _nll(d, kind):
    n, c = d.size(2), d.size(2)
    shape = d.choice((n, c), (n, c, 2, 3))
    label = d.ids(c, n, *shape[2:])
    label.reshape(-1)[0] = 1
    more = d.choice({}, {"Weight": d.floats(c, low=0.5, high=2)})
    # With a sum, Paddle 2.6 writes beyond its memory now and then.
    return one({"X": np.log(d.simplex(*shape)).astype(np.float32), "Label": label, **more},
               {"ignore_index": d.choice(-100, 1), "reduction": d.choice("none", "mean")}, grad=["x"], more={"Total_weight": ["total"]}, check=["out", "total"])


@op("label_smooth")
def _label_smooth(d, kind):
    n, c = d.size(), d.size(2)
    return one({"X": d.simplex(n, c), **d.choice({}, {"PriorDist": d.simplex(1, c)})}, {"epsilon": d.choice(0.1, 0.3)}, grad=["x"])


@op("bce_loss")
def _bce_loss(d, kind):
    n = d.size()
    return one({"X": d.floats(n, 2, low=0.05, high=0.95), "Label": d.ids(2, n, 2).astype(np.float32)}, grad=["x"])


@op("huber_loss")
def _huber(d, kind):
    n = d.size()
    return one({"X": d.floats(n, 1, low=-3, high=3), "Y": d.floats(n, 1)}, {"delta": 0.7}, more={"Residual": ["residual"]}, check=["out", "residual"])


@op("nce")
def _nce(d, kind):
    n, width, classes = 4, d.size(), d.size(2, 4)
    # Aliases by which nothing but class 0 is drawn, so that it is known what is.
    alias = np.zeros(classes, np.int32)
    alias[0] = -1
    inputs = {"Input": d.floats(n, width), "Label": d.ids(classes, n, d.size(1, 2)), "Weight": d.floats(classes, width),
              "CustomDistProbs": d.simplex(classes), "CustomDistAlias": alias, "CustomDistAliasProbs": np.zeros(classes, np.float32)}
    if d.choice(True, False):
        inputs["Bias"] = d.floats(classes, 1)
    if d.choice(True, False):
        inputs["SampleWeight"] = d.floats(n, 1, low=0.5, high=2)
    return one(inputs, {"num_total_classes": classes, "num_neg_samples": 3, "sampler": 2, "seed": 7, "is_sparse": False},
               grad=[name.lower() for name in ("Input", "Weight", "Bias") if name in inputs], out="Cost",
               more={"SampleLogits": ["logits"], "SampleLabels": ["labels"]}, check=["out", "logits", "labels"])


@op("hierarchical_sigmoid")
def _hierarchical_sigmoid(d, kind):
    n, width, classes = d.size(), d.size(), d.size(2, 9)
    told = d.choice(True, False)
    inputs = {"X": d.floats(n, width, low=-2, high=2), "W": d.floats(classes - 1, width), "Label": d.ids(classes, n, 1)}
    if told:  # trees of another shape: any ways over the nodes, -1 behind their ends
        ways = d.ids(classes - 1, n, 3)
        ways[:, 2] = np.where(d.bools(n), ways[:, 2], -1)
        inputs.update(PathTable=ways, PathCode=d.ids(2, n, 3))
    if d.choice(True, False):
        inputs["Bias"] = d.floats(classes - 1, 1)
    grad = [name.lower() for name in ("X", "W", "Bias") if name in inputs]
    return one(inputs, {"num_classes": classes, "is_sparse": False}, grad=grad, more={"PreOut": ["pre"], "W_Out": ["w_out"]}, check=["out", "pre"])


@op("bpr_loss")
def _bpr(d, kind):
    n, c = d.size(), d.size(2)
    return one({"X": d.floats(n, c), "Label": d.ids(c, n, 1)}, grad=["x"], out="Y")


@op("rank_loss")
def _rank(d, kind):
    n = d.size()
    return one({"Label": d.ids(2, n, 1).astype(np.float32), "Left": d.floats(n, 1), "Right": d.floats(n, 1)}, grad=["left", "right"])


@op("top_k", "top_k_v2")
def _top_k(d, kind):
    n, c = d.size(), d.size(3)
    attrs = {"k": d.size(1, 3)} if kind == "top_k" else {"k": d.size(1, 3), "axis": -1, "largest": d.choice(True, False), "sorted": True}
    more = d.choice({}, {"K": whole(2)})
    # With K, Paddle describes Out by the attribute, so that nothing can be computed from it.
    return one({"X": d.distinct(n, c), **more}, attrs, grad=False if more else ["x"], more={"Indices": ["indices"]}, check=["out", "indices"])


@op("top_k_v2")
def _top_k_axis(d, kind):
    shape = d.shape(low=3, axes=3)
    return one({"X": d.distinct(*shape)}, {"k": d.size(1, 3), "axis": d.choice(0, 1, 2, -2), "largest": d.choice(True, False), "sorted": True},
               more={"Indices": ["indices"]}, check=["out", "indices"])


@op("accuracy")
def _accuracy(d, kind):
    n = d.size()
    scores = d.distinct(n, 4)
    order = np.argsort(-scores, 1)[:, :2].astype(np.int64)
    return Case({"Out": [("top", -np.sort(-scores, 1)[:, :2])], "Indices": [("indices", order)], "Label": [("label", d.ids(4, n, 1))]},
                {"Accuracy": ["accuracy"], "Correct": ["correct"], "Total": ["total"]})


@op("auc")
def _auc(d, kind):
    n, buckets, slide = d.size(3, 9), 16, d.choice(0, 1, 2)
    size = (1, buckets) if slide == 0 else ((slide + 1) * buckets + 1,)
    return Case({"Predict": [("p", d.simplex(n, 2))], "Label": [("label", d.ids(2, n, 1))], "StatPos": [("pos", np.zeros(size, np.int64))],
                 "StatNeg": [("neg", np.zeros(size, np.int64))]}, {"AUC": ["auc"], "StatPosOut": ["pos"], "StatNegOut": ["neg"]},
                {"curve": "ROC", "num_thresholds": buckets - 1, "slide_steps": slide})


# ---------------------------------------------------------------------------------------------------------------------
# Updates

RULES = {
    "sgd": ([], [], [{}]),
    "lars_momentum": ([("Velocity", "VelocityOut")], [], [{"mu": 0.9, "lars_coeff": 0.05, "lars_weight_decay": [0.01], "epsilon": 1e-6},
                      {"mu": 0.9, "lars_coeff": 0.05, "lars_weight_decay": [0.0], "epsilon": 0.0}]),
    "momentum": ([("Velocity", "VelocityOut")], [], [{"mu": 0.9, "use_nesterov": False}, {"mu": 0.9, "use_nesterov": True},
                 {"mu": 0.8, "use_nesterov": False, "regularization_method": "l2_decay", "regularization_coeff": 0.1},
                 {"mu": 0.8, "use_nesterov": True, "regularization_method": "l2_decay", "regularization_coeff": 0.1}]),
    "adagrad": ([("Moment", "MomentOut")], [], [{"epsilon": 1e-6}]),
    "decayed_adagrad": ([("Moment", "MomentOut")], [], [{"epsilon": 1e-6, "decay": 0.9}]),
    "adam": ([("Moment1", "Moment1Out"), ("Moment2", "Moment2Out")], [("Beta1Pow", "Beta1PowOut", 0.9), ("Beta2Pow", "Beta2PowOut", 0.999)],
             [{"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "lazy_mode": True}, {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "lazy_mode": False}]),
    "adamw": ([("Moment1", "Moment1Out"), ("Moment2", "Moment2Out")], [("Beta1Pow", "Beta1PowOut", 0.9), ("Beta2Pow", "Beta2PowOut", 0.999)],
              [{"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "coeff": 0.1, "with_decay": True, "lr_ratio": 0.5}, {"coeff": 0.1, "with_decay": False, "epsilon": 1e-4}]),
    "ftrl": ([("SquaredAccumulator", "SquaredAccumOut"), ("LinearAccumulator", "LinearAccumOut")], [], [{"l1": 0.3, "l2": 0.05, "lr_power": -0.5}]),
    "adadelta": ([("AvgSquaredGrad", "AvgSquaredGradOut"), ("AvgSquaredUpdate", "AvgSquaredUpdateOut")], [], [{"rho": 0.9, "epsilon": 1e-4}]),
    # Its power is moved on by another operator.
    "adamax": ([("Moment", "MomentOut"), ("InfNorm", "InfNormOut")], [("Beta1Pow", None, 0.81)], [{"beta1": 0.9, "beta2": 0.99, "epsilon": 1e-4}]),
    "lamb": ([("Moment1", "Moment1Out"), ("Moment2", "Moment2Out")], [("Beta1Pow", "Beta1PowOut", 0.81), ("Beta2Pow", "Beta2PowOut", 0.998)],
             [{"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-4, "weight_decay": decay, "always_adapt": always}
              for decay, always in ((0.1, False), (0.0, False), (0.0, True))]),
    "rmsprop": ([("MeanSquare", "MeanSquareOut"), ("Moment", "MomentOut")], [], [{"epsilon": 1e-6, "decay": 0.9, "momentum": 0.5, "centered": False}]),
}
DENSE_ONLY = ("decayed_adagrad", "lars_momentum", "adamw", "adadelta", "adamax")


@op(*RULES)
def _update(d, kind):
    states, scalars, attrs = RULES[kind]
    height, width = d.size(2), d.size()
    inputs = {"Param": [("w", d.floats(height, width))], "LearningRate": [("lr", np.array([0.1], np.float32))]}
    outputs = {"ParamOut": ["w"]}
    for name, out in states:
        low = 0.5 if name in ("MeanSquare", "Moment", "Moment2", "SquaredAccumulator", "AvgSquaredGrad", "AvgSquaredUpdate", "InfNorm") else 0.0
        inputs[name] = [(name.lower(), d.floats(height, width, low=low, high=low + 0.5))]
        outputs[out] = [name.lower()]
    for name, out, start in scalars:
        inputs[name] = [(name.lower(), np.array([start], np.float32))]
        if out is not None:
            outputs[out] = [name.lower()]
    chosen = dict(d.choice(*attrs))
    if kind == "rmsprop":
        chosen["centered"] = d.choice(True, False)
        inputs["MeanGrad"] = [("meangrad", d.floats(height, width, low=0, high=0.3))]
        outputs["MeanGradOut"] = ["meangrad"]
    if kind not in DENSE_ONLY and d.choice(True, False):
        rows = d.ids(height, d.size(1, 6)).tolist()
        # Paddle's rmsprop and momentum find rows by bisection, whatever their order.
        rows = sorted(set(rows)) if kind in ("rmsprop", "momentum") else rows
        grad = Rows(height, rows, d.floats(len(rows), width))
    else:
        grad = d.floats(height, width)
    return Case({**inputs, "Grad": [("g", grad)]}, outputs, chosen)


@op("adam")
def _adam_told(d, kind):
    case = _update(d, kind)
    # A sparse gradient's other rows have another epsilon in Paddle, which a small one does not show.
    small = isinstance(case.inputs["Grad"][0][1], Rows) and not case.attrs["lazy_mode"]
    for name, value in (("Beta1Tensor", 0.8), ("Beta2Tensor", 0.95), ("EpsilonTensor", 1e-7 if small else 1e-3)):
        if d.choice(True, False):
            case.inputs[name] = [(name.lower(), np.array([value], np.float32))]
    if d.choice(True, False):
        case.inputs["SkipUpdate"] = [("skip", d.bools(1))]
    return case


@op("ftrl")
def _ftrl_power(d, kind):
    case = _update(d, kind)
    case.attrs["lr_power"] = d.choice(-0.3, -0.7)
    return case


@op("sum")
def _sum_sparse(d, kind):
    height, width = 5, d.size()
    sparse = lambda: Rows(height, d.ids(height, d.size(1, 4)).tolist(), d.floats(0, width))
    xs = [("x%d" % i, sparse()) for i in range(d.size(1, 3))]
    for _, rows in xs:
        rows.values = d.floats(len(rows.rows), width)
    dense = d.choice(True, False)
    if dense:
        xs.insert(0, ("dense", d.floats(height, width)))
    return Case({"X": xs}, {"Out": ["out"]}, sparse=[] if dense else ["out"])


# ---------------------------------------------------------------------------------------------------------------------


def array_of(value):
    return value.values if isinstance(value, Rows) else value[0] if isinstance(value, tuple) else value


def build(kind, case, weights):
    """Programs with the operator; with the shapes of its outputs (`weights`) the gradient follows."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    block = main.global_block()
    grads = []
    with paddle.static.program_guard(main, startup):
        ins, outs = {}, {}
        for parameter, variables in case.inputs.items():
            for name, value in variables:
                array = array_of(value)
                more = {"lod_level": int(isinstance(value, tuple))}
                shape = ([-1] + list(array.shape[1:])) if isinstance(value, tuple) else array.shape
                if isinstance(value, Rows):
                    more = {"type": paddle.base.core.VarDesc.VarType.SELECTED_ROWS}
                    shape = [value.height] + list(array.shape[1:])
                var = block.create_var(name=name, shape=shape, dtype=str(array.dtype), persistable=True, **more)
                var.stop_gradient = name not in case.grad
                ins.setdefault(parameter, []).append(name)
        for parameter, names in case.outputs.items():
            for name in names:
                if name not in block.vars:
                    more = {"type": paddle.base.core.VarDesc.VarType.SELECTED_ROWS} if name in case.sparse else {}
                    block.create_var(name=name, dtype="float32", **more)
                outs.setdefault(parameter, []).append(name)
        block.append_op(type=kind, inputs=ins, outputs=outs, attrs=dict(case.attrs))
        if weights and case.grad:
            parts = []
            for name, shape in weights.items():
                block.create_var(name=name + ".weight", shape=shape, dtype="float32", persistable=True).stop_gradient = True
                parts.append(paddle.sum(block.var(name) * block.var(name + ".weight")))
            grads = paddle.static.gradients(paddle.add_n(parts), [block.var(name) for name in case.grad])
    return main, grads


def fill(scope, name, value):
    var = scope.var(name)
    if isinstance(value, Rows):
        rows = var.get_selected_rows()
        rows.set_rows(value.rows)
        rows.set_height(value.height)
        rows.get_tensor().set(value.values, paddle.CPUPlace())
        return
    array, offsets = value if isinstance(value, tuple) else (value, None)
    var.get_tensor().set(array, paddle.CPUPlace())
    if offsets is not None:
        var.get_tensor().set_lod([offsets])


def dense(var):
    """A variable's values and LoD."""
    tensor = var.get_tensor()
    lod = tensor.lod()
    return np.array(tensor), (lod[0] if lod else None)


def spread(var):
    """The rows of a sparse gradient at their places in zeros."""
    rows = var.get_selected_rows()
    values = np.array(rows.get_tensor())
    out = np.zeros([rows.height()] + list(values.shape[1:]), np.float32)
    np.add.at(out, np.array(rows.rows()), values)
    return out, None


def execute(main, case, extra, wanted):
    """Runs the program; {name: (array, lod)} of the wanted variables."""
    scope = paddle.static.Scope()
    for variables in case.inputs.values():
        for name, value in variables:
            fill(scope, name, value)
    for name, value in extra.items():
        fill(scope, name, value)
    for name in wanted:
        main.global_block().var(name).persistable = True
    paddle.static.Executor(paddle.CPUPlace()).run(main, scope=scope)
    sparse = paddle.base.core.VarDesc.VarType.SELECTED_ROWS
    return {name: (spread if main.global_block().var(name).type == sparse else dense)(scope.find_var(name)) for name in wanted}


def write_tensor(path, array):
    desc = paddle.base.core.VarDesc  # numbers of types as Paddle writes them
    kinds = {"bool": desc.VarType.BOOL, "int32": desc.VarType.INT32, "int64": desc.VarType.INT64, "float32": desc.VarType.FP32,
             "float64": desc.VarType.FP64, "uint8": desc.VarType.UINT8}
    kind = int(kinds[str(array.dtype)])

    def varint(n):
        out = b""
        while n > 127:
            out += bytes([n & 127 | 128])
            n >>= 7
        return out + bytes([n])

    proto = b"\x08" + varint(kind) + b"".join(b"\x10" + varint(n) for n in array.shape)
    with open(path, "wb") as f:
        f.write(struct.pack("<IQIi", 0, 0, 0, len(proto)) + proto + np.ascontiguousarray(array).tobytes())


def write_case(folder, kind, case, draw):
    wanted = list(case.check)
    main, _ = build(kind, case, {})
    forward = execute(main, case, {}, wanted)
    weights = {name: list(forward[name][0].shape) for name in case.of if name in forward and forward[name][0].dtype == np.float32}
    main, grads = build(kind, case, weights)
    program = main.desc.serialize_to_string()
    extra = {name + ".weight": draw.floats(*shape) for name, shape in weights.items()} if case.grad else {}
    wanted += [g.name for g in grads if g is not None]
    answers = execute(main, case, extra, wanted)

    os.makedirs(folder)
    with open(os.path.join(folder, "program.bin"), "wb") as f:
        f.write(program)
    lines = ["op " + kind]
    inputs = {name: value for variables in case.inputs.values() for name, value in variables}
    for name, value in {**inputs, **extra}.items():
        write_tensor(os.path.join(folder, "in." + name), array_of(value))
        if isinstance(value, Rows):
            lines.append("rows %s %d %s" % (name, value.height, " ".join(map(str, value.rows))))
        elif isinstance(value, tuple):
            lines.append("in %s %s" % (name, " ".join(map(str, value[1]))))
        else:
            lines.append("in %s" % name)
    for name, (array, lod) in answers.items():
        write_tensor(os.path.join(folder, "out." + name), array)
        lines.append("out %s %s" % (name, " ".join(map(str, lod or []))))
    with open(os.path.join(folder, "case.txt"), "w") as f:
        f.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=4)
    parser.add_argument("--ops", default=".*")
    args = parser.parse_args()
    paddle.enable_static()
    for kind, makers in GENERATORS.items():
        if not re.fullmatch(args.ops, kind):
            continue
        for i in range(args.each):
            draw = Draw([args.seed, i, sum(map(ord, kind))])
            make = makers[i % len(makers)]
            try:
                write_case(os.path.join(args.out, "%s.%d" % (kind, i)), kind, make(draw, kind), draw)
            except Exception as error:
                raise SystemExit("%s, case %d, seed %d: %s" % (kind, i, args.seed, error)) from error


if __name__ == "__main__":
    main()
