"""Classifier and Regressor: models for tabular data with the scikit-learn interface. scikit-learn itself is not required.

    model = millrace.Classifier(epochs=5).fit(frame, clicked, eval_set=(other, others_clicked))
    model.predict_proba(new)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import importlib
import inspect
import os
import tempfile
from typing import Any, Optional, SupportsFloat, SupportsIndex, TypeVar, Union
import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _checks, _columns, _millrace
from ._settings import quoted
from ._types import Path, Table
from .errors import ConfigError, Error
from .job import Job
from .predictor import Predictor
from .report import Report

__all__ = ["Classifier", "Regressor"]

EvalSet = Union[tuple[Table, ArrayLike], list[tuple[Table, ArrayLike]]]
E = TypeVar("E", bound="_Estimator")

_ROWS_OF_BUCKET = 50  # with fewer rows an embedding learns nothing
_ROWS_OF_ID = 20  # in fewer rows, all strings may differ by chance


class _Estimator:
    """Shared by both estimators: parameters, fitting, and the fitted model as a value."""

    # After fit.
    job_: str
    model_: dict[str, bytes]
    report_: Report
    n_features_in_: int
    feature_names_in_: np.ndarray  # only if the columns of X have names
    best_iteration_: Optional[int]
    best_score_: Optional[float]
    _estimator_type: str
    _predictor: Predictor

    def __init__(self, layers: Union[Sequence[int], np.ndarray] = (64, 32), dim: SupportsIndex = 8, epochs: SupportsIndex = 10,
                 lr: SupportsFloat = 0.02, batch_size: Optional[SupportsIndex] = None, threads: SupportsIndex = 1,
                 seed: SupportsIndex = 1, buckets: SupportsIndex = 255, patience: int = 3, job: Optional[str] = None,
                 label: str = "label", weight: str = "weight", verbose: bool = False, early_stopping: bool = False,
                 validation_fraction: SupportsFloat = 0.1) -> None:
        self.layers = layers
        self.dim = dim
        self.epochs = epochs
        self.lr = lr
        self.batch_size = batch_size
        self.threads = threads
        self.seed = seed
        self.buckets = buckets
        self.patience = patience
        self.job = job
        self.label = label
        self.weight = weight
        self.verbose = verbose
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the constructor's arguments, keyed by name."""
        del deep  # no argument is an estimator
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self: E, **params: Any) -> E:
        """Sets constructor arguments and returns the estimator. Raises ValueError for an unknown name."""
        for name, value in params.items():
            if name not in self._names():
                raise ValueError("Invalid parameter %r for estimator %s; there are: %s" % (
                    name, type(self).__name__, ", ".join(self._names())))
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        plain = {name: one.default for name, one in inspect.signature(type(self).__init__).parameters.items()}
        changed = ["%s=%r" % (name, value) for name, value in self.get_params().items() if repr(value) != repr(plain[name])]
        return "%s(%s)" % (type(self).__name__, ", ".join(changed))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        utils = importlib.import_module("sklearn.utils")  # sklearn itself asks for tags
        return utils.Tags(estimator_type=self._estimator_type, target_tags=utils.TargetTags(required=True),
                          input_tags=utils.InputTags(allow_nan=True, string=True, categorical=True), **self._kind_of_tags())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_predictor"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "model_" in state:
            _millrace.check_model_files(state["model_"])
        vars(self).update(state)

    def save(self, folder: Path) -> None:
        """Writes the fitted model for millrace.Predictor(folder) and the program `predictor`. An existing model in `folder` is
        replaced once the new one is complete, unless the folder contains other files. With more than two classes the model
        returns one probability per class, in the order of classes_."""
        self._check_fitted()
        _millrace.write_model_files(self.model_, os.fspath(folder))

    def _check_fitted(self) -> None:
        if hasattr(self, "model_"):
            return
        try:
            Unfitted = importlib.import_module("sklearn.exceptions").NotFittedError
        except ImportError:
            Unfitted = ValueError
        raise Unfitted("This %s instance is not fitted yet; call fit(X, y) first" % type(self).__name__)

    def _train(self: E, X: Any, y: Any, target: np.ndarray, sample_weight: Optional[ArrayLike],
               eval_set: Optional[tuple[Any, np.ndarray]], eval_weight: Optional[ArrayLike], classes: int = 0) -> E:
        """Trains on rows labeled with `target`, which is derived from y (for Classifier, the index of the class among `classes`).
        eval_set is (X, target) or None."""
        for name in ("model_", "_predictor", "best_iteration_", "best_score_"):
            vars(self).pop(name, None)
        X = _columns.readable(X)
        columns = _columns.table_of(X, "fit: X")
        rows = len(target)
        if rows != _columns.rows_of(columns):
            raise ValueError("Found input variables with inconsistent numbers of samples: X has %d rows and y %d" % (
                _columns.rows_of(columns), rows))
        names = list(columns)
        if _columns.has_names(X):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_features_in_ = len(names)
        weights = None if sample_weight is None else _weights(sample_weight, rows)
        if eval_weight is not None and eval_set is None:
            raise ValueError("eval_sample_weight: fit has no eval_set")
        others: Mapping[str, Any] = {}
        if eval_set is not None:
            eval_set = _columns.readable(eval_set[0]), eval_set[1]
            others = _columns.table_of(eval_set[0], "fit: eval_set")
            names += [name for name in others if name not in columns]
            count = _columns.rows_of(others)
            if count != len(eval_set[1]) or count == 0:
                raise ValueError("eval_set: X has %d rows and y %d%s" % (count, len(eval_set[1]), "" if count else ": nothing to evaluate"))
        other_weights = None
        if eval_weight is not None and eval_set is not None:
            other_weights = _weights(_only(eval_weight), len(eval_set[1]), "eval_sample_weight")
        if other_weights is not None and weights is None:
            weights = np.ones(rows)
        if self.job is None:
            label = _free_name(y, "label", names)
            weight = _free_name(sample_weight, "weight", [*names, label])
        else:
            label, weight = self.label, self.weight
            taken = {label} | ({weight} if weights is not None else set())
            if taken & set(names):
                raise ValueError("X has a column %s, which is what the label, or the weight, is called in the job" % (
                    ", ".join(map(repr, sorted(taken & set(names))))))
        if self.early_stopping and eval_set is None:
            train, held = self._hold_out(rows, target if classes else None)
            eval_set = _columns.rows_at(X, held), target[held]
            others = _columns.table_of(eval_set[0], "fit: X")
            X = _columns.rows_at(X, train)
            columns, rows, target = _columns.table_of(X, "fit: X"), len(train), target[train]
            if weights is not None:
                weights, other_weights = weights[train], weights[held]
        # AUC requires both classes in the evaluated rows.
        counted = None if eval_set is None else eval_set[1] if other_weights is None else eval_set[1][other_weights > 0]
        has_auc = counted is not None and classes == 2 and len(np.unique(counted)) > 1
        if isinstance(self.job, (str, os.PathLike)) and "{" not in os.fspath(self.job) and os.path.exists(self.job):
            raise ValueError("job: the text of a TrainerDesc, not the path of one: open(%r).read() is its text" % os.fspath(self.job))
        text = self.job if self.job is not None else self._job_text(columns, label, None if weights is None else weight, rows, classes,
                                                                          eval_set is not None, has_auc)
        data = _columns.with_columns(X, columns, {label: target, **({} if weights is None else {weight: weights})})
        evaluated = None
        if eval_set is not None:
            ones = {} if weights is None else {weight: np.ones(len(eval_set[1])) if other_weights is None else other_weights}
            evaluated = _columns.with_columns(eval_set[0], others, {label: eval_set[1], **ones})
        with tempfile.TemporaryDirectory() as folder:
            job = Job.from_text(text, output_dir=folder, origin=type(self).__name__)
            model = os.path.join(folder, "model")
            if self.job is not None and weights is not None and weight not in job._job.columns():
                raise ValueError("%s: the job reads no column %r: give it feature { name: %s } and its loss sample_weight: %s" % (
                    "sample_weight" if sample_weight is not None else "eval_sample_weight", weight, quoted(weight), quoted(weight)))
            try:
                self.report_ = job.fit(data, eval_data=evaluated, verbose=self.verbose)
            except KeyboardInterrupt:
                self._keep_what_is_trained(job, model, text)
                raise
            predictor = Predictor(model)
            self._check_scores(predictor.predictions, classes)
            self._keep(model, text, predictor)
        self._note_best("auc" if has_auc else "loss")
        return self

    def _check_scores(self, predictions: Sequence[str], classes: int) -> None:
        """Raises ValueError unless the model of a custom job returns the scores that predict needs."""
        of_classes = all(name.endswith("[%d]" % at) for at, name in enumerate(predictions))
        if len(predictions) != (1 if classes <= 2 else classes) or (classes > 2 and not of_classes):
            raise ValueError("job: its model gives %d scores a row (%s), and y has %s" % (
                len(predictions), ", ".join(predictions[:5]), "%d classes: its only loss is of one probability for two, and of a "
                "SOFTMAX_CROSS_ENTROPY or CROSS_ENTROPY for more" % classes if classes else "numbers: its only loss is a SQUARED_ERROR"))

    def _note_best(self, metric: str) -> None:
        """Records the best evaluation by this metric; None for a custom job."""
        self.best_iteration_ = self.best_score_ = None
        found = [one for one in self.report_.evaluations if self.job is None and np.isfinite(one[metric])]
        if found:
            best = (max if metric == "auc" else min)(found, key=lambda one: one[metric])
            self.best_iteration_, self.best_score_ = best["epoch"], best[metric]

    def _hold_out(self, rows: int, classes: Optional[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the rows to train on and the held-out rows, a random fraction of each class that depends only on the seed."""
        if self.early_stopping not in (True, False):
            raise ValueError("early_stopping: True or False, not %r" % (self.early_stopping,))
        if self.job is not None:
            raise ValueError("early_stopping: a job of your own says so, by eval { early_stopping {} }; give fit the rows by eval_set")
        if not _checks.whole("patience", self.patience, 0):
            raise ValueError("early_stopping: patience is 0, which ends no training; give it 1 or more")
        share = _checks.number("validation_fraction", self.validation_fraction)
        if not 0 < share < 1:
            raise ValueError("validation_fraction: a share of the rows between 0 and 1, not %r" % (share,))
        rng = np.random.default_rng(_checks.whole("seed", self.seed, 0))
        held = np.zeros(rows, dtype=bool)
        for members in [np.arange(rows)] if classes is None else [np.flatnonzero(classes == one) for one in np.unique(classes)]:
            count = min(len(members) - 1, max(1, round(share * len(members))))
            held[rng.permutation(members)[:count]] = True
        if not held.any():
            raise ValueError("early_stopping: validation_fraction of %d rows leaves none to hold out; give fit an eval_set" % rows)
        return np.flatnonzero(~held), np.flatnonzero(held)

    def _keep(self, folder: str, text: str, predictor: Predictor) -> None:
        self.job_ = text
        self.model_ = _content_of(folder)
        self._predictor = predictor

    def _keep_what_is_trained(self, job: Job, folder: str, text: str) -> None:
        """Keeps the model of a run interrupted with Ctrl-C, unless training had not started."""
        try:
            job.save_model(folder)
        except Error:
            return
        self._keep(folder, text, Predictor(folder))

    def _scores(self, X: Table) -> np.ndarray:
        """Returns scores [rows, 1], or [rows, classes] for more than two classes."""
        self._check_fitted()
        X = _columns.readable(X)
        columns = _columns.table_of(X, "predict: X")
        names = getattr(self, "feature_names_in_", None)
        if len(columns) != self.n_features_in_:
            text = "X has %d features, but %s is expecting %d features as input" % (
                len(columns), type(self).__name__, self.n_features_in_)
            if names is not None and _columns.has_names(X):
                for what, these, others in (("it lacks", names, columns), ("fit had no", columns, names)):
                    odd = [repr(name) for name in these if name not in others]
                    if odd:
                        text += "; %s %s%s" % (what, ", ".join(odd[:5]), " and %d more" % (len(odd) - 5) if len(odd) > 5 else "")
            raise ValueError(text)
        if names is not None and not _columns.has_names(X):
            columns = dict(zip(names, columns.values()))
        if "_predictor" not in vars(self):
            with tempfile.TemporaryDirectory() as folder:
                self.save(os.path.join(folder, "model"))
                self._predictor = Predictor(os.path.join(folder, "model"))
        scores = self._predictor.predict(_columns.with_columns(X, columns, {}))
        return scores.reshape(len(scores), scores.shape[1] if scores.ndim > 1 else 1)

    # Each says it of itself.

    def _loss_and_metric(self, classes: int) -> tuple[str, list[str]]:
        raise NotImplementedError

    def _value_of(self, score: str, parts: list[str]) -> tuple[str, str]:
        raise NotImplementedError

    def _kind_of_tags(self) -> dict[str, Any]:
        raise NotImplementedError

    def _job_text(self, columns: Mapping[str, Any], label: str, weight: Optional[str], rows: int, classes: int, has_eval: bool,
                  has_auc: bool) -> str:
        """Returns a job for these columns: numbers are standardized and bucketized, strings are embedded."""
        if np.ndim(self.layers) != 1:
            raise ConfigError("layers: a list with the units of each, not %r" % (self.layers,))
        layers = [_checks.whole("layers", units, 1) for units in self.layers]
        dim = _checks.whole("dim", self.dim, 1)
        batch_size = self.batch_size if self.batch_size is not None else int(min(512, max(8, rows // 50)))
        threads = _checks.whole("threads", self.threads, 1)
        buckets = min(_checks.whole("buckets", self.buckets, 0), rows // _ROWS_OF_BUCKET)
        features, ids, scaled, words = [], [], [], []
        for at, (column, values) in enumerate(columns.items()):
            name = "f%d" % at
            source = "from: %s" % _quoted_column(column)
            kind = _columns.kind_of(values)
            if kind == "number":
                middle = _columns.middle(values)
                if middle is None:
                    warnings.warn("X has a column %r without a number: it is left out" % (column,), UserWarning, stacklevel=4)
                    continue
                if np.isinf(middle):
                    raise ValueError("Input X contains infinity or a value too large for dtype('float64'): column %r" % (column,))
                features.append('feature { name: "%s.number" %s default: "%r" standardize {} }' % (name, source, middle))
                scaled.append(name + ".number")
                if buckets > 1:
                    features.append('feature { name: "%s" %s bucketize { quantiles: %d } hash {} }' % (
                        name, source, buckets))
                    ids.append(name)
            elif kind == "time":
                for part in ("HOUR", "WEEKDAY", "MONTH"):
                    features.append('feature { name: "%s.%s" %s date_part { part: %s } hash {} }' % (name, part.lower(), source, part))
                    ids.append("%s.%s" % (name, part.lower()))
            else:
                features.append('feature { name: "%s" %s hash {} }' % (name, source))
                ids.append(name)
                words.append(_columns.words_of(values))
                _warn_of_numbers(column, words[-1])
                if words[-1] is not None and len(words[-1]) == rows >= _ROWS_OF_ID:
                    warnings.warn("X has a column %r of text whose values are all different: an id says nothing about other rows, "
                                  "and costs memory for each; leave it out" % (column,), UserWarning, stacklevel=4)
        features.append('feature { name: "label" from: %s %s}' % (_quoted_column(label), "id {} is_dense: true " if classes > 2 else ""))
        if weight is not None:
            features.append('feature { name: "weight" from: %s }' % _quoted_column(weight))
        parts, inputs, wide = [], [], []
        adagrad = "optimizer { adagrad { lr: %r } }" % _checks.number("lr", self.lr)
        if ids:
            slots = "slots: [%s]" % ", ".join(map(quoted, ids))
            parts.append('table { name: "deep" dim: %d init { uniform: 0.01 } %s }' % (dim, adagrad))
            parts.append('layer { name: "embedded" embedding { %s table: "deep" } }' % slots)
            inputs.append("embedded")
            if classes <= 2:
                parts.append('table { name: "wide" dim: 1 init { constant: 0 } %s }' % adagrad)
                parts.append('layer { name: "wide_terms" embedding { %s table: "wide" } }' % slots)
                parts.append('layer { name: "wide_score" reduce_sum { in: "wide_terms" } }')
                wide.append("wide_score")
        inputs += scaled
        if not inputs:
            raise ValueError("fit: X has no column with a value, so that nothing is to be learnt from it")
        listed = ", ".join(map(quoted, inputs))
        hidden = listed
        if layers:
            parts.append('layer { name: "hidden" fc { in: [%s] units: [%s] act: RELU } }' % (listed, ", ".join(map(str, layers))))
            hidden = '"hidden"'
        loss, metric = self._loss_and_metric(classes)
        parts.append('layer { name: "deep_score" fc { in: [%s] units: %d } }' % (hidden, classes if classes > 2 else 1))
        score = "deep_score"
        if wide:
            parts.append('layer { name: "score" add { in: ["wide_score", "deep_score"] } }')
            score = "score"
        score, scaled_by = self._value_of(score, parts)
        parts.append('loss { kind: %s in: "%s" label: "label"%s%s }' % (
            loss, score, scaled_by, "" if weight is None else ' sample_weight: "weight"'))
        parts += ["metric { kind: %s }" % one for one in metric]
        parts.append(adagrad)
        evaluation = ""
        if has_eval:
            evaluation = "eval { %s }\n" % ("early_stopping { metric: %s patience: %d }" % (
                quoted("auc" if has_auc else "loss"), self.patience) if self.patience else "")
        return ("thread_num: %d\nupdate_mode: %s\nseed: %d\nepochs: %d\ncheckpoint { every_epochs: 0 }\noutput { tensorboard: false }\n"
                "data_desc {\n  name: \"csv\"\n  csv { keep_spaces: true missing: [%s] }\n  batch_size: %d\n  %s\n}\n"
                "dataset { class_name: \"InMemoryDataset\" local_shuffle: true }\nmodel {\n  %s\n}\n%s" % (
                    threads, "SERIAL" if threads == 1 else "HOGWILD", _checks.whole("seed", self.seed, 0),
                    _checks.whole("epochs", self.epochs, 1), ", ".join(map(quoted, _columns.missing_words(words))),
                    _checks.whole("batch_size", batch_size, 1), "\n  ".join(features),
                    "\n  ".join(parts), evaluation))


class Classifier(_Estimator):
    """Classifies rows, like a scikit-learn classifier.

        model = millrace.Classifier(layers=[64, 32], epochs=5, threads=4).fit(frame, y)
        model.predict_proba(frame)                # [rows, classes], columns as model.classes_

    X is a pandas, polars or pyarrow data frame, a dict of arrays keyed by column, or an array [rows, columns]. Numeric columns
    are standardized and cut into `buckets` quantiles (fewer for few rows), each with an embedding of `dim` floats. Each distinct
    string has its own embedding. Times become hour, weekday and month. Fully connected layers with `layers` units produce one
    score for two classes, added to a linear model, or one score per class followed by softmax. Missing values are
    allowed: a missing number is replaced by the column's median.

    `epochs`, `lr` (for Adagrad), `batch_size` (None: depends on the number of rows), `threads` and `seed` work as in a job. With
    one thread, runs are bit-identical. If fit gets an eval_set, training stops after `patience` evaluations without improvement
    (0: never). Otherwise `early_stopping` holds out `validation_fraction` of each class as the eval_set. `job` is a TrainerDesc
    as text that replaces all of the above. Its column `label` contains class indices (0, 1, ...), its column `weight` the weights.
    """

    classes_: np.ndarray
    _estimator_type = "classifier"

    def fit(self, X: Table, y: ArrayLike, sample_weight: Optional[ArrayLike] = None, eval_set: Optional[EvalSet] = None,
            eval_sample_weight: Optional[ArrayLike] = None) -> Classifier:
        """Trains the model and returns the estimator. `eval_set` is (X, y), or a list with one such pair, weighted with
        `eval_sample_weight`. Sets `report_` to the Report, `best_iteration_` to the best epoch (from 1) and `best_score_` to its
        AUC, or its loss unless the eval_set has exactly two classes. Without evaluation, or with `job`, both are None."""
        given, y = y, _labels(y)
        if y.dtype.kind == "f" and not np.array_equal(y, np.floor(y)):
            raise ValueError("Unknown label type: continuous. Classes are texts or whole numbers; Regressor learns numbers")
        classes, place = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError("Classifier needs two classes at least, and y has one class: %r" % (classes.tolist(),))
        evaluated = None
        if eval_set is not None:
            other_X, other_y = _pair(eval_set)
            other_y = _labels(other_y)
            unknown = np.setdiff1d(other_y, classes)
            if len(unknown):
                raise ValueError("eval_set has classes that y has not: %r" % (unknown.tolist()[:5],))
            evaluated = other_X, np.searchsorted(classes, other_y).astype(np.uint32)
        self.classes_ = classes
        return self._train(X, given, place.astype(np.uint32), sample_weight, evaluated, eval_sample_weight, len(classes))

    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Returns probabilities, [rows, classes], in the order of classes_."""
        scores = self._scores(X).astype(np.float64)
        if scores.shape[1] == 1:
            return np.hstack([1 - scores, scores])
        return scores / scores.sum(axis=1, keepdims=True)  # the sum is 1 except for rounding

    def predict(self, X: Table) -> np.ndarray:
        """Returns the most probable class of each row."""
        self._check_fitted()
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def score(self, X: Table, y: ArrayLike, sample_weight: Optional[ArrayLike] = None) -> float:
        """Returns the accuracy: the weighted fraction of rows whose class is predicted correctly."""
        predicted = self.predict(X)
        return float(np.average(predicted == _as_many(_labels(y), predicted), weights=_given(sample_weight)))

    def _loss_and_metric(self, classes: int) -> tuple[str, list[str]]:
        return ("SIGMOID_CROSS_ENTROPY", ["AUC", "LOGLOSS"]) if classes == 2 else ("SOFTMAX_CROSS_ENTROPY", ["ACCURACY", "LOGLOSS"])

    def _value_of(self, score: str, parts: list[str]) -> tuple[str, str]:
        del parts  # the loss reads the score itself
        return score, ""

    def _kind_of_tags(self) -> dict[str, Any]:
        return {"classifier_tags": importlib.import_module("sklearn.utils").ClassifierTags()}


class Regressor(_Estimator):
    """Predicts numbers with squared error, like a scikit-learn regressor. X and the parameters are the same as for Classifier.

    The model learns y standardized with its mean and standard deviation. Predictions and metrics are in units of y. A custom
    `job` learns y itself.
    """

    mean_: float
    deviation_: float
    _estimator_type = "regressor"

    def fit(self, X: Table, y: ArrayLike, sample_weight: Optional[ArrayLike] = None, eval_set: Optional[EvalSet] = None,
            eval_sample_weight: Optional[ArrayLike] = None) -> Regressor:
        """Trains the model and returns the estimator. Arguments and fitted attributes are the same as for Classifier.fit."""
        given, y = y, _numbers(y)
        self.mean_, self.deviation_ = float(y.mean()), float(y.std()) or 1.0
        if self.deviation_ <= 1e-12 * abs(self.mean_):
            self.deviation_ = 1.0  # all equal, except for rounding in the mean
        if self.job is None:
            _check_scale(self.mean_, self.deviation_)
        evaluated = None
        if eval_set is not None:
            other_X, other_y = _pair(eval_set)
            evaluated = other_X, _numbers(other_y)
        return self._train(X, given, y, sample_weight, evaluated, eval_sample_weight)

    def predict(self, X: Table) -> NDArray[np.float64]:
        """Returns one number per row."""
        return self._scores(X)[:, 0].astype(np.float64)

    def score(self, X: Table, y: ArrayLike, sample_weight: Optional[ArrayLike] = None) -> float:
        """Returns R^2: 1 minus the ratio of the squared error to the squared error of predicting y's mean."""
        predicted = self.predict(X)
        y = _as_many(_numbers(y), predicted)
        weights = _given(sample_weight)
        error = np.average((y - predicted) ** 2, weights=weights)
        spread = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
        return float(1 - error / spread) if spread else float(error == 0)

    def _loss_and_metric(self, classes: int) -> tuple[str, list[str]]:
        del classes  # regression has no classes
        return "SQUARED_ERROR", ["RMSE", "MAE"]

    def _value_of(self, score: str, parts: list[str]) -> tuple[str, str]:
        """Adds a layer that converts the score to units of y. Returns its name and the loss weight that undoes the scaling."""
        parts.append('layer { name: "value" op { type: "scale" inputs { name: "X" vars: "%s" } attrs { name: "scale" f: %r } '
                     'attrs { name: "bias" f: %r } } }' % (score, self.deviation_, self.mean_))
        return "value", " weight: %r" % (1 / self.deviation_**2)

    def _kind_of_tags(self) -> dict[str, Any]:
        return {"regressor_tags": importlib.import_module("sklearn.utils").RegressorTags()}


def _content_of(folder: str) -> dict[str, bytes]:
    """Returns the contents of all files below a folder, keyed by relative path."""
    found = {}
    for base, _, names in os.walk(folder):
        for name in sorted(names):
            path = os.path.join(base, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


def _warn_of_numbers(column: str, words: Optional[set[str]]) -> None:
    """Warns about a string column in which nearly all values are numbers."""
    odd = [word for word in words or () if not _is_number(word)]
    if words is None or len(words) < _ROWS_OF_ID or not 0 < len(odd) <= len(words) // 10:
        return
    warnings.warn("X has a column %r of text, of whose %d different values all but %s are numbers: each is a word of its own; if they are "
                  "numbers, make the column one of numbers" % (column, len(words), ", ".join(map(repr, sorted(odd)[:3]))),
                  UserWarning, stacklevel=5)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _pair(eval_set: EvalSet) -> tuple[Any, Any]:
    if isinstance(eval_set, list) and len(eval_set) == 1:
        eval_set = eval_set[0]
    if not isinstance(eval_set, tuple) or len(eval_set) != 2:
        what = "%d of them" % len(eval_set) if isinstance(eval_set, (tuple, list)) else type(eval_set).__name__
        raise ConfigError("fit: eval_set: two things, (X, y), not %s" % what)
    return eval_set


def _quoted_column(name: str) -> str:
    """Returns a quoted column name, with ".." escaped because it denotes a range in a job."""
    return quoted(name.replace("..", "\\.."))


def _free_name(values: object, otherwise: str, taken: Iterable[str]) -> str:
    """Returns an unused column name for these values: their own name if they have one, else `otherwise`."""
    name = getattr(values, "name", None)
    name = name if isinstance(name, str) and name and name.isprintable() else otherwise
    while name in taken:
        name += "_"
    return name


def _only(weights: Any) -> Any:
    """Unwraps the weights of the only evaluation set, which LightGBM passes in a list."""
    return weights[0] if isinstance(weights, (list, tuple)) and len(weights) == 1 and np.ndim(weights[0]) == 1 else weights


def _column_of(y: Any, what: str) -> np.ndarray:
    if y is None:
        raise ValueError("%s requires y to be passed, but the target y is None" % what)
    array = np.asarray(y)
    if array.dtype.kind == "c":
        raise ValueError("y: Complex data not supported")
    if array.ndim == 2 and array.shape[1] == 1:
        try:
            kind = importlib.import_module("sklearn.exceptions").DataConversionWarning
        except ImportError:
            kind = UserWarning
        warnings.warn("A column-vector y was passed when a 1d array was expected; y.ravel() makes one", kind, stacklevel=4)
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError("y should be a 1d array, got an array of shape %s instead" % (array.shape,))
    return array


def _as_many(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Returns y. Raises ValueError unless it has one value per predicted row."""
    if len(y) != len(predicted):
        raise ValueError("Found input variables with inconsistent numbers of samples: [%d, %d]" % (len(predicted), len(y)))
    return y


def _given(weights: Optional[ArrayLike]) -> Optional[np.ndarray]:
    return None if weights is None else np.asanyarray(weights)


def _check_scale(mean: float, deviation: float) -> None:
    """Checks that y suits float32, which reaches 3e38 and has seven significant digits."""
    if not 1e-15 < deviation < 1e15:
        raise ValueError("y: its deviation is %g, whose square is beyond floats of 32 bits: give y in another unit" % deviation)
    if abs(mean) > 1e5 * deviation:
        warnings.warn("y has a mean of %g and a deviation of %g: floats of 32 bits, in which a model computes, tell seven digits apart. Learn "
                      "y less its mean, and add it to what predict gives" % (mean, deviation), UserWarning, stacklevel=3)


def _labels(y: Any) -> np.ndarray:
    array = _column_of(y, "Classifier")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("Input y contains NaN or infinity")
    if array.dtype.kind == "O":
        texts = [isinstance(one, str) for one in array.tolist()]
        if any(_columns.is_missing(one) for one in array.tolist()):
            raise ValueError("Input y contains NaN or None")
        if any(texts) and not all(texts):
            raise ValueError("y: texts and other values, as %r, are no classes together" % (array[texts.index(False)],))
    return array


def _numbers(y: Any) -> NDArray[np.float64]:
    array = _column_of(y, "Regressor")
    try:
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError("y: numbers, not %s" % array.dtype) from None
    if not np.isfinite(array).all():
        raise ValueError("Input y contains NaN or infinity")
    return array


def _weights(given: ArrayLike, rows: int, what: str = "sample_weight") -> NDArray[np.float64]:
    weights = np.asarray(given, dtype=np.float64)
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar, not of shape %s" % (weights.shape,))
    if len(weights) != rows:
        raise ValueError("%s.shape == %s, expected %s!" % (what, weights.shape, (rows,)))
    if not (weights >= 0).all():
        raise ValueError("%s: a weight is negative, or no number" % what)
    if not weights.any():
        raise ValueError("%s: all weights are zero, so that nothing is to be learnt, or measured" % what)
    return weights
