"""What a page says of itself in its head, the site's map, and the feed of changes."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

#: What a page's metadata call its description; a page may give its own.
DESCRIPTION = "description"

_LONGEST = 200
_SENTENCE = re.compile(r"\S.*?[.!?:](?=\s|$)|\S.*$")

_VIEWPORT = re.compile(r'<meta [^>]*name="viewport"[^>]*>')
_TEXT = re.compile(r"(?<=>)[^<>]+")
_HEADING = re.compile(r"<h[1-4]>.*?</h[1-4]>", re.DOTALL)
_LONG_NAME = re.compile(r"[\w.]{18,}")
_PART_OF_NAME = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[._])(?=[a-z])")
_EMPTY_HEADER = re.compile(r'<th class="head[^"]*">\s*(?:<p>\s*</p>)?\s*</th>')


def description_of(doctree: nodes.document | None) -> str:
    """What a page is about, if it does not say: how its lead or its text begins.

    Sentences are kept whole, as many as fit into 200 characters, and at least one.
    """
    if doctree is None:
        return ""
    leads = (n for n in doctree.findall(nodes.container) if "lead" in n["classes"])
    found = next(leads, doctree).next_node(nodes.paragraph)
    text = " ".join(found.astext().split()) if found is not None else ""
    said = ""
    for sentence in _SENTENCE.findall(text):
        if said and len(said) + 1 + len(sentence) > _LONGEST:
            break
        said = f"{said} {sentence}".strip()
    return said


def said_of(env: BuildEnvironment, docname: str) -> str:
    """A page's description; empty where it has none."""
    known = docname in env.metadata
    return str(env.metadata[docname].get(DESCRIPTION, "")) if known else ""


def describe(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give the page its description; the whole book's, where it has none."""
    whole = said_of(app.env, app.config.root_doc) or app.config.project
    context["description"] = said_of(app.env, page) or whole


def note_description(app: Sphinx, doctree: nodes.document) -> None:
    """Keep what a page is about, for its head and for the list of all pages."""
    facts = app.env.metadata[app.env.current_document.docname]
    facts.setdefault(DESCRIPTION, description_of(doctree))


def mark_where_one_is(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Say in the side bar, in words for a screen reader, which page this is."""
    plain = context.get("generate_toctree_html")
    if plain is None:
        return

    is_front = page == app.config.root_doc

    def marked(*args: Any, **options: Any) -> Any:
        if is_front:  # it lists the chapters of all parts
            options["collapse"] = False
        tree = plain(*args, **options)
        if is_front and tree and (first := tree.select_one("details")):
            first["open"] = "open"  # a newcomer sees those of the first
        for link in tree.select("li.current.active > a[href='#']") if tree else ():
            link["aria-current"] = "page"
        for fold in tree.select("details > summary") if tree else ():
            item = fold.find_parent("li")
            name = item.a.get_text(strip=True) if item and item.a else "pages"
            fold["aria-label"] = f"Chapters of {name}"
        return tree

    context["generate_toctree_html"] = marked


def breakable(html: str) -> str:
    """HTML whose long names may break where a part of them begins.

    >>> breakable('<a href="#TracerBoolConversionError">TracerBoolConversionError</a>')
    '<a href="#TracerBoolConversionError">Tracer<wbr>Bool<wbr>Conversion<wbr>Error</a>'
    """

    def parted(text: re.Match[str]) -> str:
        return _LONG_NAME.sub(lambda name: _PART_OF_NAME.sub("<wbr>", name[0]), text[0])

    return _TEXT.sub(parted, html)


def tidy(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Have no empty headers, since a table's corner is a cell, and say things once.

    Docutils and Sphinx each say how wide a page is.
    """
    context["metatags"] = _VIEWPORT.sub("", context.get("metatags") or "")
    context["folders"] = sorted(
        {name.partition("/")[0] for name in app.env.found_docs if "/" in name}
    )
    body = context.get("body")
    if body is not None:
        body = _EMPTY_HEADER.sub("<td></td>", body)
        context["body"] = _HEADING.sub(lambda heading: breakable(heading[0]), body)
    context["toc"] = breakable(context.get("toc") or "")


def write_map(app: Sphinx, exception: Exception | None) -> None:
    """Write `sitemap.xml`, where it is known at which address the book stands."""
    base = app.config.html_baseurl.rstrip("/")
    if exception is not None or app.builder.format != "html" or not base:
        return
    pages = [app.builder.get_target_uri(name) for name in sorted(app.env.found_docs)]
    rows = [f"  <url><loc>{escape(f'{base}/{page}')}</loc></url>" for page in pages]
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f'<urlset xmlns="{space}">']
    text = "\n".join([*lines, *rows, "</urlset>", ""])
    Path(app.outdir, "sitemap.xml").write_text(text, "utf-8")


def feed(changes: str, title: str, base: str) -> str:
    """What the notes on changes tell readers of the book, as RSS; the newest first."""
    items = []
    for section in re.split(r"^## ", changes, flags=re.MULTILINE)[1:]:
        when, _, rest = section.partition("\n")
        book = re.search(r"^### The book\n(.*?)(?=^### |\Z)", rest, re.M | re.S)
        for entry in re.findall(
            r"^- (.*?)(?=^- |\Z)", book[1] if book else "", re.M | re.S
        ):
            said = escape(" ".join(re.sub(r"[*`]", "", entry).split()))
            mark = hashlib.sha256(entry.encode()).hexdigest()[:16]
            items.append(
                f"<item><title>{escape(when.strip())}</title><link>{escape(base)}/</link>"
                f'<guid isPermaLink="false">{mark}</guid>'
                f"<description>{said}</description></item>"
            )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0"><channel>'
        f"<title>{escape(title)}</title><link>{escape(base)}/</link>"
        f"<description>What has changed in the book</description>\n"
        + "\n".join(items)
        + "\n</channel></rss>\n"
    )


def write_feed(app: Sphinx, exception: Exception | None) -> None:
    """Write `feed.xml`, where the address of the book and its changes are known."""
    base, changes = app.config.html_baseurl.rstrip("/"), app.config.pages_changes
    if exception is None and app.builder.name == "html" and base and changes:
        text = Path(app.confdir, changes).read_text("utf-8")
        Path(app.outdir, "feed.xml").write_text(
            feed(text, app.config.project, base), "utf-8"
        )


def setup(app: Sphinx) -> dict[str, Any]:
    """Describe each page, and all of them together."""
    app.connect("doctree-read", note_description)
    app.connect("html-page-context", describe)
    app.connect("html-page-context", tidy)
    app.connect("html-page-context", mark_where_one_is, priority=900)
    app.add_config_value("pages_changes", "", "html", (str,))
    app.connect("build-finished", write_map)
    app.connect("build-finished", write_feed)
    safe = {"parallel_read_safe": True, "parallel_write_safe": True}
    return {"version": "2", "env_version": 2, **safe}
