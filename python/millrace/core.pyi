# Made by scripts/gen_stubs.py.
from .errors import EOFException as EOFException
from .framework import CPUPlace as CPUPlace, Scope as Scope
from .lod_tensor import LoDTensor as LoDTensor
from .reader import init_py_array_feed_queue as init_py_array_feed_queue
__all__ = ["CPUPlace", "EOFException", "LoDTensor", "Scope", "init_py_array_feed_queue"]
