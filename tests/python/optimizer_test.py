"""Every rule, penalty, clip and schedule against its formula in numpy, against the prototxt job, and against Paddle."""

import json
import os
import subprocess
import unittest

import program_test
import support

import numpy as np

import millrace
from millrace import ParamAttr, clip, initializer, layers, optimizer, regularizer

STEPS, ROWS, WORDS = 6, 4, 5
RATE = 0.1
START = {"w": np.array([[0.5], [-0.25], [0.125]]), "v": np.array([[0.75], [-1.0]]),
         "e": np.linspace(-1, 1, 2 * WORDS).reshape(WORDS, 2)}
PENALTIES = {"": None, "l1": regularizer.L1Decay(0.03), "l2": regularizer.L2Decay(0.2)}
CLIPS = {"": None, "value": clip.GradientClipByValue(0.4), "range": clip.GradientClipByValue(0.3, -0.1),
         "norm": clip.GradientClipByNorm(0.5), "global": clip.GradientClipByGlobalNorm(1.0)}


def batches():
    """x [4, 3], ids of each row, y [4, 1]; the last batch has a row without ids, and all of them equal ones."""
    draw = np.random.default_rng(5)
    made = []
    for _ in range(STEPS):
        ids = [list(map(int, draw.integers(0, WORDS, size=draw.integers(0, 4)))) for _ in range(ROWS)]
        made.append((draw.standard_normal((ROWS, 3)).astype(np.float32), ids,
                     draw.standard_normal((ROWS, 1)).astype(np.float32)))
    made[-1] = (made[-1][0], [[2, 2, 2], [], [2], [2, 2]], made[-1][2])
    return made


def gradients(values, batch):
    """Of mean((x w + pool(e[ids]) v - y)^2)."""
    x, ids, y = batch
    pooled = np.array([values["e"][row].sum(axis=0) if row else np.zeros(2) for row in ids])
    slope = 2 * (x @ values["w"] + pooled @ values["v"] - y) / len(x)
    table = np.zeros((WORDS, 2))
    for row, one in zip(ids, slope):
        for word in row:
            table[word] += one * values["v"][:, 0]
    return {"w": x.T @ slope, "v": pooled.T @ slope, "e": table}


def clipped(grads, kind):
    if kind == "value":
        return {name: np.clip(g, -0.4, 0.4) for name, g in grads.items()}
    if kind == "range":
        return {name: np.clip(g, -0.1, 0.3) for name, g in grads.items()}
    if kind == "norm":
        return {name: g * min(1, 0.5 / np.linalg.norm(g)) for name, g in grads.items()}
    if kind == "global":
        length = np.sqrt(sum((g ** 2).sum() for g in grads.values()))
        return {name: g * (1.0 / max(1.0, length)) for name, g in grads.items()}
    return grads


def penalized(grads, values, kind):
    if kind == "l1":
        return {name: g + 0.03 * np.sign(values[name]) for name, g in grads.items()}
    if kind == "l2":
        return {name: g + 0.2 * values[name] for name, g in grads.items()}
    return grads


def sgd(w, g, state, rate):
    return w - rate * g


def momentum(w, g, state, rate, nesterov=False):
    v = state["v"] = 0.8 * state.get("v", 0) + g
    return w - rate * ((g + 0.8 * v) if nesterov else v)


def lars(w, g, state, rate):
    local = rate * 0.5 * np.linalg.norm(w) / (np.linalg.norm(g) + 0.1 * np.linalg.norm(w))
    v = state["v"] = 0.8 * state.get("v", 0) + local * (g + 0.1 * w)
    return w - v


def adagrad(w, g, state, rate):
    s = state["s"] = state.get("s", 0.25) + g * g
    return w - rate * g / (np.sqrt(s) + 1e-6)


def decayed_adagrad(w, g, state, rate):
    s = state["s"] = 0.9 * state.get("s", 0) + 0.1 * g * g
    return w - rate * g / (np.sqrt(s) + 1e-3)


def rmsprop(w, g, state, rate, centered=False):
    s = state["s"] = 0.9 * state.get("s", 0) + 0.1 * g * g
    m = state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
    v = state["v"] = 0.5 * state.get("v", 0) + rate * g / np.sqrt(s - (m * m if centered else 0) + 1e-3)
    return w - v


def adam(w, g, state, rate):
    n = state["n"] = state.get("n", 0) + 1
    m = state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
    s = state["s"] = 0.99 * state.get("s", 0) + 0.01 * g * g
    return w - rate * np.sqrt(1 - 0.99 ** n) / (1 - 0.9 ** n) * m / (np.sqrt(s) + 1e-4 * np.sqrt(1 - 0.99 ** n))


def adamax(w, g, state, rate):
    n = state["n"] = state.get("n", 0) + 1
    m = state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
    u = state["u"] = np.maximum(np.abs(g), 0.99 * state.get("u", 0) + 1e-4)
    return w - rate / (1 - 0.9 ** n) * m / u


def adadelta(w, g, state, rate):
    s = state["s"] = 0.9 * state.get("s", 0) + 0.1 * g * g
    step = np.sqrt((state.get("u", 0) + 1e-4) / (s + 1e-4)) * g
    state["u"] = 0.9 * state.get("u", 0) + 0.1 * step * step
    return w - rate * step


def lamb(w, g, state, rate, decay=0.1):
    n = state["n"] = state.get("n", 0) + 1
    m = state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
    s = state["s"] = 0.99 * state.get("s", 0) + 0.01 * g * g
    step = m / (1 - 0.9 ** n) / (np.sqrt(s / (1 - 0.99 ** n)) + 1e-4) + decay * w
    ratio = np.linalg.norm(w) / np.linalg.norm(step) if decay else 1
    return w - rate * ratio * step


def ftrl(w, g, state, rate, power=0.5):
    before = state.get("n", np.zeros_like(w))
    now = state["n"] = before + g * g
    z = state["z"] = state.get("z", 0) + g - (now ** power - before ** power) / rate * w
    moved = (0.01 * np.sign(z) - z) / (now ** power / rate + 2 * 0.02)
    # Ids that nobody saw keep their rows.
    return np.where(now > 0, np.where(np.abs(z) > 0.01, moved, 0.0), w)


RULES = {
    "sgd": (lambda **more: optimizer.SGDOptimizer(RATE, **more), sgd),
    "momentum": (lambda **more: optimizer.MomentumOptimizer(RATE, 0.8, **more), momentum),
    "nesterov": (lambda **more: optimizer.Momentum(RATE, 0.8, use_nesterov=True, **more),
                 lambda *given: momentum(*given, nesterov=True)),
    "lars": (lambda **more: optimizer.LarsMomentumOptimizer(RATE, 0.8, lars_coeff=0.5, lars_weight_decay=0.1, **more), lars),
    "adagrad": (lambda **more: optimizer.AdagradOptimizer(RATE, initial_accumulator_value=0.25, **more), adagrad),
    "decayed_adagrad": (lambda **more: optimizer.DecayedAdagradOptimizer(RATE, decay=0.9, epsilon=1e-3, **more),
                        decayed_adagrad),
    "rmsprop": (lambda **more: optimizer.RMSPropOptimizer(RATE, rho=0.9, epsilon=1e-3, momentum=0.5, **more), rmsprop),
    "centered": (lambda **more: optimizer.RMSProp(RATE, rho=0.9, epsilon=1e-3, momentum=0.5, centered=True, **more),
                 lambda *given: rmsprop(*given, centered=True)),
    "adam": (lambda **more: optimizer.AdamOptimizer(RATE, beta2=0.99, epsilon=1e-4, **more), adam),
    "adamax": (lambda **more: optimizer.AdamaxOptimizer(RATE, beta2=0.99, epsilon=1e-4, **more), adamax),
    "adadelta": (lambda **more: optimizer.AdadeltaOptimizer(RATE, rho=0.9, epsilon=1e-4, **more), adadelta),
    "lamb": (lambda **more: optimizer.LambOptimizer(RATE, 0.1, beta2=0.99, epsilon=1e-4, **more), lamb),
    "ftrl": (lambda **more: optimizer.FtrlOptimizer(RATE, l1=0.01, l2=0.02, **more), ftrl),
    "ftrl of a power": (lambda **more: optimizer.Ftrl(RATE, l1=0.01, l2=0.02, lr_power=-0.7, **more),
                        lambda *given: ftrl(*given, power=0.7)),
}


def expected(step, penalty="", clipping="", rates=None):
    """The parameters after every batch, as the formulas have them; `rates` by step and parameter."""
    values = {name: value.copy() for name, value in START.items()}
    states = {name: {} for name in values}
    for number, batch in enumerate(batches()):
        grads = penalized(clipped(gradients(values, batch), clipping), values, penalty)
        for name in values:
            rate = RATE if rates is None else rates(number, name)
            values[name] = step(values[name], grads[name], states[name], rate)
    return values


def trained(rule, attrs=None, grows=False, **minimize):
    """The parameters after every batch; the rows of a growing table as far as the prediction shows them."""
    main, startup = millrace.Program(), millrace.Program()
    attrs = attrs or {}
    with millrace.program_guard(main, startup), millrace.scope_guard(millrace.Scope()):
        x, y = layers.data("x", [3]), layers.data("y", [1])
        ids = layers.data("ids", [1], "int64", lod_level=1)
        start = initializer.Constant(0.25)
        rows = layers.embedding(ids, [None if grows else WORDS, 2],
                                param_attr=attrs.get("e") or ParamAttr("e", start))
        pooled = layers.sequence_pool(rows, "sum")
        predict = layers.elementwise_add(
            layers.fc(x, 1, param_attr=attrs.get("w") or ParamAttr("w", start), bias_attr=False),
            layers.fc(pooled, 1, param_attr=attrs.get("v") or ParamAttr("v", start), bias_attr=False))
        loss = layers.mean(layers.square_error_cost(predict, y))
        rule.minimize(loss, **minimize)
        exe = millrace.Executor()
        exe.run(startup)
        scope = millrace.global_scope()
        for name, value in START.items():
            if name != "e" or not grows:
                scope.set(name, value.astype(np.float32))
        for features, words, wanted in batches():
            exe.run(main, feed={"x": features, "ids": words, "y": wanted})
        values = {name: scope.get(name) for name in ("w", "v")}
        if not grows:
            values["e"] = scope.get("e")
        else:
            test = main.clone(for_test=True)
            values["e"] = exe.run(test, {"x": np.zeros((WORDS, 3)), "ids": [[word] for word in range(WORDS)],
                                         "y": np.zeros((WORDS, 1))}, [pooled])[0]
        return values


def check(got, wanted, what, tolerance=2e-4):
    for name, value in wanted.items():
        np.testing.assert_allclose(got[name], value, rtol=tolerance, atol=1e-5, err_msg="%s: %s" % (what, name))


class OptimizerTest(program_test.Fresh):
    def test_every_rule_is_its_formula(self):
        for name, (rule, step) in RULES.items():
            check(trained(rule()), expected(step), name)

    def test_penalties_are_added_to_gradients(self):
        for name, (rule, step) in RULES.items():
            for penalty in ("l1", "l2"):
                check(trained(rule(regularization=PENALTIES[penalty])), expected(step, penalty),
                           "%s %s" % (name, penalty))

    def test_gradients_are_clipped_before_penalties(self):
        for kind in ("value", "range", "norm", "global"):
            for name in ("sgd", "momentum"):
                rule, step = RULES[name]
                what = "%s %s" % (name, kind)
                check(trained(rule(grad_clip=CLIPS[kind])), expected(step, "", kind), what)
                check(trained(rule(grad_clip=CLIPS[kind], regularization=PENALTIES["l2"])),
                           expected(step, "l2", kind), what + " l2")

    def test_tables_that_grow_are_clipped_as_well(self):
        for kind in ("value", "norm", "global"):
            values = trained(optimizer.SGD(RATE, grad_clip=CLIPS[kind]),
                                  {"e": ParamAttr("e", initializer.Constant(0.25))}, grows=True)
            wanted = {name: value.copy() for name, value in START.items()}
            wanted["e"] = np.full((WORDS, 2), 0.25)
            for batch in batches():
                grads = clipped(gradients(wanted, batch), kind)
                wanted = {name: value - RATE * grads[name] for name, value in wanted.items()}
            check(values, wanted, kind)

    def test_the_clip_of_a_program_is_for_optimizers_without(self):
        main = millrace.Program()
        with self.assertRaisesRegex(millrace.ConfigError, "set_gradient_clip takes one of millrace.clip, not 5"):
            clip.set_gradient_clip(5, main)
        with millrace.program_guard(main, millrace.Program()):
            clip.set_gradient_clip(clip.GradientClipByNorm(0.5))
            loss = layers.mean(layers.fc(layers.data("x", [2]), 1))
            optimizer.SGD(RATE).minimize(loss)
        self.assertIn("clip_by_norm", main.ops())

    def test_a_parameter_has_its_own_rate_penalty_and_clip(self):
        attrs = {"w": ParamAttr("w", initializer.Constant(0), learning_rate=0.5, regularizer=regularizer.L2Decay(0.2)),
                 "e": ParamAttr("e", initializer.Constant(0), learning_rate=2.0, gradient_clip=CLIPS["value"])}
        got = trained(optimizer.SGD(RATE), attrs)
        values = {name: value.copy() for name, value in START.items()}
        for batch in batches():
            grads = gradients(values, batch)
            values = {"w": values["w"] - 0.5 * RATE * (grads["w"] + 0.2 * values["w"]),
                      "v": values["v"] - RATE * grads["v"], "e": values["e"] - 2 * RATE * np.clip(grads["e"], -0.4, 0.4)}
        check(got, values, "own rules")

    def test_parameters_may_be_left_out(self):
        wanted = {name: value.copy() for name, value in START.items()}
        for batch in batches():
            wanted["w"] = wanted["w"] - RATE * gradients(wanted, batch)["w"]
        check(trained(optimizer.SGD(RATE), parameter_list=["w"]), wanted, "only w")
        check(trained(optimizer.SGD(RATE, parameter_list=["w"])), wanted, "only w")
        check(trained(optimizer.SGD(RATE), no_grad_set={"v", "e"}), wanted, "not v and e")
        with self.assertRaisesRegex(millrace.NotFoundError, 'no variable "ww"; did you mean "w"'):
            trained(optimizer.SGD(RATE), parameter_list=["ww"])
        with self.assertRaisesRegex(millrace.ConfigError, "parameter_list is empty"):
            trained(optimizer.SGD(RATE), parameter_list=[])

    def test_schedules_change_the_rate_of_each_step(self):
        cosine = lambda step: RATE * 0.5 * (np.cos(step // 2 * np.pi / 4) + 1)  # noqa: E731
        schedules = {
            "exponential": (optimizer.exponential_decay(RATE, 2, 0.5), lambda n: RATE * 0.5 ** (n / 2)),
            "stairs": (optimizer.exponential_decay(RATE, 2, 0.5, staircase=True), lambda n: RATE * 0.5 ** (n // 2)),
            "natural": (optimizer.natural_exp_decay(RATE, 2, 0.5), lambda n: RATE * np.exp(-0.5 * n / 2)),
            "inverse": (optimizer.inverse_time_decay(RATE, 2, 0.5), lambda n: RATE / (1 + 0.5 * n / 2)),
            "polynomial": (optimizer.polynomial_decay(RATE, 4, 0.01, 2.0),
                           lambda n: (RATE - 0.01) * (1 - min(n, 4) / 4) ** 2 + 0.01),
            "cosine": (optimizer.cosine_decay(RATE, 2, 4), cosine),
            "noam": (optimizer.noam_decay(16, 3, 0.5), lambda n: 0.5 / 4 * min((n + 1) ** -0.5, (n + 1) * 3 ** -1.5)),
            "piecewise": (optimizer.piecewise_decay([2, 4], [0.1, 0.05, 0.01]), lambda n: [0.1, 0.05, 0.01][n // 2]),
            "warm-up": (optimizer.linear_lr_warmup(cosine_of(), 3, 0.0, 0.09), lambda n: 0.03 * n if n < 3 else cosine(n)),
            "our warm-up": (optimizer.linear_lr_warmup(RATE, 3), lambda n: RATE * min(1, (n + 1) / 3)),
        }
        for name, (schedule, rate) in schedules.items():
            check(trained(optimizer.SGD(schedule)), expected(sgd, rates=lambda n, _, rate=rate: rate(n)), name)

    def test_an_epsilon_of_zero_is_taken(self):
        def rule(w, g, state, rate):
            s = state["s"] = state.get("s", 0.25) + g * g
            return w - rate * g / np.sqrt(s)

        check(trained(optimizer.Adagrad(RATE, epsilon=0.0, initial_accumulator_value=0.25)), expected(rule), "epsilon 0")

    def test_lamb_leaves_parameters_out_of_the_penalty(self):
        rule = optimizer.Lamb(RATE, 0.1, beta2=0.99, epsilon=1e-4, exclude_from_weight_decay_fn=lambda var: var.name == "v")
        wanted = expected(lambda w, g, state, rate: lamb(w, g, state, rate, 0 if w.shape == START["v"].shape else 0.1))
        check(trained(rule), wanted, "v without penalty")

    def test_ftrl_of_a_power_trains_tables_that_grow(self):
        values = trained(optimizer.Ftrl(RATE, l1=0.01, l2=0.02, lr_power=-0.7),
                         {"e": ParamAttr("e", initializer.Constant(0.25))}, grows=True)
        wanted = {**START, "e": np.full((WORDS, 2), 0.25)}
        states = {name: {} for name in wanted}
        for batch in batches():
            grads = gradients(wanted, batch)
            wanted = {name: ftrl(value, grads[name], states[name], RATE, 0.7) for name, value in wanted.items()}
        check(values, wanted, "growing")

    def test_mistakes_are_said(self):
        for mistake, message in [
                (lambda: optimizer.SGD(RATE, regularization=0.1), "sgd: takes one of millrace.regularizer, not 0.1"),
                (lambda: optimizer.SGD(RATE, grad_clip=regularizer.L2Decay(1)), "sgd: takes one of millrace.clip, not "),
                (lambda: trained(optimizer.Ftrl(RATE, lr_power=0.5)), "ftrl: lr_power must not be above 0, not 0.5"),
                (lambda: optimizer.Lamb(exclude_from_weight_decay_fn="b"), "is a function of a parameter, not 'b'"),
                (lambda: trained(optimizer.Lamb(RATE), grows=True), "lamb moves every row at each step"),
                (lambda: trained(optimizer.Adadelta(RATE, rho=1)), r"adadelta: rho must be in \[0, 1\), not 1"),
                (lambda: optimizer.linear_lr_warmup(RATE, 3, 0.1), "start_lr and end_lr go together"),
                (lambda: trained(optimizer.RMSProp(RATE, rho=1.5)), r"rmsprop: decay must be in \[0, 1\), not 1.5"),
                (lambda: trained(optimizer.Adagrad(RATE, epsilon=-1.0)), "adagrad: epsilon must not be negative, not -1"),
                (lambda: trained(optimizer.Adadelta(RATE, epsilon=0.0)), "adadelta: epsilon must be above 0, not 0"),
                (lambda: trained(optimizer.SGD(float("inf"))), "sgd: lr must be above 0, not inf"),
                (lambda: trained(optimizer.RMSProp(RATE), grows=True), "rmsprop moves every row at each step"),
                (lambda: trained(optimizer.SGD(RATE, grad_clip=clip.GradientClipByNorm(0))), "norm must be above 0, not 0"),
                (lambda: trained(optimizer.SGD(RATE), {"w": ParamAttr("w", gradient_clip=CLIPS["global"])}),
                 "global_norm is of all gradients"),
                (lambda: trained(optimizer.SGD(optimizer.polynomial_decay(RATE, 0))), "decay_steps must be at least 1, not 0")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()


def cosine_of():
    return optimizer.cosine_decay(RATE, 2, 4)


class JobTest(program_test.Fresh):
    """The same description in prototxt gives the same bits."""

    def test_rules_clips_and_penalties_are_those_of_jobs(self):
        support.write_log(self.folder)
        rules = {
            "rmsprop { lr: 0.01 decay: 0.9 epsilon: 1e-6 momentum: 0.5 } clip { global_norm: 0.5 }":
                lambda: optimizer.RMSProp(0.01, rho=0.9, momentum=0.5, grad_clip=clip.GradientClipByGlobalNorm(0.5)),
            "decayed_adagrad { lr: 0.01 } regularization { l2: 0.01 } clip { norm: 0.2 }":
                lambda: optimizer.DecayedAdagrad(0.01, regularization=regularizer.L2Decay(0.01),
                                                 grad_clip=clip.GradientClipByNorm(0.2)),
            "lars_momentum { lr: 0.5 } schedule { noam { d_model: 4 warmup_steps: 3 } } clip { value: 0.1 }":
                lambda: optimizer.LarsMomentum(optimizer.noam_decay(4, 3, 0.5), grad_clip=clip.GradientClipByValue(0.1)),
        }
        rules.update({
            "adamax { lr: 0.01 beta2: 0.99 }": lambda: optimizer.Adamax(0.01, beta2=0.99),
            "adadelta { lr: 1 rho: 0.9 }": lambda: optimizer.Adadelta(1.0, rho=0.9),
            "lamb { lr: 0.01 without_decay: ['h.b_0', 'h.b_1', 'y.b_0'] }":
                lambda: optimizer.Lamb(0.01, exclude_from_weight_decay_fn=lambda var: ".b_" in var.name),
            "ftrl { alpha: 0.1 beta: 0 l2: 0.02 lr_power: -0.7 }": lambda: optimizer.Ftrl(0.1, l2=0.01, lr_power=-0.7),
        })
        for text, rule in rules.items():
            job_text = (support.WIDE_DEEP % {"folder": self.folder}).replace(
                "optimizer { adagrad { lr: 0.1 initial_accumulator: 0.1 } }", "optimizer { %s }" % text)
            job = millrace.Job.from_text(job_text)
            job.run()
            main, startup = millrace.Program(), millrace.Program()
            with millrace.program_guard(main, startup), millrace.scope_guard(millrace.Scope()), millrace.unique_name.guard():
                variables, loss, _ = program_test.wide_deep()
                rule().minimize(loss)
                exe = millrace.Executor()
                exe.run(startup)
                exe.train_from_dataset(main, self.dataset(variables))
                for name in ("h.w_0", "h.b_0", "h.w_1", "h.b_1", "y.w_0", "y.b_0"):
                    self.assertTrue((millrace.global_scope().get(name) == job.parameter(name)).all(), "%s %s" % (text, name))


PADDLE = """
import json, sys
import paddle
from paddle import optimizer as o, regularizer as r, nn
given = json.load(sys.stdin)
penalties = {"": None, "l1": r.L1Decay(0.03), "l2": r.L2Decay(0.2)}
clips = {"": None, "value": nn.ClipGradByValue(0.4), "norm": nn.ClipGradByNorm(0.5), "global": nn.ClipGradByGlobalNorm(1.0)}
rules = {
  "sgd": lambda **m: o.SGD(0.1, **m), "momentum": lambda **m: o.Momentum(0.1, 0.8, **m),
  "nesterov": lambda **m: o.Momentum(0.1, 0.8, use_nesterov=True, **m),
  "adagrad": lambda **m: o.Adagrad(0.1, initial_accumulator_value=0.25, **m),
  "rmsprop": lambda **m: o.RMSProp(0.1, rho=0.9, epsilon=1e-3, momentum=0.5, **m),
  "centered": lambda **m: o.RMSProp(0.1, rho=0.9, epsilon=1e-3, momentum=0.5, centered=True, **m),
  "adamax": lambda **m: o.Adamax(0.1, beta2=0.99, epsilon=1e-4, **m),
  "adadelta": lambda **m: o.Adadelta(0.1, rho=0.9, epsilon=1e-4, **m),
  "adam": lambda **m: o.Adam(0.1, beta2=0.99, epsilon=1e-4, **m)}
out = {}
for rule, make in rules.items():
    for penalty in penalties:
        for clip in clips:
            values = {}
            for name, value in given["start"].items():
                values[name] = paddle.create_parameter(paddle.to_tensor(value).shape, "float32", name="%s_%s_%s_%s" % (
                    name, rule, penalty, clip))
                values[name].set_value(paddle.to_tensor(value, "float32"))
            opt = make(parameters=list(values.values()), weight_decay=penalties[penalty], grad_clip=clips[clip])
            for x, ids, y in given["batches"]:
                pooled = paddle.stack([nn.functional.embedding(paddle.to_tensor(row, "int64"), values["e"]).sum(axis=0)
                                       if row else paddle.zeros([2]) for row in ids])
                loss = ((paddle.to_tensor(x, "float32") @ values["w"] + pooled @ values["v"] -
                         paddle.to_tensor(y, "float32")) ** 2).mean()
                loss.backward()
                opt.step()
                opt.clear_grad()
            out["%s/%s/%s" % (rule, penalty, clip)] = {name: value.numpy().tolist() for name, value in values.items()}
print("RESULT" + json.dumps(out))
"""


@unittest.skipUnless(os.environ.get("PADDLE_PYTHON"), "PADDLE_PYTHON names no Python with Paddle")
class PaddleTest(unittest.TestCase):
    """The same training in Paddle 2."""

    def test_rules_penalties_and_clips_are_paddles(self):
        given = {"start": {name: value.tolist() for name, value in START.items()},
                 "batches": [(x.tolist(), ids, y.tolist()) for x, ids, y in batches()]}
        done = subprocess.run([os.environ["PADDLE_PYTHON"], "-c", PADDLE], input=json.dumps(given), capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        for key, wanted in json.loads(done.stdout[done.stdout.index("RESULT") + 6:]).items():
            rule, penalty, kind = key.split("/")
            got = trained(RULES[rule][0](regularization=PENALTIES[penalty], grad_clip=CLIPS[kind]))
            check(got, {name: np.array(value) for name, value in wanted.items()}, key)


class LargeGradientTest(unittest.TestCase):
    def test_a_global_norm_whose_square_is_beyond_single_precision_still_clips_to_its_length(self):
        job = millrace.Job.from_text("""
            update_mode: SERIAL
            data_desc { name: "csv" batch_size: 4 feature { name: "label" } feature { name: "x" } feature { name: "id" hash {} } }
            model {
              table { name: "t" dim: 2 init { constant: 1 } optimizer { sgd { lr: 1 } } }
              layer { name: "e" embedding { slots: "id" table: "t" } }
              layer { name: "all" concat { in: ["x", "e"] } }
              layer { name: "y" fc { in: "all" units: 1 bias: false init { constant: 0 } } }
              loss { kind: SQUARED_ERROR in: "y" label: "label" }
              optimizer { sgd { lr: 0.25 } clip { global_norm: 1 } }
            }""")
        job.fit({"label": np.full(4, 1e10, "float32"), "x": np.full(4, 1e15, "float32"), "id": np.arange(4)}, verbose=False)
        np.testing.assert_allclose(job.parameter("y.w_0").reshape(-1), [0.25, 0, 0], atol=1e-6)


if __name__ == "__main__":
    unittest.main()
