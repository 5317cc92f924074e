"""The operators of mini_loader.so as layers."""

from millrace import layers


def MiniReader(data_dir, batch_size=1, data_part_num=2, part_name_prefix="part-", part_name_suffix_length=-1,
               random_shuffle=False, shuffle_after_epoch=False, seed=-1, shuffle_buffer_size=1024, name=None):
    """Lines of two numbers, read from DATA_DIR/part-0, part-1, ... without end: [batch_size, 2], float64."""
    attrs = {"data_dir": data_dir, "batch_size": batch_size, "data_part_num": data_part_num,
             "part_name_prefix": part_name_prefix, "part_name_suffix_length": part_name_suffix_length,
             "random_shuffle": random_shuffle, "shuffle_after_epoch": shuffle_after_epoch, "seed": seed,
             "shuffle_buffer_size": shuffle_buffer_size}
    return layers.op("MiniReader", {}, attrs, name=name)


def MiniDecoder(input, name=None):
    """The two columns of what MiniReader gives: x and y, [batch_size, 1] each, float64."""
    return layers.op("mini_decoder", {"in": input}, name=name)
