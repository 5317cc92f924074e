"""The readers of examples/ on lines of their own: slots, ids that repeat, lines that are no records."""

import importlib.util
import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ADULT = ("39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
         "United-States, %s\n")
CENSUS = ("73, Not in universe, 0, 0, High school graduate, 0, Not in universe, Widowed, Not in universe or children, "
          "Not in universe, White, All other, Female, Not in universe, Not in universe, Not in labor force, 0, 0, 0, "
          "Nonfiler, Not in universe, Not in universe, Other Rel 18+ ever marr not in subfamily, Other relative of "
          "householder, 1700.09, ?, ?, ?, Not in universe under 1 year old, ?, 0, Not in universe, United-States, "
          "United-States, United-States, Native- Born in the United States, 0, Not in universe, 2, 0, 95, %s\n")


def reader(example):
    path = os.path.join(ROOT, "examples", example, "reader.py")
    spec = importlib.util.spec_from_file_location(example, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def slots(line):
    """The lists of a MultiSlot line."""
    tokens = line.split()
    lists = []
    while tokens:
        count = int(tokens[0])
        lists.append(tokens[1:1 + count])
        tokens = tokens[1 + count:]
    return lists


def slots_of_job(example):
    with open(os.path.join(ROOT, "examples", example, "job.prototxt"), encoding="utf-8") as file:
        return re.findall(r'slots { name: "([^"]+)"', file.read())


class ReadersTest(unittest.TestCase):
    def test_a_line_has_the_slots_of_the_job(self):
        for example, line in (("adult", ADULT % "<=50K"), ("census", CENSUS % "- 50000.")):
            lists = slots(reader(example).multislot(line))
            self.assertEqual(len(slots_of_job(example)), len(lists), example)
            self.assertEqual(["0"], lists[0])
            self.assertEqual(10, len(lists[-2]))
            self.assertTrue(all(len(one) == 1 for one in lists[1:-2]))

    def test_labels_as_published(self):
        adult, census = reader("adult"), reader("census")
        self.assertTrue(adult.multislot(ADULT % ">50K").startswith("1 1 "))
        self.assertTrue(adult.multislot(ADULT % ">50K.").startswith("1 1 "))
        self.assertTrue(adult.multislot(ADULT % "<=50K.").startswith("1 0 "))
        self.assertTrue(census.multislot(CENSUS % "50000+.").startswith("1 1 "))

    def test_ids_depend_on_slot_and_value_alone(self):
        adult = reader("adult")
        one = slots(adult.multislot(ADULT % "<=50K"))
        two = slots(adult.multislot((ADULT % ">50K").replace("77516", "1")))
        self.assertEqual(one[1:], two[1:], "the label and the sampling weight are no features")
        other = slots(adult.multislot((ADULT % "<=50K").replace("Bachelors", "Masters")))
        self.assertNotEqual(one[2], other[2])
        self.assertEqual(one[3], other[3])

    def test_numbers_are_standardised(self):
        lists = slots(reader("adult").multislot(ADULT % "<=50K"))
        self.assertEqual(["0.03067", "1.13472", "2.83138", "-0.22107", "-0.03543"], lists[-1])

    def test_other_lines_are_no_records(self):
        for example in ("adult", "census"):
            for line in ("\n", "|1x3 Cross validator\n", "a, b\n"):
                self.assertIsNone(reader(example).multislot(line))


if __name__ == "__main__":
    unittest.main()
