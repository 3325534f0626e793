"""IPython's magics, as the Python that they run.

`%timeit`, `%time` and their cell forms become the code they run, once: a program gives
the value, and a timing is never the same twice. Magics that only concern the notebook
go, and a cell that is written to a file writes it.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

#: A magic without a counterpart in Python: its line, and what it is.
Magic = tuple[int, str]

_RUNS_ITS_CODE = frozenset({"time", "timeit", "capture", "prun"})
_NOTEBOOK_ONLY = frozenset({"matplotlib", "config", "load_ext", "autoreload", "xmode"})
_OPTION = re.compile(r"\s*(?:-[nr]\s*\d+|-[a-zA-Z]+)(?=\s|$)")


def python_of(code: str) -> tuple[str, ast.Module, list[Magic]]:
    """A cell's code as plain Python, parsed, and the magics that are none.

    Lines keep their numbers, apart from those of a cell that is written to a file.

    Raises:
        SyntaxError: it is neither Python nor IPython's.

    >>> python_of("%time x = 1")[0]
    'x = 1'
    """
    first = code.lstrip("\n")[:2]
    if first != "%%":
        # Nearly every cell is Python as it stands, which IPython leaves as it is.
        try:
            return code, ast.parse(code), []
        except SyntaxError:
            pass  # told below, unless IPython makes sense of it
    return _transformed(code)


def _transformed(code: str) -> tuple[str, ast.Module, list[Magic]]:
    from IPython.core.inputtransformer2 import TransformerManager  # few cells need it

    source, unknown = _cell_magic(code)
    text = TransformerManager().transform_cell(source) if source.strip() else ""
    skipped = len(source) - len(source.lstrip("\n"))
    text = ("\n" * skipped + text).rstrip("\n")
    lines, magics = _plain(ast.parse(text), text.split("\n"))
    text = "\n".join(lines)
    return text, ast.parse(text), [*magics, *unknown]


def _cell_magic(code: str) -> tuple[str, list[Magic]]:
    """Takes off a leading `%%magic` line, leaving the line empty."""
    stripped = code.lstrip("\n")
    if not stripped.startswith("%%"):
        return code, []
    first, _, rest = stripped.partition("\n")
    name, _, argument = first[2:].partition(" ")
    if name in ("file", "writefile") and (written := _written(argument, rest)):
        return written, []
    if name not in _RUNS_ITS_CODE:
        return rest, [(1, f"%%{name}")]
    setup = _OPTION.sub("", argument) if name == "timeit" else ""
    return "\n" * (len(code) - len(stripped)) + setup.strip() + "\n" + rest, []


def _written(arguments: str, body: str) -> str | None:
    """Python for a `%%writefile` cell, which says what it does; None if it is odd."""
    *options, name = arguments.split() or [""]
    if not name or options not in ([], ["-a"]):
        return None
    text = _literal(body if body.endswith("\n") else f"{body}\n")
    path = f"pathlib.Path({name!r})"
    if options:
        return (
            f"import pathlib\nprint('Appending to', {name!r})\n"
            f"with {path}.open('a') as _file:\n    _file.write({text})"
        )
    said = f"'Overwriting' if {path}.exists() else 'Writing'"
    return f"import pathlib\nprint({said}, {name!r})\n{path}.write_text({text});"


def _literal(text: str) -> str:
    """Text as Python's source, over several lines where it can be."""
    if "\\" in text or "'''" in text:
        return repr(text)
    return f"'''\\\n{text}'''"


def _plain(tree: ast.Module, lines: list[str]) -> tuple[Sequence[str], list[Magic]]:
    """Puts what line magics run where IPython calls them."""
    magics = []
    bare = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in _ipython_calls(tree):
        method, arguments = _method(node), _arguments(node)
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
    return lines, magics


def _ipython_calls(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls `get_ipython().method(...)` in a tree."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython")))
            ):
                yield node


def _method(node: ast.Call) -> str:
    return getattr(node.func, "attr", "")


def _arguments(node: ast.Call) -> list[str]:
    return [str(getattr(a, "value", "")) for a in node.args]


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
    for call in itertools.chain.from_iterable(map(_ipython_calls, nodes)):
        raw = lines[call.lineno - 1].encode()
        before, after = raw[: call.col_offset].decode(), raw[call.end_col_offset :]
        rest = before.lstrip() + _as_typed(call) + after.decode()
        indent = before[: len(before) - len(before.lstrip())]
        written[call.lineno - 1] = f"{indent}{'pass  ' if indent else ''}# {rest}"
    return written


def _as_typed(call: ast.Call) -> str:
    """A magic as it stands on the page."""
    method, arguments = _method(call), _arguments(call)
    if method == "run_line_magic":
        return "%" + " ".join(filter(None, arguments))
    return "!" + " ".join(arguments)


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
