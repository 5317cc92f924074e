"""Jobs: run from Python what `trainer --trainer_desc=FILE` runs."""

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
    """A training job: a TrainerDesc in text format (docs/config.md lists every field).

        report = millrace.Job("configs/wide_deep.prototxt", overrides=["thread_num=8"], output_dir="out").run()
        print(report.metrics["auc"])

    An invalid job raises ConfigError, which lists every mistake with its position and the probable intent.
    """

    def __init__(self, file: Path, overrides: Iterable[str] = (), output_dir: Path = "") -> None:
        """Reads and compiles `file`. No data is read at this point. `overrides` are PATH=VALUE strings, as for --set."""
        self._start(os.fspath(file), None, overrides, output_dir)

    @classmethod
    def from_text(cls, text: str, overrides: Iterable[str] = (), output_dir: Path = "", origin: str = "job") -> Job:
        """Compiles a job from a string. Messages use `origin` as the file name."""
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

        `resume` is "never", "auto" (the newest intact checkpoint in output_dir) or a checkpoint folder. With "auto", an `infer`
        job scores with the parameters of the last step, or of the best evaluation if model="best".

        Ctrl-C stops the run within a second, writes a checkpoint if output_dir is set, and raises KeyboardInterrupt. On ranks,
        SIGTERM and SIGUSR1 do the same. The call releases the GIL. Calling run again starts over.

        `callbacks` are functions called with a dict after each pass and each evaluation: kind ("pass" or "evaluation"), epoch,
        metrics. Raising StopTraining ends the run successfully; any other exception ends the run and propagates. Calling run,
        fit, save_model or parameter of a running job, from a callback or another thread, raises ConfigError.

        Fetched values are printed on sys.stdout and kept in Report.history. All other output goes to Python's logger "millrace"
        (INFO), or to sys.stderr if the logger has no handler. verbose=False suppresses both.
        """
        sys.stdout.flush()
        with _ranks.ended_as_by_ctrl_c():
            ran = self._job.run(os.fspath(resume), model, not verbose, _functions(callbacks))
        return Report(**_ranks.of_leader(ran, "the report of Job.run"))

    def fit(self, data: Data, eval_data: Union[Data, Mapping[str, Data], None] = None, resume: Path = "never",
            verbose: bool = True, callbacks: Callbacks = ()) -> Report:
        """Trains on rows in memory instead of files and returns a Report.

            job = millrace.Job("census.prototxt", output_dir="out")
            report = job.fit(frame, eval_data=other)
            scores = millrace.Predictor("out/model").predict(other)

        `data` is a pandas, polars or pyarrow data frame, any object with __arrow_c_stream__, a dict of arrays, tensors or lists
        keyed by column, Parquet files (a path, pattern or folder; requires pyarrow), or an iterable of these, whose rows are all
        kept. The job's features read columns by name, as from CSV, so the model also accepts files with these
        columns. Null, None and NaT are missing values. NaN is missing in pandas, numpy and lists, but not in
        Arrow and polars, which have null. The job's own training files are ignored.
        `eval_data` replaces eval.filelist: a frame, or a dict of frames keyed by the name of an evaluation set, either one from
        the job (eval.set) or an additional one.

        Values in Arrow or numpy layout are not copied; the job's threads build the rows.
        The job keeps the frame until its next run or until it is deleted. An InMemoryDataset also keeps the rows built from it.
        A value that a feature rejects raises DataError with row (from 0), column and value. `resume`, `verbose`,
        `callbacks`, Ctrl-C and repeated calls work as in run().
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
        """Saves the current model, after a run or an interrupt, for Predictor(folder). Does not replace a folder that contains
        anything other than a model. Raises ConfigError while the job is running."""
        self._job.save_model(os.fspath(folder))

    def parameter(self, name: str) -> Any:  # the caller knows which of the two types it is
        """Returns a copy of a parameter after run(). For example, "h.w_0" of the fc layer "h" is an array [inputs, outputs]. A
        table without a fixed vocabulary is returned as TableRows(keys, values)."""
        return _array_or_rows(self._job.parameter(name))

    @property
    def config(self) -> str:
        """The job as text, with overrides and defaults applied."""
        return self._job.config_text

    @property
    def ops(self) -> str:
        """The operators that run per batch, one per line."""
        return self._job.ops()


def _functions(callbacks: Callbacks) -> list[Callback]:
    if not callable(callbacks) and not isinstance(callbacks, Iterable):
        raise ConfigError("callbacks: a function of a dict, or a list of these, not %r" % (callbacks,))
    functions = [callbacks] if callable(callbacks) else list(callbacks)
    for function in functions:
        if not callable(function):
            raise ConfigError("callbacks: functions of a dict, not %r" % (function,))
    return functions
