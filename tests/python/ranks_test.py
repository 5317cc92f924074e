"""Scripts that mpirun starts: each process is a rank of the trainings in them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import support

import numpy as np

import millrace

PACKAGE = os.path.dirname(millrace.__file__)

BEGIN = """
import json, os, sys, time
import numpy as np
import millrace
from millrace import _ranks, layers, optimizer

folder = sys.argv[1]
files = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("part-"))

def build(seed=7, counts=True):
    main, startup = millrace.Program(), millrace.Program()
    main.random_seed = startup.random_seed = seed
    with millrace.program_guard(main, startup):
        label = layers.data("label", [1], dtype="int64")
        dense = layers.data("dense", [2], dtype="float32")
        ids = [layers.data("C%d" % i, [1], dtype="int64", lod_level=1) for i in (1, 2, 3)]
        rows = [layers.embedding(one, [None, 4], param_attr=millrace.ParamAttr(name="rows")) for one in ids]
        pooled = [layers.sequence_pool(one, "sum") for one in rows]
        h = layers.fc(layers.concat(pooled + [dense], axis=1), 8, act="relu")
        p = layers.fc(h, 2, act="softmax")
        loss = layers.mean(layers.cross_entropy(p, label))
        auc = layers.auc(p, label)[0] if counts else None
        test = main.clone(for_test=True)
        optimizer.Adagrad(learning_rate=0.05).minimize(loss)
    return main, startup, test, [label, dense] + ids, p, loss, auc

def queue(slots, some=None, batch=16, kind=millrace.QueueDataset):
    dataset = kind()
    dataset.set_use_var(slots)
    dataset.set_batch_size(batch)
    dataset.set_filelist(files if some is None else some)
    return dataset

def memory(slots, some=None):
    return queue(slots, some, kind=millrace.InMemoryDataset)

def tell(**values):
    with open(os.path.join(folder, "told.%d" % _ranks.rank()), "w") as file:
        json.dump(values, file)

def parameters(main, scope=None):
    scope = scope or millrace.global_scope()
    values = {}
    for name in sorted(scope.names()):
        value = scope.get(name)
        if isinstance(value, np.ndarray):
            values[name] = value.tolist()
        elif value is not None and hasattr(value, "keys"):
            order = np.argsort(value.keys)
            values[name] = [value.keys[order].tolist(), value.values[order].tolist()]
    return values

exe = millrace.Executor()
"""

TRAIN = """
main, startup, test, slots, p, loss, auc = build()
exe.run(startup)
"""

ENDED_JOB = """
filelist: "%s/part-*"
epochs: 1000000
thread_num: 1
data_desc {
  batch_size: 16
  multi_slot_desc {
    slots { name: "label" type: "uint64" is_dense: true is_used: true shape: [-1, 1] }
    slots { name: "dense" type: "float" is_dense: true is_used: true shape: [-1, 2] }
    slots { name: "C1" type: "uint64" is_used: true }
    slots { name: "C2" type: "uint64" }
    slots { name: "C3" type: "uint64" }
  }
}
model {
  table { name: "t" dim: 4 optimizer { adagrad { lr: 0.05 } } }
  layer { name: "e" embedding { slots: "C1" table: "t" } }
  layer { name: "y" fc { in: ["e", "dense"] units: 1 act: SIGMOID } }
  loss { kind: LOG_LOSS in: "y" label: "label" }
  optimizer { adagrad { lr: 0.05 } }
}
"""


class RanksTest(unittest.TestCase):
    def setUp(self):
        if shutil.which("mpirun") is None:
            raise unittest.SkipTest("there is no mpirun (openmpi-bin)")
        if not os.path.exists(os.path.join(PACKAGE, "libmillrace_mpi.so")):
            raise unittest.SkipTest("built without MPI (libopenmpi-dev)")
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def start(self, script, ranks, **more):
        text = BEGIN + (TRAIN if ("main" in script or "startup" in script) and "counts=False" not in script else "") + textwrap.dedent(script)
        path = support.write(os.path.join(self.folder, "script.py"), text)
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)
        environment.pop("OPENBLAS_CORETYPE", None)
        launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks else []
        return subprocess.Popen(launcher + [sys.executable, path, self.folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment)

    def run_script(self, script, ranks=2, fails=False, **more):
        """What ranks told, by rank; output and errors are self.out and self.err."""
        process = self.start(script, ranks, **more)
        self.out, self.err = process.communicate(timeout=300)
        self.assertEqual(process.returncode != 0, fails, self.out + self.err)
        return self.told(max(1, ranks))

    def told(self, ranks):
        paths = [os.path.join(self.folder, "told.%d" % r) for r in range(ranks)]
        told = [json.loads(support.read(path)) if os.path.exists(path) else None for path in paths]
        for path in paths:
            if os.path.exists(path):
                os.remove(path)
        return told

    def test_ranks_know_each_other_and_add_up(self):
        told = self.run_script("""
            r = _ranks.rank()
            _ranks.barrier()
            tell(size=_ranks.size(), sum=int(_ranks.allreduce(r + 1)), max=_ranks.allreduce([r, -r], "max").tolist(),
                 min=float(_ranks.allreduce(np.float64(r) / 3, "min")), leader=_ranks.of_leader("r%d" % r, "who leads"))
        """, ranks=3)
        for one in told:
            self.assertEqual(one, {"size": 3, "sum": 6, "max": [2, 0], "min": 0.0, "leader": "r0"})
        told = self.run_script("""
            _ranks.barrier()
            tell(rank=_ranks.rank(), size=_ranks.size(), sum=int(_ranks.allreduce(5)))
        """, ranks=0)
        self.assertEqual(told, [{"rank": 0, "size": 1, "sum": 5}])

    def test_sums_of_narrow_whole_numbers_do_not_overflow(self):
        told = self.run_script("""
            given = [np.array([2 ** 31 - 1], np.int32), np.array([200], np.uint8), np.int8(100), np.array([1.5], np.float32), [2 ** 40]]
            sums, most = ([_ranks.allreduce(one, op) for one in given] for op in ("sum", "max"))
            mixed = _ranks.allreduce(np.array([7], np.int32 if _ranks.rank() else np.int64))
            sums, most = ([np.ravel(one).tolist() + [str(one.dtype)] for one in these] for these in (sums, most))
            tell(sums=sums, most=most, mixed=mixed.tolist())
        """)
        for one in told:
            self.assertEqual(one["sums"], [[2 ** 32 - 2, "int64"], [400, "uint64"], [200, "int64"], [3.0, "float32"], [2 ** 41, "int64"]])
            self.assertEqual(one["most"], [[2 ** 31 - 1, "int32"], [200, "uint8"], [100, "int8"], [1.5, "float32"], [2 ** 40, "int64"]])
            self.assertEqual(one["mixed"], [14])

    def test_one_model_is_trained_each_line_once(self):
        support.write_log(self.folder, count=700, parts=5)
        told = self.run_script("""
            report = exe.train_from_dataset(main, queue(slots), fetch_list=[loss], print_period=5)
            tell(examples=report.examples, metrics=report.metrics, step=millrace.global_scope()._scope.step,
                 history=len(report.history), parameters=parameters(main))
        """)
        self.assertEqual(told[0], told[1])
        self.assertEqual(told[0]["examples"], 700)
        batches = told[0]["step"]
        self.assertGreaterEqual(batches, 700 // 16)
        self.assertLessEqual(batches, 700 // 16 + 5)
        self.assertGreater(told[0]["history"], 0)
        lines = [line for line in self.out.splitlines() if "mean" in line]
        self.assertEqual(len(lines), told[0]["history"], self.out)  # printed by one

    def test_ranks_start_from_the_parameters_of_rank_0(self):
        support.write_log(self.folder, count=64, parts=2)
        told = self.run_script("""
            scope = millrace.global_scope()
            name = [n for n in scope.names() if n.endswith("w_0")][0]
            scope.set(name, np.full_like(scope.get(name), _ranks.rank() + 1))
            exe.train_from_dataset(main, queue(slots, batch=64))
            tell(values=scope.get(name).tolist())
        """)
        self.assertEqual(told[0], told[1])
        self.assertLess(np.abs(np.array(told[0]["values"]) - 1).max(), 0.5)

    def test_what_is_saved_predicts_as_what_one_process_saves(self):
        support.write_log(self.folder, count=3000, parts=6)
        script = """
            for _ in range(3):
                report = exe.train_from_dataset(main, queue(slots))
            out = os.path.join(folder, "of_%d" % _ranks.size())
            millrace.save_inference_model(out, slots[1:], p, exe)
            millrace.save_persistables(exe, out + "_vars", main)
            told_auc = exe.infer_from_dataset(test, queue(slots), fetch_list=[auc], print_period=0).metrics
            with open(files[0]) as log:
                lines = [line.split(" ", 2)[2] for line in log]
            scores = millrace.Predictor(out).predict_lines("".join(lines))
            other = millrace.Scope()
            tell(scores=np.asarray(scores).ravel().tolist(), auc=list(told_auc.values())[0])
        """
        two = self.run_script(script)
        one, = self.run_script(script, ranks=0)
        self.assertEqual(two[0], two[1])
        self.assertGreater(one["auc"], 0.65)
        self.assertGreater(two[0]["auc"], 0.65)
        self.assertLess(np.abs(np.array(one["scores"]) - np.array(two[0]["scores"])).mean(), 0.05)
        for kind in ("", "_vars"):
            two, one = (sorted(os.listdir(os.path.join(self.folder, "of_%d%s" % (ranks, kind)))) for ranks in (2, 1))
            self.assertEqual(two, one)

    def test_in_step_any_number_of_ranks_comes_to_the_same_bytes(self):
        support.write_log(self.folder, count=900, parts=8)
        script = """
            main, startup, test, slots, p, loss, auc = build(counts=False)
            exe.run(startup)
            main._dist = "update: SYNC micro_batches: 4"
            report = exe.train_from_dataset(main, queue(slots))
            tell(examples=report.examples, parameters=parameters(main))
        """
        two, four = self.run_script(script), self.run_script(script, ranks=4)
        self.assertEqual(two[0]["examples"], 900)
        self.assertEqual(two[0], two[1])
        self.assertEqual(two[0], four[3])
        self.run_script("""
            main, startup, test, slots, p, loss, auc = build(counts=False)
            exe.run(startup)
            dataset = millrace.InMemoryDataset()
            dataset.set_use_var(slots)
            dataset.set_filelist(files)
            dataset.load_into_memory()
            main._dist = "update: SYNC micro_batches: 4"
            exe.train_from_dataset(main, dataset)
        """, fails=True)
        self.assertIn("dist.update: SYNC: not supported yet: an InMemoryDataset that was loaded before", self.err)

    def test_a_script_of_fleet_trains_one_model(self):
        support.write_log(self.folder, count=300, parts=3)
        told = self.run_script("""
            from millrace import fleet
            from millrace.fleet import DistributedStrategy
            fleet.init()
            main, startup = millrace.Program(), millrace.Program()
            with millrace.program_guard(main, startup):
                label = layers.data("label", [1], dtype="int64")
                dense = layers.data("dense", [2], dtype="float32")
                rest = [layers.data("C%d" % i, [1], dtype="int64", lod_level=1) for i in (1, 2, 3)]
                y = layers.fc(dense, 2, act="softmax")
                loss = layers.mean(layers.cross_entropy(y, label))
                strategy = DistributedStrategy()
                strategy.a_sync = False
                fleet.distributed_optimizer(optimizer.SGD(learning_rate=0.1), strategy).minimize(loss)
            exe.run(fleet.startup_program)
            report = exe.train_from_dataset(fleet.main_program, queue([label, dense] + rest))
            if fleet.is_first_worker():
                fleet.save_persistables(exe, os.path.join(folder, "saved"))
            fleet.barrier_worker()
            tell(examples=report.examples, saved=sorted(os.listdir(os.path.join(folder, "saved"))), in_step=main._dist)
        """)
        self.assertEqual(told[0], told[1])
        self.assertEqual(told[0]["examples"], 300)
        self.assertEqual(told[0]["in_step"], "update: SYNC micro_batches: 2")
        self.assertIn("MANIFEST", told[0]["saved"])

    def test_ranks_of_a_geo_strategy_train_on_copies(self):
        support.write_log(self.folder, count=600, parts=5)
        told = self.run_script("""
            from millrace import fleet
            from millrace.fleet import StrategyFactory
            fleet.init()
            main, startup = millrace.Program(), millrace.Program()
            with millrace.program_guard(main, startup):
                label = layers.data("label", [1], dtype="int64")
                dense = layers.data("dense", [2], dtype="float32")
                ids = [layers.data("C%d" % i, [1], dtype="int64", lod_level=1) for i in (1, 2, 3)]
                rows = [layers.embedding(one, [None, 4], param_attr=millrace.ParamAttr(name="rows")) for one in ids]
                y = layers.fc(layers.concat([layers.sequence_pool(one, "sum") for one in rows] + [dense], axis=1), 2, act="softmax")
                loss = layers.mean(layers.cross_entropy(y, label))
                fleet.distributed_optimizer(optimizer.Adagrad(learning_rate=0.1), StrategyFactory.create_geo_strategy(5)).minimize(loss)
            exe.run(fleet.startup_program)
            report = exe.train_from_dataset(fleet.main_program, queue([label, dense] + ids), fetch_list=[loss])
            tell(examples=report.examples, dist=main._dist, parameters=parameters(main))
        """)
        self.assertEqual(told[0], told[1])
        self.assertEqual(told[0]["examples"], 600)
        self.assertEqual(told[0]["dist"], "update: GEO geo_steps: 5")
        self.run_script("""
            main, startup = millrace.Program(), millrace.Program()
            with millrace.program_guard(main, startup):
                label = layers.data("label", [1], dtype="int64")
                ids = layers.data("C1", [1], dtype="int64", lod_level=1)
                dense = layers.data("dense", [2], dtype="float32")
                rest = [layers.data("C%d" % i, [1], dtype="int64", lod_level=1) for i in (2, 3)]
                rows = layers.sequence_pool(layers.embedding(ids, [None, 4], param_attr=millrace.ParamAttr(name="rows")), "sum")
                loss = layers.mean(layers.cross_entropy(layers.fc(rows, 2, act="softmax"), label))
                optimizer.Adam(learning_rate=0.1, lazy_mode=True).minimize(loss)
            main._dist = "update: GEO geo_steps: 5"
            exe.run(startup)
            exe.train_from_dataset(main, queue([label, dense, ids] + rest))
        """, fails=True)
        self.assertIn('dist.update: GEO: table "rows": what ranks learn apart adds up with sgd, adagrad and ftrl', self.err)

    def test_what_was_saved_is_trained_on(self):
        support.write_log(self.folder, count=800, parts=4)
        told = self.run_script("""
            exe.train_from_dataset(main, queue(slots))
            out = os.path.join(folder, "saved")
            millrace.save_persistables(exe, out, main)
            millrace.save_checkpoint(exe, out + "_checkpoint", main)
            saved = parameters(main)
            exe.train_from_dataset(main, queue(slots))
            changed = parameters(main)
            millrace.load_persistables(exe, out, main)
            loaded = parameters(main)
            exe.train_from_dataset(main, queue(slots))
            millrace.load_checkpoint(exe, out + "_checkpoint", main)
            again = parameters(main)
            report = exe.train_from_dataset(main, queue(slots))
            tell(saved=saved, loaded=loaded, again=again, differs=changed != saved, examples=report.examples)
        """)
        self.assertEqual(told[0], told[1])
        self.assertTrue(told[0]["differs"])
        self.assertEqual(told[0]["loaded"], told[0]["saved"])
        self.assertEqual(told[0]["again"], told[0]["saved"])
        self.assertEqual(told[0]["examples"], 800)

    def test_rank_0_alone_may_save(self):
        support.write_log(self.folder, count=100, parts=2)
        self.run_script("""
            exe.train_from_dataset(main, queue(slots))
            if _ranks.leads():
                millrace.save_persistables(exe, os.path.join(folder, "saved"), main)
            exe.train_from_dataset(main, queue(slots))
        """)
        self.assertIn("MANIFEST", os.listdir(os.path.join(self.folder, "saved")))
        self.run_script("""
            if not _ranks.leads():
                millrace.save_persistables(exe, os.path.join(folder, "other"), main)
            exe.train_from_dataset(main, queue(slots))
        """, fails=True)
        self.assertIn("rank 0 does this for all ranks, and has gone on to train_from_dataset without it", self.err)

    def test_lists_of_files_are_shared_out_or_each_rank_has_its_own(self):
        support.write_log(self.folder, count=400, parts=4)
        told = self.run_script("""
            mine = files[_ranks.rank()::2]
            report = exe.train_from_dataset(main, queue(slots, mine))
            try:
                exe.train_from_dataset(main, queue(slots, files[:1 + _ranks.rank()]))
            except millrace.ConfigError as error:
                tell(examples=report.examples, error=str(error))
        """)
        for one in told:
            self.assertEqual(one["examples"], 400)
            self.assertIn("give all ranks the same list, which they share out, or each rank files of its own", one["error"])

    def test_a_rank_without_files_trains_with_those_that_have_some(self):
        support.write_log(self.folder, count=400, parts=2)
        told = self.run_script("""
            mine = files[_ranks.rank():_ranks.rank() + 1]
            report = exe.train_from_dataset(main, queue(slots, mine))
            dataset = memory(slots, mine)
            loaded = dataset.load_into_memory()
            own = exe.train_from_dataset(main, dataset).examples
            dataset.global_shuffle()
            shuffled = exe.train_from_dataset(main, dataset).examples
            inferred = exe.infer_from_dataset(test, dataset).examples
            alone = exe.infer_from_dataset(test, queue(slots, mine), fetch_list=[loss])
            tell(files=report.data["files"], examples=[report.examples, own, shuffled, inferred], loaded=loaded,
                 size=dataset.get_memory_data_size(), alone=alone.examples)
        """, ranks=4)
        self.assertEqual([one["loaded"] for one in told], [200, 200, 0, 0])
        self.assertEqual([one["alone"] for one in told], [200, 200, 0, 0])
        self.assertEqual(sum(one["size"] for one in told), 400)
        self.assertGreater(min(one["size"] for one in told), 0)
        for one in told:
            self.assertEqual((one["examples"], one["files"]), ([400] * 4, 2))
        self.assertEqual(self.err.count("infer_from_dataset: there was no row to read, as this rank has no files"), 2, self.err)
        self.assertNotIn("left out", self.err)

    def test_ranks_of_which_none_has_files_are_all_told_so(self):
        told = self.run_script("""
            errors = []
            dataset = millrace.InMemoryDataset()
            dataset.set_use_var(slots)
            for call in (lambda: exe.train_from_dataset(main, queue(slots, [])), dataset.load_into_memory):
                try:
                    call()
                except millrace.ConfigError as error:
                    errors.append(str(error))
            _ranks.barrier()
            tell(errors=errors)
        """)
        for one in told:
            self.assertEqual(one["errors"], ["the dataset has no files on any rank: call set_filelist"] * 2)

    def test_a_list_of_two_ranks_beside_one_without_files_is_refused(self):
        support.write_log(self.folder, count=40, parts=2)
        told = self.run_script("""
            try:
                exe.train_from_dataset(main, queue(slots, files if _ranks.rank() else []))
            except millrace.ConfigError as error:
                tell(error=str(error))
        """, ranks=3)
        for one in told:
            self.assertRegex(one["error"], "files of ranks 1 and 2 both have .*part-0.*, and differ; give all ranks the same list, which they share out, or each rank files of its "
                                           "own, or none")

    def test_rows_in_memory_stay_with_the_rank_that_loads_them_until_they_are_shuffled(self):
        support.write_log(self.folder, count=500, parts=5)
        script = """
            dataset = memory(slots)
            loaded = dataset.load_into_memory()
            first = exe.train_from_dataset(main, dataset).examples
            dataset.global_shuffle()
            own, every = dataset.get_memory_data_size(), dataset.get_memory_data_size(fleet=millrace.fleet)
            second = exe.train_from_dataset(main, dataset).examples
            dataset.release_memory()
            tell(loaded=loaded, first=first, own=own, all=every, second=second)
        """
        told = self.run_script(script)
        self.assertEqual([one["loaded"] for one in told], [300, 200])
        self.assertNotIn(told[0]["own"], (300, 200))
        self.assertEqual(told[0]["own"] + told[1]["own"], 500)
        for one in told:
            self.assertEqual((one["first"], one["second"], one["all"]), (500, 500, 500))
        self.assertEqual(sum(one["loaded"] for one in self.run_script(script, ranks=7)), 500)  # more ranks than files

    def test_rows_in_memory_are_inferred_by_the_ranks_that_have_them(self):
        support.write_log(self.folder, count=500, parts=5)
        script = """
            dataset = memory(slots)
            dataset.load_into_memory()
            exe.train_from_dataset(main, dataset)
            trained = lambda: {name: value for name, value in parameters(main).items() if not name.startswith("auc_stat")}
            before = trained()
            report = exe.infer_from_dataset(test, dataset, fetch_list=[auc])
            again = exe.infer_from_dataset(test, queue(slots), fetch_list=[auc])
            tell(examples=report.examples, alone=again.examples, same=trained() == before, files=report.data["files"],
                 aucs=[one.metrics[auc.name] for one in (report, again)])
        """
        told = self.run_script(script)
        for one in told:
            self.assertEqual((one["examples"], one["alone"], one["same"]), (500, 500, True))
            self.assertEqual(*one["aucs"])

    def test_what_rank_0_alone_shows_need_not_be_asked_of_all(self):
        support.write_log(self.folder, count=100, parts=2)
        told = self.run_script("""
            shown = dict(fetch_list=[loss], print_period=1, debug=True) if _ranks.rank() == 0 else {}
            tell(examples=exe.train_from_dataset(main, queue(slots), **shown).examples)
        """)
        self.assertEqual([one["examples"] for one in told], [100, 100])

    def test_what_was_counted_is_gone_with_the_variables_that_counted_it(self):
        support.write_log(self.folder, count=400, parts=4)
        told = self.run_script("""
            from millrace import fleet
            fleet.init()
            states = main.auc_states[2:]
            def counted():
                return int(sum(fleet.metrics.sum(name).sum() for name in states))
            mine = queue(slots, fleet.split_files(files))
            exe.train_from_dataset(main, queue(slots))
            millrace.save_persistables(exe, os.path.join(folder, "saved"), main)
            exe.infer_from_dataset(test, mine)
            both = counted()
            millrace.load_persistables(exe, os.path.join(folder, "saved"), main)
            loaded = counted()
            exe.infer_from_dataset(test, mine)
            exe.run(startup)
            begun = counted()
            exe.train_from_dataset(main, queue(slots))
            tell(counted=[both, loaded, begun, counted()])
        """)
        for one in told:
            self.assertEqual(one["counted"], [800, 400, 0, 400])

    def test_counts_in_floats_and_those_of_ranks_alone_are_added_up(self):
        support.write_log(self.folder, count=600, parts=5)
        told = self.run_script("""
            from millrace import fleet
            fleet.init()
            with millrace.program_guard(main, startup):
                seen = layers.create_global_var([1], 0, "float32", persistable=True, name="seen")
                layers.assign(seen + layers.reduce_sum(layers.cast(slots[0], "float32") * 0.0 + 1.0), output=seen)
            test = main.clone(for_test=True)
            exe.run(startup)
            states = main.auc_states[2:]
            def counts():
                return [float(fleet.metrics.sum(seen)[0])] + [int(sum(fleet.metrics.sum(name).sum() for name in states))]
            def clear():
                for name in states:
                    fleet.util.set_zero(name)
                fleet.util.set_zero("seen", param_type="float32")
            exe.train_from_dataset(main, queue(slots), thread=2)
            trained = counts()
            mine = queue(slots, fleet.split_files(files))
            exe.infer_from_dataset(test, mine)
            both = counts()
            exe.train_from_dataset(main, queue(slots))
            all_three = counts()
            clear()
            exe.infer_from_dataset(test, mine)
            tell(trained=trained, both=both, all_three=all_three, inferred=counts())
        """, ranks=3)
        self.assertEqual(told[0], {"trained": [600, 600], "both": [1200, 1200], "all_three": [1800, 1800], "inferred": [600, 600]})
        self.assertEqual(told[1:], [told[0]] * 2)

    def test_an_exception_on_one_rank_ends_all(self):
        support.write_log(self.folder, count=100, parts=2)
        for where, message in (("_ranks.barrier()", "barrier"), ("exe.train_from_dataset(main, queue(slots))", "train")):
            self.run_script("""
                if _ranks.rank() == 1:
                    raise ValueError("the mistake of one")
                %s
            """ % where, fails=True)
            self.assertIn("ValueError: the mistake of one", self.err)
            self.assertNotIn("MPI_ERR", self.err)

    def test_a_bad_line_ends_all_with_its_place(self):
        support.write_log(self.folder, count=200, parts=2)
        with open(os.path.join(self.folder, "part-1"), "a", encoding="utf-8") as file:
            file.write("1 x\n")
        told = self.run_script("""
            try:
                exe.train_from_dataset(main, queue(slots))
            except millrace.DataError as error:
                tell(error=str(error))
                raise
        """, fails=True)
        for one in told:
            self.assertRegex(one["error"], r"part-1:101:3: slot \"label\"")
        self.assertEqual(sum("rank " in one["error"] for one in told), 1, told)  # the other rank says which one it was

    def test_ctrl_c_on_one_rank_ends_all(self):
        support.write_log(self.folder, count=2000, parts=4)
        process = self.start("""
            tell(pid=os.getpid())
            while True:
                exe.train_from_dataset(main, queue(slots))
        """, 2)
        self.addCleanup(process.kill)
        paths = [os.path.join(self.folder, "told.%d" % r) for r in (0, 1)]
        while not all(os.path.exists(path) and support.read(path) for path in paths):
            self.assertIsNone(process.poll(), "it ended")
            time.sleep(0.05)
        time.sleep(1)
        os.kill(json.loads(support.read(paths[1]))["pid"], signal.SIGINT)
        out, err = process.communicate(timeout=120)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("KeyboardInterrupt", err)
        self.assertRegex(err, "interrupted|has ended before the others")

    def test_what_ends_a_job_of_ranks_leaves_a_checkpoint(self):
        support.write_log(self.folder, count=4000, parts=4)
        support.write(self.folder + "/job.prototxt", ENDED_JOB % self.folder)
        for sent in (signal.SIGUSR1, signal.SIGINT):
            out = "%s/out-%d" % (self.folder, sent)
            process = self.start("""
                millrace.Job(folder + "/job.prototxt", output_dir=%r).run()
            """ % out, 2)
            self.addCleanup(process.kill)
            metrics = out + "/metrics.jsonl"
            while not os.path.exists(metrics) or os.path.getsize(metrics) == 0:
                self.assertIsNone(process.poll(), "it ended")
                time.sleep(0.05)
            process.send_signal(sent)
            _, err = process.communicate(timeout=120)
            self.assertNotEqual(process.returncode, 0)
            self.assertIn("KeyboardInterrupt", err)
            self.assertTrue([name for name in os.listdir(out + "/checkpoints") if name.startswith("step-")], err)

    def test_ranks_that_do_not_do_the_same_are_told_so(self):
        support.write_log(self.folder, count=100, parts=2)
        self.run_script("""
            if _ranks.rank() == 1:
                _ranks.barrier()
            exe.train_from_dataset(main, queue(slots))
        """, fails=True)
        self.assertRegex(self.err, r"rank 0 \(.*\) is in train_from_dataset and rank 1 \(.*\) in barrier; let all ranks make the same calls")
        self.run_script("exe.train_from_dataset(main, queue(slots, batch=16 + _ranks.rank()))", fails=True)
        self.assertIn('here "batch_size: 17", there "batch_size: 16"', self.err)
        self.run_script("""
            main, startup, test, slots, p, loss, auc = build(7 + _ranks.rank())
            exe.run(startup)
            exe.train_from_dataset(main, queue(slots))
        """, fails=True)
        self.assertIn('input files: here "seed: 8"', self.err)

    def test_programs_that_would_train_a_model_a_rank_are_refused(self):
        told = self.run_script("""
            feed = {"label": [[1]], "dense": [[0.5, 1]], "C1": [[3]], "C2": [[4]], "C3": [[5]]}
            before = exe.run(test, feed=feed, fetch_list=[p])[0]
            tell(before=before.tolist())
            _ranks.barrier()  # the first that fails ends the other
            exe.run(main, feed=feed, fetch_list=[loss])
        """, fails=True)
        self.assertIn("run: the program updates parameters, and each rank would train a model of its own", self.err)
        self.assertEqual(told[0], told[1])

    def test_a_program_with_readers_is_not_trained_once_a_rank(self):
        self.run_script("""
            from millrace import reader
            made, queue = millrace.py_array_reader(3, [[-1, 2], [-1, 1]], millrace.CPUPlace())
            x, y = reader.read_file(made)
            optimizer.SGD(learning_rate=0.1).minimize(layers.mean(layers.square_error_cost(layers.fc(x, 1), y)))
            exe.run(millrace.default_startup_program())
            exe.train_from_reader()
        """, fails=True)
        self.assertIn("a program that feeds itself, as each rank would read all that its readers read; train it in one process", self.err)

    def test_a_table_of_two_scopes_is_refused(self):
        self.run_script("""
            with millrace.scope_guard(millrace.Scope()):
                exe.run(startup)
        """, fails=True)
        self.assertIn('table "rows" is in another scope', self.err)

    def test_a_job_runs_on_all_ranks(self):
        support.write_log(self.folder, count=600, parts=3)
        support.write(os.path.join(self.folder, "job.prototxt"),
                      (support.WIDE_DEEP % {"folder": self.folder}).replace("update_mode: SERIAL\n", ""))
        told = self.run_script("""
            job = millrace.Job(os.path.join(folder, "job.prototxt"), output_dir=os.path.join(folder, "out"))
            report = job.run()
            table = job.parameter("deep")
            tell(examples=report.examples, auc=report.metrics["auc"], rows=sorted(table.keys.tolist()))
        """)
        self.assertEqual(told[0], told[1])
        self.assertEqual(told[0]["examples"], 600)
        self.assertIn('"ranks": 2', support.read(os.path.join(self.folder, "out", "run.json")))
        self.run_script("""
            millrace.Job(os.path.join(folder, "job.prototxt"), overrides=["seed=%d" % _ranks.rank()])
        """, fails=True)
        self.assertIn('another job than rank 0, or sees other input files: here "seed: 1", there ', self.err)

    def test_without_the_plugin_no_models_are_trained(self):
        support.write_log(self.folder, count=100, parts=2)
        package = os.path.join(self.folder, "package")
        shutil.copytree(PACKAGE, os.path.join(package, "millrace"))
        os.remove(os.path.join(package, "millrace", "libmillrace_mpi.so"))
        told = self.run_script("""
            exe.train_from_dataset(main, queue(slots))
            tell(trained=True)
        """, fails=True, PYTHONPATH=package)
        self.assertIn("NotFoundError: this Millrace was built without MPI", self.err)
        self.assertEqual(told, [None, None])


if __name__ == "__main__":
    unittest.main()
