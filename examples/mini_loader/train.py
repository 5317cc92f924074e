"""Fits a line to the numbers in part files, which a plugin reads.

    python3 examples/mini_loader/train.py [PLUGIN [FOLDER PARTS ROWS]]

PLUGIN is mini_loader.so, by default the one beside this file; ROWS are the lines of all parts, which are one batch.
"""

import os
import sys

import millrace
from millrace import layers, optimizer
from mini_layers import MiniDecoder, MiniReader

HERE = os.path.dirname(os.path.abspath(__file__))


def main(plugin=os.path.join(HERE, "mini_loader.so"), folder=os.path.join(HERE, "data"), parts=2, rows=9, steps=3000):
    millrace.load_plugin(plugin)
    record = MiniReader(folder, batch_size=rows, data_part_num=parts, part_name_suffix_length=3, random_shuffle=True,
                        shuffle_after_epoch=True)
    x, y = MiniDecoder(record)
    prediction = layers.fc(layers.cast(x, "float32"), 1, name="line")
    loss = layers.mean(layers.square_error_cost(prediction, layers.cast(y, "float32")))
    optimizer.SGD(0.02).minimize(loss)

    exe = millrace.Executor(millrace.CPUPlace())
    exe.run(millrace.default_startup_program())
    for step in range(steps):
        value, = exe.run(fetch_list=[loss])
        if step % 500 == 0:
            print("step %d: loss %.5f" % (step, value.item()))
    scope = millrace.global_scope()
    weight, bias = (scope.get(var.name).item() for var in millrace.default_main_program().all_parameters())
    print("y = %.4f x + %.4f" % (weight, bias))
    return weight, bias


if __name__ == "__main__":
    main(*[int(given) if given.isdigit() else given for given in sys.argv[1:]])
