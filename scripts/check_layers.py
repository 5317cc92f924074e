#!/usr/bin/env python3
"""Checks that every room in src/ includes only lower rooms, according to src/rooms.txt, and that the modules of the Python
package import each other without a circle.

    scripts/check_layers.py [SRC]

A room can include itself and the rooms listed on earlier lines, except for the pairs in FORBIDDEN. Only some rooms can
use certain libraries. If the list contains folders of a room, each of them is a room. Errors are rooms missing from the
list, missing headers, and rooms with more than MOST_LINES lines.

Imports of the package count everywhere, also in functions and for type checkers, except those of __init__.py, which
re-exports other modules.
"""

import ast
import graphlib
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOST_LINES = 10000


def read_layers(path):
    """The rooms of each line."""
    with open(path, encoding="utf-8") as file:
        return [line.split() for line in file if line.strip() and not line.startswith("#")]


LAYERS = read_layers(os.path.join(ROOT, "src", "rooms.txt"))
LAYER_OF = {room: layer for layer, rooms in enumerate(LAYERS) for room in rooms}
DIVIDED = {room.split("/")[0] for room in LAYER_OF if "/" in room}

# (room, other): room, with its folders, must not include other, although other lies lower.
FORBIDDEN = {
    ("ops", "metrics"),
    ("ops", "datafeed"),
    ("ops", "config"),
    ("ops", "model"),
    ("kernels", "proto"),
    ("device_worker", "datafeed"),
    ("device_worker", "ops"),
} | {(room, "clickgen") for room in LAYER_OF if room != "app"}

# Headers of libraries, by the start of their names, and the only rooms that may include them.
LIBRARIES = {
    "gflags/": {"app"},
    "dnnl": {"kernels"},
    "oneapi/dnnl/": {"kernels"},
    "zlib.h": {"core", "clickgen"},
    "zstd.h": {"core"},
    "isa-l": {"core"},
    "xxhash.h": {"core"},
    "jpeglib.h": {"reader"},
    "jerror.h": {"reader"},
    "mpi.h": {"comm"},
    "pybind11/": {"python"},
    "Python.h": {"python"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def room_of_folder(folder):
    """The room that a folder, relative to src/, belongs to."""
    parts = folder.split("/")
    return "/".join(parts[:2]) if parts[0] in DIVIDED else parts[0]


def room_of_header(header):
    """The room of a quoted header, or None when it names none."""
    if header.endswith(".pb.h"):
        return "proto"
    return room_of_folder(os.path.dirname(header)) if "/" in header else None


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
        return '"%s": the room %s is not in src/rooms.txt' % (header, other)
    if LAYER_OF[other] >= LAYER_OF[room]:
        return '"%s": %s (layer %d) may not look at %s (layer %d)' % (
            header, room, LAYER_OF[room], other, LAYER_OF[other])
    if (room.split("/")[0], other.split("/")[0]) in FORBIDDEN:
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
    lines = {}
    for folder, _, files in sorted(os.walk(src)):
        room = room_of_folder(os.path.relpath(folder, src).replace(os.sep, "/"))
        sources = sorted(name for name in files if name.endswith((".h", ".cc", ".cu", ".inc")))
        if sources and room not in LAYER_OF:
            complaints.append("%s: the room %s is not in src/rooms.txt" % (folder, room))
            continue
        for name in sources:
            path = os.path.join(folder, name)
            complaints += check_file(path, room, src)
            with open(path, encoding="utf-8") as file:
                lines[room] = lines.get(room, 0) + sum(1 for _ in file)
    complaints += ["%s: %d lines; a room has at most %d" % (room, count, MOST_LINES)
                   for room, count in sorted(lines.items()) if count > MOST_LINES]
    return complaints


def imported(source, modules, folder=""):
    """Which of `modules` a module of a folder imports; of `from . import a, b` those are a and b."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            prefix = folder if node.level == 1 else ""
            found |= {prefix + (node.module + "." if node.module else "") + alias.name for alias in node.names}
            found.add(prefix + (node.module or ""))
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {(node.module + "." + alias.name).removeprefix("millrace.") for alias in node.names}
            found.add(node.module.removeprefix("millrace."))
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("millrace.") for alias in node.names}
    return found & set(modules)


def check_package(package):
    """The complaint about a circle among the modules of a Python package, in a list."""
    sources = {}
    for place, _, files in os.walk(package):
        for file in files:
            if file.endswith(".py") and file != "__init__.py":
                path = os.path.join(place, file)
                with open(path, encoding="utf-8") as text:
                    sources[os.path.relpath(path, package)[:-3].replace(os.sep, ".")] = text.read()
    try:
        graphlib.TopologicalSorter({name: imported(source, sources, name.rpartition(".")[0] + "." if "." in name else "")
                                    for name, source in sources.items()}).prepare()
    except graphlib.CycleError as error:
        return ["%s: modules import each other in a circle: %s; move what they share into a module below them" % (
            package, " <- ".join(error.args[1]))]
    return []


def main():
    src = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "src")
    complaints = check(src) + (check_package(os.path.join(ROOT, "python", "millrace")) if len(sys.argv) == 1 else [])
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
