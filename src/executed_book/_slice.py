"""Which statements of a page a cell depends on.

`Page` runs through the statements in order and keeps, for every name, the statements
that made its value: the one that bound it and those that changed it since. What a
statement needs is then the history of the names it reads, and so on back.

What the syntax does not show is followed under names of our own (see `_facts`): the
global settings, NumPy's hidden random state, and the trace cache of each function that
JAX compiles. The last one matters on pages about tracing: a call that prints only while
it is traced shows something else when an earlier call is left out.

The analysis errs on the side of keeping: a statement too many makes a program longer,
one too few makes it wrong.
"""

import ast
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from IPython.core.inputtransformer2 import TransformerManager

from . import _facts, _known
from ._facts import Facts


@dataclass(frozen=True)
class SourceCell:
    """One code cell of a page.

    Args:
        code: its source, magics included.
        tags: the cell's tags; those tagged `keep` set state for all later cells.
        raises: the announced failure, `"TypeError: words"`, or None.
        displays: whether the executed page shows a value for the last expression;
            None if that is not known, which is then told from the syntax.
        no_program: the chapter's reason for having no program, or None.
    """

    code: str
    tags: frozenset[str] = frozenset()
    raises: str | None = None
    displays: bool | None = None
    no_program: str | None = None


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

    `first` and `last` are its lines in the cell, from 1, decorators included.
    """

    index: int
    cell: int
    node: ast.stmt
    first: int
    last: int
    facts: Facts

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, ast.Import | ast.ImportFrom)


@dataclass(frozen=True)
class ParsedCell:
    """A cell in plain Python, its magics replaced by what they run."""

    source: SourceCell
    lines: tuple[str, ...]
    nodes: tuple[ast.stmt, ...] = ()
    # Lines that hold a magic with no counterpart in Python, and the magic.
    magics: tuple[tuple[int, str], ...] = ()
    is_python: bool = True


WAY_OUT = "rewrite it in plain Python, or give the reason in the cell's `no-program`"
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FRESH = (ast.Constant, ast.Compare, ast.UnaryOp, ast.JoinedStr, ast.Lambda)


# -- from a cell to Python

# Magics that run the code they are given, and those that only concern the notebook.
_RUNS_ITS_CODE = frozenset({"time", "timeit", "capture", "prun"})
_NOTEBOOK_ONLY = frozenset({"matplotlib", "config", "load_ext", "autoreload", "xmode"})
_OPTION = re.compile(r"\s*(?:-[nr]\s*\d+|-[a-zA-Z]+)(?=\s|$)")


def parse(cell: SourceCell) -> ParsedCell:
    """A cell's statements, after IPython's own transformation of its magics.

    `%timeit`, `%time` and their cell forms become the code they run, once; magics that
    only concern the notebook go; others are listed in `magics`. What they time is left
    out: a program gives the value, and a timing is never the same twice.

    >>> parse(SourceCell("%time x = 1")).lines
    ('x = 1',)
    """
    source, magic = _cell_magic(cell.code)
    if cell.code.lstrip("\n").startswith("%%timeit"):
        cell = replace(cell, displays=False)
    text = TransformerManager().transform_cell(source) if source.strip() else ""
    skipped = len(source) - len(source.lstrip("\n"))
    lines = tuple(("\n" * skipped + text).rstrip("\n").split("\n"))
    try:
        tree = ast.parse("\n".join(lines))
    except SyntaxError as error:
        if cell.raises is not None:
            return ParsedCell(cell, tuple(cell.code.split("\n")), is_python=False)
        why = (error.lineno or 1, f"not plain Python ({error.msg})")
        return ParsedCell(cell, lines, magics=(why,), is_python=False)
    lines, magics = _plain(tree, list(lines))
    lines = _one_a_line(lines)
    nodes = tuple(ast.parse("\n".join(lines)).body)
    return ParsedCell(cell, lines, nodes, tuple(magics) + magic)


def _cell_magic(code: str) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Takes off a leading `%%magic` line, leaving the line empty."""
    stripped = code.lstrip("\n")
    if not stripped.startswith("%%"):
        return code, ()
    first, _, rest = stripped.partition("\n")
    name, _, argument = first[2:].partition(" ")
    if name not in _RUNS_ITS_CODE:
        return rest, ((1, f"%%{name}"),)
    setup = _OPTION.sub("", argument) if name == "timeit" else ""
    return "\n" * (len(code) - len(stripped)) + setup.strip() + "\n" + rest, ()


def _plain(
    tree: ast.Module, lines: list[str]
) -> tuple[tuple[str, ...], list[tuple[int, str]]]:
    magics = []
    bare = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        called = _ipython_call(node)
        if not called:
            continue
        method, arguments = called
        line = node.lineno - 1
        code = _magic_code(method, arguments) if id(node) in bare else None
        if code is None:
            name = arguments[0] if method == "run_line_magic" else method
            magics.append((node.lineno, f"%{name}"))
            continue
        # A magic takes the rest of its line, so this is all of it.
        start = len(lines[line].encode()[: node.col_offset].decode())
        indented = start > 0
        lines[line] = lines[line][:start] + (code or ("pass" if indented else ""))
    return tuple(lines), magics


def _one_a_line(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Puts top-level statements that share a line on lines of their own."""
    split = list(lines)
    nodes = ast.parse("\n".join(lines)).body
    for before, node in reversed(list(itertools.pairwise(nodes))):
        if before.end_lineno == node.lineno:
            raw = split[node.lineno - 1].encode()
            first, rest = raw[: before.end_col_offset], raw[node.col_offset :]
            split[node.lineno - 1 : node.lineno] = [first.decode(), rest.decode()]
    return tuple(split)


def _ipython_call(node: ast.AST) -> tuple[str, list[str]] | None:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    owner = node.func.value
    if not (isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name)):
        return None
    if owner.func.id != "get_ipython":
        return None
    return node.func.attr, [str(getattr(a, "value", "")) for a in node.args]


def _magic_code(method: str, arguments: list[str]) -> str | None:
    """What a line magic runs; empty for a notebook's own, None if it is unknown."""
    if method != "run_line_magic":
        return None
    name, argument = arguments[0], arguments[1]
    if name in _NOTEBOOK_ONLY:
        return ""
    if name not in _RUNS_ITS_CODE:
        return None
    code = _OPTION.sub("", argument).strip()
    return f"{code};" if name == "timeit" else code  # %timeit shows no value


def _conflict(
    one: dict[str, frozenset[int] | None], other: dict[str, frozenset[int] | None]
) -> bool:
    return any(one[name] != other[name] for name in one.keys() & other.keys())


def _returns_nothing(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return False
    values = (n.value for n in ast.walk(node) if isinstance(n, ast.Return))
    lazy = any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(node))
    return not lazy and all(v is None for v in values)


# -- the page


@dataclass
class _State:
    """What the page holds after the statements walked so far."""

    history: dict[str, frozenset[int]] = field(default_factory=dict)
    objects: dict[str, frozenset[object]] = field(default_factory=dict)
    carries: dict[str, frozenset[int]] = field(default_factory=dict)
    stateful: set[str] = field(default_factory=set)
    compiled: set[int] = field(default_factory=set)
    # For each function, the versions of its globals in every call so far.
    calls: dict[int, list[dict[str, frozenset[int] | None]]] = field(
        default_factory=dict
    )


@dataclass(frozen=True)
class Needs:
    """What one statement needs of those before it."""

    statements: frozenset[int]
    missing: frozenset[str]
    prints: bool


class Page:
    """The statements of a page and what each of them needs.

    >>> page = Page([SourceCell("a = 1; b = 2"), SourceCell("a += 1"), SourceCell("a")])
    >>> [page.statements[i].node.lineno for i in page.needed(2)], page.needed(2)
    ([1, 1], [0, 2])
    """

    def __init__(self, cells: Sequence[SourceCell]) -> None:
        self.cells = [parse(cell) for cell in cells]
        self.paths = _facts.import_paths(n for c in self.cells for n in c.nodes)
        self.statements: list[Statement] = []
        self.needs: list[Needs] = []
        self._state = _State()
        self.names_used = self._names_used()
        for k, cell in enumerate(self.cells):
            for j, node in enumerate(cell.nodes):
                # The statement that fails is the last one, and leaves nothing behind.
                fails = cell.source.raises is not None and j == len(cell.nodes) - 1
                self._add(k, node, keeps=not fails)

    def of(self, cell: int) -> list[Statement]:
        """The statements of one cell."""
        return [s for s in self.statements if s.cell == cell]

    def needed(self, cell: int) -> list[int]:
        """Indices of the earlier statements that a cell needs, in the page's order.

        Raises:
            NoFaithfulProgram: what the cell does cannot be told from the source.
        """
        own = {s.index for s in self.of(cell)}
        needs = frozenset[int]().union(*(self.needs[i].statements for i in own))
        self._check(cell, sorted(needs | own))
        return sorted(needs - own)

    @property
    def drawing_names(self) -> set[str]:
        """Names bound to what Matplotlib gave: figures and axes."""
        flows = (flow for s in self.statements for flow in s.facts.flows)
        found = set[str]()
        for flow in flows:
            path = _facts.dotted(getattr(flow.value, "func", flow.value), self.paths)
            if (path or "").startswith("matplotlib."):
                found |= flow.names
        return found

    def gives_none(self, name: str) -> bool:
        """Whether a name is only ever a function of the page without a value."""
        bound = [s for s in self.statements if name in s.facts.binds | s.facts.may_bind]
        return bool(bound) and all(_returns_nothing(s.node) for s in bound)

    def method_gives_none(self, name: str) -> bool:
        """Whether each method of this name in the page's classes has no value."""
        classes = (s.node for s in self.statements if isinstance(s.node, ast.ClassDef))
        methods = [m for c in classes for m in c.body if getattr(m, "name", "") == name]
        return bool(methods) and all(map(_returns_nothing, methods))

    # -- reasons for having no program

    def _check(self, cell: int, indices: list[int]) -> None:
        for k in range(cell + 1):
            for line, magic in self.cells[k].magics:
                if k == cell or any(self.statements[i].cell == k for i in indices):
                    raise NoFaithfulProgram(cell, k, line, f"{magic} here", WAY_OUT)
        for statement in self.statements:
            kept = statement.index in indices
            if statement.cell <= cell:
                self._check_hidden(cell, statement, kept)
            if kept:
                self._check_missing(cell, statement)

    def _check_hidden(self, cell: int, statement: Statement, kept: bool) -> None:
        for line, what in statement.facts.hidden:
            # These may bind names that no source shows, so they count when not kept.
            if kept or what in ("import *", "exec()", "globals()"):
                why = f"{what} hides which names are used"
                raise NoFaithfulProgram(cell, statement.cell, line, why, WAY_OUT)

    def _check_missing(self, cell: int, statement: Statement) -> None:
        announced = self.cells[statement.cell].source.raises is not None
        missing = self.needs[statement.index].missing
        if not missing or (announced and not missing & _known.IPYTHON):
            return
        name = min(missing)
        why = f"`{name}` is not defined by a statement above"
        if name in _known.IPYTHON:
            why = f"`{name}` exists only in IPython"
        raise NoFaithfulProgram(
            cell, statement.cell, statement.node.lineno, why, WAY_OUT
        )

    # -- the walk

    def _names_used(self) -> set[str]:
        loads = (n for c in self.cells for t in c.nodes for n in ast.walk(t))
        names = (n for n in loads if isinstance(n, ast.Name))
        return {n.id for n in names if isinstance(n.ctx, ast.Load)}

    def _add(self, cell: int, node: ast.stmt, keeps: bool) -> None:
        facts = _facts.facts(node, self.paths)
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(d.lineno for d in decorators)])
        index = len(self.statements)
        last = node.end_lineno or node.lineno
        statement = Statement(index, cell, node, first, last, facts)
        self._settings(statement)
        self.statements.append(statement)
        self._walk(statement, keeps)

    def _settings(self, statement: Statement) -> None:
        """Marks what later cells rely on without naming it."""
        node, facts = statement.node, statement.facts
        keep = "keep" in self.cells[statement.cell].source.tags
        shown = isinstance(node, ast.Expr) and (
            facts.prints or not isinstance(node.value, ast.Call)
        )
        # An import that nothing reads is there for what it does.
        silent = isinstance(node, ast.Import) and not facts.imports & self.names_used
        if silent or (keep and not shown and not isinstance(node, ast.Assert)):
            facts.mutates.add(_known.SETTINGS)

    def _walk(self, statement: Statement, keeps: bool) -> None:
        state, facts, i = self._state, statement.facts, statement.index
        own = facts.later if facts.runs_own else _facts.Later()
        reads = facts.reads | own.reads | {_known.SETTINGS}
        names, run = self._reach(reads, facts.invoked | own.reads)
        changed = own.mutates | facts.mutates | self._changed_by_calls(statement)
        for s in run:
            changed |= self.statements[s].facts.later.mutates
        self._compile(facts)
        caches, stale = self._caches(run, statement)
        names |= stale | changed
        direct = frozenset[int]().union(
            *(state.history.get(n, frozenset()) for n in names)
        )
        statements = direct.union(*(self.needs[s].statements for s in direct))
        known = state.history.keys() | _known.BUILTINS
        missing = {n for n in facts.reads - known if not n.startswith("<")}
        laters = [own, *(self.statements[s].facts.later for s in run)]
        prints = facts.prints or any(later.prints for later in laters)
        self.needs.append(Needs(statements - {i}, frozenset(missing), prints))
        if keeps:
            if facts.clears_caches:
                self._clear_caches(i)
            self._change(i, changed | caches)
            self._bind(statement)

    def _reach(
        self, reads: Iterable[str], invoked: Iterable[str]
    ) -> tuple[set[str], set[int]]:
        """The names read, and the definitions that run, when these are called now."""
        names, run, queue = set(reads), set[int](), list(invoked)
        while queue:
            for s in self._state.carries.get(queue.pop(), frozenset()) - run:
                run.add(s)
                # The definition may be the statement that is being walked itself.
                if s < len(self.statements):
                    later = self.statements[s].facts.later
                    names |= later.reads
                    queue += later.reads
        return names, run

    def _compile(self, facts: Facts) -> None:
        _, reached = self._reach((), facts.reads)
        traced = facts.traces or any(self.statements[s].facts.traces for s in reached)
        if traced:
            self._state.compiled |= reached

    def _caches(self, run: set[int], statement: Statement) -> tuple[set[str], set[str]]:
        """The trace caches that a statement fills, and those it depends on.

        It depends on one if tracing does more than compute, or if a global that the
        function reads, or the object whose method it is, was another in an earlier
        call.
        """
        state, filled, depends = self._state, set[str](), set[str]()
        facts = statement.facts
        if facts.reads_caches:
            _, run = self._reach((), facts.reads)
        for s in run & state.compiled:
            later = self.statements[s].facts.later
            data = (later.reads - self.paths.keys()) | self._instances(s, facts)
            version = {name: state.history.get(name) for name in data}
            before = state.calls.setdefault(s, [])
            filled.add(f"<cache {s}>")
            impure = later.prints or later.mutates or facts.reads_caches
            if impure or any(_conflict(v, version) for v in before):
                depends.add(f"<cache {s}>")
            before.append(version)
        return filled, depends

    def _instances(self, s: int, facts: Facts) -> set[str]:
        """The names of a class's instances among those that a statement calls."""
        if not isinstance(self.statements[s].node, ast.ClassDef):
            return set()
        carries, history = self._state.carries, self._state.history
        named = {n for n in facts.called if s in carries.get(n, frozenset())}
        return {n for n in named if s not in history.get(n, frozenset())}

    def _clear_caches(self, i: int) -> None:
        for s, before in self._state.calls.items():
            self._state.history[f"<cache {s}>"] = frozenset({i})
            before.clear()

    def _change(self, i: int, changed: set[str]) -> None:
        state = self._state
        touched = frozenset[object]().union(
            *(state.objects.get(n, frozenset()) for n in changed)
        )
        aliases = {n for n, held in state.objects.items() if held & touched}
        for name in changed | aliases:
            state.history[name] = state.history.get(name, frozenset()) | {i}

    # -- calls that change what they are given

    def _changed_by_calls(self, statement: Statement) -> set[str]:
        facts, changed = statement.facts, set[str]()
        for call in facts.calls:
            if self._changes_arguments(call):
                changed |= self._roots(call)
        for call in facts.bare:
            changed |= self._changed_by_bare(call, self._is_shown(statement, call))
        return changed | {n for n in facts.called if self._is_stateful(n)}

    def _is_shown(self, statement: Statement, call: ast.Call) -> bool:
        cell = self.cells[statement.cell]
        last = cell.nodes[-1]
        is_last = isinstance(last, ast.Expr) and last.value is call
        return is_last and bool(cell.source.displays)

    def _is_stateful(self, name: str) -> bool:
        state = self._state
        if name in state.stateful:
            return True
        made = state.carries.get(name, frozenset()) - state.history.get(
            name, frozenset()
        )
        return any(self.statements[s].facts.later.stateful for s in made)

    def _changes_arguments(self, call: ast.Call) -> bool:
        """Whether a function of the page is known to change or use up what it gets.

        It may also be called for us, as in `vmap(f)(x)` and `fori_loop(0, n, f, x)`.
        """
        held = (self._state.carries.get(n, frozenset()) for n in _facts.names(call))
        made = frozenset[int]().union(*held)
        known = (self.statements[s].facts for s in made)
        return any(f.later.changes_arguments or f.donates for f in known)

    def _changed_by_bare(self, call: ast.Call, shown: bool) -> set[str]:
        """The names that a call whose value is not kept may have been made to change.

        `shown` says that the page shows the call's value: what gives a value is not
        there for what it changes, apart from a few methods.
        """
        func = call.func
        start = _facts.root(func)
        if start is None or _facts.dotted(start, self.paths):
            return self._changed_by_library(call)
        if isinstance(func, ast.Attribute):
            indexed = isinstance(func.value, ast.Subscript) and (
                isinstance(func.value.value, ast.Attribute)
            )
            at = indexed and func.value.value.attr == "at"
            if func.attr in _known.PURE_METHODS or shown or at:
                return set()
            return self._roots(call) | {start.id}
        if isinstance(func, ast.Name) and not _facts.is_pure_builtin(func.id):
            known = self._state.carries.get(func.id)
            return set() if known or shown else self._roots(call)
        return set()

    def _changed_by_library(self, call: ast.Call) -> set[str]:
        path = _facts.dotted(call.func, self.paths)
        if path is None or path.startswith(_known.ARGUMENTS_STAY):
            return set()
        start = _facts.root(call.func)
        return self._roots(call) | ({start.id} if start else set())

    def _roots(self, call: ast.Call) -> set[str]:
        found = set[str]()
        for argument in [*call.args, *(k.value for k in call.keywords)]:
            found |= _facts.names(argument)
        # Changing an argument does not change a library or a function.
        return {n for n in found if n in self._state.objects}

    # -- bindings

    def _bind(self, statement: Statement) -> None:
        state, facts, i = self._state, statement.facts, statement.index
        meant = [(flow, *self._flow(flow.value, i)) for flow in facts.flows]
        certain = facts.binds - facts.imports
        for name in facts.may_bind | facts.imports:
            state.history[name] = state.history.get(name, frozenset()) | {i}
        for name in certain | facts.deletes:
            state.history[name] = frozenset({i})
            state.objects.pop(name, None)
            state.carries.pop(name, None)
            state.stateful.discard(name)
        for flow, objects, carries, stateful in meant:
            for name in flow.names:
                held = state.objects.get(name, frozenset())
                own = (i, flow.value.lineno) if stateful else (i, name)
                state.objects[name] = held | objects | {own}
                held = state.carries.get(name, frozenset())
                state.carries[name] = held | carries
                if stateful:
                    state.stateful.add(name)
        self._bind_definitions(statement)

    def _bind_definitions(self, statement: Statement) -> None:
        state, facts, i = self._state, statement.facts, statement.index
        in_flows = frozenset[str]().union(*(f.names for f in facts.flows))
        defined = (facts.binds | facts.may_bind) - facts.imports - in_flows
        outer = (state.carries.get(n, frozenset()) for n in facts.reads)
        carried = frozenset({i}).union(*outer)
        for name in defined:
            held = state.carries.get(name, frozenset())
            state.carries[name] = held | carried
        if facts.traces:
            self._compile(replace(facts, reads=facts.reads | defined))

    def _flow(
        self, value: ast.expr, i: int
    ) -> tuple[frozenset[object], frozenset[int], bool]:
        """What a value shares, which definitions it can run, whether it keeps state."""
        roots = self._shared(value)
        objects = frozenset[object]().union(
            *(self._state.objects.get(n, frozenset()) for n in roots)
        )
        carries = frozenset[int]().union(
            *(self._state.carries.get(n, frozenset()) for n in self._functions(value))
        )
        written = any(isinstance(n, ast.Lambda) for n in ast.walk(value))
        if written or self.statements[i].facts.donates:
            carries |= {i}
        return objects, carries, self._keeps_state(value)

    def _keeps_state(self, value: ast.expr) -> bool:
        if isinstance(value, ast.GeneratorExp):
            return True
        if not isinstance(value, ast.Call):
            return False
        path = _facts.dotted(value.func, self.paths) or ""
        name = value.func.id if isinstance(value.func, ast.Name) else ""
        return path.startswith(_known.KEEPS_STATE) or name in _known.ITERATORS

    def _shared(self, value: ast.expr) -> set[str]:
        """The names whose objects a value may be, or hold."""
        if isinstance(value, ast.Name):
            return {value.id}
        if isinstance(value, ast.Attribute | ast.Subscript | ast.Starred | ast.Await):
            return self._shared(value.value)
        if isinstance(value, ast.Call):
            return self._shared_by_call(value)
        if isinstance(value, _FRESH):
            return set()
        if isinstance(value, ast.BinOp):
            parts: Iterable[ast.expr] = [value.left, value.right]
            lists = (ast.List, ast.Tuple, ast.Dict)
            parts = [p for p in parts if isinstance(p, lists)]
        else:
            parts = [n for n in ast.iter_child_nodes(value) if isinstance(n, ast.expr)]
        if isinstance(value, _COMPREHENSIONS):
            return _facts.names(value)
        return set[str]().union(*(self._shared(part) for part in parts))

    def _shared_by_call(self, call: ast.Call) -> set[str]:
        path = _facts.dotted(call.func, self.paths)
        if path is None and isinstance(call.func, ast.Call):
            path = _facts.dotted(call.func.func, self.paths)
        if path and path.startswith(_known.GIVES_NEW):
            return set()
        start = _facts.root(call.func)
        if isinstance(call.func, ast.Name) and call.func.id in _known.NEW_BUILTINS:
            return set()
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in _known.NEW_METHODS
        ):
            return set()
        if start and self._state.carries.get(start.id, frozenset()) & (
            self._state.compiled
        ):
            return set()
        shared = set[str]().union(*(self._shared(a) for a in call.args))
        shared |= set[str]().union(*(self._shared(k.value) for k in call.keywords))
        return shared | ({start.id} if start else set())

    def _functions(self, value: ast.expr) -> set[str]:
        """The names whose functions may be called through a value."""
        if not isinstance(value, ast.Call):
            return self._functions_held(value)
        path = _facts.dotted(value.func, self.paths) or ""
        if path.startswith("jax.lax."):
            return set()
        found = set[str]()
        for argument in [*value.args, *(k.value for k in value.keywords)]:
            found |= self._functions(argument)
        start = _facts.root(value.func)
        if isinstance(value.func, ast.Call) and _facts.is_lazy(
            _facts.dotted(value.func.func, self.paths)
        ):
            return found  # jit(f)(x) gives what f gives
        made = self._state.carries.get(start.id, frozenset()) if start else frozenset()
        makers = (self.statements[s].facts.later.makes_functions for s in made)
        return found | ({start.id} if start and any(makers) else set())

    def _functions_held(self, value: ast.expr) -> set[str]:
        if isinstance(value, ast.Name):
            return {value.id}
        if isinstance(value, (ast.Lambda, *_COMPREHENSIONS)):
            return _facts.names(value)
        children = ast.iter_child_nodes(value)
        parts = (self._functions(c) for c in children if isinstance(c, ast.expr))
        return set[str]().union(*parts)
