"""The table of runs in a terminal."""

import unittest

from comparison import Cell, Row, Table
from table_text import table_text


def table_of(widths, metrics, order_by=""):
    """A table of two runs with a field for each width."""
    paths = [f"model.layer[x].f{i}" for i in range(len(widths))]
    table = Table([f"f{i}" for i in range(len(widths))] + ["steps", "examples/s", "seconds"] + metrics, paths, order_by)
    for i, name in enumerate(("a", "b")):
        table.rows.append(Row(name, [i], [Cell("v" * width) for width in widths] + [Cell("0.12345")] * (3 + len(metrics))))
    return table


class TableTextTest(unittest.TestCase):
    def table_text(self, table):
        text = table_text(table)
        self.assertLessEqual(max(map(len, text.splitlines())), 120, text)
        return text

    def test_runs_of_different_jobs_fit_a_terminal(self):
        widths = [40] * 30
        widths[7] = 5
        text = self.table_text(table_of(widths, ["auc", "auc best", "logloss", "loss"]))
        for part in ("  f7 ", " auc ", " logloss", "  f7 is model.layer[x].f7\n", "in the page alone (--html): model.layer[x].f", " others\n"):
            self.assertIn(part, text)
        self.assertNotIn("f29 is", text)

    def test_the_metric_that_orders_runs_is_shown_first(self):
        head = self.table_text(table_of([], [f"task{i}/auc" for i in range(20)], "task17/auc")).partition("\n")[0]
        self.assertIn("task0/auc", head)
        self.assertIn("task17/auc", head)
        self.assertNotIn("task16/", head)

    def test_a_long_name_is_cut_in_the_middle(self):
        table = table_of([10], ["auc"])
        table.rows[0].name = "begin" + "x" * 100 + "end-1"
        table.rows[1].name = "begin" + "x" * 100 + "end-2"
        text = self.table_text(table)
        for part in ("\nbeginx", "xend-1 ", "xend-2 ", "..."):
            self.assertIn(part, text)

    def test_control_characters_are_escaped(self):
        table = table_of([], ["a\x1bc"])
        table.rows[0].name = "x\ny\udcff"
        text = table_text(table)
        self.assertIn("a\\x1bc", text)
        self.assertIn("x\\x0ay\\xff", text)


if __name__ == "__main__":
    unittest.main()
