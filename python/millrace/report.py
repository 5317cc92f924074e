"""What a run was like, as Python numbers."""

from __future__ import annotations

from collections.abc import Iterable
import html
import importlib
import math
from dataclasses import dataclass, field
from typing import Any, Optional, TypedDict, Union

from .errors import ConfigError

__all__ = ["Report"]


class InputCounts(TypedDict):
    """The input of a run: counters are by kind, and left_out says what was left out and why."""

    files: int
    bytes: int
    lines: int
    bad_lines: int
    first_bad_lines: list[str]
    counters: dict[str, int]
    left_out: str


@dataclass(frozen=True)
class Report:
    """What a training or evaluation did.

    `metrics` are those of the last pass, `evaluation` those on the evaluation set (with its `loss`, `examples`, `step`) or
    None; `passes` and `evaluations` are all of them, with loss and metrics; `history` has what was fetched at each print:
    {"step": 100, "loss": array([0.6])}, ..., and nothing of a job without fetches. A metric without a value is nan.
    """

    examples: int  #: trained by this run
    batches: int
    seconds: float  #: wall clock of the passes
    epochs: int  #: that are complete
    metrics: dict[str, float]
    evaluation: Optional[dict[str, float]]
    workers: int
    examples_per_second: float
    total_seconds: float  #: with loading, evaluations, checkpoints
    total_examples: int  #: with those of earlier runs that this one went on from
    total_batches: int
    data: InputCounts  #: the input: files, bytes, lines, bad_lines, first_bad_lines, counters by kind, left_out
    stage_seconds: dict[str, float]  #: summed over threads
    bottleneck: str  #: one sentence on what held the run up
    stopped_early: bool = False
    save_failures: list[str] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    #: of each: epoch (1 for the first), examples, seconds, loss, metrics
    passes: list[dict[str, Any]] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)  #: of each: step, epoch, examples, loss, metrics
    evaluation_sets: dict[str, dict[str, float]] = field(default_factory=dict)  #: by name, as `evaluation`
    #: eval.calibration, of each: loss, kind, examples, slope and intercept or points and values, logloss and calibration before and after
    calibrations: list[dict[str, Any]] = field(default_factory=list)
    #: how far values of `metrics` that were counted in steps, such as the AUC of training, may be from the exact ones
    metric_bounds: dict[str, float] = field(default_factory=dict)
    evaluation_bounds: dict[str, float] = field(default_factory=dict)  #: of `evaluation`; empty where all are exact
    metric_remarks: list[str] = field(default_factory=list)  #: which examples a metric left out, and why one is nan

    @classmethod
    def _of_nothing(cls, workers: int) -> Report:
        """That of a pass which had nothing to read."""
        data: InputCounts = {"files": 0, "bytes": 0, "lines": 0, "bad_lines": 0, "first_bad_lines": [], "counters": {},
                             "left_out": ""}
        return cls(examples=0, batches=0, seconds=0.0, epochs=1, metrics={}, evaluation=None, workers=workers,
                   examples_per_second=0.0, total_seconds=0.0, total_examples=0, total_batches=0, data=data, stage_seconds={},
                   bottleneck="there were no files")

    def plot(self, metrics: Union[str, Iterable[str], None] = None) -> Any:
        """Draws a metric's course, of passes and of evaluations, in a picture for each metric; needs matplotlib. Returns its
        figure. `metrics` are names, "loss" among them; by default all."""
        try:
            pyplot = importlib.import_module("matplotlib.pyplot")  # who checks types need not have it
        except ImportError:
            raise ConfigError("Report.plot needs matplotlib: pip install matplotlib") from None
        known = self._names()
        names = [metrics] if isinstance(metrics, str) else list(metrics or known)
        for name in names:
            if name not in known:
                raise ConfigError('Report.plot: no metric "%s"; there are: %s' % (name, ", ".join(known)))
        figure, axes = pyplot.subplots(1, max(1, len(names)), figsize=(4.5 * max(1, len(names)), 3.2), squeeze=False)
        for axis, name in zip(axes[0], names):
            for rows, label in ((self.passes, "training"), (self.evaluations, "evaluation")):
                course = [(row["epoch"], row[name]) for row in rows if name in row]
                if course:
                    axis.plot(*zip(*course), marker="o", label=label)
            axis.set(title=name, xlabel="epoch")
            axis.xaxis.get_major_locator().set_params(integer=True)
            axis.legend()
        figure.tight_layout()
        return figure

    def _names(self) -> list[str]:
        """The loss, where the job has one, and the metrics."""
        has_loss = any(math.isfinite(row.get("loss", math.nan)) for row in [*self.passes, *self.evaluations])
        return (["loss"] if has_loss else []) + [name for name in self.metrics if name != "loss"]

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        names = self._names()
        rows = [("training, epoch %d" % row["epoch"], row["examples"], row) for row in self.passes[-10:]]
        rows += [("evaluation, step %d" % row["step"], row["examples"], row) for row in self.evaluations[-10:]]
        head = "".join("<th>%s</th>" % html.escape(name) for name in ["", "examples"] + names)
        body = "".join("<tr><td>%s</td><td>%d</td>%s</tr>" % (
            what, count, "".join("<td>%.6f</td>" % row[name] if name in row else "<td></td>" for name in names)) for what, count, row in rows)
        return "<p>%s</p><table><thead><tr>%s</tr></thead><tbody>%s</tbody></table>" % (html.escape(str(self)), head, body)

    def __str__(self) -> str:
        shown = ["%s %.6f" % item for item in self.metrics.items()]
        if self.evaluation is not None:
            shown += ["evaluation %s %.6f" % (name, value) for name, value in self.evaluation.items()
                      if name not in ("examples", "step")]
        return "%d examples in %d batches, %.1f s, %.0f examples/s%s" % (
            self.examples, self.batches, self.seconds, self.examples_per_second, "".join(", " + text for text in shown))
