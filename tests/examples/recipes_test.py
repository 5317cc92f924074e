"""Follows a page of docs/recipes as its reader would, in an empty folder.

    recipes_test.py BIN_DIR PAGE|README        exit code 77: the page asks for what is not there

A block that begins with ```LANGUAGE FILE becomes that file. A block ```sh is run by bash, after all files are there, with the
programs in its path and $MILLRACE at the root of the checkout. <!-- expect FILE PATH LEAST --> wants a number of a JSON file, at
least so large; <!-- expect FILE LINES --> so many lines. <!-- needs PROGRAM --> skips a page. Of README.md the job that reads a CSV is
trained on rows of its columns.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED = 77
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)
EXPECTED = re.compile(r"^<!-- expect (\S+) (?:(\S+) )?([\d.]+) -->$", re.M)
NEEDED = re.compile(r"^<!-- needs (\S+) -->$", re.M)


def number(path, keys):
    """The number that a JSON file has under keys with points between them."""
    with open(path, encoding="utf-8") as file:
        value = json.load(file)
    for key in keys.split("."):
        value = value[key]
    return value


def lines(path):
    with open(path, encoding="utf-8") as file:
        return sum(1 for _ in file)


def follow(text, bin_dir, folder):
    """Runs what a page shows; returns what it found wrong, or an empty text."""
    commands = []
    for language, name, content in BLOCK.findall(text):
        if name:
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
        elif language == "sh":
            commands.append(content)
    if not commands:
        return "the page has no block of commands: ```sh"
    env = dict(os.environ, PATH=bin_dir + os.pathsep + os.environ["PATH"], MILLRACE=ROOT)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(commands)], cwd=folder, env=env, capture_output=True,
                          text=True, check=False)
    print(done.stdout + done.stderr)
    if done.returncode != 0:
        return "its commands ended with %d" % done.returncode
    expectations = EXPECTED.findall(text)
    if not expectations:
        return "the page expects nothing: <!-- expect out/run.json eval.auc 0.7 -->"
    for name, keys, least in expectations:
        path = os.path.join(folder, name)
        if not keys and lines(path) != int(least):
            return "%s has %d lines, not %s" % (name, lines(path), least)
        if keys and not number(path, keys) >= float(least):
            return "%s: %s is %s, less than %s" % (name, keys, number(path, keys), least)
    return ""


def job_of_readme():
    """README.md's first job as a page that has rows for it and scores them."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        job = re.search(r"^```\n(filelist: \"train.csv\"\n.*?)^```$", file.read(), re.M | re.S).group(1)
    chance = random.Random(1)
    rows = []
    for _ in range(3000):
        city = chance.randrange(20)
        genres = "|".join("g%d" % chance.randrange(9) for _ in range(chance.randrange(1, 4)))
        rows.append("%d,%d,c%d,%s,%.2f,%d\n" % (chance.random() < 0.1 + 0.04 * city, chance.randrange(18, 80), city, genres,
                                             chance.expovariate(0.1), chance.randrange(50)))
    files = {"job.prototxt": job, "train.csv": "".join(rows[:2000]), "test.csv": "".join(rows[2000:])}
    page = ["```text %s\n%s%s```\n" % (name, "click,age,city,genres,price,views\n" if name.endswith("csv") else "", content)
            for name, content in files.items()]
    commands = ["trainer --trainer_desc=job.prototxt --output_dir=out", "cut -d , -f 2- test.csv > new.csv",
                "predictor --model_dir=out/model --input=new.csv --without=label > scores.txt"]
    page.append("```sh\n%s\n```\n" % "\n".join(commands))
    return "".join(page) + "<!-- expect out/run.json eval.auc 0.5 -->\n<!-- expect scores.txt 1000 -->\n"


def main():
    if sys.argv[2] == "README":
        text = job_of_readme()
    else:
        with open(os.path.join(ROOT, "docs", "recipes", sys.argv[2] + ".md"), encoding="utf-8") as file:
            text = file.read()
    for program in NEEDED.findall(text):
        if shutil.which(program) is None:
            print("skipped: %s is not there" % program)
            sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        wrong = follow(text, sys.argv[1], folder)
    if wrong:
        sys.exit("%s.md: %s" % (sys.argv[2], wrong))


if __name__ == "__main__":
    main()
