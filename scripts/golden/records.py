#!/usr/bin/env python3
"""Writes small record files with the libraries that their formats come from, and beside each what is in it.

    python records.py tfrecord            TensorFlow: its TFRecordWriter and tf.train.Example
    python records.py ofrecord ONEFLOW    OneFlow's messages; ONEFLOW is a folder into which its wheel was unpacked
    python records.py recordio            Paddle: tensors as its save operator writes them

tests/golden/records/NAME and NAME.txt are what tests/reader/golden_records_test.cc reads: a line a record, "1.5 2 | 7 8", the
outputs apart. See README.md beside this file.
"""
import os
import struct
import sys
import zlib

import numpy as np

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/golden/records")
RECORDS = 12


def number_text(value):
    if isinstance(value, np.float32):
        return "%.9g" % value
    return "%.17g" % value if isinstance(value, np.float64) else str(int(value))


def line_text(outputs):
    """What ItemText of tests/reader/format_files.h makes of a record."""
    text = ""
    for i, values in enumerate(outputs):
        text += " |" if i > 0 else ""
        for value in np.asarray(values).reshape(-1):
            text += (" " if text else "") + number_text(value)
    return text


def write_lines(name, records):
    with open(os.path.join(FOLDER, name + ".txt"), "w", encoding="utf-8") as file:
        file.writelines(line_text(record) + "\n" for record in records)


def records():
    """x float32 [2], ids int64 of any number, pixels uint8 [3], with the numbers at which formats and readers err."""
    floats = np.array([0.1, -0.0, 3.4028234e38, 1e-45, -1.5, np.inf, 16777217, 1e-10], np.float32)
    ids = np.array([0, 1, -1, 127, 128, 2**31, -2**31, 2**53 + 1, 2**63 - 1, -2**63], np.int64)
    for i in range(RECORDS):
        x = np.array([floats[i % len(floats)], i], np.float32)
        pixels = np.array([i, 255 - i, 10 if i % 2 else 0], np.uint8)
        yield x, np.roll(ids, -i)[:i % 5], pixels


def write_tfrecord():
    import tensorflow as tf

    def example(x, ids, pixels):
        return tf.train.Example(features=tf.train.Features(feature={
            "x": tf.train.Feature(float_list=tf.train.FloatList(value=x)),
            "ids": tf.train.Feature(int64_list=tf.train.Int64List(value=ids)),
            "pixels": tf.train.Feature(bytes_list=tf.train.BytesList(value=[pixels.tobytes()])),
            "not read": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a", b"b"])),
        })).SerializeToString(deterministic=True)

    for name, packed in (("features.tfrecord", ""), ("packed.tfrecord", "GZIP")):
        path = os.path.join(FOLDER, name)
        with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type=packed)) as writer:
            for record in records():
                writer.write(example(*record))
        # Read again by tf.data: the lines are what the peer itself finds there.
        found = []
        for raw in tf.data.TFRecordDataset(path, compression_type=packed):
            parsed = tf.io.parse_single_example(raw, {
                "x": tf.io.FixedLenFeature([2], tf.float32), "ids": tf.io.VarLenFeature(tf.int64),
                "pixels": tf.io.FixedLenFeature([], tf.string)})
            found.append((parsed["x"].numpy(), parsed["ids"].values.numpy(),
                          np.frombuffer(parsed["pixels"].numpy(), np.uint8)))
        write_lines(name, found)


def write_ofrecord(oneflow):
    import importlib.util
    spec = importlib.util.spec_from_file_location("record_pb2", oneflow + "/oneflow/core/record/record_pb2.py")
    record_pb2 = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(record_pb2)
    found = []
    with open(os.path.join(FOLDER, "features.ofrecord"), "wb") as file:
        for x, ids, pixels in records():
            record = record_pb2.OFRecord()
            record.feature["x"].float_list.value.extend(float(value) for value in x)
            record.feature["ids"].int64_list.SetInParent()
            record.feature["ids"].int64_list.value.extend(int(value) for value in ids)
            record.feature["pixels"].bytes_list.value.append(pixels.tobytes())
            record.feature["narrow"].int32_list.value.append(-int(pixels[1]))
            record.feature["wide"].double_list.value.append(float(x[1]) / 3)
            data = record.SerializeToString(deterministic=True)
            file.write(struct.pack("<q", len(data)) + data)
            found.append((x, ids, pixels, np.array([-int(pixels[1])], np.int32), np.array([float(x[1]) / 3])))
    write_lines("features.ofrecord", found)


def saved_by_paddle(tensors):
    """The bytes of each (array, LoD offsets or None), as Paddle's save operator writes them."""
    import tempfile

    import paddle
    paddle.enable_static()
    scope, program = paddle.static.Scope(), paddle.static.Program()
    place = paddle.CPUPlace()
    with tempfile.TemporaryDirectory() as folder, paddle.static.scope_guard(scope):
        names = ["tensor_%d" % i for i in range(len(tensors))]
        for name, (array, lod) in zip(names, tensors):
            program.global_block().create_var(name=name, shape=array.shape, dtype=str(array.dtype), persistable=True,
                                              lod_level=0 if lod is None else 1)
            tensor = scope.var(name).get_tensor()
            tensor.set(array, place)
            if lod is not None:
                tensor.set_lod([lod])
        paddle.static.save_vars(paddle.static.Executor(place), folder, program,
                                vars=[program.global_block().var(name) for name in names])
        saved = []
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                saved.append(file.read())
        return saved


def write_recordio():
    outputs = [(x.reshape(1, 2), ids.reshape(-1, 1), pixels.reshape(1, 3)) for x, ids, pixels in records() if len(ids)]
    tensors = []
    for x, ids, pixels in outputs:
        tensors += [(x, None), (ids, [0, len(ids)]), (pixels, None)]
    saved = saved_by_paddle(tensors)
    packed = [struct.pack("<I", 3) + b"".join(saved[at:at + 3]) for at in range(0, len(saved), 3)]
    # docs/formats/recordio.md, which is what Paddle 1's paddle/fluid/recordio writes; of few records, for many chunks.
    with open(os.path.join(FOLDER, "tensors.recordio"), "wb") as file:
        for at in range(0, len(packed), 4):
            chunk = packed[at:at + 4]
            payload = b"".join(struct.pack("<I", len(record)) + record for record in chunk)
            file.write(struct.pack("<5I", 0x01020304, len(chunk), zlib.crc32(payload), 0, len(payload)) + payload)
    write_lines("tensors.recordio", outputs)


def main():
    how = {"tfrecord": write_tfrecord, "ofrecord": write_ofrecord, "recordio": write_recordio}
    if len(sys.argv) < 2 or sys.argv[1] not in how or len(sys.argv) != (3 if sys.argv[1] == "ofrecord" else 2):
        sys.exit(__doc__)
    os.makedirs(FOLDER, exist_ok=True)
    how[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
