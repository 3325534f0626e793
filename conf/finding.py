"""What the search box looks through: every section of every page, by itself.

A section is an entry: its title, the index's words for it, its prose, its code, and the
messages that its cells raised. The entries of a page are taken when the page is read
and kept with Sphinx's environment, so the file that holds them all is written whole by
every build, whatever was read anew. With them go the words of readers, and those that
the book has for the same things, from `search-words.txt`.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx import search as sphinx_search
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import docname_join

#: Below the site's `_static`; a script, since a page read from disk may fetch nothing.
INDEX_FILE = "search-index.js"

#: Beside `conf.py`; what a line means is said in the file itself.
WORDS_FILE = "search-words.txt"

_ATTRIBUTE = "finding_entries"

#: Snowball's stemmers, which Sphinx ships, make `recompiling` and `recompiles` one.
_SPHINX = Path(sphinx_search.__file__).parent / "minified-js"
_STEMMERS = ("base-stemmer.js", "english-stemmer.js")

#: An entry: the anchor, the title, and then texts by kind.
Entry = dict[str, str]

_MESSAGES = {"traceback", "stderr"}
_NAME = re.compile(r"[A-Za-z_][\w.]{2,}")
_FINAL = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Warning|Exception|Operation)\b.*", re.M)


def entries_of(doctree: nodes.document) -> list[Entry]:
    """The entries of one page, in their order; the first is the page as a whole."""
    found = [_entry(section) for section in doctree.findall(nodes.section)]
    found += [_term(item) for item in _terms(doctree)]
    found += [_described(each) for each in doctree.findall(addnodes.desc)]
    return [entry for entry in found if entry["id"]]


def _entry(section: nodes.section) -> Entry:
    title = section.next_node(nodes.title)
    texts = _Texts()
    for child in section.children:
        if not isinstance(child, nodes.section | nodes.title):
            texts.take(child)
    anchor = section["ids"][0] if section["ids"] else ""
    return texts.entry(anchor, title.astext() if title else "")


def _terms(doctree: nodes.document) -> Iterator[nodes.definition_list_item]:
    """What is an entry by itself: the terms of a glossary, and the names that run."""
    return filter(_is_term, doctree.findall(nodes.definition_list_item))


def _is_term(node: nodes.Node) -> bool:
    if not isinstance(node, nodes.definition_list_item):
        return False
    return any(term["ids"] for term in node.findall(nodes.term))


def _term(item: nodes.definition_list_item) -> Entry:
    texts = _Texts()
    for definition in item.findall(nodes.definition):
        texts.take(definition)
    terms = list(item.findall(nodes.term))
    anchor = terms[0]["ids"][0] if terms and terms[0]["ids"] else ""
    return texts.entry(anchor, " / ".join(_plain(term) for term in terms))


def _described(description: addnodes.desc) -> Entry:
    texts = _Texts()
    for child in description.children:
        if isinstance(child, addnodes.desc_content):
            texts.take(child)
    signature = description.next_node(addnodes.desc_signature)
    known = signature is not None and signature["ids"]
    anchor = signature["ids"][0] if signature is not None and known else ""
    return texts.entry(anchor, anchor)


class _Texts:
    """The texts of one section, by what they are."""

    def __init__(self) -> None:
        self.prose: list[str] = []
        self.code: list[str] = []
        self.terms: list[str] = []
        self.messages: list[str] = []

    def take(self, node: nodes.Node) -> None:
        """Add what a reader sees of a node, and what the index says of it."""
        if isinstance(node, addnodes.index):
            self.terms += [entry[1].replace(";", " ") for entry in node["entries"]]
        elif not isinstance(node, nodes.Element) or "no-search" in node["classes"]:
            return
        elif isinstance(node, nodes.raw | addnodes.desc) or _is_term(node):
            return  # a glossary's terms and a module's names are entries themselves
        elif node.get("nb_element") == "cell_code_output":
            self._take_output(node)
        elif isinstance(node, nodes.literal_block):
            self.code.append(node.astext())
        elif isinstance(node, nodes.TextElement):
            self.prose.append(_plain(node))
            for index in node.findall(addnodes.index):
                self.take(index)
        else:
            for child in node.children:
                self.take(child)

    def _take_output(self, output: nodes.Element) -> None:
        for block in output.findall(nodes.literal_block):
            if _MESSAGES & set(block["classes"]):
                # The message begins at the first line that is no frame of the trace.
                text = block.astext().rpartition("Traceback (most recent")[2]
                found = _FINAL.search(text)
                self.messages.append(text[found.start() :] if found else text)

    def entry(self, anchor: str, title: str) -> Entry:
        return {
            "id": anchor,
            "title": _line([title]),
            "text": _line(self.prose),
            "code": " ".join(dict.fromkeys(_NAME.findall(" ".join(self.code)))),
            "terms": _line(self.terms),
            "messages": _line(self.messages),
        }


def _plain(node: nodes.Node) -> str:
    """A node's text without what differs from run to run."""
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, addnodes.pending_xref) and _is_titled_later(node):
        # A link that takes the title of its page, which may not have been read yet.
        return f"\0{docname_join(node['refdoc'], node['reftarget'])}\0"
    if isinstance(node, nodes.Element):
        if "no-search" in node["classes"] or isinstance(node, nodes.raw):
            return ""
        return "".join(map(_plain, node.children))
    return ""


def _is_titled_later(link: addnodes.pending_xref) -> bool:
    return link["reftype"] == "doc" and not link["refexplicit"]


def _line(texts: list[str]) -> str:
    return " ".join(" ".join(texts).split())


def index_of(env: BuildEnvironment) -> str:
    """The script that hands all entries to the search."""
    kept: dict[str, list[Entry]] = getattr(env, _ATTRIBUTE, {})

    def title(docname: str) -> str:
        return env.titles[docname].astext() if docname in env.titles else docname

    def titled(text: str) -> str:
        return re.sub("\0(.*?)\0", lambda link: title(link[1]), text)

    pages = [
        [docname, title(docname), [[*map(titled, e.values())] for e in kept[docname]]]
        for docname in sorted(kept)
    ]
    return f"window.SEARCH_PAGES = {json.dumps(pages, separators=(',', ':'))};\n"


def words_in(text: str) -> dict[str, list[Any]]:
    """The words of readers in the text of `search-words.txt`."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    said: dict[str, list[Any]] = {"silent": [], "pairs": [], "alike": []}
    for line in lines:
        silent, is_silent, words = line.partition("silent:")
        phrases, has_arrow, meant = line.partition("->")
        several = [phrase.strip() for phrase in phrases.split(",")]
        if is_silent and not silent:
            said["silent"] += words.split()
        elif has_arrow:
            said["pairs"].append([several, meant.strip()])
        else:
            said["alike"].append(several)
    return said


def _note(app: Sphinx, doctree: nodes.document) -> None:
    kept = getattr(app.env, _ATTRIBUTE, None) or {}
    kept[app.env.current_document.docname] = entries_of(doctree)
    setattr(app.env, _ATTRIBUTE, kept)


def _purge(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    getattr(env, _ATTRIBUTE, {}).pop(docname, None)


def _merge(
    app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment
) -> None:
    kept = getattr(env, _ATTRIBUTE, {})
    kept.update(getattr(other, _ATTRIBUTE, {}))
    setattr(env, _ATTRIBUTE, kept)


def _write(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        static = Path(app.outdir, "_static")
        words = words_in(Path(app.confdir, WORDS_FILE).read_text("utf-8"))
        said = f"window.SEARCH_WORDS = {json.dumps(words, separators=(',', ':'))};\n"
        (static / INDEX_FILE).write_text(index_of(app.env) + said, "utf-8")
        for name in _STEMMERS:
            shutil.copyfile(_SPHINX / name, static / name)


def _replace_search(app: Sphinx) -> None:
    """Have Sphinx make no index of its own, which nothing would read."""
    if app.builder.format == "html":
        app.builder.search = False  # type: ignore[attr-defined]


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the entries of all pages whenever the site is built."""
    app.connect("doctree-read", _note)
    app.connect("env-purge-doc", _purge)
    app.connect("env-merge-info", _merge)
    app.connect("builder-inited", _replace_search)
    app.connect("build-finished", _write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
