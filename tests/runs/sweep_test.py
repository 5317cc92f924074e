"""Sweeps: processes, and the decisions of a halving. tests/e2e/sweep_test.cc runs whole sweeps."""

import json
import os
import signal
import unittest
from unittest import mock

import processes
from processes import FAILED, FINISHED, NOT_RUN, STOPPED, Job, Processes, StopOnSignal, Training
from sweep import Sweep
from written_runs import WithRuns


def job(name, threads=1):
    return Job(name, 0, [], threads, 1, "")


class ProcessesTest(WithRuns):
    def setUp(self):
        super().setUp()
        self.said = []
        patch = mock.patch("processes.say", self.said.append)
        patch.start()
        self.addCleanup(patch.stop)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        self.stop = StopOnSignal()

    def run_all(self, command, names, at_once=1, program="/bin/sh"):
        """Runs `command` for each name; the rest of the command line follows it."""
        runner = Processes(program, ("-c", command), self.root, at_once, self.stop)
        return runner.run([Training(job(name), 0, False) for name in names])

    def log(self, name):
        with open(self.folder(name) + "/log.txt", encoding="utf-8") as file:
            return file.read()

    def test_writes_logs_and_reports_exit_codes(self):
        self.assertEqual(self.run_all('cat; echo said $0 $1; echo "trainer: because" >&2; case $0 in *b) exit 7;; *c) kill -KILL $$;; esac',
                                      ["a", "b", "c"]), [FINISHED, FAILED, FAILED])
        self.assertEqual(self.log("a"), f"said --output_dir={self.folder('a')} --resume=never\ntrainer: because\n")
        self.assertEqual(self.said[0], "1 of 3, a: started\n")
        self.assertRegex(self.said[1], r"^1 of 3, a: done, \d+\.\d s\n$")
        self.assertIn(f"2 of 3, b: failed (exit code 7), see {self.folder('b')}/log.txt: trainer: because\n", self.said)
        self.assertIn(f"3 of 3, c: failed (exit code 137), see {self.folder('c')}/log.txt: trainer: because\n", self.said)

    def test_a_missing_program_or_folder_fails(self):
        self.assertEqual(self.run_all("", ["a"], program="no-such-program"), [FAILED])
        self.assertRegex(self.said[-1], "1 of 1, a: failed: cannot start no-such-program with .*/a/log.txt: .*No such file")
        self.write("file", "run", "")
        self.assertEqual(self.run_all("", ["file/run/b"]), [FAILED])
        self.assertRegex(self.said[-1], "failed: cannot make the folder .*Not a directory")

    def test_a_stop_reaches_those_that_run(self):
        command = f"trap 'echo stopped; exit 130' TERM; kill -TERM {os.getpid()}; while :; do sleep 0.01; done"
        self.assertEqual(self.run_all(command, ["a", "b"]), [STOPPED, NOT_RUN])
        self.assertEqual(self.log("a"), "stopped\n")
        self.assertFalse(os.path.exists(self.folder("b")))
        self.assertEqual(self.said.count("\nstopping after the current batch; once more to stop at once\n"), 1)

    def test_hangups_may_come_again(self):
        with mock.patch("os._exit") as leave:
            for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGUSR1, signal.SIGTERM):
                os.kill(os.getpid(), number)
            leave.assert_not_called()
            os.kill(os.getpid(), signal.SIGINT)
            leave.assert_called_once_with(130)
        self.assertEqual(self.said, ["\nstopping after the current batch; SIGINT or SIGTERM twice to stop at once\n"])

    def test_what_a_training_leaves_ends_with_it(self):
        self.assertEqual(self.run_all("sleep 1000 & echo $!", ["a"]), [FINISHED])
        state = "?"
        while state not in ("Z", ""):  # a zombie where nobody waits for it
            try:
                with open(f"/proc/{int(self.log('a'))}/stat", encoding="utf-8") as file:
                    state = file.read().rpartition(") ")[2][:1]
            except OSError:
                state = ""

    def test_as_many_run_as_processors_have_room_for(self):
        runner = Processes("", (), "", 0, self.stop)
        running = [mock.Mock(job=job("a", 2))]
        with mock.patch("os.sched_getaffinity", return_value=range(4)):
            self.assertTrue(runner._has_room(running, job("b", 2)))
            self.assertFalse(runner._has_room(running, job("b", 3)))
            self.assertTrue(runner._has_room([], job("b", 99)))

    def test_the_reason_is_the_line_of_the_failure(self):
        for text, reason in (("", ""), ("a\nb\n\n", "b"), ("x\r99 %\rtrained\n", "trained"),
                             ("a\ntrainer: bad data: x\n  at y\n", "trainer: bad data: x"),
                             ("j:1:2: error: no\n  1 | x\n", "j:1:2: error: no"), ("a\x1b\n", "a\\x1b")):
            folder = self.write("log", "log.txt", text)
            self.assertEqual(processes._reason(folder + "/log.txt"), reason)


class FakeProcesses:
    """Trainings that end at once, with a metric that their trials' names show."""

    program = "no-such-program"

    def __init__(self, test):
        self.test = test
        self.ran = []

    def folder_of(self, one):
        return self.test.folder(one.name)

    def run(self, trainings):
        self.ran.append([(training.job.name, training.epochs, training.resumes) for training in trainings])
        for training in trainings:
            if training.job.name != "failing":
                self.test.write_run(training.job.name, "", 0.5, float(training.job.name))
        return [FAILED if training.job.name == "failing" else FINISHED for training in trainings]


class HalvingTest(WithRuns):
    def sweep(self, names, factor=3, resumes=False, fingerprint="1"):
        plan = {"metric": "auc", "better": "higher", "keeps_best": False, "factor": factor,
                "trials": [{"name": name, "overrides": [], "jobs": [{"name": name, "overrides": [], "threads": 1, "epochs": 9, "text": ""}]}
                           for name in names],
                "rounds": [{"epochs": epochs, "fingerprints": [fingerprint] * len(names)} for epochs in (1, 3, 9)]}
        self.processes = FakeProcesses(self)
        sweep = Sweep(plan, self.processes, self.root, resumes, mock.Mock(requested=False))
        with mock.patch("sweep.say"), mock.patch("sweep.has_finished", lambda program, folder_of, all_of: [True] * len(all_of)):
            sweep.run()
        return [[name for name, _, _ in ran] for ran in self.processes.ran]

    def rounds(self):
        with open(self.root + "/rounds.jsonl", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_one_in_factor_goes_on_and_at_least_one(self):
        names = [f"0.{i}" for i in range(10, 37)]
        self.assertEqual(list(map(len, self.sweep(names))), [27, 9, 3])
        self.assertEqual(self.processes.ran[1][0], ("0.28", 3, True))  # in the order of the plan
        self.assertEqual(self.processes.ran[2], [(name, 9, True) for name in ("0.34", "0.35", "0.36")])
        self.assertEqual(list(map(len, self.sweep(names[:5]))), [5, 1, 1])

    def test_a_failed_trial_goes_out(self):
        self.assertEqual(self.sweep(["failing", "0.2", "0.4"], factor=2), [["failing", "0.2", "0.4"], ["0.4"], ["0.4"]])
        self.assertEqual([(line["trial"], line["value"], line["goes_on"]) for line in self.rounds()],
                         [("0.2", 0.2, False), ("0.4", 0.4, True), ("failing", None, False), ("0.4", 0.4, True)])
        self.assertEqual(self.sweep(["failing"], factor=2), [["failing"]])

    def test_decisions_stay_while_their_reasons_do(self):
        names = ["0.1", "0.2", "0.3"]
        self.sweep(names)
        with open(self.root + "/rounds.jsonl", "a", encoding="utf-8") as file:
            file.write('no object\n[]\n{"epochs":1}\n{"epochs":true,"trial":"0.1"}\n' + "[" * 100000 + "\n")
        self.assertEqual(self.sweep(names, resumes=True), [["0.3"]])  # the last round
        self.assertEqual(self.sweep(names, factor=2, resumes=True), [names, ["0.3"], ["0.3"]])
        self.assertEqual(self.sweep(names, factor=2, resumes=True, fingerprint="2"), [names, ["0.3"], ["0.3"]])
        self.assertEqual(self.sweep(names[1:], factor=2, resumes=True, fingerprint="2"), [names[1:], ["0.3"]])


if __name__ == "__main__":
    unittest.main()
