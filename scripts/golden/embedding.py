#!/usr/bin/env python3
"""Writes tests/golden/embedding.txt: bags of embeddings trained by PyTorch.

Three slots over two matrices (b is shared), sum or mean pooling, duplicates within and across rows, an empty bag, a
padding id with sum pooling; four steps of Adagrad, SparseAdam or SGD with given gradients of the pooled rows.
One array a line: name, rank, sizes, values.

Adam's epsilon is tiny because PyTorch adds it before the correction of the step number, and Paddle (and we) after.

Usage: python3 scripts/golden/embedding.py > tests/golden/embedding.txt   (needs torch)
"""
import sys

import torch

ROWS, DIM, VOCABULARY, STEPS = 6, 5, 12, 4
SLOTS = [('x', 'a'), ('y', 'b'), ('z', 'b')]


def put(name, tensor):
    tensor = tensor.detach()
    values = ' '.join('%d' % v if tensor.dtype == torch.int64 else '%.9g' % v for v in tensor.reshape(-1).tolist())
    print(name, tensor.dim(), *tensor.shape, values)


def case(name, mode, rule, padding, seed):
    generator = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.rand(*shape, generator=generator) * 2 - 1
    weights = {m: torch.nn.Parameter(draw(VOCABULARY, DIM)) for m in 'ab'}
    if padding is not None:
        for w in weights.values():
            w.data[padding] = 0
    for m, w in weights.items():
        put(f'{name}.{m}.start', w)
    if rule == 'adagrad':
        optimizer = torch.optim.Adagrad(weights.values(), lr=0.1, eps=1e-6)
    elif rule == 'adam':
        optimizer = torch.optim.SparseAdam(list(weights.values()), lr=0.01, eps=1e-14)
    else:
        optimizer = torch.optim.SGD(weights.values(), lr=0.1)
    for step in range(STEPS):
        out = []
        for slot, m in SLOTS:
            lengths = torch.randint(0, 5, (ROWS,), generator=generator)
            lengths[step] = 0
            ids = torch.randint(0, VOCABULARY, (int(lengths.sum()),), generator=generator)
            offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
            put(f'{name}.{step}.{slot}.ids', ids)
            put(f'{name}.{step}.{slot}.lod', offsets)
            out.append(torch.nn.functional.embedding_bag(ids, weights[m], offsets[:-1], mode=mode, sparse=rule != 'sgd',
                                                         padding_idx=padding))
        pooled = torch.cat(out, dim=1)
        gradient = draw(ROWS, DIM * len(SLOTS))
        put(f'{name}.{step}.out', pooled)
        put(f'{name}.{step}.gradient', gradient)
        optimizer.zero_grad()
        pooled.backward(gradient)
        optimizer.step()
    for m, w in weights.items():
        put(f'{name}.{m}.end', w)


def main():
    print(f'# PyTorch {torch.__version__}: scripts/golden/embedding.py')
    case('sum_adagrad', 'sum', 'adagrad', None, 1)
    case('mean_adagrad', 'mean', 'adagrad', None, 2)
    case('padding_adagrad', 'sum', 'adagrad', 3, 3)
    case('mean_adam', 'mean', 'adam', None, 4)
    case('sum_sgd', 'sum', 'sgd', None, 5)


if __name__ == '__main__':
    sys.exit(main())
