#!/usr/bin/env python3
"""Evaluates a run of ctest and the retry of its failures.

    scripts/judge_tests.py FIRST.xml                 exits with 0 if all tests passed, 1 if some failed (a retry can show
                                                     that they are unsteady), 2 if a sanitizer reported an error
    scripts/judge_tests.py FIRST.xml SECOND.xml      SECOND.xml is a retry of the failures, one at a time: exits with 0 if
                                                     all of them passed and they are fewer than UNSTEADY_LIMIT, else 1

`ctest --output-junit` writes the files. The script prints counts, failures with the end of their output, the names of
unsteady tests, and one line per reason for skipped tests, with the way to run them.
"""

import collections
import re
import sys
import xml.etree.ElementTree

UNSTEADY_LIMIT = 3
SHOWN_LINES = 60
FINDING = re.compile(
    r"(ERROR: (Address|Leak|Memory)Sanitizer|WARNING: ThreadSanitizer: |: runtime error: |SUMMARY: \w+Sanitizer)")
# What a skipped test needs, by words of its reason: the way to run it.
WAYS = [("paddle", "scripts/test --all"), ("onnx", "scripts/test --all"), ("extension module", "scripts/test --all"),
        ("shared", "MILLRACE_SHARED=FOLDER scripts/test"), ("sanitizer", "scripts/test"),
        ("fewer rows", "scripts/test"), ("millrace_dump_dir", "MILLRACE_DUMP_DIR=FOLDER scripts/test -k LossCurveDumpTest"),
        ("with jpeg", "cmake --preset release -DMILLRACE_JPEG=OFF && scripts/test -k 'Jpeg|Picture'"),
        ("with libjpeg", "cmake --preset release -DMILLRACE_JPEG=OFF && scripts/test -k 'Jpeg|Picture'"),
        ("mount", "sudo scripts/test")]


def read(path):
    """{name: (state, output)}; the state is passed, failed or skipped."""
    results = {}
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        state = {"run": "passed", "fail": "failed", "notrun": "skipped", "disabled": "skipped"}[case.get("status")]
        output = case.findtext("system-out") or ""
        skipped = case.find("skipped")
        if skipped is not None:
            state = "skipped"
        results[case.get("name")] = (state, output)
    return results


def skip_reason(output):
    """The sentence that a skipped test printed: googletest's message, or the last line."""
    lines = [line.strip().removeprefix("skipped: ") for line in output.splitlines()]
    for i, line in enumerate(lines):
        if line.endswith(": Skipped") and i + 1 < len(lines):
            return lines[i + 1]
    spoken = [line for line in lines if line and not line.startswith("[")]
    return spoken[-1] if spoken else "it gives no reason"


def way_to_run(reason):
    return next((way for word, way in WAYS if word in reason.lower()), "")


def skipped_line(results):
    """One line: how many were skipped, why, and the command that runs them."""
    reasons = collections.Counter(skip_reason(output) for state, output in results.values() if state == "skipped")
    if not reasons:
        return "nothing skipped"
    parts = []
    for reason, count in reasons.most_common():
        way = way_to_run(reason)
        parts.append(f"{count} ({reason}{'; run: ' + way if way else ''})")
    return "skipped: " + ", ".join(parts)


def count_line(results):
    states = collections.Counter(state for state, _ in results.values())
    return f"{states['passed']} passed, {states['failed']} failed, {states['skipped']} skipped"


def failures_of(results):
    return {name: output for name, (state, output) in results.items() if state == "failed"}


def show_failure(name, output):
    print(f"--- {name}")
    print("\n".join(output.rstrip().splitlines()[-SHOWN_LINES:]))


def judge_first(results):
    failures = failures_of(results)
    # A test may pass whose child was found wanting.
    findings = [name for name, (_, output) in results.items() if FINDING.search(output)]
    for name in findings or failures:
        show_failure(name, results[name][1])
    if findings:
        print(f"a sanitizer found something in: {', '.join(findings)}")
    else:
        print(skipped_line(results))
    print(count_line(results))
    return 2 if findings else 1 if failures else 0


def judge_second(first, second):
    unsteady = []
    failed = []
    for name in failures_of(first):
        state, output = second.get(name, ("failed", "it was not run again"))
        if state == "passed" and not FINDING.search(output):
            unsteady.append(name)
        else:
            failed.append(name)
            show_failure(name, output)
    if unsteady:
        print(f"unsteady (failed among others, passed alone): {', '.join(unsteady)}")
    if failed:
        print(f"failed twice: {', '.join(failed)}")
    elif len(unsteady) >= UNSTEADY_LIMIT:
        print(f"{len(unsteady)} unsteady tests are too many: {UNSTEADY_LIMIT} fail the run")
    print(f"{len(unsteady)} passed, {len(failed)} failed")
    return 1 if failed or len(unsteady) >= UNSTEADY_LIMIT else 0


def main(arguments):
    if not 1 <= len(arguments) <= 2:
        sys.exit(__doc__)
    first = read(arguments[0])
    if not first:
        print("no test ran")
        return 1
    return judge_first(first) if len(arguments) == 1 else judge_second(first, read(arguments[1]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
