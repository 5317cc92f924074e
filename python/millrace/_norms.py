"""Layers that normalize."""

from __future__ import annotations

from typing import Optional, SupportsIndex

from . import _checks
from ._append import activate, checked, op, parameter, program_of
from .errors import ConfigError
from .framework import ParamAttr, ParamLike, Program, Variable
from .initializer import Constant

__all__ = ["batch_norm", "continuous_value_model", "l2_normalize", "layer_norm"]


def batch_norm(input: Variable, act: Optional[str] = None, is_test: bool = False, momentum: float = 0.9, epsilon: float = 1e-5,
               param_attr: ParamLike = None, bias_attr: ParamLike = None, data_layout: str = "NCHW", in_place: bool = False,
               name: Optional[str] = None, moving_mean_name: Optional[str] = None, moving_variance_name: Optional[str] = None,
               do_model_average_for_mean_and_var: bool = True, use_global_stats: bool = False) -> Variable:
    """Each channel with mean 0 and variance 1 over the batch, times a scale, plus a bias; the shape of input, [batch, n] or
    [batch, channels, height, width]. Running means and variances serve in tests (program.clone(for_test=True)).

    Parameters are NAME.w_0 (scale) and NAME.b_0 (bias); the running ones are NAME.w_1 and NAME.w_2, unless they are named.
    """
    program = program_of({"input": input})
    shape = checked(input, program, "batch_norm", "input").shape
    channels = shape[-1 if data_layout == "NHWC" else 1] if len(shape) > 1 else -1
    if channels < 1:
        raise ConfigError('batch_norm: "%s" %s has no channels' % (input.name, list(shape)))
    stem = name or program.unique_name("batch_norm")
    scale = parameter(program, ParamAttr.of(param_attr), stem + ".w", [channels], Constant(1.0))
    bias = parameter(program, ParamAttr.of(bias_attr), stem + ".b", [channels], Constant(0.0))
    moving = []
    for given, start in ((moving_mean_name, 0.0), (moving_variance_name, 1.0)):
        moving.append(_state(program, "batch_norm", given or program.unique_name(stem + ".w"), [channels], start))
    mean, variance = moving
    out = op("batch_norm", {"X": input, "Scale": scale, "Bias": bias, "Mean": mean, "Variance": variance},
             {"momentum": momentum, "epsilon": epsilon, "is_test": is_test, "data_layout": data_layout,
              "use_global_stats": use_global_stats},
             {"Y": 1, "MeanOut": mean, "VarianceOut": variance, "SavedMean": 1, "SavedVariance": 1},
             name=program.unique_name(stem + ".tmp"))[0]
    return activate(out, act, stem)


def layer_norm(input: Variable, scale: bool = True, shift: bool = True, begin_norm_axis: SupportsIndex = 1,
               epsilon: float = 1e-5, param_attr: ParamLike = None, bias_attr: ParamLike = None, act: Optional[str] = None,
               name: Optional[str] = None) -> Variable:
    """Each row with mean 0 and variance 1 over its axes from begin_norm_axis on, times a scale, plus a shift; the shape of
    input. Parameters are NAME.w_0 and NAME.b_0."""
    program = program_of({"input": input})
    shape = checked(input, program, "layer_norm", "input").shape
    axis = _checks.whole("layer_norm: begin_norm_axis", begin_norm_axis, 1)
    count = 1
    for extent in shape[axis:]:
        count *= extent
    if len(shape) <= axis or count < 1:
        raise ConfigError('layer_norm: "%s" %s has no sizes from axis %d on' % (input.name, list(shape), axis))
    stem = name or program.unique_name("layer_norm")
    inputs = {"X": input}
    if scale:
        inputs["Scale"] = parameter(program, ParamAttr.of(param_attr), stem + ".w", [count], Constant(1.0))
    if shift:
        inputs["Bias"] = parameter(program, ParamAttr.of(bias_attr), stem + ".b", [count], Constant(0.0))
    out = op("layer_norm", inputs, {"epsilon": epsilon, "begin_norm_axis": axis}, name=program.unique_name(stem + ".tmp"))[0]
    return activate(out, act, stem)


def continuous_value_model(input: Variable, cvm: Variable, use_cvm: bool = True) -> Variable:
    """Rows that begin with shows and clicks, as their logs, [batch, n], or without them, [batch, n - 2]; cvm is [batch, 2]."""
    return op("cvm", {"X": input, "CVM": cvm}, {"use_cvm": use_cvm})


def l2_normalize(x: Variable, axis: int, epsilon: float = 1e-12, name: Optional[str] = None) -> Variable:
    """x over the square root of its sum of squares along an axis, plus epsilon; the shape of x."""
    return op("norm", {"X": x}, {"axis": axis, "epsilon": epsilon}, ["Out", "Norm"], name=name)[0]


def _state(program: Program, layer: str, name: str, shape: list[int], start: float) -> Variable:
    """A variable that the layer moves and no optimizer does."""
    if not program._author.has(name):
        program._author.add_state(name, "float32", shape, start)
    made = Variable(program, name)
    if not made.persistable or list(made.shape) != shape:
        raise ConfigError('%s: "%s" is %s already' % (layer, name, made))
    return made
