"""What docs/python.md shows runs as it stands there, one block after another, as a reader tries them."""

import os
import re
import tempfile
import unittest

import support

import millrace


def blocks():
    """(the heading above, the source) of every Python block of the page."""
    text = support.read(os.path.join(support.ROOT, "docs", "python.md"))
    found = []
    for part in re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]:
        found += [(part.split("\n", 1)[0], source) for source in re.findall(r"```python\n(.*?)```", part, re.DOTALL)]
    return found


class DocsTest(unittest.TestCase):
    def test_the_blocks_of_the_page_run_as_they_stand_there(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        support.write("reader.py", "import sys\nfor line in sys.stdin:\n    sys.stdout.write(line)\n")
        for part in range(2):
            support.write("part-%d" % part, "".join("1 %d 13 %s 2 %d %d\n" % (i % 2, " ".join(["0.5"] * 13), i % 7, part)
                                                     for i in range(1500)))
        seen = set()
        names = {}
        with millrace.program_guard(millrace.Program(), millrace.Program()), millrace.scope_guard(millrace.Scope()):
            for heading, source in blocks():
                if heading in ("Train and score a model", "Data generators"):
                    continue  # a million rows, and standard input: job_test and data_generator_test have them
                with self.subTest(heading):
                    exec(compile(source, "docs/python.md: " + heading, "exec"), names)  # pylint: disable=exec-used
                    seen.add(heading)
        self.assertEqual(seen, {"Data frames", "Estimators", "Programs", "Layers", "Loops and branches", "Optimizers", "Arrays from Python",
                                "Programs that read a queue"})
        self.assertEqual(names["report"].examples, 3000)
        self.assertEqual(names["scores"].shape, (2,))
        self.assertGreater(names["chances"][0, 1], 0.5)
        self.assertFalse(names["queue"].is_closed())  # reset() opened it again


if __name__ == "__main__":
    unittest.main()
