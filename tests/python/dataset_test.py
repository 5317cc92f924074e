"""Datasets from Python: what they hold, their mistakes, Ctrl-C, and programs trained on them."""

import os
import signal
import subprocess
import sys
import threading
import unittest
import warnings

import program_test
import support

import numpy as np

import millrace
from millrace import layers, optimizer


class DatasetTest(program_test.Fresh):
    def setUp(self):
        super().setUp()
        self.rows = support.write_log(self.folder, 40, parts=2)
        self.label = layers.data("label", [1], "int64")
        self.dense = layers.data("dense", [2])
        self.slots = [layers.data("C%d" % i, [1], "int64", lod_level=1) for i in (1, 2, 3)]
        self.variables = [self.label, self.dense] + self.slots
        # The mean of the first dense value tells which rows a batch has.
        self.first = layers.reduce_sum(layers.slice(self.dense, [1], [0], [1]), dim=[1])
        self.loss = layers.mean(layers.fc(self.dense, 1, param_attr="w"))
        optimizer.SGD(0.01).minimize(self.loss)
        self.exe = millrace.Executor()
        self.exe.run(self.startup)

    def order(self, dataset, **arguments):
        """The first dense value of each row, in the order of training."""
        report = self.exe.train_from_dataset(self.main, dataset, fetch_list=[self.first], fetch_info=["x"], print_period=1,
                                             **arguments)
        return [round(float(value), 3) for entry in report.history for value in entry["x"]]

    def wanted(self):
        return [dense[0] for _, dense, _ in self.rows]

    def test_a_feed_that_there_is_not_is_named_with_the_nearest(self):
        dataset = self.dataset(self.variables)
        with self.assertRaisesRegex(millrace.ConfigError, 'no data feed of the class "MultiSlotDatafeed"; did you mean '
                                                          '"MultiSlotDataFeed"'):
            dataset.set_feed_type("MultiSlotDatafeed")
        dataset.set_feed_type("MultiSlotInMemoryDataFeed")
        with self.assertRaisesRegex(millrace.ConfigError, "MultiSlotInMemoryDataFeed does not feed a QueueDataset; its feed is "
                                                          "MultiSlotDataFeed"):
            self.order(dataset)
        dataset.set_feed_type("MultiSlotDataFeed", separator=";")
        with self.assertRaisesRegex(millrace.ConfigError, "attrs are for the data feed of a plugin"):
            self.order(dataset)
        dataset.set_feed_type("MultiSlotDataFeed")
        self.assertEqual(self.order(dataset), self.wanted())
        memory = self.dataset(self.variables, "InMemoryDataset")
        memory.set_feed_type("MultiSlotInMemoryDataFeed")
        self.assertEqual(memory.load_into_memory(), 40)
        self.assertEqual(self.order(memory), self.wanted())

    def test_a_queue_dataset_reads_in_file_and_line_order(self):
        self.assertEqual(self.order(self.dataset(self.variables)), self.wanted())

    def test_an_in_memory_dataset_is_loaded_once_and_shuffled_by_seed(self):
        dataset = self.dataset(self.variables, "InMemoryDataset")
        self.assertEqual(dataset.get_memory_data_size(), 0)
        self.assertEqual(dataset.load_into_memory(), 40)
        self.assertEqual(dataset.get_memory_data_size(), 40)
        self.assertEqual(self.order(dataset), self.wanted())
        dataset.local_shuffle(seed=7)
        shuffled = self.order(dataset)
        self.assertNotEqual(shuffled, self.wanted())
        self.assertEqual(sorted(shuffled), sorted(self.wanted()))
        self.assertEqual(self.order(dataset), shuffled)
        dataset.local_shuffle(seed=8)
        self.assertNotEqual(self.order(dataset), shuffled)
        dataset.local_shuffle(seed=7)
        self.assertEqual(self.order(dataset), shuffled)
        with self.assertRaises(millrace.AlreadyExistsError):
            dataset.load_into_memory()
        dataset.release_memory()
        self.assertEqual(dataset.get_memory_data_size(), 0)
        dataset.set_filelist([self.path("part-1")])
        self.assertEqual(dataset.load_into_memory(), 20)

    def test_zeros_are_kept_unless_the_dataset_leaves_them_out_and_tells(self):
        support.write(self.path("part-0"), "1 1 2 0.5 1 2 0 3 3 0 4 0 1 0\n" * 2)
        told = r"left out: 6 zeros of sparse slots \(data_desc.zeros\)"
        for kind in ("QueueDataset", "InMemoryDataset"):
            dataset = self.dataset(self.variables, kind)
            dataset.set_filelist([self.path("part-0")])
            dropping = self.dataset(self.variables, kind)
            dropping.set_filelist([self.path("part-0")])
            dropping.set_zeros("DROP")
            if kind == "InMemoryDataset":
                dataset.load_into_memory()
                with self.assertWarnsRegex(millrace.MillraceWarning, told):
                    self.assertEqual(dropping.load_into_memory(), 2)
                continue
            self.assertEqual(self.exe.train_from_dataset(self.main, dataset).data["left_out"], "")
            with self.assertWarnsRegex(millrace.MillraceWarning, told):
                report = self.exe.train_from_dataset(self.main, dropping)
            self.assertEqual(report.data["counters"]["zero_dropped"], 6)
        with self.assertRaisesRegex(millrace.ConfigError, 'set_zeros: "KEEP", "DROP" or "FEED_DEFAULT", not True'):
            dataset.set_zeros(True)

    def test_empty_slots_are_taken_where_the_dataset_allows_them_and_by_its_model(self):
        support.write(self.path("part-0"), "1 1 2 0.5 1 0 3 3 0 4 1 2\n" * 2)
        for kind in ("QueueDataset", "InMemoryDataset"):
            dataset = self.dataset(self.variables, kind)
            dataset.set_filelist([self.path("part-0")])
            run = dataset.load_into_memory if kind == "InMemoryDataset" else lambda: self.exe.train_from_dataset(self.main, dataset).examples
            with self.assertRaisesRegex(millrace.DataError, "empty_slot: ALLOW takes empty slots"):
                run()
            dataset.set_empty_slot("ALLOW")
            self.assertEqual(run(), 2)
        with self.assertRaisesRegex(millrace.ConfigError, 'set_empty_slot: "ERROR" or "ALLOW", not True'):
            dataset.set_empty_slot(True)

    def test_a_pass_with_other_zeros_than_the_training_had_is_warned_of(self):
        kept, dropped = self.dataset(self.variables), self.dataset(self.variables)
        dropped.set_zeros("DROP")
        self.exe.train_from_dataset(self.main, dropped)
        test = self.main.clone(for_test=True)
        told = r'infer_from_dataset: the program was trained with zeros of sparse slots left out, .*set_zeros\("DROP"\)'
        with self.assertWarnsRegex(millrace.MillraceWarning, told):
            self.exe.infer_from_dataset(test, kept)
        with self.assertWarnsRegex(millrace.MillraceWarning, "train_from_dataset: .* trained with zeros of sparse slots left out"):
            self.exe.train_from_dataset(self.main, kept)
        with warnings.catch_warnings():
            warnings.simplefilter("error", millrace.MillraceWarning)
            self.exe.infer_from_dataset(test, kept)

    def test_no_print_period_prints_nothing(self):
        report = self.exe.train_from_dataset(self.main, self.dataset(self.variables), fetch_list=[self.loss], print_period=0)
        self.assertEqual((report.examples, report.history), (40, []))

    def test_a_preload_is_waited_for(self):
        dataset = self.dataset(self.variables, "InMemoryDataset")
        dataset.preload_into_memory()
        self.assertEqual(self.order(dataset), self.wanted())
        self.assertEqual(dataset.wait_preload_done(), 40)  # the training has waited for it
        with self.assertRaisesRegex(millrace.ConfigError, "wait_preload_done without"):
            dataset.wait_preload_done()
        dataset.release_memory()
        dataset.preload_into_memory()
        with self.assertRaisesRegex(millrace.AlreadyExistsError, r"a preload is under way; call wait_preload_done\(\) first"):
            dataset.preload_into_memory()
        dataset.local_shuffle(7)
        self.assertEqual(dataset.wait_preload_done(), 40)
        with self.assertRaisesRegex(millrace.AlreadyExistsError, r"call release_memory\(\) before loading again"):
            dataset.preload_into_memory()
        dataset.release_memory()
        dataset.preload_into_memory()
        dataset.release_memory()
        with self.assertRaisesRegex(millrace.ConfigError, "wait_preload_done without"):
            dataset.wait_preload_done()

    def test_batches_of_loaded_rows_change_from_call_to_call(self):
        dataset = self.dataset(self.variables, "InMemoryDataset")
        dataset.load_into_memory()
        counts = []
        for size, drop_last in ((16, False), (7, False), (7, True), (40, False)):
            dataset.set_batch_size(size)
            dataset.set_drop_last(drop_last)
            counts.append(self.exe.train_from_dataset(self.main, dataset).batches)
        self.assertEqual(counts, [3, 6, 5, 1])

    def test_loaded_rows_need_their_files_no_more(self):
        dataset = self.dataset(self.variables, "InMemoryDataset")
        dataset.load_into_memory()
        os.remove(self.path("part-0"))
        dataset.set_filelist([self.path("tomorrow")])
        self.assertEqual(self.order(dataset), self.wanted())
        with self.assertRaisesRegex(millrace.NotFoundError, "tomorrow"):
            dataset.release_memory()
            dataset.load_into_memory()

    def test_slots_to_shuffle_may_be_variables(self):
        dataset = self.dataset(self.variables, "InMemoryDataset")
        dataset.load_into_memory()
        dataset.slots_shuffle(self.slots[:2])
        with self.assertRaisesRegex(millrace.ConfigError, "slots_shuffle: a Variable or its name, not 3"):
            dataset.slots_shuffle([3])
        for shuffle in (lambda: dataset.local_shuffle(1.5), lambda: dataset.slots_shuffle([], seed=-1)):
            with self.assertRaisesRegex(millrace.ConfigError, "seed: (a whole number|at least 0), not"):
                shuffle()

    def test_a_program_without_layers_is_not_trained(self):
        dataset = self.dataset(self.variables)
        said = []

        def train():
            # A thread has default programs of its own, and these have no layers.
            for call in (lambda: self.exe.train_from_dataset(dataset=dataset), self.exe.train_from_reader,
                         lambda: self.exe.run(feed={"dense": np.zeros((1, 2))})):
                try:
                    call()
                except millrace.ConfigError as error:
                    said.append(str(error))
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        self.assertEqual([text.split("; ")[0] for text in said],
                         [call + ": the program has no layers" for call in ("train_from_dataset", "train_from_reader", "run")])

    def test_a_pass_without_rows_is_warned_of(self):
        support.write(self.path("none"), "")
        dataset = self.dataset(self.variables)
        dataset.set_filelist(self.path("none"))
        with self.assertRaisesRegex(millrace.DataError, "nothing to train on"):
            self.exe.train_from_dataset(self.main, dataset)
        self.exe.train_from_dataset(self.main, self.dataset(self.variables))
        with self.assertWarnsRegex(millrace.MillraceWarning, "train_from_dataset: there was no row to read") as caught:
            self.assertEqual(self.exe.train_from_dataset(self.main, dataset).examples, 0)
        self.assertEqual(caught.filename, __file__)

    def test_threads_may_change_from_call_to_call(self):
        dataset = self.dataset(self.variables, "InMemoryDataset")
        dataset.load_into_memory()
        for workers in (1, 4, 2, 3):
            report = self.exe.train_from_dataset(self.main, dataset, thread=workers)
            self.assertEqual((report.examples, report.workers), (40, workers))

    def test_a_pipe_command_makes_the_lines(self):
        dataset = self.dataset(self.variables)
        dataset.set_pipe_command("head -n 3")
        self.assertEqual(self.order(dataset), self.wanted()[:3] + self.wanted()[20:23])

    def test_settings_in_one_call_as_in_paddle_2(self):
        dataset = millrace.InMemoryDataset()
        dataset.init(batch_size=8, thread_num=1, use_var=self.variables, pipe_command="cat", queue_num=1, drop_last=True)
        dataset.set_filelist(self.path("part-0"))
        dataset.load_into_memory()
        self.assertEqual(self.exe.train_from_dataset(self.main, dataset).examples, 16)
        with self.assertRaisesRegex(millrace.ConfigError, 'InMemoryDataset has no setting "queue_nums"'):
            dataset.init(queue_nums=1)

    def test_settings_are_changed_by_the_names_of_paddle_2(self):
        dataset = millrace.DatasetFactory().create_dataset("InMemoryDataset")
        dataset.init(batch_size=8, thread_num=np.int64(2), use_var=self.variables, pipe_command="cat", input_type=0, fs_name="", fs_ugi="",
                     download_cmd="cat", queue_num=-1)
        dataset._init_distributed_settings(parse_ins_id=True, parse_content=False, merge_size=-1, fleet_send_batch_size=None,
                                           fleet_send_sleep_seconds=0, fea_eval=True, candidate_size=500)
        self.assertIn("parse_ins_id: true", dataset.desc())
        self.assertNotIn("input_commands", dataset.desc())
        self.assertEqual((dataset._candidates, dataset.thread_num), (500, 2))
        dataset.update_settings(batch_size=5, parse_ins_id=0, fs_name="hdfs://a", fs_ugi="u,p", data_feed_type="MultiSlotInMemoryDataFeed")
        self.assertIn("batch_size: 5", dataset.desc())
        self.assertIn("fs.default.name=hdfs://a -D hadoop.job.ugi=u,p", dataset.desc())
        dataset.set_filelist(self.path("part-0"))
        self.assertEqual(dataset.load_into_memory(), 20)
        dataset.update_settings(merge_size=2)
        self.assertIn("merge_size: 2", dataset._job_fields())
        for call, message in ((lambda: dataset.update_settings(batch_sizes=1), 'InMemoryDataset has no setting "batch_sizes"'),
                              (lambda: dataset.update_settings(merge_size="2"), "InMemoryDataset: merge_size: a whole number, not '2'")):
            with self.assertRaisesRegex(millrace.ConfigError, message):
                call()

    def test_calls_of_other_datasets_say_which_has_them(self):
        queue, memory = millrace.QueueDataset(), millrace.InMemoryDataset()
        for dataset, name, message in ((queue, "load_into_memory", "of an InMemoryDataset, which holds its rows"),
                                       (queue, "set_parse_ins_id", "of an InMemoryDataset"),
                                       (queue, "_init_distributed_settings", "of an InMemoryDataset"),
                                       (millrace.FileInstantDataset(), "slots_shuffle", "of an InMemoryDataset"),
                                       (queue, "set_rank_offset", "GPUs"), (memory, "begin_pass", "GPUs"),
                                       (memory, "set_date", "set_filelist names the files of a day")):
            self.assertFalse(hasattr(dataset, name))
            with self.assertRaisesRegex(millrace.ConfigError, "the dataset.%s is not here: .*%s" % (name, message)):
                getattr(dataset, name)
        with self.assertRaisesRegex(AttributeError, "no attribute 'set_bath_size'"):
            queue.set_bath_size(1)

    def test_arguments_that_mean_nothing_are_refused_at_the_call(self):
        dataset = millrace.InMemoryDataset()
        for call, message in ((lambda: dataset.set_thread(-5), "set_thread: at least 1, not -5"),
                              (lambda: dataset.set_hdfs_config(1, 2), "set_hdfs_config: fs_name: a str, not 1"),
                              (lambda: dataset.set_hdfs_config("hdfs://a", None), "set_hdfs_config: fs_ugi: a str, not None"),
                              (lambda: dataset.set_download_cmd(5), "set_download_cmd: a str, not 5"),
                              (lambda: dataset.set_drop_last(None), "set_drop_last: True or False, not None"),
                              (lambda: dataset.set_parse_ins_id("no"), "set_parse_ins_id: True or False, not 'no'"),
                              (lambda: dataset.set_parse_content(2), "set_parse_content: True or False, not 2"),
                              (lambda: dataset.set_parse_logkey([]), "set_parse_logkey: True or False, not "),
                              (lambda: dataset.set_enable_pv_merge(0.0), "set_enable_pv_merge: True or False, not 0.0"),
                              (lambda: dataset.set_fea_eval(10, "yes"), "set_fea_eval: fea_eval: True or False, not 'yes'"),
                              (lambda: dataset.set_input_type(7), r"set_input_type: 0 \(a line is a row\) or 1 .*, not 7"),
                              (lambda: dataset.set_pv_batch_size(-2), "set_pv_batch_size: page views of a batch: at least 1, not -2"),
                              (lambda: dataset.set_merge_by_lineid(-3), "set_merge_by_lineid: merge_size: at least 0, not -3"),
                              (lambda: dataset.load_into_memory("no"), "load_into_memory: is_shuffle: True or False, not 'no'"),
                              (lambda: dataset.global_shuffle("abc"), "global_shuffle: fleet: millrace.fleet or its object, or None, not 'abc'"),
                              (lambda: dataset.global_shuffle(None, "abc"), "global_shuffle: thread_num: a whole number, not 'abc'"),
                              (lambda: dataset.get_memory_data_size(3), "get_memory_data_size: fleet: .* not 3")):
            with self.assertRaisesRegex(millrace.ConfigError, message):
                call()
        self.assertEqual((dataset.thread_num, dataset._fields, dataset._commands, dataset._dataset_fields), (1, {"batch_size": "32"}, {}, {}))
        for yes in (True, 1, np.int32(1), np.bool_(True)):
            dataset.set_drop_last(yes)
            self.assertEqual(dataset._fields["drop_last"], "true")
        dataset.set_drop_last(np.bool_(False))
        dataset.set_thread(np.int32(3))
        dataset.set_input_type(np.int64(0))
        self.assertEqual((dataset._fields["drop_last"], dataset.thread_num, dataset._fields["input_type"]), ("false", 3, "0"))

    def test_settings_of_merging_that_there_are_not_are_refused_by_name(self):
        dataset = millrace.InMemoryDataset()
        with self.assertRaisesRegex(millrace.ConfigError, "set_merge_by_lineid: erase_duplicate_feas: leave it out"):
            dataset.set_merge_by_lineid(2, erase_duplicate_feas=True)
        with self.assertRaisesRegex(millrace.ConfigError, "set_merge_by_lineid: keep_unmerged_ins: .*merge_size=0 keeps"):
            dataset.set_merge_by_lineid(2, keep_unmerged_ins=True)

    def test_mistakes_are_said_before_anything_is_read(self):
        dataset = self.dataset(self.variables)
        for mistake, message in [
                (lambda: self.exe.train_from_dataset(self.main, None), "needs a dataset"),
                (lambda: self.exe.infer_from_dataset(self.main), "infer_from_dataset needs a dataset"),
                (lambda: self.exe.train_from_dataset(self.main, "part-0"), "dataset: a DatasetBase, not 'part-0'"),
                (lambda: self.exe.train_from_dataset("main", dataset), "program: a Program, not 'main'"),
                (lambda: self.exe.train_from_dataset(self.main, dataset, scope={}), "scope: a Scope, not {}"),
                (lambda: self.exe.train_from_dataset(self.main, dataset, thread="2"), "thread: a whole number, not '2'"),
                (lambda: self.exe.train_from_dataset(self.main, dataset, thread=-1), "thread: at least 0, not -1"),
                (lambda: self.exe.train_from_dataset(self.main, dataset, fetch_list=[self.loss], fetch_info=[3]),
                 "fetch_info: a str, not 3"),
                (lambda: self.exe.train_from_dataset(self.main, dataset, print_period=-1), "print_period: at least 0, not -1"),
                (lambda: self.exe.train_from_dataset(self.main, dataset, fetch_handler=print), "fetch_handler: a FetchHandler, not"),
                (lambda: millrace.FetchHandler([self.loss]), "FetchHandler: a dict of Variables"),
                (lambda: millrace.Executor("gpu"), "place: a CPUPlace, not 'gpu'"),
                (lambda: dataset.set_batch_size(0), "rows of a batch: at least 1, not 0"),
                (lambda: dataset.set_batch_size(2.5), "a whole number, not 2.5"),
                (lambda: dataset.set_thread("x"), "set_thread: a whole number, not 'x'"),
                (lambda: dataset.set_pipe_command(None), "set_pipe_command: a str, not None"),
                (lambda: dataset.set_filelist(None), "set_filelist: a list of files, not None"),
                (lambda: dataset.set_filelist([3]), "set_filelist: a file's name, not 3"),
                (lambda: dataset.set_use_var(self.variables[0]), "a list of Variables of layers.data"),
                (lambda: dataset.set_use_var(["label"]), "takes Variables"),
                (lambda: self.exe.train_from_dataset(self.main, millrace.QueueDataset()), "call set_use_var|call set_filelist"),
                (lambda: self.exe.train_from_dataset(self.startup, dataset), "runs main programs"),
                (lambda: self.exe.train_from_dataset(self.main, dataset, fetch_list=[self.loss], fetch_info=[]),
                 "fetch_info has 0 texts for 1 variables"),
                (lambda: self.exe.train_from_dataset(self.main, dataset, fetch_list=["lss"]), 'fetch_list: the program has no variable "lss"'),
                (lambda: self.exe.train_from_dataset(self.main, dataset, fetch_list=[self.loss], print_period=-1), "print_period"),
                (lambda: millrace.DatasetFactory().create_dataset("QueuDataset"), 'no dataset class "QueuDataset"'),
                (lambda: self.exe.train_from_dataset(self.main, self.dataset(self.variables, "InMemoryDataset")),
                 "call load_into_memory")]:
            with self.assertRaisesRegex(millrace.ConfigError, message):
                mistake()

    def test_inference_changes_nothing_and_goes_over_every_row(self):
        dataset = self.dataset(self.variables)
        before = self.scope.get("w")
        report = self.exe.infer_from_dataset(self.main, dataset, fetch_list=[self.first], fetch_info=["x"], print_period=1)
        seen = [round(float(value), 3) for entry in report.history for value in entry["x"]]
        self.assertEqual(seen, self.wanted())
        self.assertTrue((self.scope.get("w") == before).all())
        self.assertEqual(self.scope.step, 0)
        test = self.main.clone(for_test=True)
        self.assertEqual(self.exe.infer_from_dataset(test, dataset, thread=2).examples, 40)
        self.exe.train_from_dataset(self.main, dataset)
        self.assertFalse((self.scope.get("w") == before).all())

    def test_a_fetch_handler_sees_variables_and_ends_a_training(self):
        class Handler(millrace.FetchHandler):
            seen = []

            def handler(self, res_dict):
                self.seen.append(res_dict["x"])
                if len(self.seen) == 2:
                    raise KeyError("enough")
        handler = Handler({"x": self.first}, period_secs=0)
        with self.assertRaisesRegex(KeyError, "enough"):
            self.exe.train_from_dataset(self.main, self.dataset(self.variables), fetch_handler=handler)
        self.assertEqual([round(float(value), 3) for batch in handler.seen for value in batch], self.wanted()[:32])
        self.assertEqual(self.order(self.dataset(self.variables)), self.wanted())

    def test_a_failed_training_leaves_scope_and_dataset_usable(self):
        dataset = self.dataset(self.variables)
        dataset.set_pipe_command("exit 3")
        with self.assertRaisesRegex(millrace.IoError, "exited with status 3"):
            self.exe.train_from_dataset(self.main, dataset)
        dataset.set_pipe_command("cat")
        self.assertEqual(self.order(dataset), self.wanted())

    def test_ctrl_c_ends_a_training_and_a_load(self):
        for call in ("train", "load"):
            dataset = self.dataset(self.variables, "QueueDataset" if call == "train" else "InMemoryDataset")
            dataset.set_pipe_command("sleep 3000")
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                if call == "train":
                    self.exe.train_from_dataset(self.main, dataset)
                else:
                    dataset.load_into_memory()
        self.assertEqual(self.order(self.dataset(self.variables)), self.wanted())

    def test_a_scope_is_used_by_one_training_at_a_time(self):
        go = self.path("go")
        dataset = self.dataset(self.variables)
        dataset.set_pipe_command("while [ ! -e %s ]; do sleep 0.02; done; cat" % go)
        reports = []
        scope = self.scope

        def train():
            reports.append(self.exe.train_from_dataset(self.main, dataset, scope=scope))
        thread = threading.Thread(target=train)
        thread.start()
        busy = False
        while not busy:
            try:
                scope.get("w")
            except millrace.AlreadyExistsError as error:
                busy = True
                self.assertIn("the scope is in use", str(error))
        support.write(go, "")
        thread.join()
        self.assertEqual(reports[0].examples, 40)
        self.assertEqual(scope.get("w").shape, (2, 1))

    def test_variables_are_read_and_written(self):
        self.scope.set("w", np.array([[1.0], [2.0]], dtype=np.float32))
        self.assertEqual(np.array(self.scope.find_var("w").get_tensor()).tolist(), [[1.0], [2.0]])
        self.assertIsNone(self.scope.find_var("v"))
        self.scope.var("v")
        with self.assertRaisesRegex(millrace.NotFoundError, 'the variable "v" of the scope has no value yet'):
            np.array(self.scope.find_var("v").get_tensor())
        self.assertNotIn("v", self.scope.names())
        with self.assertRaisesRegex(millrace.ConfigError, r'"w" is float32 \[2, 1\]; the array is float64 \[2\]'):
            self.scope.set("w", np.zeros(2))
        self.assertIn("w", self.scope.names())

    def test_binary_files_are_trained_as_their_text(self):
        support.write(self.path("job.prototxt"), "filelist: '%s' data_desc { %s } dataset { class_name: 'QueueDataset' } %s" % (
            self.path("part-*"), self.dataset(self.variables).desc(), """
            model { layer { name: "y" fc { in: "dense" units: 1 } } loss { kind: SQUARED_ERROR in: "y" label: "label" }
                    layer { name: "e" embedding { slots: "C1..C3" table: "t" } } table { name: "t" dim: 1 }
                    optimizer { sgd {} } }"""))
        support.run("inspect", "convert", "--trainer_desc=" + self.path("job.prototxt"), "--output_dir=" + self.path("binary"))
        dataset = millrace.DatasetFactory().create_dataset("FileInstantDataset")
        dataset.set_batch_size(16)
        dataset.set_use_var(self.variables)
        dataset.set_filelist([self.path("binary/part-*")])
        self.assertEqual(self.order(dataset), self.wanted())
        for refused, message in ((lambda: dataset.set_pipe_command("zcat"), "inspect convert"),
                                 (dataset.local_shuffle, "cannot shuffle"), (dataset.global_shuffle, "cannot shuffle"),
                                 (self.dataset(self.variables).local_shuffle, "streams its rows"),
                                 (self.dataset(self.variables).global_shuffle, "streams its rows")):
            with self.assertRaisesRegex(millrace.ConfigError, message):
                refused()

    def test_phases_change_between_trainings(self):
        # Rows of three searches; the first dense value is the row's number.
        searches = [0, 1, 0, 2, 1, 0]
        text = "".join("1 %016x%016x 1 1 2 %d 0 1 5 1 6 1 7\n" % (row, search + 1, row + 1)
                       for row, search in enumerate(searches))
        dataset = self.dataset(self.variables, "InMemoryDataset")
        dataset.set_filelist(support.write(self.path("views"), text))
        dataset.set_batch_size(4)
        dataset.set_parse_logkey(True)
        with self.assertRaisesRegex(millrace.ConfigError, "call set_enable_pv_merge"):
            dataset.preprocess_instance()
        dataset.set_enable_pv_merge(True)
        dataset.set_pv_batch_size(1)
        self.assertEqual(dataset.load_into_memory(), 6)
        self.assertEqual(dataset.get_pv_data_size(), 3)

        def batches():
            report = self.exe.train_from_dataset(self.main, dataset, fetch_list=[self.first], fetch_info=["x"], print_period=1)
            return [list(map(int, entry["x"])) for entry in report.history]
        dataset.preprocess_instance()
        dataset.set_current_phase(1)
        self.assertEqual(batches(), [[1, 3, 6], [2, 5], [4]])
        dataset.set_current_phase(0)
        dataset.postprocess_instance()
        self.assertEqual(batches(), [[1, 2, 3, 4], [5, 6]])
        with self.assertRaisesRegex(millrace.ConfigError, r"1 \(join\) or 0 \(update\), not 2"):
            dataset.set_current_phase(2)
        plain = self.dataset(self.variables, "InMemoryDataset")
        plain.load_into_memory()
        with self.assertRaisesRegex(millrace.ConfigError, "JOIN hands out page views: set enable_pv_merge"):
            plain.set_current_phase(1)

    def test_shuffled_slots_draw_among_so_many_rows(self):
        dataset = self.dataset([self.label, self.dense] + self.slots, "InMemoryDataset")
        dataset.set_fea_eval(10, True)
        dataset.load_into_memory()
        ids = layers.cast(layers.sequence_pool(layers.cast(self.slots[0], "float32"), "sum"), "float32")

        def seen():
            report = self.exe.infer_from_dataset(self.main, dataset, fetch_list=[ids, self.first], fetch_info=["C1", "x"],
                                                 print_period=1)
            return ([value for entry in report.history for value in entry["C1"]],
                    [round(float(value), 3) for entry in report.history for value in entry["x"]])
        before = seen()
        dataset.slots_shuffle(["C1"], seed=3)
        shuffled = seen()
        self.assertNotEqual(shuffled[0], before[0])
        self.assertEqual(shuffled[1], before[1])
        self.assertLessEqual(set(shuffled[0]), set(before[0]))
        dataset.slots_shuffle([])
        self.assertEqual(seen(), before)
        with self.assertRaisesRegex(millrace.ConfigError, 'a list of slots, not "C1"|a list of slots, not .C1.'):
            dataset.slots_shuffle("C1")
        with self.assertRaisesRegex(millrace.Error, "C9"):
            dataset.slots_shuffle(["C9"])
        with self.assertRaisesRegex(millrace.ConfigError, "rows to draw from: at least 1, not 0"):
            dataset.set_fea_eval(0)

    def test_a_training_prints_what_paddle_prints(self):
        script = """
import os, sys
sys.path.insert(0, sys.argv[1])
import millrace
from millrace import layers, optimizer
label, dense = layers.data("label", [1], "int64"), layers.data("dense", [2])
slots = [layers.data("C%%d" %% i, [1], "int64", lod_level=1) for i in (1, 2, 3)]
loss = layers.mean(layers.fc(dense, 1, param_attr="w"))
optimizer.SGD(0.01).minimize(loss)
exe = millrace.Executor()
exe.run(millrace.default_startup_program())
dataset = millrace.DatasetFactory().create_dataset()
dataset.set_batch_size(8)
dataset.set_use_var([label, dense] + slots)
dataset.set_filelist([%r])
report = exe.train_from_dataset(dataset=dataset, fetch_list=[loss, "w"], fetch_info=["cost", "weights"], print_period=2,
                                debug=True)
print("history", [entry["batch"] for entry in report.history], len(report.history[0]["weights"]))
""" % self.path("part-*")
        done = subprocess.run([sys.executable, "-c", script, os.path.dirname(os.path.dirname(millrace.__file__))],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 3, done.stdout)  # 40 rows in 5 batches, every second one
        for line, batch in zip(lines, (2, 4)):
            self.assertRegex(line, r"^time: \[.*\], batch: \[%d\], cost\[1\]:\[[^ ]*\], weights\[2\]:\[[^ ]* [^ ]*\]$" % batch)
        self.assertEqual(lines[2], "history [2, 4] 2")
        self.assertTrue(done.stderr.startswith('class_name: "MultiTrainer"\n'), done.stderr)
        self.assertIn('fetch_var_str_format: "weights" print_period: 2', done.stderr)
        self.assertIn("len(ops)=", done.stderr)
        self.assertIn("op[0]->Type(): ", done.stderr)

    def test_slots_are_written_out(self):
        desc = self.dataset(self.variables).desc()
        self.assertIn('slots { name: "dense" type: "float" is_used: true is_dense: true shape: [-1, 2] }', desc)
        self.assertIn('slots { name: "C3" type: "uint64" is_used: true }', desc)


if __name__ == "__main__":
    unittest.main()
