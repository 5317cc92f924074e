# Made by scripts/gen_stubs.py.
import os
from typing import Any, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Union
import numpy as np
__all__ = ["Predictor", "Slot"]
class Slot(NamedTuple):
    name: str
    dtype: str
    is_dense: bool
    width: int
    is_needed: bool
class Predictor:
    def __init__(self, folder: Any, feed: Union[str, Sequence[str]] = ..., prediction: str = ..., data_desc: Optional[str] = ...) -> None: ...
    def __reduce__(self) -> Any: ...
    def predict_lines(self, lines: Any, without: Sequence[str] = ...) -> np.ndarray: ...
    def predict(self, columns: Any, by_slot: bool = ...) -> np.ndarray: ...
    slots: List[Slot]
    predictions: List[str]
