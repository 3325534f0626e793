"""What a page says of itself in its head, and the site's map."""

from __future__ import annotations

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

_EMPTY_HEADER = re.compile(r'<th class="head[^"]*">\s*(?:<p>\s*</p>)?\s*</th>')


def description_of(doctree: nodes.document | None) -> str:
    """What a page is about: its lead, or else its first paragraph."""
    if doctree is None:
        return ""
    leads = (n for n in doctree.findall(nodes.container) if "lead" in n["classes"])
    found = next(leads, doctree).next_node(nodes.paragraph)
    text = " ".join(found.astext().split()) if found is not None else ""
    if len(text) <= _LONGEST:
        return text
    return text[:_LONGEST].rpartition(" ")[0].rstrip(",;:") + " …"


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

    def marked(*args: Any, **options: Any) -> Any:
        tree = plain(*args, **options)
        for link in tree.select("li.current.active > a[href='#']") if tree else ():
            link["aria-current"] = "page"
        for fold in tree.select("details > summary") if tree else ():
            item = fold.find_parent("li")
            name = item.a.get_text(strip=True) if item and item.a else "pages"
            fold["aria-label"] = f"Chapters of {name}"
        return tree

    context["generate_toctree_html"] = marked


def plain_corner(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Have no headers that are empty: the corner of a table is a cell as others are."""
    body = context.get("body")
    if body is not None:
        context["body"] = _EMPTY_HEADER.sub("<td></td>", body)


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


def setup(app: Sphinx) -> dict[str, Any]:
    """Describe each page, and all of them together."""
    app.connect("doctree-read", note_description)
    app.connect("html-page-context", describe)
    app.connect("html-page-context", plain_corner)
    app.connect("html-page-context", mark_where_one_is, priority=900)
    app.connect("build-finished", write_map)
    safe = {"parallel_read_safe": True, "parallel_write_safe": True}
    return {"version": "2", "env_version": 2, **safe}
