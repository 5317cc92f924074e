#!/usr/bin/env python3
"""Turns lines of Census-Income (KDD, UCI) into MultiSlot text with two labels and a weight: stdin to stdout, nothing else.

It is the pipe_command of two_tasks.prototxt. Slots, in its order: income above 50,000, married at some time, the survey's weight of the
person in thousands, the ids of every column but marital status, of the bands of the numbers, and of CROSSES, and the
scaled numbers. An id is the CRC-32 of "slot=value".
"""

import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from reader import COLUMNS, CROSSES, FIELDS, LOGGED, NUMBERS, band, sparse  # noqa: E402

NAMES = [name for name in COLUMNS if name != "marital_status"]
BANDS = [name + "_band" for name in LOGGED]
# Amounts as they are: some, such as a gain of 15,024, mark a bracket of incomes.
AMOUNTS = list(LOGGED)


def multislot(line):
    """One line of MultiSlot text, or None for lines that are no records."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != len(FIELDS):
        return None
    row = dict(zip(FIELDS, cells))
    row["age_band"] = int(row["age"]) // 5
    for name in LOGGED:
        row[name + "_band"] = band(float(row[name]))
    out = ["1 1" if row["income"].startswith("50000+") else "1 0"]
    out.append("1 0" if row["marital_status"] == "Never married" else "1 1")
    out.append("1 %.5f" % (float(row["weight"]) / 1000))
    out += ["1 " + sparse(name, row[name]) for name in NAMES + BANDS + AMOUNTS]
    out.append("%d" % len(CROSSES))
    out += [sparse("*".join(names), "*".join(str(row[n]) for n in names)) for names in CROSSES]
    out.append("%d" % len(NUMBERS))
    for name in NUMBERS:
        value = float(row[name])
        out.append("%.5f" % (math.log1p(value) / 10 if name in LOGGED else value / 50))
    return " ".join(out)


def main():
    for line in sys.stdin:
        text = multislot(line)
        if text is not None:
            print(text)


if __name__ == "__main__":
    main()
