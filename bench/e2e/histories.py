#!/usr/bin/env python3
"""Compares DIN with pooled histories on MovieLens latest-small: test AUC of both, mean and standard error, as Markdown.

    bench/e2e/histories.py [--bin build/release/bin] [--seeds 5] [--data ../shared/data/movielens_latest_small]

A row is a rating: does the user give four stars or more, after what the user liked and disliked before it? Of each user's ratings,
in the order of time, the last fifth tests, and the tenth before it ends training (early stopping); nothing is chosen by the test
rows. Both models have the same tables, inputs and layers, and no id of the user; one lets the film look at the lists, the other takes their means.
"""
import argparse
import collections
import csv
import gzip
import io
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("MILLRACE_SHARED", os.path.join(ROOT, "..", "shared"))
LONGEST = 50

JOB = """
thread_num: 1
epochs: 20
seed: %(seed)d
filelist: "fit.csv"
data_desc {
  name: "csv"
  batch_size: 256
  feature { name: "label" id {} is_dense: true }
  feature { name: "film" hash { salt: "film" } }
  feature { name: "genre" hash { salt: "genre" } }
  feature { name: "genres" split { by: "|" } hash { salt: "genre" } }
  feature { name: "liked" split { by: "|" } hash { salt: "film" } }
  feature { name: "liked_genre" split { by: "|" } hash { salt: "genre" } }
  feature { name: "disliked" split { by: "|" } hash { salt: "film" } }
  feature { name: "disliked_genre" split { by: "|" } hash { salt: "genre" } }
  feature { name: "numbers" from: ["seen", "share_liked"] log1p {} standardize {} }
}
dataset { class_name: "InMemoryDataset" local_shuffle: true }
model {
  table { name: "films" dim: 8 init { normal: 0.05 } optimizer { adam { lr: 0.001 } } }
  layer { name: "shown" embedding { slots: ["film", "genre"] table: "films" } }
  layer { name: "likes" history { slots: ["liked", "liked_genre"] table: "films" max_length: %(longest)d } }
  layer { name: "dislikes" history { slots: ["disliked", "disliked_genre"] table: "films" max_length: %(longest)d } }
  %(interest)s
  table { name: "kinds_of_film" dim: 8 optimizer { adam { lr: 0.001 } } }
  layer { name: "kinds" embedding { slots: "genres" table: "kinds_of_film" pool: AVERAGE } }
  layer { name: "all" concat { in: ["shown", "liking", "disliking", "kinds", "numbers"] } }
  layer { name: "dropped" dropout { in: "all" prob: 0.2 } }
  layer { name: "hidden" fc { in: "dropped" units: [64, 32] act: RELU } }
  layer { name: "logit" fc { in: "hidden" units: 1 } }
  loss { kind: SIGMOID_CROSS_ENTROPY in: "logit" label: "label" }
  metric { kind: AUC }
  optimizer { adam { lr: 0.001 } }
}
eval { filelist: "valid.csv" early_stopping { metric: "auc" patience: 3 } }
output { tensorboard: false }
"""

MODELS = {
    "pooled": """layer { name: "liking" pool { in: "likes" type: AVERAGE } }
  layer { name: "disliking" pool { in: "dislikes" type: AVERAGE } }""",
    "DIN": """layer { name: "liking" attention { in: "likes" query: "shown" units: [16] softmax: true } }
  layer { name: "disliking" attention { in: "dislikes" query: "shown" units: [16] softmax: true } }""",
}


def rows_of(folder, name):
    with gzip.open(os.path.join(folder, name + ".gz"), "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_rows(data, folder):
    """fit.csv, valid.csv and test.csv; returns how many rows each has."""
    genres = {row["movieId"]: row["genres"].split("|") for row in rows_of(data, "movies.csv")}
    of_user = collections.defaultdict(list)
    for row in rows_of(data, "ratings.csv"):
        of_user[row["userId"]].append((int(row["timestamp"]), int(row["movieId"]), float(row["rating"])))
    columns = "label,user,film,genre,genres,liked,liked_genre,disliked,disliked_genre,seen,share_liked".split(",")
    text = {name: io.StringIO() for name in ("fit", "valid", "test")}
    writers = {name: csv.writer(file, lineterminator="\n") for name, file in text.items()}
    counts = collections.Counter()
    for writer in writers.values():
        writer.writerow(columns)
    for user, ratings in sorted(of_user.items(), key=lambda item: int(item[0])):
        past = {True: [], False: []}
        ratings.sort()
        for place, (_, film, stars) in enumerate(ratings):
            split = "test" if place >= len(ratings) * 0.8 else "valid" if place >= len(ratings) * 0.7 else "fit"
            lists = []
            for liked in (True, False):
                last = past[liked][-LONGEST:]
                lists += ["|".join(last), "|".join(genres[one][0] for one in last)]
            film = str(film)
            writers[split].writerow([int(stars >= 4), user, film, genres[film][0], "|".join(genres[film]), *lists, place,
                                     "%.4f" % ((len(past[True]) + 1) / (place + 2))])
            counts[split] += 1
            past[stars >= 4].append(film)
    for name, file in text.items():
        with open(os.path.join(folder, name + ".csv"), "w", encoding="utf-8") as out:
            out.write(file.getvalue())
    return counts


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("%s\nexit %d\n%s" % (" ".join(command), done.returncode, done.stderr[-2000:]))
    return done.stderr


def test_auc(args, folder, interest, seed):
    with open(os.path.join(folder, "job.prototxt"), "w", encoding="utf-8") as file:
        file.write(JOB % {"seed": seed, "interest": interest, "longest": LONGEST})
    run([args.bin + "/trainer", "--trainer_desc=job.prototxt", "--output_dir=out"], folder)
    said = run([args.bin + "/predictor", "--model_dir=out/model", "--input=test.csv", "--output=scores.txt"], folder)
    return float(re.search(r"^auc ([\d.]+)", said, re.M).group(1))


def error(values):
    return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", default=os.path.join(SHARED, "data", "movielens_latest_small"))
    args = parser.parse_args()
    args.bin = os.path.abspath(args.bin)
    with tempfile.TemporaryDirectory() as folder:
        counts = write_rows(args.data, folder)
        found = {name: [] for name in MODELS}
        for seed in range(1, args.seeds + 1):
            for name, interest in MODELS.items():
                found[name].append(test_auc(args, folder, interest, seed))
    print("%d rows to train on, %d that end training, %d to test; seeds 1 to %d\n" %
          (counts["fit"], counts["valid"], counts["test"], args.seeds))
    print("| model | test AUC: mean | standard error | each seed |\n|---|---|---|---|")
    for name, values in found.items():
        print("| %s | %.4f | %.4f | %s |" % (name, statistics.mean(values), error(values), ", ".join("%.4f" % v for v in values)))
    gains = [din - pooled for din, pooled in zip(found["DIN"], found["pooled"])]
    print("| DIN less pooled, seed by seed | %+.4f | %.4f | %s |" %
          (statistics.mean(gains), error(gains), ", ".join("%+.4f" % gain for gain in gains)))


if __name__ == "__main__":
    main()
