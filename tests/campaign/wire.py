"""Protobuf's wire format as a tree, without a schema, and changes of it; and CRC-32C, to seal a folder again."""


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("cut off")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def put_varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def parse(data):
    """[[number, kind, value]]: a list for what reads as a message, bytes or a number for the rest. ValueError."""
    fields, at = [], 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if tag >> 3 == 0:
            raise ValueError("no field 0")
        if kind == 0:
            value, at = varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise ValueError("cut off")
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise ValueError("cut off")
            if not is_name(value):
                try:
                    value = parse(value)
                except ValueError:
                    pass
        else:
            raise ValueError("kind %d" % kind)
        fields.append([tag >> 3, kind, value])
    return fields


def is_name(value):
    return len(value) > 1 and all(32 <= byte < 127 for byte in value)


def serialize(fields):
    out = bytearray()
    for number, kind, value in fields:
        out += put_varint(number << 3 | kind)
        if kind == 0:
            out += put_varint(value)
        elif kind == 2:
            value = serialize(value) if isinstance(value, list) else value
            out += put_varint(len(value)) + value
        else:
            out += value
    return bytes(out)


def lists_in(fields):
    found = [fields]
    for _, kind, value in fields:
        if kind == 2 and isinstance(value, list):
            found += lists_in(value)
    return found


def copy(field):
    number, kind, value = field
    return [number, kind, [copy(each) for each in value] if isinstance(value, list) else value]


INTEGERS = (0, 1, 2, 3, 7, -1, 2 ** 31 - 1, -2 ** 31, 2 ** 32 - 1, 2 ** 63 - 1, -2 ** 63, 100)


def mutate(fields, rng):
    lists = [each for each in lists_in(fields) if each]
    chosen = rng.choice(lists)
    at = rng.randrange(len(chosen))
    every = [each for some in lists for each in some]
    how = rng.choice(("remove", "twice", "swap", "value", "value", "value", "value", "take", "number", "move"))
    if how == "remove":
        del chosen[at]
    elif how == "twice":
        chosen.insert(at, copy(chosen[at]))
    elif how == "swap":
        other = rng.randrange(len(chosen))
        chosen[at], chosen[other] = chosen[other], chosen[at]
    elif how == "move":
        rng.choice(lists).append(chosen.pop(at))
    elif how == "number":
        chosen[at][0] = rng.choice(every)[0]
    elif how == "take":
        like = [each for each in every if each[:2] == chosen[at][:2]]
        chosen[at] = copy(rng.choice(like))
    else:
        field = rng.choice([each for each in every if not isinstance(each[2], list)] or every)
        if field[1] == 0:
            field[2] = rng.choice((rng.choice(INTEGERS), field[2] + 1, field[2] - 1))
        elif field[1] in (1, 5):
            field[2] = rng.choice((bytes(len(field[2])), b"\xff" * len(field[2]), rng.randbytes(len(field[2]))))
        elif isinstance(field[2], bytes):
            names = [each[2] for each in every if isinstance(each[2], bytes) and each[1] == 2]
            field[2] = rng.choice((rng.choice(names), rng.choice(names), b"", field[2][:-1], b"\xff\xfe"))
    return how


TABLE = []
for entry in range(256):
    for _ in range(8):
        entry = entry >> 1 ^ (0x82F63B78 if entry & 1 else 0)
    TABLE.append(entry)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF
