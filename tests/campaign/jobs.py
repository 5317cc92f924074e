"""Jobs and their data: small, made of nothing but a seed, with results that can be checked."""

import gzip
import json
import os
import random


def _text(name):
    """A part of a job, which tests/e2e has as well."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "jobs", name), encoding="utf-8") as file:
        return file.read()


SLOTS = _text("slots.pbtxt")
# Every kind of thing that a checkpoint holds: a table with its optimizer's state, moments, metrics with rows.
DEEP_MODEL = _text("deep_model.pbtxt") + """
fetch_config { fetch_var_names: "loss" fetch_var_names: "auc" fetch_var_names: "batch_auc" print_period: 7 }
"""
# A parameter that counts: with a batch's size as twice the rate's factor, training a line takes the value of its uid half
# of the way from where it is to 1. After n times it is 1 - 2^-n, exactly. The rate is that of batches of one line.
COUNTING_MODEL = _text("counting_model.pbtxt")


def lines_of_log(first, count, seed=7):
    """Lines with the uids first + 1 ... first + count."""
    rng = random.Random(seed * 1000003 + first)
    lines = []
    for i in range(first, first + count):
        a = rng.randrange(50)
        b = rng.randrange(500)
        lines.append("1 %d 1 1 1 %d 1 %d 2 %d %d\n" % (a % 3 == 0, i + 1, a + 1, b + 1, a + b + 2))
    return lines


def write_file(path, text, packed=False):
    data = text.encode() if isinstance(text, str) else text
    with open(path, "wb") as file:
        file.write(gzip.compress(data, 1, mtime=0) if packed else data)
    return path


def write_log(folder, sizes, packed=False, seed=7, bad_every=0):
    """A file for each of `sizes` (lines); returns the paths. With bad_every, some lines that do not parse come between."""
    os.makedirs(folder, exist_ok=True)
    paths, first = [], 0
    for part, size in enumerate(sizes):
        name = "part-%d%s" % (part, ".gz" if packed else "")
        lines = lines_of_log(first, size, seed)
        if bad_every:
            lines = [line + ("1 bad %d\n" % i if i % bad_every == 0 else "") for i, line in enumerate(lines)]
        paths.append(write_file(os.path.join(folder, name), "".join(lines), packed))
        first += size
    return paths


def write_rows(folder, sizes, seed=7, bad_every=0):
    """As write_log, of CSV rows with a mask and a day for filtered_job; every 31st line is blank."""
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(seed)
    paths = []
    for part, size in enumerate(sizes):
        lines = ["click,a,b,seen,day\n"]
        for i in range(size):
            a = rng.randrange(50)
            lines.append("%d,%d,%d,%d,2026-11-%02d\n" % (a % 3 == 0, a, rng.randrange(500), rng.random() < 0.8, 1 + i % 28))
            if bad_every and i % bad_every == 0:
                lines.append("1,2\n")
            if i % 31 == 0:
                lines.append("\n")
        paths.append(write_file(os.path.join(folder, "part-%d.csv" % part), "".join(lines)))
    return paths


def filtered_job(files, extra="", data="", downsample="", mask=""):
    """A job of write_rows whose files have more rows than it trains."""
    model = """model {
  %s
  table { name: "t" dim: 4 }
  layer { name: "e" embedding { slots: ["a", "b"] table: "t" } }
  layer { name: "y" fc { in: "e" units: 1 } }
  loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "label" %s }
  metric { kind: AUC }
  optimizer { adagrad { lr: 0.1 } }
}
""" % (downsample, mask)
    features = """data_desc { name: "csv" batch_size: 32 %s
  feature { name: "label" from: "click" id {} is_dense: true }
  feature { name: "seen" }
  feature { name: "a" hash {} }
  feature { name: "b" hash {} }
}
""" % data
    return features + model + filelist(files) + extra


def text_string(text):
    """A string of text format, with what is no plain ASCII as octal escapes of its bytes."""
    raw = text if isinstance(text, bytes) else os.fsencode(text)
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else "\\%03o" % b for b in raw) + '"'


def filelist(paths):
    return "".join("filelist: %s\n" % text_string(path) for path in paths)


def deep_job(files, extra="", batch_size=32, data="", model=DEEP_MODEL):
    return "data_desc { batch_size: %d %s %s }\n%s%s%s\n" % (batch_size, data, SLOTS, model, filelist(files), extra)


def counting_job(files, extra="", batch_size=1, data=""):
    model = COUNTING_MODEL.replace("sgd { lr: 0.25 } } initial_rows", "sgd { lr: %g } } initial_rows" % (0.25 * batch_size))
    return deep_job(files, extra, batch_size, data, model)


def trained_times(score):
    """How often the line with this score was trained, by COUNTING_MODEL; None: no number of times."""
    for times in range(20):
        if score == 1 - 0.5 ** times:
            return times
    return None


def points(rows, seed=1):
    """Rows of configs/readers: eight numbers and a class, as CSV."""
    rng = random.Random(seed)
    lines = []
    for _ in range(rows):
        centre = rng.randrange(4)
        lines.append(",".join("%.4f" % ((k % 4 == centre) + 2 * rng.random() - 1) for k in range(8)) + ",%d\n" % centre)
    return "".join(lines)


def self_feeding_job(root, folder, name, rows, extra="", replaced=()):
    """A copy of configs/readers/NAME.prototxt with its programs and data in `folder`; returns the job's path."""
    os.makedirs(folder, exist_ok=True)
    source = os.path.join(root, "configs", "readers")
    programs = "step" if name == "dataset" else name
    for file in (programs + "_main.pbtxt", programs + "_startup.pbtxt", name + ".prototxt"):
        with open(os.path.join(source, file), encoding="utf-8") as opened:
            text = opened.read()
        for old, new in (("build/readers", folder), ("configs/readers", folder), *replaced):
            text = text.replace(old, new)
        with open(os.path.join(folder, file), "w", encoding="utf-8") as opened:
            opened.write(text + (extra if file.endswith(".prototxt") else ""))
    for part in range(2):
        write_file(os.path.join(folder, "points-%d.csv" % part), points(rows, part + 1))
    return os.path.join(folder, name + ".prototxt")


def report(out, name="run.json"):
    with open(os.path.join(out, name), encoding="utf-8") as file:
        return json.load(file)
