"""Set the sites of several JAX releases side by side, the newest at the root.

Each site stands as it was built when its JAX was the newest. Its pages are given a list
of the others, which leads to the same page there, or to the first where it is missing;
and pages of an older one say so: `python conf/releases.py OUTPUT NEWEST OLDER...`.
"""

from __future__ import annotations

import html
import posixpath
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_VERSION = re.compile(r'<span class="jax-version">JAX ([\w.]+)</span>')
_ARTICLE = re.compile(r'<article class="bd-article[^>]*>')


@dataclass(frozen=True)
class Release:
    """The site of one release, and its folder within the whole."""

    version: str
    site: Path
    folder: str
    pages: frozenset[str]

    @classmethod
    def of(cls, site: Path, is_newest: bool) -> Release:
        """A built site as the release that it is of.

        Raises:
            ValueError: it is no site of the book.
        """
        first = site / "index.html"
        found = _VERSION.search(first.read_text("utf-8")) if first.is_file() else None
        if found is None:
            raise ValueError(f"{site}: no site of the book; build it with nox -s docs")
        pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
        folder = "" if is_newest else f"jax-{found[1]}"
        return cls(found[1], site, folder, frozenset(pages))

    def address(self, page: str, seen_from: Release) -> str:
        """Where this release has a page, from that page in another; or its first."""
        target = posixpath.join(
            self.folder, page if page in self.pages else "index.html"
        )
        here = posixpath.dirname(posixpath.join(seen_from.folder, page))
        return posixpath.relpath(target, here or ".")


def assemble(output: Path, sites: Sequence[Path]) -> None:
    """Write all sites, the newest first among them, into one folder.

    A site of the newest's release, kept under its tag, is the newest as it was: it is
    left out.

    Raises:
        ValueError: one is no site of the book, or two older ones are of one release.
    """
    newest, *older = [Release.of(site, nth == 0) for nth, site in enumerate(sites)]
    releases = [newest, *(one for one in older if one.version != newest.version)]
    versions = [release.version for release in releases]
    if len(set(versions)) < len(versions):
        raise ValueError(f"several sites are of one release: {', '.join(versions)}")
    for release in releases:
        shutil.copytree(release.site, output / release.folder, dirs_exist_ok=True)
        for page in release.pages if len(releases) > 1 else ():
            path = output / release.folder / page
            path.write_text(_with_others(path, page, release, releases), "utf-8")


def _with_others(
    path: Path, page: str, release: Release, releases: Sequence[Release]
) -> str:
    text = path.read_text("utf-8")
    switcher = _switcher(page, release, releases)
    text = _VERSION.sub(lambda _: switcher, text, count=1)
    newest = releases[0]
    if release is newest:
        return text
    link = html.escape(newest.address(page, release))
    note = (
        f'<p class="older-release">This is about JAX {release.version}, an older'
        f' release: <a class="other-release" href="{link}">the page for JAX'
        f" {newest.version}</a>.</p>"
    )
    return _ARTICLE.sub(lambda found: found[0] + note, text, count=1)


def _switcher(page: str, release: Release, releases: Sequence[Release]) -> str:
    rows = []
    for other in releases:
        link = html.escape(other.address(page, release))
        current = ' aria-current="true"' if other is release else ""
        rows.append(
            f'<li><a class="other-release" href="{link}"{current}>'
            f"JAX {other.version}</a></li>"
        )
    return (
        '<details class="jax-version releases">'
        f'<summary aria-label="JAX {release.version}, other releases">'
        f"JAX {release.version}</summary><ul>{''.join(rows)}</ul></details>"
    )


if __name__ == "__main__":
    try:
        assemble(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
    except ValueError as error:
        sys.exit(str(error))
