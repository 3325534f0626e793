"""The book in reading order: nothing is used before the chapter that introduces it.

`introductions.toml` says which chapter introduces what. What a reader sees of a page is
read with MyST's tokens: running text, and cells that are not folded. A use before its
chapter is an error, unless a comment `% ahead: NAME` stands right above the paragraph,
list, table or cell that it is in; the page then links the chapter that introduces it.
"""

import ast
import builtins
import posixpath
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from executed_book.names import dotted
from executed_book.names import imports as imports_of
from executed_book.reading.chapters import decode, read_page
from executed_book.reading.markdown import (
    LITERAL,
    SPAN,
    directive_body,
    stretches,
    tokens_of,
)
from executed_book.reading.options import front_matter
from executed_book.settings import Settings

from .conftest import DOCS

TABLE = Path(__file__).with_name("introductions.toml")

#: Cells that are folded away: nobody reads them on the way.
FOLDED = {"check", "solution", "exercise-check"} | {
    f"{verb}-{what}" for verb in ("hide", "remove") for what in ("input", "cell")
}

#: Where nobody reads in order; each name there need not have a chapter.
LOOKED_UP = (
    *("errors/", "instruments/", "older/", "recipes/", "science/"),
    *("systems/", "tools/"),
)

#: Short names that running text uses for modules.
USUAL = {"jax": "jax", "lax": "jax.lax", "jnp": "jax.numpy", "np": "numpy"}

#: Roles whose text is code; any other leads somewhere, or quotes a value.
_CODE_ROLES = {None, "py:func", "func"}
_AHEAD = re.compile(r"\s*ahead:\s*(.+)")


@dataclass(frozen=True)
class Idea:
    """What a chapter introduces, and the signs of its use."""

    name: str
    chapter: str
    signs: tuple[str, ...]

    def __str__(self):
        return f"{self.name}, which {self.chapter} introduces later"


@dataclass
class Block:
    """What one mark covers: a paragraph, a list, a table, a directive, a cell.

    `ahead` are the names of the mark right above it; `used` are names, methods and
    arguments in code, and the words of its text, each with its line.
    """

    line: int
    ahead: dict[str, int] = field(default_factory=dict)
    is_cell: bool = False
    code: list[tuple[str, int]] = field(default_factory=list)
    text: list[tuple[str, int]] = field(default_factory=list)


@dataclass
class Page:
    """A page as it is read: its blocks in order, the pages it links, those it lists."""

    docname: str
    blocks: list[Block]
    links: set[str]
    lists: list[str]


def ideas(table=TABLE):
    chapters = tomllib.loads(table.read_text("utf-8"))
    return [
        Idea(name, chapter, tuple(signs))
        for chapter, rows in chapters.items()
        for name, signs in rows.items()
    ]


class Signs:
    """Finds the ideas that a piece of code or of text uses."""

    def __init__(self, table):
        self.in_code: dict[str, Idea] = {}
        self.last_words: dict[str, Idea] = {}
        self.words: list[tuple[re.Pattern[str], Idea]] = []
        for idea in table:
            for sign in idea.signs:
                self._add(sign, idea)

    def _add(self, sign, idea):
        if re.fullmatch(r"\.\w+\(\)|\w+=|\w+(\.\w+)+", sign):
            assert sign not in self.in_code, f"{sign} is introduced twice"
            self.in_code[sign] = idea
            last = sign.rstrip("=").rpartition(".")[2]
            if not last.endswith("()") and not hasattr(builtins, last):
                self.last_words[last] = idea
        else:
            first, rest = sign[0], re.escape(sign[1:]).replace(r"\ ", r"\s+")
            begin = f"[{first}{first.upper()}]" if first.islower() else first
            pattern = rf"(?<![\w-]){begin}{rest}s?(?![\w-])"
            self.words.append((re.compile(pattern), idea))

    def of_code(self, name):
        """The idea of a name, by the longest sign that it begins with."""
        if name in self.in_code or name[0] == "." or name[-1] == "=":
            return self.in_code.get(name)
        parts = name.split(".")
        if len(parts) == 1:
            return self.last_words.get(name)
        shorter = (".".join(parts[:n]) for n in range(len(parts), 1, -1))
        return next((self.in_code[s] for s in shorter if s in self.in_code), None)

    def of_text(self, text):
        """Words that stand for an idea, with the number of lines above them."""
        for pattern, idea in self.words:
            if found := pattern.search(text):
                yield text.count("\n", 0, found.start()), found[0], idea


def reading_order(docs=DOCS, docname="index"):
    """The pages in the order of the toctrees, each after the page that lists it."""
    listed = _listed(docname, docs)
    return [page for child in listed for page in (child, *reading_order(docs, child))]


def _listed(docname, docs):
    folder = posixpath.join("/", posixpath.dirname(docname))
    _, body = _body(docs / f"{docname}.md")
    found = []
    for token in tokens_of(body):
        if token.type == "fence" and token.info.startswith("{toctree}"):
            for entry in filter(None, directive_body(token.content)[0].splitlines()):
                target = re.sub(r".*<(.*)>$", r"\1", entry.strip())
                found.append(posixpath.normpath(posixpath.join(folder, target))[1:])
    return [page for page in found if (docs / f"{page}.md").exists()]


def _body(path):
    """The line that a page's text begins on, and that text."""
    text = decode(path)
    _, taken = front_matter(text, path)
    return taken + 1, text.split("\n", taken)[taken] if taken else text


def read(docname, docs=DOCS):
    path = docs / f"{docname}.md"
    first, body = _body(path)
    pieces = stretches(body, first)
    chapter = read_page(path, Settings(docs, docs)).chapter
    cells = {cell.line: cell for cell in chapter.cells} if chapter else {}
    trees = {line: _tree(cell, path) for line, cell in cells.items()}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    bound = [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]
    imports = USUAL | dict(pair for node in bound for pair in imports_of(node))
    page = Page(docname, [], set(), _listed(docname, docs))
    ahead: dict[str, int] = {}
    for piece in pieces:
        if piece.kind == "code":
            block = Block(piece.fence, ahead, is_cell=True)
            if not FOLDED & cells[piece.line].tags:
                loaded = piece.fence if "load" in piece.options else 0
                block.code = [
                    (name, loaded or piece.line + line - 1)
                    for name, line in _names(trees[piece.line], imports)
                ]
            page.blocks.append(block)
            ahead = {}
        else:
            ahead = _read_text(piece, page, ahead, imports)
    assert not ahead, f"{path}: a mark at the end of the page, above nothing"
    return page


def _tree(cell, path):
    try:
        return ast.parse(TransformerManager().transform_cell(cell.source))
    except SyntaxError as error:
        if not (cell.raises or FOLDED & cell.tags):
            raise AssertionError(f"{path}:{cell.line}: no Python: {error}") from None
        return ast.Module([], [])


def _names(tree, imports):
    """Names in full, `.method()` and `argument=`, with their lines."""
    within = set()  # names that a longer one begins with
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            name = None if node in within else _in_full(node, imports)
            if name:
                yield name, node.lineno
            if isinstance(node, ast.Attribute) and (name or node in within):
                within.add(node.value)
        elif isinstance(node, ast.Call):
            function, given = node.func, [*node.args, *node.keywords]
            is_method = isinstance(function, ast.Attribute) and not (
                _in_full(function, imports) or (function.attr == "lower" and not given)
            )  # without an argument, the method of a text is left out
            if is_method:
                yield f".{function.attr}()", function.end_lineno
            named = [argument for argument in node.keywords if argument.arg]
            yield from ((f"{one.arg}=", one.value.lineno) for one in named)


def _in_full(node, imports):
    first, dot, rest = dotted(node).partition(".")
    return imports[first] + dot + rest if first in imports else None


def _read_text(piece, page, ahead, imports):
    """Add the blocks of a text; what its last mark names, for the cell after it."""
    block: Block | None = None
    for token, line in _said(piece.tokens, piece.first):
        mark = token.type == "myst_line_comment" and _AHEAD.match(token.content)
        if mark:
            ahead |= dict.fromkeys(re.split(r"[\s,]+", mark[1].strip()), line)
            continue
        begins = token.level == 0 and token.nesting >= 0 and token.type != "inline"
        if begins and not token.type.startswith("myst_line_comment"):
            block = Block(line, ahead)
            page.blocks.append(block)
            ahead = {}
        if block is not None:
            _take(token.content, line, block, page, imports)
    return ahead


def _said(tokens, first, level=0):
    """The tokens of running text with their lines, those of directives among them."""
    for token in tokens:
        line = first + (token.map[0] if token.map else 0)
        token.level += level
        if token.type not in ("fence", "colon_fence"):
            shown = token.type in ("inline", "myst_line_comment")
            yield token if shown else token.copy(content=""), line
        elif token.info.startswith("{"):
            name, _, argument = token.info[1:].partition("}")
            yield token.copy(content=""), line
            if name in LITERAL or ":" in name:
                continue
            if argument.strip():
                yield token.copy(type="inline", content=argument.strip()), line
            body, _, offset = directive_body(token.content)
            yield from _said(tokens_of(body), line + 1 + offset, level + 1)


def _take(text, first, block, page, imports):
    bare = text
    for span in SPAN.finditer(text):
        line = first + text.count("\n", 0, span.start())
        role, said = span["role"], span["text"].strip()
        if role in ("doc", "ref"):
            target = re.sub(r".*<(.*)>$", r"\1", said, flags=re.DOTALL)
            page.links.add(target.strip().lstrip("/"))
        elif role in _CODE_ROLES:
            block.code += [(name, line) for name in _in_span(said, imports)]
        blank = re.sub(r"[^\n]", " ", span[0])
        bare = bare[: span.start()] + blank + bare[span.end() :]
    bare = re.sub(r"\]\([^)\s]*\)", lambda m: " " * len(m[0]), bare)
    block.text.append((bare, first))


def _in_span(text, imports):
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        tree = ast.parse("()", mode="eval")
        yield from re.findall(r"\b\w+=(?!=)|(?<!\w)\.\w+\(\)", text)
    if isinstance(tree.body, ast.Name):
        yield imports.get(tree.body.id, tree.body.id)
    else:
        yield from (name for name, _ in _names(tree, imports))


def walk(pages, table):
    """The early uses that no mark allows and the marks that are wrong: place, what."""
    signs = Signs(table)
    place = {page.docname: n for n, page in enumerate(pages)}
    chapters = {idea.name: idea.chapter for idea in table}
    for page in pages:
        for block in page.blocks:
            needed = set()
            for line, sign, idea in uses(block, signs):
                if place[idea.chapter] <= place[page.docname]:
                    continue
                if idea.chapter in page.lists:  # it tells what its chapters are about
                    continue
                needed.add(idea.name)
                if idea.name not in block.ahead:
                    yield f"{page.docname}:{line}", f"{sign} ({idea})"
            for name, line in block.ahead.items():
                if name not in chapters:
                    said = "the table has no such name"
                elif name not in needed:
                    said = "nothing right below it looks ahead to that"
                elif chapters[name] not in page.links:
                    said = f"the page does not link {{doc}}`/{chapters[name]}`"
                else:
                    continue
                yield f"{page.docname}:{line}", said


def uses(block, signs):
    """Each idea that a block uses, once, with its first line and sign."""
    found: dict[str, tuple[int, str, Idea]] = {}
    for name, line in block.code:
        if idea := signs.of_code(name):
            found.setdefault(idea.name, (line, name, idea))
    for text, first in block.text:
        for above, sign, idea in signs.of_text(text):
            found.setdefault(idea.name, (first + above, sign, idea))
    yield from found.values()


@pytest.fixture(scope="module")
def table():
    return ideas()


@pytest.fixture(scope="module")
def pages():
    return [read(docname) for docname in reading_order()]


def test_nothing_is_used_before_it_is_introduced(pages, table):
    """Write it in another way; or put a mark above it, and link its chapter."""
    assert [": ".join(wrong) for wrong in walk(pages, table)] == []


def test_every_page_is_in_the_reading_order(pages):
    written = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    walked = {f"{page.docname}.md" for page in pages}
    assert len(walked) == len(pages)
    assert written - walked == {"index.md"}  # the cover, which shows what will come


def test_a_chapter_uses_what_it_introduces(pages, table):
    signs = Signs(table)
    used = {
        page.docname: {idea for block in page.blocks for *_, idea in uses(block, signs)}
        for page in pages
    }
    assert [idea for idea in table if idea not in used.get(idea.chapter, ())] == []


def test_each_name_of_jax_in_a_visible_cell_has_its_chapter(pages, table):
    signs = Signs(table)
    homeless = {
        name: f"docs/{page.docname}.md:{line}"
        for page in pages
        if not page.docname.startswith(LOOKED_UP)
        for block in page.blocks
        if block.is_cell
        for name, line in block.code
        if name.startswith("jax.") and not signs.of_code(name)
    }
    assert homeless == {}


INTRODUCTIONS = """
["one"]
jit = ["jax.jit"]
["two"]
vmap = ["jax.vmap"]
["three"]
lowering = [".lower()", "StableHLO"]
static = ["static_argnums=", "static argument"]
"""
CELL = "```{{code-cell}}\n{options}import jax\nfrom jax import vmap as v\n{code}\n```\n"


@pytest.fixture
def found(tmp_path):
    """What is wrong with a book of three chapters, given the first two."""

    def walked(one, two=""):
        chapters = {"one": one, "two": two, "three": "The end."}
        lists = "```{toctree}\none\nparts/index\n```\n"
        (tmp_path / "parts").mkdir()
        (tmp_path / "index.md").write_text(f"# A book\n\n{lists}")
        (tmp_path / "parts/index.md").write_text(
            "# Parts\n\n```{toctree}\n/two\nThe last </three>\n```\n"
        )
        front = "---\nfile_format: mystnb\n---\n"
        for name, text in chapters.items():
            (tmp_path / f"{name}.md").write_text(f"{front}# {name}\n\n{text}\n")
        (tmp_path / "table.toml").write_text(INTRODUCTIONS)
        order = reading_order(tmp_path)
        assert order == ["one", "parts/index", "two", "three"]
        read_pages = [read(name, tmp_path) for name in order]
        wrong = walk(read_pages, ideas(tmp_path / "table.toml"))
        return [f"{place} {said.partition(' (')[0]}" for place, said in wrong]

    return walked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`jax.jit` and `jit` are here.", []),
        ("What\n`jax.vmap` does.", ["one:7 jax.vmap"]),
        ("- a\n- `vmap(f)(x)`", []),  # another name, unless a page imports it
        ("- a\n- `vmap`", ["one:7 vmap"]),
        ("| a |\n|---|\n| `jit(f, static_argnums=0)` |", ["one:8 static_argnums="]),
        ("It becomes a\nstatic\nargument.", ["one:7 static\nargument"]),
        (":::{note}\nIt becomes StableHLO.\n:::", ["one:7 StableHLO"]),
        ("See {term}`StableHLO` and {doc}`StableHLO </three>`.", []),
        (CELL.format(options="", code="f = v(g)"), ["one:9 jax.vmap"]),
        (CELL.format(options=":tags: [check]\n", code="f = v(g)"), []),
        (CELL.format(options="", code="jax.jit(f).lower(x)"), ["one:9 .lower()"]),
        (CELL.format(options="", code="'A'.lower()"), []),
        (CELL.format(options="", code="# jax.vmap\n'jax.vmap'"), []),
    ],
)
def test_a_planted_use_is_found(found, text, expected):
    assert found(text) == expected


UNUSED = "nothing right below it looks ahead to that"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("% ahead: vmap\n`vmap`: {doc}`/two`.", []),
        ("{doc}`/two`\n\n% ahead: vmap\n\n" + CELL.format(options="", code="v(f)"), []),
        ("% ahead: vmap\n`vmap`.", ["one:6 the page does not link {doc}`/two`"]),
        ("% ahead: map\nNothing.", ["one:6 the table has no such name"]),
        ("% ahead: vmap\n{doc}`/two`.\n\n`vmap`", [f"one:6 {UNUSED}", "one:9 vmap"]),
    ],
)
def test_a_mark_allows_what_is_right_below_it(found, text, expected):
    assert found(text) == expected


def test_a_mark_in_a_chapter_that_knows_the_idea_is_not_needed(found):
    assert found("", "% ahead: vmap\n`vmap`") == [f"two:6 {UNUSED}"]
