"""Which statements of a page a cell depends on.

`Page` walks through the statements in order (see `effects`) and notes for each which of
those before it had made what it reads and what it changes. What a cell needs is what
its statements need, what these need, and so on back.

What the syntax does not show is followed under names of our own: the settings, NumPy's
hidden random state, the files, and the traces that JAX keeps of a function. The last
matters on pages about tracing: a call that prints only while it is traced shows
something else when an earlier call is left out.

The walk errs on the side of keeping: a statement too many makes a program longer, one
too few makes it wrong.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from . import known
from .cells import ParsedCell, SourceCell, parse
from .effects import Effects
from .objects import Mask
from .run import Binding, State, TooMuch

WAY_OUT = "rewrite it in plain Python, or give the reason in the cell's `no-program`"


class NoFaithfulProgram(Exception):
    """No program can be told from the source that would do what the page does.

    Attributes:
        cell: index of the cell whose program was asked for.
        line: line in the cell where the reason stands, from 1.
        at: index of the cell where the reason stands.
        why: the reason.
    """

    def __init__(self, cell: int, at: int, line: int, why: str, way_out: str) -> None:
        self.cell, self.at, self.line, self.why = cell, at, line, why
        where = f"line {line}" if at == cell else f"cell {at}, line {line}"
        super().__init__(f"cell {cell}: no faithful program: {where}: {why}; {way_out}")


@dataclass(frozen=True)
class Statement:
    """One top-level statement of a page.

    Attributes:
        first, last: its lines in the cell, from 1, decorators included.
        fails: whether it raises what its cell announces.
        runs: False if it stands below one of its cell that fails.
    """

    index: int
    cell: int
    node: ast.stmt
    first: int
    last: int
    fails: bool = False
    runs: bool = True

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, ast.Import | ast.ImportFrom)


@dataclass(frozen=True)
class Needs:
    """What one statement needs of those before it, and does besides.

    Attributes:
        statements: those that it depends on, directly or through others.
        missing: the names that it reads and that nothing defines.
        hidden: what hides which names it uses: (line, words).
        prints: whether it may print; `prints_traced` whether it may do so where the
            page did not, since something is traced for the first time in the program;
            `prints_below` whether another process prints for it.
        sets_environment: whether it sets what a later import may read.
        writes_files: whether it may write files.
        runs_libraries: whether it calls libraries, which may print when asked to.
        showing_changes: whether making text of its value changes something.
    """

    statements: Mask
    missing: frozenset[str] = frozenset()
    hidden: tuple[tuple[int, str], ...] = ()
    prints: bool = False
    prints_traced: bool = False
    prints_below: bool = False
    sets_environment: bool = False
    writes_files: bool = False
    runs_libraries: bool = False
    showing_changes: bool = False


class Page:
    """The statements of a page and what each of them needs.

    >>> page = Page([SourceCell("a = 1; b = 2"), SourceCell("a += 1"), SourceCell("a")])
    >>> [page.statements[i].node.lineno for i in page.needed(2)], page.needed(2)
    ([1, 1], [0, 2])
    """

    def __init__(self, cells: Sequence[SourceCell]) -> None:
        self.cells = [parse(cell) for cell in cells]
        self.statements: list[Statement] = []
        self.needs: list[Needs] = []
        self.names_used = frozenset(self._names_read())
        self._state = State(donates=any(map(_donates, self.cells)))
        self._given_up = False
        for k, cell in enumerate(self.cells):
            self._state.canvas = None  # the notebook closes a cell's figures
            for node in cell.nodes:
                self._add(k, node)

    def of(self, cell: int) -> list[Statement]:
        """The statements of one cell."""
        return self._of_cells.get(cell, [])

    @cached_property
    def _of_cells(self) -> dict[int, list[Statement]]:
        found: dict[int, list[Statement]] = {}
        for statement in self.statements:
            found.setdefault(statement.cell, []).append(statement)
        return found

    def needed(self, cell: int) -> list[int]:
        """Indices of the earlier statements that a cell needs, in the page's order.

        Raises:
            NoFaithfulProgram: what the cell does cannot be told from the source.
        """
        own = [s.index for s in self.of(cell)]
        needs = 0
        for i in own:
            needs |= self.needs[i].statements
        earlier = [i for i in _indices(needs) if i not in own]
        self._check(cell, earlier, own)
        return earlier

    def above(self, cell: int) -> list[int]:
        """Indices of all statements above a cell that the page runs.

        Raises:
            NoFaithfulProgram: one of them cannot be told from the source.
        """
        found = [s.index for s in self.statements if s.cell < cell and s.runs]
        for k in range(cell):
            for line, magic in self.cells[k].magics:
                raise NoFaithfulProgram(cell, k, line, f"{magic} here", WAY_OUT)
        self._check(cell, found, [s.index for s in self.of(cell)])
        return found

    # -- what the text of a program asks

    def is_silent(self, statement: Statement) -> bool:
        """Whether a statement prints nothing when a program runs it again."""
        needs, prints = self.needs[statement.index], self._prints(statement.cell)
        if needs.prints_traced:
            return False
        if needs.prints:
            return prints is False
        # The cell printed and nothing in it is known to: a library was asked to, by
        # `verbose=1` say, or is one that no table knows.
        known_to = any(self.needs[s.index].prints for s in self.of(statement.cell))
        return not (prints and not known_to and needs.runs_libraries)

    def _prints(self, cell: int) -> bool | None:
        return self.cells[cell].source.prints

    @property
    def paths(self) -> Mapping[str, str]:
        """The dotted path behind each name that the page imports."""
        return self._state.paths

    @property
    def drawing_names(self) -> set[str]:
        """Names bound to what Matplotlib gave: figures and axes."""
        return self._state.drawing_names

    @cached_property
    def import_paths(self) -> dict[str, set[str]]:
        """For each name that a top-level import binds, what else it is bound to.

        Other statements that bind it count as the path `?`.
        """
        found: dict[str, set[str]] = {}
        for binds in self._bindings:
            for name, path in binds:
                found.setdefault(name, set()).add(path)
        return found

    @cached_property
    def _bindings(self) -> list[list[tuple[str, str]]]:
        return [list(bindings(statement.node)) for statement in self.statements]

    def gives_none(self, name: str) -> bool:
        """Whether a name is only ever a function of the page without a value."""
        return bool(self._makers.get(name)) and all(
            map(_returns_nothing, self._makers[name])
        )

    @cached_property
    def _makers(self) -> dict[str, list[ast.stmt]]:
        found: dict[str, list[ast.stmt]] = {}
        for statement, binds in zip(self.statements, self._bindings, strict=True):
            for name, _ in binds:
                found.setdefault(name, []).append(statement.node)
        return found

    def method_gives_none(self, name: str) -> bool:
        """Whether each method of this name in the page's classes has no value."""
        methods = self._methods.get(name, [])
        return bool(methods) and all(map(_returns_nothing, methods))

    @cached_property
    def _methods(self) -> dict[str, list[ast.stmt]]:
        found: dict[str, list[ast.stmt]] = {}
        classes = (s.node for s in self.statements if isinstance(s.node, ast.ClassDef))
        for node in classes:
            for method in node.body:
                found.setdefault(getattr(method, "name", ""), []).append(method)
        return found

    # -- reasons for having no program

    def _check(self, cell: int, earlier: list[int], own: list[int]) -> None:
        cells = {self.statements[i].cell for i in earlier} | {cell}
        for k in range(cell + 1):
            for line, magic in self.cells[k].magics:
                if k in cells:
                    raise NoFaithfulProgram(cell, k, line, f"{magic} here", WAY_OUT)
        kept = {*earlier, *own}
        for statement in self.statements:
            if statement.cell <= cell:
                self._check_hidden(cell, statement, statement.index in kept)
            if statement.index in kept:
                self._check_missing(cell, statement)

    def _check_hidden(self, cell: int, statement: Statement, kept: bool) -> None:
        for line, what in self.needs[statement.index].hidden:
            # These may bind names that no source shows, so they count when not kept.
            if kept or what in ("import *", "exec()", "globals()"):
                why = f"{what} hides which names are used"
                at = line or statement.first
                raise NoFaithfulProgram(cell, statement.cell, at, why, WAY_OUT)

    def _check_missing(self, cell: int, statement: Statement) -> None:
        missing = self.needs[statement.index].missing
        if not missing or (statement.fails and not missing & known.IPYTHON):
            return
        name = min(missing)
        why = f"`{name}` is not defined by a statement above"
        if name in known.IPYTHON:
            why = f"`{name}` exists only in IPython"
        line = statement.node.lineno
        raise NoFaithfulProgram(cell, statement.cell, line, why, WAY_OUT)

    # -- the walk

    def _names_read(self) -> Iterator[str]:
        for cell in self.cells:
            for inner in itertools.chain.from_iterable(cell.walked):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                    yield inner.id

    def _add(self, k: int, node: ast.stmt) -> None:
        cell = self.cells[k]
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(d.lineno for d in decorators)])
        last = node.end_lineno or node.lineno
        index, raises = len(self.statements), cell.source.raises is not None
        fails = raises and first <= cell.fails_at <= last
        runs = not raises or first <= cell.fails_at
        statement = Statement(index, k, node, first, last, fails, runs)
        self.statements.append(statement)
        self.needs.append(self._walk(statement) if runs else Needs(0))

    def _walk(self, statement: Statement) -> Needs:
        if self._given_up:
            return self._give_up(statement)
        scopes = self.cells[statement.cell].scopes
        run = Effects(self._state, statement.index, scopes)
        run.look(known.SETTINGS)
        before = dict(self._state.names) if statement.fails else {}
        try:
            run.statement(statement.node)
            showing = self._show(statement, run)
        except (TooMuch, RecursionError):
            self._given_up = True
            return self._give_up(statement)
        if self._is_setting(statement, run):
            run.touch(known.SETTINGS)
        if statement.fails:
            self._undo(statement, before)
        else:
            run.end()
        return Needs(
            self._closed(run.needs & ~run.bit),
            frozenset(run.missing),
            tuple(run.hidden),
            run.prints,
            run.prints_traced,
            run.prints_below,
            run.environment,
            known.FILES in run.touched,
            run.runs_libraries,
            showing,
        )

    def _closed(self, direct: Mask) -> Mask:
        found = direct
        for i in _indices(direct):
            found |= self.needs[i].statements
        return found

    def _show(self, statement: Statement, run: Effects) -> bool:
        """Makes text of the value that the page displays."""
        node, cell = statement.node, self.cells[statement.cell]
        if not isinstance(node, ast.Expr) or node is not cell.nodes[-1]:
            return False
        if cell.source.displays is False:
            return False
        with run.watched() as watch:
            run.show(run.last)
        return watch.changes

    def _is_setting(self, statement: Statement, run: Effects) -> bool:
        """Whether later cells may rely on a statement without naming it."""
        node = statement.node
        if isinstance(node, ast.Import):
            # An import that nothing reads is there for what it does.
            names = {name for name, _ in bindings(node)}
            return not names & self.names_used
        shown = isinstance(node, ast.Expr) and (
            run.prints or not isinstance(node.value, ast.Call)
        )
        keep = "keep" in self.cells[statement.cell].source.tags
        return keep and not shown and not isinstance(node, ast.Assert)

    def _undo(self, statement: Statement, before: dict[str, Binding]) -> None:
        """Takes back what a statement would have bound, had it not failed."""
        names, node = self._state.names, statement.node
        simple = not hasattr(node, "body") or isinstance(node, DEFINITIONS)
        if simple:  # a setting that is refused is not set
            self._state.hidden[known.SETTINGS].history &= ~(1 << statement.index)
            self._state.deep.clear()
        for name in [*names]:
            new, old = names[name], before.get(name)
            if new is old:
                continue
            if simple and not isinstance(node, ast.AugAssign):
                if old is None:
                    del names[name]
                else:
                    names[name] = old
            elif old is not None:
                history = new.history | old.history
                names[name] = Binding(new.value | old.value, history)

    def _give_up(self, statement: Statement) -> Needs:
        """Keeps all that stands above, here and in all that follows.

        What the statement does besides is not known, so that it may print; and it may
        have bound anything to its names, so that nothing below it can be followed.
        """
        above = (1 << statement.index) - 1
        bit = 1 << statement.index
        for name, _ in bindings(statement.node):
            self._state.names[name] = Binding(history=bit)
        for hidden in self._state.hidden.values():
            hidden.history |= above | bit
        self._state.deep.clear()
        return Needs(above, prints=True)


DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _indices(mask: Mask) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _donates(cell: ParsedCell) -> bool:
    return any("donate" in line or ".delete(" in line for line in cell.lines)


def bindings(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """The names of the page that a statement may bind: (name, path of an import).

    The path is `?` for what is no import.

    >>> list(bindings(ast.parse("import jax.numpy as jnp").body[0]))
    [('jnp', 'jax.numpy')]
    """
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield alias.asname or top, alias.name if alias.asname else top
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"
    else:
        yield from ((name, "?") for name in _bound(node))


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            yield node.id
        return
    if isinstance(node, DEFINITIONS):
        yield node.name
        # Its body has names of its own, apart from those that it declares global.
        for inner in ast.walk(node):
            if isinstance(inner, ast.Global):
                yield from inner.names
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from (name for name, _ in bindings(node))
        return
    for name in (getattr(node, "name", None), getattr(node, "rest", None)):
        if isinstance(name, str):
            yield name
    if not isinstance(node, ast.Lambda | ast.Constant | ast.Attribute):
        for child in ast.iter_child_nodes(node):
            yield from _bound(child)


def _returns_nothing(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return False
    values = (n.value for n in ast.walk(node) if isinstance(n, ast.Return))
    lazy = any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(node))
    return not lazy and all(v is None for v in values)
