"""The type stubs are as the sources are, and have every public name."""

import ast
import importlib
import importlib.util
import inspect
import os
import subprocess
import sys
import tempfile
import unittest

import support

import millrace
from millrace import layers


class StubsTest(unittest.TestCase):
    def test_they_are_made_of_the_sources(self):
        done = subprocess.run([sys.executable, os.path.join(support.ROOT, "scripts", "gen_stubs.py"), "--check"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_every_public_name_is_in_its_stub_and_documented(self):
        folder = os.path.join(support.ROOT, "python", "millrace")
        files = [os.path.relpath(os.path.join(place, file), folder) for place, _, found in os.walk(folder) for file in found]
        self.assertIn(os.path.join("fleet", "base.pyi"), files)
        for file in sorted(files):
            if not file.endswith(".pyi") or file.startswith("_"):
                continue
            module = importlib.import_module("millrace." + file[:-4].replace(os.sep, ".").removesuffix(".__init__"))
            tree = ast.parse(support.read(os.path.join(folder, file)))
            named = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
            named |= {node.targets[0].id for node in tree.body if isinstance(node, ast.Assign)}
            named |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
            named |= {name.asname for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names}
            public = getattr(module, "__all__", [])
            self.assertLessEqual(set(public), named, file)
            self.assertEqual([name for name in public if not getattr(module, name).__doc__], [], file)

    def test_every_layer_says_its_shapes(self):
        docs = {name: getattr(layers, name).__doc__ for name in layers.__all__ if inspect.isfunction(getattr(layers, name))}
        self.assertGreater(len(docs), 60)
        self.assertEqual([name for name, text in docs.items() if "[" not in text and "shape" not in text], [])

    def test_modules_without_a_stub_import_nothing_that_need_not_be_there(self):
        # A type checker reads these themselves, and complains of what it does not find.
        folder = os.path.join(support.ROOT, "python", "millrace")
        for file in sorted(os.listdir(folder)):
            if not file.endswith(".py") or os.path.exists(os.path.join(folder, file + "i")):
                continue
            for node in ast.walk(ast.parse(support.read(os.path.join(folder, file)))):
                absolute = isinstance(node, ast.ImportFrom) and node.level == 0
                names = [node.module] if absolute else [one.name for one in node.names] if isinstance(node, ast.Import) else []
                for name in names:
                    self.assertIn(name.split(".")[0], {*sys.stdlib_module_names, "numpy"}, file)

    def test_a_variable_may_be_cut_by_numbers_and_slices(self):
        self.assertIn("def __getitem__(self, key: Any) -> Variable", support.read(os.path.join(
            support.ROOT, "python", "millrace", "framework.pyi")))

    def test_the_stubs_fit_the_package(self):
        if importlib.util.find_spec("mypy") is None:
            self.skipTest("mypy is not here")
        with tempfile.TemporaryDirectory() as folder:
            # The way to MPI lies beside the modules, and is none.
            support.write(os.path.join(folder, "no_modules"), "millrace.libmillrace_mpi\n")
            done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "millrace", "--concise", "--allowlist", "no_modules",
                                   "--ignore-unused-allowlist"], capture_output=True, text=True, cwd=folder, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_a_script_with_parts_comparisons_and_types_of_numpy_fits_the_stubs(self):
        if importlib.util.find_spec("mypy") is None:
            self.skipTest("mypy is not here")
        with tempfile.TemporaryDirectory() as folder:
            support.write(os.path.join(folder, "script.py"), """\
import numpy as np
import millrace
from millrace import io, layers
x = layers.data("x", [4], dtype=np.float32)
part = (x[0] < 3.0) * x[0:2] * (x == 1)
layers.less_than(layers.cast(part, np.dtype("int64")), 3.0)
millrace.Executor().run(feed={x: np.zeros((1, 4)), "ids": millrace.create_lod_tensor([1, 2], [[2]])}, fetch_list=[part])
io.PyReader([x]).decorate_batch_generator(lambda: iter([]))
""")
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "script.py"], capture_output=True, text=True, cwd=folder,
                                  env=dict(os.environ, MYPYPATH=os.path.dirname(os.path.dirname(millrace.__file__))), check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_package_has_what_it_names(self):
        for name in millrace.__all__:
            self.assertIsNotNone(getattr(millrace, name), name)
        with self.assertRaisesRegex(AttributeError, "no attribute 'Jab'"):
            millrace.Jab


if __name__ == "__main__":
    unittest.main()
