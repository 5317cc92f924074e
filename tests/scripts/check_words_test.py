"""Tests of scripts/check_words.py on pages made for them, and of the documentation."""

import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import check_words  # noqa: E402


class CheckWordsTest(unittest.TestCase):
    def complaints(self, text, name="docs/page.md"):
        with tempfile.TemporaryDirectory() as root:
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return check_words.complaints(root)

    def test_a_phrase_is_reported_with_its_line_and_the_words_to_use(self):
        self.assertEqual(self.complaints("# A page\n\nRanks run at once.\n"),
                         ['docs/page.md:3: "at once" -> "concurrently, immediately, in one run"'])

    def test_every_kind_of_page_is_checked(self):
        for name in ("README.md", "CONTRIBUTING.md", "docs/recipes/a.md", "docs/formats/a.md", "examples/a/README.md"):
            self.assertEqual(len(self.complaints("A run starts anew.\n", name)), 1, name)
        for name in ("docs/adr/0001-a.md", "docs/benchmarks/history.md", "docs/operators.md", "docs/config.md", "src/notes.md"):
            self.assertEqual(self.complaints("A run starts anew.\n", name), [], name)

    def test_sentences_that_open_with_of_are_reported(self):
        for text in ("Of a file, lines.\n", "A line. Of a file, lines.\n", "- Of a file, lines.\n", "| Of a file | lines |\n", "Files: Of all\n"):
            self.assertEqual(len(self.complaints(text)), 1, text)
        self.assertEqual(self.complaints("A part of a file. Often\nof use.\n"), [])

    def test_a_phrase_can_continue_on_the_next_line(self):
        self.assertEqual(self.complaints("It runs at\n  once.\n")[0].split(": ")[0], "docs/page.md:1")
        self.assertEqual(self.complaints("// Read at\n  // once.\nint a;\n", "proto/a.proto")[0].split(": ")[0], "proto/a.proto:1")

    def test_code_and_link_targets_are_not_checked(self):
        for text in ("```sh\necho behind\n```\n", "Run:\n\n    echo behind\n\n", "Set `behind`, or `a\nbehind`.\n",
                     "See [this](page.md#behind).\n", '<a id="behind"></a>\n', "- Run:\n  ```\n  behind\n  ```\n"):
            self.assertEqual(self.complaints(text), [], text)
        self.assertEqual(len(self.complaints("```\na\n```\nbehind\n\n```\nb\n```\n")), 1)
        self.assertEqual(len(self.complaints("- A list\n    behind it\n")), 1)

    def test_only_comments_of_schemas_are_checked(self):
        text = "// Works.\noptional string behind = 1;  // Fine.\n// Example: behind: 1\n"
        self.assertEqual(self.complaints(text, "proto/a.proto"), [])
        self.assertEqual(self.complaints(text + "  optional int32 a = 1;  // It is behind.\n", "proto/a.proto"),
                         ['proto/a.proto:4: "behind" -> "after"'])

    def test_each_pattern_finds_its_phrase(self):
        for phrase in ("goes on from", "goes on.", "once more", "at hand", "and the like", "whoever", "those that", "its own pace",
                       "of its own.", "stands there", "wants", "a training.", "trainings", "once a pass", "counts to", "is left out",
                       "is told", "absent", "nobody", "what is left", "meanwhile", "beside", "lies", "comes to be", "to the bit",
                       "gives up", "without a word", "is no number", "none of them", "thereof", "licence", "rows, too"):
            self.assertEqual(len(self.complaints("Some rows %s\n" % phrase)), 1, phrase)

    def test_good_uses_are_fine(self):
        for phrase in ("go on the disk", "`x` stands for 26 slots", "a training run", "a thread of its own batches", "is no longer used",
                       "There are no servers", "once per pass", "an unwanted word"):
            self.assertEqual(self.complaints("Some rows %s\n" % phrase), [], phrase)

    def test_allowed_uses_are_of_one_file_and_occur(self):
        file, phrase = next(iter(check_words.ALLOWED))
        self.assertEqual(self.complaints("It %s.\n" % phrase, file), [])
        self.assertEqual(len(self.complaints("It %s.\n" % phrase)), 1)
        for file, phrase in check_words.ALLOWED:
            with open(os.path.join(ROOT, file), encoding="utf-8") as page:
                self.assertIn(phrase, page.read())

    def test_the_documentation_is_fine(self):
        self.assertEqual(check_words.complaints(ROOT), [])


if __name__ == "__main__":
    unittest.main()
