"""Names of libraries, in code and in text, lead to their official reference.

For each library a list below `inventories` says what it documents and on which page,
so a build needs no network. A name is what the imports of its page make
it; one that the page also gives to something else leads nowhere. In a block of code its
first use is the link. As a program, this module fetches the lists anew.
"""

from __future__ import annotations

import ast
import html
import re
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin

from sphinx.application import Sphinx
from sphinx.util.inventory import InventoryFile

#: Where each library's documentation stands, by the name of its list.
SITES = {
    "blackjax": "https://blackjax-devs.github.io/blackjax/",
    "diffrax": "https://docs.kidger.site/diffrax/",
    "equinox": "https://docs.kidger.site/equinox/",
    "flax": "https://flax.readthedocs.io/en/latest/",
    "jax": "https://docs.jax.dev/en/latest/",
    "lineax": "https://docs.kidger.site/lineax/",
    "matplotlib": "https://matplotlib.org/stable/",
    "numpy": "https://numpy.org/doc/stable/",
    "numpyro": "https://num.pyro.ai/en/latest/",
    "optax": "https://optax.readthedocs.io/en/latest/",
    "optimistix": "https://docs.kidger.site/optimistix/",
    "python": "https://docs.python.org/3/",
    "sklearn": "https://scikit-learn.org/stable/",
}

#: What a short name in the text means on every page that says nothing else.
USUAL = {
    **{name: name for name in SITES},
    "eqx": "equinox",
    "jnp": "jax.numpy",
    "dfx": "diffrax",
    "dist": "numpyro.distributions",
    "lax": "jax.lax",
    "lx": "lineax",
    "nnx": "flax.nnx",
    "np": "numpy",
    "optx": "optimistix",
    "plt": "matplotlib.pyplot",
    **{name: name for name in ("collections", "functools", "itertools", "math")},
    **{name: name for name in ("operator", "os", "sys", "time", "warnings")},
}

#: Where a library describes what it also offers under a shorter name.
_ALSO_FROM = {
    "flax.nnx": ("flax.nnx.optimizer",),
    "optax": ("optax.losses", "optax.schedules"),
}

_LISTS = Path(__file__).parent / "inventories"
_BLOCK = re.compile(
    r'(<div class="highlight-i?python3?[^"]*"><div class="highlight"><pre>)'
    r"(.*?)(</pre>)",
    re.DOTALL,
)
_PIECE = re.compile(r"<span[^>]*>[^<]*</span>|<[^>]+>|[^<]+")
_CLOSED = re.compile(r"(<(a|pre|h[1-6]|summary|title)\b.*?</\2>)", re.DOTALL)
_LITERAL = re.compile(
    r'<code class="[^"]*\bliteral\b[^"]*"><span class="pre">'
    r"([A-Za-z_]\w*(?:\.\w+)*)(\([^<]*\))?</span></code>"
)

#: What a name stands for, by the name: `{"jnp": "jax.numpy"}`.
Names = Mapping[str, str]


class Target(NamedTuple):
    """Where something is described; a module is linked where it is imported alone."""

    address: str
    is_module: bool


@cache
def inventory() -> dict[str, Target]:
    """Everything that the committed lists name."""
    known = {
        name: Target(item.uri, kind == "py:module")
        for library, site in SITES.items()
        for kind, items in _read(library, site).items()
        for name, item in items.items()
    }
    for shorter, modules in _ALSO_FROM.items():
        for name in list(known):
            module, _, last = name.rpartition(".")
            if module in modules:
                known.setdefault(f"{shorter}.{last}", known[name])
    return known


def _read(library: str, site: str) -> Any:
    content = (_LISTS / f"{library}.txt").read_bytes()
    return InventoryFile.loads(content, uri=site).data


# -- what names mean on a page


def names_of(trees: list[ast.Module]) -> dict[str, str]:
    """What the imports of a page name; not what is given to several things."""
    meant: dict[str, set[str | None]] = {}
    for tree in trees:
        for name, full in _bound(tree):
            meant.setdefault(name, set()).add(full)
    only = {name: next(iter(fulls)) for name, fulls in meant.items() if len(fulls) == 1}
    return {name: full for name, full in only.items() if full is not None}


def _bound(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    """Each name that is given to something, and what it is if that is an import."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                for alias in names:
                    root = alias.name.partition(".")[0]
                    yield (alias.asname, alias.name) if alias.asname else (root, root)
            case ast.ImportFrom(str(module), names, 0):
                for alias in names:
                    yield alias.asname or alias.name, f"{module}.{alias.name}"
            case ast.Name(name, ast.Store() | ast.Del()) | ast.arg(name):
                yield name, None
            case ast.FunctionDef(name) | ast.ClassDef(name):
                yield name, None


# -- code


class _Use(NamedTuple):
    """A stretch of code, from one character to another, that names something."""

    start: int
    end: int
    address: str


def linked_code(block: str, tree: ast.Module, names: Names) -> str:
    """A highlighted block with links around the first use of each name."""
    first: dict[str, _Use] = {}
    for use in sorted(_uses(tree, text_of(block), names)):
        first.setdefault(use.address, use)
    pieces = _PIECE.findall(block)
    sizes = [len(text_of(piece)) for piece in pieces]
    ends = set(accumulate(sizes))  # a link ends where a piece of the block does
    starts = {use.start: use for use in first.values() if use.end in ends}
    written, place, until = [], 0, -1
    for piece, size in zip(pieces, sizes, strict=True):
        if size and place in starts:
            address = starts[place].address
            written.append(f'<a class="reference external" href="{address}">')
            until = starts[place].end
        written.append(piece)
        place += size
        if size and place == until:
            written.append("</a>")
    return "".join(written)


def text_of(block: str) -> str:
    """A stretch of a page without its tags."""
    return html.unescape(re.sub(r"<[^>]+>", "", block))


def _uses(tree: ast.Module, text: str, names: Names) -> Iterator[_Use]:
    place = _Places(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imported(node, place)
    for node, full in used_names(tree, names):
        end = node.end_lineno or 0, node.end_col_offset or 0
        start = place(node.lineno, node.col_offset)
        yield _Use(start, place(*end), inventory()[full].address)


def used_names(tree: ast.Module, names: Names) -> Iterator[tuple[ast.expr, str]]:
    """Each use of something that a list describes: where it stands, and what it is."""
    inner: set[ast.AST] = set()
    for node in ast.walk(tree):  # a chain comes before the names that it consists of
        if isinstance(node, ast.Attribute | ast.Name) and node not in inner:
            chain = [node, *_chain(node)]
            inner.update(chain)
            for each in chain:
                full = _full_name(each, names)
                target = inventory().get(full) if full else None
                if full and target and not target.is_module:
                    yield each, full
                    break


def _chain(node: ast.expr) -> Iterator[ast.expr]:
    while isinstance(node, ast.Attribute):
        node = node.value
        yield node


def _full_name(node: ast.expr, names: Names) -> str | None:
    match node:
        case ast.Name(name):
            return names.get(name)
        case ast.Attribute(value, attribute):
            before = _full_name(value, names)
            return f"{before}.{attribute}" if before else None
    return None


def _imported(node: ast.Import | ast.ImportFrom, place: _Places) -> Iterator[_Use]:
    module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    for alias in node.names:
        target = inventory().get(module + alias.name)
        if target is not None:
            start = place(alias.lineno, alias.col_offset)
            yield _Use(start, start + len(alias.name), target.address)


class _Places:
    """Where in a text a line and a column of bytes are, as `ast` counts them."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def __call__(self, line: int, column: int) -> int:
        before = self.lines[line - 1].encode()[:column].decode()
        return self.starts[line - 1] + len(before)


# -- text


def linked_text(body: str, names: Names) -> str:
    """A page with links around the names in its text, but not in what is closed."""
    parts = _CLOSED.split(body)
    # The expression has two groups: each third part is text, and then what is closed.
    for i in range(0, len(parts), 3):
        parts[i] = _LITERAL.sub(lambda found: _literal(found, names), parts[i])
    del parts[2::3]
    return "".join(parts)


def _literal(found: re.Match[str], names: Names) -> str:
    root, dot, rest = found[1].partition(".")
    full = names.get(root)
    target = inventory().get(f"{full}{dot}{rest}") if full else None
    if target is None or (target.is_module and not dot):
        return found[0]
    return f'<a class="reference external" href="{target.address}">{found[0]}</a>'


# -- the page


def linked(body: str) -> str:
    """A page's body with its names linked."""
    trees = {block: parsed(text_of(block)) for _, block, _ in _BLOCK.findall(body)}
    names = names_of([tree for tree in trees.values() if tree is not None])

    def with_links(found: re.Match[str]) -> str:
        tree = trees[found[2]]
        code = found[2] if tree is None else linked_code(found[2], tree, names)
        return found[1] + code + found[3]

    return linked_text(_BLOCK.sub(with_links, body), {**USUAL, **names})


def parsed(code: str) -> ast.Module | None:
    """A block's code; None where it is not all Python, as a command of IPython is."""
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError):
        return None


def link_page(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Link the names of a page that comes from a file of the book's."""
    if doctree is not None and context.get("body"):
        context["body"] = linked(context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Link what pages name, before anything is made from their finished text."""
    app.connect("html-page-context", link_page, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


# -- fetching the lists anew


_OLD = {"py:module": "mod"}


def as_list(content: bytes, source: str) -> str:
    """A published inventory as a list of its Python names, a line each."""
    found = InventoryFile.loads(content, uri="").data
    rows = {
        f"{name} {_OLD.get(kind, kind[3:])} {item.uri.partition('#')[0]}"
        for kind, items in found.items()
        for name, item in items.items()
        if kind.startswith("py:")
    }
    facts = next(iter(next(iter(found.values())).values()))
    project, version = facts.project_name, facts.project_version or "-"
    head = (
        "# Sphinx inventory version 1\n"
        f"# Project: {project}, as {source} lists it\n"
        f"# Version: {version}\n"
    )
    return head + "\n".join(sorted(rows)) + "\n"


def fetch(sources: Mapping[str, str]) -> list[str]:
    """Write libraries' lists anew; say which could not be had, and why."""
    lost = []
    for library, source in sources.items():
        try:
            text = as_list(_content(source), source)
        except (OSError, ValueError) as error:
            lost.append(f"{library}: {source}: {error}")
            continue
        (_LISTS / f"{library}.txt").write_text(text, "utf-8")
        print(f"{library}: {len(text.splitlines()) - 3} names from {source}")
    return lost


def _content(source: str) -> bytes:
    if "://" not in source:
        return Path(source).read_bytes()
    with urllib.request.urlopen(source, timeout=60) as answer:
        content: bytes = answer.read()
    return content


def _sources(arguments: list[str]) -> dict[str, str]:
    """Where the lists come from: what each documentation publishes, or what is said."""
    published = {name: urljoin(site, "objects.inv") for name, site in SITES.items()}
    said = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    if len(said) < len(arguments) or not said.keys() <= published.keys():
        sys.exit(f"Say NAME=FILE, where NAME is one of {', '.join(published)}")
    return said or published


if __name__ == "__main__":
    sys.exit("\n".join(fetch(_sources(sys.argv[1:]))) or None)
