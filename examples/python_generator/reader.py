"""A pipe_command in Python: "age,city,clicked" lines in, MultiSlot text out."""

import zlib

from millrace.data_generator import MultiSlotDataGenerator


class Clicks(MultiSlotDataGenerator):
    def generate_sample(self, line):
        def samples():
            age, city, clicked = line.rstrip("\n").split(",")
            if not age:
                return  # a line without an age is no sample
            # An id is a hash of the text: no dictionary is needed.
            yield [("label", [int(clicked)]), ("age", [float(age) / 100]), ("city", [zlib.crc32(city.encode())])]
        return samples


if __name__ == "__main__":
    Clicks().run_from_stdin()
