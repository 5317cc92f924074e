#!/usr/bin/env python3
"""Writes the reference pages of docs/ from what they describe, so that they cannot lie.

    scripts/gen_docs.py [PAGE ...]           writes the pages (all of them by default)
    scripts/gen_docs.py --check [PAGE ...]   exits with 1 and a diff when a page is not what would be written

A page is a function below that returns its text; PAGES is the list.
"""

import dataclasses
import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMAS = ["trainer_desc.proto", "data_feed.proto", "model.proto"]
FIRST_OWN_NUMBER = 1001


@dataclasses.dataclass
class Field:
    name: str
    type: str
    number: int
    repeated: bool
    default: str
    comment: list
    oneof: str


@dataclasses.dataclass
class Value:
    name: str
    comment: list


@dataclasses.dataclass
class Type:
    """A message (fields) or an enum (values)."""

    name: str
    comment: list
    is_enum: bool
    schema: str
    fields: list = dataclasses.field(default_factory=list)
    values: list = dataclasses.field(default_factory=list)


FIELD = re.compile(r"^(?:(optional|repeated) )?([\w.]+) (\w+) = (\d+)(?: \[default = (.*)\])?;$")
VALUE = re.compile(r"^(\w+) = -?\d+;$")


def read_schema(name):
    """Reads the types of one .proto file of ours; its style (one thing a line) is what makes this short."""
    types = {}
    open_blocks = []  # (kind, name) from the outside in
    comment = []
    for number, line in enumerate((ROOT / "proto" / name).read_text().splitlines(), 1):
        text = line.strip()
        where = f"proto/{name}:{number}"
        if text.startswith("//"):
            comment.append(text[2:].strip())
            continue
        opened = re.match(r"^(message|enum|oneof) (\w+) \{$", text)
        current = next((block for block in reversed(open_blocks) if block[0] != "oneof"), None)
        if opened:
            kind = opened[1]
            full = opened[2] if kind == "oneof" or current is None else f"{current[1]}.{opened[2]}"
            open_blocks.append((kind, full))
            if kind != "oneof":
                types[full] = Type(full, comment, kind == "enum", name)
        elif text == "}":
            open_blocks.pop()
        elif match := FIELD.match(text):
            if current is None or current[0] == "enum":
                sys.exit(f"{where}: a field outside of a message")
            oneof = open_blocks[-1][1] if open_blocks[-1][0] == "oneof" else ""
            label, kind, field, tag, default = match.groups()
            types[current[1]].fields.append(
                Field(field, kind, int(tag), label == "repeated", default or "", comment, oneof)
            )
        elif (match := VALUE.match(text)) and current and current[0] == "enum":
            types[current[1]].values.append(Value(match[1], comment))
        elif text and not text.startswith(("syntax", "package", "import", "reserved")):
            sys.exit(f"{where}: not understood: {text}")
        comment = []
    return types


def find_type(types, owner, name):
    """The type that `name` means inside `owner`, or None when it is a scalar or not of these schemas."""
    scope = owner
    while True:
        if (full := f"{scope}.{name}" if scope else name) in types:
            return types[full]
        if not scope:
            return None
        scope = scope.rpartition(".")[0]


def split_example(comment):
    examples = [line for line in comment if line.startswith("Example: ")]
    text = " ".join(line for line in comment if not line.startswith("Example: "))
    return text, [line.removeprefix("Example: ") for line in examples]


def anchor(name):
    return re.sub(r"[^a-z0-9_-]", "", name.lower())


def type_cell(types, owner, field):
    found = find_type(types, owner, field.type)
    text = field.type
    if found:
        text = "name" if found.is_enum else f"[{found.name}](#{anchor(found.name)})"
    return f"list of {text}" if field.repeated else text


def default_cell(types, owner, field):
    if field.default:
        return f"`{field.default}`"
    if field.oneof:
        return "one of"
    if field.repeated:
        return "empty"
    found = find_type(types, owner, field.type)
    return "none" if not found or found.is_enum else "unset"


def is_inert(field):
    text = split_example(field.comment)[0]
    return "ot supported yet" in text or "no effect" in text


def names_text(entry):
    """The names of an enum and their meanings, for the row of a field."""
    return "".join(f"<br>`{value.name}`: {' '.join(value.comment)}" for value in entry.values)


def field_table(types, owner, fields):
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for field in fields:
        text, examples = split_example(field.comment)
        found = find_type(types, owner, field.type)
        if found and found.is_enum:
            text += names_text(found)
        text += "".join(f"<br>Example: `{example}`" for example in examples)
        rows.append(
            f"| `{field.name}` <sub>{field.number}</sub> | {type_cell(types, owner, field)} "
            f"| {default_cell(types, owner, field)} | {text} |"
        )
    return rows


def type_section(types, entry, depth):
    level = "#" * min(depth + 2, 4)
    fields = [field for field in entry.fields if not is_inert(field)]
    return [f"{level} {entry.name}", "", " ".join(entry.comment), "", *field_table(types, entry.name, fields), ""]


def reachable(types, root):
    """The messages below `root` with their depth, each where it is first needed; and the messages and enums that only
    inert fields of Paddle need."""
    order, inert = {}, []

    def visit(name, depth):
        if name in order or types[name].is_enum:
            return
        order[name] = depth
        for field in types[name].fields:
            found = find_type(types, name, field.type)
            if found and not is_inert(field):
                visit(found.name, depth + 1)

    def visit_inert(name):
        if name in order or name in inert:
            return
        inert.append(name)
        for field in types[name].fields:
            if found := find_type(types, name, field.type):
                visit_inert(found.name)

    visit(root, 0)
    for name in list(order):
        for field in types[name].fields:
            found = find_type(types, name, field.type)
            if found and is_inert(field):
                visit_inert(found.name)
    return order, inert


def check_comments(types, names):
    missing = []
    for name in names:
        entry = types[name]
        where = f"proto/{entry.schema}: {name}"
        if not entry.comment:
            missing.append(f"{where}: has no comment")
        for field in entry.fields:
            text, examples = split_example(field.comment)
            if not text:
                missing.append(f"{where}.{field.name}: has no comment")
            elif not examples and not is_inert(field):
                missing.append(f"{where}.{field.name}: has no 'Example:' line")
        missing += [f"{where}: {value.name} has no comment" for value in entry.values if not value.comment]
    if missing:
        sys.exit("\n".join(missing))


def config_page():
    types = {}
    for schema in SCHEMAS:
        types.update(read_schema(schema))
    order, inert = reachable(types, "TrainerDesc")
    enums = [entry.name for entry in types.values() if entry.is_enum and entry.name.rpartition(".")[0] in order]
    check_comments(types, [*order, *enums])
    lines = [
        "# Configuration reference",
        "",
        "<!-- Written by scripts/gen_docs.py from the comments in proto/*.proto: change those. -->",
        "",
        "A job is one `TrainerDesc` in protobuf text format, read by `trainer --trainer_desc=FILE`.",
        "[configuration.md](configuration.md) is the guide; this page is every field. The small number beside a field",
        f"is its number: below {FIRST_OWN_NUMBER} the field is Paddle's, and files that Paddle wrote load unchanged;",
        f"from {FIRST_OWN_NUMBER} on it is ours. *One of* means that the fields of a message exclude each other.",
        "",
    ]
    lines += [f"{'  ' * depth}- [{name}](#{anchor(name)})" for name, depth in order.items()]
    lines.append("- [Fields of Paddle without effect here](#fields-of-paddle-without-effect-here)")
    lines.append("")
    for name, depth in order.items():
        lines += type_section(types, types[name], depth)
    lines += [
        "## Fields of Paddle without effect here",
        "",
        "They are read so that Paddle's files load. One that is *not supported yet* is an error when it is set to",
        "something that would change the run; it is never read over.",
        "",
        "| field | type | default | meaning |",
        "|---|---|---|---|",
    ]
    for name in order:
        for field in types[name].fields:
            if is_inert(field):
                found = find_type(types, name, field.type)
                kind = ("list of " if field.repeated else "") + (found.name if found else field.type)
                default = f"`{field.default}`" if field.default else "none"
                text = split_example(field.comment)[0]
                lines.append(f"| `{name}.{field.name}` <sub>{field.number}</sub> | {kind} | {default} | {text} |")
    lines += ["", "The messages of these fields:", ""]
    for name in inert:
        entry = types[name]
        members = ", ".join(
            f"`{field.name}` {field.number}" + (f" ({field.default})" if field.default else "") for field in entry.fields
        ) or ", ".join(f"`{value.name}`" for value in entry.values)
        lines.append(f"- **{name}**: {' '.join(entry.comment) + ' ' if entry.comment else ''}{members}")
    return "\n".join(lines) + "\n"


PAGES = {"docs/config.md": config_page}


def main(arguments):
    check = "--check" in arguments
    chosen = [argument for argument in arguments if argument != "--check"] or list(PAGES)
    if unknown := [page for page in chosen if page not in PAGES]:
        sys.exit(f"no page {', '.join(unknown)}; there are {', '.join(PAGES)}")
    stale = False
    for page in chosen:
        path = ROOT / page
        text = PAGES[page]()
        written = path.read_text() if path.exists() else ""
        if not check:
            path.write_text(text)
        elif written != text:
            stale = True
            sys.stdout.writelines(
                difflib.unified_diff(written.splitlines(True), text.splitlines(True), page, f"{page} as it should be")
            )
    if stale:
        sys.exit("run scripts/gen_docs.py and commit what it writes")


if __name__ == "__main__":
    main(sys.argv[1:])
