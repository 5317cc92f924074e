"""A program whose rows rest for long, trained by Paddle in 32 and in 64 bits. Needs Paddle 2.

    drift_models.py FOLDER SEED      writes FOLDER as recsys_models.py does, and in exact/ the variables at the end that
                                     Paddle comes to in 64 bits from the same values: 64-bit floats, nothing else
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import numpy as np
import paddle
import paddle.nn.functional as F
import recsys_models as recsys
import zoo_models
from paddle import static

ITEMS = 400
BATCHES = 24


class Sample(zoo_models.Sample):
    def __init__(self):
        self.columns = []
        self.label = self._dense("label", 1, "int64", lambda r: [0])
        # Each batch has the last row: behind the last row of a gradient, Paddle's Adam reads what memory holds there.
        self.candidates = self._dense("candidates", 11, "int64", lambda r: list(r.integers(0, ITEMS, 10)) + [ITEMS - 1])
        self.history = self._slot("history", lambda r: list(r.integers(0, ITEMS, r.integers(1, 6))) + [ITEMS - 1])


def youtube_dnn(s):
    """Retrieval by a sampled softmax: the first candidate was watched, the others are drawn. Adam moves every row."""
    rows = static.nn.embedding(s.history, [ITEMS, 16], is_sparse=True, param_attr="watched")
    user = recsys.tower(static.nn.sequence_lod.sequence_pool(paddle.reshape(rows, [-1, 16]), "average"), (32, 16))
    items = static.nn.embedding(s.candidates, [ITEMS, 16], is_sparse=True, param_attr="items")
    logits = paddle.squeeze(paddle.matmul(paddle.unsqueeze(user, 1), items, transpose_y=True), 1)
    cost = paddle.mean(F.cross_entropy(logits, s.label, reduction="none"))
    s.end(cost, F.softmax(logits), paddle.optimizer.Adam(0.001))


def build(dtype):
    """(main, startup, scope) with the first values of the variables."""
    main, startup, scope = static.Program(), static.Program(), static.Scope()
    main.random_seed = startup.random_seed = recsys.SEED
    paddle.set_default_dtype(dtype)
    with paddle.utils.unique_name.guard(), static.program_guard(main, startup), static.scope_guard(scope):
        sample = Sample()
        youtube_dnn(sample)
        static.Executor(paddle.CPUPlace()).run(startup)
    paddle.set_default_dtype("float32")
    return main, scope, [name for name, _ in sample.columns]


def train_exactly(folder):
    main32, scope32, _ = build("float32")
    main, scope, columns = build("float64")
    kept = [var.name for var in main.list_vars() if recsys.is_kept(var)]
    if kept != [var.name for var in main32.list_vars() if recsys.is_kept(var)]:
        sys.exit("the programs have other variables")
    floats = []
    for name in kept:
        value = np.array(scope32.find_var(name).get_tensor())
        if value.dtype == np.float32:
            scope.find_var(name).get_tensor().set(value.astype(np.float64), paddle.CPUPlace())
            floats.append(name)
    exe = static.Executor(paddle.CPUPlace())
    with static.scope_guard(scope):
        for feed in recsys.read_lines(folder + "/data/part-000", main.global_block(), columns):
            exe.run(main, feed=feed, fetch_list=[])
    os.makedirs(folder + "/exact")
    for name in floats:
        np.array(scope.find_var(name).get_tensor()).astype(np.float64).tofile(folder + "/exact/" + name)


if __name__ == "__main__":
    recsys.BATCHES, recsys.SEED = BATCHES, int(sys.argv[2])
    recsys.train(Sample, youtube_dnn, sys.argv[1])
    train_exactly(sys.argv[1])
