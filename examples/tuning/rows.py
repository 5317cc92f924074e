"""Writes train.csv and eval.csv of examples/tuning/job.prototxt: python3 rows.py."""

import math
import random


def write(path, rows, seed):
    chance = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        file.write("clicked,age,city\n")
        for _ in range(rows):
            age = chance.randrange(18, 80)
            city = chance.randrange(20)
            score = (age - 45) / 15 + (city % 5 - 2)
            clicked = int(chance.random() < 1 / (1 + math.exp(-score)))
            file.write("%d,%d,city %d\n" % (clicked, age, city))


if __name__ == "__main__":
    write("train.csv", 4000, 1)
    write("eval.csv", 1000, 2)
