#!/usr/bin/env python3
"""Checks the words of the documentation.

    scripts/check_words.py [ROOT]

Prints each phrase that the table below replaces, with its file and line, and the words to use instead. Code and link
targets are not checked. Decisions (docs/adr), the benchmark history and generated pages are not checked either. To allow
a phrase in one file, add it to ALLOWED.
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/recipes/*.md", "docs/formats/*.md",
         "examples/**/README.md", "proto/*.proto")
SKIPPED = ("docs/config.md", "docs/operators.md")
# (pattern, write instead). An underscore matches spaces and line breaks. Case matters for Of.
REPLACED = [
    (r"(?:^|(?<=[.:|*] ))[-*#> ]*(?-i:Of)\b", "the subject first, or For, or If"),
    (r"\bgo(?:es|ing)?_on_(?:from|with|by|at|as|behind|to|after|in|until)\b", "resume, continue"),
    (r"\bgo(?:es|ing)?_on(?=[.,;:|])", "resume, continue"),
    (r"\bbehind\b", "after"),
    (r"\b(?:anew|once_more)\b", "again, retry, restart"),
    (r"\bat_hand\b", "available, installed"),
    (r"\b(?:the|its|their)_like\b", "similar, and so on"),
    (r"\b(?:whoever|whichever|one_who|who_one)\b", "users who, if you, or the noun"),
    (r"\b(?:those|these)_(?:that|which|who)\b", "the noun: rows, files, values"),
    (r"\bat_once\b", "concurrently, immediately, in one run"),
    (r"\bown_pace\b", "asynchronous"),
    (r"\bof_(?:one's|its|their|your|his|the_user's)_own(?=[.,;:)|]|_(?:that|which|for|in|and|with|to)\b)",
     "its own X, your own X, custom X"),
    (r"\bstands?\b(?!_for)", "is, appears"),
    (r"\bwants?\b", "requires, needs"),
    (r"\ba_training\b(?!_(?:\w+))", "a run"),
    (r"\btrainings\b", "runs"),
    (r"\bonce_an?_(?:pass|epoch|batch|job|step|worker|rank)\b", "once per"),
    (r"\bcount(?:s|ed)?_to\b", "count toward"),
    (r"\b(?:is|are|was|were)_left_out\b|\b(?:is|are)_passed_over\b", "is omitted, is skipped"),
    (r"\btells?\b|\btold\b", "report, print, log"),
    (r"\b(?:absent|not_there)\b", "missing"),
    (r"\bnobody\b", "unused, or negate the verb"),
    (r"\bwhat_is_left\b|\b(?:that|who)_(?:is|are)_left\b", "the remaining X"),
    (r"\bmeanwhile\b", "concurrently"),
    (r"\bbeside\b", "next to, compared with, in addition to"),
    (r"\blies?\b", "is, is located"),
    (r"\bcomes?_to_be\b", "is created"),
    (r"\bto_the_(?:bit|same_(?:bits?|bytes?))\b", "bit-identical"),
    (r",_(?:too|as_well)\b", "also, before the verb"),
    (r"\bgives?_up\b|\bgiven_up\b", "cancel, stop"),
    (r"\bwithout_a_word\b|\bwhole_numbers?\b", "silently; integer"),
    (r"(?<!there )\b(?:is|are)_no_(?!longer|larger|more|less|better)[a-z]+\b", "is not a X"),
    (r"\bnone_of_(?:them|these|it)\b", "negate the verb"),
    (r"\bthereof\b", "the noun"),
    (r"\bset-up\b|\blearnt\b|\blicence\b|\bnormalis|\bbehaviour\b|\bcolour\b", "US spelling"),
]
# (file, phrase): uses of these words that are right.
ALLOWED = {("docs/training.md", "lies")}


def prose(name, text):
    """The text with everything but prose blanked, so that lines keep their numbers."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group(0))  # noqa: E731
    if name.endswith(".proto"):
        text = re.sub(r"^(?:(?!//).)+(?://)?|^//|\bExample: .*", blank, text, flags=re.M)
    else:
        text = re.sub(r"^ *```.*?^ *```", blank, text, flags=re.M | re.S)
        text = re.sub(r"(?:^|(?<=\n))\n(?:(?:    .*)?\n)+", blank, text)
        text = re.sub(r"<[^>\n]*>|(?<=\])\([^)\n]*\)", blank, text)
    return re.sub(r"`(?:[^`\n]|\n(?!\n))*`", lambda match: re.sub(r"[^\n]", "x", match.group(0)), text)


def complaints(root):
    """A line for each."""
    found = []
    names = {os.path.relpath(path, root) for page in PAGES for path in glob.glob(os.path.join(root, page), recursive=True)}
    for name in sorted(names - set(SKIPPED)):
        with open(os.path.join(root, name), encoding="utf-8") as file:
            text = prose(name, file.read())
        for pattern, instead in REPLACED:
            for match in re.finditer(pattern.replace("_", r"\s+"), text, re.I | re.M):
                phrase = " ".join(match.group(0).split())
                if (name, phrase.lower()) not in ALLOWED:
                    found.append('%s:%d: "%s" -> "%s"' % (name, text.count("\n", 0, match.start()) + 1, phrase, instead))
    return found


def main():
    found = complaints(sys.argv[1] if len(sys.argv) > 1 else ROOT)
    print("\n".join(found) if found else "the documentation uses the words of the field")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
