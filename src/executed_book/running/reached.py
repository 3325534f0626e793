"""Which assertions of a cell run: one that never runs vouches for nothing."""

import ast
import builtins
from typing import Any

#: The function that code calls right before each of its assertions.
_NAME = "__reached__"


class Reached(ast.NodeTransformer):
    """Rewrites the code of cells so that it notes which of its assertions it reaches.

    An assertion goes by its line. What can only fail, `assert False` or a `raise`,
    is not counted: the test around it decides.
    """

    def __init__(self) -> None:
        self._lines: set[int] = set()
        self._seen: set[int] = set()
        setattr(builtins, _NAME, self._seen_add)

    def start(self) -> None:
        """Begin a cell."""
        self._lines, self._seen = set(), set()

    def result(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The lines of the assertions that ran since, and of those that did not."""
        return tuple(sorted(self._seen)), tuple(sorted(self._lines - self._seen))

    def _seen_add(self, line: int) -> None:
        if line in self._lines:  # else of an earlier cell's function
            self._seen.add(line)

    def visit(self, node: ast.AST) -> Any:
        # Expressions hold no assertions, and may be nested deeper than Python recurses.
        return node if isinstance(node, ast.expr) else super().visit(node)

    def visit_Assert(self, node: ast.Assert) -> Any:
        is_failure = isinstance(node.test, ast.Constant) and not node.test.value
        return node if is_failure else self._noted(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        match node.value:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
                return self._noted(node) if name.startswith("assert") else node
        return node

    def _noted(self, node: ast.stmt) -> Any:
        self._lines.add(node.lineno)
        call = ast.Call(ast.Name(_NAME, ast.Load()), [ast.Constant(node.lineno)], [])
        note = ast.copy_location(ast.Expr(call), node)
        return [ast.fix_missing_locations(note), node]
