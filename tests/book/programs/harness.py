"""Small pages as a book: executed as any book is, their programs run as `verify` does.

A file of pages is text: a line `## name` begins a page, and a line `# %%` a cell, which
may announce its failure (`# %% raises ValueError: words`), or give its tag (`# %% tags
figure`) and the names that it needs (`# %% needs f needs g`).
"""

import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from executed_book.book import execute
from executed_book.checking.stored import slug
from executed_book.errors import raise_all
from executed_book.model import Cell
from executed_book.programs.verify import Offer, verify_offers
from executed_book.running.progress import Progress
from executed_book.settings import Settings

Cells = Sequence[Cell]


def read_pages(path: Path) -> dict[str, Cells]:
    parts = re.split(r"(?m)^## (.+)\n", path.read_text("utf-8"))[1:]
    return {
        name: read_cells(text)
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def read_cells(text: str) -> list[Cell]:
    parts = re.split(r"(?m)^# %%(.*)\n", text)[1:]
    return [
        Cell(
            number,
            code.rstrip("\n"),
            10 * number,
            frozenset(re.findall(r"tags (\w+)", option)),
            raises=option.partition("raises ")[2] or None,
            needs=tuple(re.findall(r"needs (\w+)", option)),
        )
        for number, (option, code) in enumerate(
            zip(parts[::2], parts[1::2], strict=True), 1
        )
    ]


def verified(pages: Mapping[str, Cells], folder: Path) -> dict[str, list[Offer | None]]:
    """The program of each cell of each page, which has been run; None without one.

    Raises:
        BookError: a cell fails without an announcement, or not as it announces.
    """
    docnames = {name: f"{n:03}-{slug(name)}" for n, name in enumerate(pages)}
    docs, progress = folder / "docs", Progress(io.StringIO())
    docs.mkdir()
    for name, cells in pages.items():
        text = "---\nfile_format: mystnb\n---\n\n" + "\n\n".join(map(_block, cells))
        (docs / f"{docnames[name]}.md").write_text(text, "utf-8")
    book = execute(Settings(docs, folder / "cache", jobs=2, folder="empty"), progress)
    raise_all(book.errors)
    verify_offers(book.all_offers, 2, progress)
    by_cell = {(o.chapter.docname, o.cell.number): o for o in book.all_offers}
    return {
        name: [by_cell.get((docnames[name], cell.number)) for cell in cells]
        for name, cells in pages.items()
    }


def _block(cell: Cell) -> str:
    raises = f":raises: {json.dumps(cell.raises)}\n" if cell.raises else ""
    needs = f":needs: {' '.join(cell.needs)}\n" if cell.needs else ""
    return f"``````{{code-cell}}\n{raises}{needs}\n{cell.source}\n``````"


def kind(offer: Offer | None) -> str:
    """What became of a program.

    It is `right`; or `lengthened`, which is right with further statements from above;
    or `caught` or `refused`, and then readers are not offered it.
    """
    if offer is None:
        return "refused"
    if not offer.verdict.is_good:
        return "caught"
    return "lengthened" if offer.verdict.added else "right"
