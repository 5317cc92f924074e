"""Millrace: trains click-through and recommendation models on CPUs.

    import millrace
    report = millrace.Job("configs/wide_deep.prototxt", output_dir="out").run()
    scores = millrace.Predictor("out/model").predict_lines(open("part-0").read())

docs/python.md has the way in and the whole reference.
"""

import importlib

from .errors import *  # noqa: F401,F403
from .errors import __all__ as _errors

# Where each name is. Looked up at the first use: a pipe_command that needs a data generator alone starts at once.
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

__all__ = sorted(set(_MODULES) | set(_SUBMODULES) | set(_errors))


def __getattr__(name):
    if name in _SUBMODULES:
        return importlib.import_module("." + name, __name__)
    if name not in _MODULES:
        raise AttributeError("module 'millrace' has no attribute '%s'" % name)
    value = getattr(importlib.import_module(_MODULES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(__all__))
