#!/usr/bin/env python3
"""Trains the jobs of configs/ in PyTorch and writes the loss of each of 100 batches.

usage: MILLRACE_DUMP_DIR=DIR build/release/bin/model_test --gtest_filter=LossCurveDumpTest.*
       loss_curves.py DIR tests/golden/loss_curves

DIR holds the click log (log.txt) and the start of every model: dense parameters with their shape in the first line,
tables as "slot id values" lines. The models here are written by hand in PyTorch, not read from the job files; a table is
one dense parameter whose rows without gradient are left alone, as sparse updates are. Adagrad, and Adam for dense
parameters, are torch.optim's. A table's lazy Adam is the same rule (torch.optim.SparseAdam adds epsilon at another place),
FTRL-proximal, which PyTorch does not have, is McMahan et al. 2013.
"""
import os
import sys

import torch
from torch.nn import functional as F

BATCH = 64
SLOTS = ['C%d' % i for i in range(1, 27)]


def read_log(path):
    """Batches of (label, dense, {slot: (ids, row of each id)})."""
    batches, rows = [], []
    for line in open(path):
        words, columns, at = line.split(), [], 0
        while at < len(words):
            n = int(words[at])
            columns.append(words[at + 1:at + 1 + n])
            at += 1 + n
        rows.append(columns)
    for begin in range(0, len(rows), BATCH):
        part = rows[begin:begin + BATCH]
        label = torch.tensor([int(r[0][0]) for r in part])
        dense = torch.tensor([[float(x) for x in r[1]] for r in part])
        ids = {}
        for s, slot in enumerate(SLOTS):
            ids[slot] = ([int(x) for r in part for x in r[2 + s]],
                         torch.tensor([i for i, r in enumerate(part) for _ in r[2 + s]]))
        batches.append((label, dense, ids))
    return batches


class Start:
    """The first values of one model."""

    def __init__(self, folder):
        self.folder = folder

    def dense(self, name):
        with open(os.path.join(self.folder, name)) as f:
            shape = [int(x) for x in f.readline().split()]
            values = torch.tensor([float(x) for x in f]).reshape(shape)
        return torch.nn.Parameter(values)

    def table(self, name):
        return Table(os.path.join(self.folder, name))


class Table:
    """Rows by (slot, id) in one parameter."""

    def __init__(self, path):
        self.index, values = {}, []
        for line in open(path):
            slot, i, *row = line.split()
            self.index[slot, int(i)] = len(values)
            values.append([float(x) for x in row])
        self.weight = torch.nn.Parameter(torch.tensor(values))

    def pool(self, ids, how):
        """[B, slots * dim]"""
        out = []
        for slot in SLOTS:
            keys, rows = ids[slot]
            looked = F.embedding(torch.tensor([self.index[slot, k] for k in keys]), self.weight)
            pooled = torch.zeros(BATCH, looked.shape[1]).index_add(0, rows, looked)
            if how == 'mean':
                pooled = pooled / torch.bincount(rows, minlength=BATCH).clamp(min=1).unsqueeze(1)
            out.append(pooled)
        return torch.cat(out, 1)


class Ftrl:
    def __init__(self, params, alpha, beta, l1, l2):
        self.params, self.alpha, self.beta, self.l1, self.l2 = params, alpha, beta, l1, l2
        self.n = [torch.zeros_like(p) for p in params]
        self.z = [torch.zeros_like(p) for p in params]

    @torch.no_grad()
    def step(self):
        for p, n, z in zip(self.params, self.n, self.z):
            seen = p.grad.ne(0).any(1, keepdim=True)
            g = p.grad
            sigma = ((n + g * g).sqrt() - n.sqrt()) / self.alpha
            z += g - sigma * p
            n += g * g
            w = -(z - z.sign() * self.l1) / ((self.beta + n.sqrt()) / self.alpha + self.l2)
            p.copy_(torch.where(seen, torch.where(z.abs() <= self.l1, torch.zeros_like(w), w), p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


class LazyAdam:
    """torch.optim.Adam's rule for the rows that have a gradient; the others, and their moments, stay as they are."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps, self.steps = params, lr, betas, eps, 0
        self.m = [torch.zeros_like(p) for p in params]
        self.v = [torch.zeros_like(p) for p in params]

    @torch.no_grad()
    def step(self):
        self.steps += 1
        b1, b2 = self.betas
        c1, c2 = 1 - b1 ** self.steps, 1 - b2 ** self.steps
        for p, m, v in zip(self.params, self.m, self.v):
            rows = p.grad.ne(0).any(1)
            g = p.grad[rows]
            m[rows] = b1 * m[rows] + (1 - b1) * g
            v[rows] = b2 * v[rows] + (1 - b2) * g * g
            p[rows] -= self.lr / c1 * m[rows] / ((v[rows] / c2).sqrt() + self.eps)

    def zero_grad(self):
        for p in self.params:
            p.grad = None


class Model:
    """Dense parameters by name."""

    def __init__(self, start, names):
        self.p = {n: start.dense(n) for n in names}

    def fc(self, name, x, layers=1, act=None):
        for i in range(layers):
            x = x @ self.p['%s.w_%d' % (name, i)] + self.p['%s.b_%d' % (name, i)]
            x = act(x) if act else x
        return x


def names(layer, count=1):
    return ['%s.%s_%d' % (layer, kind, i) for i in range(count) for kind in 'wb']


def fm(v, dim):
    v = v.reshape(BATCH, -1, dim)
    return 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1, keepdim=True)


def logit_loss(y, label):
    return F.binary_cross_entropy_with_logits(y.squeeze(1), label.float())


def adagrad(params, lr):
    # From 0 the first step would be lr * sign(gradient): the last bit of a gradient near 0 would decide.
    return torch.optim.Adagrad(params, lr=lr, initial_accumulator_value=0.1, eps=1e-6)


def lr(start):
    w, m = start.table('w'), Model(start, names('float_sum'))

    def loss(label, dense, ids):
        return logit_loss(w.pool(ids, 'sum').sum(1, keepdim=True) + m.fc('float_sum', dense), label)

    return loss, [Ftrl([w.weight], 0.05, 1, 0.1, 1), torch.optim.SGD(m.p.values(), lr=0.01)]


def fm_model(start):
    w, v, m = start.table('w'), start.table('v'), Model(start, names('float_sum'))

    def loss(label, dense, ids):
        y = w.pool(ids, 'sum').sum(1, keepdim=True) + m.fc('float_sum', dense) + fm(v.pool(ids, 'sum'), 8)
        return logit_loss(y, label)

    return loss, [adagrad([w.weight, v.weight, *m.p.values()], 0.02)]


def deepfm(start):
    w, v = start.table('w'), start.table('v')
    m = Model(start, names('deep', 2) + names('deep_sum'))

    def loss(label, dense, ids):
        factors = v.pool(ids, 'sum')
        deep = m.fc('deep', torch.cat([factors, dense], 1), 2, F.relu)
        p = torch.sigmoid(w.pool(ids, 'sum').sum(1, keepdim=True) + fm(factors, 8) + m.fc('deep_sum', deep)).squeeze(1)
        y = label.float()
        return (-y * (p + 1e-7).log() - (1 - y) * (1 - p + 1e-7).log()).mean()

    return loss, [adagrad([w.weight, v.weight, *m.p.values()], 0.02)]


def dcn(start):
    e = start.table('e')
    m = Model(start, names('c', 3) + names('h', 2) + names('y'))

    def loss(label, dense, ids):
        x0 = x = torch.cat([dense, e.pool(ids, 'mean')], 1)
        for i in range(3):
            x = x0 * (x @ m.p['c.w_%d' % i]) + m.p['c.b_%d' % i] + x
        return logit_loss(m.fc('y', torch.cat([x, m.fc('h', x0, 2, F.relu)], 1)), label)

    return loss, [LazyAdam([e.weight], lr=0.001), torch.optim.Adam(m.p.values(), lr=0.001)]


def wide_deep(start):
    wide, deep = start.table('wide'), start.table('deep')
    m = Model(start, names('h', 3) + names('y'))

    def loss(label, dense, ids):
        h = m.fc('h', torch.cat([deep.pool(ids, 'mean'), dense], 1), 3, F.relu)
        return F.cross_entropy(m.fc('y', torch.cat([h, wide.pool(ids, 'sum')], 1)), label)

    return loss, [Ftrl([wide.weight], 0.05, 1, 1, 0), adagrad([deep.weight], 0.05), adagrad(m.p.values(), 0.01)]


def main():
    folder, out = sys.argv[1:]
    torch.set_num_threads(1)
    batches = read_log(os.path.join(folder, 'log.txt'))
    os.makedirs(out, exist_ok=True)
    for name, build in dict(lr=lr, fm=fm_model, deepfm=deepfm, dcn=dcn, wide_deep=wide_deep).items():
        loss, optimizers = build(Start(os.path.join(folder, name)))
        with open(os.path.join(out, name + '.tsv'), 'w') as f:
            f.write('# loss of each batch; torch %s\n' % torch.__version__.split('+')[0])
            for batch in batches:
                value = loss(*batch)
                for optimizer in optimizers:
                    optimizer.zero_grad()
                value.backward()
                for optimizer in optimizers:
                    optimizer.step()
                f.write('%.9g\n' % value.item())
        print(name, value.item())


main()
