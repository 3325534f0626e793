"""What calls of libraries do to things: built-ins, functions, methods of their types.

`known` tells it from the dotted path; what it does not know may change and keep what it
is given, and call what can be called.
"""

from __future__ import annotations

from collections.abc import Iterable

from . import known
from .builtin import FUNCTIONS, STANDARD, BuiltIns
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
    Thing,
    Value,
    Wrapped,
    contents,
    reach,
)
from .run import is_used_up


class LibraryCalls(BuiltIns):
    """A run that knows what calls of libraries do."""

    # -- functions

    def call_library(self, path: str, given: Arguments) -> Value:
        """Calls a library's function."""
        if path.startswith("builtins."):
            own = FUNCTIONS.get(path.removeprefix("builtins."))
            if own is not None:
                return own(self, given)
            if path.count(".") > 1:
                return self._unbound(path.rpartition(".")[2], given)
            if path[9:10].isupper() and path[-1] in "rtngpe":  # an exception's class
                return frozenset((self.make(Box, "exception", given.all),))
        if path in STANDARD:
            return STANDARD[path](self, given)
        if path == "jax.clear_caches":
            self.clear_traces()
        if path.startswith("jax.monitoring."):
            self._listen(path, given)
            return NOTHING
        call = known.call(path)
        if call.wraps and call.gives != "first":
            return self._wrap(path, given)
        self._side_effects(path, call, given)
        self._change_given(call, given)
        returned = self._call_given(path, call, given)
        return self._given_back(path, call, given, returned)

    def _listen(self, path: str, given: Arguments) -> None:
        """Lets functions hear of every trace and compilation from now on."""
        functions = frozenset(t for t in given.all if _is_function(t))
        if ".register" in path:
            self.observe_with(self.state.observers | functions)
            self.change_all(functions)
        else:
            observers = self.state.observers
            self.observe_with(observers - (functions or observers))

    def observe(self) -> None:
        observers = self.state.observers
        functions = frozenset(t for t in observers if isinstance(t, Function | Method))
        self.call_callables(functions, Arguments())
        self.read(functions)
        self.change_all(observers - functions)

    def _unbound(self, name: str, given: Arguments) -> Value:
        """A method of a built-in type, called with its object: `dict.update(d, e)`."""
        if name == "__new__":
            classes = (t for t in given.at(0) if isinstance(t, Class))
            return frozenset(self.instance(of) for of in classes)
        found, rest = NOTHING, given.without(1)
        for thing in given.at(0):
            if isinstance(thing, Instance):
                found |= self.inherited(thing, name, rest)
            else:
                found |= self.call_method(frozenset((thing,)), name, rest)
        return found

    def _side_effects(self, path: str, call: known.Call, given: Arguments) -> None:
        self.runs_libraries = True
        for name in call.touches:
            self.touch(name, frozenset(contents(given.all)))
        if call.writes_files and self.opens_to_write(path, given):
            self.write_files(given.all)
        elif call.reads_files or call.writes_files:
            self.read_files(given.all)
        if call.touches == (known.SETTINGS,):
            self.environment |= path.startswith(known.BEFORE_IMPORTS)
        if known.LOGGING in call.touches and path[8:] in known.LOGGING_METHODS:
            self._log(given)
            self.print_below()
        seeded = self.state.hidden[known.NUMPY_RANDOM].history
        if call.draws and seeded and not self._has_generator(given):
            self.touch(known.NUMPY_RANDOM)
        if call.prints:
            self.print()
        if call.prints_below and not given.keywords.keys() & {
            "capture_output",
            "stdout",
        }:
            self.print_below()
        if call.is_unknown:
            # It may depend on what was called of its library before.
            self.touch(f"<{path.partition('.')[0]}>", frozenset(contents(given.all)))
        if call.runs_handlers:
            held = self.state.hidden[known.SETTINGS].items
            self.call_callables(reach(held), Arguments(), everything=True)

    def _has_generator(self, given: Arguments) -> bool:
        named = given.constants.get("random_state", "absent")
        if named == "absent" and "random_state" in given.keywords:
            return True
        return named not in ("absent", None)

    def _log(self, given: Arguments) -> None:
        """Runs the handlers that logging keeps."""
        held = self.state.hidden[known.LOGGING].items
        self.call_callables(reach(held), Arguments(rest=given.all), everything=True)

    def _change_given(self, call: known.Call, given: Arguments) -> None:
        if call.is_unknown:
            self.change_reached(given.all)
            return
        for place in call.changes or ():
            if call.reads_trees:
                self.change_reached(given.at(place))
            else:
                self.change_all(given.at(place))
        for place in range(call.out_from, len(given.positional)):
            self.change_all(given.positional[place])
        for name, value in given.keywords.items():
            written = given.constants.get(name, True)
            changes = name in ("out", "inplace") or name.startswith("overwrite")
            if name == "out":
                self.change_all(value)
            elif (changes and written) or (name == "copy" and written is False):
                self.change_all(given.at(0))
        self.use(given.all, deep=True)

    def change_reached(self, value: Value) -> None:
        """Something unknown may change all that it can reach."""
        reached = reach(value)
        self.work(len(reached))
        for thing in reached:
            if isinstance(thing, Iterator_ | Later):
                self.elements(frozenset((thing,)))
            elif not isinstance(thing, Function | Class | Method | Library):
                self.change(thing)

    def _call_given(self, path: str, call: known.Call, given: Arguments) -> Value:
        if not call.calls or not given.all:
            return NOTHING
        if call.reads_trees:
            called = _direct(given)
            if path.startswith("flax.nnx."):  # types choose variables there
                called = frozenset(t for t in called if not isinstance(t, Library))
            if path.endswith(known.MAPS):
                called |= frozenset(t for t in given.at(0) if isinstance(t, Instance))
            trees = contents(given.all - called)
            return self.call_callables(called, Arguments(rest=frozenset(trees)))
        reached = reach(given.all) if call.is_unknown else contents(given.all)
        if not (call.calls_classes or call.is_unknown):
            reached = {t for t in reached if not isinstance(t, Class)}
        rest = Arguments(rest=_data(given.all))
        if call.compiles:
            return self.call_kept(reached, rest)
        return self.call_callables(reached, rest, everything=call.is_unknown)

    def _inside(self, value: Value) -> Value:
        return NOTHING.union(*(t.items for t in value if isinstance(t, Box)))

    def call_kept(self, callables: Iterable[Thing], given: Arguments) -> Value:
        """Calls functions whose trace is kept for later calls."""
        found = NOTHING
        for thing in callables:
            if not _is_function(thing) and not isinstance(thing, Instance):
                continue
            if not _is_harmless(thing):
                with self.traced(_key(thing)):
                    self._note_static(given)
                    found |= self.call(frozenset((thing,)), given)
        return found

    def _note_static(self, given: Arguments) -> None:
        """An object of the page is told from others by what it is, not by its state."""
        for thing in contents(given.all):
            if isinstance(thing, Instance):
                self.note_read(thing, self.deep(frozenset((thing,))))

    def call_callables(
        self, things: Iterable[Thing], given: Arguments, everything: bool = False
    ) -> Value:
        """Calls what a library may call of the things that it is given.

        `everything` says that it may also call any method of the page's objects.
        """
        found = NOTHING
        for thing in things:
            if thing in self.calling:
                self.left_out.append(thing)
                continue
            if _is_harmless(thing):
                continue
            self.calling.add(thing)
            if _is_function(thing):
                found |= self.call(frozenset((thing,)), given)
            elif isinstance(thing, Instance):
                found |= self._call_methods(thing, given, everything)
            self.calling.remove(thing)
        return found

    def _call_methods(
        self, thing: Instance, given: Arguments, everything: bool
    ) -> Value:
        found, seen = NOTHING, set[str]()
        for of in thing.of.hierarchy():
            for name, definitions in of.fields.items():
                dunder = name.startswith("__")
                if name in seen or name in _CONSTRUCTORS or not (dunder or everything):
                    continue
                seen.add(name)
                for definition in definitions:
                    if isinstance(definition, Function | Wrapped):
                        bound = self.bound(definition, thing)
                        found |= self.call(bound, given)
        return found

    def _given_back(
        self, path: str, call: known.Call, given: Arguments, returned: Value
    ) -> Value:
        gives = call.gives
        if gives == "first":
            return given.at(0) | (NOTHING if given.positional else given.all)
        if gives == "nothing":
            return self.folders(given.all)
        if gives == "array":
            return self._tree(given, returned) if returned else self.array()
        if gives == "tree":
            return self._tree(given, returned)
        if gives == "ndarray":
            return self._ndarray(given) | returned
        if gives in ("view", "views"):
            viewed = (t for t in contents(given.all) if not _is_function(t))
            arrays = (t for t in viewed if not isinstance(t, Box) or t.kind in _DATA)
            found = frozenset(arrays) | self.box("ndarray")
            return found if gives == "view" else found | self.box("tree", found)
        if gives == "container":
            held = frozenset(t for t in given.all if not _is_function(t))
            made = self.make_object(path, held | self.elements(given.at(0)))
            self.keep(made, given.all - held, "default_factory")
            return frozenset((made,))
        if gives == "iterator":
            return self.iterator(given)
        if gives == "ref":
            return self.box("ref")
        if gives == "shared":
            return self.state.library(f"{path}()")
        if gives == "frozen":
            held = frozenset(t for t in given.all | returned if not isinstance(t, Box))
            made = self.make_object(path, held | self._inside(given.all), frozen=True)
            return frozenset((made,))
        return self._made(path, call, given, returned)

    def _made(
        self, path: str, call: known.Call, given: Arguments, returned: Value
    ) -> Value:
        if path.startswith("matplotlib.pyplot."):
            return self._drawn(given.all)
        kept = given.all | returned
        if call.reads_data:
            kept = frozenset(t for t in kept if not isinstance(t, Box))
        if call.forgets_functions:
            kept = frozenset(t for t in _data(kept) if not isinstance(t, Box))
        shares = frozenset(t for t in kept if not _is_function(t))
        made = self.make_object(path, kept, shares)
        if path.startswith("weakref."):
            self.state.weak.append(made)
        return frozenset((made,))

    def _drawn(self, given: Value) -> Value:
        """Pyplot draws on the figure of the cell: whatever it gives is part of it."""
        state = self.state
        if state.canvas is None:
            state.canvas = self.make(Made, "matplotlib.pyplot.figure")
        self.change(state.canvas)
        made = frozenset(t for t in given if isinstance(t, Made))
        return frozenset((state.canvas,)) | made

    def _ndarray(self, given: Arguments) -> Value:
        if given.constants.get("copy") is False:
            return given.at(0) | self.box("ndarray")
        out = given.keywords.get("out", NOTHING)
        return out | self.box("ndarray")

    def _tree(self, given: Arguments, returned: Value) -> Value:
        """Containers made anew around the leaves of what was given."""
        leaves = frozenset(
            t
            for t in contents(given.all | returned)
            if not (isinstance(t, Box) and t.kind != "array") and not _is_function(t)
        )
        objects = frozenset(t for t in returned if isinstance(t, Instance))
        return self._blurred(leaves) | objects

    def _blurred(self, leaves: Value) -> Value:
        """Containers in containers, of a structure that is not known."""
        found = self.box("tree", leaves)
        for tree in found:
            self.keep(tree, found)
        return found

    # -- functions made of functions

    def _wrap(self, path: str, given: Arguments) -> Value:
        functions = given.at(0)
        for name in ("f", "fun", "func"):
            functions |= given.keywords.get(name, NOTHING)
        bound = given.without(1 if given.positional else 0)
        if path not in _BIND and functions:
            bound = Arguments(constants=given.constants)
        wrapped = self.make(Wrapped, path, functions, bound)
        if path == "builtins.property" and len(given.positional) > 1:
            rules = NOTHING.union(*given.positional[1:])
            wrapped.functions |= rules
            self.keep(wrapped, rules, "rules")
        if path.startswith("justafter.") and not functions:
            self.observe_with(self.state.observers | frozenset((wrapped,)))
        return frozenset((wrapped,))

    def call_wrapped(self, thing: Wrapped, given: Arguments) -> Value:
        """Calls what a library made of a function."""
        last = thing.path.rpartition(".")[2]
        if not thing.functions:  # a decorator that waits for its function
            return self.call_library(thing.path, given.after(thing.given))
        if last == "wraps":
            for inner in given.at(0):
                self.keep(inner, thing.functions, "__wrapped__")
            return given.at(0)
        self._donate(thing, given)
        if last == "partialmethod":
            own = Arguments(given.positional[:1])
            given = given.without(1).after(thing.given).after(own)
        elif thing.path in _BIND:
            given = given.after(thing.given)
        if last in known.COMPILERS and last not in ("checkpoint", "remat"):
            return self._rebuilt(self.call_kept(thing.functions, given))
        found = self.call(thing.functions, given)
        rules = thing.fields.get("rules")
        if rules:
            self.call(rules, Arguments(rest=given.all))
        if last in known.RESTRUCTURE:
            leaves = (t for t in contents(found) if not isinstance(t, Box))
            return self._blurred(frozenset(leaves))
        return found

    def _rebuilt(self, value: Value) -> Value:
        """What a compiled function gives: its containers are new at each call."""
        boxes = frozenset(t for t in value if isinstance(t, Box))
        if len(boxes) == 1:
            (box,) = boxes
            made = self.make(Box, box.kind, box.items, box.parts)
            made.fields = dict(box.fields)
            return value - boxes | frozenset((made,))
        return value - boxes | self.anew(boxes)

    def _donate(self, thing: Wrapped, given: Arguments) -> None:
        donated = _donated(thing.given.constants)
        if donated == frozenset() or thing.path in _BIND:
            return
        self._spend_arrays(given.rest)
        arguments: dict[int | str, Value] = dict(enumerate(given.positional))
        arguments.update(given.keywords)
        for place, value in arguments.items():
            if donated is None or place in donated:
                self._spend_arrays(value)

    def _spend_arrays(self, value: Value) -> None:
        for thing in reach(value):
            if isinstance(thing, Box) and thing.kind == "array":
                self.spend(thing)

    def wrapped_method(self, thing: Wrapped, name: str, given: Arguments) -> Value:
        """A method of what a library made of a function: `lower`, `defjvp`."""
        if name in known.CACHE_READERS:
            for inner in reach(frozenset((thing,))):
                cache = self.state.caches.get(_key(inner))
                if cache is not None:
                    self.needs |= cache.filled
                    self.filled.append(cache)
            self.change(thing)
            for trace in self.traces:
                trace.oldest = 0
            return NOTHING
        if name in known.COMPILERS:
            self.call_kept(thing.functions, given)
            return frozenset((self.make(Made, "jax.stages", frozen=True),))
        if name in ("setter", "deleter", "getter"):
            rules = given.all if name != "getter" else NOTHING
            functions = thing.functions | given.all
            made = self.make(Wrapped, thing.path, functions)
            self.keep(made, thing.fields.get("rules", NOTHING) | rules, "rules")
            return frozenset((made,))
        if name.startswith(known.RULES):
            return self._add_rule(thing, given)
        own = thing.fields.get(name)
        if own:
            return self.call(own, given)
        if thing.path.startswith("justafter."):
            self.change(thing)
            self.observe_with(self.state.observers - frozenset((thing,)))
        elif thing.path.startswith("numpy."):  # of `frompyfunc`: `reduce`, `at`
            self.call(thing.functions, Arguments(rest=given.all))
            self.change_all(given.at(0) if name == "at" else NOTHING)
        return frozenset((thing,))

    def _add_rule(self, thing: Wrapped, given: Arguments) -> Value:
        """`f.defjvp(rule)`, `f.register(int)(rule)`, or the same as a decorator."""
        self.change(thing)
        rules = frozenset(t for t in contents(given.all) if _is_function(t))
        rules = frozenset(t for t in rules if not isinstance(t, Class | Library))
        self.keep(thing, rules, "rules")
        if rules:
            return given.all
        own = frozenset((thing,))
        return frozenset((self.make(Made, "rules", shares=own),))

    # -- methods of types that are known

    def box_method(self, thing: Box, name: str, given: Arguments) -> Value:
        """A method of a container or an array."""
        self.use(given.all)
        if thing.kind == "array":
            if name in known.CHANGING["array"]:
                self.spend(thing)
            return self.array()
        if thing.kind in _VIEWS.values():
            return NOTHING
        if name in known.CHANGING.get(thing.kind, ()):
            self._store(thing, name, given)
            self.change(thing)
        functions = frozenset(t for t in given.all if _is_function(t))
        if functions:  # `sort(key=f)`
            self.call(functions, Arguments([thing.items]))
        if thing.kind == "ndarray":
            if name == "tofile":
                self.write_files(given.all)
            return self._of_array(thing, name, given)
        if name in ("values", "keys", "items"):
            return self.box(_VIEWS[name], frozenset((thing,)))
        if name in ("copy", "union", "intersection", "difference"):
            items = thing.items | self.elements(given.all)
            return self.box(thing.kind, items, thing.fields.get(KEYS, NOTHING))
        if name in ("index", "count", "find", "tolist"):
            return NOTHING
        return thing.items | (given.at(1) if name in ("get", "pop") else NOTHING)

    def _of_array(self, thing: Box, name: str, given: Arguments) -> Value:
        found = given.keywords.get("out", NOTHING)
        self.change_all(found)
        if name in known.COPYING and given.constants.get("copy") is not False:
            return found | self.box("ndarray")
        return found | frozenset((thing,))

    def _store(self, thing: Thing, name: str, given: Arguments) -> None:
        if name in known.STORING_ELEMENTS:
            mapped = NOTHING.union(*given.keywords.values())
            stored = self.elements(given.all) | mapped
            boxes = [t for t in given.all if isinstance(t, Box)]
            stored |= NOTHING.union(*(t.items for t in boxes))
            keys = (t.fields.get(KEYS, NOTHING) for t in boxes)
            self.keep(thing, NOTHING.union(*keys), KEYS)
        elif name in known.STORING:
            stored = given.all
        else:
            return
        self.keep_item(thing, stored)

    def made_method(self, thing: Made, name: str, given: Arguments) -> Value:
        """A method of an object of a library."""
        path = thing.path
        if path.startswith("pathlib."):
            self._path_method(thing, name)
        elif name in known.FILE_METHODS_WRITE and path.startswith("matplotlib."):
            self.write_files(given.all)
        elif known.touches_files(path):
            self.files_of(thing)
        return self._made_method(thing, name, given)

    def _path_method(self, thing: Made, name: str) -> None:
        own = frozenset((thing,))
        if name in known.FILE_METHODS_WRITE or name == "open":
            self.write_files(own)
        elif name in known.FILE_METHODS_READ:
            self.read_files(own)

    def _made_method(self, thing: Made, name: str, given: Arguments) -> Value:
        path = thing.path
        self.runs_libraries = True
        call = known.call(path)
        pure = thing.frozen or (known.is_pure_method(name) and not is_used_up(thing))
        if path.startswith("logging."):
            self.touch(known.LOGGING, frozenset(contents(given.all)))
            if name in known.LOGGING_METHODS:
                self._log(given)
                self.print_below()
        if path.startswith(("contextvars.", "decimal.")) and not pure:
            self.touch(known.SETTINGS)
        if not pure and not call.methods_give:
            self._store_made(thing, name, given)
        if not pure and (name != "__call__" or known.calls_change(path)):
            self.change(thing)
        if path in known.OPTIMIZERS:
            self.change_reached(given.at(0) | thing.items)
        if call.is_unknown and not known.is_pure_method(name):
            self.change_reached(given.all)
        seeded = self.state.hidden[known.NUMPY_RANDOM].history
        if call.draws and seeded and not pure:
            self.touch(known.NUMPY_RANDOM)
        self.use(given.all, deep=True)
        if path.startswith("numpy.random.") and name in ("shuffle", "permuted"):
            self.change_all(given.at(0) | given.keywords.get("out", NOTHING))
        returned = self._methods_held(thing, name, given)
        if call.methods_give:
            if call.methods_give == "array" and not returned:
                return self.array()
            return self._tree(given, returned)
        if thing.frozen:
            held = frozenset(t for t in given.all if not isinstance(t, Box)) | returned
            if held <= thing.items:
                return frozenset((thing,)) | returned
            made = self.make_object(path, thing.items | held, frozen=True)
            return frozenset((made,)) | returned
        if name in known.NEW_METHODS:
            return frozenset((self.make_object(path, thing.items),)) | returned
        return frozenset((thing,)) | returned | thing.items

    def _store_made(self, thing: Made, name: str, given: Arguments) -> None:
        reads_data = known.call(thing.path).reads_data
        if name in known.STORING_ELEMENTS:
            self._store(thing, name, given)
        stored = given.all
        if reads_data:
            stored = frozenset(t for t in stored if not isinstance(t, Box))
        if not (known.call(thing.path).calls or known.is_connecting(name)):
            stored = frozenset(t for t in stored if not _is_function(t))
        self.keep_item(thing, stored)

    def _methods_held(self, thing: Made, name: str, given: Arguments) -> Value:
        """Calls what the page gave the object: its functions, methods of that name."""
        found, call = NOTHING, known.call(thing.path)
        if not call.calls:
            given = Arguments()
        rest = Arguments(rest=given.all)
        # Data is not called, unless that is not known.
        called = _direct(given) if call.reads_trees else given.all
        for held in contents(thing.items | called):
            if isinstance(held, Instance) and held.of.find(name):
                found |= self.call_method(frozenset((held,)), name, given)
            elif isinstance(held, Instance) and not call.reads_trees:
                found |= self._call_methods(held, rest, everything=not thing.frozen)
            elif isinstance(held, Function | Wrapped | Method):
                found |= self.call(frozenset((held,)), rest)
        return found

    def call_made(self, thing: Made, given: Arguments) -> Value:
        """Calls an object of a library, or a method of it that was kept."""
        if thing.path.startswith("rules"):
            for shared in thing.shares:
                if isinstance(shared, Wrapped):
                    self._add_rule(shared, given)
            return given.all
        if thing.path.startswith("operator."):
            self.change_reached(given.all)
        return self._made_method(thing, "__call__", given)

    def iterator_method(self, thing: Thing, name: str, given: Arguments) -> Value:
        """A method of an iterator, a generator or a coroutine."""
        return self.elements(frozenset((thing,))) | given.all

    def inherited(self, thing: Instance, name: str, given: Arguments) -> Value:
        """A method that a class of the page has from a library's class."""
        own = frozenset((thing,))
        libraries = thing.of.libraries
        kind = known.base_kind(libraries)
        if name in ("__init__", "__post_init__"):
            self.keep(thing, given.all)
            for key, value in given.keywords.items():
                self.keep(thing, value, key)
            return NOTHING
        if name in ("__getattribute__", "__getattr__"):
            return thing.items.union(*thing.fields.values())
        if name in ("__setattr__", "__setitem__", "__delattr__", "__delitem__"):
            field = given.constants.get(0)
            if name.endswith("attr__") and isinstance(field, str):
                self.keep(thing, given.at(1), field)
            else:
                self.keep(thing, given.all)
            self.change(thing)
            return NOTHING
        if kind is not None:
            if name in known.CHANGING.get(kind, ()):
                self._store(thing, name, given)
                self.change(thing)
            if name in ("values", "items", "keys"):
                return self.box(_VIEWS[name], own)
            return thing.items | given.at(1)
        plain = all(map(known.is_plain_base, libraries))
        plain |= all(map(known.is_module_base, libraries))
        returned = NOTHING
        if not plain:
            rest = Arguments(rest=given.all)
            returned = self._call_methods(thing, rest, everything=True)
        if not all(map(known.is_frozen_base, libraries)):
            self.keep(thing, given.all)
            self.change(thing)
            if any(_is_foreign(path) for path in libraries):
                self.change_reached(given.all)
        self.use(given.all, deep=True)
        return own | thing.items | returned


# These give the function arguments of its own.
_BIND = (
    "functools.partial",
    "functools.partialmethod",
    "jax.tree_util.Partial",
    "equinox.Partial",
)
_VIEWS = {"keys": "keys", "values": "values", "items": "pairs"}
_CONSTRUCTORS = ("__init__", "__new__", "__init_subclass__", "__del__", "__class__")
_DATA = ("ndarray", "ref")


def _is_function(thing: Thing) -> bool:
    return isinstance(thing, Function | Wrapped | Method | Library | Class)


def _is_foreign(base: str) -> bool:
    return not (known.is_known(base) or known.is_module_base(base))


def _direct(given: Arguments) -> Value:
    """The functions among arguments, not those inside of them."""
    return frozenset(t for t in given.all if _is_function(t))


def _data(value: Value) -> Value:
    """What a library gives to the functions it calls: all but the functions."""
    held = contents(value)
    if not any(map(_is_function, held)):
        return frozenset(held)
    return frozenset(
        t
        for t in held
        if not _is_function(t)
        and not (isinstance(t, Box) and any(map(_is_function, t.items)))
    )


def _is_harmless(thing: Thing) -> bool:
    """Whether calling a library's function leaves nothing behind.

    Python's own functions may call the special methods of what they are given.
    """
    if not isinstance(thing, Library) or thing.path.startswith("builtins."):
        return False
    return known.call(thing.path).is_harmless


def _key(thing: Thing) -> object:
    """What the traces of a function are kept under."""
    if isinstance(thing, Method):
        inner = thing.function
        return (inner if isinstance(inner, str) else _key(inner)), thing.of
    if isinstance(thing, Wrapped) and len(thing.functions) == 1:
        return _key(next(iter(thing.functions)))
    return thing


def _donated(constants: dict[int | str, object]) -> frozenset[object] | None:
    """The places and names of donated arguments; None if it is not known which."""
    found = set[object]()
    for name, written in constants.items():
        if str(name).startswith("donate"):
            if isinstance(written, int | str):
                found.add(written)
            elif isinstance(written, tuple | list):
                found.update(written)
            else:
                return None
    return frozenset(found)
