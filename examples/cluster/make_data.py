"""Makes a small click log: a folder for each day, a few files in it.

    python make_data.py FOLDER [DAYS [ROWS [FIRST_DAY]]]
"""

import math
import os
import random
import sys


def main(folder, days=3, rows=8000, first=1, parts=4):
    taste = random.Random(7)  # what clicks, the same in every call
    users = [taste.gauss(0, 1) for _ in range(300)]
    liked = [[taste.gauss(0, 1.2) for _ in range(20)] for _ in range(30)]  # of a site, how each ad does there
    for day in range(first, first + days):
        draw = random.Random(day)
        there = os.path.join(folder, "2026-01-%02d" % day)
        os.makedirs(there, exist_ok=True)
        for part in range(parts):
            with open(os.path.join(there, "part-%03d" % part), "w", encoding="utf-8") as file:
                for _ in range(rows // parts):
                    user, site, hour = draw.randrange(300), draw.randrange(30), draw.randrange(24)
                    ads = [draw.randrange(20) for _ in range(draw.randrange(1, 4))]
                    score = users[user] + liked[site][ads[0]] + math.sin(hour / 24 * 2 * math.pi) - 1
                    clicked = draw.random() < 1 / (1 + math.exp(-score))
                    file.write("%d\t1:%d\t2:%d\t3:%d\t4:%s\n" % (clicked, user, site, hour, " ".join(map(str, ads))))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
