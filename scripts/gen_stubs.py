#!/usr/bin/env python3
"""Generates the type stubs of the Python package from its sources. Names and defaults come from the sources. The name of
an argument determines its type, because it means the same everywhere in the package.

    scripts/gen_stubs.py [--check]      --check: report stubs that are out of date, and fail
"""

import argparse
import ast
import os
import sys

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python", "millrace")
MODULES = ["checkpoint", "clip", "core", "data_generator", "dataset", "estimators", "executor", "framework", "initializer", "io", "job", "layers",
           "lod_tensor", "optimizer", "predictor", "reader", "regularizer", "trainer_desc", "unique_name",
           "fleet/__init__", "fleet/base", "fleet/fleet_util", "fleet/metrics", "fleet/role_maker", "fleet/strategy"]

HEADER = {
    "checkpoint": "import os\nfrom typing import Any, NamedTuple, Optional, Union\nfrom .framework import Program, Scope\n",
    "trainer_desc": "import os\nfrom typing import Union\n",
    "unique_name": "from typing import Any, ContextManager, Optional, Union\n",
    "core": "from .errors import EOFException as EOFException\nfrom .framework import CPUPlace as CPUPlace, Scope as Scope\n"
            "from .lod_tensor import LoDTensor as LoDTensor\nfrom .reader import init_py_array_feed_queue as init_py_array_feed_queue\n",
    "clip": "from typing import Optional\nfrom .framework import Program\n",
    "regularizer": "",
    "data_generator": "from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple\n",
    "dataset": "from typing import Any, Optional, Sequence, Union\nfrom .framework import Variable\n",
    "estimators": "from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union\nimport numpy as np\nfrom .report import Report\n",
    "executor": "from typing import Any, List, Mapping, Optional, Sequence, Union\nimport numpy as np\n"
                "from .dataset import DatasetBase\nfrom .framework import CPUPlace, Program, Scope, Variable\n"
                "from .report import Report\nfrom .trainer_desc import TrainerDesc\n",
    "framework": "import os\nfrom typing import Any, ContextManager, List, Mapping, NamedTuple, Optional, Tuple, Union\nimport numpy as np\n"
                 "from numpy.typing import DTypeLike\nfrom .clip import _Clip\nfrom .regularizer import _Regularizer\n_formulas: Any\n",
    "fleet/__init__": "import os\nfrom typing import Any, Iterable, List, NoReturn, Optional, Sequence, Tuple, Union\nfrom . import metrics as metrics, role_maker as role_maker\n"
                      "from .base import DistributedOptimizer as DistributedOptimizer, Fleet as Fleet\n"
                      "from .fleet_util import FleetUtil as FleetUtil\n"
                      "from .role_maker import MPISymetricRoleMaker as MPISymetricRoleMaker, PaddleCloudRoleMaker as PaddleCloudRoleMaker, "
                      "Role as Role, RoleMakerBase as RoleMakerBase, UserDefinedRoleMaker as UserDefinedRoleMaker\n"
                      "from .strategy import DistributedStrategy as DistributedStrategy, "
                      "DistributeTranspilerConfig as DistributeTranspilerConfig, StrategyFactory as StrategyFactory\n"
                      "from ..data_generator import MultiSlotDataGenerator as MultiSlotDataGenerator, "
                      "MultiSlotStringDataGenerator as MultiSlotStringDataGenerator\n"
                      "from ..dataset import DatasetBase as DatasetBase, FileInstantDataset as FileInstantDataset, "
                      "InMemoryDataset as InMemoryDataset, QueueDataset as QueueDataset\nfrom ..framework import Program, Scope, Variable\n"
                      "fleet: Fleet\nutil: FleetUtil\nmain_program: Program\nstartup_program: Program\n",
    "fleet/base": "import os\nfrom typing import Any, Iterable, List, NoReturn, Optional, Sequence, Tuple, Union\nfrom ..dataset import DatasetBase\n"
                  "from ..executor import Executor\nfrom ..framework import Program, Scope, Variable\nfrom .fleet_util import FleetUtil\n",
    "fleet/fleet_util": "from typing import Any, List, Optional, Sequence\nfrom ..framework import CPUPlace, Scope\nimport numpy as np\n",
    "fleet/metrics": "from typing import Any, Optional\nfrom ..framework import Scope\nimport numpy as np\n",
    "fleet/role_maker": "from typing import Any, List, Optional, Sequence\n",
    "fleet/strategy": "from typing import Any, Dict\n",
    "initializer": "from typing import Any\n",
    "io": "from typing import Any, Callable, Dict, Iterable, Iterator, Optional, Sequence\nfrom .executor import load_inference_model as load_inference_model, "
          "load_persistables as load_persistables, save_inference_model as save_inference_model, save_persistables as save_persistables\n"
          "from .framework import CPUPlace, Program, Variable\n",
    "job": "import os\nfrom typing import Any, Sequence, Union\nimport numpy as np\nfrom .report import Report\n",
    "layers": "from typing import Any, ContextManager, List, Mapping, Optional, Sequence, Tuple, Union\n"
              "from numpy.typing import DTypeLike\nfrom .framework import Variable\n",
    "lod_tensor": "from typing import Any, List, Optional, Sequence\nimport numpy as np\nfrom numpy.typing import DTypeLike\nfrom .framework import CPUPlace\n",
    "optimizer": "from typing import Any, Callable, Iterable, List, Mapping, Optional, Sequence, Tuple, Union\nfrom .clip import _Clip\n"
                 "from .framework import Program, Variable\nfrom .regularizer import _Regularizer\n",
    "predictor": "import os\nfrom typing import Any, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Union\n"
                 "import numpy as np\n",
    "reader": "from typing import Any, Callable, Iterator, List, Mapping, NoReturn, Optional, Sequence, Tuple\nimport numpy as np\n"
              "from .framework import CPUPlace, Program, Variable\n",
}

# Modules that others are made of, and show as their own.
PARTS = {"layers": ["_append", "_activations", "_control_flow", "_losses", "_norms", "_recurrent", "_sequences", "_tensors"]}

FLAG = "bool"
TYPES = {
    "name": "Optional[str]", "type": "str", "dtype": "DTypeLike", "axis": "int", "seed": "int", "dim": "Any", "k": "int",
    "input": "Any", "x": "Any", "y": "Variable", "label": "Variable", "logits": "Variable", "loss": "Variable",
    "shape": "Sequence[int]", "lod_level": "int", "param_attr": "Any", "bias_attr": "Any", "act": "Optional[str]",
    "inputs": "Mapping[str, Any]", "attrs": "Optional[Mapping[str, Any]]", "axes": "Any", "perm": "Sequence[int]",
    "starts": "Sequence[int]", "ends": "Sequence[int]", "pool_type": "str", "pad_value": "float",
    "is_sparse": FLAG, "by_slot": FLAG, "throw_eof_exp": FLAG, "is_distributed": FLAG, "is_test": FLAG, "keep_dim": FLAG, "soft_label": FLAG, "per_slot": FLAG,
    "normalize": FLAG, "staircase": FLAG, "lazy_mode": FLAG, "trainable": FLAG, "for_test": FLAG, "debug": FLAG,
    "return_numpy": FLAG, "is_shuffle": FLAG, "append_batch_size": FLAG, "return_softmax": FLAG, "uniform": FLAG,
    "transpose_x": FLAG, "transpose_y": FLAG, "bias_after_scale": FLAG, "drop_last": FLAG,
    "learning_rate": "Union[float, Schedule]", "epsilon": "float", "beta1": "float", "beta2": "float", "beta": "Optional[float]",
    "l1": "float", "l2": "float", "initial_accumulator_value": "float", "lr_power": "float", "decay_rate": "float",
    "decay_steps": "int", "warmup_steps": "int", "end_learning_rate": "float", "power": "float",
    "boundaries": "Sequence[int]", "values": "Sequence[float]", "decay": "float", "rho": "float", "momentum": "float",
    "lars_coeff": "float", "lars_weight_decay": "float", "centered": FLAG, "use_nesterov": FLAG, "cycle": FLAG,
    "step_each_epoch": "int", "epochs": "int", "d_model": "int", "start_lr": "Optional[float]", "end_lr": "Optional[float]",
    "lamb_weight_decay": "float", "exclude_from_weight_decay_fn": "Optional[Callable[[Variable], bool]]",
    "regularization": "Optional[_Regularizer]", "regularizer": "Optional[_Regularizer]", "grad_clip": "Optional[_Clip]",
    "gradient_clip": "Optional[_Clip]", "parameter_list": "Optional[Iterable[Union[Variable, str]]]",
    "no_grad_set": "Optional[Iterable[Union[Variable, str]]]", "regularization_coeff": "float", "clip": "_Clip",
    "reader": "Reader", "buffer_size": "int", "pass_num": "int", "filenames": "Sequence[str]", "format": "str",
    "lod_levels": "Optional[Sequence[int]]", "discard_leftover": FLAG, "max": "float", "min": "float", "clip_norm": "float", "group_name": "str",
    "stop": "bool", "queue_num": "int", "current_phase": "int", "pv_batch_size": "int", "merge_size": "int", "input_type": "int",
    "candidate_size": "Optional[int]", "record_candidate_size": "int", "fea_eval": FLAG, "parse_ins_id": FLAG,
    "zeros": "str", "parse_content": FLAG, "parse_logkey": FLAG, "enable_pv_merge": FLAG, "fleet_send_batch_size": "int",
    "fleet_send_sleep_seconds": "int",
    "program": "Optional[Program]", "main_program": "Any", "startup_program": "Any", "scope": "Optional[Scope]",
    "dataset": "Optional[DatasetBase]", "thread": "int", "fetch_list": "Any", "fetch_info": "Optional[Sequence[str]]",
    "print_period": "int", "fetch_handler": "Optional[FetchHandler]", "update_mode": "Optional[str]",
    "feed": "Optional[Mapping[Any, Any]]", "place": "Optional[CPUPlace]", "executor": "Any", "dirname": "str",
    "target_vars": "Union[Variable, str, Sequence[Union[Variable, str]]]", "feeded_var_names": "Union[DatasetBase, Sequence[Union[Variable, str]]]", "pooled": "Sequence[Union[Variable, str]]",
    "period_secs": "float", "var_dict": "Mapping[str, Union[Variable, str]]", "res_dict": "Mapping[str, Any]",
    "batch_size": "int", "thread_num": "Any", "filelist": "Union[str, Sequence[str]]", "var_list": "Sequence[Variable]",
    "use_var": "Sequence[Variable]", "pipe_command": "str", "datafeed_class": "str", "data_feed_type": "str", "slots": "Sequence[Union[str, Variable]]",
    "fs_name": "str", "fs_ugi": "str", "download_cmd": "str", "action": "str", "max_lines": "int", "max_fraction": "float",
    "file": "Union[str, os.PathLike[str]]", "path": "Union[str, os.PathLike[str]]", "folder": "Any", "text": "str", "overrides": "Sequence[str]",
    "output_dir": "Any", "origin": "str", "resume": "str", "columns": "Mapping[str, Any]", "lines": "Any",
    "without": "Sequence[str]", "prediction": "str", "data_desc": "Optional[str]",
    "capacity": "int", "shapes": "Sequence[Sequence[int]]", "dtypes": "Optional[Sequence[Any]]", "array_tuple": "Any", "dims": "Sequence[Sequence[int]]", "names": "Optional[Sequence[str]]", "made": "Any",
    "error": "Optional[BaseException]", "line": "Any", "samples": "List[Any]", "low": "float", "high": "float",
    "checkpoint_dir": "Union[str, os.PathLike[str]]", "trainer_args": "Any", "max_num_checkpoints": "int", "key": "str", "prefix": "str",
    "new_generator": "Union[None, str, UniqueNameGenerator]",
    "loc": "float", "scale": "float", "value": "float", "stem": "str",
}
# Where an argument means something else: of a class, of a function.
OF_CLASS = {("Predictor", "columns"): "Any", ("Predictor", "feed"): "Union[str, Sequence[str]]", ("ParamAttr", "learning_rate"): "float", ("Schedule", "rate"): "float", ("Schedule", "warmup"): "str",
            ("io", "reader"): "Callable[[], Any]"}
OF_CLASS.update({("Classifier", "y"): "Any", ("Regressor", "y"): "Any", ("_Estimator", "label"): "str", ("_Estimator", "weight"): "str"})
OF_CLASS.update({("_Estimator", "early_stopping"): FLAG, ("_Estimator", "validation_fraction"): "float", ("Variable", "key"): "Any"})
OF_FUNCTION = {**{("decorate_sample_generator", "sample_generator"): "Callable[[], Any]"},
               **{(method, "reader"): "Callable[[], Any]" for method in ("decorate_batch_generator", "decorate_sample_list_generator")},
               **{(name, "y"): "Union[Variable, float]"
               for name in ("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal")}}
OF_FUNCTION["NumpyArrayInitializer", "value"] = "Any"
OF_FUNCTION.update({("split_files", "files"): "Sequence[str]", ("get_file_shard", "files"): "Sequence[str]",
                    ("create_geo_strategy", "update_frequency"): "int", ("all_reduce_worker", "output"): "Any"})
OF_CLASS.update({("UserDefinedRoleMaker", "role"): "int", ("FleetUtil", "mode"): "str"})
RETURNS = {
    "Fleet.metrics": "Any",
    "Executor.run": "List[np.ndarray]", "Executor.train_from_dataset": "Report", "Executor.infer_from_dataset": "Report",
    "Executor.trainer_desc": "TrainerDesc", "PipelineOptimizer.minimize": "Tuple[List[Variable], List[Tuple[Variable, Variable]]]",
    "TrainerDesc.__str__": "str",
    "Executor.train_from_reader": "Report", "read_file": "Any",
    "Job.from_text": "Job", "Job.run": "Report", "Job.fit": "Report", "Job.parameter": "Any", "Job.config": "str", "Job.ops": "str",
    "Classifier.fit": "Classifier", "Regressor.fit": "Regressor", "get_params": "Dict[str, Any]", "set_params": "Any", "score": "float", "__sklearn_is_fitted__": "bool", "__sklearn_tags__": "Any",
    "Classifier.predict": "np.ndarray", "predict_proba": "np.ndarray", "Regressor.predict": "np.ndarray",
    "Predictor.predict": "np.ndarray", "Predictor.predict_lines": "np.ndarray",
    "Program.unique_name": "str", "Program.all_parameters": "List[Variable]", "Program.var": "Variable", "Program.global_block": "Program", "Program.clone": "Program",
    "Program.serialize": "bytes", "Program.startup_bytes": "bytes", "Program.ops": "str", "Program.to_string": "str",
    "Scope.get": "Any", "Scope.names": "List[str]", "Scope.step": "int", "Scope.find_var": "Optional[ScopeVariable]",
    "Scope.var": "ScopeVariable", "ScopeVariable.get_tensor": "ScopeVariable", "ScopeVariable.__array__": "np.ndarray",
    "init_py_array_feed_queue": "PyArrayFeedQueue",
    "Variable.shape": "Tuple[int, ...]", "Variable.dtype": "str", "Variable.lod_level": "int", "Variable.persistable": "bool",
    "ParamAttr.of": "ParamAttr", "default_main_program": "Program", "default_startup_program": "Program",
    "global_scope": "Scope", "program_guard": "ContextManager[None]", "scope_guard": "ContextManager[None]",
    "load_checkpoint": "Optional[Checkpoint]", "load_inference_model": "List[Any]", "generate": "str", "guard": "ContextManager[None]",
    "switch": "UniqueNameGenerator", "UniqueNameGenerator.__call__": "str", "Predictor.__reduce__": "Any",
    "op_types": "List[str]", "op_info": "Mapping[str, Any]",
    "DatasetFactory.create_dataset": "Any", "DatasetBase.desc": "str", "InMemoryDataset.load_into_memory": "int",
    "InMemoryDataset.wait_preload_done": "int", "InMemoryDataset.get_memory_data_size": "int",
    "InMemoryDataset.get_pv_data_size": "int", "Optimizer.minimize": "Tuple[List[Variable], List[Tuple[Variable, Variable]]]",
    "layers.op": "Any", "layers.cond": "Any", "layers.while_loop": "List[Variable]", "layers.unstack": "List[Variable]",
    "layers.lstm": "Tuple[Variable, Variable, Variable]", "layers.lstm_unit": "Tuple[Variable, Variable]",
    "layers.gru_unit": "Tuple[Variable, Variable, Variable]",
    "layers.argsort": "Tuple[Variable, Variable]", "layers.sequence_pad": "Tuple[Variable, Variable]", "has_next": "Variable", "reset": "None",
    "While.block": "ContextManager[Any]", "ConditionalBlock.block": "ContextManager[Any]", "Switch.case": "ContextManager[Any]",
    "Switch.default": "ContextManager[Any]", "Switch.__enter__": "Switch", "Switch.__exit__": "bool", "Variable.stop_gradient": "bool",
    "Variable.__getitem__": "Variable", "Variable.__eq__": "Variable", "Variable.__ne__": "Variable",
    "DataFeeder.feed": "Dict[str, Any]", "DataLoader.from_generator": "PyReader", "io.batch": "Callable[[], Iterator[Any]]", "io.shuffle": "Callable[[], Iterator[Any]]",
    "PyReader.__call__": "Iterator[Any]", "PyReader.__iter__": "Iterator[Any]", "PyReader.decorate_sample_generator": "PyReader",
    "PyReader.decorate_sample_list_generator": "PyReader", "PyReader.decorate_batch_generator": "PyReader", "py_reader": "Reader",
    "create_lod_tensor": "LoDTensor", "LoDTensor.recursive_sequence_lengths": "List[List[int]]", "LoDTensor.lod": "List[List[int]]",
    "LoDTensor.shape": "List[int]", "LoDTensor.__array__": "np.ndarray",
    "Variable.__lt__": "Variable", "Variable.__le__": "Variable", "Variable.__gt__": "Variable", "Variable.__ge__": "Variable",
    "Variable.__bool__": "bool", "layers.split": "List[Variable]", "layers.topk": "Tuple[Variable, Variable]",
    "layers.auc": "Tuple[Variable, Variable, List[Variable]]", "layers.softmax_with_cross_entropy": "Any",
    "PyArrayFeedQueue.pop": "Optional[Tuple[np.ndarray, ...]]", "PyArrayFeedQueue.size": "int",
    "PyArrayFeedQueue.capacity": "int", "PyArrayFeedQueue.is_full": "bool", "PyArrayFeedQueue.is_empty": "bool",
    "PyArrayFeedQueue.is_closed": "bool", "PyArrayFeedQueue.shapes": "List[Tuple[Tuple[int, ...], str]]",
    "PyArrayFeedQueue.__copy__": "NoReturn", "PyArrayFeedQueue.__deepcopy__": "NoReturn", "PyArrayFeedQueue.__reduce__": "NoReturn",
    "PyArrayFeedQueueHolder.__reduce__": "NoReturn",
    "PyArrayFeedQueue.__enter__": "PyArrayFeedQueue", "PyArrayFeedQueue.__exit__": "bool", "Optimizer.__init__": "None",
    "PyArrayFeedQueue.__iter__": "Iterator[Tuple[np.ndarray, ...]]",
    "PyArrayFeedQueueHolder.feeder": "Optional[PyArrayFeedQueue]", "py_array_reader": "Tuple[Reader, PyArrayFeedQueue]",
    "Variable.__add__": "Variable", "Variable.__sub__": "Variable", "Variable.__rsub__": "Variable",
    "Variable.__mul__": "Variable", "Variable.__truediv__": "Variable", "Variable.__rtruediv__": "Variable", "Variable.__pow__": "Variable", "Variable.__neg__": "Variable",
    **dict.fromkeys(["is_first_worker", "is_worker", "is_server"], "bool"),
    **dict.fromkeys(["worker_index", "server_index", "worker_num", "server_num", "role_id"], "int"),
    **dict.fromkeys(["get_trainer_endpoints", "get_pserver_endpoints"], "List[str]"),
    **dict.fromkeys(["worker_endpoints", "server_endpoints"], "Union[str, List[str]]"),
    **dict.fromkeys(["split_files", "get_file_shard"], "List[str]"), "RoleMakerBase.to_string": "str", "run_server": "NoReturn",
    "Fleet.init": "Fleet", "Fleet.util": "FleetUtil", "Fleet.distributed_optimizer": "DistributedOptimizer",
    **dict.fromkeys(["Fleet.minimize", "DistributedOptimizer.minimize"], "Tuple[List[Variable], List[Tuple[Variable, Variable]]]"),
    "DistributedOptimizer.backward": "NoReturn", "Fleet.main_program": "Program", "Fleet.startup_program": "Program",
    **dict.fromkeys(["shrink", "shrink_sparse_table"], "Any"), "FleetUtil.all_reduce": "np.ndarray", "all_gather": "List[Any]",
    "FleetUtil.get_global_auc": "float", **{"fleet/metrics." + name: "np.ndarray" for name in ("sum", "max", "min")},
    **{"fleet/metrics." + name: "float" for name in ("auc", "mae", "mse", "rmse", "acc")},
    **{"StrategyFactory.create_%s_strategy" % name: "DistributeTranspilerConfig" for name in ("sync", "async", "half_async", "geo")},
    "DataGenerator.generate_sample": "Callable[[], Iterable[Any]]", "DataGenerator.generate_batch": "Callable[[], Iterable[Any]]",
}
BY_MODULE = {"layers": "Variable", "initializer": "_Initializer", "optimizer": "Schedule", "reader": "Reader"}
BASES = {"_Clip", "_Estimator", "_Initializer", "_Regularizer", "_Settings"}  # what arguments of other modules are
SPECIAL = {"__init__", "__call__", "__getitem__", "__eq__", "__ne__", "__array__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__", "__add__", "__sub__", "__rsub__", "__mul__", "__truediv__", "__rtruediv__", "__pow__", "__neg__", "__iter__", "__enter__", "__exit__",
           "__copy__", "__deepcopy__", "__reduce__", "__sklearn_is_fitted__", "__sklearn_tags__"}


def argument(arg, default, owner, function):
    kind = OF_CLASS.get((owner, arg.arg)) or OF_FUNCTION.get((function, arg.arg)) or TYPES.get(arg.arg, "Any")
    if default is None:
        # What must be given is not None.
        given = kind[len("Optional["):-1] if kind.startswith("Optional[") else kind
        return "%s: %s" % (arg.arg, given)
    none = isinstance(default, ast.Constant) and default.value is None
    if none and kind != "Any" and not kind.startswith("Optional"):
        kind = "Optional[%s]" % kind
    return "%s: %s = ..." % (arg.arg, kind)


def signature(function, is_method, owner):
    if function.name == "__exit__":
        return "self, kind: Any, error: Optional[BaseException], traceback: Any"
    args = function.args
    positional = args.posonlyargs + args.args
    defaults = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
    parts = []
    for i, (arg, default) in enumerate(zip(positional, defaults)):
        parts.append(arg.arg if is_method and i == 0 else argument(arg, default, owner, function.name))
    if args.vararg:
        parts.append("*%s: Any" % args.vararg.arg)
    if args.kwarg:
        parts.append("**%s: Any" % args.kwarg.arg)
    return ", ".join(parts)


def function_stub(node, module, owner, indent):
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    is_static = "staticmethod" in decorators
    key = "%s.%s" % (owner or module, node.name)
    if any(name.endswith(".setter") for name in decorators):
        return [*["%s@%s" % (indent, name) for name in decorators], "%sdef %s(%s) -> None: ..." % (
            indent, node.name, signature(node, True, owner))]
    returns = RETURNS.get(key) or RETURNS.get(node.name) or (BY_MODULE.get(module, "None") if owner is None else "None")
    lines = [indent + "@" + name for name in decorators if name in ("property", "classmethod", "staticmethod")]
    # Of every object it is a bool.
    ignored = "  # type: ignore[override]" if node.name in ("__eq__", "__ne__") else ""
    lines.append("%sdef %s(%s) -> %s: ...%s" % (indent, node.name, signature(node, owner is not None and not is_static, owner or module), returns,
                                                ignored))
    return lines


def class_stub(node):
    bases = [base for base in map(ast.unparse, node.bases) if base != "Instead"]  # whose names are not there
    lines = ["class %s%s:" % (node.name, "(%s)" % ", ".join(bases) if bases else "")]
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and (not statement.name.startswith("_") or statement.name in SPECIAL):
            lines += function_stub(statement, None, node.name, "    ")
        elif isinstance(statement, ast.AnnAssign):
            lines.append("    " + ast.unparse(statement))
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name):
            lines.append("    %s = %s" % (statement.targets[0].id, statement.value.id))
        elif isinstance(statement, ast.Assign) and ast.unparse(statement.value).startswith("staticmethod("):
            lines.append("    %s: Any" % statement.targets[0].id)
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict) and statement.targets[0].id == "_taken":
            lines += ["    %s: Any" % key.value for key in statement.value.keys]  # what _Settings makes attributes of
        elif isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") in ("__array_ufunc__", "__iter__"):
            lines.append("    %s: None" % statement.targets[0].id)  # what Python asks for and it is not
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant) and not statement.targets[0].id.startswith("_"):
            lines.append("    %s: %s" % (statement.targets[0].id, type(statement.value.value).__name__))
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            for part in ast.walk(statement):
                if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and not part.attr.startswith("_"):
                    kind = {"name": "str", "text": "str", "random_seed": "int", "auc_states": "List[str]", "thread_num": "int",
                            "slots": "List[Slot]", "predictions": "List[str]", "program": "Program" if node.name == "Variable" else "Any"}.get(part.attr, "Any")
                    line = "    %s: %s" % (part.attr, kind)
                    if line not in lines:
                        lines.append(line)
    if len(lines) == 1:
        lines[0] += " ..."
    return lines


def made_in_a_loop(tree):
    """layers.py makes some functions by their names, optimizer.py other names of classes: what a tuple of such names means."""
    tuples = {node.targets[0].id: ast.literal_eval(node.value) for node in tree.body
              if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple) and node.targets[0].id.startswith("_")}
    makers = {"_UNARY": ("", "x: Variable, name: Optional[str] = ..."), "_ELEMENTWISE": ("elementwise_", "x: Variable, y: Variable, axis: int = ..., "
                                                             "act: Optional[str] = ..., name: Optional[str] = ..."),
              "_REDUCE": ("reduce_", "input: Variable, dim: Any = ..., keep_dim: bool = ..., name: Optional[str] = ...")}
    return ["%sOptimizer = %s" % (name, name) for name in tuples.get("_RULES", ())] + [
            "def %s%s(%s) -> Variable: ..." % (prefix, name, arguments)
            for key, (prefix, arguments) in makers.items() for name in tuples.get(key, ())]


def public_names(tree, modules=None):
    """What __all__ of a module is, in layers.py made of tuples of names and of the names of other modules as well."""
    known = dict(modules or {})
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, (ast.Tuple, ast.List)):
            code = compile(ast.Expression(node.value), "names", "eval")
            try:
                known[node.targets[0].id] = eval(code, {"__builtins__": {}}, known)
            except NameError:
                continue
    return known["__all__"]


def parsed(module):
    with open(os.path.join(PACKAGE, module + ".py"), encoding="utf-8") as file:
        return ast.parse(file.read())


def public_parts(module):
    """What the parts of a module have that is public, and its names."""
    nodes, names = [], {}
    for part in PARTS.get(module, ()):
        tree = parsed(part)
        names[part] = public_names(tree)
        nodes += [node for node in tree.body
                  if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names[part]]
    return nodes, names


def stub(module):
    tree = parsed(module)
    lines = ["# Made by scripts/gen_stubs.py.", HEADER[module].rstrip("\n")]
    nodes, names = public_parts(module)
    for node in tree.body + nodes:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            public = public_names(tree, {part: argparse.Namespace(__all__=found) for part, found in names.items()})
            lines.append("__all__ = [%s]" % ", ".join('"%s"' % name for name in public))
        if isinstance(node, ast.FunctionDef) and (not node.name.startswith("_")):
            lines += function_stub(node, module, None, "")
        elif isinstance(node, ast.ClassDef) and (not node.name.startswith("_") or node.name in BASES):
            lines += class_stub(node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and not node.targets[0].id.startswith("_"):
            lines.append("%s = %s" % (node.targets[0].id, node.value.id))
    lines += made_in_a_loop(tree) if module in ("layers", "optimizer") else []
    lines += functions_of_fleet() if module == "fleet/__init__" else []
    return "\n".join(line for line in lines if line) + "\n"


def functions_of_fleet():
    """Those of the object `fleet`, which the module has as its own."""
    made = next(node for node in parsed("fleet/base").body if isinstance(node, ast.ClassDef) and node.name == "Fleet")
    lines = []
    for node in made.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and not node.decorator_list:
            lines += [line.replace("(self, ", "(").replace("(self)", "()") for line in function_stub(node, None, "Fleet", "")]
    return lines


def package_stub():
    with open(os.path.join(PACKAGE, "__init__.py"), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    lines = ["# Made by scripts/gen_stubs.py.", "from typing import Any", "from .errors import *"]
    with open(os.path.join(PACKAGE, "errors.py"), encoding="utf-8") as file:
        names = {"__version__", *public_names(ast.parse(file.read()))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_MODULES":
            groups = {}
            for key, value in zip(node.value.keys, node.value.values):
                if key is not None:
                    groups.setdefault(value.value, []).append(key.value)
                else:
                    groups.setdefault(value.args[1].value, []).extend(name.value for name in value.args[0].elts)
            groups.pop("._millrace", None)
            names.update(*groups.values())
            for module in sorted(groups):
                lines.append("from %s import %s" % (module, ", ".join("%s as %s" % (name, name) for name in sorted(groups[module]))))
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_SUBMODULES":
            lines.append("from . import %s" % ", ".join("%s as %s" % (name.value, name.value) for name in node.value.elts))
            names.update(name.value for name in node.value.elts)
    lines.append("__all__ = [%s]" % ", ".join('"%s"' % name for name in sorted(names)))
    # Modules without stubs of their own take it from here.
    return "\n".join(lines + ["_millrace: Any", "__version__: str"]) + "\n"


def main():
    wanted = {module + ".pyi": stub(module) for module in MODULES}
    wanted["__init__.pyi"] = package_stub()
    wrong = []
    for name, text in wanted.items():
        path = os.path.join(PACKAGE, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                if file.read() == text:
                    continue
        wrong.append(name)
        if "--check" not in sys.argv:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    if wrong and "--check" in sys.argv:
        sys.exit("not as the sources: %s; run scripts/gen_stubs.py" % ", ".join(wrong))


if __name__ == "__main__":
    main()
