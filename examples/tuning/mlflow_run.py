"""A training as a run of MLflow: settings, curves, and the model as an artifact: pip install mlflow (mlflow-skinny is enough).

    python3 rows.py && python3 mlflow_run.py [PATH=VALUE ...]
"""

import os
import sys

import mlflow

import millrace

HERE = os.path.dirname(os.path.abspath(__file__))


def train(overrides):
    with mlflow.start_run() as run:
        folder = os.path.join("out", run.info.run_id)
        job = millrace.Job(os.path.join(HERE, "job.prototxt"), overrides=overrides, output_dir=folder)
        mlflow.log_params(dict(field.split("=", 1) for field in overrides))
        mlflow.log_text(job.config, "job.prototxt")  # with every default written out

        def log(entry):
            """Is told of each pass and each evaluation."""
            before = "eval_" if entry["kind"] == "evaluation" else "train_"
            values = {before + name: value for name, value in entry.items() if isinstance(value, float)}
            # Callbacks are called by a thread of the run, and MLflow's active run is the starting thread's own.
            mlflow.log_metrics(values, step=entry["epoch"], run_id=run.info.run_id)

        found = job.run(verbose=False, callbacks=log)
        mlflow.log_metric("examples_per_second", found.examples_per_second)
        mlflow.log_artifacts(os.path.join(folder, "model"), "model")
        return run.info.run_id


if __name__ == "__main__":
    print("run %s" % train(sys.argv[1:]))
