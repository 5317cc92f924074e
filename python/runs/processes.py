"""Runs trainings as processes, several at a time."""

import ctypes
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import List

import jobs
from console import Failure, harmless, io_failure, say, shortened
from run_folder import read_run

_INTERRUPTED = 130
_PR_SET_PDEATHSIG = 1
_PRCTL = ctypes.CDLL(None).prctl

# Outcomes.
NOT_RUN, FINISHED, FINISHED_BEFORE, FAILED, STOPPED = "not run", "finished", "finished before", "failed", "stopped"


@dataclass
class Job:
    """A training of the plan (src/app/sweep_jobs.h)."""

    name: str  #: of its folder
    trial: int
    overrides: List[str]
    threads: int
    epochs: int
    text: str  #: the job in prototxt


@dataclass
class Training:
    """A job to run now."""

    job: Job
    epochs: int  #: instead of the job's; 0: the job's
    resumes: bool  #: from its folder


class StopOnSignal:
    """Turns the first SIGINT or SIGTERM into a stop request, and ends the process at the second one. SIGHUP (unless
    ignored, as under nohup) and SIGUSR1 also request a stop, and can come several times. The program that started this
    one has blocked these signals, so none is lost."""

    def __init__(self):
        self.requested = False
        self._asked = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN or number != signal.SIGHUP:
                signal.signal(number, self._stop)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])

    def _stop(self, number, _frame):
        may_come_again = number in (signal.SIGHUP, signal.SIGUSR1)
        if not may_come_again:
            if self._asked:
                os._exit(_INTERRUPTED)  # the kernel kills the trainings
            self._asked = True
        if not self.requested:
            again = "SIGINT or SIGTERM twice" if may_come_again else "once more"
            say(f"\nstopping after the current batch; {again} to stop at once\n")
            self.requested = True


def has_finished(program, folder_of, trainings):
    """For each training, whether the run in its folder has done what it asks for, or gone on to a later round."""
    texts = {}
    for i, training in enumerate(trainings):
        try:
            run = read_run(folder_of(training.job))
        except Failure:
            continue
        if run.has_ended and not run.interrupted and run.job is not None:
            texts[i] = [run.job, training.job.text]
    finished = [False] * len(trainings)
    for i, found in zip(texts, jobs.compare(program, list(texts.values()))):
        fields = {field.path: field.values for field in found.fields}
        epochs = int(fields.pop("epochs", [trainings[i].job.epochs])[0])
        finished[i] = None not in found.seeds and not fields and epochs >= (trainings[i].epochs or trainings[i].job.epochs)
    return finished


def _reason(log):
    """The line of a log that says why its training failed, else the last line."""
    try:
        with open(log, encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read().rstrip(" \n\r\t")
    except OSError:
        return ""
    # Mistakes of a job are reported with their places, and the lines of the file below.
    at = text.rfind("\ntrainer: ")
    at = text.find(": error: ") if at < 0 else at
    at = len(text) if at < 0 else at + 1
    start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    return harmless(shortened(text[start:].split("\n")[0], 300))


class _Running:
    """A training under way, in a session of its own: Ctrl-C at a terminal does not reach it. It dies with this process."""

    def __init__(self, number, training, command, folder):
        self.number, self.job = number, training.job
        self.log = folder + "/log.txt"
        self.start = time.monotonic()
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise io_failure(f'cannot make the folder "{folder}"', error) from None
        try:
            with open(self.log, "ab" if training.resumes else "wb") as log:
                parent = os.getpid()
                self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                                 preexec_fn=lambda: self._prepare(parent))
        except (OSError, subprocess.SubprocessError) as error:
            raise Failure("input/output error", f"cannot start {command[0]} with {self.log}: {error}") from None

    @staticmethod
    def _prepare(parent):
        """In the new process."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
            signal.signal(number, signal.SIG_DFL)
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    def terminate(self):
        """Asks the training, not its commands, to stop."""
        os.kill(self._process.pid, signal.SIGTERM)

    def exit_code(self):
        """The exit code, or 128 + the signal; None while it runs. Ends what is left of its group."""
        pid = self._process.pid
        # It stays a zombie until its group is killed, so that its number is not given to another process.
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        os.killpg(pid, signal.SIGKILL)
        self._process.wait()
        return ended.si_status if ended.si_code == os.CLD_EXITED else 128 + ended.si_status


class Processes:
    """Runs trainings with `program` and `flags`, `at_once` at a time; 0: as many as there are processors for."""

    def __init__(self, program, flags, output_dir, at_once, stop):
        self.program = program
        self._flags = flags
        self._output_dir = output_dir
        self._at_once = at_once
        self._stop = stop

    def folder_of(self, job):
        """Where a job writes."""
        return self._output_dir + "/" + job.name

    def _command(self, training):
        fields = training.job.overrides + ([f"epochs={training.epochs}"] if training.epochs > 0 else [])
        return [self.program, *self._flags, "--output_dir=" + self.folder_of(training.job),
                "--resume=" + ("auto" if training.resumes else "never"), *("--set=" + field for field in fields)]

    def _has_room(self, running, job):
        if not running:
            return True
        if self._at_once > 0:
            return len(running) < self._at_once
        return job.threads + sum(one.job.threads for one in running) <= len(os.sched_getaffinity(0))

    def _tell(self, one, exit_code, place):
        """Reports the end of a training; its outcome."""
        if exit_code == 0:
            say(f"{place}: done, {time.monotonic() - one.start:.1f} s\n")
            return FINISHED
        if self._stop.requested and exit_code == _INTERRUPTED:
            say(f"{place}: stopped\n")
            return STOPPED
        say(f"{place}: failed (exit code {exit_code}), see {one.log}: {_reason(one.log)}\n")
        return FAILED

    def run(self, trainings):
        """Runs all; their outcomes, in their order. After a stop request, running ones are asked to stop and the rest is
        not run."""
        resuming = [training for training in trainings if training.resumes]
        finished = {id(training) for training, is_done in zip(resuming, has_finished(self.program, self.folder_of, resuming)) if is_done}
        outcomes = [NOT_RUN] * len(trainings)
        places = [f"{i + 1} of {len(trainings)}, {training.job.name}" for i, training in enumerate(trainings)]
        waiting = list(enumerate(trainings))
        running = []
        is_stopping = False
        while waiting or running:
            if self._stop.requested and not is_stopping:
                is_stopping = True
                waiting = []
                for one in running:
                    one.terminate()
            while waiting and self._has_room(running, waiting[0][1].job):
                i, training = waiting.pop(0)
                if id(training) in finished:
                    outcomes[i] = FINISHED_BEFORE
                    say(f"{places[i]}: done before\n")
                    continue
                try:
                    running.append(_Running(i, training, self._command(training), self.folder_of(training.job)))
                    say(f"{places[i]}: started\n")
                except Failure as failure:
                    outcomes[i] = FAILED
                    say(f"{places[i]}: failed: {failure.message}\n")
            left = []
            for one in running:
                exit_code = one.exit_code()
                if exit_code is None:
                    left.append(one)
                else:
                    outcomes[one.number] = self._tell(one, exit_code, places[one.number])
            if running and len(left) == len(running):
                time.sleep(0.05)
            running = left
        return outcomes
