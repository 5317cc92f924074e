"""Plugins as users build them: headers installed into a folder, examples/mini_loader copied out of the tree and built by
its Makefile and by its CMakeLists.txt, the C plugin by a C compiler; each is then loaded by the trainer and predictor."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE = sys.argv[1:3]
EXAMPLE = os.path.join(SOURCE, "examples", "mini_loader")


def run(*command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    return result.returncode, result.stdout


class OutOfTreeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="millrace_plugin")
        cls.prefix = os.path.join(cls.folder.name, "install")
        code, output = run("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", "plugin")
        assert code == 0, output
        cls.config = os.path.join(cls.prefix, "bin", "millrace-config")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def copy(self, name):
        folder = os.path.join(self.folder.name, name)
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("*.o", "*.so"))
        return folder

    def expect_loads(self, plugin):
        """A predictor that loads a plugin gets as far as its model, which is not there."""
        code, output = run(os.path.join(BUILD, "bin", "predictor"), "--plugin=" + plugin, "--model_dir=/nowhere")
        self.assertNotIn("plugin", output)
        self.assertEqual(3, code, output)

    @unittest.skipUnless(shutil.which("make"), "there is no make")
    def test_make(self):
        folder = self.copy("make")
        code, output = run("make", "-C", folder, "MILLRACE_CONFIG=" + self.config)
        self.assertEqual(0, code, output)
        self.assertNotIn("warning", output)
        self.expect_loads(os.path.join(folder, "mini_loader.so"))

    def test_cmake(self):
        folder = self.copy("cmake")
        build = os.path.join(folder, "build")
        code, output = run("cmake", "-S", folder, "-B", build, "-G", "Ninja", "-DCMAKE_PREFIX_PATH=" + self.prefix)
        self.assertEqual(0, code, output)
        code, output = run("cmake", "--build", build)
        self.assertEqual(0, code, output)
        self.expect_loads(os.path.join(build, "mini_loader.so"))

    def test_the_c_tier_by_any_compiler(self):
        source = os.path.join(SOURCE, "tests", "plugin", "plugins", "pairs.c")
        _, includes = run(self.config, "--includes")
        for compiler in ("cc", "clang", "clang-14"):
            if shutil.which(compiler) is None:
                continue
            plugin = os.path.join(self.folder.name, compiler + ".so")
            code, output = run(compiler, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fPIC", "-shared",
                               *includes.split(), "-o", plugin, source)
            self.assertEqual(0, code, output)
            self.expect_loads(plugin)

    def test_millrace_config_says_what_it_knows(self):
        self.assertEqual((0, self.prefix + "\n"), run(self.config, "--prefix"))
        code, output = run(self.config, "--frobnicate")
        self.assertEqual(2, code)
        self.assertIn("--cflags", output)
        self.assertEqual(2, run(self.config)[0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
