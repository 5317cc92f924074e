# Made by scripts/gen_stubs.py.
from typing import Any
from .errors import *
from .checkpoint import Checkpoint as Checkpoint, load_checkpoint as load_checkpoint, save_checkpoint as save_checkpoint
from .dataset import DatasetFactory as DatasetFactory, FileInstantDataset as FileInstantDataset, InMemoryDataset as InMemoryDataset, QueueDataset as QueueDataset
from .estimators import Classifier as Classifier, Regressor as Regressor
from .executor import Executor as Executor, FetchHandler as FetchHandler, export_model as export_model, load_inference_model as load_inference_model, load_persistables as load_persistables, save_inference_model as save_inference_model, save_persistables as save_persistables
from .framework import CPUPlace as CPUPlace, ParamAttr as ParamAttr, Program as Program, Scope as Scope, TableRows as TableRows, Variable as Variable, default_main_program as default_main_program, default_startup_program as default_startup_program, global_scope as global_scope, load_plugin as load_plugin, op_info as op_info, op_types as op_types, program_guard as program_guard, scope_guard as scope_guard
from .io import DataFeeder as DataFeeder
from .job import Job as Job
from .lod_tensor import LoDTensor as LoDTensor, create_lod_tensor as create_lod_tensor
from .predictor import Predictor as Predictor, Slot as Slot
from .reader import PyArrayFeedQueue as PyArrayFeedQueue, PyArrayFeedQueueHolder as PyArrayFeedQueueHolder, py_array_reader as py_array_reader
from .report import Report as Report
from .trainer_desc import Hogwild as Hogwild, MultiTrainer as MultiTrainer, PipelineTrainer as PipelineTrainer, Section as Section, TrainerDesc as TrainerDesc, TrainerFactory as TrainerFactory
from . import checkpoint as checkpoint, clip as clip, core as core, data_generator as data_generator, dataset as dataset, errors as errors, estimators as estimators, executor as executor, fleet as fleet, framework as framework, initializer as initializer, io as io, layers as layers, lod_tensor as lod_tensor, optimizer as optimizer, reader as reader, regularizer as regularizer, trainer_desc as trainer_desc, unique_name as unique_name
__all__ = ["AlreadyExistsError", "CPUPlace", "CancelledError", "Checkpoint", "Classifier", "ConfigError", "DataError", "DataFeeder", "DatasetFactory", "EOFException", "Error", "Executor", "FetchHandler", "FileInstantDataset", "Hogwild", "InMemoryDataset", "InternalError", "IoError", "Job", "LoDTensor", "MillraceWarning", "MultiTrainer", "NotFoundError", "ParamAttr", "PipelineTrainer", "Predictor", "Program", "PyArrayFeedQueue", "PyArrayFeedQueueHolder", "QueueDataset", "Regressor", "Report", "Scope", "Section", "Slot", "StopTraining", "TableRows", "TrainerDesc", "TrainerFactory", "UnavailableError", "Variable", "__version__", "checkpoint", "clip", "core", "create_lod_tensor", "data_generator", "dataset", "default_main_program", "default_startup_program", "errors", "estimators", "executor", "export_model", "fleet", "framework", "global_scope", "initializer", "io", "layers", "load_checkpoint", "load_inference_model", "load_persistables", "load_plugin", "lod_tensor", "op_info", "op_types", "optimizer", "program_guard", "py_array_reader", "reader", "regularizer", "save_checkpoint", "save_inference_model", "save_persistables", "scope_guard", "trainer_desc", "unique_name"]
_millrace: Any
__version__: str
