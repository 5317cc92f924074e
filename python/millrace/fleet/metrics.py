"""Metrics over all trainers.

Each takes arrays of what a trainer counted by itself, or a Variable, or its name, of the scope: of all trainers already where the
program trained it on several, since ranks that meet make persistable variables alike. What a trainer has counted alone since,
by exe.run or by infer_from_dataset over files of its own, is added up over the trainers, which all make the call then.
"""

from __future__ import annotations

import math
from typing import Optional, Union

import numpy as np
from numpy.typing import ArrayLike

from .. import _checks, _ranks
from .._settings import Named
from ..errors import ConfigError, NotFoundError
from ..framework import Scope, TableRows, Variable, global_scope

__all__ = ["acc", "auc", "mae", "max", "min", "mse", "rmse", "sum"]

Counts = Union[Named, ArrayLike]


def sum(input: Counts, scope: Optional[Scope] = None, util: object = None) -> np.ndarray:
    """The sum of each element over the trainers."""
    return _of_all("sum: input", input, scope, "sum")


def max(input: Counts, scope: Optional[Scope] = None, util: object = None) -> np.ndarray:
    """The largest of each element."""
    return _of_all("max: input", input, scope, "max")


def min(input: Counts, scope: Optional[Scope] = None, util: object = None) -> np.ndarray:
    """The least of each element."""
    return _of_all("min: input", input, scope, "min")


def auc(stat_pos: Counts, stat_neg: Counts, scope: Optional[Scope] = None, util: object = None) -> float:
    """The AUC of what all trainers counted in the buckets of layers.auc, its last two states; 0.5 where one class was not seen."""
    pos, neg = (_of_all("auc: " + what, given, scope, "sum").astype(float).reshape(-1)[::-1]
                for what, given in (("stat_pos", stat_pos), ("stat_neg", stat_neg)))
    if pos.size != neg.size:
        raise ConfigError("auc: stat_pos has %d buckets, and stat_neg %d" % (pos.size, neg.size))
    above = np.cumsum(pos) - pos / 2  # positives of higher buckets, and half of those of the same
    pairs = pos.sum() * neg.sum()
    return float((above * neg).sum() / pairs) if pairs else 0.5


def mae(abserr: Counts, total_ins_num: Counts, scope: Optional[Scope] = None, util: object = None) -> float:
    """The mean of absolute errors, of their sum and the number of examples."""
    return _quotient("mae", ("abserr", abserr), ("total_ins_num", total_ins_num), scope)


def mse(sqrerr: Counts, total_ins_num: Counts, scope: Optional[Scope] = None, util: object = None) -> float:
    """The mean of squared errors."""
    return _quotient("mse", ("sqrerr", sqrerr), ("total_ins_num", total_ins_num), scope)


def rmse(sqrerr: Counts, total_ins_num: Counts, scope: Optional[Scope] = None, util: object = None) -> float:
    """The square root of mse."""
    return math.sqrt(_quotient("rmse", ("sqrerr", sqrerr), ("total_ins_num", total_ins_num), scope))


def acc(correct: Counts, total: Counts, scope: Optional[Scope] = None, util: object = None) -> float:
    """The share of what is right, of two counts."""
    return _quotient("acc", ("correct", correct), ("total", total), scope)


def _quotient(call: str, part: tuple[str, Counts], whole: tuple[str, Counts], scope: Optional[Scope]) -> float:
    of, by = (float(_of_all("%s: %s" % (call, name), given, scope, "sum").reshape(-1)[0]) for name, given in (part, whole))
    if by == 0:
        raise ConfigError("%s: %s is 0: nothing was counted yet" % (call, whole[0]))
    return of / by


def _of_all(what: str, given: Counts, scope: Optional[Scope], op: str) -> np.ndarray:
    if isinstance(given, (Variable, str)):
        name = given if isinstance(given, str) else given.name
        scope = global_scope() if scope is None else _checks.one_of(what.split(":")[0] + ": scope", scope, Scope)
        value = scope._total(name, op)
        if value is None:
            raise NotFoundError('%s: the scope has no variable "%s": it holds what is persistable, as create_global_var(..., '
                                "persistable=True) and the states of layers.auc are" % (what, name))
        if isinstance(value, TableRows):
            raise ConfigError('%s: "%s" is a table' % (what, name))
        return value
    try:
        array = np.asarray(_checks.unmasked(what, given))
    except ValueError as error:
        raise ConfigError("%s: %s" % (what, error)) from None
    if array.dtype.kind not in "biuf":
        raise ConfigError("%s: numbers, a Variable or its name, not %r" % (what, given))
    return np.asarray(_ranks.allreduce(array.astype(int) if array.dtype.kind == "b" else array, op))
