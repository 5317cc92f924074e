"""The names of fluid.core that scripts use; each is defined elsewhere."""

from __future__ import annotations

from .errors import EOFException
from .framework import CPUPlace, Scope
from .lod_tensor import LoDTensor
from .reader import init_py_array_feed_queue

__all__ = ["CPUPlace", "EOFException", "LoDTensor", "Scope", "init_py_array_feed_queue"]
