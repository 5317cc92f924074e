"""Four hosts as network namespaces of one machine, on which mpirun starts ranks, and what happens to hosts: a rank, mpirun or a
whole host is killed or vanishes, a link is cut for a while, the disk of the output folder is full. Then the run goes on, by
scripts/run_elastic or by hand, with other hosts. Where ULFM_PYTHON names an Open MPI 5, some runs have its mpirun: ranks that
are left go on by themselves.

What must hold: run.json counts every line once an epoch, every push was applied, a table has counted each line, ranks in step
write the bytes of one process that nothing disturbed; the end says what happened; nothing hangs, no process stays.
"""

import os
import shutil
import signal
import subprocess
import time
import zlib

import jobs
from case import Violation, content, difference, read
from signals import listing, until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
AGENT = os.path.join(ROOT, "tests", "campaign", "host_agent")
RUN_ELASTIC = os.path.join(ROOT, "scripts", "run_elastic")
NAMES = ("h1", "h2", "h3", "h4")

# Everything is within namespaces that end with their first process, and that with us, whose pipe it reads: nothing needs to
# be removed, and two cases never meet.
# Each host has the address of a container engine's bridge as well, the same on all, as hosts do.
SETUP = """set -e
mount -t tmpfs tmpfs /run
mkdir /run/netns
ip link set lo up
ip link add bridge0 type bridge
ip addr add 10.77.0.254/24 dev bridge0
ip link set bridge0 up
cp /etc/hosts /run/hosts
for i in 1 2 3 4; do
  ip netns add h$i
  ip link add v$i type veth peer name e0 netns h$i
  ip link set v$i master bridge0 up
  ip -n h$i link add containers0 type bridge
  ip -n h$i addr add 172.17.0.1/16 dev containers0
  ip -n h$i addr add 10.77.0.$i/24 dev e0
  for link in lo containers0 e0; do ip -n h$i link set $link up; done
  echo 10.77.0.$i h$i >>/run/hosts
done
mount --bind /run/hosts /etc/hosts
echo ready
exec cat >/dev/null
"""
NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def missing(options):
    """Why there are no hosts here; "" where there are."""
    for program in ("mpirun", "ip", "unshare", "nsenter"):
        if shutil.which(program) is None:
            return "there is no %s (openmpi-bin, iproute2, util-linux)" % program
    if not os.path.exists(os.path.join(options.bin, "..", "lib", "libmillrace_mpi.so")):
        return "Millrace was built without MPI (libopenmpi-dev)"
    if options.sanitized:
        return "sanitizers report what Open MPI does"
    tried = subprocess.run([*NAMESPACES, "sh", "-c", SETUP], stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    return "" if tried.returncode == 0 else "no namespaces can be made: " + tried.stderr.strip()


class Hosts:
    def __init__(self, case, open_mpi_5):
        self.case = case
        self.open_mpi_5 = open_mpi_5  # its folder, or ""
        self.down = case.path("down")
        os.mkdir(self.down)
        os.mkdir(case.path("tmp"))
        self.holder = subprocess.Popen([*NAMESPACES, "sh", "-c", SETUP], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        said = self.holder.stdout.readline()
        if said != "ready\n":
            raise Violation("the hosts cannot be made: " + said + self.holder.stdout.read())
        with open("/proc/%d/task/%d/children" % (self.holder.pid, self.holder.pid), encoding="ascii") as file:
            self.first = int(file.read())
        self.space = os.readlink("/proc/%d/ns/pid" % self.first)
        self.nets = {"net:[%d]" % os.stat(self.inner("/run/netns/" + name)).st_ino: name for name in NAMES}

    def end(self):
        self.holder.kill()
        self.holder.communicate()

    def inner(self, path):
        """A path of the hosts, as it is seen from outside."""
        return "/proc/%d/root%s" % (self.first, path)

    def enter(self, *words):
        return ("nsenter", "--target", str(self.first), "--net", "--mount", "--pid", "--wd=" + self.case.folder, *words)

    def call(self, *words):
        subprocess.run(self.enter(*words), check=True)

    def set_link(self, name, is_up):
        mark = os.path.join(self.down, name)
        if is_up:
            os.remove(mark)
        else:
            jobs.write_file(mark, "")
        self.call("ip", "link", "set", "v" + name[1:], "up" if is_up else "down")

    def all_up(self):
        for name in set(NAMES) - set(self.up()):
            self.set_link(name, True)

    def up(self):
        return [name for name in NAMES if not os.path.exists(os.path.join(self.down, name))]

    def start(self, head, *words):
        """Starts a command on a host."""
        environment = {key: value for key, value in os.environ.items() if "MCA_" not in key}
        environment.update(MILLRACE_HOSTS_DOWN=self.down, OMPI_MCA_plm_rsh_agent=AGENT, TMPDIR=self.case.path("tmp"),
                           OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        if self.open_mpi_5:
            environment.update(PATH=self.open_mpi_5 + "/bin:" + environment["PATH"], LD_LIBRARY_PATH=self.open_mpi_5 + "/lib",
                               PRTE_MCA_plm_ssh_agent=AGENT, PRTE_ALLOW_RUN_AS_ROOT="1", PRTE_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                               MILLRACE_MPI_WAIT_SECONDS="30")
        host = ("ip", "netns", "exec", head, "unshare", "--uts", "sh", "-c", "hostname %s; exec \"$@\"" % head, "sh")
        running = self.case.start(words[0], *words[1:], env=environment, wrap=self.enter(*host), codes=range(256))
        running.sent.append(signal.SIGKILL)  # nsenter ends as what it started does
        return running

    def processes(self):
        """{process: (host, words, rank)}, without the first one and those that have ended."""
        found = {}
        for name in os.listdir("/proc"):
            try:
                if not name.isdigit() or int(name) == self.first or os.readlink("/proc/%s/ns/pid" % name) != self.space:
                    continue
                words = read("/proc/%s/cmdline" % name).split("\0")
                host = self.nets.get(os.readlink("/proc/%s/ns/net" % name), "")
            except OSError:
                continue
            rank = [each[21:] for each in read("/proc/%s/environ" % name).split("\0")
                    if each.startswith("OMPI_COMM_WORLD_RANK=")]
            if words != [""]:
                found[int(name)] = (host, words, int(rank[0]) if rank else None)
        return found

    def expect_no_process(self, after, seconds):
        end = time.monotonic() + seconds
        while self.processes():
            if time.monotonic() > end:
                left = ["%s on %s" % (" ".join(words)[:200], host) for host, words, _ in self.processes().values()]
                raise Violation("processes are left %d s after %s: %s" % (seconds, after, "; ".join(left)))
            time.sleep(0.05)


class Job:
    """What ranks train, and what must come out."""

    def __init__(self, case):
        rng = case.rng
        self.case = case
        self.out = case.path("out")
        self.update = rng.choice(("ASYNC", "SSP", "GEO", "SYNC"))
        memory = rng.choice(("", "", "", "local", "global"))
        days = rng.random() < 0.4
        self.shuffles = memory == "global"
        self.lines, self.epochs = 131072, 1 if days else rng.choice((2, 4))
        self.files = data(case)
        self.counts = self.update in ("ASYNC", "SSP") and not self.shuffles and rng.random() < 0.7
        dist = {"ASYNC": "update: ASYNC", "SSP": "update: SSP staleness: %d" % rng.choice((0, 4)),
                "GEO": "update: GEO geo_steps: %d" % rng.choice((4, 16)),
                "SYNC": "update: SYNC micro_batches: %d" % rng.choice((4, 12))}[self.update]
        every = rng.choice((300, 1000)) // (8 if self.update == "SYNC" else 1)
        text = "dist { %s } checkpoint { every_steps: %d } output { tensorboard: false }\n" % (dist, every)
        text += passes_of(self.files) if days else "epochs: %d\n" % self.epochs
        if memory:
            text += "dataset { class_name: \"InMemoryDataset\" %s_shuffle: true }\n" % memory
        make = jobs.counting_job if self.counts else jobs.deep_job
        self.text = make([] if days else self.files, text, 64).replace("print_period: 7 ", "print_period: 100 ")
        self.path = case.write("job.prototxt", self.text)
        self.name = self.update + {"": "", "local": " in memory", "global": " behind a shuffle"}[memory] + (" by days" if days else "")

    def words(self):
        return (os.path.join(self.case.bin_dir, "trainer"), "--trainer_desc=" + self.path, "--output_dir=" + self.out)

    def check(self, hosts):
        report = jobs.report(hosts.inner(self.out))
        if report["examples"] != self.lines * self.epochs or report["interrupted"]:
            raise Violation("run.json says %d examples of %d" % (report["examples"], self.lines * self.epochs))
        dist = report.get("dist", {})
        if dist.get("pushes") != dist.get("pushes_applied"):
            raise Violation("%d pushes, of which %d were applied" % (dist["pushes"], dist["pushes_applied"]))
        for base, folders, files in os.walk(hosts.inner(self.out)):
            for name in folders + files:
                if "writing" in name:
                    raise Violation("the run is done, and left %s" % os.path.join(base, name))
        model = content(hosts.inner(self.out + "/model"))
        if not model:
            raise Violation("there is no model")
        if self.update == "SYNC":
            differs = difference(self.calm_model(), model)
            if differs:
                raise Violation("the model has other bytes than that of one undisturbed process: " + differs)
        if self.counts:
            self.check_every_line(hosts)

    def calm_model(self):
        folder = os.path.join(self.case.cache, "calm-%08x" % zlib.crc32(self.text.encode()))
        if not os.path.exists(folder + "/run.json"):
            self.case.succeed("trainer", "--trainer_desc=" + self.path, "--output_dir=" + folder)
        return content(folder + "/model")

    def check_every_line(self, hosts):
        wrong = 0
        model = shutil.copytree(hosts.inner(self.out + "/model"), self.case.path("model"))
        for file in self.files:
            done = self.case.succeed("predictor", "--model_dir=" + model, "--input=" + file, "--pipe_command=cat")
            times = [jobs.trained_times(float(score)) for score in done.out.split()]
            wrong += sum(n != self.epochs for n in times) + abs(len(times) - self.lines // len(self.files))
        if wrong:
            raise Violation("%d of %d lines were not trained %d times" % (wrong, self.lines, self.epochs))


def passes_of(files):
    """Days of three files, of less than ranks and steps have streams, and of two."""
    days = [files[first:first + 3] for first in range(0, len(files), 3)]
    return "incremental { %s}\n" % "".join("pass { name: \"d%d\" %s} " % (
        day, "".join("filelist: %s " % jobs.text_string(file) for file in names)) for day, names in enumerate(days))


def data(case):
    folder = os.path.join(case.cache, "hosts-data")
    if not os.path.exists(os.path.join(folder, "DONE")):
        jobs.write_log(folder, [16384] * 8)
        jobs.write_file(os.path.join(folder, "DONE"), "")
    return [os.path.join(folder, "part-%d" % i) for i in range(8)]


# What happens. Each returns words of which the end must have some, or None where the run must go on by itself.


def kill(hosts, which):
    """Kills the processes for which which(host, words, rank) holds; how many those were."""
    chosen = [pid for pid, about in hosts.processes().items() if which(*about)]
    for pid in chosen:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return len(chosen)


def is_rank(words):
    return os.path.basename(words[0]) == "trainer"


def a_rank_is_killed(hosts, _, rng):
    ranks = [rank for _, words, rank in hosts.processes().values() if is_rank(words)]
    chosen = rng.choice(sorted(ranks) or [0])
    kill(hosts, lambda _, words, rank: is_rank(words) and rank == chosen)
    return ("exited on signal 9", "rank %d on " % chosen)


def rank_0_is_killed(hosts, _, __):
    kill(hosts, lambda _, words, rank: is_rank(words) and rank == 0)
    return ("exited on signal 9", "rank 0 on ")


def mpirun_is_killed(hosts, _, __):
    kill(hosts, lambda _, words, __: os.path.basename(words[0]) == "mpirun")
    return ("mpirun was ended by signal 9", "")  # by hand nobody is left to say so


def a_host_is_killed(hosts, head, rng):
    name = rng.choice([name for name in hosts.up() if name != head] or [head])
    kill(hosts, lambda host, *_: host == name)
    # With Open MPI 5 it may be for the agent alone to say so.
    return ("daemons", "lost communication", "mpirun lost a host", "exited on signal 9", "Killed")


def the_head_is_killed(hosts, head, _):
    kill(hosts, lambda host, *_: host == head)
    return ("",)


def a_host_vanishes(hosts, head, rng):
    """Without a word to those that are connected with it: no connection is closed."""
    name = rng.choice([name for name in hosts.up() if name != head] or [head])
    hosts.set_link(name, False)
    kill(hosts, lambda host, *_: host == name)
    return ("daemons", "lost communication", "no answer of " + name, "")


def link_is_cut(seconds):
    def cut(hosts, _, rng):
        name = rng.choice(hosts.up())
        hosts.set_link(name, False)
        time.sleep(seconds)
        hosts.set_link(name, True)
        return None
    cut.__name__ = "a_link_is_cut_for_%d_s" % seconds
    return cut


FAULTS = (a_rank_is_killed, a_rank_is_killed, rank_0_is_killed, mpirun_is_killed, a_host_is_killed, the_head_is_killed,
          link_is_cut(5))
SLOW_FAULTS = (link_is_cut(25), a_host_vanishes)


# When. Each returns as soon as its moment has come, or the run has ended.


def starts(running):
    return read(running.err_path).count("training on ")


def in_training(case, running, _, __):
    until(running, lambda: starts(running) > 0, 60)
    end = time.monotonic() + case.rng.uniform(0, 2)
    until(running, lambda: time.monotonic() > end)


def at_the_begin(case, running, _, __):
    """While mpirun reaches the hosts, ranks find each other, or rows are shuffled."""
    end = time.monotonic() + case.rng.uniform(0.1, 1.5)
    until(running, lambda: time.monotonic() > end)


def in_the_shuffle(case, running, _, __):
    until(running, lambda: starts(running) > 0, 60)
    end = time.monotonic() + case.rng.uniform(0, 0.4)
    until(running, lambda: time.monotonic() > end)


def at_a_checkpoint(case, running, job, hosts):
    folder = hosts.inner(job.out + "/checkpoints")
    before = listing(folder)
    for _ in range(case.rng.randrange(1, 4)):
        until(running, lambda: listing(folder) - before, 60)  # pylint: disable=cell-var-from-loop
        before = listing(folder)


def at_the_end(case, running, job, hosts):
    """While the model is written, or ranks take leave."""
    until(running, lambda: any("model" in name for name in listing(hosts.inner(job.out))), 60)
    time.sleep(case.rng.choice((0, case.rng.uniform(0, 0.05))))


def run_case(case):
    job = Job(case)
    goes_on = case.rng.random() < 0.3
    python = os.environ.get("ULFM_PYTHON")
    hosts = Hosts(case, os.path.dirname(os.path.dirname(python)) if goes_on and python else "")
    try:
        outcome = disk_is_full(case, job, hosts) if case.rng.random() < 0.1 else disturbed(case, job, hosts)
        job.check(hosts)
        return outcome
    finally:
        hosts.end()


def launch(case, job, hosts, elastic, count):
    """Starts the run on the first `count` of the hosts that are up. (what runs, the host that it runs on)."""
    names = hosts.up()[:count]
    if elastic:
        return hosts.start(names[0], RUN_ELASTIC, "-H", ",".join(names), "--", *job.words()), names[0]
    if hosts.open_mpi_5:
        mpirun = [hosts.open_mpi_5 + "/bin/mpirun", "--with-ft", "ulfm", "--mca", "btl_tcp_if_include", "10.77.0.0/24",
                  "--prtemca", "prte_if_include", "10.77.0.0/24"]
    else:
        mpirun = [shutil.which("mpirun")]
        for setting in ("btl_tcp_if_include", "oob_tcp_if_include"):
            mpirun += ["--mca", setting, "10.77.0.0/24"]
    for setting, value in (("time", 20), ("intvl", 10), ("probes", 3)):
        mpirun += ["--prtemca" if hosts.open_mpi_5 else "--mca", "oob_tcp_keepalive_" + setting, str(value)]
    return hosts.start(names[0], *mpirun, "--host", ",".join(names), "--bind-to", "none", *job.words(), "--resume=auto"), names[0]


def disturbed(case, job, hosts):
    rng = case.rng
    count = rng.choice((2, 3, 4, 4))
    elastic = rng.random() < 0.5
    moments = (in_training, in_training, at_a_checkpoint, at_a_checkpoint, at_the_begin, at_the_end)
    moment = in_the_shuffle if job.shuffles and rng.random() < 0.4 else rng.choice(moments)
    fault = rng.choice(FAULTS if case.brief else FAULTS + SLOW_FAULTS)
    what = fault.__name__.replace("_", " ")
    case.tally["%s, %s" % (what, moment.__name__.replace("_", " "))] += 1
    running, head = launch(case, job, hosts, elastic, count)
    moment(case, running, job, hosts)
    was_alive, before = running.is_alive(), starts(running)
    at = time.monotonic()
    case.history.append("%s after %.3f s" % (what, at - running.started))
    words = fault(hosts, head, rng)
    if words is None and moment is at_the_begin:
        words = ("daemons", "no answer of", "mpirun lost a host")  # mpirun waits for no host that it has not reached yet
    if words is not None:
        words += ("MPI has not ",)
    if elastic and was_alive:
        until(running, lambda: starts(running) > before, case.hang_seconds)
        if starts(running) > before:
            note_seconds(case, what, "trains again", time.monotonic() - at)
    done = running.wait()
    if was_alive and not elastic:
        note_seconds(case, what, "ended", time.monotonic() - at)
    look_at_end(running, done, words, elastic and fault is not the_head_is_killed)
    if hosts.open_mpi_5 and " go on\n" in done.err:
        case.tally["%s: the others went on" % what] += 1
    if done.code == 0:
        hosts.all_up()  # what reaches hosts for mpirun outlives it where one vanished at the end
    hosts.expect_no_process("%s, %s" % (what, running.command()[-60:]), 75)
    # mpirun of Open MPI 5 ends with 0 when it loses a host.
    if done.code != 0 or (not elastic and "lost communication" in done.err):
        count = rng.choice((1, 2, 3, 4))
        if len(hosts.up()) < count:
            hosts.all_up()
        last, _ = launch(case, job, hosts, False, count)
        done = last.wait()
        if done.code != 0:
            last.fail("undisturbed, it ended with %d" % done.code, done)
        hosts.expect_no_process("the last run", 20)
    return "%s, by %s" % (job.name, ("run_elastic" if elastic else "hand") + (" with Open MPI 5" if hosts.open_mpi_5 else ""))


def note_seconds(case, what, then, seconds):
    case.history.append("%s: %s after %.1f s" % (what, then, seconds))
    bound = next((bound for bound in (1, 2, 5, 10, 20, 40, 60, 100) if seconds < bound), None)
    case.tally["%s: %s %s" % (what, then, "within %d s" % bound if bound else "later")] += 1


def look_at_end(running, done, words, must_end_well):
    if done.code == 3 and "MPI has not " in done.err and not must_end_well:
        return  # Open MPI 5 tells no rank of another that was lost while MPI began or ended
    if done.code in (2, 3, 4) or (done.code != 0 and (must_end_well or words is None)):
        running.fail("ended with %d" % done.code, done)
    if words is None and "restart 1" in done.err:
        running.fail("was started again, though nothing had ended", done)
    if words is not None and (done.code != 0 or "run_elastic: restart" in done.err) and not any(
            word in done.err for word in words):
        running.fail("does not say what happened: %s" % (words,), done)


def disk_is_full(case, job, hosts):
    """The output folder is on a disk that is too small, then is not."""
    os.mkdir(job.out)
    kib = case.rng.choice((8, 64, 200, 1000))
    hosts.call("mount", "-t", "tmpfs", "-o", "size=%dk" % kib, "tmpfs", job.out)
    case.tally["the disk is full"] += 1
    elastic = case.rng.random() < 0.5
    running, _ = launch(case, job, hosts, elastic, 3)
    done = running.wait()
    if done.code not in (0, 3) or (done.code == 3 and "No space left" not in done.err):
        running.fail("on a disk of %d KiB it ended with %d" % (kib, done.code), done)
    if "run_elastic: restart" in done.err:
        running.fail("was started again, though the disk is full", done)
    hosts.expect_no_process("a full disk", 20)
    hosts.call("mount", "-o", "remount,size=64m", job.out)
    last, _ = launch(case, job, hosts, elastic, 3)
    done = last.wait()
    if done.code != 0:
        last.fail("on a disk with room it ended with %d" % done.code, done)
    hosts.expect_no_process("the last run", 20)
    return "%s, a full disk" % job.name
