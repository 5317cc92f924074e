"""Programs that read for themselves, written in Python: from arrays that Python pushes, and from files."""

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
        self.assertEqual((report.batches, report.rows), (20, sum(len(x) for x, _ in batches)))

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

    def test_a_second_epoch_is_refused(self):
        made, queue = millrace.py_array_reader(3, [[-1, 2], [-1, 1]])
        self.model(*reader.read_file(made))
        exe = millrace.Executor()
        exe.run(self.startup)
        queue.push(self.batches(1)[0])
        queue.close()
        with self.assertRaisesRegex(millrace.Error, r"PyArrayReader does not support ReInit\(\)"):
            exe.train_from_reader(self.main, epochs=2)

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
        self.assertEqual((report.batches, report.rows), (10, 80))
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
        self.assertEqual([exe.train_from_reader(self.main).rows for _ in range(3)], [6, 10, 10])
        self.assertEqual(exe.train_from_reader(self.main, epochs=2).rows, 20)
        exe.run(self.startup)
        self.assertEqual(exe.train_from_reader(self.main).rows, 10)

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
                                                              r"ReInit\(\): what was taken from its queue is gone"):
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

    def test_an_unknown_queue_is_named(self):
        self.main._author.add_reader("create_py_array_reader", [], "r", {"feeder_name": "nowhere"})
        with self.assertRaisesRegex(millrace.ConfigError, 'the scope has no queue "nowhere"'):
            millrace.Executor().run(self.startup)


if __name__ == "__main__":
    unittest.main()
