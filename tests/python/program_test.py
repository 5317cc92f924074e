"""Programs written in Python: the numbers of the same job in prototxt, mistakes at their line, what is saved."""

import importlib
import inspect
import json
import os
import signal
import tempfile
import threading
import unittest

import support

import numpy as np

import millrace
from millrace import ParamAttr, initializer, layers, optimizer, regularizer, unique_name


def wide_deep():
    """The model of support.WIDE_DEEP: (variables of the lines, loss, probabilities)."""
    label = layers.data("label", [1], "int64")
    dense = layers.data("dense", [2])
    slots = [layers.data("C%d" % i, [1], "int64", lod_level=1) for i in (1, 2, 3)]
    wide_attr = ParamAttr("wide", initializer.Constant(0))
    deep_attr = ParamAttr("deep", initializer.Uniform(-0.1, 0.1))
    wide = layers.concat([layers.sequence_pool(
        layers.embedding(slot, [None, 1], param_attr=wide_attr, per_slot=True,
                         optimizer=optimizer.Ftrl(0.05, l1=0.1, beta=1.0)), "sum") for slot in slots], axis=1)
    deep = layers.concat([layers.sequence_pool(
        layers.embedding(slot, [None, 4], param_attr=deep_attr, per_slot=True, optimizer=optimizer.Adagrad(0.05)),
        "average") for slot in slots], axis=1)
    hidden = layers.concat([deep, dense], axis=1)
    for i, size in enumerate([8, 6]):
        hidden = layers.fc(hidden, size, act="relu", param_attr="h.w_%d" % i, bias_attr="h.b_%d" % i)
    predict = layers.fc(layers.concat([hidden, wide], axis=1), 2, act="softmax", name="y")
    return [label, dense] + slots, layers.mean(layers.cross_entropy(predict, label)), predict


class Fresh(unittest.TestCase):
    """A folder with a log, programs and a scope of its own for each test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.main, self.startup, self.scope = millrace.Program(), millrace.Program(), millrace.Scope()
        for guard in (millrace.program_guard(self.main, self.startup), millrace.scope_guard(self.scope), unique_name.guard()):
            guard.__enter__()
            self.addCleanup(guard.__exit__, None, None, None)

    def path(self, name):
        return os.path.join(self.folder, name)

    def dataset(self, variables, kind="QueueDataset"):
        dataset = millrace.DatasetFactory().create_dataset(kind)
        dataset.set_batch_size(16)
        dataset.set_use_var(variables)
        dataset.set_filelist([self.path("part-*")])
        return dataset


class WideDeepTest(Fresh):
    def setUp(self):
        super().setUp()
        support.write_log(self.folder)
        self.variables, self.loss, self.predict = wide_deep()

    def test_it_trains_to_the_bits_of_the_prototxt_job(self):
        optimizer.Adagrad(0.1, initial_accumulator_value=0.1).minimize(self.loss)
        exe = millrace.Executor(millrace.CPUPlace())
        exe.run(self.startup)
        report = exe.train_from_dataset(self.main, self.dataset(self.variables), fetch_list=[self.loss],
                                        fetch_info=["loss"], print_period=1)
        self.assertEqual((report.examples, report.batches, self.scope.step), (100, 7, 7))

        job = millrace.Job.from_text(support.WIDE_DEEP % {"folder": self.folder}, output_dir=self.path("job"))
        job.run()
        wanted = [json.loads(line)["loss"] for line in support.read(self.path("job/metrics.jsonl")).splitlines()]
        self.assertEqual([float(entry["loss"][0]) for entry in report.history], wanted)
        for name in ("h.w_0", "h.b_0", "h.w_1", "h.b_1", "y.w_0", "y.b_0", "h.w_0_moment_0", "learning_rate_0"):
            self.assertTrue((self.scope.get(name) == job.parameter(name)).all(), name)

        # The rows of the tables: both models score alike.
        millrace.save_inference_model(self.path("model"), self.dataset(self.variables), self.predict)
        lines = support.read(self.path("part-0"))
        self.assertTrue((millrace.Predictor(self.path("model")).predict_lines(lines) ==
                         millrace.Predictor(self.path("job/model")).predict_lines(lines)).all())

    def test_a_model_is_saved_as_paddles_scripts_do(self):
        optimizer.Adagrad(0.1).minimize(self.loss)
        exe = millrace.Executor()
        exe.run(self.startup)
        exe.train_from_dataset(self.main, self.dataset(self.variables))
        millrace.save_inference_model(self.path("model/"), self.dataset(self.variables), self.predict)
        self.assertEqual(sorted(os.listdir(self.path("model")))[0], "MODEL")
        millrace.save_inference_model(dirname=self.path("named"), feeded_var_names=[var.name for var in self.variables],
                                      target_vars=[self.predict], executor=exe)
        lines = support.read(self.path("part-0"))
        self.assertTrue((millrace.Predictor(self.path("model")).predict_lines(lines) ==
                         millrace.Predictor(self.path("named")).predict_lines(lines)).all())

    def test_a_model_reads_zeros_as_the_dataset_does_that_it_is_saved_with(self):
        millrace.Executor().run(self.startup)
        for kind, zeros, rule in [("QueueDataset", "FEED_DEFAULT", "KEEP"), ("InMemoryDataset", "FEED_DEFAULT", "DROP"),
                                  ("InMemoryDataset", "KEEP", "KEEP"), ("QueueDataset", "DROP", "DROP")]:
            dataset = self.dataset(self.variables, kind)
            dataset.set_zeros(zeros)
            millrace.save_inference_model(self.path("model"), dataset, self.predict)
            self.assertIn("zeros: " + rule, support.read(self.path("model/MODEL")), (kind, zeros))

    def test_a_model_that_cannot_be_saved_leaves_nothing_and_takes_nobodys_place(self):
        millrace.Executor().run(self.startup)
        dataset = self.dataset(self.variables)
        os.makedirs(self.path("mine"))
        support.write(self.path("mine/thesis.tex"), "years of work")
        for folder, target, message in [("model", "nope", 'computes "nope"'), ("mine", self.predict, "contains files that are not part of a saved model"),
                                        ("model", [self.predict, "nope"], 'computes "nope"'),
                                        ("model", [], "target_vars is empty; name the prediction"),
                                        ("model", 3, "a list of Variables, not 3")]:
            with self.assertRaisesRegex(millrace.Error, message):
                millrace.save_inference_model(self.path(folder), dataset, target)
        self.assertEqual(support.read(self.path("mine/thesis.tex")), "years of work")
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("model") or name.endswith("-writing")])

    def test_the_saved_program_trains_in_trainer_to_the_same_bits(self):
        optimizer.Adagrad(0.1, initial_accumulator_value=0.1).minimize(self.loss)
        self.main.save(self.path("saved"))
        dataset = self.dataset(self.variables)
        support.write(self.path("job.prototxt"), """
            update_mode: SERIAL filelist: "%s/part-*"
            program { main: "saved/main_program.bin" startup: "saved/startup_program.bin" save_dir: "final" }
            data_desc { %s }
            fetch_config { fetch_var_names: "%s" print_period: 1 }""" % (self.folder, dataset.desc(), self.loss.name))
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            support.run("trainer", "--trainer_desc=job.prototxt", "--output_dir=out")
        finally:
            os.chdir(before)
        exe = millrace.Executor()
        exe.run(self.startup)
        report = exe.train_from_dataset(self.main, dataset, fetch_list=[self.loss], print_period=1)
        wanted = [json.loads(line)[self.loss.name] for line in support.read(self.path("out/metrics.jsonl")).splitlines()]
        self.assertEqual([float(entry[self.loss.name][0]) for entry in report.history], wanted)
        millrace.save_persistables(exe, self.path("ours"), self.main)
        final, ours = (self.contents(folder) for folder in ("final", "ours"))
        self.assertEqual(sorted(final), sorted(ours))
        self.assertTrue([name for name in final if name.startswith("tables/")])
        for name in final:
            self.assertEqual(final[name], ours[name], name)

    def contents(self, folder):
        """What each file of a folder of variables holds."""
        found = {}
        for base, _, names in os.walk(self.path(folder)):
            for name in names:
                path = os.path.join(base, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, self.path(folder))] = file.read()
        return found

    def test_a_load_that_fails_changes_nothing(self):
        exe = millrace.Executor()
        exe.run(self.startup)
        millrace.save_persistables(exe, self.path("saved"), self.main)
        names = sorted(set(os.listdir(self.path("saved"))) - {"MANIFEST", "tables"})
        self.assertGreater(len(names), 1)
        os.truncate(self.path("saved/" + names[-1]), 20)
        first = self.scope.get(names[0])
        self.scope.set(names[0], first + 1)
        with self.assertRaises(millrace.DataError) as caught:
            millrace.load_persistables(exe, self.path("saved"), self.main)
        self.assertIn(names[-1], str(caught.exception))
        np.testing.assert_array_equal(self.scope.get(names[0]), first + 1)

    def test_training_goes_on_where_it_stood(self):
        optimizer.Adagrad(0.1).minimize(self.loss)
        exe = millrace.Executor()
        dataset = self.dataset(self.variables)
        exe.run(self.startup)
        dataset.set_filelist([self.path("part-0"), self.path("part-1")])
        whole = exe.train_from_dataset(self.main, dataset, fetch_list=[self.loss], print_period=1)
        last = self.scope.get("y.w_0")
        # 50 rows are three batches of 16 and one of 2 in each part: batches differ, parameters of one part do not.
        with millrace.scope_guard(millrace.Scope()):
            exe.run(self.startup)
            dataset.set_filelist([self.path("part-0")])
            first = exe.train_from_dataset(self.main, dataset, fetch_list=[self.loss], print_period=1)
            again = exe.train_from_dataset(self.main, dataset, fetch_list=[self.loss], print_period=1)
            self.assertEqual(millrace.global_scope().step, 8)
        name = self.loss.name
        self.assertEqual([entry[name][0] for entry in first.history[:3]], [entry[name][0] for entry in whole.history[:3]])
        self.assertNotEqual([entry[name][0] for entry in first.history], [entry[name][0] for entry in again.history])
        self.assertEqual((again.total_examples, again.examples), (100, 50))
        self.assertEqual(last.shape, (9, 2))

    def test_auc_counts_over_workers(self):
        auc, batch_auc, states = layers.auc(self.predict, self.variables[0])
        optimizer.SGD(0.0001).minimize(self.loss)
        exe = millrace.Executor()
        exe.run(self.startup)
        dataset = self.dataset(self.variables)
        dataset.set_thread(2)
        report = exe.train_from_dataset(self.main, dataset, fetch_list=[auc, batch_auc], print_period=1)
        self.assertEqual((report.examples, report.workers), (100, 2))
        counted = sum(int(self.scope.get(state.name).sum()) for state in states[2:])
        self.assertEqual(counted, 100)

    def test_a_failing_operator_is_named_with_its_line(self):
        label = self.variables[0]
        wrong = layers.one_hot(label, 1)  # a label of 1 is out of range here
        loss = layers.mean(layers.square(wrong))
        millrace.Executor().run(self.startup)
        with self.assertRaises(millrace.Error) as caught:
            millrace.Executor().run(self.main, feed={"label": [[1]], **{
                var.name: np.zeros((1, 2)) if var.lod_level == 0 else [[1]] for var in self.variables[1:]}},
                fetch_list=[loss])
        self.assertIn('"%s" is made at %s:' % (wrong.name, __file__), str(caught.exception))


class ProgramCountersTest(Fresh):
    """A model that is always right: its AUC is 1, whatever training saw."""

    def setUp(self):
        super().setUp()
        self.x, self.y = layers.data("x", [1]), layers.data("y", [1], "int64")
        right = layers.sigmoid(self.x)
        self.auc, self.batch_auc, self.states = layers.auc(layers.concat([1.0 - right, right], axis=1), self.y)
        loss = layers.mean(layers.cross_entropy(layers.fc(self.x, 2, act="softmax"), self.y))
        self.test = self.main.clone(for_test=True)
        optimizer.SGD(1e-6).minimize(loss)
        self.exe = millrace.Executor()
        self.exe.run(self.startup)

    def rows(self, right):
        label = np.arange(64).reshape(-1, 1) % 2
        return {"x": (label * 2 - 1.0) * (1 if right else -1), "y": label}

    def auc_of(self, program, right):
        return float(self.exe.run(program, feed=self.rows(right), fetch_list=[self.auc])[0][0])

    def files(self, right):
        rows = self.rows(right)
        support.write(self.path("part-0"), "".join("1 %r 1 %d\n" % (x, y) for x, y in zip(
            rows["x"].reshape(-1).tolist(), rows["y"].reshape(-1).tolist())))
        return self.dataset([self.x, self.y])

    def test_a_test_program_leaves_out_what_training_counted(self):
        self.assertEqual(self.auc_of(self.test, True), 1.0)
        self.assertEqual(self.auc_of(self.main, False), 0.0)
        self.assertEqual(self.auc_of(self.test, True), 1.0)
        self.assertEqual(self.auc_of(self.main, False), 0.0)  # nor does training count what a test saw

    def test_a_test_program_adds_up_its_batches_until_the_model_changes(self):
        self.assertEqual(self.auc_of(self.test, True), 1.0)
        self.assertEqual(self.auc_of(self.test, False), 0.5)
        other = self.main.clone(for_test=True)
        self.assertEqual(self.auc_of(other, False), 0.0)
        self.assertEqual(self.auc_of(self.test.clone(), False), 0.0)
        self.assertAlmostEqual(self.auc_of(self.test, False), 1 / 3, 5)
        self.auc_of(self.main, True)
        self.assertEqual(self.auc_of(self.test, False), 0.0)
        self.scope.set(self.states[2].name, np.zeros((1, 4096), "int64"))  # how scripts of Paddle begin a test
        self.assertEqual(self.auc_of(self.test, True), 1.0)
        self.exe.run(self.startup)
        self.assertEqual(self.auc_of(self.test, False), 0.0)

    def test_a_test_program_counts_on_each_scope_for_itself(self):
        self.assertEqual(self.auc_of(self.test, True), 1.0)
        with millrace.scope_guard(millrace.Scope()):
            self.exe.run(self.startup)
            self.assertEqual(self.auc_of(self.test, False), 0.0)
        self.assertEqual(self.auc_of(self.test, False), 0.5)

    def counted(self):
        return sum(self.scope.get(state.name).sum() for state in self.states[2:])

    def test_inferring_measures_its_own_rows_and_leaves_what_training_measures(self):
        self.assertEqual(self.auc_of(self.main, False), 0.0)
        for program in (self.test, self.main):
            for right in (True, False):
                report = self.exe.infer_from_dataset(program, self.files(right), fetch_list=[self.auc], print_period=1)
                self.assertEqual(report.history[-1][self.auc.name][0], float(right))
        self.assertEqual(self.auc_of(self.main, False), 0.0)

    def test_the_scope_counts_what_was_inferred_since_its_counts_were_set(self):
        from millrace import fleet
        self.auc_of(self.main, False)
        self.exe.infer_from_dataset(self.test, self.files(True))
        self.assertEqual(self.counted(), 128)
        self.assertEqual(fleet.util.get_global_auc(stat_pos=self.states[2].name, stat_neg=self.states[3].name), 0.5)
        for threads in (1, 3):
            for state in self.states[2:]:
                fleet.util.set_zero(state.name)
            self.exe.infer_from_dataset(self.test, self.files(True), thread=threads)
            self.auc_of(self.test, True)
            self.assertEqual(self.counted(), 128)
            self.assertEqual(fleet.util.get_global_auc(stat_pos=self.states[2].name, stat_neg=self.states[3].name), 1.0)
        self.exe.run(self.startup)
        self.assertEqual(self.counted(), 0)

    def test_the_auc_of_a_report_is_that_of_all_threads(self):
        rows = np.random.default_rng(1).normal(size=4000)
        support.write(self.path("part-0"), "".join("1 %r 1 %d\n" % (x, x + (i % 7 - 3) > 0) for i, x in enumerate(rows.tolist())))
        dataset = self.dataset([self.x, self.y])
        aucs = [self.exe.infer_from_dataset(self.test, dataset, thread=threads, fetch_list=[self.auc], fetch_info=["auc"],
                                            print_period=0).metrics["auc"] for threads in (1, 2, 4, 4)]
        self.assertEqual(len(set(aucs)), 1, aucs)
        report = self.exe.train_from_dataset(self.main, dataset, thread=4, fetch_list=[self.auc], fetch_info=["auc"])
        self.assertAlmostEqual(report.metrics["auc"], aucs[0], 6)

    def test_a_run_that_fails_gives_the_counts_back(self):
        self.auc_of(self.main, False)
        before = self.scope.get(self.states[2].name)
        with self.assertRaisesRegex(millrace.Error, "is not fed"):
            self.exe.run(self.test, feed={"x": [[1.0]]}, fetch_list=[self.auc])
        np.testing.assert_array_equal(self.scope.get(self.states[2].name), before)
        self.assertEqual(self.auc_of(self.test, True), 1.0)

    def test_what_a_program_counts_is_a_result_of_an_inference_and_that_of_all_threads(self):
        main, startup = millrace.Program(), millrace.Program()
        with millrace.program_guard(main, startup):
            x, y = layers.data("x", [1]), layers.data("y", [1], "int64")
            count = layers.create_global_var([1], 0, "float32", persistable=True, name="count")
            clicks = layers.create_global_var([1], 0, "int64", persistable=True, name="clicks")
            layers.assign(count + layers.reduce_sum(layers.cast(y, "float32") * 0.0 + 1.0), output=count)
            layers.assign(clicks + layers.reduce_sum(y), output=clicks)
            loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), layers.cast(y, "float32")))
            optimizer.SGD(1e-6).minimize(loss)
        self.exe.run(startup)
        support.write(self.path("part-0"), "1 0.5 1 1\n1 0.5 1 0\n" * 3000)
        dataset = self.dataset([x, y])
        for passes, run in enumerate([self.exe.infer_from_dataset, self.exe.train_from_dataset] * 3, 1):
            run(main, dataset, thread=4)
            self.assertEqual((self.scope.get("count")[0], self.scope.get("clicks")[0]), (6000 * passes, 3000 * passes))

    def test_what_threads_have_counted_before_a_bad_line_is_there(self):
        main, startup = millrace.Program(), millrace.Program()
        with millrace.program_guard(main, startup):
            x, y = layers.data("x", [1]), layers.data("y", [1], "int64")
            count = layers.create_global_var([1], 0, "int64", persistable=True, name="count")
            layers.assign(count + layers.reduce_sum(y), output=count)
            loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), layers.cast(y, "float32")))
            optimizer.SGD(1e-6).minimize(loss)
        self.exe.run(startup)
        support.write(self.path("part-0"), "1 0.5 1 1\n" * 6000 + "1 0.5 1\n")
        dataset = self.dataset([x, y])
        dataset.set_batch_size(1)
        with self.assertRaises(millrace.DataError):
            self.exe.train_from_dataset(main, dataset, thread=4)
        self.assertEqual(self.scope.get("count")[0], self.scope.step)

    def test_a_copy_of_a_copy_is_of_that_copy(self):
        before = self.test.clone(for_test=True).ops()
        layers.scale(self.x, scale=2.0)
        self.assertEqual(self.test.clone(for_test=True).ops(), before)


class PreparedTest(Fresh):
    """What exe.run keeps from call to call: the compiled program, and the thread that runs what may wait."""

    def setUp(self):
        super().setUp()
        self.exe = millrace.Executor()
        self.x = layers.data("x", [2])
        self.sum = layers.reduce_sum(self.x)
        self.feed = {"x": np.ones((3, 2), "float32")}

    def prepared_by(self, call):
        before = millrace._millrace.programs_prepared()
        call()
        return millrace._millrace.programs_prepared() - before

    def run_main(self, *fetched):
        return [value.tolist() for value in self.exe.run(self.main, feed=self.feed, fetch_list=list(fetched))]

    def test_a_program_is_prepared_once_until_it_changes(self):
        self.assertEqual(self.prepared_by(lambda: [self.run_main(self.sum) for _ in range(5)]), 1)
        twice = layers.scale(self.sum, 2.0)
        self.assertEqual(self.prepared_by(lambda: self.assertEqual(self.run_main(self.sum, twice), [[6], [12]])), 1)
        self.assertEqual(self.prepared_by(lambda: self.assertEqual(self.run_main(twice), [[12]])), 1)
        self.assertEqual(self.prepared_by(lambda: [self.run_main(self.sum, twice), self.run_main(twice)]), 0)
        self.feed["x"] = np.ones((9, 2), "float32")
        self.assertEqual(self.prepared_by(lambda: [self.run_main(twice) for _ in range(2)]), 1)  # for more rows
        self.main.random_seed = 7
        self.assertEqual(self.prepared_by(lambda: self.run_main(twice)), 1)

    def test_every_change_of_a_program_is_seen(self):
        out = layers.fc(self.x, 1, param_attr=ParamAttr("w", initializer.Constant(1.0)), bias_attr=False)
        loss = layers.mean(out)

        def rebuilt(change):
            version = self.main._version()
            change()
            self.exe.run(self.startup)
            self.assertGreater(self.main._version(), version)
            return self.run_main(loss)
        self.assertEqual(rebuilt(lambda: None if self.main._version() < 0 else layers.data("y", [1])), [[2]])
        self.assertEqual(rebuilt(lambda: setattr(out, "stop_gradient", False)), [[2]])
        self.assertEqual(rebuilt(lambda: optimizer.SGD(1.0).minimize(loss)), [[2]])
        self.assertEqual(self.run_main(loss), [[0]])  # it trains now: each weight went down by the mean, 1

    def test_programs_by_turns_are_prepared_once_each(self):
        test = self.main.clone(for_test=True)
        other, start = millrace.Program(), millrace.Program()
        with millrace.program_guard(other, start):
            product = layers.scale(layers.data("x", [2]), 3.0)

        def turns():
            for _ in range(4):
                self.run_main(self.sum)
                self.exe.run(test, feed=self.feed, fetch_list=[self.sum.name])
                self.assertEqual(self.exe.run(other, feed=self.feed, fetch_list=[product])[0].tolist(), [[3, 3]] * 3)
        self.assertEqual(self.prepared_by(turns), 3)

    def test_what_is_prepared_goes_with_its_startup_program(self):
        weight = layers.create_parameter([2, 1], "float32", default_initializer=initializer.Constant(2.0))
        out = layers.matmul(self.x, weight)
        for _ in range(2):
            self.exe.run(self.startup)
            self.assertEqual(self.run_main(out), [[[4], [4], [4]]])

    def test_calls_make_no_threads(self):
        i, n = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", 3)
        go_on = layers.less_than(i, n)
        with layers.While(go_on).block():
            layers.increment(i)
            layers.less_than(i, n, cond=go_on)
        looping = self.main.clone()
        straight, start = millrace.Program(), millrace.Program()
        with millrace.program_guard(straight, start):
            out = layers.scale(layers.data("x", [2]), 3.0)

        def calls():
            self.exe.run(looping, feed=self.feed, fetch_list=[i.name])  # may wait: a thread of its own, kept
            self.exe.run(straight, feed=self.feed, fetch_list=[out])
        calls()
        before = millrace._millrace.workers_made(), len(os.listdir("/proc/self/task"))
        for _ in range(20):
            calls()
        self.assertEqual((millrace._millrace.workers_made(), len(os.listdir("/proc/self/task"))), before)

    def test_a_child_after_fork_runs_by_threads_of_its_own(self):
        self.run_main(self.sum)
        child = os.fork()
        if child == 0:
            other = millrace.Program()
            with millrace.program_guard(other, millrace.Program()):
                out = layers.scale(layers.data("x", [2]), 3.0)
            value, = self.exe.run(other, feed=self.feed, fetch_list=[out])
            os._exit(0 if value.tolist() == [[3, 3]] * 3 else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_threads_run_programs_of_scopes_of_their_own_at_once(self):
        wrong = []

        def run(number):
            scope = millrace.Scope()
            feed = {"x": np.full((3, 2), number, "float32")}
            for _ in range(50):
                value, = self.exe.run(self.main, feed=feed, fetch_list=[self.sum], scope=scope)
                if value.tolist() != [6 * number]:
                    wrong.append((number, value))
        threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_threads_that_run_on_one_scope_are_told_or_right(self):
        seen = []

        def run():
            for _ in range(200):
                try:
                    seen.append(self.run_main(self.sum))
                except millrace.AlreadyExistsError:
                    pass
        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(set(map(str, seen)), {"[[6.0]]"})

    def test_ctrl_c_goes_to_its_handler_although_the_caller_runs_it_itself(self):
        self.run_main(self.sum)
        with self.assertRaises(KeyboardInterrupt):
            while True:
                self.run_main(self.sum)
                os.kill(os.getpid(), signal.SIGINT)


class ArraysTest(Fresh):
    def test_parameters_start_as_arrays(self):
        values = np.arange(12, dtype=np.float64).reshape(4, 3) / 8
        ids, x = layers.data("ids", [1], "int64"), layers.data("x", [4])
        start = initializer.NumpyArrayInitializer(values)
        rows = layers.embedding(ids, [4, 3], param_attr=ParamAttr("pretrained", start))
        again = layers.embedding(ids, [4, 3], param_attr=ParamAttr("pretrained", initializer.NumpyArrayInitializer(values)))
        out = layers.fc(x, 3, param_attr=start, bias_attr=initializer.NumpyArrayInitializer([1, 2, 3]))
        ops = self.startup.ops()
        for mistake, message in [
                (lambda: layers.fc(x, 2, param_attr=start), r'fc_1.w_0" is \[4, 2\], and its NumpyArrayInitializer has an array \[4, 3\]'),
                (lambda: layers.embedding(ids, [5, 3], param_attr=ParamAttr("e", start)), r'"e" is \[5, 3\]'),
                (lambda: layers.embedding(layers.data("C", [1], "int64", lod_level=1), [None, 3], param_attr=ParamAttr("g", start)),
                 r'"g" is \[None, 3\]'),
                (lambda: layers.embedding(ids, [4, 3], param_attr=ParamAttr("pretrained", initializer.NumpyArrayInitializer(values + 1))),
                 '"pretrained" is there already, and starts by another initializer'),
                (lambda: initializer.NumpyArrayInitializer([1.0, np.nan]), "1 of 2 values are nan or infinite"),
                (lambda: initializer.NumpyArrayInitializer(["a"]), "an array of numbers"),
                (lambda: initializer.NumpyArrayInitializer(np.ma.masked_equal(values, 0)), "1 of 12 values are masked")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()
            self.assertEqual(self.startup.ops(), ops)
        optimizer.SGD(0.1).minimize(layers.mean(out) + layers.mean(rows))
        exe = millrace.Executor()
        exe.run(self.startup)
        np.testing.assert_array_equal(self.scope.get("pretrained"), values.astype("float32"))
        found = exe.run(self.main.clone(for_test=True), feed={"ids": [[2], [0]], "x": np.eye(4)[:2]}, fetch_list=[rows, again, out])
        np.testing.assert_array_equal(found[0], values[[2, 0]])
        np.testing.assert_array_equal(found[1], found[0])
        np.testing.assert_array_equal(found[2], values[:2] + [1, 2, 3])
        exe.run(self.main, feed={"ids": [[2]], "x": np.eye(4)[:1]})
        self.assertFalse((self.scope.get("pretrained") == values).all())

    def test_a_masked_value_is_refused_wherever_an_array_comes_in(self):
        x, c = layers.data("x", [2]), layers.data("c", [1], "int64", lod_level=1)
        weight = layers.create_parameter([2], name="w")
        total = layers.reduce_sum(x * weight)
        exe = millrace.Executor()
        exe.run(self.startup)
        rows = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [0, 0]])
        ids = np.ma.masked_array([1, 2], mask=[1, 0])
        for where, call in [
                ('feed "x": 1 of 4', lambda: exe.run(feed={"x": rows}, fetch_list=[total])),
                ('feed "x": 1 of 2', lambda: exe.run(feed={"x": list(rows)}, fetch_list=[total])),
                ('feed "c": 1 of 2', lambda: exe.run(feed={"x": rows.filled(0), "c": [ids, [3]]}, fetch_list=[total])),
                ('feed "c": 1 of 2', lambda: exe.run(feed={"x": rows.filled(0), "c": (ids, [1, 1])}, fetch_list=[total])),
                ('variable "w": 1 of 2', lambda: self.scope.set("w", rows[0])),
                ('variable "w": 1 of 2', lambda: self.scope.find_var("w").get_tensor().set(rows[0])),
                ("assign: input: 1 of 4", lambda: layers.assign(rows)),
                ("1 of 1 values are masked", lambda: x * np.ma.masked)]:
            with self.assertRaisesRegex(millrace.ConfigError, where + ".*masked|" + where):
                call()
        plain = rows.filled(0)
        self.assertEqual(exe.run(feed={"x": np.ma.masked_array(plain)}, fetch_list=[total])[0],
                         exe.run(feed={"x": plain}, fetch_list=[total])[0])


class LayersTest(Fresh):
    def test_a_mistake_is_at_its_line_and_leaves_the_program_as_it_was(self):
        x = layers.data("x", [3])
        y = layers.data("y", [4])
        ops = self.main.ops()
        for mistake, message in [
                (lambda: layers.elementwise_add(x, y), r"elementwise_add"),
                (lambda: layers.op("elementwse_add", {"X": x, "Y": y}), 'no operator "elementwse_add"; did you mean "elementwise_add"'),
                (lambda: layers.op("scale", {"X": x}, {"scal": 2.0}), 'scale: attribute "scal" is not supported; did you mean "scale"'),
                (lambda: layers.op("scale", {"X": x}, {"scale": "2"}), 'scale: attribute "scale" is a float, not \'2\''),
                (lambda: layers.op("scale", {"Y": x}), 'scale: input X is not bound'),
                (lambda: layers.op("scale", {"X": x}, outputs=["Uot"]), 'there is no output "Uot"; did you mean "Out"'),
                (lambda: layers.op("sgd", {"Param": x, "Grad": x, "LearningRate": x}), "made by an optimizer's minimize"),
                (lambda: layers.data("x", [3]), 'there is a variable "x" already; a model that is written again.* goes to new programs'),
                (lambda: layers.data("z", [3], "float23"), 'there is no dtype "float23"'),
                (lambda: layers.fc(x, 0), 'sizes must be positive'),
                (lambda: layers.fc(3, 2), "fc: input is a Variable, not 3"),
                (lambda: layers.embedding(x, [10, 4]), "lookup_table"),
                (lambda: layers.sequence_pool(x, "sum"), "sequence_pool"),
                (lambda: layers.sequence_pool(x, None), "pool_type: a str, not None"),
                (lambda: layers.op("relu", [x]), 'inputs are a dict, {"X": variable}, not'),
                (lambda: layers.op("relu", {"X": x}, [1]), r'attrs are a dict, {"axis": 1}, not \[1\]'),
                (lambda: x + "a", "a number, not 'a'"),
                (lambda: x / None, "a number, not None"),
                (lambda: self.main.var("yy"), 'the program has no variable "yy"; did you mean "y"?')]:
            with self.assertRaisesRegex(millrace.Error, message):
                mistake()
            self.assertEqual(self.main.ops(), ops)

    def test_shapes_are_inferred(self):
        x = layers.data("x", [4, 3])
        ids = layers.data("ids", [1], "int64", lod_level=1)
        rows = layers.embedding(ids, [50, 8], padding_idx=0)
        self.assertEqual((rows.shape, rows.lod_level, rows.dtype), ((-1, 8), 1, "float32"))
        self.assertEqual(layers.sequence_pool(rows, "max").shape, (-1, 8))
        self.assertEqual(layers.reshape(x, [-1, 12]).shape, (-1, 12))
        self.assertEqual(layers.fc(x, 5).shape, (-1, 5))
        self.assertEqual(layers.transpose(x, [0, 2, 1]).shape, (-1, 3, 4))
        self.assertEqual([part.shape for part in layers.split(x, 3, dim=2)], [(-1, 4, 1)] * 3)
        self.assertEqual(layers.reduce_sum(x, dim=[1, 2]).shape, (-1,))
        self.assertEqual(layers.cast(ids, "float32").dtype, "float32")
        self.assertEqual(repr(x), 'Variable("x", float32 [-1, 4, 3])')

    def test_every_layer_computes(self):
        x = layers.data("x", [2])
        z = layers.data("z", [2])
        ids = layers.data("ids", [1], "int64", lod_level=1)
        feed = {"x": np.array([[0.5, -1.0], [2.0, 0.25]], dtype=np.float32), "z": [[1.0, 2.0], [4.0, 0.5]],
                "ids": [[1, 2], [0]]}
        a, b = feed["x"], np.array(feed["z"], dtype=np.float32)
        positive = layers.square(x)
        cases = [(layers.relu(x), np.maximum(a, 0)), (layers.sigmoid(x), 1 / (1 + np.exp(-a))),
                 (layers.tanh(x), np.tanh(a)), (positive, a * a), (layers.sqrt(positive), abs(a)), (layers.exp(x), np.exp(a)),
                 (layers.log(positive), np.log(a * a)), (layers.abs(x), abs(a)), (layers.sign(x), np.sign(a)),
                 (layers.elementwise_max(x, z), np.maximum(a, b)), (layers.elementwise_min(x, z), np.minimum(a, b)),
                 (x + z, a + b), (x - z, a - b), (x * z, a * b), (x / z, a / b), (x + 1, a + 1), (1 - x, 1 - a),
                 (2 * x, 2 * a), (x / 2, a / 2), (-x, -a), (layers.clip(x, 0, 1), a.clip(0, 1)),
                 (layers.reduce_sum(x), a.sum()), (layers.reduce_mean(x, dim=1), a.mean(axis=1)),
                 (layers.mean(x), a.mean()), (layers.softmax(x), np.exp(a) / np.exp(a).sum(axis=1, keepdims=True)),
                 (layers.matmul(x, z, transpose_y=True), a @ b.T), (layers.concat([x, z], axis=1), np.hstack([a, b])),
                 (layers.stack([x, z], axis=1), np.stack([a, b], axis=1)), (layers.sums([x, z, x]), a + b + a),
                 (layers.square_error_cost(x, z), (a - b) ** 2), (layers.slice(x, [1], [0], [1]), a[:, :1]),
                 (layers.topk(z, 1)[0], b.max(axis=1, keepdims=True)), (layers.unsqueeze(x, 1), a[:, None]),
                 (layers.transpose(x, [1, 0]), a.T), (layers.scale(x, 2, 1, bias_after_scale=False), 2 * (a + 1)),
                 (layers.dropout(x, 0.5, is_test=True), a * 0.5), (layers.assign(x), a), (layers.ones_like(x), np.ones_like(a)),
                 (layers.fill_constant([2], "float32", 3), [3, 3])]
        pooled = layers.sequence_pool(layers.embedding(ids, [5, 3], param_attr="table"), "sum")
        millrace.Executor().run(self.startup)
        table = self.scope.get("table")
        cases.append((pooled, np.stack([table[1] + table[2], table[0]])))
        found = millrace.Executor().run(self.main, feed=feed, fetch_list=[var for var, _ in cases])
        for (var, wanted), got in zip(cases, found):
            np.testing.assert_allclose(np.squeeze(got), np.squeeze(wanted), rtol=2e-6, atol=1e-6, err_msg=var.name)

    def test_accuracy_and_losses(self):
        probabilities = layers.data("p", [2])
        label = layers.data("label", [1], "int64")
        logit = layers.data("logit", [1])
        click = layers.cast(label, "float32")
        p = np.array([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]], dtype=np.float32)
        z = np.array([[1.0], [-2.0], [0.5]])
        y = np.array([[0], [1], [1]])
        cases = [(layers.accuracy(probabilities, label), 2 / 3),
                 (layers.cross_entropy(probabilities, label), -np.log([[0.9], [0.7], [0.4]])),
                 (layers.sigmoid_cross_entropy_with_logits(logit, click), np.log1p(np.exp(z)) - z * y),
                 (layers.softmax_with_cross_entropy(layers.log(probabilities), label), -np.log([[0.9], [0.7], [0.4]])),
                 (layers.log_loss(layers.sigmoid(logit), click, epsilon=0.0), np.log1p(np.exp(z)) - z * y)]
        found = millrace.Executor().run(self.main, feed={"p": p, "label": y, "logit": z}, fetch_list=[v for v, _ in cases])
        for (var, wanted), got in zip(cases, found):
            np.testing.assert_allclose(np.squeeze(got), np.squeeze(wanted), rtol=1e-5, err_msg=var.name)

    def test_feeds_that_do_not_fit_are_named(self):
        x = layers.data("x", [2])
        ids = layers.data("ids", [1], "int64", lod_level=1)
        out = layers.elementwise_add(x, layers.sequence_pool(layers.cast(ids, "float32"), "sum"), axis=0)
        exe = millrace.Executor()
        for feed, message in [
                ({"ids": [[1]]}, 'the program reads "x", which is not fed'),
                ({"x": np.zeros((1, 3)), "ids": [[1]]}, r'feed "x" is float32 \[1, 3\], but the variable is float32 \[-1, 2\]'),
                ({"x": np.zeros((2, 2)), "ids": [[1]]}, 'feed "ids" has 1 rows, but another one has 2'),
                ({"y": np.zeros((2, 2)), "x": np.zeros((2, 2)), "ids": [[1]]}, 'no variable "y"'),
                ({"x": np.zeros((1, 2)), "ids": (np.array([1, 2]), np.array([1]))},
                 'feed "x" has 1 rows, but another one has 2; a list or tuple has a sequence for each row, values with lengths are '
                 "create_lod_tensor"),
                ({"x": np.zeros((1, 2)), "ids": 3}, 'feed "ids": a list with a sequence for each row, an array or a LoDTensor, not 3'),
                ({"x": np.zeros((1, 2)), x: np.zeros((1, 2)), "ids": [[1]]}, 'feed: "x" is there twice'),
                ({"x": np.zeros((1, 2)), "ids": [[1.5]]}, 'feed "ids" holds int64; give whole numbers, not float64'),
                ({"x": np.zeros((1, 2)) + 1j, "ids": [[1]]}, 'feed "x" holds float32; give numbers, not complex128'),
                ({"x": [["a", "b"]], "ids": [[1]]}, 'feed "x" holds float32; give numbers, not <U1'),
                ({"x": [[1, 2], [3]], "ids": [[1], [2]]}, 'feed "x"'),
                ({"x": np.zeros((0, 2)), "ids": []}, "feed: the batch has no rows"),
                ([{"x": 1}, {}], "feed: a dict of arrays")]:
            with self.assertRaisesRegex(millrace.Error, message):
                exe.run(self.main, feed=feed, fetch_list=[out])
        self.assertEqual(exe.run(self.main, feed={"x": [[1, 2]], "ids": [[3, 4]]}, fetch_list=[x])[0].tolist(), [[1, 2]])
        # Views of any strides, ids of all 64 bits, one variable instead of a list.
        whole = np.arange(12, dtype=np.float32).reshape(2, 6)
        for view in (whole[:, ::-3], whole[::-1, 1::3], whole.T[4:].T, np.asfortranarray(whole)[:, :2]):
            self.assertEqual(exe.run(self.main, feed={"x": view, "ids": [[1], [2 ** 63 + 1]]}, fetch_list=x)[0].tolist(),
                             view.tolist())
        wide = exe.run(self.main, {"x": [[0, 0]], "ids": np.array([[2 ** 64 - 1]], dtype=np.uint64)}, [ids])[0]
        self.assertEqual(wide.tolist(), [[-1]])
        mixed = exe.run(self.main, {"x": [[0, 0]], "ids": [[2 ** 63 + 1, 3]]}, [ids])[0]
        self.assertEqual(mixed.tolist(), [[1 - 2 ** 63], [3]])
        with self.assertRaisesRegex(millrace.ConfigError, 'feed "ids": 18446744073709551616 does not fit 64 bits'):
            exe.run(self.main, {"x": [[0, 0]], "ids": [[2 ** 64]]}, [ids])

    def test_a_tuple_of_two_rows_is_two_rows(self):
        ids, y = layers.data("ids", [1], "int64", lod_level=1), layers.data("y", [1])
        pooled = layers.sequence_pool(layers.cast(ids, "float32"), "sum") + y
        exe = millrace.Executor()
        for batch in ([([7, 8], [0.0]), ([2], [1.0])], [([1, 1], [0.5]), ([1, 1], [0.5])], [([1], [0.0]), ([1], [0.0]), ([5, 6], [2.0])]):
            rows, values = zip(*batch)
            wanted = [[sum(row) + value[0]] for row, value in batch]
            for given in (rows, list(rows), tuple(np.array(row) for row in rows)):
                self.assertEqual(exe.run(self.main, {ids: given, "y": values}, [pooled])[0].tolist(), wanted)
        lengths = millrace.create_lod_tensor(np.array([7, 8, 2]), [[2, 1]], millrace.CPUPlace())
        self.assertEqual((lengths.lod(), lengths.recursive_sequence_lengths(), lengths.shape()), ([[0, 2, 3]], [[2, 1]], [3]))
        for given in (lengths, millrace.create_lod_tensor([[7, 8], [2]], [[2, 1]])):
            self.assertEqual(exe.run(self.main, {ids: given, y: [[0.0], [1.0]]}, [pooled])[0].tolist(), [[15], [3]])
        for mistake, message in [
                (lambda: millrace.create_lod_tensor([1, 2], [[1]]), "recursive_seq_lens sums to 1, and there are 2 values"),
                (lambda: millrace.create_lod_tensor([1, 2], [[3, -1]]), "at least 0, not -1"),
                (lambda: millrace.create_lod_tensor([1, 2], [1, 1]), "one list of lengths"),
                (lambda: millrace.create_lod_tensor(np.ma.array([1, 2], mask=[0, 1]), [[2]]), "data: 1 of 2 values are masked"),
                (lambda: millrace.create_lod_tensor([[1], [2]], [[2, 0]]), r"\[\[2, 0\]\], but the rows of data have \[1, 1\] values")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()

    def test_lengths_in_a_tuple_are_no_row_and_vectors_are_rows_of_vectors(self):
        ids, vectors = layers.data("ids", [1], "int64", lod_level=1), layers.data("vectors", [2], lod_level=1)
        pooled = layers.sequence_pool(vectors, "sum") + layers.sequence_pool(layers.cast(ids, "float32"), "sum")
        exe, rows = millrace.Executor(), [np.array([[1, 2], [3, 4]]), [], [[5, 6]]]
        found = exe.run(self.main, {ids: [[1], [[1], [1]], []], vectors: rows}, [pooled])[0]
        self.assertEqual(found.tolist(), [[5, 7], [2, 2], [5, 6]])
        for given, vector_rows, message in [
                (([[7], [8], [2]], [[2, 1]]), [[], []], r'"ids": row 1 has the shape \[1, 2\], and a sequence is \[k\] or \[k, 1\]; values with'),
                ([[1]], [[1, 2]], r'"vectors": row 0 has the shape \[2\], and a sequence is \[k, 2\]'),
                ([[1]], [3.0], r'"vectors": row 0 has the shape \[\]')]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                exe.run(self.main, {ids: given, vectors: vector_rows}, [pooled])

    def test_ids_below_0_are_refused_where_a_table_is_asked(self):
        ids, label = layers.data("ids", [1], "int64", lod_level=1), layers.data("label", [1], "int64")
        out = layers.sequence_pool(layers.embedding(ids, [None, 2], optimizer=optimizer.Adagrad(0.1)), "sum") + layers.cast(label, "float32")
        exe = millrace.Executor()
        exe.run(self.startup)
        labels = np.full((2, 1), -1)  # no id
        for given, place in [([[1], [3, -1]], r"-1 \(row 1, value 1, from 0\)"), (np.array([[1, -5], [3, 4]]), r"-5 \(row 0, value 1,"),
                             (millrace.create_lod_tensor(np.array([1, 2, -7]), [[1, 2]]), r"-7 \(row 2, from 0\)"),
                             ([[2 ** 63 + 1, -1], [1]], "-1 is below 0")]:
            with self.assertRaisesRegex(millrace.ConfigError, r'feed "ids": an id is 0 to 2\*\*64 - 1, and ' + place):
                exe.run(self.main, {"ids": given, "label": labels}, [out])
            with self.assertRaises(millrace.ConfigError):
                exe.run(self.main.clone(for_test=True), {"ids": given, "label": labels}, [out])
        hashed = np.array([[2 ** 64 - 1], [5]], dtype=np.uint64)
        exe.run(self.main, {"ids": hashed, "label": labels}, [out])

    def test_floats_that_are_not_finite_do_not_train(self):
        x, y = layers.data("x", [2]), layers.data("y", [1])
        predict = layers.fc(x, 1, param_attr="w")
        loss = layers.mean(layers.square_error_cost(predict, y))
        test = self.main.clone(for_test=True)
        optimizer.SGD(0.1).minimize(loss)
        exe = millrace.Executor()
        exe.run(self.startup)
        before = self.scope.get("w")
        bad = np.array([[1, 2], [3, np.nan], [-np.inf, 0]], dtype=np.float32)
        feed = {"x": bad, "y": np.zeros((3, 1), dtype=np.float32)}
        with self.assertRaisesRegex(millrace.ConfigError, r'feed "x": nan \(row 1, value 1, from 0\) and 1 more that are not finite, which '
                                                          "trains the parameters to nan; leave such rows out"):
            exe.run(self.main, feed, [loss])
        self.assertTrue((self.scope.get("w") == before).all())
        with self.assertWarnsRegex(millrace.MillraceWarning, r'feed "x": nan \(row 1, value 1, from 0\)') as caught:
            exe.run(test, feed, [predict])
        self.assertEqual(caught.filename, __file__)

    def test_feeds_of_int32_are_not_cut(self):
        number = layers.cast(layers.data("n", [1], "int32"), "float32")
        exe = millrace.Executor()
        self.assertEqual(exe.run(self.main, {"n": [[2 ** 31 - 1], [-2 ** 31]]}, number)[0].tolist(), [[2.0 ** 31], [-2.0 ** 31]])
        with self.assertRaisesRegex(millrace.ConfigError, r'feed "n" holds int32, from -2147483648 to 2147483647; there are '
                                                          'values from 1 to 2147483648'):
            exe.run(self.main, {"n": [[1], [2 ** 31]]}, number)

    def test_sizes_that_are_none_are_named(self):
        x = layers.data("x", [2])
        ids = layers.data("ids", [1], "int64", lod_level=1)
        for mistake, message in [
                (lambda: layers.fc(x, 2.5), "fc: size: a whole number, not 2.5"),
                (lambda: layers.embedding(ids, [10]), r"embedding: size is \[vocabulary, dim\], not \[10\]"),
                (lambda: layers.embedding(ids, [10, "a"]), "embedding: size: a whole number, not 'a'"),
                (lambda: layers.embedding(ids, [None, 4], padding_idx=-1), "a table that grows has none"),
                (lambda: layers.embedding(ids, [-5, 3]), r"a vocabulary has at least 1 id, not -5; a table that grows is \[None, 3\]"),
                (lambda: layers.embedding(ids, [0, 3]), "a vocabulary has at least 1 id, not 0"),
                (lambda: layers.embedding(ids, [5, 0]), "at least 1"), (lambda: layers.embedding(ids, [5, -2]), "at least 1"),
                (lambda: layers.embedding(ids, [10, 4], out_of_range="WHAT"), "not 'WHAT'"),
                (lambda: layers.data("n", 4), 'data "n": shape: a list of sizes, not 4'),
                (lambda: layers.data("n", [4], "float32", True), "True stands where dtype or lod_level do; give append_batch_size by its name"),
                (lambda: layers.data("n", [4], "float32", "1"), "lod_level: a whole number, not '1'"),
                (lambda: layers.data("n", [4], object()), 'a dtype is a name, for example "float32"'),
                (lambda: millrace.program_guard("main").__enter__(), "program_guard: a Program, not 'main'"),
                (lambda: millrace.scope_guard(None).__enter__(), "scope_guard: a Scope, not None"),
                (lambda: layers.data(5, [1]), "data: a slot's name is a str, not 5"),
                (lambda: layers.data("n", [-3]), r'data "n": a size is -1 \(any\) or positive; \[-1, -3\]'),
                (lambda: layers.data("n", [0]), r'data "n": a size is -1 \(any\) or positive; \[-1, 0\]')]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()

    def test_equals_are_compared_value_by_value(self):
        y, z = layers.data("y", [1], "int64"), layers.data("z", [1])
        loss = layers.square(z)
        cases = [((y == 1) * loss, [[0], [4], [0]]), (loss * (y != 1), [[1], [0], [9]]), ((1 == y) * 2.5, [[0], [2.5], [0]]),
                 ((z == 2.0) + (y != 1), [[1], [1], [1]]), (1 - (y == 1), [[1], [0], [1]]), (-(y == 1), [[0], [-1], [0]]),
                 ((y == y) * loss, [[1], [4], [9]]), ((np.int64(1) == y) * loss, [[0], [4], [0]]),
                 ((z == 2.5) * loss, [[0], [0], [0]]), (y == 1, [[False], [True], [False]]),
                 ((y == 1) == True, [[False], [True], [False]]), ((y == 1) != 2, [[True], [True], [True]])]  # noqa: E712
        found = millrace.Executor().run(self.main, {y: [[0], [1], [2]], z: [[1], [2], [3]]}, [var for var, _ in cases])
        for array, (var, wanted) in zip(found, cases):
            self.assertEqual(array.tolist(), wanted, var.name)
        self.assertEqual(len({y, z, loss, y}), 3)  # as keys they are objects
        for mistake, message in [(lambda: y == None, "equal: y: a number, not None"),  # noqa: E711
                                 (lambda: y == "1", "equal: y: a number, not '1'"), (lambda: y in [loss], "compare names|equal"),
                                 (lambda: [loss].index(z), "compare names"), (lambda: y == z, "equal"),
                                 (lambda: z / 0, '"z" is divided by 0')]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()

    def test_whole_numbers_are_not_divided_by_0(self):
        a, b = layers.data("a", [2], "int64"), layers.data("b", [2], "int64")
        exe = millrace.Executor()
        feed = {"a": [[7, -7], [9, 9]], "b": [[2, 2], [5, 0]]}
        floats = [layer(layers.cast(a, "float32"), layers.cast(b, "float32"))
                  for layer in (layers.elementwise_floordiv, layers.elementwise_mod)]
        whole, rest = exe.run(self.main, feed, floats)
        self.assertEqual((whole[1, 1], bool(np.isnan(rest[1, 1]))), (np.inf, True))
        for layer, wanted in [(layers.elementwise_floordiv, [3, -4]), (layers.elementwise_mod, [1, 1]), (layers.elementwise_div, [3, -3])]:
            main = millrace.Program()
            with millrace.program_guard(main, millrace.Program()):
                out = layer(layers.data("a", [2], "int64"), layers.data("b", [2], "int64"))
            self.assertEqual(exe.run(main, dict(feed, b=[[2, 2], [1, 1]]), [out])[0][0].tolist(), wanted)
            with self.assertRaisesRegex(millrace.DataError, r'"b" \[2, 2\] is 0 in row 1, value 1 \(both from 0\): no whole number is '
                                                            "divided by 0"):
                exe.run(main, feed, [out])

    def test_rows_that_no_batch_touches_move_by_the_rules_that_say_so(self):
        for rule, moves in [(optimizer.SGD(0.1), False), (optimizer.Adagrad(0.1), False), (optimizer.Ftrl(0.1), False),
                            (optimizer.Adam(0.1, lazy_mode=True), False), (optimizer.Adam(0.1), True),
                            (optimizer.Momentum(0.1, 0.9), True), (optimizer.Adamax(0.1), True),
                            (optimizer.SGD(0.1, regularization=regularizer.L2Decay(0.1)), True)]:
            main, startup, scope = millrace.Program(), millrace.Program(), millrace.Scope()
            with millrace.program_guard(main, startup), millrace.scope_guard(scope):
                ids = layers.data("ids", [1], "int64", lod_level=1)
                pooled = layers.sequence_pool(layers.embedding(ids, [4, 2], param_attr="table"), "sum")
                rule.minimize(layers.mean(layers.square(pooled)))
                exe = millrace.Executor()
                exe.run(startup)
                exe.run(main, {"ids": [[1], [2]]})
                before = scope.get("table")
                exe.run(main, {"ids": [[2], [2]]})
                moved = (scope.get("table") != before).any(axis=1).tolist()
            self.assertEqual(moved[1:3], [moves, True], rule)

    def test_variables_calculate_with_numbers(self):
        x = layers.data("x", [2], np.float32)
        made = [2 / x, x ** 2, x ** x, 1 - x, np.float32(2) + x, layers.concat(x)]
        got = millrace.Executor().run(self.main, {"x": [[1, 4]]}, made)
        wanted = [[2, 0.5], [1, 16], [1, 256], [0, -3], [3, 6], [1, 4]]
        for array, values in zip(got, wanted):
            np.testing.assert_allclose(array[0], values, rtol=1e-6)

    def test_everything_public_has_a_docstring(self):
        missing = []
        for module in ["", *millrace._SUBMODULES]:
            module = importlib.import_module("millrace." + module) if module else millrace
            for name in module.__all__:
                made = getattr(module, name)
                if not getattr(made, "__module__", "").startswith("millrace"):
                    continue
                parts = vars(made).items() if inspect.isclass(made) else []
                parts = [("%s.%s" % (name, part), value) for part, value in parts if not part.startswith("_")]
                for what, value in [(name, made), *parts]:
                    if (callable(value) or isinstance(value, property)) and not inspect.getdoc(value):
                        missing.append(what)
        self.assertEqual(missing, [])

    def test_every_operator_says_what_it_is(self):
        for name in millrace.op_types():
            info = millrace.op_info(name)
            self.assertTrue(info["doc"], name)
            self.assertTrue(all(doc for _, doc, _, _ in info["inputs"] + info["outputs"]), name)

    def test_programs_do_not_mix(self):
        x = layers.data("x", [3])
        with millrace.program_guard(millrace.Program(), millrace.Program()):
            other = layers.data("x", [3])
        with self.assertRaisesRegex(millrace.ConfigError, '"x" is a variable of another program'):
            layers.elementwise_add(x, other)
        with self.assertRaisesRegex(millrace.ConfigError, "startup program"):
            self.startup.var("x")


class OptimizerTest(Fresh):
    def linear(self):
        x = layers.data("x", [2])
        y = layers.data("y", [1])
        return layers.mean(layers.square_error_cost(layers.fc(x, 1, param_attr=ParamAttr("w", initializer.Constant(0.5)),
                                                              bias_attr=False), y))

    def step(self, feed):
        return millrace.Executor().run(self.main, feed=feed)

    def test_each_rule_updates_as_it_says(self):
        x, y = np.array([[1.0, 2.0]], dtype=np.float32), np.array([[1.0]], dtype=np.float32)
        w = np.full(2, 0.5)
        g = 2 * (x @ w - 1) * x[0]
        rules = {
            "sgd": (optimizer.SGD(0.1), w - 0.1 * g),
            "adagrad": (optimizer.Adagrad(0.1, epsilon=1e-6, initial_accumulator_value=0.25),
                        w - 0.1 * g / (np.sqrt(0.25 + g * g) + 1e-6)),
            "momentum": (optimizer.Momentum(0.1, 0.5, regularization=regularizer.L2Decay(0.5)), w - 0.1 * (g + 0.5 * w)),
            "nesterov": (optimizer.Momentum(0.1, 0.5, use_nesterov=True), w - 0.1 * (g + 0.5 * g)),
            "ftrl": (optimizer.Ftrl(0.1, beta=1.0), None),
            "adam": (optimizer.Adam(0.1), w - 0.1 * np.sign(g)),
            "warm-up": (optimizer.SGD(optimizer.linear_lr_warmup(0.1, 10)), None)}
        for name, (rule, wanted) in rules.items():
            main, startup = millrace.Program(), millrace.Program()
            with millrace.program_guard(main, startup), millrace.scope_guard(millrace.Scope()):
                loss = self.linear()
                _, pairs = rule.minimize(loss)
                self.assertEqual([(p.name, g.name) for p, g in pairs], [("w", "w@GRAD")])
                exe = millrace.Executor()
                exe.run(startup)
                exe.run(main, feed={"x": x, "y": y})
                got = millrace.global_scope().get("w").reshape(-1)
            if wanted is not None:
                np.testing.assert_allclose(got, wanted, rtol=1e-5, err_msg=name)

    def test_mistakes_of_minimize(self):
        x = layers.data("x", [2])
        with self.assertRaisesRegex(millrace.ConfigError, "the loss must be one float"):
            optimizer.SGD(0.1).minimize(layers.square(x))
        with self.assertRaises(millrace.ConfigError):
            optimizer.SGD(0.1).minimize(layers.mean(x))  # depends on no parameter
        loss = layers.mean(layers.fc(x, 1))
        ops = self.main.ops()
        with self.assertRaisesRegex(millrace.ConfigError, "sgd: lr must be above 0, not -0.1"):
            optimizer.SGD(-0.1).minimize(loss)
        self.assertEqual(self.main.ops(), ops)
        optimizer.SGD(0.1).minimize(loss)
        with self.assertRaisesRegex(millrace.ConfigError, "minimize was called already"):
            optimizer.SGD(0.1).minimize(loss)

    def test_what_is_not_trainable_stays(self):
        x = layers.data("x", [2])
        frozen = layers.fc(x, 3, param_attr=ParamAttr("frozen", trainable=False), bias_attr=False)
        loss = layers.mean(layers.fc(frozen, 1, param_attr="w", bias_attr=False))
        _, pairs = optimizer.SGD(0.1).minimize(loss)
        self.assertEqual([p.name for p, _ in pairs], ["w"])

    def test_a_copy_for_tests_has_the_forward_part_alone(self):
        x = layers.data("x", [2])
        loss = layers.mean(layers.dropout(layers.fc(x, 3), 0.5))
        optimizer.Adam(0.1).minimize(loss)
        test = self.main.clone(for_test=True)
        self.assertEqual([line.split(": ")[1] for line in test.ops().splitlines()[1:]],
                         ["mul", "elementwise_add", "dropout", "mean"])
        self.assertIn("is_test", test.to_string())
        millrace.Executor().run(self.startup)
        feed = {"x": [[1.0, 2.0]]}
        exe = millrace.Executor()
        self.assertEqual(exe.run(test, feed, [loss]), exe.run(test, feed, [loss]))


if __name__ == "__main__":
    unittest.main()
