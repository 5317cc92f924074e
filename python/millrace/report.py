"""Results and statistics of a run."""

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
    """Input statistics of a run. `counters` is keyed by kind, and `left_out` describes skipped input and the reason."""

    files: int
    bytes: int
    lines: int
    bad_lines: int
    first_bad_lines: list[str]
    counters: dict[str, int]
    left_out: str


@dataclass(frozen=True)
class Report:
    """The result of a training or evaluation run.

    `metrics` belong to the last pass, `evaluation` to the evaluation set (with `loss`, `examples`, `step`) or is None.
    `passes` and `evaluations` list all of them, with loss and metrics. `history` contains the fetched values of each print:
    {"step": 100, "loss": array([0.6])}, ... It is empty for a job without fetches. A metric without a value is nan.
    """

    examples: int  #: examples trained by this run
    batches: int
    seconds: float  #: wall clock of the passes
    epochs: int  #: completed epochs
    metrics: dict[str, float]
    evaluation: Optional[dict[str, float]]
    workers: int
    examples_per_second: float
    total_seconds: float  #: includes loading, evaluations and checkpoints
    total_examples: int  #: includes earlier runs that this run resumed
    total_batches: int
    data: InputCounts  #: the input: files, bytes, lines, bad_lines, first_bad_lines, counters by kind, left_out
    stage_seconds: dict[str, float]  #: summed over threads
    bottleneck: str  #: one sentence about the slowest stage
    stopped_early: bool = False
    save_failures: list[str] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    #: each contains: epoch (from 1), examples, seconds, loss, metrics
    passes: list[dict[str, Any]] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)  #: each contains: step, epoch, examples, loss, metrics
    evaluation_sets: dict[str, dict[str, float]] = field(default_factory=dict)  #: keyed by set name, like `evaluation`
    #: eval.calibration, each has loss, kind, examples, slope and intercept or points and values, logloss and calibration before and after
    calibrations: list[dict[str, Any]] = field(default_factory=list)
    #: maximum error of `metrics` computed from buckets, such as the training AUC
    metric_bounds: dict[str, float] = field(default_factory=dict)
    evaluation_bounds: dict[str, float] = field(default_factory=dict)  #: same for `evaluation`; empty if all are exact
    metric_remarks: list[str] = field(default_factory=list)  #: examples that a metric excluded, and why a metric is nan

    @classmethod
    def _of_nothing(cls, workers: int) -> Report:
        """Returns the report of a pass without input."""
        data: InputCounts = {"files": 0, "bytes": 0, "lines": 0, "bad_lines": 0, "first_bad_lines": [], "counters": {},
                             "left_out": ""}
        return cls(examples=0, batches=0, seconds=0.0, epochs=1, metrics={}, evaluation=None, workers=workers,
                   examples_per_second=0.0, total_seconds=0.0, total_examples=0, total_batches=0, data=data, stage_seconds={},
                   bottleneck="there were no files")

    def plot(self, metrics: Union[str, Iterable[str], None] = None) -> Any:
        """Plots metrics over passes and evaluations, one panel per metric, and returns the matplotlib figure. `metrics` are
        names, including "loss"; default: all. Raises ConfigError if matplotlib is missing or a name is unknown."""
        try:
            pyplot = importlib.import_module("matplotlib.pyplot")  # not needed for type checking
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
        """Returns "loss", if the job has a loss, and the names of the metrics."""
        has_loss = any(math.isfinite(row.get("loss", math.nan)) for row in [*self.passes, *self.evaluations])
        return (["loss"] if has_loss else []) + [name for name in self.metrics if name != "loss"]

    def _repr_html_(self) -> str:
        """Renders the report as HTML for notebooks."""
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
