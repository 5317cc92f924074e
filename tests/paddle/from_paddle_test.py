"""Runs docs/from_paddle.md as a reader would: its script in Paddle, its commands, in a folder of their own.

    from_paddle_test.py BIN_DIR       PADDLE_PYTHON names a Python with Paddle; exit code 77: there is none
"""

import os
import re
import shutil
import sys
import tempfile

import support


def blocks(page, language):
    return re.findall(r"^```%s\n(.*?)^```" % language, page, re.MULTILINE | re.DOTALL)


def main():
    (bin_dir,) = sys.argv[1:]
    python = support.peer("PADDLE_PYTHON", "paddle")
    page = support.read(support.ROOT + "/docs/from_paddle.md")
    scripts, commands = blocks(page, "python"), blocks(page, "sh")
    if len(scripts) != 1 or len(commands) != 3:
        support.fail("the page has %d scripts and %d blocks of commands" % (len(scripts), len(commands)))
    with tempfile.TemporaryDirectory() as folder:
        support.write(folder + "/train.py", scripts[0])
        shutil.copy(support.ROOT + "/scripts/export_from_paddle.py", folder)
        path = "%s:%s:%s" % (folder, bin_dir, os.environ["PATH"])
        # Not a link: the interpreter of a virtual environment finds it by its own place.
        support.write(folder + "/python3", '#!/bin/sh\nexec "%s" "$@"\n' % python)
        os.chmod(folder + "/python3", 0o755)
        for block in commands:
            for command in block.strip().splitlines():
                support.run("env", "PATH=" + path, "bash", "-c", command, cwd=folder)
        if len(support.read(folder + "/scores.txt").split()) != 4000:
            support.fail("scores.txt does not have a score a line")
        auc = [list(line.values())[-1] for line in support.metrics(folder + "/out")]
        if not auc[-1] > 0.75:
            support.fail("the example does not learn what the page says: AUC %r" % auc)
        for name in ("model.pdmodel", "model.pdiparams"):
            if not os.path.exists(folder + "/out/paddle/" + name):
                support.fail("out/paddle has no " + name)


if __name__ == "__main__":
    main()
