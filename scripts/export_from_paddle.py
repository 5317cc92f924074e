"""Saves a Paddle training job as files that `trainer` runs: programs, parameters, data feed, and the job itself.

Copy this file next to your training script. It requires only Paddle. After `minimize` and `exe.run(startup)`, add

    import export_from_paddle
    export_from_paddle.save_job("job", exe, main_program, startup_program, dataset,
                                fetch_list=[loss, auc], fetch_info=["loss", "auc"], predict=[prediction])

Then, on a machine with Millrace:

    trainer --trainer_desc=job/job.prototxt --output_dir=out

Works with Paddle 1.8 (paddle.fluid) and 2.x (paddle.static). Your own training does not change.

The function also saves a worker's programs after fleet.distributed_optimizer(...).minimize. It reads tables, accessors
and optimizers from the strategy. The saved job trains in one process.
"""

import contextlib
import io
import os
import re

import paddle


def save_job(folder, executor, main_program, startup_program, dataset, fetch_list=(), fetch_info=(), predict=(),
             thread=None, print_period=100, phases=None, fleet_desc=None, server_dir=None,
             origin_program=None, accessors=True):
    """Writes FOLDER/job.prototxt and the files it refers to. Returns its path.

    main_program    program with gradients and updates (after `minimize`), as for train_from_dataset. Execution settings
                    of a CompiledProgram are ignored
    startup_program program that `executor` has already run. Training starts with its parameters
    dataset         QueueDataset or InMemoryDataset, with its variables, pipe_command and file list set
    fetch_list      variables, or their names, to print and store every `print_period` batches
    predict         outputs of the model that is saved for prediction after training
    thread          worker threads (default: those of the dataset)
    phases          for a dataset with enable_pv_merge, the batches of its passes, in turn: ["JOIN"] page views,
                    ["UPDATE"] examples, ["JOIN", "UPDATE"] both (default: JOIN, the first phase in Paddle)
    fleet_desc      text of a PSParameter (of the_one_ps or pslib), which describes the tables on the servers of a fleet
                    program (default: that of the fleet in this process)
    origin_program  input of a DistributeTranspiler (transpiler.origin_program). Its updates are those of the servers
    accessors       True: rows learn exactly as with a SparseAccessor on servers. False: rows that do not use counts have
                    Millrace's optimizers, which are faster and differ (docs/from_paddle.md). SGD and Adagrad treat every
                    batch as a full batch, which changes short batches and dist.micro_batches. Adagrad does not divide by
                    shows, Adam counts the steps of the table, and weights have no bounds
    server_dir      folder written by fleet.save_persistables, with the initial rows of the tables
    """
    main_program, startup_program = _program(main_program, "main"), _program(startup_program, "startup")
    if not main_program.global_block().ops or main_program.global_block().ops[0].type == "listen_and_serv":
        raise ValueError("the main program is empty, as fleet leaves it to a server, or a server's: trainers of Millrace keep what "
                         "servers kept; call save_job in the process of a trainer")
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

    feed = dataset._desc() if hasattr(dataset, "_desc") else dataset.desc()
    batch_size = int((re.findall(r"^batch_size: (\d+)", feed, re.MULTILINE) or ["32"])[0])
    if origin_program is not None or any(_is_distributed(op) for op in main_program.global_block().ops):
        servers = _tables_of(main_program, startup_program, origin_program or main_program)
    else:
        servers = _servers(main_program, fleet_desc, batch_size, accessors)
    kept = lambda var: var.persistable and var.name not in ("feed", "fetch") and var.name not in servers.rows
    _check_values(filter(kept, main_program.list_vars()))

    os.makedirs(folder, exist_ok=True)
    _write(os.path.join(folder, "main_program.bin"), _serialized(main_program))
    _write(os.path.join(folder, "startup_program.bin"), _serialized(startup_program))
    init = os.path.join(folder, "init")
    _io().save_vars(executor, init, main_program, predicate=kept)
    # A predictor that reads lines as this file says takes the same ids from them as training.
    zeros = "DROP" if _dataset_class(dataset) == "InMemoryDataset" and "input_type: 1" not in feed else "KEEP"
    _write(os.path.join(folder, "data_feed.prototxt"), (feed.rstrip("\n") + "\nzeros: %s\n" % zeros).encode())
    job = _job_text(folder, main_program, servers, dataset, feed, files, fetch_list, fetch_info, predict, thread,
                    print_period, list(phases or ["JOIN"]) if merges else [], server_dir)
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


# What Paddle's trainer_desc.prototxt calls the workers that have servers.
WORKERS = {"DownpourSGD": "DownpourWorker", "DownpourSGDOPT": "DownpourWorkerOpt", "DownpourLite": "DownpourLiteWorker"}


def _worker_lines(options):
    lines = ["class_name: " + _quoted(options["trainer"])] if options.get("trainer") == "DistMultiTrainer" else []
    worker = WORKERS.get(options.get("device_worker"))
    return lines + (["device_worker_name: " + _quoted(worker)] if worker else [])


def _job_text(folder, main_program, servers, dataset, feed, files, fetch_list, fetch_info, predict, thread,
              print_period, phases, server_dir):
    options = getattr(main_program, "_fleet_opt", None) or {}
    place = lambda name: _quoted(os.path.join(folder, name))
    lines = [
        "# Saved by export_from_paddle.py from Paddle %s." % paddle.__version__,
        *_worker_lines(options),
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
        *(["  server_dir: " + _quoted(server_dir)] if server_dir else []),
        "  # save_dir: %s   # every variable after training, one file each" % place("final"),
        "}",
        *servers.lines,
        *_geo_lines(main_program),
    ]
    if fetch_list:
        lines += ["fetch_config {"]
        lines += ["  fetch_var_names: " + _quoted(_name(var)) for var in fetch_list]
        lines += ["  fetch_var_str_format: " + _quoted(text) for text in fetch_info]
        lines += ["  print_period: %d" % print_period, "}"]
    if predict:
        names = " ".join("fetch_vars: " + _quoted(_name(var)) for var in predict)
        lines += ["# Written after training for paddle.static.load_inference_model and for predictor --model_dir."]
        lines += ["# It holds ids 0 to vocabulary - 1 of every table."] if servers.vocabulary else []
        is_unbounded = any(op.type == "distributed_lookup_table" for op in main_program.global_block().ops)
        lines += ["# Rows have any 64-bit id, as on servers: those from vocabulary on are not in the model."] if is_unbounded else []
        lines += ["# Too large as a matrix, unless a smaller vocabulary will do:"] if servers.is_huge() else []
        lines += ["%soutput { export { format: PADDLE %s%s } }" % ("# " if servers.is_huge() else "",
                                                                   servers.vocabulary, names)]
    lines += _dump_lines(options)
    # Paddle's rule: an InMemoryDataset leaves ids 0 out of its bags.
    read = ["zeros: FEED_DEFAULT"] + _flags(dataset, FEED_FLAGS).split("  ")
    lines += ["data_desc {"] + ["  " + line for line in feed.rstrip("\n").split("\n") + read if line.strip()] + ["}"]
    return "\n".join(lines) + "\n"


class _Servers:
    """What the servers of a fleet program keep, as our job says it."""

    def __init__(self):
        self.lines = []        # `model { ... }` of the job
        self.rows = set()      # variables whose rows the servers keep
        self.ids = 0           # of the largest table
        self.floats = 0        # of all tables as matrices

    def add(self, name, shape):
        self.rows.add(name)
        self.ids = max(self.ids, shape[0])
        self.floats += shape[0] * shape[1]

    @property
    def vocabulary(self):
        return "vocabulary: %d " % max(1, self.ids) if self.rows else ""

    def is_huge(self):
        return self.floats > 1 << 30


SERVED = ("distributed_lookup_table", "distributed_push_sparse", "send", "pull_sparse", "pull_sparse_v2")
LOOKUPS = ("distributed_lookup_table", "lookup_table", "lookup_table_v2")


def _sends_what_moved(ops):
    """Whether operators are those of a worker of geo: they update parameters and send what changed."""
    return any("Param" in op.input_names for op in ops) and {op.type for op in ops if op.type in SERVED} == {"send"}


def _geo_lines(main_program):
    """How often ranks exchange, where Paddle's workers did so every few batches."""
    if not _sends_what_moved(main_program.global_block().ops):
        return []
    strategy = getattr(paddle.distributed.fleet.fleet, "_user_defined_strategy", None)
    steps = strategy.a_sync_configs["k_steps"] if strategy is not None else 0
    return ["# Ranks train on copies and exchange every so many batches. Without launcher one process trains as ever.",
            "dist { update: GEO geo_steps: %d }" % steps] if steps > 0 else []


def _servers(main_program, fleet_desc, batch_size, accessors):
    """Reads what a PSParameter says of the tables that the program looks up, and of its dense parameters.

    ValueError that names all that our job cannot say.
    """
    servers = _Servers()
    ops = main_program.global_block().ops
    served = sorted({op.type for op in ops if op.type in SERVED})
    if (not served or _sends_what_moved(ops)) and fleet_desc is None:
        return servers
    tables = _table_params(fleet_desc if fleet_desc is not None else _desc_of_fleet(served))
    looked_up = {}
    for op in ops:
        if op.type in LOOKUPS:
            outs = op.output("Outputs" if op.type == "distributed_lookup_table" else "Out")
            looked_up.setdefault(op.input("W")[0], []).extend(outs)
    refused, rules, text = [], set(), []
    for table in tables:
        where = "table %d (%s)" % (table.table_id, table.table_class)
        if table.rows is None:
            rule = _dense_rule(table, where, refused)
            rules |= {rule} if rule else set()
            continue
        names = [name for name in looked_up if name == table.name or set(looked_up[name]) & set(table.values)]
        if not names:
            refused.append("%s: no operator of the main program looks up its rows%s"
                           % (where, ', those of "%s"' % table.name if table.name else ""))
        for name in names:
            shape = main_program.global_block().var(name).shape
            found = _rows(table, where, shape[1], batch_size, accessors, refused)
            if found:
                servers.add(name, shape)
                text += ["  # Rows of %s of servers: %s, %s.%s" % (where, table.accessor.accessor_class, found[0], found[2]),
                         "  table { name: %s %s }" % (_quoted(name), found[1])]
    if len(rules) > 1:
        refused.append("dense tables have different rules: " + ", ".join(sorted(rules)))
    unserved = [op.input("W")[0] for op in ops if op.type == "distributed_lookup_table"]
    for name in sorted(set(unserved) - servers.rows):
        if not refused:
            refused.append('no table of servers has the rows of "%s"' % name)
    if refused:
        refused = list(dict.fromkeys(refused))
        raise ValueError("what the servers of this job do is not supported:\n  " + "\n  ".join(refused))
    if text or rules:
        servers.lines = ["# What the servers kept, and how they updated it.", "model {"] + text
        servers.lines += ["  optimizer { %s }" % rule for rule in rules] + ["}"]
    return servers


def _is_distributed(op):
    """Whether an operator of a program that updates its parameters itself looks up rows that are to be distributed."""
    return op.type in ("lookup_table", "lookup_table_v2") and bool(op.attr("is_distributed"))


def _tables_of(main_program, startup_program, origin_program):
    """Tables by what the updates of a program say of them, and, of a transpiled one, of its dense parameters."""
    servers = _Servers()
    refused, text, rules = [], [], {}
    for op in origin_program.global_block().ops:
        if "Param" in op.input_names:
            rules[op.input("Param")[0]] = _update_rule(op, refused)
    names = {op.input("W")[0] for op in main_program.global_block().ops
             if _is_distributed(op) or op.type == "distributed_lookup_table"}
    for name in sorted(names):
        shape = main_program.global_block().var(name).shape
        if name not in rules:
            refused.append('no operator of origin_program updates "%s"' % name)
            continue
        servers.add(name, shape)
        text += ["  table { name: %s dim: %d %soptimizer { %s } }"
                 % (_quoted(name), shape[1], _first_values(startup_program, name, refused), rules[name])]
    updates_itself = any("Param" in op.input_names for op in main_program.global_block().ops)
    dense = {rule for name, rule in rules.items() if name not in names} or set(rules.values())
    if not updates_itself and len(dense) > 1:
        refused.append("dense parameters have different rules: " + ", ".join(sorted(map(str, dense))))
    if refused:
        raise ValueError("what updates the parameters of this job is not supported:\n  "
                         + "\n  ".join(dict.fromkeys(refused)))
    rule = sorted(dense)[0]
    servers.lines = (["# Rows of is_distributed=True are in a table that grows, not in a matrix."] if text else []) + [
        "model {"] + text + ["  optimizer { %s }" % rule, "}"]
    return servers


def _update_rule(op, refused):
    """The OptimizerDesc of an operator that updates a parameter."""
    param = op.input("Param")[0]
    if op.input("Grad")[0] != param + "@GRAD":
        refused.append('"%s": its gradient is clipped or penalized before the update' % param)
    held = (getattr(paddle, "static", None) or paddle.fluid).global_scope().find_var(op.input("LearningRate")[0])
    if held is None or not held.get_tensor()._is_initialized():
        refused.append('"%s": its learning rate has no value; run the startup program' % param)
        return None
    lr = _number(held.get_tensor()._get_float_element(0))
    if op.type == "sgd":
        return "sgd { lr: %s }" % lr
    if op.type == "adagrad":
        return "adagrad { lr: %s epsilon: %s }" % (lr, _number(op.attr("epsilon")))
    if op.type == "adam":
        return "adam { lr: %s beta1: %s beta2: %s epsilon: %s }" % (
            (lr,) + tuple(_number(op.attr(name)) for name in ("beta1", "beta2", "epsilon")))
    refused.append('"%s": rule %s; use SGD, Adagrad or Adam' % (param, op.type))
    return None


def _first_values(startup_program, name, refused):
    """`init { ... } ` of a table, as the startup program makes its matrix; empty where that is left to servers."""
    for op in startup_program.global_block().ops:
        if name not in op.output_arg_names or op.type == "c_broadcast":
            continue
        if op.type == "fake_init":
            return ""
        if op.type == "uniform_random" and op.attr("min") == -op.attr("max"):
            return "init { uniform: %s } " % _number(op.attr("max"))
        if op.type == "gaussian_random" and op.attr("mean") == 0:
            return "init { normal: %s } " % _number(op.attr("std"))
        if op.type == "fill_constant":
            return "init { constant: %s } " % _number(op.attr("value"))
        refused.append('"%s": first values of %s; use Uniform or Normal around 0, or Constant' % (name, op.type))
        return ""
    return ""


def _desc_of_fleet(served):
    """The PSParameter that the runtime of this process's fleet would give its workers."""
    try:
        runtime = paddle.distributed.fleet.fleet._runtime_handle
        builder = type(runtime.ps_desc_builder)
    except AttributeError:
        raise ValueError("the main program has %s, operators of a parameter server, and no fleet of this process says "
                         "what its tables are: call save_job in the script that calls fleet.distributed_optimizer(...)"
                         ".minimize(...), or give it fleet_desc" % ", ".join(served)) from None
    # It tells on stdout what it meets, and adds to the strategy; one of its own is made.
    with contextlib.redirect_stdout(io.StringIO()):
        return builder(runtime.context).build_worker_desc()


class _TableParam:
    """A table of either PSParameter."""

    def __init__(self, param, values):
        self.table_id, self.table_class = param.table_id, param.table_class
        self.accessor = param.accessor
        self.common = getattr(param, "common", None)
        self.name = self.common.table_name if self.common is not None else ""
        self.values = values                                                     # variables that its rows go to
        self.rows = param if param.type == 0 else None                           # PS_SPARSE_TABLE


def _table_params(text):
    from google.protobuf import text_format
    modules = ("paddle.distributed.fleet.proto.the_one_ps_pb2",
               "paddle.incubate.distributed.fleet.parameter_server.pslib.ps_pb2",
               "paddle.fluid.incubate.fleet.parameter_server.pslib.ps_pb2")
    why = []
    for module in modules:
        try:
            desc = __import__(module, fromlist=["PSParameter"]).PSParameter()
        except ImportError:
            continue
        try:
            text_format.Parse(text, desc)
        except text_format.ParseError as error:
            why.append("as %s: %s" % (module.rsplit(".", 1)[1], error))
            continue
        params = desc.worker_param.downpour_worker_param.downpour_table_param
        params = params or desc.server_param.downpour_server_param.downpour_table_param
        values = {}
        for trainer in getattr(desc, "trainer_param", ()):
            for table in trainer.sparse_table:
                values.setdefault(table.table_id, []).extend(table.slot_value)
        # BarrierTable and the like are of type 2 and keep nothing.
        found = [_TableParam(param, values.get(param.table_id, ())) for param in params if param.type in (0, 1)]
        if not found:
            raise ValueError("fleet_desc describes no table")
        return found
    raise ValueError("fleet_desc is no PSParameter:\n  " + "\n  ".join(why))


def _number(value):
    return "%.7g" % value


def _dense_rule(table, where, refused):
    """What updates dense parameters on a server, as our OptimizerDesc; None where it cannot be said."""
    if table.common is None:                                                     # pslib
        rule = table.accessor.dense_sgd_param
        if rule.name == "adam":
            refused.append("%s: pslib's dense rule adam, whose epsilon and decay are other ones; give dense_optimizer "
                           "naive" % where)
            return None
        return "sgd { lr: %s }" % _number(rule.naive.learning_rate)
    common = table.common
    if common.name not in ("sgd", "adam"):
        what = {"sum": "sums of what workers changed (geo)", "summary": "statistics of data_norm",
                "adam_d2sum": "DistributedStrategy.adam_d2sum"}.get(common.name, "rule %s" % common.name)
        refused.append("%s: %s; use SGD or Adam without it" % (where, what))
        return None
    start = dict(zip(common.params, common.initializers))["LearningRate"].split("&")
    attrs = dict(attr.split("&") for attr in common.attr.split("#") if attr)
    if start[0] != "fill_constant":
        refused.append("%s: the learning rate is no constant" % where)
        return None
    lr = _number(float(start[1]))
    if common.name == "sgd":
        return "sgd { lr: %s }" % lr
    return "adam { lr: %s beta1: %s beta2: %s epsilon: %s }" % (
        (lr,) + tuple(_number(float(attrs[name])) for name in ("beta1", "beta2", "epsilon")))


OWN_RULES = (" By a rule of ours: a short batch, micro_batches and an id that a batch has often learn otherwise than on "
             "a server.")


def _rows(table, where, dim, batch_size, accessors, refused):
    """(rule, what our TableDesc says of rows, what differs) of a table; None where it cannot be said."""
    before = len(refused)
    accessor, entry = table.accessor, table.common.entry if table.common is not None else ""
    if table.table_class not in ("MemorySparseTable", "DownpourSparseTable"):
        refused.append("%s: rows of a MemorySparseTable are in the trainer's memory; others are not supported" % where)
    known = ACCESSORS.get(accessor.accessor_class)
    if known is None:
        refused.append("%s: accessor %s; use CtrCommonAccessor or SparseAccessor" % (where, accessor.accessor_class))
    if entry not in ("", "none") and not entry.startswith("show_click_entry:"):
        refused.append("%s: entry %s: rows here are made when their ids come; author the embedding without it, or with "
                       "ShowClickEntry" % (where, entry))
    if not accessor.HasField("embedx_sgd_param"):
        refused.append("%s: no embedx_sgd_param says how rows learn" % where)
    if len(refused) > before:
        return None
    params = [param for param in (accessor.embed_sgd_param, accessor.embedx_sgd_param) if param.name]
    bounds = [sorted(getattr(param, _kind(param)).weight_bounds) for param in params if _kind(param)]
    # That of pslib has no first weight with a rule of its own, so that our accessor is another one.
    is_of_pslib = accessor.accessor_class == "DownpourSparseValueAccessor"
    is_plain = (known == "plain" and (is_of_pslib or not accessors) and entry in ("", "none")
                and accessor.embedx_threshold == 0 and all(bound in ([], [-10, 10]) for bound in bounds))
    rules = [_sgd_rule(param, where, batch_size, refused) for param in params] if is_plain else []
    if is_plain and len(refused) == before and len(set(rules)) == 1:
        name, init, rule = rules[0]
        return name, "dim: %d init { uniform: %s } optimizer { %s }" % (dim, init, rule), OWN_RULES
    del refused[before:]
    if is_of_pslib:
        refused.append("%s: DownpourSparseValueAccessor with embedx_threshold, two rules or other bounds than -10 to 10 is not "
                       "supported; use CtrCommonAccessor or SparseAccessor" % where)
        return None
    return _counted_rows(accessor, "SparseAccessor" if known == "plain" else "CtrCommonAccessor", where, dim, refused)


# What the servers' accessors are here: rows that the program sees whole, or rows without their counts.
ACCESSORS = {"SparseAccessor": "plain", "DownpourSparseValueAccessor": "plain", "CtrCommonAccessor": "counted",
             "DownpourCtrAccessor": "counted"}
RULES = {"naive": "SparseNaiveSGDRule", "adagrad": "SparseAdaGradSGDRule", "std_adagrad": "StdAdaGradSGDRule",
         "adam": "SparseAdamSGDRule"}
FIELDS = {"SparseNaiveSGDRule": "naive", "SparseAdaGradSGDRule": "adagrad", "StdAdaGradSGDRule": "adagrad",
          "SparseAdamSGDRule": "adam", "SparseSharedAdamSGDRule": "adam"}


def _kind(param):
    """The field with the settings of a SparseCommonSGDRuleParameter; None for a rule that is not known."""
    return FIELDS.get(RULES.get(param.name, param.name))


def _counted_rows(accessor, name, where, dim, refused):
    """(rules, our TableAccessorParameter, "") of rows that count shows and clicks."""
    before = len(refused)
    seen = dim - (1 if name == "SparseAccessor" else 3)
    if accessor.embedx_dim != seen or seen < 0:
        refused.append("%s: embedx_dim %d, and the program looks up rows of %d: %s shows it embedx_dim + %d"
                       % (where, accessor.embedx_dim, dim, name, dim - seen))
    counts = getattr(accessor, "ctr_accessor_param", None) or accessor.downpour_accessor_param
    for field in ("load_filter_slots", "save_filter_slots"):
        if len(getattr(counts, field, ())):
            refused.append("%s: %s: rows here do not know their slot" % (where, field))
    if any(save.converter for save in accessor.table_accessor_save_param):
        refused.append("%s: a converter: tables are saved without one" % where)
    rules = []
    for field in ("embed_sgd_param", "embedx_sgd_param"):
        param = getattr(accessor, field)
        kind = _kind(param)
        if kind is None:
            refused.append("%s: %s: rule %s; use %s" % (where, field, param.name or "without a name", ", ".join(FIELDS)))
            continue
        rules.append("%s { name: %s %s { %s } }" % (field, _quoted(RULES.get(param.name, param.name)), kind,
                                                    _fields(getattr(param, kind))))
    if len(refused) > before:
        return None
    text = _fields(counts, leave=("ssd_unseenday_threshold", "load_filter_slots", "save_filter_slots"))
    return (" and ".join(dict.fromkeys(param.name for param in (accessor.embed_sgd_param, accessor.embedx_sgd_param))),
            "accessor { accessor_class: %s embedx_dim: %d embedx_threshold: %d ctr_accessor_param { %s } %s }"
            % (_quoted(name), accessor.embedx_dim, accessor.embedx_threshold, text, " ".join(rules)), "")


def _fields(message, leave=()):
    """The fields of a message that are set, as text; ours have the same names."""
    words = []
    for field, value in message.ListFields():
        if field.name in leave:
            continue
        for each in value if field.label == field.LABEL_REPEATED else [value]:
            words.append("%s: %s" % (field.name, str(each).lower() if isinstance(each, bool) else _number(each)))
    return " ".join(words)


def _sgd_rule(param, where, batch_size, refused):
    kind = _kind(param)
    if kind is None or param.name == "SparseSharedAdamSGDRule":
        refused.append("%s: rule %s; use SparseNaiveSGDRule, SparseAdaGradSGDRule, StdAdaGradSGDRule or "
                       "SparseAdamSGDRule" % (where, param.name or "without a name"))
        return None
    rule = getattr(param, kind)
    lr = rule.learning_rate
    # A server gets the gradient of the examples' sum, where the program has that of their mean. Adam does not mind.
    if kind == "naive":
        text = "sgd { lr: %s }" % _number(lr * batch_size)
    elif kind == "adagrad":
        text = "adagrad { lr: %s epsilon: 0 initial_accumulator: %s }" % (
            _number(lr * rule.initial_g2sum ** 0.5), _number(rule.initial_g2sum / batch_size ** 2))
    else:
        text = "adam { lr: %s beta1: %s beta2: %s epsilon: %s }" % tuple(
            map(_number, (lr, rule.beta1_decay_rate, rule.beta2_decay_rate, rule.ada_epsilon)))
    return param.name, _number(rule.initial_range), text


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


def _check_values(variables):
    scope = (getattr(paddle, "static", None) or paddle.fluid).global_scope()
    tensor = (getattr(paddle, "base", None) or paddle.fluid).core.VarDesc.VarType.LOD_TENSOR
    without = []
    for var in variables:
        held = scope.find_var(var.name)
        if var.desc.type() == tensor and (held is None or not held.get_tensor()._is_initialized()):
            without.append(var.name)
    if without:
        raise ValueError("these variables of the main program have no value that training could start from: %s; call "
                         "exe.run(startup_program) before save_job" % ", ".join(without))


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
