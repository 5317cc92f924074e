"""What is saved and goes on: persistables, checkpoints, models to run; and names, by which programs share a scope or do not."""

import os
import tempfile
import threading
import unittest
import warnings

import support

import numpy as np

import millrace
from millrace import layers, optimizer, unique_name


class Case(unittest.TestCase):
    """A folder, a scope and new names for each test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.scope = millrace.Scope()
        self.exe = millrace.Executor()
        for guard in (millrace.scope_guard(self.scope), unique_name.guard()):
            guard.__enter__()
            self.addCleanup(guard.__exit__, None, None, None)

    def path(self, name):
        return os.path.join(self.folder, name)


class Model:
    """A table that grows and one that does not, and a rate that falls to nothing within a few steps."""

    def __init__(self, rate=None, rule=optimizer.Adagrad, trains=True):
        self.main, self.startup = millrace.Program(), millrace.Program()
        with unique_name.guard(), millrace.program_guard(self.main, self.startup):
            self.ids, self.label = layers.data("C", [1], "int64", lod_level=1), layers.data("y", [1])
            parts = [layers.sequence_pool(layers.embedding(self.ids, [size, 4], param_attr=name), "sum")
                     for size, name in ((None, "deep"), (50, "short"))]
            self.score = layers.fc(layers.concat(parts, axis=1), 1, param_attr="w")
            self.loss = layers.mean(layers.square_error_cost(self.score, self.label))
            self.test = self.main.clone(for_test=True)
            if trains:
                rule(optimizer.exponential_decay(0.5, 2, 0.1) if rate is None else rate).minimize(self.loss)

    def feed(self, seed):
        draw = np.random.RandomState(seed)
        return {"C": [draw.randint(0, 50, 3).tolist() for _ in range(16)], "y": draw.randn(16, 1).astype("float32")}

    def train(self, exe, first, last):
        return [exe.run(self.main, feed=self.feed(seed), fetch_list=[self.loss])[0][0] for seed in range(first, last)]

    def scores(self, exe):
        return exe.run(self.test, feed=self.feed(99), fetch_list=[self.score])[0]


class FolderTest(Case):
    def test_a_folder_without_a_name_is_refused_by_every_save(self):
        model = Model()
        self.exe.run(model.startup)
        kept, started = os.getcwd(), self.path("started")
        self.addCleanup(os.chdir, kept)
        os.makedirs(started)
        os.chdir(started)
        for save in (lambda: millrace.save_persistables(self.exe, "", model.main), lambda: model.main.save(""),
                     lambda: millrace.save_checkpoint(self.exe, "", model.main),
                     lambda: millrace.save_inference_model("", ["C"], model.score, main_program=model.main),
                     lambda: millrace.export_model("", ["C"], model.score, main_program=model.main, vocabulary=100)):
            with self.assertRaisesRegex(millrace.ConfigError, "no folder is named$"):
                save()
        self.assertEqual(os.listdir(started), [])


class PersistablesTest(Case):
    def test_training_goes_on_as_if_it_had_not_stopped(self):
        for rule in (optimizer.Adagrad, optimizer.Ftrl, optimizer.SGD):
            whole = Model(rule=rule)
            with millrace.scope_guard(millrace.Scope()):
                self.exe.run(whole.startup)
                whole.train(self.exe, 0, 6)
                millrace.save_persistables(self.exe, self.path(rule.__name__), whole.main)
                wanted = whole.train(self.exe, 6, 9)
                self.assertEqual(millrace.global_scope().step, 9)
            for with_startup in (True, False):
                with millrace.scope_guard(millrace.Scope()):
                    again = Model(rule=rule)
                    if with_startup:
                        self.exe.run(again.startup)
                        again.train(self.exe, 20, 23)
                    millrace.load_persistables(self.exe, self.path(rule.__name__), again.main)
                    self.assertEqual(millrace.global_scope().step, 6)
                    self.assertEqual(again.train(self.exe, 6, 9), wanted, rule.__name__)

    def saved(self):
        model = Model()
        self.exe.run(model.startup)
        model.train(self.exe, 0, 6)
        millrace.save_persistables(self.exe, self.path("saved"), model.main)
        return model

    def test_rows_of_tables_that_grow_are_saved_and_loaded(self):
        model = self.saved()
        self.assertEqual(sorted(os.listdir(self.path("saved/tables"))), ["deep"])
        keys, rows = self.scope.get("deep")
        self.assertEqual((keys.dtype, rows.dtype, rows.shape), (np.uint64, np.float32, (len(keys), 4)))
        scores = model.scores(self.exe)
        for program in (model.main, model.test):
            with millrace.scope_guard(millrace.Scope()):
                millrace.load_persistables(self.exe, self.path("saved"), program)
                np.testing.assert_array_equal(millrace.global_scope().get("deep").keys, keys)
                np.testing.assert_array_equal(millrace.global_scope().get("deep").values, rows)
                np.testing.assert_array_equal(model.scores(self.exe), scores)

    def test_a_program_that_does_not_train_takes_the_tables_rule_from_the_file(self):
        scores = self.saved().scores(self.exe)
        served = Model(trains=False)
        with millrace.scope_guard(millrace.Scope()):
            millrace.load_persistables(self.exe, self.path("saved"), served.main)
            np.testing.assert_array_equal(served.scores(self.exe), scores)

    def test_a_large_table_is_saved_as_several_files(self):
        main, startup = millrace.Program(), millrace.Program()
        with millrace.program_guard(main, startup):
            ids = layers.data("C", [1], "int64", lod_level=1)
            wide = layers.sequence_pool(layers.embedding(ids, [None, 65536], param_attr="wide"), "sum")
            loss = layers.mean(wide)
            optimizer.SGD(0.5).minimize(loss)
        self.exe.run(startup)
        self.exe.run(main, feed={"C": [list(range(300, 100, -1))]}, fetch_list=[loss])
        rows = self.scope.get("wide")
        self.assertEqual(rows.keys.tolist(), list(range(101, 301)))
        millrace.save_persistables(self.exe, self.path("saved"), main)
        millrace.save_checkpoint(self.exe, self.path("kept"), main)
        files = self.path("saved/tables/wide")
        self.assertEqual(sorted(os.listdir(files)), ["0000-0511", "0512-1023"])
        for load in (lambda: millrace.load_persistables(self.exe, self.path("saved"), main),
                     lambda: millrace.load_checkpoint(self.exe, self.path("kept"), main)):
            with millrace.scope_guard(millrace.Scope()):
                load()
                for part, wanted in zip(millrace.global_scope().get("wide"), rows):
                    np.testing.assert_array_equal(part, wanted)
        os.remove(os.path.join(files, "0512-1023"))
        with self.assertRaisesRegex(millrace.DataError, "tables/wide/0512-1023"):
            millrace.load_persistables(self.exe, self.path("saved"), main)

    def test_what_does_not_fit_or_is_damaged_is_refused_and_changes_nothing(self):
        model = self.saved()
        other = Model(rule=optimizer.SGD)
        scores = model.scores(self.exe)
        with self.assertRaisesRegex(millrace.ConfigError, '(?s)saved" does not fit the program.*"deep" is a table of other rows.*adagrad was {'):
            millrace.load_persistables(self.exe, self.path("saved"), other.main)
        with open(self.path("saved/tables/deep"), "r+b") as file:
            file.seek(100)
            file.write(b"\xff\xff\xff")
        with self.assertRaisesRegex(millrace.DataError, "tables/deep"):
            millrace.load_persistables(self.exe, self.path("saved"), model.main)
        os.remove(self.path("saved/tables/deep"))
        with self.assertRaisesRegex(millrace.DataError, "tables/deep"):
            millrace.load_persistables(self.exe, self.path("saved"), model.main)
        os.remove(self.path("saved/MANIFEST"))
        with self.assertRaisesRegex(millrace.NotFoundError, 'has no MANIFEST, and so no rows of "deep"'):
            millrace.load_persistables(self.exe, self.path("saved"), model.main)
        np.testing.assert_array_equal(model.scores(self.exe), scores)
        self.assertEqual(self.scope.step, 6)

    def test_a_save_that_was_cut_short_is_refused(self):
        model = self.saved()
        support.write(self.path("saved/MANIFEST.writing"), "")
        with self.assertRaisesRegex(millrace.DataError, "a save into it was cut short"):
            millrace.load_persistables(self.exe, self.path("saved"), model.main)
        millrace.save_persistables(self.exe, self.path("saved"), model.main)
        self.assertNotIn("MANIFEST.writing", os.listdir(self.path("saved")))
        millrace.load_persistables(self.exe, self.path("saved"), model.main)

    def test_files_of_two_saves_are_told_from_one(self):
        model = self.saved()
        with open(self.path("saved/w"), "rb") as file:
            before = file.read()
        model.train(self.exe, 6, 7)
        millrace.save_persistables(self.exe, self.path("saved"), model.main)
        with open(self.path("saved/w"), "wb") as file:
            file.write(before)
        with self.assertRaisesRegex(millrace.DataError, "saved/w"):
            millrace.load_persistables(self.exe, self.path("saved"), model.main)

    def test_parameters_of_paddle_come_without_a_step_and_a_schedule_says_so(self):
        main, startup = millrace.Program(), millrace.Program()
        with millrace.program_guard(main, startup):
            x, y = layers.data("x", [2]), layers.data("y", [1])
            loss = layers.mean(layers.square_error_cost(layers.fc(x, 1, param_attr="w", bias_attr="b"), y))
            optimizer.SGD(optimizer.exponential_decay(0.5, 2, 0.1)).minimize(loss)
        self.exe.run(startup)
        millrace.save_persistables(self.exe, self.path("saved"), main)
        os.remove(self.path("saved/MANIFEST"))
        with self.assertWarnsRegex(millrace.MillraceWarning, "does not say how far its parameters were trained"):
            millrace.load_persistables(self.exe, self.path("saved"), main)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            millrace.load_persistables(self.exe, self.path("saved"), main.clone(for_test=True))

    def test_a_program_that_trains_nothing_makes_no_rows(self):
        main, startup = millrace.Program(), millrace.Program()
        with millrace.program_guard(main, startup):
            ids = layers.data("C", [1], "int64", lod_level=1)
            pooled = layers.sequence_pool(layers.embedding(ids, [None, 2], param_attr="deep"), "sum")
            loss = layers.mean(layers.fc(pooled, 1))
            test = main.clone(for_test=True)
            optimizer.Adagrad(0.1).minimize(loss)
        self.exe.run(startup)
        self.exe.run(main, feed={"C": [[1], [2]]})
        before, = self.exe.run(test, feed={"C": [[3], [4, 1]]}, fetch_list=[pooled])
        self.assertEqual(self.scope.get("deep").keys.tolist(), [1, 2])
        self.exe.run(main, feed={"C": [[3]]})
        self.assertEqual(self.scope.get("deep").keys.tolist(), [1, 2, 3])
        self.assertEqual(before.shape, (2, 2))


class CheckpointTest(Case):
    def test_training_goes_on_from_the_newest(self):
        model = Model()
        self.assertIsNone(millrace.load_checkpoint(self.exe, self.path("kept"), model.main))
        self.exe.run(model.startup)
        losses = []
        for epoch in range(5):
            losses.append(model.train(self.exe, epoch, epoch + 1))
            millrace.save_checkpoint(self.exe, self.path("kept"), model.main, trainer_args={"epoch": epoch})
        wanted = model.train(self.exe, 5, 8)
        self.assertEqual(sorted(os.listdir(self.path("kept"))), ["RUN"] + ["step-%012d" % step for step in (3, 4, 5)])
        for folder, step in (("kept", 5), ("kept/step-000000000005", 5), ("kept/step-000000000003", 3)):
            with millrace.scope_guard(millrace.Scope()):
                again = Model()
                found = millrace.load_checkpoint(self.exe, self.path(folder), again.main)
                self.assertEqual((found.step, found.examples, found.trainer_args), (step, 16 * step, {"epoch": step - 1}))
                self.assertEqual(millrace.global_scope().step, step)
                if step == 5:
                    self.assertEqual(again.train(self.exe, 5, 8), wanted)

    def test_a_damaged_one_is_passed_over_with_a_word(self):
        model = Model()
        self.exe.run(model.startup)
        for step in range(2):
            model.train(self.exe, step, step + 1)
            millrace.save_checkpoint(self.exe, self.path("kept"), model.main)
        os.truncate(self.path("kept/step-000000000002/parameters"), 10)
        with self.assertWarnsRegex(millrace.MillraceWarning, "step-000000000002.* is refused"):
            self.assertEqual(millrace.load_checkpoint(self.exe, self.path("kept"), model.main).step, 1)
        os.truncate(self.path("kept/step-000000000001/tables/deep"), 10)
        with self.assertRaisesRegex(millrace.DataError, "no checkpoint is whole"):
            millrace.load_checkpoint(self.exe, self.path("kept"), model.main)

    def test_one_of_another_program_is_refused(self):
        model = Model()
        self.exe.run(model.startup)
        millrace.save_checkpoint(self.exe, self.path("kept"), model.main)
        with self.assertRaisesRegex(millrace.ConfigError, 'does not fit.*\n?.*"deep" is a table of other rows'):
            millrace.load_checkpoint(self.exe, self.path("kept"), Model(rule=optimizer.SGD).main)
        with self.assertRaisesRegex(millrace.ConfigError, "trainer_args: "):
            millrace.save_checkpoint(self.exe, self.path("kept"), model.main, trainer_args={"epoch": model})

    def job(self, model):
        """A dataset of 64 rows, and the file of a job that trains `model` on it once and saves its variables to final/."""
        support.write(self.path("part-0"), "".join("2 %d %d 1 %.3f\n" % (row % 7, row % 50, row % 3 - 1) for row in range(64)))
        dataset = millrace.DatasetFactory().create_dataset("QueueDataset")
        dataset.set_use_var([model.ids, model.label])
        dataset.set_filelist([self.path("part-0")])
        dataset.set_batch_size(16)
        model.main.save(self.path("program"))
        support.write(self.path("job.prototxt"), """
            update_mode: SERIAL epochs: 1 filelist: "%s"
            program { main: "%s" startup: "%s" save_dir: "%s" }
            data_desc { %s }""" % (*map(self.path, ("part-0", "program/main_program.bin", "program/startup_program.bin", "final")),
                                   dataset.desc()))
        return dataset, "--trainer_desc=" + self.path("job.prototxt")

    def assert_same_values(self, scope):
        for name in ("w", "short", "w_moment_0"):
            np.testing.assert_array_equal(millrace.global_scope().get(name), scope.get(name), name)
        np.testing.assert_array_equal(millrace.global_scope().get("deep").values, scope.get("deep").values)

    def test_trainer_goes_on_from_it_and_it_from_trainer(self):
        model = Model()
        self.exe.run(model.startup)
        dataset, job = self.job(model)
        self.exe.train_from_dataset(model.main, dataset)
        millrace.save_checkpoint(self.exe, self.path("out/checkpoints"), model.main)
        support.run("trainer", job, "--output_dir=" + self.path("out"), "--resume=auto")
        self.exe.train_from_dataset(model.main, dataset)
        with millrace.scope_guard(millrace.Scope()):
            found = millrace.load_checkpoint(self.exe, self.path("out/checkpoints"), model.main)
            self.assertEqual((found.step, found.examples, found.trainer_args), (8, 128, None))
            self.assert_same_values(self.scope)

    def test_growing_tables_are_whole_in_folders_of_variables(self):
        model = Model(rate=0.5)
        dataset, job = self.job(model)
        support.run("trainer", job)
        support.run("trainer", job, "--set", 'program.init_dir="%s"' % self.path("final"),
                    "--set", 'program.save_dir="%s"' % self.path("more"))
        self.exe.run(model.startup)
        millrace.load_persistables(self.exe, self.path("final"), model.main)
        self.exe.train_from_dataset(model.main, dataset)
        with millrace.scope_guard(millrace.Scope()):
            self.exe.run(model.startup)
            millrace.load_persistables(self.exe, self.path("more"), model.main)
            self.assert_same_values(self.scope)
        os.remove(self.path("final/MANIFEST"))
        with self.assertRaisesRegex(Exception, 'final" has no MANIFEST, and so no rows of "deep"'):
            support.run("trainer", job, "--set", 'program.init_dir="%s"' % self.path("final"))


class LoadedModelTest(Case):
    def test_a_saved_model_runs_as_a_program(self):
        model = Model()
        self.exe.run(model.startup)
        model.train(self.exe, 0, 3)
        scores = model.scores(self.exe)
        millrace.save_inference_model(self.path("model"), [model.ids], model.score, main_program=model.main)
        with millrace.scope_guard(millrace.Scope()):
            program, feeds, predictions = millrace.load_inference_model(self.path("model"), self.exe)
            self.assertEqual((feeds, [var.name for var in predictions]), (["C"], [model.score.name]))
            found, = self.exe.run(program, feed={"C": model.feed(99)["C"]}, fetch_list=predictions)
            np.testing.assert_array_equal(found, scores)
            self.assertEqual(predictions[0].shape, (-1, 1))
            with self.assertRaisesRegex(millrace.ConfigError, "loaded from a model, to be run as it is"):
                layers.relu(predictions[0])
            with self.assertRaisesRegex(millrace.NotFoundError, 'no variable "nope"; it has: C'):
                program.var("nope")
        with self.assertRaisesRegex(millrace.AlreadyExistsError, 'another "deep".*scope_guard'):
            millrace.load_inference_model(self.path("model"), self.exe)
        np.testing.assert_array_equal(model.scores(self.exe), scores)

    def test_a_model_saved_by_names_leaves_out_the_zeros_that_its_training_left_out(self):
        with open(self.path("lines"), "w") as file:
            file.write("2 0 7 1 1\n2 7 0 1 0\n")
        for kind, rule, drops in (("QueueDataset", "DROP", True), ("InMemoryDataset", "FEED_DEFAULT", True),
                                  ("QueueDataset", "FEED_DEFAULT", False), ("InMemoryDataset", "KEEP", False)):
            with millrace.scope_guard(millrace.Scope()), warnings.catch_warnings():
                warnings.simplefilter("ignore", millrace.MillraceWarning)  # training says what it left out
                model = Model()
                self.exe.run(model.startup)
                dataset = millrace.DatasetFactory().create_dataset(kind)
                dataset.init(batch_size=1, thread=1, use_var=[model.ids, model.label])
                dataset.set_filelist([self.path("lines")])
                dataset.set_zeros(rule)
                if kind == "InMemoryDataset":
                    dataset.load_into_memory()
                self.exe.train_from_dataset(model.main, dataset)
                for number, program in enumerate((model.main, model.test)):
                    folder = self.path("%s%s%d" % (kind, rule, number))
                    millrace.save_inference_model(folder, ["C", "y"], model.score.name, main_program=program)
                    scores = millrace.Predictor(folder).predict({"C": [[0, 7], [7]]})
                    self.assertEqual(scores[0] == scores[1], drops, (kind, rule))

    def test_a_model_saved_by_names_takes_the_empty_slots_that_its_training_took(self):
        with open(self.path("lines"), "w") as file:
            file.write("0 1 1\n2 7 9 1 0\n")
        model = Model()
        self.exe.run(model.startup)
        dataset = millrace.DatasetFactory().create_dataset("QueueDataset")
        dataset.init(batch_size=1, thread=1, use_var=[model.ids, model.label], empty_slot="ALLOW")
        dataset.set_filelist([self.path("lines")])
        self.exe.train_from_dataset(model.main, dataset)
        millrace.save_inference_model(self.path("model"), ["C", "y"], model.score.name, main_program=model.test)
        self.assertEqual(millrace.Predictor(self.path("model")).predict_lines(["0 1 1"]).shape, (1,))

    def test_a_model_of_paddles_form_runs_with_all_that_it_returns(self):
        main, startup = millrace.Program(), millrace.Program()
        with millrace.program_guard(main, startup):
            x = layers.data("x", [2])
            first = layers.fc(x, 3, act="softmax")
            second = layers.scale(x, scale=2.0)
        self.exe.run(startup)
        millrace.export_model(self.path("model"), [x], [first, second])
        rows = np.array([[1.0, 2.0], [3.0, -1.0]], "float32")
        wanted = self.exe.run(main, feed={"x": rows}, fetch_list=[first, second])
        program, feeds, predictions = millrace.load_inference_model(self.path("model"))
        self.assertEqual(feeds, ["x"])
        for found, want in zip(self.exe.run(program, feed={"x": rows}, fetch_list=predictions), wanted):
            np.testing.assert_array_equal(found, want)

    def test_a_folder_that_is_no_model_is_not_found(self):
        with self.assertRaisesRegex(millrace.NotFoundError, "is no saved model"):
            millrace.load_inference_model(self.path("nothing"))


class NamesTest(Case):
    def build(self, rate=0.05):
        main, startup = millrace.Program(), millrace.Program()
        with millrace.program_guard(main, startup):
            x, y = layers.data("x", [4]), layers.data("y", [1])
            loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), y))
            optimizer.Adam(rate).minimize(loss)
        return main, startup, loss

    def test_two_programs_in_one_scope_leave_each_other_alone(self):
        first, second = self.build(), self.build(0.01)
        names = [set(var.name for var in program.all_parameters()) for program, _, _ in (first, second)]
        self.assertEqual(names, [{"fc_0.w_0", "fc_0.b_0"}, {"fc_1.w_0", "fc_1.b_0"}])
        feed = {"x": np.random.RandomState(0).randn(16, 4), "y": np.ones((16, 1))}
        self.exe.run(first[1])
        for _ in range(20):
            self.exe.run(first[0], feed=feed)
        before = {name: self.scope.get(name) for name in self.scope.names()}
        self.exe.run(second[1])
        self.exe.run(second[0], feed=feed)
        for name, value in before.items():
            np.testing.assert_array_equal(self.scope.get(name), value, name)
        rates = [float(self.scope.get(name)[0]) for name in ("learning_rate_0", "learning_rate_1")]
        np.testing.assert_allclose(rates, [0.05, 0.01])
        self.assertEqual(self.scope.step, 21)

    def test_each_program_of_a_scope_has_a_schedule_of_its_own(self):
        def build():
            main, startup = millrace.Program(), millrace.Program()
            with millrace.program_guard(main, startup):
                x = layers.data("x", [1])
                weight = layers.create_parameter([1], default_initializer=millrace.initializer.Constant(0.0))
                optimizer.SGD(optimizer.piecewise_decay([2], [1.0, 0.5])).minimize(layers.mean(x * weight))
            return main, startup, weight.name
        (first, startup, name), (second, second_startup, _) = build(), build()
        self.exe.run(startup)
        for wanted in (-1.0, -2.0, -2.5):
            self.exe.run(first, feed={"x": [[1.0]]})
            self.assertEqual(self.scope.get(name)[0], wanted)
        self.exe.run(second_startup)
        self.exe.run(second, feed={"x": [[1.0]]})
        self.exe.run(first, feed={"x": [[1.0]]})
        self.assertEqual(self.scope.get(name)[0], -3.0)

    def test_programs_that_share_parameters_by_name_have_states_of_their_own(self):
        def build(rule):
            main, startup = millrace.Program(), millrace.Program()
            with millrace.program_guard(main, startup):
                x = layers.data("x", [4])
                rule.minimize(layers.mean(layers.fc(x, 1, param_attr="shared", bias_attr=False)))
            return main, startup
        build(optimizer.Adagrad(0.1))
        main, startup = build(optimizer.Adagrad(0.1))
        self.exe.run(startup)
        self.assertEqual(self.scope.names(), ["learning_rate_1", "shared", "shared_moment_1"])

    def test_a_guard_gives_the_same_names_again(self):
        for prefix in (None, "left/"):
            with unique_name.guard(prefix):
                self.assertEqual([unique_name.generate(key) for key in ("fc", "fc", "relu")],
                                 [(prefix or "") + name for name in ("fc_0", "fc_1", "relu_0")])
        with unique_name.guard():
            main, _, loss = self.build()
        with unique_name.guard():
            again, _, same = self.build()
        self.assertEqual((main.ops(), loss.name), (again.ops(), same.name))
        generator = unique_name.UniqueNameGenerator()
        before = unique_name.switch(generator)
        self.assertEqual(unique_name.generate("fc"), "fc_0")
        self.assertIs(unique_name.switch(before), generator)

    def test_threads_share_the_names_of_the_process(self):
        made = []
        threads = [threading.Thread(target=lambda: made.extend(unique_name.generate("of_threads") for _ in range(100)))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(made)), 400)

    def test_a_variable_of_another_program_is_refused_where_it_is_fetched(self):
        with unique_name.guard():
            main, startup, loss = self.build()
        with unique_name.guard():
            other, _, others_loss = self.build()
        self.assertEqual(loss.name, others_loss.name)
        self.exe.run(startup)
        feed = {"x": np.zeros((2, 4)), "y": np.zeros((2, 1))}
        message = 'fetch_list: "%s" is a variable of another program, made at .*saving_test.py:' % loss.name
        with self.assertRaisesRegex(millrace.ConfigError, message):
            self.exe.run(main, feed=feed, fetch_list=[others_loss])
        self.exe.run(main.clone(for_test=True), feed=feed, fetch_list=[loss, loss.name])
        with self.assertRaisesRegex(millrace.ConfigError, "target_vars: .* of another program"):
            millrace.save_inference_model(self.path("model"), ["x"], others_loss, main_program=main)
        with self.assertRaisesRegex(millrace.ConfigError, "feeded_var_names: .* of another program"):
            millrace.save_inference_model(self.path("model"), [other.var("x")], loss, main_program=main)
        support.write(self.path("part-0"), "4 1 2 3 4 1 1\n")
        dataset = millrace.DatasetFactory().create_dataset("QueueDataset")
        dataset.set_use_var([main.var("x"), main.var("y")])
        dataset.set_filelist([self.path("part-0")])
        with self.assertRaisesRegex(millrace.ConfigError, "fetch_handler: .* of another program"):
            self.exe.train_from_dataset(main, dataset, fetch_handler=millrace.FetchHandler({"loss": others_loss}))
        with millrace.program_guard(millrace.Program(), millrace.Program()):
            mine = layers.mean(layers.fc(layers.data("z", [1]), 1))
            with self.assertRaisesRegex(millrace.ConfigError, "minimize: .* of another program"):
                optimizer.SGD(0.1).minimize(mine, parameter_list=main.all_parameters())


if __name__ == "__main__":
    unittest.main()
