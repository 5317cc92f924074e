#!/usr/bin/env python3
"""scripts/run_elastic and configs/cluster/slurm.sh: when a job is started again, on which hosts, and what it ends with.

    cluster_scripts_test.py [BIN]

With BIN, the folder of a trainer, a job of two ranks is also run by the real mpirun, and a rank and mpirun are killed.
"""

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "campaign"))
import jobs  # pylint: disable=wrong-import-position

SCRIPT = os.path.join(ROOT, "scripts", "run_elastic")
BIN = sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else None

# Answers to --version, notes how it was called, and does what the next line of `plan` says.
MPIRUN = """#!/bin/bash
if [[ $1 == --version ]]; then echo "mpirun (Open MPI) 4.1.4"; exit 0; fi
echo "$*" >>calls
env | grep -E 'MCA|ALLOW' | sort >environment
next=$(head -n 1 plan)
sed -i 1d plan
eval "$next"
"""
# Hosts answer whose names are in the file `up`.
AGENT = "#!/bin/bash\necho \"$*\" >>asked\ngrep -qx \"$1\" up && exec \"${@:2}\"\n"
# Pauses of seconds are noted, not taken.
SLEEP = "#!/bin/sh\ncase $1 in 0.*) exec /bin/sleep \"$1\" ;; *) echo \"$1\" >>slept ;; esac\n"
# What a checkpoint says of the examples in it.
TRAINS = "mkdir -p out/checkpoints/step-%012d; echo 'examples: %d' >out/checkpoints/step-%012d/MANIFEST; "


def trains(examples):
    return TRAINS % (examples, examples, examples)


class RunElastic(unittest.TestCase):
    """With an mpirun and hosts that do as they are told."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="millrace_elastic_")
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in (("mpirun", MPIRUN), ("agent", AGENT), ("trainer", "#!/bin/sh\n"), ("ip", "#!/bin/sh\n"),
                           ("sleep", SLEEP)):
            self.write(name, text)
            os.chmod(self.path(name), stat.S_IRWXU)
        self.write("up", "a\nb\nc\n")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def start(self, *plan, hosts="a:2,b:2,c", flags=(), job=("trainer", "--output_dir=out")):
        self.write("plan", "".join(line + "\n" for line in plan))
        environment = {name: value for name, value in os.environ.items() if "MCA" not in name}
        environment.update(PATH=self.folder + ":" + os.environ["PATH"], OMPI_MCA_plm_rsh_agent=self.path("agent"))
        return subprocess.Popen([SCRIPT, "-H", hosts, *flags, "--", *job], cwd=self.folder, env=environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def run_plan(self, *plan, **options):
        """(exit code, what the script itself said, the calls of mpirun)."""
        process = self.start(*plan, **options)
        _, err = process.communicate(timeout=60)
        said = [line[len("run_elastic: "):] for line in err.splitlines() if line.startswith("run_elastic: ")]
        calls = self.read("calls").splitlines() if os.path.exists(self.path("calls")) else []
        return process.returncode, said, calls

    def test_a_run_that_ends_well_is_called_once(self):
        code, said, calls = self.run_plan("exit 0")
        self.assertEqual((code, said), (0, []))
        self.assertEqual(calls, ["--host a:2,b:2,c -n 5 --bind-to none trainer --output_dir=out --resume=auto"])

    def test_what_is_the_jobs_own_failure_is_its_end(self):
        for failure in (2, 3, 4, 141):
            code, said, calls = self.run_plan(trains(100 * failure) + "exit %d" % failure)
            self.assertEqual((code, said), (failure, []))
        self.assertEqual(len(calls), 4)

    def test_a_rank_that_was_killed_is_named_and_the_run_goes_on(self):
        words = "echo 'mpirun noticed that process rank 2 with PID 57 on node b exited on signal 9 (Killed).' >&2; "
        code, said, calls = self.run_plan(trains(640) + words + "exit 137", "exit 0")
        self.assertEqual(code, 0)
        self.assertEqual(said, ["restart 1: rank 2 on b was ended by signal 9; 3 of 3 hosts answer, 640 examples are trained"])
        self.assertEqual(len(calls), 2)

    def test_words_that_open_mpi_5_breaks_are_read(self):
        words = "printf 'prterun noticed that process rank 1 with PID 22804 on node b exited on\\nsignal 9 (Killed).\\n' >&2; "
        _, said, _ = self.run_plan(words + "exit 137", "exit 0")
        self.assertEqual(said, ["restart 1: rank 1 on b was ended by signal 9; 3 of 3 hosts answer, 0 examples are trained"])

    def test_a_lost_host_with_which_open_mpi_5_ends_as_if_all_were_done_is_no_end(self):
        words = "echo 'PRTE has lost communication with a remote daemon.' >&2; "
        code, said, calls = self.run_plan(trains(64) + words + "exit 0", "exit 0")
        self.assertEqual((code, len(calls)), (0, 2))
        self.assertEqual(said, ["restart 1: mpirun lost a host; 3 of 3 hosts answer, 64 examples are trained"])
        code, said, _ = self.run_plan(words + "exit 0", words + "exit 0", words + "exit 0", flags=("--max_restarts", "1"))
        self.assertEqual(code, 3, said)

    def test_a_host_that_is_gone_is_left_out_and_comes_back(self):
        code, said, calls = self.run_plan(trains(64) + "echo a >up; echo c >>up; exit 9",
                                          trains(128) + "echo b >>up; exit 1", "exit 0")
        self.assertEqual(code, 0)
        self.assertEqual(said, ["restart 1: no answer of b; 2 of 3 hosts answer, 64 examples are trained",
                                "restart 2: mpirun ended with 1; 3 of 3 hosts answer, 128 examples are trained"])
        self.assertEqual([re.sub(" --bind.*", "", call) for call in calls],
                         ["--host a:2,b:2,c -n 5", "--host a:2,c -n 3", "--host a:2,b:2,c -n 5"])

    def test_it_gives_up_where_nothing_more_is_trained(self):
        code, said, calls = self.run_plan(trains(64) + "exit 1", "exit 1", "exit 1", "exit 7", flags=("--max_restarts", "2"))
        self.assertEqual(code, 7)
        self.assertEqual(len(calls), 4)
        self.assertEqual(self.read("slept").split(), ["20"])
        self.assertEqual(said[-1], "mpirun ended with 7; 3 of 3 hosts answer, 64 examples are trained; gives up after 2 "
                                   "restarts in a row that trained nothing more")

    def test_progress_is_counted_anew_after_each_restart(self):
        plan = [trains(64 * i) + "exit 1" for i in range(1, 6)]
        code, said, _ = self.run_plan(*plan, "exit 0", flags=("--max_restarts=1",))
        self.assertEqual((code, len(said)), (0, 5))

    def test_it_waits_for_a_host_where_none_answers(self):
        self.write("up", "")
        code, said, calls = self.run_plan(flags=("--max_restarts=1",))
        self.assertEqual((code, calls), (3, []))
        self.assertEqual(self.read("slept").split(), ["10"])
        self.assertEqual(said, ["no answer of a b c",
                                "restart 1: no answer of a,b,c; 0 of 3 hosts answer, 0 examples are trained",
                                "no answer of a,b,c; 0 of 3 hosts answer, 0 examples are trained; gives up after 1 restarts "
                                "in a row that trained nothing more"])

    def test_a_rank_that_others_miss_is_no_failure_of_the_job(self):
        for words in ("trainer: unavailable: rank 1 of 4 has ended before the others",
                      "trainer: unavailable: MPI has not begun within 120 s: a rank was lost",
                      "E1128 13:16:11 22142 mpi_communicator.cc:440] MPI has not ended within 120 s: a rank was lost"):
            code, said, _ = self.run_plan("echo '%s' >&2; exit 3" % words, "exit 0")
            self.assertEqual((code, len(said)), (0, 1))

    def test_a_rank_that_was_asked_to_stop_is_started_again(self):
        code, said, _ = self.run_plan(trains(64) + "exit 130", "exit 0")
        self.assertEqual(code, 0)
        self.assertIn("a rank was asked to stop", said[0])

    def test_it_waits_until_ranks_without_mpirun_have_left_the_folder(self):
        code, _, _ = self.run_plan(trains(64) + "(flock 9; /bin/sleep 1; touch left) 9<out & kill -9 $$", "test -e left")
        self.assertEqual(code, 0)

    def test_a_stop_reaches_all_ranks_once_they_are_there_and_is_the_end(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.start("trap 'echo > stopped; exit 130' USR1; echo >ready; while :; do sleep 0.1; done")
            self.wait_for("ready")
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=20), 130)
            self.assertTrue(os.path.exists(self.path("stopped")))
            process.stderr.close()
            os.remove(self.path("ready"))
        self.assertEqual(len(self.read("calls").splitlines()), 3)

    def test_a_second_stop_does_not_wait_for_a_checkpoint(self):
        process = self.start("trap : USR1; trap 'exit 1' TERM; echo >ready; while :; do sleep 0.1; done")
        self.wait_for("ready")
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20), 130)
        process.stderr.close()

    def wait_for(self, name):
        end = time.monotonic() + 20
        while not os.path.exists(self.path(name)):
            self.assertLess(time.monotonic(), end, name)
            time.sleep(0.01)

    def test_hosts_are_asked_once_each_and_this_one_never(self):
        self.run_plan("exit 0", hosts="localhost:2,b")
        self.assertEqual(self.read("asked"), "b true\n")

    def test_the_network_of_the_hosts_is_given_to_open_mpi_unless_it_is_set(self):
        self.write("ip", "#!/bin/bash\nif [[ $* == *route* ]]; then echo \"${@: -1} dev e0 src 10.9.8.7 uid 0 \\\\    cache\"\n"
                   "else echo '2: e0    inet 10.9.8.7/24 brd 10.9.8.255 scope global e0'; fi\n")
        self.write("getent", "#!/bin/sh\necho 10.9.8.1 STREAM $2\n")
        os.chmod(self.path("getent"), stat.S_IRWXU)
        self.run_plan("exit 0")
        self.assertIn("OMPI_MCA_btl_tcp_if_include=10.9.8.7/24\n", self.read("environment"))
        self.write("ip", "#!/bin/bash\nif [[ $* == *route* ]]; then echo \"${@: -1} via 10.1.1.1 dev e0 src 10.9.8.7 uid 0\"; fi\n")
        self.run_plan("exit 0")
        self.assertNotIn("btl_tcp_if_include", self.read("environment"))

    def test_mistakes_of_the_call_are_told_by_name(self):
        for arguments, words in (([], "-H is missing"), (["-H", "a:x", "--", "trainer"], "\"a:x\" is not HOST"),
                                 (["-H", "a"], "command is missing"), (["--hosts", "a"], "unknown flag: --hosts"),
                                 (["-H", "a", "--max_restarts", "many", "--", "trainer"], "not \"many\""),
                                 (["-H", "a", "--", "trainer"], "--output_dir is missing"),
                                 (["-H", "a", "--", "trainer", "--output_dir=o", "--resume=never"], "leave out --resume=never"),
                                 (["-H", "a", "--", "no_such_program", "--output_dir=o"], "no program \"no_such_program\"")):
            environment = dict(os.environ, PATH=self.folder + ":" + os.environ["PATH"])
            done = subprocess.run([SCRIPT, *arguments], env=environment, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(words, done.stderr)


class Slurm(unittest.TestCase):
    """configs/cluster/slurm.sh, with an srun that ends as it is told."""

    def run_script(self, code, restarts=None):
        """(exit code, what srun and scontrol were called with)."""
        with tempfile.TemporaryDirectory() as folder:
            for name, end in (("srun", code), ("scontrol", 0)):
                path = jobs.write_file(os.path.join(folder, name), "#!/bin/sh\necho %s \"$@\" >>%s/calls\nexit %d\n" % (
                    name, folder, end))
                os.chmod(path, stat.S_IRWXU)
            environment = dict(os.environ, PATH=folder + ":" + os.environ["PATH"], SLURM_JOB_ID="41")
            if restarts is not None:
                environment["SLURM_RESTART_COUNT"] = str(restarts)
            script = os.path.join(ROOT, "configs", "cluster", "slurm.sh")
            done = subprocess.run([script, "--trainer_desc=a job", "--output_dir=o"], env=environment,
                                  stderr=subprocess.DEVNULL, check=False)
            with open(os.path.join(folder, "calls"), encoding="utf-8") as file:
                return done.returncode, file.read().splitlines()

    def test_a_run_is_ranks_of_srun_that_go_on(self):
        code, calls = self.run_script(0)
        self.assertEqual(code, 0)
        self.assertEqual(calls, ["srun --mpi=pmix --kill-on-bad-exit=1 --cpu-bind=none trainer --trainer_desc=a job "
                                 "--output_dir=o --resume=auto"])

    def test_a_lost_rank_and_the_end_of_the_time_queue_the_job_again(self):
        for failure in (137, 130, 1):
            self.assertEqual(self.run_script(failure)[1][1:], ["scontrol requeue 41"])

    def test_the_jobs_own_failures_and_too_many_restarts_do_not(self):
        for failure in (2, 3, 4):
            self.assertEqual((self.run_script(failure)[0], len(self.run_script(failure)[1])), (failure, 1))
        self.assertEqual(self.run_script(137, 19)[1][1:], ["scontrol requeue 41"])
        code, calls = self.run_script(137, 20)
        self.assertEqual((code, len(calls)), (137, 1))


@unittest.skipUnless(BIN and shutil.which("mpirun"), "no trainer was named, or there is no mpirun (openmpi-bin)")
class RunElasticOnThisHost(unittest.TestCase):
    """With Open MPI."""

    def setUp(self):
        if not os.path.exists(os.path.join(BIN, "..", "lib", "libmillrace_mpi.so")):
            self.skipTest("built without MPI (libopenmpi-dev)")
        self.folder = tempfile.mkdtemp(prefix="millrace_elastic_")
        self.addCleanup(shutil.rmtree, self.folder)
        self.files = jobs.write_log(os.path.join(self.folder, "data"), [500] * 4)
        self.out = os.path.join(self.folder, "out")

    def start(self, extra):
        job = jobs.write_file(os.path.join(self.folder, "job.prototxt"), jobs.deep_job(self.files, extra))
        return subprocess.Popen([SCRIPT, "-H", "localhost:2", "--", os.path.join(BIN, "trainer"), "--trainer_desc=" + job,
                                 "--output_dir=" + self.out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                start_new_session=True, env=dict(os.environ, TMPDIR=self.folder))  # a killed mpirun leaves files

    def processes(self, program):
        """Those of this job whose command begins so."""
        found = []
        for name in os.listdir("/proc"):
            try:
                with open("/proc/%s/cmdline" % name, encoding="utf-8") as file:
                    words = file.read().split("\0")
            except OSError:
                continue
            if os.path.basename(words[0]) == program and "--output_dir=" + self.out in words:
                found.append(int(name))
        return sorted(found)

    def kill_one(self, program, checkpoints):
        """Once there are more checkpoints than `checkpoints`; returns the newest."""
        end = time.monotonic() + 120
        newest = checkpoints
        while newest <= checkpoints or not self.processes(program):
            self.assertLess(time.monotonic(), end, "no checkpoint came")
            time.sleep(0.01)
            folder = os.path.join(self.out, "checkpoints")
            steps = [int(name[5:]) for name in os.listdir(folder) if name.startswith("step-")] if os.path.isdir(folder) else []
            newest = max(steps, default=0)
        os.kill(self.processes(program)[-1], signal.SIGKILL)
        return newest

    def test_a_killed_rank_and_a_killed_mpirun_cost_no_line(self):
        process = self.start("epochs: 200 checkpoint { every_steps: 50 }")
        newest = self.kill_one("trainer", 0)
        self.kill_one("mpirun", newest + 1000)
        _, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(err.count("\nrun_elastic: restart"), 2, err)
        self.assertRegex(err, r"restart 1: rank \d on \S+ was ended by signal 9; 1 of 1 hosts answer, [1-9]\d* examples are trained")
        self.assertRegex(err, r"restart 2: mpirun was ended by signal 9; 1 of 1")
        self.assertEqual(jobs.report(self.out)["examples"], 2000 * 200)
        self.assertEqual(self.processes("trainer"), [])

    def test_a_bad_line_is_told_once_with_the_jobs_code(self):
        with open(self.files[1], "a", encoding="utf-8") as file:
            file.write("1 x\n")
        process = self.start("")
        _, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 3, err)
        self.assertEqual(err.count("part-1:501:3"), 1, err)
        self.assertNotIn("run_elastic: ", err)

    def test_a_stop_leaves_a_checkpoint(self):
        process = self.start("epochs: 1000000 checkpoint { every_steps: 1000000 }")
        end = time.monotonic() + 120
        while not os.path.exists(os.path.join(self.out, "metrics.jsonl")):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("go on       with --resume=auto", err)
        self.assertEqual(self.processes("trainer"), [])


if __name__ == "__main__":
    unittest.main()
