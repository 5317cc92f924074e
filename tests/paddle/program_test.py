"""Programs around a model that Paddle writes and trains, brought over and compared, as recsys_test.py does with models.

    program_test.py BIN_DIR MODELS GROUP       MODELS is program_models or zoo_models; PADDLE_PYTHON names a Python with
                                               Paddle; exit code 77: there is none
"""

import os
import sys
import tempfile

import recsys_test
import support

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    bin_dir, models, group = sys.argv[1:]
    python = support.peer("PADDLE_PYTHON", "paddle")
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        support.run(python, "%s/%s.py" % (HERE, models), group, folder)
        for name in sorted(os.listdir(folder)):
            try:
                recsys_test.check_model(bin_dir, python, os.path.join(folder, name))
            except SystemExit as failure:
                failed.append("%s: %s" % (name, failure))
    if failed:
        support.fail("\n".join(failed))


if __name__ == "__main__":
    main()
