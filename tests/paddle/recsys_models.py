"""Recommendation models written in Paddle, trained by Paddle, with every number that a test compares. Needs Paddle 2.

    recsys_models.py train MODEL FOLDER          writes FOLDER/job (export_from_paddle.py), data/, fetch.tsv, final/,
                                                 predict.tsv, and inference/model.*
    recsys_models.py predict PREFIX LINES OUT    what the saved model PREFIX.* predicts for MultiSlot lines, in the
                                                 order of FOLDER/data, a row each
"""

import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import static

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
import export_from_paddle

paddle.enable_static()

VOCABULARY = 50
BATCH = 32
BATCHES = 8
SEED = 11


def linear(x, units, act=None):
    """A fully connected layer as paddle.nn.Linear writes it: matmul_v2 and elementwise_add."""
    out = paddle.nn.Linear(x.shape[-1], units)(x)
    return act(out) if act else out


def tower(x, sizes, act=F.relu):
    for units in sizes:
        x = linear(x, units, act)
    return x


def embed(ids, dim, name, sparse=True):
    """[rows, dim] of a slot with one id an example."""
    rows = static.nn.embedding(ids, size=[VOCABULARY, dim], is_sparse=sparse, param_attr=paddle.ParamAttr(name=name))
    return paddle.reshape(rows, [-1, dim])


def pooled(ids, dim, name, how="sum", **options):
    """[rows, dim] of a slot with any number of ids."""
    rows = static.nn.embedding(ids, size=[VOCABULARY, dim], is_sparse=True, padding_idx=0,
                               param_attr=paddle.ParamAttr(name=name), **options)
    return paddle.reshape(static.nn.sequence_lod.sequence_pool(rows, how), [-1, dim])


def click_loss(prob, label):
    return paddle.mean(F.log_loss(paddle.clip(prob, 1e-6, 1 - 1e-6), paddle.cast(label, "float32")))


def auc_of(prob, label):
    two = paddle.concat([1 - prob, prob], axis=1)
    return static.auc(two, label, num_thresholds=255)[0]


def lr(s):
    logit = paddle.add_n([embed(x, 1, "w_%d" % i) for i, x in enumerate(s.ids)]) + linear(s.dense, 1)
    return s.click(F.sigmoid(logit), paddle.optimizer.SGD(0.1))


def fm_terms(s, dim):
    first = paddle.add_n([embed(x, 1, "first") for x in s.ids]) + linear(s.dense, 1)
    fields = paddle.concat([paddle.unsqueeze(embed(x, dim, "second"), axis=1) for x in s.ids], axis=1)
    summed = paddle.square(paddle.sum(fields, axis=1))
    squares = paddle.sum(paddle.square(fields), axis=1)
    second = 0.5 * paddle.sum(summed - squares, axis=1, keepdim=True)
    return first, second, fields


def fm(s):
    first, second, _ = fm_terms(s, 6)
    return s.click(F.sigmoid(first + second), paddle.optimizer.Adam(0.001, lazy_mode=True))


def deepfm(s):
    first, second, fields = fm_terms(s, 6)
    flat = paddle.concat([paddle.reshape(fields, [-1, 6 * len(s.ids)]), s.dense], axis=1)
    deep = linear(tower(flat, (24, 24)), 1)
    return s.click(F.sigmoid(first + second + deep), paddle.optimizer.Adam(0.001, lazy_mode=True))


def dnn(s):
    x = paddle.concat([embed(x, 9, "embedding") for x in s.ids] + [s.dense], axis=1)
    two = linear(tower(x, (32, 16)), 2)
    cost = paddle.mean(F.cross_entropy(input=two, label=s.label))
    prob = F.softmax(two)
    return s.finish(cost, prob, static.auc(prob, s.label, num_thresholds=255)[0], paddle.optimizer.Adam(0.001, lazy_mode=True))


def wide_deep(s):
    wide = linear(s.dense, 1)
    x = paddle.concat([embed(x, 8, "embedding") for x in s.ids] + [s.dense], axis=1)
    deep = linear(tower(x, (32, 16)), 1)
    prob = F.sigmoid(paddle.clip(wide + deep, -15, 15))
    return s.click(prob, paddle.optimizer.Adagrad(0.05))


def dcn(s):
    x0 = paddle.concat([embed(x, 6, "embedding") for x in s.ids] + [s.dense], axis=1)
    width = x0.shape[-1]
    x = x0
    for i in range(2):
        w = static.create_parameter([width, 1], "float32", name="cross_w_%d" % i,
                                    default_initializer=paddle.nn.initializer.Normal(0, 0.1))
        b = static.create_parameter([width], "float32", name="cross_b_%d" % i,
                                    default_initializer=paddle.nn.initializer.Constant(0))
        x = x0 * paddle.matmul(x, w) + b + x
    deep = tower(x0, (24, 24))
    prob = F.sigmoid(linear(paddle.concat([x, deep], axis=1), 1))
    return s.click(prob, paddle.optimizer.Adam(0.001, lazy_mode=True))


def two_tasks(s, first, second):
    """Two softmax heads; the prediction is the first one's click."""
    losses = [paddle.mean(F.cross_entropy(input=head, label=label)) for head, label in
              ((first, s.label), (second, s.label2))]
    prob = F.softmax(first)
    return s.finish(losses[0] + losses[1], prob, static.auc(prob, s.label, num_thresholds=255)[0],
                    paddle.optimizer.Adam(0.001, lazy_mode=True))


def share_bottom(s):
    bottom = tower(s.features(), (24,))
    return two_tasks(s, linear(tower(bottom, (12,)), 2), linear(tower(bottom, (12,)), 2))


def gated(x, experts, gate_input):
    gate = F.softmax(linear(gate_input, len(experts)))
    stacked = paddle.concat([paddle.reshape(e, [-1, 1, e.shape[-1]]) for e in experts], axis=1)
    weighted = stacked * paddle.reshape(gate, [-1, len(experts), 1])
    return paddle.sum(weighted, axis=1)


def mmoe(s):
    x = s.features()
    experts = [tower(x, (16,)) for _ in range(3)]
    heads = [linear(tower(gated(x, experts, x), (8,)), 2) for _ in range(2)]
    return two_tasks(s, *heads)


def ple(s):
    x = s.features()
    shared, inputs = x, [x, x]
    for level in range(2):
        own = [[tower(inputs[task], (16,)) for _ in range(2)] for task in range(2)]
        common = [tower(shared, (16,)) for _ in range(2)]
        outputs = [gated(x, own[task] + common, inputs[task]) for task in range(2)]
        if level == 0:
            shared = gated(x, own[0] + own[1] + common, shared)
        inputs = outputs
    return two_tasks(s, *[linear(tower(x, (8,)), 2) for x in inputs])


def esmm(s):
    x = s.features()
    ctr = F.softmax(linear(tower(x, (16,)), 2))
    cvr = F.softmax(linear(tower(x, (16,)), 2))
    click = paddle.slice(ctr, axes=[1], starts=[1], ends=[2])
    buy = paddle.multiply(click, paddle.slice(cvr, axes=[1], starts=[1], ends=[2]))
    losses = [paddle.sum(F.log_loss(p, paddle.cast(label, "float32"))) for p, label in
              ((click, s.label), (buy, s.label2))]
    return s.finish(losses[0] + losses[1], click, static.auc(ctr, s.label, num_thresholds=255)[0],
                    paddle.optimizer.Adam(0.001, lazy_mode=True))


def din(s):
    """Attention of a target item over a history, padded to the same length, masked by a dense slot."""
    length, dim = s.HISTORY, 8
    target = embed(s.ids[0], dim, "item", sparse=False)
    rows = static.nn.embedding(s.history, size=[VOCABULARY, dim], param_attr=paddle.ParamAttr(name="item"))
    history = paddle.reshape(rows, [-1, length, dim])
    wide = paddle.expand(paddle.unsqueeze(target, axis=1), [-1, length, dim])
    both = paddle.concat([history, wide, history - wide, history * wide], axis=2)
    scores = linear(F.sigmoid(linear(both, 16)), 1)
    scores = paddle.transpose(scores, [0, 2, 1]) + paddle.unsqueeze(s.mask, axis=1)
    weights = F.softmax(scores * dim ** -0.5)
    attended = paddle.reshape(paddle.matmul(weights, history), [-1, dim])
    logit = linear(tower(paddle.concat([linear(attended, dim), target], axis=1), (16,), F.sigmoid), 1)
    cost = paddle.mean(F.binary_cross_entropy_with_logits(logit, paddle.cast(s.label, "float32"), reduction="none"))
    prob = F.sigmoid(logit)
    return s.finish(cost, prob, auc_of(prob, s.label), paddle.optimizer.SGD(0.5))


def slot_dnn(s):
    x = paddle.concat([pooled(ids, 9, "embedding") for ids in s.slots], axis=1)
    prob = F.sigmoid(paddle.clip(linear(tower(x, (32, 16)), 1), -15, 15))
    return s.click(prob, paddle.optimizer.Adam(0.001, lazy_mode=True))


MODELS = {f.__name__: f for f in (lr, fm, deepfm, dnn, wide_deep, dcn, share_bottom, mmoe, ple, esmm, din, slot_dnn)}


class Sample:
    """The variables of a model and the values of its lines; a model takes what it wants, and lines hold only that."""

    HISTORY = 5

    def __init__(self, model):
        self.many = 300 if model == "slot_dnn" else 0
        self.columns = []
        self.label = self._dense("label", 1, "int64", lambda r: [int(r.random() < 0.4)])
        if model in ("share_bottom", "mmoe", "ple", "esmm"):
            self.label2 = self._dense("label2", 1, "int64", lambda r: [int(r.random() < 0.3)])
        if self.many:
            some_ids = lambda r: list(r.integers(0, VOCABULARY, r.integers(1, 3)))
            self.slots = [self._slot("slot_%d" % i, some_ids) for i in range(self.many)]
            return
        self.dense = self._dense("dense", 4, "float32", lambda r: list(np.round(r.normal(0, 1, 4), 4)))
        self.ids = [self._dense("C%d" % i, 1, "int64", lambda r: [r.integers(0, VOCABULARY)]) for i in range(6)]
        if model == "din":
            self.history = self._dense("history", self.HISTORY, "int64",
                                       lambda r: list(r.integers(0, VOCABULARY, self.HISTORY)))
            self.mask = self._dense("mask", self.HISTORY, "float32",
                                    lambda r: [0 if i == 0 or r.random() < 0.7 else -100 for i in range(self.HISTORY)])

    def _dense(self, name, width, dtype, values):
        self.columns.append((name, values))
        return static.data(name, [-1, width], dtype)

    def _slot(self, name, values):
        self.columns.append((name, values))
        return static.data(name, [-1, 1], "int64", lod_level=1)

    def features(self):
        return paddle.concat([embed(x, 6, "embedding") for x in self.ids] + [self.dense], axis=1)

    def click(self, prob, optimizer):
        return self.finish(click_loss(prob, self.label), prob, auc_of(prob, self.label), optimizer)

    def finish(self, cost, predict, auc, optimizer):
        self.fetch = {"loss": cost, "auc": auc}
        self.predict = predict
        self.test = static.default_main_program().clone(for_test=True)
        optimizer.minimize(cost)

    def variables(self):
        block = static.default_main_program().global_block()
        return [block.var(name) for name, _ in self.columns]


def write_lines(columns, path):
    random = np.random.default_rng(SEED)
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(BATCH * BATCHES - 5):
            parts = []
            for _, values in columns:
                numbers = values(random)
                parts += [str(len(numbers))] + [str(number) for number in numbers]
            file.write(" ".join(parts) + "\n")


def read_lines(path, block, names):
    """Batches of feeds from lines of these columns; a column that `block` lacks is left out."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            tokens, at, row = line.split(), 0, []
            for _ in names:
                count = int(tokens[at])
                row.append(tokens[at + 1:at + 1 + count])
                at += 1 + count
            rows.append(row)
    for start in range(0, len(rows), BATCH):
        batch, feed = rows[start:start + BATCH], {}
        for column, name in enumerate(names):
            if not block.has_var(name):
                continue
            var = block.var(name)
            dtype = "float32" if var.dtype == paddle.float32 else "int64"
            values = [np.array(row[column], dtype) for row in batch]
            if var.lod_level > 0:
                flat = np.concatenate(values).reshape(-1, 1)
                feed[name] = paddle.base.create_lod_tensor(flat, [[len(v) for v in values]], paddle.CPUPlace())
            else:
                feed[name] = np.stack(values)
        yield feed


def names_behind(name, block):
    """What a variable is computed from."""
    names = {name}
    for op in reversed(block.ops):
        if names.intersection(op.output_arg_names):
            names.update(op.input_arg_names)
    return names


def is_kept(var):
    return var.persistable and var.name not in ("feed", "fetch")


def write_table(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write("\t".join("%.9g" % value for value in row) + "\n")


def train(make_sample, define, folder):
    """Trains what `define` makes of a sample, in a scope and with names of its own."""
    with paddle.utils.unique_name.guard(), static.scope_guard(static.Scope()):
        _train(make_sample, define, folder)


def _train(make_sample, define, folder):
    main, startup = static.Program(), static.Program()
    main.random_seed = startup.random_seed = SEED
    with static.program_guard(main, startup):
        sample = make_sample()
        define(sample)
        variables = sample.variables()
    names = [name for name, _ in sample.columns]
    os.makedirs(folder + "/data")
    lines = folder + "/data/part-000"
    write_lines(sample.columns, lines)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(startup)
    dataset = paddle.distributed.QueueDataset()
    dataset.init(batch_size=BATCH, thread_num=1, use_var=variables, pipe_command="cat")
    dataset.set_filelist([lines])
    fetches = list(sample.fetch.values())
    export_from_paddle.save_job(folder + "/job", exe, main, startup, dataset, fetch_list=fetches,
                                fetch_info=list(sample.fetch), predict=[sample.predict], print_period=1)

    history, first = [], None
    for feed in read_lines(lines, main.global_block(), names):
        first = first or feed
        history.append([float(np.asarray(x).reshape(-1)[0]) for x in exe.run(main, feed=feed, fetch_list=fetches)])
    write_table(folder + "/fetch.tsv", history)
    with open(folder + "/names.json", "w", encoding="utf-8") as file:
        ops = [op.type for op in main.global_block().ops]
        json.dump({"names": [var.name for var in fetches], "columns": names, "ops": ops}, file)
    static.save_vars(exe, folder + "/final", main, predicate=is_kept)
    needed = {name: value for name, value in first.items() if sample.test.global_block().has_var(name)}
    write_table(folder + "/predict.tsv", exe.run(sample.test, feed=needed, fetch_list=[sample.predict])[0])
    read = names_behind(sample.predict.name, main.global_block())
    with static.program_guard(main, startup):
        static.save_inference_model(folder + "/inference/model", [var for var in variables if var.name in read],
                                    [sample.predict], exe, program=main)


def predict(prefix, columns, lines, out):
    exe = static.Executor(paddle.CPUPlace())
    program, feeds, fetches = static.load_inference_model(prefix, exe)
    rows = []
    for feed in read_lines(lines, program.global_block(), columns.split(",")):
        rows += list(exe.run(program, feed={name: feed[name] for name in feeds}, fetch_list=fetches)[0])
    write_table(out, rows)


if __name__ == "__main__":
    train_model = lambda model, folder: train(lambda: Sample(model), MODELS[model], folder)
    {"train": train_model, "predict": predict}[sys.argv[1]](*sys.argv[2:])
