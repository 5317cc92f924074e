"""What a run was like, as Python numbers."""

from dataclasses import dataclass, field
from typing import Dict, List, Optional

__all__ = ["Report"]


@dataclass(frozen=True)
class Report:
    """What a training or evaluation did.

    `metrics` are those of the last pass, `evaluation` those on the evaluation set (with its `loss`, `examples`, `step`) or
    None; `history` has what was fetched at each print: {"step": 100, "loss": array([0.6])}, .... A metric without a
    value is nan.
    """

    examples: int  #: trained by this run
    batches: int
    seconds: float  #: wall clock of the passes
    epochs: int  #: that are complete
    metrics: Dict[str, float]
    evaluation: Optional[Dict[str, float]]
    workers: int
    examples_per_second: float
    total_seconds: float  #: with loading, evaluations, checkpoints
    total_examples: int  #: with those of earlier runs that this one went on from
    total_batches: int
    data: Dict[str, object]  #: the input: files, bytes, lines, bad_lines, first_bad_lines, counters by kind, left_out
    stage_seconds: Dict[str, float]  #: summed over threads
    bottleneck: str  #: one sentence on what held the run up
    stopped_early: bool = False
    save_failures: List[str] = field(default_factory=list)
    history: List[dict] = field(default_factory=list)

    def __str__(self):
        shown = ["%s %.6f" % item for item in self.metrics.items()]
        if self.evaluation is not None:
            shown += ["evaluation %s %.6f" % (name, value) for name, value in self.evaluation.items()
                      if name not in ("examples", "step")]
        return "%d examples in %d batches, %.1f s, %.0f examples/s%s" % (
            self.examples, self.batches, self.seconds, self.examples_per_second, "".join(", " + text for text in shown))
