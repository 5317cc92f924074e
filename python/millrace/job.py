"""Jobs: what `trainer --trainer_desc=FILE` runs, from Python."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Optional, Union

from . import _frames, _millrace, _ranks
from ._settings import quoted
from ._types import Data, Path
from .errors import ConfigError, MillraceWarning
from .framework import _array_or_rows
from .report import Report

__all__ = ["Job"]

Callback = Callable[[dict[str, Any]], object]
Callbacks = Union[Callback, Iterable[Callback]]


class Job:
    """A training job, a TrainerDesc in text format (docs/config.md has every field).

        report = millrace.Job("configs/wide_deep.prototxt", overrides=["thread_num=8"], output_dir="out").run()
        print(report.metrics["auc"])

    A mistake anywhere in it is a ConfigError with every mistake, its place, and what was probably meant.
    """

    def __init__(self, file: Path, overrides: Iterable[str] = (), output_dir: Path = "") -> None:
        """Reads and compiles `file`; no data yet. `overrides` are PATH=VALUE, as after --set."""
        self._start(os.fspath(file), None, overrides, output_dir)

    @classmethod
    def from_text(cls, text: str, overrides: Iterable[str] = (), output_dir: Path = "", origin: str = "job") -> Job:
        """The same of a text at hand; `origin` stands for the file's name in messages."""
        job = cls.__new__(cls)
        job._start(origin, text, overrides, output_dir)
        return job

    def _start(self, file: str, text: Optional[str], overrides: Iterable[str], output_dir: Path) -> None:
        self._file = file
        if isinstance(overrides, str):
            raise ConfigError("overrides: a list of PATH=VALUE, not the text %r: [%r]" % (overrides, overrides))
        self._job = _millrace.Job(file, text, list(overrides), os.fspath(output_dir))
        if self._job.warnings and _ranks.leads():
            warnings.warn(self._job.warnings.rstrip(), MillraceWarning, stacklevel=3)

    def __repr__(self) -> str:
        return "Job(%s%s)" % (quoted(self._file), ", output_dir=" + quoted(self._job.output_dir) if self._job.output_dir else "")

    def run(self, resume: Path = "never", verbose: bool = True, model: str = "last", callbacks: Callbacks = ()) -> Report:
        """Trains to the end and returns a Report.

        `resume` is "never", "auto" (the newest whole checkpoint of output_dir) or a checkpoint's folder; with "auto", an `infer`
        job scores with the parameters of the last step, or with model="best" with those of the best evaluation.

        Ctrl-C ends the run within a second, with a checkpoint where there is an output_dir, and raises KeyboardInterrupt; on ranks
        SIGTERM and SIGUSR1 do, too. Other Python threads run meanwhile. A second run starts anew.

        `callbacks` are functions that are called with the dict of each pass and of each evaluation: kind ("pass" or "evaluation"),
        epoch, metrics. One that raises StopTraining ends the run there, as a success; another exception ends it with that. While
        the job runs, a callback or another thread that calls run, fit, save_model or parameter of it gets a ConfigError.

        Fetched values are printed on sys.stdout and kept in Report.history; what else is to be said goes to the logger "millrace"
        of Python's logging (INFO), or to sys.stderr while that has no handler. verbose=False keeps both still.
        """
        sys.stdout.flush()
        with _ranks.ended_as_by_ctrl_c():
            ran = self._job.run(os.fspath(resume), model, not verbose, _functions(callbacks))
        return Report(**_ranks.of_leader(ran, "the report of Job.run"))

    def fit(self, data: Data, eval_data: Union[Data, Mapping[str, Data], None] = None, resume: Path = "never",
            verbose: bool = True, callbacks: Callbacks = ()) -> Report:
        """Trains on rows in memory, as run() does on files, and returns a Report.

            job = millrace.Job("census.prototxt", output_dir="out")
            report = job.fit(frame, eval_data=other)
            scores = millrace.Predictor("out/model").predict(other)

        `data` is a data frame of pandas, polars or pyarrow, whatever else has __arrow_c_stream__, a dict of arrays, tensors
        or lists by column, Parquet files (a path, a pattern or a folder, by pyarrow), or an iterable of such, whose rows are all
        kept. The job's features make slots of its columns by their names, as of CSV: the model takes files with these
        columns as well. Null, None and NaT are missing, and NaN where it stands for that (pandas, numpy, lists; not
        Arrow and polars, which have null). What the job says of files to train on does not count.
        `eval_data` is what evaluations measure, in place of eval.filelist: a frame, or a dict of frames by name, which are the
        job's sets of these names (eval.set) or further ones.

        Values stay where they are, as far as the frame has them in Arrow's form or numpy's; rows are made by the job's threads.
        The job keeps the frame until it runs anew or is gone; with an InMemoryDataset it has the rows made of it as well.
        A value that a feature does not take is a DataError with row (from 0), column and value. `resume`, `verbose`,
        `callbacks`, Ctrl-C and a second call are those of run().
        """
        wanted = self._job.columns()
        functions = _functions(callbacks)
        words = self._job.word_columns()
        sets = [(name, rows, "Job.fit: eval_data" + ("[%s]" % quoted(name) if name else "")) for name, rows in _frames.sets_of(eval_data)]
        frame = _frames.frame_of(data, "data", "Job.fit: data", wanted)
        trained = frame.whole_numbers(words)
        _frames.warn_of_other_words(trained, "Job.fit: data", {})
        evaluated = []
        for name, rows, what in sets:
            evaluated.append((name, _frames.frame_of(rows, "eval_data" + ("." + name if name else ""), what, wanted)))
            _frames.warn_of_other_words(evaluated[-1][1].whole_numbers(words), what, trained)
        sys.stdout.flush()
        return Report(**self._job.fit(frame, evaluated, os.fspath(resume), not verbose, functions))

    def save_model(self, folder: Path) -> None:
        """Writes the model as it stands after a run, or after one that Ctrl-C ended, for Predictor(folder). A folder that
        holds something else than a model is not replaced."""
        self._job.save_model(os.fspath(folder))

    def parameter(self, name: str) -> Any:  # which of the two, who calls it knows
        """A copy of a parameter after run(): "h.w_0" of the fc layer "h" is an array [inputs, outputs], a table that grows is
        TableRows(keys, values)."""
        return _array_or_rows(self._job.parameter(name))

    @property
    def config(self) -> str:
        """The job with overrides and defaults written out, as text."""
        return self._job.config_text

    @property
    def ops(self) -> str:
        """The operators that a batch runs, a line each."""
        return self._job.ops()


def _functions(callbacks: Callbacks) -> list[Callback]:
    if not callable(callbacks) and not isinstance(callbacks, Iterable):
        raise ConfigError("callbacks: a function of a dict, or a list of these, not %r" % (callbacks,))
    functions = [callbacks] if callable(callbacks) else list(callbacks)
    for function in functions:
        if not callable(function):
            raise ConfigError("callbacks: functions of a dict, not %r" % (function,))
    return functions
