"""A row's results do not depend on the rows beside it: operators of programs that only look at a model."""

import unittest

import support  # noqa: F401 (skips where there is no package)

import numpy as np

import millrace
from millrace import layers
from control_flow_test import Fresh

ROWS = 60


def results(words, numbers, images):
    """What a row comes to by operators that work on padded sequences, matrices, images and states."""
    found = {}
    vectors = layers.embedding(words, [50, 8], param_attr=millrace.ParamAttr(None, millrace.initializer.Normal(0, 1)))
    for pool in ("AVERAGE", "SQRT", "SUM", "MAX", "LAST"):
        found[pool] = layers.op("sequence_pool", {"X": vectors}, {"pooltype": pool})
    zero = layers.fill_constant([1], "float32", 0.0)
    padded, length = layers.op("sequence_pad", {"X": vectors, "PadValue": zero}, {"padded_length": -1}, outputs=["Out", "Length"])
    mask = layers.op("sequence_mask", {"X": length}, {"maxlen": -1, "out_dtype": 5})
    scores = layers.matmul(padded, padded, transpose_y=True) + layers.unsqueeze(layers.scale(mask, scale=1e9, bias=-1e9), [1])
    heeded = layers.matmul(layers.softmax(scores), padded) * layers.unsqueeze(mask, [2])
    found["attention"] = layers.reduce_sum(heeded, dim=1)
    found["sum of all"] = layers.reduce_sum(padded, dim=[1, 2])
    found["norm"] = layers.op("p_norm", {"X": padded}, {"porder": 2.0, "axis": 1})
    found["logsumexp"] = layers.reduce_sum(layers.op("logsumexp", {"X": scores}, {"axis": [2], "keepdim": False}) * mask, dim=1)
    hidden = layers.fc(layers.fc(numbers, 400, act="relu"), 30, act="tanh")
    found["sigmoid"] = layers.fc(hidden, 1, act="sigmoid")
    found["classes"] = layers.fc(hidden, 11, act="softmax")
    found["layer_norm"] = layers.op("layer_norm", {"X": hidden}, {"begin_norm_axis": 1}, outputs=["Y", "Mean", "Variance"])[0]
    picture = layers.op("conv2d", {"Input": images, "Filter": layers.create_parameter([7, 2, 3, 3], "float32")},
                        {"strides": [1, 1], "paddings": [1, 1]}, outputs=["Output"])
    found["conv2d"] = layers.reduce_sum(picture, dim=[2, 3])
    windows = layers.op("sequence_conv", {"X": vectors, "Filter": layers.create_parameter([24, 6], "float32")},
                        {"contextLength": 3, "contextStart": -1})
    found["sequence_conv"] = layers.op("sequence_pool", {"X": windows}, {"pooltype": "SUM"})
    weights = layers.op("sequence_softmax", {"X": layers.fc(vectors, 1)})
    found["sequence_softmax"] = layers.op("sequence_pool", {"X": vectors * weights}, {"pooltype": "SUM"})
    width = 12
    start = layers.op("fill_constant_batch_size_like", {"Input": padded}, {
        "shape": [1, -1, width], "input_dim_idx": 0, "output_dim_idx": 1, "value": 0.0, "dtype": 5})
    cells = [layers.create_parameter(shape, "float32")
             for shape in ([3 * width, 8], [3 * width, width], [3 * width], [3 * width])]
    states = layers.op("rnn", {"Input": layers.transpose(padded, [1, 0, 2]), "PreState": [start], "WeightList": cells,
                               "SequenceLength": length},
                       {"mode": "GRU", "hidden_size": width, "num_layers": 1, "input_size": 8}, outputs=["Out", "State", "Reserve"])
    found["rnn"] = layers.reduce_sum(states[0], dim=0)
    found["einsum"] = layers.op("einsum", {"Operands": [padded, layers.create_parameter([8, 5], "float32")]},
                                {"equation": "blk,kj->bj"})
    return found


class BatchInvarianceTest(Fresh):
    def test_rows_come_to_the_same_bits_in_every_batch(self):
        rng = np.random.default_rng(1)
        found = results(layers.data("words", [1], dtype="int64", lod_level=1), layers.data("numbers", [300]),
                        layers.data("images", [2, 8, 8]))
        executor = millrace.Executor()
        executor.run(self.startup)
        program = self.main.clone(for_test=True)
        for longest in (4, 8, 40):
            words = [list(map(int, rng.integers(1, 50, rng.integers(1, longest + 1)))) for _ in range(ROWS)]
            numbers = rng.normal(size=(ROWS, 300)).astype(np.float32)
            images = rng.normal(size=(ROWS, 2, 8, 8)).astype(np.float32)

            def by(batch):
                parts = [executor.run(program, {"words": words[i:i + batch], "numbers": numbers[i:i + batch],
                                                "images": images[i:i + batch]}, list(found.values()))
                         for i in range(0, ROWS, batch)]
                return [np.concatenate(part) for part in zip(*parts)]

            whole = by(ROWS)
            for batch in (1, 2, 3, 7, 32):
                for name, rows, wanted in zip(found, by(batch), whole):
                    np.testing.assert_array_equal(rows, wanted, "%s in batches of %d" % (name, batch))


if __name__ == "__main__":
    unittest.main()
