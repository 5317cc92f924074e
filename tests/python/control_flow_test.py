"""Programs written in Python that branch, loop, and train in a loop of their own."""

import os
import subprocess
import sys
import tempfile
import unittest
import warnings

import support

import numpy as np

import millrace
from millrace import initializer, layers, optimizer, reader

X = np.arange(12, dtype=np.float32).reshape(3, 4)


class Fresh(unittest.TestCase):
    """Programs and a scope of its own for each test."""

    def setUp(self):
        self.main, self.startup, self.scope = millrace.Program(), millrace.Program(), millrace.Scope()
        for guard in (millrace.program_guard(self.main, self.startup), millrace.scope_guard(self.scope),
                      millrace.unique_name.guard()):
            guard.__enter__()
            self.addCleanup(guard.__exit__, None, None, None)

    def run_once(self, fetch_list, **feed):
        return millrace.Executor().run(self.main, feed=feed, fetch_list=fetch_list)


class ControlFlowTest(Fresh):
    def test_a_block_runs_as_long_as_its_condition_holds(self):
        x = layers.data("x", [4])
        i, total = layers.zeros([1], "int64"), layers.zeros_like(x)
        go_on = layers.less_than(i, 5)
        with layers.While(go_on).block():
            layers.assign(total + x, output=total)
            layers.increment(i)
            layers.less_than(i, 5, cond=go_on)
        self.assertEqual(self.main.ops().splitlines()[-1], "op[%d]->Type(): while" % (len(self.main.ops().splitlines()) - 2))
        found, rounds = self.run_once([total, i], x=X)
        np.testing.assert_array_equal(found, 5 * X)
        self.assertEqual(rounds.tolist(), [5])
        found, = millrace.Executor().run(self.main.clone(for_test=True), feed={"x": X}, fetch_list=[total])
        np.testing.assert_array_equal(found, 5 * X)

    def test_loop_variables_go_through_functions(self):
        x = layers.data("x", [4])
        doubled, count = layers.while_loop(lambda a, n: layers.reduce_sum(a) < 100.0, lambda a, n: [a * 2.0, n + 1.0],
                                           [x, layers.zeros([1])])
        left, right = layers.while_loop(lambda a, b: a < 3.0, lambda a, b: [b, a],
                                        [layers.zeros([1]), layers.fill_constant([1], "float32", 4)])
        found = self.run_once([doubled, count, left, right, x], x=X)
        np.testing.assert_array_equal(found[0], 2 * X)
        self.assertEqual([value.tolist() for value in found[1:4]], [[1], [4], [0]])
        np.testing.assert_array_equal(found[4], X)  # what it began with stays

    def test_one_branch_runs(self):
        x = layers.data("x", [4])
        ran = layers.zeros([1])

        def left():
            layers.increment(ran)
            return [x * 2.0, layers.ones([1])]

        value, which = layers.cond(layers.reduce_mean(x) > 3.0, left, lambda: [x - 1.0, layers.zeros([1])])
        found = self.run_once([value, which, ran], x=X)
        np.testing.assert_array_equal(found[0], 2 * X)
        self.assertEqual([found[1].tolist(), found[2].tolist()], [[1], [1]])
        found = self.run_once([value, which, ran], x=X / 8)
        np.testing.assert_array_equal(found[0], X / 8 - 1)
        self.assertEqual([found[1].tolist(), found[2].tolist()], [[0], [0]])

    def test_the_first_case_that_holds_runs(self):
        step = layers.data("step", [1], append_batch_size=False)
        rate = layers.zeros([1])
        with layers.Switch() as switch:
            with switch.case(step < 2.0):
                layers.assign(np.array([0.1]), output=rate)
            with switch.case(step < 4.0):
                layers.assign(np.array([0.2]), output=rate)
            with switch.default():
                layers.assign(np.array([0.3]), output=rate)
        found = [self.run_once([rate], step=np.array([at], np.float32))[0].item() for at in (1, 3, 5)]
        np.testing.assert_allclose(found, [0.1, 0.2, 0.3], rtol=1e-6)

    def test_mistakes_leave_the_program_as_it_was(self):
        x = layers.data("x", [4])
        i = layers.zeros([1], "int64")
        go_on = layers.less_than(i, 3)

        def endless():
            with layers.While(go_on).block():
                layers.increment(i)

        def fails():
            with layers.While(go_on).block():
                layers.fc(x, 3, param_attr="within")
                layers.concat([x, 3])

        def empty():
            with layers.While(go_on).block():
                pass

        before = self.main.serialize(), self.startup.serialize()
        for mistake, message in [
                (endless, 'nothing in its block writes the condition "less_than_0.out"'),
                (fails, "concat: X is a Variable, not 3"), (empty, "while: its block has no operators"),
                (lambda: layers.While(i), r'the condition is a bool \[1\]; "fill_constant_0.out" is int64 \[1\]'),
                (lambda: layers.While(3), "While: the condition is a Variable"),
                (lambda: layers.Switch().default(), "comes after a case"),
                (lambda: bool(go_on), "take layers.cond, layers.While or layers.where instead of if"),
                (lambda: layers.assign(i, output=x), r'assign: writes int64 \[1\] to "x", which is float32 \[-1, 4\]')]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()
            self.assertEqual((self.main.serialize(), self.startup.serialize()), before)
        for mistake, message in [
                (lambda: layers.while_loop(lambda a: layers.reduce_sum(a) < 3.0, lambda a: layers.concat([a, a], 0), [layers.zeros([2])]),
                 r"assign: writes float32 \[4\] to .* which is float32 \[2\]"),
                (lambda: layers.while_loop(lambda a: a < 3.0, lambda a: [a, a], [layers.zeros([1])]), "body returns 2 variables for 1"),
                (lambda: layers.cond(go_on, lambda: x, lambda: i), "cond: true_fn returns .*float32.*, false_fn .*int64"),
                (lambda: layers.cond(go_on, lambda: x), "true_fn returns 1 variables, false_fn 0")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()

    def test_branches_of_other_sizes_are_refused(self):
        x, sized = layers.data("x", [4]), layers.data("sized", [3, 4], append_batch_size=False)
        holds = layers.reduce_mean(x) > 0.0
        for false, message in [
                (lambda: layers.concat([x, x], axis=1), r"true_fn returns .*\[-1, 4\]\), false_fn .*\[-1, 8\]\); both return the same"),
                (lambda: layers.reduce_sum(x, 1), r"false_fn .*\[-1\]")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                layers.cond(holds, lambda: layers.relu(x), false)
        self.assertEqual(layers.cond(holds, lambda: layers.relu(x), lambda: sized).dtype, "float32")  # -1 may be 3

    def test_a_cond_without_its_second_branch_takes_the_first_back(self):
        x = layers.data("x", [4])
        holds = layers.reduce_mean(x) > 0.0
        before = self.main.serialize()
        with self.assertRaisesRegex(millrace.ConfigError, "true_fn returns 1 variables, false_fn 0"):
            layers.cond(holds, lambda: layers.relu(x))
        self.assertEqual(self.main.serialize(), before)

    def test_a_branch_that_fails_is_taken_back(self):
        x = layers.data("x", [4])
        holds = layers.reduce_mean(x) > 0.0

        def fails():
            layers.sigmoid(x, name="half_written")
            raise KeyError("x")

        before = self.main.serialize()
        with self.assertRaises(KeyError):
            layers.cond(holds, fails, lambda: x)
        self.assertEqual(self.main.serialize(), before)
        with self.assertRaises(KeyError):
            layers.cond(holds, lambda: layers.relu(x, name="stays"), fails)
        self.assertNotIn("half_written", str(self.main))
        self.assertIn("stays", str(self.main))  # as its docstring says

    def test_a_variable_of_an_ended_block_is_named(self):
        x = layers.data("x", [4])
        go_on = layers.less_than(layers.zeros([1], "int64"), 3)
        with layers.While(go_on).block():
            inner = x * 2.0
            layers.logical_not(go_on, out=go_on)
        self.assertEqual(inner.shape, (-1, 4))
        with self.assertRaisesRegex(millrace.ConfigError, '"%s" is a variable of a block that has ended' % inner.name):
            layers.relu(inner)

    def test_what_has_no_gradient_is_said(self):
        x = layers.data("x", [4])
        hidden = layers.fc(x, 4)
        chosen = layers.cond(layers.reduce_mean(x) > 0.0, lambda: hidden * 2.0, lambda: hidden)
        with self.assertRaisesRegex(millrace.ConfigError, "has no gradient, but the loss depends on it"):
            optimizer.SGD(0.1).minimize(layers.mean(chosen))

    def test_a_gradient_that_would_read_a_later_value_is_refused(self):
        def hidden():
            return layers.fc(layers.data("x", [4]), 3, param_attr="w", bias_attr=False)

        def overwritten_factor():
            factor = layers.fill_constant([3, 3], "float32", 2)
            layers.assign(hidden() * factor, output=factor)
            return layers.square(factor), factor, "elementwise_mul", "assign"

        def constant_over_it():
            h = hidden()
            loss = layers.square(h)
            layers.fill_constant([3, 3], "float32", 7, out=h)
            return loss, h, "square", "fill_constant"

        def counted_on():
            h = layers.mean(hidden())
            loss = layers.square(h)
            layers.increment(h)
            return loss, h, "square", "increment"

        def written_by_a_branch():
            h = hidden()
            loss = layers.square(h)
            with layers.ConditionalBlock([layers.reduce_mean(h) < 100], is_scalar_condition=True).block():
                layers.assign(h * 0.0, output=h)
            return loss, h, "square", "conditional_block"

        for program in (overwritten_factor, constant_over_it, counted_on, written_by_a_branch):
            with self.subTest(program.__name__), millrace.program_guard(millrace.Program(), millrace.Program()):
                loss, variable, reader_type, writer = program()
                with self.assertRaisesRegex(millrace.ConfigError, '%s: its gradient reads "%s", which op.* %s writes over before that' % (
                        reader_type, variable.name, writer)):
                    optimizer.SGD(0.1).minimize(layers.mean(loss))

    def test_what_is_read_before_it_is_written_over_has_its_gradient_where_sizes_are_enough(self):
        def model(x):
            total = layers.ones([3, 3])
            new = layers.fc(x, 3, param_attr="w", bias_attr=False) + total
            layers.assign(new, output=total)
            return layers.mean(layers.square(total) + new)
        loss = model(layers.data("x", [4]))
        test = self.main.clone(for_test=True)
        (_, gradient), = optimizer.SGD(1e-30).minimize(loss)[1]
        millrace.Executor().run(self.startup)
        found, = self.run_once([gradient], x=X / 10)
        np.testing.assert_allclose(found, self.slopes(test, loss, x=X / 10), rtol=1e-2, atol=1e-3)

    def slopes(self, program, loss, **feed):
        """How the loss changes with each value of w, by differences."""
        w, step = self.scope.get("w"), 1e-2
        slopes = np.zeros_like(w)
        for place in np.ndindex(*w.shape):
            for sign in (1, -1):
                moved = w.copy()
                moved[place] += sign * step
                self.scope.set("w", moved)
                value, = millrace.Executor().run(program, feed=feed, fetch_list=[loss])
                slopes[place] += sign * value.item() / (2 * step)
        self.scope.set("w", w)
        return slopes

    def test_gradients_go_through_a_variable_from_before_the_block_that_it_writes(self):
        x = layers.data("x", [4])
        kept, last, i = layers.zeros([3, 3]), layers.zeros([1]), layers.zeros([1], "int64")
        go_on = i < 1
        with layers.While(go_on).block():
            new = layers.fc(x, 3, param_attr="w", bias_attr=False)
            layers.assign(new, output=kept)
            loss = layers.mean(layers.square(kept) + new)
            layers.assign(loss, output=last)
            optimizer.SGD(1.0).minimize(loss)
            layers.increment(i)
            layers.less_than(i, 1, cond=go_on)
        millrace.Executor().run(self.startup)
        slopes, before = self.slopes(self.main.clone(for_test=True), last, x=X / 10), self.scope.get("w")
        self.run_once([last], x=X / 10)
        np.testing.assert_allclose(before - self.scope.get("w"), slopes, rtol=1e-2, atol=1e-3)

    def test_a_block_that_is_taken_back_leaves_no_states_and_no_training(self):
        x, y = layers.data("x", [4]), layers.data("y", [1], "int64")
        layers.auc(layers.fc(x, 2, act="softmax"), y)
        states, go_on = list(self.main.auc_states), layers.zeros([1], "int64") < 1
        with self.assertRaises(KeyError), layers.While(go_on).block():
            scores = layers.fc(x, 2, act="softmax", param_attr=millrace.ParamAttr("w", learning_rate=0.0))
            layers.auc(scores, y)
            optimizer.SGD(0.1).minimize(layers.mean(layers.cross_entropy(scores, y)))
            raise KeyError()
        self.assertEqual(self.main.auc_states, states)
        self.assertFalse(self.main._is_trained)
        loss = layers.mean(layers.fc(x, 1, param_attr="w", bias_attr=False))
        optimizer.SGD(0.1).minimize(loss)
        millrace.Executor().run(self.startup)
        before = self.scope.get("w")
        self.run_once([loss], x=X, y=np.zeros((3, 1), np.int64))
        np.testing.assert_allclose(self.scope.get("w"), before - 0.1 * X.mean(0).reshape(4, 1), rtol=1e-4)

    def test_a_variable_written_twice_has_no_gradient_of_both(self):
        hidden = layers.fc(layers.data("x", [4]), 4)
        layers.assign(hidden * 2.0, output=hidden)
        with self.assertRaisesRegex(millrace.ConfigError, 'writes "%s" again, which op.1. made' % hidden.name):
            optimizer.SGD(0.1).minimize(layers.mean(hidden))


class TrainingLoopTest(Fresh):
    def model(self):
        x, y = layers.data("x", [4]), layers.data("y", [1], dtype="int64")
        return lambda: layers.mean(layers.cross_entropy(layers.fc(x, 2, act="softmax", param_attr="w", bias_attr="b"), y))

    def test_twenty_rounds_of_a_loop_are_twenty_batches(self):
        feed = {"x": X / 12, "y": np.array([[0], [1], [1]])}
        loss = self.model()()
        optimizer.Adam(0.1).minimize(loss)
        millrace.Executor().run(self.startup)
        for _ in range(20):
            flat, = self.run_once([loss], **feed)
        wanted = self.scope.get("w"), self.scope.get("b")
        looped, start, scope = millrace.Program(), millrace.Program(), millrace.Scope()
        with millrace.program_guard(looped, start), millrace.scope_guard(scope):
            model = self.model()
            i, last = layers.zeros([1], "int64"), layers.zeros([1])
            go_on = layers.less_than(i, 20)
            with layers.While(go_on).block():
                loss = model()
                pairs = optimizer.Adam(0.1).minimize(loss)[1]
                layers.assign(loss, output=last)
                layers.increment(i)
                layers.less_than(i, 20, cond=go_on)
            self.assertEqual(sorted(parameter.name for parameter, _ in pairs), ["b", "w"])
            millrace.Executor().run(start)
            found, = millrace.Executor().run(looped, feed=feed, fetch_list=[last])
        self.assertEqual(found.tolist(), flat.tolist())
        for name, array in zip("wb", wanted):
            np.testing.assert_array_equal(scope.get(name), array)

    def test_a_condition_of_many_values_is_refused_at_the_call(self):
        many = layers.ones([2, 4]) > 0.5
        for branch in (lambda: layers.cond(many, lambda: many, lambda: many),
                       lambda: layers.ConditionalBlock([many], is_scalar_condition=True)):
            with self.assertRaises(millrace.ConfigError) as caught:
                branch()
            self.assertIn("is [2, 4]: take its reduce_any or reduce_all", str(caught.exception))

    def test_a_branch_on_one_bool_that_is_not_its_condition_is_warned_of(self):
        runs = layers.zeros([1], "bool")
        with self.assertWarns(millrace.MillraceWarning) as caught:
            layers.ConditionalBlock([runs])
        self.assertIn("is_scalar_condition=True", str(caught.warning))
        self.assertEqual(caught.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            layers.ConditionalBlock([runs], is_scalar_condition=True)
            layers.ConditionalBlock([layers.ones([2, 2])])

    def test_a_variable_of_a_block_that_did_not_run_has_no_value(self):
        x = layers.ones([1, 2])
        runs = layers.zeros([1], "bool")
        with layers.ConditionalBlock([runs], is_scalar_condition=True).block():
            inner = layers.scale(x, 2.0)
        with self.assertRaises(millrace.ConfigError) as caught:
            self.run_once([inner])
        self.assertIn('"%s" has no value: the block that computes it did not run' % inner.name, str(caught.exception))

    def test_a_loop_over_a_reader_trains_in_trainer_to_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "rows.csv")
            rows = np.random.RandomState(3).randn(96, 4)
            with open(file, "w", encoding="utf-8") as out:
                out.writelines("%s,%d\n" % (",".join("%.3f" % value for value in row), row[0] > 0) for row in rows)
            batches = reader.batch(reader.open_files([file], [[-1, 4], [-1, 1]], ["float32", "int64"]), 32)
            passes = layers.zeros([1], "int64")
            go_on = layers.less_than(passes, 3)
            with layers.While(go_on).block():
                more = reader.has_next(batches)
                with layers.ConditionalBlock([more], is_scalar_condition=True).block():
                    x, y = reader.read_file(batches)
                    # Which values it drops, and the rate below, follow the step.
                    x = layers.dropout(x, 0.2)
                    predict = layers.fc(x, 2, act="softmax", param_attr=millrace.ParamAttr("w", initializer.Uniform(-0.5, 0.5)), name="click")
                    rate = optimizer.exponential_decay(0.1, 1, 0.9)
                    optimizer.Adagrad(rate).minimize(layers.mean(layers.cross_entropy(predict, y)))
                with layers.ConditionalBlock([layers.logical_not(more)], is_scalar_condition=True).block():
                    reader.reset(batches)
                    layers.increment(passes)
                    layers.less_than(passes, 3, cond=go_on)
            millrace.Executor().run(self.startup)
            start = self.scope.get("w")
            self.assertEqual(self.run_once([passes])[0].tolist(), [3])
            self.assertGreater(abs(self.scope.get("w") - start).max(), 0.1)
            self.assertEqual(self.scope.step, 9)

            self.main.save(os.path.join(folder, "job"))
            job = os.path.join(folder, "job.prototxt")
            with open(job, "w", encoding="utf-8") as out:
                out.write('seed: 1 program { main: "%s/job/main_program.bin" startup: "%s/job/startup_program.bin" save_dir: "%s/final" }' % (
                    folder, folder, folder))
            trainer = os.path.join(support.BIN, "trainer")
            if not os.path.exists(trainer):
                self.skipTest("the program trainer is not built")
            done = subprocess.run([trainer, "--trainer_desc=" + job, "--output_dir=" + os.path.join(folder, "out")],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("288 examples", done.stderr)
            trained = self.scope.get("w")
            millrace.Executor().run(self.startup)
            millrace.load_persistables(None, os.path.join(folder, "final"), self.main)
            np.testing.assert_array_equal(self.scope.get("w"), trained)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
