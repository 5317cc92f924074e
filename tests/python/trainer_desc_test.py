"""What a training runs by: the text that train_from_dataset runs, the job that trainer runs likewise, and pipelines."""

import os
import unittest

import program_test
import support

import numpy as np

import millrace
from millrace import layers, optimizer


class TrainerDescTest(program_test.Fresh):
    def setUp(self):
        super().setUp()
        support.write_log(self.folder, 40, parts=2)
        self.label = layers.data("label", [1], "int64")
        self.dense = layers.data("dense", [2])
        self.slots = [layers.data("C%d" % i, [1], "int64", lod_level=1) for i in (1, 2, 3)]
        self.variables = [self.label, self.dense] + self.slots
        self.hidden = layers.fc(self.dense, 4, act="relu", param_attr="w0")
        prediction = layers.fc(self.hidden, 1, act="sigmoid", param_attr="w1")
        self.loss = layers.mean(layers.log_loss(prediction, layers.cast(self.label, "float32")))
        self.exe = millrace.Executor()

    def weights(self):
        scope = millrace.global_scope()
        return [np.array(scope.get(name)) for name in ("w0", "w1")]

    def train(self, **arguments):
        self.exe.run(self.startup)
        self.exe.train_from_dataset(self.main, self.dataset(self.variables), **arguments)
        return self.weights()

    def test_the_text_names_the_trainer_the_workers_and_what_is_fetched(self):
        optimizer.SGD(0.1).minimize(self.loss)
        desc = self.exe.trainer_desc(self.main, self.dataset(self.variables), thread=2, fetch_list=[self.loss], fetch_info=["loss"],
                                     print_period=5)
        self.assertIsInstance(desc, millrace.MultiTrainer)
        text = str(desc)
        for line in ('class_name: "MultiTrainer"', 'device_worker_name: "HogwildWorker"', "thread_num: 2", "update_mode: HOGWILD",
                     'fetch_var_str_format: "loss" print_period: 5'):
            self.assertIn(line, text)

    def test_a_saved_job_trains_to_the_same_bytes_as_train_from_dataset(self):
        optimizer.Adagrad(0.1).minimize(self.loss)
        job = os.path.join(self.folder, "job")
        self.exe.trainer_desc(self.main, self.dataset(self.variables)).save(job)
        saved = os.path.join(self.folder, "saved")
        support.run("trainer", "--trainer_desc=" + os.path.join(job, "job.prototxt"), "--set",
                            'program.save_dir="%s"' % saved)
        wanted = self.train()
        self.exe.run(self.startup)
        millrace.load_persistables(self.exe, saved, self.main)
        for a, b in zip(self.weights(), wanted):
            np.testing.assert_array_equal(a, b)

    def test_a_pipeline_trains_to_the_bytes_of_one_worker(self):
        with_one = optimizer.SGD(0.1)
        optimizer.PipelineOptimizer(with_one, cut_list=[[self.hidden], [self.loss]], place_list=[millrace.CPUPlace()] * 3,
                                    concurrency_list=[1, 2, 1], queue_size=2).minimize(self.loss)
        desc = self.exe.trainer_desc(self.main, self.dataset(self.variables))
        self.assertIsInstance(desc, millrace.PipelineTrainer)
        self.assertIn('section_config { section_out_var_names: "%s" concurrency: 1 } section_config { concurrency: 2 } queue_size: 2'
                      % self.hidden.name, str(desc))
        piped = self.train()
        self.main._pipeline_opt = None
        for a, b in zip(self.train(), piped):
            np.testing.assert_array_equal(a, b)

    def test_a_pipeline_infers_as_any_program(self):
        optimizer.PipelineOptimizer(optimizer.SGD(0.1), cut_list=[[self.hidden], [self.loss]]).minimize(self.loss)
        before = self.train()
        report = self.exe.infer_from_dataset(self.main, self.dataset(self.variables))
        self.assertEqual(report.examples, 40)
        for a, b in zip(self.weights(), before):
            np.testing.assert_array_equal(a, b)

    def test_mistakes_of_a_pipeline_are_named(self):
        sgd = optimizer.SGD(0.1)
        with self.assertRaisesRegex(millrace.ConfigError, "cut_list has 1 sections; a pipeline has 2 or more"):
            optimizer.PipelineOptimizer(sgd, cut_list=[[self.loss]])
        with self.assertRaisesRegex(millrace.ConfigError, "concurrency_list has 4 entries for 2 sections"):
            optimizer.PipelineOptimizer(sgd, cut_list=[[self.hidden], [self.loss]], concurrency_list=[1, 1, 1, 1])
        with self.assertRaisesRegex(millrace.ConfigError, "concurrency_list"):
            optimizer.PipelineOptimizer(sgd, cut_list=[[self.hidden], [self.loss]], concurrency_list=[1, 0])
        with self.assertRaisesRegex(millrace.ConfigError, "place_list"):
            optimizer.PipelineOptimizer(sgd, cut_list=[[self.hidden], [self.loss]], place_list=["gpu", "cpu"])

    def test_a_trainer_that_there_is_not_is_named_with_those_that_there_are(self):
        factory = millrace.TrainerFactory()
        self.assertIsInstance(factory._create_trainer(), millrace.MultiTrainer)
        with self.assertRaisesRegex(millrace.ConfigError, 'there is no trainer "DistMultiTrainer"; there are MultiTrainer, '
                                                          "PipelineTrainer"):
            factory._create_trainer({"trainer": "DistMultiTrainer", "device_worker": "DownpourSGD"})
        with self.assertRaisesRegex(millrace.ConfigError, "a PipelineTrainer has the device worker Section"):
            factory._create_trainer({"trainer": "PipelineTrainer"})
        with self.assertRaisesRegex(millrace.ConfigError, "opt_info: a dict, not 'MultiTrainer'"):
            factory._create_trainer("MultiTrainer")
        with self.assertRaisesRegex(millrace.ConfigError, 'Section needs opt_info."section_param".'):
            str(factory._create_trainer({"trainer": "PipelineTrainer", "device_worker": "Section"}))


if __name__ == "__main__":
    unittest.main()
