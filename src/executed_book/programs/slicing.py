"""Which statements of a page a cell depends on.

`Page` follows the statements in their order (see `following`) and notes for each which
of those above it made what it looks at. What a cell needs is what its statements need,
what these need, and so on back.

This errs in both directions, and says so: a program is run before it is offered, and
one that does not give what its page shows gets further statements from above. Where a
program was repaired, the author may say what its cell needs: `:needs:` names values and
earlier cells.
"""

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..names import Code, bound_by, imports, looked_up, root_name
from . import libraries
from .cells import SourceCell, parse
from .following import Follower
from .things import Effects, Mask, Scope, Thing

#: What reads a clock; the difference of two readings is the time of what runs between.
_CLOCK = re.compile(r"\b(?:time|perf_counter|monotonic|process_time)(?:_ns)?\(\)")


class NoFaithfulProgram(Exception):
    """No program can be told from the source that would do what the page does.

    `at` is the index of the cell that has the reason, `line` the line there (from 1).
    """

    def __init__(self, at: int, line: int, why: str) -> None:
        super().__init__(why)
        self.at, self.line = at, line


@dataclass(frozen=True)
class Statement:
    """One top-level statement of a page's cells.

    Attributes:
        first, last: its lines in the cell, from 1, decorators included.
        names: what it binds.
        fails: whether it raises what its cell announces.
        runs: False if a statement above it in its cell fails.
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
        self.statements: list[Statement] = []
        self.effects: list[Effects] = []
        hidden = {name: frozenset((Thing(),)) for name in libraries.HIDDEN}
        self._scope = Scope(hidden, histories=dict.fromkeys(hidden, 0))
        self._named: list[Mask] = []
        self._begun: Statement | None = None  # the first reading of a clock
        for k, cell in enumerate(self.cells):
            self._named.append(self._declared_needs(cell.source))
            for node in cell.nodes:
                self._add(k, node)

    def of(self, cell: int) -> list[Statement]:
        """The statements of one cell."""
        return [s for s in self.statements if s.cell == cell]

    def needed(self, cell: int, added: Iterable[int] = ()) -> list[int]:
        """Indices of the earlier statements that a cell needs, in the page's order.

        `added` are those that it needs as well, whatever the source says.

        Raises:
            NoFaithfulProgram: what the cell does cannot be told from the source.
        """
        needed, waiting = 0, self._named[cell]
        for index in added:
            waiting |= 1 << index
        for statement in self.of(cell):
            waiting |= self.effects[statement.index].needs
        while waiting:
            index = waiting.bit_length() - 1
            needed |= 1 << index
            waiting = (waiting | self.effects[index].needs) & ~needed
        above = [s for s in self.statements if s.cell != cell]
        earlier = [s.index for s in above if needed >> s.index & 1]
        self._refuse_unfaithful(cell, earlier)
        return earlier

    def _declared_needs(self, cell: SourceCell) -> Mask:
        """What the cell says that it needs: earlier cells, by label, and names.

        A name stands for all statements above that bind it or mention it.
        """
        mask = 0
        for name in cell.needs:
            labelled = {k for k, c in enumerate(self.cells) if c.source.label == name}
            for statement in self.statements:
                uses = name in statement.names or name in looked_up(statement.node)
                if statement.runs and (uses or statement.cell in labelled):
                    mask |= 1 << statement.index
        return mask

    # -- what the text of a program asks

    def is_silent(self, statement: Statement) -> bool:
        """Whether a statement prints nothing when a program runs it again."""
        effects = self.effects[statement.index]
        # Where a cell printed and nothing in it is known to, a library was asked to.
        known_to = any(self.effects[s.index].prints for s in self.of(statement.cell))
        asked = self.cells[statement.cell].source.prints and not known_to
        return not (effects.prints or (asked and effects.calls))

    @cached_property
    def paths(self) -> dict[str, str]:
        """The dotted path behind each name that the page imports."""
        nodes = (s.node for s in self.statements if s.is_import)
        return dict(pair for node in nodes for pair in imports(node))  # type: ignore[arg-type]

    def may_move(self, node: ast.stmt) -> bool:
        """Whether it is an import, and its names hold nothing else on the page."""
        if not isinstance(node, ast.Import | ast.ImportFrom):
            return False
        mine = dict(imports(node))
        for other in (s.node for s in self.statements if s.names & mine.keys()):
            if not isinstance(other, ast.Import | ast.ImportFrom):
                return False
            if any(mine.get(name, path) != path for name, path in imports(other)):
                return False
        return True

    @cached_property
    def procedures(self) -> frozenset[str]:
        """The functions and methods of the page that return nothing."""
        inside = (node for s in self.statements for node in ast.walk(s.node))
        gives = (ast.Return, ast.Yield, ast.YieldFrom)
        return frozenset(
            node.name
            for node in inside
            if isinstance(node, ast.FunctionDef) and not node.decorator_list
            if not any(isinstance(inner, gives) for inner in ast.walk(node))
        )

    @cached_property
    def drawing_names(self) -> frozenset[str]:
        """Matplotlib, and the names bound to what it gave: figures and axes."""
        names = {n for n, path in self.paths.items() if path.startswith("matplotlib")}
        for statement in self.statements:
            value = getattr(statement.node, "value", None)
            if isinstance(value, ast.expr) and root_name(value) in names:
                names |= statement.names
        return frozenset(names)

    # -- reasons for having no program

    def _refuse_unfaithful(self, cell: int, earlier: list[int]) -> None:
        included = [*earlier, *(s.index for s in self.of(cell))]
        for k in sorted({self.statements[i].cell for i in included} | {cell}):
            problem = self.cells[k].problem
            if problem is not None and self.cells[k].source.raises is None:
                raise NoFaithfulProgram(k, *problem)
        for statement in (self.statements[i] for i in included):
            line = statement.node.lineno
            missing = self.effects[statement.index].missing
            if statement.fails:  # perhaps because a name is missing
                missing = missing & libraries.IPYTHON
            for name in sorted(missing)[:1]:
                why = f"`{name}` is not defined by a statement above"
                if name in libraries.IPYTHON:
                    why = f"`{name}` exists only in IPython"
                raise NoFaithfulProgram(statement.cell, line, why)

    # -- following the statements

    def _add(self, k: int, node: ast.stmt) -> None:
        cell = self.cells[k]
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(d.lineno for d in decorators)])
        last = node.end_lineno or node.lineno
        index, raises = len(self.statements), cell.source.raises is not None
        statement = Statement(
            *(index, k, node, first, last, bound_by(node)),
            fails=raises and first <= cell.fails_at <= last,
            runs=not raises or first <= cell.fails_at,
        )
        self.statements.append(statement)
        self.effects.append(self._follow(statement) if statement.runs else Effects())
        text = "\n".join(cell.lines[first - 1 : last])
        if statement.runs and not isinstance(node, Code) and _CLOCK.search(text):
            self._time(statement, is_difference=" - " in text)

    def _time(self, statement: Statement, is_difference: bool) -> None:
        """Have a reading of a clock need all that ran since timing began."""
        begun = self._begun
        if begun is None or (not is_difference and statement.names & begun.names):
            self._begun = statement
            return
        for timed in self.statements[begun.index + 1 : statement.index]:
            self.effects[statement.index].needs |= timed.runs << timed.index

    def _follow(self, statement: Statement) -> Effects:
        scope = self._scope
        before = dict(scope.names), dict(scope.histories)
        follower = Follower(scope)
        settings = follower.look_up(libraries.SETTINGS, scope)
        follower.statement(statement.node, scope)
        effects = follower.effects
        if "keep" in self.cells[statement.cell].source.tags:
            effects.changed |= settings
        if statement.fails and not hasattr(statement.node, "body"):
            scope.names, scope.histories = before  # it binds nothing, since it fails
            effects.bound.clear()
            effects.changed -= settings
        effects.remember(scope, statement.index)
        return effects
