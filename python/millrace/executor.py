"""Runs programs: startup programs, training runs, single batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
import math
import os
import re
import sys
import tempfile
from types import TracebackType
from typing import Any, Literal, Optional, SupportsIndex, Union
import warnings

import numpy as np

from . import _checks, _millrace, _ranks
from . import _formulas  # noqa: F401
from ._settings import Named, name_in, name_of, quoted
from ._types import Feed, Path
from .dataset import DatasetBase
from .errors import ConfigError, Error, MillraceWarning, NotFoundError, StopTraining
from .framework import CPUPlace, Program, Scope, Variable, _loaded_program, default_main_program, global_scope
from .lod_tensor import _cut
from .report import Report
from .trainer_desc import TrainerDesc, TrainerFactory

__all__ = ["Executor", "FetchHandler", "export_model", "load_inference_model", "load_persistables", "save_inference_model",
           "save_persistables"]

Targets = Union[Named, Iterable[Named]]
Fetches = Optional[Targets]
Slots = Union[DatasetBase, Iterable[Named]]  # slots of a line: a dataset, or names
_Fed = tuple[str, np.ndarray, Optional[np.ndarray]]


class FetchHandler:
    """Observes variables while a program trains. Derive from it and implement handler.

    var_dict     {"name in res_dict": Variable}
    period_secs  seconds between two calls; 0: after every batch
    """

    def __init__(self, var_dict: Mapping[str, Named], period_secs: float = 60) -> None:
        if not isinstance(var_dict, Mapping):
            raise ConfigError("FetchHandler: a dict of Variables by the names that handler calls them, not %r" % (var_dict,))
        self.var_dict = dict(var_dict)
        self.period_secs = period_secs

    def handler(self, res_dict: dict[str, Optional[np.ndarray]]) -> None:
        """Receives {"name in res_dict": array}, with None for a variable without a tensor. An exception ends the run.
        StopTraining ends the run successfully after the current batch."""
        raise NotImplementedError("write handler(self, res_dict)")

    def _names(self) -> dict[str, str]:
        return {key: name_of(var) for key, var in self.var_dict.items()}

    def _check(self, program: Program) -> None:
        for var in self.var_dict.values():
            name_in(program, var, "fetch_handler: ")


class Executor:
    """Runs programs on the variables of a scope. Default: global_scope()."""

    def __repr__(self) -> str:
        return "Executor(%r)" % (self.place or CPUPlace(),)

    def __init__(self, place: Optional[CPUPlace] = None) -> None:
        if place is not None:
            _checks.one_of("Executor: place", place, CPUPlace)
        self.place = place

    def run(self, program: Optional[Program] = None, feed: Union[Feed, Sequence[Feed], None] = None, fetch_list: Fetches = (),
            feed_var_name: str = "feed", fetch_var_name: str = "fetch", scope: Optional[Scope] = None,
            return_numpy: bool = True, use_program_cache: bool = True) -> list[np.ndarray]:
        """Runs a program once and returns the fetched variables as numpy arrays. The prepared program is cached. Arguments not
        described here exist for compatibility with fluid and have no effect.

        A startup program initializes its parameters again. For other programs, `feed` is keyed by Variable or name. Pass an
        array of the variable's shape or, for lod_level 1, a list or tuple with one sequence per row, an array [rows, k], or
        create_lod_tensor(values, [lengths]). A started PyReader feeds its own variables and, like any reader, raises EOFException
        at its end. Ids range from 0 to 2**64 - 1. Values that are not finite raise an error if the program
        trains, and cause a MillraceWarning otherwise.
        """
        program = _program(program)
        for what, given in (("feed_var_name", feed_var_name), ("fetch_var_name", fetch_var_name)):
            _checks.text("run: " + what, given)
        scope = _scope(scope)
        if isinstance(fetch_list, (Variable, str)):
            fetch_list = [fetch_list]  # a Variable has no boolean value for the test below
        if program._is_startup():
            if feed or fetch_list:
                raise ConfigError("run: a startup program is fed nothing and gives nothing; fetch by run(main_program), or look at "
                                  "global_scope().get(name)")
            for main in program._mains:
                scope._scope.run_startup(main._author.startup(), program.random_seed, main._key)
                folder = main._initial_folder
                if folder is not None and os.path.exists(os.path.join(folder, "MODEL")):
                    scope._scope.load_weights(main.serialize(), folder)
                elif folder is not None:
                    load_persistables(self, folder, main, scope)
            return []
        if isinstance(feed, (list, tuple)) and len(feed) == 1:
            feed = feed[0]  # a PyReader yields a list with one feed per place
        if feed is not None and not isinstance(feed, Mapping):
            raise ConfigError("feed: a dict of arrays by variables or their names, not %r" % (feed,))
        if feed or fetch_list:
            _check_has_layers("run", program)
        for queue in program._queues:
            queue._check_ids()
        feed = dict(feed or {})
        for source in program._sources:
            feed = {**source._next_feed(feed), **feed}
        feeds = _feeds(program, feed)
        scope._keep_shared(program)
        with _places(program):
            return _millrace.run_program(scope._scope, (program._key, program._version()), program.serialize, feeds,
                                         _fetches(program, fetch_list), program.random_seed, program._own_counts(scope),
                                         program._root()._key)

    def train_from_dataset(self, program: Optional[Program] = None, dataset: Optional[DatasetBase] = None,
                           scope: Optional[Scope] = None, thread: SupportsIndex = 0, debug: bool = False,
                           fetch_list: Fetches = None, fetch_info: Union[str, Iterable[str], None] = None,
                           print_period: SupportsIndex = 100, fetch_handler: Optional[FetchHandler] = None,
                           update_mode: Optional[str] = None, verbose: bool = True, allow_non_finite: bool = False) -> Report:
        """Trains one pass over the dataset and returns a Report.

        thread        number of workers; 0: use the dataset's setting
        debug         prints the TrainerDesc, the operators, and a profile every 100 batches on standard error
        fetch_list    variables that worker 0 prints on sys.stdout every print_period batches (0: never) and that
                      Report.history stores, labeled with the strings of fetch_info; Report.metrics contains the last value of
                      scalars; counters such as auc cover all threads and ranks
        verbose       False: prints nothing; values are stored only in Report.history
        fetch_handler a FetchHandler that observes variables during the run
        update_mode   "SERIAL" (default for one worker: file and line order, bit-identical results), "HOGWILD" (default
                      for several workers) or "ROW_LOCK"
        allow_non_finite  True: warns if a loss, or a parameter at the end, is nan or inf; False: raises DataError

        Ctrl-C stops the run within a second. The parameters are then those after the last complete batch.
        """
        return self._run_from_dataset(program, dataset, scope, thread, debug, fetch_list, fetch_info, print_period,
                                      fetch_handler, update_mode, False, verbose, allow_non_finite)

    def infer_from_dataset(self, program: Optional[Program] = None, dataset: Optional[DatasetBase] = None,
                           scope: Optional[Scope] = None, thread: SupportsIndex = 0, debug: bool = False,
                           fetch_list: Fetches = None, fetch_info: Union[str, Iterable[str], None] = None,
                           print_period: SupportsIndex = 100, fetch_handler: Optional[FetchHandler] = None,
                           update_mode: Optional[str] = None, verbose: bool = True) -> Report:
        """Runs the program like train_from_dataset, but without gradients and updates: parameters and tables do not change. The
        auc of its Report covers only this pass. Counters of the program, fetched or not, accumulate in the scope."""
        return self._run_from_dataset(program, dataset, scope, thread, debug, fetch_list, fetch_info, print_period,
                                      fetch_handler, update_mode, True, verbose)

    def train_from_reader(self, program: Optional[Program] = None, scope: Optional[Scope] = None, debug: bool = False,
                          fetch_list: Fetches = None, fetch_info: Union[str, Iterable[str], None] = None,
                          print_period: SupportsIndex = 100, fetch_handler: Optional[FetchHandler] = None,
                          epochs: SupportsIndex = 1, verbose: bool = True, allow_non_finite: bool = False,
                          thread: SupportsIndex = 1) -> Report:
        """Trains a program that reads its own data (millrace.reader) to the end of its readers, `epochs` times.

        Run its startup program, which creates the readers, on the scope first. A reader with its own generator
        (decorate_batch_generator) is started automatically for all epochs. Other arguments and the result are the same as for
        train_from_dataset. With several threads, each thread trains different batches of the same readers on shared parameters.
        If the run ends early, the queues of py_array_reader are closed, and push raises CancelledError.
        """
        program = _program(program)
        epochs = _checks.whole("train_from_reader: epochs", epochs, 1)
        thread = _checks.whole("train_from_reader: thread", thread, 1)
        fields = ["update_mode: %s" % _update_mode(thread), "epochs: %d" % epochs, *_allowed(allow_non_finite)]
        begun, items = [], None
        try:
            items = _scope(scope)._scope.items_read()
            for queue in program._queues:
                queue._check_ids()
            begun += [source for source in program._sources if source._start_passes(epochs)]
            desc = self._describe("train_from_reader", program, thread, debug, fetch_list, fetch_info, print_period, fields)
            report = self._run("train_from_reader", program, desc, scope, debug, fetch_handler, None, 3, verbose,
                               on_ranks=_ranks.size() > 1)
        except BaseException as error:
            # Nothing was read: producers can keep pushing for a corrected call.
            is_mistake = isinstance(error, ConfigError) and (items is None or items == _scope(scope)._scope.items_read())
            for source in begun if is_mistake else program._sources:
                source._stop(error)
            if is_mistake:
                raise
            for queue in program._queues:
                queue._training_failed(error)
            raise
        for source in program._sources:
            source._ended()
        if report.stopped_early:
            for source in program._sources:
                source._stop(None)
            for queue in program._queues:
                queue._training_failed(StopTraining("the training was ended by its FetchHandler"))
        return report

    def trainer_desc(self, program: Optional[Program] = None, dataset: Optional[DatasetBase] = None, thread: SupportsIndex = 0,
                     debug: bool = False, fetch_list: Fetches = None, fetch_info: Union[str, Iterable[str], None] = None,
                     print_period: SupportsIndex = 100, update_mode: Optional[str] = None) -> TrainerDesc:
        """Returns the TrainerDesc that train_from_dataset would run with these arguments. str() shows its text, and
        save(dirname) writes a job for `trainer`. A job with an InMemoryDataset loads and shuffles its files when it runs."""
        program = _program(program)
        return self._describe_pass("trainer_desc", program, _dataset("trainer_desc", dataset), lambda given: given._job_fields(),
                                   thread, debug, fetch_list, fetch_info, print_period, update_mode)

    def close(self) -> None:
        """Does nothing. Exists for compatibility with Paddle."""

    def _run_from_dataset(self, program: Optional[Program], dataset: Optional[DatasetBase], scope: Optional[Scope],
                          thread: SupportsIndex, debug: bool, fetch_list: Fetches, fetch_info: Union[str, Iterable[str], None],
                          print_period: SupportsIndex, fetch_handler: Optional[FetchHandler], update_mode: Optional[str],
                          infer: bool, verbose: bool, allow_non_finite: bool = False) -> Report:
        call = "infer_from_dataset" if infer else "train_from_dataset"
        program, dataset = _program(program), _dataset(call, dataset)
        desc = self._describe_pass(call, program, dataset, lambda given: given._run_fields(), thread, debug, fetch_list, fetch_info,
                                   print_period, update_mode, infer, allow_non_finite)
        if not infer and not program._is_trained and _ranks.leads():
            warnings.warn("train_from_dataset: the program updates nothing, as no optimizer's minimize was called; "
                          "infer_from_dataset looks at rows without training", MillraceWarning, stacklevel=3)
        memory, on_ranks = dataset._memory(), _is_of_ranks(dataset, infer)
        rule = dataset._zeros_rule()
        trained = program._trained_on.get("zeros", rule)
        if rule != trained and _ranks.leads():
            kept = {"KEEP": "kept", "DROP": "left out"}
            warnings.warn('%s: the program was trained with zeros of sparse slots %s, and here they are %s: dataset.set_zeros("%s") '
                          "gives it the ids that it was trained on" % (call, kept[trained], kept[rule], trained),
                          MillraceWarning, stacklevel=3)
        if not infer:
            program._trained_on.update(zeros=rule, empty_slot=dataset._fields.get("empty_slot", "ERROR"))
        if not (on_ranks or dataset.filelist or memory):
            # This rank infers on its own, and other ranks have the files.
            _scope(scope)._keep_shared(program)
            warnings.warn("%s: there was no row to read, as this rank has no files" % call, MillraceWarning, stacklevel=3)
            return Report._of_nothing(_checks.whole(call + ": thread", thread, 0) or dataset.thread_num)
        return self._run(call, program, desc, scope, debug, fetch_handler, memory, 4, verbose, infer, on_ranks)

    def _describe(self, call: str, program: Program, workers: int, debug: bool, fetch_list: Fetches,
                  fetch_info: Union[str, Iterable[str], None], print_period: SupportsIndex, fields: Iterable[str],
                  opt_info: Optional[Mapping[str, Any]] = None) -> TrainerDesc:
        """Returns the TrainerDesc of a run."""
        _check_has_layers(call, program)
        print_period = _checks.whole("print_period", print_period, 0)
        names = _fetches(program, fetch_list)
        for name in names:
            if not program._author.has(name) and not program.var(name).persistable:
                raise ConfigError('fetch_list: "%s" is a variable of a block; fetch one from before the block, to which the block '
                                  "writes it by assign(x, output=...)" % name)
        if isinstance(fetch_info, str):
            fetch_info = [fetch_info]  # one text for one variable
        info = [_checks.text("fetch_info", one) for one in fetch_info] if fetch_info is not None else names
        if len(info) != len(names):
            raise ConfigError("fetch_info has %d texts for %d variables" % (len(info), len(names)))
        counted = [*program.auc_states, *_millrace.unread_counters(program.serialize())] if workers > 1 else []
        states = {"stat_var_names": list(dict.fromkeys(counted))} if counted else {}
        desc = TrainerFactory()._create_trainer({**states, **(opt_info or {})})
        desc._set_program(program)
        desc._set_thread(workers)
        desc._set_debug(debug)
        desc._set_fetch_var_and_info(names, info, print_period)
        desc._set(*fields)
        return desc

    def _describe_pass(self, call: str, program: Program, dataset: DatasetBase,
                       dataset_fields: Callable[[DatasetBase], str], thread: SupportsIndex, debug: bool, fetch_list: Fetches,
                       fetch_info: Union[str, Iterable[str], None], print_period: SupportsIndex, update_mode: Optional[str],
                       infer: bool = False, allow_non_finite: bool = False) -> TrainerDesc:
        """Returns the TrainerDesc of a run over a dataset."""
        if program._is_startup():
            raise ConfigError(call + " runs main programs; run the startup program by run()")
        workers = _checks.whole(call + ": thread", thread, 0) or dataset.thread_num
        fields = [dataset_fields(dataset), *_allowed(allow_non_finite)]
        on_ranks = call != "trainer_desc" and _is_of_ranks(dataset, infer)
        if update_mode or not on_ranks:
            fields.append("update_mode: %s" % (update_mode or _update_mode(workers)))
        if on_ranks and program._dist:
            fields.append("dist { %s }" % program._dist)
        if infer:
            fields.append("infer: true")
        return self._describe(call, program, workers, debug, fetch_list, fetch_info, print_period, fields,
                              None if infer else program._pipeline_opt)

    def _run(self, call: str, program: Program, desc: TrainerDesc, scope: Optional[Scope], debug: bool,
             fetch_handler: Optional[FetchHandler], memory: Optional[_millrace.Memory], stacklevel: int, verbose: bool,
             infer: bool = False, on_ranks: bool = False) -> Report:
        if fetch_handler is not None:
            _checks.one_of("fetch_handler", fetch_handler, FetchHandler)._check(program)
        if debug and _ranks.leads():
            sys.stderr.write(str(desc) + program.ops())
        sys.stdout.flush()
        sys.stderr.flush()
        with tempfile.TemporaryDirectory(prefix="millrace") as folder, _places(program):
            program.save(folder)
            if on_ranks:
                _scope(scope)._share_counts(call)
            else:
                _scope(scope)._keep_shared(program)
            result = _millrace.run_dataset(_scope(scope)._scope, desc._text(folder), memory, fetch_handler,
                                           infer or program._is_test, program._root()._key, not verbose or not _ranks.leads(),
                                           on_ranks)
        if on_ranks:
            result = _ranks.of_leader(result, "the report of " + call)
        non_finite = result.pop("non_finite_losses")
        if non_finite and _ranks.leads():
            warnings.warn("%s: the loss of %d batches was nan or infinite" % (call, non_finite), MillraceWarning,
                          stacklevel=stacklevel)
        report = Report(**result)
        if not _ranks.leads():
            return report
        if report.data["left_out"]:
            warnings.warn("%s: %s" % (call, report.data["left_out"]), MillraceWarning, stacklevel=stacklevel)
        if report.examples == 0:
            # An empty day is valid, but warn because nothing was learned.
            warnings.warn("%s: there was no row to read" % call, MillraceWarning, stacklevel=stacklevel)
        return report


def _dataset(call: str, given: object) -> DatasetBase:
    if given is None:
        raise ConfigError(call + " needs a dataset")
    return _checks.one_of(call + ": dataset", given, DatasetBase)


def _is_of_ranks(dataset: DatasetBase, infer: bool) -> bool:
    """Whether all ranks take part in a pass over the dataset: training, and inference on rows in memory."""
    return _ranks.size() > 1 and (not infer or dataset._memory() is not None)


def save_persistables(executor: Optional[Executor], dirname: Path, main_program: Optional[Program] = None,
                      scope: Optional[Scope] = None) -> None:
    """Saves everything needed to resume training: every parameter and optimizer state in DIRNAME/NAME, in Paddle's format,
    growing tables with their optimizer state in DIRNAME/tables/NAME, and the step for learning rates in DIRNAME/MANIFEST."""
    program = _program(main_program)
    _scope(scope)._scope.save(program.serialize(), _checks.path("save_persistables: dirname", dirname), program.random_seed,
                              program._root()._key)


def load_persistables(executor: Optional[Executor], dirname: Path, main_program: Optional[Program] = None,
                      scope: Optional[Scope] = None) -> None:
    """Loads the output of save_persistables, also of a larger program. On an error nothing is loaded. A folder written by Paddle
    has no MANIFEST, so it contains neither tables nor the step."""
    program = _program(main_program)
    dirname = _checks.path("load_persistables: dirname", dirname)
    knows_step = _scope(scope)._scope.load(program.serialize(), dirname, program._root()._key)
    if not knows_step and "learning_rate_schedule" in program.ops():
        warnings.warn('load_persistables: "%s" does not say how far its parameters were trained, as it has no MANIFEST: the '
                      "schedule of the learning rate goes on from where the scope stands" % dirname, MillraceWarning, stacklevel=2)


def save_inference_model(dirname: Path, feeded_var_names: Slots,
                         target_vars: Targets, executor: Optional[Executor] = None,
                         main_program: Optional[Program] = None, scope: Optional[Scope] = None,
                         pooled: Iterable[Named] = ()) -> None:
    """Saves a model for millrace.Predictor and the program `predictor`.

    dirname           the folder; it is not replaced if it contains anything other than a model
    feeded_var_names  the slots in line order: names or Variables of layers.data, or a dataset whose lines the model will score
    target_vars       the prediction, [batch, 1] or [batch, classes], or a list of all outputs of load_inference_model, such as
                      [predict, auc]; scores come from the first output with one row per example
    pooled            outputs of embedding and pooling that an online caller feeds instead of ids
    main_program      default: the program of the first target
    """
    targets = [target_vars] if isinstance(target_vars, (Variable, str)) else _checks.listed(
        "save_inference_model: target_vars", target_vars, "Variables")
    if not targets:
        raise ConfigError("save_inference_model: target_vars is empty; name the prediction")
    program = targets[0].program if main_program is None and isinstance(targets[0], Variable) else _program(main_program)
    data = _lines("save_inference_model", program, feeded_var_names)
    names = [name_in(program, var, "save_inference_model: target_vars: ") for var in targets]
    prediction, several = names[0], names if len(names) > 1 else []
    if several:
        prediction = next((name for name in names if program._meta(name)["shape"][:1] == (-1,)), prediction)
    online = [name_in(program, var, "save_inference_model: pooled: ") for var in pooled]
    _scope(scope)._scope.save_model(program._test_bytes(), program.startup_bytes(), data, prediction, several, online,
                                    _checks.path("save_inference_model: dirname", dirname))


def load_inference_model(dirname: Path, executor: Optional[Executor] = None, scope: Optional[Scope] = None) -> list[Any]:
    """Loads a model saved by save_inference_model or Paddle. Returns [program, names of its inputs, predictions as Variables]
    for exe.run(program, feed={...}, fetch_list=predictions).

    The parameters and tables (only weights, not trainable) are loaded into the scope and replace parameters of the same
    name. Raises AlreadyExistsError if an existing variable does not match or a table exists already. In that case use a
    separate scope: scope_guard(Scope()).
    """
    loaded = _scope(scope)._scope.load_model(_checks.path("load_inference_model: dirname", dirname))
    for warning in loaded["warnings"]:
        warnings.warn(warning, MillraceWarning, stacklevel=2)
    program = _loaded_program(loaded["program"], loaded["seed"])
    program._looked_up.update(loaded["looked_up"])
    return [program, loaded["feeds"], [program.var(name) for name in loaded["fetches"]]]


def export_model(dirname: Path, feeded_var_names: Slots, target_vars: Targets,
                 main_program: Optional[Program] = None, scope: Optional[Scope] = None, format: str = "PADDLE",
                 vocabulary: Optional[SupportsIndex] = None) -> None:
    """Exports a model to another runtime. "PADDLE" writes DIRNAME/model.pdmodel and .pdiparams, which
    paddle.static.load_inference_model("DIRNAME/model", exe) and millrace.Predictor load. "ONNX" writes DIRNAME/offline.onnx.

    feeded_var_names  as for save_inference_model
    target_vars       the predictions, one or a list
    vocabulary        number of exported rows of a growing table: its largest id plus one

    Raises ConfigError if the format cannot represent the model. Replaces an existing exported model of either format, but not
    a folder with any other content, including other models.
    """
    targets = [target_vars] if isinstance(target_vars, (Variable, str)) else _checks.listed(
        "export_model: target_vars", target_vars, "Variables")
    if not targets:
        raise ConfigError("export_model: target_vars is empty")
    if format not in ("PADDLE", "ONNX"):
        raise ConfigError('export_model: format is "PADDLE" or "ONNX", not %r' % (format,))
    program = targets[0].program if main_program is None and isinstance(targets[0], Variable) else _program(main_program)
    fields = ["format: %s" % format]
    if vocabulary is not None:
        fields.append("vocabulary: %d" % _checks.whole("export_model: vocabulary", vocabulary, 1))
    dirname = _checks.path("export_model: dirname", dirname)
    _scope(scope)._scope.export_model(program._test_bytes(), _lines("export_model", program, feeded_var_names),
                                      [name_in(program, var, "export_model: target_vars: ") for var in targets], " ".join(fields),
                                      dirname)


def _lines(call: str, program: Program, given: Slots) -> str:
    """Returns the job fields that describe the lines to score."""
    if isinstance(given, DatasetBase):
        dataset = given
    else:
        slots = _checks.listed(call + ": feeded_var_names", given, "names of slots, or a dataset")
        if not slots:
            raise ConfigError(call + ": feeded_var_names is empty; name the slots that a line to score has, in their order")
        dataset = DatasetBase()
        dataset.set_use_var([program.var(name_in(program, slot, call + ": feeded_var_names: ")) for slot in slots])
        dataset.set_zeros(program._trained_on.get("zeros", "KEEP"))
        dataset.set_empty_slot(program._trained_on.get("empty_slot", "ERROR"))
    return "data_desc {\n%s\n}\ndataset { class_name: %s }\nseed: %d\nfilelist: \"/dev/null\"" % (
        dataset._data_desc(), quoted(dataset.class_name), program.random_seed)


def _update_mode(workers: int) -> str:
    """Returns the default update mode for this number of workers."""
    return "SERIAL" if workers == 1 else "HOGWILD"


def _allowed(non_finite: bool) -> list[str]:
    """Returns the job fields that allow nan and inf in losses and parameters."""
    return ["allow_non_finite: true"] if non_finite else []


def _program(given: object) -> Program:
    return default_main_program() if given is None else _checks.one_of("program", given, Program)


def _check_has_layers(call: str, program: Program) -> None:
    if program._is_empty():
        raise ConfigError("%s: the program has no layers; they went to another one. program_guard, and every thread, has "
                          "default programs of its own: pass the program that was built" % call)


def _scope(given: object) -> Scope:
    return global_scope() if given is None else _checks.one_of("scope", given, Scope)


def _fetches(program: Program, fetch_list: Fetches) -> list[str]:
    """Returns the names of the variables to fetch. A single variable is treated as a list."""
    given = [fetch_list] if isinstance(fetch_list, (Variable, str)) else fetch_list or ()
    names = [name_in(program, var, "fetch_list: ") for var in given]
    for name in names:
        try:
            program._meta(name)
        except NotFoundError as error:
            raise ConfigError("fetch_list: %s" % error) from None
    return names


def _values(name: str, given: Any, dtype: np.dtype[Any], is_id: bool = False, row: Optional[int] = None) -> np.ndarray:
    """Returns an array of the variable's type. Raises ConfigError if a number would change its value, an id would lose bits,
    or an id is below 0."""
    whole = dtype.kind in "iu"
    try:
        _checks.unmasked('feed "%s"' % name, given)
        array = _checks.whole_array(given, 0 if is_id else -2 ** 63) if whole else np.asarray(given)
    except ConfigError:
        raise
    except (OverflowError, TypeError, ValueError) as error:
        raise ConfigError('feed "%s": %s' % (name, error)) from None
    if array.size and array.dtype.kind not in ("biu" if whole else "biuf"):
        raise ConfigError('feed "%s" holds %s; give %s, not %s' % (
            name, dtype, "whole numbers" if whole else "numbers", array.dtype))
    if whole and array.size and dtype.itemsize < 8:
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        if array.min() < least or array.max() > most:
            raise ConfigError('feed "%s" holds %s, from %d to %d; there are values from %d to %d' % (
                name, dtype, least, most, array.min(), array.max()))
    if is_id:
        _checks.ids('feed "%s"' % name, array, row)
    return array.astype(dtype, copy=False)


def _feeds(program: Program, feed: Feed) -> list[_Fed]:
    feeds, names = [], set()
    for key, given in feed.items():
        name = name_in(program, key, "feed: ")
        if name in names:
            raise ConfigError('feed: "%s" is there twice' % name)
        names.add(name)
        feeds.append(_fed(program, name, given))
    return feeds


def _fed(program: Program, name: str, given: Any) -> _Fed:
    meta = program._meta(name)
    dtype = np.dtype(meta["dtype"])
    what, is_id = 'feed "%s"' % name, name in program._looked_up
    if meta["lod_level"] == 0:
        values, offsets = np.ascontiguousarray(_values(name, given, dtype, is_id)), None
    else:
        width = max(1, math.prod(meta["shape"][1:]))
        plain = {"int64": True, "float32": False}.get(meta["dtype"]) if is_id or dtype.kind == "f" else None
        values, offsets = _cut(what, given, lambda part, row: _values(name, part, dtype, is_id, row), width, plain)
        values = values.view(dtype) if values.dtype.kind == "u" else values  # ids are reinterpreted as 64 bits
        if values.ndim == 1:
            values = values.reshape(-1, 1)
    if dtype.kind == "f":
        _checks.finite(what, values, offsets, refused="which trains the parameters to nan" if program._is_trained else None)
    return name, np.ascontiguousarray(values), offsets


class _places:
    """Adds the source line of the named operators to an error message."""

    def __init__(self, program: Program) -> None:
        self._lines = program._lines

    def __enter__(self) -> _places:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> Literal[False]:
        if not isinstance(error, Error):
            return False
        places = {name: self._lines[name] for name in re.findall(r'"([^"\n]+)"', str(error)) if name in self._lines}
        if places:
            text = "".join('\n  "%s" is made at %s' % item for item in places.items())
            error.args = (str(error) + text,)
        return False
