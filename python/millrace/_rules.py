"""What users give for a rule of parameters: an object whose `text` is the field of a job that says it."""

from __future__ import annotations

from typing import Optional

import numpy as np
from numpy.typing import NDArray


class Rule:
    """Made by the functions and classes of clip, initializer and regularizer."""

    _kind: str

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return "%s(%s)" % (self._kind, self.text)


class Clip(Rule):
    """Of millrace.clip."""

    _kind = "clip"


class Initializer(Rule):
    """Of millrace.initializer."""

    _kind = "initializer"
    _values: Optional[NDArray[np.float32]] = None  # of an array


class Regularizer(Rule):
    """Of millrace.regularizer."""

    _kind = "regularizer"
