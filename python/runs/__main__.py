"""What `inspect runs` and `trainer --sweep` become: python3 FOLDER PROGRAM runs|sweep ... (src/app/runs_script.h)."""

import sys


def _lacks(program, what):
    """Ends the process. This file compiles with every Python 3."""
    sys.stderr.write("%s: unavailable: sweeps and `inspect runs` need Python 3.9 or later with its standard library, and %s %s; install "
                     "the package python3, or set MILLRACE_PYTHON to another interpreter\n" % (program, sys.executable, what))
    sys.exit(3)


def main(path, command, *arguments):
    """The exit code."""
    program = path.rpartition("/")[2]
    if sys.version_info < (3, 9):
        _lacks(program, "is Python %d.%d" % sys.version_info[:2])
    try:
        import console
        if command == "runs":
            from listing import list_runs as run
        else:
            from sweep import run_sweep as run
    except ImportError as error:
        _lacks(program, "lacks a part of it (%s)" % error)
    try:
        failures = run(path, *arguments)
    except console.Failure as failure:
        failures = [failure]
    except OSError as error:
        failures = [console.Failure("input/output error", str(error))]
    return console.end(program, failures)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
