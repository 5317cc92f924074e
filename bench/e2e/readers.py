#!/usr/bin/env python3
"""Reads the same records here and with tf.data, format by format, in turn, and prints records a second.

    TF_PYTHON=... bench/e2e/readers.py --data DATA [--records 200000] [--pictures 4000] [--reps 5] [--wall]

DATA is a folder for the files, which are written once: records of 64 float32 values and an int64 label as CSV, libsvm,
MultiSlot text, RecordIO, OFRecord and TFRecord, pictures of 64x64 pixels in folders of classes. Both sides read with one
thread into batches of 64 which one more thread holds ready, and do nothing with them. Rates are records a second of
processor time, user and system, so that a busy machine favours no side, or of wall time with --wall. Ours counts a whole
run of `trainer` from start to end; the peer's counts its loop alone, without the start of Python and TensorFlow. RecordIO,
libsvm, MultiSlot and OFRecord have no reader in tf.data; the ratio there is against its TFRecords with the same values.
"""

import argparse
import os
import random
import resource
import statistics
import struct
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("MILLRACE_BIN", ROOT + "/build/release/bin")
PIXELS, SIDE, CLASSES, BATCH = 64, 64, 10, 64
TEXTS = ["csv", "libsvm", "multi_slot"]
FORMATS = TEXTS + ["recordio", "ofrecord", "tfrecord", "jpeg"]

# Runs in the Python that has TensorFlow.
PEER = r"""
import sys, time
import numpy as np
import tensorflow as tf
what, folder, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])

def rows():
    with open(folder + "/records.csv") as file:
        for line in file:
            fields = line.split(",")
            yield [float(field) for field in fields[:-1]], int(fields[-1])

if what == "write":
    with tf.io.TFRecordWriter(folder + "/records.tfrecord") as writer:
        for x, label in rows():
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=x)),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))})).SerializeToString())
    side, classes, pictures = int(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6])
    random = np.random.RandomState(1)
    y, x = np.mgrid[:side, :side]
    for i in range(pictures):
        # Waves and some noise: about as many bytes as a photograph of this size.
        waves = [127 + 100 * np.sin(x / random.uniform(3, 20) + y / random.uniform(3, 20)) for _ in range(3)]
        picture = np.clip(np.stack(waves, 2) + random.normal(0, 6, (side, side, 3)), 0, 255).astype(np.uint8)
        path = "%s/jpeg/%d" % (folder, i % classes)
        tf.io.gfile.makedirs(path)
        tf.io.write_file("%s/%d.jpg" % (path, i), tf.io.encode_jpeg(picture))
    sys.exit()

if what == "tfrecord":
    shapes = {"x": tf.io.FixedLenFeature([64], tf.float32), "label": tf.io.FixedLenFeature([1], tf.int64)}
    data = tf.data.TFRecordDataset(folder + "/records.tfrecord", buffer_size=1 << 20).batch(batch)
    data = data.map(lambda raw: tf.io.parse_example(raw, shapes))
elif what == "csv":
    kinds = [[0.0]] * 64 + [tf.constant([0], tf.int64)]
    data = tf.data.TextLineDataset(folder + "/records.csv", buffer_size=1 << 20).batch(batch)
    def parse(lines):
        fields = tf.io.decode_csv(lines, kinds)
        return tf.stack(fields[:-1], 1), fields[-1]
    data = data.map(parse)
else:
    import glob
    paths = sorted(glob.glob(folder + "/jpeg/*/*.jpg"))
    labels = [int(path.split("/")[-2]) for path in paths]
    data = tf.data.Dataset.from_tensor_slices((paths, labels))
    data = data.map(lambda path, label: (
        tf.io.decode_jpeg(tf.io.read_file(path), channels=3, dct_method="INTEGER_ACCURATE"), label)).batch(batch)
options = tf.data.Options()
options.threading.private_threadpool_size = 1
data = data.prefetch(2).with_options(options)
for _ in data.take(2):  # what is built on first use
    pass
wall, used, count = time.perf_counter(), time.process_time(), 0
for item in data:
    count += int((item["x"] if what == "tfrecord" else item[0]).shape[0])
print(count, time.process_time() - used, time.perf_counter() - wall)
"""


def peer(*arguments):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    # Not where modules of ours lie, which Python would take for its own.
    done = subprocess.run([os.environ["TF_PYTHON"], "-c", PEER, *map(str, arguments)], env=environment, cwd="/",
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("tf.data failed:\n" + done.stderr[-2000:])
    return done.stdout


def varint(number):
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def ofrecord(x, label):
    def feature(name, kind, packed):
        return field(1, field(1, name) + field(2, field(kind, field(1, packed))))
    message = feature(b"x", 2, struct.pack("<64f", *x)) + feature(b"label", 5, varint(label))
    return struct.pack("<q", len(message)) + message


def write_files(data, records, pictures):
    rng = random.Random(1)
    files = [open("%s/records.%s" % (data, name), "w", encoding="utf-8") for name in TEXTS]
    with open(data + "/records.ofrecord", "wb") as records_file:
        for _ in range(records):
            x, label = ["%.4g" % rng.uniform(-2, 2) for _ in range(PIXELS)], rng.randrange(CLASSES)
            files[0].write("%s,%d\n" % (",".join(x), label))
            files[1].write("%d %s\n" % (label, " ".join("%d:%s" % (i + 1, value) for i, value in enumerate(x))))
            files[2].write("%d %s 1 %d\n" % (PIXELS, " ".join(x), label))
            records_file.write(ofrecord(map(float, x), label))
    for file in files:
        file.close()
    subprocess.run([BIN + "/inspect", "records", "--outputs=float32[-1,64] int64[-1,1]",
                    "--records=" + data + "/records.recordio", data + "/records.csv"], check=True)
    peer("write", data, BATCH, SIDE, CLASSES, pictures)


def operator(kind, inputs="", out="", attributes=""):
    return 'ops { type: "%s" %s outputs { parameter: "Out" %s } %s }' % (
        kind, inputs, " ".join('arguments: "%s"' % name for name in out.split()), attributes)


def write_job(data, form):
    """A program that reads its data to the end, and its job."""
    path = "jpeg:%s/jpeg" % data if form == "jpeg" else "%s/records.%s" % (data, form)
    x, label = ("UINT8", [-1, 3, SIDE, SIDE]) if form == "jpeg" else ("FP32", [-1, PIXELS]), ("INT64", [-1, 1])
    outputs = [("x", *x), ("label", *label)]
    if form == "libsvm":
        outputs.reverse()
    numbers = {"FP32": 5, "INT64": 3, "UINT8": 20}

    def ints(name, values):
        return 'attrs { name: "%s" type: INTS %s }' % (name, " ".join("ints: %d" % value for value in values))

    readers = ['vars { name: "%s" persistable: true type { type: READER } }' % name for name in ("files", "rows", "batches")]
    opened = " ".join([
        'attrs { name: "file_names" type: STRINGS strings: "%s" }' % path, 'attrs { name: "thread_num" type: INT i: 1 }',
        'attrs { name: "buffer_size" type: INT i: 256 }', ints("ranks", [len(dims) for _, _, dims in outputs]),
        ints("shape_concat", [size for _, _, dims in outputs for size in dims]), ints("lod_levels", [0, 0]),
        ints("dtypes", [numbers[kind] for _, kind, _ in outputs]),
        'attrs { name: "names" type: STRINGS %s }' % " ".join('strings: "%s"' % name for name, _, _ in outputs)])
    under = 'inputs { parameter: "UnderlyingReader" arguments: "%s" }'
    startup = "blocks { idx: 0 parent_idx: -1 %s %s %s %s }" % (
        " ".join(readers), operator("open_files", out="files", attributes=opened),
        operator("create_batch_reader", under % "files", "rows", 'attrs { name: "batch_size" type: INT i: %d }' % BATCH),
        operator("create_double_buffer_reader", under % "rows", "batches"))
    condition = 'vars { name: "more" type { type: LOD_TENSOR lod_tensor { tensor { data_type: BOOL dims: 1 } } } }'
    tensors = ['vars { name: "%s" type { type: LOD_TENSOR lod_tensor { tensor { data_type: %s %s } } } }' %
               (name, kind, " ".join("dims: %d" % size for size in dims)) for name, kind, dims in outputs]
    source = 'inputs { parameter: "Reader" arguments: "batches" }'
    main = "blocks { idx: 0 parent_idx: -1 %s %s %s %s }\nblocks { idx: 1 parent_idx: 0 %s %s %s }" % (
        readers[2], condition,
        operator("fill_constant", out="more", attributes='attrs { name: "shape" type: LONGS longs: 1 } attrs { name: "dtype" '
                 'type: INT i: 0 } attrs { name: "value" type: FLOAT f: 1 }'),
        'ops { type: "while" inputs { parameter: "Condition" arguments: "more" } attrs { name: "sub_block" type: BLOCK '
        'block_idx: 1 } }', " ".join(tensors), operator("read", source, " ".join(name for name, _, _ in outputs)),
        operator("has_next", source, "more"))
    names = {"startup": startup, "main": main}
    for name, text in names.items():
        with open("%s/%s_%s.pbtxt" % (data, form, name), "w", encoding="utf-8") as file:
            file.write(text + "\n")
    job = "%s/%s.prototxt" % (data, form)
    with open(job, "w", encoding="utf-8") as file:
        file.write('program { main: "%s/%s_main.pbtxt" startup: "%s/%s_startup.pbtxt" }\n' % (data, form, data, form))
    return job


def ours(data, form, records, wall):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([BIN + "/trainer", "--trainer_desc=" + write_job(data, form)], capture_output=True, text=True,
                          check=False)
    took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0 or "trained: %d examples" % records not in done.stderr:
        sys.exit("trainer did not read %d records of %s:\n%s%s" % (records, form, done.stdout, done.stderr))
    return records / (took if wall else after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def theirs(data, form, records, wall):
    count, used, took = peer(form, data, BATCH).split()
    if int(count) != records:
        sys.exit("tf.data read %s records of %s, not %d" % (count, form, records))
    return records / float(took if wall else used)


def shown(rates):
    return "%s [%s-%s]" % tuple("{:,.0f}".format(rate) for rate in (statistics.median(rates), min(rates), max(rates)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--records", type=int, default=200000)
    parser.add_argument("--pictures", type=int, default=4000)
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--wall", action="store_true")
    args = parser.parse_args()
    if not os.environ.get("TF_PYTHON"):
        sys.exit("TF_PYTHON names no Python that has tensorflow")
    data = os.path.abspath(args.data)
    os.makedirs(data, exist_ok=True)
    sizes = "%d %d" % (args.records, args.pictures)
    mark = data + "/written"
    if not os.path.exists(mark) or open(mark, encoding="utf-8").read() != sizes:
        write_files(data, args.records, args.pictures)
        with open(mark, "w", encoding="utf-8") as file:
            file.write(sizes)
    formats = args.formats.split(",")
    count = {form: args.pictures if form == "jpeg" else args.records for form in formats}
    rates = {form: [] for form in formats}
    peers = {form: [] for form in ("csv", "tfrecord", "jpeg")}
    for rep in range(args.reps + 1):
        for form in formats:
            rate = ours(data, form, count[form], args.wall)
            other = theirs(data, form, count[form], args.wall) if form in peers else None
            if rep > 0:  # the first round warms the page cache
                rates[form].append(rate)
                if other:
                    peers[form].append(other)
    print("| format | Millrace, records/s: median [min-max], n = %d | tf.data | ratio |\n|---|---|---|---|" % args.reps)
    for form in formats:
        against = peers[form] if form in peers else peers["tfrecord"]
        note = shown(against) if form in peers else "its TFRecords"
        ratio = "%.1f" % (statistics.median(rates[form]) / statistics.median(against)) if against else "-"
        print("| %s | %s | %s | %s |" % (form, shown(rates[form]), note, ratio))


if __name__ == "__main__":
    main()
