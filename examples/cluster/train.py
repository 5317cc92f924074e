"""A training script of Paddle 1 for parameter servers. What is new in it is the first block of imports.

    python train.py                     # one trainer
    mpirun -n 2 python train.py         # two
"""

import os
import sys
import time

import millrace as fluid
from millrace.fleet import DistributeTranspilerConfig, fleet, role_maker

import slots_parser as parser

HERE = os.path.dirname(os.path.abspath(__file__))
g_training_role = os.environ.get("TRAINING_ROLE", "TRAINER")
g_trainers = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
g_trainer_id = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
g_pserver_endpoints = os.environ.get("PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.1:36011")
g_current_endpoint = os.environ.get("POD_IP", "127.0.0.1") + ":" + os.environ.get("PADDLE_PORT", "36011")
g_data_path = os.environ.get("DATA_PATH", "data")              # a folder for each day
g_model_path = os.environ.get("MODEL_PATH", "models")
g_latest_model_path = os.environ.get("LATEST_MODEL_PATH", "")
g_model_save_interval = int(os.environ.get("MODEL_SAVE_INTERVAL", "0"))
g_print_period = int(os.environ.get("PRINT_PERIOD", "10"))
g_yaml_path = os.path.join(HERE, "slots.yaml")
g_read_python = os.path.join(HERE, "ctr_reader.py")
g_dict_size = parser.DICT_SIZE
g_embedding_size = 8
g_learn_rate = 0.05
g_batch_size = 64
g_rd_thd_num = 2


def info(text):
    print(text, flush=True)


def do_exit(code):
    sys.exit(code)


def get_file_list(path):
    """The files of each day, and the days."""
    days = sorted(os.listdir(path))
    return [[os.path.join(path, day, file) for file in sorted(os.listdir(os.path.join(path, day)))] for day in days], days


def calculate_save_model_interval(epochs):
    return max(1, epochs // 2)


def generate_save_model_dir(last_time, date):
    return os.path.join(g_model_path, "latest" if last_time else date)


def ctr_wide_deep_model():
    def embedding_layer(input, param_attr, embedding_size):
        return fluid.layers.embedding(
            input=input,
            is_sparse=True,
            is_distributed=False,
            padding_idx=0,
            size=[g_dict_size, embedding_size],
            param_attr=param_attr)

    sparse_slots, _, one_hot_slots_to_tims, dense_slots_to_dims = parser.parse_yaml(g_yaml_path)
    label = fluid.layers.data(name='label', shape=[1], dtype='int64')
    deep_param_attr = fluid.ParamAttr(name="SparseFeatFactors_deep")
    sparse_deep_input_list = []
    sparse_wide_input_list = []
    sparse_input_ids = []
    for slot in sparse_slots:
        sparse_input_id = fluid.layers.data(name='sparse_slot_' + str(slot), shape=[1], lod_level=1, dtype='int64')
        sparse_input_ids.append(sparse_input_id)
        sparse_embed = embedding_layer(sparse_input_id, deep_param_attr, g_embedding_size)
        sparse_embed_deep_average = fluid.layers.sequence_pool(input=sparse_embed, pool_type="average")
        sparse_deep_input_list.append(sparse_embed_deep_average)
    wide_param_attr = fluid.ParamAttr(name="SparseFeatFactors_wide")
    sparse_lr_input_ids = fluid.layers.data(name='sparse_lr_index', shape=[1], lod_level=1, dtype='int64')
    sparse_lr_embed = embedding_layer(sparse_lr_input_ids, wide_param_attr, 1)
    sparse_wide_inputs = fluid.layers.sequence_pool(input=sparse_lr_embed, pool_type="sum")
    sparse_deep_inputs = fluid.layers.concat(sparse_deep_input_list, axis=1)
    datas = []
    for data in sparse_input_ids:
        datas.append(data)
    datas.append(sparse_lr_input_ids)
    datas.append(label)

    def deep_layer(concated):
        fc = fluid.layers.fc(input=concated, size=1024, act='relu')
        fc = fluid.layers.fc(input=fc, size=512, act='relu')
        fc = fluid.layers.fc(input=fc, size=256, act='relu')
        return fc

    # one_hot_inputs, dense_inputs
    deep = deep_layer(sparse_deep_inputs)
    wide = fluid.layers.concat([deep, sparse_wide_inputs], axis=1)
    predict = fluid.layers.fc(input=wide, size=2, act='softmax')
    cost = fluid.layers.cross_entropy(input=predict, label=label)
    avg_cost = fluid.layers.mean(x=cost)
    accuracy = fluid.layers.accuracy(input=predict, label=label)
    auc_var, batch_auc_var, auc_states = fluid.layers.auc(input=predict, label=label)
    feed_online_var_names = []
    feed_online_var_names.append(sparse_deep_inputs.name)
    feed_online_var_names.append(sparse_wide_inputs.name)
    return feed_online_var_names, datas, avg_cost, auc_var, batch_auc_var, label, predict


def train():
    global g_epoch_num, g_model_save_interval
    main_prog = fluid.default_main_program()
    start_prog = fluid.default_startup_program()
    main_prog.random_seed = 1
    start_prog.random_seed = 1
    feed_offline_var_names = []
    feed_online_var_names, datas, avg_cost, auc_var, batch_auc_var, label, predict = ctr_wide_deep_model()
    for data in datas:
        feed_offline_var_names.append(data.name)
    endpoints = g_pserver_endpoints.split(",")
    if g_training_role.upper() == "PSERVER":
        current_id = endpoints.index(g_current_endpoint)
    else:
        current_id = 0
    role = role_maker.UserDefinedRoleMaker(
        current_id=current_id,
        role=role_maker.Role.WORKER
        if g_training_role.upper() == "TRAINER" else role_maker.Role.SERVER,
        worker_num=g_trainers,
        server_endpoints=endpoints)
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init(role)
    trainer_id = g_trainer_id
    strategy = DistributeTranspilerConfig()
    strategy.sync_mode = False
    optimizer = fluid.optimizer.Adagrad(learning_rate=g_learn_rate)
    optimizer = fleet.distributed_optimizer(optimizer, strategy)
    optimizer.minimize(avg_cost)
    if fleet.is_server():
        info("run pserver")
        if g_latest_model_path != "" and len(os.listdir(g_latest_model_path)) != 0:
            fleet.init_server(g_latest_model_path)
            info("ps: {} load latest model for increment training successful!".format(current_id))
        else:
            fleet.init_server()
        fleet.run_server()
    elif fleet.is_worker():
        info("run trainer")
        fleet.init_worker()
        exe.run(fleet.startup_program)
        file_lists, date_lists = get_file_list(g_data_path)
        info("file_lists: {}".format(file_lists))
        # config dataset
        dataset = fluid.DatasetFactory().create_dataset()
        dataset.set_batch_size(g_batch_size)
        dataset.set_use_var(datas)
        pipe_command = 'python ' + g_read_python
        dataset.set_pipe_command(pipe_command)
        dataset.set_thread(g_rd_thd_num)
        g_epoch_num = len(file_lists)
        if g_model_save_interval <= 0:
            g_model_save_interval = calculate_save_model_interval(g_epoch_num)
        info("g_model_save_interval: {}".format(g_model_save_interval))
        # upload = AsyncUploadModelProcess()
        for epoch_id in range(g_epoch_num):
            info("epoch {} start with file list: {}".format(epoch_id, file_lists[epoch_id]))
            pass_start = time.time()
            dataset.set_filelist(file_lists[epoch_id])
            fleet._executor.train_from_dataset(
                program=fleet.main_program,
                dataset=dataset,
                fetch_list=[avg_cost, auc_var, batch_auc_var],
                fetch_info=["cost", "auc", "batch_auc"],
                print_period=g_print_period,
                debug=True)
            pass_time = time.time() - pass_start
            info("trainer id: {} epoch {} finished, pass_time {}".format(g_trainer_id, epoch_id, pass_time))
            if g_trainer_id == 0:
                last_time = (epoch_id + 1 == g_epoch_num)
                # every g_model_save_interval days a model is saved and uploaded
                if (epoch_id + 1) % g_model_save_interval == 0 or last_time:
                    offline_model_dir = generate_save_model_dir(last_time, date_lists[epoch_id])
                    fleet.save_inference_model(executor=exe, dirname=offline_model_dir, feeded_var_names=feed_offline_var_names, target_vars=[predict, auc_var, batch_auc_var])
                    with open(offline_model_dir + "/feed_online_names", 'w+') as f:
                        feed_str = "deep_input_name:" + feed_online_var_names[0] + "\n" + "wide_input_name:" + feed_online_var_names[1]
                        f.write(feed_str)
        exe.close()
        info("training task is finished!")
        # upload.terminate_upload_process()
        do_exit(0)
    do_exit(0)


if __name__ == '__main__':
    train()
