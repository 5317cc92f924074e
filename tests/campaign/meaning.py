"""The same rows through every format and every entry point, and metrics beside exact ones.

What must hold: rows of one meaning have the same ids and the same scores, whether they come as CSV, TSV, JSON lines, Parquet,
Arrow or a frame of pandas, polars or pyarrow; evaluation, infer, ranks, predictor and Python give a row the same score in
batches of any size; metrics are those of 64-bit arithmetic on narrow, saturated, tied, weighted and one-class data.
"""

import csv
import datetime
import decimal
import io
import json
import math
import os
import shutil
import struct
import subprocess
import sys

import jobs
from case import Violation, read

HERE = os.path.dirname(os.path.abspath(__file__))
SCORES = "predictions"


def run_case(case):
    return case.rng.choice((formats, formats, entries, metrics, metrics))(case)


def draw(case, *choices):
    return case.rng.choice(choices)


def single(number):
    """The 32-bit float that is nearest, as which a score is printed."""
    return struct.unpack("f", struct.pack("f", float(number)))[0]


def python_of(case, modules):
    """A Python that has these modules and the package, and its environment; None: there is none here."""
    environment = dict(os.environ, PYTHONPATH=os.environ.get("PYTHONPATH") or os.path.join(case.bin_dir, "../python"))
    for python in (os.environ.get("FRAMES_PYTHON"), os.environ.get("MILLRACE_PYTHON"), sys.executable):
        mark = os.path.join(case.cache, "python-%s" % abs(hash((python, modules))))
        if python and not os.path.exists(mark):
            found = subprocess.run([python, "-c", "import " + modules], env=environment, capture_output=True, check=False)
            jobs.write_file(mark, "" if found.returncode else "found")
        if python and read(mark):
            return python, dict(environment, MILLRACE_PYTHON=python)
    return None


# Typed rows, and their texts as docs/features.md, "Texts of values", says them.


WORDS = ("Wien", "Graz", "São Paulo", "カー", "カヌ", "a,b", "say \"x\"", "tab\there", "007", "1.0", "-0", "1e5", "true", "NULL", "\u00a0hard",
         "x" * 300, "|", "'", "Ünïcödé", "🙂", "2026-11-29", "#", "\\n")


def text_value(case):
    word = case.rng.choice(WORDS)
    return " " * draw(case, 0, 0, 0, 1, 2) + word + " " * draw(case, 0, 0, 0, 1)


def int_value(case):
    return draw(case, 0, 1, -1, case.rng.randrange(100), case.rng.randrange(-10**6, 10**6), 2**53 + 1, -2**53 - 1, 2**63 - 1, -2**63)


def double_value(case):
    return draw(case, 0.0, 1.0, -2.0, 0.1, 1e5, 1e7, 123456789.0, 1e15, 1e16, 1e17, 1e22, 1e-4, 1e-5, 1.5e-7, 1e300, 5e-324,
                case.rng.gauss(0, 1), float(case.rng.randrange(-1000, 1000)), case.rng.uniform(-1, 1) * 10 ** case.rng.randrange(-30, 30))


def float_value(case):
    value = double_value(case)
    return single(value if abs(value) < 3e38 else 1e10)


def timestamp_value(case, unit):
    """Units since 1970, some without a fraction of a second."""
    second = case.rng.randrange(-5 * 10**8, 2 * 10**9)
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    return second * scale + draw(case, 0, 0, case.rng.randrange(scale), scale // 2)


def column(case, name, rows):
    """A column of one kind, some of whose values are missing, perhaps all of the first ones."""
    kind = draw(case, "string", "string", "int64", "int64", "float64", "float32", "bool", "date", "decimal 10 2", "list string",
                "list int64", "timestamp " + draw(case, "s", "ms", "us", "ns") + draw(case, "", "", " UTC", " Asia/Tokyo"))
    make = {"string": text_value, "int64": int_value, "float64": double_value, "float32": float_value,
            "bool": lambda case: case.rng.random() < 0.5,
            "date": lambda case: (datetime.date(1970, 1, 1) + datetime.timedelta(case.rng.randrange(-5000, 25000))).isoformat(),
            "decimal 10 2": lambda case: str(decimal.Decimal(case.rng.randrange(-10**6, 10**6)).scaleb(-2)),
            "list string": lambda case: [case.rng.choice(("a", "b", "Wien", "10")) for _ in range(case.rng.randrange(1, 4))],
            "list int64": lambda case: [int_value(case) for _ in range(case.rng.randrange(1, 4))]}.get(kind)
    if make is None:
        unit = kind.split(" ")[1]
        make = lambda case: timestamp_value(case, unit)  # noqa: E731
    missing, empty_first = draw(case, 0, 0, 0.2), draw(case, 0, 0, rows // 2)
    values = [None if row < empty_first or case.rng.random() < missing else make(case) for row in range(rows)]
    return {"name": name, "kind": kind, "values": values}


ZONES = {"UTC": "+00:00", "Asia/Tokyo": "+09:00"}


def text_of(kind, value):
    """A value as a program would write it into a text file."""
    first, *rest = kind.split(" ")
    if value is None:
        return ""
    if first == "list":
        return "|".join(text_of(" ".join(rest), each) for each in value)
    if first == "timestamp":
        scale, digits = {"s": (1, 0), "ms": (10**3, 3), "us": (10**6, 6), "ns": (10**9, 9)}[rest[0]]
        zone = ZONES.get(rest[1], "") if len(rest) > 1 else ""
        second = value // scale + (int(zone[1:3]) * 3600 if zone else 0)
        text = (datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=second)).isoformat(" ")
        return text + (".%0*d" % (digits, value % scale) if value % scale else "") + zone
    if first == "bool":
        return "1" if value else "0"
    if first == "float32":
        return repr(shortest(value))
    return repr(value) if first == "float64" else str(value)


def shortest(value):
    """The number of the fewest digits that is this 32-bit float."""
    return next(number for number in (float("%.*g" % (digits, value)) for digits in range(1, 18)) if single(number) == value)


def json_of(kind, value):
    first = kind.split(" ")[0]
    if value is None or first in ("string", "int64", "uint64", "bool", "float64"):
        return value
    if first == "list":
        return [json_of(" ".join(kind.split(" ")[1:]), each) for each in value]
    return shortest(value) if first == "float32" else text_of(kind, value)


def feature(case, column_of):
    """A feature of a column, for its kind."""
    name, kind = column_of["name"], column_of["kind"]
    first = kind.split(" ")[0]
    head = "feature { name: \"%s\" from: \"%s\" " % ("s_" + name, name)
    if first == "list":
        return head + "split { by: \"|\" } hash {} }"
    if first == "string":
        return head + draw(case, "hash {}", "vocabulary { min_count: 1 } hash {}", "strip: \" W\" hash {}",
                           "ngrams { of: CHARACTERS most: 3 } hash {}") + " }"
    if first in ("date", "timestamp"):
        return head + draw(case, "hash {}", "date_part { part: %s } hash {}" % draw(
            case, "HOUR", "WEEKDAY", "DAY", "MONTH", "YEAR", "MINUTE", "DAY_OF_YEAR", "HOUR_OF_WEEK")) + " }"
    return head + draw(case, "hash {}", "hash {}", "bucketize { quantiles: 5 } hash {}",
                       "vocabulary { min_count: 1 } hash {}", "clip { min: -1e6 max: 1e6 } bucketize { boundaries: [-5, 0.5, 100] } hash {}") + " }"


FORMAT_JOB = """
update_mode: SERIAL
filelist: "%(file)s"
data_desc { name: "%(format)s" batch_size: 16 %(csv)s
  feature { name: "label" id {} is_dense: true }
  %(features)s }
model {
  table { name: "ids" dim: 2 init { uniform: 1 } optimizer { adagrad { lr: 0.1 } } }
  layer { name: "e" embedding { slots: [%(slots)s] table: "ids" } }
  layer { name: "y" fc { in: "e" units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "label" }
  optimizer { adagrad { lr: 0.1 } }
}
"""


def write_texts(case, columns):
    """Files of the rows: {what it is called: (file, format, fields of data_desc)}."""
    names = [each["name"] for each in columns]
    rows = list(zip(*(each["values"] for each in columns)))
    kinds = [each["kind"] for each in columns]

    def csv_file(name, **dialect):
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n", **dialect)
        writer.writerow(names)
        writer.writerows([text_of(kind, value) for kind, value in zip(kinds, row)] for row in rows)
        case.write(name, buffer.getvalue())
        return name

    lines = [json.dumps({name: json_of(kind, value) for name, kind, value in zip(names, kinds, row)
                         if value is not None or case.rng.random() < 0.5}, ensure_ascii=draw(case, True, False)) for row in rows]
    case.write("rows.json", "\n".join(lines) + "\n")
    return {"CSV": (csv_file("rows.csv"), "csv", ""), "quoted CSV": (csv_file("quoted.csv", quoting=csv.QUOTE_ALL), "csv", ""),
            "TSV": (csv_file("rows.tsv", delimiter="\t"), "csv", "csv { delimiter: \"\\t\" }"), "JSON": ("rows.json", "json", "")}


def formats(case):
    rows = draw(case, 20, 20, 60)
    columns = [{"name": "label", "kind": "int64", "values": [case.rng.randrange(2) for _ in range(rows)]}]
    columns += [column(case, "c%d" % i, rows) for i in range(draw(case, 1, 2, 4))]
    files = write_texts(case, columns)
    python = python_of(case, "pandas, polars, pyarrow, numpy, millrace")
    if python:
        case.write("rows.values", json.dumps(columns))
        case.succeed(python[0], os.path.join(HERE, "columns.py"), "write", "rows.values", case.folder, env=python[1])
        files.update({"Parquet": ("rows.parquet", "parquet", ""), "Arrow": ("rows.arrow", "arrow", "")})
    fields = {"features": "\n  ".join(feature(case, each) for each in columns[1:]),
              "slots": ", ".join("\"s_%s\"" % each["name"] for each in columns[1:])}
    environment = python[1] if python else None
    ids = {}
    for name, (file, form, options) in files.items():
        job = case.write("%s.prototxt" % name.replace(" ", "_"), FORMAT_JOB % dict(fields, file=file, format=form, csv=options))
        ids[name] = case.succeed("inspect", "head", "--trainer_desc=" + job, "--format=jsonl", "--batches=100", env=environment).out
        case.tally["ids of " + name] += 1
    trained = case.rng.choice(sorted(files))
    job = case.path("%s.prototxt" % trained.replace(" ", "_"))
    case.succeed("trainer", "--trainer_desc=" + job, "--output_dir=" + case.path("out"), env=environment)
    scores = {}
    for name, (file, form, options) in files.items():
        if (name == "TSV") != (trained == "TSV") and form == "csv":
            continue  # a model's CSV has one delimiter
        done = case.succeed("predictor", "--model_dir=" + case.path("out", "model"), "--input=" + file, "--format=" + form, env=environment)
        scores[name] = [single(line) for line in done.out.split()]
        case.tally["scores of " + name] += 1
    if python:
        done = case.succeed(python[0], os.path.join(HERE, "columns.py"), "score", case.path("out", "model"), "rows.values", env=python[1])
        for library, those in json.loads(done.out).items():
            scores[library] = [single(score) for score in those]
            case.tally["scores of frames of " + library] += 1
    for results, what in ((ids, "ids"), (scores, "scores")):
        for name, those in results.items():
            if those != results[trained]:
                raise Violation("the %s of %s and of %s, which trained, differ: %s" % (
                    what, name, trained, difference_of(case, columns, what, those, results[trained])))
    return "formats: equal ids and scores"


def difference_of(case, columns, what, one, other):
    """The first row or slot that differs, in words."""
    if what == "scores":
        for row, (a, b) in enumerate(zip(one, other)):
            if a != b:
                return "row %d, %r and %r: %s" % (row, a, b, {each["name"]: (each["kind"], each["values"][row]) for each in columns})
        return "%d and %d rows" % (len(one), len(other))
    for a, b in zip(one.splitlines(), other.splitlines()):
        a, b = json.loads(a), json.loads(b)
        for slot in b["slots"]:
            if a["slots"][slot] != b["slots"][slot]:
                name = slot.removeprefix("s_")
                kind, values = next((each["kind"], each["values"]) for each in columns if each["name"] == name)
                return "batch %d, slot %s (%s): %s\n%s\n%s" % (b["batch"], slot, kind, values[16 * b["batch"]:][:16],
                                                             str(a["slots"][slot])[:600], str(b["slots"][slot])[:600])
    return "%d and %d batches" % (one.count("\n"), other.count("\n"))


# The same rows through every entry point.

ENTRY_JOB = """
update_mode: SERIAL
thread_num: 1
seed: %(seed)d
filelist: "train.csv"
data_desc {
  name: "csv" batch_size: %(batch)d
  feature { name: "label" id {} is_dense: true }
  feature { name: "x" from: ["x1", "x2"] default_from: %(default)s standardize {} }
  feature { name: "band" from: "x1" bucketize { quantiles: 7 } hash {} }
  feature { name: "c" vocabulary { min_count: 2 } hash {} }
  feature { name: "t" split { by: "|" } hash {} }
}
model {
  table { name: "ids" dim: %(dim)d init { uniform: 0.5 } optimizer { adagrad { lr: 0.05 } } }
  layer { name: "e" embedding { slots: ["band", "c", "t"] table: "ids" } }
  %(layers)s
  layer { name: "y" fc { in: "h" units: 1 %(act)s } }
  loss { kind: %(loss)s in: "y" label: "label" }
  metric { kind: AUC } metric { kind: LOGLOSS } metric { kind: CALIBRATION }
  optimizer { adam { lr: 0.02 } }
}
eval { filelist: "rows.csv" %(calibration)s }
"""


def entry_rows(case, rows, with_words):
    lines = ["label,x1,x2,c,t"]
    for _ in range(rows):
        number = case.rng.gauss(0, 1)
        words = ("a", "b", "c", "d", "e") if with_words else ("a", "b", "new", "d")
        lines.append("%d,%r,%s,%s,%s" % (case.rng.random() < 1 / (1 + math.exp(-number)), number,
                                         "" if case.rng.random() < 0.1 else repr(case.rng.random() * 1e6),
                                         case.rng.choice(words), "|".join(case.rng.choice("pqrstuv") for _ in range(case.rng.randrange(4)))))
    return "\n".join(lines) + "\n"


def train(case, job):
    path = case.write("job.prototxt", job)
    case.succeed("trainer", "--trainer_desc=" + path, "--output_dir=" + case.path("out"))
    return path


def infer(case, job, ranks, *fields):
    """Runs the model of the run over rows.csv; returns infer.json of it."""
    wrap = ("mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)) if ranks else ()
    shutil.rmtree(case.path("inferred"), ignore_errors=True)
    shutil.copytree(case.path("out"), case.path("inferred"))
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    case.succeed("trainer", "--trainer_desc=" + job, "--output_dir=" + case.path("inferred"), "--resume=auto", "--set=infer=true",
                 "--set=filelist=[\"rows.csv\"]", *("--set=" + field for field in fields), wrap=wrap, env=environment)
    with open(case.path("inferred", "infer.json"), encoding="utf-8") as file:
        return json.load(file)


def has_mpirun():
    return shutil.which("mpirun") is not None


def predict(case, *arguments):
    return case.succeed("predictor", "--model_dir=" + case.path("out", "model"), *arguments)


def printed_metrics(done):
    """{name: value} of the line with the metrics of labels that predictor prints."""
    for line in done.err.splitlines():
        words = line.split()
        if {"example", "examples"} & set(words) and words[0] in ("auc", "gauc", "logloss", "calibration", "mae", "rmse"):
            return {name: float(value) for name, value in zip(words, words[1:]) if is_number(value) and not is_number(name)}
    return {}


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def entries(case):
    rows = draw(case, 1, 7, 64, 257, 600)
    case.write("train.csv", entry_rows(case, 400, True))
    case.write("rows.csv", entry_rows(case, rows, False))
    act = draw(case, True, False)
    layers = draw(case, "layer { name: \"h\" fc { in: [\"e\", \"x\"] units: %d act: RELU } }",
                  "layer { name: \"g\" fc { in: [\"e\", \"x\"] units: %d act: TANH } } layer { name: \"h\" fc { in: \"g\" units: 9 act: RELU } }",
                  "layer { name: \"g\" fc { in: [\"e\", \"x\"] units: %d } } layer { name: \"h\" cross { in: \"g\" } }")
    job = train(case, ENTRY_JOB % {
        "seed": case.rng.randrange(1, 1000), "batch": draw(case, 16, 50, 128), "dim": draw(case, 1, 4, 9, 16),
        "default": draw(case, "MEAN", "MEDIAN", "MIN"), "layers": layers % draw(case, 1, 3, 8, 17, 64, 200),
        "act": "act: SIGMOID" if act else "", "loss": "LOG_LOSS" if act else "SIGMOID_CROSS_ENTROPY",
        "calibration": ""})
    wanted = predict(case, "--input=rows.csv", "--output=" + SCORES)
    scores = read(case.path(SCORES))
    if scores.count("\n") != rows:
        raise Violation("%d rows have %d scores" % (rows, scores.count("\n")))
    for batch in (1, case.rng.randrange(2, 40), 512, 4096):
        if predict(case, "--input=rows.csv", "--batch_size=%d" % batch).out != scores:
            raise Violation("predictor --batch_size=%d gives other scores" % batch)
    with open(case.path("out", "run.json"), encoding="utf-8") as file:
        evaluated = json.load(file)["eval"]
    for ranks in (0, *((1, 2, 3) if has_mpirun() and not case.is_sanitized else ())):
        threads = draw(case, 1, 2, 3)
        found = infer(case, job, ranks, "thread_num=%d" % threads, "data_desc.batch_size=%d" % draw(case, 1, 5, 33, 300))["metrics"]
        case.tally["infer, " + ("%d ranks" % ranks if ranks else "one process")] += 1
        for name in ("auc", "logloss", "calibration"):
            if not same_number(found[name], evaluated[name]):
                raise Violation("infer of %d ranks and %d threads has the %s %r, and training's evaluation %r" %
                                (ranks, threads, name, found[name], evaluated[name]))
    for name, value in printed_metrics(wanted).items():
        if value == value and name in evaluated and not math.isclose(value, evaluated[name], rel_tol=2e-6, abs_tol=1e-6):
            raise Violation("predictor says the %s %r, and training's evaluation %r" % (name, value, evaluated[name]))
    python = python_of(case, "numpy, millrace")
    if python:
        case.tally["Python"] += 1
        script = ("import sys, millrace\np = millrace.Predictor(sys.argv[1])\n"
                  "t = open(sys.argv[2], encoding='utf-8').read()\nfor s in p.predict_lines(t).ravel(): print('%.9g' % s)\n")
        done = case.succeed(python[0], "-c", script, case.path("out", "model"), "rows.csv", env=python[1])
        if [single(line) for line in done.out.split()] != [single(line) for line in scores.split()]:
            raise Violation("Python's predict_lines gives other scores than predictor")
    return "entries: the same scores and metrics"


def same_number(one, other):
    """Equal but for the last digits of sums that threads and ranks add up in another order; nan as well."""
    return one == other or (one != one and other != other) or None in (one, other) and one == other or math.isclose(one, other, rel_tol=1e-12)


# Metrics beside 64-bit arithmetic.

METRIC_JOB = """
update_mode: SERIAL
thread_num: 1
filelist: "rows.csv"
data_desc { name: "csv" batch_size: %(batch)d
  feature { name: "label" id {} is_dense: true } feature { name: "x" } feature { name: "w" } feature { name: "user" id {} } }
model {
  layer { name: "y" fc { in: "x" units: 1 bias: false init { constant: 1 } } }
  loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "label" %(weight)s }
  metric { kind: AUC } metric { kind: LOGLOSS } metric { kind: CALIBRATION } metric { kind: GAUC group: "user" }
  optimizer { sgd { lr: 1e-38 } }
}
eval { filelist: "rows.csv" }
"""


def logits(case, rows):
    centre, width = draw(case, (0, 1), (0, 3), (-4, 1e-4), (-18, 0.3), (18, 0.3), (0, 1e-6), (-40, 10), (40, 10), (0, 40), (-90, 2))
    values = [case.rng.gauss(centre, width) for _ in range(rows)]
    if case.rng.random() < 0.4:  # ties
        few = values[:draw(case, 1, 2, 5)]
        values = [case.rng.choice(few) for _ in range(rows)]
    return [single(value) for value in values]


def labels(case, values):
    kind = draw(case, "drawn", "drawn", "by rank", "one class")
    if kind == "one class":
        return [draw(case, 0, 1)] * len(values)
    if kind == "by rank":
        middle = sorted(values)[len(values) // 2]
        return [int(value >= middle) for value in values]
    return [int(case.rng.random() < 0.4) for _ in values]


def exact_auc(rows):
    """Of (logit, label, weight); nan where a class has no weight. The weights are whole numbers, and Python's are exact."""
    positives = sum(weight for _, label, weight in rows if label)
    negatives = sum(weight for _, label, weight in rows if not label)
    if not positives or not negatives:
        return math.nan
    below, doubled = 0, 0
    groups = {}
    for logit, label, weight in rows:
        groups.setdefault(logit, [0, 0])[label] += weight
    for logit in sorted(groups):
        negative, positive = groups[logit]
        doubled += positive * (2 * below + negative)
        below += negative
    return doubled / (2 * positives * negatives)


def exact_gauc(rows, users):
    """AUC of each user who has both classes, weighted by his rows' weights; of rows that have a user alone."""
    groups = {}
    for row, user in zip(rows, users):
        if user is not None:
            groups.setdefault(user, []).append(row)
    total, sum_of = 0, 0.0
    for group in groups.values():
        auc = exact_auc(group)
        if auc == auc:
            weight = sum(row[2] for row in group)
            total += weight
            sum_of += weight * auc
    return sum_of / total if total else math.nan


def exact_logloss(rows):
    """Of the logits, with probabilities kept 1e-7 from 0 and 1, as docs say."""
    total = sum(weight for _, _, weight in rows)
    if not total:
        return math.nan
    held = [min(max(1 / (1 + math.exp(-logit)), 1e-7), 1 - 1e-7) for logit, _, _ in rows]
    return math.fsum(weight * -math.log(share if label else 1 - share) for (_, label, weight), share in zip(rows, held)) / total


def metrics(case):
    count = draw(case, 2, 3, 30, 500, 3000)
    values = logits(case, count)
    weights = [1] * count
    kind = draw(case, "none", "none", "small", "one of 1e15")
    if kind != "none":
        weights = [case.rng.randrange(0, 5) for _ in values]
    if kind == "one of 1e15":
        weights[case.rng.randrange(count)] = 10**15
    weights = [int(single(weight)) for weight in weights]
    if not any(weights):
        weights[0] = 1
    truth = labels(case, values)
    users = [draw(case, None, 0, 1, case.rng.randrange(2, 30)) for _ in values]
    rows = list(zip(values, truth, weights))
    case.write("rows.csv", "label,x,w,user\n" + "".join(
        "%d,%r,%d,%s\n" % (label, logit, weight, "" if user is None else user) for (logit, label, weight), user in zip(rows, users)))
    job = train(case, METRIC_JOB % {"batch": draw(case, 1, 16, 100, 4096), "weight": "sample_weight: \"w\"" if kind != "none" else ""})
    wanted = {"auc": exact_auc(rows), "gauc": exact_gauc(rows, users), "logloss": exact_logloss(rows)}
    with open(case.path("out", "run.json"), encoding="utf-8") as file:
        found = {"evaluation": json.load(file)["eval"]}
    for ranks in (0, *((2,) if has_mpirun() and not case.is_sanitized else ())):
        found["infer, " + ("%d ranks" % ranks if ranks else "one process")] = infer(
            case, job, ranks, "thread_num=%d" % draw(case, 1, 2), "data_desc.batch_size=%d" % draw(case, 3, 50, 1000))["metrics"]
    found["predictor"] = printed_metrics(predict(case, "--input=rows.csv", "--output=" + SCORES))
    for entry, those in found.items():
        case.tally["metrics of " + entry] += 1
        for name, exact in wanted.items():
            if name not in those:
                if exact != exact or (entry, name) == ("predictor", "gauc"):
                    continue
                raise Violation("%s has no %s" % (entry, name))
            value = those[name]
            value = math.nan if value is None else value
            tolerance = 1e-6 if entry == "predictor" else 1e-9  # predictor prints six digits behind the point
            if not (value != value and exact != exact) and not math.isclose(value, exact, rel_tol=tolerance, abs_tol=tolerance):
                raise Violation("%s: the %s is %r, and %r in 64 bits (%s, %d rows)" % (entry, name, value, exact, kind, count))
    return "metrics: those of 64-bit arithmetic"
