"""How far training drifts from 64-bit arithmetic, here and in Paddle.

    drift_test.py BIN_DIR       PADDLE_PYTHON names a Python with Paddle; exit code 77: there is none

A program of a retrieval model, most of whose rows rest at a step, comes as near to what 64 bits give as Paddle's 32 bits
do, fused or not, over several seeds.
"""

import array
import os
import sys
import tempfile

import recsys_test
import support

HERE = os.path.dirname(os.path.abspath(__file__))
SEEDS = (1, 2, 3)
# Both round; who is nearer differs by variable.
TIMES, LEAST = 4, 5e-7


def drift(folder, exact_folder):
    """By how much each variable is off, at most."""
    off = {}
    for name in sorted(os.listdir(exact_folder)):
        exact = array.array("d")
        with open(os.path.join(exact_folder, name), "rb") as file:
            exact.frombytes(file.read())
        _, values = support.read_variable(os.path.join(folder, name))
        if len(values) != len(exact):
            support.fail("%s has %d values, not %d" % (name, len(values), len(exact)))
        off[name] = max(abs(a - b) for a, b in zip(values, exact))
    return off


def main():
    bin_dir = sys.argv[1]
    python = support.peer("PADDLE_PYTHON", "paddle")
    failed = []
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            folder += "/job"
            support.run(python, HERE + "/drift_models.py", folder, str(seed))
            of_paddle = drift(folder + "/final", folder + "/exact")
            for fuse in ("true", "false"):
                ours = drift(recsys_test.train(bin_dir, folder, fuse) + "/final", folder + "/exact")
                print("seed %d, fuse: %s: off by %.2g, Paddle by %.2g" %
                      (seed, fuse, max(ours.values()), max(of_paddle.values())))
                failed += ["seed %d, fuse: %s: %s is off by %.3g, Paddle by %.3g" % (seed, fuse, name, off, of_paddle[name])
                           for name, off in ours.items() if off > max(TIMES * of_paddle[name], LEAST)]
    if failed:
        support.fail("\n".join(failed))


if __name__ == "__main__":
    main()
