#!/usr/bin/env python3
"""Checks how sources in src/ read and write text.

    scripts/check_text.py [SRC]

Numbers and letters must not depend on the locale, because a Python process that imports the package can have a locale
that writes 0.5 as "0,5". C functions that read the locale are therefore errors. Replacements are in core/numbers.h
and core/lower_case.h.

Printed names and values can contain control characters for the terminal. Programs must print to `stderr`, which
core/terminal.h guards, or to standard output with PrintOut. Other output is an error, except in files that write data.
Comments are not checked.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

NUMBERS = "core/numbers.h reads and writes numbers, whatever the locale"
LETTERS = "core/lower_case.h has IsLetter, IsLetterOrDigit and LowerCase"
# (pattern, what to do, files that may)
REFUSED = [
    (r"\b(strto(f|d|ld)|sto(f|d|ld)|atof|v?f?sscanf|f?scanf)\s*\(", NUMBERS, ()),
    (r'"[^"\n]*(?<!%)(?:%%)*%[-+ #0]*[0-9*]*(\.[0-9*]+)?L?[aAeEfFgG](?![a-zA-Z0-9])', NUMBERS, ()),
    (r"\b(is(alpha|alnum|upper|lower|space|digit|xdigit|print|punct|cntrl|graph|blank)|to(lower|upper)|strn?casecmp|strcoll)\s*\(",
     LETTERS, ()),
    (r"\b(setlocale|localeconv|std::locale|imbue)\b", "no text depends on the locale", ()),
    (r"\b(std::cout|std::clog|(?:std::)?v?printf\s*\(|(?:std::)?(?:puts|putchar)\s*\(|write\s*\(\s*STDOUT_FILENO|(?:fputs|fputc|fwrite|fprintf)\s*\([^;]*\bstdout\b)",
     "PrintOut of core/terminal.h shows control characters of names and values as \\x1b",
     ("core/terminal.cc", "app/compare_jobs.cc", "app/inspect_main.cc")),
    (r"\bwrite\s*\(\s*STDERR_FILENO\b|\bUnguarded\s*\(|/dev/(tty|stderr|stdout)", "stderr is guarded by core/terminal.h, and its descriptor is not",
     ("core/terminal.cc", "core/terminal.h", "core/words.cc", "report/progress_line.cc", "app/command_line.cc",
      "core/stderr_tail.cc", "plugin/fault_report.cc")),
]


def without_comments(text):
    """The text with comments blanked, so that lines keep their numbers. A string that holds // is kept."""
    def blank(match):
        found = match.group(0)
        return found if found[0] in "\"'" else re.sub(r"[^\n]", " ", found)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', blank, text, flags=re.S)


def mistakes(src):
    """A line for each."""
    found = []
    for folder, _, names in sorted(os.walk(src)):
        for name in sorted(names):
            if not name.endswith((".h", ".cc", ".inc")):
                continue
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                text = without_comments(file.read())
            for pattern, advice, allowed in REFUSED:
                if os.path.relpath(path, src) in allowed:
                    continue
                for match in re.finditer(pattern, text):
                    found.append("%s:%d: %s: %s" % (path, text.count("\n", 0, match.start()) + 1, match.group(0).strip(), advice))
    return found


def main():
    src = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "src")
    found = mistakes(src)
    print("\n".join(found) if found else "texts are read and written in one way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
