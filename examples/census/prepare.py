#!/usr/bin/env python3
"""Splits Census-Income (KDD) into build/census: the last tenth of the file is test.csv, the rest train-00 and so on.

    python3 examples/census/prepare.py [FILE.csv.gz] [FOLDER]
"""

import gzip
import os
import sys

TRAIN_PARTS = 4


def main():
    source = "../shared/data/census_income_kdd/census_income_1994_1995_train.csv.gz"
    source = sys.argv[1] if len(sys.argv) > 1 else source
    folder = sys.argv[2] if len(sys.argv) > 2 else "build/census"
    if not os.path.exists(source):
        sys.exit("prepare.py: %s is not there; see examples/census/README.md for where it comes from" % source)
    with gzip.open(source, "rt", encoding="utf-8") as file:
        lines = [line for line in file if line.strip()]
    train = len(lines) - len(lines) // 10
    os.makedirs(folder, exist_ok=True)
    for part in range(TRAIN_PARTS):
        with open("%s/train-%02d.csv" % (folder, part), "w", encoding="utf-8") as file:
            file.writelines(lines[train * part // TRAIN_PARTS : train * (part + 1) // TRAIN_PARTS])
    with open(folder + "/test.csv", "w", encoding="utf-8") as file:
        file.writelines(lines[train:])
    print("%s: %d lines to train on, %d to test" % (folder, train, len(lines) - train))


if __name__ == "__main__":
    main()
