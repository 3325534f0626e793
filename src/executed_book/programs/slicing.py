"""Which statements of a page a cell depends on.

`Page` follows the statements in their order (see `following`) and notes for each which
of those above it made what it looks at. What a cell needs is what its statements need,
what these need, and so on back.

This errs in both directions, and says so: a program is run before it is offered, and
one that does not give what its page shows gets further statements from above. Where a
program is too long, or was repaired, the author may say what its cell needs: `:needs:`
names values and earlier cells, `:needs-not:` leaves away what was found without reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from . import libraries
from .cells import ParsedCell, SourceCell, parse
from .following import Follower
from .names import DEFINITIONS, bound_names, imports, root_name
from .things import Effects, Mask, page_scope, reach

WAY_OUT = "rewrite it in plain Python, or give the reason in the cell's `no-program`"


class NoFaithfulProgram(Exception):
    """No program can be told from the source that would do what the page does.

    Attributes:
        cell: index of the cell whose program was asked for.
        line: line in the cell where the reason stands, from 1.
        at: index of the cell where the reason stands.
        why: the reason.
    """

    def __init__(self, cell: int, at: int, line: int, why: str) -> None:
        self.cell, self.at, self.line, self.why = cell, at, line, why
        where = f"line {line}" if at == cell else f"cell {at}, line {line}"
        super().__init__(f"cell {cell}: no faithful program: {where}: {why}; {WAY_OUT}")


@dataclass(frozen=True)
class CodeStatement:
    """One top-level statement of a page's cells.

    Attributes:
        first, last: its lines in the cell, from 1, decorators included.
        names: what it binds.
        fails: whether it raises what its cell announces.
        runs: False if it stands below one of its cell that fails.
    """

    index: int
    cell: int
    node: ast.stmt
    first: int
    last: int
    names: frozenset[str] = frozenset()
    fails: bool = False
    runs: bool = True

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, ast.Import | ast.ImportFrom)


class Page:
    """The statements of a page and what each of them needs.

    >>> page = Page([SourceCell("a = 1; b = 2"), SourceCell("a += 1"), SourceCell("a")])
    >>> page.needed(2)
    [0, 2]
    """

    def __init__(self, cells: Sequence[SourceCell]) -> None:
        self.cells = [parse(cell) for cell in cells]
        self.statements: list[CodeStatement] = []
        self.effects: list[Effects] = []
        self.names_read = frozenset(_names_read(self.cells))
        self._scope = page_scope()
        self._named: list[Mask] = []
        self._hides = False  # whether names were bound that no source shows
        self._of: list[list[CodeStatement]] = []
        for k, cell in enumerate(self.cells):
            self._named.append(self._said(cell.source))
            self._of.append([self._add(k, node) for node in cell.nodes])

    def of(self, cell: int) -> list[CodeStatement]:
        """The statements of one cell."""
        return self._of[cell]

    def needed(self, cell: int, added: Iterable[int] = ()) -> list[int]:
        """Indices of the earlier statements that a cell needs, in the page's order.

        `added` are those that it needs as well, whatever the source says.

        Raises:
            NoFaithfulProgram: what the cell does cannot be told from the source.
        """
        own = [s.index for s in self.of(cell)]
        direct = self._named[cell]
        for i in added:
            direct |= 1 << i
        for i in own:
            direct |= self.effects[i].needs
        earlier = [i for i in self.closed(direct, cell) if i not in own]
        self._check(cell, earlier)
        return earlier

    def closed(self, direct: Mask, cell: int) -> list[int]:
        """Statements with all that they need, apart from what the cell leaves away."""
        left_out = self.cells[cell].source.needs_not
        found, waiting = 0, direct
        while waiting:
            index = waiting.bit_length() - 1
            waiting ^= 1 << index
            if not (left_out and self._is_about(index, left_out)):
                found |= 1 << index
                waiting |= self.effects[index].needs & ~found
        return list(_indices(found))

    def _is_about(self, index: int, names: Iterable[str]) -> bool:
        """Whether a statement binds or changes one of these names and nothing else."""
        statement = self.statements[index]
        node = statement.node
        if statement.names:
            return statement.names <= set(names)
        value = node.value if isinstance(node, ast.Expr) else node
        return bool(root_name(value)) and root_name(value) in names

    def _said(self, cell: SourceCell) -> Mask:
        """What the cell says that it needs: names, and earlier cells by their label."""
        follower, found = Follower(self._scope), 0
        for name in cell.needs:
            labelled = [k for k, c in enumerate(self.cells) if c.source.label == name]
            for k in labelled[:1] if labelled and labelled[0] < len(self._of) else ():
                found |= sum(1 << s.index for s in self._of[k] if s.runs)
            if name in self._scope.names:
                things = follower.look_up(name, self._scope)
                found |= sum(0 | t.traces for t in reach(things))
        return found | follower.effects.needs

    # -- what the text of a program asks

    def is_silent(self, statement: CodeStatement) -> bool:
        """Whether a statement prints nothing when a program runs it again."""
        found, cell = self.effects[statement.index], self.cells[statement.cell]
        if found.prints_traced:
            return False
        if found.prints:
            return cell.source.prints is False
        # The cell printed and nothing in it is known to: a library was asked to, by
        # `verbose=1` say, or is one that no table knows.
        known_to = any(self.effects[s.index].prints for s in self.of(statement.cell))
        return not (cell.source.prints and not known_to and found.calls)

    @cached_property
    def paths(self) -> dict[str, str]:
        """The dotted path behind each name that the page imports."""
        return {name: path for name, path in self._imports if path}

    @cached_property
    def import_paths(self) -> dict[str, set[str]]:
        """For each name that the page binds, the paths; that of no import is empty."""
        found: dict[str, set[str]] = {}
        for name, path in self._imports:
            found.setdefault(name, set()).add(path)
        return found

    @cached_property
    def _imports(self) -> list[tuple[str, str]]:
        return [pair for s in self.statements for pair in bindings(s.node)]

    @cached_property
    def functions(self) -> dict[str, list[ast.stmt]]:
        """What binds each name, and the methods of the page's classes by their name."""
        found: dict[str, list[ast.stmt]] = {}
        for statement in self.statements:
            for name in statement.names:
                found.setdefault(name, []).append(statement.node)
            if isinstance(statement.node, ast.ClassDef):
                for method in statement.node.body:
                    name = f".{getattr(method, 'name', '')}"
                    found.setdefault(name, []).append(method)
        return found

    def gives_none(self, name: str) -> bool:
        """Whether a name, or `.method`, is only ever a function without a value."""
        makers = self.functions.get(name, [])
        return bool(makers) and all(map(_returns_nothing, makers))

    @cached_property
    def drawing_names(self) -> frozenset[str]:
        """Names bound to what Matplotlib gave: figures and axes."""
        found = set[str]()
        for statement in self.statements:
            value = getattr(statement.node, "value", None)
            path = self.paths.get(root_name(value), "") if value is not None else ""
            if path.startswith("matplotlib"):
                found |= statement.names
        return frozenset(found)

    # -- reasons for having no program

    def _check(self, cell: int, earlier: list[int]) -> None:
        kept = [*earlier, *(s.index for s in self.of(cell))]
        for k in sorted({self.statements[i].cell for i in kept} | {cell}):
            for line, magic in self.cells[k].magics:
                raise NoFaithfulProgram(cell, k, line, f"{magic} here")
        for statement in (self.statements[i] for i in kept):
            line = statement.node.lineno
            of_its_own = isinstance(statement.node, DEFINITIONS) or statement.is_import
            if self.cells[statement.cell].awaits and not of_its_own:
                why = "it awaits outside of a function"
                raise NoFaithfulProgram(cell, statement.cell, line, why)
            missing = self.effects[statement.index].missing
            if statement.fails:
                missing = missing & libraries.IPYTHON
            for name in sorted(missing)[:1]:
                why = f"`{name}` is not defined by a statement above"
                if name in libraries.IPYTHON:
                    why = f"`{name}` exists only in IPython"
                raise NoFaithfulProgram(cell, statement.cell, line, why)

    # -- following the statements

    def _add(self, k: int, node: ast.stmt) -> CodeStatement:
        cell = self.cells[k]
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(d.lineno for d in decorators)])
        last = node.end_lineno or node.lineno
        index, raises = len(self.statements), cell.source.raises is not None
        statement = CodeStatement(
            index,
            k,
            node,
            first,
            last,
            frozenset(name for name, _ in bindings(node)),
            fails=raises and first <= cell.fails_at <= last,
            runs=not raises or first <= cell.fails_at,
        )
        self.statements.append(statement)
        self.effects.append(self._follow(statement) if statement.runs else Effects())
        return statement

    def _follow(self, statement: CodeStatement) -> Effects:
        scope = self._scope
        before = dict(scope.names), dict(scope.histories)
        follower = Follower(scope, is_block=hasattr(statement.node, "body"))
        follower.look_up(libraries.SETTINGS, self._scope)
        follower.statement(statement.node, self._scope)
        found = follower.effects
        settings = self._scope.names[libraries.SETTINGS]
        if found.hides_names or _imports_all(statement.node):
            self._hides = True
            found.needs |= (1 << statement.index) - 1
            found.changed |= settings
        if self._hides and found.missing - libraries.IPYTHON:
            found.needs |= (1 << statement.index) - 1
            found.missing &= libraries.IPYTHON
        if self._is_setting(statement, found):
            found.changed |= settings
        if statement.fails and not hasattr(statement.node, "body"):
            scope.names, scope.histories = before  # it binds nothing, since it fails
            found.bound.clear()
            found.changed -= settings
        found.remember(self._scope, statement.index)
        return found

    def _is_setting(self, statement: CodeStatement, found: Effects) -> bool:
        """Whether later cells may rely on a statement without naming it."""
        node = statement.node
        if isinstance(node, ast.Import):
            # An import that nothing reads is there for what it does.
            return not {name for name, _ in imports(node)} & self.names_read
        shown = isinstance(node, ast.Expr) and (
            found.prints or not isinstance(node.value, ast.Call)
        )
        keep = "keep" in self.cells[statement.cell].source.tags
        return keep and not shown and not isinstance(node, ast.Assert)


def bindings(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """The names of the page that a statement may bind, and the path of an import.

    >>> list(bindings(ast.parse("import jax.numpy as jnp").body[0]))
    [('jnp', 'jax.numpy')]
    """
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from imports(node)
    else:
        yield from ((name, "") for name in bound_names([node]))


def _names_read(cells: Iterable[ParsedCell]) -> Iterator[str]:
    for cell in cells:
        for node in cell.nodes:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                    yield inner.id


def _indices(mask: Mask) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _imports_all(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names)


def _returns_nothing(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return False
    values = (n.value for n in ast.walk(node) if isinstance(n, ast.Return))
    lazy = any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(node))
    return not lazy and all(v is None for v in values)


__all__ = ["CodeStatement", "NoFaithfulProgram", "Page", "bindings"]
