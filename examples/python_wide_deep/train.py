"""Wide & Deep in layers: the model of configs/wide_deep.prototxt, to the bit.

    build/release/bin/clickgen --output_dir=data/clicks --test_rows=10000
    python3 examples/python_wide_deep/train.py data/clicks out/wide_deep

Trains one pass, tests on examples that it has not seen, and leaves in the output folder what others go on with: the model
(millrace.Predictor, `predictor`) and the program with a job that names it (`trainer`).
"""

import os
import sys

import millrace
from millrace import ParamAttr, initializer, layers, optimizer

SLOTS = ["C%d" % i for i in range(1, 27)]
HIDDEN = [1024, 512, 256]


def model():
    """(the variables of a line, loss, probabilities [-1, 2])"""
    label = layers.data("label", [1], "int64")
    dense = layers.data("dense", [13])
    ids = [layers.data(slot, [1], "int64", lod_level=1) for slot in SLOTS]

    # Wide: a weight for every id of every slot. Deep: sixteen numbers for each. Both tables grow as ids turn up.
    wide_attr, wide_rule = ParamAttr("wide", initializer.Constant(0)), optimizer.Ftrl(0.05, l1=1, beta=1)
    deep_attr, deep_rule = ParamAttr("deep", initializer.Uniform(-0.01, 0.01)), optimizer.Adagrad(0.05)
    wide = [layers.sequence_pool(layers.embedding(slot, [None, 1], param_attr=wide_attr, per_slot=True, optimizer=wide_rule),
                                 "sum") for slot in ids]
    deep = [layers.sequence_pool(layers.embedding(slot, [None, 16], param_attr=deep_attr, per_slot=True,
                                                  optimizer=deep_rule), "average") for slot in ids]
    hidden = layers.concat([layers.concat(deep, axis=1), dense], axis=1)
    for i, size in enumerate(HIDDEN):
        hidden = layers.fc(hidden, size, act="relu", param_attr="h.w_%d" % i, bias_attr="h.b_%d" % i)
    predict = layers.fc(layers.concat([hidden, layers.concat(wide, axis=1)], axis=1), 2, act="softmax", name="y")
    return [label, dense, *ids], layers.mean(layers.cross_entropy(predict, label)), predict


def dataset_of(variables, files):
    dataset = millrace.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var(variables)
    dataset.set_batch_size(512)
    dataset.set_filelist([files])
    return dataset


def main(data="data/clicks", output="out/wide_deep"):
    program, startup = millrace.Program(), millrace.Program()
    with millrace.program_guard(program, startup):
        variables, loss, predict = model()
        auc, _, _ = layers.auc(predict, variables[0])
        optimizer.Adagrad(0.01, initial_accumulator_value=0.1).minimize(loss)

    exe = millrace.Executor(millrace.CPUPlace())
    exe.run(startup)
    train = dataset_of(variables, os.path.join(data, "train", "part-*"))
    report = exe.train_from_dataset(program, train, fetch_list=[loss, auc], fetch_info=["loss", "auc"], print_period=100)
    print("trained: %s" % report)

    test = dataset_of(variables, os.path.join(data, "test", "part-*"))
    seen = exe.infer_from_dataset(program.clone(for_test=True), test, fetch_list=[loss], print_period=1)
    print("test loss: %.6f" % (sum(float(entry[loss.name][0]) for entry in seen.history) / len(seen.history)))

    # For millrace.Predictor and the program `predictor`.
    millrace.save_inference_model(os.path.join(output, "model"), train, predict)
    # For `trainer`: the program, and a job that names it.
    program.save(output)
    with open(os.path.join(output, "job.prototxt"), "w", encoding="utf-8") as file:
        file.write('update_mode: SERIAL\nfilelist: "%s"\n' % os.path.abspath(os.path.join(data, "train", "part-*")))
        file.write('program { main: "%s" startup: "%s" }\n' % tuple(
            os.path.abspath(os.path.join(output, name)) for name in ("main_program.bin", "startup_program.bin")))
        file.write("data_desc {\n%s}\n" % train.desc())
        file.write('fetch_config { fetch_var_names: "%s" print_period: 1 }\n' % loss.name)
    print("go on: trainer --trainer_desc=%s --output_dir=%s" % (os.path.join(output, "job.prototxt"),
                                                                os.path.join(output, "trainer")))
    return report


if __name__ == "__main__":
    main(*sys.argv[1:3])
