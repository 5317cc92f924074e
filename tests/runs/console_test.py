"""What the scripts print, and how they end."""

import os
import subprocess
import sys
import tempfile
import unittest

import console

BIN = os.environ["MILLRACE_BIN"]
SCRIPTS = os.path.join(os.path.dirname(BIN), "lib", "millrace", "runs")


class ConsoleTest(unittest.TestCase):
    def test_escapes_what_a_terminal_would_obey(self):
        self.assertEqual(console.harmless("a\x1b[31m\x7f\x85\ufeff\udcff\ud800 \u00e4\u20ac\n", "\n"),
                         "a\\x1b[31m\\x7f\\xc2\\x85\\xef\\xbb\\xbf\\xff\\xed\\xa0\\x80 \u00e4\u20ac\n")

    def test_shortens_long_lines(self):
        self.assertEqual(console.shortened("x" * 300, 300), "x" * 300)
        self.assertEqual(console.shortened("a" * 200 + "b" * 200, 300), "a" * 200 + " … (400 bytes) … " + "b" * 100)

    def test_writes_a_whole_file_or_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page")
            console.write_file(path, "new")
            self.assertEqual(console.read_file(path), b"new")
            self.assertEqual(os.listdir(folder), ["page"])
            with self.assertRaisesRegex(console.Failure, "is a folder, whose place a new file would take"):
                console.write_file(folder, "new")
            with self.assertRaisesRegex(console.Failure, "cannot write .*: No such file or directory"):
                console.write_file(folder + "/absent/page", "new")


class InterpreterTest(unittest.TestCase):
    """Programs start the scripts, or explain what is missing."""

    def inspect(self, **environment):
        done = subprocess.run([os.path.join(BIN, "inspect"), "runs", "absent"], env={**os.environ, **environment}, capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stderr

    def test_runs_with_this_python(self):
        self.assertEqual(self.inspect(MILLRACE_PYTHON=sys.executable), (3, 'inspect: not found: no folder "absent"\n'))

    def test_without_python(self):
        code, errors = self.inspect(MILLRACE_PYTHON="/nonexistent/python3")
        self.assertEqual(code, 3)
        self.assertRegex(errors, 'need Python 3.9 or later, and "/nonexistent/python3" cannot be started: No such file.*install the package python3')

    def test_with_an_old_python(self):
        code = ("import runpy, sys; sys.version_info = (3, 8, 1); sys.argv = [sys.argv[1], '/x/trainer', sys.argv[2]]; "
                "runpy.run_path(sys.argv[0], run_name='__main__')")
        done = subprocess.run([sys.executable, "-c", code, os.path.join(SCRIPTS, "__main__.py"), "sweep"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, "^trainer: unavailable: .*need Python 3.9 or later .* is Python 3.8; install the package python3")

    def test_user_settings_have_no_effect(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "json.py"), "w", encoding="utf-8") as file:
                file.write("raise SystemExit('imported')\n")
            self.assertEqual(self.inspect(MILLRACE_PYTHON=sys.executable, PYTHONPATH=folder)[0], 3)


if __name__ == "__main__":
    unittest.main()
