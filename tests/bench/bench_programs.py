"""What the programs cost per cell: telling them from the source, and running them.

    python -m tests.bench.bench_programs [--rounds N] [--sample N]

The same programs run in each round in forks and in fresh interpreters, two at a time,
so that the ratio does not depend on how busy the machine is. They are those of the
small pages in `tests/book/pages`.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable

from executed_book.programs import Page, Program, Programs, sets_environment
from tests.book.programs.running import run_programs
from tests.book.test_programs import HEADER, PAGES


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def sliced() -> list[Program]:
    """The programs of all cells of all pages."""
    pages = [Page(cells) for cells in PAGES.values()]
    return [
        Programs(page, HEADER).of(k) for page in pages for k in range(len(page.cells))
    ]


def sample(programs: list[Program], size: int) -> list[str]:
    """Programs from all over the pages, of those that need no fresh interpreter."""
    texts = [p.text for p in programs if not sets_environment(p.text)]
    return texts[:: max(1, len(texts) // size)][:size]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sample", type=int, default=16)
    options = parser.parse_args()
    programs = sliced()
    texts = sample(programs, options.sample)
    every = range(len(texts))
    slicing, forked, fresh = [], [], []
    for _ in range(options.rounds):
        slicing.append(seconds(sliced) / len(programs))
        forked.append(seconds(lambda: run_programs(texts)) / len(texts))
        fresh.append(seconds(lambda: run_programs(texts, fresh=every)) / len(texts))
    lengths = [len(p.earlier) for p in programs]
    print(
        f"cells {len(programs)}, kept statements: median {statistics.median(lengths)}"
    )
    print(f"rounds {options.rounds}, {len(texts)} programs a round, two at a time")
    print(f"load at the end {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    show("slicing, ms a cell", [1000 * s for s in slicing])
    show("forked, s a program", forked)
    show("fresh interpreter, s a program", fresh)
    show("ratio", [a / b for a, b in zip(fresh, forked, strict=True)])


def show(label: str, values: list[float]) -> None:
    low, high = min(values), max(values)
    print(f"{label:<32} {statistics.median(values):7.2f}   ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
