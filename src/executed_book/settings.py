"""The options of a build, each declared once."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .running.figures import light_style


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2


@dataclass(frozen=True)
class Settings:
    """How a book is read and executed.

    Attributes:
        source: the folder with the chapters.
        cache: where executed chapters are kept between builds.
        include, exclude: patterns of the pages that belong to the book, and of those
            that do not, as in Sphinx's configuration.
        jobs: how many chapters run at once.
        cell_seconds: how long one cell may run; a chapter may ask for more
            with `executed_book: {limit: seconds}` in its front matter.
        output_limit: how many characters one cell may print.
        figure_style: Matplotlib's settings for the figures of chapters.
        pins: the folder with the pinned outputs; None to compare nothing.
        records: the folder with what other platforms gave; None to show none.
        only: the chapters to look at, by name; None for all.
    """

    source: Path
    cache: Path
    include: tuple[str, ...] = ("**",)
    exclude: tuple[str, ...] = ()
    jobs: int = field(default_factory=_cores)
    cell_seconds: float = 180.0
    output_limit: int = 1_000_000
    figure_style: dict[str, Any] = field(default_factory=light_style, hash=False)
    pins: Path | None = None
    records: Path | None = None
    only: frozenset[str] | None = None

    @classmethod
    def of(cls, source: Path, cache: Path | None = None, **options: Any) -> Settings:
        """The settings of the project that `source` is in, pins and records too."""
        for name in ("pins", "records"):
            folder = source.parent / "tests" / name
            options.setdefault(name, folder if folder.is_dir() else None)
        cache = cache or source.parent / "_build" / "cache"
        return cls(source, cache, **options)

    @property
    def project(self) -> Path:
        """The folder whose files a chapter may read: the source's parent."""
        return self.source.parent
