#!/usr/bin/env python3
"""scripts/judge_tests.py on runs of ctest as they are written: what is green, what is tried again, what is red."""

import os
import subprocess
import sys
import tempfile
import unittest
from xml.sax.saxutils import escape

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scripts", "judge_tests.py")
LEAK = "==12==ERROR: LeakSanitizer: detected memory leaks"
RACE = "WARNING: ThreadSanitizer: data race (pid=12)"
OVERFLOW = "a.cc:3:5: runtime error: signed integer overflow"


def report(cases):
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuite>"]
    for name, status, output in cases:
        inner = f"<system-out>{escape(output)}</system-out>"
        if status == "fail":
            inner = '<failure message=""/>' + inner
        if status == "notrun":
            inner = '<skipped message="SKIP_RETURN_CODE=77"/>' + inner
        lines.append(f'<testcase name="{name}" classname="{name}" time="1" status="{status}">{inner}</testcase>')
    return "\n".join(lines + ["</testsuite>"])


class JudgeTests(unittest.TestCase):
    def judge(self, *runs):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for i, run in enumerate(runs):
                paths.append(os.path.join(folder, f"{i}.xml"))
                with open(paths[-1], "w", encoding="utf-8") as file:
                    file.write(report(run))
            done = subprocess.run([sys.executable, SCRIPT, *paths], capture_output=True, text=True, check=False)
            self.assertEqual(done.stderr, "")
            return done.returncode, done.stdout

    def test_all_passed(self):
        self.assertEqual(self.judge([("a", "run", "")]), (0, "nothing skipped\n1 passed, 0 failed, 0 skipped\n"))

    def test_no_test_at_all_is_red(self):
        self.assertEqual(self.judge([]), (1, "no test ran\n"))

    def test_what_is_skipped_is_said_with_its_reason_and_way(self):
        code, said = self.judge([
            ("a", "notrun", "[ RUN      ] A.b\n/x/a.cc:3: Skipped\nno shared data: set MILLRACE_SHARED\n\n[  SKIPPED ] A.b\n"),
            ("b", "notrun", "no Paddle here\n"), ("c", "notrun", "no Paddle here\n"), ("d", "run", "")])
        self.assertEqual(code, 0)
        self.assertEqual(said.splitlines()[0],
                         "skipped: 2 (no Paddle here; run: scripts/test --all), "
                         "1 (no shared data: set MILLRACE_SHARED; run: MILLRACE_SHARED=FOLDER scripts/test)")

    def test_what_another_build_would_run_is_said_with_its_command(self):
        _, said = self.judge([("a", "notrun", "this is built with JPEG\n"), ("b", "notrun", "set MILLRACE_DUMP_DIR to make goldens\n")])
        self.assertIn("1 (this is built with JPEG; run: cmake --preset release -DMILLRACE_JPEG=OFF && scripts/test -k ", said)
        self.assertIn("run: MILLRACE_DUMP_DIR=FOLDER scripts/test -k LossCurveDumpTest)", said)

    def test_a_failure_is_to_be_tried_again(self):
        code, said = self.judge([("a", "fail", "expected 3, got 4\n"), ("b", "run", "")])
        self.assertEqual(code, 1)
        self.assertIn("--- a\nexpected 3, got 4\n", said)
        self.assertIn("1 passed, 1 failed, 0 skipped", said)

    def test_a_finding_of_a_sanitizer_is_red_at_once(self):
        for finding in (LEAK, RACE, OVERFLOW):
            code, said = self.judge([("a", "fail", "fine\n" + finding + "\n"), ("b", "fail", "slow\n")])
            self.assertEqual(code, 2, finding)
            self.assertIn("a sanitizer found something in: a\n", said)

    def test_a_finding_in_a_child_of_a_test_that_passed_is_red_at_once(self):
        code, said = self.judge([("a", "run", "fine\n" + LEAK + "\n"), ("b", "run", "")])
        self.assertEqual(code, 2)
        self.assertIn("--- a\nfine\n" + LEAK, said)
        self.assertIn("a sanitizer found something in: a\n", said)

    def test_one_and_two_unsteady_tests_are_listed_and_green_three_are_red(self):
        for count, code in ((1, 0), (2, 0), (3, 1)):
            names = [f"t{i}" for i in range(count)]
            first = [(name, "fail", "slow\n") for name in names]
            second = [(name, "run", "") for name in names]
            result, said = self.judge(first, second)
            self.assertEqual(result, code, said)
            self.assertIn("unsteady (failed among others, passed alone): " + ", ".join(names), said)

    def test_a_second_failure_is_red(self):
        code, said = self.judge([("a", "fail", ""), ("b", "fail", "")], [("a", "run", ""), ("b", "fail", "still 4\n")])
        self.assertEqual(code, 1)
        self.assertIn("still 4", said)
        self.assertIn("failed twice: b\n", said)

    def test_a_failure_that_was_not_run_again_is_red(self):
        self.assertEqual(self.judge([("a", "fail", "")], [("b", "run", "")])[0], 1)

    def test_a_finding_in_the_second_try_is_red(self):
        self.assertEqual(self.judge([("a", "fail", "")], [("a", "run", RACE)])[0], 1)


if __name__ == "__main__":
    unittest.main()
