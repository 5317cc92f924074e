"""Trains on raw lines through a data generator, held in memory and shuffled; scores them with what was saved.

    python3 examples/python_generator/train.py [FOLDER]
"""

import os
import random
import sys
import tempfile
import zlib

import millrace
from millrace import clip, layers, optimizer, regularizer

READER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reader.py")
CITIES = {"Ulm": 2.0, "Graz": -1.0, "Bern": 0.5, "Linz": -2.0}


def write_lines(file, count, seed):
    """Lines whose clicks follow from age and city."""
    draw = random.Random(seed)
    with open(file, "w", encoding="utf-8") as out:
        for _ in range(count):
            age, city = draw.randrange(18, 80), draw.choice(sorted(CITIES))
            clicked = draw.random() < 1 / (1 + 2.718281828 ** -(CITIES[city] + (age - 50) / 20))
            out.write("%s,%s,%d\n" % ("" if draw.random() < 0.01 else age, city, clicked))


def main(folder):
    for part in range(4):
        write_lines(os.path.join(folder, "part-%d" % part), 2000, part)

    label = layers.data("label", [1], "int64")
    age = layers.data("age", [1])
    city = layers.data("city", [1], "int64", lod_level=1)
    vector = layers.sequence_pool(layers.embedding(city, [None, 4], optimizer=optimizer.Adagrad(0.1)), "sum")
    predict = layers.fc(layers.concat([age, vector], axis=1), 2, act="softmax")
    loss = layers.mean(layers.cross_entropy(predict, label))
    auc, _, _ = layers.auc(predict, label)
    # The rate falls over the steps, long gradients are cut, weights are held small.
    optimizer.Momentum(optimizer.exponential_decay(0.2, decay_steps=100, decay_rate=0.9), momentum=0.5,
                       regularization=regularizer.L2Decay(1e-4),
                       grad_clip=clip.GradientClipByGlobalNorm(5.0)).minimize(loss)

    exe = millrace.Executor(millrace.CPUPlace())
    exe.run(millrace.default_startup_program())
    dataset = millrace.DatasetFactory().create_dataset("InMemoryDataset")
    dataset.init(batch_size=64, thread_num=2, use_var=[label, age, city], pipe_command="%s %s" % (sys.executable, READER))
    dataset.set_filelist([os.path.join(folder, "part-*")])
    print("rows: %d" % dataset.load_into_memory())
    for epoch in range(3):
        dataset.local_shuffle(seed=epoch)
        report = exe.train_from_dataset(dataset=dataset, thread=1, fetch_list=[loss, auc], fetch_info=["loss", "auc"],
                                        print_period=50)
        print("epoch %d: auc so far %.4f" % (epoch, report.history[-1]["auc"][0]))

    millrace.save_inference_model(os.path.join(folder, "model"), dataset, predict)
    model = millrace.Predictor(os.path.join(folder, "model"))
    scores = model.predict({"age": [[0.3]] * len(CITIES), "city": [[zlib.crc32(city.encode())] for city in sorted(CITIES)]})
    for city, score in zip(sorted(CITIES), scores):
        print("%s, 30 years: %.3f" % (city, score))
    return dict(zip(sorted(CITIES), map(float, scores)))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        os.makedirs(sys.argv[1], exist_ok=True)
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(temporary)
