"""The table of runs: fields that differ, times and metrics."""

import math
from dataclasses import dataclass, field
from typing import Dict, List, Optional

from console import Failure
from run_folder import score_of

_METRIC_DIGITS = 5


@dataclass
class Cell:
    """A value of the table."""

    text: str  #: "0.8123", "0.8123 +- 0.0004", "[64, 32]"; empty: none
    is_best: bool = False


@dataclass
class Row:
    """A line of the table: a run, or the mean of runs whose jobs differ only in the seed. Its members follow it."""

    name: str
    runs: List[int]
    cells: List[Cell]
    is_member: bool = False


@dataclass
class Table:
    """Runs next to each other."""

    heads: List[str]  #: of the cells; the first are fields of the jobs
    paths: List[str]  #: of these fields: "model.optimizer.adagrad.lr" for "lr"
    order_by: str  #: the head by which rows are ordered; empty: none
    rows: List[Row] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)


@dataclass
class _Column:
    head: str
    values: List[float]  #: of each run; nan: none
    digits: int = _METRIC_DIGITS
    better: Optional[str] = None  #: None: no value is the best


def _saved(curve, model_step):
    """The value of the saved model: that of its step, else the last."""
    for step, value in reversed(curve):
        if step == model_step:
            return value
    return curve[-1][1] if curve else math.nan


def _best(curve, better):
    values = [value for _, value in curve if not math.isnan(value)]
    return max(values, key=lambda value: score_of(better, value), default=math.nan)


def _is_of_watched_set(runs, name):
    """Whether "auc@yesterday" equals "auc" in all runs: its set is the watched one."""
    plain = name.partition("@")[0]
    return plain != name and all(run.evaluations.get(name) == run.evaluations.get(plain) for run in runs)


def _evaluation_columns(runs, better):
    names = list(dict.fromkeys(name for run in runs for name in run.evaluations))
    columns = []
    for name in sorted(names, key=lambda name: name == "loss"):  # every evaluation has a loss
        if _is_of_watched_set(runs, name):
            continue
        saved = _Column(name, [_saved(run.evaluations.get(name, []), run.model_step) for run in runs],
                        better=better.get(name.partition("@")[0]))
        columns.append(saved)
        if saved.better is not None:
            best = _Column(name + " best", [_best(run.evaluations.get(name, []), saved.better) for run in runs], better=saved.better)
            if any(not math.isnan(b) and b != s for b, s in zip(best.values, saved.values)):
                columns.append(best)
    return columns


def _columns(runs):
    better: Dict[str, str] = {"loss": "lower"}
    for run in runs:
        better = {**run.better, **better}
    columns = [_Column("steps", [float(run.steps) for run in runs], digits=0),
               _Column("examples/s", [run.examples_per_second for run in runs], digits=0),
               _Column("seconds", [run.seconds for run in runs], digits=1)]
    if any(run.evaluations for run in runs):
        return columns + _evaluation_columns(runs, better)
    for name in dict.fromkeys(name for run in runs for name in run.metrics):
        columns.append(_Column(name + " of training", [run.metrics.get(name, math.nan) for run in runs],
                               better=better.get(name.partition("@")[0])))
    return columns


def _mean(column, runs):
    """The mean over runs and its standard error; nan: unknown."""
    values = [column.values[run] for run in runs if not math.isnan(column.values[run])]
    if not values:
        return math.nan, math.nan
    mean = sum(values) / len(values)
    if len(values) == 1:
        return mean, math.nan
    squares = sum((value - mean) * (value - mean) for value in values)
    return mean, math.sqrt(squares / (len(values) - 1) / len(values))


def _text(column, runs):
    mean, error = _mean(column, runs)
    if math.isnan(mean):
        return ""
    text = f"{mean:.{column.digits}f}"
    return text if column.better is None or math.isnan(error) else f"{text} +- {error:.{column.digits}f}"


def _groups(runs, fields):
    """Runs with equal fields but the seed."""
    groups = {}
    for i, run in enumerate(runs):
        key = tuple("" if one.path == "seed" else one.values[i] for one in fields) if run.job is not None else i
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def _ordered(groups, columns, order_by):
    """The groups, the best first."""
    column = next((column for column in columns if column.head == order_by), None)
    if not order_by:
        return groups
    if column is not None and column.better is None:
        raise Failure("invalid configuration",
                      f'which values of "{order_by}" are better is not known: no run.json of the runs says so')
    if column is None:
        known = ", ".join(column.head for column in columns if column.better is not None)
        raise Failure("invalid configuration",
                      f'no run has an evaluation with "{order_by}"' + (f"; there are {known}" if known else ""))
    return sorted(groups, key=lambda group: -score_of(column.better, _mean(column, group)[0]))


def _cut(text):
    data = text.encode()
    return text if len(data) <= 40 else data[:37].decode("utf-8", "ignore") + "..."


def _row(runs, fields, columns, group, is_member=False):
    run = runs[group[0]]
    name = run.name + (" (not ended)" if not run.has_ended else "") + (" (interrupted)" if run.interrupted else "")
    if len(group) > 1:
        name = f"mean of {len(group)} runs"
    cells = [Cell(_cut(one.values[group[0]]) if len(group) == 1 or one.path != "seed" else "") for one in fields]
    return Row(name, group, cells + [Cell(_text(column, group)) for column in columns], is_member)


def _mark_best(column, cell, rows):
    """Marks the best of a column. A single value is not the best of anything."""
    scores = [(score_of(column.better, mean), row) for row in rows if not row.is_member
              for mean in [_mean(column, row.runs)[0]] if not math.isnan(mean)]
    if len(scores) > 1:
        best = max(score for score, _ in scores)
        for score, row in scores:
            row.cells[cell].is_best = score == best


def _note_on_seeds(runs, group):
    """Runs with one seed are not independent: their mean looks more certain than it is."""
    seeds = [runs[i].seed for i in group]
    for seed in sorted(set(seeds)):
        if seeds.count(seed) > 1:
            return [f"{seeds.count(seed)} runs of a mean have the same seed, {seed}: its error tells less than how far seeds are apart"]
    return []


def compare_runs(runs, fields, order_by=""):
    """The table of runs with the fields in which their jobs differ (jobs.compare_runs), ordered by a metric. Failure:
    no run has this metric."""
    columns = _columns(runs)
    table = Table([one.head for one in fields + columns], [one.path for one in fields], order_by)
    for group in _ordered(_groups(runs, fields), columns, order_by):
        table.rows.append(_row(runs, fields, columns, group))
        if len(group) > 1:
            table.notes += _note_on_seeds(runs, group)
            table.rows += [_row(runs, fields, columns, [run], is_member=True) for run in group]
    for i, column in enumerate(columns):
        if column.better is not None:
            _mark_best(column, len(fields) + i, table.rows)
    return table
