"""Paddle's fleet, for scripts written for parameter servers (docs/fleet.md).

    import millrace as fluid
    from millrace.fleet import DistributeTranspilerConfig, fleet, role_maker

`fleet` is a single object. As in Paddle 2, the module also provides its functions: `import millrace.fleet as fleet`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..data_generator import (MultiSlotDataGenerator as MultiSlotDataGenerator,
                              MultiSlotStringDataGenerator as MultiSlotStringDataGenerator)
from ..dataset import (DatasetBase as DatasetBase, FileInstantDataset as FileInstantDataset, InMemoryDataset as InMemoryDataset,
                       QueueDataset as QueueDataset)
from ..executor import Executor
from ..framework import Program
from . import metrics, role_maker
from .base import DistributedOptimizer, Fleet
from .fleet_util import FleetUtil
from .role_maker import MPISymetricRoleMaker, PaddleCloudRoleMaker, Role, RoleMakerBase, UserDefinedRoleMaker
from .strategy import DistributedStrategy, DistributeTranspilerConfig, StrategyFactory

__all__ = ["DistributeTranspilerConfig", "DistributedOptimizer", "DistributedStrategy", "Fleet", "FleetUtil", "MPISymetricRoleMaker",
           "PaddleCloudRoleMaker", "Role", "RoleMakerBase", "StrategyFactory", "UserDefinedRoleMaker", "UtilBase", "fleet", "metrics", "role_maker"]

# Scripts read their trainer id from variables that Paddle's launchers set. mpirun does not, so each would assume trainer 0.
for _paddles, _theirs in (("PADDLE_TRAINER_ID", ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")),
                          ("PADDLE_TRAINERS_NUM", ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"))):
    for _name in _theirs:
        if os.environ.get(_name, "").isdecimal():
            os.environ.setdefault(_paddles, os.environ[_name])

UtilBase = FleetUtil  # of Paddle 2
fleet = Fleet()

# Its functions, as in Paddle 2.
init = fleet.init
is_first_worker = fleet.is_first_worker
worker_index = fleet.worker_index
worker_num = fleet.worker_num
is_worker = fleet.is_worker
worker_endpoints = fleet.worker_endpoints
is_server = fleet.is_server
server_num = fleet.server_num
server_index = fleet.server_index
server_endpoints = fleet.server_endpoints
split_files = fleet.split_files
barrier_worker = fleet.barrier_worker
all_reduce_worker = fleet.all_reduce_worker
init_worker = fleet.init_worker
init_server = fleet.init_server
run_server = fleet.run_server
stop_worker = fleet.stop_worker
distributed_optimizer = fleet.distributed_optimizer
minimize = fleet.minimize
save_persistables = fleet.save_persistables
save_model = fleet.save_model
load_model = fleet.load_model
load_one_table = fleet.load_one_table
shrink_sparse_table = fleet.shrink_sparse_table
shrink = fleet.shrink
print_table_stat = fleet.print_table_stat
save_inference_model = fleet.save_inference_model

# Its properties, resolved by __getattr__.
util: FleetUtil
main_program: Program
startup_program: Program
_executor: Executor

if not TYPE_CHECKING:  # which would take it for attributes of any name
    def __getattr__(name):
        return getattr(fleet, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *(name for name in dir(fleet) if not name.startswith("_"))})
