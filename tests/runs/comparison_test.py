"""The table of runs. The programs say in which fields their jobs differ."""

import os
import unittest

import jobs
from comparison import compare_runs
from console import Failure
from page import runs_page
from run_folder import read_run
from table_text import table_text
from written_runs import WithRuns

INSPECT = os.path.join(os.environ["MILLRACE_BIN"], "inspect")


def job(lr, seed):
    return f"seed: {seed} epochs: 2 model {{ layer {{ name: 'h' fc {{ in: 'x' units: 8 }} }} optimizer {{ adagrad {{ lr: {lr} }} }} }}"


def texts(row):
    return [cell.text + ("*" if cell.is_best else "") for cell in row.cells]


class ComparisonTest(WithRuns):
    def setUp(self):
        super().setUp()
        self.runs = []

    def add(self, text, first_auc=0.5, last_auc=0.6, **more):
        """Adds the run a, b, ..."""
        name = chr(ord("a") + len(self.runs))
        self.runs.append(read_run(self.write_run(name, text, first_auc, last_auc, **more)))
        self.runs[-1].name = name

    def table(self, order_by=""):
        return compare_runs(self.runs, jobs.compare_runs(INSPECT, self.runs), order_by)

    def test_shows_what_differs_and_marks_the_best(self):
        self.add(job(0.1, 1), 0.7, 0.6)
        self.add(job(0.5, 1), 0.6, 0.65)
        table = self.table()
        self.assertEqual(table.paths, ["model.optimizer.adagrad.lr"])
        self.assertEqual(table_text(table),
                         "run   lr   steps   examples/s   seconds       auc   auc best      loss   loss best\n"
                         "a    0.1      20          320       2.0   0.60000    0.70000*  0.40000     0.30000*\n"
                         "b    0.5      20          320       2.0   0.65000*   0.65000   0.35000*    0.35000\n"
                         "  lr is model.optimizer.adagrad.lr\n")

    def test_shows_the_evaluation_of_the_saved_model(self):
        self.add(job(0.1, 1), 0.7, 0.6, saved=10)
        self.add(job(0.5, 1), 0.7, 0.6)
        first, second = self.table().rows
        self.assertEqual(texts(first), ["0.1", "20", "320", "2.0", "0.70000*", "0.70000*", "0.30000*", "0.30000*"])
        self.assertEqual(texts(second), ["0.5", "20", "320", "2.0", "0.60000", "0.70000*", "0.40000", "0.30000*"])

    def test_runs_with_one_seed_are_noted(self):
        for seed in (1, 7, 7, 7):
            self.add(job(0.1, seed))
        self.assertEqual(self.table().notes,
                         ["3 runs of a mean have the same seed, 7: its error tells less than how far seeds are apart"])

    def test_seeds_have_a_mean_with_its_error(self):
        self.add(job(0.1, 1), 0.5, 0.6)
        self.add(job(0.5, 1), 0.5, 0.7)
        self.add(job(0.1, 2), 0.5, 0.8)
        table = self.table()
        self.assertEqual(table.heads, ["lr", "seed", "steps", "examples/s", "seconds", "auc", "loss"])
        self.assertEqual([row.name for row in table.rows], ["mean of 2 runs", "a", "c", "b"])
        self.assertEqual([row.is_member for row in table.rows], [False, True, True, False])
        self.assertEqual(table.rows[0].runs, [0, 2])
        # The deviation of 0.6 and 0.8 is 0.1414; over the root of 2 that is 0.1.
        self.assertEqual(texts(table.rows[0]), ["0.1", "", "20", "320", "2.0", "0.70000 +- 0.10000*", "0.30000 +- 0.10000*"])
        self.assertEqual(texts(table.rows[2]), ["0.1", "2", "20", "320", "2.0", "0.80000", "0.20000"])  # members are not marked
        self.assertIn("\n  c ", table_text(table))

    def test_one_run_is_not_the_best(self):
        self.add(job(0.1, 1))
        table = self.table()
        self.assertEqual(table.paths, [])
        self.assertFalse(any(cell.is_best for cell in table.rows[0].cells))

    def test_best_first_if_a_metric_is_named(self):
        for lr, auc in ((0.1, 0.6), (0.2, 0.8), (0.3, 0.7)):
            self.add(job(lr, 1), 0.5, auc)
        self.assertEqual([row.name for row in self.table("auc").rows], ["b", "c", "a"])
        self.assertEqual(self.table("loss").rows[0].name, "b")  # the lowest
        with self.assertRaisesRegex(Failure, '"gauc"; there are auc, loss'):
            self.table("gauc")

    def test_slots_that_follow_from_features_are_not_listed(self):
        for name in ("age", "country"):
            self.add(f"data_desc {{ name: 'csv' feature {{ name: '{name}' hash {{}} }} multi_slot_desc {{ slots {{ name: '{name}' "
                     f"type: 'uint64' is_used: true }} }} feature_states {{ rows: 7 column: '{name}' }} }}")
        self.assertEqual(self.table().paths, ["data_desc.feature[age]", "data_desc.feature[country]"])

    def test_where_results_go_is_not_listed(self):
        for folder in ("x", "y"):
            self.add(f"output {{ dir: '{folder}' }}")
        self.assertEqual(self.table().paths, [])

    def test_a_value_is_not_cut_within_a_character(self):
        for last in ("1", "22222222"):
            self.add("filelist: '" + "a" * 33 + "\u00e4\u00f6\u00fc" + last + "'")
        for row in self.table().rows:
            self.assertEqual(row.cells[0].text, '["' + "a" * 33 + "\u00e4...")

    def test_what_is_better_is_not_guessed(self):
        folder = self.write("a", "metrics.jsonl", '{"step":10,"examples":320,"eval_loss":0.9,"eval_auc":0.1}\n')
        self.runs = [read_run(folder), read_run(folder)]
        with self.assertRaisesRegex(Failure, 'which values of "auc" are better is not known'):
            self.table("auc")
        self.assertFalse(self.table("loss").rows[0].cells[3].is_best)

    def test_a_run_that_has_not_ended_is_in_no_mean(self):
        self.add(job(0.1, 1))
        self.write("z", "metrics.jsonl", '{"step":10,"examples":320,"eval_loss":0.9,"eval_auc":0.1}\n')
        self.runs.append(read_run(self.folder("z")))
        self.runs[-1].name = "z"
        self.add(job(0.2, 1))
        rows = self.table().rows
        self.assertEqual([row.name for row in rows], ["a", "z (not ended)", "c"])
        self.assertEqual(texts(rows[1]), ["?", "10", "", "", "0.10000", "0.90000"])

    def test_a_job_of_another_build_is_unknown(self):
        for text in (job(0.1, 1), "no_such_field: 3", "\ud800", job(0.1, 1)):
            self.add(text)
        table = self.table()
        self.assertEqual([row.name for row in table.rows], ["mean of 2 runs", "a", "d", "b", "c"])
        for run in self.runs[1:3]:
            self.assertRegex(run.notes[0], r'/run.json: its "job" is of another build, and is not read')

    def test_without_evaluations_shows_those_of_training(self):
        for name in ("a", "b"):
            self.write(name, "run.json", '{"examples": 8, "batches": 2, "seconds": 1, "examples_per_second": 8, '
                                         '"metrics": {"auc": 0.75}, "better": {"higher": ["auc"]}, "job": "epochs: 1"}')
            self.runs.append(read_run(self.folder(name)))
        table = self.table()
        self.assertEqual(table.heads[-1], "auc of training")
        self.assertEqual(table.rows[0].cells[-1].text, "0.75000 +- 0.00000")  # the same job twice has a mean, too

    def test_the_page_is_whole_and_shows_text_as_text(self):
        self.add(job(0.1, 1), 0.5, 0.6)
        self.add(job(0.1, 2), 0.5, 0.7)
        self.add(job(0.3, 2), 0.5, 0.7)
        self.runs[2].name = "<script>alert('x')</script> & \"more\"\x1b"
        page = runs_page(self.runs, self.table())
        self.assertNotIn("<script", page)
        self.assertNotIn("http", page)  # it needs nothing from elsewhere
        self.assertIn("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;more&quot;\\x1b", page)
        self.assertIn("0.65000 &plusmn; 0.05000", page)
        self.assertIn("<h2>auc</h2>", page)
        self.assertIn("<title>a, evaluation</title>", page)
        self.assertIn("<title>b, training</title>", page)
        self.assertEqual(page.count("<svg"), 2)


if __name__ == "__main__":
    unittest.main()
