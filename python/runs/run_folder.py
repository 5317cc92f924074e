"""Reads the output folder of a run: run.json and metrics.jsonl."""

import json
import math
import os
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from console import Failure, read_file

Curve = List[Tuple[int, float]]  # step and value; nan: none


@dataclass
class Run:
    """What the folder says about a run. Without run.json only metrics.jsonl is known."""

    name: str  #: shown in tables
    folder: str
    has_ended: bool = False
    interrupted: bool = False
    job: Optional[str] = None  #: as it ran, in prototxt
    seed: Optional[int] = None  #: of the job; known after jobs.compare_runs
    steps: int = 0
    model_step: int = -1  #: of the saved model's evaluation; -1: unknown
    seconds: float = math.nan
    examples_per_second: float = math.nan
    metrics: Dict[str, float] = field(default_factory=dict)  #: of the last training epoch
    better: Dict[str, str] = field(default_factory=dict)  #: "higher", "lower" or "nearer_to_1", by metric
    training: Dict[str, Curve] = field(default_factory=dict)
    evaluations: Dict[str, Curve] = field(default_factory=dict)  #: without the prefix "eval_"
    notes: List[str] = field(default_factory=list)  #: missing or incomplete parts, each with its file


def score_of(better, value):
    """Larger is better; a nan is the worst."""
    if math.isnan(value):
        return -math.inf
    return {"higher": value, "lower": -value, "nearer_to_1": -abs(value - 1)}[better]


def _number(value):
    try:
        return float(value) if type(value) in (int, float) else math.nan
    except OverflowError:
        return math.nan


def _integer(values, key):
    value = values.get(key)
    return value if type(value) is int and value < 1 << 63 else -1


def _refuse(constant):
    raise ValueError(constant + " is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _object(text):
    """The object that `text` is. ValueError for anything else."""
    try:
        value = _DECODER.decode(text.decode("utf-8"))
    except RecursionError:
        raise ValueError("too deep") from None
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    return value


def _shown(line):
    return line[:40].decode("utf-8", "surrogateescape")


def _add_line(line, run):
    """Adds a line of metrics.jsonl: an evaluation if it has "eval_loss", else training."""
    step = line["step"]
    run.steps = max(run.steps, step)
    is_evaluation = "eval_loss" in line
    curves = run.evaluations if is_evaluation else run.training
    for key, value in line.items():
        # A fetched variable can have several values, and a curve has one per step.
        if key not in ("step", "epoch", "examples") and not isinstance(value, list):
            name = key[len("eval_"):] if is_evaluation and key.startswith("eval_") else key
            curves.setdefault(name, []).append((step, _number(value)))


def _read_lines(path, run):
    lines = read_file(path).split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        try:
            values = _object(line)
        except ValueError as error:
            raise Failure("bad data", f'{path}:{number}: expected an object of JSON, found "{_shown(line)}": {error}') from None
        if _integer(values, "step") < 0:
            raise Failure("bad data", f'{path}:{number}: a line of a run\'s metrics has a "step", found "{_shown(line)}"')
        _add_line(values, run)
    if lines[-1]:
        run.notes.append(f"{path}:{len(lines)}: the last line is cut, as a run that was killed leaves it: it is left out")


def _texts(values):
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _dict(values, key):
    value = values.get(key)
    return value if isinstance(value, dict) else {}


def _read_summary(path, run):
    try:
        values = _object(read_file(path))
    except ValueError as error:
        raise Failure("bad data", f"{path}: expected an object of JSON, as the end of a run writes it: {error}") from None
    batches = _integer(values, "batches")
    if batches < 0 or _integer(values, "examples") < 0:
        raise Failure("bad data", f'{path}: a run\'s summary has "examples" and "batches"')
    run.has_ended = True
    if run.steps > batches:
        run.notes.append(f"{path}: metrics.jsonl has step {run.steps}, which is behind its end: a run goes on in the folder, "
                         "or was killed")
    run.steps = max(run.steps, batches)
    run.seconds = _number(values.get("seconds"))
    run.examples_per_second = _number(values.get("examples_per_second"))
    run.interrupted = values.get("interrupted") is True
    run.metrics = {name: _number(value) for name, value in _dict(values, "metrics").items()}
    for word in ("higher", "lower", "nearer_to_1"):
        run.better.update((name, word) for name in _texts(_dict(values, "better").get(word)))
    if isinstance(values.get("job"), str):
        run.job = values["job"]
    else:
        run.notes.append(f'{path}: it has no "job", as builds from before wrote it: how it was configured is not known')
    evaluation = _dict(values, "eval")
    run.model_step = _integer(evaluation, "step")
    if not run.evaluations and run.model_step >= 0:
        run.evaluations = {name: [(run.model_step, _number(value))] for name, value in evaluation.items() if name in run.better}


def read_run(folder):
    """Reads a run. Failure: the folder is missing or contains no run ("not found"), a file cannot be read ("input/output
    error"), or a file was not written by a run ("bad data", with the file and the line)."""
    folder = folder.rstrip("/") or folder[:1]
    run = Run(name=folder, folder=folder)
    if not os.path.exists(folder):
        raise Failure("not found", f'no folder "{folder}"')
    if not os.path.isdir(folder):
        raise Failure("not found", f'"{folder}" is no folder; a run is the output folder of a training')
    lines = folder + "/metrics.jsonl"
    summary = folder + "/run.json"
    has_lines = os.path.exists(lines)
    has_summary = os.path.exists(summary)
    if not has_lines and not has_summary:
        raise Failure("not found", f'"{folder}" is no run: it has neither run.json nor metrics.jsonl')
    if has_lines:
        _read_lines(lines, run)
    if has_summary:
        _read_summary(summary, run)
    if not has_lines:
        run.notes.append(folder + ": it has no metrics.jsonl: there are no curves")
    if not has_summary:
        run.notes.append(folder + ": it has no run.json: the run has not ended, or was killed; how it was configured is not known")
    return run
