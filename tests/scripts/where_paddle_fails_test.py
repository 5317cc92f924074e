"""Holds tests/cases/where_paddle_fails.txt to its word: every name in it is a test that there is, and every row of the
conformance notes stands in it."""

import os
import re
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIST = os.path.join(TESTS, "cases", "where_paddle_fails.txt")
SHARED = os.environ.get("MILLRACE_SHARED", os.path.join(os.path.dirname(os.path.dirname(TESTS)), "shared"))
NOTES = os.path.join(SHARED, "reference", "paddle_conformance.md")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rows_of_list():
    """(row, names of its tests) in the file's order."""
    rows = []
    for line in read(LIST).splitlines():
        if line.startswith("= "):
            rows.append((line[2:], []))
        elif line and not line.startswith("#"):
            rows[-1][1].append(line)
    return rows


def gtests():
    names = set()
    for folder, _, files in os.walk(TESTS):
        for name in files:
            if name.endswith(".cc"):
                names.update(".".join(m) for m in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", read(os.path.join(folder, name)), re.M))
    return names


def cases(path):
    return re.findall(r"^case (.*)$", read(path), re.M)


class WherePaddleFailsTest(unittest.TestCase):
    def test_every_row_has_tests(self):
        self.assertEqual([], [row for row, names in rows_of_list() if not names])

    def test_every_name_is_a_test(self):
        known, unknown = gtests(), []
        for _, names in rows_of_list():
            for name in names:
                file, _, case = name.partition(": ")
                if file == "not here":
                    continue
                path = os.path.join(TESTS, file if file.endswith(".py") else os.path.join("cases", file))
                if not case:
                    found = name in known
                elif not os.path.exists(path):
                    found = False
                elif file.endswith(".py"):
                    found = re.search(r"def %s\(" % re.escape(case), read(path)) is not None
                else:
                    # A file of tests/cases/config is one case, of its own name.
                    found = case in cases(path) or (case == "*" and file.startswith("config/"))
                if not found:
                    unknown.append(name)
        self.assertEqual([], unknown)

    def test_every_row_of_the_notes_is_here(self):
        if not os.path.exists(NOTES):
            self.skipTest("the conformance notes are not at hand: MILLRACE_SHARED names their folder")
        section = re.search(r"^## 5\..*?(?=^## 6)", read(NOTES), re.M | re.S)
        rows = [line.split(" | ")[0].lstrip("| ") for line in section[0].splitlines()
                if line.startswith("| ") and not line.startswith("| input / action")]
        self.assertEqual(rows, [row for row, _ in rows_of_list()])


if __name__ == "__main__":
    unittest.main()
