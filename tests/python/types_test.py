"""The package's annotations are whole and true, and the stubs of the extension modules have what these have."""

import ast
import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import tempfile
import typing
import unittest

import support

import millrace
from millrace import _lines, _millrace, fleet, layers, optimizer

FOLDER = os.path.join(support.ROOT, "python", "millrace")
MODULES = sorted(os.path.relpath(os.path.join(place, file), FOLDER)[:-3].replace(os.sep, ".")
                 for place, _, files in os.walk(FOLDER) for file in files if file.endswith(".py"))


def source(module):
    return ast.parse(support.read(os.path.join(FOLDER, module.replace(".", os.sep) + ".py")))


def load(module):
    return importlib.import_module(("millrace." + module).removesuffix(".__init__"))


def functions(owner, file):
    """(name, function) of what a module, or a class of it, defines in its file; what is hidden from type checkers is left out."""
    for name, value in vars(owner).items():
        value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if inspect.isfunction(value) and value.__code__.co_filename == file and name not in ("__getattr__", "__setattr__"):
            yield "%s.%s" % (owner.__name__, name), inspect.unwrap(value)
        elif inspect.isclass(value) and value.__module__ == owner.__name__:
            typing.get_type_hints(value)
            yield from functions(value, file)


def seen_by_checkers(tree):
    """What a module imports and defines for type checkers alone."""
    names = {}
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), "types", "exec"), names)
    return names


class AnnotationsTest(unittest.TestCase):
    def test_every_function_has_annotations_that_resolve(self):
        count = 0
        for module in map(load, MODULES):
            # Of what typing would slow down.
            extra = seen_by_checkers(source("data_generator")) if module.__name__ == "millrace.data_generator" else {}
            for name, function in functions(module, module.__file__):
                hints = typing.get_type_hints(function, localns=extra)
                parameters = [one for one in inspect.signature(function).parameters if one not in ("self", "cls")]
                self.assertEqual([one for one in [*parameters, "return"] if one not in hints], [], name)
                count += 1
        self.assertGreater(count, 800)

    def test_an_attribute_that_begins_empty_says_its_type(self):
        for module in MODULES:
            for node in ast.walk(source(module)):
                if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                    empty = [one.targets[0].attr for one in node.body if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]).startswith("self.")
                             and ast.unparse(one.value) in ("None", "[]", "{}", "set()")]
                    self.assertEqual(empty, [], module)

    def test_every_public_name_is_documented(self):
        for module in map(load, MODULES):
            for name in getattr(module, "__all__", []):
                self.assertTrue(getattr(module, name).__doc__, "%s.%s" % (module.__name__, name))

    def test_every_layer_says_its_shapes(self):
        docs = {name: getattr(layers, name).__doc__ for name in layers.__all__ if inspect.isfunction(getattr(layers, name))}
        self.assertGreater(len(docs), 60)
        self.assertEqual([name for name, text in docs.items() if "[" not in text and "shape" not in text], [])

    def test_modules_import_nothing_that_need_not_be_there(self):
        # A type checker reads them, and complains of what it does not find.
        for module in MODULES:
            for node in ast.walk(source(module)):
                absolute = isinstance(node, ast.ImportFrom) and node.level == 0
                names = [node.module] if absolute else [one.name for one in node.names] if isinstance(node, ast.Import) else []
                for name in names:
                    self.assertIn(name.split(".")[0], {*sys.stdlib_module_names, "numpy"}, module)

    def test_type_checkers_see_what_the_package_has(self):
        seen = {}
        for node in source("__init__").body:
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                seen = {one.asname: "." + (line.module or "") for line in node.body for one in line.names}
        self.assertEqual(seen, {**millrace._MODULES, **dict.fromkeys(millrace._SUBMODULES, ".")})
        for name in millrace.__all__:
            self.assertIsNotNone(getattr(millrace, name), name)
        with self.assertRaisesRegex(AttributeError, "no attribute 'Jab'"):
            millrace.Jab

    def test_type_checkers_see_what_the_module_fleet_has(self):
        for name, value in vars(fleet.Fleet).items():
            if isinstance(value, property):
                self.assertIn(name, {*fleet.__annotations__, *vars(fleet)})
            elif inspect.isfunction(value) and not name.startswith("_"):
                self.assertEqual(vars(fleet)[name], getattr(fleet.fleet, name))

    def test_what_is_made_by_its_name_has_that_name(self):
        self.assertEqual([name for name, value in vars(layers).items() if inspect.isfunction(value) and not name.startswith("_")
                          and name not in (value.__name__, "expand_dims", "sum")], [])
        rules = {value.__name__ for value in vars(optimizer).values() if inspect.isclass(value) and issubclass(value, optimizer.Optimizer)}
        rules.remove("Optimizer")
        self.assertGreater(len(rules), 10)
        self.assertLessEqual(rules | {rule + "Optimizer" for rule in rules}, set(optimizer.__all__))
        for rule in rules:
            self.assertIs(getattr(optimizer, rule + "Optimizer"), getattr(optimizer, rule))


def members(nodes):
    """What the statements of a stub declare, by name: a function as its parameters and whether it returns something."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            args = node.args
            named = ["*" for _ in args.posonlyargs] + [one.arg for one in args.args]
            is_property = "property" in map(ast.unparse, node.decorator_list)
            found[node.name] = "property" if is_property else (named, ast.unparse(node.returns) != "None")
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found[node.name] = members(node.body)
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = "value"
    return found


def bound(owner):
    """The same of an extension module, by what pybind11 writes into docstrings: parameters without names are arg0, arg1 and so on."""
    found = {}
    for name, value in vars(owner).items():
        value = getattr(value, "__func__", value)
        line = (getattr(value, "__doc__", None) or "").split("\n")[0]
        if isinstance(value, property):
            found[name] = "property"
        elif inspect.isclass(value):
            found[name] = bound(value)
        elif line.startswith(name + "("):
            # Types have commas and colons within brackets alone.
            flat = re.sub(r"\[.*?\]+", "", line)
            given = re.findall(r"(\w+)(?:: [^,()]*)?[,)]", flat[:flat.index(")") + 1])
            named = ["*" if re.fullmatch(r"arg\d+", one) else one for one in given]
            if named[:1] == ["self"] and "*" in named:
                named[0] = "*"  # "/" stands behind it
            found[name] = named, not line.endswith("-> None")
        elif name == "__version__":
            found[name] = "value"
    return found


class StubsTest(unittest.TestCase):
    def test_the_stub_of_the_extension_module_has_what_that_has(self):
        stub = members(ast.parse(support.read(os.path.join(FOLDER, "_millrace.pyi"))).body)
        module = {name: value for name, value in bound(_millrace).items()}
        self.assertGreater(len(module), 20)
        self.assertEqual(sorted(stub), sorted(module))
        for name, declared in stub.items():
            self.assertEqual(declared, module[name], name)

    def test_the_stub_of_lines_has_what_that_has(self):
        stub = members(ast.parse(support.read(os.path.join(FOLDER, "_lines.pyi"))).body)
        self.assertEqual({name: len(parameters) for name, (parameters, _) in stub.items()}, {
            name: value.__doc__.split(")")[0].count(",") + 1 for name, value in vars(_lines).items() if inspect.isbuiltin(value)})

    def test_no_other_module_has_a_stub(self):
        self.assertEqual(sorted(file for _, _, files in os.walk(FOLDER) for file in files if file.endswith(".pyi")),
                         ["_lines.pyi", "_millrace.pyi"])


SCRIPT = """\
import numpy as np
import millrace
from millrace import fleet, io, layers
x = layers.data("x", [4], dtype=np.float32)
part = (x[0] < 3.0) * x[0:2] * (x == 1)
layers.less_than(layers.cast(layers.relu(part), np.dtype("int64")), 3.0)
chosen = layers.cond(layers.less_than(x, 1), lambda: x, lambda: part) + 1
feed = {x: np.zeros((1, 4)), "ids": millrace.create_lod_tensor([1, 2], [[2]]), "more": [[1], [2, 3]]}
millrace.Executor().run(feed=feed, fetch_list=[part])
io.PyReader([x]).decorate_batch_generator(lambda: iter([]))
millrace.DatasetFactory().create_dataset("InMemoryDataset").load_into_memory()
fleet.init().util.barrier()
millrace.Classifier(layers=[4]).fit({"a": [1, 2]}, [0, 1]).classes_.tolist()
"""
MISTAKES = ("millrace.Jab", "layers.rellu(x)", "x.shapes", "millrace.QueueDataset().set_threads(2)", "fleet.inits()",
            'millrace.Job(7)', "layers.fc(x, size=[2.5])", "fleet.DistributedStrategy().a_sink = True")


class CheckedTest(unittest.TestCase):
    """By mypy, in a Python that has it."""

    def setUp(self):
        if importlib.util.find_spec("mypy") is None:
            self.skipTest("mypy is not here")

    def check(self, folder, *what):
        """Complaints, without notes."""
        support.write(os.path.join(folder, "mypy.ini"), "[mypy]\nstrict = True\nwarn_return_any = False\n")
        done = subprocess.run([sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", *what], capture_output=True, text=True,
                              cwd=folder, env=dict(os.environ, MYPYPATH=os.path.dirname(FOLDER)), check=False)
        self.assertEqual(done.stderr, "")
        return [line for line in done.stdout.splitlines() if ": note:" not in line]

    def test_the_package_and_a_script(self):
        with tempfile.TemporaryDirectory() as folder:
            support.write(os.path.join(folder, "script.py"), SCRIPT)
            self.assertEqual(self.check(folder, "-p", "millrace", "-p", "script"), [])
            # One mistake a line, each of which is found.
            support.write(os.path.join(folder, "mistakes.py"), SCRIPT + "\n".join(MISTAKES) + "\n")
            first = SCRIPT.count("\n") + 1
            self.assertEqual({int(line.split(":")[1]) for line in self.check(folder, "mistakes.py")},
                             set(range(first, first + len(MISTAKES))))


if __name__ == "__main__":
    unittest.main()
