"""IPython's magics, as the Python that they run.

`%timeit`, `%time` and their cell forms become the code they run, once: a program gives
the value, and a timing is never the same twice. Magics that only concern the notebook
go. The others have no counterpart in Python.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

#: A magic without a counterpart in Python: its line, and what it is.
Magic = tuple[int, str]

_RUNS_ITS_CODE = frozenset({"time", "timeit", "capture", "prun"})
_NOTEBOOK_ONLY = frozenset({"matplotlib", "config", "load_ext", "autoreload", "xmode"})
_OPTION = re.compile(r"\s*(?:-[nr]\s*\d+|-[a-zA-Z]+)(?=\s|$)")


def python_of(code: str) -> tuple[str, ast.Module, list[Magic]]:
    """A cell's code as plain Python, parsed, and the magics that are none.

    Lines keep their numbers.

    Raises:
        SyntaxError: it is neither Python nor IPython's.

    >>> python_of("%time x = 1")[0]
    'x = 1'
    """
    if not code.lstrip("\n").startswith("%%"):
        # Nearly every cell is Python as it stands, which IPython leaves as it is.
        try:
            return code, ast.parse(code), []
        except SyntaxError:
            pass  # told below, unless IPython makes sense of it
    from IPython.core.inputtransformer2 import TransformerManager  # few cells need it

    source, unknown = _without_cell_magic(code)
    text = TransformerManager().transform_cell(source) if source.strip() else ""
    skipped = len(source) - len(source.lstrip("\n"))
    text = ("\n" * skipped + text).rstrip("\n")
    lines, magics = _without_line_magics(ast.parse(text), text.split("\n"))
    text = "\n".join(lines)
    return text, ast.parse(text), [*magics, *unknown]


def _without_cell_magic(code: str) -> tuple[str, list[Magic]]:
    """Takes off a leading `%%magic` line, leaving the line empty."""
    stripped = code.lstrip("\n")
    if not stripped.startswith("%%"):
        return code, []
    first, _, rest = stripped.partition("\n")
    name, _, argument = first[2:].partition(" ")
    if name not in _RUNS_ITS_CODE:
        return rest, [(1, f"%%{name}")]
    setup = _OPTION.sub("", argument) if name == "timeit" else ""
    return "\n" * (len(code) - len(stripped)) + setup.strip() + "\n" + rest, []


def _without_line_magics(
    tree: ast.Module, lines: list[str]
) -> tuple[list[str], list[Magic]]:
    """Puts what line magics run where IPython calls them."""
    magics = []
    bare = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node, method, arguments in _ipython_calls([tree]):
        line = node.lineno - 1
        code = _magic_code(method, arguments) if id(node) in bare else None
        if code is None:
            name = arguments[0] if method == "run_line_magic" else method
            magics.append((node.lineno, f"%{name}"))
            continue
        # A magic takes the rest of its line, so this is all of it.
        before = lines[line].encode()[: node.col_offset].decode()
        lines[line] = before + (code or ("pass" if before else ""))
    return lines, magics


def _ipython_calls(
    nodes: Iterable[ast.AST],
) -> Iterator[tuple[ast.Call, str, list[str]]]:
    """The calls `get_ipython().method(...)`, with the method and what it is given."""
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Call(func=ast.Name(id="get_ipython")), attr=method
                )
            ):
                yield node, method, [str(getattr(a, "value", "")) for a in node.args]


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


def commented(lines: Sequence[str], nodes: Iterable[ast.stmt]) -> list[str]:
    """A cell's lines with what only IPython understands as comments.

    Args:
        lines: its text, as IPython transforms it.
        nodes: its statements.

    >>> text, tree, _ = python_of("if x:\\n    !ls -l\\nn = !wc")
    >>> print("\\n".join(commented(text.split("\\n"), tree.body)))
    if x:
        pass  # !ls -l
    # n = !wc
    """
    written = list(lines)
    for call, method, arguments in _ipython_calls(nodes):
        raw = lines[call.lineno - 1].encode()
        before, after = raw[: call.col_offset].decode(), raw[call.end_col_offset :]
        typed = f"!{' '.join(arguments)}"
        if method == "run_line_magic":
            typed = f"%{' '.join(filter(None, arguments))}"
        indent = before[: len(before) - len(before.lstrip())]
        rest = before.lstrip() + typed + after.decode()
        written[call.lineno - 1] = f"{indent}{'pass  ' if indent else ''}# {rest}"
    return written
