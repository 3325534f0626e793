"""Metrics as TensorBoard reads them: `tensorboard --logdir RUN`.

An event file is a sequence of records: a length, a message of Protocol Buffers, and a
checksum of each. A message holds a time, a step, and numbers by their names.
"""

import struct
import time


class Writer:
    """An event file in a folder, begun anew."""

    def __init__(self, folder):
        self.path = folder / "events.out.tfevents.lm"
        self.path.write_bytes(record(moment() + field(3, b"brain.Event:2")))

    def add(self, step, **values):
        numbers = {n: x for n, x in values.items() if isinstance(x, int | float)}
        summary = b"".join(field(1, scalar(n, x)) for n, x in numbers.items())
        message = moment() + b"\x10" + varint(step) + field(5, summary)
        with self.path.open("ab") as file:
            file.write(record(message))


def record(message):
    length = struct.pack("<Q", len(message))
    return length + checksum(length) + message + checksum(message)


def moment():
    return b"\x09" + struct.pack("<d", time.time())


def scalar(name, value):
    return field(1, name.encode()) + b"\x15" + struct.pack("<f", value)


def field(number, data):
    """A field of bytes: its number and type, its length, and they."""
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def varint(number):
    """Seven bits a byte, the low ones first; the high bit says that more follow."""
    out = []
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def checksum(data):
    """The CRC-32C, rotated and shifted as the format wants it."""
    crc = crc32c(data)
    masked = (crc >> 15 | crc << 17) + 0xA282EAD8
    return struct.pack("<I", masked & 0xFFFFFFFF)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (crc & 1) * 0x82F63B78
    return crc ^ 0xFFFFFFFF
