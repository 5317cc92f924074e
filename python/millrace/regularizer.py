"""Penalties on the size of parameters, added to their gradients after clipping: for an optimizer's `regularization`, or the
`regularizer` of one parameter's ParamAttr, which goes before it."""

__all__ = ["L1Decay", "L2Decay", "L1DecayRegularizer", "L2DecayRegularizer"]


class _Regularizer:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return "regularizer(%s)" % self.text


class L1Decay(_Regularizer):
    """g + regularization_coeff * sign(w)"""

    def __init__(self, regularization_coeff=0.0):
        super().__init__("l1: %r" % float(regularization_coeff))


class L2Decay(_Regularizer):
    """g + regularization_coeff * w"""

    def __init__(self, regularization_coeff=0.0):
        super().__init__("l2: %r" % float(regularization_coeff))


L1DecayRegularizer = L1Decay
L2DecayRegularizer = L2Decay
