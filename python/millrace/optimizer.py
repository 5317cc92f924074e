"""Rules that turn gradients into updates. Gradients and updates are made by the compiler of the programs' jobs."""

from .errors import ConfigError
from .framework import Variable

__all__ = ["SGD", "Momentum", "Adagrad", "Adam", "Ftrl", "SGDOptimizer", "MomentumOptimizer", "AdagradOptimizer", "AdamOptimizer", "FtrlOptimizer",
           "cosine_decay", "exponential_decay", "linear_lr_warmup", "piecewise_decay", "polynomial_decay"]


class Schedule:
    """A learning rate that changes with the batches trained since the startup program ran."""

    def __init__(self, rate, text, warmup_steps=0):
        self.rate, self.text, self.warmup_steps = rate, text, warmup_steps


def exponential_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    """learning_rate * decay_rate ^ (step / decay_steps)"""
    return Schedule(learning_rate, "exponential { decay_steps: %d decay_rate: %r staircase: %s }" % (
        decay_steps, float(decay_rate), str(bool(staircase)).lower()))


def polynomial_decay(learning_rate, decay_steps, end_learning_rate=0.0001, power=1.0):
    """(learning_rate - end) * (1 - step / decay_steps) ^ power + end"""
    return Schedule(learning_rate, "polynomial { decay_steps: %d end_rate: %r power: %r }" % (
        decay_steps, float(end_learning_rate), float(power)))


def cosine_decay(learning_rate, decay_steps, end_learning_rate=0.0):
    """Falls to the end along a cosine."""
    return Schedule(learning_rate, "cosine { decay_steps: %d end_rate: %r }" % (decay_steps, float(end_learning_rate)))


def piecewise_decay(boundaries, values):
    """values[i] before the step boundaries[i], the last one after."""
    return Schedule(values[0], "piecewise { boundaries: [%s] rates: [%s] }" % (
        ", ".join("%d" % step for step in boundaries), ", ".join(repr(float(rate)) for rate in values)))


def linear_lr_warmup(learning_rate, warmup_steps):
    """Rises from 0 to the rate, a number or one of the above, in so many steps."""
    inner = learning_rate if isinstance(learning_rate, Schedule) else Schedule(learning_rate, "")
    return Schedule(inner.rate, inner.text, warmup_steps)


class Optimizer:
    """What the rules have in common."""

    def __init__(self, rule, rate_field, learning_rate, **settings):
        schedule = learning_rate if isinstance(learning_rate, Schedule) else None
        rate = schedule.rate if schedule else learning_rate
        fields = ["%s: %r" % (rate_field, float(rate))]
        for name, value in settings.items():
            fields.append("%s: %s" % (name, str(value).lower() if isinstance(value, bool) else repr(float(value))))
        self.text = "%s { %s }" % (rule, " ".join(fields))
        if schedule:
            warmup = "warmup_steps: %d " % schedule.warmup_steps if schedule.warmup_steps else ""
            self.text += " schedule { %s%s }" % (warmup, schedule.text)

    def minimize(self, loss):
        """Appends gradients and updates of every trainable parameter that the loss depends on, tables too.

        `loss` is one float. Returns ([], [(parameter, gradient)]) as Variables. Once a program.
        """
        if not isinstance(loss, Variable):
            raise ConfigError("minimize: the loss is a Variable, not %r" % (loss,))
        program = loss.program
        pairs = program._author.minimize(loss.name, self.text)
        return [], [(Variable(program, parameter), Variable(program, gradient)) for parameter, gradient in pairs]

    def __repr__(self):
        return "optimizer(%s)" % self.text


class SGD(Optimizer):
    """w -= learning_rate * g"""

    def __init__(self, learning_rate=0.01):
        super().__init__("sgd", "lr", learning_rate)


class Momentum(Optimizer):
    """v = momentum * v + g; w -= learning_rate * v, or with use_nesterov w -= learning_rate * (g + momentum * v). `l2` adds
    l2 * w to g. Not for tables that grow: give those a rule of their own."""

    def __init__(self, learning_rate=0.01, momentum=0.9, use_nesterov=False, l2=0.0):
        super().__init__("momentum", "lr", learning_rate, mu=momentum, use_nesterov=bool(use_nesterov), l2=l2)


class Adagrad(Optimizer):
    """s += g * g; w -= learning_rate * g / (sqrt(s) + epsilon)"""

    def __init__(self, learning_rate=0.01, epsilon=1e-6, initial_accumulator_value=0.0):
        super().__init__("adagrad", "lr", learning_rate, epsilon=epsilon, initial_accumulator=initial_accumulator_value)


class Adam(Optimizer):
    """Running means of gradients and of their squares. With lazy_mode, a table's rows that a batch does not touch stay
    as they are."""

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, lazy_mode=False):
        super().__init__("adam", "lr", learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon, lazy_mode=lazy_mode)


class Ftrl(Optimizer):
    """FTRL-Proximal. `beta`, which Paddle does not have, slows the first steps."""

    def __init__(self, learning_rate=0.05, l1=0.0, l2=0.0, beta=0.0, lr_power=-0.5):
        if lr_power != -0.5:
            raise ConfigError("Ftrl: only lr_power -0.5 is supported, not %r" % (lr_power,))
        super().__init__("ftrl", "alpha", learning_rate, l1=l1, l2=l2, beta=beta)


SGDOptimizer = SGD
MomentumOptimizer = Momentum
AdagradOptimizer = Adagrad
AdamOptimizer = Adam
FtrlOptimizer = Ftrl
