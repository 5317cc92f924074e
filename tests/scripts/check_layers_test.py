"""Tests of scripts/check_layers.py on source trees made for them."""

import os
import re
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import check_layers  # noqa: E402
from check_layers import LAYER_OF  # noqa: E402


class CheckLayersTest(unittest.TestCase):
    def complaints(self, files):
        with tempfile.TemporaryDirectory() as src:
            for name, text in files.items():
                os.makedirs(os.path.join(src, os.path.dirname(name)), exist_ok=True)
                with open(os.path.join(src, name), "w", encoding="utf-8") as file:
                    file.write(text)
            return [line.replace(src + "/", "") for line in check_layers.check(src)]

    def test_looking_downstairs_and_at_oneself_is_fine(self):
        self.assertEqual(
            [],
            self.complaints({
                "core/status.h": "#include <string>\n",
                "core/status.cc": '#include "core/status.h"\n',
                "runtime/scope.h": '#include "core/status.h"\n#include "framework.pb.h"\n',
                "app/main.cc": '#include <gflags/gflags.h>\n#include "runtime/scope.h"\n',
            }))

    def test_looking_upstairs_is_named_with_its_line(self):
        self.assertEqual(
            ['core/a.cc:2: "trainer/b.h": core (layer 0) may not look at trainer (layer %d)' % LAYER_OF["trainer"]],
            self.complaints({"core/a.cc": '\n  # include "trainer/b.h"\n', "trainer/b.h": ""}))

    def test_rooms_of_one_layer_do_not_meet(self):
        found = self.complaints({"ops/a.cc": '#include "datafeed/b.h"\n', "datafeed/b.h": ""})
        self.assertEqual(['ops/a.cc:1: "datafeed/b.h": ops (layer {0}) may not look at datafeed (layer {0})'.format(
            LAYER_OF["ops"])], found)

    def test_a_family_of_operators_sees_the_door_and_no_other_family(self):
        found = self.complaints({
            "ops/kernel.h": '#include "ops/math/own.h"\n',
            "ops/math/own.h": '#include "ops/kernel.h"\n#include "ops/loss/other.h"\n#include "datafeed/b.h"\n',
            "ops/loss/other.h": "",
            "datafeed/b.h": "",
        })
        self.assertEqual([
            'ops/kernel.h:1: "ops/math/own.h": ops (layer %d) may not look at ops/math (layer %d)' %
            (LAYER_OF["ops"], LAYER_OF["ops/math"]),
            'ops/math/own.h:2: "ops/loss/other.h": ops/math (layer {0}) may not look at ops/loss (layer {0})'.format(
                LAYER_OF["ops/math"]),
            'ops/math/own.h:3: "datafeed/b.h": ops/math and datafeed do not know each other',
        ], found)

    def test_a_room_that_has_grown_too_large_is_named(self):
        found = self.complaints({"core/a.cc": "\n" * check_layers.MOST_LINES, "core/b.cc": "\n"})
        self.assertEqual(["core: 10001 lines; a room has at most 10000"], found)

    def test_forbidden_pairs(self):
        found = self.complaints({"device_worker/a.h": '#include "ops/b.h"\n', "ops/b.h": ""})
        self.assertEqual(['device_worker/a.h:1: "ops/b.h": device_worker and ops do not know each other'], found)

    def test_libraries_have_their_rooms(self):
        found = self.complaints({"trainer/a.cc": "#include <gflags/gflags.h>\n", "kernels/b.cc": "#include <dnnl.hpp>\n"})
        self.assertEqual(["trainer/a.cc:1: <gflags/gflags.h> belongs to app"], found)

    def test_headers_must_exist_and_name_their_room(self):
        found = self.complaints({"core/a.cc": '#include "b.h"\n#include "core/c.h"\n'})
        self.assertEqual(
            ['core/a.cc:1: "b.h" must be written with its room: "core/b.h"', 'core/a.cc:2: "core/c.h" is not there'],
            found)

    def test_an_unknown_room_is_an_error(self):
        self.assertEqual(["attic: the room attic is not in src/rooms.txt"], self.complaints({"attic/a.cc": ""}))
        self.assertEqual(["ops/attic: the room ops/attic is not in src/rooms.txt"],
                         self.complaints({"ops/attic/a.cc": ""}))

    def test_the_tour_has_a_paragraph_for_every_room_and_names_files_that_are_there(self):
        with open(os.path.join(ROOT, "docs", "tour.md"), encoding="utf-8") as file:
            tour = file.read()
        paragraphs = set(re.findall(r"\*\*([a-z_]+)\*\*", tour))
        self.assertEqual({room for room in LAYER_OF if "/" not in room}, paragraphs)
        self.assertEqual([], [room for room in LAYER_OF if "/" in room and "`%s`" % room.split("/")[1] not in tour])
        paths = re.findall(r"`([\w/]+\.\w+|[\w]+/[\w/]*)`", tour)
        self.assertGreater(len(paths), 50)
        places = [ROOT, os.path.join(ROOT, "src")]
        self.assertEqual([], [
            path for path in paths
            if "/" in path and not any(os.path.exists(os.path.join(place, path)) for place in places)
        ])

    def circle(self, sources):
        """The modules of the circle that is found, by name."""
        with tempfile.TemporaryDirectory() as package:
            for name, text in sources.items():
                path = os.path.join(package, name.replace(".", os.sep) + ".py")
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            found = check_layers.check_package(package)
        return set(re.search("circle: (.*);", found[0])[1].split(" <- ")) if found else set()

    def test_a_circle_of_python_modules_is_found_within_a_function_too(self):
        low = "def f():\n    from . import high\n"
        for high in ("from .low import f", "from . import low", "import millrace.low", "from millrace import low"):
            self.assertEqual(self.circle({"high": high, "low": low}), {"high", "low"}, high)
            self.assertEqual(self.circle({"high": high, "low": "from . import _millrace"}), set(), high)
        part = {"part.a": "from . import b", "part.b": "from .. import low", "low": "import os", "__init__": "from .low import os"}
        self.assertEqual(self.circle(part), set())
        self.assertEqual(self.circle({**part, "part.b": "from .a import x"}), {"part.a", "part.b"})
        for low in ("from .part import a", "from .part.a import x", "from millrace.part import a"):
            self.assertEqual(self.circle({**part, "low": low}), {"part.a", "part.b", "low"}, low)

    def test_this_repository(self):
        self.assertEqual([], check_layers.check(os.path.join(ROOT, "src")))
        self.assertEqual([], check_layers.check_package(os.path.join(ROOT, "python", "millrace")))


if __name__ == "__main__":
    unittest.main()
