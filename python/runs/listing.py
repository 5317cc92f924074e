"""`inspect runs`: prints the table of runs and writes their page."""

import contextlib
import os

import jobs
from comparison import compare_runs
from console import Failure, harmless, let_signals_end_this, print_out, say, write_file
from page import runs_page
from run_folder import read_run
from table_text import table_text


def _is_run(folder):
    return os.path.exists(folder + "/run.json") or os.path.exists(folder + "/metrics.jsonl")


def _runs_in(named):
    """The runs in a folder that is not a run itself, such as the output of a sweep, else the folder. A plain file, which a
    shell pattern can include, is skipped."""
    if os.path.isfile(named):
        say(f'note: "{harmless(named)}" is a file, and left out\n')
        return []
    names = []
    if not _is_run(named):
        with contextlib.suppress(OSError):
            names = sorted(os.listdir(named))
    paths = [os.path.join(named, name) for name in names]
    return [path for path in paths if os.path.isdir(path) and _is_run(path)] or [named]


def _take_common_folder(runs):
    """Removes the folder that all runs share from their names, and returns it."""
    if len(runs) < 2:
        return ""
    common = runs[0].name[:runs[0].name.rfind("/") + 1]
    while not all(run.name.startswith(common) for run in runs):
        common = common[:common.rfind("/", 0, -1) + 1]
    for run in runs:
        run.name = run.name[len(common):]
    return common


def list_runs(program, page_path, order_by, *named):
    """Prints the table on standard output and notes on standard error. Folders that cannot be read are reported after the
    table, as the failures that are returned."""
    let_signals_end_this()
    if page_path and not page_path.endswith(".html"):
        raise Failure("invalid configuration", f"--html names the page to write, which ends in .html: {page_path}")
    folders = [folder for one in named for folder in _runs_in(one)]
    if not folders:
        raise Failure("invalid configuration", "which runs? Each is the --output_dir of a training, a folder")
    runs = []
    failures = []
    for folder in folders:
        try:
            runs.append(read_run(folder))
        except Failure as failure:
            failures.append(failure)
    text = page = ""
    common = _take_common_folder(runs)
    if runs:
        table = compare_runs(runs, jobs.compare_runs(program, runs), order_by)
        text = table_text(table) + (f"  the runs are in {harmless(common)}\n" if common else "")
        page = runs_page(runs, table) if page_path else ""
    for run in runs:
        for note in run.notes:
            say(f"note: {harmless(note)}\n")
    print_out(text)
    if page:
        write_file(page_path, page)
        say(f"the page is {harmless(page_path)}\n")
    if len(failures) > 1:
        return [Failure(failures[0].kind, f"{len(failures)} of {len(folders)} folders cannot be read:" +
                        "".join("\n  " + failure.message for failure in failures))]
    return failures
