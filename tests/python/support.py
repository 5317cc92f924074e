"""What the tests of the Python package share. They run with unittest or pytest; PYTHONPATH names the package."""

import importlib.util
import os
import random
import signal
import subprocess
import sys
import tempfile
import unittest

# A shell starts what goes into the background with Ctrl-C ignored, and a test that waits for its own would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What processes leave that are killed, and mpirun, goes with the folder of the whole test.
_before = os.environ.copy()
_temporary = tempfile.TemporaryDirectory(prefix="millrace_test_")
os.environ["TMPDIR"] = tempfile.tempdir = _temporary.name

SKIPPED = 77
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("MILLRACE_BIN", os.path.join(ROOT, "build", "release", "bin"))


def skip(reason):
    print("skipped: " + reason)
    if "pytest" in sys.modules:
        raise unittest.SkipTest(reason)
    sys.exit(SKIPPED)


try:
    import numpy  # noqa: F401
except ImportError:
    skip("this Python has no numpy")
try:
    import millrace  # noqa: F401
except ImportError as error:
    if "_millrace" not in str(error) and "millrace" != getattr(error, "name", None):
        raise
    skip("the extension module is not built (no Python headers, or no pybind11): %s" % error)

def with_packages(setting, packages):
    """Goes on with the Python that the environment variable names where this one lacks the packages. It is one for which the
    module was built, too. Where there is none, tests look for what they need themselves."""
    other = os.environ.get(setting)
    if not other or "pytest" in sys.modules or os.path.abspath(other) == os.path.abspath(sys.executable):
        return
    if not all(importlib.util.find_spec(package) for package in packages):
        _temporary.cleanup()
        os.execve(other, [other, *sys.argv], _before)


def package(test, name):
    """A package that the test is about; where it is not there, the test skips."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return test.skipTest("this Python has no " + name)


SLOTS = """
  slots { name: "label" type: "uint64" is_used: true is_dense: true shape: [-1, 1] }
  slots { name: "dense" type: "float" is_used: true is_dense: true shape: [-1, 2] }
  slots { name: "C1..C3" type: "uint64" is_used: true }
"""

WIDE_DEEP = """
thread_num: 1
update_mode: SERIAL
filelist: "%(folder)s/part-*"
data_desc { batch_size: 16 multi_slot_desc {""" + SLOTS + """} }
model {
  table { name: "wide" dim: 1 key: SLOT_AND_ID init { constant: 0 } optimizer { ftrl { alpha: 0.05 l1: 0.1 } } }
  table { name: "deep" dim: 4 key: SLOT_AND_ID init { uniform: 0.1 } optimizer { adagrad { lr: 0.05 } } }
  layer { name: "w" embedding { slots: "C1..C3" table: "wide" pool: SUM } }
  layer { name: "d" embedding { slots: "C1..C3" table: "deep" pool: AVERAGE } }
  layer { name: "x" concat { in: ["d", "dense"] } }
  layer { name: "h" fc { in: "x" units: [8, 6] act: RELU } }
  layer { name: "hw" concat { in: ["h", "w"] } }
  layer { name: "y" fc { in: "hw" units: 2 act: SOFTMAX } }
  loss { kind: CROSS_ENTROPY in: "y" label: "label" }
  optimizer { adagrad { lr: 0.1 initial_accumulator: 0.1 } }
  metric { kind: AUC }
  metric { kind: LOGLOSS }
}
fetch_config { fetch_var_names: "loss" print_period: 1 }
"""


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rows(count, seed=1):
    """Rows (label, dense, [ids of C1, C2, C3]) whose label depends on them."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        ids = [[draw.randrange(1, 30) for _ in range(draw.randrange(1, 4))] for _ in range(3)]
        dense = [round(draw.gauss(0, 1), 3) for _ in range(2)]
        score = dense[0] + (ids[0][0] % 3 - 1) + 0.5 * (ids[1][0] % 2)
        made.append((int(draw.random() < 1 / (1 + 2.718281828 ** -score)), dense, ids))
    return made


def line(row, with_label=True):
    label, dense, ids = row
    parts = ["1 %d" % label] if with_label else []
    parts.append("2 %r %r" % tuple(dense))
    parts += ["%d %s" % (len(values), " ".join(map(str, values))) for values in ids]
    return " ".join(parts)


def write_log(folder, count=100, parts=2, seed=1):
    """Files part-0, part-1, ... in the folder; returns the rows in their order."""
    made = rows(count, seed)
    share = -(-count // parts)
    for part in range(parts):
        text = "".join(line(row) + "\n" for row in made[part * share:(part + 1) * share])
        write(os.path.join(folder, "part-%d" % part), text)
    return made


def run(*command, code=0):
    """Runs a program of bin/ and returns what it wrote to standard output."""
    if "MILLRACE_BIN" not in os.environ and not os.path.exists(os.path.join(BIN, command[0])):
        raise unittest.SkipTest("%s is not built: scripts/build" % command[0])
    done = subprocess.run([os.path.join(BIN, command[0]), *command[1:]], capture_output=True, text=True, check=False)
    if done.returncode != code:
        raise AssertionError("%s ended with %d:\n%s" % (command, done.returncode, done.stderr[-4000:]))
    return done.stdout
