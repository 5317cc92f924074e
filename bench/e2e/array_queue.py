#!/usr/bin/env python3
"""Measures PyArrayFeedQueue with arrays of 1 MB beside memcpy of the same arrays, in turns, in one process.

    python3 bench/e2e/array_queue.py [--megabytes=1] [--arrays=2000] [--rounds=9] [--capacity=8]

Three columns: memcpy of each array into one buffer; one thread that pushes and one that pops; the same with a memcpy of what
was popped, as a reader in a program makes it. Each figure is the median of the rounds, with the least and the most. Rates are
those of the clock on the wall and, beside it, of processor time (all threads), which other work on the machine touches less.
"""

import argparse
import os
import statistics
import sys
import threading
import time

import numpy as np

import millrace


def rate(work, gigabytes):
    """(GB/s on the wall, GB for each second of processor time)"""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return gigabytes / (time.perf_counter() - wall), gigabytes / (time.process_time() - cpu)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=1)
    parser.add_argument("--arrays", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--capacity", type=int, default=8)
    options = parser.parse_args()
    values = int(options.megabytes * 1e6 / 4)
    # As many as fit into no cache together, so that every copy comes from memory.
    arrays = [np.full(values, k, dtype=np.float32) for k in range(256)]
    into = np.empty(values, dtype=np.float32)

    def copy():
        for k in range(options.arrays):
            np.copyto(into, arrays[k % len(arrays)])

    def through_queue(take):
        holder = millrace.PyArrayFeedQueueHolder()
        holder.init_once(options.capacity, [[values]], millrace.CPUPlace())
        queue = holder.feeder()

        def produce():
            with queue:
                for k in range(options.arrays):
                    queue.push((arrays[k % len(arrays)],))
        producer = threading.Thread(target=produce)
        producer.start()
        count = 0
        for (array,) in queue:
            if array[0] != count % len(arrays):
                sys.exit("array %d came as number %d" % (array[0], count))
            take(array)
            count += 1
        producer.join()
        if count != options.arrays:
            sys.exit("%d of %d arrays came" % (count, options.arrays))

    works = {"memcpy": copy, "queue": lambda: through_queue(lambda array: None),
             "queue, then memcpy": lambda: through_queue(lambda array: np.copyto(into, array))}
    seen = {name: [] for name in works}
    for work in works.values():
        work()  # once before it counts
    for _ in range(options.rounds):
        for name, work in works.items():
            seen[name].append(rate(work, options.arrays * values * 4 / 1e9))
    print("%d arrays of %g MB, capacity %d, %d rounds, numpy %s, Python %s, load %.2f" % (
        options.arrays, options.megabytes, options.capacity, options.rounds, np.__version__, sys.version.split()[0],
        os.getloadavg()[0]))
    for name, rates in seen.items():
        shown = ["%.1f [%.1f-%.1f] %s" % (statistics.median(column), min(column), max(column), unit)
                 for column, unit in zip(zip(*rates), ("GB/s", "GB a processor second"))]
        print("%-20s %s" % (name, ", ".join(shown)))


if __name__ == "__main__":
    main()
