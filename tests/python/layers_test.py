"""What layers, parameters and executors of Python do with the arguments of scripts that come from fluid."""

import contextlib
import io
import os
import tempfile
import unittest
import warnings

import support  # noqa: F401 (skips where there is no package)

import numpy as np

import millrace
from millrace import ParamAttr, initializer, layers, optimizer
from control_flow_test import Fresh


class NamesTest(Fresh):
    def test_a_second_layer_of_a_name_has_weights_of_its_own(self):
        x = layers.data("x", [4])
        one, two = layers.fc(x, 3, name="tower"), layers.fc(x, 3, name="tower")
        self.assertEqual([var.name for var in self.main.all_parameters()], ["tower.w_0", "tower.b_0", "tower.w_1", "tower.b_1"])
        self.assertNotEqual(one.name, two.name)
        layers.fc([x, one], 2, name="top")
        layers.fc(x, 3, param_attr="tower.w_0", bias_attr=False)
        self.assertEqual([var.name for var in self.main.all_parameters()][4:], ["top.w_0", "top.w_1", "top.b_0"])

    def test_a_name_that_is_taken_is_not_written_over(self):
        x = layers.data("x", [4])
        hidden = layers.relu(x, name="hidden")
        self.assertEqual(hidden.name, "hidden")
        for mistake in (lambda: layers.sigmoid(x, name="hidden"), lambda: layers.op("tanh", {"X": x}, name="x")):
            with self.assertRaisesRegex(millrace.ConfigError, "there is a variable .* already; give another name, or write to it by"):
                mistake()
        with self.assertRaisesRegex(millrace.ConfigError, 'parameter "x": that is the name of a variable that is no parameter'):
            layers.fc(x, 4, param_attr="x")

    def test_a_distributed_table_grows(self):
        ids = layers.data("ids", [1], dtype="int64", lod_level=1)
        with self.assertRaisesRegex(millrace.ConfigError, "embedding: is_distributed is True or False, not 1"):
            layers.embedding(ids, [5, 2], is_distributed=1)
        grows = layers.embedding(ids, [5, 2], is_distributed=True, padding_idx=-1, optimizer=optimizer.SGD(0.1),
                                 param_attr=millrace.ParamAttr("grows", millrace.initializer.Constant(0.5)))
        millrace.Executor().run(self.startup)
        (rows,) = millrace.Executor().run(self.main.clone(for_test=True), {"ids": [[7, 4, 2 ** 63 - 1]]}, [grows])
        self.assertEqual([list(row) for row in rows], [[0.5, 0.5], [0, 0], [0.5, 0.5]])

    def test_a_lookup_of_what_is_no_id_names_the_variable(self):
        for name, shape, dtype, message in [
                ("price", [3], "float32", r'input Ids \("price"\) must be int64, but is float32'),
                ("pair", [2], "int64", r'the last axis of Ids must be 1: "pair" \[-1, 2\]')]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                layers.embedding(layers.data(name, shape, dtype), [5, 2])

    def test_a_constant_of_a_variables_size_trains_what_stands_beside_it(self):
        x = layers.create_parameter([3], attr=millrace.ParamAttr("x", millrace.initializer.Constant(2.0)))
        hidden = x * 1.0                                             # what is like it lies on the way to the loss
        beside = layers.fill_constant_batch_size_like(hidden, [-1], "float32", 0.5)
        part = (8.0 / hidden, layers.ones_like(hidden) * hidden, layers.elementwise_max(hidden, layers.zeros_like(hidden)),
                beside * hidden)
        optimizer.SGD(1.0).minimize(layers.reduce_sum(layers.sum(list(part))))
        millrace.Executor().run(self.startup)
        millrace.Executor().run(self.main)
        np.testing.assert_allclose(self.scope.get("x"), np.full(3, 2.0 - (-8.0 / 4 + 1 + 1 + 0.5)), rtol=1e-6)

    def test_gradients_end_where_stop_gradient_says(self):
        frozen = layers.fc(layers.data("x", [4]), 4, param_attr="frozen")
        self.assertFalse(frozen.stop_gradient)
        frozen.stop_gradient = True
        self.assertTrue(frozen.stop_gradient)
        loss = layers.mean(layers.fc(frozen, 1, param_attr="moved", bias_attr=False))
        pairs = optimizer.SGD(0.1).minimize(loss)[1]
        self.assertEqual([parameter.name for parameter, _ in pairs], ["moved"])
        with self.assertRaisesRegex(millrace.ConfigError, "minimize has made the gradients already"):
            frozen.stop_gradient = False


class NewLayersTest(Fresh):
    def test_they_compute(self):
        x, z = layers.data("x", [2]), layers.data("z", [2])
        a = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)
        b = np.array([[1.0, 2.0], [4.0, 0.5]], np.float32)
        d = a - b
        huber = np.where(abs(d) <= 1, 0.5 * d * d, abs(d) - 0.5)
        cosine = (a * b).sum(1, keepdims=True) / np.sqrt((a * a).sum(1, keepdims=True) * (b * b).sum(1, keepdims=True))
        sharp = np.where(4 * abs(d) < 1, 0.5 * 4 * d * d, abs(d) - 0.125)
        weight = layers.create_parameter([2], "float32", attr=initializer.Constant(3.0), name="weight")
        counter = layers.create_global_var([1], 7, "int64", persistable=True, name="counter")
        cases = [
            (layers.leaky_relu(x, 0.1), np.where(a > 0, a, 0.1 * a)), (layers.elu(x), np.where(a > 0, a, np.exp(a) - 1)),
            (layers.swish(x), a / (1 + np.exp(-a))), (layers.hard_sigmoid(x), (0.2 * a + 0.5).clip(0, 1)),
            (layers.brelu(x, -0.5, 1), a.clip(-0.5, 1)), (layers.pow(z, 2), b * b), (layers.prelu(x, "all"), np.where(a > 0, a, 0.25 * a)),
            (layers.stanh(x), 1.7159 * np.tanh(0.67 * a)), (layers.soft_relu(x), np.log1p(np.exp(a))),
            (layers.huber_loss(x, z, 1.0), huber), (layers.smooth_l1(x, z), huber.sum(1, keepdims=True)),
            (layers.smooth_l1(x, z, sigma=2.0), sharp.sum(1, keepdims=True)), (layers.mse_loss(x, z), (d * d).mean()),
            (layers.cos_sim(x, z), cosine), (layers.l2_normalize(x, 1), a / np.sqrt((a * a).sum(1, keepdims=True))),
            (layers.margin_rank_loss(layers.ones_like(x), x, z, 0.1), np.maximum(0, 0.1 - d)),
            (layers.hinge_loss(x, layers.ones_like(x)), np.maximum(0, 1 - a)),
            (layers.zeros([2]), [0, 0]), (layers.ones([2], "int64"), [1, 1]), (layers.zeros_like(x), 0 * a),
            (layers.fill_constant_batch_size_like(x, [-1, 3], "float32", 2), np.full((2, 3), 2)), (layers.assign(b), b),
            (layers.assign(np.array([True, False])), [True, False]), (layers.argmax(z, axis=1), b.argmax(1)),
            (layers.argmin(z, axis=1), b.argmin(1)), (layers.argsort(x, axis=1)[0], np.sort(a, 1)), (layers.cumsum(x, axis=1), a.cumsum(1)),
            (layers.range(1, 7, 2), [1, 3, 5]), (layers.shape(x), [2, 2]), (layers.expand(x, [1, 2]), np.tile(a, 2)),
            (layers.tile(x, [1, 2]), np.tile(a, 2)), (layers.flatten(layers.stack([x, z], 1)), np.hstack([a, b])),
            (layers.unstack(layers.stack([x, z], 1), 1)[1], b), (layers.strided_slice(x, [1], [0], [2], [2]), a[:, :1]),
            (layers.where(x > z, x, z), np.maximum(a, b)), (layers.equal(x, 2.0), a == 2), (layers.not_equal(x, 2.0), a != 2),
            (layers.logical_and(x > 0.0, z > 1.5), (a > 0) & (b > 1.5)), (layers.logical_xor(x > 0.0, z > 1.5), (a > 0) ^ (b > 1.5)),
            (layers.logical_not(x >= 0.5), a < 0.5), (x <= z, a <= b), (layers.increment(layers.ones([1]), 2), [3]), (x * weight, 3 * a),
            (layers.increment(counter, in_place=False), [8]), (x[:, 1:], a[:, 1:]), (x[:, -1], a[:, -1]), (x[0:1, 0], a[:1, 0]),
            (layers.elementwise_mod(counter, layers.fill_constant([1], "int64", 4)), [3]),
            (layers.log_softmax(x), np.log(np.exp(a) / np.exp(a).sum(1, keepdims=True)))]
        normal = (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5)
        cases.append((layers.layer_norm(x), normal))
        cases.append((layers.batch_norm(x, moving_mean_name="mean"), (a - a.mean(0)) / np.sqrt(a.var(0) + 1e-5)))
        millrace.Executor().run(self.startup)
        found = self.run_once([var for var, _ in cases], x=a, z=b)
        for (var, wanted), got in zip(cases, found):
            np.testing.assert_allclose(np.squeeze(got), np.squeeze(wanted), rtol=2e-6, atol=2e-6, err_msg=var.name)
        np.testing.assert_allclose(self.scope.get("mean"), 0.1 * a.mean(0), rtol=1e-6)

    def test_layers_over_sequences_compute(self):
        ids, other = [layers.data(name, [1], "int64", lod_level=1) for name in ("ids", "other")]
        rows = layers.embedding(ids, [5, 2], param_attr="table")
        score = layers.sequence_conv(rows, 1, 3, param_attr="filter", bias_attr=False)
        padded, lengths = layers.sequence_pad(rows, layers.zeros([1]), maxlen=3)
        cases = [layers.sequence_first_step(rows), layers.sequence_last_step(rows), score, layers.sequence_softmax(score), padded, lengths,
                 layers.sequence_unpad(padded, lengths), layers.sequence_reverse(rows), layers.sequence_mask(lengths, 3),
                 layers.sequence_concat([rows, layers.embedding(other, [5, 2], param_attr="table")]), layers.sequence_expand(layers.sequence_pool(rows, "sum"), other),
                 layers.sequence_enumerate(ids, 2), layers.sequence_expand_as(layers.sequence_pool(rows, "sum"), other)]
        millrace.Executor().run(self.startup)
        table, kernel = self.scope.get("table"), self.scope.get("filter")
        found = self.run_once(cases, ids=[[1, 2, 3], [4]], other=[[0], [2, 1]])
        r = table[[1, 2, 3, 4]]
        beside = np.array([np.concatenate([before, at, behind]) for before, at, behind in
                           [(0 * r[0], r[0], r[1]), (r[0], r[1], r[2]), (r[1], r[2], 0 * r[0]), (0 * r[0], r[3], 0 * r[0])]])
        scores = beside @ kernel
        power = np.exp(scores[:3])
        pads = np.stack([r[:3], np.stack([r[3], 0 * r[3], 0 * r[3]])])
        sums = np.stack([r[:3].sum(0), r[3]])
        wanted = [r[[0, 3]], r[[2, 3]], scores, np.concatenate([power / power.sum(), [[1]]]), pads, [3, 1], r, r[[2, 1, 0, 3]],
                  [[1, 1, 1], [1, 0, 0]], table[[1, 2, 3, 0, 4, 2, 1]], sums[[0, 1, 1]],
                  [[1, 2], [2, 3], [3, 0], [4, 0]], sums[[0, 1, 1]]]
        for var, got, expected in zip(cases, found, wanted):
            np.testing.assert_allclose(np.squeeze(got), np.squeeze(expected), rtol=2e-6, atol=1e-6, err_msg=var.name)

    def test_arguments_of_another_kind_are_named(self):
        x = layers.data("x", [4])
        for mistake, message in [
                (lambda: layers.fc(x, 3, num_flatten_dims="1"), "fc: num_flatten_dims: a whole number, not '1'"),
                (lambda: layers.fc([], 3), "fc: input is an empty list"), (lambda: layers.fc(x, 3, act=3), "act is the name of an operator"),
                (lambda: layers.reduce_sum(x, dim=1.7), "a whole number, not 1.7"), (lambda: layers.reduce_sum(x, dim="1"), "not '1'"),
                (lambda: layers.dropout(x, "a"), 'dropout: attribute "dropout_prob" is a float, not \'a\''),
                (lambda: layers.scale(x, "a"), 'scale: attribute "scale" is a float'), (lambda: np.ones(4) * x, "a number, not array"),
                (lambda: x[:, 0, 0], "has no 3 axes"), (lambda: x[:, ::2], "take layers.strided_slice"), (lambda: x["a"], "not 'a'"),
                (lambda: ParamAttr(initializer=0.5), "initializer is one of millrace.initializer, not 0.5"),
                (lambda: ParamAttr(regularizer=0.5), "regularizer is one of millrace.regularizer, not 0.5"),
                (lambda: ParamAttr(learning_rate="a"), "learning_rate: a number, not 'a'"), (lambda: ParamAttr(name=7), "name: a str, not 7"),
                (lambda: layers.create_parameter([2], "int64"), "parameters are float32, not int64"),
                (lambda: layers.create_global_var([1], 0, "float32"), "persistable=True"), (lambda: layers.assign({}), "a Variable or an array"),
                (lambda: layers.prelu(x, "some"), 'mode is "all", "channel" or "element"'),
                (lambda: optimizer.SGD(0.1).minimize(layers.mean(layers.fc(x, 1)), [x]), "startup_program: a Program, not")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()
        with self.assertRaises(TypeError):
            list(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class OrderTest(Fresh):
    def test_arguments_stand_in_the_order_of_fluid(self):
        x, y = layers.data("x", [2]), layers.data("y", [1], True, "int64", 0)
        whole, ids = layers.data("whole", [3, 2], False), layers.data("ids", [1], "int64", 1)
        self.assertEqual([(var.shape, var.dtype, var.lod_level) for var in (x, y, whole, ids)],
                         [((-1, 2), "float32", 0), ((-1, 1), "int64", 0), ((3, 2), "float32", 0), ((-1, 1), "int64", 1)])
        a, classes = np.array([[-3.0, 9.0], [0.5, 2.0], [1.0, 0.0]], np.float32), np.array([[1], [0], [1]])
        likely = np.exp(a) / np.exp(a).sum(axis=1, keepdims=True)
        losses, probabilities = layers.softmax_with_cross_entropy(x, y, False, -100, True, True)
        share, total = layers.zeros([1], "int32"), layers.zeros([1], "int32")
        into = layers.zeros_like(x)
        layers.sums([x, x], into)
        cases = [(layers.softmax(x, False, "likely", -1), likely), (losses, -np.log(np.take_along_axis(likely, classes, 1))),
                 (probabilities, likely), (layers.relu6(x, 1.5), a.clip(0, 1.5)), (into, 2 * a),
                 (layers.scale(x, 2.0, 1.0, True, "relu", "scaled"), np.maximum(2 * a + 1, 0)),
                 (layers.reshape(x, [-1, 1], None, "relu", False, "column"), np.maximum(a, 0).reshape(-1, 1)),
                 (layers.accuracy(x, y, 1, share, total), 1 / 3), (share, 1), (total, 3), (layers.cumsum(x), a.cumsum(axis=1)),
                 (layers.dropout(x, 0.5, True, 7, "kept", "upscale_in_train"), a),
                 (layers.one_hot(layers.scale(y, 2.0), 2, True), [[0, 0], [1, 0], [0, 0]]),
                 (layers.sigmoid_cross_entropy_with_logits(x, layers.zeros_like(x), -100, "crossed"), np.log1p(np.exp(a)))]
        found = millrace.Executor().run(self.main, {x: a, y: classes, whole: np.zeros((3, 2)), ids: [[1]] * 3},
                                        [var for var, _ in cases], "feed", "fetch", self.scope, True, True)
        for array, (var, wanted) in zip(found, cases):
            np.testing.assert_allclose(np.squeeze(array), np.squeeze(wanted), rtol=1e-5, atol=1e-6, err_msg=var.name)
        for mistake, message in [(lambda: layers.softmax(x, 1), "use_cudnn stands second, as in fluid"),
                                 (lambda: layers.sequence_pool(ids, "sum", 1.0), "is_test stands third, as in fluid"),
                                 (lambda: layers.reshape(x, [2], x), "reshape: actual_shape: give sizes as shape"),
                                 (lambda: layers.label_smooth(x, None, 0.1, "float64"), "labels are float32, not float64")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()


class RecurrentTest(Fresh):
    def weights(self, *names):
        return [self.scope.get(name) for name in names]

    def test_a_step_of_lstm_is_that_of_its_formula_and_trains(self):
        x, h, c = layers.data("x", [3]), layers.data("h", [2]), layers.data("c", [2])
        hidden, cell = layers.lstm_unit(x, h, c, forget_bias=0.5, name="step")
        loss = layers.mean(hidden)
        optimizer.SGD(1.0).minimize(loss)
        millrace.Executor().run(self.startup)
        w, b = self.weights("step.w_0", "step.b_0")
        draw = np.random.default_rng(1)
        feed = {name: draw.standard_normal((4, size)).astype(np.float32) for name, size in (("x", 3), ("h", 2), ("c", 2))}
        at, forget, out, new = np.split(np.hstack([feed["x"], feed["h"]]) @ w + b, 4, axis=1)
        memory = sigmoid(forget + 0.5) * feed["c"] + sigmoid(at) * np.tanh(new)
        found = millrace.Executor().run(self.main, feed, [hidden, cell])
        np.testing.assert_allclose(found[0], sigmoid(out) * np.tanh(memory), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found[1], memory, rtol=1e-4, atol=1e-6)
        self.assertFalse((self.scope.get("step.w_0") == w).all())

    def test_a_step_of_gru_is_that_of_its_formula_and_trains(self):
        x, h = layers.data("x", [6]), layers.data("h", [2])
        made = [layers.gru_unit(x, h, 6, param_attr="w", bias_attr="b", origin_mode=mode) for mode in (False, True)]
        optimizer.SGD(1.0).minimize(layers.mean(made[0][0]))
        millrace.Executor().run(self.startup)
        self.scope.set("b", np.arange(6, dtype=np.float32) / 5)
        w, b = self.weights("w", "b")
        gates, state = w.reshape(-1)[:8].reshape(2, 4), w.reshape(-1)[8:].reshape(2, 2)
        draw = np.random.default_rng(1)
        feed = {name: draw.standard_normal((4, size)).astype(np.float32) for name, size in (("x", 6), ("h", 2))}
        moved = feed["x"] + b
        update, reset = np.split(sigmoid(moved[:, :4] + feed["h"] @ gates), 2, axis=1)
        candidate = np.tanh(moved[:, 4:] + (reset * feed["h"]) @ state)
        found = millrace.Executor().run(self.main, feed, [*made[0], made[1][0]])
        for array, wanted in zip(found, [update * candidate + (1 - update) * feed["h"], reset * feed["h"],
                                         np.hstack([update, reset, candidate]), update * feed["h"] + (1 - update) * candidate]):
            np.testing.assert_allclose(array, wanted, rtol=1e-4, atol=1e-6)
        self.assertFalse((self.scope.get("w") == w).all())

    def test_layers_of_lstm_go_over_steps_and_train(self):
        x = layers.data("x", [5, -1, 3], append_batch_size=False)
        first = [layers.data(name, [2, -1, 4], append_batch_size=False) for name in "hc"]
        out, last_h, last_c = layers.lstm(x, *first, max_len=5, hidden_size=4, num_layers=2, name="stack")
        optimizer.SGD(1.0).minimize(layers.mean(out))
        millrace.Executor().run(self.startup)
        draw = np.random.default_rng(2)
        feed = {"x": draw.standard_normal((5, 2, 3)).astype(np.float32), "h": np.zeros((2, 2, 4), np.float32),
                "c": np.zeros((2, 2, 4), np.float32)}
        steps, lasts = feed["x"], []
        before = self.weights(*["stack.w_%d" % i for i in range(4)])
        for layer in range(2):
            into, again = before[2 * layer:2 * layer + 2]
            h, c, made = np.zeros((2, 4)), np.zeros((2, 4)), []
            for step in steps:
                at, forget, new, gate = np.split(step @ into.T + h @ again.T, 4, axis=1)
                c = sigmoid(forget) * c + sigmoid(at) * np.tanh(new)
                h = sigmoid(gate) * np.tanh(c)
                made.append(h)
            steps = np.stack(made)
            lasts.append((h, c))
        found = millrace.Executor().run(self.main, feed, [out, last_h, last_c])
        for array, wanted in zip(found, [steps, np.stack([h for h, _ in lasts]), np.stack([c for _, c in lasts])]):
            np.testing.assert_allclose(array, wanted, rtol=1e-4, atol=1e-6)
        for old, new in zip(before, self.weights(*["stack.w_%d" % i for i in range(4)])):
            self.assertFalse((old == new).all())

    def test_steps_without_an_operator_are_refused_by_name(self):
        x, h = layers.data("x", [6]), layers.data("h", [2])
        for mistake, message in [
                (lambda: layers.dynamic_lstm(x, 4), "dynamic_lstm: there is no operator for it; take sequence_pad"),
                (lambda: layers.dynamic_gru(x, 2), "dynamic_gru: there is no operator for it; .* gru_unit over the steps"),
                (layers.StaticRNN, "StaticRNN: there is no operator for it; write the steps as a Python loop"),
                (lambda: layers.gru_unit(x, h, 3), r'size is 3, "x" \[-1, 6\], "h" \[-1, 2\]'),
                (lambda: layers.lstm(x, h, h, 5, 4, 1), r'lstm: input "x" \[-1, 6\] must have 3 axes')]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()


class ExecutorTest(Fresh):
    def test_what_is_fetched_of_unknown_name_is_named_with_the_nearest(self):
        x = layers.data("x", [4])
        loss = layers.mean(layers.fc(x, 1), name="loss")
        optimizer.SGD(0.1).minimize(loss)
        exe = millrace.Executor()
        exe.run(self.startup)
        dataset = millrace.DatasetFactory().create_dataset("QueueDataset")
        dataset.set_use_var([x])
        dataset.set_filelist(["/dev/null"])
        for run in (lambda: exe.run(self.main, feed={"x": X}, fetch_list=["lsos"]),
                    lambda: exe.train_from_dataset(self.main, dataset, fetch_list=["lsos"])):
            with self.assertRaisesRegex(millrace.ConfigError, 'fetch_list: the program has no variable "lsos"; did you mean "loss"?'):
                run()
        with self.assertRaisesRegex(millrace.ConfigError, "fetch_list: a Variable or its name, not 3"):
            exe.run(self.main, feed={"x": X}, fetch_list=[3])
        with self.assertRaisesRegex(millrace.ConfigError, "a startup program is fed nothing"):
            exe.run(self.startup, fetch_list=[loss])
        self.assertEqual(exe.run(self.startup, feed={}, fetch_list=[]), [])

    def test_training_that_updates_nothing_is_said(self):
        x = layers.data("x", [1])
        loss = layers.mean(layers.fc(x, 1))
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "part"), "w", encoding="utf-8") as file:
                file.write("1 0.5\n" * 4)
            dataset = millrace.DatasetFactory().create_dataset("QueueDataset")
            dataset.set_use_var([x])
            dataset.set_filelist([file.name])
            millrace.Executor().run(self.startup)
            with self.assertWarnsRegex(millrace.MillraceWarning, "no optimizer's minimize was called"):
                millrace.Executor().train_from_dataset(self.main, dataset)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                millrace.Executor().infer_from_dataset(self.main, dataset)
                optimizer.SGD(0.1).minimize(loss)
                millrace.Executor().run(self.startup)
                millrace.Executor().train_from_dataset(self.main, dataset)
                millrace.Executor().train_from_dataset(self.main.clone(), dataset)

    def trained(self, rows=8):
        """(a dataset of x, the mean of x and its loss) of a program that trains."""
        x = layers.data("x", [1])
        loss = layers.mean(layers.square(layers.fc(x, 1)))
        optimizer.SGD(0.1).minimize(loss)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        dataset = millrace.DatasetFactory().create_dataset("QueueDataset")
        dataset.set_use_var([x])
        dataset.set_filelist([support.write(os.path.join(folder.name, "part"), "1 0.5\n" * rows)])
        dataset.set_batch_size(2)
        millrace.Executor().run(self.startup)
        return dataset, loss

    def test_fetched_values_go_through_the_output_of_python(self):
        dataset, loss = self.trained()
        exe = millrace.Executor()
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            report = exe.train_from_dataset(self.main, dataset, fetch_list=[loss], fetch_info=["loss"], print_period=2)
        lines = shown.getvalue().splitlines()
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[0], r"^time: \[.*\], batch: \[2\], loss\[1\]:\[")
        self.assertEqual([entry["batch"] for entry in report.history], [2, 4])
        self.assertEqual(report.metrics["loss"], report.history[-1]["loss"][0])
        with contextlib.redirect_stdout(shown):
            quiet = exe.train_from_dataset(self.main, dataset, fetch_list=[loss], fetch_info=["loss"], print_period=1, verbose=False)
            still = exe.train_from_dataset(self.main, dataset, fetch_list=[loss], fetch_info=["loss"], print_period=0)
        self.assertEqual(len(shown.getvalue().splitlines()), 2)
        self.assertEqual((len(quiet.history), len(still.history), list(still.metrics)), (4, 0, ["loss"]))

        class Broken(io.StringIO):
            def write(self, text):
                raise OSError("the pipe is gone")
        with contextlib.redirect_stdout(Broken()), self.assertRaisesRegex(millrace.IoError, "sys.stdout: .*the pipe is gone"):
            exe.train_from_dataset(self.main, dataset, fetch_list=[loss], print_period=1)

    def test_a_handler_ends_a_training_as_a_success(self):
        dataset, loss = self.trained(rows=200)

        class Enough(millrace.FetchHandler):
            seen = 0

            def handler(self, res_dict):
                self.seen += 1
                if self.seen == 5:
                    raise millrace.StopTraining("the loss is low")
        exe = millrace.Executor()
        report = exe.train_from_dataset(self.main, dataset, fetch_handler=Enough({"loss": loss}, 0), thread=1)
        self.assertEqual((report.stopped_early, report.batches, self.scope.step), (True, 5, 5))
        self.assertEqual(exe.train_from_dataset(self.main, dataset).examples, 200)

    def test_objects_say_what_they_are(self):
        self.assertEqual([repr(self.main), repr(self.startup)], ["Program(empty)", "Program(startup of 1)"])
        dataset, _ = self.trained()
        exe = millrace.Executor(millrace.CPUPlace())
        self.assertRegex(repr(self.main), r"^Program\(\d+ operators, 2 parameters, trains\)$")
        self.assertRegex(repr(self.main.clone(for_test=True)), r"^Program\(a copy, \d+ operators, 2 parameters\)$")
        self.assertRegex(repr(self.scope), r"^Scope\(\d+ variables, step 0\)$")
        self.assertEqual([repr(exe), repr(dataset)],
                         ["Executor(CPUPlace)", "QueueDataset(1 files, slots ['x'], batch_size=2, thread=1)"])
        made = millrace.reader.random_data_generator(0, 1, [[-1, 2]])
        self.assertRegex(repr(made), r'^Reader\("random_data_generator_\d+": float32 \[-1, 2\]\)$')

    def test_a_folder_that_cannot_be_written_is_named(self):
        predict = layers.fc(layers.data("x", [4]), 1)
        millrace.Executor().run(self.startup)
        with self.assertRaisesRegex(millrace.IoError, "Program.save: /proc/nope: No such file"):
            self.main.save("/proc/nope")
        with self.assertRaisesRegex(millrace.ConfigError, "feeded_var_names is empty"):
            millrace.save_inference_model("/proc/nope", [], [predict])

    def test_an_exported_model_predicts_the_same(self):
        predict = layers.fc(layers.data("x", [4]), 2, act="softmax")
        loss = layers.mean(layers.cross_entropy(predict, layers.data("y", [1], "int64")))
        optimizer.SGD(0.1).minimize(loss)
        exe = millrace.Executor()
        exe.run(self.startup)
        wanted, _ = exe.run(self.main.clone(for_test=True), feed={"x": X, "y": np.zeros((3, 1), np.int64)}, fetch_list=[predict, loss])
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):  # the second one takes the place of the first
                millrace.export_model(os.path.join(folder, "out"), ["x"], predict)
            self.assertEqual(sorted(os.listdir(os.path.join(folder, "out"))), ["model.data_feed.prototxt", "model.pdiparams", "model.pdmodel"])
            scores = millrace.Predictor(os.path.join(folder, "out")).predict_lines("4 1 1 1 1\n" * 3)
            np.testing.assert_allclose(np.reshape(scores, (3, -1))[:, -1], wanted[:, 1], rtol=1e-6)
            millrace.export_model(os.path.join(folder, "onnx"), ["x"], [predict], format="ONNX")
            self.assertEqual(os.listdir(os.path.join(folder, "onnx")), ["offline.onnx"])
            with self.assertRaisesRegex(millrace.ConfigError, r'contains files that are not part of an exported model \("onnx/offline.onnx", '):
                millrace.export_model(folder, ["x"], [predict])
            for mistake, message in [
                    (lambda: millrace.export_model(folder + "/new", ["x"], [predict], format="TF"), 'format is "PADDLE" or "ONNX"'),
                    (lambda: millrace.export_model(folder + "/new", ["x"], []), "target_vars is empty"),
                    (lambda: millrace.export_model(folder + "/new", [], [predict]), "export_model: feeded_var_names is empty"),
                    (lambda: millrace.export_model(folder + "/new", ["x"], ["predic"]), 'fetch_vars: there is no variable "predic"')]:
                with self.assertRaisesRegex(millrace.ConfigError, message):
                    mistake()
            self.assertEqual(sorted(os.listdir(folder)), ["onnx", "out"])


    def test_an_export_does_not_take_the_place_of_other_models(self):
        predict = layers.fc(layers.data("x", [4]), 2, act="softmax")
        millrace.Executor().run(self.startup)
        for others in (["best.onnx", "other_model.pdmodel"], ["best.onnx"], ["other_model.pdiparams"],
                       ["train.data_feed.prototxt"]):
            for format in ("PADDLE", "ONNX"):
                with tempfile.TemporaryDirectory() as folder:
                    for name in others:
                        support.write(os.path.join(folder, name), "mine")
                    message = r'"%s" contains files that are not part of an exported model \("%s"' % (folder, others[0])
                    with self.assertRaisesRegex(millrace.ConfigError, message):
                        millrace.export_model(folder, ["x"], predict, format=format)
                    self.assertEqual(sorted(os.listdir(folder)), others)
                    self.assertEqual({support.read(os.path.join(folder, name)) for name in others}, {"mine"})

    def test_an_export_takes_the_place_of_one_in_another_format(self):
        predict = layers.fc(layers.data("x", [4]), 2, act="softmax")
        millrace.Executor().run(self.startup)
        paddle = ["model.data_feed.prototxt", "model.pdiparams", "model.pdmodel"]
        with tempfile.TemporaryDirectory() as folder:
            for format, names in [("PADDLE", paddle), ("ONNX", ["offline.onnx"]), ("PADDLE", paddle)]:
                millrace.export_model(folder, ["x"], predict, format=format)
                self.assertEqual(sorted(os.listdir(folder)), names)

    def test_a_variable_of_a_block_is_not_fetched_by_a_training(self):
        x = layers.data("x", [4])
        i = layers.zeros([1], "int64")
        go_on = i < 2
        with layers.While(go_on).block():
            inner = layers.fc(x, 1, param_attr="w", bias_attr=False)
            layers.increment(i)
            layers.less_than(i, 2, cond=go_on)
        exe = millrace.Executor()
        exe.run(self.startup)
        with tempfile.TemporaryDirectory() as folder:
            dataset = millrace.DatasetFactory().create_dataset("QueueDataset")
            dataset.set_use_var([x])
            dataset.set_filelist([support.write(os.path.join(folder, "rows"), "4 1 2 3 4\n" * 4)])
            dataset.set_batch_size(2)
            with self.assertRaisesRegex(millrace.ConfigError, '"%s" is a variable of a block; fetch one from before' % inner.name):
                exe.infer_from_dataset(self.main, dataset, fetch_list=[inner])
            report = exe.infer_from_dataset(self.main, dataset, fetch_list=["w", i], print_period=2)  # a parameter made within is
            self.assertEqual(report.examples, 4)


class NumbersTest(Fresh):
    def test_whole_numbers_beyond_float32_keep_their_value(self):
        large, largest = 2 ** 40 + 1, 2 ** 60 + 1
        x = layers.fill_constant([1], "int64", 2 ** 40)
        cases = [(layers.fill_constant([1], "int64", np.int64(large)), large), (layers.fill_constant([1], "int64", large), large),
                 (layers.fill_constant([1], np.int64, 16777217.0), 16777217),
                 (layers.fill_constant([1], "int32", -2 ** 31), -2 ** 31),
                 (layers.fill_constant([1], "int64", largest), largest), (layers.fill_constant([1], "int64", -2 ** 63), -2 ** 63),
                 (layers.fill_constant([1], "int64", 2 ** 63 - 1), 2 ** 63 - 1),
                 (layers.fill_constant([1], "int64", largest, out=layers.zeros([1], "int64")), largest),
                 (layers.fill_constant_batch_size_like(x, [-1], "int64", large), large),
                 (layers.less_than(x, np.int64(large)), True), (layers.less_than(x, large), True), (layers.equal(x, large), False),
                 (layers.less_than(layers.fill_constant([1], "int64", 2 ** 60), largest), True),
                 (x + np.int64(large), 2 ** 41 + 1), (x - large, -1), (large - x, 1), (layers.ones([1], "int64") * large, large),
                 (-x, -2 ** 40), (layers.create_global_var([1], 2 ** 40, "int64", persistable=True), 2 ** 40),
                 (layers.increment(x, 2 ** 40, in_place=False), 2 ** 41)]
        millrace.Executor().run(self.startup)
        for found, (_, wanted) in zip(self.run_once([var for var, _ in cases]), cases):
            self.assertEqual(found.tolist(), [wanted])

    def test_what_a_type_of_whole_numbers_does_not_hold_is_refused(self):
        i, small = layers.zeros([1], "int64"), layers.zeros([1], "int32")
        before = self.main.serialize(), self.startup.serialize()
        for mistake, message in [
                (lambda: layers.fill_constant([1], "int64", 2.5), "fill_constant: value: int64 holds whole numbers, not 2.5"),
                (lambda: layers.fill_constant([1], "int64", float("nan")), "int64 holds whole numbers, not nan"),
                (lambda: layers.fill_constant([1], "int64", float("inf")), "int64 holds whole numbers, not inf"),
                (lambda: layers.fill_constant([1], "int64", "3"), "fill_constant: value: a number, not '3'"),
                (lambda: layers.fill_constant([1], "int32", 2 ** 31 + 5), "int32 holds -2147483648 to 2147483647, not 2147483653"),
                (lambda: layers.fill_constant([1], "uint8", -1), "uint8 holds 0 to 255, not -1"),
                (lambda: layers.fill_constant([1], "int64", 2 ** 63), "not 9223372036854775808"),
                (lambda: layers.fill_constant([1], "float32", 10 ** 400), "fill_constant: value: a number, not 1000"),
                (lambda: layers.fill_constant_batch_size_like(i, [-1], "int64", 0.5), "_batch_size_like: value: int64 holds"),
                (lambda: layers.fill_constant_batch_size_like(i, [-1], "int64", 2 ** 60 + 1), "needs more than the 53 bits"),
                (lambda: layers.range(0, 2 ** 53 + 3, 1), "range: end: the operator counts in float64, .* 9007199254740995 is"),
                (lambda: layers.range(0, 2.5, 1), "range: end: int64 holds whole numbers, not 2.5"),
                (lambda: layers.less_than(small, 2 ** 40), "less_than: y: int32 holds -2147483648 to 2147483647, not 109"),
                (lambda: i + 2 ** 70, '"fill_constant_0.out" and what stands beside it in a formula: int64 holds'),
                (lambda: layers.increment(i, 1.5), "increment: value: int64 holds whole numbers, not 1.5"),
                (lambda: layers.increment(i, 2 ** 24 + 1), r"16777217 is handed on as float32, which rounds it; take assign\(x"),
                (lambda: layers.create_global_var([1], 2 ** 40 + 1, "int64", persistable=True),
                 "create_global_var: value: 1099511627777 is handed on as float32, which rounds it; start at 0 and write it"),
                (lambda: layers.create_global_var([1], 0.5, "int64", persistable=True), "int64 holds whole numbers, not 0.5"),
                (lambda: i[True], "a whole number, not True"), (lambda: layers.fc(i, True), "fc: size: a whole number, not True")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()
            self.assertEqual((self.main.serialize(), self.startup.serialize()), before)

    def test_integers_beside_fractions_are_float32(self):
        for dtype in ("int64", "int32"):
            x = layers.fill_constant([1], dtype, 2)
            cases = [(x < 2.5, "bool", True), (x > 1.5, "bool", True), (x >= 2.5, "bool", False), (x <= 2.5, "bool", True),
                     (layers.equal(x, 2.5), "bool", False), (layers.not_equal(x, 2.5), "bool", True),
                     (x < np.float32(2.5), "bool", True),
                     (x < 3.0, "bool", True), (layers.equal(x, 2.0), "bool", True), (x * 0.5, "float32", 1),
                     (x * 2.0, "float32", 4),
                     (x + 0.5, "float32", 2.5), (x - 0.5, "float32", 1.5), (0.5 - x, "float32", -1.5), (x / 4, "float32", 0.5),
                     (1 / x, "float32", 0.5), (1.5 / x, "float32", 0.75), (x ** 0.5, "float32", float(np.float32(2) ** 0.5))]
            for found, (_, wanted_dtype, wanted) in zip(self.run_once([var for var, _, _ in cases]), cases):
                self.assertEqual((found.dtype.name, found.tolist()), (wanted_dtype, [wanted]))
        x = layers.fill_constant([1], "int64", 2)
        self.assertEqual([var.dtype for var in (x + 1, x - 1, 1 - x, x * np.int32(3), -x)], ["int64"] * 5)


X = np.ones((3, 4), np.float32)

if __name__ == "__main__":
    unittest.main()
