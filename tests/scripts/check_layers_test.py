"""Tests of scripts/check_layers.py on source trees made for them."""

import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import check_layers  # noqa: E402


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
                "framework/scope.h": '#include "core/status.h"\n#include "framework.pb.h"\n',
                "app/main.cc": '#include <gflags/gflags.h>\n#include "framework/scope.h"\n',
            }))

    def test_looking_upstairs_is_named_with_its_line(self):
        self.assertEqual(
            ['core/a.cc:2: "trainer/b.h": core (layer 0) may not look at trainer (layer 7)'],
            self.complaints({"core/a.cc": '\n  # include "trainer/b.h"\n', "trainer/b.h": ""}))

    def test_rooms_of_one_layer_do_not_meet(self):
        found = self.complaints({"ops/a.cc": '#include "datafeed/b.h"\n', "datafeed/b.h": ""})
        self.assertEqual(['ops/a.cc:1: "datafeed/b.h": ops (layer 4) may not look at datafeed (layer 4)'], found)

    def test_strangers(self):
        found = self.complaints({"device_worker/a.h": '#include "ops/b.h"\n', "ops/b.h": ""})
        self.assertEqual(['device_worker/a.h:1: "ops/b.h": device_worker and ops do not know each other'], found)

    def test_libraries_have_their_rooms(self):
        found = self.complaints({"trainer/a.cc": "#include <gflags/gflags.h>\n", "ops/b.cc": "#include <dnnl.hpp>\n"})
        self.assertEqual(["trainer/a.cc:1: <gflags/gflags.h> belongs to app"], found)

    def test_headers_must_exist_and_name_their_room(self):
        found = self.complaints({"core/a.cc": '#include "b.h"\n#include "core/c.h"\n'})
        self.assertEqual(
            ['core/a.cc:1: "b.h" must be written with its room: "core/b.h"', 'core/a.cc:2: "core/c.h" is not there'],
            found)

    def test_an_unknown_room_is_an_error(self):
        self.assertEqual(["attic: the room attic is not in the table of check_layers.py"],
                         self.complaints({"attic/a.cc": ""}))

    def test_this_repository(self):
        self.assertEqual([], check_layers.check(os.path.join(ROOT, "src")))


if __name__ == "__main__":
    unittest.main()
