"""The titles of pages that sentences link to without words of their own."""

import dataclasses
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from ..model import Chapter
from ..reading.sentences import plain

_LINK = re.compile(r"\{doc\}`([^`<>]+)`")
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)

#: The title of a page by its name.
Titles = Callable[[str], str]


def linked(chapter: Chapter) -> Iterator[str]:
    """The names of the pages that sentences of a chapter link to by their names."""
    for sentence in chapter.sentences:
        for name in _LINK.findall(sentence.text):
            yield _whole(chapter.docname, name)


def with_titles(chapter: Chapter, title_of: Titles) -> Chapter:
    """The chapter with titles in its sentences where they link to a page by its name.

    Args:
        chapter: the chapter.
        title_of: gives the title of a page.
    """

    def titled(link: re.Match[str]) -> str:
        return title_of(_whole(chapter.docname, link[1]))

    sentences = tuple(
        dataclasses.replace(sentence, text=_LINK.sub(titled, sentence.text))
        for sentence in chapter.sentences
    )
    return dataclasses.replace(chapter, sentences=sentences)


def _whole(page: str, name: str) -> str:
    """The name of a page that another page links to.

    >>> _whole("learn/jit", "grad"), _whole("learn/jit", "/tracing/xla")
    ('learn/grad', 'tracing/xla')
    """
    joined = posixpath.join("/", posixpath.dirname(page), name.strip())
    return posixpath.normpath(joined).lstrip("/")


def title_in(path: Path, name: str) -> str:
    """The first heading of a page's file; the page's name if there is none."""
    try:
        text = path.read_text("utf-8")
    except OSError:
        return name
    found = _HEADING.search(_FRONT.sub("", text))
    return plain(found[1]) if found else name
