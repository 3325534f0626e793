"""Shapes; a program in a process of its own, and a function in several threads."""

import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import jax


def shaped(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype)


def printed(program, *arguments):
    """What a program prints, which must end well; its text, or a path to it."""
    first = [program] if "\n" not in str(program) else ["-c", textwrap.dedent(program)]
    command = [sys.executable, *map(str, (*first, *arguments))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def in_threads(count, call):
    """Run `call(i)` in `count` threads that start at one moment; raise what they do."""
    barrier = threading.Barrier(count)
    with ThreadPoolExecutor(count, initializer=barrier.wait) as pool:
        list(pool.map(call, range(count)))
