"""What the campaigns of damage and of hostile surroundings start from: data, runs, models, all small and always the same."""

import os
import shutil

import jobs

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

STOPPED_AT = 28  # steps of the run that is stopped; an epoch has 19


def copy_of_world(case):
    """A copy for this case; all paths in it are relative, so programs run with it as their folder."""
    folder = case.path("world")
    shutil.copytree(prepared(case), folder, symlinks=True)
    return folder


# What programs print, by the name of the file that keeps it.
PRINTED = {
    "head": ("inspect", "head", "--trainer_desc=job.prototxt", "--batches=3"),
    "stats": ("inspect", "stats", "--trainer_desc=job.prototxt"),
    "clickgen": ("clickgen", "--output_dir=-", "--rows=300"),
    "config": ("trainer", "--trainer_desc=job.prototxt", "--print_config"),
}


def made_world(case):
    """Where it was made: what results are compared with."""
    return os.path.join(case.cache, "world")


def prepared(case):
    """A folder with everything that is damaged later; its paths are relative to the folder."""
    folder = os.path.join(case.cache, "world")
    if os.path.exists(os.path.join(folder, "DONE")):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)

    def train(job, out, *flags):
        case.succeed("trainer", "--trainer_desc=" + job, "--output_dir=" + out, *flags, cwd=folder)

    write = lambda name, text: jobs.write_file(os.path.join(folder, name), text)  # noqa: E731
    jobs.write_log(os.path.join(folder, "data"), [250, 350])
    jobs.write_log(os.path.join(folder, "packed"), [250, 350], packed=True)
    jobs.write_log(os.path.join(folder, "other_packed"), [250, 350], packed=True, seed=8)
    write("held_out", "".join(jobs.lines_of_log(100000, 200)))
    extra = "update_mode: SERIAL epochs: 2 output { tensorboard: false }\n"
    keeps = "checkpoint { every_steps: 7 keep: 100 }\neval { filelist: \"held_out\" }\n"
    write("job.prototxt", jobs.deep_job(["data/part-0", "data/part-1"], extra + keeps))
    write("packed.prototxt", jobs.deep_job(["packed/part-0.gz", "packed/part-1.gz"], extra + keeps))
    train("job.prototxt", "own")
    train("job.prototxt", "other", "--set", "seed=2")
    case.succeed("inspect", "convert", "--trainer_desc=job.prototxt", "--output_dir=binary", cwd=folder)
    # Runs that were stopped in the middle of an epoch: what a kill leaves of them.
    for out in ("own", "other"):
        shutil.copytree(os.path.join(folder, out), os.path.join(folder, out + "_stopped"), symlinks=True)
        stopped = os.path.join(folder, out + "_stopped")
        for name in os.listdir(os.path.join(stopped, "checkpoints")):
            if name.startswith("step-") and int(name[5:]) > STOPPED_AT:
                shutil.rmtree(os.path.join(stopped, "checkpoints", name))
        shutil.rmtree(os.path.join(stopped, "model"))
        best = os.path.join(stopped, "checkpoints", "best")
        if os.path.lexists(best):
            os.remove(best)
    for out, seed in (("exported", 1), ("other_exported", 2)):
        train("job.prototxt", out, "--set", "output.export=[{ format: PADDLE vocabulary: 2000 }]", "--set",
              "model.table[t].key=ID", "--set", "seed=%d" % seed)
    # Programs that feed themselves, from RecordIO.
    readers = jobs.self_feeding_job(ROOT, os.path.join(folder, "readers"), "multi_pass", 300, "", [
        (os.path.join(folder, "readers"), "readers"), (".csv", ".recordio")])
    for part in range(2):
        case.succeed("inspect", "records", "--outputs=float32[-1,8] int64[-1,1]",
                     "--records=readers/points-%d.recordio" % part, "readers/points-%d.csv" % part, cwd=folder)
    shutil.copytree(os.path.join(folder, "readers"), os.path.join(folder, "other_readers"))
    shutil.copyfile(os.path.join(folder, "readers", "points-0.recordio"),
                    os.path.join(folder, "other_readers", "points-1.recordio"))
    job = os.path.relpath(readers, folder)
    case.succeed("trainer", "--trainer_desc=" + job, "--set", "program.save_dir=\"saved\"", cwd=folder)
    shutil.copytree(os.path.join(folder, "saved"), os.path.join(folder, "init"))
    case.succeed("trainer", "--trainer_desc=" + job, "--set", "program.save_dir=\"saved_again\"", "--set",
                 "program.init_dir=\"init\"", cwd=folder)
    for model_dir, name in (("own/model", "scores"), ("other/model", "other_scores"), ("exported/paddle", "paddle_scores")):
        scores = case.succeed("predictor", "--model_dir=" + model_dir, "--input=data/part-0", cwd=folder)
        write(name, scores.out)
    for name, arguments in PRINTED.items():
        write(name + ".expected", case.succeed(*arguments, cwd=folder).out)
    write("DONE", "")
    return folder


