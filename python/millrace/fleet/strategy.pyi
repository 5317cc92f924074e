# Made by scripts/gen_stubs.py.
from typing import Any, Dict
__all__ = ["DistributeTranspilerConfig", "DistributedStrategy", "StrategyFactory"]
class _Settings:
    def __init__(self) -> None: ...
class DistributeTranspilerConfig(_Settings):
    sync_mode: Any
    half_async: Any
    runtime_split_send_recv: Any
    completely_not_async: Any
    slice_var_up: Any
    split_method: Any
    min_block_size: Any
    wait_port: Any
    print_log: Any
    geo_sgd_mode: Any
    geo_sgd_need_push_nums: Any
class DistributedStrategy(_Settings):
    a_sync: Any
    a_sync_configs: Any
class StrategyFactory:
    @staticmethod
    def create_sync_strategy() -> DistributeTranspilerConfig: ...
    @staticmethod
    def create_async_strategy() -> DistributeTranspilerConfig: ...
    @staticmethod
    def create_half_async_strategy() -> DistributeTranspilerConfig: ...
    @staticmethod
    def create_geo_strategy(update_frequency: int = ...) -> DistributeTranspilerConfig: ...
