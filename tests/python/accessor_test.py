"""Tables that count shows and clicks: a program in fluid's words, trained from a dataset, saved, shrunk and predicted with."""

import os
import tempfile
import unittest

import support  # noqa: F401

import numpy as np

import millrace
from millrace import layers, optimizer, unique_name

ACCESSOR = """embedx_dim: 4 embedx_threshold: 3 ctr_accessor_param { delete_threshold: 4 }
    embed_sgd_param { name: "SparseAdaGradSGDRule" adagrad { learning_rate: 0.1 } }
    embedx_sgd_param { name: "StdAdaGradSGDRule" adagrad { learning_rate: 0.1 initial_range: 0.01 } }"""


class Net:
    def __init__(self, use_cvm=True, accessor=ACCESSOR, size=7, cvm=True, pool="sum", clip=None, table=None, pipeline=False):
        self.main, self.startup = millrace.Program(), millrace.Program()
        with unique_name.guard(), millrace.program_guard(self.main, self.startup):
            self.ids = [layers.data("C%d" % i, [1], "int64", lod_level=1) for i in range(2)]
            self.label = layers.data("click", [1], "int64")
            clicks = layers.cast(self.label, "float32")
            counts = layers.concat([layers.fill_constant_batch_size_like(clicks, [-1, 1], "float32", 1.0), clicks], axis=1)
            parts = []
            for ids in self.ids:
                rows = layers.embedding(ids, [None, size], param_attr=table or "ctr", accessor=accessor)
                rows = layers.sequence_pool(rows, pool)
                parts.append(layers.continuous_value_model(rows, counts, use_cvm) if cvm else rows)
            joined = layers.concat(parts, axis=1)
            self.logit = layers.fc(joined, 1)
            self.score = layers.sigmoid(self.logit)
            self.loss = layers.mean(layers.log_loss(self.score, clicks))
            rule = optimizer.Adagrad(0.05, grad_clip=clip)
            if pipeline:
                rule = optimizer.PipelineOptimizer(rule, cut_list=[[joined, clicks], [self.loss]])
            rule.minimize(self.loss)


def write_clicks(path, rows, seed):
    draw = np.random.RandomState(seed)
    with open(path, "w") as file:
        for _ in range(rows):
            first, second = draw.randint(1, 40), draw.randint(1, 200)
            click = int(draw.rand() < (0.8 if first % 4 == 0 else 0.1))
            file.write("1 %d 1 %d 1 %d\n" % (first, 1000 + second, click))


class AccessorTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.scope = millrace.Scope()
        guard = millrace.scope_guard(self.scope)
        guard.__enter__()
        self.addCleanup(guard.__exit__, None, None, None)
        self.exe = millrace.Executor()
        self.path = os.path.join(self.folder, "clicks")
        write_clicks(self.path, 4000, 1)

    def dataset(self, net):
        dataset = millrace.DatasetFactory().create_dataset("QueueDataset")
        dataset.set_batch_size(64)
        dataset.set_use_var(net.ids + [net.label])
        dataset.set_filelist([self.path])
        return dataset

    def train(self, net, passes=1):
        for _ in range(passes):
            self.exe.train_from_dataset(net.main, self.dataset(net))

    def test_counts_are_those_of_the_lines(self):
        net = Net()
        self.exe.run(net.startup)
        self.train(net)
        shows, clicks = {}, {}
        with open(self.path) as file:
            for line in file:
                _, first, _, second, _, click = [int(word) for word in line.split()]
                for key in (first, second):
                    shows[key] = shows.get(key, 0) + 1
                    clicks[key] = clicks.get(key, 0) + click
        rows = self.scope.get("ctr")
        self.assertEqual(rows.values.shape[1], 7)
        self.assertEqual(rows.keys.tolist(), sorted(shows))
        for key, row in zip(rows.keys.tolist(), rows.values):
            self.assertEqual((row[0], row[1]), (shows[key], clicks[key]), key)
            score = 0.1 * (row[0] - row[1]) + row[1]
            self.assertEqual(bool(np.any(row[3:])), bool(score >= 3), key)

    def test_learns_saves_and_predicts(self):
        for use_cvm in (True, False):
            scope = millrace.Scope()
            with millrace.scope_guard(scope):
                net = Net(use_cvm)
                self.exe.run(net.startup)
                losses = []
                for _ in range(3):
                    self.train(net)
                    test = net.main.clone(for_test=True)
                    feed = {"C0": [[4], [5]], "C1": [[1001], [1001]], "click": np.zeros((2, 1), "int64")}
                    losses.append(self.exe.run(test, feed=feed, fetch_list=[net.score])[0].reshape(-1))
                self.assertGreater(losses[-1][0], losses[-1][1] + 0.2, "4 is clicked, 5 is not")
                folder = os.path.join(self.folder, "model%d" % use_cvm)
                millrace.save_inference_model(folder, ["C0", "C1"], [net.score], self.exe, net.main)
            with millrace.scope_guard(millrace.Scope()):
                program, names, targets = millrace.load_inference_model(folder, self.exe)
                self.assertEqual(names, ["C0", "C1"], "no label")
                again = self.exe.run(program, feed={"C0": [[4], [5]], "C1": [[1001], [1001]]}, fetch_list=targets)[0]
                np.testing.assert_array_equal(again.reshape(-1), losses[-1])
                unknown = self.exe.run(program, feed={"C0": [[999999]], "C1": [[999998]]}, fetch_list=targets)[0]
                self.assertTrue(np.isfinite(unknown).all())

    def test_goes_on_from_a_checkpoint_to_the_same_rows(self):
        net = Net()
        self.exe.run(net.startup)
        self.train(net)
        folder = os.path.join(self.folder, "persistables")
        millrace.save_persistables(self.exe, folder, net.main)
        left, deleted = self.scope.shrink()["ctr"]
        self.assertGreater(left, 30)
        self.assertGreater(deleted, 10)
        self.train(net)
        expected = self.scope.get("ctr")
        with millrace.scope_guard(millrace.Scope()) as scope:
            self.exe.run(net.startup)
        scope = millrace.Scope()
        with millrace.scope_guard(scope):
            millrace.load_persistables(self.exe, folder, net.main)
            self.assertEqual(scope.shrink(), {"ctr": (left, deleted)})
            self.train(net)
            rows = scope.get("ctr")
        np.testing.assert_array_equal(rows.keys, expected.keys)
        np.testing.assert_array_equal(rows.values, expected.values)

    def test_what_does_not_go_with_counts_is_refused(self):
        for words, wrong in (({"cvm": False}, '"concat" reads them'), ({"pool": "average"}, "takes no sum"),
                             ({"size": 8}, "embedx_dim \\+ 3"), ({"accessor": "embedx_dims: 4"}, "embedx_dims"),
                             ({"accessor": 'accessor_class: "x"'}, "no accessor"),
                             ({"accessor": 'accessor_class: "SparseAccessor" embedx_dim: 4'}, "use_cvm=False are the same"),
                             ({"table": millrace.ParamAttr(name="ctr", learning_rate=0.5)}, "rules of its accessor")):
            with self.subTest(wrong), self.assertRaisesRegex(millrace.ConfigError, wrong):
                Net(**words)
        with self.assertRaisesRegex(millrace.ConfigError, "no table of the scope has an accessor"):
            millrace.Scope().shrink()

    def test_a_pipeline_is_refused(self):
        net = Net(pipeline=True)
        self.exe.run(net.startup)
        with self.assertRaisesRegex(millrace.ConfigError, 'table "ctr" has an accessor, and pipelines'):
            self.train(net)

    def test_a_batch_that_is_fed_trains_as_one_of_a_dataset(self):
        net = Net()
        rows = []
        for feeds in (True, False):
            scope = millrace.Scope()
            with millrace.scope_guard(scope):
                self.exe.run(net.startup)
                with open(self.path) as file:
                    lines = [line.split() for line in file.readlines()[:64]]
                if feeds:
                    self.exe.run(net.main, feed={"C0": [[int(line[1])] for line in lines], "C1": [[int(line[3])] for line in lines],
                                                 "click": np.array([[int(line[5])] for line in lines], "int64")})
                else:
                    head = os.path.join(self.folder, "head")
                    with open(head, "w") as file:
                        file.writelines(" ".join(line) + "\n" for line in lines)
                    self.path, whole = head, self.path
                    self.train(net)
                    self.path = whole
                rows.append(scope.get("ctr"))
        np.testing.assert_array_equal(rows[0].values, rows[1].values)
        self.assertTrue(np.any(rows[0].values[:, 2]))

    def test_a_clip_of_all_gradients_leaves_counts_alone(self):
        net = Net(clip=millrace.clip.GradientClipByGlobalNorm(0.01))
        self.exe.run(net.startup)
        self.train(net)
        self.assertEqual(float(self.scope.get("ctr").values[:, 0].sum()), 8000)


if __name__ == "__main__":
    unittest.main()
