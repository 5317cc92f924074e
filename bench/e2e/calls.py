#!/usr/bin/env python3
"""Measures what a call from Python costs beside the work in it: exe.run, Predictor, PyArrayFeedQueue.

    PYTHONPATH=build/release/python python3 bench/e2e/calls.py [--calls=300]

A line for each: the median and the 99th percentile of the wall's clock, and processor time (all threads), of one call. Items from
one thread to another are timed nine times, in turns with Python's own queue: the median, the least and the most.
"""

import argparse
import queue
import resource
import statistics
import tempfile
import threading
import time

import numpy as np

import millrace
from millrace import layers, optimizer


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(call, calls):
    """(median, 99th percentile, processor time) of a call, in microseconds."""
    for _ in range(3):
        call()
    walls, before = [], processor_seconds()
    for _ in range(calls):
        start = time.perf_counter()
        call()
        walls.append(time.perf_counter() - start)
    cpu = (processor_seconds() - before) / calls
    return tuple(1e6 * seconds for seconds in (np.median(walls), np.percentile(walls, 99), cpu))


def exe_run(count, trains=False):
    """A call that runs so many fc layers on one row."""
    main, startup, scope = millrace.Program(), millrace.Program(), millrace.Scope()
    with millrace.program_guard(main, startup):
        out = layers.data("x", [8])
        for _ in range(count):
            out = layers.fc(out, 8)
        if trains:
            optimizer.SGD(0.001).minimize(layers.reduce_mean(out))
    exe, feed = millrace.Executor(), {"x": np.ones((1, 8), "float32")}
    exe.run(startup, scope=scope)
    return lambda: exe.run(main, feed=feed, fetch_list=[out], scope=scope)


def predictor(folder, slots=26):
    """A model of so many slots of ids, loaded."""
    main, startup, scope = millrace.Program(), millrace.Program(), millrace.Scope()
    with millrace.program_guard(main, startup), millrace.scope_guard(scope):
        ids = [layers.data("C%d" % slot, [1], "int64", lod_level=1) for slot in range(slots)]
        pooled = [layers.sequence_pool(layers.embedding(slot, [1000, 8], param_attr="table"), "sum") for slot in ids]
        out = layers.fc(layers.fc(layers.concat(pooled, axis=1), 32, act="relu"), 1, act="sigmoid")
        millrace.Executor().run(startup)
        millrace.save_inference_model(folder, ids, [out])
    return millrace.Predictor(folder)


def push_and_pop():
    """A call that pushes an array and pops it, by one thread."""
    holder = millrace.PyArrayFeedQueueHolder()
    holder.init_once(8, [[-1, 4]])
    feeder, array = holder.feeder(), np.ones((2, 4), "float32")
    return lambda: (feeder.push((array,)), feeder.pop())


def between_threads(put, take, end, items=20000):
    """Microseconds an item from one thread to another."""
    def produce():
        for _ in range(items):
            put()
        end()
    thread = threading.Thread(target=produce)
    start = time.perf_counter()
    thread.start()
    while take() is not None:
        pass
    thread.join()
    return 1e6 * (time.perf_counter() - start) / items


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=300)
    calls = parser.parse_args().calls

    def show(what, call):
        print("%-44s p50 %8.1f  p99 %8.1f  processor %8.1f us" % (what, *measure(call, calls)), flush=True)
    for trains in (False, True):
        for count in (1, 50, 200, 800):
            show("exe.run, %d fc of one row%s" % (count, ", trained" if trains else ""), exe_run(count, trains))
    with tempfile.TemporaryDirectory() as folder:
        model = predictor(folder + "/model")
        for rows in (1, 512):
            ids = np.random.default_rng(1).integers(1000, size=(26, rows, 1)).astype(np.uint64)
            arrays = {"C%d" % slot: ids[slot] for slot in range(26)}
            lists = {name: array.tolist() for name, array in arrays.items()}
            line = "\n".join(" ".join("1 %d" % one for one in row) for row in ids[:, :, 0].T)
            show("predict, %d rows of 26 arrays" % rows, lambda arrays=arrays: model.predict(arrays))
            show("predict, %d rows of 26 lists" % rows, lambda lists=lists: model.predict(lists))
            show("predict_lines, %d rows" % rows, lambda line=line: model.predict_lines(line))
    show("a push and a pop", push_and_pop())
    for capacity in (1, 8, 64):
        holder = millrace.PyArrayFeedQueueHolder()
        holder.init_once(capacity, [[-1, 4]])
        feeder, theirs, array = holder.feeder(), queue.Queue(capacity), np.ones((2, 4), "float32")
        pairs = []
        for _ in range(9):
            feeder.reopen()
            pairs.append((between_threads(lambda f=feeder, a=array: f.push((a,)), feeder.pop, feeder.close),
                          between_threads(lambda t=theirs, a=array: t.put((a,)), theirs.get, lambda t=theirs: t.put(None))))
        shown = ["%5.1f [%.1f-%.1f]" % (statistics.median(column), min(column), max(column)) for column in zip(*pairs)]
        print("between two threads, %2d items              %s us an item; queue.Queue %s" % (capacity, *shown), flush=True)


if __name__ == "__main__":
    main()
