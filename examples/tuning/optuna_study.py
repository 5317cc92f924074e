"""Optuna chooses what to try next, and gives up early what does not look well: pip install optuna.

    python3 rows.py && python3 optuna_study.py [TRIALS]
"""

import os
import sys

import optuna

import millrace

HERE = os.path.dirname(os.path.abspath(__file__))


def objective(trial):
    units = trial.suggest_categorical("units", ["[8]", "[32]", "[32, 16]"])  # Optuna takes texts, and no lists
    lr = trial.suggest_float("lr", 1e-4, 0.1, log=True)
    job = millrace.Job(os.path.join(HERE, "job.prototxt"), output_dir="out/trial-%d" % trial.number,
                       overrides=["model.layer[h].fc.units=" + units, "model.optimizer.adam.lr=%r" % lr])

    def report(entry):
        """Is told of each pass and each evaluation; what it raises ends the run."""
        if entry["kind"] != "evaluation":
            return
        trial.report(entry["auc"], step=entry["epoch"])
        if trial.should_prune():
            raise millrace.StopTraining

    found = job.run(verbose=False, callbacks=report)
    if found.epochs < 5:
        raise optuna.TrialPruned
    return max(entry["auc"] for entry in found.evaluations)  # keep_best saves that model


if __name__ == "__main__":
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=1),
                                pruner=optuna.pruners.MedianPruner(n_startup_trials=3))
    study.optimize(objective, n_trials=int(sys.argv[1]) if len(sys.argv) > 1 else 20)
    print("best of %d: trial %d, auc %.4f, %s" % (len(study.trials), study.best_trial.number, study.best_value, study.best_params))
