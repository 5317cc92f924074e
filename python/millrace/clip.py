"""What holds gradients small before they are used: for an optimizer's `grad_clip`."""

from __future__ import annotations

from typing import Optional, SupportsFloat

from ._rules import Clip
from .errors import ConfigError
from .framework import Program, default_main_program

__all__ = ["GradientClipByGlobalNorm", "GradientClipByNorm", "GradientClipByValue", "set_gradient_clip"]


class GradientClipByValue(Clip):
    """Each value of a gradient is held within [min, max]; min is -max unless it is given."""

    def __init__(self, max: SupportsFloat, min: Optional[SupportsFloat] = None) -> None:
        least = "" if min is None else " min_value: %r" % float(min)
        super().__init__("value: %r%s" % (float(max), least))


class GradientClipByNorm(Clip):
    """The gradient of a parameter whose Euclidean length is above clip_norm is scaled down to it."""

    def __init__(self, clip_norm: SupportsFloat) -> None:
        super().__init__("norm: %r" % float(clip_norm))


class GradientClipByGlobalNorm(Clip):
    """All gradients are scaled by one factor, so that their Euclidean length together is at most clip_norm."""

    def __init__(self, clip_norm: SupportsFloat, group_name: str = "default_group") -> None:
        super().__init__("global_norm: %r" % float(clip_norm))


def set_gradient_clip(clip: Clip, program: Optional[Program] = None) -> None:
    """The clip of every optimizer without a grad_clip of its own that minimizes a loss of the program from now on."""
    if not isinstance(clip, Clip):
        raise ConfigError("set_gradient_clip takes one of millrace.clip, not %r" % (clip,))
    (program or default_main_program())._gradient_clip = clip
