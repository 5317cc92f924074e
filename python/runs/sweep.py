"""`trainer --sweep`: runs the trainings of a plan, round by round, and compares them."""

import json
import math
import os

import jobs
from comparison import compare_runs
from console import Failure, print_out, say, write_file
from page import runs_page
from processes import FAILED, FINISHED, FINISHED_BEFORE, NOT_RUN, STOPPED, Job, Processes, StopOnSignal, Training, has_finished
from run_folder import read_run, score_of
from table_text import table_text


class Sweep:
    """A plan that was checked (src/app/sweep_jobs.h), and its results so far."""

    def __init__(self, plan, processes, output_dir, resumes, stop):
        self._metric = plan["metric"]
        self._better = plan["better"]
        self._keeps_best = plan["keeps_best"]
        self._factor = plan["factor"]
        self._names = [trial["name"] for trial in plan["trials"]]
        self._overrides = [trial["overrides"] for trial in plan["trials"]]
        self._jobs = [[Job(trial=i, **job) for job in trial["jobs"]] for i, trial in enumerate(plan["trials"])]
        self._rounds = plan["rounds"]
        self._processes = processes
        self._output_dir = output_dir
        self._resumes = resumes
        self._stop = stop
        self._outcomes = {}  # by name of the job
        self._decisions = {}  # lines of rounds.jsonl by epochs, then by name of the trial
        self._last_trials = []  # of the last round

    def run(self):
        """Runs all trainings."""
        trials = list(range(len(self._names)))
        if not self._rounds:
            self._last_trials = trials
            self._run_trials(trials, 0, True)
            return
        if self._resumes:
            self._read_decisions()
        for number, one in enumerate(self._rounds, 1):
            if not trials or self._stop.requested:
                return
            say(f"round {number} of {len(self._rounds)}: {len(trials)} trial{'' if len(trials) == 1 else 's'}, up to {one['epochs']} epochs\n")
            self._last_trials = trials
            is_last = number == len(self._rounds)
            if not is_last and self._is_decided(trials, one):
                say("  decided before\n")
                trials = self._chosen_before(trials, one)
                continue
            self._run_trials(trials, one["epochs"], number == 1)
            if is_last or self._stop.requested:
                return
            trials = self._choose(trials, one)

    def _run_trials(self, trials, epochs, is_first):
        trainings = [Training(job, epochs, self._resumes or not is_first) for trial in trials for job in self._jobs[trial]]
        for training, outcome in zip(trainings, self._processes.run(trainings)):
            self._outcomes[training.job.name] = outcome

    def _read_run(self, job):
        return read_run(self._processes.folder_of(job))

    def _has_ended(self, job):
        return self._outcomes.get(job.name) in (FINISHED, FINISHED_BEFORE)

    def _value(self, run):
        """The metric of the saved model: of the last evaluation, or of the best if the job keeps it."""
        values = [value for _, value in run.evaluations.get(self._metric, [])]
        if not values:
            return math.nan
        if not self._keeps_best:
            return values[-1]
        return max([values[-1]] + values, key=lambda value: score_of(self._better, value))

    def _score(self, trial):
        """The mean over the seeds of a trial; nan if one has no value."""
        total = 0.0
        for job in self._jobs[trial]:
            try:
                total += self._value(self._read_run(job)) if self._has_ended(job) else math.nan
            except Failure:
                return math.nan
        return total / len(self._jobs[trial])

    # What a trial was worth at the end of a round cannot be read any more once it has gone on.

    def _rounds_path(self):
        return self._output_dir + "/rounds.jsonl"

    def _read_decisions(self):
        try:
            with open(self._rounds_path(), encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            return
        types = {"epochs": int, "trial": str, "goes_on": bool, "metric": str, "factor": int, "job": str}
        for line in lines:
            try:
                decision = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(decision, dict) and all(type(decision.get(key)) is kind for key, kind in types.items()):
                self._decisions.setdefault(decision["epochs"], {})[decision["trial"]] = decision

    def _decision(self, trial, one):
        """A decision without its result."""
        return {"metric": self._metric, "factor": self._factor, "job": one["fingerprints"][trial]}

    def _is_decided(self, trials, one):
        """Whether an earlier run of the sweep has chosen among the same trials, of the same jobs, by the same rule."""
        known = self._decisions.get(one["epochs"], {})
        return len(known) == len(trials) and all(
            self._decision(trial, one).items() <= known.get(self._names[trial], {}).items() for trial in trials)

    def _chosen_before(self, trials, one):
        """The trials that went on. A folder that was removed, or has another run by now, is not shown."""
        decisions = self._decisions[one["epochs"]]
        of_round = [Training(job, one["epochs"], True) for trial in trials for job in self._jobs[trial]]
        finished = has_finished(self._processes.program, self._processes.folder_of, of_round)
        for training, is_finished in zip(of_round, finished):
            self._outcomes.pop(training.job.name, None)
            if not isinstance(decisions[self._names[training.job.trial]].get("value"), (int, float)):
                self._outcomes[training.job.name] = FAILED
            elif is_finished:
                self._outcomes[training.job.name] = FINISHED_BEFORE
        return [trial for trial in trials if decisions[self._names[trial]]["goes_on"]]

    def _choose(self, trials, one):
        """The trials that go on, one in `factor` and at least one."""
        values = {trial: self._score(trial) for trial in trials}
        ranking = sorted((trial for trial in trials if not math.isnan(values[trial])), key=lambda trial: -score_of(self._better, values[trial]))
        chosen = sorted(ranking[:max(1, len(trials) // self._factor)])
        self._decisions[one["epochs"]] = {
            self._names[trial]: {"epochs": one["epochs"], "trial": self._names[trial],
                                 "value": values[trial] if math.isfinite(values[trial]) else None, "goes_on": trial in chosen,
                                 **self._decision(trial, one)} for trial in trials}
        lines = [decision for epochs in sorted(self._decisions) for _, decision in sorted(self._decisions[epochs].items())]
        write_file(self._rounds_path(), "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines))
        return chosen

    def report(self):
        """Prints the table of all that ended, and writes the page."""
        shown = []
        for job in (job for of_trial in self._jobs for job in of_trial if self._has_ended(job)):
            try:
                run = self._read_run(job)
            except Failure as failure:
                say(f"warning: {failure.message}\n")
                continue
            run.name = job.name
            shown.append((run, job.trial))
        if not shown:
            return
        runs = [run for run, _ in shown]
        is_measured = any(self._metric in run.evaluations and self._metric in run.better for run in runs)
        fields = jobs.compare_runs(self._processes.program, runs)
        order_by = self._metric if is_measured else ""
        try:
            # A training that watches for its best model has saved that one.
            table = compare_runs(runs, fields, order_by + " best" if order_by and self._keeps_best else order_by)
        except Failure:
            table = compare_runs(runs, fields, order_by)
        print_out(table_text(table))
        page = self._output_dir + "/runs.html"
        write_file(page, runs_page(runs, table))
        # A trial that a halving dropped can look better after few epochs.
        best = next((shown[row.runs[0]][1] for row in table.rows if shown[row.runs[0]][1] in self._last_trials), None)
        if is_measured and len(runs) > 1 and best is not None:
            say(f"best by {self._metric}:" + "".join(f" --set '{one}'" for one in self._overrides[best]) + "\n")
        say(f"the page of all is {page}\n")

    def end(self):
        """Fails after a stop, or with the names of failed trainings."""
        outcomes = self._outcomes.values()
        if self._stop.requested or STOPPED in outcomes or NOT_RUN in outcomes:
            say("go on with --resume=auto\n")
            raise Failure("cancelled", "interrupted")
        all_jobs = [job for of_trial in self._jobs for job in of_trial]
        failed = [job.name for job in all_jobs if self._outcomes.get(job.name) == FAILED]
        if failed:
            names = " and ".join(failed[:10]) + (" and others" if len(failed) > 10 else "")
            advice = "the rounds were decided without them, and --resume=never runs all again" if self._rounds else "--resume=auto runs them again"
            raise Failure("input/output error", f"{len(failed)} of {len(all_jobs)} trainings failed: {names}. log.txt in the folder of each "
                                                f"says why; {advice}")


def run_sweep(program, plan_fd, resume, output_dir, *flags):
    """Runs the plan in the file `plan_fd`; the flags are those of all trainings. The failures, the most important first."""
    stop = StopOnSignal()
    with os.fdopen(int(plan_fd), encoding="utf-8") as file:
        plan = json.load(file)
    processes = Processes(program, flags, output_dir, plan["at_once"], stop)
    sweep = Sweep(plan, processes, output_dir, resume == "auto", stop)
    if resume == "never" and os.path.exists(output_dir + "/rounds.jsonl"):
        os.unlink(output_dir + "/rounds.jsonl")
    failures = {}
    for step in ("run", "report", "end"):
        try:
            getattr(sweep, step)()
        except Failure as failure:
            failures[step] = failure
    return [failures[step] for step in ("report", "run", "end") if step in failures]
