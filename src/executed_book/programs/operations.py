"""What Python's operations do to things: attributes, elements, iteration, operators.

Only the classes of the page are followed into their special methods; what the types of
libraries do is told by tables (see `known`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from . import known
from .objects import (
    KEYS,
    NOTHING,
    Arguments,
    Box,
    Class,
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
    contents,
)
from .run import Run, is_used_up
from .scopes import parameters

_ITERATES = ("__iter__", "__next__", "__aiter__", "__anext__")
_OF_ITERATORS = (
    *_ITERATES,
    "__await__",
    "aclose",
    "asend",
    "athrow",
    "close",
    "send",
    "throw",
)
_TYPES = {"list": [], "dict": {}, "set": set(), "bytearray": bytearray()}
_SHOWS = ("__format__", "__str__", "__repr__")


class Operations(Run):
    """A run that knows Python's data model."""

    @abstractmethod
    def call(self, callee: Value, arguments: Arguments) -> Value:
        """Calls whatever a value may be."""

    @abstractmethod
    def call_method(self, value: Value, name: str, arguments: Arguments) -> Value:
        """Calls a method of whatever a value may be."""

    @abstractmethod
    def resume(self, thing: Later) -> Value:
        """Walks through a generator or a coroutine."""

    def bound(self, function: Thing | str, of: Thing) -> Value:
        return frozenset((self.make(Method, function, of),))

    # -- special methods of the page's classes

    def special(
        self, value: Iterable[Thing], names: Iterable[str], *arguments: Value
    ) -> Value:
        """Calls the special methods that the classes of the page define."""
        found = NOTHING
        for thing in value:
            if isinstance(thing, Instance):
                for name in names:
                    if thing.of.find(name):
                        found |= self.call_method(
                            frozenset((thing,)), name, Arguments([*arguments])
                        )
        return found

    def show(self, value: Value) -> None:
        """Makes text of a value: `str`, `repr`, a format string, `print`."""
        for thing in contents(value):
            if isinstance(thing, Instance):
                if any(thing.of.find(name) for name in _SHOWS):
                    self.special((thing,), _SHOWS)
                elif thing.of.libraries:  # a dataclass shows its fields
                    self.special(contents(thing.items), _SHOWS)

    def drop(self, value: Value) -> None:
        """Takes a name from a value, which may be the last one that it has."""
        self.special(value, ("__del__",))
        for reference in self.state.weak:
            if reference.shares & value:
                self.change(reference)
                self.call(reference.items - reference.shares, Arguments([NOTHING]))

    def test(self, value: Value) -> None:
        """Takes a value as true or false."""
        self.special(value, ("__bool__", "__len__"))

    # -- attributes

    def attribute(self, value: Value, name: str) -> Value:
        found = NOTHING
        for thing in value:
            found |= self._attribute(thing, name)
        return found

    def _attribute(self, thing: Thing, name: str) -> Value:
        if isinstance(thing, Library):
            return self.state.library(f"{thing.path}.{name}")
        if name == "__dict__":
            own = frozenset((thing,))
            everything = NOTHING.union(*thing.fields.values())
            return frozenset((self.make(Made, "vars", everything, own),))
        if isinstance(thing, Instance):
            return self._of_instance(thing, name)
        if isinstance(thing, Class):
            return self._of_class(thing, name)
        if isinstance(thing, Box):
            return self._of_box(thing, name)
        if isinstance(thing, Super):
            return frozenset().union(
                *(self.bound(f, o) for f in self.above(thing, name) for o in thing.of)
            )
        own = thing.fields.get(name, NOTHING)
        if isinstance(thing, Made):
            held = self.special_attributes(thing, name)
            return own | held | frozenset((thing,))
        if isinstance(thing, Method):
            return own | self._of_method(thing, name)
        if isinstance(thing, Iterator_ | Later) and name not in _OF_ITERATORS:
            return own
        if isinstance(thing, Wrapped | Iterator_ | Later):
            return own or self.bound(name, thing)
        if isinstance(thing, Function) and name in ("__defaults__", "__kwdefaults__"):
            return own | self.box("tree", NOTHING.union(*thing.defaults.values()))
        if name == "__code__":
            return own | frozenset((thing,))
        return own

    def special_attributes(self, thing: Thing, name: str) -> Value:
        """An attribute of the page's objects that a library's object holds."""
        held = contents(thing.items) if thing.items else ()
        inner = (t for t in held if isinstance(t, Instance) and t is not thing)
        return NOTHING.union(*(self._of_instance(t, name) for t in inner))

    def _of_instance(self, thing: Instance, name: str) -> Value:
        if name == "__class__":
            return frozenset((thing.of,))
        own = thing.fields.get(name, NOTHING)
        inherited = NOTHING
        for definition in thing.of.find(name):
            inherited |= self._bind(definition, thing)
        found = own | inherited
        asks = ("__getattribute__",) if found else ("__getattribute__", "__getattr__")
        found |= self.special((thing,), asks)
        if found or name in thing.fields:
            return found
        libraries = thing.of.libraries
        if libraries and not all(map(known.is_plain_base, libraries)):
            return thing.items | frozenset((thing,))
        return thing.items

    def _bind(self, definition: Thing, thing: Instance) -> Value:
        """What an attribute of a class gives when it is reached through an object."""
        own = frozenset((thing,))
        if isinstance(definition, Function):
            return self.bound(definition, thing)
        if isinstance(definition, Wrapped):
            kind = definition.path.rpartition(".")[2]
            if kind in ("property", "cached_property"):
                return self._property(definition, thing)
            if kind == "staticmethod":
                return definition.functions
            if kind == "classmethod":
                bound = (self.bound(f, thing.of) for f in definition.functions)
                return NOTHING.union(*bound)
            if kind != "partial":
                return self.bound(definition, thing)
        if isinstance(definition, Instance) and definition.of.find("__get__"):
            descriptor = frozenset((definition,))
            return self.special(descriptor, ("__get__",), own, frozenset((thing.of,)))
        return frozenset((definition,))

    def _property(self, definition: Wrapped, thing: Instance) -> Value:
        given = Arguments([frozenset((thing,))])
        getters = definition.functions - definition.fields.get("rules", NOTHING)
        if not definition.path.endswith("cached_property"):
            return self.call(getters, given)
        with self.traced((definition, thing)):
            found = self.call(getters, given)
        self.keep(definition, found, f"<{thing.serial}>")
        return found | definition.fields[f"<{thing.serial}>"] if found else NOTHING

    def _of_class(self, thing: Class, name: str) -> Value:
        found = NOTHING
        for definition in thing.find(name):
            if isinstance(definition, Wrapped) and definition.path.endswith(
                ("classmethod", "staticmethod")
            ):
                binds = definition.path.endswith("classmethod")
                for function in definition.functions:
                    one = self.bound(function, thing) if binds else {function}
                    found |= one
            else:
                found |= frozenset((definition,))
        for meta in thing.metaclasses:
            for definition in meta.find(name):
                found |= self.bound(definition, thing)
        return found

    def _of_box(self, thing: Box, name: str) -> Value:
        if thing.kind == "ndarray":
            if name in known.ARRAY_FACTS:
                return NOTHING
            if name not in known.CHANGING["ndarray"] | known.COPYING:
                return frozenset((thing,))  # a view: .T, .real, .flat
        own = thing.fields.get(name)
        if own is not None:
            return own
        if thing.kind in ("array", "tuple"):
            return thing.items
        if thing.kind == "tree" and name not in known.CHANGING["tree"]:
            return frozenset((thing,)) | thing.items  # of a named tuple, say
        like = _TYPES.get(thing.kind)
        if like is not None and not hasattr(like, name):
            return thing.items
        return self.bound(name, thing)

    def _of_method(self, thing: Method, name: str) -> Value:
        if name == "__self__":
            return frozenset((thing.of,))
        if isinstance(thing.function, str):
            return NOTHING
        if name in ("__func__", "__wrapped__"):
            return frozenset((thing.function,))
        return self._attribute(thing.function, name)

    def above(self, thing: Super, name: str) -> Value:
        """What the classes beside and above one of the page define under a name.

        Which of them is next depends on the object's class, so all count.
        """
        found = NOTHING
        for one in thing.of:
            start = one.of if isinstance(one, Instance) else one
            start = start if isinstance(start, Class) else thing.owner
            for of in {*start.hierarchy(), *thing.owner.hierarchy()}:
                if of is not thing.owner:
                    found |= of.fields.get(name, NOTHING)
        return found

    def set_attribute(self, value: Value, name: str, new: Value) -> None:
        for thing in value:
            if isinstance(thing, Library):
                self.touch(known.SETTINGS, new)
            if isinstance(thing, Instance) and self._set_by_class(thing, name, new):
                continue
            if isinstance(thing, Function) and name in (
                "__defaults__",
                "__kwdefaults__",
            ):
                for parameter in parameters(thing.node.args):
                    held = thing.defaults.get(parameter, NOTHING)
                    thing.defaults[parameter] = held | self.elements(new)
                    self.grown.append(thing.serial)
            self.keep(thing, new, name)
            self.change(thing)

    def _set_by_class(self, thing: Instance, name: str, new: Value) -> bool:
        """Lets a property, a descriptor or `__setattr__` take an attribute."""
        taken = False
        for definition in thing.of.find(name):
            own = frozenset((thing,))
            if isinstance(definition, Wrapped) and definition.path.endswith("property"):
                setters = definition.fields.get("rules", NOTHING)
                self.call(setters, Arguments([own, new]))
                taken = bool(setters)
            elif isinstance(definition, Instance) and definition.of.find("__set__"):
                self.special((definition,), ("__set__",), own, new)
                taken = True
        if thing.of.find("__setattr__"):
            self.special((thing,), ("__setattr__",), NOTHING, new)
            self.keep(thing, new, name)
            return True
        return taken

    # -- elements

    def item(self, value: Value, key: Value, place: object = None) -> Value:
        """`value[key]`; `place` is the key if it is a constant, a slice a slice."""
        found = NOTHING
        for thing in value:
            found |= self._item(thing, key, place)
        return found

    def _item(self, thing: Thing, key: Value, place: object) -> Value:
        if isinstance(thing, Box):
            if thing.kind == "ndarray":
                return frozenset((thing,)) | thing.items
            if isinstance(place, slice):
                return self.box(thing.kind, thing.items)
            parts = thing.parts
            if parts is not None and isinstance(place, int) and place < len(parts):
                return parts[place]
            return thing.items
        if isinstance(thing, Library):
            if thing.path == "sys.modules" and isinstance(place, str):
                return self.state.library(place)
            return self.box("ndarray") if thing.path.startswith("numpy.") else NOTHING
        if isinstance(thing, Instance):
            own = frozenset((thing,))
            special = ("__getitem__", "__missing__")
            if any(map(thing.of.find, special)):
                held = thing.items if not thing.of.find("__getitem__") else NOTHING
                return held | self.special(own, special, key)
            return thing.items | (own if thing.of.libraries else NOTHING)
        if isinstance(thing, Class):
            found: Value = frozenset((thing,))
            for definition in thing.find("__class_getitem__"):
                found |= self.call(self.bound(definition, thing), Arguments([key]))
            return found
        if isinstance(thing, Made):
            if thing.path in known.MAKE_ELEMENTS:
                self.change(thing)
            return frozenset((thing,)) | thing.items
        return NOTHING

    def set_item(self, value: Value, key: Value, new: Value) -> None:
        """`value[key] = new`; deleting an element is the same without a new one."""
        for thing in value:
            names = ("__setitem__",) if new or key else ("__setitem__", "__delitem__")
            if isinstance(thing, Instance) and any(map(thing.of.find, names)):
                self.special((thing,), names, key, new)
                continue
            if isinstance(thing, Library):
                self.touch(known.SETTINGS, new)
            if isinstance(thing, Box) and thing.kind == "dict":
                self.keep(thing, key, KEYS)
                self.keep(thing, new)
            else:
                self.keep_item(thing, key | new)
            self.change(thing)
            if isinstance(thing, Made):
                self.files_of(thing)

    def keep_item(self, thing: Thing, new: Value) -> None:
        """Puts a value among a thing's elements, and those of what it shares."""
        if not new:
            return
        self.keep(thing, new - {thing})
        for shared in getattr(thing, "shares", NOTHING):
            self.keep(shared, new - {shared})

    def delete_item(self, value: Value, key: Value) -> None:
        for thing in value:
            if isinstance(thing, Instance) and thing.of.find("__delitem__"):
                self.special((thing,), ("__delitem__",), key)
            else:
                self.change(thing)

    # -- iteration

    def elements(self, value: Value) -> Value:
        """What going through a value gives; whatever is used up by it changes."""
        found = NOTHING
        for thing in value:
            found |= self._elements(thing)
        return found

    def _elements(self, thing: Thing) -> Value:
        self.work(1)
        own = frozenset((thing,))
        if isinstance(thing, Box):
            return self._elements_of_box(thing)
        if isinstance(thing, Iterator_):
            return self._use_iterator(thing)
        if isinstance(thing, Later):
            return self.resume(thing)
        if isinstance(thing, Instance):
            got = self.special(own, _ITERATES)
            if got - own:
                got = self.elements(got - own) | got
            if not any(map(thing.of.find, _ITERATES)):
                got |= self.special(own, ("__getitem__", "__len__"))
                libraries = thing.of.libraries
                got |= own if libraries and not known.base_kind(libraries) else NOTHING
            return got | thing.items
        if isinstance(thing, Class):
            return NOTHING.union(*thing.fields.values())
        if isinstance(thing, Made):
            if thing.path in known.SEQUENCES:
                return frozenset(contents(thing.items))
            if is_used_up(thing) or not thing.frozen:
                self._use_made(thing)
            return own | frozenset(contents(thing.items))
        return NOTHING

    def _elements_of_box(self, thing: Box) -> Value:
        if thing.kind == "dict":
            return thing.keys
        if thing.kind == "ndarray":
            return frozenset((thing,)) | thing.items
        if thing.kind not in ("keys", "values", "pairs"):
            return thing.items
        values = NOTHING.union(*(source.items for source in thing.items))
        keys = NOTHING.union(*(getattr(s, "keys", s.items) for s in thing.items))
        if thing.kind == "pairs":
            return self.row(keys, values)
        return keys if thing.kind == "keys" else values

    def _use_made(self, thing: Made) -> None:
        """Goes through a library's object, which may be used up by it."""
        if is_used_up(thing) or not known.is_known(thing.path):
            self.change(thing)

    def _use_iterator(self, thing: Iterator_) -> Value:
        self.change(thing)
        parts = [self.elements(source) for source in thing.sources]
        if thing.pairs:
            return self.row(*parts)
        given = NOTHING.union(*parts)
        if thing.functions:
            return self.call(thing.functions, Arguments(parts)) | given
        return given

    def use(self, value: Value, deep: bool = False) -> None:
        """Gives a value to something harmless: iterators and open files are used up.

        `deep` says that it is a library, which also looks into containers, and draws
        from generators.
        """
        things = contents(value) if deep else value
        self.work(len(things))
        for thing in things:
            if isinstance(thing, Iterator_ | Later):
                self.elements(frozenset((thing,)))
            elif isinstance(thing, Made) and is_used_up(thing):
                self.change(thing)
                self.files_of(thing)

    # -- files

    def folders(self, value: Value) -> Value:
        """The temporary folders that a path or a text names.

        Nobody else knows them, so what happens in one is followed apart from all other
        files.
        """
        return frozenset(t for t in contents(value) if _is_folder(t))

    def read_files(self, path: Value) -> None:
        """Reads files at a path."""
        folders = self.folders(path)
        if folders:
            self.read(folders)
        else:
            self.look(known.FILES)

    def write_files(self, path: Value) -> None:
        """Writes files at a path."""
        folders = self.folders(path)
        if folders:
            self.change_all(folders)
        else:
            self.touch(known.FILES)

    def files_of(self, thing: Made) -> None:
        """Uses an object that stands for a file."""
        if known.touches_files(thing.path):
            self.write_files(frozenset((thing,)))

    # -- operators

    def operate(self, names: tuple[str, ...], left: Value, right: Value) -> Value:
        """A binary operator; `names` are its special methods."""
        found = self.special(left, names, right) | self.special(right, names, left)
        return found | self.anew(left | right)

    def anew(self, value: Value) -> Value:
        """New containers and arrays, one of each kind, with what the old ones hold."""
        held: dict[str, Value] = {}
        keys = found = NOTHING
        for thing in value:
            if isinstance(thing, Box):
                held[thing.kind] = held.get(thing.kind, NOTHING) | thing.items
                keys |= thing.fields.get(KEYS, NOTHING)
            elif isinstance(thing, Made) and (thing.frozen or _is_folder(thing)):
                found |= frozenset((thing,))
            elif isinstance(thing, Made):
                held[f"={thing.path}"] = thing.items
        for kind, items in held.items():
            if kind.startswith("="):
                found |= frozenset((self.make_object(kind[1:], items),))
            else:
                found |= self.box(kind, items, keys)
        return found

    def _summed(self, value: Value) -> Value:
        boxes = (t for t in value if isinstance(t, Box))
        return NOTHING.union(*(box.items for box in boxes))

    def augment(self, names: tuple[str, ...], target: Value, new: Value) -> Value:
        """An operator in place: what the target is afterwards."""
        found = NOTHING
        for thing in target:
            own = frozenset((thing,))
            if isinstance(thing, Instance):
                found |= self.special(own, names, new) or own
            elif thing.frozen and isinstance(thing, Box):
                found |= self.operate(names, own, new)
            else:
                if isinstance(thing, Box) and thing.kind not in ("ndarray", "ref"):
                    self.keep(thing, self.elements(new) | self._summed(new))
                    keys = (t.fields.get(KEYS, NOTHING) for t in new)
                    self.keep(thing, NOTHING.union(*keys), KEYS)
                if not isinstance(thing, Library):
                    self.change(thing)
                found |= own
        return found

    # -- with

    def enter(self, value: Value) -> Value:
        found = self.special(value, ("__enter__", "__aenter__"))
        for thing in value:
            if isinstance(thing, Later):
                found |= self.resume(thing)
            elif not isinstance(thing, Instance):
                found |= frozenset((thing,))
                found |= thing.items if isinstance(thing, Made) else NOTHING
            elif not thing.of.find("__enter__") and not thing.of.find("__aenter__"):
                found |= frozenset((thing,))
        return self.awaited(found)

    def leave(self, value: Value) -> None:
        self.awaited(self.special(value, ("__exit__", "__aexit__"), *[NOTHING] * 3))
        for thing in value:
            if isinstance(thing, Later):
                self.elements(frozenset((thing,)))
            elif isinstance(thing, Made):
                self.change(thing)
                self.files_of(thing)
        self.observe_with(self.state.observers - value)

    def awaited(self, value: Value) -> Value:
        """What awaiting a value gives."""
        found = NOTHING
        for thing in value:
            if isinstance(thing, Later):
                found |= self.resume(thing)
            elif isinstance(thing, Made):
                self.use(thing.items, deep=True)
                found |= frozenset((thing,)) | thing.items
            else:
                found |= frozenset((thing,))
                found |= self.special((thing,), ("__await__",))
        return found


def _is_folder(thing: Thing) -> bool:
    return isinstance(thing, Made) and thing.path in known.TEMPORARY_FOLDERS
