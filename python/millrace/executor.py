"""Runs programs: startup programs, trainings, single batches."""

from collections.abc import Mapping
import os
import re
import sys
import tempfile
import warnings

import numpy as np

from . import _checks, _millrace
from ._settings import name_of, quoted
from .dataset import DatasetBase
from .errors import ConfigError, Error, MillraceWarning, NotFoundError
from .framework import CPUPlace, Program, Scope, Variable, default_main_program, global_scope
from .report import Report

__all__ = ["Executor", "FetchHandler", "export_model", "load_persistables", "save_inference_model", "save_persistables"]

# All that export_model writes: what it may replace.
_EXPORTED = ("model.pdmodel", "model.pdiparams", "model.data_feed.prototxt", "offline.onnx")


class FetchHandler:
    """Looks at variables while a program trains: derive, and write handler.

    var_dict     {"what handler calls it": Variable}
    period_secs  seconds between two calls; 0: after every batch
    """

    def __init__(self, var_dict, period_secs=60):
        if not isinstance(var_dict, Mapping):
            raise ConfigError("FetchHandler: a dict of Variables by the names that handler calls them, not %r" % (var_dict,))
        self.var_dict = dict(var_dict)
        self.period_secs = period_secs

    def handler(self, res_dict):
        """Gets {"what handler calls it": array}, None for what holds no tensor. What it raises ends the training."""
        raise NotImplementedError("write handler(self, res_dict)")

    def _names(self):
        return {key: name_of(var) for key, var in self.var_dict.items()}


class Executor:
    """Runs programs on the variables of a scope, by default global_scope()."""

    def __init__(self, place=None):
        if place is not None:
            _checks.one_of("Executor: place", place, CPUPlace)
        self.place = place

    def run(self, program=None, feed=None, fetch_list=(), scope=None, return_numpy=True):
        """Runs a program once and returns the fetched variables as numpy arrays.

        A startup program makes its parameters anew. Another program is fed by name: an array of the variable's shape, or
        for a variable of lod_level 1 a list of a sequence for each row, or a pair (values, lengths).
        """
        program = _program(program)
        scope = _scope(scope)
        if program._is_startup():
            if feed or fetch_list:
                raise ConfigError("run: a startup program is fed nothing and gives nothing; fetch by run(main_program), or look at "
                                  "global_scope().get(name)")
            for main in program._mains:
                scope._scope.run_startup(main._author.startup(), program.random_seed)
            return []
        if feed is not None and not isinstance(feed, Mapping):
            raise ConfigError("feed: a dict of arrays by the names of variables, not %r" % (feed,))
        if feed or fetch_list:
            _check_has_layers("run", program)
        feeds = [_fed(program, name, given) for name, given in (feed or {}).items()]
        with _places(program):
            return _millrace.run_program(scope._scope, program.serialize(), feeds, _fetches(program, fetch_list),
                                         program.random_seed)

    def train_from_dataset(self, program=None, dataset=None, scope=None, thread=0, debug=False, fetch_list=None,
                           fetch_info=None, print_period=100, fetch_handler=None, update_mode=None):
        """Trains one pass over the dataset and returns a Report.

        thread        workers; 0: those of the dataset
        debug         lists the operators, and prints a profile every 100 batches, on standard error
        fetch_list    variables that worker 0 prints on standard output every print_period batches, and that
                      Report.history keeps, under the texts of fetch_info
        fetch_handler a FetchHandler, which sees variables while it goes on
        update_mode   "SERIAL" (one worker's default: file and line order, the same to the bit each time), "HOGWILD" (that
                      of several) or "ROW_LOCK"

        Ctrl-C ends it within a second; the parameters are then those of the last whole batch.
        """
        return self._run_from_dataset(program, dataset, scope, thread, debug, fetch_list, fetch_info, print_period,
                                      fetch_handler, update_mode, False)

    def infer_from_dataset(self, program=None, dataset=None, scope=None, thread=0, debug=False, fetch_list=None,
                           fetch_info=None, print_period=100, fetch_handler=None, update_mode=None):
        """The same without gradients and updates: no parameter and no table changes. What an operator counts (auc) is
        counted on."""
        return self._run_from_dataset(program, dataset, scope, thread, debug, fetch_list, fetch_info, print_period,
                                      fetch_handler, update_mode, True)

    def train_from_reader(self, program=None, scope=None, debug=False, fetch_list=None, fetch_info=None, print_period=100,
                          fetch_handler=None, epochs=1):
        """Trains a program that reads its data itself (millrace.reader), to the end of its readers, epochs times.

        Its startup program, which makes the readers, has run on the scope. Arguments and result are those of
        train_from_dataset. What ends the training early closes the queues of py_array_reader: who pushes gets a
        CancelledError from it.
        """
        program = _program(program)
        fields = ["update_mode: SERIAL", "epochs: %d" % _checks.whole("train_from_reader: epochs", epochs, 1)]
        try:
            return self._run("train_from_reader", program, scope, 1, debug, fetch_list, fetch_info, print_period,
                             fetch_handler, fields, None, 3)
        except ConfigError:
            raise  # nothing was read, or nothing is left to read
        except BaseException as error:
            for queue in program._queues:
                queue._training_failed(error)
            raise

    def close(self):
        """Nothing is kept open; here as in Paddle."""

    def _run_from_dataset(self, program, dataset, scope, thread, debug, fetch_list, fetch_info, print_period,
                          fetch_handler, update_mode, infer):
        call = "infer_from_dataset" if infer else "train_from_dataset"
        if dataset is None:
            raise ConfigError(call + " needs a dataset")
        _checks.one_of(call + ": dataset", dataset, DatasetBase)
        program = _program(program)
        if program._is_startup():
            raise ConfigError(call + " runs main programs; run the startup program by run()")
        if not infer and not program._is_trained:
            warnings.warn("train_from_dataset: the program updates nothing, as no optimizer's minimize was called; "
                          "infer_from_dataset looks at rows without training", MillraceWarning, stacklevel=3)
        workers = _checks.whole(call + ": thread", thread, 0) or dataset.thread_num
        mode = update_mode or ("SERIAL" if workers == 1 else "HOGWILD")
        memory = dataset._memory()
        fields = ["update_mode: %s" % mode, dataset._run_fields()]
        if infer:
            fields.append("infer: true")
        return self._run(call, program, scope, workers, debug, fetch_list, fetch_info, print_period, fetch_handler, fields,
                         memory, 4)

    def _run(self, call, program, scope, workers, debug, fetch_list, fetch_info, print_period, fetch_handler, fields,
             memory, stacklevel):
        program = _program(program)
        _check_has_layers(call, program)
        _checks.whole("print_period", print_period, 1)
        if fetch_handler is not None:
            _checks.one_of("fetch_handler", fetch_handler, FetchHandler)
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
        with tempfile.TemporaryDirectory(prefix="millrace") as folder:
            program.save(folder)
            files = [quoted(os.path.join(folder, name)) for name in ("main_program.bin", "startup_program.bin")]
            text = ["thread_num: %d" % workers, "seed: %d" % program.random_seed,
                    "program { main: %s startup: %s }" % tuple(files), *fields]
            if debug:
                text.append("debug: true")
            if names:
                fetches = ["fetch_var_names: %s fetch_var_str_format: %s" % (quoted(name), quoted(label))
                           for name, label in zip(names, info)]
                text.append("fetch_config { %s print_period: %d }" % (" ".join(fetches), print_period))
            if program.auc_states and workers > 1:
                states = " ".join("stat_var_names: %s" % quoted(name) for name in program.auc_states)
                text.append("hogwild_param { %s }" % states)
            if debug:
                sys.stderr.write(program.ops())
            sys.stdout.flush()
            sys.stderr.flush()
            with _places(program):
                report = Report(**_millrace.run_dataset(_scope(scope)._scope, "\n".join(text), memory, fetch_handler))
        if report.rows == 0:
            # A day may have no rows; that nothing was learned is to be seen.
            warnings.warn("%s: there was no row to read" % call, MillraceWarning, stacklevel=stacklevel)
        return report


def save_persistables(executor, dirname, main_program=None, scope=None):
    """Writes every parameter and optimizer state to DIRNAME/NAME, in Paddle's files. Growing tables are not among them:
    save_inference_model keeps those."""
    program = _program(main_program)
    _scope(scope)._scope.save(program.serialize(), os.fspath(dirname))


def load_persistables(executor, dirname, main_program=None, scope=None):
    """Reads what save_persistables wrote."""
    program = _program(main_program)
    _scope(scope)._scope.load(program.serialize(), os.fspath(dirname))


def save_inference_model(dirname, feeded_var_names, target_vars, executor=None, main_program=None, scope=None, pooled=()):
    """Writes a model that millrace.Predictor and the program `predictor` load.

    feeded_var_names  the slots in the order of a line: names or Variables of layers.data, or a dataset whose lines the
                      model will score. A folder that holds something else than a model is left as it is
    target_vars       the prediction, [batch, 1] or [batch, classes]; alone, or in a list
    pooled            outputs of embedding and pooling that an online caller feeds instead of ids

    main_program is by default that of the prediction.
    """
    targets = [target_vars] if isinstance(target_vars, (Variable, str)) else _checks.listed(
        "save_inference_model: target_vars", target_vars, "one Variable")
    if len(targets) != 1:
        raise ConfigError("save_inference_model: a model has one prediction, and target_vars names %d; what else you want to "
                          "look at (auc), fetch by infer_from_dataset" % len(targets))
    prediction = targets[0]
    program = prediction.program if main_program is None and isinstance(prediction, Variable) else _program(main_program)
    data = _lines("save_inference_model", program, feeded_var_names)
    _scope(scope)._scope.save_model(program._author.for_test(), program.startup_bytes(), data, name_of(prediction),
                                    [name_of(var) for var in pooled], _checks.path("save_inference_model: dirname", dirname))


def export_model(dirname, feeded_var_names, target_vars, main_program=None, scope=None, format="PADDLE", vocabulary=None):
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
    for other in sorted(os.listdir(dirname)) if os.path.isdir(dirname) else ():
        if other not in _EXPORTED:
            raise ConfigError('export_model: "%s" holds "%s", which is of no exported model, and the folder would be replaced; '
                              "give another one" % (dirname, other))
    _scope(scope)._scope.export_model(program._author.for_test(), _lines("export_model", program, feeded_var_names),
                                      [name_of(var, "export_model: target_vars: ") for var in targets], " ".join(fields), dirname)


def _lines(call, program, given):
    """How the lines to score look, as a job's text."""
    dataset = given
    if not isinstance(dataset, DatasetBase):
        slots = _checks.listed(call + ": feeded_var_names", given, "names of slots, or a dataset")
        if not slots:
            raise ConfigError(call + ": feeded_var_names is empty; name the slots that a line to score has, in their order")
        dataset = DatasetBase()
        dataset.set_use_var([slot if isinstance(slot, Variable) else program.var(name_of(slot)) for slot in slots])
    return "data_desc {\n%s\n}\nseed: %d\nfilelist: \"/dev/null\"" % (dataset._data_desc(), program.random_seed)


def _program(given):
    return default_main_program() if given is None else _checks.one_of("program", given, Program)


def _check_has_layers(call, program):
    if program._is_empty():
        raise ConfigError("%s: the program has no layers; they went to another one. program_guard, and every thread, has "
                          "default programs of its own: pass the program that was built" % call)


def _scope(given):
    return global_scope() if given is None else _checks.one_of("scope", given, Scope)


def _fetches(program, fetch_list):
    """The names of what is to be fetched; one variable stands for a list of it."""
    given = [fetch_list] if isinstance(fetch_list, (Variable, str)) else fetch_list or ()
    names = [name_of(var, "fetch_list: ") for var in given]
    for name in names:
        try:
            program.var(name)
        except NotFoundError as error:
            raise ConfigError("fetch_list: %s" % error) from None
    return names


def _values(name, given, dtype):
    """An array of the variable's type. Numbers keep their value, ids their 64 bits; what would not is an error."""
    whole = dtype.kind in "iu"
    try:
        array = _checks.whole_array(given) if whole else np.asarray(given)
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
    return array.astype(dtype, copy=False)


def _fed(program, name, given):
    var = program.var(name)
    dtype = np.dtype(var.dtype)
    if var.lod_level == 0:
        return name, np.ascontiguousarray(_values(name, given, dtype)), None
    if isinstance(given, tuple) and len(given) == 2:
        values, lengths = _values(name, given[0], dtype), _values(name, given[1], np.dtype(np.int64)).reshape(-1)
    else:
        rows = [_values(name, row, dtype).reshape(-1) for row in given]
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        values = np.concatenate(rows) if rows else np.zeros(0, dtype=dtype)
    if (lengths < 0).any() or int(lengths.sum()) != values.shape[0]:
        raise ConfigError('feed "%s": lengths must not be negative; they sum to %d, and there are %d values' % (
            name, lengths.sum(), values.shape[0]))
    if values.ndim == 1:
        values = values.reshape(-1, 1)
    return name, np.ascontiguousarray(values), np.concatenate([[0], np.cumsum(lengths)])


class _places:
    """Adds to a failure where the operator that it names was called."""

    def __init__(self, program):
        self._lines = program._lines

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if not isinstance(error, Error):
            return False
        places = {name: self._lines[name] for name in re.findall(r'"([^"\n]+)"', str(error)) if name in self._lines}
        if places:
            text = "".join('\n  "%s" is made at %s' % item for item in places.items())
            error.args = (str(error) + text,)
        return False
