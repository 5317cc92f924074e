#!/usr/bin/env python3
"""bench/scale/scale.py: its model sends what ranks send, and the simulation sends what the model says.

    scale_test.py [BIN]     with BIN, the folder of the programs, also beside two real ranks
"""

import importlib.util
import os
import shutil
import sys
import tempfile
import types
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SPEC = importlib.util.spec_from_file_location("scale", os.path.join(ROOT, "bench", "scale", "scale.py"))
scale = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(scale)

BIN = sys.argv.pop(1) if len(sys.argv) > 1 else ""
COSTS = {"worker_us": 30, "worker_peer_us": 3, "worker_key_us": 0.1, "table_us": 0.1, "comm_message_us": 3, "comm_key_us": 0.2,
         "worker_copy_us": 0.5, "comm_copy_us": 0.5, "worker_value_us": 0.005, "comm_value_us": 0.005}


def alike(keys):
    """Batches of so many keys, which lie on all shards alike."""
    return [[keys // scale.SHARDS] * scale.SHARDS] * 4


class Model(unittest.TestCase):
    def test_fits_what_is_linear(self):
        rows = [[1, x, y] for x in (1, 3, 7) for y in (256, 4096)]
        fitted = scale.least_squares(rows, [5 + 2 * x + 0.25 * y for _, x, y in rows])
        for wanted, found in zip((5, 2, 0.25), fitted):
            self.assertAlmostEqual(wanted, found, places=6)

    def test_each_reduction_sends_less(self):
        samples = alike(20480), alike(40960)
        for fewer, more in (("bf16", "plain"), ("async", "distinct")):
            sent = [sum(scale.bytes_of_batch(8, scale.WIRES[name], samples).values()) for name in (fewer, more)]
            self.assertLess(*sent)

    def test_a_rank_alone_sends_nothing(self):
        self.assertEqual(0, scale.bytes_of_job(1, scale.WIRES["async"], (alike(4096), []), 1 << 20))

    @unittest.skipUnless(BIN and shutil.which("mpirun"), "skipped: no programs were given, or there is no mpirun")
    def test_two_ranks_send_what_the_model_says(self):
        with tempfile.TemporaryDirectory() as folder:
            scale.run([BIN + "/clickgen", "--output_dir=" + folder, "--rows=%d" % (48 * scale.BATCH), "--parts=4"])
            options = types.SimpleNamespace(bin=BIN, data=folder)
            for name in ("async",):
                wire = scale.WIRES[name]
                run = scale.train_ranks(options, 2, wire)
                model = scale.bytes_of_job(2, wire, scale.samples_of(folder, wire), run["examples"])
                # It says 2 MB more than is sent, whatever the length of the job.
                self.assertLess(abs(model / run["dist"]["wire_bytes"] - 1), 0.06, name)


class Simulation(unittest.TestCase):
    def test_sends_what_the_model_says(self):
        simgrid = scale.SimGrid(ROOT + "/build/simgrid", ROOT + "/build/scale")
        if not simgrid.is_there():
            self.skipTest("skipped: SimGrid is not in build/simgrid, where bench/scale/scale.py unpacks it")
        wire = scale.WIRES["async"]
        samples = alike(4096), []
        for ranks, group in ((1, 1), (4, 1), (4, 2)):
            values = scale.values_of(ranks, wire, samples, COSTS, 0.02, group, 64)
            result = simgrid.simulate(scale.cluster(25, 20, ranks, 2), ["h%d" % r for r in range(ranks)], values, samples)
            model = sum(scale.bytes_of_batch(ranks, wire, samples).values())
            self.assertLess(abs(result["bytes"] - model), 0.05 * model + 1)
            self.assertGreater(result["batch_s"], 0.0199)
            self.assertLess(result["batch_s"], 0.022)


if __name__ == "__main__":
    unittest.main()
