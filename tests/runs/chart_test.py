"""Charts of curves."""

import math
import unittest

from chart import Line, axis_ticks, curve_chart


def drawn(points, is_evaluation=False):
    return curve_chart([Line("a", "red", is_evaluation, points)])


class ChartTest(unittest.TestCase):
    def test_axes_have_round_numbers(self):
        self.assertEqual(axis_ticks(0, 938, 6), [0, 200, 400, 600, 800])
        self.assertEqual([round(tick, 12) for tick in axis_ticks(0.681, 0.743, 6)], [0.70, 0.72, 0.74])
        self.assertEqual(axis_ticks(-1, 1, 4), [-1, -0.5, 0, 0.5, 1])

    def test_a_line_goes_from_corner_to_corner(self):
        self.assertIn('d="M72.0 266.0L626.0 12.0"', drawn([(0, 0.0), (10, 1.0)]))

    def test_a_value_that_is_not_finite_is_a_gap(self):
        chart = drawn([(0, 0.0), (1, 1.0), (2, math.nan), (3, 1.0), (4, math.inf)])
        self.assertEqual(chart.count("M"), 2)
        self.assertNotIn("nan", chart)
        self.assertNotIn("inf", chart)
        self.assertEqual(drawn([(1, math.nan)]), "")
        self.assertEqual(curve_chart([]), "")

    def test_one_point_and_one_value_have_a_place(self):
        chart = drawn([(5, 0.25)], True)
        self.assertEqual(chart.count("<circle"), 1)
        self.assertNotIn("nan", chart)
        self.assertIn("139.0L626.0 139.0", drawn([(0, 0.0), (9, 0.0)]))

    def test_a_long_curve_keeps_its_peaks(self):
        chart = drawn([(i, 9.0 if i == 54321 else 0.0) for i in range(100000)])
        self.assertLess(chart.count("L"), 2000)
        self.assertIn(" 12.0", chart)  # the top

    def test_large_steps_are_grouped(self):
        self.assertIn(">1&#8239;200&#8239;000<", drawn([(0, 0.0), (1200000, 1.0)]))

    def test_values_at_the_ends_of_doubles_draw(self):
        for low, high in ((-1.7e308, 1.7e308), (5e-324, 5e-324), (0.0, 5e-324)):
            self.assertIn("<path", drawn([(0, low), (1, high)]))


if __name__ == "__main__":
    unittest.main()
