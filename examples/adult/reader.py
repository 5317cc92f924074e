#!/usr/bin/env python3
"""Turns lines of adult.data (census income, UCI) into MultiSlot text: stdin to stdout, nothing else.

It is the job's pipe_command. Slots, in the order of job.prototxt: label, the ids of every column in COLUMNS, the ids
of CROSSES, and five standardised numbers. An id is the CRC-32 of "slot=value", so no dictionary is needed and an
unknown value is a row of its own. fnlwgt is a sampling weight, not a feature.
"""

import math
import sys
import zlib

FIELDS = (
    "age workclass fnlwgt education education_num marital_status occupation relationship race sex "
    "capital_gain capital_loss hours native_country label"
).split()
COLUMNS = (
    "workclass education marital_status occupation relationship race sex native_country age hours capital_gain "
    "capital_loss"
).split()
CROSSES = [
    ("education", "occupation"),
    ("decade", "education", "occupation"),
    ("marital_status", "education"),
    ("relationship", "occupation"),
    ("relationship", "decade"),
    ("decade", "hours_band"),
    ("occupation", "hours_band"),
    ("workclass", "occupation"),
    ("sex", "marital_status", "decade"),
    ("relationship", "education", "decade"),
]
# Mean and deviation over adult.data, the training file; gains and losses after log(1 + x).
NUMBERS = {
    "age": (38.5816, 13.6402),
    "education_num": (10.0807, 2.5727),
    "capital_gain": (0.7346, 2.4547),
    "capital_loss": (0.3503, 1.5846),
    "hours": (40.4375, 12.3472),
}


def number(name, text):
    value = float(text)
    if name.startswith("capital"):
        value = math.log1p(value)
    mean, deviation = NUMBERS[name]
    return "%.5f" % ((value - mean) / deviation)


def sparse(slot, value):
    return "1 %d" % zlib.crc32(("%s=%s" % (slot, value)).encode())


def multislot(line):
    """One line of MultiSlot text, or None for lines that are no records (blank ones, remarks)."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != len(FIELDS):
        return None
    row = dict(zip(FIELDS, cells))
    row["decade"] = int(row["age"]) // 5
    row["hours_band"] = int(row["hours"]) // 10
    out = ["1 1" if row["label"].startswith(">50K") else "1 0"]
    out += [sparse(name, row[name]) for name in COLUMNS]
    out.append("%d" % len(CROSSES))
    out += [sparse("*".join(names), "*".join(str(row[n]) for n in names))[2:] for names in CROSSES]
    out.append("%d" % len(NUMBERS))
    out += [number(name, row[name]) for name in NUMBERS]
    return " ".join(out)


def main():
    for line in sys.stdin:
        text = multislot(line)
        if text is not None:
            print(text)


if __name__ == "__main__":
    main()
