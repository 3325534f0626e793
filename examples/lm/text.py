"""Text files of a folder, split into training, validation and test files.

Whole files are held out, by a hash of their name, so that a file stays on its side
when others come and go. What both sides share would be remembered and not predicted:
near copies of a file are left out, and so are the lines of the training text that
hold a passage of the held-out text.
"""

import hashlib
import sysconfig
from collections import Counter
from pathlib import Path

import numpy as np

from .config import stop

HELD_OUT = {"validation": 0.05, "test": 0.10}  # where each ends, of all files
WINDOW = 50  # bytes of a passage; shorter ones are idioms, not copies
# Parts of Python's library that are tests, tables, or doubles of other modules.
SKIPPED = {"test", "tests", "idle_test", "site-packages", "encodings", "pydoc_data"}
DOUBLES = {"_pydatetime.py", "_pydecimal.py", "_pyio.py", "_pylong.py"}


def read_folder(folder):
    """The text of every file that is UTF-8, by its path below the folder."""
    root = Path(folder or sysconfig.get_paths()["stdlib"])
    if not root.is_dir():
        stop(f"{root} is not a folder: give --data a folder of text files.")
    texts = {}
    for path in sorted(root.rglob("*" if folder else "*.py")):
        name = path.relative_to(root)
        if any(part.startswith(".") for part in name.parts) or not path.is_file():
            continue
        if not folder and (SKIPPED & set(name.parts) or name.name in DOUBLES):
            continue
        try:
            text = path.read_bytes().decode()
        except UnicodeDecodeError:
            continue
        if text.strip() and "\0" not in text:
            texts[name.as_posix()] = text
    if not texts:
        stop(f"{root} holds no text in UTF-8: give --data a folder of text files.")
    return texts


def without_copies(texts):
    """The texts less those of which half the lines stand together in another file."""
    owners, originals = {}, {}
    for name in sorted(texts, key=lambda name: (-len(texts[name]), name)):
        lines = {line.strip() for line in texts[name].splitlines()}
        lines = {hash_of(line) for line in lines if len(line) >= 20}
        shared = Counter(owner for line in lines for owner in owners.get(line, ()))
        if lines and max(shared.values(), default=0) > len(lines) / 2:
            continue
        for line in lines:
            owners.setdefault(line, []).append(name)
        originals[name] = texts[name]
    return {name: originals[name] for name in sorted(originals)}


def parts(texts):
    """For training, validation and test the texts of their files, by name."""
    texts = without_copies(texts)
    chosen = {
        part: {name: texts[name] for name in names}
        for part, names in split(texts).items()
    }
    held_out = passages(joined({**chosen["validation"], **chosen["test"]}))
    kept = {name: without(text, held_out) for name, text in chosen["train"].items()}
    return chosen | {"train": {name: text for name, text in kept.items() if text}}


def without(text, known):
    """A text without the lines that a known passage touches."""
    data = text.encode()
    covered, start, kept = seen_before(data, known), 0, []
    for line in data.splitlines(keepends=True):
        if not covered[start : start + len(line)].any():
            kept.append(line)
        start += len(line)
    return b"".join(kept).decode()


def joined(texts):
    return "".join(texts.values()).encode()


def split(texts):
    """Names of the files to train on, to validate on and to test on: at least one."""
    names, first = sorted(texts, key=hash_of), 0
    if len(names) < 3:
        stop(f"{len(names)} files cannot be split in three: give --data more files.")
    places, found = np.array([hash_of(name) / 2**64 for name in names]), {}
    for part, end in HELD_OUT.items():
        last = max(int((places < end).sum()), first + 1)
        found[part], first = names[first:last], last
    return {"train": names[first:], **found}


def hash_of(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def passages(text):
    """The hashes of all passages of WINDOW bytes of a text, sorted."""
    return np.unique(window_hashes(text))


def seen_before(text, known):
    """Which bytes (n,) of a text lie in passages of WINDOW bytes that are known."""
    mine = window_hashes(text)
    covered = np.zeros(len(text) + 1, np.int64)
    if len(known) and len(mine):
        at = np.minimum(np.searchsorted(known, mine), len(known) - 1)
        starts = np.flatnonzero(known[at] == mine)
        covered[starts] += 1
        covered[starts + WINDOW] -= 1
    return covered.cumsum()[:-1] > 0


def window_hashes(text):
    """A polynomial hash of 64 bits of each passage of WINDOW bytes."""
    data, base = np.frombuffer(text, np.uint8), np.uint64(0x9E3779B97F4A7C15)
    count = len(data) - WINDOW + 1
    hashes = np.zeros(max(count, 0), np.uint64)
    for i in range(WINDOW if count > 0 else 0):
        hashes *= base
        hashes += data[i : i + count]
    return hashes
