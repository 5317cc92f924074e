"""Trains a click model on arrays that Python threads make.

    python3 examples/python_feed/train.py [BATCHES]

Two threads draw batches whose law they know and push them into a queue; the main thread trains on what it pops.
"""

import sys
import threading

import numpy as np

import millrace
from millrace import layers, optimizer

BATCH, FEATURES = 256, 8
LAW = np.linspace(-1.5, 1.5, FEATURES, dtype=np.float32)


def draw(random):
    """A batch: features [BATCH, FEATURES] and clicks [BATCH, 1], likelier the larger their product with LAW."""
    x = random.standard_normal((BATCH, FEATURES), dtype=np.float32)
    clicks = random.random(BATCH) < 1 / (1 + np.exp(-x @ LAW))
    return x, clicks.astype(np.int64)[:, None]


def produce(queue, batches, seed):
    random = np.random.default_rng(seed)
    for _ in range(batches):
        queue.push(draw(random))  # waits while the queue is full; the arrays are not copied


def main(batches=400):
    x = layers.data("x", [FEATURES])
    label = layers.data("label", [1], "int64")
    logits = layers.fc(x, 2, param_attr="w", bias_attr="b")
    loss = layers.mean(layers.softmax_with_cross_entropy(logits, label))
    accuracy = layers.accuracy(layers.softmax(logits), label)
    optimizer.Adagrad(0.1).minimize(loss)

    exe = millrace.Executor(millrace.CPUPlace())
    exe.run(millrace.default_startup_program())

    holder = millrace.PyArrayFeedQueueHolder()
    holder.init_once(8, [[BATCH, FEATURES], [BATCH, 1]], millrace.CPUPlace(), dtypes=["float32", "int64"])
    queue = holder.feeder()
    producers = [threading.Thread(target=produce, args=(queue, batches // 2, seed)) for seed in (1, 2)]
    for thread in producers:
        thread.start()

    def close_after_the_last():
        for thread in producers:
            thread.join()
        queue.close()
    closer = threading.Thread(target=close_after_the_last)
    closer.start()

    shares = []
    for step, (features, clicks) in enumerate(queue):
        values = exe.run(feed={"x": features, "label": clicks}, fetch_list=[loss, accuracy])
        shares.append(float(values[1][0]))
        if step % 100 == 0:
            print("batch %4d  loss %.4f  accuracy %.4f" % (step, values[0][0], values[1][0]))
    closer.join()

    learned = millrace.global_scope().get("w")
    found = learned[:, 1] - learned[:, 0]
    print("accuracy of the last 50 batches: %.4f" % np.mean(shares[-50:]))
    print("correlation of the weights with the law: %.4f" % np.corrcoef(found, LAW)[0, 1])
    return np.mean(shares[-50:]), np.corrcoef(found, LAW)[0, 1]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
