"""Plugins from Python: load_plugin, the layers of examples/mini_loader, a training that it feeds, and what is refused."""

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import support

import numpy as np

import millrace
from millrace import layers

PLUGINS = os.path.join(os.path.dirname(support.BIN), "lib", "test_plugins")
EXAMPLE = os.path.join(support.ROOT, "examples", "mini_loader")
if not os.path.exists(os.path.join(PLUGINS, "mini_loader.so")):
    support.skip("the plugins of the tests are not built: %s has none" % PLUGINS)


def plugin(name):
    return os.path.join(PLUGINS, name + ".so")


def note_version(folder, version):
    """Makes a model one that was saved with another version of its plugin."""
    path = os.path.join(folder, "MODEL")
    lines = support.read(path).splitlines(keepends=True)[:-1]  # behind them is their CRC-32C
    text = "".join(lines).replace('  version: "1.2"\n', "").replace("plugin {\n", 'plugin {\n  version: "%s"\n' % version)
    crc = 0xFFFFFFFF
    for byte in text.encode():
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    with open(path, "w", encoding="utf-8") as file:
        file.write("%s# crc32c of the bytes above: %d\n" % (text, crc ^ 0xFFFFFFFF))


def example(name):
    sys.path.insert(0, EXAMPLE)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(EXAMPLE)


class PluginTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="millrace_plugin")
        self.addCleanup(shutil.rmtree, self.folder)
        for guard in (millrace.program_guard(millrace.Program(), millrace.Program()),
                      millrace.scope_guard(millrace.Scope())):
            guard.__enter__()
            self.addCleanup(guard.__exit__, None, None, None)

    def write_parts(self):
        for part in range(2):
            support.write(os.path.join(self.folder, "part-%03d" % part),
                          "".join("%d,%d\n" % (4 * part + i, -i) for i in range(4)))

    def test_a_training_that_the_mini_loader_feeds(self):
        weight, bias = example("train").main(plugin("mini_loader"))
        self.assertAlmostEqual(weight, 2.008087, delta=0.02)
        self.assertAlmostEqual(bias, 0.002143, delta=0.1)

    def test_the_example_runs_beside_the_plugin_that_was_built_there(self):
        # Python would take mini_loader.so for a module of that name.
        folder = os.path.join(self.folder, "mini_loader")
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("*.o", "*.so", "__pycache__"))
        shutil.copy(plugin("mini_loader"), folder)
        done = subprocess.run([sys.executable, os.path.join(folder, "train.py")], capture_output=True, text=True,
                              check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"y = 2\.0\d+ x")

    @unittest.skipUnless(os.path.isdir(os.path.join(os.environ.get("MILLRACE_SHARED", ""), "data", "mini_reader")),
                         "MILLRACE_SHARED has no data/mini_reader")
    def test_the_same_on_the_iris_data(self):
        folder = os.path.join(os.environ["MILLRACE_SHARED"], "data", "mini_reader", "iris")
        weight, bias = example("train").main(plugin("mini_loader"), folder, 3, 150, 2000)
        self.assertAlmostEqual(weight, 0.415755, delta=0.01)
        self.assertAlmostEqual(bias, -0.363076, delta=0.04)

    def test_the_layers_of_the_mini_loader(self):
        millrace.load_plugin(plugin("mini_loader"))
        self.write_parts()
        mini = example("mini_layers")
        record = mini.MiniReader(self.folder, batch_size=3, part_name_suffix_length=3, name="lines")
        self.assertEqual((record.name, record.shape, record.dtype), ("lines", (3, 2), "float64"))
        x, y = mini.MiniDecoder(record)
        self.assertEqual((x.shape, y.shape), ((3, 1), (3, 1)))
        exe = millrace.Executor()
        # The reader goes on from run to run.
        seen = [exe.run(fetch_list=[x, y]) for _ in range(4)]
        np.testing.assert_array_equal(np.concatenate([x for x, _ in seen])[:, 0], [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3])
        np.testing.assert_array_equal(np.concatenate([y for _, y in seen])[:5, 0], [0, -1, -2, -3, 0])
        with self.assertRaisesRegex(millrace.ConfigError, "batch_size must be positive, not 0"):
            mini.MiniReader(self.folder, batch_size=0)
        with self.assertRaisesRegex(millrace.ConfigError, 'no attribute "batchsize"|did you mean "batch_size"'):
            layers.op("MiniReader", {}, {"batchsize": 3})

    def test_an_operator_that_makes_a_reader(self):
        millrace.load_plugin(plugin("own_reader"))
        numbers, queue = millrace.reader.py_array_reader(20, [[-1, 1]])
        with self.assertRaisesRegex(millrace.ConfigError, "create_odd_reader: it makes a reader.*millrace.reader.made_by"):
            layers.op("create_odd_reader", {})
        with self.assertRaisesRegex(millrace.ConfigError, "create_odd_reader: reader: a Reader, not 3"):
            millrace.reader.made_by("create_odd_reader", reader=3)
        odd = millrace.reader.made_by("create_odd_reader", reader=numbers)
        x = millrace.reader.read_file(millrace.reader.batch(odd, 2))
        exe = millrace.Executor()
        exe.run(millrace.default_startup_program())
        for number in range(8):
            queue.push((np.full((1, 1), number, np.float32),))
        queue.close()
        self.assertEqual([exe.run(fetch_list=[x])[0][:, 0].tolist() for _ in range(2)], [[0, 2], [4, 6]])
        with self.assertRaises(millrace.EOFException):
            exe.run(fetch_list=[x])

    def test_a_program_that_was_begun_before_knows_what_is_loaded_later(self):
        x = layers.data("x", [2])
        with self.assertRaises(millrace.ConfigError):
            layers.op("throwing", {"X": x})
        self.assertNotIn("throwing", millrace.op_types())
        millrace.load_plugin(plugin("throwing_op"))
        self.assertIn("throwing", millrace.op_types())
        out = layers.op("throwing", {"X": x}, {"where": "nowhere"})
        values = np.array([[1, 2]], np.float32)
        np.testing.assert_array_equal(millrace.Executor().run(feed={"x": values}, fetch_list=[out])[0], values)

    def test_what_an_operator_throws_is_an_exception_that_names_its_plugin(self):
        millrace.load_plugin(plugin("throwing_op"))
        x = layers.data("x", [2])
        with self.assertRaisesRegex(millrace.ConfigError, 'throwing_op.so" threw std::out_of_range: thrown at infer'):
            layers.op("throwing", {"X": x}, {"where": "infer"})
        out = layers.op("throwing", {"X": x}, {"where": "run"})
        for _ in range(2):
            with self.assertRaisesRegex(millrace.ConfigError, 'throwing_op.so" threw what is no std::exception'):
                millrace.Executor().run(feed={"x": np.zeros((1, 2))}, fetch_list=[out])

    def test_a_job_may_use_and_name_what_is_loaded(self):
        self.write_parts()
        main = support.read(os.path.join(EXAMPLE, "main.pbtxt")).replace("examples/mini_loader/data",
                                                                         os.path.join(EXAMPLE, "data"))
        job = 'program { main: "%s" startup: "%s" }' % (
            support.write(os.path.join(self.folder, "main.pbtxt"), main.replace("f: 4000", "f: 50")),
            os.path.join(EXAMPLE, "startup.pbtxt"))
        named = 'plugins: "%s"\n' % plugin("mini_loader")
        self.assertEqual(millrace.Job.from_text(named + job).run().batches, 50)
        millrace.load_plugin(plugin("mini_loader"))
        for text in (job, named + job):
            self.assertEqual(millrace.Job.from_text(text).run().examples, 450)
        with self.assertRaisesRegex(millrace.ConfigError, "it is loaded already; name it once"):
            millrace.Job.from_text(named + named + job)

    def test_a_models_lines_are_read_by_its_plugins_parser(self):
        millrace.load_plugin(plugin("pairs"))
        lines = "".join("%d;%d;%d\n" % (i % 2, i % 2 + 10, i) for i in range(40))
        path = support.write(os.path.join(self.folder, "lines"), lines)
        millrace.Job.from_text("""
          filelist: "%s"
          data_desc { name: "PairFeed" attrs { name: "separator" value: ";" } batch_size: 10 multi_slot_desc {
            slots { name: "click" type: "float" is_used: true is_dense: true shape: [-1, 1] }
            slots { name: "id" type: "uint64" is_used: true }
            slots { name: "more" type: "uint64" is_used: true } } }
          model {
            table { name: "t" dim: 4 init { uniform: 0.1 } optimizer { adagrad { lr: 0.5 } } }
            layer { name: "e" embedding { slots: ["id", "more"] table: "t" pool: SUM } }
            layer { name: "y" fc { in: "e" units: 1 act: SIGMOID } }
            loss { kind: LOG_LOSS in: "y" label: "click" } optimizer { adam { lr: 0.1 } } }
          """ % path, output_dir=os.path.join(self.folder, "out")).run()
        model = millrace.Predictor(os.path.join(self.folder, "out", "model"))
        self.assertEqual(model.predict_lines(lines).shape, (40,))
        with self.assertRaisesRegex(millrace.DataError, 'lines:2:1: field 1: expected a number, found "x"'):
            model.predict_lines("1;2;3\nx;2;3\n")

    def test_an_optimizer_of_a_plugin_trains(self):
        millrace.load_plugin(plugin("own_optimizer"))
        x = layers.data("x", [2])
        loss = layers.mean(layers.fc(x, 1, param_attr="w", bias_attr=False))
        millrace.optimizer.Custom("sign_descent", 0.25, {"decay": 0.5, "initial_mean": -1e6}).minimize(loss)
        exe = millrace.Executor()
        exe.run(millrace.default_startup_program())
        before = np.array(exe.run(feed={"x": np.ones([4, 2], np.float32)}, fetch_list=["w"])[0])
        after = np.array(exe.run(feed={"x": np.ones([4, 2], np.float32)}, fetch_list=["w"])[0])
        np.testing.assert_allclose(after, before + 0.25, rtol=1e-6)
        for attrs, said in (({"decoy": 1.0}, 'no attribute "decoy"; did you mean "decay"'),
                            ({"decay": "half"}, 'attribute "decay" of "sign_descent" is written in the field f'),
                            ({"decay": None}, "sign_descent: decay")):
            with self.subTest(attrs=attrs), self.assertRaisesRegex(millrace.ConfigError, said):
                with millrace.program_guard(millrace.Program(), millrace.Program()):
                    y = layers.mean(layers.fc(layers.data("x", [2]), 1))
                    millrace.optimizer.Custom("sign_descent", attrs=attrs).minimize(y)

    def lines_of_pairs(self):
        lines = "".join("%d;%d;%d\n" % (i % 2, i % 2 + 10, i) for i in range(40))
        return support.write(os.path.join(self.folder, "lines"), lines)

    def test_a_datasets_lines_are_read_by_the_parser_that_set_feed_type_names(self):
        millrace.load_plugin(plugin("pairs"))
        path = self.lines_of_pairs()
        click, ids = layers.data("click", [1]), layers.data("id", [1], "int64", lod_level=1)
        more = layers.data("more", [1], "int64", lod_level=1)
        score = layers.fc(layers.concat([layers.sequence_pool(layers.embedding(x, [None, 4]), "sum") for x in (ids, more)], axis=1), 1, act="sigmoid")
        loss = layers.mean(layers.log_loss(score, click))
        test = millrace.default_main_program().clone(for_test=True)
        millrace.optimizer.SGD(0.1).minimize(loss)
        exe = millrace.Executor()
        exe.run(millrace.default_startup_program())
        for name in ("QueueDataset", "InMemoryDataset"):
            dataset = millrace.DatasetFactory().create_dataset(name)
            dataset.set_filelist([path])
            dataset.set_use_var([click, ids, more])
            dataset.set_feed_type("PairFeed", separator=";")
            if name == "InMemoryDataset":
                self.assertEqual(dataset.load_into_memory(), 40)
            report = exe.train_from_dataset(millrace.default_main_program(), dataset)
            self.assertEqual(report.examples, 40)
        dataset.set_feed_type("PairFeed")
        dataset.release_memory()
        with self.assertRaisesRegex(millrace.ConfigError, 'attribute "separator" is missing: what stands between two fields'):
            dataset.load_into_memory()
        with self.assertRaisesRegex(millrace.ConfigError, "set_feed_type: separator is a text or a number"):
            dataset.set_feed_type("PairFeed", separator=[";"])
        dataset.set_feed_type("PairFeed", separator=";")
        folder = os.path.join(self.folder, "saved")
        millrace.save_inference_model(folder, dataset, score, exe, test)
        model = millrace.Predictor(folder)
        self.assertEqual(model.predict_lines(support.read(path)).shape, (40,))
        self.assertIn('plugin {\n  name: "pairs"\n  version: "1.2"\n  data_feed: "PairFeed"\n}', support.read(
            os.path.join(folder, "MODEL")))
        # Who has not the plugin is told which one, and how it is loaded; columns need none.
        code = """if True:
            import millrace, sys
            model = millrace.Predictor(sys.argv[1])
            print(model.predict({"id": [[10]], "more": [[3]]}).shape)
            try:
                model.predict_lines("1;2;3")
            except millrace.ConfigError as error:
                print(error)"""
        done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("(1,)\n", done.stdout)
        self.assertIn('no data feed of the class "PairFeed"', done.stdout)
        self.assertIn('the model\'s lines were read by plugin "pairs" (version 1.2), which is not loaded\n'
                      "  millrace.load_plugin(FILE) loads a plugin\n", done.stdout)

        note_version(folder, "1.1")
        with self.assertWarnsRegex(millrace.MillraceWarning, r'saved with plugin "pairs" \(version 1.1\), and plugin "pairs" '
                                                             r'\(version 1.2\) is loaded') as caught:
            millrace.Predictor(folder)
        self.assertEqual(caught.filename, __file__)

    def test_a_model_says_which_plugin_its_operator_needs(self):
        millrace.load_plugin(plugin("soft_clip"))
        x = layers.data("x", [2])
        score = layers.fc(layers.op("soft_clip", {"X": x}, {"limit": 2.0}), 1, act="sigmoid")
        exe = millrace.Executor()
        exe.run(millrace.default_startup_program())
        folder = os.path.join(self.folder, "saved")
        millrace.save_inference_model(folder, ["x"], score, exe)
        code = """if True:
            import millrace, sys
            for load in (millrace.Predictor, lambda folder: millrace.load_inference_model(folder, millrace.Executor())):
                try:
                    load(sys.argv[1])
                except millrace.ConfigError as error:
                    print(error)
            try:
                millrace.layers.op("soft_clip", {})
            except millrace.ConfigError as error:
                print(error)
            millrace.load_plugin(sys.argv[2])
            millrace.Predictor(sys.argv[1])
            print("loaded")"""
        done = subprocess.run([sys.executable, "-c", code, folder, plugin("soft_clip")], capture_output=True, text=True,
                              check=False, timeout=60)
        needs = ('the model needs the operator "soft_clip" of plugin "soft_clip", which is not loaded\n'
                 "  millrace.load_plugin(FILE) loads a plugin\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        note_version(folder, "0.9")
        for load in (millrace.Predictor, millrace.load_inference_model):
            with millrace.scope_guard(millrace.Scope()), self.assertWarnsRegex(
                    millrace.MillraceWarning, r'saved with plugin "soft_clip" \(version 0.9\), and plugin "soft_clip", which says no '
                                              "version, is loaded: ") as caught:
                load(folder)
            self.assertEqual(caught.filename, __file__)
        self.assertEqual(done.stdout, 2 * needs + 'there is no operator "soft_clip"; millrace.load_plugin(FILE) loads a plugin\n'
                         "loaded\n")

    def test_loading_again_does_nothing(self):
        for path in (plugin("soft_clip"), os.path.relpath(plugin("soft_clip"))):
            millrace.load_plugin(path)
        self.assertEqual(millrace.op_types().count("soft_clip"), 1)
        twin = shutil.copy(plugin("soft_clip"), os.path.join(self.folder, "twin.so"))
        with self.assertRaisesRegex(millrace.ConfigError, 'operator "soft_clip" exists already, from plugin ".*soft_clip.so"'):
            millrace.load_plugin(twin)

    def test_refusals_name_the_plugin_and_leave_nothing_behind(self):
        before = millrace.op_types()
        for name, error, text in (("not_there", millrace.NotFoundError, "not_there.so"),
                                  ("wrong_abi", millrace.ConfigError, 'wrong_abi.so": it was built for another program'),
                                  ("missing_symbol", millrace.ConfigError, 'it needs "millrace::RegisterOpsOfTomorrow'),
                                  ("no_plugin", millrace.ConfigError, "it is no plugin of Millrace"),
                                  ("throws", millrace.ConfigError, "threw std::runtime_error: no licence found"),
                                  ("fails", millrace.ConfigError, "no device on this machine")):
            with self.assertRaisesRegex(error, text):
                millrace.load_plugin(plugin(name))
        with self.assertRaises(millrace.Error):
            millrace.load_plugin(support.write(os.path.join(self.folder, "text.so"), "#!/bin/sh\n"))
        with self.assertRaises(TypeError):
            millrace.load_plugin(7)
        self.assertEqual(millrace.op_types(), before)

    def test_static_constructors_that_throw_are_reported(self):
        # In a process of its own: the system's loader stays locked for other threads.
        code = "import millrace, sys\ntry:\n  millrace.load_plugin(sys.argv[1])\nexcept millrace.ConfigError as e:\n  print(e)\n"
        done = subprocess.run([sys.executable, "-c", code, plugin("throws_at_load")], capture_output=True, text=True,
                              check=False, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn('throws_at_load.so": while it was loaded it threw std::runtime_error: no device found', done.stdout)

    def test_a_plugin_is_loaded_while_another_thread_trains(self):
        millrace.load_plugin(plugin("mini_loader"))
        self.write_parts()
        mini = example("mini_layers")
        x, _ = mini.MiniDecoder(mini.MiniReader(self.folder, part_name_suffix_length=3))
        program, scope, failures = millrace.default_main_program(), millrace.Scope(), []

        def run():
            try:
                for _ in range(200):
                    millrace.Executor().run(program, fetch_list=[x], scope=scope)
            except Exception as error:  # noqa: BLE001
                failures.append(error)
        thread = threading.Thread(target=run)
        thread.start()
        for number in range(20):
            path = shutil.copy(plugin("fails"), os.path.join(self.folder, "%d.so" % number))
            with self.assertRaises(millrace.ConfigError):
                millrace.load_plugin(path)
        millrace.load_plugin(plugin("throwing_feed"))
        thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    unittest.main()
