"""What an ONNX model of ours predicts for MultiSlot lines. Needs onnxruntime.

    onnx_runner.py MODEL LINES COLUMNS OUT [empty]

COLUMNS are the slots of a line, comma-separated. With `empty` a sparse slot that holds the id 0 alone is fed without
values.
"""

import sys

import numpy as np
import onnxruntime

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64}


def read_columns(path, names):
    columns = {name: [] for name in names}
    with open(path, encoding="utf-8") as file:
        for line in file:
            tokens, at = line.split(), 0
            for name in names:
                count = int(tokens[at])
                columns[name].append(tokens[at + 1:at + 1 + count])
                at += 1 + count
    return columns


def main():
    model, lines, names, out = sys.argv[1:5]
    empty = sys.argv[5:] == ["empty"]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    columns = read_columns(lines, names.split(","))
    inputs = {value.name: value for value in session.get_inputs()}
    feed = {}
    for name, value in inputs.items():
        if name.endswith(".lod"):
            continue
        rows = columns[name]
        if name + ".lod" in inputs and empty:
            rows = [[] if row == ["0"] else row for row in rows]
        flat = np.array([v for row in rows for v in row], TYPES[value.type])
        if name + ".lod" in inputs:
            feed[name] = flat.reshape(-1, 1)
            feed[name + ".lod"] = np.cumsum([0] + [len(row) for row in rows]).astype(np.int64)
        else:
            feed[name] = flat.reshape(len(rows), -1)
    (scores,) = session.run(None, feed)
    with open(out, "w", encoding="utf-8") as file:
        for row in scores:
            file.write("\t".join("%.9g" % value for value in row) + "\n")


if __name__ == "__main__":
    main()
