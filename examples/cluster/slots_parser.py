"""Reads slots.yaml, for the trainer and the reader."""

DICT_SIZE = 20000  # ids of a table, from 1 on; 0 fills up


def parse_yaml(path):
    """(sparse slots, those of the wide part, one-hot slots, dense slots)."""
    lists = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, _, values = line.partition("#")[0].partition(":")
            if values.strip():
                lists[name.strip()] = [int(value) for value in values.strip(" []\n").split(",") if value.strip()]
    return lists["sparse_slots"], lists["sparse_lr_slots"], lists["one_hot_slots"], lists["dense_slots"]
