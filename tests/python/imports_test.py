"""The package's modules import each other without a circle, within functions as well."""

import ast
import graphlib
import os
import subprocess
import sys
import unittest

import support

PACKAGE = os.path.join(support.ROOT, "python", "millrace")


def imported(source, modules, folder=""):
    """Which of `modules` a module of a folder imports, wherever the import stands; of `from . import a, b` those are a and b."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            prefix = folder if node.level == 1 else ""
            found |= {prefix + (node.module + "." if node.module else "") + alias.name for alias in node.names}
            found.add(prefix + (node.module or ""))
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {(node.module + "." + alias.name).removeprefix("millrace.") for alias in node.names}
            found.add(node.module.removeprefix("millrace."))
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("millrace.") for alias in node.names}
    return found & set(modules)


def circle(sources):
    """The modules of a circle, or none."""
    try:
        graphlib.TopologicalSorter({name: imported(source, sources, name.rpartition(".")[0] + "." if "." in name else "")
                                    for name, source in sources.items()}).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


class ImportsTest(unittest.TestCase):
    def test_there_is_no_circle(self):
        sources = {}
        for place, _, files in os.walk(PACKAGE):
            for file in files:
                if file.endswith(".py") and file != "__init__.py":
                    path = os.path.join(place, file)
                    sources[os.path.relpath(path, PACKAGE)[:-3].replace(os.sep, ".")] = support.read(path)
        self.assertGreater(len(sources), 20)
        self.assertIn("fleet.base", sources)
        self.assertEqual(circle(sources), [])

    def test_a_circle_is_found_within_a_function_too(self):
        low = "def f():\n    from . import high\n"
        for high in ("from .low import f", "from . import low", "import millrace.low", "from millrace import low"):
            self.assertEqual(set(circle({"high": high, "low": low})), {"high", "low"}, high)
            self.assertEqual(circle({"high": high, "low": "from . import _millrace"}), [], high)
        part = {"part.a": "from . import b", "part.b": "from .. import low", "low": "import os"}
        self.assertEqual(circle(part), [])
        self.assertEqual(set(circle({**part, "part.b": "from .a import x"})), {"part.a", "part.b"})
        for low in ("from .part import a", "from .part.a import x", "from millrace.part import a"):
            self.assertEqual(set(circle({**part, "low": low})), {"part.a", "part.b", "low"}, low)

    def test_formulas_are_there_without_layers_in_a_new_process(self):
        for module in ("executor", "reader"):
            code = "from millrace import %s, framework; print(sorted(framework._formulas))" % module
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            self.assertIn("'add'", done.stdout, module)


if __name__ == "__main__":
    unittest.main()
