"""A program that reads its batches from a queue: columns of a table go in without a copy, training runs without Python.

    python3 examples/python_reader/train.py [BATCHES]

The columns are those of pandas where it is installed, numpy's otherwise.
"""

import sys
import threading

import numpy as np

import millrace
from millrace import layers, optimizer, reader

BATCH = 200


def table(rows, seed=1):
    """price and clicks, as columns."""
    random = np.random.default_rng(seed)
    price = random.random(rows, dtype=np.float32)
    clicks = (3.0 - 2.0 * price + 0.1 * random.standard_normal(rows)).astype(np.float32)
    try:
        import pandas
        return pandas.DataFrame({"price": price, "clicks": clicks})
    except ImportError:
        return {"price": price, "clicks": clicks}


def main(batches=600):
    # The reader hands out what is pushed into the queue; the model goes on from its variables.
    queued, queue = millrace.py_array_reader(8, [[-1], [-1]], millrace.CPUPlace(), dtypes=["float32", "float32"])
    price, clicks = reader.read_file(queued)
    price, clicks = layers.reshape(price, [-1, 1]), layers.reshape(clicks, [-1, 1])
    predict = layers.fc(price, 1, param_attr="slope", bias_attr="offset")
    loss = layers.mean(layers.square_error_cost(predict, clicks))
    optimizer.SGD(0.2).minimize(loss)

    exe = millrace.Executor()
    exe.run(millrace.default_startup_program())  # makes the reader
    columns = table(BATCH * batches)

    def produce():
        with queue:  # closes it at the end, by the exception if there was one
            for at in range(0, BATCH * batches, BATCH):
                queue.push((columns["price"][at:at + BATCH], columns["clicks"][at:at + BATCH]))
    producer = threading.Thread(target=produce)
    producer.start()
    report = exe.train_from_reader(fetch_list=[loss], fetch_info=["loss"], print_period=200)  # until the queue is closed
    producer.join()

    scope = millrace.global_scope()
    slope, offset = float(scope.get("slope")[0, 0]), float(scope.get("offset")[0])
    print("%d examples: clicks = %.3f %+.3f * price" % (report.examples, offset, slope))
    return slope, offset


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
