#!/usr/bin/env python3
"""Generates the reference pages of docs/ from the schemas and programs.

    scripts/gen_docs.py [PAGE ...]           writes the pages (default: all pages)
    scripts/gen_docs.py --check [PAGE ...]   exits with code 1 and prints a diff if a page is out of date
    --bin=DIR                                folder of the programs that describe themselves (default: build/release/bin)

A function below returns the text of each page. PAGES lists them.
"""

import dataclasses
import difflib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = [ROOT / "build/release/bin"]
SCHEMAS = ["trainer_desc.proto", "data_feed.proto", "model.proto", "sweep.proto"]
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
    traits: dict  # of FieldTraits in proto/field_traits.proto: {"at_least": "1"}


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


FIELD = re.compile(r"^(?:(optional|repeated) )?([\w.]+) (\w+) = (\d+)(?: \[(?:default = (\"[^\"]*\"|[^,]+))?(?:, )?(?:\(field_traits\) = \{(.*)\})?\])?;$")
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
            label, kind, field, tag, default, traits = match.groups()
            traits = dict(re.findall(r"(\w+): (\S+)", traits or ""))
            types[current[1]].fields.append(
                Field(field, kind, int(tag), label == "repeated", default or "", comment, oneof, traits)
            )
        elif (match := VALUE.match(text)) and current and current[0] == "enum":
            types[current[1]].values.append(Value(match[1], comment))
        elif text and not text.startswith(("syntax", "package", "import", "reserved", "option")):
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


def range_text(traits):
    """The valid numbers of a field, as interval or bound."""
    least = traits.get("at_least", traits.get("above"))
    most = traits.get("at_most", traits.get("below"))
    if least is not None and most is not None:
        return f"In {'[' if 'at_least' in traits else '('}{least}, {most}{']' if 'at_most' in traits else ')'}."
    if least is not None:
        return f"At least {least}." if "at_least" in traits else f"Above {least}."
    if most is not None:
        return f"At most {most}." if "at_most" in traits else f"Below {most}."
    return ""


def traits_text(types, owner, field):
    """What the traits of a field mean for users who set it."""
    rate = "is_rate" in field.traits
    words = [text] if (text := range_text({"above": "0"} if rate else field.traits)) else []
    if "moves_every_row" in field.traits:
        words.append("Not for hash tables: it changes every row at each step.")
    if rate or field.traits.get("may_change") == "true":
        words.append("Can change when a run resumes.")
    if field.traits.get("may_change") == "false":
        below = ", except for fields marked otherwise" if find_type(types, owner, field.type) else ""
        words.append(f"Must not change when a run resumes{below}.")
    return "".join(" " + word for word in words)


def field_table(types, owner, fields):
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for field in fields:
        text, examples = split_example(field.comment)
        text += traits_text(types, owner, field)
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
    of_sweeps, _ = reachable(types, "SweepDesc")
    documented = [*order, *of_sweeps]
    enums = [entry.name for entry in types.values() if entry.is_enum and entry.name.rpartition(".")[0] in documented]
    check_comments(types, [*documented, *enums])
    lines = [
        "# Configuration reference",
        "",
        "<!-- Generated by scripts/gen_docs.py from the comments in proto/*.proto. Edit those comments. -->",
        "",
        "This page lists every field of a job. For a guide, see [configuration.md](configuration.md).",
        "A job is one `TrainerDesc` in protobuf text format, read by `trainer --trainer_desc=FILE`. A sweep over its fields",
        "is one [SweepDesc](#sweepdesc), read by `--sweep=FILE`. The small number next to a field name is the field number.",
        f"In Paddle's messages, numbers below {FIRST_OWN_NUMBER} are Paddle's, so files written by Paddle load unchanged, and",
        f"numbers from {FIRST_OWN_NUMBER} on are additions. *One of* means that only one of these fields of a message can be set.",
        "",
    ]
    for page in (order, of_sweeps):
        lines += [f"{'  ' * depth}- [{name}](#{anchor(name)})" for name, depth in page.items()]
    lines.append("- [Fields of Paddle without effect here](#fields-of-paddle-without-effect-here)")
    lines.append("")
    for page in (order, of_sweeps):
        for name, depth in page.items():
            lines += type_section(types, types[name], depth)
    lines += [
        "## Fields of Paddle without effect here",
        "",
        "These fields are read so that Paddle's files load. A field that is *not supported yet* is an error if its value",
        "would change the run. Millrace never ignores such a value silently.",
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


# ---------------------------------------------------------------------------------------------------------------------
# Operators


@dataclasses.dataclass
class Operator:
    """What `trainer --list_ops` says of one."""

    type: str
    doc: str
    inputs: list = dataclasses.field(default_factory=list)  # (name, remark, meaning)
    outputs: list = dataclasses.field(default_factory=list)
    attrs: list = dataclasses.field(default_factory=list)  # (name, default, remark, meaning)
    gradient_of: str = ""
    has_gradient: bool = False
    updates: bool = False
    is_fused: bool = False


ARGUMENT = re.compile(r"^(in|out) (\S+)(?: \((optional|several)\))?: (.*)$")
ATTRIBUTE = re.compile(r"^attr (\S+?)(?: = (.*?))?(?: \((no other|required)\))?: (.*)$")

# What programs of Paddle may hold that Millrace has not: types, and what to do. That it has none of them is checked.
BEYOND = [
    ("gru, gru_unit, lstm, lstm_unit, lstmp, cudnn_lstm, recurrent", "Paddle 1's recurrent layers: write them with `rnn` "
     "(`paddle.nn.GRU`, `LSTM`, `SimpleRNN`), which is here"),
    ("write_to_array, read_from_array, lod_array_length, lod_tensor_to_array, array_to_lod_tensor, tensor_array_to_tensor, "
     "lod_rank_table, max_sequence_len, shrink_rnn_memory", "arrays of tensors, and what walks sequences with them"),
    ("while_grad", "learning through a `while`: loops run forward only"),
    ("py_func", "Python within a program: write a plugin ([plugins](plugins.md)), or compute it in `pipe_command`"),
    ("sample_logits, sampling_id", "sampled costs of many classes: `nce` and `hierarchical_sigmoid` are here, for dense gradients"),
    ("scatter_nd_add, put_along_axis, take_along_axis, index_sample, unique, unique_with_counts",
     "what picks, writes and counts by tuples; `gather`, `gather_nd`, `index_select`, `scatter`, `masked_select`, `where` and "
     "`where_index` are here"),
    ("average_accumulates, dpsgd, dgc_momentum, merged_adam, merged_momentum, sparse_momentum, asgd, nadam, radam, rprop",
     "updates: those below *Updates* are here"),
    ("check_finite_and_unscale, update_loss_scaling", "mixed precision of 16 bits: `precision: BF16` of the job"),
    ("distributed_lookup_table, pull_sparse, pull_sparse_v2, push_sparse, pull_box_sparse, send, recv, fetch_barrier",
     "tables of a parameter server: see [from Paddle](from_paddle.md)"),
    ("c_allreduce_sum, c_broadcast, c_sync_calc_stream, c_comm_init, c_gen_nccl_id", "training on several machines or devices"),
    ("conv2d_transpose, conv3d, pool3d, instance_norm, group_norm, lrn, pad2d, pad3d, im2sequence, grid_sampler", "images"),
    ("linear_chain_crf, crf_decoding, warpctc, beam_search, edit_distance, chunk_eval", "labels of sequences"),
    ("randint, randperm, multinomial, bernoulli, shuffle_batch, uniform_random_batch_size_like, "
     "gaussian_random_batch_size_like", "other random values"),
    ("cos_sim, dot, minus, pad, crop, flip, roll, meshgrid, eye, linspace, cumprod, kron, addmm, dist, "
     "margin_rank_loss, smooth_l1_loss, sigmoid_focal_loss, center_loss", "functions that the ones above are put together from"),
]


RANDOM = "Paddle draws other numbers from the same seed: these come of the job's seed, the name of Out, worker and batch."

# Where answers are not those of Paddle 2.6, and why. That the operators are here is checked.
DIFFERS = {
    "adam": "Without `lazy_mode`, Paddle now and then reads beyond a sparse gradient, and takes what stands there for that of a "
            "row without one; here that is 0.",
    "clip": "Paddle fails on a sparse gradient (`ClipGradByValue`); here its rows are clipped.",
    "cumsum": "Paddle overlooks `exclusive` where X is a single value; here the sum before it is 0.",
    "dropout": RANDOM,
    "expand_as_v2": "Paddle's gradient is 0 where the program leaves the batch open (-1); here it is what was repeated, added up.",
    "gather": "Paddle's gradient along an axis other than 0 repeats that of the first row; here each row has its own. With `Axis`, "
              "Paddle describes Out by the attribute; here the tensor counts.",
    "gaussian_random": RANDOM,
    "momentum": "Paddle overlooks rows of a sparse gradient that do not ascend; here every row is updated. Paddle ignores "
                "`rescale_grad` for dense gradients; here only 1 is taken.",
    "nce": RANDOM.replace("draws other numbers", "draws other classes").replace("the name of Out", "the name of Cost"),
    "rmsprop": "Paddle overlooks rows of a sparse gradient that do not ascend; here every row is updated.",
    "scatter": "Where `overwrite` writes a row twice, Paddle gives each of these updates a gradient; here the last one has it.",
    "split": "Paddle's operator takes no axis from the end, although its Python does; here both do.",
    "top_k": "With `K`, Paddle describes Out by the attribute `k`; here the tensor counts.",
    "top_k_v2": "With `K`, Paddle describes Out by the attribute `k`; here the tensor counts.",
    "truncated_gaussian_random": RANDOM,
    "uniform_random": RANDOM,
}


def read_operators():
    """The operators of the built trainer, by type."""
    trainer = BIN[0] / "trainer"
    if not trainer.exists():
        sys.exit(f"{trainer} is not built, and docs/operators.md is what it lists: scripts/build, or --bin=DIR")
    operators, current = {}, None
    for line in subprocess.run([trainer, "--list_ops"], check=True, capture_output=True, text=True).stdout.splitlines():
        if not line.startswith(" "):
            current = operators[line] = Operator(line, "")
            continue
        text = line.strip()
        if not current.doc:
            current.doc = text
        elif match := ARGUMENT.match(text):
            (current.inputs if match[1] == "in" else current.outputs).append((match[2], match[3] or "", match[4]))
        elif match := ATTRIBUTE.match(text):
            current.attrs.append((match[1], match[2], match[3], match[4]))
        elif text.startswith("gradient of "):
            current.gradient_of = text.removeprefix("gradient of ")
        elif text in ("has a gradient", "updates parameters", "made by fusion"):
            current.has_gradient |= text == "has a gradient"
            current.updates |= text == "updates parameters"
            current.is_fused |= text == "made by fusion"
        else:
            sys.exit(f"trainer --list_ops: {current.type}: not understood: {text}")
    return operators


def compared_types(operator):
    """For each input, the types of the values for which the tests compare what it answers with Paddle's answer."""
    types = {}
    path = ROOT / "tests/golden/ops" / f"{operator}.txt"
    for line in path.read_text().splitlines() if path.exists() else []:
        words = line.split()
        if words[:1] == ["in"]:
            found = types.setdefault(words[1], [])
            kind = "rows" if words[3] == "rows" else words[3]
            if kind not in found:
                found.append(kind)
    return types


def operator_section(operator, operators):
    types = compared_types(operator.type)
    lines = [f"### {operator.type}", "", operator.doc, "", "| | | compared in | |", "|---|---|---|---|"]
    for name, remark, meaning in operator.inputs:
        kinds = ", ".join(sorted(types.get(name, [])))
        lines.append(f"| {(remark + ' ') if remark else ''}input | `{name}` | {kinds} | {escaped(meaning)} |")
    for name, remark, meaning in operator.outputs:
        lines.append(f"| {(remark + ' ') if remark else ''}output | `{name}` | | {escaped(meaning)} |")
    for name, default, remark, meaning in operator.attrs:
        value = "" if default is None else f" = `{escaped(default)}`"
        lines.append(f"| attribute | `{name}`{value}{f', {remark}' if remark else ''} | | {escaped(meaning)} |")
    gradient = next((o for o in operators.values() if o.gradient_of == operator.type), None)
    notes = []
    if gradient:
        of = ", ".join(f"`{name.removesuffix('@GRAD')}`" for name, _, _ in gradient.outputs if name.endswith("@GRAD"))
        notes.append(f"Gradient: `{gradient.type}`{', of ' + of if of else ''}.")
    elif operator.has_gradient:
        notes.append("Gradient: made of other operators.")
    elif not operator.updates and not operator.is_fused:
        notes.append("No gradient.")
    if operator.type in DIFFERS:
        notes.append(f"**Not as in Paddle:** {DIFFERS[operator.type]}")
    return [*lines, "", *(line for note in notes for line in (note, ""))]


def escaped(text):
    return text.replace("|", "\\|")


def operators_page():
    operators = read_operators()
    for types, _ in BEYOND:
        for name in types.split(", "):
            if name in operators:
                sys.exit(f"scripts/gen_docs.py: BEYOND: {name} is here")
    forward = [o for o in operators.values() if not o.gradient_of]
    groups = [
        ("Functions", [o for o in forward if not o.updates and not o.is_fused],
         "What programs compute with."),
        ("Updates", [o for o in forward if o.updates and not o.is_fused],
         "What the optimizers of Paddle and of a job write: each moves its parameter in place."),
        ("Made by fusion", [o for o in forward if o.is_fused],
         "What the compiler puts in the place of several; no program needs to name them, and `fuse: false` leaves them out."),
    ]
    if absent := [name for name in DIFFERS if name not in operators]:
        sys.exit(f"scripts/gen_docs.py: DIFFERS: there is no {', '.join(absent)}")
    lines = [
        "# Operators",
        "",
        "<!-- Written by scripts/gen_docs.py from `trainer --list_ops` and tests/golden/ops: change the registrations. -->",
        "",
        "Every operator that a program may hold, be it made from a job's `model`, by `millrace.layers` or by Paddle.",
        "`trainer --list_ops` prints this list, with the operators of the job's plugins when `--trainer_desc` names a job.",
        "Types, arguments and attributes are Paddle's. *Compared in* names the types of values for which the tests compare",
        "the answers with those of Paddle 2.6 (`rows`: a sparse gradient); operators that only move values take other types too.",
        "Another type than an operator takes is refused when a program is compiled, as is an attribute that is not listed.",
        "",
    ]
    for title, members, _ in groups:
        links = ", ".join(f"[{o.type}](#{anchor(o.type)})" for o in members)
        lines += [f"**{title}:** {links}", ""]
    lines += ["[Where answers are not Paddle's](#where-answers-are-not-paddles)", "", "[What Paddle has beyond](#what-paddle-has-beyond)", ""]
    for title, members, text in groups:
        lines += [f"## {title}", "", text, ""]
        for operator in members:
            lines += operator_section(operator, operators)
    lines += ["## Where answers are not Paddle's", "", "| | |", "|---|---|"]
    lines += [f"| [{name}](#{anchor(name)}) | {escaped(text)} |" for name, text in DIFFERS.items()]
    lines += [
        "",
        "## What Paddle has beyond",
        "",
        "A program with an operator that is not here is refused when it is compiled, before anything is trained: each such",
        "type is told once, with its first place and how many there are. These were met in users' programs, or are near to",
        "those that were:",
        "",
        "| | |",
        "|---|---|",
    ]
    lines += ["| %s | %s |" % (", ".join(f"`{name}`" for name in types.split(", ")), text) for types, text in BEYOND]
    lines += ["", "An operator of your own is a file ([adding an operator](adding_an_op.md)) or a [plugin](plugins.md)."]
    return "\n".join(lines) + "\n"


PAGES = {"docs/config.md": config_page, "docs/operators.md": operators_page}


def main(arguments):
    check = "--check" in arguments
    BIN[0] = next((pathlib.Path(a.removeprefix("--bin=")) for a in arguments if a.startswith("--bin=")), BIN[0])
    chosen = [argument for argument in arguments if not argument.startswith("--")] or list(PAGES)
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
