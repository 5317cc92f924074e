# Made by scripts/gen_stubs.py.
__all__ = ["L1Decay", "L2Decay", "L1DecayRegularizer", "L2DecayRegularizer"]
class _Regularizer:
    def __init__(self, text: str) -> None: ...
    text: str
class L1Decay(_Regularizer):
    def __init__(self, regularization_coeff: float = ...) -> None: ...
class L2Decay(_Regularizer):
    def __init__(self, regularization_coeff: float = ...) -> None: ...
L1DecayRegularizer = L1Decay
L2DecayRegularizer = L2Decay
