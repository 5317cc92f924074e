"""Paddle's fleet API without servers: trainers are ranks, and each rank stores a shard of every table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import os
import sys
from types import ModuleType
from typing import Any, NoReturn, Optional, SupportsIndex, Union

import numpy as np
from numpy.typing import ArrayLike

from .. import _checks, _output, _ranks
from .._instead import Instead
from .._settings import Named
from .._types import Path, T
from ..errors import ConfigError
from ..executor import Executor, Slots, Targets, _program, _scope, load_persistables, save_inference_model, save_persistables
from ..framework import Program, Scope, Variable, default_startup_program
from ..optimizer import Minimized, Optimizer
from . import metrics
from .role_maker import MPISymetricRoleMaker, PaddleCloudRoleMaker, RoleMakerBase
from .strategy import DistributedStrategy, DistributeTranspilerConfig, StrategyFactory
from .fleet_util import FleetUtil

__all__ = ["DistributedOptimizer", "Fleet"]

Strategy = Union[DistributeTranspilerConfig, DistributedStrategy]
Losses = Union[Variable, Sequence[Variable]]

# Rules of which ranks can train copies of rows.
_ADDED_UP = ("sgd", "adagrad", "ftrl")
_BY_SAVE = "save_persistables writes dense parameters and tables, all of them"
_BY_SCOPE = "a run on a new scope begins anew: with millrace.scope_guard(millrace.Scope())"
_BY_TRAINER = "models with the rows of a mode, of each day, come from a job of `trainer` with incremental.save_mode (docs/tables.md)"
_BY_CPUS = "it is of collective or GPU training, and ranks are processes on CPUs"
# What scripts of Paddle call and is not here: what to do instead.
_INSTEAD = {
    **dict.fromkeys(["save", "save_dense_params", "save_one_table", "save_multi_table_one_path"], _BY_SAVE),
    **dict.fromkeys(["clear_model", "clear_one_table", "revert", "confirm"], _BY_SCOPE),
    **dict.fromkeys(["save_cache_model", "save_cache_table", "save_model_with_whitelist", "load_pslib_whitelist", "set_date",
                     "check_save_pre_patch_done"], _BY_TRAINER),
    "load_inference_model": "millrace.load_inference_model(dirname) gives a saved model as a program",
    "shrink_dense_table": "statistics of data_norm are those of the program; nothing shrinks them",
    "set_file_num_one_shard": "files of a table are cut by their size",
    "set_pull_local_thread_num": "rows lie in the process; train_from_dataset(thread=) says how many workers train",
    "train_from_dataset": "fleet._executor.train_from_dataset(program=fleet.main_program, dataset=...) trains",
    **dict.fromkeys(["init_coordinator", "make_fl_strategy", "get_fl_client", "is_coordinator", "start_heter_trainer", "is_xpu"],
                    "there are trainers alone"),
    "all_reduce": "fleet.util.all_reduce(input)",
    "end_pass": "there is no GPU to bring rows back from; leave it out",
    **dict.fromkeys(["allreduce_perf", "reduce_perf", "broadcast_perf", "allgather_perf", "reduce_scatter_perf", "distributed_model",
                     "get_hybrid_communicate_group", "get_hybrid_parallel_topology", "amp_init", "qat_init", "get_loss_scaling", "node_num",
                     "local_rank", "local_device_ids", "world_device_ids", "collective_perf"],
                    _BY_CPUS),
    **dict.fromkeys(["CommunicateTopology", "HybridCommunicateGroup", "distributed_scaler", "auto", "BoxPSDataset", "rank_in_node"],
                    _BY_CPUS),
    "rank": "fleet.worker_index()",
    **dict.fromkeys(["nranks", "world_size"], "fleet.worker_num()"),
    **dict.fromkeys(["set_log_level", "get_log_level_code", "get_log_level_name"],
                    'logging.getLogger("millrace") has what is said; set its level'),
    "utils": "Python has files (os, shutil), fleet.util sums and shares, and dataset.set_hdfs_config those that are behind a command",
    "data_generator": "import millrace.data_generator; its classes are fleet.MultiSlotDataGenerator and MultiSlotStringDataGenerator",
    "dataset": "millrace.dataset; its classes are fleet.InMemoryDataset and fleet.QueueDataset",
}


class Fleet(Instead):
    """The trainers of a job, including this process. The only instance is `fleet`; millrace.fleet also provides its functions.

    Every rank started by mpirun trains and stores a shard of every table. A single process trains everything.
    """

    _what, _instead = "fleet", _INSTEAD

    def __init__(self) -> None:
        self._role_maker: Optional[RoleMakerBase] = None
        self._made_executor: Optional[Executor] = None
        self._strategy: Optional[Strategy] = None
        self._optimizer: Optional[DistributedOptimizer] = None
        self._main_program: Optional[Program] = None
        self._startup_program: Optional[Program] = None
        self._util = FleetUtil()

    def __repr__(self) -> str:
        return "fleet(%s)" % ("before init" if self._role_maker is None else self._role_maker.to_string())

    # Who is there.

    def init(self, role_maker: Optional[RoleMakerBase] = None, is_collective: bool = False,
             strategy: Optional[Strategy] = None) -> Fleet:
        """Sets the role of this process. Raises ConfigError if several trainers were started without mpirun.

        role_maker     from millrace.fleet.role_maker; default: PaddleCloudRoleMaker if TRAINING_ROLE is set or is_collective,
                       else MPISymetricRoleMaker
        is_collective  True: there are no servers, which is always the case here
        strategy       default strategy of distributed_optimizer
        """
        if role_maker is None:
            by_environment = is_collective or "TRAINING_ROLE" in os.environ
            role_maker = PaddleCloudRoleMaker(is_collective) if by_environment else MPISymetricRoleMaker()
        _checks.one_of("fleet.init: role_maker", role_maker, RoleMakerBase)
        if strategy is not None:
            self._strategy = _checked(strategy)
        role_maker.generate_role()
        self._role_maker = role_maker
        self._made_executor = Executor()
        return self

    def is_first_worker(self) -> bool:
        """Returns whether this process is trainer 0."""
        return self._role("is_first_worker").is_first_worker()

    def worker_index(self) -> int:
        """Returns the index of the trainer, its rank."""
        return self._role("worker_index").worker_index()

    def worker_num(self) -> int:
        """Returns the number of trainers."""
        return self._role("worker_num").worker_num()

    def is_worker(self) -> bool:
        """Returns whether this process is a trainer."""
        return self._role("is_worker").is_worker()

    def worker_endpoints(self, to_string: bool = False) -> Union[str, list[str]]:
        """Returns the trainer addresses of the role maker, which are not used."""
        return _joined(self._role("worker_endpoints").get_trainer_endpoints(), to_string)

    def is_server(self) -> bool:
        """Returns whether this process was started as a Paddle server."""
        return self._role("is_server").is_server()

    def server_num(self) -> int:
        """Returns the number of servers in the role maker, which are not used."""
        return self._role("server_num").server_num()

    def server_index(self) -> int:
        """Returns the server index of this process."""
        return self._role("server_index").server_index()

    def server_endpoints(self, to_string: bool = False) -> Union[str, list[str]]:
        """Returns the server addresses of the role maker, which are not used."""
        return _joined(self._role("server_endpoints").get_pserver_endpoints(), to_string)

    def split_files(self, files: Iterable[T]) -> list[T]:
        """Returns the files of this trainer, assigned by util.get_file_shard."""
        return self.util.get_file_shard(files)

    def barrier_worker(self) -> None:
        """Returns when all trainers have called it."""
        self._role("barrier_worker")
        _ranks.barrier()

    def all_reduce_worker(self, input: ArrayLike, output: np.ndarray) -> None:
        """Sums the one-dimensional arrays of all trainers into `output`."""
        self._role("all_reduce_worker")
        _ranks.write_to(output, self.util.all_reduce(input), "fleet.all_reduce_worker")

    @property
    def util(self) -> FleetUtil:
        """Sums and metrics over all trainers: a FleetUtil."""
        return self._util

    @property
    def metrics(self) -> ModuleType:
        """The module millrace.fleet.metrics: sums, AUC and errors over all trainers."""
        return metrics

    # Life cycle.

    def init_worker(self, scopes: object = None) -> None:
        """Waits for the other trainers."""
        if self._role("init_worker").is_server():
            raise ConfigError("fleet.init_worker: this process was started as a SERVER; a WORKER calls it")
        _ranks.barrier()

    def init_server(self, model_dir: Optional[Path] = None, **kwargs: object) -> None:
        """Makes a trainer start from a folder: whenever exe.run(fleet.startup_program) initializes parameters, those of the
        folder replace them. The folder comes from save_persistables or save_inference_model. The latter contains only weights,
        so optimizer state starts over. Does nothing without model_dir. Raises ConfigError on a server with model_dir."""
        is_server = self._role("init_server").is_server()
        for name in kwargs:
            if name != "var_names" or kwargs[name] is not None:
                raise ConfigError("fleet.init_server: %s: a folder is loaded whole; load_one_table loads a table" % name)
        if not model_dir:
            return
        folder = _checks.path("fleet.init_server: model_dir", model_dir)
        if is_server:
            raise ConfigError('fleet.init_server("%s"): a process that was started as a SERVER has no rows here, and trainers would start '
                              'from new ones: call it in front of "if fleet.is_server()", and start no servers' % folder)
        if not os.path.isdir(folder):
            raise ConfigError('fleet.init_server("%s"): there is no such folder' % folder)
        if os.path.isdir(os.path.join(folder, "000")):
            raise ConfigError('fleet.init_server("%s"): servers of Paddle wrote it, a folder for each table, and dense parameters without '
                              "their names: behind exe.run(fleet.startup_program) read the rows of each table by fleet.load_one_table("
                              '"its name", "%s")' % (folder, os.path.join(folder, "000")))
        self._minimized("init_server")._initial_folder = folder

    def run_server(self) -> NoReturn:
        """Logs that there is nothing to serve and exits the process with code 0, because the script continues after this call
        only when training is over."""
        if not self._role("run_server").is_server():
            raise ConfigError("fleet.run_server: this process is a trainer; ask fleet.is_server() first")
        _output.log("fleet.run_server: there is nothing to serve: each trainer has a part of every table; servers need not be "
                    "started\n")
        sys.exit(0)

    def stop_worker(self) -> None:
        """Waits until all trainers have called it. Trained variables stay in their scopes."""
        if self._role("stop_worker").is_server():
            raise ConfigError("fleet.stop_worker: this process was started as a SERVER; a WORKER calls it")
        _ranks.barrier()

    def _set_client_communication_config(self, request_timeout_ms: SupportsIndex, connect_timeout_ms: SupportsIndex,
                                         max_retry: SupportsIndex) -> None:
        """Accepted and ignored: ranks use MPI, which detects lost ranks, and do not retry."""
        for name, value in (("request_timeout_ms", request_timeout_ms), ("connect_timeout_ms", connect_timeout_ms),
                            ("max_retry", max_retry)):
            _checks.whole("fleet._set_client_communication_config: " + name, value, 0)

    # Training.

    def distributed_optimizer(self, optimizer: Optimizer, strategy: Optional[Strategy] = None) -> DistributedOptimizer:
        """Returns an optimizer whose minimize sets fleet.main_program and fleet.startup_program.

        strategy  a DistributeTranspilerConfig, a DistributedStrategy or one from StrategyFactory; default: that of init,
                  else asynchronous training
        """
        self._role("distributed_optimizer")
        _checks.one_of("fleet.distributed_optimizer: optimizer", optimizer, Optimizer, "an")
        if strategy is None:
            strategy = self._strategy or StrategyFactory.create_async_strategy()
        self._optimizer = DistributedOptimizer(self, optimizer, _checked(strategy))
        return self._optimizer

    def minimize(self, loss: Variable, startup_program: Optional[Program] = None,
                 parameter_list: Optional[Iterable[Named]] = None,
                 no_grad_set: Optional[Iterable[Named]] = None) -> Minimized:
        """Minimizes with the optimizer of the last distributed_optimizer call, as in Paddle 2."""
        if self._optimizer is None:
            raise ConfigError("fleet.minimize: call fleet.distributed_optimizer(optimizer, strategy) first")
        return self._optimizer.minimize(loss, startup_program=startup_program, parameter_list=parameter_list, no_grad_set=no_grad_set)

    @property
    def main_program(self) -> Program:
        """The minimized program."""
        return self._minimized("main_program")

    @property
    def startup_program(self) -> Program:
        """The startup program of main_program."""
        self._minimized("startup_program")
        assert self._startup_program is not None
        return self._startup_program

    @property
    def _executor(self) -> Executor:
        if self._made_executor is None:
            raise ConfigError("fleet._executor: call fleet.init(role_maker) first")
        return self._made_executor

    # Saving and loading.

    def save_persistables(self, executor: Optional[Executor], dirname: Path, main_program: Optional[Program] = None,
                          mode: int = 0, scope: Optional[Scope] = None) -> None:
        """Calls millrace.save_persistables on the minimized program, which saves everything needed to resume. Trainer 0 writes;
        other trainers do not need to call it."""
        self._all("save_persistables", mode)
        save_persistables(executor, dirname, self._given("save_persistables", main_program), scope)

    def save_model(self, dirname: Path, mode: int = 0, **kwargs: object) -> None:
        """Same as save_persistables, with the name used by other modes of fleet."""
        _nothing_else("save_model", kwargs)
        self.save_persistables(None, dirname, mode=mode)

    def load_model(self, path: Path, mode: int = 0, **kwargs: object) -> None:
        """Calls millrace.load_persistables on the minimized program."""
        _nothing_else("load_model", kwargs)
        self._all("load_model", mode)
        load_persistables(None, path, self._minimized("load_model"))

    def load_one_table(self, table_id: Union[str, SupportsIndex], model_path: Path, mode: int = 0,
                       scope: Optional[Scope] = None, **kwargs: object) -> None:
        """Loads one table of the minimized program, with its optimizer state, from a folder written by save_persistables.
        An empty table can also be loaded from a table folder saved by Paddle servers (PATH/000).

        table_id  the name of the table, or its index in the order in which embedding layers named the tables
        """
        _nothing_else("load_one_table", kwargs)
        self._all("load_one_table", mode)
        program = self._minimized("load_one_table")
        _scope(scope)._scope.load_table(program.serialize(), self._table("load_one_table", program, table_id),
                                        _checks.path("fleet.load_one_table: model_path", model_path))

    def shrink_sparse_table(self) -> dict[str, tuple[int, int]]:
        """Ends a day for tables with an accessor: calls shrink() on the global scope."""
        self._role("shrink_sparse_table")
        return _scope(None).shrink()

    def shrink(self, threshold: None = None) -> dict[str, tuple[int, int]]:
        """Same as shrink_sparse_table, with Paddle 2's name."""
        if threshold is not None:
            raise ConfigError("fleet.shrink: threshold: rows go by delete_threshold of their accessor; leave it out")
        return self.shrink_sparse_table()

    def print_table_stat(self, table_id: Union[str, SupportsIndex], pass_id: object = None, threshold: object = None) -> None:
        """Prints rows and bytes of a growing table, over all trainers, on trainer 0."""
        if threshold:
            raise ConfigError("fleet.print_table_stat: threshold: all rows are counted; leave it out")
        program = self._minimized("print_table_stat")
        name = self._table("print_table_stat", program, table_id)
        rows, size = _scope(None)._scope.table_size(name)
        number = program._tables.index(name)
        self.util.rank0_print('table %d "%s"%s: %d rows, %d bytes' % (
            number, name, "" if pass_id is None else ", pass %s" % pass_id, rows, size))

    def save_inference_model(self, executor: Optional[Executor], dirname: Path, feeded_var_names: Slots,
                             target_vars: Targets,
                             main_program: Optional[Program] = None, export_for_deployment: bool = True, mode: int = 0,
                             pooled: Iterable[Named] = (), scope: Optional[Scope] = None) -> None:
        """Calls millrace.save_inference_model on the minimized program. Predictor scores with the first target that has one row
        per example; load_inference_model returns all targets. `pooled` adds the inputs that an online caller feeds."""
        if not export_for_deployment:
            raise ConfigError("fleet.save_inference_model: export_for_deployment=False: a model is written to predict with; "
                              "save_persistables writes what training goes on from")
        self._all("save_inference_model", mode)
        save_inference_model(dirname, feeded_var_names, target_vars, executor, self._given("save_inference_model", main_program), scope,
                             pooled)

    def _role(self, call: str) -> RoleMakerBase:
        if self._role_maker is None:
            raise ConfigError("fleet.%s: call fleet.init(role_maker) first" % call)
        return self._role_maker

    def _minimized(self, call: str) -> Program:
        if self._main_program is None:
            raise ConfigError("fleet.%s: call fleet.distributed_optimizer(optimizer, strategy).minimize(loss) first" % call)
        return self._main_program

    def _given(self, call: str, program: Optional[Program]) -> Program:
        return self._minimized(call) if program is None else _program(program)

    def _all(self, call: str, mode: int) -> None:
        self._role(call)
        if mode != 0:
            raise ConfigError("fleet.%s: mode = %r: 0 has all rows; %s" % (call, mode, _BY_TRAINER))

    @staticmethod
    def _table(call: str, program: Program, table_id: Union[str, SupportsIndex]) -> str:
        if table_id in program._tables:
            return table_id
        number = table_id if isinstance(table_id, str) else _checks.whole("fleet.%s: table_id" % call, table_id, 0)
        if isinstance(number, int) and number < len(program._tables):
            return program._tables[number]
        raise ConfigError("fleet.%s: there is no table %r; there are %s" % (
            call, table_id, ", ".join('%d "%s"' % item for item in enumerate(program._tables)) or "none"))


class DistributedOptimizer:
    """An optimizer of millrace.optimizer with a strategy for ranks, returned by fleet.distributed_optimizer."""

    def __init__(self, fleet: Fleet, optimizer: Optimizer, strategy: Strategy) -> None:
        self._fleet, self._optimizer, self._strategy = fleet, optimizer, strategy

    def minimize(self, losses: Optional[Losses] = None, *args: Any, **kwargs: Any) -> Minimized:
        """Same as Optimizer.minimize, and sets fleet.main_program and fleet.startup_program to those of the loss. Arguments after
        the loss follow Paddle 2 (startup_program, parameter_list, no_grad_set) or Paddle 1 (scopes (None), startup_programs,
        parameter_list, no_grad_set)."""
        given = _of_minimize(losses, args, kwargs)
        scopes, parameter_list, no_grad_set = (given.get(name) for name in ("scopes", "parameter_list", "no_grad_set"))
        loss, startup = (_only("minimize: " + what, given.get(what)) for what in ("losses", "startup_programs"))
        if scopes is not None:
            raise ConfigError("minimize: scopes: a run is given its scope: exe.train_from_dataset(scope=); leave it out")
        update, geo_steps = self._strategy._update()
        is_in_step = update == "SYNC"
        if is_in_step and _ranks.size() > 1 and isinstance(loss, Variable) and loss.program.auc_states:
            raise ConfigError("minimize: the strategy has ranks train in step, which keeps no counts of layers.auc: set sync_mode = False "
                              "(a_sync = True), or leave auc out")
        if isinstance(loss, Variable):
            _spread(loss.program, self._optimizer, update)
        result = self._optimizer.minimize(loss, startup, parameter_list, no_grad_set)
        loss.program._spread_copies()
        self._fleet._main_program = loss.program
        self._fleet._startup_program = _startup_of(loss.program, startup)
        # A batch of each rank is a step, as in Paddle.
        loss.program._dist = {"SYNC": "update: SYNC micro_batches: %d" % _ranks.size(),
                              "GEO": "update: GEO geo_steps: %d" % geo_steps, "ASYNC": ""}[update]
        return result

    def backward(self, *args: object, **kwargs: object) -> NoReturn:
        """Raises ConfigError, as in Paddle: minimize adds gradients and updates together."""
        raise ConfigError("backward: a distributed optimizer makes gradients and updates at once: call minimize(loss)")

    apply_gradients = backward

    def __repr__(self) -> str:
        return "DistributedOptimizer(%r, %r)" % (self._optimizer, self._strategy)


def _spread(program: Program, optimizer: Optimizer, update: str) -> None:
    """Lets the rows of embeddings with is_sparse=True lie on the ranks, as they lay on servers. On one rank, too: so folders and
    models of any number of ranks are alike."""
    if program._is_trained:
        return
    rules = {table: optimizer.text if own is None else own for table, own in program._sparse_tables.items()}
    program._spread_tables({table: rule for table, rule in rules.items() if update != "GEO" or rule.split(" ", 1)[0] in _ADDED_UP})


def _startup_of(program: Program, given: Optional[Program]) -> Program:
    for startup in (given, default_startup_program()):
        if startup is not None and program in startup._mains:
            return startup
    made = Program()
    made.random_seed = program.random_seed
    made._mains.append(program)
    return made


def _of_minimize(losses: Optional[Losses], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of DistributedOptimizer.minimize by their names of Paddle 1."""
    order: tuple[str, ...] = ("scopes", "startup_programs", "parameter_list", "no_grad_set")
    is_first_none = len(args) > 1 and args[0] is None
    if args and _are_programs(args[0]) or is_first_none and args[1] is not None and not _are_programs(args[1]):
        order = order[1:]
    elif is_first_none and args[1] is None and len(args) == 3 and args[2] is not None:
        raise ConfigError("minimize: the fourth argument is the parameter_list of Paddle 1 and the no_grad_set of Paddle 2: give it by "
                          "its name")
    if len(args) > len(order):
        raise ConfigError("minimize: the loss and at most %d arguments behind it (%s), not %d" % (
            len(order), ", ".join(order), len(args)))
    given = dict(zip(order, args))
    if losses is not None:
        given["losses"] = losses
    for name, value in kwargs.items():
        name = {"loss": "losses", "startup_program": "startup_programs"}.get(name, name)
        if name not in ("scopes", "startup_programs", "parameter_list", "no_grad_set", "losses"):
            raise ConfigError("minimize: there is no argument %s; there are loss, startup_program, parameter_list, no_grad_set" % name)
        if name in given:
            raise ConfigError("minimize: %s is given twice" % name)
        given[name] = value
    return given


def _are_programs(given: object) -> bool:
    programs = given if isinstance(given, (list, tuple)) else [given]
    return bool(programs) and all(isinstance(one, Program) for one in programs)


def _only(what: str, given: Any) -> Any:
    if not isinstance(given, (list, tuple)):
        return given
    if len(given) != 1:
        raise ConfigError("%s: one, not %d; add several losses up" % (what, len(given)))
    return given[0]


def _checked(strategy: object) -> Strategy:
    if not isinstance(strategy, (DistributeTranspilerConfig, DistributedStrategy)):
        raise ConfigError("fleet: strategy is a DistributeTranspilerConfig or a DistributedStrategy, not %r%s" % (strategy, (
            "; tables say their accessor where they are looked up: embedding(..., accessor=)" if isinstance(strategy, dict) else "")))
    strategy._check()
    return strategy


def _nothing_else(call: str, kwargs: Mapping[str, object]) -> None:
    for name in kwargs:
        raise ConfigError("fleet.%s: there is no argument %s" % (call, name))


def _joined(endpoints: list[str], to_string: bool) -> Union[str, list[str]]:
    return ",".join(endpoints) if to_string else endpoints
