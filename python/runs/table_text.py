"""The table of runs for a terminal."""

from console import harmless

_NAME_COLUMNS = 48  # of a run's name if the table is too wide
_WIDE_FIELD = 24  # a wider field gives way to all other columns
_NAMED_LEFT_OUT = 12  # further columns are counted


def _short_name(name):
    """Both ends of a long name: names of trainings also differ at the end."""
    end = _NAME_COLUMNS // 3
    return name if len(name) <= _NAME_COLUMNS else f"{name[:_NAME_COLUMNS - end - 3]}...{name[-end:]}"


def _lines(table):
    """The texts of the table, the heads first. Marked and unmarked numbers of a column are aligned."""
    lines = [["run"] + [harmless(head) + " " for head in table.heads]]
    for row in table.rows:
        lines.append([("  " if row.is_member else "") + harmless(row.name)] +
                     [harmless(cell.text) + ("*" if cell.is_best else " ") for cell in row.cells])
    return lines


def _shown(table, widths, most):
    """The columns that fit, the most telling first: the one that orders the rows, the first metric, short fields, metrics."""
    fields = len(table.paths)

    def rank(column):
        head = table.heads[column - 1]
        if head == table.order_by:
            return 0
        if column <= fields:
            return 2 if widths[column] <= _WIDE_FIELD else 7
        if column <= fields + 3:  # steps, examples/s, seconds
            return 4 if column == fields + 3 else 6
        return 1 if column == fields + 4 else 5 if head.endswith(" best") else 3

    shown = {0}
    width = widths[0]
    for column in sorted(range(1, len(widths)), key=rank):
        if width + 2 + widths[column] <= most + 1:  # the space after the last number is not written
            shown.add(column)
            width += 2 + widths[column]
    return shown


def _left_out(table, shown, columns):
    """Names the other columns, in lines of at most `columns` characters."""
    names = [harmless(table.paths[i] if i < len(table.paths) else head) for i, head in enumerate(table.heads) if i + 1 not in shown]
    if not names:
        return ""
    if len(names) > _NAMED_LEFT_OUT + 1:
        names[_NAMED_LEFT_OUT:] = [f"and {len(names) - _NAMED_LEFT_OUT} others"]
    lines = [f"  too wide for {columns} columns, and in the page alone (--html):"]
    for name in [name + "," for name in names[:-1]] + names[-1:]:
        if len(lines[-1]) + 1 + len(name) <= columns:
            lines[-1] += " " + name
        else:
            lines.append("    " + name)
    return "\n".join(lines) + "\n"


def table_text(table, columns=120):
    """The table, with the best values marked by "*". If it is wider than `columns`, only the most telling columns are
    shown, and the others are listed below."""
    lines = _lines(table)

    def widths_and_shown():
        widths = [max(map(len, column)) for column in zip(*lines)]
        return widths, _shown(table, widths, columns)

    widths, shown = widths_and_shown()
    if len(shown) < len(widths):
        for line in lines:
            line[0] = _short_name(line[0])
        widths, shown = widths_and_shown()
    text = ""
    for line in lines:
        cells = [line[0].ljust(widths[0])] + [line[i].rjust(widths[i]) for i in range(1, len(widths)) if i in shown]
        text += "  ".join(cells).rstrip(" ") + "\n"
    for i, path in enumerate(table.paths):
        if i + 1 in shown and table.heads[i] != path:
            text += f"  {harmless(table.heads[i])} is {harmless(path)}\n"
    return text + _left_out(table, shown, columns) + "".join(f"  {note}\n" for note in table.notes)
