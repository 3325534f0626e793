"""What one statement needs and changes: a walk through its syntax, as Python runs it.

Functions are walked into where they are called, with what the call gives them, so that
a helper's global is the one that the page has at the call. Branches and loops are all
taken, and what they bind is added to what was there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from . import known
from .calls import Calls
from .objects import (
    ITEMS,
    KEYS,
    NOTHING,
    Arguments,
    Box,
    Class,
    Frame,
    Function,
    Instance,
    Later,
    Library,
    Made,
    Super,
    Thing,
    Value,
    Wrapped,
    contents,
    reach,
)
from .run import Binding, State
from .scopes import FUNCTIONS, Scope, parameters

_OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.MatMult: "matmul",
    ast.Div: "truediv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.BitAnd: "and",
    ast.FloorDiv: "floordiv",
}
_COMPARISONS = {
    ast.Eq: "__eq__",
    ast.NotEq: "__ne__",
    ast.Lt: "__lt__",
    ast.LtE: "__le__",
    ast.Gt: "__gt__",
    ast.GtE: "__ge__",
}
_UNARY = {ast.UAdd: "__pos__", ast.USub: "__neg__", ast.Invert: "__invert__"}


class Effects(Calls):
    """The walk of one statement, from its syntax.

    Args:
        state: what the page holds before it.
        index: the statement's place on the page.
        scopes: the scopes of the functions of its cell.
    """

    def __init__(
        self, state: State, index: int, scopes: Mapping[ast.AST, Scope]
    ) -> None:
        super().__init__(state, index)
        self.scopes = scopes
        self.frame: Frame | None = None
        self.returned: Value = NOTHING
        self.yielded: Value = NOTHING
        #: The value of the expression that was a statement last.
        self.last: Value = NOTHING
        #: How many branches of the page's own code the walk is inside of.
        self.branches = 0

    # -- walking

    def value(self, node: ast.expr | None) -> Value:
        """What an expression gives."""
        if node is None:
            return NOTHING
        return _VALUES[type(node)](self, node)

    def statement(self, node: ast.stmt) -> None:
        _STATEMENTS[type(node)](self, node)

    def block(self, nodes: Iterable[ast.stmt]) -> None:
        for node in nodes:
            _STATEMENTS[type(node)](self, node)

    # -- names

    def load(self, name: str, node: ast.expr) -> Value:
        frame = self.frame
        while frame is not None:
            if frame.kind == "class":
                if frame is self.frame and name in frame.fields:
                    return frame.fields[name]
            elif name in frame.own:
                found = frame.fields.get(name, NOTHING)
                if frame.history != self.bit:
                    self.needs |= frame.history | self.deep(found)
                return found
            if name in frame.globals:
                break
            frame = frame.parent
        return self._load_global(name)

    def _load_global(self, name: str) -> Value:
        binding = self.look_up(name)
        if binding is None:
            if name in known.IPYTHON:
                self.missing.add(name)
            elif name in known.BUILTINS:
                return self.state.library(f"builtins.{name}")
            elif not self.branches and self._is_on_page():
                self.missing.add(name)
            return NOTHING
        history = binding.history | self.deep(binding.value)
        self.needs |= history
        self.note_read(name, history)
        return binding.value

    def _is_on_page(self) -> bool:
        frame = self.frame
        while frame is not None and frame.kind == "comprehension":
            frame = frame.parent
        return frame is None

    def assign(self, name: str, value: Value) -> None:
        frame = self.frame
        while frame is not None and frame.kind == "comprehension":
            if name in frame.own:
                self._set_local(frame, name, frame.fields.get(name, NOTHING) | value)
                return
            frame = frame.parent
        if frame is None:
            self._bind_page(name, value)
        elif name in frame.globals:
            self._bind_late(name, value)
        elif frame.kind == "class" or name in frame.own:
            held = frame.fields.get(name, NOTHING) if frame.branches else NOTHING
            self._set_local(frame, name, held | value)
        else:
            self._bind_outer(frame.parent, name, value)

    def _set_local(self, frame: Frame, name: str, value: Value) -> None:
        if frame.fields.get(name) != value:
            frame.fields[name] = value
            self.grown.append(frame.serial)

    def _bind_page(self, name: str, value: Value) -> None:
        names = self.state.names
        old = names.get(name)
        if self.journal is not None and name not in self.journal:
            self.journal[name] = old
        if old is not None and old.value and self.frame is None:
            self.drop(old.value - value)
        self.bind_name(name, Binding(value, self.bit))
        if value and any(map(_is_drawn, value)):
            self.state.drawing_names.add(name)

    def _bind_late(self, name: str, value: Value) -> None:
        """Binds a name of the page from within a function, which may not come there."""
        old = self.state.names.get(name, Binding())
        self._bind_page(name, old.value | value)
        new = self.state.names[name]
        self.bind_name(name, Binding(new.value, old.history | self.bit))
        self.note_change(0)

    def _bind_outer(self, frame: Frame | None, name: str, value: Value) -> None:
        """Binds a name that is declared nonlocal."""
        while frame is not None and (frame.kind == "class" or name not in frame.own):
            frame = frame.parent
        if frame is not None:
            self.keep(frame, value, name)
            self.change(frame)

    # -- targets

    def bind(self, target: ast.expr, value: Value) -> None:
        """Binds a target of an assignment, a loop or a `with`."""
        if isinstance(target, ast.Name):
            self.assign(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target.elts, value)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(self.value(target.value), target.attr, value)
        elif isinstance(target, ast.Subscript):
            self.set_item(self.value(target.value), self.value(target.slice), value)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, value)

    def _unpack(self, targets: Sequence[ast.expr], value: Value) -> None:
        rows = [t.parts for t in value if isinstance(t, Box) and t.parts is not None]
        if rows and len(rows) == len(value):
            parts = _aligned(rows, targets)
            if parts is not None:
                for target, part in zip(targets, parts, strict=True):
                    self._bind_part(target, part)
                return
        held = self.elements(value)
        for target in targets:
            self._bind_part(target, held)

    def _bind_part(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Starred):
            self.bind(target.value, self.box("list", value))
        else:
            self.bind(target, value)

    # -- branches

    def branch(self, *bodies: Callable[[], None], may_skip: bool) -> None:
        """Walks each body from the same names, and joins what they bind.

        `may_skip` says that none of them need run.
        """
        if self.frame is not None:
            self._branch_inside(bodies)
            return
        outer, self.branches = self.journal, self.branches + 1
        before: dict[str, Binding | None] = {}
        ends = []
        names = self.state.names
        for body in bodies:
            self.journal = {}
            body()
            ends.append({name: names.get(name) for name in self.journal})
            before |= {n: b for n, b in self.journal.items() if n not in before}
            for name, old in self.journal.items():
                self.bind_name(name, old)
        self.journal, self.branches = outer, self.branches - 1
        for name, old in before.items():
            after = [end.get(name) for end in ends if name in end]
            if may_skip or len(after) < len(bodies):
                after.append(old)
            if self.journal is not None and name not in self.journal:
                self.journal[name] = old
            self.bind_name(name, _joined(after))

    @property
    def is_certain(self) -> bool:
        function = self.frame.function if self.frame is not None else None
        return not self.branches and not (function and _returns_early(function.node))

    def _branch_inside(self, bodies: Iterable[Callable[[], None]]) -> None:
        frame = self.frame
        while frame is not None and frame.kind == "comprehension":
            frame = frame.parent
        held = self.branches
        self.branches += 1
        if frame is not None:
            frame.branches += 1
        for body in bodies:
            body()
        if frame is not None:
            frame.branches -= 1
        self.branches = held

    def loop(self, body: Callable[[], None]) -> None:
        """Walks a loop's body until a round finds nothing that the last one did not."""

        def rounds() -> None:
            before = self._held()
            body()
            if self._held() != before:
                body()

        self.branch(rounds, may_skip=True)

    def _held(self) -> tuple[object, ...]:
        """What names and things hold, to tell whether a round of a loop adds to it."""
        if self.frame is None:
            changed = self.journal or {}
            values = {
                n: self.state.names[n].value for n in changed if n in self.state.names
            }
        else:
            values = dict(self.frame.fields)
        held = {name: value for name, value in values.items() if value}
        return held, self.state.kept

    # -- expressions

    def _constant(self, node: ast.Constant) -> Value:
        return NOTHING

    def _name(self, node: ast.Name) -> Value:
        return self.load(node.id, node)

    def _attribute_of(self, node: ast.Attribute) -> Value:
        if node.attr in ("__globals__", "f_globals"):
            self.hidden.append((node.lineno if self.frame is None else 0, "globals()"))
        return self.attribute(self.value(node.value), node.attr)

    def _subscript(self, node: ast.Subscript) -> Value:
        value, key = self.value(node.value), self.value(node.slice)
        if not value:
            return NOTHING
        if isinstance(node.slice, ast.Slice):
            return self.item(value, key, slice(None))
        return self.item(value, key, getattr(node.slice, "value", None))

    def _slice_of(self, node: ast.Slice) -> Value:
        return self.value(node.lower) | self.value(node.upper) | self.value(node.step)

    def _starred(self, node: ast.Starred) -> Value:
        return self.elements(self.value(node.value))

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        if not (left or right):
            return NOTHING
        name = _OPERATORS[type(node.op)]
        if name == "mod" and not left:
            self.show(right)  # text % values
        return self.operate((f"__{name}__", f"__r{name}__"), left, right)

    def _unary(self, node: ast.UnaryOp) -> Value:
        value = self.value(node.operand)
        if not value:
            return NOTHING
        if isinstance(node.op, ast.Not):
            self.test(value)
            return NOTHING
        return self.operate((_UNARY[type(node.op)],), value, NOTHING)

    def _boolean(self, node: ast.BoolOp) -> Value:
        values = [self.value(node.values[0])]
        self.branches += 1
        values += [self.value(part) for part in node.values[1:]]
        self.branches -= 1
        for value in values[:-1]:
            self.test(value)
        return NOTHING.union(*values)

    def _compare(self, node: ast.Compare) -> Value:
        left, found = self.value(node.left), NOTHING
        for operator, part in zip(node.ops, node.comparators, strict=True):
            right = self.value(part)
            if isinstance(operator, ast.In | ast.NotIn):
                self._contains(right, left)
            elif type(operator) in _COMPARISONS:
                name = _COMPARISONS[type(operator)]
                self.special(left, (name,), right)
                self.special(right, (name,), left)
                found |= frozenset(t for t in left | right if isinstance(t, Made))
            left = right
        return found

    def _contains(self, container: Value, value: Value) -> None:
        asked = [t for t in container if isinstance(t, Instance)]
        asked = [t for t in asked if t.of.find("__contains__")]
        self.special(asked, ("__contains__",), value)
        held = self.elements(container - frozenset(asked))
        self.special(held | value, ("__eq__", "__hash__"), value)

    def _either(self, node: ast.IfExp) -> Value:
        self.test(self.value(node.test))
        self.branches += 1
        found = self.value(node.body) | self.value(node.orelse)
        self.branches -= 1
        return found

    def _list_of(self, node: ast.List) -> Value:
        return self._box_at(node, "list", NOTHING.union(*map(self.value, node.elts)))

    def _set_of(self, node: ast.Set) -> Value:
        return self._box_at(node, "set", NOTHING.union(*map(self.value, node.elts)))

    def _tuple_of(self, node: ast.Tuple) -> Value:
        parts = [self.value(part) for part in node.elts]
        if not any(parts):
            return NOTHING
        if any(isinstance(part, ast.Starred) for part in node.elts):
            return self.box("tuple", NOTHING.union(*parts))
        return self.row(*parts)

    def _dict_of(self, node: ast.Dict) -> Value:
        keys = NOTHING.union(*(self.value(key) for key in node.keys if key))
        items = NOTHING
        fields: dict[str, Value] = {}
        for key, part in zip(node.keys, node.values, strict=True):
            value = self.value(part)
            if key is None:  # {**other}
                for thing in value:
                    items |= thing.items
                    keys |= thing.fields.get(KEYS, NOTHING)
            else:
                items |= value
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    fields[key.value] = value
        found = self._box_at(node, "dict", items)
        for thing in found:
            self.keep(thing, keys, KEYS)
            for name, value in fields.items():
                if isinstance(value, frozenset) and any(map(_is_code, value)):
                    self.keep(thing, value, name)
        return found

    def _box_at(self, node: ast.expr, kind: str, items: Value) -> Value:
        """A container of this place: the same one in all rounds of a loop."""
        site = node, self.frame
        held = self.sites.get(site)
        if held is None:
            held = self.sites[site] = self.make(Box, kind, items)
        else:
            self.keep(held, items)
        return frozenset((held,))

    def _text(self, node: ast.JoinedStr) -> Value:
        return NOTHING.union(*map(self.value, node.values))

    def _formatted(self, node: ast.FormattedValue) -> Value:
        value = self.value(node.value)
        self.value(node.format_spec)
        if not value:
            return NOTHING
        self.show(value)
        return self.folders(value)

    def _walrus(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self.bind(node.target, value)
        return value

    def _await(self, node: ast.Await) -> Value:
        return self.awaited(self.value(node.value))

    def _yield(self, node: ast.Yield) -> Value:
        self.yielded |= self.value(node.value)
        return NOTHING

    def _yield_from(self, node: ast.YieldFrom) -> Value:
        value = self.value(node.value)
        self.yielded |= self.elements(value)
        return frozenset(t for t in value if not isinstance(t, Later))

    # -- comprehensions

    def _comprehension(
        self,
        generators: Sequence[ast.comprehension],
        parts: Sequence[ast.expr],
        first: Value,
    ) -> list[Value]:
        names = (n for g in generators for n in ast.walk(g.target))
        own = frozenset(n.id for n in names if isinstance(n, ast.Name))
        held = self.frame
        self.frame = self.make(Frame, "comprehension", own, frozenset(), held)
        try:
            found = [NOTHING] * len(parts)
            for _ in range(2):  # the second round sees what the first one changed
                before = self.state.kept
                for place, generator in enumerate(generators):
                    source = first if not place else self.value(generator.iter)
                    self.bind(generator.target, self.elements(source))
                    for condition in generator.ifs:
                        self.test(self.value(condition))
                values = map(self.value, parts)
                found = [old | new for old, new in zip(found, values, strict=True)]
                if self.state.kept == before:
                    break
            return found
        finally:
            self.frame = held

    def _list_comprehension(self, node: ast.ListComp | ast.SetComp) -> Value:
        first = self.value(node.generators[0].iter)
        (items,) = self._comprehension(node.generators, [node.elt], first)
        kind = "list" if isinstance(node, ast.ListComp) else "set"
        return self._box_at(node, kind, items)

    def _dict_comprehension(self, node: ast.DictComp) -> Value:
        first = self.value(node.generators[0].iter)
        parts = [node.key, node.value]
        keys, items = self._comprehension(node.generators, parts, first)
        found = self._box_at(node, "dict", items)
        for thing in found:
            self.keep(thing, keys, KEYS)
        return found

    def _generator(self, node: ast.GeneratorExp) -> Value:
        first = self.value(node.generators[0].iter)
        frame = self.frame

        def run(walk: Effects) -> Value:
            held, walk.frame = walk.frame, frame
            try:
                return walk._comprehension(node.generators, [node.elt], first)[0]
            finally:
                walk.frame = held

        around = frozenset((frame,)) if frame else NOTHING
        return frozenset((self.make(Later, node, run, first | around),))

    # -- calls

    def _call_of(self, node: ast.Call) -> Value:
        function = node.func
        if isinstance(function, ast.Attribute):
            receiver = self.value(function.value)
            given = self._arguments(node)
            self._note_spending(function, receiver)
            return self.call_method(receiver, function.attr, given)
        name = function.id if isinstance(function, ast.Name) else ""
        if name in _NAMED and not self._is_shadowed(name):
            return _NAMED[name](self, node)
        callee = self.value(function)
        return self.call(callee, self._arguments(node))

    def _is_shadowed(self, name: str) -> bool:
        return name in self.state.names

    def _note_spending(self, function: ast.Attribute, receiver: Value) -> None:
        if function.attr == "delete":
            for thing in reach(receiver):
                if isinstance(thing, Box) and thing.kind == "array":
                    self.spend(thing)

    def _arguments(self, node: ast.Call) -> Arguments:
        given = Arguments()
        for part in node.args:
            value = self.value(part)
            if isinstance(part, ast.Starred):
                given.rest |= value
            else:
                constant = _constant_of(part)
                if constant is not _VARIES:
                    given.constants[len(given.positional)] = constant
                given.positional.append(value)
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is None:
                held = (t.items for t in value)
                given.rest |= NOTHING.union(*held)
            else:
                given.keywords[keyword.arg] = value
                constant = _constant_of(keyword.value)
                if constant is not _VARIES:
                    given.constants[keyword.arg] = constant
                elif keyword.arg.startswith("donate"):
                    given.constants[keyword.arg] = _VARIES
        return given

    def _super(self, node: ast.Call) -> Value:
        given = [self.value(part) for part in node.args]
        frame = self.frame
        while frame is not None and (
            frame.function is None or frame.function.owner is None
        ):
            frame = frame.parent
        if frame is None or frame.function is None or frame.function.owner is None:
            return NOTHING
        first = parameters(frame.function.node.args)[:1]
        of = given[1] if len(given) > 1 else frame.fields.get("".join(first), NOTHING)
        return frozenset((self.make(Super, frame.function.owner, of),))

    def _hiding(self, node: ast.Call) -> Value:
        """`exec`, `eval`, `globals`, `locals`, `vars`."""
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        given = self._arguments(node)
        if name in ("eval", "exec") and len(node.args) > 1:
            # The code sees, and binds, only what is in its namespace.
            self.change_reached(given.at(1))
            return given.at(1).union(*(t.items for t in given.at(1)))
        if name == "vars" and node.args:
            return self.on_vars(given)
        # In a function locals() only sees what the source shows.
        if name == "locals" and self.frame is not None:
            return self.box("dict", NOTHING.union(*self.frame.fields.values()))
        self.hidden.append((node.lineno if self.frame is None else 0, f"{name}()"))
        return NOTHING

    # -- definitions

    def _lambda(self, node: ast.Lambda) -> Value:
        return frozenset((self._function(node, self._lambda_body(node)),))

    def _lambda_body(self, node: ast.Lambda) -> Callable[[Effects], None]:
        def body(walk: Effects) -> None:
            walk.returned |= walk.value(node.body)

        return body

    def _function(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        body: Callable[[Effects], None],
        parent: Frame | None = None,
    ) -> Function:
        scope = self.scopes.get(node, Scope())
        parent = parent or self._enclosing()
        function = self.make(
            Function,
            node,
            scope.locals,
            scope.globals,
            parent,
            _body(node, body),
            self.scopes,
        )
        places = [*node.args.posonlyargs, *node.args.args]
        pairs = [
            *zip(reversed(places), reversed(node.args.defaults), strict=False),
            *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
        ]
        for argument, default in pairs:
            value = self.value(default)
            if value:
                function.defaults[argument.arg] = value
        return function

    def _enclosing(self) -> Frame | None:
        frame = self.frame
        while frame is not None and frame.kind == "class":
            frame = frame.parent
        return frame

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorators = [self.value(part) for part in node.decorator_list]
        parent = self._type_parameters(node)
        if not self.state.lazy_annotations:
            held, self.frame = self.frame, parent or self.frame
            for part in _annotations(node):
                self.value(part)
            self.frame = held
        function = self._function(node, lambda walk: walk.block(node.body), parent)
        value = frozenset[Thing]((function,))
        for decorator in reversed(decorators):
            value = self.call(decorator, Arguments([value]))
        self.assign(node.name, value)

    def _type_parameters(self, node: ast.stmt) -> Frame | None:
        listed = getattr(node, "type_params", [])
        if not listed:
            return None
        own = frozenset(part.name for part in listed)
        return self.make(Frame, "function", own, frozenset(), self._enclosing())

    def _define_class(self, node: ast.ClassDef) -> None:
        decorators = [self.value(part) for part in node.decorator_list]
        held = self.frame
        self.frame = self._type_parameters(node) or held
        bases = NOTHING.union(*map(self.value, node.bases))
        keywords = {k.arg: self.value(k.value) for k in node.keywords}
        scope = self.scopes.get(node, Scope())
        frame = self.make(Frame, "class", frozenset(), scope.globals, self.frame)
        self.frame = frame
        self.block(node.body)
        self.frame = held
        made = self._class(node, frame, bases, keywords)
        value = frozenset[Thing]((made,))
        for decorator in reversed(decorators):
            value = self.call(decorator, Arguments([value])) | value
        self.assign(node.name, value)

    def _class(
        self,
        node: ast.ClassDef,
        frame: Frame,
        bases: Value,
        keywords: Mapping[str | None, Value],
    ) -> Class:
        of = tuple(t for t in bases if isinstance(t, Class))
        libraries = [t.path for t in bases if isinstance(t, Library | Made | Wrapped)]
        given = keywords.get("metaclass", NOTHING)
        metas = [t for t in given if isinstance(t, Class)]
        metas += [meta for base in of for meta in base.metaclasses]
        made = self.make(Class, node.name, of, libraries, tuple(metas))
        for name, value in frame.fields.items():
            made.fields[name] = value
            for thing in value:
                _own(thing, made)
        if any(path.startswith("enum.") for path in made.libraries):
            self._make_members(made)
        self._class_hooks(made, keywords)
        return made

    def _make_members(self, made: Class) -> None:
        """The members of an enumeration are its objects."""
        for name, value in made.fields.items():
            if not any(map(_is_code, value)) and not name.startswith("__"):
                member = self.make(Instance, made)
                member.fields = {ITEMS: value}
                made.fields[name] = frozenset((member,))
                self.special_call(member, "__init__", Arguments(rest=value))

    def _class_hooks(self, made: Class, keywords: Mapping[str | None, Value]) -> None:
        own = frozenset[Thing]((made,))
        for meta in made.metaclasses:
            rest = Arguments(rest=own | frozenset((meta,)))
            for name in ("__prepare__", "__new__", "__init__"):
                self.call(meta.find(name), Arguments(rest=rest.rest))
        named = {k: v for k, v in keywords.items() if k and k != "metaclass"}
        for base in made.bases:
            for hook in base.find("__init_subclass__"):
                functions = hook.functions if isinstance(hook, Wrapped) else {hook}
                given = Arguments([own], named)
                self.call(frozenset(functions), given)
        for value in list(made.fields.values()):
            self.special(value, ("__set_name__",), own, NOTHING)

    # -- statements

    def _expression(self, node: ast.Expr) -> None:
        self.last = self.value(node.value)

    def _assignment(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.bind(target, value)

    def _annotated(self, node: ast.AnnAssign) -> None:
        inside = self.frame is not None and self.frame.kind == "function"
        if not (inside or self.state.lazy_annotations):
            self.value(node.annotation)
        if node.value is not None:
            self.bind(node.target, self.value(node.value))

    def _augmented(self, node: ast.AugAssign) -> None:
        name = _OPERATORS[type(node.op)]
        target = self.value(node.target)
        names = (f"__i{name}__", f"__{name}__", f"__r{name}__")
        value = self.augment(names, target, self.value(node.value))
        if isinstance(node.target, ast.Name):
            self._rebind(node.target.id, value)
        else:
            self.bind(node.target, value)

    def _rebind(self, name: str, value: Value) -> None:
        """The same name with a changed value: what made it before still counts."""
        old = self.state.names.get(name)
        self.assign(name, value)
        new = self.state.names.get(name)
        if old is not None and new is not None and new.history == self.bit:
            self.bind_name(name, Binding(new.value, old.history | self.bit))

    def _type_alias(self, node: ast.stmt) -> None:
        self.assign(node.name.id, NOTHING)  # type: ignore[attr-defined]

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._delete_target(target)

    def _delete_target(self, target: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.drop(self.load(target.id, target))
            self.assign(target.id, NOTHING)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value)
            self.special(owner, ("__delattr__",))
            self.set_attribute(owner, target.attr, NOTHING)
        elif isinstance(target, ast.Subscript):
            owner = self.value(target.value)
            self.delete_item(owner, self.value(target.slice))
        elif isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._delete_target(part)

    def _return(self, node: ast.Return) -> None:
        self.returned |= self.value(node.value)

    def _raise(self, node: ast.Raise) -> None:
        value = self.value(node.exc) | self.value(node.cause)
        for thing in value:
            if isinstance(thing, Class):
                self.instantiate(thing, Arguments())

    def _assert(self, node: ast.Assert) -> None:
        self.test(self.value(node.test))
        self.value(node.msg)

    def _if(self, node: ast.If) -> None:
        self.test(self.value(node.test))
        if _is_false(node.test):
            self.block(node.orelse)
            return
        self.branch(
            lambda: self.block(node.body),
            lambda: self.block(node.orelse),
            may_skip=False,
        )

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        source = self.value(node.iter)

        def round_() -> None:
            self.bind(node.target, self.awaited_elements(node, source))
            self.block(node.body)

        self.loop(round_)
        if node.orelse:
            self.branch(lambda: self.block(node.orelse), may_skip=True)

    def awaited_elements(self, node: ast.stmt, source: Value) -> Value:
        found = self.elements(source)
        return self.awaited(found) if isinstance(node, ast.AsyncFor) else found

    def _while(self, node: ast.While) -> None:
        def round_() -> None:
            self.test(self.value(node.test))
            self.block(node.body)

        self.test(self.value(node.test))
        self.loop(round_)
        if node.orelse:
            self.branch(lambda: self.block(node.orelse), may_skip=True)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        entered, redirects = [], 0
        for item in node.items:
            manager = self.value(item.context_expr)
            inside = self.enter(manager)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, inside)
            entered.append(manager)
            if _redirects(manager):
                redirects += 1
                self.redirects.append(frozenset(t for m in manager for t in m.items))
        if any(_may_suppress(t) for manager in entered for t in manager):
            self.branch(lambda: self.block(node.body), may_skip=True)
        else:
            self.block(node.body)
        del self.redirects[len(self.redirects) - redirects :]
        for manager in reversed(entered):
            self.leave(manager)

    def _try(self, node: ast.Try) -> None:
        def body() -> None:
            self.block(node.body)
            self.block(node.orelse)

        self.branch(body, may_skip=True)
        if node.handlers:
            handlers = [lambda h=h: self._handler(h) for h in node.handlers]
            self.branch(*handlers, may_skip=True)
        self.block(node.finalbody)

    def _handler(self, node: ast.ExceptHandler) -> None:
        self.value(node.type)
        if node.name:
            self.assign(node.name, self.box("exception"))
        self.block(node.body)

    def _match(self, node: ast.Match) -> None:
        subject = self.value(node.subject)
        parts = frozenset(
            t for t in reach(subject) if not isinstance(t, Function | Class)
        )
        cases = [lambda c=c: self._case(c, subject | parts) for c in node.cases]
        self.branch(*cases, may_skip=True)

    def _case(self, case: ast.match_case, value: Value) -> None:
        for part in ast.walk(case.pattern):
            name = getattr(part, "rest", None) or getattr(part, "name", None)
            if isinstance(name, str):
                new = (
                    part if isinstance(part, ast.MatchStar | ast.MatchMapping) else None
                )
                held = self.box("list", value) if new is not None else value
                self.assign(name, held)
            elif isinstance(part, ast.expr):
                self.value(part)
            if isinstance(part, ast.MatchClass):
                self.value(part.cls)
        self.test(self.value(case.guard))
        self.block(case.body)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._look_for(alias.name)
            top = alias.name.partition(".")[0]
            path = alias.name if alias.asname else top
            self._bind_import(alias.asname or top, path)

    def _look_for(self, module: str) -> None:
        """A module that is not installed may be a file that the page wrote."""
        if not known.is_known(f"{module}."):
            self.look(known.FILES)

    def _import_from(self, node: ast.ImportFrom) -> None:
        self._look_for(node.module or "")
        if node.module == "__future__":
            names = {alias.name for alias in node.names}
            self.state.lazy_annotations |= "annotations" in names
            self.touch(known.SETTINGS)
        for alias in node.names:
            if alias.name == "*":
                self.hidden.append((node.lineno, "import *"))
                continue
            path = f"{node.module or ''}.{alias.name}"
            self._bind_import(alias.asname or alias.name, path)

    def _bind_import(self, name: str, path: str) -> None:
        value = self.state.library(path)
        self.state.paths[name] = path
        old = self.state.names.get(name)
        self.assign(name, value)
        if self.frame is None and old is not None and old.value == value:
            # Another part of the same package: both statements are needed.
            self.bind_name(name, Binding(value, old.history | self.bit))

    def _nothing(self, node: ast.stmt) -> None:
        pass


# -- functions that are walked when they are called


def _body(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
    body: Callable[[Effects], None],
) -> Callable[[Effects, Frame], Value]:
    """What a call of a function does: `run(walk, frame)`."""
    yields = _has_yield(node)
    is_async = isinstance(node, ast.AsyncFunctionDef)

    def run(walk: Effects, frame: Frame) -> Value:
        held = walk.frame, walk.returned, walk.yielded, walk.branches
        walk.frame, walk.returned, walk.yielded = frame, NOTHING, NOTHING
        held_scopes = walk.scopes
        if frame.function is not None:
            walk.scopes = frame.function.scopes
        try:
            body(walk)
            return walk.yielded | walk.returned if yields else walk.returned
        finally:
            walk.frame, walk.returned, walk.yielded, walk.branches = held
            walk.scopes = held_scopes

    def later(walk: Effects, frame: Frame) -> Value:
        around = frozenset((frame,))
        again = lambda walk: run(walk, frame)  # noqa: E731
        return frozenset((walk.make(Later, node, again, around),))

    return later if yields or is_async else run


@lru_cache(maxsize=4096)
def _has_yield(node: ast.AST) -> bool:
    if isinstance(node, ast.Lambda):
        return any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(node))
    queue = list(ast.iter_child_nodes(node))
    while queue:
        child = queue.pop()
        if isinstance(child, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            queue.extend(ast.iter_child_nodes(child))
    return False


@lru_cache(maxsize=4096)
def _returns_early(node: ast.AST) -> bool:
    """Whether a function may return before it comes to its last statement."""
    body = getattr(node, "body", [])
    if not isinstance(body, list):
        return False
    return any(isinstance(n, ast.Return) for s in body[:-1] for n in ast.walk(s))


def _own(thing: Thing, owner: Class) -> None:
    """Tells the functions in a class's body whose they are."""
    for inner in contents(frozenset((thing,))):
        functions = inner.functions if isinstance(inner, Wrapped) else {inner}
        for function in functions:
            if isinstance(function, Function) and function.owner is None:
                function.owner = owner


def _annotations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    args = node.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    found = [a.annotation for a in every if a and a.annotation]
    return [*found, node.returns] if node.returns else found


# -- small questions about syntax

_VARIES = object()


def _constant_of(node: ast.expr) -> object:
    """The value of an argument that is written as a constant."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple | ast.List):
        parts = [_constant_of(part) for part in node.elts]
        return _VARIES if _VARIES in parts else tuple(parts)
    return _VARIES


def _aligned(
    rows: Sequence[tuple[Value, ...]], targets: Sequence[ast.expr]
) -> list[Value] | None:
    """What each target gets of tuples of known length; None if they do not fit."""
    starred = [i for i, t in enumerate(targets) if isinstance(t, ast.Starred)]
    found = [NOTHING] * len(targets)
    for parts in rows:
        more = len(parts) - len(targets)
        if more < (-1 if starred else 0) or (more and not starred):
            return None
        at = starred[0] if starred else len(targets)
        for i, part in enumerate(parts):
            after = i - more if i > at + more else at
            place = i if i < at else after
            found[place] |= part
    return found


def _is_false(test: ast.expr) -> bool:
    """A test that fails whenever the code runs."""
    if isinstance(test, ast.Constant):
        return not test.value
    name = getattr(test, "id", getattr(test, "attr", ""))
    return name == "TYPE_CHECKING"


def _is_drawn(thing: Thing) -> bool:
    return isinstance(thing, Made) and thing.path.startswith("matplotlib")


def _is_code(thing: Thing) -> bool:
    return isinstance(thing, Function | Wrapped)


def _redirects(manager: Value) -> bool:
    return any(
        isinstance(t, Made) and t.path == "contextlib.redirect_stdout" for t in manager
    )


def _may_suppress(thing: Thing) -> bool:
    """Whether leaving a context manager may swallow what its body raised."""
    if isinstance(thing, Made):
        return thing.path.startswith(
            ("contextlib.suppress", "contextlib.ExitStack")
        ) or (not known.is_known(thing.path))
    if isinstance(thing, Instance):
        exits = [t for t in thing.of.find("__exit__") if isinstance(t, Function)]
        returns = (n for t in exits for n in ast.walk(t.node))
        return any(isinstance(n, ast.Return) and n.value is not None for n in returns)
    return isinstance(thing, Later)


def _joined(bindings: Iterable[Binding | None]) -> Binding | None:
    present = [b for b in bindings if b is not None]
    if not present:
        return None
    history = 0
    for binding in present:
        history |= binding.history
    return Binding(NOTHING.union(*(b.value for b in present)), history)


_NAMED = {
    "super": Effects._super,
    **dict.fromkeys(known.HIDES_NAMES, Effects._hiding),
}
_VALUES: dict[type, Callable[..., Value]] = {
    ast.Constant: Effects._constant,
    ast.Name: Effects._name,
    ast.Attribute: Effects._attribute_of,
    ast.Subscript: Effects._subscript,
    ast.Slice: Effects._slice_of,
    ast.Starred: Effects._starred,
    ast.BinOp: Effects._binary,
    ast.UnaryOp: Effects._unary,
    ast.BoolOp: Effects._boolean,
    ast.Compare: Effects._compare,
    ast.IfExp: Effects._either,
    ast.List: Effects._list_of,
    ast.Set: Effects._set_of,
    ast.Tuple: Effects._tuple_of,
    ast.Dict: Effects._dict_of,
    ast.JoinedStr: Effects._text,
    ast.FormattedValue: Effects._formatted,
    ast.NamedExpr: Effects._walrus,
    ast.Await: Effects._await,
    ast.Yield: Effects._yield,
    ast.YieldFrom: Effects._yield_from,
    ast.ListComp: Effects._list_comprehension,
    ast.SetComp: Effects._list_comprehension,
    ast.DictComp: Effects._dict_comprehension,
    ast.GeneratorExp: Effects._generator,
    ast.Call: Effects._call_of,
    ast.Lambda: Effects._lambda,
}
_STATEMENTS: dict[type, Callable[..., None]] = {
    ast.Expr: Effects._expression,
    ast.Assign: Effects._assignment,
    ast.AnnAssign: Effects._annotated,
    ast.AugAssign: Effects._augmented,
    ast.Delete: Effects._delete,
    ast.Return: Effects._return,
    ast.Raise: Effects._raise,
    ast.Assert: Effects._assert,
    ast.If: Effects._if,
    ast.For: Effects._for,
    ast.AsyncFor: Effects._for,
    ast.While: Effects._while,
    ast.With: Effects._with,
    ast.AsyncWith: Effects._with,
    ast.Try: Effects._try,
    ast.TryStar: Effects._try,
    ast.Match: Effects._match,
    ast.FunctionDef: Effects._define,
    ast.AsyncFunctionDef: Effects._define,
    ast.ClassDef: Effects._define_class,
    ast.Import: Effects._import,
    ast.ImportFrom: Effects._import_from,
    ast.Global: Effects._nothing,
    ast.Nonlocal: Effects._nothing,
    ast.Pass: Effects._nothing,
    ast.Break: Effects._nothing,
    ast.Continue: Effects._nothing,
}
if hasattr(ast, "TypeAlias"):  # Python 3.12
    _STATEMENTS[ast.TypeAlias] = Effects._type_alias
