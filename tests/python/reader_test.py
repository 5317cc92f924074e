"""Programs that read for themselves, written in Python: from arrays that Python pushes, and from files."""

import contextlib
import struct
import threading
import unittest

import program_test
import support

import numpy as np

import millrace
from millrace import ParamAttr, initializer, layers, optimizer, reader


class ReaderTest(program_test.Fresh):
    def model(self, x, y):
        prediction = layers.fc(x, 1, param_attr=ParamAttr("w", initializer.Constant(0)), bias_attr=False)
        loss = layers.mean(layers.square_error_cost(prediction, y))
        optimizer.SGD(0.1).minimize(loss)
        return loss

    def expected(self, batches):
        """What SGD makes of the batches: (losses, w)."""
        w, losses = np.zeros((2, 1), dtype=np.float32), []
        for x, y in batches:
            difference = x @ w - y
            losses.append(float((difference ** 2).mean()))
            w = w - 0.1 * 2 * x.T @ difference / len(x)
        return losses, w

    def batches(self, count=20):
        draw = np.random.default_rng(3)
        made = []
        for rows in draw.integers(1, 9, size=count):
            x = draw.standard_normal((rows, 2)).astype(np.float32)
            made.append((x, x @ np.array([[1.0], [-2.0]], dtype=np.float32)))
        return made

    def test_a_queue_is_made_in_a_variable_as_the_design_of_fluid_has_it(self):
        name = millrace.unique_name.generate("py_array_feed_queue")
        var = millrace.global_scope().var(name)
        with self.assertRaisesRegex(millrace.NotFoundError, "has no value yet"):
            np.array(var.get_tensor())
        queue = millrace.core.init_py_array_feed_queue(var, 2, [[-1, 2]], millrace.core.CPUPlace())
        self.assertEqual((queue.capacity(), queue.shapes), (2, [((-1, 2), "float32")]))
        with self.assertRaisesRegex(millrace.AlreadyExistsError, "init_once was called before"):
            millrace.core.init_py_array_feed_queue(millrace.global_scope().var(name), 2, [[-1, 2]])
        millrace.global_scope().var("set_at_last").get_tensor().set(np.ones(3, dtype=np.float32))
        self.assertEqual(np.array(millrace.global_scope().find_var("set_at_last").get_tensor()).tolist(), [1, 1, 1])

    def test_a_reader_without_outputs_is_refused_where_it_is_made(self):
        for made in (lambda: reader.open_files(["part-0.csv"], [], []), lambda: reader.random_data_generator(0.0, 1.0, []),
                     lambda: reader.made_by("create_recordio_file_reader", {"filename": "part-0"})):
            with self.assertRaisesRegex(millrace.ConfigError, "shapes is empty; a reader has one for each output"):
                made()

    def test_an_operator_that_makes_a_reader_is_no_layer(self):
        with self.assertRaisesRegex(millrace.ConfigError, "create_random_data_generator: it makes a reader.*made_by"):
            layers.op("create_random_data_generator", {}, {"low": 0.0})
        made = reader.made_by("create_random_data_generator", {"low": 2.0, "high": 3.0}, shapes=[[1, 3]])
        x = reader.read_file(reader.made_by("create_batch_reader", {"batch_size": 4}, reader=made, shapes=[[-1, 3]]))
        exe = millrace.Executor()
        exe.run(millrace.default_startup_program())
        values, = exe.run(fetch_list=[x])
        self.assertEqual(values.shape, (4, 3))
        self.assertTrue((values >= 2).all() and (values < 3).all())

    def test_a_read_past_the_end_is_an_error_or_no_rows_as_it_is_asked(self):
        for throws in (True, False):
            main, startup = millrace.Program(), millrace.Program()
            with millrace.program_guard(main, startup):
                made, queue = millrace.py_array_reader(2, [[-1, 2]], millrace.CPUPlace())
                x = reader.read_file(made, throw_eof_exp=throws)
                total = layers.reduce_sum(x)
            exe = millrace.Executor()
            exe.run(startup)
            queue.push((np.ones((3, 2), dtype=np.float32),))
            queue.close()
            self.assertEqual(exe.run(main, fetch_list=[total])[0].item(), 6)
            if throws:
                with self.assertRaises(millrace.core.EOFException):
                    exe.run(main, fetch_list=[total])
            else:
                self.assertEqual(exe.run(main, fetch_list=[x])[0].shape[0], 0)

    def test_arrays_that_a_thread_pushes_train_a_program(self):
        made, queue = millrace.py_array_reader(3, [[-1, 2], [-1, 1]], millrace.CPUPlace())
        x, y = reader.read_file(made)
        self.assertEqual((x.shape, y.shape), ((-1, 2), (-1, 1)))
        loss = self.model(x, y)
        exe = millrace.Executor()
        exe.run(self.startup)
        batches = self.batches()

        def produce():
            with queue:
                for arrays in batches:
                    queue.push(arrays)
        thread = threading.Thread(target=produce)
        thread.start()
        report = exe.train_from_reader(self.main, fetch_list=[loss], fetch_info=["loss"], print_period=1)
        thread.join()
        losses, w = self.expected(batches)
        np.testing.assert_allclose([entry["loss"][0] for entry in report.history], losses, rtol=1e-4)
        np.testing.assert_allclose(self.scope.get("w"), w, rtol=1e-4)
        self.assertEqual((report.batches, report.examples), (20, sum(len(x) for x, _ in batches)))

    def test_two_threads_train_every_batch_once_a_pass(self):
        made, queue = millrace.py_array_reader(3, [[-1, 2], [-1, 1]])
        self.model(*reader.read_file(made))
        exe = millrace.Executor()
        exe.run(self.startup)
        batches = self.batches()

        def produce():
            with queue:
                for _ in range(3):
                    for arrays in batches:
                        queue.push(arrays)
                    queue.end_pass()
        thread = threading.Thread(target=produce)
        thread.start()
        report = exe.train_from_reader(self.main, epochs=3, thread=2)
        thread.join()
        self.assertEqual((report.batches, report.examples), (60, 3 * sum(len(x) for x, _ in batches)))
        with self.assertRaisesRegex(millrace.ConfigError, "thread: at least 1, not 0"):
            exe.train_from_reader(self.main, thread=0)

    def test_an_exception_of_the_producer_ends_the_training(self):
        made, queue = millrace.py_array_reader(3, [[-1, 2], [-1, 1]])
        self.model(*reader.read_file(made))
        exe = millrace.Executor()
        exe.run(self.startup)
        queue.push(self.batches(1)[0])
        queue.close(KeyError("no more"))
        with self.assertRaisesRegex(millrace.Error, "the queue was closed by KeyError: 'no more'") as caught:
            exe.train_from_reader(self.main)
        self.assertIsInstance(caught.exception.__cause__, KeyError)

    def test_the_failure_of_a_training_reaches_who_pushes(self):
        made, queue = millrace.py_array_reader(1, [[-1, 2], [-1, 1]], millrace.CPUPlace())
        loss = self.model(*reader.read_file(made))
        exe = millrace.Executor()
        exe.run(self.startup)
        seen = []

        class Failing(millrace.FetchHandler):
            def handler(self, res_dict):
                raise ZeroDivisionError("of the consumer")

        def produce():
            try:
                while True:
                    queue.push(self.batches(1)[0])
            except millrace.CancelledError as error:
                seen.append(error)
        thread = threading.Thread(target=produce)
        thread.start()
        # What a call is told wrong closes nothing.
        with self.assertRaisesRegex(millrace.ConfigError, "epochs: at least 1, not 0"):
            exe.train_from_reader(self.main, epochs=0)
        self.assertFalse(queue.is_closed())
        with self.assertRaises(ZeroDivisionError):
            exe.train_from_reader(self.main, fetch_handler=Failing({"loss": loss}, 0))
        thread.join()
        self.assertIn("the queue was closed by ZeroDivisionError: of the consumer", str(seen[0]))
        self.assertIsInstance(seen[0].__cause__, ZeroDivisionError)

    def test_mistakes_of_readers_are_said(self):
        path = self.path("a.csv")
        support.write(path, "1,2,3\n")
        shapes, dtypes = [[-1, 2], [-1, 1]], ["float32", np.float32]
        files = reader.open_files(path, shapes, dtypes)  # one name stands for a list of it
        self.assertEqual(files.dtypes, ["float32", "float32"])
        for mistake, message in [
                (lambda: reader.open_files(None, shapes, dtypes), "open_files: filenames: a list of files, not None"),
                (lambda: reader.open_files([3], shapes, dtypes), "open_files: filenames: a file's name, not 3"),
                (lambda: reader.open_files([path], [2, 1], dtypes), r"as in \[\[-1, 13\], \[-1, 1\]\], not \[2, 1\]"),
                (lambda: reader.open_files([path], shapes, ["float32"]), "there are 1 for 2 shapes"),
                (lambda: reader.open_files([path], shapes, ["float32", "x"]), 'there is no dtype "x"'),
                (lambda: reader.batch(None, 8), "batch_reader: reader: a Reader, not None"),
                (lambda: reader.batch(files, 0), "batch_size|at least 1"),
                (lambda: reader.read_file(3), "read_file: reader: a Reader, not 3")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()
                millrace.Executor().run(self.startup)

    def test_a_second_epoch_of_a_closed_queue_is_refused(self):
        made, queue = millrace.py_array_reader(3, [[-1, 2], [-1, 1]])
        self.model(*reader.read_file(made))
        exe = millrace.Executor()
        exe.run(self.startup)
        queue.push(self.batches(1)[0])
        queue.close()
        with self.assertRaisesRegex(millrace.Error, r"PyArrayReader does not support ReInit\(\): its queue was closed, .* End each pass "
                                                    r"but the last by queue.end_pass\(\), .* or call queue.reopen\(\)"):
            exe.train_from_reader(self.main, epochs=2)
        # What the message says goes on with the trained parameters.
        trained = self.scope.get("w")
        queue.reopen()
        queue.push(self.batches(1)[0])
        queue.close()
        self.assertEqual(exe.train_from_reader(self.main).batches, 1)
        self.assertEqual(self.expected(self.batches(1) * 2)[1].round(5).tolist(), self.scope.get("w").round(5).tolist())
        self.assertFalse((self.scope.get("w") == trained).all())

    def test_passes_that_are_pushed_one_behind_another_are_epochs(self):
        made, queue = millrace.py_array_reader(3, [[-1, 2], [-1, 1]])
        loss = self.model(*reader.read_file(reader.double_buffer(made)))
        exe = millrace.Executor()
        exe.run(self.startup)
        batches = self.batches(7)

        def produce():
            for _ in range(3):
                for arrays in batches:
                    queue.push(arrays)
                queue.end_pass()
        thread = threading.Thread(target=produce)
        thread.start()
        report = exe.train_from_reader(self.main, epochs=3, fetch_list=[loss], fetch_info=["loss"], print_period=1)
        thread.join()
        self.assertEqual((report.batches, report.epochs), (21, 3))
        np.testing.assert_allclose([entry["loss"][0] for entry in report.history], self.expected(batches * 3)[0], rtol=1e-3)
        # For who pops, None is the end of a pass.
        queue.push(batches[0])
        queue.end_pass()
        queue.push(batches[1])
        queue.close()
        self.assertEqual([len(list(queue)), len(list(queue)), queue.pop()], [1, 1, None])

    def test_a_generator_feeds_pass_after_pass(self):
        for wrap, decorate in [(lambda made: made, "decorate_batch_generator"), (reader.double_buffer, "decorate_tensor_provider")]:
            main, startup, scope = millrace.Program(), millrace.Program(), millrace.Scope()
            with millrace.program_guard(main, startup), millrace.scope_guard(scope):
                made, _ = millrace.py_array_reader(2, [[-1, 2], [-1, 1]])
                outer = wrap(made)
                loss = self.model(*reader.read_file(outer))
                batches, calls = self.batches(5), []
                getattr(made, decorate)(lambda: (calls.append(1), iter(batches))[1], millrace.CPUPlace())
                exe = millrace.Executor()
                exe.run(startup)
                self.assertEqual(exe.train_from_reader(main, epochs=2).batches, 10)
                self.assertEqual(exe.train_from_reader(main).batches, 5)
                # By hand, as in fluid.
                made.reset()
                for _ in range(2):
                    made.start()
                    seen = 0
                    with self.assertRaisesRegex(millrace.EOFException, "the reader is at its end after 5 items"):
                        while True:
                            exe.run(main, fetch_list=[loss])
                            seen += 1
                    self.assertEqual(seen, 5)
                    made.reset()
                # A pass that is given up.
                made.start()
                exe.run(main)
                with self.assertRaisesRegex(millrace.ConfigError, "was started and its pass is not over"):
                    made.start()
                made.reset()
                self.assertEqual(exe.train_from_reader(main).batches, 5)
                self.assertEqual(len(calls), 7)
                wanted = self.expected(batches * 5 + batches[:1] + batches)[1]
                np.testing.assert_allclose(scope.get("w"), wanted, rtol=1e-4)

    def test_samples_become_batches(self):
        made = reader.py_reader(4, [[-1, 2], [-1, 1]], ["float32", "int64"])
        x, y = reader.read_file(made)
        exe = millrace.Executor()
        exe.run(self.startup)
        samples = [([i, i + 0.5], i) for i in range(5)]
        for drop_last, sizes in [(True, [2, 2]), (False, [2, 2, 1])]:
            made.decorate_sample_generator(lambda: iter(samples), 2, drop_last)
            made.start()
            seen = []
            with self.assertRaises(millrace.EOFException):
                while True:
                    seen.append(exe.run(self.main, fetch_list=[x, y]))
            made.reset()
            self.assertEqual([len(rows) for rows, _ in seen], sizes)
            self.assertEqual([[float(v) for v in row] for rows, _ in seen for row in rows], [s[0] for s in samples][:sum(sizes)])
            self.assertEqual([int(v) for _, labels in seen for v in labels[:, 0]], [s[1] for s in samples][:sum(sizes)])
        made.decorate_paddle_reader(lambda: iter([samples[:3]]))
        made.start()
        self.assertEqual(exe.run(self.main, fetch_list=[y])[0].tolist(), [[0], [1], [2]])
        made.reset()
        files = reader.random_data_generator(0, 1, [[-1, 2]])
        for mistake, message in [
                (lambda: made.decorate_batch_generator([1]), r"a function that returns a generator, .*, not \[1\]"),
                (lambda: files.decorate_batch_generator(iter), "reads files; a generator pushes into one of py_array_reader"),
                (lambda: reader.py_reader(4, [[-1, 1]], ["int64"], [1]), "feed those by io.PyReader")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()

    def test_a_mistake_in_a_call_leaves_a_started_pass_alone(self):
        made, _ = millrace.py_array_reader(8, [[1, 2], [1, 1]])
        outer = reader.batch(made, 2)
        loss = self.model(*reader.read_file(outer))
        rows = [(np.full((1, 2), i, np.float32), np.zeros((1, 1), np.float32)) for i in range(4)]
        outer.decorate_batch_generator(lambda: iter(rows))  # of what it was made of
        exe = millrace.Executor()
        exe.run(self.startup)
        outer.start()
        exe.run(self.main, fetch_list=[loss])
        with self.assertRaisesRegex(millrace.ConfigError, 'fetch_list: the program has no variable "los"'):
            exe.train_from_reader(self.main, fetch_list=["los"])
        with self.assertRaisesRegex(millrace.ConfigError, "leave out start"):
            exe.train_from_reader(self.main, epochs=2)
        self.assertEqual(exe.train_from_reader(self.main).examples, 2)
        self.assertEqual(exe.train_from_reader(self.main, epochs=2).examples, 8)

    def test_an_exception_of_a_generator_ends_the_training(self):
        made, _ = millrace.py_array_reader(2, [[-1, 2], [-1, 1]])
        self.model(*reader.read_file(made))

        def broken():
            yield self.batches(1)[0]
            raise ZeroDivisionError("in the generator")
        made.decorate_batch_generator(broken)
        exe = millrace.Executor()
        exe.run(self.startup)
        with self.assertRaisesRegex(millrace.CancelledError, "the queue was closed by ZeroDivisionError: in the generator"):
            exe.train_from_reader(self.main)
        made.decorate_batch_generator(lambda: iter(self.batches(3)))
        made.reset()
        self.assertEqual(exe.train_from_reader(self.main).batches, 3)

    def test_a_loader_feeds_the_variables_of_a_program(self):
        x, ids, y = layers.data("x", [2]), layers.data("ids", [1], "int64", lod_level=1), layers.data("y", [1])
        bag = layers.sequence_pool(layers.cast(ids, "float32"), "sum")
        loss = self.model(x, y)
        samples = [([i, 1.0], list(range(i + 1)), [float(i)]) for i in range(5)]
        wanted = [[0], [1], [3], [6], [10]]
        exe = millrace.Executor()
        exe.run(self.startup)
        loader = millrace.io.DataLoader.from_generator([x, ids, y], capacity=2)
        loader.set_sample_list_generator(millrace.io.batch(lambda: iter(samples), 2), millrace.CPUPlace())
        for _ in range(2):
            found = [exe.run(self.main, feed=feed, fetch_list=[bag])[0].tolist() for feed in loader()]
            self.assertEqual(sum(found, []), wanted)
        for feed in loader:  # left in the middle
            self.assertEqual(sorted(feed[0]), ["ids", "x", "y"])
            break
        for feeder in (millrace.DataFeeder([x, ids, y], millrace.CPUPlace()), millrace.DataFeeder(["x", "ids", "y"], program=self.main)):
            self.assertEqual(exe.run(self.main, feed=feeder.feed(iter(samples)), fetch_list=[bag])[0].tolist(), wanted)
        for mistake, message in [(lambda: millrace.DataFeeder([x, 3]), "DataFeeder: feed_list: Variables of layers.data, not"),
                                 (lambda: feeder.feed([]), "a batch needs at least one sample"),
                                 (lambda: feeder.feed(samples[0]), r"sample 0 \(from 0\) of a batch has 2 values, and there are 3")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()
        with self.assertRaisesRegex(millrace.NotFoundError, 'the program has no variable "xx"; did you mean "x"'):
            millrace.DataFeeder(["xx"])
        started = millrace.io.PyReader([x, ids, y], capacity=2, iterable=False)
        started.decorate_sample_generator(lambda: iter(samples), 2, drop_last=False)
        for _ in range(2):
            started.start()
            found = []
            with self.assertRaisesRegex(millrace.EOFException, r"PyReader\(x, ids, y\) is at the end of its pass: reset\(\) it"):
                while True:
                    found += exe.run(self.main, fetch_list=[bag, loss])[0].tolist()
            self.assertEqual(found, wanted)
            started.reset()
        started.decorate_batch_generator(lambda: (1 / 0 for _ in range(2)))
        started.start()
        with self.assertRaises(ZeroDivisionError):
            exe.run(self.main)
        for mistake, message in [(lambda: millrace.io.PyReader([3]), "feed_list: Variables of layers.data"),
                                 (loader.start, "start is for iterable=False"), (started, "a loop over it is for iterable=True"),
                                 (millrace.io.PyReader([x]), "call decorate_sample_generator")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()

    def test_a_block_that_is_taken_back_leaves_no_loader_behind(self):
        x = layers.data("x", [1])
        go_on = layers.zeros([1], "int64") < 1
        with self.assertRaises(KeyError), layers.While(go_on).block():
            loader = millrace.io.PyReader([x], iterable=False)
            loader.decorate_batch_generator(lambda: iter([[[[1.0]]]]))
            loader.start()
            raise KeyError("x")
        with self.assertRaisesRegex(millrace.ConfigError, 'the program reads "x", which is not fed'):
            millrace.Executor().run(self.main, fetch_list=[layers.square(x)])

    def test_the_end_of_data_is_no_missing_file(self):
        support.write(self.path("rows.csv"), "1,1,3\n" * 3)
        made = reader.open_files(self.path("rows.csv"), [[1, 2], [1, 1]], ["float32"] * 2)
        self.model(*reader.read_file(reader.batch(made, 2)))
        exe = millrace.Executor()
        exe.run(self.startup)
        for _ in range(2):
            exe.run(self.main)
            exe.run(self.main)
            with self.assertRaisesRegex(millrace.EOFException, "the reader is at its end after 2 items") as caught:
                exe.run(self.main)
            self.assertNotIsInstance(caught.exception, millrace.NotFoundError)
            self.assertIsInstance(caught.exception, EOFError)
            self.assertEqual(caught.exception.code, "end of data")
            made.reset()  # that of the batches, which it has become a part of
        missing = reader.open_files(self.path("nothing.csv"), [[1, 2]], ["float32"])
        reader.read_file(missing)
        with self.assertRaises(millrace.NotFoundError):
            exe.run(self.startup)

    def test_a_handler_ends_a_training_as_a_success(self):
        made, queue = millrace.py_array_reader(1, [[-1, 2], [-1, 1]])
        loss = self.model(*reader.read_file(made))
        exe = millrace.Executor()
        exe.run(self.startup)
        seen = []

        class Enough(millrace.FetchHandler):
            def handler(self, res_dict):
                seen.append(float(res_dict["loss"][0]))
                if len(seen) == 3:
                    raise millrace.StopTraining

        def produce():
            while True:
                queue.push(self.batches(1)[0])
        ended = []

        def produced():
            try:
                produce()
            except millrace.CancelledError as error:
                ended.append(str(error))
        thread = threading.Thread(target=produced)
        thread.start()
        report = exe.train_from_reader(self.main, fetch_handler=Enough({"loss": loss}, 0))
        thread.join()
        self.assertEqual((report.stopped_early, report.batches, len(seen), self.scope.step), (True, 3, 3, 3))
        self.assertIn("StopTraining: the training was ended by its FetchHandler", ended[0])

    def test_files_are_read_shuffled_and_batched(self):
        draw = np.random.default_rng(4)
        rows = draw.standard_normal((40, 2)).round(3).astype(np.float32)
        support.write(self.path("rows.csv"), "".join("%r,%r,%r\n" % (float(a), float(b), float(a - 2 * b)) for a, b in rows))
        made = reader.open_files([self.path("rows.csv")], [[1, 2], [1, 1]], ["float32", "float32"])
        made = reader.double_buffer(reader.batch(reader.shuffle(made, 100, seed=5), 8))
        x, y = reader.read_file(made)
        loss = self.model(x, y)
        exe = millrace.Executor()
        exe.run(self.startup)
        report = exe.train_from_reader(self.main, fetch_list=[loss, x], fetch_info=["loss", "x"], print_period=1, epochs=2)
        self.assertEqual((report.batches, report.examples), (10, 80))
        seen = np.concatenate([entry["x"].reshape(-1, 2) for entry in report.history[:5]]).astype(np.float32)
        self.assertFalse((seen == rows).all())
        self.assertEqual(sorted(map(tuple, seen.tolist())), sorted(map(tuple, rows.tolist())))

    def test_a_failure_of_a_file_names_the_callers_line(self):
        support.write(self.path("bad.csv"), "1\nx\n")
        item = reader.read_file(reader.batch(reader.open_files(self.path("bad.csv"), [[1, 1]], ["float32"]), 2))
        exe = millrace.Executor()
        exe.run(self.startup)
        with self.assertRaises(millrace.Error) as caught:
            exe.run(self.main, fetch_list=[item])
        self.assertIn('"%s" is made at %s:' % (item.name, __file__), str(caught.exception))

    def test_records_with_named_fields_are_read(self):
        # An OFRecord: a length of eight bytes, then {"x": float list [1.5, k], "y": float list [k]}.
        def field(number, payload):
            return bytes([number << 3 | 2, len(payload)]) + payload

        def feature(name, values):
            return field(1, field(1, name) + field(2, field(2, field(1, struct.pack("<%df" % len(values), *values)))))
        with open(self.path("rows.ofrecord"), "wb") as file:
            for k in range(3):
                record = feature(b"x", [1.5, k]) + feature(b"y", [k])
                file.write(struct.pack("<q", len(record)) + record)
        made = reader.open_files(self.path("rows.ofrecord"), [[1, 2], [1, 1]], ["float32", "float32"], names=["x", "y"])
        x, y = reader.read_file(reader.batch(made, 8))
        loss = self.model(x, y)
        exe = millrace.Executor()
        exe.run(self.startup)
        report = exe.train_from_reader(self.main, fetch_list=[x, y, loss], fetch_info=["x", "y", "loss"], print_period=1)
        self.assertEqual(report.history[0]["x"].ravel().tolist(), [1.5, 0, 1.5, 1, 1.5, 2])
        self.assertEqual(report.history[0]["y"].ravel().tolist(), [0, 1, 2])
        with self.assertRaisesRegex(millrace.ConfigError, "open_files: names: a list of names, not 'xy'"):
            reader.open_files("a.ofrecord", [[1], [1]], ["float32", "float32"], names="xy")

    def test_a_second_training_starts_files_over(self):
        support.write(self.path("rows.csv"), "1,1,3\n" * 10)
        x, y = reader.read_file(reader.batch(reader.open_files(self.path("rows.csv"), [[1, 2], [1, 1]], ["float32"] * 2), 4))
        self.model(x, y)
        exe = millrace.Executor()
        exe.run(self.startup)
        exe.run(self.main)  # takes the first batch
        self.assertEqual([exe.train_from_reader(self.main).examples for _ in range(3)], [6, 10, 10])
        self.assertEqual(exe.train_from_reader(self.main, epochs=2).examples, 20)
        exe.run(self.startup)
        self.assertEqual(exe.train_from_reader(self.main).examples, 10)

    def test_a_second_training_on_a_queue_that_ended_is_refused(self):
        made, queue = millrace.py_array_reader(3, [[-1, 2], [-1, 1]])
        self.model(*reader.read_file(made))
        exe = millrace.Executor()
        exe.run(self.startup)
        queue.push(self.batches(1)[0])
        queue.close()
        exe.train_from_reader(self.main)
        for _ in range(2):
            with self.assertRaisesRegex(millrace.ConfigError, r'reader "py_array_reader_\d+": PyArrayReader does not support '
                                                              r"ReInit\(\): its queue was closed, and what was taken from it is gone"):
                exe.train_from_reader(self.main)
            exe.run(self.startup)

    def test_readers_of_two_programs_do_not_read_each_others_data(self):
        exe = millrace.Executor()
        programs = []
        for value in (1, 2):
            support.write(self.path("%d.csv" % value), ("%d,%d,%d\n" % (value, value, value)) * 3)
            main, startup = millrace.Program(), millrace.Program()
            with millrace.program_guard(main, startup):
                x, _ = reader.read_file(reader.open_files(self.path("%d.csv" % value), [[1, 2], [1, 1]], ["float32"] * 2))
                programs.append((main, startup, layers.mean(x)))
        for _, startup, _ in programs:
            exe.run(startup)
        seen = [exe.run(main, fetch_list=[mean])[0].tolist() for main, _, mean in programs]
        self.assertEqual(seen, [[1], [2]])

    def test_queues_of_two_programs_share_a_scope(self):
        exe = millrace.Executor()
        queues, programs = [], []
        for value in (1, 2):
            main, startup = millrace.Program(), millrace.Program()
            with millrace.program_guard(main, startup):
                made, queue = millrace.py_array_reader(2, [[-1, 2]])
                programs.append((main, layers.mean(reader.read_file(made))))
            queues.append(queue)
            exe.run(startup)
            queue.push((np.full((1, 2), value, dtype=np.float32),))
        self.assertEqual([exe.run(main, fetch_list=[mean])[0].tolist() for main, mean in programs], [[1], [2]])

    def test_a_mistake_in_what_was_read_names_the_callers_line(self):
        made, queue = millrace.py_array_reader(2, [[-1, 2], [-1, 1]])
        x, y = reader.read_file(made)
        self.model(x, y)
        exe = millrace.Executor()
        exe.run(self.startup)
        queue.push((np.zeros((2, 2), "float32"), np.zeros((3, 1), "float32")))
        with self.assertRaises(millrace.Error) as caught:
            exe.train_from_reader(self.main)
        self.assertIn("is made at %s:" % __file__, str(caught.exception))
        self.assertNotIn("millrace/reader.py", str(caught.exception))

    def looked_up(self, made):
        table = layers.embedding(reader.read_file(made), size=[None, 1], param_attr="E")
        optimizer.SGD(0.1).minimize(layers.mean(table))
        exe = millrace.Executor()
        exe.run(self.startup)
        return exe

    def test_an_id_below_0_of_a_queue_became_a_row_of_its_own(self):
        made, queue = millrace.py_array_reader(4, [[-1, 1]], dtypes=["int64"])
        exe = self.looked_up(reader.shuffle(made, 1))
        with self.assertRaisesRegex(millrace.ConfigError, r"array 0: an id is 0 to 2\*\*64 - 1, and -1 \(row 1, value 0, from 0\) is "
                                                          "below 0"):
            queue.push((np.array([[3], [-1]]),))
        self.assertEqual(queue.size(), 0)
        queue.push((np.array([[3], [2 ** 64 - 2]], dtype=np.uint64),))
        queue.close()
        exe.run(self.main)
        self.assertEqual(sorted(self.scope.get("E").keys.tolist()), [3, 2 ** 64 - 2])

    def test_an_id_below_0_of_a_file_became_a_row_of_its_own(self):
        support.write(self.path("ids.csv"), "3\n18446744073709551614\n7\n-1\n")
        made = reader.open_files(self.path("ids.csv"), [[-1, 1]], ["int64"], lod_levels=[1])
        exe = self.looked_up(reader.double_buffer(reader.batch(made, 2)))
        said = r'ids.csv:4: column 1: "-1" is below 0, and no id of a table; ids are 0 to 18446744073709551615'
        with self.assertRaisesRegex(millrace.DataError, said):
            exe.train_from_reader(self.main)
        self.assertEqual(sorted(self.scope.get("E").keys.tolist()), [3, 2 ** 64 - 2])

    def test_parameters_that_the_last_step_made_infinite_were_a_success(self):
        support.write(self.path("rows.csv"), "1e20,1\n" * 4)
        made = reader.batch(reader.open_files(self.path("rows.csv"), [[1, 1], [1, 1]], ["float32"] * 2), 4)
        x, y = reader.read_file(made)
        prediction = layers.fc(x, 1, param_attr=ParamAttr("w", initializer.Constant(0)), bias_attr=False)
        optimizer.SGD(1e30).minimize(layers.mean(layers.square_error_cost(prediction, y)))
        exe = millrace.Executor()
        exe.run(self.startup)
        with self.assertRaisesRegex(millrace.DataError, '"w" .*1 of 1 values(.|\n)*allow_non_finite=True lets it pass'):
            exe.train_from_reader(self.main)
        exe.run(self.startup)
        self.assertEqual(exe.train_from_reader(self.main, allow_non_finite=True).batches, 1)
        with self.assertWarnsRegex(millrace.MillraceWarning, "train_from_reader: the loss of 1 batches was nan or infinite"):
            exe.train_from_reader(self.main, allow_non_finite=True)

    def test_an_id_below_0_that_was_pushed_before_its_table_was_there_is_refused_by_run(self):
        made, queue = millrace.py_array_reader(4, [[-1, 1]], dtypes=["int64"])
        queue.push((np.array([[-1]]),))
        exe = self.looked_up(made)
        for run in (exe.run, exe.train_from_reader):
            with self.assertRaisesRegex(millrace.ConfigError, r'and -1 \(row 0, .* pushed into the queue of "read_file_\d+.tmp_0"; reset'):
                run(self.main)
        self.assertEqual(len(self.scope.get("E").keys), 0)
        made.reset()
        queue.push((np.array([[1]]),))
        exe.run(self.main)
        self.assertEqual(self.scope.get("E").keys.tolist(), [1])

    def test_numbers_below_0_that_no_table_is_asked_for_are_numbers(self):
        made, queue = millrace.py_array_reader(4, [[-1, 1]], dtypes=["int64"])
        sum_ = layers.reduce_sum(reader.read_file(made))
        exe = millrace.Executor()
        exe.run(self.startup)
        queue.push((np.array([[-1], [-2]]),))
        self.assertEqual(exe.run(self.main, fetch_list=[sum_])[0].tolist(), [-3])

    def test_a_nan_of_a_queue_trained_parameters_to_nan_in_silence(self):
        made, queue = millrace.py_array_reader(4, [[-1, 2]])
        x = reader.read_file(reader.double_buffer(made))
        mean = layers.mean(layers.fc(x, 1, param_attr=ParamAttr("w", initializer.Constant(1)), bias_attr=False))
        test = self.main.clone(for_test=True)
        optimizer.SGD(0.1).minimize(mean)
        exe = millrace.Executor()
        exe.run(self.startup)
        bad = np.array([[1, 2], [3, np.inf]], dtype=np.float32)
        for batch in (bad, bad, np.ones((1, 2), dtype=np.float32)):
            with self.assertWarns(millrace.MillraceWarning) if batch is bad else contextlib.nullcontext():
                queue.push((batch,))
        with self.assertRaisesRegex(millrace.DataError, r"output 0 of the reader: inf \(row 1, value 1, from 0\), which trains the "
                                                        "parameters to nan"):
            exe.run(self.main)
        self.assertEqual(self.scope.get("w").tolist(), [[1], [1]])
        self.assertEqual(exe.run(test, fetch_list=[mean])[0].tolist(), [np.inf])  # who only looks may
        exe.run(self.main)
        np.testing.assert_allclose(self.scope.get("w"), [[0.9], [0.9]])

    def test_an_unknown_queue_is_named(self):
        self.main._author.add_reader("create_py_array_reader", [], "r", {"feeder_name": "nowhere"})
        with self.assertRaisesRegex(millrace.ConfigError, 'the scope has no queue "nowhere"'):
            millrace.Executor().run(self.startup)


if __name__ == "__main__":
    unittest.main()
