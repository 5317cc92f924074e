"""Runs programs: startup programs, trainings, single batches."""

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
Slots = Union[DatasetBase, Iterable[Named]]  # of a line: those of a dataset, or by name
_Fed = tuple[str, np.ndarray, Optional[np.ndarray]]


class FetchHandler:
    """Looks at variables while a program trains: derive, and write handler.

    var_dict     {"what handler calls it": Variable}
    period_secs  seconds between two calls; 0: after every batch
    """

    def __init__(self, var_dict: Mapping[str, Named], period_secs: float = 60) -> None:
        if not isinstance(var_dict, Mapping):
            raise ConfigError("FetchHandler: a dict of Variables by the names that handler calls them, not %r" % (var_dict,))
        self.var_dict = dict(var_dict)
        self.period_secs = period_secs

    def handler(self, res_dict: dict[str, Optional[np.ndarray]]) -> None:
        """Gets {"what handler calls it": array}, None for what holds no tensor. What it raises ends the training; by
        StopTraining it ends as a success when this batch is done."""
        raise NotImplementedError("write handler(self, res_dict)")

    def _names(self) -> dict[str, str]:
        return {key: name_of(var) for key, var in self.var_dict.items()}

    def _check(self, program: Program) -> None:
        for var in self.var_dict.values():
            name_in(program, var, "fetch_handler: ")


class Executor:
    """Runs programs on the variables of a scope, by default global_scope()."""

    def __repr__(self) -> str:
        return "Executor(%r)" % (self.place or CPUPlace(),)

    def __init__(self, place: Optional[CPUPlace] = None) -> None:
        if place is not None:
            _checks.one_of("Executor: place", place, CPUPlace)
        self.place = place

    def run(self, program: Optional[Program] = None, feed: Union[Feed, Sequence[Feed], None] = None, fetch_list: Fetches = (),
            feed_var_name: str = "feed", fetch_var_name: str = "fetch", scope: Optional[Scope] = None,
            return_numpy: bool = True, use_program_cache: bool = True) -> list[np.ndarray]:
        """Runs a program once and returns the fetched variables as numpy arrays. What was prepared for a program serves again; the
        arguments that have no other text here are fluid's, and change nothing.

        A startup program makes its parameters anew. Another program is fed by Variable or name: an array of the variable's
        shape, or for a variable of lod_level 1 a list or tuple with a sequence for each row, an array [rows, k], or
        create_lod_tensor(values, [lengths]). A PyReader that was started feeds its variables itself, and EOFException is its end,
        as of any reader. Ids are 0 to 2**64 - 1. What is not finite is refused where the program trains,
        and a MillraceWarning where it does not.
        """
        program = _program(program)
        for what, given in (("feed_var_name", feed_var_name), ("fetch_var_name", fetch_var_name)):
            _checks.text("run: " + what, given)
        scope = _scope(scope)
        if isinstance(fetch_list, (Variable, str)):
            fetch_list = [fetch_list]  # a Variable has no truth to ask for below
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
            feed = feed[0]  # of one place, as a PyReader gives it
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

        thread        workers; 0: those of the dataset
        debug         shows the TrainerDesc that runs, lists the operators, and prints a profile every 100 batches, on standard error
        fetch_list    variables that worker 0 prints on sys.stdout every print_period batches (0: never), and that
                      Report.history keeps, under the texts of fetch_info; those of one value are in Report.metrics as they
                      were after the last batch, what several threads or ranks count (auc) of all of them
        verbose       False: Report.history alone has them, and nothing is printed
        fetch_handler a FetchHandler, which sees variables while it goes on
        update_mode   "SERIAL" (one worker's default: file and line order, the same to the bit each time), "HOGWILD" (that
                      of several) or "ROW_LOCK"
        allow_non_finite  a loss that is nan or inf, and parameters that are at the end, are a DataError; True: a warning

        Ctrl-C ends it within a second; the parameters are then those of the last whole batch.
        """
        return self._run_from_dataset(program, dataset, scope, thread, debug, fetch_list, fetch_info, print_period,
                                      fetch_handler, update_mode, False, verbose, allow_non_finite)

    def infer_from_dataset(self, program: Optional[Program] = None, dataset: Optional[DatasetBase] = None,
                           scope: Optional[Scope] = None, thread: SupportsIndex = 0, debug: bool = False,
                           fetch_list: Fetches = None, fetch_info: Union[str, Iterable[str], None] = None,
                           print_period: SupportsIndex = 100, fetch_handler: Optional[FetchHandler] = None,
                           update_mode: Optional[str] = None, verbose: bool = True) -> Report:
        """The same without gradients and updates: no parameter and no table changes. The auc of its Report is of this pass alone,
        whatever was counted before and elsewhere. What the program counts, fetched or not, adds up in the scope."""
        return self._run_from_dataset(program, dataset, scope, thread, debug, fetch_list, fetch_info, print_period,
                                      fetch_handler, update_mode, True, verbose)

    def train_from_reader(self, program: Optional[Program] = None, scope: Optional[Scope] = None, debug: bool = False,
                          fetch_list: Fetches = None, fetch_info: Union[str, Iterable[str], None] = None,
                          print_period: SupportsIndex = 100, fetch_handler: Optional[FetchHandler] = None,
                          epochs: SupportsIndex = 1, verbose: bool = True, allow_non_finite: bool = False,
                          thread: SupportsIndex = 1) -> Report:
        """Trains a program that reads its data itself (millrace.reader), to the end of its readers, epochs times.

        Its startup program, which makes the readers, has run on the scope. A reader with a generator of its own
        (decorate_batch_generator) is started here, for all epochs. Arguments and result are those of train_from_dataset.
        With more threads than one, each trains other batches of the same readers, on parameters that they share.
        What ends the training early closes the queues of py_array_reader: who pushes gets a CancelledError from it.
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
            # Nothing was read, or nothing is left to read: who pushes may push on, for a call without the mistake.
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
        """The TrainerDesc that train_from_dataset would run with these arguments: str() shows its text, save(dirname) writes a job
        for `trainer`. The job of an InMemoryDataset loads the files as they are then, and shuffles as its text says."""
        program = _program(program)
        return self._describe_pass("trainer_desc", program, _dataset("trainer_desc", dataset), lambda given: given._job_fields(),
                                   thread, debug, fetch_list, fetch_info, print_period, update_mode)

    def close(self) -> None:
        """Nothing is kept open; here as in Paddle."""

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
            # It infers by itself, and other ranks have the files.
            _scope(scope)._keep_shared(program)
            warnings.warn("%s: there was no row to read, as this rank has no files" % call, MillraceWarning, stacklevel=3)
            return Report._of_nothing(_checks.whole(call + ": thread", thread, 0) or dataset.thread_num)
        return self._run(call, program, desc, scope, debug, fetch_handler, memory, 4, verbose, infer, on_ranks)

    def _describe(self, call: str, program: Program, workers: int, debug: bool, fetch_list: Fetches,
                  fetch_info: Union[str, Iterable[str], None], print_period: SupportsIndex, fields: Iterable[str],
                  opt_info: Optional[Mapping[str, Any]] = None) -> TrainerDesc:
        """The TrainerDesc of a run."""
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
        """The TrainerDesc of a run over a dataset."""
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
            # A day may have no rows; that nothing was learned is to be seen.
            warnings.warn("%s: there was no row to read" % call, MillraceWarning, stacklevel=stacklevel)
        return report


def _dataset(call: str, given: object) -> DatasetBase:
    if given is None:
        raise ConfigError(call + " needs a dataset")
    return _checks.one_of(call + ": dataset", given, DatasetBase)


def _is_of_ranks(dataset: DatasetBase, infer: bool) -> bool:
    """Whether a pass over the dataset is one of all ranks: a training, and what infers rows, which are in the memory of each."""
    return _ranks.size() > 1 and (not infer or dataset._memory() is not None)


def save_persistables(executor: Optional[Executor], dirname: Path, main_program: Optional[Program] = None,
                      scope: Optional[Scope] = None) -> None:
    """Writes all that training goes on from: every parameter and optimizer state to DIRNAME/NAME, in Paddle's files, tables that
    grow, with their optimizer's state, to DIRNAME/tables/NAME, and the step, by which learning rates go, to DIRNAME/MANIFEST."""
    program = _program(main_program)
    _scope(scope)._scope.save(program.serialize(), _checks.path("save_persistables: dirname", dirname), program.random_seed,
                              program._root()._key)


def load_persistables(executor: Optional[Executor], dirname: Path, main_program: Optional[Program] = None,
                      scope: Optional[Scope] = None) -> None:
    """Reads what save_persistables wrote, of a larger program, too: all of it or, after an error, nothing. A folder of Paddle has
    no MANIFEST, and so no tables and no step."""
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
    """Writes a model that millrace.Predictor and the program `predictor` load.

    feeded_var_names  the slots in the order of a line: names or Variables of layers.data, or a dataset whose lines the
                      model will score. A folder that holds something else than a model is left as it is
    target_vars       the prediction, [batch, 1] or [batch, classes]; or a list of all that load_inference_model is to give, as
                      [predict, auc]: rows are scored by the first one that has a row for each example
    pooled            outputs of embedding and pooling that an online caller feeds instead of ids

    main_program is by default that of the first target.
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
    """A model that save_inference_model wrote, or one of Paddle, as a program: [program, names of what it is fed with, its
    predictions as Variables], for exe.run(program, feed={...}, fetch_list=predictions).

    Its parameters and tables (weights alone: it is not trained on) come into the scope and replace those of their names. What
    they do not fit, or a table that is there, is an AlreadyExistsError: give the model a scope of its own, by
    scope_guard(Scope()).
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
    """Writes a model for another runtime: for "PADDLE" DIRNAME/model.pdmodel and .pdiparams, which
    paddle.static.load_inference_model("DIRNAME/model", exe) and millrace.Predictor load, for "ONNX" DIRNAME/offline.onnx.

    feeded_var_names  as for save_inference_model
    target_vars       the predictions, one or a list
    vocabulary        how many rows a table that grows has there, one more than its largest id

    What the format cannot hold is a ConfigError. An exported model that is there, of either format, is replaced; a folder that
    holds anything else, other models too, is left as it is.
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
    """How the lines to score look, as a job's text."""
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
    """How workers update where nobody says it."""
    return "SERIAL" if workers == 1 else "HOGWILD"


def _allowed(non_finite: bool) -> list[str]:
    """What the job says of a loss and parameters that are nan or inf."""
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
    """The names of what is to be fetched; one variable stands for a list of it."""
    given = [fetch_list] if isinstance(fetch_list, (Variable, str)) else fetch_list or ()
    names = [name_in(program, var, "fetch_list: ") for var in given]
    for name in names:
        try:
            program._meta(name)
        except NotFoundError as error:
            raise ConfigError("fetch_list: %s" % error) from None
    return names


def _values(name: str, given: Any, dtype: np.dtype[Any], is_id: bool = False, row: Optional[int] = None) -> np.ndarray:
    """An array of the variable's type. Numbers keep their value, ids their 64 bits; what would not is an error, as is an id
    below 0."""
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
        values = values.view(dtype) if values.dtype.kind == "u" else values  # ids by their 64 bits
        if values.ndim == 1:
            values = values.reshape(-1, 1)
    if dtype.kind == "f":
        _checks.finite(what, values, offsets, refused="which trains the parameters to nan" if program._is_trained else None)
    return name, np.ascontiguousarray(values), offsets


class _places:
    """Adds to a failure where the operator that it names was called."""

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
