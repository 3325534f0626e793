"""The sentences of a page, and the checks that they name.

A sentence names the check that would fail if it were false by a role after it:
``A draw leaves its key as it was. {check}`draw-keeps-key` ``. One that claims nothing
says so: ``{no-check}`definition` ``. A measured number comes from a run, and nobody
types it by hand.
"""

import dataclasses
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it.token import Token

from ..errors import PageError
from ..model import Sentence
from .markdown import SPAN, Stretch, directive_body, directive_of, tokens_of

#: What a sentence in universal words may be, that no check is asked of.
NO_CLAIM = ("definition", "instruction", "title")

#: Where sentences define words.
_NO_CLAIMS_HERE = frozenset({"glossary"})

_MARKS = frozenset({"check", "no-check"})

#: Stands for a mark until it is taken away with the space before it.
_GONE = "\0"
_UNIVERSAL = re.compile(
    r"(?<![\w-])(every|every(?:thing|where|body|one)|each|never|always|what(?:so)?ever|"
    r"whenever|whichever|wherever|nothing|none|nobody|nowhere|only|must|cannot|can't|"
    r"all|(?<!yes or )no)(?![\w-])",
    re.IGNORECASE,
)
#: Where no sentence ends and no word counts, besides code: math, targets of links.
_OPAQUE = re.compile(r"\$[^$\n]+\$|\]\([^)\s]*\)")
_END = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!cf)(?<!vs)[.!?][\"'”)\]*_]*(?:\s+|$)")
_IS_LINK = re.compile(r"\[[^\]]*\]\([^)]*\)")
_LEAD = re.compile(r"\*\*([^*]+)\*\*\s*")


@dataclass
class SentenceReader:
    """Reads the pieces of one page in their order.

    `under` are titles of sections whose lists are claims, `after` bold words that the
    paragraphs of a claim begin with: one claim in each section. Sections called as in
    `asking`, and those inside them, put tasks to the reader and claim nothing.
    """

    path: Path
    under: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    asking: frozenset[str] = frozenset()
    errors: list[PageError] = field(default_factory=list)
    _title: str = ""
    _list: int | None = None
    _led: int | None = None
    #: The heading, as "h2", of the section around the text that asks.
    _asks: str | None = None

    def read(self, pieces: Iterable[Stretch]) -> tuple[Sentence, ...]:
        """The sentences of the pieces that are no cells."""
        sentences = [
            sentence
            for piece in pieces
            if piece.kind == "markdown"
            for sentence in self._text(piece.tokens, piece.first, True)
        ]
        of_claim = {s.claim: s.checks for s in sentences}  # of its last sentence
        of_claim[None] = ()
        return tuple(
            dataclasses.replace(s, vouched=s.vouched or of_claim[s.claim])
            for s in sentences
        )

    def _text(
        self, tokens: Iterable[Token], first: int, claims: bool
    ) -> Iterator[Sentence]:
        before = tag = ""
        for token in tokens:
            line = first + (token.map[0] if token.map else 0)
            if token.type.endswith("_list_open") and not token.level:
                self._list = line if claims and self._title in self.under else None
            elif token.type.endswith("_list_close") and not token.level:
                self._list = None
            elif token.type == "inline" and before == "heading_open":
                self._title, self._led = plain(token.content), None
                if self._asks is None or tag <= self._asks:
                    self._asks = tag if self._title in self.asking else None
                yield from self._block(token.content, line, False)
            elif token.type == "inline":
                is_title = before in ("dt_open", "th_open") or bool(
                    _IS_LINK.fullmatch(token.content.strip())
                )
                yield from self._block(token.content, line, claims and not is_title)
            elif (name := directive_of(token)) is not None:
                yield from self._directive(token, name, line, claims)
            before, tag = token.type, token.tag

    def _directive(
        self, token: Token, name: str, line: int, claims: bool
    ) -> Iterator[Sentence]:
        body, options, offset = directive_body(token.content)
        kinds = {name, *str(options.get("class", "")).split()}
        yield from self._block(token.info.partition("}")[2].strip(), line, False)
        inside = claims and not kinds & _NO_CLAIMS_HERE
        yield from self._text(tokens_of(body), line + 1 + offset, inside)

    def _block(self, text: str, line: int, claims: bool) -> Iterator[Sentence]:
        """The sentences of one paragraph, list item, cell of a table or title."""
        sentences = list(self._sentences_of(text, line, claims))
        vouched = sentences[-1].checks if sentences else ()
        yield from (dataclasses.replace(one, vouched=vouched) for one in sentences)

    def _sentences_of(self, text: str, line: int, claims: bool) -> Iterator[Sentence]:
        lead = _LEAD.match(text)
        start, claim = 0, self._list
        if lead and lead[1] in self.after:
            self._led = self._led or line
            start, claim = lead.end(), self._led
        for begin, end, marks in _sentences(text, start):
            here = line + text.count("\n", 0, begin)
            said = text[begin:end]
            checks, exempt = self._marks(marks, here)
            bare = _hide(said)
            asks = bare.rstrip("*_\"') \n").endswith("?")
            may_claim = claims and not asks and self._asks is None
            universal = may_claim and bool(_UNIVERSAL.search(bare))
            yield Sentence(plain(said), here, checks, exempt, universal, claim)

    def _marks(
        self, marks: list[re.Match[str]], line: int
    ) -> tuple[tuple[str, ...], str | None]:
        checks: list[str] = []
        exempt = None
        for mark in marks:
            if mark["role"] == "check":
                checks += names_in(mark["text"])
            elif mark["text"] in NO_CLAIM:
                exempt = mark["text"]
            else:
                self.errors.append(
                    PageError(
                        self.path,
                        line,
                        f"{mark[0]} is not understood",
                        f"a sentence without a check is one of {', '.join(NO_CLAIM)};"
                        " any other names its check, or is softened",
                    )
                )
        return tuple(checks), exempt


def names_in(text: str) -> list[str]:
    """The names that one mark holds.

    >>> names_in("carry-type, carry-shape")
    ['carry-type', 'carry-shape']
    """
    return [name for name in re.split(r"[\s,]+", text) if name]


def _sentences(text: str, start: int) -> Iterator[tuple[int, int, list[re.Match[str]]]]:
    """Where each sentence begins and ends, with the marks in and right after it."""
    bare = _hide(text)
    marks = [span for span in SPAN.finditer(text) if span["role"] in _MARKS]
    ends = [m.end() for m in _END.finditer(bare, start)]
    for end in [*(e for e in ends if e < len(text)), len(text)]:
        own = [mark for mark in marks if start <= mark.start() < end]
        if said := bare[start:end].lstrip():
            yield end - len(said), end, own
        start = end


def _hide(text: str) -> str:
    """The text with blanks for marks, and a letter for what is not prose."""

    def hidden(span: re.Match[str]) -> str:
        return (" " if span["role"] in _MARKS else "x") * len(span[0])

    return _OPAQUE.sub(lambda m: "x" * len(m[0]), SPAN.sub(hidden, text))


def plain(text: str) -> str:
    """A sentence as a reader sees it.

    A link to a page by its name alone stays as it is: it shows the title of that page.

    >>> plain("**Both** give `a + b`, see {doc}`the page </b>`. {check}`sum`")
    'Both give a + b, see the page.'
    >>> plain("See {doc}`/b`.")
    'See {doc}`/b`.'
    """
    text = re.sub(rf"\s*{_GONE}", "", SPAN.sub(_plain_span, text))
    text = re.sub(r"\[([^\]]*)\](?:\([^)]*\)|\{[^}]*\})", r"\1", text)
    return " ".join(re.sub(r"\*\*|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)", "", text).split())


def _plain_span(span: re.Match[str]) -> str:
    role, text = span["role"], span["text"].strip()
    if role in _MARKS:
        return _GONE
    if role in ("value", "measured", "receipts"):
        return "…"
    if role == "doc" and not text.endswith(">"):
        return span[0]
    return re.sub(r"\s*<[^>]*>$", "", text) if role else text


# -- measured numbers that were typed

_NUMBER = r"(?<![\w.,/-])\d[\d,]*(?:\.\d+)?(?:\s*[-–]\s*\d[\d,.]*)?"
_TIME = r"(?:[nµμum]s|s|sec|seconds?|minutes?|hours?|milliseconds?|microseconds?)"
_SIZE = r"(?:[kKMGT]i?B|bytes of temporar\w+)"
_RATE = r"(?:[kKMGTP]?(?:FLOPS?|FLOP/s|B/s|iB/s))"
_RATIO = (
    r"(?:[×x%]|times|percent|-fold)\s*"
    r"(?:faster|slower|quicker|longer|shorter|smaller|larger|speed-?up|less|more|as)"
)
_MEASURED = re.compile(
    rf"{_NUMBER}(?:\s*(?:{_TIME}|{_SIZE}|{_RATE})(?![\w/])|\s*{_RATIO}\b|-fold\b)"
)


def check_prose(path: Path, running: Iterable[tuple[int, str]]) -> Iterator[PageError]:
    """Every bare measured number in the numbered lines of running text.

    Such a number belongs in a value role, which is computed at each build. What is
    looked for is a number with a unit of time, memory or rate, or one that compares
    ("3.2× faster"). A bound in words is prose, and a check asserts it.
    """
    for line, content in running:
        for match in _MEASURED.finditer(_hide(content)):
            yield PageError(
                path,
                line,
                f"a measured number typed by hand: {match[0]!r}",
                "compute it in a cell and quote it: {measured}`name:.1f`, or say"
                " a bound in words and assert it",
            )
