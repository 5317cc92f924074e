# Made by scripts/gen_stubs.py.
import os
from typing import Union
__all__ = ["Hogwild", "MultiTrainer", "PipelineTrainer", "Section", "TrainerDesc", "TrainerFactory"]
class Hogwild:
    class_name: str
class Section:
    class_name: str
class TrainerDesc:
    class_name: str
    def __init__(self) -> None: ...
    def save(self, dirname: str) -> None: ...
class MultiTrainer(TrainerDesc): ...
class PipelineTrainer(TrainerDesc):
    class_name: str
class TrainerFactory: ...
