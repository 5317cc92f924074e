"""Differences between jobs, which the programs know: `PROGRAM --compare_jobs` (src/app/compare_jobs.h)."""

import json
import subprocess
from dataclasses import dataclass
from typing import List, Optional

from console import Failure, io_failure


@dataclass
class Field:
    """A field in which jobs differ."""

    path: str  #: "model.optimizer.adagrad.lr"
    head: str  #: "lr"
    values: List[str]  #: of each job


@dataclass
class Comparison:
    """Jobs next to each other."""

    seeds: List[Optional[int]]  #: of each job; None: its text is not a job of this build
    fields: List[Field]


def compare(program, groups):
    """A Comparison for each list of jobs in prototxt."""
    if not groups:
        return []
    # Strings of foreign JSON can contain halves of characters, which no text can.
    lines = "".join(json.dumps([text.encode("utf-8", "replace").decode() for text in texts]) + "\n" for texts in groups)
    try:
        done = subprocess.run([program, "--compare_jobs"], input=lines.encode(), stdout=subprocess.PIPE, start_new_session=True, check=False)
    except OSError as error:
        raise io_failure("cannot start " + program, error) from None
    if done.returncode != 0:
        raise Failure("input/output error", f"{program} --compare_jobs ended with {done.returncode}")
    found = [json.loads(line) for line in done.stdout.decode().split("\n")[:-1]]
    return [Comparison(one["seeds"], [Field(**field) for field in one["fields"]]) for one in found]


def compare_runs(program, runs):
    """The fields in which the jobs of runs differ, with "?" for unknown values. A job that is not of this build becomes
    None, with a note."""
    known = [run for run in runs if run.job is not None]
    fields = []
    if known:
        found, = compare(program, [[run.job for run in known]])
        for run, seed in zip(known, found.seeds):
            run.seed = seed
        for field in found.fields:
            values = {id(run): value for run, value in zip(known, field.values) if run.seed is not None}
            fields.append(Field(field.path, field.head, [values.get(id(run), "?") for run in runs]))
    for run in known:
        if run.seed is None:
            run.job = None
            run.notes.append(f'{run.folder}/run.json: its "job" is of another build, and is not read: how it was configured is not known')
    return fields
