"""Jobs that Paddle's fleet writes for workers of a parameter server, for fleet_test.py. Needs Paddle 2.6.

    fleet_models.py save KIND FOLDER       writes FOLDER/job by export_from_paddle.py
    fleet_models.py cluster KIND FOLDER    trains it with one server and one worker; writes FOLDER/losses, FOLDER/tables
    fleet_models.py predict KIND FOLDER    scores FOLDER/line by the model in FOLDER/out/paddle; writes FOLDER/score
    fleet_models.py reload KIND FOLDER     lets a server read FOLDER/ours, and write it to FOLDER/again

FOLDER/lines has the examples: a label, three floats, one to three ids below 200; odd ids are clicked more. The
variable FLEET_SEED is the seed of the first parameters, FLEET_PIPE the pipe command.
"""

import os
import re
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))

BATCH = 40
KINDS = {
    # mode, is the embedding one of is_sparse=True, lookups of the table, optimizer
    "async": ("async", False, 1, "adam"),
    "async_embedding": ("async", True, 1, "adam"),
    "async_shared": ("async", False, 2, "adam"),
    "async_sgd": ("async", False, 1, "sgd"),
    # Rows and parameters by sgd, whose updates add up however many batches of gradients a worker sends as one; with
    # rules of ours.
    "plain": ("async", False, 1, "sgd"),
    # With rules of servers, of both embeddings, and of rows of one weight as linear parts have them.
    "naive": ("async", False, 1, "sgd"),
    "adagrad": ("async", True, 1, "sgd"),
    "linear": ("async", False, 1, "sgd"),
    "linear_adagrad": ("async", True, 1, "sgd"),
    "sync": ("sync", False, 1, "adam"),
    "geo": ("geo", True, 1, "adam"),
    "accessor": ("async", False, 1, "adam"),
    "unmade": ("async", False, 1, "adam"),
    "server": ("async", False, 1, "adam"),
    # Rows that count: shown to the program, which reads them by cvm, and hidden from it.
    "counted": ("async", False, 1, "sgd"),
    "hidden": ("async", False, 1, "sgd"),
    "clicks": ("async", False, 1, "adam"),
    # Without fleet: is_distributed=True, updates that were taken out as a DistributeTranspiler does, GradAllReduce.
    "distributed": ("local", True, 1, "adam"),
    "transpiled": ("local", True, 1, "sgd"),
    "collective": ("local", True, 1, "sgd"),
    # pslib, whose optimizer leaves gradients alone; its PSParameter comes as text.
    "huge": ("async", False, 1, "adam"),
    "pslib": ("local", True, 1, "sgd"),
    "pslib_counts": ("local", True, 1, "sgd"),
}
# The rules of rows where the strategy has a table with a SparseAccessor of its own.
RULES = {"plain": "SparseNaiveSGDRule", "naive": "SparseNaiveSGDRule", "adagrad": "SparseAdaGradSGDRule",
         "linear": "SparseAdamSGDRule", "linear_adagrad": "SparseAdaGradSGDRule"}


PSLIB = """
server_param { downpour_server_param {
  downpour_table_param {
    table_id: 0 table_class: "DownpourSparseTable" type: PS_SPARSE_TABLE
    accessor {
      accessor_class: "%s" fea_dim: 8 embedx_dim: 8 embedx_threshold: 0
      embed_sgd_param { name: "naive" naive { learning_rate: 0.02 initial_range: 0.1 } }
      embedx_sgd_param { name: "naive" naive { learning_rate: 0.02 initial_range: 0.1 } }
    }
  }
  downpour_table_param {
    table_id: 1 table_class: "DownpourDenseTable" type: PS_DENSE_TABLE
    accessor {
      accessor_class: "DownpourDenseValueAccessor" dense_sgd_param { name: "naive" naive { learning_rate: 0.8 } }
    }
  }
} }
trainer_param { sparse_table { table_id: 0 slot_key: "ids" slot_value: "embedding_0.tmp_0" } }
"""


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def build(kind):
    """Returns (feeds, loss, auc, prediction)."""
    import paddle
    import paddle.distributed.fleet.base.distributed_strategy as strategy_module
    from paddle import static
    from paddle.distributed import fleet

    # Its __repr__ fails with today's protobuf, and Paddle prints it while it minimizes.
    strategy_module.DistributedStrategy.__repr__ = lambda self: "DistributedStrategy"
    mode, is_embedding, lookups, rule = KINDS[kind]
    paddle.seed(int(os.environ.get("FLEET_SEED", "5")))
    label = static.data("label", [-1, 1], "int64")
    dense = static.data("dense", [-1, 3], "float32")
    ids = static.data("ids", [-1, 1], "int64", lod_level=1)
    rows = lambda: paddle.ParamAttr(name="emb", initializer=paddle.nn.initializer.Uniform(-0.1, 0.1))
    pools = []
    width = 11 if kind == "counted" else 1 if kind.startswith("linear") else 8
    shown = clicked = None
    if kind in ("counted", "hidden"):
        # Of a share of the examples a show counts twice.
        block = static.default_main_program().global_block()
        variable = lambda name: block.create_var(name=name, dtype="float32", shape=[-1, 1])
        clicked = paddle.assign(paddle.cast(label, "float32"), variable("clicked"))
        shown = paddle.assign(clicked + 1, variable("shown"))
        clicked.stop_gradient = shown.stop_gradient = True
    for _ in range(lookups):
        if is_embedding:
            found = static.nn.embedding(ids, [200, width], is_sparse=True, is_distributed=kind == "distributed",
                                        param_attr=rows())
        else:
            entry = {"clicks": paddle.distributed.CountFilterEntry(3),
                     "hidden": paddle.distributed.ShowClickEntry("shown", "clicked")}.get(kind)
            size = [10 ** 12 if kind == "huge" else 200, width]
            found = static.nn.sparse_embedding(ids, size, param_attr=rows(), entry=entry)
        pooled = static.nn.sequence_lod.sequence_pool(found, "sum")
        if kind == "counted":
            pooled = static.nn.continuous_value_model(pooled, paddle.concat([shown, clicked], axis=1), True)
        pools.append(paddle.reshape(pooled, [-1, width]))
    hidden = static.nn.fc(paddle.concat(pools + [dense], 1), 16, activation="relu")
    prediction = static.nn.fc(hidden, 2, activation="softmax")
    loss = paddle.mean(paddle.nn.functional.cross_entropy(prediction, label, use_softmax=False))
    auc = static.auc(prediction, label)[0]
    # A server has the gradients of rows for the sum of the examples.
    rate = 1.0 if mode == "local" else 0.05
    optimizer = paddle.optimizer.Adam(0.01) if rule == "adam" else paddle.optimizer.SGD(rate)
    if mode == "local":
        optimizer.minimize(loss)
        return [label, dense, ids], loss, auc, prediction
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = mode != "sync"
    if mode == "geo":
        strategy.a_sync_configs = {"k_steps": 100}
    if kind in RULES:
        table = strategy.sparse_table_configs.add()
        table.table_name = "emb"
        table.table_class = "MemorySparseTable"
        table.shard_num = 1000
        table.accessor.accessor_class = "SparseAccessor"
        for part in (table.accessor.embed_sgd_param, table.accessor.embedx_sgd_param):
            part.name = RULES[kind]
            settings = getattr(part, {"SparseNaiveSGDRule": "naive", "SparseAdamSGDRule": "adam"}.get(part.name, "adagrad"))
            settings.learning_rate = 0.02
            # A first weight alone starts at random, others' at 0.
            settings.initial_range = 0 if width == 1 else 0.1
    if kind in ("accessor", "counted", "hidden"):
        table = strategy.sparse_table_configs.add()
        table.table_name = "emb"
        table.table_class = "MemorySparseTable"
        table.shard_num = 1000 if kind != "accessor" else 10
        table.accessor.accessor_class = "CtrCommonAccessor" if kind == "counted" else "SparseAccessor"
        table.accessor.embedx_threshold = 3
        table.accessor.embed_sgd_param.name = "SparseAdaGradSGDRule"
        table.accessor.embedx_sgd_param.name = "SparseAdamSGDRule"
        table.accessor.embedx_sgd_param.adam.learning_rate = 0.01
        if kind == "accessor":
            table.accessor.accessor_class = "CtrDoubleAccessor"
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
    return [label, dense, ids], loss, auc, prediction


def dataset_of(feeds, folder):
    import paddle
    dataset = paddle.distributed.QueueDataset()
    dataset.init(batch_size=BATCH, thread_num=1, use_var=feeds, pipe_command=os.environ.get("FLEET_PIPE", "cat"))
    dataset.set_filelist([folder + "/lines"])
    return dataset


def init(role, server, worker):
    import paddle
    from paddle.distributed import fleet
    paddle.enable_static()
    part = fleet.Role.WORKER if role == "worker" else fleet.Role.SERVER
    fleet.init(fleet.UserDefinedRoleMaker(current_id=0, role=part, worker_num=1, server_endpoints=[server],
                                          worker_endpoints=[worker]))


def transpile(kind):
    """Makes the programs those of a worker; what save_job is to know of it."""
    from paddle import static
    main, startup = static.default_main_program(), static.default_startup_program()
    if kind == "collective":
        from paddle.distributed.transpiler.collective import GradAllReduce
        ends = ["127.0.0.1:6001", "127.0.0.1:6002"]
        GradAllReduce(1).transpile(startup, main, rank=0, endpoints=",".join(ends), current_endpoint=ends[0],
                                   wait_port=False)
    if kind.startswith("pslib"):
        for index in reversed([i for i, op in enumerate(main.global_block().ops) if "Param" in op.input_names]):
            main.global_block()._remove_op(index)
        accessor = "DownpourCtrAccessor" if kind == "pslib_counts" else "DownpourSparseValueAccessor"
        return {"fleet_desc": PSLIB % accessor}
    if kind != "transpiled":
        return {}
    origin, block = main.clone(), main.global_block()
    grads = [op.input("Grad")[0] for op in block.ops if "Param" in op.input_names]
    for index in reversed([i for i, op in enumerate(block.ops) if "Param" in op.input_names]):
        block._remove_op(index)
    for grad in grads:
        block.append_op(type="send", inputs={"X": [block.var(grad)]}, outputs={"Out": []},
                        attrs={"send_varnames": [grad], "is_sparse": 0, "table_id": 0})
    return {"origin_program": origin}


def save(kind, folder):
    import socketserver

    import paddle
    from paddle import static

    import export_from_paddle
    # The role maker waits until its server's port answers.
    listening = socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    init("server" if kind == "server" else "worker", "127.0.0.1:%d" % listening.server_address[1], "127.0.0.1:%d" % free_port())
    feeds, loss, auc, prediction = build(kind)
    exe = static.Executor(paddle.CPUPlace())
    if kind != "unmade":
        exe.run(static.default_startup_program())
    more = {"accessors": False} if kind == "plain" else transpile(kind)
    try:
        export_from_paddle.save_job(folder + "/job", exe, static.default_main_program(),
                                    static.default_startup_program(), dataset_of(feeds, folder), fetch_list=[loss, auc],
                                    fetch_info=["loss", "auc"], predict=[prediction], print_period=1, **more)
    except ValueError as error:
        print("refused:", error, flush=True)
    sys.stdout.flush()
    os._exit(0)


def take_part(what, role, kind, folder, server, worker):
    import paddle
    from paddle import static
    from paddle.distributed import fleet
    init(role, server, worker)
    feeds, loss, auc, _ = build(kind)
    if role == "server":
        fleet.init_server(*([folder + "/ours"] if what == "reload" else []))
        fleet.run_server()
        return
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    fleet.init_worker()
    if what == "reload":
        fleet.save_persistables(exe, folder + "/again")
        fleet.stop_worker()
        return
    exe.train_from_dataset(static.default_main_program(), dataset_of(feeds, folder), fetch_list=[loss, auc],
                           fetch_info=["loss", "auc"], print_period=1)
    fleet.save_persistables(exe, folder + "/tables")
    fleet.stop_worker()


def cluster(what, kind, folder):
    ends = ["127.0.0.1:%d" % free_port() for _ in range(2)]
    command = lambda role: [sys.executable, os.path.abspath(__file__), what, kind, folder, role] + ends
    with open(folder + "/server.log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(command("server"), cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            worker = subprocess.run(command("worker"), cwd=folder, timeout=300, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True, check=True)
        finally:
            server.kill()
            server.wait()
    with open(folder + "/losses", "w", encoding="utf-8") as file:
        for found in re.findall(r"loss\[\d*\]:\[([^]]+)\], auc\[\d*\]:\[([^]]+)\]", worker.stdout):
            file.write("%s %s\n" % found)


def predict(folder):
    import numpy
    import paddle
    from paddle import static
    paddle.enable_static()
    exe = static.Executor(paddle.CPUPlace())
    program, names, fetches = static.load_inference_model(folder + "/out/paddle/model", exe)
    with open(folder + "/line", encoding="utf-8") as file:
        words = file.read().split()
    ids = numpy.array(words[6:], "int64")[1:].reshape(-1, 1)
    feeds = {"ids": paddle.base.create_lod_tensor(ids, [[len(ids)]], paddle.CPUPlace()),
             "dense": numpy.array([words[3:6]], "float32"), "label": numpy.array([words[1:2]], "int64")}
    found, = exe.run(program, feed={name: feeds[name] for name in names}, fetch_list=fetches)
    with open(folder + "/score", "w", encoding="utf-8") as file:
        file.write("%.7g\n" % found[0][-1])


def main():
    what, kind, folder = sys.argv[1:4]
    if what == "save":
        save(kind, folder)
    elif what == "predict":
        predict(folder)
    elif len(sys.argv) == 4:
        cluster(what, kind, folder)
    else:
        take_part(what, sys.argv[4], kind, folder, *sys.argv[5:])


if __name__ == "__main__":
    main()
