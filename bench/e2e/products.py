#!/usr/bin/env python3
"""Trains models made of small products in Paddle and here, in turn, and prints Paddle's time / ours for each.

    PADDLE_PYTHON=... bench/e2e/products.py [--models autoint,sasrec] [--sizes small,real] [--reps 3]

Both sides run the program that Paddle wrote, on the same rows, which lie in memory, with one thread. Time is that of
the processor for a pass of training, without start and loading: passes of Paddle's train_from_dataset, and here the
difference between a run of many passes and a run of one. The pairs of a model follow each other at once; a ratio is
that of the medians, and the brackets hold the smallest and largest time of either side.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
VOCABULARY = 1000

# rows of a batch, width of an embedding, fields or length of a history, batches of a pass
SIZES = {"small": (32, 8, 6, 64), "real": (256, 32, 20, 8)}
MODELS = ("autoint", "sasrec", "transformer", "mind", "dsin", "sign", "srgnn", "pnn", "afm", "xdeepfm",
          "linear2", "linear3", "linear4", "attention")


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    return {**env, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MKL_DEBUG_CPU_TYPE": "5"}


# --- In Paddle's Python -----------------------------------------------------------------------------------------------


class Author:
    """The models. Every one ends in a click's probability, its log loss, and SGD."""

    def __init__(self, size):
        import paddle

        self.p, self.F, self.static = paddle, paddle.nn.functional, paddle.static
        self.rows, self.dim, self.length, _ = SIZES[size]
        self.columns = []

    def data(self, name, width, dtype):
        self.columns.append((width, dtype))
        return self.static.data(name, [-1, width], dtype)

    def linear(self, x, units):
        return self.p.nn.Linear(x.shape[-1], units)(x)

    def embedded(self, name="ids"):
        rows = self.p.nn.Embedding(VOCABULARY, self.dim, sparse=True)
        return rows(self.data(name, self.length, "int64"))

    def heads(self, x, heads=2):
        """[..., length, dim] as [..., heads, length, dim / heads]."""
        front = len(x.shape) - 2
        x = self.p.reshape(x, [-1] + list(x.shape[1:-1]) + [heads, x.shape[-1] // heads])
        return self.p.transpose(x, list(range(front)) + [front + 1, front, front + 2])

    def attend(self, x, mask=None):
        q, k, v = [self.heads(self.linear(x, self.dim)) for _ in range(3)]
        scores = self.p.matmul(q, k, transpose_y=True) * (self.dim // 2) ** -0.5
        seen = self.p.matmul(self.F.softmax(scores if mask is None else scores + mask), v)
        front = len(x.shape) - 2
        seen = self.p.transpose(seen, list(range(front)) + [front + 1, front, front + 2])
        return self.p.reshape(seen, [-1] + list(x.shape[1:]))

    def flat(self, x):
        return self.p.flatten(x, 1)

    def autoint(self):
        x = self.embedded()
        for _ in range(2):
            x = self.F.relu(self.attend(x) + self.linear(x, self.dim))
        return self.linear(self.flat(x), 1)

    def sasrec(self):
        x = self.embedded() + self.static.create_parameter([self.length, self.dim], "float32")
        mask = self.p.triu(self.p.full([self.length, self.length], -1e9), 1)
        for _ in range(2):
            x = x + self.attend(self.p.nn.LayerNorm(self.dim)(x), mask)
            normed = self.p.nn.LayerNorm(self.dim)(x)
            x = x + self.linear(self.F.relu(self.linear(normed, self.dim)), self.dim)
        return self.linear(self.flat(x), 1)

    def transformer(self):
        layer = self.p.nn.TransformerEncoderLayer(self.dim, 2, 4 * self.dim, dropout=0.0)
        x = self.p.nn.TransformerEncoder(layer, 2)(self.embedded())
        return self.linear(self.p.mean(x, 1), 1)

    def mind(self):
        interests = 3
        history, target = self.embedded(), self.embedded("targets")[:, 0]
        mapped = self.p.matmul(history, self.static.create_parameter([self.dim, self.dim], "float32"))
        logits = self.p.zeros([interests, self.length]) + self.p.sum(mapped, -1, keepdim=True).transpose([0, 2, 1])
        for i in range(3):
            capsule = self.p.matmul(self.F.softmax(logits, axis=1), mapped)
            square = self.p.sum(self.p.square(capsule), -1, keepdim=True)
            capsule = capsule * (square / (1 + square) / self.p.sqrt(square + 1e-8))
            if i < 2:
                logits = logits + self.p.matmul(capsule, mapped, transpose_y=True)
        capsule = self.F.relu(self.linear(capsule, self.dim))
        weights = self.F.softmax(self.p.matmul(capsule, self.p.unsqueeze(target, 2)), axis=1)
        return self.p.sum(self.p.sum(capsule * weights, 1) * target, 1, keepdim=True)

    def dsin(self):
        sessions = 4
        ids = self.data("sessions", sessions * self.length, "int64")
        rows = self.p.nn.Embedding(VOCABULARY, self.dim, sparse=True)
        target = self.embedded("targets")[:, 0]
        x = self.p.reshape(rows(ids), [-1, sessions, self.length, self.dim])
        x = x + self.static.create_parameter([sessions, self.length, self.dim], "float32")
        x = x + self.attend(x)
        x = x + self.linear(self.F.relu(self.linear(x, self.dim)), self.dim)
        interest = self.p.mean(x, 2)
        state, _ = self.p.nn.LSTM(self.dim, self.dim // 2, direction="bidirect")(interest)

        def pooled(values):
            scores = self.p.matmul(self.linear(values, self.dim), self.p.unsqueeze(target, 2))
            return self.p.sum(self.F.softmax(scores, axis=1) * values, 1)

        both = self.p.concat([pooled(interest), pooled(state), target], 1)
        return self.linear(self.F.relu(self.linear(both, self.dim)), 1)

    def sign(self):
        x, n = self.embedded(), self.length
        left = self.p.expand(self.p.unsqueeze(x, 2), [-1, n, n, self.dim])
        right = self.p.expand(self.p.unsqueeze(x, 1), [-1, n, n, self.dim])
        pairs = self.p.concat([left * right, left + right], 3)
        edges = self.F.sigmoid(self.linear(self.F.relu(self.linear(left * right, self.dim)), 1))
        messages = self.linear(self.F.relu(self.linear(pairs, self.dim)), self.dim)
        return self.linear(self.p.mean(self.p.mean(messages * edges, 2), 1), 1)

    def srgnn(self):
        x, n = self.embedded(), self.length
        graph = self.p.reshape(self.data("graph", n * n, "float32"), [-1, n, n])
        for _ in range(2):
            seen = [self.p.matmul(graph, self.linear(x, self.dim), transpose_x=t) for t in (False, True)]
            both = self.p.concat(seen, 2)
            gates = self.linear(both, 3 * self.dim)
            own = self.linear(x, 3 * self.dim)
            reset, keep, new = self.p.split(gates, 3, 2)
            own_reset, own_keep, own_new = self.p.split(own, 3, 2)
            keep = self.F.sigmoid(keep + own_keep)
            fresh = self.p.tanh(new + self.F.sigmoid(reset + own_reset) * own_new)
            x = fresh + keep * (x - fresh)
        last = x[:, n - 1]
        score = self.linear(self.F.sigmoid(self.p.unsqueeze(self.linear(last, self.dim), 1) + self.linear(x, self.dim)), 1)
        return self.linear(self.p.concat([self.p.sum(score * x, 1), last], 1), 1)

    def pnn(self):
        x, n = self.embedded(), self.length
        inner = self.p.matmul(x, x, transpose_y=True)
        summed = self.p.sum(x, 1)
        outer = self.p.matmul(self.p.unsqueeze(summed, 2), self.p.unsqueeze(summed, 1))
        both = self.p.concat([self.flat(x), self.p.reshape(inner, [-1, n * n]), self.flat(outer)], 1)
        return self.linear(self.F.relu(self.linear(both, 4 * self.dim)), 1)

    def afm(self):
        x, n = self.embedded(), self.length
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
        index = [self.p.assign(self.np_int([pair[side] for pair in pairs])) for side in (0, 1)]
        products = self.p.index_select(x, index[0], 1) * self.p.index_select(x, index[1], 1)
        weights = self.F.softmax(self.linear(self.F.relu(self.linear(products, self.dim)), 1), axis=1)
        return self.linear(self.p.sum(weights * products, 1), 1)

    def np_int(self, values):
        import numpy as np

        return np.array(values, "int64")

    def xdeepfm(self):
        x, n = self.embedded(), self.length
        last, layers = x, []
        for maps in (8, 8):
            outer = self.p.unsqueeze(last, 2) * self.p.unsqueeze(x, 1)
            outer = self.p.transpose(self.p.reshape(outer, [-1, last.shape[1] * n, self.dim]), [0, 2, 1])
            last = self.F.relu(self.p.transpose(self.linear(outer, maps), [0, 2, 1]))
            layers.append(self.p.sum(last, 2))
        return self.linear(self.p.concat(layers, 1), 1) + self.linear(self.F.relu(self.linear(self.flat(x), self.dim)), 1)

    def six(self, shape):
        x = self.p.reshape(self.data("floats", 192, "float32"), shape)
        for _ in range(6):
            x = self.linear(x, 8)
        return self.p.mean(self.p.reshape(x, [-1, 192]), 1, keepdim=True)

    def linear2(self):
        return self.six([-1, 8])

    def linear3(self):
        return self.six([-1, 24, 8])

    def linear4(self):
        return self.six([-1, 6, 4, 8])

    def attention(self):
        """[rows, 2, length, dim]: scores and what they pick, twice."""
        n = self.length
        flat = self.data("floats", 2 * n * self.dim, "float32")
        x = self.p.reshape(flat * self.static.create_parameter([1], "float32"), [-1, 2, n, self.dim])
        for _ in range(2):
            x = self.p.matmul(self.p.matmul(x, x, transpose_y=True), x)
        return self.p.mean(self.p.reshape(x, [-1, 2 * n * self.dim]), 1, keepdim=True)


def write_lines(columns, count, path):
    import numpy as np

    random = np.random.default_rng(5)
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(count):
            parts = []
            for width, dtype in columns:
                values = random.normal(0, 0.1, width).round(3) if dtype == "float32" else random.integers(1, VOCABULARY, width)
                parts += [str(width)] + [str(value) for value in values]
            file.write(" ".join(parts) + " 1 %d\n" % (random.random() < 0.4))


def batches_of(path, slots, rows):
    import numpy as np

    widths = [slot.shape[1] for slot in slots]
    with open(path, encoding="utf-8") as file:
        table = np.array([line.split() for line in file], "float64")
    at, columns = 0, []
    for width in widths:
        columns.append(table[:, at + 1 : at + 1 + width])
        at += 1 + width
    for start in range(0, len(table), rows):
        yield {slot.name: np.ascontiguousarray(column[start : start + rows].astype("int64" if slot.name in ("ids", "targets", "sessions", "label") else "float32"))
               for slot, column in zip(slots, columns)}


def author(model, size, folder, reps):
    """Writes FOLDER/job and prints the processor seconds of passes."""
    import paddle
    from paddle import static

    sys.path.insert(0, ROOT + "/scripts")
    import export_from_paddle

    paddle.enable_static()
    author = Author(size)
    logit = getattr(author, model)()
    label = author.data("label", 1, "int64")
    cost = paddle.mean(paddle.nn.functional.binary_cross_entropy_with_logits(logit, paddle.cast(label, "float32")))
    paddle.optimizer.SGD(0.01).minimize(cost)
    columns, batches = author.columns[:-1], SIZES[size][3]
    write_lines(columns, author.rows * batches, folder + "/rows")
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    main = static.default_main_program()
    dataset = paddle.distributed.InMemoryDataset()
    names = [var.name for var in main.list_vars() if var.is_data]
    slots = [main.global_block().var(name) for name in names]
    dataset.init(batch_size=author.rows, thread_num=1, use_var=slots, pipe_command="cat")
    dataset.set_filelist([folder + "/rows"])
    dataset.load_into_memory()
    export_from_paddle.save_job(folder + "/job", exe, main, static.default_startup_program(), dataset)
    feeds = list(batches_of(folder + "/rows", slots, author.rows))
    for _ in range(reps + 1):
        start = time.process_time()
        for feed in feeds:
            exe.run(main, feed=feed)
        print("RUN", time.process_time() - start)
    for _ in range(reps + 1):
        start = time.process_time()
        exe.train_from_dataset(main, dataset, thread=1)
        print("DATASET", time.process_time() - start)


# --- Here -------------------------------------------------------------------------------------------------------------


def run(command, folder):
    done = subprocess.run(command, env=environment(), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("%s\nexit %d\n%s" % (" ".join(command), done.returncode, (done.stdout + done.stderr)[-3000:]))
    return done.stdout


def our_seconds(trainer, folder, epochs):
    """Of the processor, for one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run([trainer, "--trainer_desc=" + folder + "/job/job.prototxt", "--output_dir=" + folder + "/out",
         "--set", "epochs=%d" % epochs, "--set", "thread_num=1", "--set", "checkpoint.every_epochs=0"], folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--sizes", default="small,real")
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--trainer", default=ROOT + "/build/release/bin/trainer")
    parser.add_argument("--keep", help="folder that the jobs stay in")
    parser.add_argument("--author", nargs=3, metavar=("MODEL", "SIZE", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.author:
        return author(*args.author, args.reps)
    if not os.environ.get("PADDLE_PYTHON"):
        sys.exit("PADDLE_PYTHON must name a Python with Paddle")
    trainer = os.path.abspath(args.trainer)
    print("| model | size | Paddle, ms a batch | Millrace, ms a batch | Paddle / Millrace |\n|---|---|---|---|---|")
    for size in args.sizes.split(","):
        for model in args.models.split(","):
            with tempfile.TemporaryDirectory() as scratch:
                folder = scratch
                if args.keep:
                    folder = os.path.join(os.path.abspath(args.keep), model + "-" + size)
                    os.makedirs(folder, exist_ok=True)
                text = run([os.environ["PADDLE_PYTHON"], os.path.abspath(__file__), "--reps", str(args.reps), "--author",
                            model, size, folder], folder)
                passes = [[float(line.split()[1]) for line in text.splitlines() if line.startswith(how)][1:]
                          for how in ("RUN", "DATASET")]
                theirs = min(passes, key=statistics.median)
                ours = []
                for _ in range(args.reps):
                    one = our_seconds(trainer, folder, 1)
                    ours.append((our_seconds(trainer, folder, 1 + args.epochs) - one) / args.epochs)
            batches = SIZES[size][3]
            shown = ["%.2f [%.2f-%.2f]" % tuple(1e3 * f(side) / batches for f in (statistics.median, min, max))
                     for side in (theirs, ours)]
            print("| %s | %s | %s | %s | %.2f |" % (model, size, *shown, statistics.median(theirs) / statistics.median(ours)),
                  flush=True)


if __name__ == "__main__":
    main()
