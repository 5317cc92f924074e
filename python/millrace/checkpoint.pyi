# Made by scripts/gen_stubs.py.
import os
from typing import Any, NamedTuple, Optional, Union
from .framework import Program, Scope
__all__ = ["Checkpoint", "load_checkpoint", "save_checkpoint"]
class Checkpoint(NamedTuple):
    folder: str
    step: int
    examples: int
    trainer_args: Any
def save_checkpoint(executor: Any, checkpoint_dir: Union[str, os.PathLike[str]], main_program: Any = ..., trainer_args: Any = ..., max_num_checkpoints: int = ..., scope: Optional[Scope] = ...) -> None: ...
def load_checkpoint(executor: Any, checkpoint_dir: Union[str, os.PathLike[str]], main_program: Any = ..., scope: Optional[Scope] = ...) -> Optional[Checkpoint]: ...
