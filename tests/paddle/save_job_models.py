"""Jobs that scripts/export_from_paddle.py saves, for save_job_test.py. Needs Paddle 2.

    save_job_models.py KIND FOLDER      writes FOLDER/job
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))

import export_from_paddle
import paddle
from paddle import static
from paddle.base.dataset import DatasetFactory

paddle.enable_static()
ROWS = 24
ROWS_OF_A_VIEW = 3


def write_lines(path, with_key):
    with open(path, "w", encoding="utf-8") as file:
        for i in range(ROWS):
            key = "1 %016x%016x " % (0, i // ROWS_OF_A_VIEW) if with_key else ""
            file.write("%s1 %d 2 0.%d 0.5\n" % (key, i % 2, i % 7))


def page_views(variables, lines):
    dataset = DatasetFactory().create_dataset("InMemoryDataset")
    dataset.set_batch_size(8)
    dataset.set_use_var(variables)
    dataset.set_parse_logkey(True)
    dataset.set_merge_by_sid(True)
    dataset.set_enable_pv_merge(True)
    dataset.set_pv_batch_size(4)
    dataset.set_filelist([lines])
    return dataset


def streamed(variables, lines):
    dataset = paddle.distributed.QueueDataset()
    dataset.init(batch_size=8, thread_num=1, use_var=variables, pipe_command="cat")
    dataset.set_filelist([lines])
    return dataset


def unknown_layers(hidden):
    """Layers that Millrace has no operators for, in the main and in the startup program."""
    costs = [static.nn.bilinear_tensor_product(hidden, hidden, 3) for _ in range(2)]
    block = static.default_startup_program().global_block()
    drawn = block.create_var(name="drawn", shape=[4], dtype="int64", persistable=True)
    block.append_op(type="randperm", outputs={"Out": [drawn]}, attrs={"n": 4, "dtype": 3})
    return paddle.mean(costs[0] + costs[1])


def main(kind, folder):
    label = static.data("label", [-1, 1], "int64")
    x = static.data("x", [-1, 2], "float32")
    prob = static.nn.fc(x, 2, activation="softmax")
    cost = paddle.mean(paddle.nn.functional.cross_entropy(prob, label, use_softmax=False))
    if kind == "unknown":
        cost = cost + unknown_layers(static.nn.fc(x, 4))
    paddle.optimizer.SGD(0.1).minimize(cost)
    program, startup = static.default_main_program(), static.default_startup_program()
    exe = static.Executor(paddle.CPUPlace())
    exe.run(startup)
    write_lines(folder + "/lines", kind in ("page_views", "both_phases"))
    make = page_views if kind in ("page_views", "both_phases") else streamed
    dataset = make([label, x], folder + "/lines")
    more = {"phases": ["JOIN", "UPDATE"]} if kind == "both_phases" else {}
    if kind == "measured":
        more = {"predict": [prob]}
    if kind == "compiled":
        program = static.CompiledProgram(program)
    save = lambda **options: export_from_paddle.save_job(folder + "/job", exe, program, startup, dataset, [cost], ["loss"],
                                                         print_period=1, **options)
    if kind == "mistaken":
        try:
            save(phases=["JOIN"])
            sys.exit("save_job takes phases without page views")
        except ValueError as error:
            print(error)
        return
    save(**more)


if __name__ == "__main__":
    main(*sys.argv[1:])
