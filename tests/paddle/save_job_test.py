"""Jobs as scripts/export_from_paddle.py saves them, run as they come.

    save_job_test.py BIN_DIR       PADDLE_PYTHON names a Python with Paddle; exit code 77: there is none
"""

import os
import re
import sys
import tempfile

import support

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "save_job_models.py")


class Saved:
    def __init__(self, bin_dir, python, kind, top):
        self.bin, self.folder = bin_dir, top + "/" + kind
        os.mkdir(self.folder)
        self.said = support.run(python, MODELS, kind, self.folder, cwd=self.folder)

    def job(self):
        return support.read(self.folder + "/job/job.prototxt")

    def train(self, *settings, code=0):
        flags = [word for setting in settings for word in ("--set", setting)]
        return support.run(self.bin + "/trainer", "--trainer_desc=" + self.folder + "/job/job.prototxt",
                           "--output_dir=" + self.folder + "/out", *flags, code=code)

    def prediction(self):
        """The first variable that the job exports."""
        return re.search(r'fetch_vars: "([^"]+)"', self.job())[1]

    def batches(self):
        return len(support.metrics(self.folder + "/out"))


def has(text, *parts):
    for part in parts:
        if part not in text:
            support.fail("no %r in\n%s" % (part, text))


def main():
    (bin_dir,) = sys.argv[1:]
    python = support.peer("PADDLE_PYTHON", "paddle")
    with tempfile.TemporaryDirectory() as top:
        saved = lambda kind: Saved(bin_dir, python, kind, top)

        # 24 rows in 8 page views: 2 batches of 4 views, then 3 of 8 rows.
        views = saved("page_views")
        has(views.job(), "phases: JOIN }")
        views.train()
        if views.batches() != 2:
            support.fail("%d batches of page views, not 2" % views.batches())
        both = saved("both_phases")
        both.train("epochs=2")
        if both.batches() != 5:
            support.fail("%d batches of two phases, not 5" % both.batches())

        saved("compiled").train()

        measured = saved("measured")
        has(measured.train("model={metric {kind: AUC in: \"%s\" label: \"label\"}}" % measured.prediction(),
                           "eval={filelist: \"%s/lines\"}" % measured.folder, "feature_importance={slots: \"x\"}"),
            "feature importance: auc ")

        mistaken = saved("mistaken").said
        has(mistaken, "the dataset merges none")

        # The unknown operators of both programs, once each.
        unknown = saved("unknown")
        support.write(unknown.folder + "/job/job.prototxt", re.sub("  init_dir: .*\n", "", unknown.job()))
        unknown = unknown.train(code=2)
        counts = {name: unknown.count(name + ": no such operator") for name in ("bilinear_tensor_product", "bilinear_tensor_product_grad", "randperm")}
        if set(counts.values()) != {1} or len(re.findall("the program has 2 of them", unknown)) != 2:
            support.fail("the unknown operators are not told by name and count:\n" + unknown)


if __name__ == "__main__":
    main()
