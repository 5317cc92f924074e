"""Hostile surroundings: full disks, limits of memory, files, processes and stack, closed and broken streams, what may not be
read or written, odd environments, names, times of files.

What must hold: a program does all of its work, with the same numbers, or ends with a code and a word that say why; what it
leaves is whole, and the run goes on from it when the surroundings are friendly again.
"""

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import time

import jobs
from case import content, difference, read
from world import PRINTED, copy_of_world, made_world

IS_ROOT = os.geteuid() == 0
NOT_LOADED = 127  # of the system's loader, before the program begins
CLONE_NEWNS = 0x20000
MS_REC_PRIVATE = 0x4000 | 0x40000


def run_case(case):
    world = copy_of_world(case)
    action = case.rng.choice(ACTIONS)(case, world)
    hostility = case.rng.choice(HOSTILITIES)
    surroundings = Surroundings(case, world, action)
    hostility(surroundings)
    surroundings.give_away()
    return "%s: %s" % (hostility.__name__.replace("_", " "), look(surroundings))


class Action:
    """What is run. `words`: the command; `out`: the folder it writes, if any; `differs`: how its result differs from what it
    should be, "" if it does not; `again`: the command that goes on after a failure, if any."""

    def __init__(self, words, differs, out=None, again=None):
        self.words = list(words)
        self.differs = differs
        self.out = out
        self.again = again


class Surroundings:
    def __init__(self, case, world, action):
        self.case = case
        self.rng = case.rng
        self.world = world
        self.action = action
        self.options = {}
        self.preparations = []
        self.uid = 61000 + case.rng.randrange(4000)
        self.may_break_pipe = False
        self.during = lambda running: None  # what happens to the program while it runs
        self.disk_kib = None
        self.is_short_of_memory = False

    def path(self, name):
        return os.path.join(self.world, name)

    def before(self, prepare):
        """Adds what the child does before it becomes the program."""
        self.preparations.append(prepare)

    def limit(self, which, value):
        self.case.history.append("limit %s: %d" % (which, value))
        self.before(lambda: resource.setrlimit(which, (value, value)))

    def give_away(self):
        """The program runs as somebody who may not do everything."""
        if not IS_ROOT:
            return
        for base, folders, files in os.walk(self.world):
            for name in (*folders, *files):
                os.lchown(os.path.join(base, name), self.uid, self.uid)
        os.lchown(self.world, self.uid, self.uid)

    def prepare(self):
        def become():
            if self.disk_kib is not None:
                mount_small_disk(os.path.join(self.world, self.action.out), self.disk_kib)
            if IS_ROOT:
                os.setgroups([])
                os.setgid(self.uid)
            for prepare in self.preparations:
                prepare()
            if IS_ROOT:
                os.setuid(self.uid)
        return become


def mount_small_disk(path, kib):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0 or libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None) != 0 or libc.mount(
            b"none", path.encode(), b"tmpfs", 0, b"size=%dk,mode=777" % kib) != 0:
        os._exit(77)


def look(around):
    case, action = around.case, around.action
    running = case.start(*action.words, cwd=around.world, prepare=around.prepare(), **around.options)
    for name in ("stdout", "stderr"):
        if isinstance(around.options.get(name), int) and around.options[name] > 2:
            os.close(around.options[name])
    around.during(running)
    if around.may_break_pipe:
        running.sent.append(signal.SIGPIPE)
    if around.is_short_of_memory:
        # Memory that runs out within a library (oneDNN while it makes its kernels) ends the process; see docs/promises.md.
        running.sent += [signal.SIGSEGV, signal.SIGABRT]
    done = running.wait()
    if around.disk_kib is not None and done.code == 77:
        return "no right to mount a small disk here"
    if done.code == 130 or (done.code == 141 and not around.may_break_pipe):
        running.fail("ended with %d, though nobody stopped it" % done.code, done)
    case.expect_no_process(running.command())
    if done.code == 0:
        # What a small disk held went with its process.
        differs = "" if around.disk_kib is not None else action.differs(done)
        if differs:
            running.fail("exit code 0, and not what it should be: %s" % differs, done)
        return "done, the same numbers"
    if done.code in (141, -signal.SIGPIPE):
        return "ended with its reader"
    if done.code == NOT_LOADED:
        return "no room for the libraries"
    how = "refused with %d" % done.code if done.code > 0 else "out of memory within a library"
    if action.again and around.disk_kib is None:
        make_friendly(around)
        again = case.start(*action.again, cwd=around.world)
        done_again = again.wait()
        if done_again.code != 0:
            again.fail("in friendly surroundings it ended with %d" % done_again.code, done_again)
        differs = action.differs(done_again)
        if differs:
            again.fail("it went on to other numbers: %s" % differs, done_again)
        return how + ", then done"
    return how


def make_friendly(around):
    for base, folders, _ in os.walk(around.world):
        for name in folders:
            os.chmod(os.path.join(base, name), 0o755)
    out = os.path.join(around.world, around.action.out)
    if os.path.lexists(out) and (os.path.islink(out) or not os.path.isdir(out)):
        os.remove(out)
    os.makedirs(out, exist_ok=True)
    os.makedirs(os.path.join(around.world, "data"), exist_ok=True)
    model = os.path.join(around.world, "own", "model")
    if not os.path.exists(model):
        shutil.copytree(os.path.join(made_world(around.case), "own", "model"), model)
    for name in ("job.prototxt", "data/part-0", "data/part-1", "held_out"):
        path = os.path.join(around.world, name)
        if not os.path.exists(path) or not os.access(path, os.R_OK):
            shutil.copy2(os.path.join(made_world(around.case), name), path)


# The actions.


def parameters_of(folder):
    """What was trained; the rest of a model says how its lines are read."""
    return {name: data for name, data in content(folder).items() if name == "parameters" or name.startswith("tables")}


def train(case, world):
    more = case.rng.choice((
        [], [], ["--set", "data_desc.pipe_command=\"awk '{ print }'\""], ["--set", "data_desc.thread_num=3"],
        ["--set", "dataset.class_name=InMemoryDataset"],
        ["--set", "dataset.class_name=InMemoryDataset", "--set", "dataset.preload=true"],
        ["--set", "filelist=['packed/part-0.gz', 'packed/part-1.gz']"]))
    words = ["trainer", "--trainer_desc=job.prototxt", "--output_dir=fresh", *more]
    differs = trained_like_own(made_world(case), world, "fresh")
    return Action([*words, "--resume=never"], differs, "fresh", [*words, "--resume=auto"])


def train_in_threads(case, world):
    words = ["trainer", "--trainer_desc=job.prototxt", "--output_dir=fresh", "--set", "update_mode=HOGWILD", "--set",
             "thread_num=%d" % case.rng.choice((2, 4, 8))]

    def differs(_):
        text = read(os.path.join(world, "fresh", "run.json"))
        return "" if "\"examples\": 1200," in text and os.path.exists(os.path.join(world, "fresh/model/MODEL")) else text[:200]
    return Action([*words, "--resume=never"], differs, "fresh", [*words, "--resume=auto"])


def resume(case, world):
    words = ["trainer", "--trainer_desc=job.prototxt", "--output_dir=own_stopped", "--resume=auto"]
    return Action(words, trained_like_own(made_world(case), world, "own_stopped"), "own_stopped", words)


def trained_like_own(made, world, out):
    def differs(_):
        found = difference(parameters_of(os.path.join(made, "own", "model")),
                           parameters_of(os.path.join(world, out, "model")))
        if found:
            return found
        if not os.path.exists(os.path.join(world, out, "run.json")):
            return "no run.json"
        expected, printed = read(os.path.join(made, "own", "metrics.jsonl")), read(os.path.join(world, out, "metrics.jsonl"))
        return "" if metrics_of(expected) == metrics_of(printed) else "metrics.jsonl"
    return differs


def metrics_of(text):
    """Points of the curve, each once: a finished run that is called again evaluates again."""
    return list(dict.fromkeys(text.splitlines()))


def reader_program(case, world):
    words = ["trainer", "--trainer_desc=readers/multi_pass.prototxt", "--set", "program.save_dir=\"fresh\""]
    return Action(words, lambda _: difference(content(os.path.join(made_world(case), "saved")),
                                             content(os.path.join(world, "fresh"))))


def same_scores(printed, expected):
    """Batches of another size may round otherwise."""
    printed, expected = printed.split(), expected.split()
    return len(printed) == len(expected) and all(abs(float(a) - float(b)) <= 1e-5 for a, b in zip(printed, expected))


def predict(case, world):
    def differs(done):
        if case.running[-1].out_path is None:
            return ""
        return "" if same_scores(done.out, read(os.path.join(made_world(case), "scores"))) else "the scores"
    return Action(["predictor", "--model_dir=own/model", "--input=data/part-0",
                   *case.rng.choice(([], ["--pipe_command=awk '{ print }'"], ["--batch_size=7"]))], differs)


def predict_to_a_file(case, world):
    def differs(_):
        expected = read(os.path.join(made_world(case), "scores"))
        return "" if read(os.path.join(world, "scored", "scores")) == expected else "the scores"
    os.mkdir(os.path.join(world, "scored"))
    words = ["predictor", "--model_dir=own/model", "--input=data/part-0", "--output=scored/scores"]
    return Action(words, differs, "scored", words)


def convert(case, world):
    # Its job names the folder.
    shutil.rmtree(os.path.join(world, "binary"))
    words = ["inspect", "convert", "--trainer_desc=job.prototxt", "--output_dir=binary"]

    def written(place):
        # The states have the times of the input.
        return {file: data for file, data in content(os.path.join(place, "binary")).items() if not file.endswith(".state")}
    return Action(words, lambda _: difference(written(made_world(case)), written(world)), "binary", words)


def print_something(case, world):
    name = case.rng.choice(sorted(PRINTED))

    def differs(done):
        if case.running[-1].out_path is None:
            return ""
        return "" if done.out == read(os.path.join(made_world(case), name + ".expected")) else "what is printed"
    return Action(PRINTED[name], differs)


def validate(case, world):
    return Action(["trainer", "--trainer_desc=job.prototxt", "--validate_only", "--output_dir=validated"], lambda _: "")


ACTIONS = (train, train, train, train_in_threads, resume, resume, reader_program, predict, predict, predict_to_a_file, convert,
           print_something, print_something, validate)


# The hostilities.


def full_disk(around):
    action = around.action
    if action.out is None:
        around.options["stdout"] = os.open("/dev/full", os.O_WRONLY)
        action.differs = lambda _: "nothing was told of a standard output that takes nothing" if action.words[
            0] != "trainer" or "--print_config" in action.words or "--validate_only" in action.words else ""
        return
    if not IS_ROOT or os.listdir(around.world).count(action.out):
        small_files(around)
        return
    os.mkdir(around.path(action.out))
    around.disk_kib = around.rng.choice((4, 8, 16, 32, 64, 100, 200, 400))
    around.case.history.append("a disk of %d KiB" % around.disk_kib)


def small_files(around):
    # What it says must have room.
    around.limit(resource.RLIMIT_FSIZE, around.rng.randrange(3000, 60000))


def little_memory(around):
    around.is_short_of_memory = True
    around.limit(resource.RLIMIT_AS, int(2 ** around.rng.uniform(24, 31)))


def few_files(around):
    around.limit(resource.RLIMIT_NOFILE, around.rng.randrange(3, 40))


def few_processes(around):
    around.limit(resource.RLIMIT_NPROC, around.rng.randrange(1, 12))


def small_stack(around):
    around.limit(resource.RLIMIT_STACK, 1024 * around.rng.choice((256, 512, 1024, 2048)))


def closed_streams(around):
    closed = around.rng.sample((0, 1, 2), around.rng.randrange(1, 4))
    around.case.history.append("closed: %s" % closed)
    if 2 in closed:
        around.options["stderr"] = subprocess.DEVNULL  # closed below; no file, so that no word is expected of it
    if 1 in closed:
        around.options["stdout"] = subprocess.DEVNULL
        if around.action.words[0] in ("predictor", "inspect", "clickgen") and around.action.out is None:
            around.action.differs = lambda _: "its standard output is closed, and nothing was told"
    around.before(lambda: [os.close(number) for number in closed])


def broken_pipe(around):
    """Standard output, or standard error, whose reader is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    os.set_inheritable(writer, True)
    which = around.rng.choice(("stdout", "stdout", "stderr"))
    around.case.history.append("nobody reads " + which)
    around.options[which] = writer
    around.may_break_pipe = True


def full_error_stream(around):
    around.options["stderr"] = os.open("/dev/full", os.O_WRONLY)


def odd_input_stream(around):
    choice = around.rng.choice(("folder", "write_only", "terminal"))
    around.case.history.append("stdin: " + choice)
    if choice == "folder":
        around.options["stdin"] = os.open("/", os.O_RDONLY)
    elif choice == "write_only":
        around.options["stdin"] = os.open("/dev/null", os.O_WRONLY)
    else:
        around.options["stdin"] = os.open("/dev/zero", os.O_RDONLY)


def may_not(around):
    """Something may not be read, or not be written."""
    if not IS_ROOT:
        pass  # a user is refused anyhow
    action = around.action
    choices = ["data/part-0", "data", "job.prototxt", "own/model", "own/model/parameters", "held_out"]
    if action.out:
        choices += [action.out] * 3
    name = around.rng.choice(choices)
    around.case.history.append("may not: " + name)
    path = around.path(name)
    if name == action.out and not os.path.exists(path):
        os.mkdir(path)
    mode = 0o555 if name == action.out else 0
    around.before(lambda: os.chmod(path, mode))
    # The comparison is made by who may read all; for others the rights are given back.
    compare = action.differs

    def differs(done):
        if not IS_ROOT:
            os.chmod(path, 0o755)
        return compare(done)
    action.differs = differs


def odd_output_place(around):
    action = around.action
    if action.out is None or os.path.exists(around.path(action.out)):
        may_not(around)
        return
    choice = around.rng.choice(("file", "device", "link_to_itself", "link_to_nothing", "under_a_file", "long", "proc", "empty"))
    around.case.history.append("output: " + choice)
    path = around.path(action.out)
    if choice == "file":
        with open(path, "w", encoding="utf-8"):
            pass
    elif choice in ("device", "link_to_itself", "link_to_nothing"):
        os.symlink({"device": "/dev/null", "link_to_itself": action.out, "link_to_nothing": "nowhere/at/all"}[choice], path)
    else:
        place = {"under_a_file": "job.prototxt/" + action.out, "long": "x" * 300, "proc": "/proc/nothing", "empty": ""}[choice]
        action.words = [word.replace("=" + action.out, "=" + place) for word in action.words]
        compare = action.differs
        action.differs = lambda done: "" if choice == "empty" else compare(done)


def odd_environment(around):
    environment = dict(os.environ)
    choice = around.rng.choice(("locale", "nothing", "no_path", "no_tmp", "home", "long", "threads", "startup_files"))
    if choice == "locale":
        name = around.rng.choice(("C", "POSIX", "C.utf8", "de_DE.UTF-8", "tr_TR.UTF-8", "no_such_LOCALE", "", "\udcff"))
        environment.update(LC_ALL=name, LANG=name, LC_NUMERIC="de_DE.UTF-8", LANGUAGE="xx")
    elif choice == "nothing":
        environment = {}
    elif choice == "no_path":
        environment["PATH"] = around.rng.choice(("", "/nonexistent", ".", ":"))
    elif choice == "no_tmp":
        environment["TMPDIR"] = around.rng.choice(("/nonexistent", "/proc", "", "x" * 5000))
    elif choice == "home":
        environment.update(HOME="/nonexistent", USER="", SHELL="/bin/false", BASH_ENV="/nonexistent", ENV="/nonexistent",
                           TZ="Nowhere/At_All", IFS="x", POSIXLY_CORRECT="1", COLUMNS="0", TERM="")
    elif choice == "startup_files":
        # As from cron or systemd: no shell is around, and bash may take itself for a remote login.
        home = around.path("home")
        os.mkdir(home)
        jobs.write_file(os.path.join(home, ".bashrc"), "echo 1 2 3\nexec sleep 1000\n")
        environment = {"HOME": home, "PATH": os.environ["PATH"]}
    elif choice == "long":
        environment["LONG"] = "x" * 100000
    else:
        environment.update(OMP_NUM_THREADS="0", MKL_NUM_THREADS="x", OPENBLAS_NUM_THREADS="-1", MALLOC_ARENA_MAX="1",
                           MALLOC_PERTURB_="165")
    around.case.history.append("environment: %s" % choice)
    around.options["env"] = environment


def odd_signals(around):
    """What a careless parent hands on: children that nobody waits for, signals that are blocked or ignored."""
    choice = around.rng.choice(("no_children", "blocked", "ignored"))
    around.case.history.append("signals: " + choice)
    if choice == "no_children":
        around.before(lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    elif choice == "blocked":
        around.before(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()))
    else:
        around.before(lambda: [signal.signal(number, signal.SIG_IGN) for number in (
            signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGUSR2)])


def odd_mask(around):
    mask = around.rng.choice((0, 0o777, 0o277, 0o077))
    around.case.history.append("umask %o" % mask)
    around.before(lambda: os.umask(mask))


NAMES = ("with blank", "with 'quote", 'with "quotes"', "with\nline", "$(touch pwned)", "`touch pwned`", ";touch pwned;", "-dash",
         "per%scent%n", "back\\slash", "ünïcödé", "\udcff\udcfe", "x" * 200, "~", "#hash", "a=b", "a,b", "{x}", "!", "&", "tab\t",
         ".hidden", "C1..C3", "@at", "hdfs_", "[0]", "*", "?")


def odd_names(around):
    """The folder of the data, or the output, has a name that shells, formats and lists have a meaning for."""
    if "--print_config" in around.action.words:
        odd_times(around)  # it prints the names
        return
    name = around.rng.choice(NAMES)
    around.case.history.append("name: %r" % name)
    action = around.action
    os.rename(around.path("data"), around.path(name))
    with open(around.path("job.prototxt"), "rb") as file:
        text = file.read()
    # A folder stands for its files: no name in it is a pattern.
    raw = os.fsencode("./" + name + "/")
    entry = b"".join(b"%c" % byte if 32 <= byte < 127 and byte not in b'"\\' else b"\\%03o" % byte for byte in raw)
    text = text.replace(b'filelist: "data/part-0"\nfilelist: "data/part-1"', b'filelist: "' + entry + b'"')
    with open(around.path("job.prototxt"), "wb") as file:
        file.write(text)
    action.words = [word.replace("=data/part-0", "=./" + name + "/part-0") for word in action.words]
    compare = action.differs
    action.differs = lambda done: "a name was run as a command" if os.path.exists(around.path("pwned")) else compare(done)
    action.again = None


def odd_times(around):
    """Files from the past and from the future."""
    for base, folders, files in os.walk(around.world):
        for name in (*folders, *files):
            at = around.rng.choice((0, -1, 1, 2 ** 31, 2 ** 33, 4102444800))
            os.utime(os.path.join(base, name), (at, at), follow_symlinks=False)


def folder_is_gone(around):
    """The current folder was removed."""
    def leave():
        os.mkdir("gone")
        os.chdir("gone")
        os.rmdir("../gone")
    around.before(leave)
    around.action.differs = lambda _: "" if around.action.words[0] == "clickgen" else "its folder is gone, and nothing was told"
    around.action.again = None


def things_go_away(around):
    """Files and folders are removed while they are in use, or about to be."""
    choices = ["data/part-1", "held_out", "data", "job.prototxt", "own/model"]
    if around.action.out:
        choices += [around.action.out] * 3 + [os.path.join(around.action.out, name) for name in (
            "metrics.jsonl", "metrics.jsonl", "checkpoints", "model", "tensorboard")]
    path = around.path(around.rng.choice(choices))
    at = around.rng.choice((0, around.rng.uniform(0, 0.05), around.rng.uniform(0, 0.5)))

    action = around.action
    compare = action.differs
    is_over = []

    first = len(around.case.running) + 1

    def differs(done):
        # What is removed when the work is done is not missed; the points that are gone no later run can tell.
        is_again = around.case.running[-1].number > first
        if is_over and not is_again:
            return ""
        found = compare(done)
        goes_on = is_again or "--resume=auto" in action.words
        return "" if goes_on and found == "metrics.jsonl" else found
    action.differs = differs

    def take_away(running):
        end = time.monotonic() + at
        while running.is_alive() and (time.monotonic() < end or not os.path.lexists(path)):
            time.sleep(0.001)
        # From its model on a run writes no more, nor convert from its last file on; scores stand in a file that the
        # predictor has open.
        written = [os.path.join(around.world, action.out or "", name) for name in (
            "model", "scores", "text_feed.prototxt")]
        is_over.extend(name for name in written if action.out and os.path.exists(name))
        around.case.history.append("removed: " + path)
        shutil.rmtree(path, ignore_errors=True)
        if os.path.lexists(path):
            try:
                os.remove(path)
            except OSError:
                pass
    around.during = take_away


def clock_steps(around):
    """The time of day jumps, forward and back, from one look at it to the next."""
    if around.case.clock is None:
        odd_times(around)
        return
    around.options["env"] = dict(os.environ, LD_PRELOAD=around.case.clock)


HOSTILITIES = (full_disk, full_disk, small_files, little_memory, little_memory, few_files, few_processes, small_stack,
               closed_streams, broken_pipe, full_error_stream, odd_input_stream, may_not, may_not, odd_output_place,
               odd_environment, odd_signals, odd_mask, odd_names, odd_names, odd_times, folder_is_gone,
               things_go_away, things_go_away, clock_steps)
