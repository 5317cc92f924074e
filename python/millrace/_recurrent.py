"""Layers with a state that goes from step to step."""

from __future__ import annotations

from typing import NoReturn, Optional, SupportsFloat, SupportsIndex

from . import _checks
from ._append import checked, op, parameter, program_of
from ._rules import Initializer
from .errors import ConfigError
from .framework import BiasLike, ParamAttr, ParamLike, Program, Variable
from .initializer import Constant, Xavier

__all__ = ["DynamicRNN", "StaticRNN", "dynamic_gru", "dynamic_lstm", "dynamic_lstmp", "gru_unit", "lstm", "lstm_unit"]


def lstm(input: Variable, init_h: Variable, init_c: Variable, max_len: SupportsIndex, hidden_size: SupportsIndex,
         num_layers: SupportsIndex, dropout_prob: float = 0.0, is_bidirec: bool = False, is_test: bool = False,
         name: Optional[str] = None, default_initializer: Optional[Initializer] = None,
         seed: int = -1) -> tuple[Variable, Variable, Variable]:
    """Layers of LSTM over whole sequences [steps, batch, inputs]: (out [steps, batch, hidden_size], last_h, last_c). The states,
    given and last, are [num_layers, batch, hidden_size]; is_bidirec doubles the first size of states and the last one of out.

    Each cell has weights [4 * hidden_size, inputs] and [4 * hidden_size, hidden_size] and two biases, NAME.w_0, NAME.w_1, ...
    and NAME.b_0, NAME.b_1, ...; gates stand in the order input, forget, cell, output. Sequences of several lengths come from
    sequence_pad, whose zeros behind the end are steps as well: max_len is the most steps, as fluid takes it.
    """
    program = program_of({"input": input})
    steps, _, inputs = _sizes("lstm", "input", input, program, 3)
    most = _checks.whole("lstm: max_len", max_len, 1)
    if steps > most:
        raise ConfigError('lstm: "%s" has %d steps, and max_len is %d' % (input.name, steps, most))
    hidden = _checks.whole("lstm: hidden_size", hidden_size, 1)
    layers = _checks.whole("lstm: num_layers", num_layers, 1)
    stem = name or program.unique_name("lstm")
    directions = 2 if is_bidirec else 1
    weights, biases = [], []
    for cell in range(layers * directions):
        width = inputs if cell < directions else hidden * directions
        for columns in (width, hidden):
            weights.append(parameter(program, ParamAttr(), stem + ".w", [4 * hidden, columns], default_initializer or Xavier()))
            biases.append(parameter(program, ParamAttr(), stem + ".b", [4 * hidden], Constant(0.0)))
    attrs = {"mode": "LSTM", "num_layers": layers, "is_bidirec": bool(is_bidirec), "hidden_size": hidden, "input_size": inputs,
             "dropout_prob": 0.0 if is_test else dropout_prob}
    if seed != -1:
        attrs["seed"] = seed
    made = op("rnn", {"Input": input, "PreState": [init_h, init_c], "WeightList": weights + biases}, attrs,
              {"Out": 1, "State": 2, "Reserve": 1}, name=program.unique_name(stem + ".tmp"))
    return made[0], made[1], made[2]


def lstm_unit(x_t: Variable, hidden_t_prev: Variable, cell_t_prev: Variable, forget_bias: SupportsFloat = 0.0,
              param_attr: ParamLike = None, bias_attr: BiasLike = None,
              name: Optional[str] = None) -> tuple[Variable, Variable]:
    """A step of LSTM: (hidden, cell), both [batch, size] as hidden_t_prev and cell_t_prev, of x_t [batch, inputs]. One weight
    [inputs + size, 4 * size] and one bias, NAME.w_0 and NAME.b_0; gates stand in the order input, forget, output, cell."""
    program = program_of({"x_t": x_t})
    inputs = _sizes("lstm_unit", "x_t", x_t, program, 2)[1]
    size = _sizes("lstm_unit", "cell_t_prev", cell_t_prev, program, 2)[1]
    beside = _sizes("lstm_unit", "hidden_t_prev", hidden_t_prev, program, 2)[1]
    stem = name or program.unique_name("lstm_unit")
    weight = parameter(program, ParamAttr.of(param_attr), stem + ".w", [inputs + beside, 4 * size], Xavier())
    gates = op("mul", {"X": op("concat", {"X": [x_t, hidden_t_prev]}, {"axis": 1}), "Y": weight})
    gates = _with_bias(program, gates, bias_attr, stem, 4 * size)
    at, forget, out, cell = op("split", {"X": gates}, {"num": 4, "axis": 1}, {"Out": 4})
    kept = op("sigmoid", {"X": op("scale", {"X": forget}, {"bias": _checks.number("lstm_unit: forget_bias", forget_bias)})})
    new = op("elementwise_mul", {"X": op("sigmoid", {"X": at}), "Y": op("tanh", {"X": cell})})
    memory = op("elementwise_add", {"X": op("elementwise_mul", {"X": kept, "Y": cell_t_prev}), "Y": new})
    return op("elementwise_mul", {"X": op("sigmoid", {"X": out}), "Y": op("tanh", {"X": memory})}), memory


def gru_unit(input: Variable, hidden: Variable, size: SupportsIndex, param_attr: ParamLike = None, bias_attr: BiasLike = None,
             activation: str = "tanh", gate_activation: str = "sigmoid",
             origin_mode: bool = False) -> tuple[Variable, Variable, Variable]:
    """A step of GRU: (hidden [batch, size / 3], its reset part, the gates), of an input [batch, size] that fc has made and the
    hidden [batch, size / 3] before. One weight [size / 3, size] and one bias, gates in the order update, reset, candidate; laid out as
    Paddle's. origin_mode: hidden = u * hidden + (1 - u) * candidate, else the other way round."""
    program = program_of({"input": input})
    width = _sizes("gru_unit", "input", input, program, 2)[1]
    dim = _sizes("gru_unit", "hidden", hidden, program, 2)[1]
    size = _checks.whole("gru_unit: size", size, 3)
    if size != width or width != 3 * dim:
        raise ConfigError('gru_unit: size is that of the input, three times that of hidden; size is %d, "%s" %s, "%s" %s' % (
            size, input.name, list(input.shape), hidden.name, list(hidden.shape)))
    stem = program.unique_name("gru_unit")
    weight = parameter(program, ParamAttr.of(param_attr), stem + ".w", [dim, 3 * dim], Xavier())
    flat = op("reshape2", {"X": weight}, {"shape": [3 * dim * dim]}, ["Out", "XShape"])[0]
    of_gates, of_candidate = (
        op("reshape2", {"X": op("slice", {"Input": flat}, {"axes": [0], "starts": [start], "ends": [end]})}, {"shape": shape},
           ["Out", "XShape"])[0]
        for start, end, shape in ((0, 2 * dim * dim, [dim, 2 * dim]), (2 * dim * dim, 3 * dim * dim, [dim, dim])))
    moved = _with_bias(program, input, bias_attr, stem, 3 * dim)
    gates, candidate = op("split", {"X": moved}, {"sections": [2 * dim, dim], "axis": 1}, {"Out": 2})
    gates = op(gate_activation, {"X": op("elementwise_add", {"X": gates, "Y": op("mul", {"X": hidden, "Y": of_gates})})})
    update, reset = op("split", {"X": gates}, {"num": 2, "axis": 1}, {"Out": 2})
    kept = op("elementwise_mul", {"X": reset, "Y": hidden})
    candidate = op(activation, {"X": op("elementwise_add", {"X": candidate, "Y": op("mul", {"X": kept, "Y": of_candidate})})})
    first, second = (hidden, candidate) if origin_mode else (candidate, hidden)
    rest = op("scale", {"X": update}, {"scale": -1.0, "bias": 1.0})
    made = op("elementwise_add", {"X": op("elementwise_mul", {"X": update, "Y": first}),
                                  "Y": op("elementwise_mul", {"X": rest, "Y": second})})
    return made, kept, op("concat", {"X": [gates, candidate]}, {"axis": 1})


def dynamic_lstm(*args: object, **kwargs: object) -> NoReturn:
    """Refused: LSTM over sequences [values, 4 * size] has no operator here."""
    _refuse("dynamic_lstm", _PADDED % "lstm_unit")


def dynamic_lstmp(*args: object, **kwargs: object) -> NoReturn:
    """Refused: LSTM with a projection over sequences [values, 4 * size] has no operator here."""
    _refuse("dynamic_lstmp", _PADDED % "lstm_unit and fc")


def dynamic_gru(*args: object, **kwargs: object) -> NoReturn:
    """Refused: GRU over sequences [values, 3 * size] has no operator here."""
    _refuse("dynamic_gru", _PADDED % "gru_unit")


def StaticRNN(*args: object, **kwargs: object) -> NoReturn:
    """Refused: steps of one's own over [steps, batch, inputs] have no operator here."""
    _refuse("StaticRNN", _LOOP)


def DynamicRNN(*args: object, **kwargs: object) -> NoReturn:
    """Refused: steps of one's own over sequences [values, inputs] have no operator here."""
    _refuse("DynamicRNN", _LOOP)


_PADDED = "take sequence_pad, transpose to [steps, batch, inputs] and lstm, or a Python loop of %s over the steps"
_LOOP = "write the steps as a Python loop of lstm_unit or gru_unit, of as many steps as the sequences have at most"


def _refuse(name: str, instead: str) -> NoReturn:
    raise ConfigError("%s: there is no operator for it; %s" % (name, instead))


def _sizes(layer: str, argument: str, var: Variable, program: Program, rank: int) -> tuple[int, ...]:
    """The sizes of a variable that has so many axes; of the last the size is known."""
    shape = checked(var, program, layer, argument).shape
    if len(shape) != rank or shape[-1] < 1:
        raise ConfigError('%s: %s "%s" %s must have %d axes and a last one of known size' % (
            layer, argument, var.name, list(shape), rank))
    return shape


def _with_bias(program: Program, x: Variable, bias_attr: BiasLike, stem: str, size: int) -> Variable:
    if bias_attr is False:
        return x
    bias = parameter(program, ParamAttr.of(bias_attr), stem + ".b", [size], Constant(0.0))
    return op("elementwise_add", {"X": x, "Y": bias}, {"axis": 1})
