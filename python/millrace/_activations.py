"""Activations that have a setting, and what else works value by value."""

from __future__ import annotations

from typing import Optional

from ._append import op, parameter, program_of
from .errors import ConfigError
from .framework import ParamAttr, ParamLike, Variable
from .initializer import Constant

__all__ = ["brelu", "elu", "gelu", "hard_sigmoid", "hard_swish", "leaky_relu", "log_softmax", "pow", "prelu", "relu6", "selu",
           "soft_relu", "stanh", "swish"]


def leaky_relu(x: Variable, alpha: float = 0.02, name: Optional[str] = None) -> Variable:
    """x, times alpha where it is negative; the shape of x."""
    return op("leaky_relu", {"X": x}, {"alpha": alpha}, name=name)


def elu(x: Variable, alpha: float = 1.0, name: Optional[str] = None) -> Variable:
    """x, or alpha * (exp(x) - 1) where it is negative; the shape of x."""
    return op("elu", {"X": x}, {"alpha": alpha}, name=name)


def selu(x: Variable, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772,
         name: Optional[str] = None) -> Variable:
    """scale * x, or scale * alpha * (exp(x) - 1) where it is negative; the shape of x."""
    return op("selu", {"X": x}, {"scale": scale, "alpha": alpha}, name=name)


def relu6(x: Variable, threshold: float = 6.0, name: Optional[str] = None) -> Variable:
    """x held within [0, threshold]; the shape of x."""
    return op("relu6", {"X": x}, {"threshold": threshold}, name=name)


def gelu(x: Variable, approximate: bool = False, name: Optional[str] = None) -> Variable:
    """x times the normal distribution function of x, or its approximation by tanh; the shape of x."""
    return op("gelu", {"X": x}, {"approximate": approximate}, name=name)


def swish(x: Variable, beta: float = 1.0, name: Optional[str] = None) -> Variable:
    """x * sigmoid(beta * x); the shape of x."""
    return op("swish", {"X": x}, {"beta": beta}, name=name)


def hard_sigmoid(x: Variable, slope: float = 0.2, offset: float = 0.5, name: Optional[str] = None) -> Variable:
    """slope * x + offset, held within [0, 1]; the shape of x."""
    return op("hard_sigmoid", {"X": x}, {"slope": slope, "offset": offset}, name=name)


def hard_swish(x: Variable, threshold: float = 6.0, scale: float = 6.0, offset: float = 3.0,
               name: Optional[str] = None) -> Variable:
    """x * min(max(0, x + offset), threshold) / scale; the shape of x."""
    return op("hard_swish", {"X": x}, {"threshold": threshold, "scale": scale, "offset": offset}, name=name)


def brelu(x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: Optional[str] = None) -> Variable:
    """x held within [t_min, t_max]; the shape of x."""
    return op("brelu", {"X": x}, {"t_min": t_min, "t_max": t_max}, name=name)


def soft_relu(x: Variable, threshold: float = 40.0, name: Optional[str] = None) -> Variable:
    """log(1 + exp(x)), x held within [-threshold, threshold]; the shape of x."""
    return op("soft_relu", {"X": x}, {"threshold": threshold}, name=name)


def stanh(x: Variable, scale_a: float = 0.67, scale_b: float = 1.7159, name: Optional[str] = None) -> Variable:
    """scale_b * tanh(scale_a * x); the shape of x."""
    return op("stanh", {"X": x}, {"scale_a": scale_a, "scale_b": scale_b}, name=name)


def pow(x: Variable, factor: float = 1.0, name: Optional[str] = None) -> Variable:
    """x to the power `factor`; the shape of x."""
    return op("pow", {"X": x}, {"factor": factor}, name=name)


def log_softmax(x: Variable, axis: int = -1, name: Optional[str] = None) -> Variable:
    """Logs of softmax along an axis; the shape of x."""
    return op("log_softmax", {"X": x}, {"axis": axis}, name=name)


def prelu(x: Variable, mode: str, param_attr: ParamLike = None, name: Optional[str] = None) -> Variable:
    """x, times a parameter where it is negative: one for "all" [1], one for each "channel" or each "element" of a row; the
    shape of x. The parameter is NAME.w_0 and starts at 0.25."""
    program = program_of({"x": x})
    shape = list(x.shape)
    alpha = {"all": [1], "channel": [1, *shape[1:2]], "element": [1, *shape[1:]]}.get(mode)
    if alpha is None or any(size < 1 for size in alpha):
        raise ConfigError('prelu: mode is "all", "channel" or "element" of sizes that are known; %r of %s' % (mode, shape))
    stem = name or program.unique_name("prelu")
    weight = parameter(program, ParamAttr.of(param_attr), stem + ".w", alpha, Constant(0.25))
    return op("prelu", {"X": x, "Alpha": weight}, {"mode": mode}, name=program.unique_name(stem + ".tmp"))
