"""What names code binds, and what names it looks up, told from its syntax."""

import ast
import functools
import warnings
from collections.abc import Iterable, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Code = Function | ast.ClassDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def parsed(code: str) -> ast.Module:
    """The syntax tree of code; what Python warns of there, its cell shows by itself."""
    with warnings.catch_warnings(action="ignore"):
        return ast.parse(code)


def root_name(node: ast.AST) -> str:
    """The name an access path starts from: `a` for `a.b[0].c`."""
    while True:
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Await):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return node.id if isinstance(node, ast.Name) else ""


def dotted(node: ast.expr) -> str:
    """`jax.numpy.sum` as it is written; empty for what is no name with attributes.

    >>> dotted(ast.parse("np.random.normal", mode="eval").body)
    'np.random.normal'
    """
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return node.id if isinstance(node, ast.Name) else ""


def imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """The names that an import binds, each with its dotted path."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif alias.asname:
            yield alias.asname, alias.name
        else:
            top = alias.name.partition(".")[0]
            yield top, top


def bound_names(statements: Iterable[ast.AST]) -> Iterator[str]:
    """The names that statements bind in the scope that they are in.

    >>> list(bound_names(ast.parse("import a.b; c = [d for d in e]").body))
    ['a', 'c']
    """
    for node in same_scope(statements):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.Import() | ast.ImportFrom():
                yield from (name for name, _ in imports(node))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Global):
                        yield from inner.names
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name


@functools.lru_cache(4096)
def bound_by(statement: ast.AST) -> frozenset[str]:
    """The names that one statement binds; asked for at each call that runs it."""
    return frozenset(bound_names([statement]))


@functools.lru_cache(4096)
def is_generator(code: Code) -> bool:
    """Whether there is a `yield` in code, or in what is defined inside."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(code))


def same_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes that belong to the same scope."""
    for node in nodes:
        yield node
        if isinstance(node, Comprehension):
            inner = (n for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            yield from (n.target for n in inner)
        elif not isinstance(node, Code):
            yield from same_scope(ast.iter_child_nodes(node))


def parameters(code: Function) -> tuple[list[str], list[str]]:
    """The names of a function's parameters: by position, and all others."""
    of = code.args
    others = [*of.kwonlyargs, *(a for a in (of.vararg, of.kwarg) if a)]
    return [a.arg for a in (*of.posonlyargs, *of.args)], [a.arg for a in others]


@functools.lru_cache(4096)
def own_names(code: Code) -> frozenset[str]:
    """The names of a function's or a class's own scope."""
    if isinstance(code, ast.Lambda):
        return frozenset().union(*parameters(code))
    bound = frozenset(bound_names(code.body))
    if isinstance(code, ast.ClassDef):
        return bound | {"__class__"}  # which `super()` looks up
    outer = {
        name
        for node in same_scope(code.body)
        if isinstance(node, ast.Global | ast.Nonlocal)
        for name in node.names
    }
    return bound.union(*parameters(code)) - outer


@functools.lru_cache(4096)
def free_names(code: Code) -> frozenset[str]:
    """The names of the scopes around it that code looks up, now or when it is called.

    >>> sorted(free_names(ast.parse("def f(a): return a + [b for b in c]").body[0]))
    ['c']
    """
    if isinstance(code, ast.Lambda):
        return looked_up(code.body) - own_names(code)
    if not isinstance(code, ast.ClassDef):
        return frozenset().union(*map(looked_up, code.body)) - own_names(code)
    names = frozenset[str]()
    for node in code.body:  # the names of a class are not those of its methods
        below = free_names(node) if isinstance(node, Code) else frozenset()
        names |= (looked_up(node) - own_names(code)) | below
    return names


def looked_up(node: ast.AST) -> frozenset[str]:
    """The names that a statement or an expression looks up or binds."""
    if isinstance(node, ast.Name):
        return frozenset((node.id,))
    children = list(ast.iter_child_nodes(node))
    names = frozenset[str]()
    if isinstance(node, Code):
        body = node.body if isinstance(node.body, list) else [node.body]
        children = [child for child in children if child not in body]
        names = free_names(node)
    names = names.union(*map(looked_up, children))
    if isinstance(node, Comprehension):
        targets = bound_names(part.target for part in node.generators)
        return names - frozenset(targets) | looked_up(node.generators[0].iter)
    return names
