"""Who a process of a fleet job is. Role makers say what the launch says of it; how many train is mpirun's to say."""

from __future__ import annotations

from collections.abc import Iterable
import os
import sys
from typing import Optional, SupportsIndex, Union

import numpy as np
from numpy.typing import ArrayLike

from .. import _checks, _ranks
from .._types import T
from ..errors import ConfigError

__all__ = ["MPISymetricRoleMaker", "PaddleCloudRoleMaker", "Role", "RoleMakerBase", "UserDefinedRoleMaker"]


class Role:
    """What a process is started as: a WORKER trains; a SERVER, one of Paddle's parameter servers, has nothing to do here."""

    WORKER = 1
    SERVER = 2


class RoleMakerBase:
    """What role makers have in common. Trainers are the ranks that mpirun started: they are numbered as ranks, whatever
    current_id says."""

    _says = "the role maker says"

    def __init__(self) -> None:
        self._role = Role.WORKER
        self._current_id = 0
        self._worker_num = 0  # as many as there are ranks
        self._server_endpoints: list[str] = []
        self._worker_endpoints: list[str] = []

    def generate_role(self) -> None:
        """Compares with the ranks that there are; fleet.init calls it. A ConfigError where several trainers would each train a
        model of its own, and where mpirun started a server."""
        ranks, script = _ranks.size(), sys.argv[0] or "script.py"
        if self.is_server():
            if ranks > 1:
                raise ConfigError("fleet.init: mpirun started this process as a SERVER (TRAINING_ROLE=PSERVER), and ranks train, "
                                  "each with a part of every table: start trainers alone: mpirun -n %d python %s" % (ranks, script))
        elif ranks == 1 and self._worker_num > 1:
            raise ConfigError(
                "fleet.init: %s %d trainers, and this process was started by itself: each of them would train a model of its own. "
                "Start them together, without servers: mpirun -n %d python %s; or say 1 trainer" % (
                    self._says, self._worker_num, self._worker_num, script))
        elif self._worker_num not in (0, ranks):
            raise ConfigError("fleet.init: %s %d trainers, and mpirun started %d: start as many (mpirun -n %d python %s), or say %d" % (
                self._says, self._worker_num, ranks, self._worker_num, script, ranks))

    def is_worker(self) -> bool:
        """Whether it trains."""
        return self._role == Role.WORKER

    def is_server(self) -> bool:
        """Whether it was started as a server."""
        return self._role == Role.SERVER

    def is_first_worker(self) -> bool:
        """Whether it is trainer 0, which saves."""
        return self.is_worker() and self.worker_index() == 0

    def worker_index(self) -> int:
        """The number of a trainer, its rank; of a server, its own."""
        return _ranks.rank() if self.is_worker() else self._current_id

    def server_index(self) -> int:
        """The number of a server among the endpoints, as it was told."""
        return self._current_id

    def role_id(self) -> int:
        """That of the role that it has."""
        return self.worker_index() if self.is_worker() else self.server_index()

    def worker_num(self) -> int:
        """How many train."""
        return _ranks.size() if self.is_worker() else max(1, self._worker_num)

    def server_num(self) -> int:
        """How many server endpoints were named; nobody listens there."""
        return len(self._server_endpoints)

    def get_trainer_endpoints(self) -> list[str]:
        """As they were named."""
        return list(self._worker_endpoints)

    def get_pserver_endpoints(self) -> list[str]:
        """As they were named; nobody listens there."""
        return list(self._server_endpoints)

    def barrier_worker(self) -> None:
        """Returns when all trainers have called it."""
        _ranks.barrier()

    barrier_all = _barrier_worker = _barrier_all = barrier_worker

    def all_reduce_worker(self, input: ArrayLike, output: np.ndarray, mode: str = "sum") -> None:
        """Writes the "sum", "max" or "min" of the trainers' arrays to `output`."""
        _ranks.write_to(output, _ranks.allreduce(input, mode), "all_reduce_worker")

    def all_gather(self, input: T) -> list[T]:
        """A list of what each trainer brings, any objects that pickle takes, by their numbers."""
        return _ranks.gather_objects(input, "all_gather")

    _all_gather = all_gather

    def to_string(self) -> str:
        """A line about it."""
        return "role: %s, current_id: %d, worker_num: %d, pserver_endpoints: %s, trainer_endpoints: %s" % (
            "WORKER" if self.is_worker() else "SERVER", self.role_id(), self.worker_num(), self._server_endpoints,
            self._worker_endpoints)

    __repr__ = to_string


class UserDefinedRoleMaker(RoleMakerBase):
    """Says it in the script.

    current_id        which of the server_endpoints a SERVER is; a WORKER's number is its rank
    role              Role.WORKER or Role.SERVER
    worker_num        trainers; 0: as many as mpirun started
    server_endpoints  of Paddle's servers; nobody listens there
    worker_endpoints  of trainers, as Paddle 2 has them; nobody listens there
    """

    _says = "the role maker was told of"

    def __init__(self, current_id: SupportsIndex = 0, role: int = Role.WORKER, worker_num: SupportsIndex = 0,
                 server_endpoints: Optional[Iterable[str]] = None, worker_endpoints: Optional[Iterable[str]] = None,
                 is_collective: bool = False, init_gloo: bool = False) -> None:
        super().__init__()
        if isinstance(current_id, bool):
            raise ConfigError("UserDefinedRoleMaker: current_id is the first argument, a whole number, not %r; give is_collective by "
                              "its name" % current_id)
        self._current_id = _checks.whole("UserDefinedRoleMaker: current_id", current_id, 0)
        if role not in (Role.WORKER, Role.SERVER):
            raise ConfigError("UserDefinedRoleMaker: role is Role.WORKER or Role.SERVER, not %r" % (role,))
        self._role = role
        self._worker_num = _checks.whole("UserDefinedRoleMaker: worker_num", worker_num, 0)
        self._server_endpoints = _endpoints("UserDefinedRoleMaker: server_endpoints", server_endpoints)
        self._worker_endpoints = _endpoints("UserDefinedRoleMaker: worker_endpoints", worker_endpoints)
        self._worker_num = self._worker_num or len(self._worker_endpoints)
        many = len(self._server_endpoints) if self.is_server() else self._worker_num
        if many and self._current_id >= many:
            raise ConfigError("UserDefinedRoleMaker: current_id is %d, and there are %d %s, from 0" % (
                self._current_id, many, "server_endpoints" if self.is_server() else "trainers"))


class PaddleCloudRoleMaker(RoleMakerBase):
    """Says what the variables of the environment say that Paddle's launchers set.

    TRAINING_ROLE                TRAINER, as without it, or PSERVER
    PADDLE_TRAINERS_NUM          trainers; without it as many as mpirun started
    PADDLE_TRAINER_ID            a trainer's number, which is to be its rank
    PADDLE_PSERVERS_IP_PORT_LIST, POD_IP, PADDLE_PORT   which server a PSERVER is; nobody listens there
    PADDLE_TRAINER_ENDPOINTS     of trainers; nobody listens there
    """

    def __init__(self, is_collective: bool = False, init_gloo: bool = True) -> None:
        super().__init__()
        self._says = "PADDLE_TRAINERS_NUM is"
        role = os.environ.get("TRAINING_ROLE", "TRAINER")
        if role not in ("TRAINER", "PSERVER"):
            raise ConfigError("PaddleCloudRoleMaker: TRAINING_ROLE is TRAINER or PSERVER, not %r" % role)
        self._role = Role.SERVER if role == "PSERVER" and not is_collective else Role.WORKER
        self._server_endpoints = _endpoints("PADDLE_PSERVERS_IP_PORT_LIST", _listed("PADDLE_PSERVERS_IP_PORT_LIST"))
        self._worker_endpoints = _endpoints("PADDLE_TRAINER_ENDPOINTS", _listed("PADDLE_TRAINER_ENDPOINTS"))
        self._worker_num = _number("PADDLE_TRAINERS_NUM", 0)
        self._told_id: Optional[int] = None  # of a trainer
        if is_collective and not self._worker_num:
            self._says, self._worker_num = "PADDLE_TRAINER_ENDPOINTS has", len(self._worker_endpoints)
        if self.is_worker():
            self._told_id = _number("PADDLE_TRAINER_ID", None)
            self._current_id = self._told_id or 0
        else:
            here = "%s:%s" % (os.environ.get("POD_IP", ""), os.environ.get("PADDLE_PORT", ""))
            self._current_id = self._server_endpoints.index(here) if here in self._server_endpoints else 0

    def generate_role(self) -> None:
        """As of RoleMakerBase; the number of a trainer is compared, too."""
        super().generate_role()
        told = self._told_id
        if self.is_worker() and told is not None and told != _ranks.rank():
            raise ConfigError(
                "fleet.init: PADDLE_TRAINER_ID is %d, and this process is rank %d of %d: what the script does by that number, as saving "
                "on trainer 0, another one would do. Leave the variable unset: millrace.fleet sets it to the rank" % (
                    told, _ranks.rank(), _ranks.size()))


class MPISymetricRoleMaker(RoleMakerBase):
    """Every process that mpirun started trains. Paddle's had every second one serve; here each rank has a part of the tables."""

    def __init__(self) -> None:
        super().__init__()
        self._says = "mpirun says"


def _listed(name: str) -> list[str]:
    return [part for part in os.environ.get(name, "").split(",") if part]


def _number(name: str, otherwise: T) -> Union[int, T]:
    text = os.environ.get(name, "")
    if not text:
        return otherwise
    if not text.isdecimal():
        raise ConfigError("PaddleCloudRoleMaker: %s is a whole number, not %r" % (name, text))
    return int(text)


def _endpoints(what: str, given: Optional[Iterable[str]]) -> list[str]:
    endpoints = [_checks.text(what, one) for one in _checks.listed(what, given or (), "addresses")]
    if len(set(endpoints)) != len(endpoints):
        raise ConfigError("%s: %s is there twice" % (what, next(one for one in endpoints if endpoints.count(one) > 1)))
    return endpoints
