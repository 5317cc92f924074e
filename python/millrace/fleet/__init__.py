"""Paddle's fleet, for scripts that were written for parameter servers (docs/fleet.md).

    import millrace as fluid
    from millrace.fleet import DistributeTranspilerConfig, fleet, role_maker

`fleet` is one object, and the module has its functions, as Paddle 2 has them: `import millrace.fleet as fleet`.
"""

import os

from ..data_generator import MultiSlotDataGenerator, MultiSlotStringDataGenerator  # noqa: F401
from ..dataset import DatasetBase, FileInstantDataset, InMemoryDataset, QueueDataset  # noqa: F401
from . import metrics, role_maker
from .base import DistributedOptimizer, Fleet
from .fleet_util import FleetUtil
from .role_maker import MPISymetricRoleMaker, PaddleCloudRoleMaker, Role, RoleMakerBase, UserDefinedRoleMaker
from .strategy import DistributedStrategy, DistributeTranspilerConfig, StrategyFactory

__all__ = ["DistributeTranspilerConfig", "DistributedOptimizer", "DistributedStrategy", "Fleet", "FleetUtil", "MPISymetricRoleMaker",
           "PaddleCloudRoleMaker", "Role", "RoleMakerBase", "StrategyFactory", "UserDefinedRoleMaker", "UtilBase", "fleet", "metrics", "role_maker"]

# Scripts read who they are from what Paddle's launchers set, and mpirun does not: without it each would take itself for trainer 0.
for _paddles, _theirs in (("PADDLE_TRAINER_ID", ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")),
                          ("PADDLE_TRAINERS_NUM", ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"))):
    for _name in _theirs:
        if os.environ.get(_name, "").isdecimal():
            os.environ.setdefault(_paddles, os.environ[_name])

UtilBase = FleetUtil  # of Paddle 2
fleet = Fleet()


def __getattr__(name):
    return getattr(fleet, name)


def __dir__():
    return sorted({*globals(), *(name for name in dir(fleet) if not name.startswith("_"))})
