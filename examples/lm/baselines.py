"""Models without weights, on the same held-out text: `python -m lm.baselines RUN`.

Modified Kneser-Ney smoothing of the counts of up to 8 bytes (Chen and Goodman, 1999),
its order chosen on the validation text; `xz`, and `zstd` where it is installed, before
and after they have seen the training text; and a uniform model.
"""

import argparse
import json
import lzma
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np

from . import config as options
from . import text


def grams(data, n):
    """Each n bytes (n <= 8) of the data as one integer (len(data) - n + 1,)."""
    keys = np.zeros(len(data) - n + 1, np.uint64)
    for i in range(n):
        keys = (keys << np.uint64(8)) | data[i : len(data) - n + 1 + i]
    return keys


class Level:
    """The counts of one order: of n-grams, and of what follows each n - 1 bytes."""

    def __init__(self, keys, counts):
        self.keys, self.counts = keys, counts
        of = [(counts == i).sum() for i in (1, 2, 3, 4)]
        y = of[0] / max(of[0] + 2 * of[1], 1)
        discounts = [i + 1 - (i + 2) * y * of[i + 1] / max(of[i], 1) for i in range(3)]
        self.discounts = np.clip([0.0, *discounts], 0, [0, 1, 2, 3])
        contexts = keys >> np.uint64(8)  # sorted, as the keys are
        self.contexts, starts = np.unique(contexts, return_index=True)
        self.totals = np.add.reduceat(counts, starts)
        left = self.discounts[np.minimum(counts, 3)]
        self.left = np.add.reduceat(left, starts) / self.totals

    def refine(self, shares, keys):
        """The probability (n,) of n-grams, from `shares` of the next lower order."""
        at, known = find(self.contexts, keys >> np.uint64(8))
        where, seen = find(self.keys, keys)
        counts = np.where(seen, self.counts[where], 0)
        discounted = counts - self.discounts[np.minimum(counts, 3)]
        mixed = discounted / self.totals[at] + self.left[at] * shares
        return np.where(known, mixed, shares)


def find(sorted_keys, keys):
    at = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return at, sorted_keys[at] == keys


def kneser_ney(train, parts, highest=8):
    """For each order, bits (n,) of the bytes of each part."""
    train = np.frombuffer(train, np.uint8)
    parts = {name: np.frombuffer(part, np.uint8) for name, part in parts.items()}
    keys, counts = np.unique(grams(train, highest), return_counts=True)
    raw = {highest: (keys, counts)}
    for n in range(highest - 1, 0, -1):
        keys, inverse = np.unique(raw[n + 1][0] >> np.uint64(8), return_inverse=True)
        raw[n] = keys, np.bincount(inverse, raw[n + 1][1]).astype(np.int64)
    result = {name: {} for name in parts}
    lower = {name: np.full(len(part), 1 / 256) for name, part in parts.items()}
    for n in range(1, highest + 1):
        own = Level(*raw[n])
        if n < highest:  # below the highest order, count what came before a gram
            mask = np.uint64(2 ** (8 * n) - 1)
            keys, kinds = np.unique(raw[n + 1][0] & mask, return_counts=True)
            below = Level(keys, kinds)
        for name, part in parts.items():
            asked, shares = grams(part, n), lower[name][n - 1 :]
            top = np.concatenate([lower[name][: n - 1], own.refine(shares, asked)])
            result[name][n] = -np.log2(top)
            if n < highest:
                lower[name] = np.concatenate(
                    [lower[name][: n - 1], below.refine(shares, asked)]
                )
    return result


def xz(data):
    return lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)


def zstd(data):
    command = ["zstd", "--ultra", "-22", "--long=27", "--stdout"]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


def added_bits(compress, train, test):
    """Bits a byte that a compressor adds for the test text behind the training text."""
    before = len(compress(train)) if train else 0
    return 8 * (len(compress(train + test)) - before) / len(test)


def evaluate(config):
    """Bits a byte of the test text, for each model."""
    parts = text.parts(text.read_folder(config.data))
    train, validation, test = (text.joined(texts) for texts in parts.values())
    bits = kneser_ney(train, {"validation": validation, "test": test})
    means = {part: {n: x.mean() for n, x in bits[part].items()} for part in bits}
    order = min(means["validation"], key=means["validation"].get)
    found = {f"Kneser-Ney, {order} bytes": float(means["test"][order])}
    for compress in [xz, zstd] if shutil.which("zstd") else [xz]:
        name = compress.__name__
        found[f"{name}, after the training text"] = added_bits(compress, train, test)
        found[name] = added_bits(compress, b"", test)
    return found | {"uniform": math.log2(256)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="folder of a run")
    args = parser.parse_args()
    config = options.read(args.run)
    bits = evaluate(config)
    (args.run / "baselines.json").write_text(json.dumps(bits, indent=1) + "\n")
    for name, value in bits.items():
        print(f"{name:30} {value:.3f}")


if __name__ == "__main__":
    main()
