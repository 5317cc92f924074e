"""Losses, and measures between rows."""

from __future__ import annotations

from typing import Literal, Optional, SupportsFloat, Union, overload

from numpy.typing import DTypeLike

from . import _checks
from ._append import dtype_name, op, program_of
from .errors import ConfigError
from .framework import Variable

__all__ = ["accuracy", "auc", "bpr_loss", "cos_sim", "cross_entropy", "hinge_loss", "huber_loss", "kldiv_loss", "label_smooth",
           "log_loss", "margin_rank_loss", "mse_loss", "rank_loss", "sigmoid_cross_entropy_with_logits", "smooth_l1",
           "softmax_with_cross_entropy", "square_error_cost", "teacher_student_sigmoid_loss"]


def cross_entropy(input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100) -> Variable:
    """-log of the probability that `input` [batch, classes] gives the class `label` [batch, 1]. [batch, 1]"""
    return op("cross_entropy", {"X": input, "Label": label}, {"soft_label": soft_label, "ignore_index": ignore_index})


@overload
def softmax_with_cross_entropy(logits: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100,
                               numeric_stable_mode: bool = True, return_softmax: Literal[False] = False,
                               axis: int = -1) -> Variable: ...


@overload
def softmax_with_cross_entropy(logits: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100,
                               numeric_stable_mode: bool = True, *, return_softmax: Literal[True],
                               axis: int = -1) -> tuple[Variable, Variable]: ...


def softmax_with_cross_entropy(logits: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100,
                               numeric_stable_mode: bool = True, return_softmax: bool = False,
                               axis: int = -1) -> Union[Variable, tuple[Variable, Variable]]:
    """The same of logits. [batch, 1]; with return_softmax also the probabilities. It is stable in either mode."""
    probabilities, loss = op("softmax_with_cross_entropy", {"Logits": logits, "Label": label},
                             {"soft_label": soft_label, "ignore_index": ignore_index, "numeric_stable_mode": numeric_stable_mode,
                              "axis": axis}, ["Softmax", "Loss"])
    return (loss, probabilities) if return_softmax else loss


def sigmoid_cross_entropy_with_logits(x: Variable, label: Variable, ignore_index: int = -100, name: Optional[str] = None,
                                      normalize: bool = False) -> Variable:
    """Cross entropy of the logit `x` and the label; floats of one shape, [batch, 1] as a rule."""
    return op("sigmoid_cross_entropy_with_logits", {"X": x, "Label": label},
              {"ignore_index": ignore_index, "normalize": normalize}, name=name)


def log_loss(input: Variable, label: Variable, epsilon: float = 1e-4, name: Optional[str] = None) -> Variable:
    """-label log(input + epsilon) - (1 - label) log(1 - input + epsilon); floats of one shape, [batch, 1] as a rule."""
    return op("log_loss", {"Predicted": input, "Labels": label}, {"epsilon": epsilon}, name=name)


def square_error_cost(input: Variable, label: Variable) -> Variable:
    """(input - label)^2 of every value: both of one shape, [batch, 1] as a rule, which the result has."""
    return op("square", {"X": op("elementwise_sub", {"X": input, "Y": label})})


def accuracy(input: Variable, label: Variable, k: int = 1, correct: Optional[Variable] = None,
             total: Optional[Variable] = None) -> Variable:
    """The share of rows whose class is among the k most likely, [1]; how many, and of how many, in `correct` and `total`, if they
    are given."""
    values, indices = op("top_k", {"X": input}, {"k": k}, ["Out", "Indices"])
    return op("accuracy", {"Out": values, "Indices": indices, "Label": label}, None,
              {"Accuracy": 1, "Correct": correct if correct is not None else 1, "Total": total if total is not None else 1})[0]


def auc(input: Variable, label: Variable, curve: str = "ROC", num_thresholds: int = 2 ** 12 - 1, topk: int = 1,
        slide_steps: int = 1) -> tuple[Variable, Variable, list[Variable]]:
    """(auc of all batches so far, auc of the last slide_steps batches, their states). `input` is [batch, 2].

    Training counts in the states. A program.clone(for_test=True), and each infer_from_dataset, counts for itself; scope.get of a
    state has both, until scope.set.
    """
    program = program_of({"input": input})
    found, states = [], []
    for steps in (slide_steps, 0):
        stats = []
        for sign in ("pos", "neg"):
            name = program.unique_name("auc_stat_%s" % sign)
            program._author.add_state(name, "int64", [max(steps, 1), num_thresholds + 1], 0.0)
            stats.append(Variable(program, name))
        program.auc_states += [stat.name for stat in stats]
        out = op("auc", {"Predict": input, "Label": label, "StatPos": stats[0], "StatNeg": stats[1]},
                 {"curve": curve, "num_thresholds": num_thresholds, "slide_steps": steps},
                 {"AUC": 1, "StatPosOut": stats[0], "StatNegOut": stats[1]})
        found.append(out[0])
        states += stats
    return found[1], found[0], states


def mse_loss(input: Variable, label: Variable) -> Variable:
    """The mean of (input - label)^2 over all values, [1]."""
    return op("mean", {"X": square_error_cost(input, label)})


def huber_loss(input: Variable, label: Variable, delta: float) -> Variable:
    """Half the square of label - input, and a straight line where that is beyond delta; the shape of input, [batch, 1] as a
    rule."""
    return op("huber_loss", {"X": input, "Y": label}, {"delta": delta}, ["Out", "Residual"])[0]


def smooth_l1(x: Variable, y: Variable, inside_weight: Optional[Variable] = None, outside_weight: Optional[Variable] = None,
              sigma: Optional[SupportsFloat] = 1.0) -> Variable:
    """0.5 * (sigma * d)^2 where |d| < 1 / sigma^2, else |d| - 0.5 / sigma^2, of d = inside_weight * (x - y), times
    outside_weight, added up for each row: [batch, 1] of [batch, n]."""
    squared = _checks.number("smooth_l1: sigma", 1.0 if sigma is None else sigma) ** 2
    if inside_weight is not None:
        x, y = [op("elementwise_mul", {"X": of, "Y": inside_weight}) for of in (x, y)]
    value = op("scale", {"X": huber_loss(x, y, 1 / squared)}, {"scale": squared})
    if outside_weight is not None:
        value = op("elementwise_mul", {"X": value, "Y": outside_weight})
    rows = op("flatten2", {"X": value}, {"axis": 1}, ["Out", "XShape"])[0]
    return op("reduce_sum", {"X": rows}, {"dim": [1], "keep_dim": True})


def kldiv_loss(x: Variable, target: Variable, reduction: str = "mean", name: Optional[str] = None) -> Variable:
    """target * (log(target) - x) for log-probabilities x: [1] by "mean", "sum" or "batchmean", the shape of x by "none"."""
    return op("kldiv_loss", {"X": x, "Target": target}, {"reduction": reduction}, name=name)


def hinge_loss(input: Variable, label: Variable, name: Optional[str] = None) -> Variable:
    """max(0, 1 - (2 label - 1) * input) for labels 0.0 and 1.0; both [batch, 1], as the result."""
    return op("hinge_loss", {"Logits": input, "Labels": label}, name=name)


def rank_loss(label: Variable, left: Variable, right: Variable, name: Optional[str] = None) -> Variable:
    """Cross entropy of left - right, the logit of "left is before right", and the label; all [batch, 1], as the result."""
    return op("rank_loss", {"Label": label, "Left": left, "Right": right}, name=name)


def margin_rank_loss(label: Variable, left: Variable, right: Variable, margin: float = 0.1,
                     name: Optional[str] = None) -> Variable:
    """max(0, margin - label * (left - right)) for labels 1.0 and -1.0; all [batch, 1], as the result."""
    apart = op("elementwise_mul", {"X": label, "Y": op("elementwise_sub", {"X": left, "Y": right})})
    return op("relu", {"X": op("scale", {"X": apart}, {"scale": -1.0, "bias": margin})}, name=name)


def bpr_loss(input: Variable, label: Variable, name: Optional[str] = None) -> Variable:
    """Bayesian personalized ranking of the class `label` [batch, 1] among the scores [batch, classes]: [batch, 1]."""
    return op("bpr_loss", {"X": input, "Label": label}, name=name)


def teacher_student_sigmoid_loss(input: Variable, label: Variable, soft_max_up_bound: float = 15.0,
                                 soft_max_lower_bound: float = -15.0) -> Variable:
    """Log loss of a logit against a click and a teacher's score, both in the label: [batch, 1]."""
    return op("teacher_student_sigmoid_loss", {"X": input, "Label": label},
              {"soft_max_up_bound": soft_max_up_bound, "soft_max_lower_bound": soft_max_lower_bound})


def label_smooth(label: Variable, prior_dist: Optional[Variable] = None, epsilon: float = 0.1, dtype: DTypeLike = "float32",
                 name: Optional[str] = None) -> Variable:
    """(1 - epsilon) * label + epsilon / classes, or + epsilon * prior_dist; the shape of label, [batch, classes]."""
    if dtype_name(dtype) != "float32":
        raise ConfigError("label_smooth: labels are float32, not %s" % (dtype,))
    inputs = {"X": label} if prior_dist is None else {"X": label, "PriorDist": prior_dist}
    return op("label_smooth", inputs, {"epsilon": epsilon}, name=name)


def cos_sim(X: Variable, Y: Variable) -> Variable:
    """The cosine between rows: [batch, 1] of two [batch, n]. No row may be of zeros alone."""
    def along_rows(x: Variable, y: Variable) -> Variable:
        product = op("elementwise_mul", {"X": x, "Y": y})
        return op("reduce_sum", {"X": product}, {"dim": [1], "keep_dim": True})
    lengths = [op("sqrt", {"X": along_rows(of, of)}) for of in (X, Y)]
    return op("elementwise_div", {"X": along_rows(X, Y), "Y": op("elementwise_mul", {"X": lengths[0], "Y": lengths[1]})})
