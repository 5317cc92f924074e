"""Checkpoints of programs that are run from Python, in the folders that `trainer` writes and resumes from."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, Optional, SupportsIndex
import warnings

from . import _checks
from ._types import Path
from .errors import ConfigError, MillraceWarning
from .executor import Executor, _program, _scope
from .framework import Program, Scope

__all__ = ["Checkpoint", "load_checkpoint", "save_checkpoint"]


class Checkpoint(NamedTuple):
    """What load_checkpoint went on from."""

    folder: str
    step: int  #: batches trained
    examples: int  #: rows trained
    trainer_args: Any  #: as they were given to save_checkpoint


def save_checkpoint(executor: Executor, checkpoint_dir: Path, main_program: Optional[Program] = None, trainer_args: Any = None,
                    max_num_checkpoints: SupportsIndex = 3, scope: Optional[Scope] = None) -> None:
    """Writes CHECKPOINT_DIR/step-NNNNNNNNNNNN: parameters, optimizer state, tables that grow, with theirs, and the step.

    It appears whole or not at all. The newest max_num_checkpoints stay. trainer_args is what the caller wants back, {"epoch": 3},
    as JSON has it. As in `trainer`, those of an earlier run go, unless this one went on from one of them by load_checkpoint.
    """
    program = _program(main_program)
    try:
        args = json.dumps(trainer_args, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError("save_checkpoint: trainer_args: %s" % error) from None
    _scope(scope)._scope.save_checkpoint(
        program.serialize(), _checks.path("save_checkpoint: checkpoint_dir", checkpoint_dir),
        _checks.whole("save_checkpoint: max_num_checkpoints", max_num_checkpoints, 1), program.random_seed,
        program._root()._key, args)


def load_checkpoint(executor: Executor, checkpoint_dir: Path, main_program: Optional[Program] = None,
                    scope: Optional[Scope] = None) -> Optional[Checkpoint]:
    """Puts the newest whole checkpoint of a folder, or the one that is the folder, into the scope: a Checkpoint, or None when
    there is none. A startup program need not have run.

    Damaged ones are passed over with a MillraceWarning; when all are, that is a DataError. One of another program is a
    ConfigError that says what differs. Those of `trainer` do, too, for the program that it trained.
    """
    program = _program(main_program)
    folder = _checks.path("load_checkpoint: checkpoint_dir", checkpoint_dir)
    found = _scope(scope)._scope.load_checkpoint(program.serialize(), folder, program._root()._key)
    if found is None:
        return None
    for refused in found["refused"]:
        warnings.warn(refused, MillraceWarning, stacklevel=2)
    args = json.loads(found["trainer_args"]) if found["trainer_args"] else None
    return Checkpoint(found["folder"], found["step"], found["examples"], args)
