"""Millrace: trains click-through and recommendation models on CPUs.

    import millrace
    report = millrace.Job("configs/wide_deep.prototxt", output_dir="out").run()
    scores = millrace.Predictor("out/model").predict_lines(open("part-0").read())

docs/python.md contains an introduction and the complete reference.
"""

from __future__ import annotations

import importlib

from .errors import *  # noqa: F401,F403
from .errors import __all__ as _errors

TYPE_CHECKING = False  # type checkers assume True; importing typing is slower than everything a data generator needs

# The module of each name, imported on first use, so that a pipe_command that only needs a data generator starts quickly.
_MODULES = {
    "__version__": "._millrace",
    "Job": ".job",
    "Predictor": ".predictor",
    "Slot": ".predictor",
    "Report": ".report",
    **dict.fromkeys(["CPUPlace", "ParamAttr", "Program", "Scope", "Variable", "default_main_program",
                     "default_startup_program", "global_scope", "load_plugin", "op_info", "op_types", "program_guard",
                     "scope_guard", "TableRows"], ".framework"),
    **dict.fromkeys(["Checkpoint", "load_checkpoint", "save_checkpoint"], ".checkpoint"),
    **dict.fromkeys(["DatasetFactory", "FileInstantDataset", "InMemoryDataset", "QueueDataset"], ".dataset"),
    **dict.fromkeys(["Executor", "FetchHandler", "export_model", "load_inference_model", "load_persistables",
                     "save_inference_model", "save_persistables"], ".executor"),
    **dict.fromkeys(["Classifier", "Regressor"], ".estimators"),
    "DataFeeder": ".io",
    **dict.fromkeys(["LoDTensor", "create_lod_tensor"], ".lod_tensor"),
    **dict.fromkeys(["Hogwild", "MultiTrainer", "PipelineTrainer", "Section", "TrainerDesc", "TrainerFactory"], ".trainer_desc"),
    **dict.fromkeys(["PyArrayFeedQueue", "PyArrayFeedQueueHolder", "py_array_reader"], ".reader"),
}
_SUBMODULES = ["checkpoint", "clip", "core", "data_generator", "dataset", "errors", "estimators", "executor", "fleet", "framework", "initializer", "io", "layers",
               "lod_tensor", "optimizer", "reader", "regularizer", "trainer_desc", "unique_name"]

if TYPE_CHECKING:  # the same names for type checkers
    from . import (checkpoint as checkpoint, clip as clip, core as core, data_generator as data_generator, dataset as dataset,
                   errors as errors, estimators as estimators, executor as executor, fleet as fleet, framework as framework,
                   initializer as initializer, io as io, layers as layers, lod_tensor as lod_tensor, optimizer as optimizer,
                   reader as reader, regularizer as regularizer, trainer_desc as trainer_desc, unique_name as unique_name)
    from ._millrace import __version__ as __version__
    from .checkpoint import Checkpoint as Checkpoint, load_checkpoint as load_checkpoint, save_checkpoint as save_checkpoint
    from .dataset import (DatasetFactory as DatasetFactory, FileInstantDataset as FileInstantDataset,
                          InMemoryDataset as InMemoryDataset, QueueDataset as QueueDataset)
    from .estimators import Classifier as Classifier, Regressor as Regressor
    from .executor import (Executor as Executor, FetchHandler as FetchHandler, export_model as export_model,
                           load_inference_model as load_inference_model, load_persistables as load_persistables,
                           save_inference_model as save_inference_model, save_persistables as save_persistables)
    from .framework import (CPUPlace as CPUPlace, ParamAttr as ParamAttr, Program as Program, Scope as Scope,
                            TableRows as TableRows, Variable as Variable, default_main_program as default_main_program,
                            default_startup_program as default_startup_program, global_scope as global_scope,
                            load_plugin as load_plugin, op_info as op_info, op_types as op_types,
                            program_guard as program_guard, scope_guard as scope_guard)
    from .io import DataFeeder as DataFeeder
    from .job import Job as Job
    from .lod_tensor import LoDTensor as LoDTensor, create_lod_tensor as create_lod_tensor
    from .predictor import Predictor as Predictor, Slot as Slot
    from .reader import (PyArrayFeedQueue as PyArrayFeedQueue, PyArrayFeedQueueHolder as PyArrayFeedQueueHolder,
                         py_array_reader as py_array_reader)
    from .report import Report as Report
    from .trainer_desc import (Hogwild as Hogwild, MultiTrainer as MultiTrainer, PipelineTrainer as PipelineTrainer,
                               Section as Section, TrainerDesc as TrainerDesc, TrainerFactory as TrainerFactory)

# Unsupported names of Paddle and their replacements.
_INSTEAD = {
    "contrib": "contrib.layers.sparse_embedding is layers.embedding(input, size=[None, dim], accessor=...) (docs/tables.md)",
    **dict.fromkeys(["incubate", "transpiler", "distributed"],
                    "from millrace.fleet import fleet, role_maker, DistributeTranspilerConfig (docs/fleet.md); "
                    "from millrace.data_generator import MultiSlotDataGenerator"),
    **dict.fromkeys(["CompiledProgram", "ParallelExecutor", "BuildStrategy", "ExecutionStrategy"],
                    "Executor runs a Program as it is, and train_from_dataset(thread=) says how many workers train"),
    **dict.fromkeys(["CUDAPlace", "CUDAPinnedPlace", "cuda_places", "cpu_places"], "programs run on CPUs: CPUPlace()"),
    **dict.fromkeys(["dygraph", "in_dygraph_mode", "enable_dygraph", "disable_dygraph"],
                    "a program is built by layers, and then run"),
    **dict.fromkeys(["set_flags", "get_flags"], "there are no flags; leave it out"),
    "data": "layers.data(name, shape, dtype, lod_level)",
    "embedding": "layers.embedding(input, size)",
    "one_hot": "layers.one_hot(input, depth)",
    "DataFeedDesc": "a dataset has one: dataset.desc()",
    "profiler": "train_from_dataset(debug=True) says what operators cost",
}

__all__ = sorted(set(_MODULES) | set(_SUBMODULES) | set(_errors))


if not TYPE_CHECKING:  # which would take it for attributes of any name
    def __getattr__(name):
        if name in _SUBMODULES:
            return importlib.import_module("." + name, __name__)
        if name not in _MODULES:
            if name in _INSTEAD:
                importlib.import_module("._instead", __name__).refuse(__name__, name, _INSTEAD)
            raise AttributeError("module 'millrace' has no attribute '%s'" % name)
        value = getattr(importlib.import_module(_MODULES[name], __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
