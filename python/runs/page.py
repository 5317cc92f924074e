"""The table and the curves of runs as a page of HTML."""

from chart import Line, curve_chart, escaped

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1f23; --pale: #6b7280; --rule: #d9dde3; --page: #ffffff; --best: #e8f3ea; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --pale: #9aa3ad; --rule: #363c44; --page: #16191d; --best: #1f3326; }
}
body { margin: 2em auto; max-width: 1360px; padding: 0 1.5em; background: var(--page); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.4em; } h2 { font-size: 1.05em; margin: 0 0 .3em; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .28em .7em; text-align: right; border-bottom: 1px solid var(--rule); }
th { color: var(--pale); font-weight: 500; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
td.field { color: var(--pale); }
tr.member td { font-size: .9em; color: var(--pale); } tr.member td:first-child { padding-left: 2em; }
td.best { background: var(--best); font-weight: 650; }
.swatch { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .5em; }
.note { color: var(--pale); }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(500px, 1fr)); gap: 1.6em; margin-top: 2em; }
figure { margin: 0; }
svg { width: 100%; height: auto; }
svg text { fill: var(--pale); font-size: 11px; }
svg text.up { text-anchor: end; dominant-baseline: middle; } svg text.across { text-anchor: middle; }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg path { fill: none; stroke: currentColor; stroke-linecap: round; stroke-linejoin: round; }
svg circle { fill: currentColor; }
svg .training path { stroke-width: 1.1; opacity: .7; } svg .evaluation path { stroke-width: 2; }
svg g:hover path { stroke-width: 3.5; opacity: 1; }
"""

# Most color-blind readers can distinguish these. They repeat after the last one.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7b4fb5", "#8c6d31", "#c1272d", "#5b8c2a")


def _colors(table):
    """The color of each run; the runs of a mean share one."""
    rows = [row for row in table.rows if not row.is_member]
    return {run: _COLORS[i % len(_COLORS)] for i, row in enumerate(rows) for run in row.runs}


def _note(text):
    return f'<div class="note">{escaped(text)}</div>\n'


def _table(table, colors):
    page = '<div class="wide"><table>\n<tr><th>run</th>' + "".join(f"<th>{escaped(head)}</th>" for head in table.heads) + "</tr>\n"
    for row in table.rows:
        page += '<tr class="member">' if row.is_member else "<tr>"
        page += f'<td><span class="swatch" style="background:{colors[row.runs[0]]}"></span>{escaped(row.name)}</td>'
        for i, cell in enumerate(row.cells):
            kind = ' class="best"' if cell.is_best else ' class="field"' if i < len(table.paths) else ""
            page += f"<td{kind}>{escaped(cell.text).replace(' +- ', ' &plusmn; ', 1)}</td>"
        page += "</tr>\n"
    page += "</table></div>\n"
    return page + "".join(_note(f"{head} is {path}") for head, path in zip(table.heads, table.paths) if head != path) + \
        "".join(map(_note, table.notes))


def _charts(runs, colors):
    """A chart for each name: those of evaluations first, then those of training only."""
    page = '<div class="charts">\n'
    for name in dict.fromkeys([name for run in runs for name in run.evaluations] + [name for run in runs for name in run.training]):
        lines = []
        for i, run in enumerate(runs):
            for curves, kind in ((run.training, "training"), (run.evaluations, "evaluation")):
                if name in curves:
                    lines.append(Line(f"{run.name}, {kind}", colors[i], kind == "evaluation", curves[name]))
        chart = curve_chart(lines)
        page += f"<figure><h2>{escaped(name)}</h2>\n{chart}</figure>\n" if chart else ""
    return page + "</div>\n"


def runs_page(runs, table):
    """A page that needs no script and no other file. Texts of runs are shown as text, whatever they contain."""
    colors = _colors(table)
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Runs</title>\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<style>{_STYLE}</style></head>\n<body><h1>{len(runs)} run{'' if len(runs) == 1 else 's'}</h1>\n"
            + _table(table, colors) + "".join(_note(note) for run in runs for note in run.notes) + _charts(runs, colors)
            + '<p class="note">Thick lines with points are evaluations, thin ones are of training. A line says whose it '
              "is where the pointer rests on it. Of each column the best is marked; runs whose jobs differ in the seed alone "
              "have one color, and stand below their mean with its standard error.</p>\n</body></html>\n")
