"""What jobs of Paddle dump, held against Paddle's own dumps of the same jobs, line by line.

    dump_test.py BIN_DIR       PADDLE_PYTHON names a Python with Paddle; exit code 77: there is none
"""

import os
import sys
import tempfile

import support

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dump_models.py")


def parts(line):
    """(what is the same to the letter, the numbers, which differ in their last digit)."""
    head, texts, numbers = "", [], []
    if line.startswith("("):
        head, line = line.split(")", 1)
        numbers = line.split(",")
    else:
        for field in line.split("\t"):
            texts.append(field)
            if field.count(":") == 2:
                texts[-1], values = field.rsplit(":", 1)
                numbers += values.split(",")
    return head, texts, [float(number) for number in numbers]


def compare(kind, got, wanted):
    if len(got) != len(wanted) or not wanted:
        support.fail("%s: %d lines, Paddle dumps %d" % (kind, len(got), len(wanted)))
    for ours, theirs in zip(got, wanted):
        (head, texts, values), (head_wanted, texts_wanted, expected) = parts(ours), parts(theirs)
        same = head == head_wanted and texts == texts_wanted and len(values) == len(expected)
        if not same or any(support.differs(a, b, 1e-4) for a, b in zip(values, expected)):
            support.fail("%s dumps\n%s\nnot\n%s" % (kind, ours, theirs))


def main():
    (bin_dir,) = sys.argv[1:]
    python = support.peer("PADDLE_PYTHON", "paddle")
    with tempfile.TemporaryDirectory() as top:
        for kind in ("queue", "memory", "ids", "content", "random", "merge"):
            folder = top + "/" + kind
            os.mkdir(folder)
            support.run(python, MODELS, kind, folder, cwd=folder)
            ours = "dump_fields_path=" + folder + "/ours"
            support.run(bin_dir + "/trainer", "--trainer_desc=" + folder + "/job/job.prototxt", "--output_dir=" + folder +
                        "/out", "--set", "update_mode=SERIAL", "--set", ours)
            lines = [support.read(folder + "/" + who + "/part-002-00000").splitlines() for who in ("ours", "paddle")]
            if kind == "merge":  # in any order
                lines = [sorted(each) for each in lines]
            compare(kind, *lines)


if __name__ == "__main__":
    main()
