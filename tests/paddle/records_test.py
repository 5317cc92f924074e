"""What `inspect records` writes, read by Paddle: each tensor of each record through its load operator.

    records_test.py BIN_DIR       PADDLE_PYTHON names a Python with Paddle; exit code 77: there is none
    records_test.py read FILE     run by that Python: the values of FILE's records, a line each
"""

import os
import struct
import subprocess
import sys
import tempfile
import zlib

import support

LINES = ["%d.5,%d,%s,%d" % (i, -i, " ".join(str(2 ** 40 + k) for k in range(i % 4 + 1)), i % 256) for i in range(2500)]
OUTPUTS = "float32[-1,2] int64[-1,1]:lod uint8[-1,1]"


def records_of(data):
    """The records of a file, chunk by chunk, as docs/formats/recordio.md has it."""
    at = 0
    while at < len(data):
        magic, count, crc, compressor, size = struct.unpack_from("<5I", data, at)
        payload = data[at + 20:at + 20 + size]
        if magic != 0x01020304 or compressor != 0 or len(payload) != size or zlib.crc32(payload) != crc:
            raise ValueError("byte %d: no chunk, or a damaged one" % at)
        at, inside = at + 20 + size, 0
        for _ in range(count):
            (length,) = struct.unpack_from("<I", payload, inside)
            yield payload[inside + 4:inside + 4 + length]
            inside += 4 + length
        if inside != len(payload):
            raise ValueError("%d bytes behind the records of a chunk" % (len(payload) - inside))


def cut(record):
    """The serialized tensors of a record: only their lengths are looked at here."""
    (count,) = struct.unpack_from("<I", record)
    at, tensors = 4, []
    for _ in range(count):
        start = at
        (levels,) = struct.unpack_from("<Q", record, at + 4)
        at += 12
        for _ in range(levels):
            at += 8 + struct.unpack_from("<Q", record, at)[0]
        (desc,) = struct.unpack_from("<i", record, at + 4)
        kind, dims, at = record[at + 9], [], at + 8
        field, end = at + 2, at + desc
        while field < end:  # sizes below 128, a byte each
            dims.append(record[field + 1])
            field += 2
        at = end + {3: 8, 5: 4, 20: 1}[kind] * dims[0] * dims[1]
        tensors.append(record[start:at])
    if at != len(record):
        raise ValueError("%d bytes behind a record's tensors" % (len(record) - at))
    return tensors


def read(path):
    import numpy
    import paddle
    paddle.enable_static()
    place, scope = paddle.CPUPlace(), paddle.static.Scope()
    with open(path, "rb") as file:
        records = list(records_of(file.read()))
    print(len(records))
    with tempfile.TemporaryDirectory() as folder, paddle.static.scope_guard(scope):
        executor, program = paddle.static.Executor(place), paddle.static.Program()
        kinds = [("float32", 0), ("int64", 1), ("uint8", 0)]
        kept = [0, 1, 2, 3, 998, 999, 1000, 1001, 2499]
        variables = []
        for number in kept:
            for i, (tensor, (dtype, level)) in enumerate(zip(cut(records[number]), kinds)):
                name = "r%d_%d" % (number, i)
                with open(folder + "/" + name, "wb") as file:
                    file.write(tensor)
                variables.append(program.global_block().create_var(name=name, shape=[-1, 1], dtype=dtype,
                                                                   persistable=True, lod_level=level))
        block = program.global_block()
        for variable in variables:
            block.append_op(type="load", outputs={"Out": [variable]}, attrs={"file_path": folder + "/" + variable.name})
        executor.run(program)
        for number in kept:
            texts = []
            for i in range(3):
                tensor = scope.find_var("r%d_%d" % (number, i)).get_tensor()
                values = numpy.array(tensor).reshape(-1).tolist()
                texts.append("%s %s %r" % (tensor.shape(), tensor.lod(), values))
            print(number, " | ".join(texts))


def expected():
    yield "2500"
    for number in [0, 1, 2, 3, 998, 999, 1000, 1001, 2499]:
        ids = [2 ** 40 + k for k in range(number % 4 + 1)]
        yield "%d [1, 2] [] %r | [%d, 1] [[0, %d]] %r | [1, 1] [] [%d]" % (
            number, [number + 0.5, float(-number)], len(ids), len(ids), ids, number % 256)


def main():
    if sys.argv[1] == "read":
        read(sys.argv[2])
        return
    (bin_dir,) = sys.argv[1:]
    python = support.peer("PADDLE_PYTHON", "paddle")
    with tempfile.TemporaryDirectory() as folder:
        lines = support.write(folder + "/lines.csv", "\n".join(LINES) + "\n")
        support.run(bin_dir + "/inspect", "records", "--outputs=" + OUTPUTS, "--records=" + folder + "/ours.recordio", lines)
        done = subprocess.run([python, os.path.abspath(__file__), "read", folder + "/ours.recordio"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            support.fail("Paddle does not read it:\n" + done.stderr[-3000:])
        if done.stdout.splitlines() != list(expected()):
            support.fail("Paddle reads\n%sand not\n%s" % (done.stdout, "\n".join(expected())))


if __name__ == "__main__":
    main()
