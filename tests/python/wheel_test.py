"""What the wheel brings: the package and the programs, beside each other."""

import os
import subprocess
import tempfile
import unittest

import support

BUILD = os.path.dirname(support.BIN)


class WheelTest(unittest.TestCase):
    def test_the_programs_are_installed_with_the_package(self):
        if not os.path.exists(os.path.join(BUILD, "cmake_install.cmake")):
            raise unittest.SkipTest("%s is no build folder" % BUILD)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["cmake", "--install", BUILD, "--component", "python", "--prefix", folder], check=True,
                           capture_output=True)
            for program in ("trainer", "predictor", "inspect", "clickgen"):
                shown = subprocess.run([os.path.join(folder, "bin", program), "--version"], capture_output=True, text=True,
                                       check=True).stdout
                self.assertIn("millrace", shown.lower(), program)
            # The scripts, where the programs look for them.
            shown = subprocess.run([os.path.join(folder, "bin", "inspect"), "runs", "absent"], capture_output=True, text=True, check=False)
            self.assertEqual((shown.returncode, shown.stderr), (3, 'inspect: not found: no folder "absent"\n'))
            modules = [name for name in os.listdir(os.path.join(folder, "millrace")) if name.endswith(".so")]
            has_mpi = os.path.exists(os.path.join(BUILD, "lib", "libmillrace_mpi.so"))
            self.assertEqual(sorted(name.split(".")[0] for name in modules),
                             ["_lines", "_millrace"] + (["libmillrace_mpi"] if has_mpi else []))
            # Where trainer looks for it.
            self.assertEqual(os.path.exists(os.path.join(folder, "lib", "libmillrace_mpi.so")), has_mpi)

    def test_the_wheel_builds_all_that_is_installed(self):
        text = support.read(os.path.join(support.ROOT, "pyproject.toml"))
        line, = [line for line in text.splitlines() if line.startswith("build.targets")]
        for target in ("_millrace", "_lines", "trainer", "predictor", "inspect", "clickgen"):
            self.assertIn('"%s"' % target, line)


if __name__ == "__main__":
    unittest.main()
