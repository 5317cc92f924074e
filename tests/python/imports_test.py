"""What importing one module of the package brings."""

import subprocess
import sys
import unittest

import support  # noqa: F401


class ImportsTest(unittest.TestCase):
    def test_formulas_are_there_without_layers_in_a_new_process(self):
        for module in ("executor", "reader"):
            code = "from millrace import %s, framework; print(sorted(framework._formulas))" % module
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            self.assertIn("'add'", done.stdout, module)


if __name__ == "__main__":
    unittest.main()
