#!/usr/bin/env python3
"""bench/growth/growth.py: the exponent that it fits, and what it takes for a curve beyond its bound."""

import importlib.util
import os
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SPEC = importlib.util.spec_from_file_location("growth", os.path.join(ROOT, "bench", "growth", "growth.py"))
growth = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(growth)


class Growth(unittest.TestCase):
    def test_fits_powers_exactly(self):
        for exponent in (0, 0.5, 1, 1.7, 2):
            a, b = growth.fit([(size, 3e-5 * size**exponent) for size in (1000, 10000, 20000, 100000)])
            self.assertAlmostEqual(b, exponent, places=9)
            self.assertAlmostEqual(a / 3e-5, 1, places=9)

    def test_weighs_all_sizes(self):
        # Twice the cost at the middle of three sizes, equally far apart, moves the line and does not turn it.
        self.assertAlmostEqual(growth.fit([(10, 10), (100, 200), (1000, 1000)])[1], 1, places=9)
        self.assertGreater(growth.fit([(10, 10), (100, 100), (1000, 2000)])[1], 1.1)

    def test_one_size_has_no_exponent(self):
        with self.assertRaises(ValueError):
            growth.fit([(10, 1), (10, 2)])

    def test_marks_what_is_beyond_either_bound(self):
        curve = growth.Curve(None, (), {"s": 1.05}, {"s": 2})

        def within(costs):
            return growth.judge(curve, [(size, {"s": cost}) for size, cost in costs])["s"][2]
        self.assertTrue(within([(10, 10), (100, 100)]))
        self.assertFalse(within([(10, 1), (100, 100)]))   # an exponent of 2
        self.assertFalse(within([(10, 30), (100, 300)]))  # linear, but 3 for each

    def test_slots_beyond_one_range(self):
        with tempfile.TemporaryDirectory() as folder:
            growth.slot_job(50001, folder)
            with open(folder + "/job.prototxt", encoding="utf-8") as file:
                text = file.read()
            self.assertIn('"S0_0..S0_49999", "S1_0..S1_0"', text)
            with open(folder + "/data.txt", encoding="utf-8") as file:
                self.assertEqual(len(file.readline().split()), 2 * 50002)


if __name__ == "__main__":
    unittest.main()
