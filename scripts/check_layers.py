#!/usr/bin/env python3
"""Checks that every room below src/ looks only downstairs: its includes against the table below.

    scripts/check_layers.py [SRC]

A room may include itself and rooms of a strictly lower layer, but for the pairs in STRANGERS. Some libraries belong
to some rooms alone. A room that is not in the table is an error, and so is a header that is not there.
"""

import os
import re
import sys

LAYERS = [
    ["core"],
    ["proto"],
    ["framework", "clickgen"],
    ["table", "config", "inspect", "model", "reader"],
    ["datafeed", "ops", "metrics", "program"],
    ["dataset", "serving", "plugin"],
    ["device_worker"],
    ["trainer"],
    ["app"],
    ["python"],
]
LAYER_OF = {room: layer for layer, rooms in enumerate(LAYERS) for room in rooms}

# (room, other): room must not include other, although other lies lower.
STRANGERS = {
    ("ops", "metrics"),
    ("device_worker", "datafeed"),
    ("device_worker", "ops"),
} | {(room, "clickgen") for room in LAYER_OF if room != "app"}

# Headers of libraries, by the start of their names, and the only rooms that may include them.
LIBRARIES = {
    "gflags/": {"app"},
    "dnnl": {"ops"},
    "oneapi/dnnl/": {"ops"},
    "boost/process": {"core"},
    "boost/asio": {"core", "trainer", "app"},
    "zlib.h": {"core", "clickgen"},
    "zstd.h": {"core"},
    "jpeglib.h": {"reader"},
    "jerror.h": {"reader"},
    "pybind11/": {"python"},
    "Python.h": {"python"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def room_of_header(header):
    """The room of a quoted header, or None when it names none."""
    if header.endswith(".pb.h"):
        return "proto"
    return header.split("/")[0] if "/" in header else None


def check_include(room, quote, header, src):
    """The complaint about one include, or None."""
    if quote == "<":
        for start, rooms in LIBRARIES.items():
            if header.startswith(start) and room not in rooms:
                return "<%s> belongs to %s" % (header, ", ".join(sorted(rooms)))
        return None
    other = room_of_header(header)
    if other is None:
        return '"%s" must be written with its room: "%s/%s"' % (header, room, header)
    if other != "proto" and not os.path.exists(os.path.join(src, header)):
        return '"%s" is not there' % header
    if other == room:
        return None
    if other not in LAYER_OF:
        return '"%s": the room %s is not in the table of check_layers.py' % (header, other)
    if LAYER_OF[other] >= LAYER_OF[room]:
        return '"%s": %s (layer %d) may not look at %s (layer %d)' % (
            header, room, LAYER_OF[room], other, LAYER_OF[other])
    if (room, other) in STRANGERS:
        return '"%s": %s and %s do not know each other' % (header, room, other)
    return None


def check_file(path, room, src):
    """Complaints about one file, each with its line."""
    complaints = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            complaint = match and check_include(room, match[1], match[2], src)
            if complaint:
                complaints.append("%s:%d: %s" % (path, number, complaint))
    return complaints


def check(src):
    """Complaints about all files below `src`."""
    complaints = []
    for folder, _, files in sorted(os.walk(src)):
        room = os.path.relpath(folder, src).split(os.sep)[0]
        sources = sorted(name for name in files if name.endswith((".h", ".cc", ".cu")))
        if sources and room not in LAYER_OF:
            complaints.append("%s: the room %s is not in the table of check_layers.py" % (folder, room))
            continue
        for name in sources:
            complaints += check_file(os.path.join(folder, name), room, src)
    return complaints


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    src = sys.argv[1] if len(sys.argv) > 1 else os.path.join(root, "src")
    complaints = check(src)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
