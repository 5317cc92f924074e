"""Malformed jobs, programs and models: sound ones with some changes, which are validated and then run for a few batches.

What must hold: each is refused with a word (2 or 3), or it runs and ends, or it is endless and ends when it is asked to.
Never a signal, never exit code 4, never a hang.
"""

import os
import re
import resource
import shutil
import signal

import jobs
import prototxt
import wire
from case import content, read

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONFIGS = ("lr", "fm", "deepfm", "dcn", "wide_deep")
READERS = ("has_next", "multi_pass", "dataset")
# Seconds after which an endless one is asked to end: it may be meant to run for long.
PATIENCE = 15
MEMORY = 6 << 30


def run_case(case):
    made = prepared(case)
    world = case.path("world")
    shutil.copytree(made, world)
    return case.rng.choice((job, job, small_job, program, program, program, saved_model, paddle_model))(case, world)


def prepared(case):
    folder = os.path.join(case.cache, "malformed")
    if os.path.exists(os.path.join(folder, "DONE")):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    case.succeed("clickgen", "--output_dir=" + os.path.join(folder, "clicks"), "--rows=300", "--test_rows=50",
                 "--vocabulary=50")
    for name in CONFIGS:
        text = read(os.path.join(ROOT, "configs", name + ".prototxt"))
        text = text.replace("data/clicks/train/part-*", "clicks/train/part-*").replace("[1024, 512, 256]", "[16, 8]")
        text = text.replace("batch_size: 512", "batch_size: 64") + "eval { filelist: \"clicks/test/part-*\" }\n"
        jobs.write_file(os.path.join(folder, name + ".prototxt"), text)
    for name in READERS:
        path = jobs.self_feeding_job(ROOT, os.path.join(folder, name), name, 60)
        for file in os.listdir(os.path.dirname(path)):
            text = read(os.path.join(folder, name, file))
            jobs.write_file(os.path.join(folder, name, file), text.replace(os.path.join(folder, name), name))
    jobs.write_log(os.path.join(folder, "data"), [150])
    extra = "update_mode: SERIAL eval { filelist: \"data/part-0\" } checkpoint { every_steps: 2 }\n" \
        "output { export { format: PADDLE vocabulary: 2000 } export { format: ONNX vocabulary: 2000 dir: \"onnx\" } }\n" \
        "dataset { class_name: \"InMemoryDataset\" local_shuffle: true } thread_num: 1 epochs: 1\n"
    text = jobs.deep_job(["data/part-0"], extra).replace("key: SLOT_AND_ID", "key: ID")
    jobs.write_file(os.path.join(folder, "small.prototxt"), text)
    case.succeed("trainer", "--trainer_desc=small.prototxt", "--output_dir=run", cwd=folder)
    jobs.write_file(os.path.join(folder, "DONE"), "")
    return folder


# Operators that programs are given in place of theirs.
OPERATORS = (
    "accuracy adagrad adam assign auc batch_norm cast concat concat_grad conditional_block cross_entropy dropout "
    "elementwise_add elementwise_mul feed fetch fill_constant gather has_next increment load lookup_table lookup_table_v2 "
    "matmul mean mul one_hot print read read_from_array reduce_sum relu reset reshape2 save scale sequence_concat "
    "sequence_expand sequence_pool sgd shape slice softmax split stack sum top_k transpose2 while write_to_array").split()


def spoil(case, text, words=()):
    """The text with one to a few changes, most of them one."""
    if case.rng.random() < 0.08:
        return prototxt.garble(text, case.rng)
    fields = prototxt.parse(text)
    for _ in range(case.rng.choice((1, 1, 1, 2, 3, 6))):
        case.history.append("change: " + prototxt.mutate(fields, case.rng, words))
    return prototxt.text_of(fields)


def limit_memory():
    """What asks for more is to be refused, before the machine is out of memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def endless_or_done(case, *words, cwd):
    """Runs it; what does not end in time is asked to, and must."""
    running = case.start(*words, cwd=cwd, prepare=None if case.is_sanitized else limit_memory)
    done = running.wait(PATIENCE, may_hang=True)
    if done is None:
        running.signal(signal.SIGINT)
        done = running.wait()
        return done, "endless, and ended when it was asked"
    case.expect_no_process(running.command())
    return done, {0: "ran", 2: "refused with 2", 3: "refused with 3"}.get(done.code, "ended with %d" % done.code)


def validate_and_run(case, path, world):
    flags = ("--trainer_desc=" + path, "--output_dir=out")
    done, outcome = endless_or_done(case, "trainer", *flags, "--validate_only", cwd=world)
    if done.code in (2, 3) and case.rng.random() < 0.7:
        return "validated: " + outcome
    was_valid = done.code == 0
    done, outcome = endless_or_done(case, "trainer", *flags, cwd=world)
    if done.code == 0 and os.path.exists(os.path.join(world, "out", "model", "MODEL")) and case.rng.random() < 0.3:
        endless_or_done(case, "predictor", "--model_dir=out/model", "--input=data/part-0", cwd=world)
    return ("valid, " if was_valid else "not valid, ") + outcome


def job(case, world):
    name = case.rng.choice(CONFIGS) + ".prototxt"
    jobs.write_file(os.path.join(world, "job.prototxt"), spoil(case, read(os.path.join(world, name))))
    return "job: " + validate_and_run(case, "job.prototxt", world)


def small_job(case, world):
    jobs.write_file(os.path.join(world, "job.prototxt"), spoil(case, read(os.path.join(world, "small.prototxt"))))
    return "job: " + validate_and_run(case, "job.prototxt", world)


def program(case, world):
    name = case.rng.choice(READERS)
    programs = "step" if name == "dataset" else name
    path = os.path.join(world, name, programs + case.rng.choice(("_main", "_main", "_main", "_startup")) + ".pbtxt")
    jobs.write_file(path, spoil(case, read(path), OPERATORS))
    return "program: " + validate_and_run(case, os.path.join(name, name + ".prototxt"), world)


def spoil_bytes(case, data):
    if case.rng.random() < 0.1:
        at = case.rng.randrange(len(data))
        return case.rng.choice((data[:at], data[:at] + case.rng.randbytes(4) + data[at + 4:]))
    fields = wire.parse(data)
    for _ in range(case.rng.choice((1, 1, 1, 2, 4))):
        if fields:
            case.history.append("change: " + wire.mutate(fields, case.rng))
    return wire.serialize(fields)


def change_file(path, how):
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(how(data))


def seal(folder):
    """Puts the sums of a model's manifest right, so that what was changed is read."""
    manifest = os.path.join(folder, "MODEL")
    text = read(manifest).rpartition("# crc32c of the bytes above: ")[0] or read(manifest)
    files = content(folder)

    def with_sums(match):
        data = files.get(match.group(1))
        if data is None:
            return match.group(0)
        return 'file {\n  name: "%s"\n  bytes: %d\n  crc32c: %d\n}' % (match.group(1), len(data), wire.crc32c(data))
    text = re.sub(r'file \{\n  name: "([^"]*)"\n[^}]*\}', with_sums, text)
    jobs.write_file(manifest, text + "# crc32c of the bytes above: %d\n" % wire.crc32c(text.encode()))


def score(case, world, folder):
    feed = case.rng.choice(([], [], ["--feed=online"]))
    _, outcome = endless_or_done(case, "predictor", "--model_dir=" + folder, "--input=data/part-0", *feed, cwd=world)
    return outcome


def saved_model(case, world):
    folder = os.path.join(world, "run", "model")
    name = case.rng.choice(("MODEL", "program_offline", "program_offline", "program_tables", "program_online"))
    path = os.path.join(folder, name)
    if name == "MODEL":
        text = read(path).rpartition("# crc32c of the bytes above: ")[0]
        jobs.write_file(path, spoil(case, text))
    else:
        change_file(path, lambda data: spoil_bytes(case, data))
    seal(folder)
    return "sealed model: " + score(case, world, "run/model")


def paddle_model(case, world):
    folder = os.path.join(world, "run", "paddle")
    names = sorted(name for name in os.listdir(folder) if name.endswith((".pdmodel", ".pdiparams", ".prototxt")))
    path = os.path.join(folder, case.rng.choice([name for name in names for _ in range(4 if "pdmodel" in name else 1)]))
    if path.endswith(".prototxt"):
        jobs.write_file(path, spoil(case, read(path)))
    elif path.endswith(".pdmodel"):
        change_file(path, lambda data: spoil_bytes(case, data))
    else:
        change_file(path, lambda data: prefix_and_noise(case, data))
    done_as = score(case, world, "run/paddle/model" if case.rng.random() < 0.5 else "run/paddle")
    return "Paddle's model: " + done_as


def prefix_and_noise(case, data):
    at = case.rng.randrange(len(data))
    return data[:at] + case.rng.randbytes(case.rng.choice((1, 4, 8))) + data[at + case.rng.choice((0, 1, 8)):]
