#!/usr/bin/env python3
"""Pastes the output of scripts/demo and scripts/chroot_check into README.md, so its figures are never typed by hand.

    scripts/demo 2>&1 | tee demo.log;  scripts/paste_figures.py demo demo.log
    scripts/chroot_check | tee times.log;  scripts/paste_figures.py times times.log

A code block with lines of the file replaces the text between "<!-- NAME -->" and "<!-- end -->": the closing block of
the demo, or all lines of the times.
"""

import os
import re
import sys

README = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "README.md")


def closing_block(text, root):
    """The demo's lines from the trainer's closing block on, without this machine's paths."""
    lines = text.replace(root + "/", "").splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("trained: ")]
    if not starts:
        sys.exit("paste_figures.py: the demo's closing block is not in the file")
    return "\n".join(line for line in lines[starts[-1]:] if not line.startswith(("demo: ", "build: ", "real\t", "user\t", "sys\t")))


def paste(readme, name, block):
    """README's text with the block under the mark `name`."""
    pattern = re.compile(r"(<!-- %s -->\n).*?(<!-- end -->)" % name, re.S)
    if not pattern.search(readme):
        sys.exit("paste_figures.py: README.md has no <!-- %s -->" % name)
    indented = "".join(("    " + line).rstrip() + "\n" for line in block.strip().splitlines())
    return pattern.sub(lambda match: match[1] + "\n" + indented + "\n" + match[2], readme)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("demo", "times"):
        sys.exit(__doc__)
    with open(sys.argv[2], encoding="utf-8") as file:
        text = file.read()
    block = closing_block(text, os.path.dirname(README)) if sys.argv[1] == "demo" else text
    with open(README, encoding="utf-8") as file:
        readme = file.read()
    with open(README, "w", encoding="utf-8") as file:
        file.write(paste(readme, sys.argv[1], block))


if __name__ == "__main__":
    main()
