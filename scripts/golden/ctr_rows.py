#!/usr/bin/env python3
"""Writes tests/golden/ctr_rows.txt: rows of tables with an accessor, push by push, from the formulas. See README.md beside this file.

The formulas are those of Paddle 2.6 (ps/table/ctr_accessor.cc and sparse_sgd_rule.cc), computed by numpy in the widths in which
Paddle computes them. Nothing here shares code with src/table. embedx starts at 0 (initial_range: 0), which is random otherwise.
"""

import os

import numpy as np

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "golden", "ctr_rows.txt")
F = np.float32
D = np.float64


def bounded(w, bounds):
    return w if bounds is None else min(max(w, F(bounds[0])), F(bounds[1]))


class Naive:
    name, settings = "SparseNaiveSGDRule", "naive"

    def __init__(self, dim, learning_rate=0.05, bounds=None):
        self.dim, self.lr, self.bounds = dim, F(learning_rate), bounds

    def start(self):
        return []

    def update(self, w, state, g, scale):
        for i in range(self.dim):
            w[i] = bounded(F(w[i] - F(self.lr * g[i])), self.bounds)


class Adagrad(Naive):
    name, settings = "SparseAdaGradSGDRule", "adagrad"

    def __init__(self, dim, learning_rate=0.05, initial_g2sum=3, bounds=None):
        super().__init__(dim, learning_rate, bounds)
        self.g0 = F(initial_g2sum)

    def start(self):
        return [F(0)]

    def factor(self, g2sum):
        return D(np.sqrt(F(self.g0 / F(self.g0 + g2sum))))

    def update(self, w, state, g, scale):
        add = D(0)
        factor = self.factor(state[0])
        for i in range(self.dim):
            scaled = D(F(g[i] / scale))
            w[i] = bounded(F(D(w[i]) - D(self.lr) * scaled * factor), self.bounds)
            add += scaled * scaled
        state[0] = F(D(state[0]) + add / self.dim)


class StdAdagrad(Adagrad):
    name = "StdAdaGradSGDRule"

    def start(self):
        return [F(0)] * self.dim

    def update(self, w, state, g, scale):
        for i in range(self.dim):
            scaled = D(F(g[i] / scale))
            w[i] = bounded(F(D(w[i]) - D(self.lr) * scaled * self.factor(state[i])), self.bounds)
            state[i] = F(D(state[i]) + scaled * scaled)


class Adam(Naive):
    name, settings = "SparseAdamSGDRule", "adam"

    def __init__(self, dim, learning_rate=0.001, beta1_decay_rate=0.9, beta2_decay_rate=0.999, ada_epsilon=1e-8, bounds=None):
        super().__init__(dim, learning_rate, bounds)
        self.b1, self.b2, self.epsilon = F(beta1_decay_rate), F(beta2_decay_rate), F(ada_epsilon)

    def start(self):
        return [F(0)] * (2 * self.dim) + [self.b1, self.b2]

    def rate(self, p1, p2):
        return F(self.lr * F(np.sqrt(F(1) - p2) / F(F(1) - p1)))

    def update(self, w, state, g, scale):
        n = self.dim
        rate = self.rate(state[2 * n], state[2 * n + 1])
        for i in range(n):
            state[i] = F(F(self.b1 * state[i]) + F(F(F(1) - self.b1) * g[i]))
            state[n + i] = F(F(self.b2 * state[n + i]) + F(F(F(F(1) - self.b2) * g[i]) * g[i]))
            step = F(state[i] / F(np.sqrt(state[n + i]) + self.epsilon))
            w[i] = bounded(F(w[i] - F(rate * step)), self.bounds)
        state[2 * n] = F(state[2 * n] * self.b1)
        state[2 * n + 1] = F(state[2 * n + 1] * self.b2)


class SharedAdam(Adam):
    name = "SparseSharedAdamSGDRule"

    def start(self):
        return [F(0), F(0), self.b1, self.b2]

    def update(self, w, state, g, scale):
        rate = self.rate(state[2], state[3])
        means = squares = D(0)
        for i in range(self.dim):
            mean = D(F(F(self.b1 * state[0]) + F(F(F(1) - self.b1) * g[i])))
            square = D(F(F(self.b2 * state[1]) + F(F(F(F(1) - self.b2) * g[i]) * g[i])))
            w[i] = bounded(F(D(w[i]) - D(rate) * (mean / (np.sqrt(square) + D(self.epsilon)))), self.bounds)
            means += mean
            squares += square
        state[0], state[1] = F(means / self.dim), F(squares / self.dim)
        state[2], state[3] = F(state[2] * self.b1), F(state[3] * self.b2)


class Accessor:
    def __init__(self, embed, embedx, embedx_threshold=10, nonclk_coeff=0.1, click_coeff=1.0, show_scale=True, decay=0.98,
                 delete_threshold=0.8, delete_after_unseen_days=30):
        self.embed, self.embedx, self.threshold = embed, embedx, F(embedx_threshold)
        self.nonclk, self.click, self.show_scale = F(nonclk_coeff), F(click_coeff), show_scale
        self.decay, self.delete_threshold, self.delete_days = F(decay), F(delete_threshold), F(delete_after_unseen_days)
        self.rows = {}

    def score(self, show, click):
        return F(F(F(show - click) * self.nonclk) + F(click * self.click))

    def push(self, examples, key, values):
        row = self.rows.setdefault(key, {
            "show": F(0), "click": F(0), "unseen": F(0), "delta": F(0), "embed": [F(0)], "embedx": [F(0)] * self.embedx.dim,
            "state": self.embed.start(), "statex": self.embedx.start(), "has": False})
        values = [F(v) for v in values]
        show, click = values[:2]
        row["show"] = F(row["show"] + show)
        row["click"] = F(row["click"] + click)
        row["delta"] = F(row["delta"] + self.score(show, click))
        row["unseen"] = F(0)
        scale = show if self.show_scale else F(1)
        gradients = [F(v * F(examples)) for v in values[2:]]
        self.embed.update(row["embed"], row["state"], gradients[:1], scale)
        if row["has"]:
            self.embedx.update(row["embedx"], row["statex"], gradients[1:], scale)
        elif self.score(row["show"], row["click"]) >= self.threshold:
            row["has"] = True

    def shrink(self):
        for key in list(self.rows):
            row = self.rows[key]
            row["show"], row["click"] = F(row["show"] * self.decay), F(row["click"] * self.decay)
            if self.score(row["show"], row["click"]) < self.delete_threshold or row["unseen"] > self.delete_days:
                del self.rows[key]
            else:
                row["unseen"] = F(row["unseen"] + F(1))


def rule_text(rule):
    fields = ["learning_rate: %.9g" % rule.lr, "initial_range: 0"]
    if hasattr(rule, "g0"):
        fields.append("initial_g2sum: %.9g" % rule.g0)
    if hasattr(rule, "b1"):
        fields += ["beta1_decay_rate: %.9g" % rule.b1, "beta2_decay_rate: %.9g" % rule.b2, "ada_epsilon: %.9g" % rule.epsilon]
    if rule.bounds is not None:
        fields.append("weight_bounds: [%.9g, %.9g]" % rule.bounds)
    return 'name: "%s" %s { %s }' % (rule.name, rule.settings, " ".join(fields))


def desc(a):
    ctr = ("nonclk_coeff: %.9g click_coeff: %.9g show_scale: %s show_click_decay_rate: %.9g delete_threshold: %.9g "
           "delete_after_unseen_days: %.9g") % (a.nonclk, a.click, str(a.show_scale).lower(), a.decay, a.delete_threshold,
                                                a.delete_days)
    return ('name: "t" accessor { embedx_dim: %d embedx_threshold: %d ctr_accessor_param { %s } embed_sgd_param { %s } '
            "embedx_sgd_param { %s } }") % (a.embedx.dim, a.threshold, ctr, rule_text(a.embed), rule_text(a.embedx))


def numbers(values):
    return " ".join("%.9g" % v for v in values)


def trace(title, accessor, seed, pushes=40, keys=4, examples=(1, 16, 7), shrink_every=10):
    """Random pushes and shrinks; after each the rows as they must be: key, weights, unseen_days, delta_score, has embedx, states."""
    draw = np.random.default_rng(seed)
    lines = ["# " + title, "table " + desc(accessor)]
    for number in range(pushes):
        of = int(draw.choice(examples))
        key = int(draw.integers(1, keys + 1)) ** 9
        show = int(draw.integers(1, 5))
        values = [show, int(draw.integers(0, show + 1))] + [
            float(F(v)) for v in draw.normal(0, 0.3, 1 + accessor.embedx.dim)]
        lines.append("push %d %d %s" % (of, key, numbers(values)))
        accessor.push(of, key, values)
        lines.append("row " + line_of(accessor, key))
        if (number + 1) % shrink_every == 0:
            accessor.shrink()
            lines.append("shrink %d" % len(accessor.rows))
            lines += ["row " + line_of(accessor, key) for key in sorted(accessor.rows)]
    return lines


def line_of(accessor, key):
    row = accessor.rows[key]
    return "%d %s" % (key, numbers([row["show"], row["click"]] + row["embed"] + row["embedx"] +
                                   [row["unseen"], row["delta"], 1 if row["has"] else 0] + row["state"] + row["statex"]))


def main():
    lines = ["# made by scripts/golden/ctr_rows.py"]
    lines += trace("Paddle's defaults, but for the threshold of embedx", Accessor(Adagrad(1), Adagrad(8), 3), 1)
    lines += trace("no sums of squares, bounds", Accessor(Naive(1, 0.5, (-0.25, 0.5)), Naive(3, 0.3, (-0.5, 0.1)), 1), 2)
    lines += trace("a sum of squares for each weight", Accessor(StdAdagrad(1, 0.1, 1), StdAdagrad(5, 0.2, 0.5), 2), 3)
    lines += trace("means of the row's own", Accessor(Adam(1, 0.01), Adam(4, 0.02, 0.8, 0.95, 1e-6, (-1, 1)), 2), 4)
    lines += trace("one pair of means", Accessor(SharedAdam(1, 0.01), SharedAdam(4, 0.02, 0.8, 0.95, 1e-6), 0), 5)
    lines += trace("another rule for each part, shows do not divide",
                   Accessor(StdAdagrad(1, 0.1, 1), SharedAdam(2), 4, 0.3, 2.5, False, 0.5), 6, pushes=80)
    lines += trace("rows that are deleted and come again",
                   Accessor(Adagrad(1), Adagrad(2), 2, decay=0.6, delete_threshold=1, delete_after_unseen_days=1), 7, pushes=90,
                   keys=12, shrink_every=5)
    with open(OUT, "w") as file:
        file.write("\n".join(lines) + "\n")


main()
