#!/usr/bin/env python3
"""Compares the steps of features with the same by pandas, Polars and DuckDB: rows a second, as Markdown.

    FRAMES_PYTHON=/path/bin/python bench/e2e/transforms.py [--bin build/release/bin] [--rows 300000] [--rounds 3]

Each system reads the same CSV with one thread, takes four columns, or the two of texts and times, and makes what the step makes of
them. Millrace's seconds are the `load` of run.json; a peer's leave out its start and imports. Every round runs each once.
"""
import os
import random
import statistics
import sys
import tempfile

from features import MODEL, load  # both beside this file
from formats import arguments, peer, shown

NUMBERS = ["n1", "n2", "n3", "n4"]
WORDS = ["w1", "w2", "w3", "w4"]
VOCABULARY = ["word%d" % i for i in range(500)]
BOUNDARIES = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000]

# A step: what is written in the feature, and what each peer does to a column or series x (DuckDB: to a column named x).
NUMBER_STEPS = {
    "none": ("", "x", "x", "x"),
    "`clip`": ("clip { min: 10 max: 1000 }", "x.clip(10, 1000)", "x.clip(10, 1000)", "least(greatest(x, 10), 1000)"),
    "`log1p`": ("log1p {}", "numpy.log1p(x)", "x.log1p()", "ln(1 + x)"),
    "`standardize`": ("standardize { mean: 5000 deviation: 2887 }", "(x - 5000) / 2887", "(x - 5000) / 2887", "(x - 5000) / 2887"),
    "`bucketize`, 9 boundaries": ("bucketize { boundaries: %s }" % BOUNDARIES, "numpy.digitize(x, %s)" % BOUNDARIES,
                                  "x.cut(%s, left_closed=True).to_physical()" % BOUNDARIES,
                                  "case %s else 9 end" % " ".join("when x < %d then %d" % (b, i) for i, b in enumerate(BOUNDARIES))),
}
WORD_STEPS = {
    "`hash`": ("hash {}", "pandas.util.hash_array(x.to_numpy(dtype=object), categorize=True)", "x.hash()", "hash(x)"),
    "`vocabulary`, 500 words": ("vocabulary { words: [%s] }" % ", ".join('"%s"' % w for w in VOCABULARY),
                                "x.map(places).fillna(500)", "x.replace_strict(places, default=500, return_dtype=polars.Int64)",
                                "coalesce(list_position(%s, x), 500)" % VOCABULARY),
}
TEXT_STEPS = {
    "`split`, `hash`": ('name: "f" from: "parts" split { by: "|" } hash {}', "pandas.util.hash_array(d['parts'].str.split('|').explode().to_numpy(dtype=object))",
                        "d.select(polars.col('parts').str.split('|').list.eval(polars.element().hash()))",
                        "select list_transform(string_split(parts, '|'), lambda p: hash(p)) from t"),
    "`date_part`, hour": ('name: "f" from: "time" date_part { part: HOUR }', "pandas.to_datetime(d['time']).dt.hour",
                          "d.select(polars.col('time').str.to_datetime('%Y-%m-%d %H:%M:%S').dt.hour())",
                          "select hour(strptime(time, '%Y-%m-%d %H:%M:%S')) from t"),
    "`cross` of two": ('name: "f" from: "w1" from: "w2" cross {}', "pandas.util.hash_array((d['w1'] + '_' + d['w2']).to_numpy(dtype=object), categorize=True)",
                       "d.select(polars.concat_str('w1', 'w2', separator='_').hash())", "select hash(w1, w2) from t"),
}
SYSTEMS = ["pandas", "Polars", "DuckDB"]
SPARSE = MODEL.replace("  layer {", """  table { name: "rows" dim: 1 optimizer { sgd { lr: 0.1 } } }
  layer { name: "numbers" embedding { slots: "%s" table: "rows" } }
  layer {""", 1)

PEER = """
import sys, time, numpy
system, columns, code, path = sys.argv[1:5]
columns = columns.split(",")
places = {"word%d" % i: i for i in range(500)}
if system == "pandas":
    import pandas
    types = {"n": "float32", "w": "str", "p": "str", "t": "str"}
    def go():
        d = pandas.read_csv(path, usecols=columns, dtype={c: types[c[0]] for c in columns})
        if "x" in code and "d[" not in code:
            return len(d), [eval(code, globals(), {"x": d[c]}) for c in columns]
        return len(d), eval(code, globals(), {"d": d})
elif system == "Polars":
    import polars
    def go():
        d = polars.read_csv(path, columns=columns, schema_overrides={c: polars.Float32 for c in columns if c[0] == "n"})
        if "d.select" not in code:
            return len(d), d.select([eval(code, globals(), {"x": polars.col(c)}) for c in columns])
        return len(d), eval(code, globals(), {"d": d})
else:
    import duckdb
    base = duckdb.connect()
    base.execute("set threads = 1")
    def go():
        source = "read_csv('%s', header = true, all_varchar = true)" % path
        cast = "(%s)::FLOAT" if columns[0][0] == "n" else "%s"
        if code.startswith("select"):
            base.execute("create table made as " + code.replace("from t", "from " + source))
        else:
            base.execute("create table made as select %s from (select %s from %s)" % (
                ", ".join("(" + code.replace("x", c) + ") as " + c if code == "x" else "(" + code.replace(" x", " " + c).replace(
                    "(x", "(" + c) + ") as " + c for c in columns),
                ", ".join(cast % c + " as " + c for c in columns), source))
        return base.execute("select count(*) from made").fetchone()[0], None
start = time.perf_counter()
rows, made = go()
print(rows / (time.perf_counter() - start))
"""


def write_csv(path, rows):
    rng = random.Random(1)
    with open(path, "w", encoding="utf-8") as out:
        out.write(",".join(["label"] + NUMBERS + WORDS + ["parts", "time"]) + "\n")
        for _ in range(rows):
            words = ["word%d" % min(int(rng.expovariate(0.01)), 600) for _ in range(7)]
            out.write("%d,%s,%s,%s,2026-%02d-%02d %02d:%02d:%02d\n" % (
                rng.random() < 0.25, ",".join(str(rng.randrange(10000)) for _ in NUMBERS), ",".join(words[:4]), "|".join(words[4:]),
                rng.randrange(1, 13), rng.randrange(1, 29), rng.randrange(24), rng.randrange(60), rng.randrange(60)))


def steps():
    """Of each: its name, the features, a model of them, the columns, and the code of each peer."""
    for name, (step, *codes) in NUMBER_STEPS.items():
        is_sparse = "bucketize" in step
        feature = 'feature { name: "n" from: "n1..n4" %s hash {} }' if is_sparse else 'feature { name: "numbers" from: "n1..n4" %s }'
        yield name + ", 4 numbers", feature % step, SPARSE % "n" if is_sparse else MODEL, NUMBERS, codes
    for name, (step, *codes) in WORD_STEPS.items():
        yield name + ", 4 words", 'feature { name: "w1..w4" %s %s }' % (step, "" if "hash" in step else "hash {}"), SPARSE % "w1..w4", WORDS, codes
    for name, (feature, *codes) in TEXT_STEPS.items():
        columns = [c for c in ("w1", "w2", "parts", "time") if '"%s"' % c in feature]
        model = MODEL.replace("numbers", "f") if "date_part" in feature else SPARSE % "f"
        yield name, "feature { %s }" % feature, model, columns, codes


def main():
    parser = arguments(__doc__, 300000)
    args = parser.parse_args()
    if not args.python:
        parser.error("FRAMES_PYTHON is not set: a Python that has pandas, polars and duckdb")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/log.csv"
        write_csv(path, args.rows)
        for _ in range(args.rounds):
            for name, features, model, columns, codes in steps():
                label = 'feature { name: "label" id {} is_dense: true } '
                found.setdefault((name, "Millrace"), []).append(
                    load(args.bin, folder, "job", 'name: "csv" ' + label + features, path, model))
                for system, code in zip(SYSTEMS, codes):
                    speed = peer(args.python, PEER, system, ",".join(columns), code, path)
                    if speed is None:
                        sys.exit("%s is not there: FRAMES_PYTHON names a Python that has pandas, polars and duckdb" % system)
                    found.setdefault((name, system), []).append(speed)
        size = os.path.getsize(path) // args.rows
    print("%d rows of %d bytes, one thread; rows a second, median [min-max], n = %d\n" % (args.rows, size, args.rounds))
    print("| step | Millrace | " + " | ".join(SYSTEMS) + " | faster by |\n|---|---|" + "---|" * (len(SYSTEMS) + 1))
    for name, *_ in steps():
        mine = found[name, "Millrace"]
        ratios = ["%.1f" % statistics.median(a / b for a, b in zip(mine, found[name, s])) for s in SYSTEMS]
        print("| %s | %s | %s | %s |" % (name, shown(mine), " | ".join(shown(found[name, s]) for s in SYSTEMS), ", ".join(ratios)))


if __name__ == "__main__":
    main()
