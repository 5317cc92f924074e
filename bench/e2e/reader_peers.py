"""What readers.py runs in the Python of a peer:  PYTHON -c THIS  WHAT PEER FORMAT FOLDER BATCH [more]

    write tf - FOLDER BATCH SIDE CLASSES PICTURES     writes what TensorFlow writes: TFRecords and JPEG pictures
    first PEER FORMAT FOLDER BATCH PATH               keeps the first batch in PATH, a .npz file
    time PEER FORMAT FOLDER BATCH                     reads everything; prints records, processor and wall seconds

PEER is "tf" (tf.data with one thread and a prefetch of two batches), "torch" (a torch.utils.data dataset in Python, as
torchdata's are, with a DataLoader in the same process, which costs the least processor time) or "sklearn", which loads
a whole libsvm file. Each reads the files that Millrace reads, in the way that its own documentation shows.
"""
import glob
import struct
import sys
import time

import numpy as np

WHAT, PEER, FORMAT, FOLDER, BATCH = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5])
PIXELS = 64
RECORDS = FOLDER + "/records." + FORMAT


def pictures():
    paths = sorted(glob.glob(FOLDER + "/jpeg/*/*.jpg"))
    return paths, [int(path.split("/")[-2]) for path in paths]


def write_with_tensorflow(side, classes, count):
    import tensorflow as tf
    with tf.io.TFRecordWriter(FOLDER + "/records.tfrecord") as writer, open(FOLDER + "/records.csv", encoding="utf-8") as rows:
        for line in rows:
            fields = line.split(",")
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=map(float, fields[:-1]))),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(fields[-1])]))})).SerializeToString())
    rng = np.random.RandomState(1)
    y, x = np.mgrid[:side, :side]
    for i in range(count):
        # Waves and some noise: about as many bytes as a photograph of this size.
        waves = [127 + 100 * np.sin(x / rng.uniform(3, 20) + y / rng.uniform(3, 20)) for _ in range(3)]
        picture = np.clip(np.stack(waves, 2) + rng.normal(0, 6, (side, side, 3)), 0, 255).astype(np.uint8)
        path = "%s/jpeg/%d" % (FOLDER, i % classes)
        tf.io.gfile.makedirs(path)
        tf.io.write_file("%s/%d.jpg" % (path, i), tf.io.encode_jpeg(picture))


def tf_data():
    import tensorflow as tf
    data = tf.data

    def lines():
        return data.TextLineDataset(RECORDS, buffer_size=1 << 20).batch(BATCH)

    def csv(texts):
        fields = tf.io.decode_csv(texts, [[0.0]] * PIXELS + [tf.constant([0], tf.int64)])
        return tf.stack(fields[:-1], 1), fields[-1]

    def multi_slot(texts):
        words = tf.strings.split(texts).to_tensor(shape=[None, PIXELS + 3])
        return (tf.strings.to_number(words[:, 1:PIXELS + 1], tf.float32),
                tf.strings.to_number(words[:, PIXELS + 2], tf.int64))

    def libsvm(texts):
        words = tf.strings.split(texts)
        labels = tf.strings.to_number(tf.gather(words.flat_values, words.row_starts()), tf.int64)
        pairs = words[:, 1:]
        parts = tf.strings.split(pairs.flat_values, ":").to_tensor(shape=[None, 2])
        places = tf.stack([pairs.value_rowids(), tf.strings.to_number(parts[:, 0], tf.int64) - 1], 1)
        values = tf.strings.to_number(parts[:, 1], tf.float32)
        return tf.scatter_nd(places, values, tf.stack([tf.size(labels, tf.int64), tf.constant(PIXELS, tf.int64)])), labels

    def tfrecord(raw):
        item = tf.io.parse_example(raw, {"x": tf.io.FixedLenFeature([PIXELS], tf.float32),
                                         "label": tf.io.FixedLenFeature([], tf.int64)})
        return item["x"], item["label"]

    def picture(path, label):
        return tf.io.decode_jpeg(tf.io.read_file(path), channels=3, dct_method="INTEGER_ACCURATE"), label

    if FORMAT == "jpeg":
        items = data.Dataset.from_tensor_slices(pictures()).map(picture).batch(BATCH)
    elif FORMAT == "tfrecord":
        items = data.TFRecordDataset(RECORDS, buffer_size=1 << 20).batch(BATCH).map(tfrecord)
    else:
        items = lines().map({"csv": csv, "multi_slot": multi_slot, "libsvm": libsvm}[FORMAT])
    options = data.Options()
    options.threading.private_threadpool_size = 1
    return items.prefetch(2).with_options(options)


def read_recordio():
    with open(RECORDS, "rb") as file:
        while header := file.read(20):
            _, records, _, _, size = struct.unpack("<5I", header)
            chunk, at = file.read(size), 0
            for _ in range(records):
                at += 8
                arrays = []
                for dtype, count in ((np.float32, PIXELS), (np.int64, 1)):
                    (described,) = struct.unpack_from("<i", chunk, at + 16)  # behind 0, no LoD level, 0
                    at += 20 + described
                    arrays.append(np.frombuffer(chunk, dtype, count, at))
                    at += arrays[-1].nbytes
                yield arrays[0].copy(), int(arrays[1][0])


def read_csv():
    with open(RECORDS, encoding="utf-8") as file:
        for line in file:
            values = np.fromstring(line, np.float32, sep=",")
            yield values[:-1], int(values[-1])


def read_multi_slot():
    with open(RECORDS, encoding="utf-8") as file:
        for line in file:
            values = np.fromstring(line, np.float32, sep=" ")
            yield values[1:PIXELS + 1], int(values[PIXELS + 2])


def read_libsvm():
    with open(RECORDS, encoding="utf-8") as file:
        for line in file:
            values = np.fromstring(line.replace(":", " "), np.float32, sep=" ")
            x = np.zeros(PIXELS, np.float32)
            x[values[1::2].astype(np.int64) - 1] = values[2::2]
            yield x, int(values[0])


def torch_data():
    import torch
    torch.set_num_threads(1)
    if FORMAT == "jpeg":
        from torchvision.io import ImageReadMode, decode_jpeg, read_file
        paths, labels = pictures()

        class Pictures(torch.utils.data.Dataset):
            def __len__(self):
                return len(paths)

            def __getitem__(self, i):
                return decode_jpeg(read_file(paths[i]), ImageReadMode.RGB), labels[i]
        return torch.utils.data.DataLoader(Pictures(), batch_size=BATCH)

    read = {"csv": read_csv, "multi_slot": read_multi_slot, "libsvm": read_libsvm, "recordio": read_recordio}[FORMAT]

    class Records(torch.utils.data.IterableDataset):
        def __iter__(self):
            return read()
    return torch.utils.data.DataLoader(Records(), batch_size=BATCH)


def sklearn_data():
    from sklearn.datasets import load_svmlight_file
    x, labels = load_svmlight_file(RECORDS, n_features=PIXELS, dtype=np.float32)
    for begin in range(0, len(labels), BATCH):
        yield x[begin:begin + BATCH].toarray(), labels[begin:begin + BATCH]


def main():
    if WHAT == "write":
        write_with_tensorflow(*map(int, sys.argv[6:9]))
        return
    make = {"tf": tf_data, "torch": torch_data, "sklearn": sklearn_data}[PEER]
    if WHAT == "first":
        x, label = (np.asarray(tensor) for tensor in next(iter(make())))
        if x.ndim == 4 and x.shape[3] == 3:
            x = x.transpose(0, 3, 1, 2)
        np.savez(sys.argv[6], x=x.astype(np.float32).reshape(len(x), -1), label=label.astype(np.int64).reshape(-1))
        return
    data = make()
    if PEER != "sklearn":
        for number, _ in enumerate(data):  # what is built on first use
            if number == 1:
                break
    wall, used, count = time.perf_counter(), time.process_time(), 0
    for x, _ in data:
        count += int(x.shape[0])
    print(count, time.process_time() - used, time.perf_counter() - wall)


main()
