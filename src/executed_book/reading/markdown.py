"""Taking a MyST page apart into cells and the text between them.

MyST's own parser says what is a cell, what is a directive and what is running text;
nothing here looks at fences by itself.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from docutils.parsers.rst import Directive
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.directives import parse_directive_text
from myst_parser.parsers.mdit import create_md_parser

#: Directives whose content is not running text. Any other directive's content is.
LITERAL = frozenset(
    {"code", "code-block", "code-cell", "sourcecode", "literalinclude", "highlight"}
    | {"raw", "raw-cell", "math", "parsed-literal", "eval-rst", "doctest", "testcode"}
    | {"mermaid", "graphviz", "digraph", "graph", "plantuml", "prompt", "toctree"}
    | {"include", "image", "contents", "index", "bibliography"}
)

#: Directives whose argument is a file or a number, not running text.
_SILENT_ARGUMENT = frozenset({"figure", "list-table", "csv-table", "grid", "toctree"})

_CELL = re.compile(r"\{(code|raw)-cell\}")

#: A span of code in running text, with the name of its role if it has one. A role
#: that is quoted inside a span (`` {value}`x` ``) is part of that span.
SPAN = re.compile(
    r"(?<![`\\])(?:\{(?P<role>[\w:+.-]+)\})?(?P<ticks>`+)"
    r"(?P<text>(?:(?!\n\s*\n).)+?)(?<!`)(?P=ticks)(?!`)",
    re.DOTALL,
)


@dataclass
class Stretch:
    """A stretch of a page: one cell, or the text up to the next one.

    `line` is the page's line (from 1) of its first line; for a cell, of the first line
    of its source; `fence` is the line where a cell begins. `tokens` are the parser's
    for its text, with lines that count from 0 at the line `first`.
    """

    kind: str  # "code", "raw" or "markdown"
    text: str
    line: int
    fence: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    tokens: list[Token] = field(default_factory=list)
    first: int = 1
    complaint: str | None = None

    @functools.cached_property
    def running(self) -> list[tuple[int, str]]:
        """The numbered lines of its running text: what a reader reads as prose."""
        return [line for token in self.tokens for line in _running(token, self.first)]


class _AnyDirective(Directive):
    """Takes whatever options there are, as MyST-NB does for its cells."""

    option_spec = {"any": str}  # noqa: RUF012 (docutils wants it so)
    optional_arguments = 1
    has_content = True


def stretches(text: str, first: int = 1) -> list[Stretch]:
    """The cells of a page and the text between them, in order.

    Args:
        text: the page without its front matter, or a notebook's Markdown cell.
        first: the line of the file that `text` begins on.

    >>> page = "One.\\n\\n```{code-cell}\\n:tags: [check]\\n\\nx = 1\\n```\\nTwo.\\n"
    >>> [(s.kind, s.text, s.line) for s in stretches(page)]
    [('markdown', 'One.', 1), ('code', 'x = 1', 6), ('markdown', 'Two.', 8)]
    """
    lines = text.split("\n")  # as tokens count them, not at a form feed
    pieces: list[Stretch] = []
    start, tokens = 0, list[Token]()

    def flush(end: int) -> None:
        filled = [i for i in range(start, end) if lines[i].strip()]
        if filled:
            begin, between = filled[0], "\n".join(lines[filled[0] : filled[-1] + 1])
            piece = Stretch("markdown", between, first + begin, tokens=tokens)
            piece.first = first
            pieces.append(piece)

    for token in tokens_of(text):
        is_outermost = token.type == "fence" and not token.level
        cell = _CELL.match(token.info) if is_outermost else None
        if token.map and (cell or token.type == "myst_block_break"):
            flush(token.map[0])
            start, tokens = token.map[1], []
            if cell:
                pieces.append(_cell(token, cell[1], first))
        else:
            tokens.append(token)
    flush(len(lines))
    return pieces


def running_text(text: str, first: int = 1) -> list[tuple[int, str]]:
    """The numbered lines of a text that are running text, not code.

    >>> running_text("A `b`.\\n\\n```python\\nc\\n```\\n\\n:::{note} D\\nE\\n:::\\n")
    [(1, 'A `b`.'), (7, 'D'), (8, 'E')]
    """
    return [line for token in tokens_of(text) for line in _running(token, first)]


@functools.cache
def _parser() -> MarkdownIt:
    config = MdParserConfig(
        enable_extensions={"colon_fence", "dollarmath", "deflist", "fieldlist"},
        disable_syntax=["inline"],
    )
    return create_md_parser(config, RendererHTML)


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text; those inside lists and quotes know that by their level."""
    tokens: list[Token] = _parser().parse(text + "\n")
    return tokens


def _cell(token: Token, kind: str, first: int) -> Stretch:
    assert token.map is not None
    fence = first + token.map[0]
    text = token.content.removesuffix("\n")
    lines, made = text.split("\n"), Stretch(kind, text, fence + 1, fence)
    start = token.content.lstrip()[:1]
    if text and (not lines[0].strip() or lines[0].startswith("---") or start == ":"):
        # Only where there may be options: looking for them is most of the reading.
        parsed = parse_directive_text(
            _AnyDirective, "", token.content, validate_options=False
        )
        made.text, made.options = "\n".join(lines[parsed.body_offset :]), parsed.options
        made.line += parsed.body_offset
        made.complaint = parsed.warnings[0].msg if parsed.warnings else None
    return made


def _running(token: Token, first: int) -> Iterator[tuple[int, str]]:
    """The running text that one token holds, with its lines."""
    line = first + (token.map[0] if token.map else 0)
    if token.type == "inline":
        for i, content in enumerate(token.content.split("\n")):
            yield line + i, content
    elif (name := directive_of(token)) is not None:
        argument = token.info.partition("}")[2].strip()
        if argument and name not in _SILENT_ARGUMENT:
            yield line, argument
        body, _, offset = directive_body(token.content)
        yield from running_text(body, line + 1 + offset)


def directive_of(token: Token) -> str | None:
    """The name of the directive that a token is; None where it has no running text."""
    if token.type not in ("fence", "colon_fence") or not token.info.startswith("{"):
        return None
    name = token.info[1:].partition("}")[0]
    return None if name in LITERAL or ":" in name else name


def directive_body(content: str) -> tuple[str, dict[str, Any], int]:
    """A directive's body, its options, and how many lines it takes to get there."""
    parsed = parse_directive_text(_AnyDirective, "", content, validate_options=False)
    return "\n".join(parsed.body), parsed.options, parsed.body_offset
