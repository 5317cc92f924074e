#!/usr/bin/env python3
"""Compares features with pipes: rows a second into memory, as Markdown.

    bench/e2e/features.py [--bin build/release/bin] [--rounds 5] [--rows 100000]

Two logs, Census-Income (KDD, where the data is there) and clickgen's, are read raw by features, by an awk pipe and by a Python
pipe, and as MultiSlot text of the very values that the features make (`inspect head --format=multi_slot`). One reading thread;
a pipe has a processor of its own beside it. Every round runs each of them once. `load` of run.json is what is compared.
"""
import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("MILLRACE_SHARED", os.path.join(ROOT, "..", "shared"))

sys.path.insert(0, os.path.join(ROOT, "examples", "census"))
from reader import FIELDS as NAMES, NUMBERS  # noqa: E402  the columns of Census-Income (KDD), in order

WORDS = [name for name in NAMES if name not in ("income", "weight")]

MODEL = """
thread_num: 1
epochs: 1
dataset { class_name: "InMemoryDataset" }
model {
  layer { name: "y" fc { in: "numbers" units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "label" }
  optimizer { sgd { lr: 0.0001 } }
}
output { tensorboard: false save_inference_model: false }
checkpoint { every_epochs: 0 }
"""


def slots(ids, numbers):
    return """
  multi_slot_desc {
    slots { name: "label" type: "uint64" is_used: true is_dense: true shape: [-1, 1] }
    slots { name: "numbers" type: "float" is_used: true is_dense: true shape: [-1, %d] }
    %s
  }""" % (numbers, "\n    ".join('slots { name: "%s" type: "uint64" is_used: true }' % name for name in ids))


CENSUS_AWK = r"""BEGIN { FS = ", *"; split("%s", words, " "); split("%s", numbers, " ") }
{
  line = "1 " ($42 ~ /^50000/ ? 1 : 0) " %d"
  for (i = 1; i in numbers; ++i) line = line " " log(1 + $numbers[i])
  for (i = 1; i in words; ++i) {
    key = i SUBSEP $words[i]
    if (!(key in ids)) ids[key] = ++count
    line = line " 1 " ids[key]
  }
  print line
}
""" % (" ".join(str(NAMES.index(n) + 1) for n in WORDS), " ".join(str(NAMES.index(n) + 1) for n in NUMBERS), len(NUMBERS))

CENSUS_PYTHON = """import math, sys, zlib
names = %r
numbers = %r
words = %r
for line in sys.stdin:
    row = dict(zip(names, [cell.strip() for cell in line.split(",")]))
    out = ["1 1" if row["income"].startswith("50000") else "1 0", str(len(numbers))]
    out += ["%%.6g" %% math.log1p(float(row[name])) for name in numbers]
    out += ["1 %%d" %% zlib.crc32(("%%s=%%s" %% (name, row[name])).encode()) for name in words]
    print(" ".join(out))
""" % (NAMES, NUMBERS, WORDS)

CLICKS_AWK = r"""BEGIN { FS = "," }
{
  line = "1 " $1 " 13"
  for (i = 2; i <= 14; ++i) line = line " " log(1 + $i)
  for (i = 15; i <= NF; ++i) {
    n = split($i, parts, "|")
    line = line " " n
    for (k = 1; k <= n; ++k) {
      key = i SUBSEP parts[k]
      if (!(key in ids)) ids[key] = ++count
      line = line " " ids[key]
    }
  }
  print line
}
"""

CLICKS_PYTHON = """import math, sys, zlib
for line in sys.stdin:
    cells = line.rstrip("\\n").split(",")
    out = ["1", cells[0], "13"]
    out += ["%.6g" % math.log1p(float(cell or 0)) for cell in cells[1:14]]
    for i, cell in enumerate(cells[14:]):
        parts = cell.split("|") if cell else []
        out.append(str(len(parts)))
        out += [str(zlib.crc32(("C%d=%s" % (i, part)).encode())) for part in parts]
    print(" ".join(out))
"""


def census(folder, rows, _bin):
    source = os.path.join(SHARED, "data", "census_income_kdd", "census_income_1994_1995_train.csv.gz")
    if not os.path.exists(source):
        return None
    with gzip.open(source, "rt", encoding="utf-8") as file:
        lines = [line for line in file if line.strip()]
    with open(folder + "/raw.csv", "w", encoding="utf-8") as out:
        out.writelines((lines * (rows // len(lines) + 1))[:rows])
    features = """
  name: "csv"
  csv { names: [%s] }
  feature { name: "label" from: "income" vocabulary { words: ["- 50000.", "50000+."] oov_buckets: 0 } is_dense: true }
  feature { name: "numbers" from: [%s] log1p {} }
  %s""" % (", ".join('"%s"' % n for n in NAMES), ", ".join('"%s"' % n for n in NUMBERS),
           "\n  ".join('feature { name: "id_%s" from: "%s" hash {} }' % (n, n) for n in WORDS))
    return features, slots(["id_" + n for n in WORDS], len(NUMBERS)), CENSUS_AWK, CENSUS_PYTHON


def clicks(folder, rows, bin_dir):
    subprocess.run([bin_dir + "/clickgen", "--output_dir=" + folder + "/log", "--rows=%d" % rows, "--format=raw"],
                   check=True, capture_output=True)
    with open(folder + "/log/train/part-00000", encoding="utf-8") as file, \
            open(folder + "/raw.csv", "w", encoding="utf-8") as out:
        for line in file:
            out.write(line.replace(",", "|").replace("\t", ","))
    features = """
  name: "csv"
  csv { names: ["label", "I1..I13", "C1..C26"] }
  feature { name: "label" id {} is_dense: true }
  feature { name: "numbers" from: "I1..I13" default: "0" log1p {} }
  feature { name: "C1..C26" split { by: "|" } hash {} }"""
    return features, slots(["C1..C26"], 13), CLICKS_AWK, CLICKS_PYTHON


def load(bin_dir, folder, name, data_desc, file, model=MODEL):
    """Rows a second that a job of one reading thread loads into memory."""
    job = "%s/%s.prototxt" % (folder, name)
    with open(job, "w", encoding="utf-8") as out:
        out.write('filelist: "%s"\ndata_desc { batch_size: 4096 thread_num: 1 %s }\n%s' % (file, data_desc, model))
    done = subprocess.run([bin_dir + "/trainer", "--trainer_desc=" + job, "--output_dir=%s/out-%s" % (folder, name)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    with open("%s/out-%s/run.json" % (folder, name), encoding="utf-8") as file:
        run = json.load(file)
    return run["examples"] / run["stage_seconds"]["load"]


def compare(title, log, arguments):
    with tempfile.TemporaryDirectory() as folder:
        made = log(folder, arguments.rows, arguments.bin)
        if made is None:
            print("%s: the data is not there\n" % title)
            return
        features, multi_slot, awk, python = made
        for name, text in (("pipe.awk", awk), ("pipe.py", python)):
            with open(folder + "/" + name, "w", encoding="utf-8") as out:
                out.write(text)
        with open(folder + "/show.prototxt", "w", encoding="utf-8") as out:
            out.write('filelist: "%s/raw.csv"\ndata_desc { batch_size: 4096 %s }\n%s' % (folder, features, MODEL))
        with open(folder + "/text", "w", encoding="utf-8") as out:
            subprocess.run([arguments.bin + "/inspect", "head", "--trainer_desc=" + folder + "/show.prototxt",
                            "--batches=1000000", "--format=multi_slot"], check=True, stdout=out)
        raw, text = folder + "/raw.csv", folder + "/text"
        empty = " empty_slot: ALLOW "
        systems = {
            "features of CSV": (features, raw),
            "MultiSlot text of the same values": (multi_slot + empty, text),
            "awk pipe": (multi_slot + empty + 'pipe_command: "awk -f %s/pipe.awk"' % folder, raw),
            "Python pipe": (multi_slot + empty + 'pipe_command: "%s %s/pipe.py"' % (sys.executable, folder), raw),
        }
        speeds = {name: [] for name in systems}
        for _ in range(arguments.rounds):
            for i, (name, (desc, file)) in enumerate(systems.items()):
                speeds[name].append(load(arguments.bin, folder, str(i), desc, file))
        print("%s, %d rows, %d bytes a row raw and %d as text:\n" % (
            title, arguments.rows, os.path.getsize(raw) // arguments.rows, os.path.getsize(text) // arguments.rows))
        print("| | rows/s: median [min-max], n = %d | features beside it |\n|---|---|---|" % arguments.rounds)
        mine = speeds["features of CSV"]
        for name, found in speeds.items():
            ratio = statistics.median(a / b for a, b in zip(mine, found))
            print("| %s | %s [%s-%s] | %.2f |" % (name, *["{:,.0f}".format(x) for x in (
                statistics.median(found), min(found), max(found))], ratio))
        print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=100000)
    arguments = parser.parse_args()
    compare("Census-Income", census, arguments)
    compare("Click log", clicks, arguments)


if __name__ == "__main__":
    main()
