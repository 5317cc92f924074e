"""Data generators: the lines, the rules, and the same text with and without the C part."""

import contextlib
import io
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import support

from millrace import data_generator
from millrace.data_generator import DataGenerator, MultiSlotDataGenerator, MultiSlotStringDataGenerator


def generator(samples, base=MultiSlotDataGenerator):
    class Generator(base):
        def generate_sample(self, line):
            return lambda: iter(samples)
    return Generator()


def written(made):
    """What a generator writes from memory."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        made.run_from_memory()
    return out.getvalue()


class LinesTest(unittest.TestCase):
    """Once with the C part, once without (PlainLinesTest)."""

    def test_numbers(self):
        self.assertEqual(written(generator([[("words", [1, 2, 3, 4]), ("label", [0])]])), "4 1 2 3 4 1 0\n")
        self.assertEqual(written(generator([(("a", [-3]), ["b", [2 ** 63, 2 ** 64]])])), "1 -3 2 9223372036854775808 18446744073709551616\n")
        self.assertEqual(written(generator([zip("ab", ([1], [2])), None])), "1 1 1 2\n")

    def test_floats_are_written_as_python_does(self):
        floats = [0.1, 1e-07, 1e22, 1e16, 1e15, 0.0001, 0.00001, 100.0, -0.0, math.inf, -math.inf, math.nan, 5e-324]
        draw = random.Random(3)
        floats += [struct.unpack("d", struct.pack("Q", draw.getrandbits(64)))[0] for _ in range(2000)]
        floats += [round(draw.gauss(0, 100), draw.randrange(6)) for _ in range(2000)]
        text = written(generator([[("x", [1.5])], [("x", floats)]]))
        self.assertEqual(text, "1 1.5\n%d %s\n" % (len(floats), " ".join(map(repr, floats))))

    def test_a_slot_becomes_float_for_ever(self):
        made = generator([[("a", [1]), ("b", [1])], [("a", [2]), ("b", [0.5])], [("a", [3]), ("b", [7])]])
        self.assertEqual(written(made), "1 1 1 1\n1 2 1 0.5\n1 3 1 7\n")
        self.assertEqual(made._proto_info, [("a", "uint64"), ("b", "float")])

    def test_what_breaks_the_rules_is_named(self):
        first = [("a", [1]), ("b", [1])]
        for sample, message in [
                ({"a": [1]}, "a sample is a list or tuple"), ("text", "a sample is a list or tuple"),
                ([("a", [1])], "a sample has 1 fields, but the first one has 2"),
                ([("a", [1]), ("c", [1])], 'field 1 is "c", but "b" in the first sample'),
                ([("a", [1]), (2, [1])], "the name of field 1 is a str, not 2"),
                ([("a", [1]), ("b", (1,))], 'field "b": its values are a list, not tuple'),
                ([("a", []), ("b", [1])], 'field "a" has no values'),
                ([("a", ["1"]), ("b", [1])], "field \"a\": values are int or float, not str '1'"),
                ([("a", [1]), ("b", [1], 3)], r"field 1 is \(name, \[value, ...\]\), not \('b', \[1\], 3\)"),
                (["a", ("b", [1])], r"field 0 is \(name, \[value, ...\]\), not 'a'"),
                ([("a", [True]), ("b", [1])], 'field "a": values are int or float, not bool True')]:
            made = generator([first, sample])
            out = io.StringIO()
            with contextlib.redirect_stdout(out), self.assertRaisesRegex(ValueError, message):
                made.run_from_memory()

    def test_strings(self):
        made = generator([[("words", ["1926", "08", "17"]), ("label", ("1",))], [("x", [])], (("\u00e9", ["\u00e9"]),)],
                         MultiSlotStringDataGenerator)
        self.assertEqual(written(made), "3 1926 08 17 1 1\n0\n1 \u00e9\n")
        with self.assertRaisesRegex(ValueError, "a sample is a list or tuple"):
            written(generator([{"a": ["1"]}], MultiSlotStringDataGenerator))
        for values in ([1], None):
            with self.assertRaisesRegex(ValueError, 'field "a": its values are a list of str, not'):
                written(generator([[("a", values)]], MultiSlotStringDataGenerator))

    def test_what_generate_sample_returns_is_a_function(self):
        class Called(MultiSlotDataGenerator):
            def generate_sample(self, line):
                yield [("a", [1])]

        class Nothing(MultiSlotDataGenerator):
            def generate_sample(self, line):
                return None
        with self.assertRaisesRegex(TypeError, "returns a function that yields samples, not generator: return it without"):
            written(Called())
        with self.assertRaisesRegex(TypeError, "returns a function that yields samples, not NoneType"):
            written(Nothing())

    def test_generate_batch_gets_so_many_samples(self):
        sizes = []

        class Padded(MultiSlotDataGenerator):
            def generate_sample(self, line):
                return lambda: ([("ids", list(range(1, n + 1)))] for n in (1, 3, 2, 2, 1))

            def generate_batch(self, samples):
                sizes.append(len(samples))
                longest = max(len(sample[0][1]) for sample in samples)
                return lambda: ([(name, ids + [0] * (longest - len(ids)))] for [(name, ids)] in samples)
        made = Padded()
        made.set_batch(2)
        self.assertEqual(written(made), "3 1 0 0\n3 1 2 3\n2 1 2\n2 1 2\n1 1\n")
        self.assertEqual(sizes, [2, 2, 1])

    def test_a_line_format_of_ones_own(self):
        class Own(DataGenerator):
            def generate_sample(self, line):
                return lambda: iter([1, 2])

            def _gen_str(self, line):
                return "sample %d\n" % line
        self.assertEqual(written(Own()), "sample 1\nsample 2\n")
        with self.assertRaises(NotImplementedError):
            MultiSlotDataGenerator().run_from_memory()

    def test_samples_before_a_failure_are_written(self):
        def samples():
            yield [("a", [1])]
            raise KeyError("mine")

        class Failing(MultiSlotDataGenerator):
            def generate_sample(self, line):
                return samples
        out = io.StringIO()
        with contextlib.redirect_stdout(out), self.assertRaises(KeyError):
            Failing().run_from_memory()
        self.assertEqual(out.getvalue(), "1 1\n")


class PlainLinesTest(LinesTest):
    """A checkout that was not built writes the same."""

    def setUp(self):
        for name in ("_number_lines", "_string_lines"):
            patch = mock.patch.object(data_generator, name, None)
            patch.start()
            self.addCleanup(patch.stop)


SCRIPT = """
import sys
%s
class Reader(Base):
    def generate_sample(self, line):
        def samples():
            label, x, ids = line.split(";")
            yield [("label", [int(label)]), ("x", [float(v) for v in x.split()]), ("ids", [int(v) for v in ids.split()])]
        return samples
Reader().run_from_stdin()
"""


class ScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        draw = random.Random(4)
        self.raw = "".join("%d;%r %r;%s\n" % (draw.randrange(2), draw.random(), draw.gauss(0, 1e6), " ".join(
            str(draw.getrandbits(draw.randrange(1, 62))) for _ in range(draw.randrange(1, 5)))) for _ in range(500))

    def run_script(self, python, imports):
        script = support.write(os.path.join(self.folder, "reader.py"), SCRIPT % imports)
        done = subprocess.run([python, script], input=self.raw, capture_output=True, text=True, check=True)
        return done.stdout

    def test_a_pipe_command_that_loads_nothing_else(self):
        text = self.run_script(sys.executable, "from millrace.data_generator import MultiSlotDataGenerator as Base")
        wanted = "".join("1 %s 2 %s %d %s\n" % (label, x, len(ids.split()), ids)
                         for label, x, ids in (line.split(";") for line in self.raw.splitlines()))
        self.assertEqual(text, wanted)
        loaded = subprocess.run([sys.executable, "-c", "import millrace.data_generator, sys; print(*sys.modules)"],
                                capture_output=True, text=True, check=True).stdout.split()
        self.assertNotIn("numpy", loaded)
        self.assertNotIn("typing", loaded)
        self.assertNotIn("millrace._millrace", loaded)

    def test_paddle_writes_the_same_bytes(self):
        python = os.environ.get("PADDLE_PYTHON", "")
        if not python:
            self.skipTest("PADDLE_PYTHON names no Python that has paddle")
        wanted = self.run_script(python, "from paddle.distributed.fleet import MultiSlotDataGenerator as Base")
        self.assertEqual(self.run_script(
            sys.executable, "from millrace.data_generator import MultiSlotDataGenerator as Base"), wanted)


if __name__ == "__main__":
    unittest.main()
