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

# What scripts of Paddle name and is not here: what to do instead.
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


def __dir__():
    return sorted(set(globals()) | set(__all__))
