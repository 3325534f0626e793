"""Runs small pages as a notebook does, and their programs alone, and compares the two.

A file of pages is text: a line `## name` begins a page, and a line `# %%` a cell, which
may announce its failure (`# %% raises ValueError: words`) or give its tags (`# %% tags
figure`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from executed_book.checking.comparison import same_output
from executed_book.programs import (
    NoFaithfulProgram,
    Page,
    Program,
    Programs,
    SourceCell,
    sets_environment,
)
from executed_book.running.programs import Ran

from .running import run_programs

# Where an object lies differs from process to process.
ADDRESS = re.compile(r"0x[0-9a-f]+")
HEADER = "# page.html, run with JAX 0.12.0"

# Executes pages in IPython, each in a process of its own and in an empty folder, as the
# book does. Text is taken from the file descriptor, so that what other processes print
# counts as well.
EXECUTE = """
import json, os, sys, tempfile, traceback
from IPython.core.interactiveshell import InteractiveShell


class Shell(InteractiveShell):
    def enable_gui(self, gui=None):
        pass

    def showtraceback(self, *args, **kwargs):
        pass


def execute(codes):
    captured = os.open("stdout", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    os.dup2(captured, 1)
    os.dup2(os.open("stderr", os.O_RDWR | os.O_CREAT), 2)
    sys.stdout = open(1, "w", closefd=False, buffering=1)
    os.mkdir("work")
    os.chdir("work")
    sys.path.insert(0, "")  # as notebooks have it
    shell = Shell.instance()
    shell.display_formatter.formatters["text/plain"].pprint = False
    shell.displayhook.write_output_prompt = lambda: None
    return [cell(shell, captured, code) for code in codes]


def cell(shell, captured, code):
    start = os.fstat(captured).st_size
    result = shell.run_cell(code, store_history=True)
    if "jax" in sys.modules:
        sys.modules["jax"].effects_barrier()
    sys.stdout.flush()
    text = os.pread(captured, 10**7, start).decode()
    error = result.error_in_exec or result.error_before_exec
    frames = traceback.extract_tb(error.__traceback__) if error else []
    here = [f.lineno for f in frames if f.name in ("<module>", "<cell line: 1>")
            or f.name.startswith("<cell")]
    displays = result.result is not None and not shell.displayhook.quiet()
    shown = (repr(result.result) + "\\n") if displays else ""
    return {
        "text": text + (f"{type(error).__name__}: {error}" if error else ""),
        "fails_at": (here[0] if here else 1) if error else None,
        "displays": displays,
        "prints": bool(text) if not displays else text != shown,
    }


for name, codes in PAGES.items():
    folder = os.path.realpath(tempfile.mkdtemp(dir="."))
    end = os.path.abspath(f"{name}.json")
    if not os.fork():
        os.chdir(folder)
        cells = execute(codes)
        with open(end, "w") as file:
            json.dump(cells, file)
        sys.stdout.flush()
        os._exit(0)
    os.wait()
found = {}
for name in PAGES:
    try:
        with open(f"{name}.json") as file:
            found[name] = json.load(file)
    except FileNotFoundError:
        found[name] = None
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Shown:
    """What a cell gave on its page.

    `text` is what it printed, displayed and raised; `fails_at` the line, from 1, of the
    statement that raised.
    """

    text: str
    displays: bool
    prints: bool
    fails_at: int | None


@dataclass(frozen=True)
class Judged:
    """What became of one cell's program, and why.

    It is `right`; or `lengthened`, which is right after all cells above were added; or
    `caught` or `refused`, and then readers are not offered it.
    """

    page: str
    cell: int
    kind: str
    why: str = ""
    text: str = ""


KINDS = ("right", "lengthened", "refused", "caught")

Cells = list[SourceCell]


def read_pages(path: Path) -> dict[str, Cells]:
    """The pages of a file, by name."""
    parts = re.split(r"(?m)^## (.+)\n", path.read_text("utf-8"))[1:]
    return {
        name: read_cells(text)
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def read_cells(text: str) -> Cells:
    """The cells of one page."""
    parts = re.split(r"(?m)^# %%(.*)\n", text)[1:]
    return [
        SourceCell(
            code.rstrip("\n"),
            frozenset(option.partition("tags ")[2].split()),
            option.partition("raises ")[2] or None,
        )
        for option, code in zip(parts[::2], parts[1::2], strict=True)
    ]


def execute(pages: Mapping[str, Sequence[SourceCell]]) -> dict[str, list[Shown]]:
    """What each cell of each page gives when the page is run from its first cell."""
    names = list(pages)
    early = [n for n in names if any(sets_environment(c.code) for c in pages[n])]
    others = [name for name in names if name not in early]
    texts = []
    for part in (others[0::2], others[1::2], early):
        numbered = {str(names.index(n)): [c.code for c in pages[n]] for n in part}
        # Not as a literal: a pasted quotation mark or backslash stays what it is.
        texts.append(f"import json\nPAGES = json.loads({json.dumps(numbered)!r})\n")
    texts = [text + EXECUTE for text in texts]
    runs = run_programs(texts, fresh=[2], timeout=600.0)
    found: dict[str, list[Shown]] = {}
    for run in runs:
        if run.status:
            raise RuntimeError(run.stderr)
        for number, cells in json.loads(run.stdout.splitlines()[-1]).items():
            if cells is None:
                raise RuntimeError(f"page {names[int(number)]!r} broke its process")
            found[names[int(number)]] = [Shown(**cell) for cell in cells]
    return {name: found[name] for name in names}


def informed(cells: Sequence[SourceCell], shown: Sequence[Shown]) -> Cells:
    """A page's cells with what its run tells of them."""
    return [
        replace(c, displays=s.displays, prints=s.prints, fails_at=s.fails_at)
        for c, s in zip(cells, shown, strict=True)
    ]


def judge(
    pages: Mapping[str, Sequence[SourceCell]], executed: Mapping[str, list[Shown]]
) -> list[Judged]:
    """A verdict on the program of every cell of every page."""
    found: list[Judged] = []
    made: list[tuple[str, int, Program]] = []
    longer: dict[tuple[str, int], Program] = {}
    for name, cells in pages.items():
        check_announcements(name, cells, executed[name])
        programs = Programs(Page(informed(cells, executed[name])), HEADER)
        for k in range(len(cells)):
            try:
                made.append((name, k, programs.of(k)))
                longer[name, k] = programs.of(k, programs.above(k))
            except NoFaithfulProgram as refusal:
                found.append(Judged(name, k, "refused", str(refusal)))
    short = list(compared(pages, executed, made))
    found += [one for one in short if one.kind == "right"]
    again = [(v.page, v.cell) for v in short if v.kind != "right"]
    whole = [(*key, longer[key]) for key in again if key in longer]
    for one in compared(pages, executed, whole):
        kind = "lengthened" if one.kind == "right" else "caught"
        found.append(replace(one, kind=kind))
    order = {name: i for i, name in enumerate(pages)}
    return sorted(found, key=lambda v: (order[v.page], v.cell))


def check_announcements(
    name: str, cells: Sequence[SourceCell], shown: Sequence[Shown]
) -> None:
    """A cell raises if, and only if, the page says so."""
    for k, (cell, seen) in enumerate(zip(cells, shown, strict=True)):
        if (cell.raises is not None) != (seen.fails_at is not None):
            raise ValueError(f"page {name!r}, cell {k}: {seen.text}")


def compared(
    pages: Mapping[str, Sequence[SourceCell]],
    executed: Mapping[str, list[Shown]],
    made: Sequence[tuple[str, int, Program]],
) -> Iterator[Judged]:
    fresh = [i for i, (_, _, p) in enumerate(made) if sets_environment(p.text)]
    runs = run_programs([p.text for _, _, p in made], fresh=fresh)
    for (name, k, p), run in zip(made, runs, strict=True):
        found = difference(pages[name][k], executed[name][k], run)
        why = f"{found}\n{run.stderr[-400:]}" if found else ""
        yield Judged(name, k, "wrong" if found else "right", why, p.text)


def difference(cell: SourceCell, page: Shown, run: Ran) -> str | None:
    """What a program's run shows other than its page, or None."""
    if "%time" in cell.code:
        return None
    expected = re.sub("\r\n?", "\n", page.text)  # as a run's output is read
    if cell.raises is not None:
        return raised_otherwise(cell.raises, expected, run)
    found = same_output(ADDRESS.sub("0x", expected), ADDRESS.sub("0x", run.shown))
    return str(found) if found else None


def raised_otherwise(announced: str, expected: str, run: Ran) -> str | None:
    """The same for a cell that raises: what it prints before, and what it raises."""
    name, _, words = announced.partition(": ")
    raised = run.raised or ""
    if not (raised.startswith(name) and words in raised):
        return f"announced {announced!r}, gave {run.shown!r}"
    if name == "SyntaxError":
        return None
    found = same_output(expected.rpartition(f"{name}:")[0], run.stdout)
    return str(found) if found else None


def counts(verdicts: Iterable[Judged]) -> str:
    """How many programs, and how many pages, are right, lengthened and so on."""
    listed = list(verdicts)
    worst: dict[str, str] = {}
    rank = {kind: i for i, kind in enumerate(KINDS)}
    for v in listed:
        worst[v.page] = max(worst.get(v.page, "right"), v.kind, key=rank.__getitem__)
    kinds = KINDS
    of = {k: sum(v.kind == k for v in listed) for k in kinds}
    pages = {k: sum(w == k for w in worst.values()) for k in kinds}
    return (
        f"programs: {', '.join(f'{of[k]} {k}' for k in kinds)}; "
        f"pages: {', '.join(f'{pages[k]} {k}' for k in kinds)}"
    )
