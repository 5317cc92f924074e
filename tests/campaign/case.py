"""A case of a campaign: its random numbers, its folder, and the processes that it starts and looks after."""

import collections
import os
import random
import resource
import shlex
import signal
import subprocess
import time

# What a program may end with: docs/training.md, "Exit codes". 4 is our bug.
REGULAR_CODES = (0, 2, 3, 130, 141)
# Words of an end that was not meant, whatever the exit code.
CRASH_WORDS = ("Check failed", "terminate called", "Sanitizer", "runtime error:", "Segmentation fault", "internal:",
               "our bug", "std::bad_alloc", "*** stack smashing", "double free")
NAMES = {number: signal.Signals(number).name for number in signal.valid_signals() if number < 32}


class Violation(Exception):
    """A promise that was not kept, in words."""


Done = collections.namedtuple("Done", "code out err seconds")


class Running:
    """A started program. Its output goes to files, so that nothing that we do holds it up."""

    def __init__(self, case, number, arguments, process, out_path, err_path, codes):
        self.case = case
        self.number = number
        self.arguments = arguments
        self.process = process
        self.out_path = out_path
        self.err_path = err_path
        self.codes = codes
        self.sent = []
        self.started = time.monotonic()

    def is_alive(self):
        return self.process.poll() is None

    def signal(self, number, to_group=False):
        """Sends a signal, and remembers it as one that may be the end of the process."""
        self.sent.append(number)
        self.case.history.append("[%d] %s after %.3f s" % (self.number, NAMES[number], time.monotonic() - self.started))
        self.case.tally["signal " + NAMES[number]] += 1
        try:
            (os.killpg if to_group else os.kill)(self.process.pid, number)
        except ProcessLookupError:
            pass

    def printed(self):
        """Bytes of standard output so far."""
        return os.path.getsize(self.out_path) if self.out_path else 0

    def wait(self, seconds=None, may_hang=False):
        """Waits for the end and checks that it is a regular one. With may_hang, None when there is none in time."""
        seconds = seconds or self.case.hang_seconds
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            if may_hang:
                return None
            where = self.where_it_stands()
            self.kill()
            raise Violation("hangs: no end of %s in %d s\n%s\n%s" %
                            (self.command(), seconds, where, self.last_words())) from None
        done = Done(self.process.returncode, read(self.out_path), read(self.err_path),
                    time.monotonic() - self.started)
        self.case.history.append("[%d] ended with %d after %.3f s: %s" % (self.number, done.code, done.seconds,
                                                                                  done.err[-300:] if done.code else ""))
        self.check(done)
        return done

    def check(self, done):
        for word in CRASH_WORDS:
            if word in done.err:
                self.fail("says \"%s\"" % word, done)
        if done.code < 0:
            if -done.code not in self.sent:
                self.fail("ended by signal %s" % NAMES.get(-done.code, -done.code), done)
        elif done.code == 127 and "error while loading shared libraries" in done.err:
            return
        elif done.code not in self.codes:
            self.fail("ended with exit code %d" % done.code, done)
        if done.code in (2, 3) and self.err_path and not done.err.strip():
            self.fail("ended with exit code %d and no word" % done.code, done)

    def fail(self, what, done=None):
        raise Violation("%s: %s\n%s" % (self.command(), what, self.last_words(done)))

    def last_words(self, done=None):
        err = done.err if done else read(self.err_path)
        return "\n".join("    | " + line[:400] for line in err.splitlines()[-12:])

    def command(self):
        return shlex.join(self.arguments)

    def kill(self):
        for kill in (os.killpg, os.kill):
            try:
                kill(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        self.process.wait()

    def where_it_stands(self):
        """What each thread waits in, as far as the kernel says."""
        lines = []
        base = "/proc/%d/task" % self.process.pid
        try:
            for task in sorted(os.listdir(base)):
                words = [read(os.path.join(base, task, name)).strip() for name in ("comm", "wchan", "syscall")]
                state = read(os.path.join(base, task, "stat")).rpartition(") ")[2][:1]
                lines.append("    thread %s %s %s" % (task, state, " ".join(words)))
        except OSError:
            pass
        return "\n".join(lines)


class Case:
    """What a case has: `rng`, drawn from campaign, seed and number alone; `folder`, its own; `cache`, a folder that cases
    of this worker share, for what is the same in many of them; `tally`, what was done, for the closing table."""

    def __init__(self, campaign, seed, number, bin_dir, folder, cache, hang_seconds, is_sanitized=False, clock=None, brief=False):
        self.rng = random.Random("%s/%d/%d" % (campaign, seed, number))
        self.campaign = campaign
        self.bin_dir = bin_dir
        self.folder = folder
        self.cache = cache
        self.hang_seconds = hang_seconds
        self.clock = clock  # a library whose time of day steps, for LD_PRELOAD
        self.brief = brief  # faults alone that are over in seconds
        self.is_sanitized = is_sanitized  # its programs map terabytes: no limits of memory
        self.tally = collections.Counter()
        self.history = []
        self.token = "%s-%d-%d-%d-%d" % (campaign, seed, number, os.getpid(), int(time.monotonic() * 1000))
        self.running = []
        os.makedirs(folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def start(self, program, *arguments, env=None, stdin=subprocess.DEVNULL, stdout=None, stderr=None, prepare=None,
              cwd=None, wrap=(), codes=REGULAR_CODES):
        """Starts a program of ours (or, with a slash, any). `prepare` is called in the child before it runs; `wrap` are
        words before the command; `codes` are what it may end with. stdout and stderr go to files of the case unless they are given."""
        number = len(self.running) + 1
        path = program if "/" in program else os.path.join(self.bin_dir, program)
        words = [*wrap, path, *arguments]
        self.history.append("[%d] %s" % (number, shlex.join(words)))
        out_path = self.path("stdout.%d" % number) if stdout is None else None
        err_path = self.path("stderr.%d" % number) if stderr is None else None
        environment = dict(os.environ if env is None else env, MILLRACE_CAMPAIGN=self.token)

        def prepare_child():
            # No core files.
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if prepare is not None:
                prepare()

        out = open(out_path, "wb") if out_path else stdout  # pylint: disable=consider-using-with
        err = open(err_path, "wb") if err_path else stderr  # pylint: disable=consider-using-with
        try:
            process = subprocess.Popen(words, stdin=stdin, stdout=out, stderr=err, env=environment, cwd=cwd or self.folder,
                                       preexec_fn=prepare_child, start_new_session=True)
        finally:
            for path, file in ((out_path, out), (err_path, err)):
                if path:
                    file.close()
        self.tally["launches of " + program] += 1
        running = Running(self, number, words, process, out_path, err_path, codes)
        self.running.append(running)
        return running

    def run(self, program, *arguments, **options):
        """Starts a program and waits for its end."""
        return self.start(program, *arguments, **options).wait()

    def succeed(self, program, *arguments, **options):
        """Runs what nothing disturbs: it must end with 0."""
        running = self.start(program, *arguments, **options)
        done = running.wait()
        if done.code != 0:
            running.fail("undisturbed, it ended with %d" % done.code, done)
        return done

    def processes(self):
        """Processes that carry this case's mark: what its programs started and left."""
        mark = ("MILLRACE_CAMPAIGN=" + self.token).encode()
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            try:
                with open("/proc/%s/environ" % name, "rb") as file:
                    if mark in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                pass
        return found

    def expect_no_process(self, after):
        """No child outlives its trainer; one that was killed with it is given the time of a guard to be found."""
        end = time.monotonic() + 20
        while True:
            left = self.processes()
            if not left:
                return
            if time.monotonic() > end:
                lines = [read("/proc/%d/cmdline" % pid).replace("\0", " ") for pid in left]
                raise Violation("processes are left behind by %s: %s" % (after, "; ".join(lines)))
            time.sleep(0.02)

    def end_processes(self):
        """Ends what the case started, by the mark in its environment."""
        for running in self.running:
            if running.is_alive():
                running.kill()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass


def read(path):
    """The text of a file, "" when there is none."""
    if not path:
        return ""
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "backslashreplace")
    except OSError:
        return ""


def content(folder):
    """{name: bytes} of the files below a folder."""
    files = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            with open(path, "rb") as file:
                files[os.path.relpath(path, folder)] = file.read()
    return files


def difference(one, other):
    """The names in which two contents differ, in words; "" when they are equal."""
    names = sorted(name for name in set(one) | set(other) if one.get(name) != other.get(name))
    return ", ".join("%s (%s and %s bytes)" % (name, *("no" if name not in files else len(files[name])
                                                      for files in (one, other))) for name in names)
