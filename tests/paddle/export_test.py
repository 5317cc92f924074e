"""Models of ours in the files of other runtimes, which predict the same there.

    export_test.py BIN_DIR lr|fm|deepfm|dcn|wide_deep|operators|program|calibrated|growing_tables|refusals

The first five are configs/NAME.prototxt, whose tables grow; `operators` runs what an ONNX model may hold, on a table with a
vocabulary, and `program` what Paddle writes. PADDLE_PYTHON and ONNXRUNTIME_PYTHON name Pythons that have the runtimes; exit
code 77: one was missing, and what could be compared without it agreed.
"""

import json
import os
import random
import re
import sys
import tempfile

import support

TOLERANCE = 1e-5
HERE = os.path.dirname(os.path.abspath(__file__))
VOCABULARY = 61
COLUMNS = "label,dense," + ",".join("C%d" % i for i in range(1, 27))

OPERATORS_JOB = """
update_mode: SERIAL
filelist: "%(folder)s/lines"
data_desc { batch_size: 16 multi_slot_desc {
  slots { name: "label" type: "uint64" is_used: true is_dense: true shape: [-1, 1] }
  slots { name: "x" type: "float" is_used: true is_dense: true shape: [-1, 3] }
  slots { name: "one" type: "uint64" is_used: true is_dense: true shape: [-1, 1] }
  slots { name: "a" type: "uint64" is_used: true }
  slots { name: "unread" type: "uint64" is_used: true }
  slots { name: "b" type: "uint64" is_used: true }
} }
model {
  table { name: "t" dim: 3 vocabulary: 20 padding_idx: 0 init { normal: 1 } }
  layer { name: "single" embedding { slots: "one" table: "t" } }
  layer { name: "sums" embedding { slots: ["a", "b"] table: "t" pool: SUM } }
  layer { name: "averages" embedding { slots: "a" table: "t" pool: AVERAGE } }
  layer { name: "roots" embedding { slots: "b" table: "t" pool: SQRT } }
  layer { name: "largest" embedding { slots: "a" table: "t" pool: MAX } }
  layer { name: "firsts" embedding { slots: "b" table: "t" pool: FIRST } }
  layer { name: "lasts" embedding { slots: "b" table: "t" pool: LAST } }
  layer { name: "leaky" op { type: "leaky_relu" inputs { name: "X" vars: "averages" } attrs { name: "alpha" f: 0.1 } } }
  layer { name: "scaled" op { type: "scale" inputs { name: "X" vars: "x" }
    attrs { name: "scale" f: 0.5 } attrs { name: "bias" f: 0.25 } attrs { name: "bias_after_scale" b: false } } }
  layer { name: "clipped" op { type: "clip" inputs { name: "X" vars: "roots" }
    attrs { name: "min" f: -0.5 } attrs { name: "max" f: 0.5 } } }
  layer { name: "part" op { type: "slice" inputs { name: "Input" vars: "sums" }
    attrs { name: "axes" ints: 1 } attrs { name: "starts" ints: 1 } attrs { name: "ends" ints: 4 } } }
  layer { name: "product" op { type: "elementwise_mul" inputs { name: "X" vars: "single" } inputs { name: "Y" vars: "lasts" } } }
  layer { name: "difference" op { type: "elementwise_sub" inputs { name: "X" vars: "firsts" } inputs { name: "Y" vars: "largest" } } }
  layer { name: "tall" op { type: "reshape2" inputs { name: "X" vars: "part" } attrs { name: "shape" ints: [-1, 3, 1] } } }
  layer { name: "wide" op { type: "unsqueeze2" inputs { name: "X" vars: "scaled" } attrs { name: "axes" ints: 1 } } }
  layer { name: "outer" op { type: "matmul_v2" inputs { name: "X" vars: "tall" } inputs { name: "Y" vars: "wide" } } }
  layer { name: "turned" op { type: "matmul_v2" inputs { name: "X" vars: "outer" } inputs { name: "Y" vars: "wide" }
    attrs { name: "trans_y" b: true } } }
  layer { name: "narrow" op { type: "squeeze2" inputs { name: "X" vars: "turned" } attrs { name: "axes" ints: 2 } } }
  layer { name: "mean" op { type: "reduce_mean" inputs { name: "X" vars: "narrow" }
    attrs { name: "dim" ints: 1 } attrs { name: "keep_dim" b: true } } }
  layer { name: "crossed" op { type: "transpose2" inputs { name: "X" vars: "outer" } attrs { name: "axis" ints: [0, 2, 1] } } }
  layer { name: "flat" op { type: "flatten_contiguous_range" inputs { name: "X" vars: "crossed" }
    attrs { name: "start_axis" i: 1 } attrs { name: "stop_axis" i: 2 } } }
  layer { name: "size" op { type: "abs" inputs { name: "X" vars: "flat" } } }
  layer { name: "kept" dropout { in: "difference" prob: 0.3 } }
  layer { name: "all" concat { in: ["leaky", "scaled", "clipped", "part", "product", "narrow", "mean", "kept", "size"] } }
  layer { name: "h" fc { in: "all" units: 8 act: TANH } }
  layer { name: "y" fc { in: "h" units: 3 act: SOFTMAX } }
  loss { kind: CROSS_ENTROPY in: "y" label: "label" }
  optimizer { sgd { lr: 0.05 } }
}
"""
OPERATORS_COLUMNS = "label,x,one,a,unread,b"


def scores_of(path, columns):
    """The last columns of every line: of two classes the last is the score, of more each is one."""
    return [float(score) for line in support.read(path).splitlines() for score in line.split("\t")[-columns:]]


def compare(what, got, wanted, most_steep=0.0):
    """`most_steep`: the share of scores that may lie on a steep part of a map, where the last digit of what it maps is much."""
    if len(got) != len(wanted) or not wanted:
        support.fail("%s: %d scores, not %d" % (what, len(got), len(wanted)))
    apart = [i for i, (score, expected) in enumerate(zip(got, wanted)) if not abs(score - expected) <= TOLERANCE]
    for i in apart:
        if len(apart) > most_steep * len(wanted) or not abs(got[i] - wanted[i]) <= 0.1:
            support.fail("%s: line %d scores %r, not %r" % (what, i + 1, got[i], wanted[i]))


class Run:
    """A trained job with both exports, and the peers that predict with them."""

    def __init__(self, bin_dir, folder):
        self.bin = bin_dir
        self.out = folder + "/out"
        self.folder = folder
        self.missing = []
        self.columns = 1  # of the scores that were predicted last

    def train(self, job, *settings, code=0):
        arguments = [self.bin + "/trainer", "--trainer_desc=" + job, "--output_dir=" + self.out]
        for setting in settings:
            arguments += ["--set", setting]
        return support.run(*arguments, cwd=support.ROOT, code=code)

    def predict(self, model, lines, *flags):
        scores = self.out + "/scores"
        support.run(self.bin + "/predictor", "--model_dir=" + self.out + "/" + model, "--input=" + lines,
                    "--pipe_command=cat", "--output=" + scores, *flags)
        self.columns = len(support.read(scores).splitlines()[0].split("\t"))
        return scores_of(scores, self.columns)

    def python(self, variable):
        python = os.environ.get(variable, "")
        if not python and variable not in self.missing:
            self.missing.append(variable)
        return python

    def paddle(self, prefix, columns, lines, wanted):
        python = self.python("PADDLE_PYTHON")
        if not python:
            return
        support.run(python, HERE + "/recsys_models.py", "predict", self.out + "/paddle/" + prefix, columns, lines,
                    self.folder + "/paddle.tsv")
        compare("Paddle, " + prefix, scores_of(self.folder + "/paddle.tsv", self.columns), wanted)

    def onnx(self, model, columns, lines, wanted, *options, most_steep=0.0):
        python = self.python("ONNXRUNTIME_PYTHON")
        if not python:
            return
        support.run(python, HERE + "/onnx_runner.py", self.out + "/onnx/" + model, lines, columns,
                    self.folder + "/onnx.tsv", *options)
        compare("onnxruntime, " + model, scores_of(self.folder + "/onnx.tsv", self.columns), wanted, most_steep)

    def compare_online(self, layers):
        """Random numbers in place of what the embedding layers make; `layers` are (name, width), then whole slots."""
        rows = random.Random(7)
        line = lambda: " ".join("%d %s" % (width, " ".join("%.4f" % rows.gauss(0, 1) for _ in range(width)))
                                for _, width in layers)
        lines = support.write(self.folder + "/online", "".join(line() + "\n" for _ in range(50)))
        wanted = self.predict("model", lines, "--feed=online")
        columns = ",".join(name for name, _ in layers)
        compare("online, read here", self.predict("paddle/online", lines), wanted)
        self.paddle("online", columns, lines, wanted)
        self.onnx("online.onnx", columns, lines, wanted)

    def end(self):
        if self.missing:
            support.skip("%s not set; the rest agrees" % " and ".join(self.missing))


def exports(vocabulary):
    rows = " vocabulary: %d" % vocabulary if vocabulary else ""
    return ["output.export+={format: %s%s}" % (name, rows) for name in ("PADDLE", "ONNX")]


def generate(run):
    clicks = run.folder + "/clicks"
    support.run(run.bin + "/clickgen", "--output_dir=" + clicks, "--rows=2000", "--test_rows=200", "--vocabulary=60")
    return clicks


def config(run, name):
    clicks = generate(run)
    run.train("configs/%s.prototxt" % name, "filelist=[%s/train/part-*]" % clicks, "update_mode=SERIAL",
              "data_desc.batch_size=100", *exports(VOCABULARY))
    lines = clicks + "/test/part-00000"
    wanted = run.predict("model", lines)
    compare("read here", run.predict("paddle", lines), wanted)
    run.paddle("model", COLUMNS, lines, wanted)
    run.onnx("offline.onnx", COLUMNS, lines, wanted)
    job = support.read(support.ROOT + "/configs/%s.prototxt" % name)
    dims = dict((t.split('"')[1], int(t.split("dim: ")[1].split()[0]))
                for t in job.splitlines() if t.strip().startswith("table {"))
    layers = [(t.split('"')[1], 26 * dims[t.split('table: "')[1].split('"')[0]])
              for t in job.splitlines() if "embedding {" in t]
    used_dense = any("in:" in t and '"dense"' in t for t in job.splitlines())
    run.compare_online(layers + ([("dense", 13)] if used_dense else []))


def operators(run, _):
    rows = random.Random(3)
    ids = lambda: " ".join(str(rows.randrange(1, 20)) for _ in range(2)) if rows.random() < 0.5 else "0"
    many = lambda: "%d %s" % (len(text.split()), text) if (text := ids()) else ""
    lines = support.write(run.folder + "/lines", "".join(
        "1 %d 3 %.3f %.3f %.3f 1 %d %s 1 7 %s\n" % (rows.randrange(3), rows.random(), rows.random(), rows.random(),
                                                   rows.randrange(20), many(), many()) for _ in range(200)))
    job = support.write(run.folder + "/job.prototxt", OPERATORS_JOB % {"folder": run.folder})
    run.train(job, *exports(0))
    wanted = run.predict("model", lines)
    if max(wanted) - min(wanted) < 0.01:
        support.fail("every line scores about the same")
    compare("read here", run.predict("paddle", lines), wanted)
    run.paddle("model", OPERATORS_COLUMNS, lines, wanted)
    run.onnx("offline.onnx", OPERATORS_COLUMNS, lines, wanted)
    run.onnx("offline.onnx", OPERATORS_COLUMNS, lines, wanted, "empty")
    run.compare_online([("single", 3), ("sums", 6), ("averages", 3), ("roots", 3), ("largest", 3), ("firsts", 3),
                        ("lasts", 3), ("x", 3)])


def program(run, _):
    """A model that Paddle wrote, which has operators that our layers do not make."""
    python = run.python("PADDLE_PYTHON")
    if not python:
        return
    support.run(python, HERE + "/program_models.py", "onnx", run.folder)
    for name in ("stacked_and_normed", "split_and_centered"):
        exported(run, run.folder + "/" + name)


def exported(run, folder):
    run.out = folder + "/out"
    columns = ",".join(json.loads(support.read(folder + "/names.json"))["columns"])
    job = folder + "/job/job.prototxt"
    prediction = re.search("format: PADDLE (.*?) }", support.read(job))[1]
    run.train(job, "thread_num=1", "output.export+={format: ONNX %s}" % prediction)
    lines = folder + "/data/part-000"
    run.onnx("offline.onnx", columns, lines, run.predict("paddle", lines))


def calibrated(run, _):
    """What a calibration makes of the last of two classes: a line, and many points."""
    clicks = generate(run)
    lines = clicks + "/test/part-00000"
    for kind, most_steep in (("PLATT", 0), ("ISOTONIC", 0.05)):
        run.train("configs/wide_deep.prototxt", "filelist=[%s/train/part-*]" % clicks, "data_desc.batch_size=100", exports(VOCABULARY)[1],
                  "eval={ filelist: \"%s\" calibration { kind: %s } }" % (lines, kind))
        run.onnx("offline.onnx", COLUMNS, lines, run.predict("model", lines), most_steep=most_steep)


def expect(text, *parts):
    for part in parts:
        if part not in text:
            support.fail("%r is missing in:\n%s" % (part, text))


def growing_tables(run, _):
    """A table that grows needs a bound, which must hold; both are said, and nothing is written."""
    clicks = generate(run)
    settings = ["filelist=[%s/train/part-*]" % clicks, "update_mode=SERIAL"]
    without = run.train("configs/wide_deep.prototxt", *settings, "output.export+={format: PADDLE}", code=2)
    expect(without, "output.export", "deep", "wide", "grows", "set vocabulary in this export")
    low = run.train("configs/wide_deep.prototxt", *settings, "output.export+={format: PADDLE vocabulary: 20}", code=2)
    expect(low, "is not below vocabulary 20 of the export", "raise vocabulary")
    if os.path.exists(run.out + "/paddle"):
        support.fail("a model with missing rows was written")


def refusals(run, _):
    job = support.write(run.folder + "/job.prototxt", OPERATORS_JOB % {"folder": run.folder})
    support.write(run.folder + "/lines", "1 1 3 1 2 3 1 1 1 1 1 7 1 2\n")
    print_only = lambda *settings: run.train(job, *settings, code=2)
    expect(print_only("output.export+={format: PADDLE fetch_vars: \"hh\"}"), 'there is no variable "hh"', 'did you mean "h"')
    both = print_only("output.export+={format: PADDLE fetch_vars: [\"hh\", \"gg\"]}")
    expect(both, 'there is no variable "hh"', '\n  fetch_vars: there is no variable "gg"')
    expect(print_only("output.export+={dir: \"x\"}"), "an export needs a format: PADDLE or ONNX")
    expect(print_only("output.export+={format: ONNX vocabulary: 0}"), "vocabulary must be at least 1")
    expect(print_only("output.export+={format: ONNX}", "output.export+={format: ONNX}"), "an earlier export has the folder")
    expect(print_only("output.export+={format: ONNX fetch_vars: \"loss\"}"), "cross_entropy", "has no ONNX form")
    nothing = support.run(run.bin + "/predictor", "--model_dir=" + run.folder, "--input=/dev/null", code=3)
    expect(nothing, "is no saved model", "*.pdmodel")
    run.train(job, *exports(0))
    other = support.run(run.bin + "/predictor", "--model_dir=" + run.out + "/paddle", "--prediction=no",
                        "--input=/dev/null", code=2)
    expect(other, 'does not return "no"; it returns: y')
    feed = support.write(run.folder + "/feed", 'multi_slot_desc { slots { name: "x" type: "float" is_used: true is_dense: '
                         "true shape: [-1, 3] } }")
    slots = support.run(run.bin + "/predictor", "--model_dir=" + run.out + "/paddle", "--data_feed=" + feed,
                        "--input=/dev/null", code=2)
    expect(slots, 'the model is fed with "one", but the lines have no such slot')
    whole = ('model.layer+={name: "whole" op { type: "cast" inputs { name: "X" vars: "y" } '
             'attrs { name: "out_dtype" i: 3 } } }')
    run.train(job, whole, 'output.export+={format: PADDLE dir: "%s/whole" fetch_vars: "whole"}' % run.folder)
    integers = support.run(run.bin + "/predictor", "--model_dir=" + run.folder + "/whole",
                           "--input=" + run.folder + "/lines", code=2)
    expect(integers, '"whole" is int64, and predictions are float32')
    with open(run.out + "/paddle/model.pdiparams", "r+b") as file:
        file.truncate(100)
    damaged = support.run(run.bin + "/predictor", "--model_dir=" + run.out + "/paddle", "--input=/dev/null", code=3)
    expect(damaged, "model.pdiparams", "the file ends within the values")


def main():
    bin_dir, name = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        run = Run(bin_dir, folder)
        named = {"operators": operators, "program": program, "calibrated": calibrated, "growing_tables": growing_tables, "refusals": refusals}
        named.get(name, config)(run, name)
        run.end()


if __name__ == "__main__":
    main()
