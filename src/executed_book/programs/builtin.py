"""What Python's built-in functions do to things."""

from __future__ import annotations

from collections.abc import Callable

from .objects import (
    NOTHING,
    Arguments,
    Box,
    Class,
    Instance,
    Iterator_,
    Later,
    Library,
    Made,
    Thing,
    Value,
)
from .operations import Operations

_NUMERIC = (
    "__len__",
    "__abs__",
    "__bool__",
    "__hash__",
    "__int__",
    "__float__",
    "__complex__",
    "__round__",
    "__index__",
    "__bytes__",
)

_WRITING_MODES = "wax+"


class BuiltIns(Operations):
    """A run that knows the built-in functions."""

    def iterator(
        self, given: Arguments, functions: Value = NOTHING, pairs: bool = False
    ) -> Value:
        """Something that goes through what it is given."""
        # What may not be there is no argument of a function that is mapped.
        others = filter(None, (*given.keywords.values(), given.rest))
        sources = (*given.positional, *others)
        return frozenset((self.make(Iterator_, sources, functions, pairs),))

    def opens_to_write(self, path: str, given: Arguments) -> bool:
        """Whether a function that may write files does so, by the mode of `open`."""
        if path != "builtins.open":
            return True
        mode = given.constants.get(1, given.constants.get("mode", "r"))
        return not isinstance(mode, str) or any(m in mode for m in _WRITING_MODES)

    def on_quiet(self, given: Arguments) -> Value:
        self.use(given.all)
        self.show(given.all)
        self.special(given.all, _NUMERIC)
        return NOTHING

    def on_str(self, given: Arguments) -> Value:
        self.on_quiet(given)
        return self.folders(given.all)

    def on_print(self, given: Arguments) -> Value:
        self.show(given.all)
        target = given.keywords.get("file", NOTHING)
        paths = {t.path for t in target if isinstance(t, Library)}
        if paths and not any("stdout" in path for path in paths):
            return NOTHING
        if target and not paths:
            self.change_all(target)
            self.use(target)
            self.special(target, ("write",), NOTHING)
            return NOTHING
        if paths:
            self.print_below()
        else:
            self.print()
        return NOTHING

    def on_sum(self, given: Arguments) -> Value:
        added = self.elements(given.at(0)) | given.at(1)
        names = ("__add__", "__radd__")
        return self.operate(names, added, added)

    def on_any(self, given: Arguments) -> Value:
        self.test(self.elements(given.all))
        return NOTHING

    def on_min(self, given: Arguments) -> Value:
        several = len(given.positional) > 1 or given.rest
        chosen = given.rest.union(*given.positional)
        if not several:
            chosen = self.elements(chosen)
        self._order(chosen, given)
        return chosen | given.keywords.get("default", NOTHING)

    def on_sorted(self, given: Arguments) -> Value:
        items = self.elements(given.at(0))
        self._order(items, given)
        return self.box("list", items)

    def _order(self, items: Value, given: Arguments) -> None:
        key = given.keywords.get("key", NOTHING)
        if key:
            self.call(key, Arguments([items]))
        self.special(items, ("__lt__", "__gt__", "__eq__"), items)

    def on_list(self, given: Arguments) -> Value:
        return self.box("list", self.elements(given.all))

    def on_tuple(self, given: Arguments) -> Value:
        return self.box("tuple", self.elements(given.all))

    def on_set(self, given: Arguments) -> Value:
        items = self.elements(given.all)
        self.special(items, ("__hash__", "__eq__"), items)
        return self.box("set", items)

    def on_frozenset(self, given: Arguments) -> Value:
        return self.box("tuple", self.elements(given.all))

    def on_dict(self, given: Arguments) -> Value:
        keys, items = NOTHING, NOTHING.union(*given.keywords.values())
        for source in given.rest.union(*given.positional):
            if isinstance(source, Box) and source.kind == "dict":
                keys, items = keys | source.keys, items | source.items
                continue
            for pair in self.elements(frozenset((source,))):
                parts: tuple[Value, ...] = getattr(pair, "parts", None) or ()
                if len(parts) == 2:
                    keys, items = keys | parts[0], items | parts[1]
                else:
                    held = self.elements(frozenset((pair,))) | pair.items
                    keys, items = keys | held, items | held
        return self.box("dict", items, keys)

    def on_bytearray(self, given: Arguments) -> Value:
        return self.box("bytearray")

    def on_memoryview(self, given: Arguments) -> Value:
        return given.all

    def on_iter(self, given: Arguments) -> Value:
        if len(given.positional) > 1:
            return self.iterator(Arguments(), given.at(0))
        again = frozenset(t for t in given.all if isinstance(t, Iterator_ | Later))
        plain = given.all - again
        if all(isinstance(t, Instance) for t in plain) and plain:
            found = self.special(plain, ("__iter__",))
            return found | again or self.iterator(Arguments([plain]))
        return again or self.iterator(Arguments([plain]))

    def on_next(self, given: Arguments) -> Value:
        instances = frozenset(t for t in given.at(0) if isinstance(t, Instance))
        found = self.special(instances, ("__next__", "__anext__"))
        found |= self.elements(given.at(0) - instances)
        # What has no kind of its own may be used up as well.
        for thing in given.at(0):
            if isinstance(thing, Made):
                self.change(thing)
        return found | given.at(1)

    def on_zip(self, given: Arguments) -> Value:
        return self.iterator(given, pairs=True)

    def on_enumerate(self, given: Arguments) -> Value:
        counted = Arguments([NOTHING, given.at(0)])
        return self.iterator(counted, pairs=True)

    def on_map(self, given: Arguments) -> Value:
        return self.iterator(given.without(1), given.at(0))

    def on_reversed(self, given: Arguments) -> Value:
        return self.iterator(given)

    def on_open(self, given: Arguments) -> Value:
        if self.opens_to_write("builtins.open", given):
            self.write_files(given.all)
            return frozenset((self.make(Made, "builtins.open", given.all),))
        self.read_files(given.all)
        return frozenset((self.make(Made, "io.open", given.all),))

    def on_getattr(self, given: Arguments) -> Value:
        name = given.constants.get(1)
        default = given.at(2)
        if isinstance(name, str):
            return self.attribute(given.at(0), name) | default
        found = default
        for thing in given.at(0):
            for own in [*thing.fields, *_defined(thing)]:
                found |= self.attribute(frozenset((thing,)), own)
            found |= frozenset((thing,)) if isinstance(thing, Made) else NOTHING
        return found

    def on_setattr(self, given: Arguments) -> Value:
        name = given.constants.get(1)
        known_name = name if isinstance(name, str) else "*"
        self.set_attribute(given.at(0), known_name, given.at(2))
        return NOTHING

    def on_hasattr(self, given: Arguments) -> Value:
        name = given.constants.get(1)
        if isinstance(name, str):
            self.attribute(given.at(0), name)
        return NOTHING

    def on_vars(self, given: Arguments) -> Value:
        return self.attribute(given.at(0), "__dict__")

    def on_type(self, given: Arguments) -> Value:
        if len(given.positional) == 3:
            return self.on_new_class(given)
        return frozenset(t.of for t in given.at(0) if isinstance(t, Instance))

    def on_new_class(self, given: Arguments) -> Value:
        bases = self.elements(given.at(1))
        of = tuple(t for t in bases if isinstance(t, Class))
        libraries = tuple(t.path for t in bases if isinstance(t, Library))
        made = self.make(Class, "type", of, libraries)
        for space in given.at(2):
            self.keep(made, space.items)
            if isinstance(space, Box):
                for name, value in space.fields.items():
                    self.keep(made, value, name)
        return frozenset((made,))

    def on_isinstance(self, given: Arguments) -> Value:
        return NOTHING

    def on_object(self, given: Arguments) -> Value:
        return frozenset((self.make(Made, "builtins.object", frozen=True),))

    def on_slice(self, given: Arguments) -> Value:
        return NOTHING

    def on_copy(self, given: Arguments) -> Value:
        """`copy.copy`"""
        instances = frozenset(t for t in given.all if isinstance(t, Instance))
        found = self.anew(given.all - instances)
        for thing in instances:
            made = self.make(Instance, thing.of)
            made.fields = dict(thing.fields)
            found |= frozenset((made,))
            self.special(frozenset((thing,)), ("__copy__",))
        return found

    def on_deepcopy(self, given: Arguments) -> Value:
        """`copy.deepcopy`"""
        copies: dict[Thing, Thing] = {}
        return frozenset(self._copied(t, copies) for t in given.at(0))

    def _copied(self, thing: Thing, copies: dict[Thing, Thing]) -> Thing:
        if thing in copies:
            return copies[thing]
        if isinstance(thing, Box):
            copy: Thing = self.make(Box, thing.kind)
        elif isinstance(thing, Instance):
            copy = self.make(Instance, thing.of)
            self.special(frozenset((thing,)), ("__deepcopy__",), NOTHING)
        elif isinstance(thing, Made):
            copy = self.make(Made, thing.path, frozen=thing.frozen)
        else:
            return thing
        copies[thing] = copy
        for name, value in thing.fields.items():
            copy.fields[name] = frozenset(self._copied(t, copies) for t in value)
        return copy

    def on_tee(self, given: Arguments) -> Value:
        """`itertools.tee`"""
        return self.box("tuple", self.iterator(given))

    def on_import(self, given: Arguments) -> Value:
        name = given.constants.get(0)
        return self.state.library(name) if isinstance(name, str) else NOTHING


def _defined(thing: Thing) -> list[str]:
    return list(thing.of.fields) if isinstance(thing, Instance) else []


#: The functions by name; a class of exceptions is no function of these.
FUNCTIONS: dict[str, Callable[[BuiltIns, Arguments], Value]] = {
    "__import__": BuiltIns.on_import,
    "abs": BuiltIns.on_quiet,
    "aiter": BuiltIns.on_iter,
    "all": BuiltIns.on_any,
    "anext": BuiltIns.on_next,
    "any": BuiltIns.on_any,
    "ascii": BuiltIns.on_str,
    "bin": BuiltIns.on_quiet,
    "bool": BuiltIns.on_quiet,
    "bytearray": BuiltIns.on_bytearray,
    "bytes": BuiltIns.on_quiet,
    "callable": BuiltIns.on_isinstance,
    "chr": BuiltIns.on_quiet,
    "complex": BuiltIns.on_quiet,
    "delattr": BuiltIns.on_setattr,
    "dict": BuiltIns.on_dict,
    "dir": BuiltIns.on_isinstance,
    "divmod": BuiltIns.on_quiet,
    "enumerate": BuiltIns.on_enumerate,
    "filter": BuiltIns.on_map,
    "float": BuiltIns.on_quiet,
    "format": BuiltIns.on_str,
    "frozenset": BuiltIns.on_frozenset,
    "getattr": BuiltIns.on_getattr,
    "hasattr": BuiltIns.on_hasattr,
    "hash": BuiltIns.on_quiet,
    "hex": BuiltIns.on_quiet,
    "id": BuiltIns.on_isinstance,
    "int": BuiltIns.on_quiet,
    "isinstance": BuiltIns.on_isinstance,
    "issubclass": BuiltIns.on_isinstance,
    "iter": BuiltIns.on_iter,
    "len": BuiltIns.on_quiet,
    "list": BuiltIns.on_list,
    "map": BuiltIns.on_map,
    "max": BuiltIns.on_min,
    "memoryview": BuiltIns.on_memoryview,
    "min": BuiltIns.on_min,
    "next": BuiltIns.on_next,
    "object": BuiltIns.on_object,
    "oct": BuiltIns.on_quiet,
    "open": BuiltIns.on_open,
    "ord": BuiltIns.on_quiet,
    "pow": BuiltIns.on_quiet,
    "print": BuiltIns.on_print,
    "range": BuiltIns.on_quiet,
    "repr": BuiltIns.on_str,
    "reversed": BuiltIns.on_reversed,
    "round": BuiltIns.on_quiet,
    "set": BuiltIns.on_set,
    "setattr": BuiltIns.on_setattr,
    "slice": BuiltIns.on_slice,
    "sorted": BuiltIns.on_sorted,
    "str": BuiltIns.on_str,
    "sum": BuiltIns.on_sum,
    "tuple": BuiltIns.on_tuple,
    "type": BuiltIns.on_type,
    "vars": BuiltIns.on_vars,
    "zip": BuiltIns.on_zip,
}
#: Functions of the standard library that are told in as much detail.
STANDARD: dict[str, Callable[[BuiltIns, Arguments], Value]] = {
    "copy.copy": BuiltIns.on_copy,
    "copy.deepcopy": BuiltIns.on_deepcopy,
    "itertools.tee": BuiltIns.on_tee,
}
