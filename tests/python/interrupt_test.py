"""Ctrl-C in the middle of whatever waits: KeyboardInterrupt, no child and no thread left, and the process goes on."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import support

import millrace  # noqa: F401

SCRIPT = '''
import os, sys, time
import millrace
from millrace import layers, optimizer, reader
call, folder, marker = sys.argv[1:]
label = layers.data("label", [1], "int64")
dense = layers.data("dense", [2])
slots = [layers.data("C%d" % i, [1], "int64", lod_level=1) for i in (1, 2, 3)]
read = dense
if call == "reader":
    made, queue = millrace.py_array_reader(2, [[-1, 2]])
    read = reader.read_file(made)
loss = layers.mean(layers.fc(read, 1, param_attr="w"))
optimizer.SGD(0.01).minimize(loss)
exe = millrace.Executor()
exe.run(millrace.default_startup_program())

def dataset_of(kind, pipe):
    dataset = millrace.DatasetFactory().create_dataset(kind)
    dataset.set_batch_size(4)
    dataset.set_thread(2)
    dataset.set_use_var([label, dense] + slots)
    dataset.set_filelist([os.path.join(folder, "part-*")])
    dataset.set_pipe_command(pipe)
    return dataset

def threads():
    return len(os.listdir("/proc/self/task"))

def children():
    found = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open("/proc/self/task/%s/children" % task) as file:
                found += file.read().split()
        except FileNotFoundError:
            pass
    return found

if call != "reader":
    exe.train_from_dataset(dataset=dataset_of("QueueDataset", "cat"))  # libraries have their own threads by now
before = threads()
# Rows come, then nothing, in a pipe of several processes.
stuck = "cat; touch %s/ready; sleep %s | (sleep %s; cat)" % (folder, marker, marker)
kind = "InMemoryDataset" if call in ("load", "preload") else "QueueDataset"
dataset = dataset_of(kind, stuck)
try:
    if call == "train":
        exe.train_from_dataset(dataset=dataset)
    elif call == "threads":
        exe.train_from_dataset(dataset=dataset, thread=4)
    elif call == "infer":
        exe.infer_from_dataset(dataset=dataset)
    elif call == "load":
        dataset.load_into_memory()
    elif call == "preload":
        dataset.preload_into_memory()
        dataset.wait_preload_done()
    elif call == "reader":
        open(os.path.join(folder, "ready"), "w").close()
        exe.train_from_reader()
    elif call == "loop":
        with millrace.program_guard(millrace.Program(), millrace.Program()):
            always = layers.fill_constant([1], "bool", True)
            with layers.While(always).block():
                layers.assign(layers.fill_constant([1], "bool", True), output=always)
            open(os.path.join(folder, "ready"), "w").close()
            exe.run(millrace.default_main_program())
    elif call == "queue":
        holder = millrace.PyArrayFeedQueueHolder()
        holder.init_once(1, [[-1]])
        open(os.path.join(folder, "ready"), "w").close()
        holder.feeder().pop()
    print("went on")
except KeyboardInterrupt:
    print("interrupted")
print("children", children())
after = threads()
for _ in range(100):  # a thread that was joined may be seen for a moment
    if after <= before:
        break
    time.sleep(0.01)
    after = threads()
print("threads", max(after - before, 0))  # the one that is kept for calls may be gone
if call != "reader":
    print("rows", exe.train_from_dataset(dataset=dataset_of("QueueDataset", "cat")).examples)
'''

DAEMONS = """
import os, sys, threading, time
import numpy as np
import millrace
from millrace import layers, optimizer, reader
call, folder, marker = sys.argv[1:]
made, queue = millrace.py_array_reader(1, [[-1, 2]])
reader.read_file(made)
exe = millrace.Executor()
exe.run(millrace.default_startup_program())
main, scope = millrace.Program(), millrace.Scope()

def push():
    while True:
        queue.push((np.ones((3, 2), "float32"),))

def train():
    with millrace.program_guard(main, millrace.Program()), millrace.scope_guard(scope):
        dense = layers.data("dense", [2])
        label = layers.data("label", [1], "int64")
        slots = [layers.data("C%d" % i, [1], "int64", lod_level=1) for i in (1, 2, 3)]
        loss = layers.mean(layers.fc(dense, 1))
        optimizer.SGD(0.01).minimize(loss)
        exe.run(millrace.default_startup_program())
        dataset = millrace.DatasetFactory().create_dataset()
        dataset.set_use_var([label, dense] + slots)
        dataset.set_filelist([os.path.join(folder, "part-*")])
        dataset.set_pipe_command("cat; touch %s/ready; sleep %s" % (folder, marker))
        exe.train_from_dataset(main, dataset)

threading.Thread(target={"push": push, "pop": queue.pop, "train": train}[call], daemon=True).start()
while call == "train" and not os.path.exists(os.path.join(folder, "ready")):
    time.sleep(0.01)
while call == "push" and not queue.is_full():
    time.sleep(0.01)
print("the end")
"""


def alive(marker):
    """Processes whose command line has the marker."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                line = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if marker in line:
            found.append(line)
    return found


class InterruptTest(unittest.TestCase):
    def interrupted(self, call, whole_group):
        with tempfile.TemporaryDirectory() as folder:
            support.write_log(folder, 40, parts=2)
            marker = "30%d%d" % (os.getpid(), whole_group)
            process = subprocess.Popen([sys.executable, "-c", SCRIPT, call, folder, marker], stdout=subprocess.PIPE, text=True,
                                       stderr=subprocess.PIPE, start_new_session=True)
            while not os.path.exists(os.path.join(folder, "ready")) and process.poll() is None:
                time.sleep(0.01)
            if process.poll() is None:
                # As a terminal does it, or as `kill -INT` does.
                os.killpg(process.pid, signal.SIGINT) if whole_group else os.kill(process.pid, signal.SIGINT)
            out, errors = process.communicate()
            self.assertEqual(process.returncode, 0, errors[-2000:])
            wanted = ["interrupted", "children []", "threads 0"] + ([] if call == "reader" else ["rows 40"])
            self.assertEqual(out.splitlines(), wanted, call)
            # All of them carry the marker; the interpreter that had it as an argument is gone. A process that was killed is
            # there until the system has run it once more.
            end = time.monotonic() + 2
            while alive("sleep " + marker) and time.monotonic() < end:
                time.sleep(0.01)
            self.assertEqual(alive("sleep " + marker), [])

    def test_every_wait_ends_and_leaves_nothing(self):
        for call in ("train", "threads", "infer", "load", "preload", "reader", "loop", "queue"):
            with self.subTest(call):
                self.interrupted(call, False)

    def test_a_terminal_interrupts_the_commands_as_well(self):
        for call in ("train", "load"):
            with self.subTest(call):
                self.interrupted(call, True)

    def test_python_ends_although_daemon_threads_wait_and_train(self):
        for call in ("push", "pop", "train"):
            with self.subTest(call), tempfile.TemporaryDirectory() as folder:
                support.write_log(folder, 40, parts=2)
                marker = "32%d" % os.getpid()
                done = subprocess.run([sys.executable, "-c", DAEMONS, call, folder, marker], capture_output=True, text=True,
                                      check=False)
                self.assertEqual((done.returncode, done.stdout), (0, "the end\n"), done.stderr[-2000:])
                self.assertNotIn("terminate called", done.stderr)
                self.assertEqual(alive("sleep " + marker), [])

    def test_a_process_that_is_killed_leaves_no_command(self):
        with tempfile.TemporaryDirectory() as folder:
            support.write_log(folder, 40, parts=2)
            marker = "31%d" % os.getpid()
            with subprocess.Popen([sys.executable, "-c", SCRIPT, "train", folder, marker], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as process:
                while not os.path.exists(os.path.join(folder, "ready")) and process.poll() is None:
                    time.sleep(0.01)
                process.kill()
            while alive("sleep " + marker):  # the test's time limit is the measure
                time.sleep(0.01)


if __name__ == "__main__":
    unittest.main()
