"""What holds gradients small before they are used: for an optimizer's `grad_clip`."""

from .errors import ConfigError
from .framework import default_main_program

__all__ = ["GradientClipByGlobalNorm", "GradientClipByNorm", "GradientClipByValue", "set_gradient_clip"]


class _Clip:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return "clip(%s)" % self.text


class GradientClipByValue(_Clip):
    """Each value of a gradient is held within [min, max]; min is -max unless it is given."""

    def __init__(self, max, min=None):
        least = "" if min is None else " min_value: %r" % float(min)
        super().__init__("value: %r%s" % (float(max), least))


class GradientClipByNorm(_Clip):
    """The gradient of a parameter whose Euclidean length is above clip_norm is scaled down to it."""

    def __init__(self, clip_norm):
        super().__init__("norm: %r" % float(clip_norm))


class GradientClipByGlobalNorm(_Clip):
    """All gradients are scaled by one factor, so that their Euclidean length together is at most clip_norm."""

    def __init__(self, clip_norm, group_name="default_group"):
        super().__init__("global_norm: %r" % float(clip_norm))


def set_gradient_clip(clip, program=None):
    """The clip of every optimizer without a grad_clip of its own that minimizes a loss of the program from now on."""
    if not isinstance(clip, _Clip):
        raise ConfigError("set_gradient_clip takes one of millrace.clip, not %r" % (clip,))
    (program or default_main_program())._gradient_clip = clip
