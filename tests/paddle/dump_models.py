"""Trains a model in Paddle with everything dumped. Needs Paddle 2.

    dump_models.py KIND FOLDER      writes FOLDER/job (export_from_paddle.py), data/, and what Paddle dumped: paddle/

KIND is queue, memory, ids, content (a QueueDataset; in memory, without names, with names, with contents), random, or merge
(two lines an example, joined by its name, the slots alone).
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import numpy as np
import paddle
import paddle.nn.functional as F
import recsys_models as recsys  # finds export_from_paddle
from paddle import static

import export_from_paddle


class Sample(recsys.Sample):
    def __init__(self):
        self.columns = []
        self.label = self._dense("label", 1, "int64", lambda r: [int(r.random() < 0.4)])
        self.dense = self._dense("dense", 3, "float32", lambda r: list(r.normal(0, 1, 3).round(4)))
        self.ids = self._slot("ids", lambda r: list(r.integers(0, recsys.VOCABULARY, r.integers(1, 5))))


def write_lines(columns, kind, path):
    random = np.random.default_rng(5)
    with open(path, "w", encoding="utf-8") as file:
        for i in range(70):
            parts = ["1 id%03d" % i] if kind in ("ids", "content", "random") else []
            parts += ["1 text_%d" % i] if kind == "content" else []
            for _, values in columns:
                numbers = values(random)
                parts.append("%d %s" % (len(numbers), " ".join(map(str, numbers))))
            file.write(" ".join(parts) + "\n")


def write_parts(path):
    """Lines of which some two are an example, and some are too few, too many, or speak of the same slot."""
    random = np.random.default_rng(7)
    lines = []
    for i in range(12):
        label, ids, dense = random.integers(0, 2), random.integers(1, 50, 3), random.normal(0, 1, 3).round(3)
        text = lambda values: " ".join(map(str, values))
        first = "1 id%02d 1 %d 3 %s 1 0" % (i, label, text(dense if i % 3 == 0 else [0, 0, 0]))
        second = "1 id%02d 1 %d 3 %s 3 %s" % (i, label if i % 4 else 0, text(dense if i % 3 else [0, 0, 0]), text(ids))
        lines += {7: [first], 8: [first, second, second], 9: [second, second]}.get(i, [first, second])
    random.shuffle(lines)
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))


def main(kind, folder):
    os.makedirs(folder + "/data")
    program, startup = static.Program(), static.Program()
    program.random_seed = startup.random_seed = 3
    with static.program_guard(program, startup):
        s = Sample()
        rows = static.nn.embedding(s.ids, [recsys.VOCABULARY, 4], is_sparse=True, param_attr="table")
        rows = paddle.reshape(rows, [-1, 4])
        pooled = static.nn.sequence_lod.sequence_pool(rows, "sum")
        layer = paddle.nn.Linear(7, 2)
        prob = F.softmax(layer(paddle.concat([pooled, s.dense], 1)))
        cost = paddle.mean(F.cross_entropy(prob, s.label, use_softmax=False))
        double = paddle.cast(s.dense, "float64")
        paddle.optimizer.Adagrad(0.1).minimize(cost)
        variables = s.variables()
    if kind == "merge":
        write_parts(folder + "/data/part")
    else:
        write_lines(s.columns, kind, folder + "/data/part")
    exe = static.Executor(paddle.CPUPlace())
    exe.run(startup)
    in_memory = kind != "queue"
    dataset = paddle.distributed.InMemoryDataset() if in_memory else paddle.distributed.QueueDataset()
    dataset.init(batch_size=16, thread_num=1, use_var=variables, pipe_command="cat")
    if in_memory:
        named = kind in ("ids", "content", "random")
        settings = {"merge_size": 2, "parse_ins_id": True} if kind == "merge" else {"parse_ins_id": named, "parse_content": kind == "content"}
        dataset._init_distributed_settings(**settings)
    dataset.set_filelist([folder + "/data/part"])
    if in_memory:
        dataset.load_into_memory()
    program._fleet_opt = {
        "trainer": "MultiTrainer", "device_worker": "Hogwild", "stat_var_names": [], "mpi_rank": 2, "mpi_size": 4,
        "dump_file_num": 1, "dump_fields": ["label", "ids", "dense", rows.name, pooled.name, prob.name, double.name],
        "dump_param": [layer.weight.name, layer.bias.name, cost.name, "table"], "dump_fields_path": folder + "/paddle",
    }
    options = program._fleet_opt
    if kind == "merge":
        options.update({"dump_fields": ["label", "ids", "dense"], "dump_param": []})
    if kind == "random":
        program._fleet_opt.update({"enable_random_dump": True, "random_with_lineid": True, "dump_interval": 3})
    export_from_paddle.save_job(folder + "/job", exe, program, startup, dataset, fetch_list=[cost], fetch_info=["loss"])
    if kind == "merge":
        # Paddle joins what stands in the channel of shuffled rows: where two passes leave them.
        program._fleet_opt = None
        for _ in range(2):
            exe.train_from_dataset(program, dataset)
        dataset.dataset.merge_by_lineid()
        program._fleet_opt = options
    exe.train_from_dataset(program, dataset, fetch_list=[cost], fetch_info=["loss"], print_period=100)


if __name__ == "__main__":
    main(*sys.argv[1:])
