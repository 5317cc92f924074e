"""Damage of every file that a run or a model leaves or reads: cut, changed, emptied, removed, replaced.

What must hold: it is refused (exit code 2 or 3) by a message that names the file, or it has no effect on any number. Never
a crash, never a hang, never other numbers in silence. Formats without checksums (text, Paddle's files) cannot show a byte
that was changed into another sound one; of them the numbers are compared only where the damage is no such change.
"""

import os
import shutil
import signal
import socket

from case import Violation, content, difference, read
from world import copy_of_world

def run_case(case):
    world = copy_of_world(case)
    kind = case.rng.choice((checkpoint, checkpoint, output_folder, model, model, paddle_model, packed_input, resumed_input,
                            binary_input, records, stored_variables))
    return kind(case, world)


# What is damaged.


def expect(case, world, done, damaged, equal, can_show=True):
    """The oracle: done well with equal numbers, or refused by name."""
    names = [os.path.basename(path) for path, _ in damaged]
    kinds = ", ".join("%s %s" % (kind, os.path.relpath(path, world)) for path, kind in damaged)
    if done.code == 0:
        differs = equal()
        if not differs:
            return "without effect"
        if not can_show:
            return "no sums in this format: read as it is"
        raise Violation("%s: exit code 0 and other numbers in silence: %s\n%s" % (kinds, differs, tail(done)))
    if done.code not in (2, 3):
        raise Violation("%s: exit code %d\n%s" % (kinds, done.code, tail(done)))
    # What is not there, or is sound and of another run, is known by what lies beside it.
    names += [os.path.relpath(os.path.dirname(path), world) + "/" for path, kind in damaged if kind == "of_another_run"]
    names += [os.path.basename(os.path.dirname(path)) for path, kind in damaged if kind == "removed"]
    if not any(name in done.err for name in names):
        raise Violation("%s: the message names no file of these\n%s" % (kinds, tail(done)))
    return "refused by name"


def run_on_input(case, damaged, *arguments, **options):
    """Runs what reads damaged input. A pipe without a writer is waited for, as it should be, until a signal comes."""
    running = case.start(*arguments, **options)
    if not any(kind == "fifo" for _, kind in damaged):
        return running.wait()
    done = running.wait(5, may_hang=True)
    if done is None:
        running.signal(signal.SIGINT)
        done = running.wait(20, may_hang=True)
        if done is None:  # within the job's own file, which may be a pipe of the shell, the second one ends it
            running.signal(signal.SIGINT)
            done = running.wait()
        if done.code == 130:
            return None
    return done


def tail(done):
    return "\n".join("    | " + line[:400] for line in done.err.splitlines()[-12:])


def damage_some(case, paths, donor):
    """Damages one of the paths, or a few; returns [(path, what was done)]."""
    count = 1 if case.rng.random() < 0.85 else case.rng.randrange(2, 4)
    damaged = []
    for path in case.rng.sample(sorted(paths), min(count, len(paths))):
        kind = case.rng.choice(sorted(DAMAGES))
        if os.path.isdir(path) and not os.path.islink(path):
            kind = case.rng.choice(("removed", "empty", "folder", "fifo", "link_to_nothing", "link_to_itself",
                                    "of_another_run"))
        case.history.append("%s %s" % (kind, path))
        if not os.path.lexists(path):
            continue  # went with its folder
        DAMAGES[kind](case.rng, path, donor(path))
        damaged.append((path, kind))
        case.tally["damage: " + kind] += 1
    return damaged


def files_below(folder, with_folders=False):
    found = []
    for base, folders, files in os.walk(folder):
        found += [os.path.join(base, name) for name in files]
        if with_folders:
            found += [os.path.join(base, name) for name in folders]
    return found


def from_other(world, own, other):
    return lambda path: path.replace(os.path.join(world, own), os.path.join(world, other), 1)


def same_model(world, out="own_stopped"):
    return lambda: difference(content(os.path.join(world, "own", "model")), content(os.path.join(world, out, "model")))


def checkpoint(case, world):
    """A checkpoint's file; the run goes on from it, or from an older one."""
    folder = os.path.join(world, "own_stopped", "checkpoints")
    steps = sorted(name for name in os.listdir(folder) if name.startswith("step-"))
    chosen = case.rng.choice((steps[-1], steps[-1], steps[-1], case.rng.choice(steps)))
    paths = files_below(os.path.join(folder, chosen), True) + [os.path.join(folder, chosen)]
    damaged = damage_some(case, paths, from_other(world, "own_stopped", "other_stopped"))
    resume = case.rng.choice(("auto", "auto", "own_stopped/checkpoints/" + chosen))
    if resume != "auto" and (os.path.join(folder, chosen), "of_another_run") in damaged:
        resume = "auto"  # a whole checkpoint, and the one that was asked for
    done = case.run("trainer", "--trainer_desc=job.prototxt", "--output_dir=own_stopped", "--resume=" + resume, cwd=world)
    outcome = expect(case, world, done, [*damaged, (chosen, "in")], same_model(world))
    if outcome == "without effect" and "going on from" not in done.err and "starting anew" not in done.err:
        raise Violation("the run does not say where it began\n" + tail(done))
    if outcome == "without effect" and "refused" in done.err:
        outcome = "passed over by name, the same bytes"
    return "checkpoint: " + outcome


def output_folder(case, world):
    """What stands in the output folder beside the checkpoints."""
    out = os.path.join(world, "own_stopped")
    paths = [os.path.join(out, name) for name in os.listdir(out)] + [os.path.join(out, "checkpoints", "RUN")]
    damaged = damage_some(case, paths, from_other(world, "own_stopped", "other_stopped"))
    done = case.run("trainer", "--trainer_desc=job.prototxt", "--output_dir=own_stopped", "--resume=auto", cwd=world)
    outcome = expect(case, world, done, damaged, same_model(world))
    if outcome == "without effect" and "going on from" not in done.err and "starting anew" not in done.err:
        raise Violation("the run does not say where it began\n" + tail(done))
    return "output folder: " + outcome


def model(case, world):
    paths = files_below(os.path.join(world, "own", "model"), True)
    damaged = damage_some(case, paths, from_other(world, "own", "other"))
    done = case.run("predictor", "--model_dir=own/model", "--input=data/part-0", "--pipe_command=cat", cwd=world)
    expected = read(os.path.join(world, "scores"))
    return "model: " + expect(case, world, done, damaged, lambda: "" if done.out == expected else "the scores")


def is_change_of_bytes(damaged):
    """Whether a damage may have left a sound file with other values."""
    return any(kind in ("flipped", "overwritten", "of_another_run", "of_another_file", "twice", "appended")
               for _, kind in damaged)


def paddle_model(case, world):
    paths = files_below(os.path.join(world, "exported", "paddle"))
    damaged = damage_some(case, paths, from_other(world, "exported", "other_exported"))
    done = case.run("predictor", "--model_dir=exported/paddle/model", "--input=data/part-0", "--pipe_command=cat", cwd=world)
    expected = read(os.path.join(world, "paddle_scores"))
    return "Paddle's model: " + expect(case, world, done, damaged, lambda: "" if done.out == expected else "the scores",
                                       not is_change_of_bytes(damaged))


def packed_input(case, world):
    """Files that are packed have sums of their own."""
    paths = files_below(os.path.join(world, "packed"))
    damaged = damage_some(case, paths, from_other(world, "packed", "other_packed"))
    # Cut to nothing, it is an empty file; another whole file is another input.
    can_show = not any(kind in ("of_another_run", "of_another_file", "empty", "twice", "link_to_nothing_device")
                       for _, kind in damaged)
    can_show = can_show and all(not os.path.isfile(path) or os.path.getsize(path) > 0 for path, _ in damaged)
    done = run_on_input(case, damaged, "trainer", "--trainer_desc=packed.prototxt", "--output_dir=fresh", cwd=world)
    if done is None:
        return "input: waits for who writes to a pipe, until it is stopped"
    return "packed input: " + expect(case, world, done, damaged, same_model(world, "fresh"), can_show)


def resumed_input(case, world):
    """Plain files, in the middle of whose lines a run goes on: another content is found by the sums of its checkpoint."""
    paths = files_below(os.path.join(world, "data"))
    damaged = damage_some(case, paths, from_other(world, "data", "other_packed"))
    done = run_on_input(case, damaged, "trainer", "--trainer_desc=job.prototxt", "--output_dir=own_stopped",
                        "--resume=auto", cwd=world)
    if done is None:
        return "input: waits for who writes to a pipe, until it is stopped"
    return "input of a run that goes on: " + expect(case, world, done, damaged, same_model(world))


def binary_input(case, world):
    paths = files_below(os.path.join(world, "binary"))
    damaged = damage_some(case, paths, from_other(world, "binary", "data"))
    done = run_on_input(case, damaged, "trainer", "--trainer_desc=binary/job.prototxt", "--output_dir=fresh", cwd=world)
    if done is None:
        return "input: waits for who writes to a pipe, until it is stopped"
    # A file of whole rows is a file, with as many as it has.
    return "binary input: " + expect(case, world, done, damaged, same_model(world, "fresh"), False)


def records(case, world):
    """RecordIO has sums; a file that ends with a whole chunk is a whole file."""
    paths = [os.path.join(world, "readers", name) for name in os.listdir(os.path.join(world, "readers"))
             if name.endswith(".recordio")]
    damaged = damage_some(case, paths, from_other(world, "readers", "other_readers"))
    can_show = not any(kind in ("of_another_run", "of_another_file", "twice", "empty", "link_to_nothing_device")
                       for _, kind in damaged)
    can_show = can_show and all(not os.path.isfile(path) or os.path.getsize(path) > 0 for path, _ in damaged)
    done = run_on_input(case, damaged, "trainer", "--trainer_desc=readers/multi_pass.prototxt", "--set",
                        "program.save_dir=\"fresh\"", cwd=world)
    if done is None:
        return "input: waits for who writes to a pipe, until it is stopped"
    return "records: " + expect(
        case, world, done, damaged,
        lambda: difference(content(os.path.join(world, "saved")), content(os.path.join(world, "fresh"))), can_show)


def stored_variables(case, world):
    """Parameters that a program starts from, in Paddle's files."""
    damaged = damage_some(case, files_below(os.path.join(world, "init")), from_other(world, "init", "saved_again"))
    done = run_on_input(case, damaged, "trainer", "--trainer_desc=readers/multi_pass.prototxt", "--set",
                        "program.init_dir=\"init\"", "--set", "program.save_dir=\"fresh\"", cwd=world)
    if done is None:
        return "input: waits for who writes to a pipe, until it is stopped"
    return "Paddle's variables: " + expect(
        case, world, done, damaged,
        lambda: difference(content(os.path.join(world, "saved_again")), content(os.path.join(world, "fresh"))),
        not is_change_of_bytes(damaged))


# The damages: called with the random numbers, the path, and the path of another run's file in this place.


def change(path, how):
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(how(data))


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.remove(path)


def replaced(path, make):
    remove(path)
    make()


def cut(rng, path, _):
    change(path, lambda data: data[:rng.randrange(len(data) + 1)])


def cut_at_the_end(rng, path, _):
    change(path, lambda data: data[:max(0, len(data) - rng.randrange(1, 20))])


def empty(_, path, __):
    if os.path.isdir(path):
        replaced(path, lambda: os.mkdir(path))
    else:
        change(path, lambda data: b"")


def flipped(rng, path, _):
    def flip(data):
        if not data:
            return data
        at = rng.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]
    change(path, flip)


def overwritten(rng, path, _):
    def overwrite(data):
        at = rng.randrange(len(data) + 1)
        length = rng.choice((1, 4, 8, 512))
        new = bytes(length) if rng.random() < 0.3 else rng.randbytes(length)
        return data[:at] + new[:len(data) - at] + data[at + length:]
    change(path, overwrite)


def appended(rng, path, _):
    change(path, lambda data: data + rng.randbytes(rng.choice((1, 8, 1000))))


def twice(_, path, __):
    change(path, lambda data: data + data)


def removed(_, path, __):
    remove(path)


def folder(_, path, __):
    replaced(path, lambda: os.makedirs(os.path.join(path, "inside")))


def fifo(_, path, __):
    replaced(path, lambda: os.mkfifo(path))


def listening(_, path, __):
    def make():
        made = socket.socket(socket.AF_UNIX)
        here = os.open(".", os.O_RDONLY)  # names of sockets are short
        try:
            os.chdir(os.path.dirname(path))
            made.bind(os.path.basename(path))
        finally:
            os.fchdir(here)
            os.close(here)
            made.close()
    replaced(path, make)


def link_to(target):
    return lambda _, path, __: replaced(path, lambda: os.symlink(target, path))


def link_to_itself(_, path, __):
    replaced(path, lambda: os.symlink(os.path.basename(path), path))


def moved_behind_a_link(_, path, __):
    os.rename(path, path + ".moved")
    os.symlink(path + ".moved", path)


def of_another_run(_, path, donor):
    if not os.path.lexists(donor):
        return
    remove(path)
    if os.path.isdir(donor):
        shutil.copytree(donor, path, symlinks=True)
    else:
        shutil.copyfile(donor, path)


def of_another_file(rng, path, _):
    folder_of_it = os.path.dirname(path)
    others = [os.path.join(folder_of_it, name) for name in sorted(os.listdir(folder_of_it))]
    others = [other for other in others if os.path.isfile(other)]
    shutil.copyfile(rng.choice(others), path + ".new")
    os.replace(path + ".new", path)


DAMAGES = {
    "cut": cut, "cut_at_the_end": cut_at_the_end, "empty": empty, "flipped": flipped, "overwritten": overwritten,
    "appended": appended, "twice": twice, "removed": removed, "folder": folder, "fifo": fifo, "socket": listening,
    "link_to_nothing": link_to("nowhere"), "link_to_itself": link_to_itself, "link_to_nothing_device": link_to("/dev/null"),
    "link_to_zeros": link_to("/dev/zero"), "moved_behind_a_link": moved_behind_a_link, "of_another_run": of_another_run,
    "of_another_file": of_another_file,
}
