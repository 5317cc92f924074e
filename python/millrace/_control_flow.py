"""Comparisons, and blocks of operators that run as long as, or when, a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Optional, SupportsFloat, Union, overload
import warnings

from . import _checks
from ._append import checked, op, program_of
from ._tensors import assign, cast, constant
from .errors import ConfigError, MillraceWarning
from .framework import Program, Variable

__all__ = ["ConditionalBlock", "Print", "Switch", "While", "cond", "equal", "greater_equal", "greater_than", "increment",
           "less_equal", "less_than", "logical_and", "logical_not", "logical_or", "logical_xor", "not_equal", "while_loop"]

Returned = Union[Variable, Sequence[Variable], None]  # by a function of the caller's


def increment(x: Variable, value: SupportsFloat = 1.0, in_place: bool = True) -> Variable:
    """x + value for an x of shape [1], in x itself; with in_place=False in a new variable."""
    dtype = checked(x, program_of({"x": x}), "increment", "x").dtype
    step = _checks.float32_of("increment: value", value, dtype, "take assign(x + value, output=x)")
    return op("increment", {"X": x}, {"step": step}, {"Out": x} if in_place else None)


def _compare(type: str, x: Variable, y: Union[Variable, SupportsFloat], into: Optional[Variable]) -> Variable:
    if not isinstance(y, Variable):
        _checks.number("%s: y" % type, y)
        dtype = checked(x, program_of({"x": x}), type, "x").dtype
        if dtype == "bool" or dtype in _checks.WHOLE and _checks.exact_int(y) is None:
            x = cast(x, "float32")
        y = constant("%s: y" % type, [1], x.dtype, y)
    return op(type, {"X": x, "Y": y}, None, None if into is None else {"Out": into})


def less_than(x: Variable, y: Union[Variable, SupportsFloat], force_cpu: Optional[bool] = None,
              cond: Optional[Variable] = None) -> Variable:
    """x < y, value by value: bool in the larger shape, in `cond` if it is given. y is a Variable or a number;
    beside a fraction an integer x is taken as float32."""
    return _compare("less_than", x, y, cond)


def less_equal(x: Variable, y: Union[Variable, SupportsFloat], cond: Optional[Variable] = None) -> Variable:
    """x <= y, value by value: bool in the larger shape, in `cond` if it is given. y is a Variable or a number;
    beside a fraction an integer x is taken as float32."""
    return _compare("less_equal", x, y, cond)


def greater_than(x: Variable, y: Union[Variable, SupportsFloat], cond: Optional[Variable] = None) -> Variable:
    """x > y, value by value: bool in the larger shape, in `cond` if it is given. y is a Variable or a number;
    beside a fraction an integer x is taken as float32."""
    return _compare("greater_than", x, y, cond)


def greater_equal(x: Variable, y: Union[Variable, SupportsFloat], cond: Optional[Variable] = None) -> Variable:
    """x >= y, value by value: bool in the larger shape, in `cond` if it is given. y is a Variable or a number;
    beside a fraction an integer x is taken as float32."""
    return _compare("greater_equal", x, y, cond)


def equal(x: Variable, y: Union[Variable, SupportsFloat], cond: Optional[Variable] = None) -> Variable:
    """x == y, value by value: bool in the larger shape, in `cond` if it is given. y is a Variable or a number;
    beside a fraction an integer x is taken as float32."""
    return _compare("equal", x, y, cond)


def not_equal(x: Variable, y: Union[Variable, SupportsFloat], cond: Optional[Variable] = None) -> Variable:
    """x != y, value by value: bool in the larger shape, in `cond` if it is given. y is a Variable or a number;
    beside a fraction an integer x is taken as float32."""
    return _compare("not_equal", x, y, cond)


def _logical(type: str, inputs: Mapping[str, Variable], out: Optional[Variable], name: Optional[str]) -> Variable:
    return op(type, inputs, None, None if out is None else {"Out": out}, name)


def logical_and(x: Variable, y: Variable, out: Optional[Variable] = None, name: Optional[str] = None) -> Variable:
    """x and y, both bool; the larger shape, in `out` if it is given."""
    return _logical("logical_and", {"X": x, "Y": y}, out, name)


def logical_or(x: Variable, y: Variable, out: Optional[Variable] = None, name: Optional[str] = None) -> Variable:
    """x or y, both bool; the larger shape, in `out` if it is given."""
    return _logical("logical_or", {"X": x, "Y": y}, out, name)


def logical_xor(x: Variable, y: Variable, out: Optional[Variable] = None, name: Optional[str] = None) -> Variable:
    """x or y but not both, bool; the larger shape, in `out` if it is given."""
    return _logical("logical_xor", {"X": x, "Y": y}, out, name)


def logical_not(x: Variable, out: Optional[Variable] = None, name: Optional[str] = None) -> Variable:
    """Not x, bool; the shape of x, in `out` if it is given."""
    return _logical("logical_not", {"X": x}, out, name)


def Print(input: Variable, first_n: int = -1, message: Optional[str] = None, summarize: int = 20,
          print_tensor_name: bool = True, print_tensor_type: bool = True, print_tensor_shape: bool = True,
          print_tensor_layout: bool = True, print_tensor_lod: bool = True, print_phase: str = "both") -> Variable:
    """Prints a variable on standard error in each batch, the first_n ones if that is not -1; a copy, of the same shape."""
    return op("print", {"In": input}, {"first_n": first_n, "message": message or "", "summarize": summarize,
                                       "print_tensor_name": print_tensor_name, "print_tensor_type": print_tensor_type,
                                       "print_tensor_shape": print_tensor_shape, "print_tensor_layout": print_tensor_layout,
                                       "print_tensor_lod": print_tensor_lod, "print_phase": print_phase.upper()}, ["Out"])


class _Block:
    """What is appended within `with` goes to a block of its own, which an operator runs. An exception takes it back."""

    def __init__(self, program: Program, type: str, inputs: list[tuple[str, list[str]]], attrs: dict[str, Any],
                 exports: Sequence[str] = ()) -> None:
        self._program, self._ending, self._exports = program, (type, inputs, attrs), exports

    def __enter__(self) -> _Block:
        program = self._program
        program._author.begin_block()
        self._before = len(program.auc_states), len(program._queues), len(program._sources), program._is_trained
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        if kind is None:
            try:
                self._program._author.end_block(*self._ending, list(self._exports))
                return
            except BaseException:
                self._drop()
                raise
        self._drop()

    def _drop(self) -> None:
        program = self._program
        auc_states, queues, sources, program._is_trained = self._before
        # Of the program's copies too, which have the same lists.
        del program.auc_states[auc_states:], program._queues[queues:], program._sources[sources:]
        program._author.drop_block()


def _condition(layer: str, given: object) -> Program:
    """The program of a condition, one bool."""
    if not isinstance(given, Variable):
        raise ConfigError("%s: the condition is a Variable, as less_than(i, n) makes it, not %r" % (layer, given))
    if given.dtype != "bool":
        raise ConfigError('%s: the condition is a bool [1]; "%s" is %s %s' % (layer, given.name, given.dtype, list(given.shape)))
    if any(size not in (-1, 1) for size in given.shape):
        raise ConfigError('%s: the condition is a bool [1]; "%s" is %s: take its reduce_any or reduce_all, or choose values '
                          "by where" % (layer, given.name, list(given.shape)))
    return given.program


class While:
    """Runs a block again and again as long as a condition, bool [1], holds:

        i, n = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", 10)
        go_on = layers.less_than(i, n)
        with layers.While(go_on).block():
            ...
            layers.increment(i)
            layers.less_than(i, n, cond=go_on)

    The block writes the condition. Its own variables end with it; what is needed behind it is written to variables from before it,
    by assign(x, output=...), increment or layers.op(outputs=...). An optimizer's minimize within it trains in each round, and by
    what the block itself computes: what it reads of variables from before it, or of the round before, is a constant to it.
    Gradients of what stands behind the loop do not reach into it.
    """

    def __init__(self, cond: Variable, is_test: bool = False, name: Optional[str] = None) -> None:
        self._program = _condition("While", cond)
        self._cond = cond
        self._is_test = bool(is_test)

    def block(self) -> _Block:
        """The block, for `with`."""
        return _Block(self._program, "while", [("Condition", [self._cond.name])], {"is_test": self._is_test})


class ConditionalBlock:
    """Runs a block once when a condition holds: `with ConditionalBlock([c], is_scalar_condition=True).block():` for one bool [1];
    otherwise when none of the inputs is empty, whatever it says (a MillraceWarning where that is one bool)."""

    def __init__(self, inputs: Iterable[Variable], is_scalar_condition: bool = False, name: Optional[str] = None) -> None:
        inputs = _checks.listed("ConditionalBlock: inputs", inputs, "Variables")
        self._program = program_of({"inputs": inputs})
        self._names = [checked(var, self._program, "ConditionalBlock", "inputs").name for var in inputs]
        self._scalar = bool(is_scalar_condition)
        if self._scalar:
            _condition("ConditionalBlock", inputs[0] if len(inputs) == 1 else None)
        elif len(inputs) == 1 and inputs[0].dtype == "bool" and tuple(inputs[0].shape) == (1,):
            warnings.warn('ConditionalBlock: the block runs whether "%s" is true or false, as a bool [1] is never empty; '
                          "is_scalar_condition=True makes it the condition" % inputs[0].name, MillraceWarning, stacklevel=2)

    def block(self) -> _Block:
        """The block, for `with`."""
        return _Block(self._program, "conditional_block", [("Cond", self._names)], {"is_scalar_condition": self._scalar})


class Switch:
    """The first case whose condition, bool [1], holds, or the default:

        with layers.Switch() as switch:
            with switch.case(layers.less_than(step, warm)):
                layers.assign(low, output=rate)
            with switch.default():
                layers.assign(high, output=rate)
    """

    def __init__(self, name: Optional[str] = None) -> None:
        self._none_before: Optional[Variable] = None  # whether no case so far held; None: there was none

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> Literal[False]:
        return False

    def case(self, condition: Variable) -> _Block:
        """The block of a case, for `with`."""
        _condition("Switch.case", condition)
        before, fails = self._none_before, logical_not(condition)
        self._none_before = fails if before is None else logical_and(before, fails)
        runs = condition if before is None else logical_and(before, condition)
        return ConditionalBlock([runs], is_scalar_condition=True).block()

    def default(self) -> _Block:
        """The block that runs when no case did, for `with`."""
        if self._none_before is None:
            raise ConfigError("Switch.default: comes after a case")
        return ConditionalBlock([self._none_before], is_scalar_condition=True).block()


def _variables(layer: str, given: Returned) -> list[Variable]:
    """What a function of the caller's returned, as a list."""
    values: list[Any] = [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]
    for value in values:
        if not isinstance(value, Variable):
            raise ConfigError("%s: the function returns Variables, not %r" % (layer, value))
    return values


def while_loop(cond: Callable[..., Variable], body: Callable[..., Returned], loop_vars: Union[Variable, Sequence[Variable]],
               is_test: bool = False, name: Optional[str] = None) -> list[Variable]:
    """loop_vars = body(*loop_vars) as long as cond(*loop_vars), a bool [1], holds; returns a list of the last ones, each of the
    shape that it began with."""
    state = [assign(var) for var in _variables("while_loop: loop_vars", loop_vars)]
    if not state:
        raise ConfigError("while_loop: loop_vars is empty")
    go_on = cond(*state)
    with While(go_on, is_test).block():
        after = _variables("while_loop: body", body(*state))
        if len(after) != len(state):
            raise ConfigError("while_loop: body returns %d variables for %d of loop_vars" % (len(after), len(state)))
        # Of those that only changed places, none may be overwritten before it is copied.
        names = {var.name for var in state}
        after = [assign(var) if var.name in names and var.name != old.name else var for var, old in zip(after, state)]
        for var, old in zip(after, state):
            if var.name != old.name:
                assign(var, output=old)
        assign(cond(*state), output=go_on)
    return state


def _check_alike(true: Sequence[Variable], false: Sequence[Variable]) -> None:
    """Refuses branches of a cond that do not return the same; a size that is not known may be any."""
    if len(true) != len(false):
        raise ConfigError("cond: true_fn returns %d variables, false_fn %d" % (len(true), len(false)))
    for one, other in zip(true, false):
        sizes = list(zip(one.shape, other.shape))
        differ = any(a != b for a, b in sizes if a >= 0 and b >= 0)
        if one.dtype != other.dtype or len(one.shape) != len(other.shape) or differ:
            raise ConfigError("cond: true_fn returns %r, false_fn %r; both return the same type and shape" % (one, other))


@overload
def cond(pred: Variable, true_fn: Callable[[], Variable], false_fn: Callable[[], Variable],
         name: Optional[str] = None) -> Variable: ...


@overload
def cond(pred: Variable, true_fn: Callable[[], Sequence[Variable]], false_fn: Callable[[], Sequence[Variable]],
         name: Optional[str] = None) -> list[Variable]: ...


@overload
def cond(pred: Variable, true_fn: Optional[Callable[[], None]] = None, false_fn: Optional[Callable[[], None]] = None,
         name: Optional[str] = None) -> None: ...


def cond(pred: Variable, true_fn: Optional[Callable[[], Returned]] = None, false_fn: Optional[Callable[[], Returned]] = None,
         name: Optional[str] = None) -> Union[Variable, list[Variable], None]:
    """What true_fn() returns when pred, a bool [1], holds, else what false_fn() does: one variable or a list of them, of the same
    types and shapes from both. Only one of them runs. No gradient goes through: where(...) has one.

    An exception takes back the branch that it ends, but not what true_fn wrote when it comes from false_fn: that still runs
    when pred holds, so begin a new program."""
    program = _condition("cond", pred)
    made: list[list[Variable]] = []
    alone = False
    for holds, branch in ((pred, true_fn), (None, false_fn)):
        if branch is None:
            made.append([])
            continue
        exports: list[str] = []
        condition = logical_not(pred) if holds is None else holds
        with _Block(program, "conditional_block", [("Cond", [condition.name])], {"is_scalar_condition": True}, exports):
            result = branch()
            values = [assign(var) for var in _variables("cond", result)]
            exports += [var.name for var in values]
            if holds is None:
                _check_alike(made[0], values)
            elif false_fn is None:
                _check_alike(values, [])
        made.append(values)
        alone = alone or isinstance(result, Variable)
    if not made[0]:
        return None
    mask = cast(pred, "int32")
    chosen = [op("select_input", {"X": [other, one], "Mask": mask}) for one, other in zip(*made)]
    return chosen[0] if alone else chosen
