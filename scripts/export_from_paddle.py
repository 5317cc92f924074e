"""Saves a Paddle training job as files that `trainer` runs: programs, parameters, data feed, and the job itself.

Copy this file beside your training script (it needs Paddle alone) and, after `minimize` and `exe.run(startup)`, add

    import export_from_paddle
    export_from_paddle.save_job("job", exe, main_program, startup_program, dataset,
                                fetch_list=[loss, auc], fetch_info=["loss", "auc"], predict=[prediction])

Then, wherever Millrace is built:

    trainer --trainer_desc=job/job.prototxt --output_dir=out

Works with Paddle 1.8 (paddle.fluid) and 2.x (paddle.static). Your own training goes on as before.
"""

import os

import paddle


def save_job(folder, executor, main_program, startup_program, dataset, fetch_list=(), fetch_info=(), predict=(),
             thread=None, print_period=100, phases=None):
    """Writes FOLDER/job.prototxt and what it names; returns its path.

    main_program    with gradients and updates (after `minimize`); what you give to train_from_dataset, a CompiledProgram
                    too: it is Millrace that says how it runs
    startup_program has been run by `executor`: its parameters are where training starts
    dataset         QueueDataset or InMemoryDataset, with its variables, pipe_command and file list set
    fetch_list      variables, or their names, that are printed and kept for every `print_period`-th batch
    predict         variables of the model that is saved for prediction after training
    thread          worker threads; by default the dataset's
    phases          of a dataset with enable_pv_merge, what its passes hand out, in turns: ["JOIN"] page views,
                    ["UPDATE"] examples, ["JOIN", "UPDATE"] both; by default JOIN, where Paddle's begin
    """
    main_program, startup_program = _program(main_program, "main"), _program(startup_program, "startup")
    if len(fetch_info) not in (0, len(fetch_list)):
        raise ValueError("fetch_info has %d texts for %d variables" % (len(fetch_info), len(fetch_list)))
    known = main_program.global_block().vars
    for name in map(_name, list(fetch_list) + list(predict)):
        if name not in known:
            raise ValueError('the main program has no variable "%s"' % name)
    files = list(dataset.dataset.get_filelist())
    if not files:
        raise ValueError("the dataset has no files: call set_filelist first")
    merges = getattr(dataset, "enable_pv_merge", False)
    if phases and not merges:
        raise ValueError("phases say when page views are handed out, and the dataset merges none: set_enable_pv_merge")
    if not set(phases or ()) <= {"JOIN", "UPDATE"}:
        raise ValueError('phases are "JOIN" and "UPDATE", not %r' % (phases,))

    os.makedirs(folder, exist_ok=True)
    _write(os.path.join(folder, "main_program.bin"), _serialized(main_program))
    _write(os.path.join(folder, "startup_program.bin"), _serialized(startup_program))
    init = os.path.join(folder, "init")
    _io().save_vars(executor, init, main_program, predicate=_is_kept)
    feed = dataset._desc() if hasattr(dataset, "_desc") else dataset.desc()
    # A predictor that reads lines as this file says takes the same ids from them as training.
    zeros = "DROP" if _dataset_class(dataset) == "InMemoryDataset" and "input_type: 1" not in feed else "KEEP"
    _write(os.path.join(folder, "data_feed.prototxt"), (feed.rstrip("\n") + "\nzeros: %s\n" % zeros).encode())
    job = _job_text(folder, main_program, dataset, feed, files, fetch_list, fetch_info, predict, thread, print_period,
                    list(phases or ["JOIN"]) if merges else [])
    path = os.path.join(folder, "job.prototxt")
    _write(path, job.encode())
    return path


# What set_parse_ins_id and the like leave on a dataset, and what a program's trainer was told to dump.
FEED_FLAGS = ("parse_ins_id", "parse_content", "parse_logkey")
DATASET_FLAGS = ("merge_by_lineid", "enable_pv_merge")
DUMP_OPTIONS = ("dump_fields", "dump_param", "dump_fields_path", "dump_fields_mode", "dump_converter", "dump_file_num",
                "user_define_dump_filename", "is_dump_in_simple_mode", "dump_num_decimals", "enable_random_dump",
                "dump_interval", "random_with_lineid", "mpi_rank", "check_nan_var_names")


def _flags(dataset, names):
    return "".join("  %s: true" % name for name in names if getattr(dataset, name, False) is True)


def _dump_lines(options):
    lines = []
    for name in DUMP_OPTIONS:
        values = options.get(name)
        for value in values if isinstance(values, (list, tuple)) else [] if values in (None, "") else [values]:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            lines.append("%s: %s" % (name, text if isinstance(value, (bool, int)) else _quoted(_name(value))))
    return lines


def _job_text(folder, main_program, dataset, feed, files, fetch_list, fetch_info, predict, thread, print_period, phases):
    place = lambda name: _quoted(os.path.join(folder, name))
    lines = [
        "# Saved by export_from_paddle.py from Paddle %s." % paddle.__version__,
        "thread_num: %d" % max(1, thread or dataset.thread_num),
        # In Paddle's order, which is not always the sorted one.
        *("filelist: %s" % _quoted(name) for name in files),
        *(["# What an epoch hands out, in turns: JOIN page views, UPDATE examples. Paddle does not tell its own phase."]
          if phases else []),
        "dataset { class_name: %s%s%s }" % (_quoted(_dataset_class(dataset)), _flags(dataset, DATASET_FLAGS),
                                            "".join("  phases: " + phase for phase in phases)),
        "program {",
        "  main: " + place("main_program.bin"),
        "  # Where Paddle's parameters stood. Without init_dir, the startup program makes new ones.",
        "  init_dir: " + place("init"),
        "  startup: " + place("startup_program.bin"),
        "  # save_dir: %s   # every variable after training, one file each" % place("final"),
        "}",
    ]
    if fetch_list:
        lines += ["fetch_config {"]
        lines += ["  fetch_var_names: " + _quoted(_name(var)) for var in fetch_list]
        lines += ["  fetch_var_str_format: " + _quoted(text) for text in fetch_info]
        lines += ["  print_period: %d" % print_period, "}"]
    if predict:
        names = " ".join("fetch_vars: " + _quoted(_name(var)) for var in predict)
        lines += ["# Written after training for paddle.static.load_inference_model and for predictor --model_dir.",
                  "output { export { format: PADDLE %s } }" % names]
    lines += _dump_lines(getattr(main_program, "_fleet_opt", None) or {})
    # Paddle's rule: an InMemoryDataset leaves ids 0 out of its bags.
    read = ["zeros: FEED_DEFAULT"] + _flags(dataset, FEED_FLAGS).split("  ")
    lines += ["data_desc {"] + ["  " + line for line in feed.rstrip("\n").split("\n") + read if line.strip()] + ["}"]
    return "\n".join(lines) + "\n"


def _program(program, which):
    """What a CompiledProgram was made of; other programs are themselves."""
    if hasattr(program, "desc"):
        return program
    inner = getattr(program, "_program", None)
    if inner is None:
        raise ValueError("the %s program is a %s that was made of no Program: give the Program itself"
                         % (which, type(program).__name__))
    # What fleet leaves on the one that is run.
    if getattr(inner, "_fleet_opt", None) is None and getattr(program, "_fleet_opt", None) is not None:
        inner._fleet_opt = program._fleet_opt
    return inner


def _dataset_class(dataset):
    return "InMemoryDataset" if "InMemory" in type(dataset).__name__ else "QueueDataset"


def _io():
    return paddle.static if hasattr(getattr(paddle, "static", None), "save_vars") else paddle.fluid.io


def _is_kept(var):
    return var.persistable and var.name not in ("feed", "fetch")


def _serialized(program):
    """The ProgramDesc without call stacks, which are most of its bytes and tell your paths."""
    raw = program.desc.serialize_to_string()
    for module in ("paddle.base.proto", "paddle.fluid.proto"):
        try:
            framework = __import__(module + ".framework_pb2", fromlist=["ProgramDesc"])
        except ImportError:
            continue
        desc = framework.ProgramDesc.FromString(raw)
        for block in desc.blocks:
            for op in block.ops:
                kept = [attr for attr in op.attrs if attr.name != "op_callstack"]
                del op.attrs[:]
                op.attrs.extend(kept)
        return desc.SerializeToString()
    return raw


def _name(var):
    return var if isinstance(var, str) else var.name


def _quoted(text):
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


def _write(path, content):
    with open(path, "wb") as file:
        file.write(content)
