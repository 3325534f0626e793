"""Wiring the book tools into Sphinx."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_nb.core.read import is_myst_markdown_notebook
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import SphinxError

from ._chapters import parse
from ._errors import BookError
from ._execute import Book, kept
from ._mathml import setup_mathml
from ._pages import (
    DarkTwins,
    MarkVaryingOutputs,
    ProgramBoxes,
    RecordTabs,
    ValueRole,
    executed_notebook,
    stamp,
)
from ._settings import Settings
from ._store import write_whole


class ChapterFailure(SphinxError):
    """Chapters that could not be executed, or whose outputs do not hold."""

    category = "The book"


#: The book being rendered. Sphinx's reading processes are forked after it is set.
_book: Book | None = None

#: A book that need not be read again, for the next build in this process.
_handed: Book | None = None


def hand_over(book: Book) -> None:
    """Render this book, executed and checked a moment ago in this process."""
    global _handed
    _handed = book


def setup_extension(app: Sphinx) -> None:
    """Execute the book when Sphinx starts reading, and render what came of it."""
    app.setup_extension("sphinx_design")
    app.add_config_value("justafter_cache", "", "", str)
    app.connect("config-inited", _read_through_us)
    app.connect("env-get-outdated", _outdated)
    app.connect("source-read", _begin_page)
    app.connect("doctree-read", _end_page)
    app.add_role("value", ValueRole())
    app.add_role("measured", ValueRole())
    app.add_transform(MarkVaryingOutputs)
    app.add_transform(DarkTwins)
    app.add_transform(ProgramBoxes)
    app.add_transform(RecordTabs)
    app.connect("builder-inited", _own_files)
    app.connect("html-page-context", _offer_downloads, priority=900)
    app.connect("build-finished", _write_downloads)
    app.add_css_file("program.css")
    app.add_js_file("program.js", loading_method="defer")
    setup_mathml(app)


def _read_through_us(app: Sphinx, config: Config) -> None:
    """Have MyST-NB take pages from us, executed, and execute nothing itself."""
    config.nb_execution_mode = "off"
    config.nb_custom_formats = {
        ".md": ["justafter.book._extension.read_page", {}, False]
    }


def _settings(app: Sphinx) -> Settings:
    cache = app.config.justafter_cache
    return Settings.of(Path(app.srcdir), Path(cache) if cache else None)


def _outdated(
    app: Sphinx,
    env: BuildEnvironment,
    added: set[str],
    changed: set[str],
    removed: set[str],
) -> list[str]:
    """Execute what must be, and name the pages whose run is another than before."""
    global _book, _handed
    settings = _settings(app)
    try:
        _book, _handed = _handed or kept(settings), None
        if _book.missing:
            _execute_apart(settings)
            _book = kept(settings)
    except BookError as error:
        raise ChapterFailure(str(error)) from None
    if _book.errors:
        raise ChapterFailure("\n\n".join(map(str, _book.errors)))
    before: dict[str, str] = getattr(env, "justafter_runs", {})
    now = {docname: _book.seal(docname) for docname in _book.runs}
    env.justafter_runs = now  # type: ignore[attr-defined]
    return [docname for docname in now if before.get(docname) != now[docname]]


def _execute_apart(settings: Settings) -> None:
    """Run the chapters in a process of their own: this one is full of Sphinx."""
    command = [sys.executable, "-m", "justafter.book", "execute"]
    command += ["--source", str(settings.source), "--cache", str(settings.cache)]
    if subprocess.run(command, check=False).returncode:
        raise ChapterFailure("chapters failed: see above")


def _begin_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Line up the values that the page's text will ask for."""
    waiting: dict[tuple[str, str], list[str]] = {}
    chapter = _book.chapter(docname) if _book else None
    if chapter is not None:
        run = _book.runs[docname]
        pairs = list(zip(chapter.leading, run["leading"], strict=True))
        for cell, record in zip(chapter.cells, run["cells"], strict=True):
            pairs += zip(cell.values, record["values"], strict=True)
        for value, result in pairs:
            queue = waiting.setdefault((value.role, value.expression), [])
            queue.append(result["text"])
    app.env.current_document["justafter-values"] = waiting


def read_page(text: str) -> NotebookNode:
    """A page for MyST-NB: a chapter with its outputs, or a plain page as it is."""
    if _book is not None and is_myst_markdown_notebook(text):
        for chapter in _book.chapters:
            if chapter.text.rstrip() == text.rstrip():
                run = _book.runs[chapter.docname]
                programs = _book.snippets[chapter.docname].programs
                records = _book.records.get(chapter.docname, {})
                return executed_notebook(text, chapter.path, run, programs, records)
    return parse(text, Path("page"))


def _end_page(app: Sphinx, doctree: nodes.document) -> None:
    """Stamp the page with when and where it ran."""
    docname = app.env.current_document.docname
    if _book is not None and docname in _book.runs:
        sections = [n for n in doctree.children if isinstance(n, nodes.section)]
        varies = any(cell.varies for cell in _book.chapter(docname).cells)
        box = stamp(_book.runs[docname], _book.records.get(docname, {}), varies)
        (sections[-1] if sections else doctree).append(box)


def _own_files(app: Sphinx) -> None:
    """Let Sphinx copy our script and stylesheet beside the theme's."""
    app.config.html_static_path.append(str(Path(__file__).parent / "static"))


def _downloads(docname: str) -> dict[str, str]:
    """A chapter's files to download, by what they are called."""
    return {
        "Notebook (.ipynb)": f"_downloads/{docname}.ipynb",
        "Script (.py)": f"_downloads/{docname}.py",
    }


def _offer_downloads(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """In the theme's download menu, put the chapter as a notebook and a script."""
    if _book is None or pagename not in _book.runs:
        return
    root = context["pathto"]("", 1).rstrip("#").rstrip("/") or "."
    for group in context.get("header_buttons", []):
        if group.get("label") == "download-buttons":
            group["buttons"][:0] = [
                {
                    "type": "link",
                    "url": f"{root}/{path}",
                    "text": text,
                    "tooltip": f"Download this chapter: {text}",
                    "icon": "fas fa-play",
                    "label": "download-chapter-button",
                }
                for text, path in _downloads(pagename).items()
            ]


def _write_downloads(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or _book is None or app.builder.format != "html":
        return
    for chapter in _book.chapters:
        snippets = _book.snippets[chapter.docname]
        texts = (snippets.notebook, snippets.script)
        paths = _downloads(chapter.docname).values()
        for path, text in zip(paths, texts, strict=True):
            write_whole(Path(app.outdir, path), text)


def metadata() -> dict[str, Any]:
    """What Sphinx wants to know of an extension."""
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
