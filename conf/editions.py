"""The book as one file: an EPUB for readers' devices, and a PDF.

As an extension, this makes what Sphinx writes into the EPUB valid, and lists on the
landing page what there is to take along. As a program, it joins the pages of a
finished site, in the order in which they are read, and has Chromium print them:
`python conf/editions.py _build/html book.pdf`.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Tag

from executed_book.showing.formats import text_of_lens

#: Where something can only be clicked, or is for a screen alone. A page says of words
#: of its own that they are, as ``[Point at it.]{.on-screen}``.
_FOR_SCREENS = (
    "script, noscript, .program-holder, .no-program, .headerlink, .only-dark,"
    " .code-tools, .sd-tab-set > input, .on-screen"
)
#: What the site folds away and few readers open; solutions stay.
_ON_THE_SITE = ".tag_check, .tag_hide-input > details"
#: Parts of code that look like the code around them.
_PLAIN = "pre a, pre span:is(.n, .nn, .o, .p, .w, :not([class]))"
_NAMESPACES = {
    "svg": "http://www.w3.org/2000/svg",
    "math": "http://www.w3.org/1998/Math/MathML",
}
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the first date that a zip can hold
_MIXED = {
    "viewbox": "viewBox",
    "preserveaspectratio": "preserveAspectRatio",
    "gradientunits": "gradientUnits",
}
_REFERRING = ("for", "aria-labelledby", "aria-describedby", "aria-controls")


# -- EPUB


def well_formed(body: str) -> str:
    """A page's body as well-formed XML, whatever the cells of the page displayed."""
    soup = BeautifulSoup(body, "html.parser")
    for lens in soup.select("div.ja-lens"):  # nobody can point at it
        told = soup.new_tag("pre")
        told.string = text_of_lens(lens)
        lens.replace_with(told)
    for part in soup.select(_FOR_SCREENS):
        part.decompose()
    for label in soup.select("label[for]"):  # of a tab: it is the head of its content
        label.name = "p"
        for attribute in [name for name in label.attrs if name != "class"]:
            del label[attribute]
    for name, space in _NAMESPACES.items():
        for drawn in soup.find_all(name):
            drawn["xmlns"] = space
            for part in [*drawn.find_all(True), drawn]:  # a parser of HTML ignores case
                for low in _MIXED.keys() & part.attrs.keys():
                    part[_MIXED[low]] = part.attrs.pop(low)
    for loose in soup.find_all("style"):  # a page has its styles in its head
        loose.decompose()
    for summary in soup.find_all("summary"):  # it says one thing, open or not
        if said := summary.find(class_="collapsed"):
            summary.string = said.get_text(" ", strip=True)
            del summary["aria-label"]
    return soup.decode(formatter="minimal")


def settle_page(
    app: Any, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Have the pages of an EPUB be XML, with the style sheets of an EPUB alone."""
    if app.builder.name != "epub":
        return
    if context.get("body"):
        context["body"] = well_formed(context["body"])
    context["css_files"] = [
        sheet
        for sheet in context["css_files"]
        if not _OF_SITES.search(str(getattr(sheet, "filename", sheet)))
    ]


#: Style sheets of what a site's pages do; a device that reads books knows none of it.
_OF_SITES = re.compile(
    r"_static/(mystnb\.|cells|program|provenance|receipts|sphinx-design)"
)


def declared(listing: str, pages: dict[str, str]) -> str:
    """A package's list of its files, which says what the pages hold."""

    def with_properties(item: re.Match[str]) -> str:
        page = pages.get(item[1], "")
        held = [kind for tag, kind in _HELD.items() if tag in page]
        return f'{item[0]} properties="{" ".join(held)}"' if held else item[0]

    listing = re.sub(r'<item id="[^"]*" href="([^"]+)"', with_properties, listing)
    # The reading order may already contain the index, which is added to its end again.
    seen: set[str] = set()
    rows = []
    for row in listing.splitlines():
        again = "<itemref " in row and row in seen
        if not again and not _OF_SITES.search(row):
            rows.append(row)
        seen.add(row)
    return "\n".join(rows) + "\n"


_HELD = {"<math": "mathml", "<svg": "svg"}


def settle_drawing(text: str) -> str:
    """A drawing without what only a validator of SVG on the network would read."""
    text = re.sub(r"<!DOCTYPE svg[^>]*>\s*", "", text)
    return re.sub(r"<path(?![^>]*\bd=)", '<path d=""', text)


def settle_book(app: Any, exception: Exception | None) -> None:
    """Have the finished EPUB hold what a checker asks for."""
    if exception is not None or app.builder.name != "epub":
        return
    path = Path(app.outdir, f"{app.config.epub_basename}.epub")
    with zipfile.ZipFile(path) as packed:
        names = [name for name in packed.namelist() if not _OF_SITES.search(name)]
        members = {name: packed.read(name) for name in names}
    pages = {
        name: content.decode()
        for name, content in members.items()
        if name.endswith(".xhtml")
    }
    for name, content in members.items():
        if name.endswith(".opf"):
            members[name] = declared(content.decode(), pages).encode()
        elif name.endswith(".svg"):
            members[name] = settle_drawing(content.decode()).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():  # the first is no more than stored
            member = zipfile.ZipInfo(name, _LONG_AGO)
            is_stored = name == "mimetype"
            member.compress_type = (
                zipfile.ZIP_STORED if is_stored else zipfile.ZIP_DEFLATED
            )
            member.external_attr = 0o644 << 16  # who may read it, once it is unpacked
            packed.writestr(member, content)


# -- the list on the landing page


def _directive(app: Any) -> type[Any]:
    from docutils import nodes
    from sphinx.util.docutils import SphinxDirective

    class Editions(SphinxDirective):
        """`{editions}`: the book's files, those that this site stands with."""

        def run(self) -> list[nodes.Node]:
            if app.builder.name != "html":
                return []
            items = nodes.bullet_list()
            up = "../" * self.env.docname.count("/")
            name = self.config.archive_name
            for ending, said in EDITIONS.items():
                if ending == "zip" or self.config.editions:
                    link = nodes.reference(
                        "", said, refuri=f"{up}_downloads/{name}.{ending}"
                    )
                    items += nodes.list_item("", nodes.paragraph("", "", link))
            return [items]

    return Editions


#: What the whole book comes as, by the ending of its file.
EDITIONS = {
    "zip": "This site, to be read without a network (zip)",
    "epub": "For readers' devices (EPUB)",
    "pdf": "On paper (PDF)",
}


def setup(app: Any) -> dict[str, Any]:
    """Take part in every build; most of it is for the EPUB alone."""
    app.add_config_value("editions", False, "env", (bool,))
    app.add_directive("editions", _directive(app))
    app.connect("html-page-context", settle_page, priority=950)
    app.connect("build-finished", settle_book)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


# -- PDF


def joined(site: Path) -> str:
    """All pages of a finished site as one, each with a break before it."""
    names = list(_in_order(site))
    chapters = [_chapter(site, name, set(names)) for name in names]
    head = BeautifulSoup((site / "index.html").read_text("utf-8"), "html.parser").head
    assert head is not None
    sheet = head.select_one("link[rel=stylesheet]")
    title = head.title.get_text().strip() if head.title else ""
    return (
        '<!doctype html><html lang="en" data-theme="light">'
        '<head><meta charset="utf-8">'
        f"<title>{title}</title>{sheet}<style>{_PAPER}</style></head>"
        f'<body><main class="bd-content">{"".join(chapters)}</main></body></html>'
    )


_PAPER = """
@page { size: A4; margin: 18mm 16mm; }
body { background: #fff; }
html .bd-content { display: block; }
html .bd-content .bd-article h1 { font-size: 20pt; }
html .bd-content .bd-article { break-before: page; }
html .bd-content .bd-article:first-child { break-before: auto; }
.sd-card { break-inside: avoid; }
"""


def _in_order(site: Path) -> Iterator[str]:
    """The pages as one leads to the next; the index of terms says nothing on paper."""
    name: str | None = "index.html"
    while name and name != "genindex.html":
        yield name
        text = (site / name).read_text("utf-8")
        found = re.search(r'<link rel="next"[^>]*href="([^"#]*)', text)
        name = posixpath.normpath(urljoin(name, found[1])) if found else None


def _chapter(site: Path, name: str, known: set[str]) -> str:
    soup = BeautifulSoup((site / name).read_text("utf-8"), "html.parser")
    article = soup.select_one("article.bd-article")
    if article is None:
        raise ValueError(f"{site / name}: not a page of the book")
    for part in article.select(f"{_FOR_SCREENS}, {_ON_THE_SITE}"):
        part.decompose()
    address = soup.select_one("link[rel=canonical]")
    for tick in article.select("a.receipt"):  # its check was just left out
        if address is None:
            del tick["href"]
        else:
            tick["href"] = f"{address['href']}{tick['href']}"
    # Each mark becomes an element of the file: none for what has no color of its own.
    for part in article.select(_PLAIN):
        part.unwrap()
    for part in article.find_all(True):
        _settle(part, name, known)
    article["id"] = _place(name)
    return str(article)


def _place(name: str, within: str = "") -> str:
    return "--".join(filter(None, [re.sub(r"\W+", "-", name), within]))


def _settle(part: Tag, name: str, known: set[str]) -> None:
    """Have an element's names, links and files hold in the one page of all."""
    if part.get("id"):
        part["id"] = _place(name, str(part["id"]))
    for attribute in _REFERRING:
        if part.get(attribute):
            del part[attribute]
    if part.name == "img":
        part["src"] = urljoin(name, str(part["src"]))
        part["loading"] = "eager"
    if part.name == "details":
        part["open"] = ""
    address = part.get("href")
    if part.name == "a" and address and "://" not in str(address):
        target, _, within = urljoin(name, str(address)).partition("#")
        if (target or name) in known:
            part["href"] = "#" + _place(target or name, within)
        else:
            del part["href"]
    elif address and str(address).startswith("#"):
        part["href"] = "#" + _place(name, str(address)[1:])


_FOOT = (
    '<div style="width:100%;text-align:center;font-size:7pt">'
    '<span class="pageNumber"></span></div>'
)


def print_pdf(site: Path, target: Path) -> None:
    """Have Chromium print the pages of a site into one file, with an outline."""
    from playwright.sync_api import sync_playwright

    whole = site / "whole-for-print.html"
    whole.write_text(joined(site), "utf-8")
    try:
        with sync_playwright() as playwright:
            program = shutil.which("chromium") or shutil.which("google-chrome")
            browser = playwright.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page()
            page.set_default_timeout(600_000)
            page.goto(whole.resolve().as_uri(), wait_until="load")
            page.pdf(
                path=target,
                prefer_css_page_size=True,
                display_header_footer=True,
                header_template="<span></span>",
                footer_template=_FOOT,
                outline=True,
                tagged=True,
            )
            browser.close()
    finally:
        whole.unlink()


if __name__ == "__main__":
    print_pdf(Path(sys.argv[1]), Path(sys.argv[2]))
