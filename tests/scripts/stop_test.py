#!/usr/bin/env python3
"""bench/growth/stop.py: what it takes for a stop that did not hold."""

import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench", "growth"))
import stop  # pylint: disable=wrong-import-position

SAVES = stop.Run(None, saves=True)
SAVING = "stopping: the checkpoint of step 7 is being written, 1 of 2 MB\n"


def outcome(code=130, ended=0.1, silent=0.1, left=(), words=""):
    return stop.Outcome(1.0, False, code, ended, 0.1, silent, list(left), words)


class Stop(unittest.TestCase):
    def test_takes_what_ends_within_a_second(self):
        self.assertEqual(stop.broken(outcome(), SAVES, 0), [])
        self.assertEqual(stop.broken(outcome(code=0), SAVES, 0), [])
        self.assertEqual(stop.broken(outcome(code=3), SAVES, 3), [])

    def test_finds_what_takes_longer_or_is_silent(self):
        self.assertEqual(stop.broken(outcome(ended=2.5, silent=2.5), SAVES, 0), ["ended after 2.50 s"])
        self.assertEqual(stop.broken(outcome(ended=9, silent=0.6, words=SAVING), SAVES, 0), [])
        self.assertEqual(stop.broken(outcome(ended=9, silent=3, words=SAVING), SAVES, 0), ["silent for 3.00 s"])

    def test_finds_other_codes_and_what_is_left(self):
        self.assertEqual(stop.broken(outcome(code=4), SAVES, 0), ["exit code 4"])
        self.assertEqual(stop.broken(outcome(left=["sh is left"]), SAVES, 0), ["sh is left"])
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(folder + "/checkpoints/.writing-step-7")
            os.makedirs(folder + "/checkpoints/step-6")
            self.assertEqual(len(stop.unfinished(folder)), 1)


if __name__ == "__main__":
    unittest.main()
