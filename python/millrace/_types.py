"""Types of arguments and results that several modules have. Frames and tensors of other packages, which need not be installed,
are what is asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import os
from typing import Any, Protocol, SupportsIndex, TypedDict, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")
Path = Union[str, os.PathLike[str]]
Truth = Union[bool, np.bool_, SupportsIndex]  # 0 and 1 stand for one


class ArrowStream(Protocol):
    """A frame, table or reader of polars, pyarrow or pandas, or of another package that speaks Arrow's C stream interface."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...


class PandasFrame(Protocol):
    """A pandas.DataFrame, without pyarrow as well."""

    @property
    def columns(self) -> Any: ...

    @property
    def dtypes(self) -> Any: ...

    @property
    def iloc(self) -> Any: ...


class LazyFrame(Protocol):
    """A polars.LazyFrame."""

    def collect(self) -> Any: ...


class DLPack(Protocol):
    """A tensor of another package."""

    def __dlpack__(self) -> Any: ...


# Values by column, or by variable: arrays, tensors and lists, for which type checkers find no common type but object. Keys of
# a Feed are Variables or names, and a Mapping of either would be none of both.
Columns = Mapping[str, object]
Feed = Mapping[Any, object]
Rows = Union[ArrowStream, PandasFrame, Columns, np.ndarray, Path]  # an array has named fields
Data = Union[Rows, Iterable[Rows]]
Table = Union[ArrowStream, PandasFrame, LazyFrame, dict[str, Any], ArrayLike]


class Meta(TypedDict):
    """What is known of a variable of a program."""

    dtype: str
    shape: tuple[int, ...]
    lod_level: int
    persistable: bool


class OpInfo(TypedDict):
    """What an operator is; millrace.op_info has the fields."""

    doc: str
    inputs: list[tuple[str, str, bool, bool]]
    outputs: list[tuple[str, str, bool, bool]]
    attrs: list[tuple[str, str, Any]]


# Scores, how many zeros were left out, and warnings by what is said once.
Scored = tuple[NDArray[np.float32], int, dict[str, str]]
