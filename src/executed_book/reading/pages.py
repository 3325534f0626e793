"""Finding the pages of a book: the files that Sphinx would take, and no others."""

from pathlib import Path

from sphinx.project import EXCLUDE_PATHS
from sphinx.util.matching import Matcher, get_matching_files

from ..errors import PageError
from ..settings import Settings
from .cache import read_once
from .chapters import Reading, docname_of
from .options import is_off


def find_pages(settings: Settings) -> list[Path]:
    """The pages below `settings.source`, sorted."""
    # What Jupyter keeps beside a notebook, MyST-NB leaves out as well.
    patterns = [*settings.exclude, *EXCLUDE_PATHS, "**.ipynb_checkpoints"]
    pages, known = list[Path](), {settings.source}
    for name in get_matching_files(settings.source, settings.include, patterns):
        page = settings.source / name
        _check_links(page.parent, settings.source, known)
        if not name.endswith((".md", ".ipynb")):
            continue
        if page.exists() and not page.is_file():
            raise PageError(
                *(page, 1, "this has the name of a page but is not a file"),
                "name it in exclude_patterns",
            )
        if any("\ud800" <= character <= "\udfff" for character in str(page)):
            raise PageError(
                page, 1, "its path is not UTF-8", "rename the file or the folder"
            )
        pages.append(page)
    return sorted(pages)


def _check_links(folder: Path, source: Path, known: set[Path]) -> None:
    """Refuse a link to a folder that it lies in, which has no end.

    Folders that are `known` were looked at; those from `folder` up become known.
    """
    while folder not in known:
        known.add(folder)
        if folder.is_symlink():
            above = folder.parents[: len(folder.relative_to(source).parts)]
            target = folder.resolve()
            if any(place.resolve().is_relative_to(target) for place in above):
                raise PageError(
                    *(folder, 1, "a link to a folder that it lies in"),
                    "remove it, or name it in exclude_patterns",
                )
        folder = folder.parent


def read_pages(settings: Settings) -> list[Reading]:
    """Every page, sorted, and what is wrong with it.

    Pages that match a pattern in `settings.not_executed`, or say so themselves, are
    left as they are.
    """
    patterns = list(filter(None, settings.not_executed))
    in_sphinx = Matcher(patterns)
    readings: list[Reading] = []
    first: dict[str, Path] = {}
    for path in find_pages(settings):
        other = first.setdefault(docname_of(path, settings.source), path)
        # A pattern means a page to MyST-NB by its end, or to Sphinx.
        is_left = any(path.match(pattern) for pattern in patterns)
        is_left |= in_sphinx(path.relative_to(settings.source).as_posix())
        if other != path:
            error = PageError(
                *(path, 1, f"{other.name} beside it gives the same page"),
                "rename one of the two, or name it in exclude_patterns",
            )
            readings.append(Reading(path, settings, errors=[error]))
        elif not is_left:
            reading = read_once(path, settings)
            if reading.chapter is None or not is_off(reading.chapter.metadata):
                readings.append(reading)
    return readings
