"""Programs as people write them around a model: optimizers, schedules, branches, sequences, metrics. Needs Paddle 2.

    program_models.py GROUP FOLDER      trains every program of the group and writes what recsys_models.py writes of
                                        one model, each into FOLDER/NAME
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import paddle
import paddle.nn.functional as F
import recsys_models as recsys
from paddle import static
from paddle.optimizer import lr as rates
from paddle.regularizer import L1Decay, L2Decay
from recsys_models import VOCABULARY, embed, linear, pooled, tower

sequences = static.nn.sequence_lod


class Sample(recsys.Sample):
    """Four floats, two dense ids, three slots of one to four ids, a slot of floats."""

    def __init__(self):
        self.columns = []
        self.label = self._dense("label", 1, "int64", lambda r: [int(r.random() < 0.4)])
        self.dense = self._dense("dense", 4, "float32", lambda r: list(r.normal(0, 1, 4).round(4)))
        self.ids = [self._dense("C%d" % i, 1, "int64", lambda r: [r.integers(0, VOCABULARY)]) for i in range(2)]
        some_ids = lambda r: list(r.integers(0, VOCABULARY, r.integers(1, 5)))
        self.slots = [self._slot("S%d" % i, some_ids) for i in range(3)]
        self.columns.append(("F", lambda r: list(r.normal(0, 1, r.integers(1, 4)).round(3))))
        self.floats = static.data("F", [-1, 1], "float32", lod_level=1)

    def rows(self, slot=0, dim=4):
        """[values, dim] of a slot, with its sequences."""
        out = static.nn.embedding(self.slots[slot], [VOCABULARY, dim], is_sparse=True, param_attr="rows")
        return paddle.reshape(out, [-1, dim])

    def everything(self, sparse=True):
        parts = [embed(ids, 5, "single", sparse) for ids in self.ids]
        parts += [pooled(s, 5, "many", how) for s, how in zip(self.slots, ("sum", "average", "sqrt"))] if sparse else []
        return paddle.concat(parts + [self.dense], axis=1)

    def end(self, x, optimizer=None, predict=None, **fetch):
        """Two classes of what `x` says, through two layers; `predict` is exported in their place."""
        two = linear(tower(x, (8,)), 2)
        cost = paddle.mean(F.cross_entropy(input=two, label=self.label))
        prob = F.softmax(two)
        auc = static.auc(prob, self.label, num_thresholds=255)[0]
        self.finish(cost, prob if predict is None else predict, auc, optimizer or paddle.optimizer.Adagrad(0.05))
        self.fetch.update(fetch)


GROUPS = {}


def program(group, name=None):
    def add(define):
        GROUPS.setdefault(group, {})[name or define.__name__] = define
        return define
    return add


# ---------------------------------------------------------------------------------------------------------------------


def number(value):
    return static.create_global_var([1], value, "float32", persistable=True)


def optimizers():
    clip, o = paddle.nn, paddle.optimizer
    return {
        "nesterov": lambda: o.Momentum(0.05, 0.8, use_nesterov=True, weight_decay=L2Decay(0.01)),
        "momentum_l1": lambda: o.Momentum(0.05, 0.8, weight_decay=L1Decay(0.01)),
        "adagrad_from": lambda: o.Adagrad(0.05, initial_accumulator_value=0.1, weight_decay=L1Decay(0.001)),
        "rmsprop_centered": lambda: o.RMSProp(0.003, rho=0.9, epsilon=1e-4, momentum=0.3, centered=True),
        "adam_told": lambda: o.Adam(0.003, beta1=number(0.85), beta2=number(0.99), epsilon=number(1e-5), lazy_mode=True),
        "by_value": lambda: o.SGD(0.1, grad_clip=clip.ClipGradByValue(max=0.002, min=-0.001)),
        "by_norm": lambda: o.SGD(0.1, grad_clip=clip.ClipGradByNorm(0.05)),
        "by_global_norm": lambda: o.Momentum(0.1, grad_clip=clip.ClipGradByGlobalNorm(0.1), weight_decay=L2Decay(0.01)),
    }


for named, make in optimizers().items():
    for kind, is_sparse in (("sparse", True), ("dense", False)):
        if named == "by_value" and is_sparse:
            continue  # Paddle fails
        program("optimizers", named + "_" + kind)(
            lambda s, make=make, is_sparse=is_sparse: s.end(s.everything(is_sparse), make()))


@program("optimizers")
def ftrl_of_another_power(s):
    """As Paddle 1 wrote it; Paddle 2 has the operator alone."""
    states = {"SquaredAccumulator": "SquaredAccumOut", "LinearAccumulator": "LinearAccumOut"}
    s.end(s.everything(), ByOperator("ftrl", states, {"l1": 0.01, "l2": 0.02, "lr_power": -0.3}))


class ByOperator:
    def __init__(self, kind, states, attrs):
        self.kind, self.states, self.attrs = kind, states, attrs

    def minimize(self, cost):
        block, rate = static.default_main_program().global_block(), number(0.05)
        for param, grad in static.append_backward(cost):
            inputs, outputs = {"Param": [param], "Grad": [grad], "LearningRate": [rate]}, {"ParamOut": [param]}
            for given, back in self.states.items():
                state = static.create_global_var(param.shape, 0.1, "float32", persistable=True)
                inputs[given], outputs[back] = [state], [state]
            block.append_op(type=self.kind, inputs=inputs, outputs=outputs, attrs=self.attrs)


@program("optimizers")
def one_for_each_part(s):
    """Two optimizers for one loss, one with parameters of the other's kind."""
    cost = click_costs(s, linear(s.everything(), 1))
    wide = [p for p in static.default_main_program().all_parameters() if p.shape[-1] == 1]
    deep = [p for p in static.default_main_program().all_parameters() if p.shape[-1] != 1]
    s.finish(cost, s.prob, s.auc, InTurn((paddle.optimizer.Momentum(0.05, 0.9, weight_decay=L1Decay(0.001)), wide),
                                         (paddle.optimizer.Adam(0.001, lazy_mode=True), deep)))


class InTurn:
    def __init__(self, *parts):
        self.parts = parts

    def minimize(self, cost):
        for optimizer, parameters in self.parts:
            optimizer.minimize(cost, parameters=parameters)


@program("optimizers")
def every_second_batch(s):
    """Gradients of two batches make an update."""
    merged = paddle.incubate.optimizer.GradientMergeOptimizer(paddle.optimizer.SGD(0.1), k_steps=2, avg=True)
    s.end(s.everything(sparse=False), merged)


# ---------------------------------------------------------------------------------------------------------------------


def click_costs(s, logit):
    """Log loss of a logit; leaves the click's probability and the AUC on the sample."""
    s.prob = F.sigmoid(logit)
    s.auc = recsys.auc_of(s.prob, s.label)
    return recsys.click_loss(s.prob, s.label)


@program("losses")
def rare_clicks(s):
    """Clicks that count more, rows that count more."""
    logit, label = linear(tower(s.everything(), (8,)), 1), paddle.cast(s.label, "float32")
    weight = paddle.exp(0.1 * s.dense[:, :1])
    cost = F.binary_cross_entropy_with_logits(logit, label, weight=weight, pos_weight=paddle.full([1], 3.0))
    s.finish(cost, F.sigmoid(logit), recsys.auc_of(F.sigmoid(logit), s.label), paddle.optimizer.SGD(0.1))


@program("losses")
def distilled(s):
    """A teacher's scores: in the label, and as a distribution that is smoothed."""
    x = tower(s.everything(), (8,))
    told = op_of("teacher_student_sigmoid_loss", {"X": linear(x, 1), "Label": s.dense[:, 1:2]}, {}, "Y")
    click = paddle.cast(s.label, "float32")
    teacher = op_of("label_smooth", {"X": paddle.concat([1 - click, click], axis=1)}, {"epsilon": 0.2})
    student = linear(x, 2)
    apart = F.kl_div(F.log_softmax(student), teacher, reduction="batchmean")
    hinge = op_of("hinge_loss", {"Logits": student[:, 1:], "Labels": click}, {}, "Loss")
    s.finish(paddle.mean(told) + apart + paddle.mean(hinge), F.softmax(student), recsys.auc_of(F.softmax(student)[:, 1:], s.label),
             paddle.optimizer.SGD(0.1))


@program("losses")
def some_classes(s):
    """Classes with weights, and what the parameters cost."""
    five, kinds = linear(tower(s.everything(), (8,)), 5), paddle.squeeze(s.ids[0] % 5, 1)
    weight = paddle.exp(0.2 * paddle.arange(5, dtype="float32"))
    weight.stop_gradient = True
    cost = F.nll_loss(F.log_softmax(five), kinds, weight=weight)
    cost = cost + 0.01 * paddle.add_n([paddle.norm(p) for p in static.default_main_program().all_parameters()[-4:]])
    cost = cost + 0.1 * paddle.mean(paddle.logsumexp(five, axis=1))
    s.finish(cost, F.softmax(five), static.accuracy(F.softmax(five), s.ids[0] % 5), paddle.optimizer.SGD(0.05))


@program("losses")
def turns_of_a_tree(s):
    """The cost of a class by turns on its way, whose operator Paddle gives its weight as an output, and the norm of all values."""
    x = tower(s.everything(), (8,))
    tree = paddle.nn.HSigmoidLoss(8, 5)
    two = linear(x, 2)
    cost = paddle.mean(tree(x, s.ids[0] % 5)) + 0.01 * paddle.norm(x, p=2) + paddle.mean(F.cross_entropy(two, s.label))
    s.finish(cost, F.softmax(two), recsys.auc_of(F.softmax(two)[:, 1:], s.label), paddle.optimizer.SGD(0.05))


def op_of(kind, inputs, attrs, out="Out"):
    """An operator that Paddle 2 runs and its Python no longer writes."""
    helper = paddle.base.layer_helper.LayerHelper(kind)
    made = helper.create_variable_for_type_inference("float32")
    helper.append_op(type=kind, inputs={name: [var] for name, var in inputs.items()}, outputs={out: [made]}, attrs=attrs)
    return made


def scheduled(rate):
    optimizer = paddle.optimizer.SGD(0.1)
    optimizer._learning_rate_map[static.default_main_program()] = rate  # as fluid's optimizers take a variable
    return optimizer


def schedules():
    return {
        "noam": lambda: rates.noam_decay(16, 4, 1.0),
        "exponential": lambda: rates.exponential_decay(0.1, 3, 0.5, True),
        "natural": lambda: rates.natural_exp_decay(0.1, 3, 0.5),
        "inverse": lambda: rates.inverse_time_decay(0.1, 3, 0.5),
        "polynomial": lambda: rates.polynomial_decay(0.1, 4, 0.01, 2.0),
        "cycle": lambda: rates.polynomial_decay(0.1, 4, 0.01, 1.0, True),
        "piecewise": lambda: rates.piecewise_decay([2, 5], [0.1, 0.05, 0.01]),
        "cosine": lambda: rates.cosine_decay(0.1, 2, 6),
        "warmup": lambda: rates.linear_lr_warmup(rates.piecewise_decay([4, 6], [0.1, 0.05, 0.01]), 3, 0.01, 0.1),
    }


for named, make in schedules().items():
    program("schedules", named)(lambda s, make=make: s.end(s.everything(), scheduled(make())))


# ---------------------------------------------------------------------------------------------------------------------


@program("branches")
def every_other_batch(s):
    step = static.create_global_var([1], 0, "int64", persistable=True)
    paddle.increment(step)
    x = linear(s.everything(), 8, F.relu)
    even = paddle.equal(step % 2, paddle.zeros([1], "int64"))
    s.end(static.nn.cond(even, lambda: linear(x, 8, F.tanh), lambda: x * 0.5 + embed(s.ids[0], 8, "branch", sparse=False)),
          predict=F.softmax(linear(x, 2)))


@program("branches")
def cases(s):
    x = linear(s.everything(), 8, F.relu)
    level = paddle.mean(x)
    s.end(static.nn.case([(level < 0.2, lambda: x + 1.0), (level < 0.3, lambda: x * 2.0)], default=lambda: F.sigmoid(x)))


@program("branches")
def looped(s):
    """A loop whose result the prediction takes as it comes."""
    i, limit = paddle.zeros([1], "int64"), paddle.full([1], 3, "int64")
    _, factor = static.nn.while_loop(lambda i, f: i < limit, lambda i, f: [i + 1, f * 0.5 + 0.25], [i, paddle.ones([1])])
    factor.stop_gradient = True
    s.end(linear(s.everything(), 8, F.relu) * factor)


@program("branches")
def detached(s):
    x = s.everything()
    side = F.sigmoid(linear(x.detach(), 1))
    s.end(x * side)


@program("branches")
def stopped_and_tied(s):
    kept = embed(s.ids[0], 6, "tied")
    kept.stop_gradient = True
    w = static.create_parameter([6, 6], "float32", name="square")
    x = paddle.matmul(F.tanh(paddle.matmul(embed(s.ids[1], 6, "tied") * kept, w)), w, transpose_y=True)
    s.end(paddle.concat([x, s.dense], axis=1))


# ---------------------------------------------------------------------------------------------------------------------

for pool in ("sum", "average", "sqrt", "max", "first", "last"):
    program("sequences", "pool_" + pool)(lambda s, pool=pool: s.end(paddle.concat(
        [sequences.sequence_pool(s.rows(i), pool) for i in range(3)] + [sequences.sequence_pool(s.floats, pool)], 1)))


@program("sequences")
def attention(s):
    rows = s.rows()
    weights = sequences.sequence_softmax(static.nn.fc(rows, 1, bias_attr=False))
    s.end(paddle.concat([sequences.sequence_pool(rows * weights, "sum"), s.dense], axis=1))


@program("sequences")
def expanded(s):
    rows, item = s.rows(), embed(s.ids[0], 4, "item")
    wide = [sequences.sequence_expand(item, rows, ref_level=0), rows * sequences.sequence_expand_as(item, rows)]
    both = static.nn.fc(paddle.concat([rows] + wide, axis=1), 5, activation="relu")
    s.end(paddle.concat([sequences.sequence_pool(both, "max"), s.dense], axis=1))


@program("sequences")
def padded(s):
    pad, length = sequences.sequence_pad(s.rows(), paddle.zeros([1], "float32"), maxlen=6)
    hidden = static.nn.fc(pad, 4, num_flatten_dims=2, activation="tanh")
    mask = paddle.unsqueeze(sequences.sequence_mask(length, maxlen=6, dtype="float32"), 2)
    unpadded = sequences.sequence_pool(sequences.sequence_unpad(hidden, length), "max")
    s.end(paddle.concat([paddle.sum(hidden * mask, axis=1), unpadded, s.dense], axis=1))


@program("sequences")
def joined(s):
    rows = sequences.sequence_concat([s.rows(i) for i in range(3)])
    ends = [sequences.sequence_first_step(sequences.sequence_reverse(rows)), sequences.sequence_last_step(rows * rows)]
    s.end(paddle.concat([sequences.sequence_pool(rows, "average"), s.dense] + ends, axis=1))


@program("sequences")
def windows(s):
    """Each id with its neighbours, and sequences that are told anew."""
    seen = sequences.sequence_conv(s.rows(), 5, filter_size=3, act="tanh")
    told = op_of("lod_reset", {"X": paddle.tanh(s.rows()), "Y": s.slots[0]}, {})
    s.end(paddle.concat([sequences.sequence_pool(seen, "max"), sequences.sequence_pool(told, "sqrt"), s.dense], axis=1))


# ---------------------------------------------------------------------------------------------------------------------


@program("layers")
def spread(s):
    """A number that Paddle declares without axes, beside one of the same kind that has one."""
    x = linear(s.everything(), 8, F.relu)
    s.end(x, deviation=paddle.std(x), largest=paddle.max(x))


@program("layers")
def normed(s):
    x = static.nn.batch_norm(s.everything(), momentum=0.8, act="relu")
    x = static.nn.layer_norm(linear(x, 8))
    s.end(paddle.concat([x, static.nn.data_norm(s.dense, name="counts", epsilon=1e-4)], axis=1))


@program("onnx")
def stacked_and_normed(s):
    """What recommendation models hold besides products and sums, and ONNX has a form for."""
    fields = paddle.stack([embed(ids, 4, "field") for ids in s.ids], axis=1)
    turned = paddle.flatten(paddle.transpose(fields, [0, 2, 1]), 1)
    s.end(static.nn.batch_norm(paddle.concat([turned, paddle.sqrt(paddle.abs(s.dense)), paddle.exp(s.dense)], axis=1)))


@program("onnx")
def split_and_centered(s):
    kind = paddle.reshape(F.one_hot(s.ids[0], VOCABULARY), [-1, VOCABULARY])[:, :4]
    left, right = paddle.split(static.nn.layer_norm(linear(s.everything(), 9)), [4, -1], axis=-1)
    cube = paddle.nn.LayerNorm([2, 2], weight_attr=False, bias_attr=False)(paddle.reshape(left * kind, [-1, 2, 2]))
    s.end(paddle.concat([paddle.flatten(cube, 1), kind] + paddle.split(right, 5, axis=1)[1:], axis=1))


@program("layers")
def left_out_in_training_alone(s):
    x = s.everything()
    s.end(F.dropout(x, 0.3, training=False, mode="downscale_in_infer") + F.dropout(x, 0.0, mode="upscale_in_train"))


@program("layers")
def cut_and_joined(s):
    x = linear(s.everything(), 12, F.relu)
    cube = paddle.reshape(x, [0, 3, 4])
    parts = [cube[:, 0, :], paddle.flatten(cube[:, 1:, ::2], 1), paddle.flatten(cube[:, ::-1, 1:3], 1)]
    parts += paddle.split(x, [2, -1, 4], axis=-1)[:2] + [paddle.tile(cube[:, 1], [1, 2])]
    parts += [paddle.max(paddle.stack(parts[:1] * 2, axis=1), axis=1), paddle.topk(x, 3, axis=1)[0]]
    s.end(paddle.concat(parts, axis=-1))


@program("layers")
def attended(s):
    """AutoInt: heads of attention among fields."""
    fields = paddle.stack([embed(ids, 4, "field_%d" % i) for i, ids in enumerate(s.ids)], axis=1)
    heads = lambda x: paddle.transpose(paddle.reshape(x, [0, 0, 2, 4]), [0, 2, 1, 3])
    q, v = heads(linear(fields, 8)), heads(linear(fields, 8))
    k = heads(paddle.nn.Linear(4, 8, bias_attr=False)(fields))
    seen = paddle.matmul(F.softmax(paddle.matmul(q * 0.5, k, transpose_y=True)), v)
    out = F.relu(paddle.reshape(paddle.transpose(seen, [0, 2, 1, 3]), [0, 0, 8]) + linear(fields, 8))
    s.end(paddle.reshape(out, [-1, 16]))


@program("layers")
def measured(s):
    x = s.everything()
    prob, kinds = F.softmax(linear(x, 5)), s.ids[0] % 5
    two = F.softmax(linear(x, 2))
    of_three, of_three_batches, _ = static.auc(two, s.label, num_thresholds=4095, slide_steps=3)
    of_all, of_all_batches, _ = static.auc(two, s.label, num_thresholds=10, slide_steps=0)
    s.end(x, first=static.accuracy(prob, kinds), third=static.accuracy(prob, kinds, k=3), of_three=of_three,
          of_three_batches=of_three_batches, of_all=of_all, of_all_batches=of_all_batches)


@program("metrics")
def clicks_of_a_day(s):
    """What ctr_metric_bundle adds up over all batches."""
    prob = F.sigmoid(linear(tower(s.everything(), (8,)), 1))
    label = paddle.cast(s.label, "float32")
    sums = static.ctr_metric_bundle(prob, label)
    names = ("squares", "errors", "clicks", "quality", "positive", "seen")
    s.finish(recsys.click_loss(prob, s.label), prob, recsys.auc_of(prob, s.label), paddle.optimizer.SGD(0.1))
    s.fetch.update(zip(names, sums))


@program("metrics")
def counted(s):
    """Whole numbers that are computed with: sizes, ranks, sums, bounds."""
    ids = paddle.concat(s.ids, axis=1)
    last = paddle.shape(ids)[0] - 1
    far = paddle.abs(ids[:, :1] - ids[:, 1:])
    running = paddle.cumsum(paddle.clip(ids, 3, 40), axis=1)
    top, _ = paddle.topk(running, 1, axis=1)
    places = paddle.argmax(ids, axis=1)
    ordered = paddle.sort(ids, axis=1, descending=True)
    numbers = paddle.concat([far, running, top, ordered, paddle.unsqueeze(places, 1), paddle.square(far), paddle.sign(far)], axis=1)
    x = paddle.concat([s.everything(), 0.01 * paddle.cast(numbers, "float32")], axis=1)
    s.end(x, last=paddle.cast(last, "float32"), numbers=paddle.sum(paddle.cast(numbers, "float32")))


@program("metrics")
def ids_that_move(s):
    """Sequences of ids, joined, turned around and padded before they are looked up."""
    both = sequences.sequence_concat([s.slots[0], s.slots[1]])
    turned = sequences.sequence_reverse(both)
    rows = paddle.reshape(static.nn.embedding(turned, [VOCABULARY, 5], is_sparse=True, param_attr="rows"), [-1, 5])
    zero = paddle.zeros([1], "int64")
    padded, lengths = sequences.sequence_pad(s.slots[2], zero, maxlen=4)
    wide = paddle.cast(paddle.reshape(padded, [-1, 4]), "float32")
    x = [sequences.sequence_pool(rows, "sum"), 0.01 * wide, paddle.cast(paddle.reshape(lengths, [-1, 1]), "float32")]
    s.end(paddle.concat(x, axis=1))


if __name__ == "__main__":
    group, folder = sys.argv[1:]
    for named, define in GROUPS[group].items():
        recsys.train(Sample, define, folder + "/" + named)
