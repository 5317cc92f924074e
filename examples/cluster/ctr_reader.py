"""The pipe_command: lines of the log in, MultiSlot text out."""

import os
import zlib

from millrace import data_generator

import slots_parser as parser


def id_of(slot, text):
    """A slot's text as an id of the table."""
    return 1 + zlib.crc32(("%s:%s" % (slot, text)).encode()) % (parser.DICT_SIZE - 1)


class DatasetCtrReader(data_generator.MultiSlotDataGenerator):
    def __init__(self):
        super(DatasetCtrReader, self).__init__()
        conf = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slots.yaml")
        self.sparse_slots, self.sparse_lr_slots, self.one_hot_slots_to_dims, self.dense_slots_to_dims = parser.parse_yaml(conf)

    def generate_sample(self, line):
        def iter():
            # 1. parse slots: "label \t slot:value value \t slot:value ..."
            sent = line.rstrip("\n").split("\t")
            values = {}
            for field in sent[1:]:
                slot, _, texts = field.partition(":")
                values[int(slot)] = texts.split(" ")
            # 2. put slots to ret_result
            ret_result = []
            for slot in self.sparse_slots:
                ret_result.append(("sparse_slot_" + str(slot), [id_of(slot, text) for text in values.get(slot, [])] or [0]))
            crossed = [id_of("%d_ad" % slot, "%s_%s" % (text, values[4][0]))
                       for slot in self.sparse_lr_slots for text in values.get(slot, [])]
            ret_result.append(("sparse_lr_index", crossed))
            # 3. put label to ret_result
            ret_result.append(("label", [1] if sent[0] == "1" else [0]))
            yield tuple(ret_result)
        return iter


if __name__ == "__main__":
    pairwise_reader = DatasetCtrReader()
    pairwise_reader.run_from_stdin()
