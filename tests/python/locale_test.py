"""Numbers of programs, files and messages are the same in a locale in which 0.5 is "0,5"."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import support

SCRIPT = """
import locale, sys
import numpy as np
locale.setlocale(locale.LC_ALL, "")
assert locale.localeconv()["decimal_point"] == ","
import millrace
from millrace import layers
main = millrace.Program()
with millrace.program_guard(main, millrace.Program()):
    x = layers.op("fill_constant", {}, {"shape": [1], "dtype": 5, "str_value": "0.25"})
print(millrace.Executor().run(main, fetch_list=[x])[0])
rng = np.random.default_rng(1)
a = rng.random(400)
model = millrace.Classifier(epochs=2, verbose=True).fit({"a": a, "b": ["u%d" % (i % 5) for i in range(400)]}, a > 0.5,
                                                       eval_set=({"a": a, "b": ["u1"] * 400}, a > 0.5))
"""


class LocaleTest(unittest.TestCase):
    def test_a_decimal_comma_changes_nothing(self):
        localedef = shutil.which("localedef")
        if localedef is None:
            self.skipTest("localedef is not installed")
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([localedef, "-i", "de_DE", "-f", "UTF-8", os.path.join(folder, "de_DE.UTF-8")],
                                  capture_output=True, text=True, check=False)
            if not os.path.isdir(os.path.join(folder, "de_DE.UTF-8")):
                self.skipTest("localedef: " + made.stderr)
            said = []
            for name in ("C.UTF-8", "de_DE.UTF-8"):
                script = SCRIPT if name.startswith("de") else SCRIPT.replace('== ","', '== "."')
                done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False,
                                      env=dict(os.environ, LOCPATH=folder, LC_ALL=name))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.stdout.startswith("[0.25]"), done.stdout)
                # Times differ.
                said.append([line.split(" (")[0].split(" logloss")[0] for line in done.stderr.splitlines() if line.startswith("evaluation")])
            self.assertTrue(said[0] and "auc 1.0" in said[0][0], said)
            self.assertEqual(said[0], said[1])


if __name__ == "__main__":
    unittest.main()
