#!/usr/bin/env python3
"""Writes tests/golden/ops/*.txt: what Paddle's own operators answer. See README.md beside this file."""
import itertools
import os
import sys

import numpy as np
import paddle

import random_ops
from random_ops import Rows

paddle.enable_static()
RNG = np.random.RandomState(20)
NUMBERS = np.array([[-3, 5, 0, 8], [9, -7, 4, 2]], np.int64)  # beside RNG, whose order all files share
OUT = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "golden", "ops")
NAMES = {"float32": "float32", "int64": "int64", "int32": "int32", "bool": "bool", "uint8": "uint8"}


def floats(*shape, low=-1.0, high=1.0):
    return RNG.uniform(low, high, shape).astype(np.float32)


def ids(high, *shape):
    return RNG.randint(0, high, shape).astype(np.int64)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)).astype(np.float32)


def text(array):
    flat = np.asarray(array).reshape(-1)
    if flat.dtype == np.float32:
        return " ".join("%.9g" % v for v in flat)
    return " ".join(str(int(v)) for v in flat)


class Golden:
    """One file of cases for one operator."""

    def __init__(self, op):
        self.op, self.lines = op, ["# made by scripts/golden/ops.py with paddle %s" % paddle.__version__]

    def save(self):
        with open(os.path.join(OUT, self.op + ".txt"), "w") as f:
            f.write("\n".join(self.lines) + "\n")

    def attr(self, name, value):
        kind, body = {
            bool: ("bool", lambda v: int(v)), int: ("int", str), float: ("float", lambda v: "%.9g" % v),
            str: ("string", str), list: ("ints", lambda v: " ".join(map(str, v)))}[type(value)]
        if isinstance(value, list) and value and isinstance(value[0], float):
            kind, body = "floats", lambda v: " ".join("%.9g" % number for number in v)
        self.lines.append(("attr %s %s %s" % (name, kind, body(value))).rstrip())

    def var(self, word, parameter, name, value):
        lod = None
        if isinstance(value, Rows):
            self.lines.append("%s %s %s rows %d %s" % (word, parameter, name, value.height, ",".join(map(str, value.rows))))
            self.lines.append(",".join(map(str, value.values.shape)) + " : " + text(value.values))
            return
        if isinstance(value, tuple):
            value, lod = value
        value = value.astype(np.float32) if value.dtype == np.float64 else value
        shape = ",".join(map(str, value.shape)) or "1"
        self.lines.append("%s %s %s %s %s%s" % (word, parameter, name, NAMES[str(value.dtype)], shape,
                                                 "" if lod is None else " lod " + ",".join(map(str, lod))))
        self.lines.append(text(value))


def run_paddle(op, attrs, steps, outputs, in_place):
    """Runs one Paddle operator over the inputs of each step; the values of its outputs after the last."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    scope = paddle.static.Scope()
    exe = paddle.static.Executor(paddle.CPUPlace())
    block = main.global_block()
    with paddle.static.program_guard(main, startup):
        ins = {}
        for parameter, variables in steps[0].items():
            for name, value in variables:
                array = value.values if isinstance(value, Rows) else value[0] if isinstance(value, tuple) else value
                kind = paddle.base.core.VarDesc.VarType.SELECTED_ROWS if isinstance(value, Rows) else None
                extra = {"type": kind} if kind else {"lod_level": int(isinstance(value, tuple))}
                shape = [value.height] + list(array.shape[1:]) if isinstance(value, Rows) else array.shape
                block.create_var(name=name, shape=shape, dtype=str(array.dtype), persistable=True, **extra)
                ins.setdefault(parameter, []).append(name)
        outs = {}
        for parameter, names in outputs.items():
            for name in names:
                if name not in block.vars:
                    block.create_var(name=name, persistable=True, dtype="float32")
                outs.setdefault(parameter, []).append(name)
        block.append_op(type=op, inputs=ins, outputs=outs, attrs=dict(attrs))
    for step in steps:
        for variables in step.values():
            for name, value in variables:
                var = scope.var(name)
                if isinstance(value, Rows):
                    rows = var.get_selected_rows()
                    rows.set_rows(value.rows)
                    rows.set_height(value.height)
                    rows.get_tensor().set(value.values, paddle.CPUPlace())
                    continue
                array, lod = value if isinstance(value, tuple) else (value, None)
                var.get_tensor().set(array, paddle.CPUPlace())
                if lod is not None:
                    var.get_tensor().set_lod([lod])
        exe.run(main, scope=scope)
    return {name: np.array(scope.find_var(name).get_tensor()) for names in outputs.values() for name in names}


def case(golden, title, steps, outputs, attrs=None, check=None, paddle_op=None, ours=None, expected=None, paddle_attrs=None):
    """Adds a case: inputs of each step as {parameter: [(name, value)]}, outputs as {parameter: [names]}.

    `check` names the outputs to compare (default: all); `ours` replaces the steps as we write them; `expected` gives
    the values where Paddle has no such operator.
    """
    attrs = attrs or {}
    steps = steps if isinstance(steps, list) else [steps]
    if expected is None:
        expected = run_paddle(paddle_op or golden.op, attrs if paddle_attrs is None else paddle_attrs, steps, outputs, None)
    golden.lines += ["", "case " + title, "op " + golden.op]
    for name, value in attrs.items():
        golden.attr(name, value)
    for parameter, names in outputs.items():
        golden.lines.append("bind %s %s" % (parameter, " ".join(names)))
    for step in ours or steps:
        for parameter, variables in step.items():
            for name, value in variables:
                golden.var("in", parameter, name, value)
        golden.lines.append("run")
    for parameter, names in outputs.items():
        for name in names:
            if check is None or name in check:
                golden.var("out", parameter, name, expected[name])


def x_out(op, title, x, attrs=None, **more):
    case(more.pop("golden"), title, {"X": [("x", x)]}, {"Out": ["out"]}, attrs, **more)


def drawn_ops():
    """Operators whose cases are those of random_ops.py, at one seed."""
    for op in DRAWN:
        g = Golden(op)
        makers = random_ops.GENERATORS[op]
        drawn_cases = ((i, makers[i % len(makers)](random_ops.Draw([20, i]), op)) for i in itertools.count())
        dense = (numbered for numbered in drawn_cases if not numbered[1].sparse)  # small_ops_test.cc has the sparse ones
        for i, drawn in itertools.islice(dense, 3 * len(makers)):
            case(g, "drawn %d" % i, drawn.inputs, drawn.outputs, drawn.attrs, check=drawn.check)
        g.save()
    g = Golden("one_hot")  # of Paddle 1
    numbers = ids(4, 5, 1)
    case(g, "ids", {"X": [("x", numbers)]}, {"Out": ["out"]}, {"depth": 4}, expected={"out": np.eye(4, dtype=np.float32)[numbers[:, 0]]})
    g.save()
    for op, shape, attrs, answer in [("unsqueeze", (2, 3), {"axes": [0, -1]}, (1, 2, 3, 1)), ("squeeze", (2, 1, 3, 1), {"axes": [-1]}, (2, 1, 3)),
                                     ("flatten", (2, 3, 2), {"axis": 2}, (6, 2))]:
        g, values = Golden(op), floats(*shape)
        case(g, "of Paddle 1", {"X": [("x", values)]}, {"Out": ["out"]}, attrs, expected={"out": values.reshape(answer)})
        g.save()


def unary_ops():
    for op in ["relu", "sigmoid", "tanh", "square", "softmax", "assign", "mean", "squared_l2_norm"]:
        g = Golden(op)
        x_out(op, "matrix", floats(4, 5, low=-3, high=3), golden=g)
        x_out(op, "one row", floats(1, 3), golden=g)
        x_out(op, "three axes", floats(2, 3, 4), golden=g)
        if op == "square":
            x_out(op, "whole numbers", NUMBERS, golden=g)
        if op == "softmax":
            x_out(op, "large logits", np.array([[1000, 999, -1000], [-1e4, 0, 1]], np.float32), golden=g)
        g.save()
    g = Golden("scale")
    x_out("scale", "bias after", floats(3, 4), {"scale": 2.5, "bias": 0.5, "bias_after_scale": True}, golden=g)
    x_out("scale", "bias before", floats(3, 4), {"scale": 2.5, "bias": 0.5, "bias_after_scale": False}, golden=g)
    for kind in (np.int64, np.int32):
        x_out("scale", "whole numbers, %s" % kind.__name__, NUMBERS.astype(kind), {"scale": 1.0, "bias": -1.0, "bias_after_scale": True}, golden=g)
    g.save()
    g = Golden("clip")
    x_out("clip", "both bounds", floats(3, 6, low=-2, high=2), {"min": -0.5, "max": 0.75}, golden=g)
    for kind in (np.int64, np.int32):
        x_out("clip", "whole numbers, %s" % kind.__name__, NUMBERS.astype(kind), {"min": -2.5, "max": 6.0}, golden=g)
    g.save()
    g = Golden("leaky_relu")
    x_out("leaky_relu", "both sides", floats(3, 4), {"alpha": 0.1}, golden=g)
    g.save()
    for op in ["reduce_sum", "reduce_mean"]:
        g = Golden(op)
        for title, dim, keep, everything in [("last", [1], False, False), ("last kept", [-1], True, False),
                                             ("first", [0], False, False), ("two", [0, 2], False, False),
                                             ("middle kept", [1], True, False), ("all", [0], False, True)]:
            x_out(op, title, floats(3, 4, 2), {"dim": dim, "keep_dim": keep, "reduce_all": everything}, golden=g)
        g.save()
    g = Golden("cast")
    x_out("cast", "ids to floats", ids(9, 3, 2), {"in_dtype": 3, "out_dtype": 5}, golden=g)
    x_out("cast", "floats to ids", floats(3, 2, low=-5, high=5), {"in_dtype": 5, "out_dtype": 3}, golden=g)
    x_out("cast", "floats to bool", np.array([0, 0.5, -2], np.float32), {"in_dtype": 5, "out_dtype": 0}, golden=g)
    g.save()
    for op, shape, cases in [("reshape2", (2, 6), [("inferred", {"shape": [-1, 3]}), ("copied", {"shape": [0, 2, 3]})]),
                             ("unsqueeze2", (2, 3), [("front", {"axes": [0]}), ("both", {"axes": [1, -1]})]),
                             ("squeeze2", (2, 1, 3, 1), [("named", {"axes": [1]}), ("all", {"axes": []})])]:
        g = Golden(op)
        for title, attrs in cases:
            case(g, title, {"X": [("x", floats(*shape))]}, {"Out": ["out"], "XShape": ["x_shape"]}, attrs, check=["out"])
        g.save()
    g = Golden("slice")
    for title, attrs in [("rows", {"axes": [0], "starts": [1], "ends": [3], "decrease_axis": []}),
                         ("columns", {"axes": [1], "starts": [-3], "ends": [100], "decrease_axis": []}),
                         ("dropped", {"axes": [0, 1], "starts": [2, 1], "ends": [3, 4], "decrease_axis": [0]})]:
        case(g, title, {"Input": [("x", floats(4, 5))]}, {"Out": ["out"]}, attrs)
    g.save()
    g = Golden("dropout")
    for how in ["downgrade_in_infer", "upscale_in_train"]:
        attrs = {"dropout_prob": 0.25, "is_test": True, "dropout_implementation": how}
        case(g, "test " + how, {"X": [("x", floats(3, 4))]}, {"Out": ["out"], "Mask": ["mask"]}, attrs, check=["out"])
    g.save()
    g = Golden("increment")
    x_out("increment", "float", np.array([1.5], np.float32), {"step": 2.0}, golden=g)
    x_out("increment", "count", np.array([7], np.int64), {"step": 1.0}, golden=g)
    g.save()
    g = Golden("fill_any_like")
    x_out("fill_any_like", "floats", floats(2, 3), {"value": 1.5, "dtype": -1}, golden=g)
    x_out("fill_any_like", "ids", floats(2, 3), {"value": 3.0, "dtype": 3}, golden=g)
    g.save()
    g = Golden("fill_zeros_like")
    x_out("fill_zeros_like", "floats", floats(2, 3), golden=g)
    g.save()
    g = Golden("fill_constant")
    case(g, "floats", {}, {"Out": ["out"]}, {"shape": [2, 3], "dtype": 5, "value": 0.25})
    case(g, "ids from text", {}, {"Out": ["out"]}, {"shape": [2], "dtype": 3, "str_value": "7", "value": 7.0})
    g.save()


def binary_ops():
    for op in ["elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div"]:
        g = Golden(op)
        for title, x, y, axis in [("same shape", (3, 4), (3, 4), -1), ("bias", (3, 4), (4,), -1), ("rows", (3, 4), (3,), 0),
                                  ("column", (3, 4), (3, 1), -1), ("middle", (2, 3, 4), (3,), 1),
                                  ("two axes", (2, 3, 4), (2, 3), 0), ("one value", (2, 3), (1,), -1)]:
            case(g, title, {"X": [("x", floats(*x))], "Y": [("y", floats(*y, low=0.5, high=2))]}, {"Out": ["out"]}, {"axis": axis})
        g.save()
    g = Golden("less_than")
    case(g, "ids", {"X": [("x", ids(5, 6))], "Y": [("y", ids(5, 6))]}, {"Out": ["out"]}, {"axis": -1})
    case(g, "floats", {"X": [("x", floats(3, 4))], "Y": [("y", floats(3, 4))]}, {"Out": ["out"]}, {"axis": -1})
    g.save()
    g = Golden("mul")
    case(g, "matrices", {"X": [("x", floats(5, 7))], "Y": [("y", floats(7, 3))]}, {"Out": ["out"]}, {"x_num_col_dims": 1, "y_num_col_dims": 1})
    case(g, "one row", {"X": [("x", floats(1, 7))], "Y": [("y", floats(7, 1))]}, {"Out": ["out"]}, {"x_num_col_dims": 1, "y_num_col_dims": 1})
    case(g, "flattened", {"X": [("x", floats(2, 3, 4))], "Y": [("y", floats(4, 5))]}, {"Out": ["out"]}, {"x_num_col_dims": 2, "y_num_col_dims": 1})
    g.save()
    for op, tx, ty in [("matmul", "transpose_X", "transpose_Y"), ("matmul_v2", "trans_x", "trans_y")]:
        g = Golden(op)
        for title, x, y, a, b in [("plain", (3, 4), (4, 5), False, False), ("x transposed", (4, 3), (4, 5), True, False),
                                  ("y transposed", (3, 4), (5, 4), False, True), ("batches", (2, 3, 4), (2, 4, 5), False, False),
                                  ("shared y", (2, 3, 4), (4, 5), False, False), ("vector", (3, 4), (4,), False, False)]:
            attrs = {tx: a, ty: b}
            if op == "matmul":
                attrs["alpha"] = 0.5
            case(g, title, {"X": [("x", floats(*x))], "Y": [("y", floats(*y))]}, {"Out": ["out"]}, attrs)
        g.save()
    g = Golden("concat")
    for title, axis, shapes in [("columns", 1, [(3, 2), (3, 1), (3, 4)]), ("rows", 0, [(1, 2), (3, 2)]), ("last", -1, [(2, 2, 2), (2, 2, 1)])]:
        case(g, title, {"X": [("x%d" % i, floats(*s)) for i, s in enumerate(shapes)]}, {"Out": ["out"]}, {"axis": axis})
    g.save()
    g = Golden("sum")
    case(g, "tensors", {"X": [("x%d" % i, floats(3, 2)) for i in range(3)]}, {"Out": ["out"]})
    case(g, "one", {"X": [("x", floats(3, 2))]}, {"Out": ["out"]})
    for kind in (np.int64, np.int32):
        case(g, "whole numbers, %s" % kind.__name__, {"X": [("x0", NUMBERS.astype(kind)), ("x1", NUMBERS[::-1].astype(kind))]}, {"Out": ["out"]})
    g.save()


def sequence_ops():
    g = Golden("sequence_pool")
    lod = [0, 2, 2, 5, 6]
    for kind in ["SUM", "AVERAGE", "SQRT", "MAX", "FIRST", "LAST"]:
        case(g, kind + " with an empty row", {"X": [("x", (floats(6, 3), lod))]}, {"Out": ["out"], "MaxIndex": ["index"]},
             {"pooltype": kind, "pad_value": 0.0}, check=["out"])
    case(g, "padded", {"X": [("x", (floats(6, 3), lod))]}, {"Out": ["out"], "MaxIndex": ["index"]},
         {"pooltype": "SUM", "pad_value": -1.5}, check=["out"])
    case(g, "one row", {"X": [("x", (floats(2, 3), [0, 2]))]}, {"Out": ["out"], "MaxIndex": ["index"]},
         {"pooltype": "AVERAGE", "pad_value": 0.0}, check=["out"])
    g.save()
    for op, shape in [("lookup_table", (5, 1)), ("lookup_table_v2", (5, 2))]:
        g = Golden(op)
        for title, padding in [("plain", -1), ("padding", 2)]:
            numbers = ids(6, *shape)
            numbers.reshape(-1)[1] = 2
            case(g, title, {"Ids": [("ids", numbers)], "W": [("w", floats(6, 3))]}, {"Out": ["out"]}, {"padding_idx": padding})
        g.save()


def loss_ops():
    probabilities, hard = softmax(floats(5, 3, low=-2, high=2)), ids(3, 5, 1)
    g = Golden("cross_entropy")
    case(g, "hard", {"X": [("x", probabilities)], "Label": [("label", hard)]}, {"Y": ["y"]}, {"soft_label": False, "ignore_index": -100})
    ignoring = hard.copy()
    ignoring[1] = -100
    case(g, "ignored", {"X": [("x", probabilities)], "Label": [("label", ignoring)]}, {"Y": ["y"]}, {"soft_label": False, "ignore_index": -100})
    case(g, "soft", {"X": [("x", probabilities)], "Label": [("label", softmax(floats(5, 3)))]}, {"Y": ["y"]}, {"soft_label": True, "ignore_index": -100})
    case(g, "impossible", {"X": [("x", np.array([[0, 1]], np.float32))], "Label": [("label", np.array([[0]], np.int64))]}, {"Y": ["y"]}, {"soft_label": False, "ignore_index": -100})
    g.save()
    g = Golden("cross_entropy2")
    case(g, "hard", {"X": [("x", probabilities)], "Label": [("label", hard)]}, {"Y": ["y"], "MatchX": ["m"], "XShape": ["s"]},
         {"ignore_index": -100}, check=["y", "m"])
    g.save()
    g = Golden("softmax_with_cross_entropy")
    both = {"Softmax": ["softmax"], "Loss": ["loss"]}
    case(g, "hard", {"Logits": [("x", floats(5, 3, low=-3, high=3))], "Label": [("label", hard)]}, both, {"soft_label": False, "ignore_index": -100, "axis": -1})
    case(g, "soft", {"Logits": [("x", floats(5, 3))], "Label": [("label", softmax(floats(5, 3)))]}, both, {"soft_label": True, "ignore_index": -100, "axis": -1})
    case(g, "ignored", {"Logits": [("x", floats(5, 3))], "Label": [("label", ignoring)]}, both, {"soft_label": False, "ignore_index": -100, "axis": -1})
    logits = (np.arange(12, dtype=np.float32) % 5).reshape(2, 3, 2)
    for title, label, soft in [("middle axis", np.array([[[0, 1]], [[2, 0]]]), False), ("middle axis, soft", (logits + 1) / (logits + 1).sum(1, keepdims=True), True)]:
        case(g, title, {"Logits": [("x", logits)], "Label": [("label", label)]}, both, {"soft_label": soft, "ignore_index": -100, "axis": 1})
    g.save()
    g = Golden("log_loss")
    clicks = ids(2, 6, 1).astype(np.float32)
    case(g, "default", {"Predicted": [("p", floats(6, 1, low=0.05, high=0.95))], "Labels": [("y", clicks)]}, {"Loss": ["loss"]}, {"epsilon": 1e-4})
    case(g, "certain", {"Predicted": [("p", np.array([[0], [1]], np.float32))], "Labels": [("y", np.array([[1], [1]], np.float32))]}, {"Loss": ["loss"]}, {"epsilon": 1e-4})
    g.save()
    g = Golden("sigmoid_cross_entropy_with_logits")
    labels = clicks.copy()
    labels[2] = -100
    for title, y, normalize in [("plain", clicks, False), ("normalized", labels, True)]:
        case(g, title, {"X": [("x", floats(6, 1, low=-40, high=40))], "Label": [("y", y)]}, {"Out": ["out"]}, {"ignore_index": -100, "normalize": normalize})
    g.save()
    g = Golden("square_error_cost")
    x, y = floats(4, 1), floats(4, 1)
    case(g, "plain", {"X": [("x", x)], "Y": [("y", y)]}, {"Out": ["out"]}, expected={"out": (x - y) ** 2})
    g.save()


def metric_ops():
    scores = floats(5, 4)
    for op, attrs in [("top_k", {"k": 2}), ("top_k_v2", {"k": 3, "axis": -1, "largest": True, "sorted": True})]:
        g = Golden(op)
        case(g, "largest", {"X": [("x", scores)]}, {"Out": ["out"], "Indices": ["indices"]}, attrs)
        if op == "top_k_v2":
            case(g, "smallest", {"X": [("x", scores)]}, {"Out": ["out"], "Indices": ["indices"]}, dict(attrs, largest=False))
            case(g, "whole numbers", {"X": [("x", NUMBERS)]}, {"Out": ["out"], "Indices": ["indices"]}, attrs)
        g.save()
    g = Golden("accuracy")
    order = np.argsort(-scores, 1)[:, :2].astype(np.int64)
    case(g, "two of four", {"Out": [("top", -np.sort(-scores, 1)[:, :2])], "Indices": [("indices", order)], "Label": [("label", ids(4, 5, 1))]},
         {"Accuracy": ["accuracy"], "Correct": ["correct"], "Total": ["total"]})
    g.save()
    g = Golden("auc")
    buckets = 16
    for title, slide in [("all batches", 0), ("last batch", 1), ("last two", 2)]:
        size = (1, buckets) if slide == 0 else ((slide + 1) * buckets + 1,)
        stats = {"StatPos": [("pos", np.zeros(size, np.int64))], "StatNeg": [("neg", np.zeros(size, np.int64))]}
        steps = [{"Predict": [("p", softmax(floats(9, 2, low=-2, high=2)))], "Label": [("label", ids(2, 9, 1))], **(stats if i == 0 else {})} for i in range(4)]
        case(g, title, steps, {"AUC": ["auc"], "StatPosOut": ["pos"], "StatNegOut": ["neg"]},
             {"curve": "ROC", "num_thresholds": buckets - 1, "slide_steps": slide})
    g.save()


def optimizer_ops():
    shape = (6, 3)
    rules = {
        "sgd": ([], [], {}),
        "momentum": ([("Velocity", "VelocityOut", 0.0)], [], {"mu": 0.9, "use_nesterov": False}),
        "adagrad": ([("Moment", "MomentOut", 0.1)], [], {"epsilon": 1e-6}),
        "adam": ([("Moment1", "Moment1Out", 0.0), ("Moment2", "Moment2Out", 0.0)],
                 [("Beta1Pow", "Beta1PowOut", 0.9), ("Beta2Pow", "Beta2PowOut", 0.999)],
                 {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "lazy_mode": True}),
        "ftrl": ([("SquaredAccumulator", "SquaredAccumOut", 0.1), ("LinearAccumulator", "LinearAccumOut", 0.0)], [],
                 {"l1": 0.3, "l2": 0.05, "lr_power": -0.5}),
    }

    def steps_of(states, scalars, grads, param):
        first = {"Param": [("w", param)], "LearningRate": [("lr", np.array([0.1], np.float32))]}
        for name, _, start in states:
            first[name] = [(name.lower(), np.full(param.shape, start, np.float32))]
        for name, _, start in scalars:
            first[name] = [(name.lower(), np.array([start], np.float32))]
        return [dict(first if i == 0 else {}, Grad=[("g", grad)]) for i, grad in enumerate(grads)]

    for op, (states, scalars, attrs) in rules.items():
        outputs = {"ParamOut": ["w"], **{out: [name.lower()] for name, out, _ in states + scalars}}
        g = Golden(op)
        dense = [floats(*shape) for _ in range(4)]
        param = floats(*shape)
        case(g, "dense", steps_of(states, scalars, dense, param), outputs, attrs)
        if op == "momentum":
            case(g, "nesterov", steps_of(states, scalars, dense, param), outputs, dict(attrs, use_nesterov=True))
        sparse = [Rows(6, [4, 1, 4, 0], floats(4, 3)), Rows(6, [2], floats(1, 3)), Rows(6, [1, 1, 5], floats(3, 3))]
        case(g, "sparse with equal rows", steps_of(states, scalars, sparse, param), outputs, attrs)
        if op == "adam":
            case(g, "sparse, all rows decay", steps_of(states, scalars, sparse, param), outputs, dict(attrs, lazy_mode=False))
            # As large as what the rows' second moments are: rows without a gradient have it as it is.
            large = dict(attrs, lazy_mode=False, epsilon=0.01)
            case(g, "sparse, all rows decay with a large epsilon", steps_of(states, scalars, sparse, param), outputs, large)
        g.save()
        if op == "momentum":
            continue
        # The fused operator over two parameters is the single one twice.
        fused = Golden("fused_" + op)
        parts = []
        for i, size in enumerate([(6, 3), (5,)]):
            steps = steps_of(states, scalars, [floats(*size) for _ in range(3)], floats(*size))
            steps = [{p: [(n if p == "LearningRate" else "%s%d" % (n, i), v) for n, v in vs] for p, vs in s.items()} for s in steps]
            parts.append((steps, run_paddle(op, attrs, steps, {p: ["%s%d" % (n, i) for n in ns] for p, ns in outputs.items()}, None)))
        joined = [{p: a[p] if p == "LearningRate" else a[p] + b[p] for p in a} for a, b in zip(parts[0][0], parts[1][0])]
        case(fused, "two parameters", joined, {p: ["%s%d" % (n, i) for n in ns for i in range(2)] for p, ns in outputs.items()}, attrs,
             expected={**parts[0][1], **parts[1][1]})
        fused.save()


def fused_fc():
    g = Golden("fused_fc")
    for act in ["", "relu", "sigmoid", "tanh", "softmax"]:
        x, w, b = floats(5, 7), floats(7, 4), floats(4)
        z = run_paddle("mul", {}, [{"X": [("x", x)], "Y": [("y", w)]}], {"Out": ["z"]}, None)["z"] + b
        out = run_paddle(act, {}, [{"X": [("x", z)]}], {"Out": ["o"]}, None)["o"] if act else z
        case(g, act or "none", {"X": [("x", x)], "W": [("w", w)], "Bias": [("b", b)]}, {"Out": ["out"]},
             {"in_num_col_dims": 1, "activation": act}, expected={"out": out})
    x, w = floats(2, 3, 4), floats(4, 2)
    case(g, "flattened, no bias", {"X": [("x", x)], "W": [("w", w)]}, {"Out": ["out"]}, {"in_num_col_dims": 2, "activation": ""},
         expected={"out": (x @ w).astype(np.float32)})
    g.save()


DRAWN = [
    "silu", "softsign", "logsigmoid", "exp", "sin", "cos", "gelu", "swish", "softplus", "sqrt", "rsqrt", "log", "log1p", "reciprocal", "pow",
    "abs", "elu", "relu6", "hard_sigmoid", "hard_swish", "sign", "floor", "ceil", "round",
    "elementwise_max", "elementwise_min", "elementwise_pow", "elementwise_mod", "elementwise_floordiv",
    "less_equal", "greater_than", "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_xor", "logical_not",
    "reshape", "transpose", "transpose2", "flatten2", "flatten_contiguous_range", "expand", "tile", "expand_v2", "expand_as_v2", "stack", "unstack", "split", "strided_slice", "select_input", "share_data",
    "bmm", "where", "masked_select", "cumsum", "tril_triu", "gather", "gather_nd", "index_select", "one_hot_v2", "shape", "range", "assign_value",
    "fill_constant_batch_size_like", "l1_norm", "reduce_max", "reduce_min", "reduce_prod", "reduce_any", "reduce_all", "arg_max", "arg_min", "argsort",
    "sequence_softmax", "sequence_expand", "sequence_expand_as", "sequence_concat", "sequence_mask", "sequence_pad", "sequence_unpad",
    "sequence_reverse", "sequence_reshape", "sequence_slice", "sequence_enumerate", "hash", "cvm",
    "batch_norm", "layer_norm", "data_norm", "norm", "p_norm", "conv2d", "bce_loss", "huber_loss", "bpr_loss", "rank_loss",
    "decayed_adagrad", "lars_momentum", "rmsprop", "adadelta", "adamax", "lamb", "clip_by_norm", "adamw",
    "tan", "atan", "erf", "expm1", "log2", "log10", "tanh_shrink", "hard_shrink", "softshrink", "thresholded_relu", "brelu", "selu", "celu", "stanh",
    "soft_relu", "mish", "prelu", "log_softmax", "depthwise_conv2d", "pool2d", "rnn", "size", "coalesce_tensor",
    "teacher_student_sigmoid_loss", "hinge_loss", "kldiv_loss", "nll_loss", "label_smooth", "frobenius_norm", "logsumexp", "sequence_conv", "lod_reset", "einsum",
    "scatter", "where_index", "hierarchical_sigmoid", "nce",
]


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    for part in [unary_ops, binary_ops, sequence_ops, loss_ops, metric_ops, optimizer_ops, fused_fc, drawn_ops]:
        part()
    sys.exit(0)
