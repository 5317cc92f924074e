"""Every test that docs/promises.md names is there."""

import glob
import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rows(text):
    """The first and last cells of the tables whose last column is of tests, without their heads: [(promise, tests)]."""
    found, inside = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            inside = False
        elif cells[-1] in ("test", "tests"):
            inside = True
        elif inside and set(cells[0]) != {"-"}:
            found.append((cells[0], cells[-1]))
    return found


def cpp_tests():
    found = set()
    for path in glob.glob(os.path.join(ROOT, "tests", "**", "*.cc"), recursive=True):
        found |= {".".join(match) for match in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", read(path), re.MULTILINE)}
    return found


def ctest_entries():
    found = set()
    for path in glob.glob(os.path.join(ROOT, "tests", "**", "CMakeLists.txt"), recursive=True):
        text = read(path)
        found |= set(re.findall(r"add_test\(NAME ([\w.]+)", text))
        found |= {"campaign." + name for name in re.findall(r"^\s*mr_campaign\((\w+) ", text, re.MULTILINE)}
        found |= {"paddle." + name for name in re.findall(r"^mr_paddle_test\(([\w.]+) ", text, re.MULTILINE)}
        for names in re.findall(r"foreach\(name ([^)]*)\)\s*mr_python_test", text):
            found |= {"python." + name for name in names.split()}
    return found


class PromisesTest(unittest.TestCase):
    def setUp(self):
        self.rows = rows(read(os.path.join(ROOT, "docs", "promises.md")))

    def test_every_promise_names_tests_that_are_there(self):
        there = cpp_tests() | ctest_entries()
        self.assertGreater(len(self.rows), 30)
        for promise, tests in self.rows:
            names = re.findall(r"`([^`]+)`", tests)
            self.assertTrue(names, promise)
            self.assertEqual([], [name for name in names if name not in there], promise)

    def test_a_name_that_is_not_there_is_found(self):
        self.assertNotIn("ExitCode.FollowsTheWind", cpp_tests())
        self.assertIn("ExitCode.FollowsWhoseFaultItIs", cpp_tests())
        self.assertIn("campaign.signals", ctest_entries())
        self.assertIn("python.program", ctest_entries())


if __name__ == "__main__":
    unittest.main()
