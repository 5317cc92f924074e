#!/usr/bin/env python3
"""Reads the same files here, with tf.data and with PyTorch, format by format, in turn, and prints records a second.

    TF_PYTHON=... TORCH_PYTHON=... bench/e2e/readers.py --data DATA [--records 200000] [--pictures 10000] [--reps 5]

DATA is a folder for the files, which are written once: records of 64 float32 values and an int64 label as CSV, libsvm,
MultiSlot text, RecordIO, OFRecord and TFRecord, pictures of 64x64 pixels in folders of classes. Millrace reads with one
thread into batches of 64 of which two are held ready by one more, and does nothing with them; reader_peers.py says how
the peers read. The first batch of every peer is compared with ours, value by value, before anything is timed. Rates are
records a second of processor time, user and system, which a busy machine changes least, and of wall time. Ours count a
whole run of `trainer` from start to end; a peer's count its loop alone, without the start of Python and its imports.
A peer whose Python is not named is left out; TF_PYTHON is needed to write the files.
"""

import argparse
import json
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

# What of each peer can read a format; nobody but OneFlow reads its OFRecord.
PEERS = {"csv": ["tf", "torch"], "libsvm": ["tf", "torch", "sklearn"], "multi_slot": ["tf", "torch"],
         "recordio": ["torch"], "ofrecord": [], "tfrecord": ["tf"], "jpeg": ["tf", "torch"]}
NAMES = {"tf": "tf.data", "torch": "PyTorch", "sklearn": "scikit-learn"}
PYTHONS = {"tf": "TF_PYTHON", "torch": "TORCH_PYTHON", "sklearn": "SKLEARN_PYTHON"}


def peer(what, name, *arguments):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    with open(os.path.dirname(os.path.abspath(__file__)) + "/reader_peers.py", encoding="utf-8") as file:
        code = file.read()
    # Not where modules of ours lie, which Python would take for its own.
    done = subprocess.run([os.environ[PYTHONS[name]], "-W", "ignore", "-c", code, what, name, *map(str, arguments)],
                          env=environment, cwd="/", capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("%s failed:\n%s" % (NAMES[name], done.stderr[-2000:]))
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
    peer("write", "tf", "-", data, BATCH, SIDE, CLASSES, pictures)


def first_batch(data, form):
    """(values, label) of the first records, as Millrace reads them: by way of the RecordIO that it writes."""
    path, values = "%s/records.%s" % (data, form), "float32[-1,%d]" % PIXELS
    if form == "jpeg":
        path, values = "jpeg:%s/jpeg/0" % data, "uint8[-1,3,%d,%d]" % (SIDE, SIDE)
    outputs = ["x=" + values, "label=int64[-1,1]"]
    if form == "libsvm":
        outputs.reverse()
    shown = data + "/first.recordio"
    subprocess.run([BIN + "/inspect", "records", "--outputs=" + " ".join(outputs), "--records=" + shown, path], check=True,
                   capture_output=True)
    with open(shown, "rb") as file:
        file.seek(20)
        chunk = file.read(BATCH * (3 * SIDE * SIDE + 200))
    at, batch = 0, []
    sizes = [("B", 3 * SIDE * SIDE) if form == "jpeg" else ("f", PIXELS), ("q", 1)]
    if form == "libsvm":
        sizes.reverse()
    for _ in range(BATCH):
        at += 8
        record = []
        for kind, count in sizes:
            at += 20 + struct.unpack_from("<i", chunk, at + 16)[0]
            record.append(struct.unpack_from("<%d%s" % (count, kind), chunk, at))
            at += struct.calcsize("<%d%s" % (count, kind))
        batch.append(record if form != "libsvm" else record[::-1])
    return batch


def check_first_batch(data, form, name):
    """Ends the run when a peer does not read what Millrace reads. Pixels may be off by one: decoders are built apart."""
    path = data + "/first.npz"
    peer("first", name, form, data, BATCH, path)
    code = ("import json, numpy, sys; a = numpy.load(sys.argv[1]); "
            "print(json.dumps([a['x'].tolist(), a['label'].tolist()]))")
    theirs_x, theirs_label = json.loads(subprocess.run([os.environ[PYTHONS[name]], "-c", code, path], capture_output=True,
                                                       text=True, check=True, cwd="/").stdout)
    ours_x, ours_label = zip(*((x, label[0]) for x, label in first_batch(data, form)))
    off = max(abs(a - b) for mine, other in zip(ours_x, theirs_x) for a, b in zip(mine, other))
    if list(ours_label) != theirs_label or len(theirs_x) != BATCH or off > (1 if form == "jpeg" else 0):
        sys.exit("%s: the first batch of %s is not ours: values are off by up to %g, labels %s and %s" % (
            form, NAMES[name], off, ours_label[:8], theirs_label[:8]))
    return off


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


def ours(data, form, records):
    """Records a second of processor time and of wall time."""
    job = write_job(data, form)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([BIN + "/trainer", "--trainer_desc=" + job], capture_output=True, text=True, check=False)
    took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0 or "trained: %d examples" % records not in done.stderr:
        sys.exit("trainer did not read %d records of %s:\n%s%s" % (records, form, done.stdout, done.stderr))
    return records / (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), records / took


def theirs(data, form, records, name):
    count, used, took = peer("time", name, form, data, BATCH).split()
    if int(count) != records:
        sys.exit("%s read %s records of %s, not %d" % (NAMES[name], count, form, records))
    return records / float(used), records / float(took)


def shown(rates):
    return "%s [%s-%s]" % tuple("{:,.0f}".format(rate) for rate in (statistics.median(rates), min(rates), max(rates)))


def print_table(rates, reps):
    print("| format | reader | records a processor second: median [min-max], n = %d | records a wall second "
          "| Millrace is faster by: processor time; wall time |\n|---|---|---|---|---|" % reps)
    for form, readers in rates.items():
        mine = [statistics.median(column) for column in zip(*readers["millrace"])]
        for name, seen in readers.items():
            used, took = zip(*seen)
            ratio = "%.1f; %.1f" % (mine[0] / statistics.median(used), mine[1] / statistics.median(took))
            print("| %s | %s | %s | %s | %s |" % (form, NAMES.get(name, "Millrace"), shown(used), shown(took),
                                                  ratio if name in NAMES else "1"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--records", type=int, default=200000)
    parser.add_argument("--pictures", type=int, default=10000)
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--formats", default=",".join(FORMATS))
    args = parser.parse_args()
    if args.records < BATCH or args.pictures < BATCH * CLASSES:
        sys.exit("a first batch to compare takes %d records and %d pictures" % (BATCH, BATCH * CLASSES))
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
    peers = {form: [name for name in PEERS[form] if os.environ.get(PYTHONS[name])] for form in formats}
    for form in formats:
        for name in peers[form]:
            off = check_first_batch(data, form, name)
            print("%s: %s reads the same first batch%s" % (form, NAMES[name], ", values off by %g" % off if off else ""),
                  flush=True)
    rates = {form: {name: [] for name in ["millrace"] + peers[form]} for form in formats}
    for rep in range(args.reps + 1):
        for form in formats:
            for name, seen in rates[form].items():
                rate = ours(data, form, count[form]) if name == "millrace" else theirs(data, form, count[form], name)
                if rep > 0:  # the first round warms the page cache
                    seen.append(rate)
    print("load %.1f" % os.getloadavg()[0])
    print_table(rates, args.reps)


if __name__ == "__main__":
    main()
