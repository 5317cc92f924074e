"""Tests of scripts/check_text.py on sources made for them, and of what the programs call."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import check_text  # noqa: E402

BIN = sys.argv.pop() if len(sys.argv) > 1 and os.path.isdir(sys.argv[-1]) else ""


class CheckTextTest(unittest.TestCase):
    def complaints(self, text, name="app/a.cc"):
        with tempfile.TemporaryDirectory() as src:
            os.makedirs(os.path.join(src, os.path.dirname(name)))
            with open(os.path.join(src, name), "w", encoding="utf-8") as file:
                file.write(text)
            return [line.replace(src + "/", "") for line in check_text.mistakes(src)]

    def test_functions_that_ask_the_locale_are_named_with_their_line(self):
        for line in ("std::strtod(a, &b);", "strtof (a);", "x = std::stod(a);", 'sscanf(a, "%d", &b);', "std::isalpha(c)", "std::tolower(c)",
                     'std::snprintf(a, 9, "%g", b);', 'Say("a %5.2f %%");', 'Say("%.*f", 3, x);', 'setlocale(LC_ALL, "");',
                     "std::locale::global(x);"):
            found = self.complaints("int a;\n  %s\n" % line)
            self.assertEqual(len(found), 1, line)
            self.assertTrue(found[0].startswith("app/a.cc:2: "), found)

    def test_ways_to_print_past_the_guard_are_named(self):
        for line in ('std::printf("%s", name);', "std::cout << name;", "std::puts(name);", "std::fputs(name.c_str(), stdout);",
                     "fwrite(a.data(), 1, a.size(), stdout);", "write(STDOUT_FILENO, a, 3);", "::write(STDERR_FILENO, a, 3);",
                     "std::fputs(name, Unguarded(stderr));"):
            self.assertEqual(len(self.complaints(line + "\n")), 1, line)
        for line in ("std::fprintf(stderr, text);", "std::snprintf(a, 3, text);", "std::fflush(stdout);", "PrintOut(text);", "std::cerr << name;"):
            self.assertEqual(self.complaints(line + "\n"), [], line)

    def test_others_and_comments_are_fine(self):
        for line in ("// strtod(a)", "/* %g\n\"%f\" */", 'Say("%d %s %lld 100 % of %% f", a);', "IsLetter(c)", "Parsed::strtod_like(a)",
                     "my_strtod(a)", 'Say("100 %: fine");'):
            self.assertEqual(self.complaints(line + "\n"), [], line)

    def test_the_sources_are_fine(self):
        self.assertEqual(check_text.mistakes(os.path.join(ROOT, "src")), [])

    def test_no_program_writes_numbers_by_the_locale(self):
        """What no pattern sees: std::to_string of a float, which calls vsnprintf."""
        programs = [os.path.join(BIN, name) for name in ("trainer", "predictor", "inspect", "clickgen")] if BIN else []
        programs = [path for path in programs if os.path.exists(path)]
        if not programs or shutil.which("nm") is None:
            self.skipTest("no programs, or no nm")
        for path in programs:
            symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
            found = re.findall(r"\S*__to_xstring\S*|\b(?:strto[df]|strtold|is(?:alpha|alnum|upper|lower|space|digit)|to(?:lower|upper))@\S*", symbols)
            self.assertEqual(found, [], path)


if __name__ == "__main__":
    unittest.main()
