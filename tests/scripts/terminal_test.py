"""Names and values of data and of models reach no terminal as they are, whatever command shows them; and what lies in a run's or
a model's folder cannot keep a command waiting."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = sys.argv.pop() if len(sys.argv) > 1 and os.path.isdir(sys.argv[-1]) else ""
# A title, a colour, the same by one character of two bytes (U+009B), a byte that is no UTF-8, a delete and a return.
HOSTILE = b"\x1b]0;owned\x07\x1b[31m\xc2\x9b31m\xff\x7f\r"
JOB = """
filelist: "%s"
data_desc { name: "%s" batch_size: 16 feature { name: "label" id {} is_dense: true } feature { name: "x" } feature { name: "c" %s hash {} } }
model { table { name: "t" dim: 4 } layer { name: "e" embedding { slots: "c" table: "t" } } layer { name: "y" fc { in: ["e", "x"] units: 1 } }
  loss { kind: SIGMOID_CROSS_ENTROPY in: "y" label: "label" } optimizer { sgd { lr: 0.1 } } }
%s
"""


class TerminalTest(unittest.TestCase):
    def setUp(self):
        if not os.path.exists(os.path.join(BIN, "trainer")):
            self.skipTest("no programs")
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = made.name

    def write(self, name, content):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return name

    def run_program(self, program, *flags, given=b"", timeout=60):
        return subprocess.run([os.path.join(BIN, program), *flags], cwd=self.folder, input=given, capture_output=True, check=False,
                              timeout=timeout)

    def check(self, done, shown=True):
        """That nothing a terminal obeys is printed, and, if it is to be `shown`, as what."""
        for printed in (done.stdout, done.stderr):
            odd = [c for c in printed.decode("utf-8") if (c < " " and c not in "\n\t") or "\x7f" <= c < "\xa0"]
            self.assertEqual(odd, [], printed)
        if shown:
            self.assertIn(b"\\x1b]0;owned\\x07", done.stdout + done.stderr)
        return done

    def job(self, name, files, kind="csv", source="", more=""):
        return "--trainer_desc=" + self.write(name, JOB % (files, kind, source, more))

    def test_columns_of_headers(self):
        self.write("a.csv", "label,x,c\n1,2,a\n0,3,b\n")
        for at, (header, kind) in enumerate([(b"label,x,c,z" + HOSTILE, "csv"), (b'label,x,c,"z' + HOSTILE + b'"', "csv"),
                                             (b"label\tx\tc\tz" + HOSTILE, "tsv")]):
            row = b"1\t2\ta\t" if kind == "tsv" else b"1,2,a,"
            if kind == "tsv":
                self.write("a.csv", "label\tx\tc\n1\t2\ta\n0\t3\tb\n")
            self.write("e.csv", header.replace(b"\r", b"") + b"\n" + row + b"\n")
            job = self.job("j.prototxt", "a.csv", "csv", more='eval { filelist: "e.csv" }')
            if kind == "tsv":
                job = "--trainer_desc=" + self.write("j.prototxt", (JOB % ("a.csv", "csv", "", 'eval { filelist: "e.csv" }')).replace(
                    "batch_size", 'csv { delimiter: "\\t" } batch_size'))
            out = "o%d" % at
            self.check(self.run_program("trainer", job, "--output_dir=" + out))
            self.check(self.run_program("predictor", "--model_dir=%s/model" % out, "--input=e.csv"))
            self.check(self.run_program("trainer", job, "--validate_only"))

    def test_columns_and_words_of_a_model(self):
        text = HOSTILE.replace(b"\r", b"").replace(b"\xff", b"")
        self.write("a.csv", b"label,x,c" + text + b"\n1,2,a" + text + b"\n0,3,b\n")
        source = 'from: "c%s"' % "".join("\\%03o" % byte for byte in text)
        self.check(self.run_program("trainer", self.job("j.prototxt", "a.csv", source=source), "--output_dir=o"), shown=False)
        self.check(self.run_program("predictor", "--model_dir=o/model", given=b"label,x,c\n1,2,a\n"))
        self.check(self.run_program("inspect", "features", "--model_dir=o/model"))
        self.check(self.run_program("inspect", "model", "--model_dir=o/model"), shown=False)
        self.check(self.run_program("inspect", "runs", "o"), shown=False)
        for form in ("table", "json"):
            self.check(self.run_program("inspect", "head", "--trainer_desc=j.prototxt", "--format=" + form), shown=False)

    def test_values_of_every_format(self):
        bad = HOSTILE.replace(b"\r", b"").replace(b"\xff", b"")
        quoted = "".join("\\u%04x" % ord(c) for c in bad.decode()).encode()
        for name, content, kind in (("a.csv", b"label,x,c\n1," + bad + b",a\n", "csv"), ("b.csv", b'label,x,c\n1,"' + bad + b'",a\n', "csv"),
                                    ("a.json", b'{"label":1,"x":"' + quoted + b'","c":"a"}\n', "json"),
                                    ("b.json", b'{"label":1,"x":1,"c":"a"' + bad + b"}\n", "json"),
                                    ("a.svm", b"1 x:" + bad + b"\n", "libsvm")):
            self.write(name, content)
            done = self.check(self.run_program("trainer", self.job("j.prototxt", name, kind)), shown=False)
            self.assertNotEqual(done.returncode, 0, name)

    def test_names_of_files_and_texts_of_jobs(self):
        name = "a\x1b[31m.csv"
        self.write(name, "label,x,c\n1,no,a\n")
        self.check(self.run_program("trainer", self.job("j.prototxt", name.replace("\x1b", "\\033"))), shown=False)
        self.check(self.run_program("trainer", "--trainer_desc=" + self.write("k.prototxt", b"filelist: " + HOSTILE)), shown=False)
        self.check(self.run_program("trainer", b"--trainer_desc=\x1b[31m\xff"), shown=False)
        self.check(self.run_program("inspect", "runs", b"\x1b[31m\xff"), shown=False)

    def test_a_named_pipe_in_the_folder_of_a_run_is_refused(self):
        os.mkdir(os.path.join(self.folder, "run"))
        for name in ("metrics.jsonl", "run.json"):
            path = os.path.join(self.folder, "run", name)
            os.mkfifo(path)
            done = self.run_program("inspect", "runs", "run", timeout=20)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(b"%s\" is a named pipe, and a plain file belongs there" % name.encode(), done.stderr)
            os.remove(path)
        os.mkfifo(os.path.join(self.folder, "table"))
        done = self.run_program("inspect", "table", "table", timeout=20)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(b"is a named pipe", done.stderr)

    def test_a_file_that_is_larger_than_its_list_says_is_not_read(self):
        self.write("a.csv", "label,x,c\n1,2,a\n0,3,b\n")
        job = self.job("j.prototxt", "a.csv")
        self.assertEqual(self.run_program("trainer", job, "--output_dir=o").returncode, 0)
        steps = [name for name in os.listdir(os.path.join(self.folder, "o", "checkpoints")) if name.startswith("step-")]
        for name, command in [("model/parameters", ["predictor", "--model_dir=o/model", "--input=a.csv"]),
                              ("model/tables/t", ["predictor", "--model_dir=o/model", "--input=a.csv"]),
                              ("model/program_offline", ["inspect", "model", "--model_dir=o/model"]),
                              ("checkpoints/%s/parameters" % steps[0], ["trainer", job, "--output_dir=o", "--resume=auto"]),
                              ("model/MODEL", ["predictor", "--model_dir=o/model", "--input=a.csv"])]:
            path = os.path.join(self.folder, "o", name)
            size = os.path.getsize(path)
            os.truncate(path, 1 << 40)  # a hole, which takes no room
            start = time.monotonic()
            done = self.run_program(*command, timeout=60)
            self.assertLess(time.monotonic() - start, 10, name)
            self.assertEqual(done.returncode, 3, (name, done.stderr))
            self.assertIn(b"is damaged", done.stderr, name)
            os.truncate(path, size)

    def test_a_signal_ends_inspect(self):
        self.write("a.csv", "label,x,c\n1,2,a\n")
        os.mkfifo(os.path.join(self.folder, "p.csv"))
        started = subprocess.Popen([os.path.join(BIN, "inspect"), "head", self.job("j.prototxt", "p.csv")], cwd=self.folder,
                                   stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(1)
        started.send_signal(signal.SIGTERM)
        self.assertIn(started.wait(timeout=20), (3, 130))


if __name__ == "__main__":
    unittest.main()
