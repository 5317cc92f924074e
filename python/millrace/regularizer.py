"""Penalties on the size of parameters, added to their gradients after clipping: for an optimizer's `regularization`, or the
`regularizer` of one parameter's ParamAttr, which goes before it."""

from __future__ import annotations

from typing import SupportsFloat

from ._rules import Regularizer

__all__ = ["L1Decay", "L2Decay", "L1DecayRegularizer", "L2DecayRegularizer"]


class L1Decay(Regularizer):
    """g + regularization_coeff * sign(w)"""

    def __init__(self, regularization_coeff: SupportsFloat = 0.0) -> None:
        super().__init__("l1: %r" % float(regularization_coeff))


class L2Decay(Regularizer):
    """g + regularization_coeff * w"""

    def __init__(self, regularization_coeff: SupportsFloat = 0.0) -> None:
        super().__init__("l2: %r" % float(regularization_coeff))


L1DecayRegularizer = L1Decay
L2DecayRegularizer = L2Decay
