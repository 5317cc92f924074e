"""Protobuf's text format as a tree, and changes of it: enough to break jobs and programs in ways that a typist, another
tool or a bad disk would not think of, while most of what comes out still parses."""

import re

TOKEN = re.compile(r"""\s+ | \#[^\n]*
    | (?P<text> "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
    | (?P<sign> [{}\[\]<>:;,] )
    | (?P<word> [^\s{}\[\]<>:;,"'\#]+ )""", re.VERBOSE)


class Field:
    """NAME: VALUE, or NAME { FIELDS }; a list is as many fields."""

    def __init__(self, name, value=None, fields=None):
        self.name = name
        self.value = value
        self.fields = fields

    def copy(self):
        return Field(self.name, self.value, None if self.fields is None else [field.copy() for field in self.fields])


def parse(text):
    tokens = [match.group(match.lastgroup) for match in TOKEN.finditer(text) if match.lastgroup]
    tokens.append(None)
    at = 0

    def fields(end):
        nonlocal at
        found = []
        while tokens[at] != end:
            name = tokens[at]
            at += 1
            if tokens[at] == ":":
                at += 1
            if tokens[at] == "[":
                at += 1
                while tokens[at] != "]":
                    found.append(value(name))
                    if tokens[at] == ",":
                        at += 1
                at += 1
            else:
                found.append(value(name))
            if tokens[at] in (",", ";"):
                at += 1
        at += 1
        return found

    def value(name):
        nonlocal at
        token = tokens[at]
        at += 1
        if token == "{":
            return Field(name, fields=fields("}"))
        while tokens[at] is not None and tokens[at][:1] in "\"'" and token[:1] in "\"'":  # strings side by side are one
            token = token[:-1] + tokens[at][1:]
            at += 1
        return Field(name, token)

    return fields(None)


def text_of(fields, indent=""):
    lines = []
    for field in fields:
        if field.fields is None:
            lines.append("%s%s: %s\n" % (indent, field.name, field.value))
        else:
            lines.append("%s%s {\n%s%s}\n" % (indent, field.name, text_of(field.fields, indent + "  "), indent))
    return "".join(lines)


def lists_in(fields):
    """Every list of fields in the tree, the outermost first."""
    found = [fields]
    for field in fields:
        if field.fields is not None:
            found += lists_in(field.fields)
    return found


NUMBERS = ("0", "-1", "1", "2", "3", "7", "100", "2147483647", "-2147483648", "4294967295", "9223372036854775807",
           "-9223372036854775808", "18446744073709551615", "1e38", "1e-38", "1e400", "inf", "-inf", "nan", "0.5", "-0.0")
STRINGS = ('""', '"x"', '"@EMPTY@"', '"loss"', '"../x"', '"\\000"', '"\\377"', '"%s%n"', '" "', '"-1"')


def mutate(fields, rng, words=()):
    """Changes the tree in one place; returns what was done. `words`: strings beside those of the tree itself."""
    lists = [each for each in lists_in(fields) if each]
    if not lists:
        return "nothing, as nothing is left"
    chosen = rng.choice(lists)
    at = rng.randrange(len(chosen))
    field = chosen[at]
    every = [each for some in lists for each in some]
    how = rng.choice(("remove", "twice", "swap", "value", "value", "value", "value", "name", "take", "move", "deep"))
    if how == "remove":
        del chosen[at]
    elif how == "twice":
        chosen.insert(at, field.copy())
    elif how == "swap":
        other = rng.randrange(len(chosen))
        chosen[at], chosen[other] = chosen[other], field
    elif how == "name":
        field.name = rng.choice(every).name
    elif how == "take":  # what another field of this name holds
        like = [each for each in every if each.name == field.name and each is not field]
        if like:
            chosen[at] = rng.choice(like).copy()
    elif how == "move":
        rng.choice(lists).append(chosen.pop(at))
    elif how == "deep":
        for _ in range(rng.choice((1, 3, 30))):
            if field.fields is None:
                break
            field.fields.append(field.copy() if len(text_of([field])) < 100000 else Field("x", "1"))
    else:
        leaves = [each for each in every if each.fields is None]
        field = rng.choice(leaves) if leaves else field
        field.value = other_value(field, leaves, rng, words)
    return "%s %s" % (how, field.name)


def other_value(field, leaves, rng, words):
    value = field.value or ""
    if value[:1] in "\"'":
        choices = [each.value for each in leaves if each.value[:1] in "\"'" and each.name == field.name]
        anywhere = [each.value for each in leaves if each.value[:1] in "\"'"]
        return rng.choice((rng.choice(choices), rng.choice(choices), rng.choice(anywhere), rng.choice(STRINGS),
                           *(['"%s"' % rng.choice(words)] if words else [])))
    if re.fullmatch(r"-?[0-9.][0-9.eE+-]*|-?inf|-?nan", value):
        near = str(int(value) + rng.choice((-1, 1))) if re.fullmatch(r"-?[0-9]+", value) else value
        return rng.choice((rng.choice(NUMBERS), near))
    alike = [each.value for each in leaves if each.name == field.name and each.value != value]
    if value in ("true", "false"):
        return "false" if value == "true" else "true"
    return rng.choice(alike or [each.value for each in leaves])


def garble(text, rng):
    """Changes the text itself, as a bad disk or a slip of the hand does."""
    at = rng.randrange(len(text) + 1)
    how = rng.choice(("cut", "drop", "insert", "twice"))
    length = rng.choice((1, 1, 3, 40))
    if how == "cut":
        return text[:at]
    if how == "drop":
        return text[:at] + text[at + length:]
    if how == "insert":
        return text[:at] + "".join(chr(rng.choice((0, 9, 34, 39, 92, 123, 125, 91, 58, 255, 0x2028, *range(32, 127))))
                                   for _ in range(length)) + text[at:]
    return text[:at] + text[at:at + length] * 2 + text[at + length:]
