"""PyArrayFeedQueue: capacity, order, ends, memory, and waits that leave other threads alone."""

import copy
import ctypes
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import unittest

import support  # noqa: F401

import numpy as np

import millrace


def make(capacity, shapes=((-1,),), dtypes=("int64",)):
    holder = millrace.PyArrayFeedQueueHolder()
    holder.init_once(capacity, shapes, millrace.CPUPlace(), dtypes)
    return holder.feeder()


class QueueTest(unittest.TestCase):
    def test_a_holder_makes_its_queue_once(self):
        holder = millrace.PyArrayFeedQueueHolder()
        self.assertIsNone(holder.feeder())
        with self.assertRaisesRegex(millrace.ConfigError, "capacity must be at least 1"):
            holder.init_once(0, [[1]], millrace.CPUPlace())
        holder.init_once(2, [[-1, 3], [4]], millrace.CPUPlace())
        self.assertIs(holder.feeder(), holder.feeder())
        self.assertEqual(holder.feeder().shapes, [((-1, 3), "float32"), ((4,), "float32")])
        with self.assertRaisesRegex(millrace.AlreadyExistsError, "init_once was called before"):
            holder.init_once(2, [[1]], millrace.CPUPlace())

    def test_it_cannot_be_made_or_copied_otherwise(self):
        queue = make(1)
        for mistake in (millrace.PyArrayFeedQueue, lambda: millrace.PyArrayFeedQueue(queue), lambda: copy.copy(queue),
                        lambda: copy.deepcopy(queue), lambda: pickle.dumps(queue),
                        lambda: copy.copy(millrace.PyArrayFeedQueueHolder())):
            self.assertRaises(TypeError, mistake)
        with self.assertRaisesRegex(TypeError, "is made by PyArrayFeedQueueHolder.init_once, or by py_array_reader"):
            millrace.PyArrayFeedQueue(2, [[-1, 3]], millrace.CPUPlace())
        self.assertEqual(repr(queue), "PyArrayFeedQueue(0 of 1: int64 [-1])")

    def test_the_last_of_several_producers_closes_it(self):
        queue = make(2)
        first_left = threading.Event()

        def produce(number, rows):
            with queue:
                for row in range(rows):
                    queue.push((np.array([row]),))
                if number:
                    first_left.wait()
            first_left.set()

        # The first has left before the second begins to push; that others come is said.
        queue.expect(3)
        threads = [threading.Thread(target=produce, args=(number, 40 + number)) for number in range(3)]
        threads[0].start()
        seen = [queue.pop() for _ in range(40)]
        threads[0].join()
        self.assertFalse(queue.is_closed())
        for thread in threads[1:]:
            thread.start()
        seen += list(queue)
        for thread in threads:
            thread.join()
        self.assertEqual((len(seen), queue.is_closed()), (40 + 41 + 42, True))
        with self.assertRaisesRegex(millrace.CancelledError, r"tell it how many by expect\(number\)"):
            queue.push((np.array([1]),))
        # Nested within one another, nobody needs to say it.
        queue = make(2)
        with queue:
            with queue:
                pass
            self.assertFalse(queue.is_closed())
        self.assertTrue(queue.is_closed())
        # An exception ends it for all at once.
        queue = make(2)
        with queue:
            with self.assertRaises(KeyError), queue:
                raise KeyError("x")
            self.assertTrue(queue.is_closed())

    def test_a_closed_queue_is_opened_again(self):
        queue = make(2)
        queue.push((np.array([1]),))
        queue.close(KeyError("x"))
        queue.reopen()
        self.assertEqual((queue.size(), queue.is_closed(), queue.capacity()), (0, False, 2))
        queue.push((np.array([2]),))
        queue.reopen()  # open as it is
        queue.end_pass()
        queue.close()
        self.assertEqual([queue.pop()[0].tolist(), queue.pop(), queue.pop()], [[2], None, None])

    def test_floats_that_are_not_finite_are_said(self):
        queue = make(2, [(-1, 2)], ["float32"])
        with self.assertWarnsRegex(millrace.MillraceWarning, r"array 0: inf \(row 1, value 0, from 0\)"):
            queue.push((np.array([[1, 2], [np.inf, 3]], dtype=np.float32),))

    def test_floats_that_are_not_finite_are_said_of_every_type_and_size(self):
        for dtype in ("float16", "float32", "float64"):
            for count in (3, 5000):  # few values are looked at with the GIL, many without
                queue = make(1, [(-1,)], [dtype])
                for value in (np.nan, -np.inf):
                    array = np.full(count, np.finfo(dtype).max)
                    array[count - 1] = value
                    with self.subTest(dtype=dtype, count=count, value=value):
                        with self.assertWarnsRegex(millrace.MillraceWarning, r"\(row %d, from 0\)" % (count - 1)):
                            queue.push((array,))
                        np.testing.assert_array_equal(queue.pop()[0], array)

    def test_arrays_at_odd_addresses_and_of_other_byte_orders(self):
        queue = make(2, [(-1,)], ["float32"])
        shifted = np.frombuffer(bytearray(b"?" + np.arange(4, dtype=np.float32).tobytes()), np.float32, offset=1)
        self.assertFalse(shifted.flags.aligned)
        queue.push((shifted,))
        self.assertEqual(queue.pop()[0].tolist(), [0, 1, 2, 3])
        with self.assertRaisesRegex(millrace.ConfigError, "no tensor holds values of dtype >f4"):
            queue.push((np.arange(4, dtype=">f4"),))

    def test_its_arguments_have_the_names_of_the_design(self):
        holder = millrace.PyArrayFeedQueueHolder()
        holder.init_once(capacity=2, dims=[[-1, 3], [-1]], place=millrace.CPUPlace())
        holder.feeder().push(array_tuple=(np.zeros((2, 3), "float32"), np.zeros(2, "float32")))
        with millrace.scope_guard(millrace.Scope()), millrace.program_guard(millrace.Program(), millrace.Program()):
            reader, queue = millrace.py_array_reader(capacity=3, shapes=[[-1, 3]], place=millrace.CPUPlace())
        self.assertEqual((reader.shapes, queue.capacity()), ([[-1, 3]], 3))
        for dims, place, message in [([3, 1], None, r"one for each output, as in \[\[-1, 13\], \[-1, 1\]\], not \[3, 1\]"),
                                     (None, None, "a list of shapes"), ([[3]], "gpu", "place: a CPUPlace, not 'gpu'")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                millrace.PyArrayFeedQueueHolder().init_once(2, dims, place)

    def test_it_says_how_full_it_is(self):
        queue = make(2)
        self.assertEqual((queue.size(), queue.capacity(), queue.is_empty(), queue.is_full()), (0, 2, True, False))
        queue.push((np.arange(3),))
        self.assertEqual((queue.size(), len(queue), queue.is_empty(), queue.is_full()), (1, 1, False, False))
        queue.push((np.arange(4),))
        self.assertTrue(queue.is_full())
        self.assertEqual([len(queue.pop()[0]) for _ in range(2)], [3, 4])

    def test_arrays_are_passed_on_without_a_copy_and_held(self):
        queue = make(2)
        array = np.arange(5)
        references = sys.getrefcount(array)
        queue.push((array,))
        self.assertEqual(sys.getrefcount(array), references + 1)
        (popped,) = queue.pop()
        self.assertTrue(np.shares_memory(popped, array))
        self.assertEqual(sys.getrefcount(array), references + 1)
        del popped
        gc.collect()
        self.assertEqual(sys.getrefcount(array), references)
        queue.push((array,))
        del queue
        gc.collect()
        self.assertEqual(sys.getrefcount(array), references)

    def test_what_does_not_fit_is_refused(self):
        queue = make(2, [[-1, 2], [3]], ["float32", "int64"])
        good = np.zeros((4, 2), dtype=np.float32)
        for arrays, message in [
                ((good,), "the queue takes 2 arrays at a time, not 1"),
                ((good, np.zeros(4, dtype=np.int64)), r"array 1 is int64 \[4\], but the queue takes int64 \[3\]"),
                ((good.astype(float), np.arange(3)), r"array 0 is float64 \[4, 2\], but the queue takes float32 \[-1, 2\]"),
                ((np.array(["a"]), np.arange(3)), "array 0: no tensor holds values of dtype <U1")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                queue.push(arrays)
        queue.push((good.T.reshape(2, 4).T, np.arange(3)))  # not contiguous: copied
        self.assertEqual(queue.pop()[0].shape, (4, 2))

    def test_waiting_lets_other_threads_run(self):
        queue = make(1)
        counted = []
        go = threading.Event()

        def count():
            go.wait()
            for number in range(1000):
                counted.append(number)
            queue.push((np.array([7]),))
        thread = threading.Thread(target=count)
        thread.start()
        go.set()
        self.assertEqual(queue.pop()[0][0], 7)  # would wait for ever with the GIL
        self.assertEqual(len(counted), 1000)
        thread.join()
        queue.push((np.array([1]),))
        thread = threading.Thread(target=lambda: queue.pop())
        thread.start()
        queue.push((np.array([2]),))
        thread.join()
        self.assertEqual(queue.size(), 1)

    def test_eight_producers_and_eight_consumers(self):
        queue = make(3)
        most, taken = [], [[] for _ in range(8)]
        each = 200

        def produce(number):
            for k in range(each):
                queue.push((np.array([number, k]),))
                most.append(queue.size())

        def consume(into):
            for (array,) in queue:
                into.append((int(array[0]), int(array[1])))
        consumers = [threading.Thread(target=consume, args=(into,)) for into in taken]
        producers = [threading.Thread(target=produce, args=(number,)) for number in range(8)]
        for thread in consumers + producers:
            thread.start()
        for thread in producers:
            thread.join()
        queue.close()
        for thread in consumers:
            thread.join()
        self.assertLessEqual(max(most), 3)
        self.assertEqual(sorted(pair for into in taken for pair in into), [(p, k) for p in range(8) for k in range(each)])
        for into in taken:
            for number in range(8):
                order = [k for p, k in into if p == number]
                self.assertEqual(order, sorted(order))

    def test_the_capacity_is_held_exactly(self):
        queue = make(3)
        pushed = []

        def produce():
            for k in range(5):
                queue.push((np.array([k]),))
                pushed.append(k)
        thread = threading.Thread(target=produce)
        thread.start()
        while len(pushed) < 3:
            pass
        self.assertTrue(queue.is_full())
        self.assertEqual(pushed, [0, 1, 2])
        self.assertEqual([int(queue.pop()[0][0]) for _ in range(5)], [0, 1, 2, 3, 4])
        thread.join()

    def test_a_close_ends_both_sides(self):
        queue = make(2)
        queue.push((np.array([1]),))
        queue.close()
        self.assertTrue(queue.is_closed())
        with self.assertRaisesRegex(millrace.CancelledError, "the queue is closed: it takes no more arrays"):
            queue.push((np.array([2]),))
        self.assertEqual([int(array[0]) for (array,) in queue], [1])
        self.assertIsNone(queue.pop())

    def test_an_exception_reaches_the_other_side(self):
        queue = make(2)

        def produce():
            with queue:
                queue.push((np.array([1]),))
                raise KeyError("broken")
        with self.assertRaises(KeyError):
            produce()
        self.assertEqual(int(queue.pop()[0][0]), 1)
        with self.assertRaisesRegex(millrace.CancelledError, "the queue was closed by KeyError: 'broken'") as caught:
            queue.pop()
        self.assertIsInstance(caught.exception.__cause__, KeyError)

        full = make(1)
        full.push((np.array([1]),))
        thread = threading.Thread(target=lambda: full.close(ValueError("consumer")))
        thread.start()
        with self.assertRaisesRegex(millrace.CancelledError, "ValueError: consumer"):
            full.push((np.array([2]),))
        thread.join()

    def test_ctrl_c_ends_a_wait(self):
        queue = make(1)
        for wait in (queue.pop, lambda: (queue.push((np.array([1]),)), queue.push((np.array([2]),)))):
            timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                wait()
        self.assertEqual(int(queue.pop()[0][0]), 1)
        self.assertTrue(queue.is_empty())

    def test_the_main_threads_wait_ends_with_the_queue_that_it_began_at(self):
        for wait in ("pop", "push"):
            queue = make(1)
            if wait == "push":
                queue.push((np.array([1]),))

            def end(queue=queue):
                queue.close()
                queue.reopen()  # a wait that goes on would go on for ever in the new one
            timer = threading.Timer(0.05, end)
            timer.start()
            with self.subTest(wait):
                if wait == "pop":
                    self.assertIsNone(queue.pop())
                else:
                    with self.assertRaises(millrace.CancelledError):
                        queue.push((np.array([2]),))
            timer.join()

    def test_other_memory_comes_in_without_a_copy(self):
        queue = make(1, [[-1]], ["float32"])

        class Lender:
            """An array of another library: DLPack alone."""

            def __init__(self):
                self.array = np.arange(4, dtype=np.float32)

            def __dlpack__(self, **arguments):
                return self.array.__dlpack__()

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()
        lender = Lender()
        queue.push((lender,))
        (popped,) = queue.pop()
        self.assertEqual(popped.__array_interface__["data"][0], lender.array.__array_interface__["data"][0])
        buffer = (ctypes.c_float * 3)(1, 2, 3)
        queue.push((buffer,))
        (popped,) = queue.pop()
        buffer[0] = 9
        self.assertEqual(popped.tolist(), [9, 2, 3])

    def test_what_may_not_be_written_comes_out_so(self):
        queue = make(1, [[-1]], ["float32"])
        array = np.arange(3, dtype=np.float32)
        for writable in (True, False):
            array.flags.writeable = writable
            queue.push((array,))
            self.assertEqual(queue.pop()[0].flags.writeable, writable)
        queue.push((np.frombuffer(bytes(8), dtype=np.float32),))
        with self.assertRaises(ValueError):
            queue.pop()[0][0] = 1

    def test_arrays_that_are_not_contiguous_are_copied_once(self):
        queue = make(1, [[-1, -1]], ["float32"])
        array = np.arange(12, dtype=np.float32).reshape(3, 4)
        for view in (array[::-1], array[:, ::-1], array[:, ::2], array.T, np.asfortranarray(array), array[1:1],
                     array[:, 2:2], np.broadcast_to(np.float32(3), (3, 4))):
            queue.push((view,))
            (popped,) = queue.pop()
            self.assertEqual((popped.shape, popped.tolist()), (view.shape, view.tolist()))
            self.assertTrue(popped.flags.c_contiguous)

    def test_mistakes_of_queues_and_arrays_are_said(self):
        queue = make(1, [[-1, -1]], ["float32"])
        array = np.zeros((2, 2), dtype=np.float32)
        for mistake, message in [
                (lambda: make(2.5), "init_once: capacity: a whole number, not 2.5"),
                (lambda: make(-1), "capacity must be at least 1; -1"),
                (lambda: make(10 ** 7), "capacity must be at most 1000000; 10000000"),
                (lambda: make(10 ** 30), "no array is that large: 1000000"),
                (lambda: make(2, [[-5]]), r"array 0 of the queue: a size is -1 \(any\) or not negative; -5"),
                (lambda: make(2, [[1] * 9]), "array 0 of the queue: a tensor has at most 8 axes"),
                (lambda: make(2, [[1]], ["nonsense"]), "init_once: dtypes: .*nonsense"),
                (lambda: make(2, [[1]], ["complex64"]), 'there is no dtype "complex64"'),
                (lambda: make(2, [[1]], ["int64", "int64"]), "2 dtypes for 1 shapes"),
                (lambda: queue.push((np.ma.array(array, mask=array < 1),)), "array 0: [1-9][0-9]* of [0-9]+ values are masked"),
                (lambda: queue.push((array.astype(">f4"),)), "array 0: no tensor holds values of dtype >f4"),
                (lambda: queue.push((np.zeros((1,) * 9, dtype=np.float32),)), "array 0: a tensor has at most 8 axes"),
                (lambda: queue.push(([[1], [2, 3]],)), "array 0: list does not come in as an array|dtype object"),
                (lambda: make(2, [[1]], "int64"), "init_once: dtypes: a list of types, not 'int64'"),
                (lambda: queue.push(None), "array 0 is None"),
                (lambda: queue.push({"x": array}), "array 0: dict does not come in as an array; push a tuple of arrays"),
                (lambda: queue.push(one for one in [array]), "array 0: generator does not come in as an array"),
                (lambda: queue.push("text"), "array 0: no tensor holds values of dtype <U4")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()
        self.assertTrue(queue.is_empty())

    def test_a_queue_that_nobody_holds_outlives_a_wait_on_it(self):
        queue = make(1)
        inner, ended = queue._queue, []
        thread = threading.Thread(target=lambda waiting: ended.append(waiting.pop()), args=(queue,))
        thread.start()
        del queue
        gc.collect()
        inner.close("")
        thread.join()
        self.assertEqual(ended, [None])

    def test_an_exception_of_a_generator_reaches_the_consumer(self):
        queue = make(2)

        def arrays():
            yield np.array([1])
            raise KeyError("torn")

        def produce():
            try:
                with queue:
                    for array in arrays():
                        queue.push((array,))
            except KeyError:
                pass
        thread = threading.Thread(target=produce)
        thread.start()
        seen = []
        with self.assertRaisesRegex(millrace.CancelledError, "KeyError: 'torn'") as caught:
            for (array,) in queue:
                seen.append(int(array[0]))
        thread.join()
        self.assertEqual(seen, [1])
        self.assertIsInstance(caught.exception.__cause__, KeyError)

    def test_a_child_after_fork_has_queues_of_its_own(self):
        queue = make(1)
        thread = threading.Thread(target=queue.pop)
        thread.start()  # waits in the parent alone
        child = os.fork()
        if child == 0:
            code = 1
            try:
                signal.alarm(60)
                own = make(2)
                own.push((np.arange(3),))
                code = 0 if own.pop()[0].tolist() == [0, 1, 2] else 1
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        queue.close()
        thread.join()

    def test_an_interpreter_ends_while_threads_wait(self):
        script = """
import threading, time
import numpy as np
import millrace
def make():
    holder = millrace.PyArrayFeedQueueHolder()
    holder.init_once(1, [[-1]], dtypes=["int64"])
    return holder.feeder()
full = make()
full.push((np.arange(3),))
started = threading.Barrier(3)
def wait(call, *arguments):
    started.wait()
    call(*arguments)
threading.Thread(target=wait, args=(full.push, (np.arange(3),)), daemon=True).start()
threading.Thread(target=wait, args=(make().pop,), daemon=True).start()
started.wait()
print("end")
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "end\n", ""))

    def ended(self, script):
        """What a Python wrote that ran the script; it must end by itself."""
        head = """
import threading, time
import numpy as np
import millrace
def make(capacity=1):
    holder = millrace.PyArrayFeedQueueHolder()
    holder.init_once(capacity, [[-1]], dtypes=["int64"])
    return holder.feeder()
"""
        return subprocess.run([sys.executable, "-c", head + script], capture_output=True, text=True, check=False, timeout=60)

    def test_an_interpreter_ends_although_a_producer_waits_whose_consumer_failed(self):
        done = self.ended("""
queue, other = make(), make()
def produce():
    try:
        while True:
            queue.push((np.arange(3),))
    except millrace.CancelledError as error:
        print("push: %s %s\\n" % (error, error.__cause__), end="")
def consume():
    try:
        other.pop()
    except millrace.CancelledError as error:
        print("pop: %s\\n" % error, end="")
threading.Thread(target=produce).start()
threading.Thread(target=consume).start()
for _ in queue:
    raise ZeroDivisionError("the training failed")
""")
        said = "Python ends, and whatever threads are left wait for a queue"
        self.assertEqual(done.returncode, 1)
        self.assertIn("ZeroDivisionError: the training failed", done.stderr)
        self.assertNotIn("CancelledError", done.stderr)
        first, second = sorted(done.stdout.splitlines())
        self.assertIn("pop: " + said, first)
        self.assertIn("push: " + said, second)
        self.assertTrue(second.endswith("None"), second)

    def test_an_interpreter_ends_although_a_worker_of_a_pool_waits(self):
        done = self.ended("""
import concurrent.futures
queue = make()
def produce():
    for _ in range(3):
        queue.push((np.arange(3),))
pool = concurrent.futures.ThreadPoolExecutor(2)
future = pool.submit(produce)
future.add_done_callback(lambda ended: print(type(ended.exception()).__name__))
""")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "CancelledError\n", ""))

    def test_threads_that_go_on_behind_the_main_thread_are_let(self):
        done = self.ended("""
queue, looks = make(), threading.Semaphore(0)
class Looked:  # the time of who looks at who waits
    monotonic = time.monotonic
    def sleep(seconds, wait=time.sleep):
        wait(seconds)
        looks.release()
millrace.reader.time = Looked
def produce():
    with queue:
        for number in range(4):
            queue.push((np.array([number]),))
def consume():
    for (array,) in queue:
        for _ in range(3):
            looks.acquire()
        print(int(array[0]))
threading.Thread(target=produce).start()
threading.Thread(target=consume).start()
""")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "0\n1\n2\n3\n", ""))

    def test_a_name_that_a_script_has_generated_is_no_readers(self):
        done = self.ended("""
for _ in range(2):
    name = millrace.unique_name.generate("py_array_feed_queue")
    millrace.core.init_py_array_feed_queue(millrace.global_scope().var(name), 2, [[-1, 2]])
    for _ in range(2):
        with millrace.unique_name.guard():  # programs of one scope
            print(millrace.py_array_reader(2, [[-1, 2]])[0].name)
    print(millrace.unique_name.generate("py_array_reader"))
""")
        names = ["py_array_reader_%d" % i for i in range(6)]
        self.assertEqual((done.returncode, done.stdout.split(), done.stderr), (0, names, ""))

    def test_a_closed_queue_is_all_that_a_refused_push_tells_of(self):
        queue = make(1)
        queue.close()
        with self.assertRaises(millrace.CancelledError) as caught:
            queue.push((np.array([1]),))
        self.assertTrue(caught.exception.__suppress_context__)
        self.assertIsNone(caught.exception.__cause__)

    def test_it_is_closed_by_exceptions_alone(self):
        queue = make(1)
        for wrong in ("the source broke", 0, int):
            with self.assertRaisesRegex(millrace.ConfigError, "close: the exception that ends the queue, or nothing, not"):
                queue.close(wrong)
        self.assertFalse(queue.is_closed())
        queue.close(KeyboardInterrupt)  # a class, as `raise` takes it
        with self.assertRaisesRegex(millrace.CancelledError, "the queue was closed by KeyboardInterrupt$") as caught:
            queue.pop()
        self.assertIsInstance(caught.exception.__cause__, KeyboardInterrupt)

    def test_halves_come_out_as_they_went_in(self):
        queue = make(1, [[-1]], ["float16"])
        array = np.array([0.5, 1.5, -2], dtype=np.float16)
        queue.push((array,))
        (popped,) = queue.pop()
        self.assertEqual((popped.dtype, popped.tolist()), (np.float16, [0.5, 1.5, -2]))
        self.assertTrue(np.shares_memory(popped, array))
        with self.assertRaisesRegex(millrace.ConfigError, "array 0: no tensor holds values of dtype uint16"):
            queue.push((array.view(np.uint16),))

    def test_columns_of_arrow(self):
        try:
            import pyarrow
        except ImportError:
            self.skipTest("pyarrow is not here")
        queue = make(1, [[-1]], ["float32"])
        column = pyarrow.array([1.0, 2.0, 3.0], type=pyarrow.float32())
        for given, offset in ((column, 0), (column[1:], 4)):
            queue.push((given,))
            (popped,) = queue.pop()
            self.assertEqual(popped.__array_interface__["data"][0], column.buffers()[1].address + offset)
            self.assertFalse(popped.flags.writeable)  # Arrow's memory is nobody's to write
        for wrong, message in ((pyarrow.array([1.0, None]), "array 0 has missing values, .* fill them first"),
                               (pyarrow.array(["x"]), "array 0: StringArray does not come in as an array"),
                               (pyarrow.array([1, 2]), "array 0 is int64")):
            with self.assertRaisesRegex(millrace.ConfigError, message):
                queue.push((wrong,))
        queue.push((pyarrow.chunked_array([column, column]),))  # chunks are put together
        self.assertEqual(queue.pop()[0].tolist(), [1, 2, 3, 1, 2, 3])

    def test_columns_of_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not here")
        queue = make(1, [[-1]], ["float32"])
        frame = pandas.DataFrame({"x": np.array([1, 2, 3], dtype=np.float32), "kind": ["a", "b", "a"]})
        for column in (frame["x"], frame["x"][1:], pandas.Index(frame["x"])):
            queue.push((column,))
            (popped,) = queue.pop()
            self.assertTrue(np.shares_memory(popped, column.to_numpy()))
            self.assertEqual(popped.tolist(), column.tolist())
        queue.push((frame["x"][::2],))
        self.assertEqual(queue.pop()[0].tolist(), [1, 3])
        with self.assertRaisesRegex(millrace.ConfigError, "array 0: no tensor holds values of dtype"):
            queue.push((frame["kind"],))
        for dtype in ("Int64", "Float32"):
            with self.assertRaisesRegex(millrace.ConfigError, "array 0 has missing values, .* fill them first"):
                queue.push((pandas.Series([1, None, 3], dtype=dtype),))
        queue.push((pandas.Series([1, None, 3], dtype="float32"),))  # nan is a value
        self.assertTrue(np.isnan(queue.pop()[0][1]))

    def test_tensors_of_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not here")
        queue = make(1, [[-1, -1]], ["float32"])
        tensor = torch.arange(6, dtype=torch.float32).reshape(2, 3)
        queue.push((tensor,))
        (popped,) = queue.pop()
        self.assertEqual(popped.__array_interface__["data"][0], tensor.data_ptr())
        queue.push((tensor.T,))
        self.assertEqual(queue.pop()[0].tolist(), tensor.T.tolist())
        queue.push((torch.ones(2, 2),))  # nobody else holds it
        gc.collect()
        self.assertEqual(queue.pop()[0].tolist(), [[1, 1], [1, 1]])
        with self.assertRaisesRegex(millrace.ConfigError, "array 0: Tensor does not come in as an array: .*gradient"):
            queue.push((tensor.clone().requires_grad_(),))


if __name__ == "__main__":
    unittest.main()
