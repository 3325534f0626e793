"""Wiring the book into Sphinx."""

import dataclasses
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn, Self

from docutils import nodes
from myst_nb.sphinx_ import Parser as NotebookParser
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.typing import ExtensionMetadata

from ..book import Book, ExecutedPage, execute
from ..errors import BookError, raise_all
from ..files import digest, file_digest, write_whole
from ..model import Chapter
from ..reading.chapters import read_page
from ..reading.pages import find_pages
from ..running.progress import Progress
from ..settings import OFFERING, OPTIONS, PREFIX, Settings, check_options, settings_of
from .answers import setup_answers
from .exercises import CHECK
from .groups import setup_groups
from .images import setup_images
from .installing import DOWNLOADS, add_note, first_cell, installing_of, setup_installing
from .notebook import Notebook, notebook_of, stored_notebook, unexecuted_notebook
from .receipts import setup_receipts
from .reproducible import setup_reproducible
from .stamp import stamp
from .titles import linked, title_in, with_titles
from .transforms import setup_transforms
from .values import line_up, setup_values

#: What a page was made of: the time of its file, the seal of its run if it has one, the
#: counts over the book if it quotes one, and the titles that its receipts quote.
Seal = tuple[int, str | None, Counter[str] | None, list[str]]

#: What the theme's own entries are, which it names by an ending alone.
_PLAINLY = {
    "download-source-button": "Source of this page",
    "download-pdf-button": "Print, or save as PDF",
}


class Showing:
    """One build by Sphinx: the book that it shows, and what it does at each event."""

    def __init__(self, app: Sphinx) -> None:
        self.app = app
        self.book: Book | None = None
        #: The book's values of the options that this extension sets.
        self.before: dict[str, Any] = {}
        app.executed_book = self  # type: ignore[attr-defined]

    @classmethod
    def of(cls, app: Sphinx) -> Self:
        """The one of an application that has loaded the extension."""
        showing: Self = app.executed_book  # type: ignore[attr-defined]
        return showing

    def page(self, docname: str) -> ExecutedPage | None:
        """A chapter's page; None for a page that does not execute."""
        return self.book.pages.get(docname) if self.book is not None else None

    @property
    def counts(self) -> Counter[str]:
        """How many sentences of the book have a check."""
        return self.book.counts if self.book is not None else Counter()

    # -- events, in their order

    def read_through_us(self, app: Sphinx, config: Config) -> None:
        """Have MyST-NB render the notebooks that our parser makes, and run nothing."""
        names = "nb_execution_mode", "nb_custom_formats"
        self.before = {name: config[name] for name in names}
        # MyST-NB reads `.ipynb` in this way as long as no book says another.
        as_notebook = ["myst_nb.core.read.standard_nb_read", {}, False]
        config.nb_execution_mode = "off"
        config.nb_custom_formats = {".md": as_notebook}

    def add_static_files(self, app: Sphinx) -> None:
        """Let Sphinx copy our script and stylesheet beside the theme's."""
        app.config.html_static_path.append(str(Path(__file__).parent / "static"))

    def look_for_pages(self, app: Sphinx, config: Config) -> None:
        """Refuse options that there are not, and links without an end."""
        try:
            check_options(config._raw_config, config.overrides)
            find_pages(_settings(app))
        except BookError as error:
            _end(error)

    def outdated(self, app: Sphinx, env: BuildEnvironment, *_: set[str]) -> list[str]:
        """Execute what must be, and name the pages that gave something else before."""
        if self.book is None:
            try:
                self.book = execute(_settings(app), Progress())
                raise_all(self.book.errors)
            except BookError as error:
                _end(error)
        before: dict[str, Seal] = getattr(env, "executed_book_seals", {})
        now: dict[str, Seal] = {}
        counting = {page.docname for page in self.book.texts if page.has_counts}
        for docname in env.found_docs:
            page = self.page(docname)
            # Sphinx reads a newer file again; an older one may replace it, too.
            time = Path(env.doc2path(docname)).stat().st_mtime_ns
            counts = self.counts if docname in counting else None
            seal = page.seal if page is not None else None
            names = linked(page.executed.chapter) if page is not None else ()
            titles = [self._title_of(name) for name in names]
            now[docname] = time, seal, counts, titles
        env.executed_book_seals = now  # type: ignore[attr-defined]
        return sorted(name for name in now if before.get(name) != now[name])

    def end_page(self, app: Sphinx, doctree: nodes.document) -> None:
        """Stamp the page with when and where it ran."""
        page = self.page(app.env.docname)
        if page is not None:
            add_note(installing_of(app.config), _sources(page), doctree)
            sections = [n for n in doctree.children if isinstance(n, nodes.section)]
            (sections[-1] if sections else doctree).append(stamp(page))

    def offer_downloads(
        self, app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any
    ) -> None:
        """In the theme's download menu, put the page in the forms that it is given in.

        The menu is sphinx-book-theme's; another theme finds them as `downloads`.
        """
        offered = self._write_downloads(app, page, context.get("body"))
        context["downloads"] = offered
        notebook = self._setting("colab")
        if notebook and self.page(page) is not None:
            address = f"{notebook.rstrip('/')}/{page}.ipynb"
            button = {"type": "link", "url": address, "text": "Colab", "label": "colab"}
            button["tooltip"] = "Open this page's notebook in Colab"
            context.setdefault("header_buttons", []).insert(0, button)
        for group in context.get("header_buttons", []):
            if group.get("label") == "download-buttons":
                # From the page itself the way to the root is "#", or ends with a slash.
                root = context["pathto"]("", 1).rstrip("#").rstrip("/") or "."
                group["buttons"][:0] = [
                    {
                        "type": "link",
                        "url": f"{root}/{path}",
                        "text": text,
                        "tooltip": f"{text}: download this page",
                        "icon": "fas fa-file",
                        "label": "download-chapter-button",
                    }
                    for text, path in offered.items()
                ]
                for button in group["buttons"]:
                    button["text"] = _PLAINLY.get(button.get("label"), button["text"])

    def _write_downloads(
        self, app: Sphinx, docname: str, body: str | None
    ) -> dict[str, str]:
        """Write what a reader takes of a page: the files, by what they are called."""
        is_whole = app.builder.name == "epub"  # it is taken away as it is
        if is_whole or body is None or docname not in app.env.found_docs:
            return {}
        from .formats import markdown_of, notebook_of_page, readable  # slow to import

        installing = installing_of(app.config)
        files, beside = {"Markdown (.md)": f"_downloads/{docname}.md"}, list[str]()
        readable_page = readable(body, docname, installing.site)
        texts = [markdown_of(readable_page)]
        page = self.page(docname)
        if page is not None:
            files = {"Notebook (.ipynb)": f"_downloads/{docname}.ipynb", **files}
            code = _sources(page)
            if not installing.site:
                needed = installing.needed_by(code)
                beside = [one for one in needed if one.startswith(DOWNLOADS)]
            first = ""
            if installing.always:
                environ = app.config.executed_book_install_environ
                first = first_cell(installing, code, environ)
            texts.insert(0, notebook_of_page(page.executed, readable_page, first))
        for path, text in zip(files.values(), texts, strict=True):
            write_whole(Path(app.outdir, path), text)
        return files | {f"{Path(path).name} (to install)": path for path in beside}

    def _setting(self, name: str) -> str:
        return str(getattr(self.app.config, PREFIX + name, "") or "")

    # -- reading a page

    def notebook(self, docname: str, text: str) -> Notebook | None:
        """A page as the notebook to render; None if it does not execute.

        Raises:
            BookError: the page has changed since it was executed.
        """
        page = self.page(docname)
        if page is None:
            return None
        chapter = page.executed.chapter
        if text.rstrip() != chapter.text.rstrip():
            now = read_page(chapter.path, self._reading, text).chapter
            if now is None or _code(now) != _code(chapter):
                raise BookError(
                    f"{chapter.path}: has other cells than were executed; build again,"
                    " or have the extension that changes them (at 'source-read') change"
                    " text only"
                )
            executed = dataclasses.replace(page.executed, chapter=now)
            page = dataclasses.replace(page, executed=executed)
        return notebook_of(self._as_shown(page), self._setting("asks"))

    def _as_shown(self, page: ExecutedPage) -> ExecutedPage:
        """The page with titles in its sentences, and programs that say what they need.

        The program of an exercise's check would have the solution in it.
        """
        installing, executed = installing_of(self.app.config), page.executed
        programs = [
            installing.headed(program) if program and CHECK not in cell.tags else None
            for cell, program in zip(
                executed.chapter.cells, page.snippets.programs, strict=True
            )
        ]
        chapter = with_titles(executed.chapter, self._title_of)
        return dataclasses.replace(
            page,
            executed=dataclasses.replace(executed, chapter=chapter),
            snippets=dataclasses.replace(page.snippets, programs=programs),
        )

    def _title_of(self, docname: str) -> str:
        return title_in(Path(self.app.env.doc2path(docname)), docname)

    def unexecuted(self, path: Path, text: str) -> Notebook | None:
        """A page that is left as it is, as a notebook; None if it has no cells.

        Raises:
            BookError: its file is no notebook, and should be.
        """
        if path.suffix == ".ipynb":
            try:
                return stored_notebook(text)
            except ValueError as error:
                raise BookError(f"{path}: not a notebook: {error}") from None
        chapter = read_page(path, self._reading, text).chapter
        return None if chapter is None else unexecuted_notebook(chapter)

    @property
    def _reading(self) -> Settings:
        """How a page is read whose text another extension gives: without rules."""
        return Settings(Path(self.app.srcdir), Path(self.app.outdir))


def _sources(page: ExecutedPage) -> str:
    """The code of all cells of a page."""
    return "\n".join(cell.source for cell in page.executed.chapter.cells)


def _code(chapter: Chapter) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (cell.source, tuple(value.expression for value in cell.values))
        for cell in chapter.cells
    ]


def _parser(showing: Showing) -> type[NotebookParser]:
    """A parser that takes chapters from the book, and other pages as MyST does."""

    class Parser(NotebookParser):  # type: ignore[misc]
        def parse(self, inputstring: str, document: nodes.document) -> None:
            env = document.settings.env
            # Sphinx has a paragraph of a catalog read, for the one at this line.
            part = re.search(r":(\d+):<translated>$", document["source"])
            if page := showing.page(env.docname):
                line_up(env, page.executed, int(part[1]) if part else 1)
            if part:
                return MystParser.parse(self, inputstring, document)
            path = Path(env.doc2path(env.docname))  # text before Sphinx 8
            try:
                notebook = showing.notebook(env.docname, inputstring)
                notebook = notebook or showing.unexecuted(path, inputstring)
                if notebook is None:
                    MystParser.parse(self, inputstring, document)
                else:
                    super().parse(json.dumps(notebook), document)
            except BookError as error:
                _end(error)
            except RecursionError:
                what = "its data, metadata or outputs are nested too deeply"
                _end(f"{path}: {what} to be shown; flatten them")

    return Parser


def _settings(app: Sphinx) -> Settings:
    """How the book is read and executed, as Sphinx's configuration says."""

    def get(name: str) -> Any:
        return Showing.of(app).before.get(name, getattr(app.config, name, None))

    source, cache = Path(app.srcdir), Path(app.outdir).parent / "cache"
    return settings_of(get, source, Path(app.confdir), cache)


def _end(error: Exception | str) -> NoReturn:
    """End the build in one error; one that is raised, Sphinx shows as a traceback."""
    logging.getLogger(__name__).error("%s", error)
    sys.exit(2)


def setup_extension(app: Sphinx) -> None:
    """Execute the book when Sphinx starts reading, and render what came of it."""
    showing = Showing(app)
    app.setup_extension("myst_nb")
    app.setup_extension("sphinx_design")
    patterns = app.config.overrides.get("nb_execution_excludepatterns")
    if isinstance(patterns, str):  # MyST-NB's default keeps Sphinx from splitting it
        app.config.overrides["nb_execution_excludepatterns"] = patterns.split(",")
    for option in OPTIONS:
        app.add_config_value(PREFIX + option.name, None, "", ())
    for name, (default, rebuild) in OFFERING.items():
        app.add_config_value(PREFIX + name, default, rebuild, (type(default),))
    app.add_source_parser(_parser(showing), override=True)
    app.connect("config-inited", showing.read_through_us, priority=100)
    app.connect("config-inited", showing.look_for_pages, priority=900)
    app.connect("builder-inited", showing.add_static_files)
    app.connect("env-get-outdated", showing.outdated)
    app.connect("doctree-read", showing.end_page)
    app.connect("html-page-context", showing.offer_downloads, priority=900)
    setup_reproducible(app)
    setup_images(app)
    setup_installing(app)
    setup_values(app)
    setup_transforms(app)
    setup_answers(app)
    setup_groups(app)
    app.add_css_file("provenance.css")
    setup_receipts(app, lambda: showing.counts)


def metadata(config: Path) -> ExtensionMetadata:
    """What Sphinx wants to know of an extension.

    Pages are rendered anew if the code has changed that renders them: the engine's, or
    a book's own, which lies beside its `conf.py` in the folder `config`.
    """
    engine = Path(__file__).parents[1]
    code = [*sorted(engine.rglob("*.py")), *sorted(config.glob("*.py"))]
    rendering = digest([[path.name, file_digest(path)] for path in code])
    return {
        "version": "1",
        "env_version": int(rendering, 16),
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
