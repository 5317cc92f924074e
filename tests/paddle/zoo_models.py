"""Models of PaddleRec, and programs with the operators of Paddle 1. Needs Paddle 2.

    zoo_models.py GROUP FOLDER      as program_models.py
"""

import itertools
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import numpy as np
import paddle
import paddle.nn.functional as F
import recsys_models as recsys
from paddle import nn, static
from paddle.base.layer_helper import LayerHelper
from paddle.regularizer import L2Decay
from recsys_models import VOCABULARY, linear, tower

recsys.BATCHES = 5


class Sample(recsys.Sample):
    """A label; a program adds the columns that it wants."""

    def __init__(self):
        self.columns = []
        self.label = self._dense("label", 1, "int64", lambda r: [int(r.random() < 0.4)])

    def floats(self, name, width):
        return self._dense(name, width, "float32", lambda r: list(r.normal(0, 1, width).round(4)))

    def numbers(self, name, width=1, high=VOCABULARY):
        return self._dense(name, width, "int64", lambda r: list(r.integers(0, high, width)))

    def many(self, name):
        return self._slot(name, lambda r: list(r.integers(1, VOCABULARY, r.integers(1, 5))))

    def click(self, prob, optimizer=None, more=0.0):
        cost = paddle.mean(F.log_loss(prob, paddle.cast(self.label, "float32"))) + more
        self.finish(cost, prob, recsys.auc_of(prob, self.label), optimizer or paddle.optimizer.Adam(0.001, lazy_mode=True))

    def end(self, cost, predict, optimizer, **fetch):
        self.finish(cost, predict, cost, optimizer)
        self.fetch = {"loss": cost, **fetch}


GROUPS = {}


def program(group):
    def add(define):
        GROUPS.setdefault(group, {})[define.__name__] = define
        return define
    return add


def rows_of(dim, **options):
    return nn.Embedding(VOCABULARY, dim, sparse=True, **options)


# ---------------------------------------------------------------------------------------------------------------------


@program("zoo")
def xdeepfm(s):
    fields, dim = 6, 4
    x = rows_of(dim, padding_idx=0)(paddle.concat([s.numbers("C%d" % i) for i in range(fields)], 1))
    last, layers = fields, [x]
    for maps in (4, 3):
        left = paddle.unsqueeze(paddle.transpose(x, [0, 2, 1]), 3)
        right = paddle.unsqueeze(paddle.transpose(layers[-1], [0, 2, 1]), 2)
        outer = paddle.transpose(paddle.reshape(paddle.matmul(left, right), [-1, dim, last * fields]), [0, 2, 1])
        out = static.nn.conv2d(paddle.unsqueeze(outer, 2), maps, (1, 1))
        layers.append(paddle.reshape(out, [-1, maps, dim]))
        last = maps
    cin = paddle.sum(paddle.concat(layers[1:], 1), -1)
    weight = paddle.ParamAttr(regularizer=L2Decay(1e-4))
    s.click(F.sigmoid(nn.Linear(7, 1, weight_attr=weight)(cin) + linear(tower(paddle.flatten(x, 1), (16,)), 1)))


@program("zoo")
def dcn_v2(s):
    ids = paddle.concat([s.numbers("C%d" % i) for i in range(4)], 1)
    x0 = paddle.concat([paddle.flatten(rows_of(4, padding_idx=0)(ids), 1), linear(s.floats("dense", 3), 12)], 1)
    x = x0
    for _ in range(2):
        x = x + x0 * linear(x, 28)
    s.click(F.sigmoid(linear(tower(x, (16, 8)), 1)),
            paddle.optimizer.Adam(0.001, weight_decay=L2Decay(1e-4), grad_clip=nn.ClipGradByGlobalNorm(1.0)))


@program("zoo")
def dlrm(s):
    lowest = float(np.finfo(np.float32).min / 100.0)
    x = s.floats("dense", 3)
    for units in (8, 4):
        x = nn.BatchNorm1D(units)(linear(x, units, F.relu))
    rows = rows_of(4)
    both = paddle.concat([paddle.squeeze(rows(s.numbers("C%d" % i)), 1) for i in range(4)] + [x], 1)
    fields = paddle.reshape(both, [-1, 5, 4])
    products = paddle.bmm(fields, paddle.transpose(fields, [0, 2, 1]))
    upper = paddle.triu(products, 1) + paddle.tril(paddle.ones_like(products) * lowest, 0)
    upper = paddle.masked_select(upper, paddle.greater_than(upper, paddle.ones_like(upper) * lowest))
    s.click(F.sigmoid(linear(paddle.concat([x, paddle.reshape(upper, [-1, 10])], 1), 1)))


@program("zoo")
def bst(s):
    """Transformer over a history; its norm begins at the last axis."""
    width, heads = 8, 2
    items, places = nn.Embedding(VOCABULARY, 4), nn.Embedding(6, 4)
    history = paddle.concat([items(s.numbers("history", 5)), places(s.numbers("places", 5, 6))], 2)
    target = paddle.concat([items(s.numbers("target")), places(s.numbers("place", 1, 6))], 2)
    x = static.nn.layer_norm(paddle.concat([history, target], 1), begin_norm_axis=2)
    split = lambda t: paddle.transpose(paddle.reshape(t, [0, 0, heads, width // heads]), [0, 2, 1, 3])
    q, k, v = [split(nn.Linear(width, width)(x)) for _ in range(3)]
    seen = paddle.transpose(paddle.matmul(F.softmax(paddle.matmul(q, k, transpose_y=True)), v), [0, 2, 1, 3])
    x = static.nn.layer_norm(x + linear(paddle.reshape(seen, [0, 0, width]), width), begin_norm_axis=2)
    x = static.nn.layer_norm(x + linear(F.leaky_relu(linear(x, 8)), width), begin_norm_axis=2)
    s.click(F.sigmoid(linear(paddle.sum(x, axis=1), 1)), paddle.optimizer.SGD(0.05))


@program("zoo")
def ffm(s):
    fields, dim = 5, 3
    x = rows_of(dim * fields)(paddle.concat([s.numbers("C%d" % i) for i in range(fields)], 1))
    x = paddle.reshape(x, [-1, fields, fields, dim])
    pairs = [paddle.sum(x[:, i, j, :] * x[:, j, i, :], 1, keepdim=True) for i, j in itertools.combinations(range(fields), 2)]
    s.click(F.sigmoid(paddle.add_n(pairs) + linear(s.floats("dense", 2), 1)))


@program("zoo")
def word2vec(s):
    read = paddle.squeeze(rows_of(6, weight_attr="in")(s.numbers("word")), [1])
    written = rows_of(6, weight_attr="out")
    true = paddle.sum(read * paddle.squeeze(written(s.numbers("next")), [1]), axis=1, keepdim=True)
    false = paddle.squeeze(paddle.matmul(paddle.unsqueeze(read, 1), written(s.numbers("others", 4)), transpose_y=True), 1)
    losses = [F.binary_cross_entropy_with_logits(true, paddle.ones_like(true), reduction="none"),
              F.binary_cross_entropy_with_logits(false, paddle.zeros_like(false), reduction="none")]
    cost = paddle.mean(paddle.add_n([paddle.sum(loss, axis=1) for loss in losses]))
    # The square at the end is there for the layers that every program of these tests has.
    s.end(cost + paddle.mean(paddle.square(linear(read, 2))), F.sigmoid(true), paddle.optimizer.SGD(0.1))


@program("recurrent")
def gru4rec(s):
    out, _ = nn.GRU(8, 8)(nn.Embedding(VOCABULARY, 8)(s.numbers("items", 6)))
    logits = linear(paddle.reshape(out, [-1, 8]), VOCABULARY)
    following = paddle.reshape(s.numbers("following", 6), [-1, 1])
    s.end(paddle.mean(F.cross_entropy(logits, following, reduction="none")), F.softmax(linear(out[:, -1, :], 2)),
          paddle.optimizer.Adagrad(0.1), accuracy=static.accuracy(F.softmax(logits), following, k=20))


@program("recurrent")
def dien(s):
    length, dim = 4, 6
    rows = rows_of(dim, padding_idx=0)
    history, target = rows(s.numbers("history", length)), paddle.squeeze(rows(s.numbers("target")), 1)
    out, _ = nn.GRU(dim, dim, num_layers=2)(history)
    most = int(1e9)
    now = paddle.slice(out, [0, 1, 2], [0, 0, 0], [most, -1, most])
    later = paddle.slice(history, [0, 1, 2], [0, 1, 0], [most] * 3)
    helps = paddle.mean(paddle.log(1e-8 + F.sigmoid(paddle.clip(paddle.sum(now * later, 2, keepdim=True), -15, 15))))
    weights = F.softmax(paddle.matmul(out, paddle.unsqueeze(target, 2)) * dim ** -0.5, axis=1)
    attended = paddle.transpose(weights * history, [1, 0, 2])
    cell, state = nn.GRUCell(dim, dim), target * 0.0
    for i in range(length):
        _, state = cell(attended[i], state)
    s.click(F.sigmoid(linear(F.sigmoid(linear(paddle.concat([state, target], 1), 8)), 1)), more=-0.1 * helps)


@program("recurrent")
def both_ways(s):
    words = nn.Embedding(VOCABULARY, 6)(s.numbers("words", 5))
    out, (last, _) = nn.LSTM(6, 7, num_layers=2, direction="bidirect")(words)
    plain, _ = nn.SimpleRNN(6, 5, activation="relu")(words)
    ends = paddle.concat([paddle.max(out, axis=1), last[-1], plain[:, -1]], 1)
    s.click(F.sigmoid(linear(ends, 1)), paddle.optimizer.Adamax(0.001))


@program("windows")
def match_pyramid(s):
    rows = nn.Embedding(VOCABULARY, 5)
    cross = paddle.matmul(rows(s.numbers("left", 6)), rows(s.numbers("right", 8)), transpose_y=True)
    maps = F.relu(nn.Conv2D(1, 3, kernel_size=[2, 3], padding="SAME")(paddle.unsqueeze(cross, 1)))
    pooled = F.max_pool2d(maps, kernel_size=[3, 3], stride=[3, 3], padding="VALID")
    s.click(F.sigmoid(linear(tower(paddle.flatten(pooled, 1), (5,)), 1)), paddle.optimizer.AdamW(0.001, weight_decay=0.02))


@program("windows")
def tagspace(s):
    text = nn.Embedding(VOCABULARY, 6, padding_idx=3, sparse=True)(s.numbers("text", 7))
    hidden = linear(paddle.max(paddle.tanh(nn.Conv1D(6, 5, kernel_size=3, data_format="NLC")(text)), axis=1), 6)
    tags = rows_of(6)
    alike = lambda tag: paddle.reshape(F.cosine_similarity(tag, hidden, axis=1), [-1, 1])
    true, false = alike(paddle.squeeze(tags(s.numbers("tag")), 1)), alike(paddle.max(tags(s.numbers("others", 3)), axis=1))
    cost = paddle.mean(paddle.maximum(paddle.zeros_like(false), paddle.full_like(false, 0.1) - true + false))
    s.end(cost, F.sigmoid(true), paddle.optimizer.Adagrad(0.05))


@program("windows")
def text_windows(s):
    words = paddle.transpose(nn.Embedding(VOCABULARY, 6)(s.numbers("text", 9)), [0, 2, 1])
    parts = [paddle.max(paddle.tanh(nn.Conv1D(6, 4, kernel_size=k, padding=k // 2)(words)), axis=2) for k in (3, 4)]
    parts += [paddle.flatten(pool, 1) for pool in (F.max_pool1d(words, 3), F.avg_pool1d(words, 3, stride=2))]
    s.click(F.sigmoid(linear(paddle.concat(parts, 1), 1)), paddle.optimizer.Adadelta(0.5))


@program("windows")
def sloped(s):
    """Activations of DMR and others, one with slopes that are learned."""
    history = rows_of(4)(s.numbers("history", 5))
    x = nn.PReLU(num_parameters=5, init=0.1)(linear(history, 4))
    x = paddle.concat([nn.PReLU()(linear(x[:, -1], 4)), F.mish(x[:, 0]), F.selu(x[:, 1]), F.celu(x[:, 2]), F.hardtanh(x[:, 3])], 1)
    two = linear(paddle.concat([x, F.softshrink(x), F.hardshrink(x), F.tanhshrink(x), paddle.erf(x)], 1), 2)
    cost = -paddle.mean(paddle.sum(F.log_softmax(two) * F.one_hot(paddle.squeeze(s.label, 1), 2), axis=1))
    s.end(cost, F.softmax(two), paddle.optimizer.SGD(0.05))


# ---------------------------------------------------------------------------------------------------------------------
# Operators of Paddle 1, which its Python wrote and Paddle 2 still runs.


def op(kind, inputs, attrs=None, out="Out", more=()):
    """The first output of an operator, or all with those of `more`, pairs (name, dtype)."""
    helper = LayerHelper(kind)
    made = {name: [helper.create_variable_for_type_inference(dtype)] for name, dtype in ((out, "float32"), *more)}
    bound = {name: given if isinstance(given, list) else [given] for name, given in inputs.items()}
    helper.append_op(type=kind, inputs=bound, outputs=made, attrs=attrs or {})
    outputs = [variables[0] for variables in made.values()]
    return outputs if more else outputs[0]


def fc(x, units, act=None):
    parts = [op("mul", {"X": part, "Y": static.create_parameter([part.shape[1], units], "float32")},
                {"x_num_col_dims": 1, "y_num_col_dims": 1}) for part in (x if isinstance(x, list) else [x])]
    total = parts[0] if len(parts) == 1 else op("sum", {"X": parts})
    bias = static.create_parameter([units], "float32", is_bias=True)
    total = op("elementwise_add", {"X": total, "Y": bias}, {"axis": 1})
    return op(act, {"X": total}) if act else total


def looked_up(ids, dim, name, sparse=True):
    table = static.create_parameter([VOCABULARY, dim], "float32", name=name)
    return op("lookup_table", {"Ids": ids, "W": table}, {"is_sparse": sparse, "is_distributed": False, "padding_idx": -1})


def pooled(rows, how="SUM"):
    return op("sequence_pool", {"X": rows}, {"pooltype": how}, more=[("MaxIndex", "int32")])[0]


def classified(s, x, optimizer, **fetch):
    prob = fc(x, 2, "softmax")
    costs = op("cross_entropy2", {"X": prob, "Label": s.label}, {"ignore_index": -100}, out="Y",
               more=[("MatchX", "float32"), ("XShape", "float32")])[0]
    best, places = op("top_k", {"X": prob}, {"k": 1}, more=[("Indices", "int64")])
    right = op("accuracy", {"Out": best, "Indices": places, "Label": s.label}, out="Accuracy",
               more=[("Correct", "int32"), ("Total", "int32")])[0]
    s.end(op("mean", {"X": costs}), prob, optimizer, accuracy=right, auc=static.auc(prob, s.label)[0], **fetch)


@program("paddle_1")
def ctr_dnn(s):
    parts = [pooled(looked_up(s.many("S%d" % i), 6, "shared")) for i in range(4)]
    x = op("concat", {"X": parts + [s.floats("dense", 4)]}, {"axis": 1})
    classified(s, fc(fc(x, 16, "relu"), 8, "relu"), paddle.optimizer.Adam(0.001, lazy_mode=True))


@program("paddle_1")
def sums_of_pools(s):
    kinds = [("SUM", True), ("AVERAGE", False), ("MAX", True)]
    parts = [pooled(looked_up(s.many("S" + how), 6, "table_" + how, sparse), how) for how, sparse in kinds]
    classified(s, fc([op("tanh", {"X": op("sum", {"X": parts})})] + parts, 8, "sigmoid"), paddle.optimizer.Adagrad(0.05))


@program("paddle_1")
def shows_and_clicks(s):
    shown = s._dense("shown", 2, "float32", lambda r: [1, int(r.random() < 0.4)])
    cut = lambda x, start, end: op("slice", {"Input": x}, {"axes": [1], "starts": [start], "ends": [end]})
    parts = []
    for i, use_cvm in enumerate((True, False, True)):
        x = pooled(looked_up(s.many("S%d" % i), 6, "table"))
        x = op("concat", {"X": [op("abs", {"X": cut(x, 0, 2)}), cut(x, 2, 6)]}, {"axis": 1})
        parts.append(op("cvm", {"X": x, "CVM": shown}, {"use_cvm": use_cvm}, out="Y"))
    x = op("concat", {"X": parts}, {"axis": 1})
    sums = {name: static.create_parameter([x.shape[1]], "float32", name=name, default_initializer=nn.initializer.Constant(value))
            for name, value in (("BatchSize", 1e4), ("BatchSum", 0.0), ("BatchSquareSum", 1e4))}
    x = op("data_norm", {"X": x, **sums}, {"epsilon": 1e-4}, out="Y", more=[("Means", "float32"), ("Scales", "float32")])[0]
    classified(s, fc(x, 8, "relu"), paddle.optimizer.SGD(0.05))


@program("paddle_1")
def axes(s):
    x = op("reshape2", {"X": fc(s.floats("x", 12), 12)}, {"shape": [-1, 3, 4]}, more=[("XShape", "float32")])[0]
    for kind, shape, axis in (("mul", [3], 1), ("add", [3, 4], 1), ("sub", [4], 2)):
        x = op("elementwise_" + kind, {"X": x, "Y": static.create_parameter(shape, "float32")}, {"axis": axis})
    sums = op("reduce_sum", {"X": x}, {"dim": [2], "keep_dim": False, "reduce_all": False})
    below = op("scale", {"X": op("square", {"X": sums})}, {"bias": 1.0})
    x = op("elementwise_div", {"X": x, "Y": below}, {"axis": 0})
    largest = op("reduce_max", {"X": s.numbers("numbers", 5)}, {"dim": [1], "keep_dim": True, "reduce_all": False})
    largest = op("cast", {"X": largest}, {"in_dtype": 3, "out_dtype": 5})
    flat = op("flatten2", {"X": x}, {"axis": 1}, more=[("XShape", "float32")])[0]
    classified(s, op("concat", {"X": [flat, op("scale", {"X": largest}, {"scale": 0.1})]}, {"axis": 1}), paddle.optimizer.SGD(0.05))


@program("paddle_1")
def attention(s):
    history = looked_up(s.many("history"), 6, "item")
    target = pooled(looked_up(s.many("target"), 6, "item"))
    wide = op("sequence_expand", {"X": target, "Y": history}, {"ref_level": 0})
    both = op("concat", {"X": [history, wide, op("elementwise_sub", {"X": history, "Y": wide}, {"axis": -1})]}, {"axis": 1})
    weights = op("sequence_softmax", {"X": fc(fc(both, 8, "sigmoid"), 1)})
    classified(s, fc([pooled(op("elementwise_mul", {"X": history, "Y": weights}, {"axis": 0})), target], 6, "tanh"),
               paddle.optimizer.RMSProp(0.01, momentum=0.5))


if __name__ == "__main__":
    group, folder = sys.argv[1:]
    for named, define in GROUPS[group].items():
        recsys.train(Sample, define, folder + "/" + named)
