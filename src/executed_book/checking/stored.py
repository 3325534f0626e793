"""What the cells of a page gave, kept in the repository: one format for all places.

A place is a kind of device and a version of JAX. Each has a folder, with one file a
page: `cpu-0.12.0/tracing/jit.txt`, `nvidia-h200-0.12.0/tracing/jit.txt`. So what
changes from one place to another is the difference of two files, made to be read: the
lines of each cell's source after the prompts `>>>` and `...`, and below them what the
cell gave, each line after `|`. The first line names the place, the last is `# end`.

A file of accepted outputs has nothing else. A recorded file also says in its head where
and when it was recorded, and below each cell which earlier cells the cell needs
(`# needs 1 2`), and of a check the lines of the assertions that did not run there
(`# missed 3`). The mark `~` means that the cell's output varies from run to run; the
mark `!` means that the cell failed or did not do what its page says. Figures and HTML
are in files beside, each named below the text that stands for it:

    : [image/svg+xml]
    @ jit-3-1.svg
"""

import base64
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from ..errors import PageError
from ..files import write_whole
from ..model import Cell, CellResult, Executed, Output, Provenance
from .text import pinned_text

#: What a page shows rather than text, the best first, and how its files end.
_FORMATS = {"image/svg+xml": "svg", "image/png": "png", "text/html": "html"}

#: In place of the version of JAX, for a page that does not import it.
_NO_JAX = "none"

_HEAD = re.compile(r"# JAX ([^,]+), (.+)")
_END = "# end"

#: What the head of a record says of where it was made, below its first line.
_FACTS = [f.name for f in fields(Provenance) if f.name not in ("jax", "device_kind")]


@dataclass(frozen=True)
class Part:
    """Text that a cell gave, or a picture or HTML: its MIME type, content and text."""

    text: str
    mime: str = ""
    content: str = ""


@dataclass(frozen=True)
class StoredCell:
    """A cell and what it gave.

    Attributes:
        source: its code.
        parts: what it gave, in order; empty where it varies and was not recorded.
        varies: whether it gives something else in each run.
        failed: whether it failed, or did not do what its page says.
        needs: the numbers of the earlier cells that it needs; None if not known.
        missed: the lines of its assertions that did not run.
    """

    source: str
    parts: tuple[Part, ...] = ()
    varies: bool = False
    failed: bool = False
    needs: frozenset[int] | None = None
    missed: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """All that is stored of it, as text."""
        return "\n".join(part.text for part in self.parts)

    @property
    def output(self) -> str:
        """Its output alone, without the values in the running text below it."""
        lines = self.text.split("\n")
        return "\n".join(line for line in lines if not line.startswith("{value} "))


@dataclass(frozen=True)
class StoredPage:
    """The cells of a page in one place. Of accepted outputs there is no date."""

    provenance: Provenance
    cells: tuple[StoredCell, ...]


# -- where files are


def slug(device: str) -> str:
    """A device's name as part of a path.

    >>> slug("NVIDIA H200")
    'nvidia-h200'
    """
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")


def stored_path(folder: Path, jax: str, docname: str, device: str = "cpu") -> Path:
    """The file of a page for a kind of device with this JAX."""
    return folder / f"{slug(device)}-{jax or _NO_JAX}" / f"{docname}.txt"


def accepted_path(folder: Path, docname: str, jax: str = "") -> Path | None:
    """The accepted outputs of a page: those of this JAX, or else of the newest."""
    paths = [place / f"{docname}.txt" for place in newest_first(folder)]
    paths.insert(0, stored_path(folder, jax, docname))
    kept = (path for path in paths if path.exists() and _second_line(path)[:2] != "# ")
    return next(kept, None)


def newest_first(folder: Path) -> list[Path]:
    """The folders of CPUs, by their version of JAX."""
    places = folder.glob("cpu-*")
    versions = {p: [int(n) for n in re.findall(r"\d+", p.name)] for p in places}
    return sorted(versions, key=versions.__getitem__, reverse=True)


def is_accepted(path: Path) -> bool:
    """Whether a file holds accepted outputs: it has a head, and no date."""
    return _second_line(path) == "\n"


def _second_line(path: Path) -> str:
    """The line below a file's head, which tells a record; empty if it is damaged."""
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline() if _HEAD.match(file.readline()) else ""
    except (OSError, ValueError):
        return ""


# -- from a run


def stored_source(cell: Cell) -> str:
    """A cell's source as a file holds it: no line ends with white space."""
    return "\n".join(line.rstrip() for line in cell.source.strip().splitlines())


def accepted_page(executed: Executed) -> StoredPage:
    """What a run would have accepted; of what varies only the values in the text."""
    cells = []
    for cell, result in executed:
        lines = [
            f"{{value}} {value.expression} = {computed.text}"
            for value, computed in zip(cell.values, result.values, strict=True)
            if value.role == "value"
        ]
        if not cell.varies:
            lines = [*pinned_text(result.outputs).splitlines(), *lines]
        varies = cell.varies and not lines
        cells.append(StoredCell(stored_source(cell), _texts(lines), varies))
    where = executed.run.provenance
    return StoredPage(_on_cpu(where.jax, where.device_kind), tuple(cells))


def _on_cpu(jax: str, device: str) -> Provenance:
    return Provenance("cpu", device, 1, jax, "", "")


def _texts(lines: Iterable[str]) -> tuple[Part, ...]:
    text = "\n".join(lines)
    return (Part(text),) if text else ()


def recorded_page(
    executed: Executed,
    needs: Callable[[int], set[int]],
    failed: Collection[int],
    shown: Collection[int],
) -> StoredPage:
    """What a run gave, to be stored for another place than the accepted outputs'.

    Args:
        executed: the run; its provenance has a date.
        needs: the numbers of the cells that a cell needs.
        failed: the numbers of cells that failed.
        shown: those whose figures and HTML are to be stored as well. Of the others,
            what varies is not stored.
    """
    cells = []
    for cell, result in executed:
        is_shown = cell.number in shown
        parts = _parts(result, is_shown) if is_shown or not cell.varies else ()
        cells.append(
            StoredCell(
                stored_source(cell),
                tuple(parts),
                cell.varies,
                cell.number in failed,
                frozenset(needs(cell.number) - {cell.number}),
                result.missed,
            )
        )
    return StoredPage(executed.run.provenance, tuple(cells))


def _parts(result: CellResult, with_figures: bool) -> Iterator[Part]:
    """What a cell gave; if `with_figures`, with its figures and HTML."""

    def mime(item: Output) -> str:
        return next((kind for kind in _FORMATS if kind in item.get("data", ())), "")

    for kind, items in groupby(result.outputs, mime if with_figures else lambda _: ""):
        if not kind:
            yield from _texts(pinned_text(items).splitlines())
            continue
        for item in items:
            text = "\n".join(pinned_text([item]).splitlines())
            yield Part(text, kind, item["data"][kind])


def outputs_of(cell: StoredCell) -> list[Output]:
    """What a cell gave, in nbformat's form."""
    made: list[Output] = []
    for part in cell.parts:
        if part.mime:
            data = {part.mime: part.content, "text/plain": part.text}
            made.append({"output_type": "display_data", "data": data, "metadata": {}})
        else:
            text = part.text + "\n"
            made.append({"output_type": "stream", "name": "stdout", "text": text})
    return made


# -- as text, and back


def outputs_text(page: StoredPage, stem: str = "page") -> str:
    """The text of a page's file, which is called `stem`."""
    where = page.provenance
    head = [f"# JAX {where.jax or _NO_JAX}, {where.device_kind}"]
    if where.date is not None:
        facts = [(name, getattr(where, name)) for name in _FACTS]
        head += [f"# {name} {fact}" for name, fact in facts if fact is not None]
    blocks = [_block(cell, n, stem) for n, cell in enumerate(page.cells, 1)]
    return "\n\n".join(["\n".join(head), *blocks, _END]) + "\n"


def _block(cell: StoredCell, number: int, stem: str) -> str:
    first, *others = cell.source.splitlines() or [""]
    lines = [f">>> {first}", *(f"... {line}" for line in others)]
    if cell.needs:
        lines.append(f"# needs {' '.join(map(str, sorted(cell.needs)))}")
    if cell.missed:
        lines.append(f"# missed {' '.join(map(str, cell.missed))}")
    lines += ["~"] * cell.varies + ["!"] * cell.failed
    for k, part in enumerate(cell.parts, 1):
        mark = ":" if part.mime else "|"
        lines += [f"{mark} {line}" for line in part.text.split("\n")]
        if part.mime:
            lines.append(f"@ {_part_file(stem, number, k, part)}")
    return "\n".join(line.rstrip() for line in lines)


def _part_file(stem: str, number: int, k: int, part: Part) -> str:
    """The name of the file beside the page's that holds the k-th part of a cell."""
    return f"{stem}-{number}-{k}.{_FORMATS[part.mime]}"


def write_page(page: StoredPage, path: Path) -> None:
    """Write a page's file and the files of its figures, in place of the old ones."""
    beside = rf"{re.escape(path.stem)}-\d+-\d+\.({'|'.join(_FORMATS.values())})"
    for old in path.parent.glob(f"{path.stem}-*"):
        if re.fullmatch(beside, old.name):
            old.unlink()
    for number, cell in enumerate(page.cells, 1):
        for k, part in enumerate(cell.parts, 1):
            if part.mime:
                content = part.content.encode()
                if part.mime == "image/png":
                    content = base64.b64decode(content)
                name = _part_file(path.stem, number, k, part)
                write_whole(path.with_name(name), content)
    write_whole(path, outputs_text(page, path.stem))


def read_outputs(path: Path) -> StoredPage:
    """The inverse of `write_page`.

    Raises:
        PageError: the file was cut, or the book did not write it; it is named.
    """
    number = 1
    try:
        lines = path.read_text("utf-8").split("\n")
        if lines[-2:] != [_END, ""]:
            raise ValueError(f"its last line is not '{_END}': it has been cut")
        starts = [i for i, line in enumerate(lines) if line.startswith(">>>")]
        provenance = _provenance(lines[: min(starts, default=-2)])
        unknown = None if provenance.date is None else frozenset[int]()
        cells = []
        for start, end in zip(starts, [*starts[1:], -2], strict=True):
            number = start + 1
            cells.append(_cell(lines[start:end], path, unknown))
    except (OSError, ValueError, TypeError) as error:
        raise PageError(
            path,
            number,
            f"not a file of outputs: {error}",
            "write it anew with 'python -m executed_book pin', or with 'record'",
        ) from None
    return StoredPage(provenance, tuple(cells))


def _provenance(head: list[str]) -> Provenance:
    first = _HEAD.fullmatch(head[0])
    if first is None:
        raise ValueError(f"it begins with {head[0][:60]!r}")
    jax, device = first.groups()
    jax = "" if jax == _NO_JAX else jax
    facts: dict[str, Any] = dict(line[2:].split(" ", 1) for line in head[1:] if line)
    if not facts:
        return _on_cpu(jax, device)
    facts["device_count"] = int(facts.get("device_count", ""))
    return Provenance(jax=jax, device_kind=device, **facts)


def _cell(lines: list[str], path: Path, needs: frozenset[int] | None) -> StoredCell:
    source: list[str] = []
    parts: list[Part] = []
    marks, text, missed = set(), "", tuple[int, ...]()
    for mark, group in groupby((line for line in lines if line), lambda line: line[0]):
        block = list(group)
        if mark in ">.":
            source += [line[4:] for line in block]
        elif mark == "|":
            parts.append(Part("\n".join(line[2:] for line in block)))
        elif mark == ":":
            text = "\n".join(line[2:] for line in block)
        elif mark == "@":
            file = path.with_name(block[0][2:])
            named = (m for m, end in _FORMATS.items() if file.suffix == f".{end}")
            mime = next(named, "")
            raw = file.read_bytes()
            is_png = mime == "image/png"
            content = base64.b64encode(raw).decode() if is_png else raw.decode()
            parts.append(Part(text, mime, content))
        elif mark == "#":
            for _, name, *numbers in map(str.split, block):
                if name == "needs":
                    needs = frozenset(map(int, numbers))
                elif name == "missed":
                    missed = tuple(map(int, numbers))
                else:
                    raise ValueError(f"it holds the line {block[0][:60]!r}")
        elif block[0] in ("~", "!"):
            marks.add(mark)
        else:
            raise ValueError(f"it holds the line {block[0][:60]!r}")
    return StoredCell(
        "\n".join(source), tuple(parts), "~" in marks, "!" in marks, needs, missed
    )
