"""What trainers do together beside training: fleet.util of Paddle 2, and FleetUtil of Paddle 1, in one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from .. import _checks, _output, _ranks
from .._instead import Instead
from .._types import T
from ..errors import ConfigError, NotFoundError
from ..framework import Scope, global_scope
from . import metrics
from .metrics import Counts
from .role_maker import RoleMakerBase

__all__ = ["FleetUtil"]


_DONE = "a job of `trainer` with `incremental` writes a model a day, and runs a command behind each (docs/training.md)"
_INSTEAD = {
    **dict.fromkeys(["write_model_donefile", "write_xbox_donefile", "write_cache_donefile", "get_last_save_xbox_base",
                     "get_last_save_xbox", "get_last_save_model", "get_online_pass_interval", "save_batch_model", "save_delta_model",
                     "save_xbox_base_model", "save_cache_model", "save_cache_base_model"], _DONE),
    **dict.fromkeys(["save_model", "save_fleet_model", "save_paddle_params"], "fleet.save_persistables(executor, dirname)"),
    **dict.fromkeys(["load_model", "load_fleet_model"], "fleet.load_model(path)"),
    "load_fleet_model_one_table": "fleet.load_one_table(table_id, path)",
    "save_paddle_inference_model": "fleet.save_inference_model(executor, dirname, names, targets)",
    "pull_all_dense_params": "dense parameters lie in the scope",
    **dict.fromkeys(["get_global_metrics", "print_global_metrics"], "auc, mae, mse, rmse and acc are each a function of it"),
    **dict.fromkeys(["program_type_trans", "load_program", "draw_from_program_file", "draw_from_program", "check_two_programs",
                     "check_vars_and_dump", "parse_program_proto"], "str(program) and program.ops() show a program"),
    "get_heter_file_shard": "there are trainers alone: get_file_shard(files)",
}


class FleetUtil(Instead):
    """Sums, barriers and metrics over all trainers, and words of trainer 0 alone. It also has the functions of fleet.metrics."""

    _what, _instead = "fleet.util", _INSTEAD

    sum = staticmethod(metrics.sum)
    max = staticmethod(metrics.max)
    min = staticmethod(metrics.min)
    auc = staticmethod(metrics.auc)
    mae = staticmethod(metrics.mae)
    mse = staticmethod(metrics.mse)
    rmse = staticmethod(metrics.rmse)
    acc = staticmethod(metrics.acc)

    def __init__(self, mode: str = "pslib") -> None:
        if mode not in ("pslib", "transpiler"):
            raise ConfigError('FleetUtil: mode is "pslib" or "transpiler", which are one here, not %r' % (mode,))

    def all_reduce(self, input: ArrayLike, mode: str = "sum", comm_world: str = "worker") -> np.ndarray:
        """The "sum", "max" or "min" of each element over the trainers, in the shape and type of the input; a sum of whole numbers has 64
        bits."""
        _trainers("all_reduce", comm_world)
        if mode not in ("sum", "max", "min"):
            raise ConfigError('all_reduce: mode is "sum", "max" or "min", not %r' % (mode,))
        return metrics._of_all("all_reduce: input", input, None, mode)

    def all_gather(self, input: T, comm_world: str = "worker") -> list[T]:
        """A list of what each trainer brings, any objects that pickle takes, by their numbers."""
        _trainers("all_gather", comm_world)
        return RoleMakerBase().all_gather(input)

    def barrier(self, comm_world: str = "worker") -> None:
        """Returns when all trainers have called it."""
        _trainers("barrier", comm_world)
        _ranks.barrier()

    def get_file_shard(self, files: Iterable[T]) -> list[T]:
        """The files of this trainer: of n files each has n / trainers one after the other, the first ones one more."""
        files = _checks.listed("get_file_shard", files, "files")
        share, more = divmod(len(files), _ranks.size())
        rank = _ranks.rank()
        begin = rank * share + min(rank, more)
        return files[begin:begin + share + (rank < more)]

    def print_on_rank(self, message: object, rank_id: SupportsIndex) -> None:
        """A line on the standard output of one trainer."""
        if _ranks.rank() == _checks.whole("print_on_rank: rank_id", rank_id, 0):
            _output.print("%s\n" % (message,))

    def rank0_print(self, s: object) -> None:
        """A line on the standard output of trainer 0."""
        self.print_on_rank(s, 0)

    def rank0_info(self, s: object) -> None:
        """A line in the log of trainer 0."""
        if _ranks.rank() == 0:
            _output.log("%s\n" % (s,))

    rank0_error = rank0_info

    def set_zero(self, var_name: str, scope: Optional[Scope] = None, place: object = None, param_type: str = "int64") -> None:
        """Begins a count anew, such as the states of layers.auc: writes zeros."""
        scope = _scope("set_zero", scope)
        value = scope.get(_checks.text("set_zero: var_name", var_name))
        if value is None:
            raise NotFoundError('set_zero: the scope has no variable "%s"' % var_name)
        if not isinstance(value, np.ndarray) or str(value.dtype) != param_type:
            raise ConfigError('set_zero: "%s" is %s, not %s' % (var_name, getattr(value, "dtype", "a table"), param_type))
        scope.set(var_name, np.zeros_like(value))

    def get_global_auc(self, scope: Optional[Scope] = None, stat_pos: Counts = "auc_stat_pos_1",
                       stat_neg: Counts = "auc_stat_neg_1") -> float:
        """The AUC of all trainers by the states of layers.auc, which names them (auc_states[2] and [3])."""
        return metrics.auc(stat_pos, stat_neg, _scope("get_global_auc", scope))

    def print_global_auc(self, scope: Optional[Scope] = None, stat_pos: Counts = "auc_stat_pos_1",
                         stat_neg: Counts = "auc_stat_neg_1", print_prefix: str = "") -> None:
        """The same as a line of trainer 0."""
        value = self.get_global_auc(scope, stat_pos, stat_neg)
        self.rank0_print("%s global auc = %s" % (print_prefix, value))

    def __repr__(self) -> str:
        return "FleetUtil()"


def _trainers(call: str, comm_world: str) -> None:
    if comm_world not in ("worker", "all"):
        raise ConfigError('%s: comm_world is "worker", or "all", which is the same: there are no servers; not %r' % (call, comm_world))


def _scope(call: str, given: Optional[Scope]) -> Scope:
    return global_scope() if given is None else _checks.one_of(call + ": scope", given, Scope)
