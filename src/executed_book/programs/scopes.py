"""Which names live in which function of a cell, as Python's own compiler tells it."""

from __future__ import annotations

import ast
import symtable
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

#: What tells a scope: its name, its line, and the names of its parameters.
_Key = tuple[str, int, frozenset[str] | None]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Scope:
    """The names of one function or class body.

    Attributes:
        locals: those bound in it, parameters included.
        globals: those that it declares to be the page's.
    """

    locals: frozenset[str] = frozenset()
    globals: frozenset[str] = frozenset()


def scopes(source: str, nodes: Iterable[ast.AST]) -> dict[ast.AST, Scope]:
    """The scope of each function and class in a cell.

    Args:
        source: the cell's text.
        nodes: all that its statements consist of.

    >>> source = "def f(x):\\n    global n\\n    n = y = x"
    >>> nodes = list(ast.walk(ast.parse(source)))
    >>> found = scopes(source, nodes)[nodes[1]]
    >>> sorted(found.locals), sorted(found.globals)
    (['x', 'y'], ['n'])
    """
    tables = defaultdict[_Key, list[symtable.SymbolTable]](list)
    owners = [n for n in nodes if isinstance(n, (*FUNCTIONS, ast.ClassDef))]
    if not owners:
        return {}
    for table in _below(symtable.symtable(source, "<cell>", "exec")):
        tables[_key_of(table)].append(table)
    # Those that agree in all that the key holds come in the order of the text. Python
    # lists a scope's own tables in that order, and nested ones have other names or
    # lines, apart from lambdas in lambdas on one line: their parameters differ.
    owners.sort(key=lambda n: (n.lineno, n.col_offset))
    found: dict[ast.AST, Scope] = {}
    for node in owners:
        waiting = tables[_key(node)]
        found[node] = _scope(waiting.pop(0)) if waiting else Scope()
    return found


def _below(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        if child.get_type() in ("function", "class"):
            yield child
        yield from _below(child)


def _key_of(table: symtable.SymbolTable) -> _Key:
    if isinstance(table, symtable.Function):
        return table.get_name(), table.get_lineno(), frozenset(table.get_parameters())
    return table.get_name(), table.get_lineno(), None


def _key(node: ast.AST) -> _Key:
    if isinstance(node, ast.ClassDef):
        return node.name, node.lineno, None
    assert isinstance(node, FUNCTIONS)
    name = getattr(node, "name", "lambda")
    return name, node.lineno, frozenset(parameters(node.args))


def _scope(table: symtable.SymbolTable) -> Scope:
    symbols = table.get_symbols()
    declared = {s.get_name() for s in symbols if s.is_declared_global()}
    own = {s.get_name() for s in symbols if s.is_local()}
    return Scope(frozenset(own), frozenset(declared))


def parameters(arguments: ast.arguments) -> list[str]:
    """The names of a function's parameters, starred ones included."""
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [a for a in (arguments.vararg, arguments.kwarg) if a]
    return [a.arg for a in every]
