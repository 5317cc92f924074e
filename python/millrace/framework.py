"""Programs and their variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import itertools
import os
import threading
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, SupportsFloat, SupportsIndex, Union
import weakref

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import _checks, _millrace, _ranks, unique_name
from ._rules import Clip, Initializer, Regularizer
from ._types import Feed, Meta, OpInfo, Path
from .errors import AlreadyExistsError, ConfigError, IoError, NotFoundError

__all__ = ["CPUPlace", "ParamAttr", "Program", "Scope", "TableRows", "Variable", "default_main_program", "default_startup_program",
           "global_scope", "load_plugin", "op_info", "op_types", "program_guard", "scope_guard"]


class CPUPlace:
    """The CPU, the only place where programs run."""

    def __repr__(self) -> str:
        return "CPUPlace"


# What the formulas of variables append, by name: _formulas.py fills it in, which every module imports whose variables users get.
_formulas: dict[str, Callable[..., Variable]] = {}


class Variable:
    """A variable of a program. `shape` contains -1 for the batch. With lod_level 1, rows are grouped into sequences."""

    __array_ufunc__ = None  # an array beside it in a formula asks the variable, which refuses it

    def __init__(self, program: Program, name: str) -> None:
        self.program = program
        self.name = name

    def _meta(self) -> Meta:
        return self.program._meta(self.name)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes, -1 for the batch."""
        return self._meta()["shape"]

    @property
    def dtype(self) -> str:
        """"float32", "int64", ..."""
        return self._meta()["dtype"]

    @property
    def lod_level(self) -> int:
        """1 if the rows are grouped into sequences, else 0."""
        return self._meta()["lod_level"]

    @property
    def persistable(self) -> bool:
        """Whether the variable is kept in the scope between batches, like parameters."""
        return self._meta()["persistable"]

    @property
    def stop_gradient(self) -> bool:
        """Whether gradients stop here. Variables computed only from it get no gradient. Set it before minimize."""
        return self.program._author.stops_gradient(self.name)

    @stop_gradient.setter
    def stop_gradient(self, stop: bool) -> None:
        self.program._author.set_stop_gradient(self.name, bool(stop))

    def __repr__(self) -> str:
        lod = ", lod_level=%d" % self.lod_level if self.lod_level else ""
        return 'Variable("%s", %s %s%s)' % (self.name, self.dtype, list(self.shape), lod)

    def __add__(self, other: Operand) -> Variable:
        return _formulas["add"](self, other)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Variable:
        return _formulas["sub"](self, other)

    def __rsub__(self, other: Operand) -> Variable:
        return _formulas["sub"](self, other, swapped=True)

    def __mul__(self, other: Operand) -> Variable:
        return _formulas["mul"](self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> Variable:
        return _formulas["div"](self, other)

    def __rtruediv__(self, other: Operand) -> Variable:
        return _formulas["div"](self, other, swapped=True)

    def __pow__(self, other: Operand) -> Variable:
        return _formulas["pow"](self, other)

    def __getitem__(self, key: Key) -> Variable:
        """Returns a slice, such as x[:, 0:2]. An integer index removes its axis."""
        return _formulas["part"](self, key)

    __iter__ = None  # it is no list, though it has parts

    def __eq__(self, other: Operand) -> Variable:  # type: ignore[override]
        """Compares elementwise, like layers.equal. To test for the same variable, compare names. Dicts and sets use identity."""
        return _formulas["equal"](self, other)

    def __ne__(self, other: Operand) -> Variable:  # type: ignore[override]
        return _formulas["not_equal"](self, other)

    __hash__ = object.__hash__

    def __lt__(self, other: Operand) -> Variable:
        return _formulas["less_than"](self, other)

    def __le__(self, other: Operand) -> Variable:
        return _formulas["less_equal"](self, other)

    def __gt__(self, other: Operand) -> Variable:
        return _formulas["greater_than"](self, other)

    def __ge__(self, other: Operand) -> Variable:
        return _formulas["greater_equal"](self, other)

    def __bool__(self) -> NoReturn:
        raise ConfigError('"%s" has a value when the program runs, not while it is written; take layers.cond, layers.While or '
                          "layers.where instead of if, while, and, or; to find a variable in a list (x in [y, z]) compare names" %
                          self.name)

    def __neg__(self) -> Variable:
        return _formulas["mul"](self, -1)


class ParamAttr:
    """Name, initial values and training settings of a parameter.

    initializer    one of millrace.initializer; default: Xavier for weights, 0 for biases
    learning_rate  factor applied to the optimizer's learning rate
    regularizer    one of millrace.regularizer, instead of the optimizer's
    trainable      False: no gradient, no update
    gradient_clip  one of millrace.clip, instead of the optimizer's; by value or by norm
    """

    def __init__(self, name: Optional[str] = None, initializer: Optional[Initializer] = None,
                 learning_rate: SupportsFloat = 1.0, regularizer: Optional[Regularizer] = None, trainable: bool = True,
                 gradient_clip: Optional[Clip] = None) -> None:
        if name is not None:
            _checks.text("ParamAttr: name", name)
        for what, given, module in (("initializer", initializer, "initializer"), ("regularizer", regularizer, "regularizer"),
                                    ("gradient_clip", gradient_clip, "clip")):
            if given is not None and not hasattr(given, "text"):
                raise ConfigError("ParamAttr: %s is one of millrace.%s, not %r" % (what, module, given))
        self.name = name
        self.initializer = initializer
        self.learning_rate = _checks.number("ParamAttr: learning_rate", learning_rate)
        self.regularizer = regularizer
        self.trainable = trainable
        self.gradient_clip = gradient_clip

    def _named(self, name: str) -> ParamAttr:
        """Returns a copy with this parameter name."""
        return ParamAttr(name, self.initializer, self.learning_rate, self.regularizer, self.trainable, self.gradient_clip)

    def _rule(self) -> str:
        """The ParameterRule; "" for a parameter like any other."""
        fields = [] if self.learning_rate == 1 else ["rate: %r" % float(self.learning_rate)]
        for name, given in (("regularization", self.regularizer), ("clip", self.gradient_clip)):
            if given is not None:
                fields.append("%s { %s }" % (name, given.text))
        return " ".join(fields)

    @staticmethod
    def of(given: ParamLike) -> ParamAttr:
        """Converts a param_attr argument (a ParamAttr, a name, an initializer, or None) to a ParamAttr."""
        if given is None or given is True:
            return ParamAttr()
        if isinstance(given, ParamAttr):
            return given
        if isinstance(given, str):
            return ParamAttr(name=given)
        if hasattr(given, "text"):
            return ParamAttr(initializer=given)
        raise ConfigError("param_attr is a ParamAttr, a name or an initializer, not %r" % (given,))


ParamLike = Union[ParamAttr, str, Initializer, Literal[True], None]
BiasLike = Union[ParamAttr, str, Initializer, bool, None]  # False: no bias
Operand = Union[Variable, SupportsFloat]
Key = Union[SupportsIndex, slice, tuple[Union[SupportsIndex, slice], ...]]


class Queue(Protocol):
    """What runs ask of a queue that readers of a program take from."""

    def _check_ids(self) -> None: ...

    def _training_failed(self, error: BaseException) -> None: ...


class Source(Protocol):
    """What runs ask of a reader or loader that a generator of Python's fills."""

    def _next_feed(self, feed: Feed) -> dict[str, Any]: ...

    def _start_passes(self, epochs: int) -> bool: ...

    def _ended(self) -> None: ...

    def _stop(self, error: Optional[BaseException]) -> None: ...


_keys = itertools.count(1)


class Program:
    """Operators on variables. Layers append to a main program; its startup program initializes the parameters.

    program_guard and default_main_program() create a program together with its startup program.
    """

    def __init__(self) -> None:
        self._made: Union[_millrace.Program, _LoadedAuthor, None] = None  # the extension's object, when this is a main program
        self._mains: list[Program] = []  # when this is a startup program
        self._bytes: Optional[bytes] = None  # when this is a copy
        self._source: Optional[Program] = None  # what a copy was made of
        self._key = next(_keys)  # tells it from others that are trained on a scope
        # What was asked of variables, and of which version of the program.
        self._known: tuple[Optional[int], dict[str, Meta]] = None, {}
        self._names: set[str] = set()
        self._initial_values: dict[str, NDArray[np.float32]] = {}  # of parameters that start as arrays
        self._lines: dict[str, str] = {}  # where the operator that makes a variable was called
        self._queues: list[Queue] = []  # that its readers take from
        self._looked_up: set[str] = set()  # names of what tables are asked for
        self._sources: list[Source] = []  # readers and loaders that a generator of Python's fills
        # "zeros", "empty_slot": the rules of the dataset that it was trained on; its clones' as well.
        self._trained_on: dict[str, str] = {}
        self._gradient_clip: Optional[Clip] = None  # of optimizers that have none
        self._is_trained = False  # whether an optimizer's minimize has made it one that trains
        self._is_test = False  # whether it is a clone for tests
        self._dist = ""  # how ranks train it: the text of TrainerDesc.dist
        # What such a clone counted, by scope.
        self._counts: weakref.WeakKeyDictionary[Scope, _millrace.ProgramCounters] = weakref.WeakKeyDictionary()
        self._counters: tuple[Optional[int], Sequence[str]] = None, ()  # the version, and the variables that it counts in
        self._pipeline_opt: Optional[dict[str, Any]] = None  # what TrainerFactory takes, once a PipelineOptimizer has minimized
        self._tables: list[str] = []  # names of what embedding layers look up, in their order; its clones' as well
        # Of those with a vocabulary that fleet may spread, the rule of their own.
        self._sparse_tables: dict[str, Optional[str]] = {}
        self._spread: set[str] = set()  # of these, those whose rows it did spread
        self._copies: weakref.WeakSet[Program] = weakref.WeakSet()  # clones and theirs
        self._changes = 0  # of a copy
        self._initial_folder: Optional[str] = None  # of save_persistables or a model, whose values its startup program ends with
        self.auc_states: list[str] = []
        self.random_seed = 1

    def __repr__(self) -> str:
        if self._mains:
            return "Program(startup of %d)" % len(self._mains)
        if self._is_empty():
            return "Program(empty)"
        return "Program(%s%d operators, %d parameters%s)" % (
            "" if self._bytes is None else "a copy, ", len(self.ops().splitlines()) - 1, len(self._author.parameters()),
            ", trains" if self._is_trained else "")

    @property
    def _author(self) -> Union[_millrace.Program, _LoadedAuthor]:
        if self._source is not None:
            return self._source._author
        if self._mains:
            raise ConfigError("this is a startup program: operators go to the main program of its program_guard")
        if self._made is None:
            self._made = _millrace.Program()
        return self._made

    def _is_startup(self) -> bool:
        return bool(self._mains)

    def _is_empty(self) -> bool:
        return self._made is None and self._bytes is None and not self._mains

    def _root(self) -> Program:
        """What it is a copy of, at last."""
        return self if self._source is None else self._source._root()

    def unique_name(self, stem: str) -> str:
        """"fc_0", "fc_1", ...: of unique_name.generate, and none that this program has had."""
        while True:
            name = unique_name.generate(stem)
            if name not in self._names:
                self._names.add(name)
                return name

    def _version(self) -> int:
        """Another number after all that changes what serialize gives."""
        return self._changes if self._bytes is not None else self._author.version

    def _meta(self, name: str) -> Meta:
        """What is known of the variable of that name; NotFoundError with the nearest name."""
        author = self._author
        version, known = self._known
        if version != author.version:
            version, known = self._known = author.version, {}
        if name not in known:
            known[name] = author.find(name)
        return known[name]

    def var(self, name: str) -> Variable:
        """Returns the variable with this name. Raises NotFoundError with the closest name."""
        self._meta(name)
        return Variable(self, name)

    def all_parameters(self) -> list[Variable]:
        """Returns its parameters and tables in creation order."""
        return [Variable(self, name) for name in self._author.parameters()]

    def global_block(self) -> Program:
        """Returns the program itself, for `program.global_block().var(name)` in Paddle scripts."""
        return self

    def clone(self, for_test: bool = False) -> Program:
        """Copies a main program in its current state. `for_test`: copies only the forward part, with dropout and similar layers off.

        A test copy has its own counters: those of its layers (auc) accumulate over its runs on a scope, and restart when
        parameters of the scope change through training, loading or set. Training counts separately.
        """
        copy = Program()
        copy._bytes = self._test_bytes() if for_test else self.serialize()
        copy._source = self
        self._copies.add(copy)
        copy.auc_states = list(self.auc_states)
        copy._pipeline_opt = self._pipeline_opt
        copy.random_seed = self.random_seed
        copy._lines = self._lines
        copy._queues = self._queues
        copy._looked_up = self._looked_up
        copy._tables = self._tables
        copy._sources = self._sources
        copy._trained_on = self._trained_on
        copy._is_trained = self._is_trained and not for_test
        copy._is_test = self._is_test or for_test
        copy._dist = self._dist
        return copy

    def _spread_tables(self, rules: Mapping[str, str]) -> None:
        """Lets tables with a vocabulary be ones that grow, where that can be: {name: the rule that will move it}."""
        self._spread.update(name for name, rule in rules.items() if self._author.spread(name, rule))

    def _spread_copies(self) -> None:
        """Lets clones that were made before look them up as what they are now."""
        for copy in self._copies if self._spread else ():
            copy._bytes = _millrace.program_with_tables(copy.serialize(), self.serialize(), sorted(self._spread))
            copy._changes += 1
            copy._spread |= self._spread
            copy._spread_copies()

    def _test_bytes(self) -> bytes:
        """The forward part."""
        return _millrace.program_for_test(self.serialize())

    def _own_counts(self, scope: Scope) -> Optional[_millrace.ProgramCounters]:
        """Where it counts on a scope; None: by the scope's variables."""
        if not self._is_test:
            return None
        if scope not in self._counts:
            self._counts[scope] = _millrace.ProgramCounters(self.serialize())
        return self._counts[scope]

    def _counted(self) -> Sequence[str]:
        """The variables that it adds to from batch to batch."""
        if self._counters[0] != self._version():
            self._counters = self._version(), _millrace.counters(self.serialize())
        return self._counters[1]

    def serialize(self) -> bytes:
        """Returns the ProgramDesc as bytes, in Paddle's format."""
        if self._bytes is not None:
            return self._bytes
        if self._mains:
            return self._mains[-1]._author.startup()
        return self._author.main()

    def startup_bytes(self) -> bytes:
        """Returns the serialized startup program of a main program or of its copy."""
        return self._author.startup()

    def ops(self) -> str:
        """Returns len(ops)=7, then one line per operator: op[0]->Type(): lookup_table."""
        return _millrace.program_ops(self.serialize())

    def to_string(self) -> str:
        """Returns the ProgramDesc as text."""
        return _millrace.program_text(self.serialize())

    __str__ = to_string

    def save(self, folder: Path) -> None:
        """Writes FOLDER/main_program.bin and FOLDER/startup_program.bin, for use in a job:

            program { main: "FOLDER/main_program.bin" startup: "FOLDER/startup_program.bin" }
        """
        folder = _checks.path("Program.save: folder", folder)
        if not folder:
            raise ConfigError("Program.save: no folder is named")
        try:
            os.makedirs(folder, exist_ok=True)
            for name, data in (("main_program.bin", self.serialize()), ("startup_program.bin", self.startup_bytes())):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(data)
        except OSError as error:
            raise IoError("Program.save: %s: %s" % (error.filename or folder, error.strerror)) from None


class _LoadedAuthor:
    """What stands for the extension's object in a program that was loaded: it can be run and looked at."""

    version = 0  # it stays as it is

    def __init__(self, data: bytes) -> None:
        self._data, self._vars = data, _millrace.program_vars(data)

    def main(self) -> bytes:
        return self._data

    def has(self, name: str) -> bool:
        return name in self._vars

    def find(self, name: str) -> Meta:
        if name not in self._vars:
            raise NotFoundError('the program has no variable "%s"; it has: %s' % (name, ", ".join(sorted(self._vars))))
        return self._vars[name]

    def parameters(self) -> list[str]:
        return sorted(name for name, meta in self._vars.items() if meta["persistable"])

    def stops_gradient(self, name: str) -> bool:
        return not self.find(name)["persistable"]

    def __getattr__(self, name: str) -> Any:
        raise ConfigError("this program was loaded from a model, to be run as it is: nothing is added to it, and it has no startup "
                          "program")


def _loaded_program(data: bytes, seed: int) -> Program:
    program = Program()
    program._made, program.random_seed, program._is_test = _LoadedAuthor(data), seed, True
    return program


class TableRows(NamedTuple):
    """Rows of a growing table with their keys: ids, or with per_slot (key: SLOT_AND_ID) hashes of slot and id."""

    keys: NDArray[np.uint64]  #: uint64, [rows], ascending
    values: NDArray[np.float32]  #: float32, [rows, dim]


def _array_or_rows(value: object) -> Any:
    return TableRows(*value) if isinstance(value, tuple) else value


class Scope:
    """Keeps variables between runs: parameters, optimizer state, tables."""

    def __init__(self) -> None:
        self._scope = _millrace.Scope()
        self._named: set[str] = set()  # by var()
        self._shared: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # of what this rank has counted alone since: what all ranks had

    def __repr__(self) -> str:
        try:
            return "Scope(%d variables, step %d)" % (len(self.names()), self.step)
        except AlreadyExistsError:
            return "Scope(in use by a call that is not over)"

    def get(self, name: str) -> Any:  # which of the three, who calls it knows
        """Returns a copy: a tensor as a numpy array, a growing table as TableRows, or None if the name does not exist."""
        return _array_or_rows(self._scope.get(name))

    def set(self, name: str, array: ArrayLike) -> None:
        """Writes a tensor. An existing tensor keeps its shape and type."""
        self._scope.set(name, np.asarray(_checks.unmasked('variable "%s"' % name, array)))
        self._shared.pop(name, None)

    def _parts(self, name: str) -> Optional[tuple[np.ndarray, np.ndarray]]:
        """A variable's value, and what of it programs that measure themselves have seen; None when there is none of that name."""
        value, seen = self.get(name), self._scope.seen(name)
        if not isinstance(value, np.ndarray):
            return None
        seen = 0 * value if seen is None or seen.size != value.size else seen.reshape(value.shape)
        return value, seen

    def _shared_counts(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """By name, what all ranks had of what this one has counted alone since."""
        for name in self._scope.take_made():
            self._shared.pop(name, None)
        return self._shared

    def _keep_shared(self, program: Program) -> None:
        """Before a run of this rank alone: keeps what all have counted."""
        if _ranks.size() == 1:
            return
        shared = self._shared_counts()
        for name in program._counted():
            parts = None if name in shared else self._parts(name)
            if parts is not None:
                shared[name] = parts

    def _total(self, name: str, op: str = "sum") -> Union[np.ndarray, TableRows, None]:
        """A variable's value, with what each rank has counted alone: a collective where this one has."""
        value, shared = self.get(name), self._shared_counts().get(name)
        if shared is None or not isinstance(value, np.ndarray) or shared[0].shape != value.shape:
            return value
        return shared[0] + _ranks.allreduce(value - shared[0]) if op == "sum" else _ranks.allreduce(value, op)

    def _share_counts(self, call: str) -> None:
        """Before a run of all ranks: adds up what each has counted alone."""
        if _ranks.size() == 1:
            return
        alone = {}
        for name, shared in self._shared_counts().items():
            parts = self._parts(name)
            if parts is not None and parts[0].shape == shared[0].shape:
                alone[name] = [now - before for now, before in zip(parts, shared)]
        totals: dict[str, tuple[Any, Any]] = {}
        for theirs in _ranks.gather_objects(alone, call):
            for name, (counted, seen) in theirs.items():
                before: Any = totals.get(name) or self._shared.get(name) or self._parts(name)
                totals[name] = before[0] + counted, before[1] + seen
        for name, (total, seen) in totals.items():
            self.set(name, total - seen)
            if seen.any():
                self._scope.set_seen(name, seen.reshape(-1))
        self._shared.clear()

    def names(self) -> list[str]:
        """Returns the names of all variables."""
        return self._scope.names()

    def shrink(self) -> dict[str, tuple[int, int]]:
        """Ends a day for tables with an accessor: shows and clicks decay, and rows with a low score or not seen for long are
        deleted. Returns (remaining rows, deleted rows) per table."""
        return self._scope.shrink()

    @property
    def step(self) -> int:
        """Batches trained on its parameters since their startup programs ran. Loading restores the saved count."""
        return self._scope.step

    def find_var(self, name: str) -> Optional[ScopeVariable]:
        """Finds a variable, as in Paddle: np.array(scope.find_var("fc_0.w_0").get_tensor()). Returns None if it does not exist.
        Also finds a variable created by var() that has no value yet."""
        name = _checks.text("Scope.find_var: name", name)
        return ScopeVariable(self, name) if name in self._named or name in self.names() else None

    def var(self, name: str) -> ScopeVariable:
        """Returns the variable with this name. A new variable has no value until get_tensor().set or a queue sets it."""
        self._named.add(_checks.text("Scope.var: name", name))
        return ScopeVariable(self, name)


class ScopeVariable:
    """A variable of a scope, returned by Scope.find_var and Scope.var."""

    def __init__(self, scope: Scope, name: str) -> None:
        self._scope, self._name = scope, name

    def _queue_holder(self) -> _millrace.ArrayQueueHolder:
        return self._scope._scope.queue_holder(self._name)

    def get_tensor(self) -> ScopeVariable:
        return self

    def set(self, array: ArrayLike, place: Optional[CPUPlace] = None) -> None:
        self._scope.set(self._name, array)

    def __array__(self, dtype: Optional[DTypeLike] = None, copy: Optional[bool] = None) -> np.ndarray:
        array = self._scope.get(self._name)
        if array is None:
            raise NotFoundError('the variable "%s" of the scope has no value yet' % self._name)
        if isinstance(array, TableRows):
            raise ConfigError('"%s" is a table that grows: scope.get("%s") has its keys and rows' % (self._name, self._name))
        return array if dtype is None else array.astype(dtype)


class _Current(threading.local):
    def __init__(self) -> None:
        self.main, self.startup = _pair()
        self.scope = _GLOBAL_SCOPE


def _pair(main: Optional[Program] = None, startup: Optional[Program] = None) -> tuple[Program, Program]:
    main, startup = main or Program(), startup or Program()
    if main._is_startup():
        raise ConfigError("program_guard: the first program is a startup program already")
    if startup._made is not None or startup._bytes is not None:
        raise ConfigError("program_guard: the second program has operators of its own; give a new Program()")
    if main not in startup._mains:
        startup._mains.append(main)
    return main, startup


_GLOBAL_SCOPE = Scope()
_current = _Current()


def default_main_program() -> Program:
    """Returns the program that layers append to."""
    return _current.main


def default_startup_program() -> Program:
    """Returns the startup program that initializes the parameters of default_main_program()."""
    return _current.startup


@contextlib.contextmanager
def program_guard(main_program: Program, startup_program: Optional[Program] = None) -> Iterator[None]:
    """Makes layers append to another pair of programs within `with`."""
    for given in (main_program, startup_program):
        if given is not None:
            _checks.one_of("program_guard", given, Program)
    before = _current.main, _current.startup
    _current.main, _current.startup = _pair(main_program, startup_program)
    try:
        yield
    finally:
        _current.main, _current.startup = before


def global_scope() -> Scope:
    """Returns the scope that executors use by default."""
    return _current.scope


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Makes executors use another scope within `with`."""
    before, _current.scope = _current.scope, _checks.one_of("scope_guard", scope, Scope)
    try:
        yield
    finally:
        _current.scope = before


def load_plugin(path: Path) -> None:
    """Loads a shared object with custom operators, data feeds or file formats (docs/plugins.md).

    layers.op, jobs, datasets, readers and predictors can then use them by name, also in existing programs. The plugin stays
    loaded until Python ends. Loading it again does nothing, even if it was rebuilt. Raises ConfigError with the reason if
    the plugin is rejected; nothing is registered then. If its static constructors threw, exit Python, because the
    system loader stays locked for other threads.
    """
    _millrace.load_plugin(os.fspath(path))


def op_types() -> list[str]:
    """Returns the types of all operators available to `layers.op`."""
    return _millrace.op_types()


def op_info(type: str) -> OpInfo:
    """Describes an operator: {"doc", "inputs": [(name, doc, any number, optional)], "outputs", "attrs": [(name, doc,
    default, or None if required)]}."""
    return _millrace.op_info(type)
