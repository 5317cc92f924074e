#!/usr/bin/env python3
"""Turns lines of Census-Income (KDD, UCI) into MultiSlot text: stdin to stdout, nothing else.

It is the job's pipe_command. Slots, in the order of job.prototxt: label (income above 50,000), the ids of every
nominal column and of the bands of every number, the ids of CROSSES, and seven scaled numbers. An id is the CRC-32 of
"slot=value". The instance weight is no feature.
"""

import math
import sys
import zlib

FIELDS = (
    "age class_worker industry_code occupation_code education wage_per_hour enrolled marital_status industry "
    "occupation race hispanic sex union_member unemployment_reason employment capital_gains capital_losses "
    "dividends tax_filer region_before state_before household_detail household weight moved_msa moved_region "
    "moved_within same_house sunbelt_before employers_persons family_under_18 country_father country_mother "
    "country_self citizenship self_employed veterans_form veterans_benefits weeks year income"
).split()
NUMBERS = "age wage_per_hour capital_gains capital_losses dividends employers_persons weeks".split()
LOGGED = ("wage_per_hour", "capital_gains", "capital_losses", "dividends")
COLUMNS = [f for f in FIELDS if f not in ("weight", "income") and f not in LOGGED]
CROSSES = [
    ("sex", "education"),
    ("education", "occupation_code"),
    ("age_band", "education"),
    ("age_band", "sex", "weeks"),
    ("occupation_code", "sex"),
    ("tax_filer", "education"),
    ("industry_code", "occupation_code"),
    ("employers_persons", "occupation"),
    ("dividends_band", "age_band"),
    ("class_worker", "education", "sex"),
]


def band(value):
    """Bands that grow with the value: 0, then some seven to each factor of ten."""
    return 0 if value <= 0 else 1 + int(7 * math.log10(1 + value))


def sparse(slot, value):
    return "%d" % zlib.crc32(("%s=%s" % (slot, value)).encode())


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
    out += ["1 " + sparse(name, row[name]) for name in COLUMNS]
    out += ["1 " + sparse(name, row[name + "_band"]) for name in LOGGED]
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
