"""examples/python_feed learns the law of its data."""

import importlib.util
import os
import unittest

import support

import millrace


class ExampleTest(unittest.TestCase):
    def test_python_feed_learns(self):
        path = os.path.join(support.ROOT, "examples", "python_feed", "train.py")
        spec = importlib.util.spec_from_file_location("python_feed", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with millrace.program_guard(millrace.Program(), millrace.Program()), millrace.scope_guard(millrace.Scope()):
            accuracy, correlation = module.main(160)
        self.assertGreater(accuracy, 0.75)
        self.assertGreater(correlation, 0.98)


if __name__ == "__main__":
    unittest.main()
