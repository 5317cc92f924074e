"""Plugins as users build them: headers installed into a folder, examples/mini_loader copied out of the tree and built by
its Makefile and by its CMakeLists.txt, the C plugin by a C compiler; each is then loaded by the trainer and predictor."""

import json
import os
import shutil
import struct
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
        """The example as a user has it: in a folder NAME/examples/mini_loader, whose jobs name each other from NAME."""
        folder = os.path.join(self.folder.name, name, "examples", "mini_loader")
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("*.o", "*.so", "__pycache__"))
        return folder

    def train(self, name, *flags):
        """Runs the copied job where it is; exit code and output."""
        return run(os.path.join(BUILD, "bin", "trainer"), "--trainer_desc=examples/mini_loader/job.prototxt", *flags,
                   cwd=os.path.join(self.folder.name, name))

    def saved(self, name, variable):
        """The one number of a parameter in Paddle's file: the last four bytes."""
        with open(os.path.join(self.folder.name, name, "saved", variable), "rb") as file:
            return struct.unpack("<f", file.read()[-4:])[0]

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
        code, output = self.train("make", "--set", "program.save_dir=saved")
        self.assertEqual(0, code, output)
        self.assertAlmostEqual(2.008087, self.saved("make", "w"), delta=0.02)
        self.assertAlmostEqual(0.002143, self.saved("make", "b"), delta=0.1)

    def test_cmake(self):
        folder = self.copy("cmake")
        build = os.path.join(folder, "build")
        code, output = run("cmake", "-S", folder, "-B", build, "-G", "Ninja", "-DCMAKE_PREFIX_PATH=" + self.prefix)
        self.assertEqual(0, code, output)
        code, output = run("cmake", "--build", build)
        self.assertEqual(0, code, output)
        self.expect_loads(os.path.join(build, "mini_loader.so"))
        # On other data: as many rows and parts as it has.
        shared = os.path.join(os.environ.get("MILLRACE_SHARED", ""), "data", "mini_reader", "iris")
        if not os.path.isdir(shared):
            return
        for file, changes in (("job.prototxt", {"examples/mini_loader/mini_loader.so": build + "/mini_loader.so"}),
                              ("main.pbtxt", {"examples/mini_loader/data": shared, "dims: 9": "dims: 150",
                                              'name: "batch_size" type: INT i: 9': 'name: "batch_size" type: INT i: 150',
                                              'name: "data_part_num" type: INT i: 2': 'name: "data_part_num" type: INT i: 3'})):
            self.change(os.path.join(folder, file), changes)
        code, output = self.train("cmake", "--set", "program.save_dir=saved")
        self.assertEqual(0, code, output)
        self.assertAlmostEqual(0.415755, self.saved("cmake", "w"), delta=0.01)
        self.assertAlmostEqual(-0.363076, self.saved("cmake", "b"), delta=0.04)

    def test_the_plugins_of_examples(self):
        """examples/plugins: each builds by find_package, passes its own test, and does its work."""
        folder = os.path.join(self.folder.name, "plugins")
        shutil.copytree(os.path.join(SOURCE, "examples", "plugins"), folder)
        build = os.path.join(folder, "build")
        inspect = os.path.join(BUILD, "bin", "inspect")
        code, output = run("cmake", "-S", folder, "-B", build, "-G", "Ninja", "-DCMAKE_PREFIX_PATH=" + self.prefix,
                           "-DMILLRACE_INSPECT=" + inspect)
        self.assertEqual(0, code, output)
        code, output = run("cmake", "--build", build)
        self.assertEqual(0, code, output)
        self.assertNotIn("warning", output)
        code, output = run("ctest", "--test-dir", build, "--output-on-failure")
        self.assertEqual(0, code, output)
        for plugin, brings in (("esmm_loss", 'loss of the class "Esmm": clicks, and purchases over all shows\n'),
                               ("key_value_feed", 'data feed of the class "KeyValueFeed": lines of slots by name: user=7 item=3,12\n'),
                               ("click_records", 'data feed of the class "clicks": Click and purchase, user and item.\n'
                                                 'file format "clicks": Click and purchase, user and item.\n')):
            self.assertEqual((0, brings), run(inspect, "plugin", os.path.join(build, plugin + ".so")))

        # The loss and the feed in one job: both shares are learnt.
        code, output = run(os.path.join(BUILD, "bin", "trainer"), "--trainer_desc=job.prototxt", "--output_dir=out",
                           cwd=folder)
        self.assertEqual(0, code, output)
        with open(os.path.join(folder, "out", "run.json"), encoding="utf-8") as file:
            metrics = json.load(file)["metrics"]
        self.assertGreater(metrics["auc"], 0.8)
        self.assertGreater(metrics["auc_2"], 0.8)
        self.assertNotEqual(metrics["auc"], metrics["auc_2"])

        # The format: what it reads is written as records, and a file that ends within a record is refused.
        clicks = os.path.join(folder, "a.clicks")
        records = [inspect, "records", "--outputs=float32[-1,1] float32[-1,1] int64[-1,1] int64[-1,1]",
                   "--records=" + os.path.join(folder, "a.recordio"), "--plugin=" + os.path.join(build, "click_records.so"),
                   clicks]
        record = struct.pack("<ffQQ", 1, 0, 7, 12)
        with open(clicks, "wb") as file:
            file.write(record * 3)
        code, output = run(*records)
        self.assertEqual(0, code, output)
        self.assertIn("a.recordio: 3 records", output)
        with open(clicks, "ab") as file:
            file.write(record[:10])
        code, output = run(*records)
        self.assertEqual(3, code, output)
        self.assertIn("10 bytes, and a record has 24", output)

        # A test that fails says where.
        self.change(os.path.join(folder, "own_plugins_test.cc"), {"{0.25F, 0.375F}": "{0.25F, 0.5F}"})
        code, output = run("cmake", "--build", build)
        self.assertEqual(0, code, output)
        code, output = run(inspect, "plugin", os.path.join(build, "own_plugins_test.so"))
        self.assertEqual(2, code, output)
        self.assertRegex(output, r"Esmm: test: prediction\.ctcvr\[1\] is 0\.37(5|50000\d+|49999\d+), expected 0\.5")

    def change(self, path, changes):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for old, new in changes.items():
            self.assertIn(old, text)
            text = text.replace(old, new)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    @unittest.skipUnless(shutil.which("make"), "there is no make")
    def test_a_plugin_of_another_version_is_refused_with_both(self):
        folder = self.copy("old")
        other = os.path.join(self.folder.name, "old_install")
        shutil.copytree(self.prefix, other, symlinks=True)
        version = os.path.join(other, "include", "millrace", "plugin", "version.h")
        with open(version, encoding="utf-8") as file:
            ours = file.read().split('"')[1]
        self.change(version, {'"%s"' % ours: '"0.0.1"'})
        code, output = run("make", "-C", folder, "MILLRACE_CONFIG=" + os.path.join(other, "bin", "millrace-config"))
        self.assertEqual(0, code, output)
        code, output = self.train("old")
        self.assertEqual(2, code, output)
        self.assertIn('job.prototxt:6:11: error: plugin "examples/mini_loader/mini_loader.so": it was built for another', output)
        self.assertRegex(output, r'built as +"millrace plugin, C\+\+ \d+: .*, millrace 0\.0\.1"\n')
        self.assertRegex(output, r'needed here +"millrace plugin, C\+\+ \d+: .*, millrace %s"\n' % ours.replace(".", r"\."))
        self.assertIn("build it again with this Millrace's headers and compiler", output)

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
