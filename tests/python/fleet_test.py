"""Fleet: who a process is, what each verb does, and what is refused with what to do instead."""

import contextlib
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import program_test
import support

import numpy as np

import millrace
from millrace import _ranks, fleet, layers, optimizer
from millrace.fleet import (DistributedStrategy, DistributeTranspilerConfig, Fleet, FleetUtil, MPISymetricRoleMaker,
                            PaddleCloudRoleMaker, Role, StrategyFactory, UserDefinedRoleMaker)

TWO = ["127.0.0.1:6170", "127.0.0.1:6171"]


def ranks(rank, size):
    """As if mpirun had started so many."""
    return mock.patch.multiple(_ranks, rank=lambda: rank, size=lambda: size)


def environment(**variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PADDLE_", "TRAINING_ROLE", "POD_IP"))}
    return mock.patch.dict(os.environ, {**kept, **variables}, clear=True)


def said(call):
    """What a call writes to standard output and error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        call()
    return out.getvalue(), err.getvalue()


class RoleMakerTest(unittest.TestCase):
    def test_a_trainer_by_itself_is_the_first_of_one(self):
        for maker in (UserDefinedRoleMaker(0, Role.WORKER, 1, TWO), MPISymetricRoleMaker()):
            maker.generate_role()
            self.assertTrue(maker.is_worker() and maker.is_first_worker() and not maker.is_server())
            self.assertEqual((maker.worker_index(), maker.worker_num(), maker.role_id()), (0, 1, 0))
        maker = UserDefinedRoleMaker(server_endpoints=TWO, worker_endpoints=["h:1"])
        self.assertEqual((maker.server_num(), maker.get_pserver_endpoints(), maker.get_trainer_endpoints()), (2, TWO, ["h:1"]))
        self.assertIn("role: WORKER, current_id: 0, worker_num: 1", maker.to_string())

    def test_trainers_that_were_started_by_themselves_are_refused(self):
        for maker in (UserDefinedRoleMaker(1, Role.WORKER, 4, TWO), UserDefinedRoleMaker(0, worker_endpoints=["a:1", "b:1", "c:1", "d:1"])):
            with self.assertRaisesRegex(millrace.ConfigError, r"told of 4 trainers, and this process was started by itself.*a model of "
                                                              r"its own.*mpirun -n 4 python .*\.py; or say 1 trainer"):
                maker.generate_role()
        with environment(PADDLE_TRAINERS_NUM="3", PADDLE_TRAINER_ID="2"):
            with self.assertRaisesRegex(millrace.ConfigError, "PADDLE_TRAINERS_NUM is 3 trainers.*mpirun -n 3 python"):
                PaddleCloudRoleMaker().generate_role()
        with environment(PADDLE_TRAINER_ENDPOINTS="a:1,b:1"):
            with self.assertRaisesRegex(millrace.ConfigError, "PADDLE_TRAINER_ENDPOINTS has 2 trainers.*mpirun -n 2 python"):
                PaddleCloudRoleMaker(is_collective=True).generate_role()

    def test_trainers_are_the_ranks(self):
        with ranks(2, 4):
            for maker in (UserDefinedRoleMaker(0, Role.WORKER, 4, TWO), UserDefinedRoleMaker(), MPISymetricRoleMaker()):
                maker.generate_role()
                self.assertEqual((maker.worker_index(), maker.worker_num(), maker.is_first_worker()), (2, 4, False))
            with self.assertRaisesRegex(millrace.ConfigError, "told of 3 trainers, and mpirun started 4: start as many .mpirun -n 3"):
                UserDefinedRoleMaker(0, Role.WORKER, 3).generate_role()
            with self.assertRaisesRegex(millrace.ConfigError, "as a SERVER .TRAINING_ROLE=PSERVER.*trainers alone: mpirun -n 4"):
                UserDefinedRoleMaker(0, Role.SERVER, 4, TWO).generate_role()
            with environment(PADDLE_TRAINER_ID="0"):
                with self.assertRaisesRegex(millrace.ConfigError, "PADDLE_TRAINER_ID is 0, and this process is rank 2 of 4"):
                    PaddleCloudRoleMaker().generate_role()
            with environment(PADDLE_TRAINER_ID="2", PADDLE_TRAINERS_NUM="4"):
                PaddleCloudRoleMaker().generate_role()

    def test_the_environment_says_which_server_it_is(self):
        with environment(TRAINING_ROLE="PSERVER", PADDLE_PSERVERS_IP_PORT_LIST=",".join(TWO), POD_IP="127.0.0.1",
                         PADDLE_PORT="6171", PADDLE_TRAINERS_NUM="8"):
            maker = PaddleCloudRoleMaker()
            maker.generate_role()
            self.assertTrue(maker.is_server() and not maker.is_worker() and not maker.is_first_worker())
            self.assertEqual((maker.server_index(), maker.server_num(), maker.worker_num(), maker.role_id()), (1, 2, 8, 1))
            self.assertTrue(PaddleCloudRoleMaker(is_collective=True).is_worker())

    def test_mistakes_are_named(self):
        for arguments, message in (
                (dict(current_id=-1), "current_id: at least 0, not -1"),
                (dict(current_id=True), "give is_collective by its name"),
                (dict(role=7), "role is Role.WORKER or Role.SERVER, not 7"),
                (dict(worker_num="2"), "worker_num: a whole number, not '2'"),
                (dict(server_endpoints="a:1"), "server_endpoints: a list of addresses, not 'a:1'"),
                (dict(server_endpoints=["a:1", "a:1"]), "server_endpoints: a:1 is there twice"),
                (dict(server_endpoints=[1]), "server_endpoints: a str, not 1"),
                (dict(current_id=2, role=Role.SERVER, server_endpoints=TWO), "current_id is 2, and there are 2 server_endpoints"),
                (dict(current_id=4, worker_num=4), "current_id is 4, and there are 4 trainers")):
            with self.assertRaisesRegex(millrace.ConfigError, message):
                UserDefinedRoleMaker(**arguments)
        for variables, message in ((dict(TRAINING_ROLE="WORKER"), "TRAINING_ROLE is TRAINER or PSERVER, not 'WORKER'"),
                                   (dict(PADDLE_TRAINERS_NUM="two"), "PADDLE_TRAINERS_NUM is a whole number, not 'two'"),
                                   (dict(PADDLE_TRAINER_ID="-1"), "PADDLE_TRAINER_ID is a whole number, not '-1'")):
            with environment(**variables), self.assertRaisesRegex(millrace.ConfigError, message):
                PaddleCloudRoleMaker()


class StrategyTest(unittest.TestCase):
    def test_both_words_say_whether_ranks_wait(self):
        one, two = DistributeTranspilerConfig(), DistributedStrategy()
        self.assertEqual((one._is_sync(), two._is_sync()), (True, False))
        one.sync_mode, two.a_sync = False, False
        self.assertEqual((one._is_sync(), two._is_sync()), (False, True))
        self.assertEqual([made()._is_sync() for made in (
            StrategyFactory.create_sync_strategy, StrategyFactory.create_async_strategy,
            StrategyFactory.create_half_async_strategy)], [True, False, False])

    def test_what_cuts_parameters_over_servers_is_taken(self):
        strategy = DistributeTranspilerConfig()
        strategy.slice_var_up, strategy.min_block_size, strategy.split_method = False, 4096, object
        strategy.runtime_split_send_recv = strategy.half_async = True
        strategy.geo_sgd_mode, strategy.mode = False, "pserver"
        two = DistributedStrategy()
        two.a_sync_configs = {"k_steps": 0, "send_queue_size": 32, "thread_pool_size": 4}
        two.amp = False

    def test_what_would_train_otherwise_is_refused(self):
        for made, name, value, message in (
                (DistributeTranspilerConfig, "geo_sgd_mode", 1, "geo_sgd_mode: a bool, not 1"),
                (DistributeTranspilerConfig, "mode", "nccl2", "mode = 'nccl2': ranks are processes on CPUs"),
                (DistributeTranspilerConfig, "enable_dc_asgd", True, "gradients are applied as they come"),
                (DistributeTranspilerConfig, "sync_mode", 1, "sync_mode: a bool, not 1"),
                (DistributeTranspilerConfig, "min_block_size", True, "min_block_size: a int, not True"),
                (DistributeTranspilerConfig, "sync_moed", True, "sync_moed: there is no such setting; there are .*sync_mode"),
                (DistributedStrategy, "a_sync_configs", {"k_steps": 2.5}, r'a_sync_configs\["k_steps"\]: batches between .*, not 2.5'),
                (DistributedStrategy, "a_sync_configs", {"ksteps": 1}, "there is no 'ksteps' here; there are k_steps"),
                (DistributedStrategy, "a_sync_configs", {"thread_pool_size": "x"},
                 r'a_sync_configs\["thread_pool_size"\]: a whole number, not .x.'),
                (DistributedStrategy, "a_sync_configs", {"launch_barrier": "no"}, r'\["launch_barrier"\]: True or False, not .no.'),
                (DistributedStrategy, "a_sync", None, "a_sync: a bool, not None"),
                (DistributedStrategy, "amp", True, "amp = True: it is of collective or GPU training"),
                (DistributedStrategy, "adam_d2sum", True, "Adam here is that of the optimizer"),
                (DistributedStrategy, "trainer_desc_configs", {"dump_fields": ["x"]}, "what a run dumps")):
            with self.subTest(name), self.assertRaisesRegex(millrace.ConfigError, message):
                setattr(made(), name, value)
        sly = DistributedStrategy()
        sly.a_sync_configs["k_steps"] = "3"
        self.assertEqual(DistributedStrategy().a_sync_configs, {})
        job = Fleet()
        job.init(UserDefinedRoleMaker())
        with self.assertRaisesRegex(millrace.ConfigError, "k_steps"):
            job.distributed_optimizer(optimizer.SGD(0.1), sly)

    def test_geo_has_ranks_exchange_every_so_many_batches(self):
        two = DistributedStrategy()
        two.a_sync_configs = {"k_steps": 400}
        self.assertEqual(two._update(), ("GEO", 400))
        two.a_sync = False
        self.assertEqual(two._update(), ("SYNC", 0))
        two.a_sync_configs = {"k_steps": np.int64(8), "send_queue_size": np.int32(4), "launch_barrier": 0}
        self.assertEqual(two._geo_steps(), 8)
        self.assertEqual(StrategyFactory.create_geo_strategy(np.int64(25))._update(), ("GEO", 25))
        one = StrategyFactory.create_geo_strategy(25)
        self.assertEqual(one._update(), ("GEO", 25))
        self.assertEqual(repr(one), "DistributeTranspilerConfig(GEO every 25 batches)")
        job = Fleet()
        job.init(UserDefinedRoleMaker())
        one.sync_mode = True
        with self.assertRaisesRegex(millrace.ConfigError, "geo_sgd_mode exchanges every few batches.*sync_mode = False"):
            job.distributed_optimizer(optimizer.SGD(0.1), one)
        with self.assertRaisesRegex(millrace.ConfigError, "geo_sgd_need_push_nums: batches .* not 0"):
            StrategyFactory.create_geo_strategy(0)


class FleetTest(program_test.Fresh):
    def setUp(self):
        super().setUp()
        with environment():
            self.job = Fleet()
            self.job.init(UserDefinedRoleMaker(0, Role.WORKER, 1, TWO))
        self.exe = self.job._executor
        self.rows = support.write_log(self.folder, 64, parts=2)

    def model(self, strategy=None):
        self.label, self.dense = layers.data("label", [1], dtype="int64"), layers.data("dense", [2])
        self.slots = [layers.data("C%d" % i, [1], dtype="int64", lod_level=1) for i in (1, 2, 3)]
        parts = self.parts = [layers.sequence_pool(layers.embedding(slot, [size, 4], param_attr=name), "sum")
                              for slot, size, name in zip(self.slots, (None, 40, None), ("deep", "short", "deep"))]
        self.pooled = layers.concat(parts + [self.dense], axis=1)
        self.predict = layers.fc(self.pooled, 2, act="softmax", param_attr="w")
        self.loss = layers.mean(layers.cross_entropy(self.predict, self.label))
        self.auc, self.batch_auc, self.states = layers.auc(self.predict, self.label)
        self.job.distributed_optimizer(optimizer.Adagrad(0.1), strategy).minimize(self.loss)

    def variables(self):
        return [self.label, self.dense, *self.slots]

    def train(self, **arguments):
        return self.exe.train_from_dataset(program=self.job.main_program, dataset=self.dataset(self.variables()), **arguments)

    def test_it_trains_what_was_minimized(self):
        self.model()
        self.assertIs(self.job.main_program, self.main)
        self.assertIs(self.job.startup_program, self.startup)
        self.job.init_worker()
        self.exe.run(self.job.startup_program)
        report = self.train(fetch_list=[self.loss, self.auc], fetch_info=["cost", "auc"], print_period=1, verbose=False)
        self.assertEqual(report.examples, 64)
        self.assertEqual(sorted(report.history[0]), ["auc", "batch", "cost", "step"])
        self.job.stop_worker()

    def test_a_program_of_its_own_has_its_startup_program(self):
        main, startup = millrace.Program(), millrace.Program()
        with millrace.program_guard(main, startup):
            loss = layers.mean(layers.fc(layers.data("x", [2]), 1))
        found = self.job.distributed_optimizer(optimizer.SGD(0.1)).minimize([loss], startup_programs=[startup])
        self.assertEqual([pair[1].name[-5:] for pair in found[1]], ["@GRAD", "@GRAD"])
        self.assertIs(self.job.startup_program, startup)
        again = millrace.Program()
        with millrace.program_guard(again, millrace.Program()):
            loss = layers.mean(layers.fc(layers.data("x", [2]), 1, param_attr="v"))
        again.random_seed = 5
        self.job.distributed_optimizer(optimizer.SGD(0.1))
        self.job.minimize(loss)
        self.exe.run(self.job.startup_program)
        self.assertEqual(millrace.global_scope().get("v").shape, (2, 1))
        self.assertEqual(self.job.startup_program.random_seed, 5)

    def test_debug_and_the_print_period_say_what_they_say_elsewhere(self):
        self.model()
        self.exe.run(self.job.startup_program)
        out, err = said(lambda: self.train(fetch_list=[self.loss, self.auc], fetch_info=["cost", "auc"], print_period=2, debug=True))
        self.assertEqual([line.split("cost")[0].split("batch: ")[1] for line in out.splitlines()], ["[2], ", "[4], "])
        self.assertEqual(out.count(" auc[1]:["), 2)
        self.assertIn("op[0]->Type(): ", err)
        self.assertIn('class_name: "MultiTrainer"', err)

    def test_a_script_of_paddle_2_trains(self):
        with environment(PADDLE_TRAINERS_NUM="1"):
            fleet.init(fleet.PaddleCloudRoleMaker())
        x, label = layers.data("dense", [2]), layers.data("label", [1], dtype="int64")
        slots = [layers.data("C%d" % i, [1], dtype="int64", lod_level=1) for i in (1, 2, 3)]
        loss = layers.mean(layers.cross_entropy(layers.fc(x, 2, act="softmax", param_attr="w"), label))
        strategy = fleet.DistributedStrategy()
        strategy.a_sync = True
        strategy.a_sync_configs = {"launch_barrier": False}
        fleet.distributed_optimizer(optimizer.SGD(0.1), strategy).minimize(loss)
        self.assertTrue(fleet.is_worker() and not fleet.is_server())
        exe = millrace.Executor(millrace.CPUPlace())
        exe.run(millrace.default_startup_program())
        fleet.init_worker()
        dataset = self.dataset([label, x, *slots])
        dataset.set_filelist(fleet.util.get_file_shard([self.path("part-0"), self.path("part-1")]))
        report = exe.train_from_dataset(millrace.default_main_program(), dataset, fetch_list=[loss], print_period=0)
        self.assertEqual(report.examples, 64)
        fleet.save_persistables(exe, self.path("vars"))
        fleet.stop_worker()
        self.assertEqual(sorted(os.listdir(self.path("vars")))[:2], ["MANIFEST", "fc_0.b_0"])

    def test_a_server_has_nothing_to_serve_and_ends_as_a_success(self):
        job = Fleet()
        job.init(UserDefinedRoleMaker(1, Role.SERVER, 5, TWO))
        self.assertTrue(job.is_server() and not job.is_worker() and not job.is_first_worker())
        self.assertEqual((job.server_index(), job.server_num(), job.worker_num()), (1, 2, 5))
        self.assertEqual(job.server_endpoints(to_string=True), ",".join(TWO))
        job.init_server()
        def run():
            with self.assertRaises(SystemExit) as ended:
                job.run_server()
            self.assertEqual(ended.exception.code, 0)
        out, err = said(run)
        self.assertEqual((out, err.count("\n")), ("", 1))
        self.assertIn("nothing to serve", err)
        with self.assertRaisesRegex(millrace.ConfigError, 'init_server."old".: a process that was started as a SERVER has no rows here.*'
                                                          'in front of "if fleet.is_server'):
            job.init_server("old")
        for call in (job.init_worker, job.stop_worker):
            with self.assertRaisesRegex(millrace.ConfigError, "was started as a SERVER; a WORKER calls it"):
                call()
        with self.assertRaisesRegex(millrace.ConfigError, "this process is a trainer; ask fleet.is_server"):
            self.job.run_server()

    def test_files_are_dealt_as_paddle_deals_them(self):
        files = list("abcde")
        self.assertEqual(self.job.split_files(files), files)
        dealt = []
        for rank in range(3):
            with ranks(rank, 3):
                dealt.append(self.job.split_files(files))
        self.assertEqual(dealt, [["a", "b"], ["c", "d"], ["e"]])
        with ranks(2, 3):
            self.assertEqual(self.job.util.get_file_shard(["a", "b"]), [])
        with self.assertRaisesRegex(millrace.ConfigError, "get_file_shard: a list of files, not 'ab'"):
            self.job.split_files("ab")

    def test_a_startup_program_goes_on_from_a_folder(self):
        self.model()
        self.exe.run(self.job.startup_program)
        self.train()
        self.job.save_persistables(self.exe, self.path("saved"))
        wanted = {name: millrace.global_scope().get(name) for name in ("w", "short", "short_moment_0")}
        rows = millrace.global_scope().get("deep")
        with millrace.scope_guard(millrace.Scope()):
            self.job.init_server(self.path("saved"))
            for _ in range(2):
                self.exe.run(self.job.startup_program)
                self.assertEqual(millrace.global_scope().step, 4)
                for name, value in wanted.items():
                    np.testing.assert_array_equal(millrace.global_scope().get(name), value)
                np.testing.assert_array_equal(millrace.global_scope().get("deep").values, rows.values)
                self.train()
        with millrace.scope_guard(millrace.Scope()):
            self.job.load_model(self.path("saved"))
            np.testing.assert_array_equal(millrace.global_scope().get("w"), wanted["w"])
        self.job.save_inference_model(self.exe, self.path("model"), self.variables(), [self.predict, self.auc])
        weights = {name: millrace.global_scope().get(name) for name in ("w", "short")}
        rows = millrace.global_scope().get("deep")
        with millrace.scope_guard(millrace.Scope()):
            self.job.init_server(self.path("model"))
            self.exe.run(self.job.startup_program)
            for name, value in weights.items():
                np.testing.assert_array_equal(millrace.global_scope().get(name), value)
            np.testing.assert_array_equal(millrace.global_scope().get("deep").values, rows.values)
            self.assertEqual(float(np.abs(millrace.global_scope().get("w_moment_0")).max()), 0)
            self.train()
            self.assertGreater(float(np.abs(millrace.global_scope().get("w_moment_0")).max()), 0)
        other, startup = millrace.Program(), millrace.Program()
        with millrace.program_guard(other, startup):
            loss = layers.mean(layers.fc(layers.data("x", [2]), 1, param_attr="w"))
            self.job.distributed_optimizer(optimizer.SGD(0.1)).minimize(loss)
        self.job.init_server(self.path("model"))
        with millrace.scope_guard(millrace.Scope()):
            with self.assertRaisesRegex(millrace.ConfigError, '(?s)model" does not fit the program.*"short" is stored, but.*"w" was'):
                self.exe.run(self.job.startup_program)
        with self.assertRaisesRegex(millrace.ConfigError, "there is no such folder"):
            self.job.init_server(self.path("nowhere"))
        with self.assertRaisesRegex(millrace.ConfigError, "var_names: a folder is loaded whole"):
            self.job.init_server(self.path("saved"), var_names=["w"])
        os.makedirs(self.path("servers/000"))
        with self.assertRaisesRegex(millrace.ConfigError, "servers of Paddle wrote it.*load_one_table"):
            self.job.init_server(self.path("servers"))

    def test_one_table_is_loaded(self):
        self.model()
        self.exe.run(self.job.startup_program)
        self.train()
        self.job.save_persistables(self.exe, self.path("saved"))
        scope = millrace.global_scope()
        deep, short, state, w = (scope.get(name) for name in ("deep", "short", "short_moment_0", "w"))
        out, _ = said(lambda: self.job.print_table_stat(0, pass_id=3))
        self.assertRegex(out, r'^table 0 "deep", pass 3: %d rows, \d+ bytes\n$' % len(deep.keys))
        with millrace.scope_guard(millrace.Scope()):
            self.exe.run(self.job.startup_program)
            other = millrace.global_scope()
            self.job.load_one_table(0, self.path("saved"))
            np.testing.assert_array_equal(other.get("deep").values, deep.values)
            self.assertFalse((other.get("short") == short).all())
            self.job.load_one_table("short", self.path("saved"))
            np.testing.assert_array_equal(other.get("short"), short)
            np.testing.assert_array_equal(other.get("short_moment_0"), state)
            self.assertFalse((other.get("w") == w).all())
        with millrace.scope_guard(millrace.Scope()):
            with self.assertRaisesRegex(millrace.ConfigError, 'nothing to save yet of "deep"; run the startup program|"deep"'):
                self.job.load_one_table(0, self.path("saved"))
        for table, message in ((2, 'there is no table 2; there are 0 "deep", 1 "short"'), ("dep", "there is no table 'dep'"),
                               (-1, "table_id: at least 0, not -1"), (None, "table_id: a whole number, not None")):
            with self.assertRaisesRegex(millrace.ConfigError, message):
                self.job.load_one_table(table, self.path("saved"))
        with self.assertRaisesRegex(millrace.NotFoundError, 'no table "short" that grows'):
            self.job.print_table_stat(1)

    def test_rows_of_a_server_of_paddle_are_loaded(self):
        main, startup = millrace.Program(), millrace.Program()
        with millrace.program_guard(main, startup):
            ids = layers.data("ids", [1], dtype="int64", lod_level=1)
            loss = layers.mean(layers.sequence_pool(layers.embedding(ids, [None, 2], param_attr="emb"), "sum"))
            self.job.distributed_optimizer(optimizer.SGD(0.1)).minimize(loss)
        self.exe.run(self.job.startup_program)
        os.makedirs(self.path("tables/000"))
        # id, five counts, the first weight, the other one: no state with SparseNaiveSGDRule
        support.write(self.path("tables/000/part-000-00000"), "7 0 0 0 0 0 0.5 0.25\n9 0 0 0 0 0 -1 2\n")
        self.job.load_one_table(0, self.path("tables/000"))
        keys, values = millrace.global_scope().get("emb")
        self.assertEqual((keys.tolist(), values.tolist()), ([7, 9], [[0.5, 0.25], [-1, 2]]))
        with self.assertRaisesRegex(millrace.Error, "tables/001"):
            self.job.load_one_table(0, self.path("tables/001"))

    def test_a_model_of_several_targets_gives_them_all_and_scores_by_the_prediction(self):
        self.model()
        self.exe.run(self.job.startup_program)
        self.train()
        names = [var.name for var in self.variables()]
        for targets in ([self.predict, self.auc, self.batch_auc], [self.auc, self.predict]):
            self.job.save_inference_model(executor=self.exe, dirname=self.path("model"), feeded_var_names=names, target_vars=targets,
                                          pooled=[self.pooled])
            model = millrace.Predictor(self.path("model"))
            self.assertFalse({slot.name: slot.is_needed for slot in model.slots}["label"])
            lines = [support.line(row) for row in self.rows]
            scores = model.predict_lines(lines)
            self.assertEqual([slot.name for slot in millrace.Predictor(self.path("model"), feed="online").slots], [self.pooled.name])
            with millrace.scope_guard(millrace.Scope()):
                program, feeds, found = millrace.load_inference_model(self.path("model"), self.exe)
                self.assertEqual([var.name for var in found], [var.name for var in targets])
                self.assertEqual(feeds, names)
                feed = {"label": [[row[0]] for row in self.rows], "dense": [row[1] for row in self.rows],
                        **{"C%d" % i: [row[2][i - 1] for row in self.rows] for i in (1, 2, 3)}}
                values = dict(zip([var.name for var in targets], self.exe.run(program, feed=feed, fetch_list=found)))
            np.testing.assert_array_equal(values[self.predict.name][:, 1], scores)
            online = millrace.Predictor(self.path("model"), feed=[self.pooled.name])
            pooled, = self.exe.run(self.main.clone(for_test=True), feed=feed, fetch_list=[self.pooled])
            np.testing.assert_array_equal(online.predict({self.pooled.name: pooled}), scores)
            label = np.array([row[0] for row in self.rows])
            wins = (scores[label == 1][:, None] > scores[label == 0][None]).mean()
            self.assertAlmostEqual(float(values[self.auc.name][0]), wins, delta=0.01)

    def test_variables_to_feed_are_those_of_the_model(self):
        self.model()
        self.exe.run(self.job.startup_program)
        self.job.save_inference_model(self.exe, self.path("model"), self.variables(), self.predict)
        deep = self.parts[0].name
        model = millrace.Predictor(self.path("model"), feed=[deep])
        self.assertEqual([slot.name for slot in model.slots], [deep, "dense", "C2", "C3"])
        again = pickle.loads(pickle.dumps(model))
        self.assertEqual(again.slots, model.slots)
        for feed, message in ((["sequence_pool_9.out"], 'the model has no variable "sequence_pool_9.out" to feed'), ([], "feed: a str"),
                              (7, "feed: a list of variables' names, \"offline\" or \"online\", not 7"), ([7], "feed: a str, not 7"),
                              ("onlin", 'has no feed "onlin"; it has: offline')):
            with self.assertRaisesRegex(millrace.ConfigError, message):
                millrace.Predictor(self.path("model"), feed=feed)

    def test_a_model_of_one_target_has_no_other(self):
        self.model()
        self.exe.run(self.job.startup_program)
        self.job.save_inference_model(self.exe, self.path("model"), [var.name for var in self.variables()], [self.predict])
        self.assertEqual(sorted(os.listdir(self.path("model"))),
                         ["MODEL", "parameters", "program_offline", "program_tables", "tables"])
        for arguments, message in ((dict(export_for_deployment=False), "save_persistables writes what training goes on from"),
                                   (dict(mode=1), "mode = 1: 0 has all rows")):
            with self.assertRaisesRegex(millrace.ConfigError, message):
                self.job.save_inference_model(self.exe, self.path("model"), ["C1"], [self.predict], **arguments)
        with self.assertRaisesRegex(millrace.ConfigError, "target_vars is empty"):
            self.job.save_inference_model(self.exe, self.path("model"), ["C1"], [])

    def test_a_day_of_tables_with_an_accessor_ends(self):
        with self.assertRaisesRegex(millrace.ConfigError, "no table of the scope has an accessor"):
            self.job.shrink_sparse_table()
        with self.assertRaisesRegex(millrace.ConfigError, "threshold: rows go by delete_threshold"):
            self.job.shrink(0.5)
        ids, label = layers.data("ids", [1], dtype="int64", lod_level=1), layers.data("y", [1])
        rows = layers.embedding(ids, [None, 11], param_attr="ctr", accessor="ctr_accessor_param { delete_threshold: 1000 }")
        counts = layers.concat([layers.fill_constant_batch_size_like(label, [-1, 1], "float32", 1.0), label], axis=1)
        shown = layers.continuous_value_model(layers.sequence_pool(rows, "sum"), counts, True)
        loss = layers.mean(layers.square_error_cost(layers.fc(shown, 1), label))
        self.job.distributed_optimizer(optimizer.SGD(0.1)).minimize(loss)
        self.exe.run(self.job.startup_program)
        self.exe.run(self.job.main_program, feed={"ids": [[1, 2], [3]], "y": np.ones((2, 1), "float32")}, fetch_list=[loss])
        self.assertEqual(self.job.shrink(), {"ctr": (0, 3)})

    def test_calls_before_what_they_need_say_what_that_is(self):
        job = Fleet()
        for call in (job.is_worker, job.is_server, job.is_first_worker, job.worker_index, job.worker_num, job.server_num, job.server_index,
                     job.worker_endpoints, job.server_endpoints, job.init_worker, job.init_server, job.run_server, job.stop_worker,
                     job.barrier_worker, job.shrink_sparse_table, lambda: job._executor,
                     lambda: job.distributed_optimizer(optimizer.SGD(0.1)), lambda: job.save_persistables(None, "x")):
            with self.assertRaisesRegex(millrace.ConfigError, r"call fleet.init\(role_maker\) first"):
                call()
        for call in (lambda: self.job.main_program, lambda: self.job.startup_program, lambda: self.job.save_persistables(self.exe, "x"),
                     lambda: self.job.save_inference_model(self.exe, "x", ["a"], ["b"]), lambda: self.job.load_one_table(0, "x"),
                     lambda: self.job.print_table_stat(0), lambda: self.job.load_model("x"), lambda: self.job.init_server(self.folder)):
            with self.assertRaisesRegex(millrace.ConfigError, r"minimize\(loss\) first"):
                call()
        with self.assertRaisesRegex(millrace.ConfigError, "call fleet.distributed_optimizer"):
            self.job.minimize(None)

    def test_what_is_not_here_says_what_to_do(self):
        for name, message in (("save_cache_model", "incremental.save_mode"), ("clear_model", "new scope"), ("distributed_model", "on CPUs"),
                              ("save_dense_params", "save_persistables writes"), ("train_from_dataset", "fleet._executor.train_from_dataset")):
            self.assertFalse(hasattr(self.job, name))
            with self.assertRaisesRegex(millrace.ConfigError, "fleet.%s is not here: .*%s" % (name, message)):
                getattr(self.job, name)
        with self.assertRaisesRegex(millrace.ConfigError, "fleet.util.load_fleet_model is not here: fleet.load_model"):
            self.job.util.load_fleet_model("x")
        with self.assertRaisesRegex(AttributeError, "no attribute 'save_persistable'"):
            self.job.save_persistable
        loss = self.loss_of_nothing()
        made = self.job.distributed_optimizer(optimizer.SGD(0.1))
        for call, message in (
                (lambda: self.job.init("worker"), "role_maker: a RoleMakerBase, not 'worker'"),
                (lambda: self.job.distributed_optimizer("sgd"), "optimizer: an Optimizer, not 'sgd'"),
                (lambda: self.job.distributed_optimizer(optimizer.SGD(0.1), {"sparse_accessor_class": "x"}), "accessor=.$"),
                (lambda: self.job.distributed_optimizer(optimizer.SGD(0.1), "async"), "not 'async'"),
                (lambda: made.minimize([loss, loss]), "losses: one, not 2; add several losses up"),
                (lambda: made.minimize(loss, scopes=[millrace.Scope()]), "scopes: a run is given its scope"),
                (lambda: made.backward(loss), "call minimize.loss"), (lambda: made.apply_gradients([]), "call minimize.loss"),
                (lambda: self.job._set_client_communication_config(-1, 1, 1), "request_timeout_ms: at least 0")):
            with self.assertRaisesRegex(millrace.ConfigError, message):
                call()
        self.job._set_client_communication_config(500000, 10000, 3)

    def test_a_startup_program_behind_the_loss_is_that_of_paddle_2_as_of_paddle_1(self):
        def minimized(call):
            main, startup = millrace.Program(), millrace.Program()
            with millrace.program_guard(main, startup), millrace.unique_name.guard():
                x = layers.data("x", [2])
                loss = layers.mean(layers.fc(layers.fc(x, 2, param_attr="first", bias_attr=False), 1, param_attr="second", bias_attr=False))
            _, pairs = call(self.job.distributed_optimizer(optimizer.SGD(0.1)), loss, startup)
            self.assertIs(self.job.startup_program, startup)
            return [parameter.name for parameter, _ in pairs]
        for call in (lambda made, loss, startup: made.minimize(loss, startup),
                     lambda made, loss, startup: made.minimize(loss, startup_program=startup),
                     lambda made, loss, startup: made.minimize(loss=loss, startup_program=startup),
                     lambda made, loss, startup: made.minimize(loss, None, startup),
                     lambda made, loss, startup: made.minimize([loss], None, [startup]),
                     lambda made, loss, startup: made.minimize([loss], startup_programs=[startup]),
                     lambda made, loss, startup: self.job.minimize(loss, startup)):
            self.assertEqual(minimized(call), ["first", "second"])
        for call in (lambda made, loss, startup: made.minimize(loss, startup, ["second"]),
                     lambda made, loss, startup: made.minimize(loss, startup, None, ["first"]),
                     lambda made, loss, startup: made.minimize(loss, startup, parameter_list=["second"]),
                     lambda made, loss, startup: made.minimize(loss, None, startup, ["second"]),
                     lambda made, loss, startup: made.minimize(loss, None, startup, None, ["first"]),
                     lambda made, loss, startup: self.job.minimize(loss, startup, ["second"])):
            self.assertEqual(minimized(call), ["second"])
        made, loss = self.job.distributed_optimizer(optimizer.SGD(0.1)), self.loss_of_nothing()
        self.assertEqual(len(made.minimize(loss, None, [loss.program.all_parameters()[0]])[1]), 1)
        for call, message in ((lambda: made.minimize(loss, None, None, ["w"]), "parameter_list of Paddle 1 and the no_grad_set of Paddle 2"),
                              (lambda: made.minimize(loss, millrace.Scope()), "scopes: a run is given its scope"),
                              (lambda: made.minimize(loss, None, None, None, None, None), "at most 4 arguments behind it"),
                              (lambda: made.minimize(loss, self.startup, startup_program=self.startup), "startup_programs is given twice"),
                              (lambda: made.minimize(loss, startups=self.startup), "there is no argument startups; there are loss, startup_program"),
                              (lambda: made.minimize(), "the loss is a Variable, not None")):
            with self.assertRaisesRegex(millrace.ConfigError, message):
                call()

    def loss_of_nothing(self):
        return layers.mean(layers.fc(layers.data("x", [2]), 1))

    def test_names_of_paddle_2_are_those_of_the_package(self):
        self.assertIs(fleet.MultiSlotDataGenerator, millrace.data_generator.MultiSlotDataGenerator)
        self.assertIs(fleet.MultiSlotStringDataGenerator, millrace.data_generator.MultiSlotStringDataGenerator)
        for name in ("InMemoryDataset", "QueueDataset", "FileInstantDataset"):
            self.assertIs(getattr(fleet, name), getattr(millrace, name))
        self.assertIsInstance(fleet.util, fleet.UtilBase)
        for module, name, message in ((fleet, "HybridCommunicateGroup", "on CPUs"), (fleet, "rank", "fleet.worker_index"),
                                      (fleet, "utils", "set_hdfs_config"), (millrace, "contrib", r"layers.embedding.*accessor="),
                                      (millrace, "CompiledProgram", "Executor runs a Program"), (millrace, "data", "layers.data"),
                                      (layers, "data_norm", "batch_norm and layer_norm")):
            self.assertFalse(hasattr(module, name))
            with self.assertRaisesRegex(millrace.ConfigError, r"\b%s is not here: .*%s" % (name, message)):
                getattr(module, name)
        for module in (millrace, layers):
            with self.assertRaisesRegex(AttributeError, "no attribute 'fcc'"):
                module.fcc

    def test_modes_and_arguments_that_there_are_not_are_refused(self):
        self.model()
        for call, message in (
                (lambda: self.job.save_persistables(self.exe, "x", mode=1), "fleet.save_persistables: mode = 1: 0 has all rows"),
                (lambda: self.job.load_model("x", 2), "fleet.load_model: mode = 2"),
                (lambda: self.job.save_model("x", 3), "mode = 3"),
                (lambda: self.job.load_one_table(0, "x", mode=1), "mode = 1"),
                (lambda: self.job.load_one_table(0, "x", load_combine=True), "no argument load_combine"),
                (lambda: self.job.print_table_stat(0, 1, 0.5), "threshold: all rows are counted")):
            with self.assertRaisesRegex(millrace.ConfigError, message):
                call()

    def sparse(self, rule, strategy=None, distributed=True):
        """A program with an embedding of is_sparse=True, and its clone for tests, which is made before it is minimized."""
        main, startup = millrace.Program(), millrace.Program()
        with millrace.program_guard(main, startup), millrace.unique_name.guard():
            label, dense = layers.data("label", [1], dtype="int64"), layers.data("dense", [2])
            slots = [layers.data("C%d" % i, [1], dtype="int64", lod_level=1) for i in (1, 2, 3)]
            rows = layers.embedding(slots[0], [60, 4], is_sparse=True, padding_idx=0, param_attr="rows")
            whole = layers.embedding(slots[1], [60, 2], param_attr="whole")
            pooled = layers.concat([layers.sequence_pool(part, "average") for part in (rows, whole)] + [dense], axis=1)
            predict = layers.fc(pooled, 2, act="softmax", param_attr="w", bias_attr=False)
            loss = layers.mean(layers.cross_entropy(predict, label))
            test = main.clone(for_test=True)
            if distributed:
                rule = self.job.distributed_optimizer(rule, strategy)
            rule.minimize(loss)
        self.exe.run(startup)
        return main, test, predict, [label, dense, *slots]

    def test_rows_of_sparse_embeddings_are_no_matrix_that_every_rank_has_whole(self):
        scope = millrace.global_scope()
        main, test, predict, slots = self.sparse(optimizer.Adagrad(0.1))
        self.assertEqual(len(scope.get("rows").keys), 0)
        self.assertEqual(scope.get("whole").shape, (60, 2))
        report = self.exe.train_from_dataset(main, self.dataset(slots), print_period=0)
        self.assertEqual(report.examples, 64)
        trained = scope.get("rows")
        self.assertGreater(len(trained.keys), 5)
        # The clone of before looks up the same rows.
        feed = {"label": [[1]], "dense": [[0, 0]], **{slot.name: [[7]] for slot in slots[2:]}}
        ours, = self.exe.run(test, feed=feed, fetch_list=[predict.name])
        self.exe.train_from_dataset(main, self.dataset(slots), print_period=0)
        self.assertFalse((self.exe.run(test, feed=feed, fetch_list=[predict.name])[0] == ours).all())
        self.job.save_model(self.path("saved"))
        self.assertEqual(os.listdir(self.path("saved/tables")), ["rows"])

    def test_rules_that_move_every_row_keep_the_matrix(self):
        for rule, strategy in ((optimizer.Momentum(0.1), None), (optimizer.Adam(0.1), StrategyFactory.create_geo_strategy(4))):
            with millrace.scope_guard(millrace.Scope()):
                self.sparse(rule, strategy)
                self.assertEqual(millrace.global_scope().get("rows").shape, (60, 4))
        for rule, strategy in ((optimizer.Adam(0.1), None), (optimizer.Ftrl(0.1), StrategyFactory.create_geo_strategy(4))):
            with millrace.scope_guard(millrace.Scope()):
                self.sparse(rule, strategy)
                self.assertEqual(len(millrace.global_scope().get("rows").keys), 0)

    def test_the_matrix_that_a_folder_has_becomes_rows(self):
        main, _, _, slots = self.sparse(optimizer.SGD(0.1), distributed=False)
        self.exe.train_from_dataset(main, self.dataset(slots), print_period=0)
        matrix = millrace.global_scope().get("rows")
        millrace.save_persistables(self.exe, self.path("whole"), main)
        shutil.copytree(self.path("whole"), self.path("paddles"))
        os.remove(self.path("paddles/MANIFEST"))
        for folder in ("whole", "paddles"):
            with millrace.scope_guard(millrace.Scope()):
                self.sparse(optimizer.SGD(0.1))
                self.job.load_model(self.path(folder))
                rows = millrace.global_scope().get("rows")
                np.testing.assert_array_equal(np.sort(rows.keys), np.arange(60))
                np.testing.assert_array_equal(rows.values[np.argsort(rows.keys)], matrix)
        shutil.copy(self.path("paddles/whole"), self.path("paddles/rows"))
        with self.assertRaisesRegex(millrace.DataError, r'paddles/rows: table "rows" takes float32 \[rows, 4\], and the file has'):
            self.sparse(optimizer.SGD(0.1))
            self.job.load_model(self.path("paddles"))

    def test_the_module_is_the_object(self):
        self.assertEqual(fleet.init, fleet.fleet.init)
        self.assertIs(fleet.util, fleet.fleet.util)
        with environment(TRAINING_ROLE="PSERVER"):
            self.assertTrue(fleet.init().is_server())
        with environment():
            fleet.init(is_collective=True)
            self.assertTrue(fleet.is_first_worker())
            fleet.init(strategy=DistributedStrategy())
        self.assertLessEqual({"init", "save_persistables", "util", "Fleet"}, set(dir(fleet)))
        with self.assertRaisesRegex(AttributeError, "no attribute 'inti'"):
            fleet.inti


class MetricsTest(program_test.Fresh):
    def test_sums_and_quotients(self):
        util = FleetUtil()
        self.assertEqual(fleet.metrics.sum([1, 2.5]).tolist(), [1, 2.5])
        self.assertIs(fleet.fleet.metrics, fleet.metrics)
        self.assertEqual(util.max(np.array([3])).tolist(), [3])
        self.assertEqual(util.min([[4, 5]]).tolist(), [[4, 5]])
        self.assertEqual((util.mae([6.0], [4]), util.mse([6.0], [4]), util.rmse([9.0], [4.0]), util.acc([3.0], [4])), (1.5, 1.5, 1.5, 0.75))
        self.assertEqual(util.all_reduce([1, 2], "max").tolist(), [1, 2])
        self.assertEqual(util.all_gather({"a": 1}), [{"a": 1}])
        util.barrier()
        maker = UserDefinedRoleMaker()
        maker._barrier_worker()
        summed = np.zeros(2)
        maker.all_reduce_worker([1, 2], summed)
        self.assertEqual((summed.tolist(), maker.all_gather("a")), ([1, 2], ["a"]))
        with self.assertRaisesRegex(millrace.ConfigError, "all_reduce_worker: output holds uint8, 0 to 255, not 300; give an array of int64"):
            maker.all_reduce_worker(np.array([5, 300]), np.zeros(2, np.uint8))
        for call, message in (
                (lambda: util.acc([1], [0]), "acc: total is 0: nothing was counted yet"),
                (lambda: util.all_reduce([1], "mean"), 'mode is "sum", "max" or "min"'),
                (lambda: util.all_reduce([1], comm_world="server"), "there are no servers"),
                (lambda: util.sum(["a"]), "sum: input: numbers, a Variable or its name"),
                (lambda: util.sum("nope"), 'the scope has no variable "nope"'),
                (lambda: FleetUtil("gloo"), 'mode is "pslib" or "transpiler"'),
                (lambda: util.auc([1, 2], [1]), "stat_pos has 2 buckets, and stat_neg 1")):
            with self.assertRaisesRegex(millrace.Error, message):
                call()

    def test_what_other_trainers_counted_is_added(self):
        # pylint: disable=unnecessary-lambda-assignment
        with mock.patch.object(_ranks, "allreduce", lambda values, op: np.asarray(values) * 3):
            self.assertEqual(fleet.metrics.sum([2]).tolist(), [6])
            self.assertEqual(fleet.metrics.acc([1.0], [4.0]), 0.25)

    def test_the_auc_is_that_of_the_program(self):
        label, x = layers.data("label", [1], dtype="int64"), layers.data("x", [1])
        predict = layers.concat([1 - x, x], axis=1)
        auc, _, states = layers.auc(predict, label)
        exe = millrace.Executor()
        exe.run(self.startup)
        draw = np.random.RandomState(0)
        labels, scores = draw.randint(0, 2, (500, 1)), draw.rand(500, 1).astype("float32")
        found, = exe.run(self.main, feed={"label": labels, "x": scores}, fetch_list=[auc])
        pos, neg = states[2], states[3]
        self.assertAlmostEqual(fleet.metrics.auc(pos, neg), float(found[0]), places=6)
        util = FleetUtil()
        self.assertEqual(util.get_global_auc(None, pos.name, neg.name), fleet.metrics.auc(pos.name, neg.name))
        out, _ = said(lambda: util.print_global_auc(None, pos.name, neg.name, "day 1"))
        self.assertRegex(out, r"^day 1 global auc = 0\.\d+\n$")
        for name in (pos.name, neg.name):
            util.set_zero(name)
        self.assertEqual(fleet.metrics.auc(pos, neg), 0.5)
        with self.assertRaisesRegex(millrace.ConfigError, 'set_zero: ".*" is int64, not float32'):
            util.set_zero(pos.name, param_type="float32")
        with self.assertRaisesRegex(millrace.NotFoundError, 'set_zero: the scope has no variable "nope"'):
            util.set_zero("nope")

    def test_words_are_those_of_one_trainer(self):
        util = FleetUtil()
        self.assertEqual(said(lambda: util.rank0_print("a"))[0], "a\n")
        self.assertEqual(said(lambda: util.rank0_info("b"))[1], "b\n")
        self.assertEqual(said(lambda: util.print_on_rank("c", 1)), ("", ""))
        with ranks(1, 2):
            self.assertEqual(said(lambda: util.print_on_rank("c", 1))[0], "c\n")
            self.assertEqual(said(lambda: (util.rank0_print("a"), util.rank0_error("b"))), ("", ""))


class RanksTest(unittest.TestCase):
    """Scripts that mpirun starts."""

    def start(self, script, *arguments, **variables):
        if shutil.which("mpirun") is None or not os.path.exists(os.path.join(os.path.dirname(millrace.__file__), "libmillrace_mpi.so")):
            self.skipTest("there is no mpirun (openmpi-bin), or it is built without MPI (libopenmpi-dev)")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PADDLE_") and name != "OPENBLAS_CORETYPE"}
        return subprocess.run(["mpirun", "-n", "2", "--bind-to", "none", "--oversubscribe", sys.executable, script, *arguments],
                              capture_output=True, text=True, check=False, timeout=300,
                              env={**kept, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **variables})

    def test_ranks_are_the_trainers(self):
        with tempfile.TemporaryDirectory() as folder:
            script = support.write(os.path.join(folder, "script.py"), """
import json, os, sys
from millrace.fleet import fleet, metrics, role_maker
fleet.init(role_maker.PaddleCloudRoleMaker())
fleet.init_worker()
rank = fleet.worker_index()
summed = [0.0]
fleet.all_reduce_worker([rank + 1.5], summed)
told = dict(id=os.environ["PADDLE_TRAINER_ID"], num=os.environ["PADDLE_TRAINERS_NUM"], first=fleet.is_first_worker(), of=fleet.worker_num(),
            files=fleet.split_files(list("abc")), sum=summed, acc=metrics.acc([rank], [4]), auc=metrics.auc([rank, 2], [2, rank]),
            all=fleet.util.all_gather("r%d" % rank))
fleet.util.rank0_print("said once")
fleet.stop_worker()
with open(sys.argv[1] + "/told.%d" % rank, "w") as file:
    json.dump(told, file)
""")
            done = self.start(script, folder)
            self.assertEqual((done.returncode, done.stdout), (0, "said once\n"), done.stderr)
            for rank, files in enumerate((["a", "b"], ["c"])):
                told = json.loads(support.read(os.path.join(folder, "told.%d" % rank)))
                # Buckets of both: 1 and 4 positives, 4 and 1 negatives.
                self.assertEqual(told, {"id": str(rank), "num": "2", "first": rank == 0, "of": 2, "files": files, "sum": [4.0],
                                        "acc": 0.125, "auc": (4 * 4 + 4 * 0.5 + 1 * 4 * 0.5) / 25, "all": ["r0", "r1"]})
            for variables, message in (({"TRAINING_ROLE": "PSERVER"}, "trainers alone: mpirun -n 2 python"),
                                       ({"PADDLE_TRAINERS_NUM": "3"}, "PADDLE_TRAINERS_NUM is 3 trainers, and mpirun started 2"),
                                       ({"PADDLE_TRAINER_ID": "0"}, "PADDLE_TRAINER_ID is 0, and this process is rank 1 of 2")):
                done = self.start(script, folder, **variables)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(message, done.stderr)

    def test_the_example_trains_one_model_on_two_ranks(self):
        example = os.path.join(support.ROOT, "examples", "cluster")
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "bin"))
            python = support.write(os.path.join(folder, "bin", "python"), '#!/bin/sh\nexec "%s" "$@"\n' % sys.executable)
            os.chmod(python, 0o755)
            for name, days, first in (("data", "2", "1"), ("unseen", "1", "20")):
                subprocess.run([sys.executable, os.path.join(example, "make_data.py"), os.path.join(folder, name), days, "8000", first],
                               check=True)
            done = self.start(os.path.join(example, "train.py"), DATA_PATH=os.path.join(folder, "data"), MODEL_SAVE_INTERVAL="1",
                              MODEL_PATH=os.path.join(folder, "models"), PATH=os.path.dirname(python) + os.pathsep + os.environ["PATH"])
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
            self.assertEqual(done.stdout.count("training task is finished!"), 2)
            self.assertEqual(done.stdout.count(", batch: [10], cost"), 2)  # rank 0 alone tells what is fetched
            self.assertEqual(sorted(os.listdir(os.path.join(folder, "models"))), ["2026-01-01", "latest"])
            with open(os.path.join(folder, "unseen", "2026-01-20", "part-000"), encoding="utf-8") as log:
                lines = subprocess.run([sys.executable, os.path.join(example, "ctr_reader.py")], stdin=log, check=True, text=True,
                                       capture_output=True).stdout
            scores = millrace.Predictor(os.path.join(folder, "models", "latest")).predict_lines(lines)
            clicked = np.array([line.endswith(" 1") for line in lines.splitlines()])
            self.assertGreater((scores[clicked][:, None] > scores[~clicked][None]).mean(), 0.7)

    def test_tables_of_two_ranks_are_saved_loaded_and_told_of(self):
        with tempfile.TemporaryDirectory() as folder:
            support.write_log(folder, 400, parts=4)
            script = support.write(os.path.join(folder, "script.py"), """
import json, os, sys
import numpy as np
import millrace as fluid
from millrace import layers
from millrace.fleet import DistributeTranspilerConfig, fleet, metrics, role_maker
folder = sys.argv[1]
fleet.init(role_maker.MPISymetricRoleMaker())
label, dense = layers.data("label", [1], dtype="int64"), layers.data("dense", [2])
slots = [layers.data("C%d" % i, [1], dtype="int64", lod_level=1) for i in (1, 2, 3)]
pooled = [layers.sequence_pool(layers.embedding(slot, [None, 4], param_attr="deep"), "sum") for slot in slots]
predict = layers.fc(layers.concat(pooled + [dense], axis=1), 2, act="softmax", param_attr="w")
loss = layers.mean(layers.cross_entropy(predict, label))
auc, _, states = layers.auc(predict, label)
strategy = DistributeTranspilerConfig()
strategy.sync_mode = sys.argv[2] == "sync"
fleet.distributed_optimizer(fluid.optimizer.Adagrad(0.1), strategy).minimize(loss)
exe = fluid.Executor()
fleet.init_worker()
exe.run(fleet.startup_program)
dataset = fluid.DatasetFactory().create_dataset()
dataset.set_use_var([label, dense, *slots])
dataset.set_batch_size(20)
dataset.set_filelist(fleet.split_files([folder + "/part-%d" % i for i in range(4)]))
report = exe.train_from_dataset(fleet.main_program, dataset, fetch_list=[auc], print_period=0)
if fleet.is_first_worker():
    fleet.save_persistables(exe, folder + "/saved")
    fleet.save_inference_model(exe, folder + "/model", [label, dense, *slots], [predict, auc])
fleet.print_table_stat("deep")
scope = fluid.global_scope()
trained = scope.get("deep")
counted = int(metrics.sum(states[2])[0].sum() + metrics.sum(states[3])[0].sum())
fleet.barrier_worker()
exe.run(fleet.startup_program)
fleet.load_one_table(0, folder + "/saved")
loaded = scope.get("deep")
fleet.init_server(folder + "/model")
exe.run(fleet.startup_program)
weights = scope.get("deep")
fleet.init_server(folder + "/saved")
exe.run(fleet.startup_program)
told = dict(weights=bool((weights.values == trained.values).all()), examples=report.examples, auc=float(metrics.auc(states[2], states[3])), fetched=list(report.metrics.values())[0], counted=counted,
            rows=len(trained.keys), same=bool((loaded.values == trained.values).all()), step=scope.step)
fleet.stop_worker()
with open(folder + "/told.%d" % fleet.worker_index(), "w") as file:
    json.dump(told, file)
""")
            done = self.start(script, folder, "async")
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
            told = [json.loads(support.read(os.path.join(folder, "told.%d" % rank))) for rank in (0, 1)]
            self.assertEqual(told[0], told[1])
            self.assertEqual((told[0]["examples"], told[0]["counted"], told[0]["same"], told[0]["weights"], told[0]["rows"]),
                             (400, 400, True, True, 29))
            self.assertGreaterEqual(told[0]["step"], 20)
            self.assertRegex(done.stdout, r'^table 0 "deep": 29 rows, \d+ bytes\n$')
            done = self.start(script, folder, "sync")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("the strategy has ranks train in step, which keeps no counts of layers.auc: set sync_mode = False", done.stderr)


if __name__ == "__main__":
    unittest.main()
