"""The whole book to take along: as a zip that reads offline, and as a list of texts.

Wheels of the book's own packages go with it, for the notebooks.

The zip holds the same bytes in every build of the same pages: its members have a
fixed order and share one date.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pages import said_of
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the first date that a zip can hold
_NOT_IN_IT = ("jupyter_execute", ".buildinfo", "_static/locales", "_static/scripts")


def pack(site: Path, name: str) -> Path:
    """Pack the site into one file below its own downloads, unless that holds it."""
    target = site / "_downloads" / f"{name}.zip"
    target.parent.mkdir(exist_ok=True)
    members = {
        f"{name}/{path.relative_to(site).as_posix()}": path.read_bytes()
        for path in sorted(_files(site))
    }
    if _holds(target, members):
        return target
    target.unlink(missing_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for inside, content in members.items():
            member = zipfile.ZipInfo(inside, _LONG_AGO)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o644 << 16  # who may read it, once it is unpacked
            packed.writestr(member, content)
    return target


def _holds(target: Path, members: dict[str, bytes]) -> bool:
    """Whether a zip of an earlier build has just these members, by their checksums,
    as everybody may read them."""
    try:
        with zipfile.ZipFile(target) as packed:
            kept = [
                (m.filename, m.file_size, m.CRC, m.external_attr >> 16)
                for m in packed.infolist()
            ]
    except (OSError, zipfile.BadZipFile):
        return False
    return kept == [
        (inside, len(content), zlib.crc32(content), 0o644)
        for inside, content in members.items()
    ]


def _files(site: Path) -> Iterator[Path]:
    for path in site.rglob("*"):
        inside = path.relative_to(site).as_posix()
        left_out = inside.startswith(_NOT_IN_IT) or path.suffix == ".zip"
        if path.is_file() and not left_out:
            yield path


def in_order(env: BuildEnvironment, root: str) -> list[str]:
    """The pages as tables of contents list them, from `root` on; then the others."""
    found: dict[str, None] = {}
    waiting = [root]
    while waiting:
        docname = waiting.pop()
        if docname in env.found_docs and docname not in found:
            found[docname] = None
            waiting.extend(reversed(env.toctree_includes.get(docname, [])))
    return [*found, *sorted(env.found_docs - set(found))]


def list_of_texts(app: Sphinx) -> str:
    """What `llms.txt` says: each page as Markdown, with what it is about.

    The front page and *Learn* come first, and reference last, as in the side bar.
    """
    base = app.config.html_baseurl.rstrip("/")
    lines = [
        f"# {app.config.project}",
        "",
        f"> {said_of(app.env, app.config.root_doc)}",
        "",
    ]
    for docname in in_order(app.env, app.config.root_doc):
        title = app.env.titles[docname].astext()
        place = (
            f"{base}/_downloads/{docname}.md" if base else f"_downloads/{docname}.md"
        )
        about = said_of(app.env, docname)
        lines.append(f"- [{title}]({place})" + (f": {about}" if about else ""))
    return "\n".join(lines) + "\n"


def start_wheels(app: Sphinx) -> None:
    """Have the book's own packages built beside the site, for who runs its pages."""
    app.building_wheels = {}  # type: ignore[attr-defined]
    if app.builder.format != "html":
        return
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    for name, project in app.config.archive_wheels.items():
        app.building_wheels[name] = subprocess.Popen(  # type: ignore[attr-defined]
            [*command, "-d", Path(app.outdir, "_downloads")],
            cwd=Path(app.confdir, project),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write all of it, when the site is finished.

    Raises:
        ExtensionError: a wheel of a name that is configured was not built.
    """
    if exception is None and app.builder.format == "html":
        site = Path(app.outdir)
        wheels: dict[str, subprocess.Popen[str]] = app.building_wheels  # type: ignore[attr-defined]
        for name, building in wheels.items():
            said, _ = building.communicate()
            if building.returncode or not (site / "_downloads" / name).is_file():
                raise ExtensionError(f"no wheel {name}: {said}")
        (site / "llms.txt").write_text(list_of_texts(app), "utf-8")
        pack(site, app.config.archive_name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Pack the site once everything else has been written."""
    app.add_config_value("archive_name", "book", "", (str,))
    app.add_config_value("archive_wheels", {}, "", (dict,))
    app.connect("builder-inited", start_wheels)
    app.connect("build-finished", write, priority=950)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
