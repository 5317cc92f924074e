"""Optimizers: how gradients become updates. The compiler adds the gradient and update operators to a program.

Every optimizer accepts these arguments after its own:

regularization  one of millrace.regularizer, for parameters whose ParamAttr does not set one
name            ignored; exists for compatibility with Paddle
grad_clip       one of millrace.clip, applied before regularization
parameter_list  the parameters to train, as Variables or names; default: all trainable parameters
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Optional, SupportsFloat, SupportsIndex, Union

from . import _checks
from ._rules import Clip, Regularizer
from ._settings import Named, flag, name_in, quoted
from .errors import ConfigError
from .framework import CPUPlace, Program, Variable

__all__ = ["SGD", "Momentum", "LarsMomentum", "Adagrad", "DecayedAdagrad", "RMSProp", "Adam", "Adamax", "Adadelta", "Lamb",
           "Ftrl", "Custom", "SGDOptimizer", "MomentumOptimizer", "LarsMomentumOptimizer", "AdagradOptimizer",
           "DecayedAdagradOptimizer", "RMSPropOptimizer", "AdamOptimizer", "AdamaxOptimizer", "AdadeltaOptimizer",
           "LambOptimizer", "FtrlOptimizer", "CustomOptimizer", "Optimizer", "PipelineOptimizer", "Schedule", "cosine_decay",
           "exponential_decay", "inverse_time_decay", "linear_lr_warmup", "natural_exp_decay", "noam_decay",
           "piecewise_decay", "polynomial_decay"]


class Schedule:
    """A learning rate schedule over the batches trained since the startup program ran. The first batch is step 0."""

    def __init__(self, rate: SupportsFloat, text: str, warmup: str = "") -> None:
        self.rate, self.text, self.warmup = _checks.number("learning_rate", rate), text, warmup


def exponential_decay(learning_rate: SupportsFloat, decay_steps: int, decay_rate: SupportsFloat,
                      staircase: bool = False) -> Schedule:
    """learning_rate * decay_rate ^ (step / decay_steps); with staircase the quotient is rounded down."""
    return Schedule(learning_rate, "exponential { decay_steps: %d decay_rate: %r staircase: %s }" % (
        decay_steps, float(decay_rate), flag(staircase)))


def natural_exp_decay(learning_rate: SupportsFloat, decay_steps: int, decay_rate: SupportsFloat,
                      staircase: bool = False) -> Schedule:
    """learning_rate * exp(-decay_rate * step / decay_steps); with staircase the quotient is rounded down."""
    return Schedule(learning_rate, "natural_exponential { decay_steps: %d decay_rate: %r staircase: %s }" % (
        decay_steps, float(decay_rate), flag(staircase)))


def inverse_time_decay(learning_rate: SupportsFloat, decay_steps: int, decay_rate: SupportsFloat,
                       staircase: bool = False) -> Schedule:
    """learning_rate / (1 + decay_rate * step / decay_steps); with staircase the quotient is rounded down."""
    return Schedule(learning_rate, "inverse_time { decay_steps: %d decay_rate: %r staircase: %s }" % (
        decay_steps, float(decay_rate), flag(staircase)))


def polynomial_decay(learning_rate: SupportsFloat, decay_steps: int, end_learning_rate: SupportsFloat = 0.0001,
                     power: SupportsFloat = 1.0, cycle: bool = False) -> Schedule:
    """(learning_rate - end) * (1 - step / decay_steps) ^ power + end; with cycle it restarts when it reaches the end, each
    time over decay_steps more steps."""
    return Schedule(learning_rate, "polynomial { decay_steps: %d end_rate: %r power: %r cycle: %s }" % (
        decay_steps, float(end_learning_rate), float(power), flag(cycle)))


def cosine_decay(learning_rate: SupportsFloat, step_each_epoch: int, epochs: int,
                 end_learning_rate: SupportsFloat = 0.0) -> Schedule:
    """Decays to end_learning_rate along half a cosine over step_each_epoch * epochs steps, updated once per epoch."""
    return Schedule(learning_rate, "cosine { decay_steps: %d end_rate: %r stair_steps: %d }" % (
        step_each_epoch * epochs, float(end_learning_rate), step_each_epoch))


def noam_decay(d_model: int, warmup_steps: int, learning_rate: SupportsFloat = 1.0) -> Schedule:
    """learning_rate * d_model ^ -0.5 * min(n ^ -0.5, n * warmup_steps ^ -1.5), where n = step + 1."""
    return Schedule(learning_rate, "noam { d_model: %d warmup_steps: %d }" % (d_model, warmup_steps))


def piecewise_decay(boundaries: Iterable[int], values: Sequence[SupportsFloat]) -> Schedule:
    """values[i] before step boundaries[i], and the last value afterwards."""
    return Schedule(values[0], "piecewise { boundaries: [%s] rates: [%s] }" % (
        ", ".join("%d" % step for step in boundaries), ", ".join(repr(float(rate)) for rate in values)))


def linear_lr_warmup(learning_rate: Rate, warmup_steps: int, start_lr: Optional[SupportsFloat] = None,
                     end_lr: Optional[SupportsFloat] = None) -> Schedule:
    """Rises from start_lr to end_lr over warmup_steps steps, then follows learning_rate, a number or schedule whose steps
    count from the first batch. If start_lr and end_lr are omitted, rises from 0 to learning_rate, whose steps then
    count from the end of the warmup. Raises ConfigError if only one of the two is given."""
    inner = learning_rate if isinstance(learning_rate, Schedule) else Schedule(learning_rate, "")
    if (start_lr is None) != (end_lr is None):
        raise ConfigError("linear_lr_warmup: start_lr and end_lr go together")
    if inner.warmup:
        raise ConfigError("linear_lr_warmup: the rate has a warm-up already")
    warmup = "warmup_steps: %d" % warmup_steps
    if start_lr is not None and end_lr is not None:
        warmup = "linear_warmup { steps: %d start_rate: %r end_rate: %r }" % (warmup_steps, float(start_lr), float(end_lr))
    return Schedule(inner.rate, inner.text, warmup)


Rate = Union[SupportsFloat, Schedule]
Attribute = Union[str, float, Sequence[float]]
Minimized = tuple[list[Variable], list[tuple[Variable, Variable]]]  # an empty list, and (parameter, gradient) pairs


class Optimizer:
    """Base class of optimizers."""

    def __init__(self, rule: str, rate_field: str, learning_rate: Rate, settings: Mapping[str, SupportsFloat],
                 regularization: Optional[Regularizer], grad_clip: Optional[Clip],
                 parameter_list: Optional[Iterable[Named]], more: str = "") -> None:
        schedule = learning_rate if isinstance(learning_rate, Schedule) else None
        if schedule is None and isinstance(learning_rate, Variable):
            raise ConfigError("%s: learning_rate is a number or a schedule of millrace.optimizer, not a Variable" % rule)
        for given, kind, module in ((regularization, Regularizer, "regularizer"), (grad_clip, Clip, "clip")):
            if given is not None and not isinstance(given, kind):
                raise ConfigError("%s: takes one of millrace.%s, not %r" % (rule, module, given))
        rate = schedule.rate if schedule else _checks.number("%s: learning_rate" % rule, learning_rate)
        fields = ["%s: %r" % (rate_field, rate)]
        for name, value in settings.items():
            number = _checks.number("%s: %s" % (rule, name), value)
            fields.append("%s: %s" % (name, flag(value) if isinstance(value, bool) else repr(number)))
        self._clip, self._parameters = grad_clip, parameter_list
        self.text = "%s { %s%s }" % (rule, more, " ".join(fields))
        if schedule:
            self.text += " schedule { %s }" % " ".join(part for part in (schedule.warmup, schedule.text) if part)
        if regularization is not None:
            self.text += " regularization { %s }" % regularization.text
        if grad_clip is not None:
            self.text += " clip { %s }" % grad_clip.text

    def minimize(self, loss: Variable, startup_program: Optional[Program] = None,
                 parameter_list: Optional[Iterable[Named]] = None,
                 no_grad_set: Optional[Iterable[Named]] = None) -> Minimized:
        """Appends gradients and updates for every trainable parameter and table that the loss depends on. Once per program.

        loss             a scalar float Variable
        startup_program  ignored; the program of the loss has exactly one
        parameter_list   the parameters to train, Variables or names; overrides the optimizer's
        no_grad_set      Variables or names without a gradient

        Returns ([], [(parameter, gradient)]) as Variables, with gradients before clipping and regularization.
        """
        if not isinstance(loss, Variable):
            raise ConfigError("minimize: the loss is a Variable, not %r" % (loss,))
        if startup_program is not None:
            _checks.one_of("minimize: startup_program", startup_program, Program)
        program = loss.program
        text = self._text_for(program)
        if self._clip is None and program._gradient_clip is not None:
            text += " clip { %s }" % program._gradient_clip.text
        only = parameter_list if parameter_list is not None else self._parameters
        if only is not None and not list(only):
            raise ConfigError("minimize: parameter_list is empty: there is nothing to train")
        pairs = program._author.minimize(loss.name, text, _names(program, only), _names(program, no_grad_set),
                                         program.unique_name)
        program._is_trained = True
        return [], [(Variable(program, parameter), Variable(program, gradient)) for parameter, gradient in pairs]

    def _text_for(self, program: Program) -> str:
        """Returns the OptimizerDesc for a program."""
        return self.text

    def __repr__(self) -> str:
        return "optimizer(%s)" % self.text


class SGD(Optimizer):
    """w -= learning_rate * g"""

    def __init__(self, learning_rate: Rate = 0.01, regularization: Optional[Regularizer] = None, name: Optional[str] = None,
                 grad_clip: Optional[Clip] = None, parameter_list: Optional[Iterable[Named]] = None) -> None:
        super().__init__("sgd", "lr", learning_rate, {}, regularization, grad_clip, parameter_list)


class Momentum(Optimizer):
    """v = momentum * v + g; w -= learning_rate * v, or with use_nesterov w -= learning_rate * (g + momentum * v).
    Not for growing tables: give them their own optimizer."""

    def __init__(self, learning_rate: Rate = 0.01, momentum: SupportsFloat = 0.9, use_nesterov: bool = False,
                 regularization: Optional[Regularizer] = None, name: Optional[str] = None, grad_clip: Optional[Clip] = None,
                 parameter_list: Optional[Iterable[Named]] = None) -> None:
        super().__init__("momentum", "lr", learning_rate, {"mu": momentum, "use_nesterov": bool(use_nesterov)},
                         regularization, grad_clip, parameter_list)


class LarsMomentum(Optimizer):
    """Momentum with a learning rate scaled by the norm of each parameter:
    r = learning_rate * lars_coeff * |w| / (|g| + lars_weight_decay * |w|);
    v = momentum * v + r * (g + lars_weight_decay * w); w -= v. Not for growing tables."""

    def __init__(self, learning_rate: Rate = 0.01, momentum: SupportsFloat = 0.9, lars_coeff: SupportsFloat = 0.001,
                 lars_weight_decay: SupportsFloat = 0.0005, regularization: Optional[Regularizer] = None,
                 name: Optional[str] = None, grad_clip: Optional[Clip] = None,
                 parameter_list: Optional[Iterable[Named]] = None) -> None:
        super().__init__("lars_momentum", "lr", learning_rate,
                         {"mu": momentum, "coefficient": lars_coeff, "weight_decay": lars_weight_decay},
                         regularization, grad_clip, parameter_list)


class Adagrad(Optimizer):
    """s += g * g; w -= learning_rate * g / (sqrt(s) + epsilon)"""

    def __init__(self, learning_rate: Rate = 0.01, epsilon: SupportsFloat = 1e-6, regularization: Optional[Regularizer] = None,
                 name: Optional[str] = None, initial_accumulator_value: SupportsFloat = 0.0, grad_clip: Optional[Clip] = None,
                 parameter_list: Optional[Iterable[Named]] = None) -> None:
        super().__init__("adagrad", "lr", learning_rate,
                         {"epsilon": epsilon, "initial_accumulator": initial_accumulator_value},
                         regularization, grad_clip, parameter_list)


class DecayedAdagrad(Optimizer):
    """s = decay * s + (1 - decay) * g * g; w -= learning_rate * g / (sqrt(s) + epsilon). Not for growing tables."""

    def __init__(self, learning_rate: Rate = 0.01, decay: SupportsFloat = 0.95, epsilon: SupportsFloat = 1e-6,
                 regularization: Optional[Regularizer] = None, name: Optional[str] = None, grad_clip: Optional[Clip] = None,
                 parameter_list: Optional[Iterable[Named]] = None) -> None:
        super().__init__("decayed_adagrad", "lr", learning_rate, {"decay": decay, "epsilon": epsilon},
                         regularization, grad_clip, parameter_list)


class RMSProp(Optimizer):
    """s = rho * s + (1 - rho) * g * g; v = momentum * v + learning_rate * g / sqrt(s + epsilon); w -= v. If centered, the
    square of the mean gradient is subtracted from s. Not for growing tables."""

    def __init__(self, learning_rate: Rate = 0.01, rho: SupportsFloat = 0.95, epsilon: SupportsFloat = 1e-6,
                 momentum: SupportsFloat = 0.0, centered: bool = False, regularization: Optional[Regularizer] = None,
                 name: Optional[str] = None, grad_clip: Optional[Clip] = None,
                 parameter_list: Optional[Iterable[Named]] = None) -> None:
        super().__init__("rmsprop", "lr", learning_rate,
                         {"decay": rho, "epsilon": epsilon, "momentum": momentum, "centered": bool(centered)},
                         regularization, grad_clip, parameter_list)


class Adam(Optimizer):
    """Uses running means of gradients and of squared gradients. With lazy_mode, table rows that a batch does not use are
    not updated."""

    def __init__(self, learning_rate: Rate = 0.001, beta1: SupportsFloat = 0.9, beta2: SupportsFloat = 0.999,
                 epsilon: SupportsFloat = 1e-8, regularization: Optional[Regularizer] = None, name: Optional[str] = None,
                 lazy_mode: bool = False, grad_clip: Optional[Clip] = None,
                 parameter_list: Optional[Iterable[Named]] = None) -> None:
        super().__init__("adam", "lr", learning_rate,
                         {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "lazy_mode": bool(lazy_mode)},
                         regularization, grad_clip, parameter_list)


class Adamax(Optimizer):
    """m = beta1 * m + (1 - beta1) * g; u = max(|g|, beta2 * u + epsilon); w -= learning_rate / (1 - beta1 ^ step) * m / u.
    Not for growing tables."""

    def __init__(self, learning_rate: Rate = 0.001, beta1: SupportsFloat = 0.9, beta2: SupportsFloat = 0.999,
                 epsilon: SupportsFloat = 1e-8, regularization: Optional[Regularizer] = None, name: Optional[str] = None,
                 grad_clip: Optional[Clip] = None, parameter_list: Optional[Iterable[Named]] = None) -> None:
        super().__init__("adamax", "lr", learning_rate, {"beta1": beta1, "beta2": beta2, "epsilon": epsilon},
                         regularization, grad_clip, parameter_list)


class Adadelta(Optimizer):
    """s = rho * s + (1 - rho) * g * g; d = sqrt((u + epsilon) / (s + epsilon)) * g; u = rho * u + (1 - rho) * d * d;
    w -= learning_rate * d, as in Paddle 2; Paddle 1 uses a rate of 1. Not for growing tables."""

    def __init__(self, learning_rate: Rate = 0.001, epsilon: SupportsFloat = 1e-6, rho: SupportsFloat = 0.95,
                 regularization: Optional[Regularizer] = None, name: Optional[str] = None, grad_clip: Optional[Clip] = None,
                 parameter_list: Optional[Iterable[Named]] = None) -> None:
        super().__init__("adadelta", "lr", learning_rate, {"epsilon": epsilon, "rho": rho},
                         regularization, grad_clip, parameter_list)


class Lamb(Optimizer):
    """Adam with weight decay and a learning rate scaled by the norm of each parameter: d = Adam's quotient + lamb_weight_decay * w;
    w -= learning_rate * |w| / |d| * d. Not for growing tables.

    exclude_from_weight_decay_fn  called with a parameter (a Variable); True: no weight decay, and the step is Adam's
    """

    def __init__(self, learning_rate: Rate = 0.001, lamb_weight_decay: SupportsFloat = 0.01, beta1: SupportsFloat = 0.9,
                 beta2: SupportsFloat = 0.999, epsilon: SupportsFloat = 1e-6, regularization: Optional[Regularizer] = None,
                 name: Optional[str] = None, grad_clip: Optional[Clip] = None,
                 parameter_list: Optional[Iterable[Named]] = None,
                 exclude_from_weight_decay_fn: Optional[Callable[[Variable], bool]] = None) -> None:
        if exclude_from_weight_decay_fn is not None and not callable(exclude_from_weight_decay_fn):
            raise ConfigError("lamb: exclude_from_weight_decay_fn is a function of a parameter, not %r" % (
                exclude_from_weight_decay_fn,))
        super().__init__("lamb", "lr", learning_rate,
                         {"weight_decay": lamb_weight_decay, "beta1": beta1, "beta2": beta2, "epsilon": epsilon},
                         regularization, grad_clip, parameter_list)
        self._excludes = exclude_from_weight_decay_fn

    def _text_for(self, program: Program) -> str:
        if self._excludes is None:
            return self.text
        without = [var.name for var in program.all_parameters() if self._excludes(var)]
        return self.text.replace("lamb {", "lamb { " + "".join("without_decay: %s " % quoted(name) for name in without), 1)


class Ftrl(Optimizer):
    """FTRL-Proximal with Paddle's numerics, n the sum of squared gradients: weights of z within [-l1, l1] are 0, others
    (l1 * sign(z) - z) / (sqrt(n) / learning_rate + 2 * l2). With `beta`, weights are as in prototxt jobs (McMahan et al. 2013),
    which divide by (beta + sqrt(n)) / learning_rate + l2. If lr_power p is not -0.5, n ^ -p replaces sqrt(n)."""

    def __init__(self, learning_rate: Rate = 0.05, l1: SupportsFloat = 0.0, l2: float = 0.0, lr_power: SupportsFloat = -0.5,
                 regularization: Optional[Regularizer] = None, name: Optional[str] = None, beta: Optional[SupportsFloat] = None,
                 grad_clip: Optional[Clip] = None, parameter_list: Optional[Iterable[Named]] = None) -> None:
        if beta is None:
            l2, beta = 2 * l2, 0.0
        super().__init__("ftrl", "alpha", learning_rate, {"l1": l1, "l2": l2, "beta": beta, "lr_power": lr_power},
                         regularization, grad_clip, parameter_list)


class Custom(Optimizer):
    """Updates parameters with an operator from a plugin. Not for growing tables.

    class_name  type of the operator
    attrs       attributes keyed by name; missing attributes use the defaults of the operator
    """

    def __init__(self, class_name: str, learning_rate: Rate = 0.01, attrs: Optional[Mapping[str, Attribute]] = None,
                 regularization: Optional[Regularizer] = None, name: Optional[str] = None, grad_clip: Optional[Clip] = None,
                 parameter_list: Optional[Iterable[Named]] = None) -> None:
        more = "class_name: %s " % quoted(class_name)
        for key, value in (attrs or {}).items():
            more += "attrs { name: %s %s } " % (quoted(key), _value_text("%s: %s" % (class_name, key), value))
        super().__init__("custom", "lr", learning_rate, {}, regularization, grad_clip, parameter_list, more)


def _value_text(what: str, value: Attribute) -> str:
    """Returns the OpDescAttr field for a value."""
    if isinstance(value, (list, tuple)):
        kind = "floats" if any(isinstance(one, float) for one in value) else "ints"
        return "%s: [%s]" % (kind, ", ".join(repr(_checks.number(what, one)) for one in value))
    if isinstance(value, str):
        return "s: " + quoted(value)
    if isinstance(value, bool):
        return "b: " + flag(value)
    number = _checks.number(what, value)
    return ("i: %d" if isinstance(value, int) else "f: %r") % number


SGDOptimizer = SGD
MomentumOptimizer = Momentum
LarsMomentumOptimizer = LarsMomentum
AdagradOptimizer = Adagrad
DecayedAdagradOptimizer = DecayedAdagrad
RMSPropOptimizer = RMSProp
AdamOptimizer = Adam
AdamaxOptimizer = Adamax
AdadeltaOptimizer = Adadelta
LambOptimizer = Lamb
FtrlOptimizer = Ftrl
CustomOptimizer = Custom


class PipelineOptimizer:
    """Minimizes with another optimizer and makes train_from_dataset run the program as a pipeline (docs/training.md).

    cut_list          per section, the Variables passed to the next one; the last section runs the rest, and its entry ([loss],
                      required by fluid) is ignored
    place_list        CPUPlaces, one per section, or as in fluid forward and backward: 2 * sections - 1
    concurrency_list  threads, with as many entries; a section uses the larger of its forward and backward entries
    queue_size        maximum number of micro-batches waiting between two sections
    num_microbatches  number of batches whose gradients are averaged per update
    """

    def __init__(self, optimizer: Optimizer, cut_list: Optional[Iterable[Iterable[Variable]]] = None,
                 place_list: Optional[Sequence[CPUPlace]] = None, concurrency_list: Optional[Sequence[SupportsIndex]] = None,
                 queue_size: SupportsIndex = 30, sync_steps: SupportsIndex = 1, start_cpu_core_id: SupportsIndex = 0,
                 num_microbatches: SupportsIndex = 1) -> None:
        self._optimizer = _checks.one_of("PipelineOptimizer: optimizer", optimizer, Optimizer)
        cuts = [_checks.listed("PipelineOptimizer: cut_list", cut, "lists of Variables")
                for cut in _checks.listed("PipelineOptimizer: cut_list", cut_list or (), "lists of Variables")]
        if len(cuts) < 2:
            raise ConfigError("PipelineOptimizer: cut_list has %d sections; a pipeline has 2 or more" % len(cuts))
        sections = len(cuts)
        for what, given in (("place_list", place_list), ("concurrency_list", concurrency_list)):
            if given is not None and len(given) not in (sections, 2 * sections - 1):
                raise ConfigError("PipelineOptimizer: %s has %d entries for %d sections; it has one a section, or one a section "
                                  "forth and back: %d" % (what, len(given), sections, 2 * sections - 1))
        for place in place_list or ():
            _checks.one_of("PipelineOptimizer: place_list", place, CPUPlace)
        threads = [_checks.whole("PipelineOptimizer: concurrency_list", one, 1) for one in concurrency_list or [1] * sections]
        back = threads[sections - 1:][::-1] if len(threads) > sections else threads
        self._cuts = cuts
        self._concurrency = [max(forth, returning) for forth, returning in zip(threads, back)]
        self._settings = "".join(
            " %s: %d" % (name, _checks.whole("PipelineOptimizer: " + name, value, least)) for name, value, least in (
                ("queue_size", queue_size, 1), ("sync_steps", sync_steps, 1), ("start_cpu_core_id", start_cpu_core_id, 0),
                ("num_microbatches", num_microbatches, 1)))

    def minimize(self, loss: Variable, startup_program: Optional[Program] = None,
                 parameter_list: Optional[Iterable[Named]] = None,
                 no_grad_set: Optional[Iterable[Named]] = None) -> Minimized:
        """Same as Optimizer.minimize, and sets up the pipeline."""
        result = self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)
        sections = []
        for index, (cut, threads) in enumerate(zip(self._cuts, self._concurrency)):
            handed = [] if index + 1 == len(self._cuts) else _names(loss.program, cut)
            sections.append("section_config { %sconcurrency: %d }" % (
                "".join("section_out_var_names: %s " % quoted(name) for name in handed), threads))
        loss.program._pipeline_opt = {"trainer": "PipelineTrainer", "device_worker": "Section",
                                      "section_param": " ".join(sections) + self._settings}
        return result

    def __repr__(self) -> str:
        return "PipelineOptimizer(%r, %d sections)" % (self._optimizer, len(self._cuts))


def _names(program: Program, given: Optional[Iterable[Named]]) -> list[str]:
    return [name_in(program, var, "minimize: ") for var in given or ()]
