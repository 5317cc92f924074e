"""What a training runs by: a TrainerDesc as the program `trainer` reads it, and the classes that fluid describes it by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import os
from typing import Any, Optional, Union

from . import _checks
from ._settings import quoted
from ._types import Path
from .errors import ConfigError, IoError
from .framework import Program

__all__ = ["Hogwild", "MultiTrainer", "PipelineTrainer", "Section", "TrainerDesc", "TrainerFactory"]


class Hogwild:
    """Each worker trains batches of its own on shared parameters."""

    class_name = "HogwildWorker"

    def _text(self, opt_info: Mapping[str, Any]) -> str:
        states = " ".join("stat_var_names: %s" % quoted(name) for name in opt_info.get("stat_var_names", ()))
        return "hogwild_param { %s }" % states if states else ""


class Section:
    """The program is cut into sections, which threads of their own run."""

    class_name = "SectionWorker"

    def _text(self, opt_info: Mapping[str, Any]) -> str:
        if "section_param" not in opt_info:
            raise ConfigError("TrainerFactory: the device worker Section needs opt_info[\"section_param\"], the text of "
                              "TrainerDesc.section_param; optimizer.PipelineOptimizer writes it")
        return "section_param { %s }" % opt_info["section_param"]


class TrainerDesc:
    """The job of one training. str() is its text, a TrainerDesc of docs/config.md.

    Executor.trainer_desc makes the one that Executor.train_from_dataset would run; save writes it for `trainer`.
    """

    class_name = "MultiTrainer"

    def __init__(self) -> None:
        self._program: Optional[Program] = None
        self._device_worker: Union[Hogwild, Section] = Hogwild()
        self._opt_info: Mapping[str, Any] = {}
        self._fields: list[str] = []

    def __str__(self) -> str:
        return self._text("")

    def save(self, dirname: Path) -> None:
        """Writes DIRNAME/main_program.bin, startup_program.bin and job.prototxt: `trainer --trainer_desc=DIRNAME/job.prototxt`
        trains likewise, from parameters that the startup program makes."""
        dirname = _checks.path("TrainerDesc.save: dirname", dirname)
        if self._program is None:
            raise ConfigError("TrainerDesc.save: it has no program; Executor.trainer_desc makes one that has")
        self._program.save(dirname)
        path = os.path.join(dirname, "job.prototxt")
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(self._text(dirname))
        except OSError as error:
            raise IoError("TrainerDesc.save: %s: %s" % (path, error.strerror)) from None

    def _set_program(self, program: Program) -> None:
        self._program = program
        self._fields.append("seed: %d" % program.random_seed)

    def _set_device_worker(self, device_worker: Union[Hogwild, Section]) -> None:
        self._device_worker = device_worker

    def _set_thread(self, thread_num: int) -> None:
        self._fields.append("thread_num: %d" % thread_num)

    def _set_debug(self, debug: bool) -> None:
        if debug:
            self._fields.append("debug: true")

    def _set_fetch_var_and_info(self, fetch_vars: Sequence[str], fetch_info: Sequence[str],
                                print_period: int) -> None:
        if fetch_vars:
            fetches = ["fetch_var_names: %s fetch_var_str_format: %s" % (quoted(name), quoted(label))
                       for name, label in zip(fetch_vars, fetch_info)]
            self._fields.append("fetch_config { %s print_period: %d }" % (" ".join(fetches), print_period))

    def _set(self, *fields: str) -> None:
        """Further fields, as text."""
        self._fields += fields

    def _text(self, dirname: str) -> str:
        """The whole, for a program that is saved in dirname."""
        files = [quoted(os.path.join(dirname, name)) for name in ("main_program.bin", "startup_program.bin")]
        lines = ['class_name: "%s"' % self.class_name, 'device_worker_name: "%s"' % self._device_worker.class_name,
                 "program { main: %s startup: %s }" % tuple(files), *self._fields, self._device_worker._text(self._opt_info)]
        return "\n".join(line for line in lines if line) + "\n"


class MultiTrainer(TrainerDesc):
    """Workers in threads of one process."""


class PipelineTrainer(TrainerDesc):
    """Sections of the program in threads of their own: what optimizer.PipelineOptimizer asks for."""

    class_name = "PipelineTrainer"


class TrainerFactory:
    """Makes the TrainerDesc that a program's options ask for."""

    _TRAINERS = {"MultiTrainer": MultiTrainer, "PipelineTrainer": PipelineTrainer}
    _DEVICE_WORKERS = {"Hogwild": Hogwild, "Section": Section}

    def _create_trainer(self, opt_info: Optional[Mapping[str, Any]] = None) -> TrainerDesc:
        """opt_info: {"trainer": NAME, "device_worker": NAME, ...}; by default a MultiTrainer of Hogwild workers."""
        opt_info = {"trainer": "MultiTrainer", "device_worker": "Hogwild",
                    **_checks.one_of("TrainerFactory: opt_info", opt_info or {}, dict)}
        made: list[Any] = []
        for what, classes in (("trainer", self._TRAINERS), ("device_worker", self._DEVICE_WORKERS)):
            name = _checks.text("TrainerFactory: " + what, opt_info[what])
            if name not in classes:
                raise ConfigError('TrainerFactory: there is no %s "%s"; there are %s' % (what, name, ", ".join(classes)))
            made.append(classes[name]())
        trainer, device_worker = made
        if isinstance(trainer, PipelineTrainer) != isinstance(device_worker, Section):
            raise ConfigError("TrainerFactory: a PipelineTrainer has the device worker Section, and a MultiTrainer Hogwild")
        trainer._opt_info = opt_info
        trainer._set_device_worker(device_worker)
        return trainer
