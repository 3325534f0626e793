"""Finding the pages of a book: the files that Sphinx would take, and no others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from sphinx.project import EXCLUDE_PATHS
from sphinx.util.matching import Matcher, get_matching_files

from ..errors import PageError
from ..model import Chapter
from .cache import Readings
from .chapters import Reading, docname_of
from .options import of_myst_nb

#: Files with these endings may hold code cells.
SUFFIXES = (".md", ".ipynb")

#: Left out always, as MyST-NB does: what Jupyter keeps beside a notebook.
_CHECKPOINTS = "**.ipynb_checkpoints"


def find_pages(
    source: Path, include: Iterable[str] = ("**",), exclude: Iterable[str] = ()
) -> list[Path]:
    """The pages below `source`, sorted; patterns as in Sphinx's configuration."""
    patterns = [*exclude, *EXCLUDE_PATHS, _CHECKPOINTS]
    names = get_matching_files(source, tuple(include), patterns)
    pages = sorted(source / name for name in names if name.endswith(SUFFIXES))
    for page in pages:
        if page.exists() and not page.is_file():
            raise PageError(
                *(page, 1, "a page is a file, and this is none"),
                "name it in exclude_patterns",
            )
    return pages


def find_chapters(
    source: Path,
    include: Iterable[str] = ("**",),
    exclude: Iterable[str] = (),
    not_executed: Iterable[str] = (),
    rules: Collection[str] = (),
    kept: Path | None = None,
) -> tuple[list[Chapter], list[PageError]]:
    """Every page that executes, sorted by path, and what is wrong with any page.

    Pages that match a pattern in `not_executed`, or say so themselves, are left as they
    are. `kept` is a folder for chapters whose text was read before.
    """
    readings, errors = read_pages(
        source, include, exclude, not_executed, rules, kept=kept
    )
    return [r.chapter for r in readings if r.chapter is not None], errors


def read_pages(
    source: Path,
    include: Iterable[str] = ("**",),
    exclude: Iterable[str] = (),
    not_executed: Iterable[str] = (),
    rules: Collection[str] = (),
    claims: Mapping[str, Collection[str]] | None = None,
    kept: Path | None = None,
) -> tuple[list[Reading], list[PageError]]:
    """Every page, sorted by path, and what is wrong with any of them."""
    pages = Readings(kept)
    left_alone = Matcher(list(not_executed))
    readings: list[Reading] = []
    errors: list[PageError] = []
    taken: dict[str, Path] = {}
    for path in find_pages(source, include, exclude):
        other = taken.setdefault(docname_of(path, source), path)
        if other != path:
            errors.append(
                PageError(
                    path,
                    1,
                    f"{other.name} beside it gives the same page",
                    "rename one of the two, or name it in exclude_patterns",
                )
            )
            continue
        if left_alone(path.relative_to(source).as_posix()):
            continue
        reading = pages.read(path, source, rules, claims)
        said = of_myst_nb(reading.chapter.metadata) if reading.chapter else {}
        if said.get("execution_mode") in ("off", False):  # YAML takes off for False
            continue
        errors += reading.errors
        readings.append(reading)
    return readings, errors
