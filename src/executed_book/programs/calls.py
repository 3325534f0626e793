"""Calls of whatever a value may be; functions of the page are walked into."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

from . import known
from .library import LibraryCalls
from .objects import (
    NOTHING,
    Arguments,
    Box,
    Class,
    Frame,
    Function,
    Instance,
    Iterator_,
    Later,
    Library,
    Made,
    Method,
    Super,
    Thing,
    Value,
    Wrapped,
)
from .run import TooMuch


class Calls(LibraryCalls):
    """A run that walks through the functions that a statement calls."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.repeated: list[Value] = []

    def call(self, callee: Value, given: Arguments) -> Value:
        if not callee:
            self.use(given.all)
            self.show(given.all)
            return NOTHING
        found = NOTHING
        for thing in callee:
            found |= self._call(thing, given)
        return found

    def _call(self, thing: Thing, given: Arguments) -> Value:
        if isinstance(thing, Function):
            return self.call_function(thing, given)
        if isinstance(thing, Library):
            return self.call_library(thing.path, given)
        if isinstance(thing, Method):
            own = frozenset((thing.of,))
            if isinstance(thing.function, str):
                return self.call_method(own, thing.function, given)
            bound = _bound(thing.of, given)
            return self._call(thing.function, bound)
        if isinstance(thing, Wrapped):
            return self.call_wrapped(thing, given)
        if isinstance(thing, Class):
            return self.instantiate(thing, given)
        if isinstance(thing, Instance):
            return self.call_method(frozenset((thing,)), "__call__", given)
        if isinstance(thing, Made):
            return self.call_made(thing, given)
        if isinstance(thing, Box) and thing.kind == "tree":
            return frozenset((thing,))  # what `jax.vjp` gave, say
        return NOTHING

    # -- methods

    def call_method(self, value: Value, name: str, given: Arguments) -> Value:
        if not value:  # a text, a number, an array of JAX
            found = self.call(NOTHING, given) | self.folders(given.all)
            return found | self.box("list") if name in known.GIVE_LISTS else found
        if name == "clear" and len(value) == 1 and self.is_certain:
            (thing,) = value
            if isinstance(thing, Box) and not self.traces:
                self.empty(thing)
                return NOTHING
        found = NOTHING
        for thing in value:
            found |= self._call_method(thing, name, given)
        return found

    def _call_method(self, thing: Thing, name: str, given: Arguments) -> Value:
        self.work(10)
        if isinstance(thing, Library):
            return self.call_library(f"{thing.path}.{name}", given)
        if isinstance(thing, Instance):
            callee = self.attribute(frozenset((thing,)), name)
            if thing.of.find(name) or name in thing.fields or not thing.of.libraries:
                return self.call(callee, given) if callee else NOTHING
            return self.inherited(thing, name, given)
        if isinstance(thing, Box):
            return self.box_method(thing, name, given)
        if isinstance(thing, Made):
            return self.made_method(thing, name, given)
        if isinstance(thing, Wrapped):
            return self.wrapped_method(thing, name, given)
        if isinstance(thing, Iterator_ | Later):
            return self.iterator_method(thing, name, given)
        if isinstance(thing, Super):
            return self._call_above(thing, name, given)
        if isinstance(thing, Class):
            return self._class_method(thing, name, given)
        if isinstance(thing, Method) and isinstance(thing.function, Wrapped):
            bound = _bound(thing.of, given)
            return self.wrapped_method(thing.function, name, bound)
        callee = self.attribute(frozenset((thing,)), name)
        return self.call(callee, given)

    def _class_method(self, thing: Class, name: str, given: Arguments) -> Value:
        callee = self.attribute(frozenset((thing,)), name)
        if callee:
            return self.call(callee, given)
        if name == "__new__":
            return frozenset((self.make(Instance, thing),))
        if name.startswith("register"):
            self.change(thing)
        # One that a library's class gives it: `_make`, `from_dict`, `__subclasses__`.
        made = self.make(Instance, thing)
        self.keep(made, given.all)
        self.use(given.all, deep=True)
        return frozenset((made,)) | thing.fields.get("*", NOTHING)

    def _call_above(self, thing: Super, name: str, given: Arguments) -> Value:
        found, above = NOTHING, self.above(thing, name)
        for of in thing.of:
            if name == "__new__":
                found |= self._new(of, above, given)
                continue
            for definition in above:
                inner = definition
                if isinstance(inner, Wrapped) and inner.path.endswith("classmethod"):
                    found |= self.call(inner.functions, _bound(of, given))
                else:
                    found |= self._call(inner, _bound(of, given))
            if isinstance(of, Instance) and (not above or of.of.libraries):
                found |= self.inherited(of, name, given)
        return found

    def _new(self, of: Thing, above: Value, given: Arguments) -> Value:
        if above:
            return self.call(above, given)
        made = of if isinstance(of, Class) else None
        if made is None:
            return given.all
        instance = self.make(Instance, made)
        self.keep(instance, given.without(1).all)
        return frozenset((instance,))

    # -- classes

    def instantiate(self, of: Class, given: Arguments) -> Value:
        """Makes an object of a class of the page."""
        if any(path.startswith("enum.") for path in of.libraries):
            members = (t for v in of.fields.values() for t in v)
            return frozenset(t for t in members if isinstance(t, Instance))
        for meta in of.metaclasses:
            if meta.find("__call__"):
                self.call(meta.find("__call__"), given.after(_just(of)))
        found = NOTHING
        new = of.find("__new__")
        if new:
            made = self.call(new, given.after(_just(of)))
            found = frozenset(t for t in made if isinstance(t, Instance))
        instances = found or frozenset((self.instance(of),))
        for instance in instances:
            if isinstance(instance, Instance):
                self._initialize(instance, given)
        return instances

    def _initialize(self, instance: Instance, given: Arguments) -> None:
        own = frozenset((instance,))
        if instance.of.find("__init__"):
            self.special_call(instance, "__init__", given)
            return
        self.keep(instance, given.all)
        for name, value in given.keywords.items():
            self.keep(instance, value, name)
        self.use(given.all)
        for default in _defaults(instance.of):
            self.call(default.fields.get("default_factory", NOTHING), Arguments())
        if instance.of.find("__post_init__"):
            self.special(own, ("__post_init__",))
        if instance.of.find("setup"):  # of Flax's modules
            self.special(own, ("setup",))

    def special_call(self, instance: Instance, name: str, given: Arguments) -> Value:
        """Calls a method of the class, without asking the object."""
        found = NOTHING
        for definition in instance.of.find(name):
            found |= self._call(definition, _bound(instance, given))
        return found

    # -- functions

    def call_function(self, function: Function, given: Arguments) -> Value:
        """Walks through a function's body, with these arguments."""
        self.read(frozenset((function,)))
        key = function, given.key
        body = partial(self._follow, function, given)
        return self._walk_if_new(key, function.node, given.all, body)

    def _walk_if_new(
        self, key: object, node: ast.AST, given: Value, body: Callable[[], Value]
    ) -> Value:
        """Walks through a body, unless the walk is kept or inside of it already."""
        key = key, bool(self.traces), tuple(self.redirects)
        walked = self.walk_again(key)
        if walked is not None:
            return walked.value
        if self.active[node] > 1:
            # What deeper calls change is reached from their arguments: see `_walk`.
            self.left_out.append(node)
            self.repeated.append(given)
            return given
        self.calls += 1
        if self.calls > self.LIMIT:
            raise TooMuch
        return self.walk(key, body)

    def _follow(self, function: Function, given: Arguments) -> Value:
        frame = self.make(
            Frame,
            "function",
            function.locals,
            function.globals,
            function.frame,
            function,
        )
        self._bind_parameters(frame, function, given)
        for other in function.fields.get("__code__", NOTHING) - {function}:
            self._call(other, given)
        self.active[function.node] += 1
        try:
            return self._walk(function, frame)
        finally:
            self.active[function.node] -= 1

    def _walk(self, function: Function, frame: Frame) -> Value:
        if self.active[function.node] > 1:
            return function.body(self, frame)
        held, self.repeated = self.repeated, []
        with self.watched() as watch:
            found = function.body(self, frame)
        if self.repeated and watch.changes:
            for value in self.repeated:
                self.change_reached(value)
        self.repeated = held
        return found

    def resume(self, thing: Later) -> Value:
        self.change(thing)
        body = partial(self._run, thing)
        return self._walk_if_new(thing, thing.node, thing.sources, body)

    def _run(self, thing: Later) -> Value:
        self.active[thing.node] += 1
        try:
            return thing.run(self)
        finally:
            self.active[thing.node] -= 1

    def _bind_parameters(
        self, frame: Frame, function: Function, given: Arguments
    ) -> None:
        node = function.node.args
        places = [a.arg for a in (*node.posonlyargs, *node.args)]
        fields = frame.fields
        for place, name in enumerate(places):
            if place < len(given.positional):
                fields[name] = given.positional[place]
            else:
                fields[name] = self._by_name(function, name, given)
        for argument in node.kwonlyargs:
            fields[argument.arg] = self._by_name(function, argument.arg, given)
        if node.vararg:
            extra = given.positional[len(places) :]
            fields[node.vararg.arg] = self.box("tuple", given.rest.union(*extra))
        if node.kwarg:
            named = {a.arg for a in (*node.args, *node.kwonlyargs)}
            more = [v for k, v in given.keywords.items() if k not in named]
            fields[node.kwarg.arg] = self.box("dict", given.rest.union(*more))

    def _by_name(self, function: Function, name: str, given: Arguments) -> Value:
        if name in given.keywords:
            return given.keywords[name]
        default = function.defaults.get(name, NOTHING)
        if default:
            self.read(default)
        return given.rest | default


def _bound(of: Thing, given: Arguments) -> Arguments:
    return given.after(_just(of))


def _just(of: Thing) -> Arguments:
    return Arguments([frozenset((of,))])


def _defaults(of: Class) -> list[Made]:
    values = [v for c in of.hierarchy() for v in c.fields.values()]
    return [t for v in values for t in v if isinstance(t, Made)]
