#!/usr/bin/env python3
"""Compares reading CSV, JSON lines, libsvm and Parquet with pandas, Polars, DuckDB and scikit-learn: rows a second, as Markdown.

    FRAMES_PYTHON=/path/bin/python bench/e2e/formats.py [--bin build/release/bin] [--rows 200000] [--rounds 3]

FRAMES_PYTHON has pandas, polars, duckdb, pyarrow and scikit-learn; what it lacks is left out. The log is clickgen's: a label, 13 counts
and 26 words. Each system reads the same file with one thread into memory, where counts become log(1 + x) and each word the 64-bit hash
of an id; peers are timed reading alone, too. Of Parquet (by pandas, snappy) Millrace reads in Python, which FRAMES_PYTHON must have the
package for (PYTHONPATH=build/release/python): its start counts. Millrace's seconds are the `load` of run.json; a peer's leave out its start and imports.
Every round runs each once.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from features import load  # beside this file

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COUNTS = ["I%d" % i for i in range(1, 14)]
WORDS = ["C%d" % i for i in range(1, 27)]

FEATURES = """
  feature { name: "label" id {} is_dense: true }
  feature { name: "numbers" from: "I1..I13" default: "0" log1p {} }
  feature { name: "C1..C26" hash {} }"""
NUMBERS = """
  feature { name: "label" id {} is_dense: true }
  feature { name: "numbers" from: [%s] default: "0" log1p {} }""" % ", ".join('"%d"' % i for i in range(1, 40))

PEERS = """
import json, sys, time
system, format, transform, path = sys.argv[1:5]
counts, words, transform = ["I%d" % i for i in range(1, 14)], ["C%d" % i for i in range(1, 27)], transform == "1"
if system == "pandas":
    import numpy, pandas
    def go():
        types = {**{c: "float32" for c in counts}, **{c: "str" for c in words}}
        x = (pandas.read_csv(path, dtype=types) if format == "csv" else pandas.read_parquet(path) if format == "parquet"
             else pandas.read_json(path, lines=True, dtype=types))
        if transform:
            for c in counts: x[c] = numpy.log1p(x[c].fillna(0))
            for c in words: x[c] = pandas.util.hash_array(x[c].to_numpy(dtype=object), categorize=True)
        return len(x)
elif system == "Polars":
    import polars
    def go():
        types = {**{c: polars.Float32 for c in counts}, **{c: polars.String for c in words}}
        x = (polars.read_csv(path, schema_overrides=types) if format == "csv" else polars.read_parquet(path) if format == "parquet"
             else polars.read_ndjson(path, schema={"label": polars.Int64, **types}))
        if transform:
            x = x.with_columns([polars.col(c).fill_null(0).log1p() for c in counts] + [polars.col(c).hash() for c in words])
        return len(x)
elif system == "DuckDB":
    import duckdb
    def go():
        base = duckdb.connect()
        base.execute("set threads = 1")
        types = {"label": "INT", **{c: "FLOAT" for c in counts}, **{c: "VARCHAR" for c in words}}
        list = ", ".join("'%s': '%s'" % item for item in types.items())
        what = "*" if not transform else "label, " + ", ".join(
            ["ln(1 + coalesce(%s, 0))" % c for c in counts] + ["hash(%s)" % c for c in words])
        source = {"csv": "read_csv('%s', columns = {%s}, header = true)" % (path, list), "parquet": "read_parquet('%s')" % path,
                  "json": "read_json('%s', columns = {%s}, format = 'newline_delimited')" % (path, list)}[format]
        base.execute("create table t as select %s from %s" % (what, source))
        return base.execute("select count(*) from t").fetchone()[0]
else:
    import numpy, sklearn.datasets
    def go():
        x, y = sklearn.datasets.load_svmlight_file(path, n_features=39, dtype=numpy.float32)
        if transform: x.data = numpy.log1p(x.data)
        return x.shape[0]
start = time.perf_counter()
rows = go()
print(rows / (time.perf_counter() - start))
"""


WRITE_PARQUET = """
import sys, pandas
counts, words = ["I%d" % i for i in range(1, 14)], ["C%d" % i for i in range(1, 27)]
pandas.read_csv(sys.argv[1], dtype={**{c: "Int32" for c in counts}, **{c: "str" for c in words}}).to_parquet(sys.argv[2], index=False)
"""


def write_files(args, folder):
    """The log in each format; returns bytes a row of each."""
    subprocess.run([args.bin + "/clickgen", "--output_dir=" + folder + "/log", "--rows=%d" % args.rows, "--format=raw",
                    "--many_valued=0"], check=True, capture_output=True)
    files = {name: open(folder + "/log." + name, "w", encoding="utf-8") for name in ("csv", "json", "libsvm")}
    files["csv"].write(",".join(["label"] + COUNTS + WORDS) + "\n")
    with open(folder + "/log/train/part-00000", encoding="utf-8") as log:
        for line in log:
            cells = line.rstrip("\n").split("\t")
            files["csv"].write(",".join(cells) + "\n")
            row = {name: int(cell) for name, cell in zip(["label"] + COUNTS, cells) if cell}
            row.update((name, cell) for name, cell in zip(WORDS, cells[14:]) if cell)
            files["json"].write(json.dumps(row, separators=(",", ":")) + "\n")
            files["libsvm"].write(" ".join([cells[0]] + ["%d:%s" % (i, cell) for i, cell in enumerate(cells[1:], 1) if cell]) + "\n")
    for file in files.values():
        file.close()
    names = list(files)
    if args.python:
        os.environ["MILLRACE_PYTHON"] = args.python
        subprocess.run([args.python, "-c", WRITE_PARQUET, folder + "/log.csv", folder + "/log.parquet"], check=True)
        names.append("parquet")
    return {name: os.path.getsize(folder + "/log." + name) // args.rows for name in names}


def millrace(args, folder, name):
    features = NUMBERS if name == "libsvm" else FEATURES
    return load(args.bin, folder, name, 'name: "%s" %s' % (name, features), folder + "/log." + name)


def peer(python, code, *words):
    """Rows a second that code of a peer prints, on one thread; None where the peer is not there."""
    done = subprocess.run([python, "-c", code, *words], text=True, capture_output=True, check=False,
                          env=dict(os.environ, POLARS_MAX_THREADS="1", OMP_NUM_THREADS="1"))
    if done.returncode == 0:
        return float(done.stdout.split()[-1])
    if "ModuleNotFoundError" in done.stderr:
        return None
    sys.exit("%s: %s" % (" ".join(words), done.stderr))


def arguments(description, rows):
    """The parser of what both programs take."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=os.path.abspath, default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--python", default=os.environ.get("FRAMES_PYTHON", ""))
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--rounds", type=int, default=3)
    return parser


def shown(values):
    return "{:,.0f} [{:,.0f}-{:,.0f}]".format(statistics.median(values), min(values), max(values))


def main():
    args = arguments(__doc__, 200000).parse_args()
    systems = {"csv": ["pandas", "Polars", "DuckDB"], "json": ["pandas", "Polars", "DuckDB"], "libsvm": ["scikit-learn"],
               "parquet": ["pandas", "Polars", "DuckDB"]}
    with tempfile.TemporaryDirectory() as folder:
        sizes = write_files(args, folder)
        systems = {name: peers for name, peers in systems.items() if name in sizes}
        mine = {name: [] for name in systems}
        theirs = {}
        for _ in range(args.rounds):
            for name, peers in systems.items():
                mine[name].append(millrace(args, folder, name))
                for system in peers if args.python else []:
                    for transform in (False, True):
                        speed = peer(args.python, PEERS, system, name, str(int(transform)), folder + "/log." + name)
                        if speed is not None:
                            theirs.setdefault((name, system, transform), []).append(speed)
    print("%d rows, one thread; median [min-max], n = %d\n" % (args.rows, args.rounds))
    print("| format | system | rows/s, reading alone | with the transforms | Millrace is faster by |\n|---|---|---|---|---|")
    for name, peers in systems.items():
        print("| %s, %d bytes a row | Millrace | | %s | 1 |" % (name, sizes[name], shown(mine[name])))
        for system in peers:
            if (name, system, True) in theirs:
                found = theirs[name, system, True]
                print("| | %s | %s | %s | %.2f |" % (system, shown(theirs[name, system, False]), shown(found),
                                                     statistics.median(a / b for a, b in zip(mine[name], found))))


if __name__ == "__main__":
    main()
