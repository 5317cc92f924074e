"""What the tests of Paddle's files and programs share: programs of bin/, variable files, comparisons."""

import array
import json
import os
import struct
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "campaign"))
import wire  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("MILLRACE_SHARED", os.path.join(ROOT, "..", "shared"))
SKIPPED = 77

# Numbers of VarType.Type, and how array holds them.
DTYPES = {2: "i", 3: "q", 5: "f", 6: "d"}


def skip(reason):
    print("skipped: " + reason)
    sys.exit(SKIPPED)


def fail(message):
    sys.exit("FAILED: " + message)


def run(*command, cwd=None, code=0):
    """Runs a program and returns what it wrote to both outputs; any other exit code ends the test."""
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != code:
        fail("%s ended with %d, not %d:\n%s" % (" ".join(command), done.returncode, code, done.stdout[-6000:]))
    return done.stdout


def on_ranks(ranks, command):
    """The command of so many ranks that mpirun starts; 0: of one process, without it."""
    if ranks == 0:
        return command
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    os.environ.update(as_root)
    return ["mpirun", "-n", str(ranks), "--bind-to", "none", "--oversubscribe"] + list(command)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def read_variable(path):
    """One LoDTensor file: (dims, values)."""
    with open(path, "rb") as file:
        data = file.read()
    at = 4
    (levels,) = struct.unpack_from("<Q", data, at)
    at += 8
    for _ in range(levels):
        at += 8 + struct.unpack_from("<Q", data, at)[0]
    (size,) = struct.unpack_from("<i", data, at + 4)
    at += 8
    fields = wire.parse(data[at:at + size])
    ((_, _, dtype),) = (field for field in fields if field[0] == 1)
    values = array.array(DTYPES[dtype])
    values.frombytes(data[at + size:])
    return [value for number, _, value in fields if number == 2], values


def differs(got, wanted, tolerance, least=1e-3):
    """True when got is off by more than `tolerance` of the wanted value, or of `least` where that is smaller."""
    return not abs(got - wanted) <= tolerance * max(least, abs(wanted))


def compare_variables(got_dir, wanted_dir, tolerance, relative):
    """Every value of float variables absolutely, and each variable as a whole relatively."""
    names = sorted(os.listdir(wanted_dir))
    if sorted(os.listdir(got_dir)) != names:
        fail("%s has other variables than %s" % (got_dir, wanted_dir))
    for name in names:
        dims, got = read_variable(os.path.join(got_dir, name))
        wanted_dims, wanted = read_variable(os.path.join(wanted_dir, name))
        if dims != wanted_dims or got.typecode != wanted.typecode:
            fail("%s: %s %s, not %s %s" % (name, got.typecode, dims, wanted.typecode, wanted_dims))
        if got.typecode not in "fd":
            continue
        worst = max(abs(a - b) for a, b in zip(got, wanted))
        error = sum((a - b) ** 2 for a, b in zip(got, wanted)) ** 0.5
        norm = sum(b * b for b in wanted) ** 0.5
        if not worst <= tolerance or not error <= relative * (norm or 1):
            fail("%s: off by %g, and by %g of %g" % (name, worst, error, norm))


def metrics(folder):
    """The lines of metrics.jsonl."""
    return [json.loads(line) for line in read(os.path.join(folder, "metrics.jsonl")).splitlines()]


def peer(variable, module):
    """A Python interpreter named by an environment variable that has a module; ends the test where there is none."""
    python = os.environ.get(variable, "")
    if not python:
        skip("%s names no Python that has %s" % (variable, module))
    # An import of Paddle takes two seconds.
    probe = "import importlib.util, sys; sys.exit(importlib.util.find_spec('%s') is None)" % module
    if subprocess.run([python, "-c", probe], capture_output=True, check=False).returncode != 0:
        skip("%s=%s has no %s" % (variable, python, module))
    return python
