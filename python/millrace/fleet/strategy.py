"""How trainers work together, in the words of Paddle 1 (DistributeTranspilerConfig) and of Paddle 2 (DistributedStrategy).

A strategy says one thing here: whether ranks wait for each other (update: SYNC of docs/cluster.md) or not (ASYNC), or train on
copies that they exchange now and then (GEO). What cut parameters over servers, and sized their queues, is taken and has nothing
to cut; what would train otherwise is refused.
"""

from __future__ import annotations

from typing import Any, TYPE_CHECKING, get_origin, get_type_hints

from .. import _checks
from ..errors import ConfigError

__all__ = ["DistributeTranspilerConfig", "DistributedStrategy", "StrategyFactory"]


class _Settings:
    """Attributes of which each has a type, or one value alone that runs."""

    _taken: dict[str, tuple[Any, type]] = {}  # name: (default, type), of the attributes that a class declares
    _refused: dict[str, tuple[Any, str]] = {}  # name: (default, what to do instead)

    def __init_subclass__(cls) -> None:
        cls._taken = {name: (getattr(cls, name), get_origin(kind) or kind) for name, kind in get_type_hints(cls).items()
                      if not name.startswith("_")}

    def __init__(self) -> None:
        for name, (default, _) in {**self._taken, **self._refused}.items():
            object.__setattr__(self, name, dict(default) if isinstance(default, dict) else default)

    def _check(self) -> None:
        """Looks again at what may have changed within a dict."""
        for name in self._taken:
            setattr(self, name, getattr(self, name))

    if not TYPE_CHECKING:  # which would take any name for that of a setting
        def __setattr__(self, name, value):
            self._assign(name, value)

    def _assign(self, name: str, value: Any) -> None:
        what = "%s.%s" % (type(self).__name__, name)
        if name in self._refused:
            default, instead = self._refused[name]
            if value != default:
                raise ConfigError("%s = %r: %s" % (what, value, instead))
        elif name in self._taken:
            kind = self._taken[name][1]
            if kind is int:
                is_of_kind = _checks.is_int(value) and not isinstance(value, bool)
            else:
                is_of_kind = isinstance(value, kind)
            if not is_of_kind:
                raise ConfigError("%s: a %s, not %r" % (what, kind.__name__, value))
        else:
            raise ConfigError("%s: there is no such setting; there are %s" % (
                what, ", ".join(sorted([*self._taken, *self._refused]))))
        object.__setattr__(self, name, value)

    def _is_sync(self) -> bool:
        raise NotImplementedError

    def _geo_steps(self) -> int:
        raise NotImplementedError

    def _update(self) -> tuple[str, int]:
        """(update, geo_steps) of `dist` in a job."""
        if self._is_sync():
            return "SYNC", 0
        return ("GEO", self._geo_steps()) if self._geo_steps() > 0 else ("ASYNC", 0)

    def __repr__(self) -> str:
        update, steps = self._update()
        return "%s(%s%s)" % (type(self).__name__, update, " every %d batches" % steps if steps else "")


class DistributeTranspilerConfig(_Settings):
    """The strategy of Paddle 1. sync_mode, True unless it is set, has ranks train in step. geo_sgd_mode, with sync_mode False, has
    them exchange every geo_sgd_need_push_nums batches."""

    sync_mode: bool = True
    half_async: bool = False
    runtime_split_send_recv: bool = False
    completely_not_async: bool = False
    slice_var_up: bool = True
    split_method: object = None
    min_block_size: int = 8192
    wait_port: bool = True
    print_log: bool = False
    geo_sgd_mode: bool = False
    geo_sgd_need_push_nums: int = 100

    _refused = {"enable_dc_asgd": (False, "gradients are applied as they come; leave it out"),
                "mode": ("pserver", 'ranks are processes on CPUs; leave it at "pserver"'),
                "collective_mode": (None, "sync_mode = True has ranks train in step; leave it out"),
                "nccl_comm_num": (1, "ranks are processes on CPUs; leave it out"),
                "use_hierarchical_allreduce": (False, "ranks are processes on CPUs; leave it out"),
                "hierarchical_allreduce_inter_nranks": (0, "ranks are processes on CPUs; leave it out")}

    def _check(self) -> None:
        super()._check()
        if self.geo_sgd_mode and self.sync_mode:
            raise ConfigError("DistributeTranspilerConfig: geo_sgd_mode exchanges every few batches, and sync_mode every batch: "
                              "set sync_mode = False")
        if self.geo_sgd_mode and self.geo_sgd_need_push_nums < 1:
            raise ConfigError("DistributeTranspilerConfig.geo_sgd_need_push_nums: batches between two exchanges, 1 or more, not %r"
                              % self.geo_sgd_need_push_nums)

    def _is_sync(self) -> bool:
        return self.sync_mode

    def _geo_steps(self) -> int:
        return self.geo_sgd_need_push_nums if self.geo_sgd_mode else 0


class DistributedStrategy(_Settings):
    """The strategy of Paddle 2. a_sync, True unless it is set, has ranks train at their own pace; False in step.

    a_sync_configs  of its keys k_steps above 0 is geo: batches between two exchanges; the others size queues and threads of
                    Paddle's servers
    """

    a_sync: bool = True
    a_sync_configs: dict[str, int] = {}

    _refused = {name: (False, "it is of collective or GPU training; leave it out") for name in (
        "adaptive_localsgd", "amp", "asp", "auto", "auto_search", "dgc", "elastic", "find_unused_parameters", "fp16_allreduce",
        "gradient_merge", "heter_ccl_mode", "is_fl_ps_mode", "is_with_coordinator", "lamb", "lars", "localsgd", "pipeline", "qat",
        "recompute", "semi_auto", "sharding", "split_data", "sync_batch_norm", "sync_nccl_allreduce", "tensor_parallel",
        "use_hierarchical_allreduce")}
    _refused["adam_d2sum"] = (False, "Adam here is that of the optimizer; leave it out")
    _refused["trainer_desc_configs"] = ({}, "what a run dumps is said in the job of `trainer` (docs/training.md)")
    _refused["sparse_table_configs"] = ({}, "a table is said where it is looked up: embedding(..., accessor=, optimizer=)")
    _refused["fleet_desc_file"] = ("", "a table is said where it is looked up: embedding(..., accessor=, optimizer=)")
    _sizes = ("max_merge_var_num", "send_queue_size", "independent_recv_thread", "min_send_grad_num_before_recv",
              "thread_pool_size", "send_wait_times", "runtime_split_send_recv", "launch_barrier", "lr_decay_steps")
    _flags = ("independent_recv_thread", "runtime_split_send_recv", "launch_barrier")

    def _assign(self, name: str, value: Any) -> None:
        super()._assign(name, value)
        if name == "a_sync_configs":
            for key, given in value.items():
                if key == "k_steps":
                    if not _checks.is_int(given) or isinstance(given, bool) or given < -1:
                        raise ConfigError('DistributedStrategy.a_sync_configs["k_steps"]: batches between two exchanges, or 0, not %r'
                                          % (given,))
                elif key not in self._sizes:
                    raise ConfigError("DistributedStrategy.a_sync_configs: there is no %r here; there are k_steps, %s" % (
                        key, ", ".join(self._sizes)))
                elif key in self._flags:
                    _checks.truth('DistributedStrategy.a_sync_configs["%s"]' % key, given)
                else:
                    _checks.whole('DistributedStrategy.a_sync_configs["%s"]' % key, given, -1)

    def _is_sync(self) -> bool:
        return not self.a_sync

    def _geo_steps(self) -> int:
        return max(0, self.a_sync_configs.get("k_steps", 0))


class StrategyFactory:
    """Makes strategies by the names of Paddle 1.7 and 1.8."""

    @staticmethod
    def create_sync_strategy() -> DistributeTranspilerConfig:
        """Ranks train in step."""
        return DistributeTranspilerConfig()

    @staticmethod
    def create_async_strategy() -> DistributeTranspilerConfig:
        """Ranks train at their own pace."""
        made = DistributeTranspilerConfig()
        made.sync_mode = False
        return made

    @staticmethod
    def create_half_async_strategy() -> DistributeTranspilerConfig:
        """The same."""
        return StrategyFactory.create_async_strategy()

    @staticmethod
    def create_geo_strategy(update_frequency: int = 100) -> DistributeTranspilerConfig:
        """Ranks train on copies, and exchange how these have moved every so many batches."""
        made = StrategyFactory.create_async_strategy()
        made.geo_sgd_mode = True
        made.geo_sgd_need_push_nums = update_frequency
        made._check()
        return made
