"""IPython's magics, as the Python that they run.

`%timeit`, `%time` and their cell forms become the code they run, once: a program gives
the value, and a timing is never the same twice. Magics that only concern the notebook
go. The others have no counterpart in Python, and become comments.
"""

from __future__ import annotations

import ast
import re

#: A magic without a counterpart in Python: its line, and what it is.
Magic = tuple[int, str]

_RUNS_ITS_CODE = ("time", "timeit", "capture", "prun")
_NOTEBOOK_ONLY = ("matplotlib", "config", "load_ext", "autoreload", "xmode")
_OPTIONS = re.compile(r"(\s*(-[nr]\s*\d+|-[a-zA-Z]+)(?=\s|$))*")
_LINE = re.compile(
    r"(?P<indent>\s*)(?P<target>[\w., ]+=\s*)?"
    r"(?P<typed>%(?P<name>\w+) *(?P<code>.*)|!.*|\?.*|[\w.]+\?+)"
)


def python_of(code: str) -> tuple[str, ast.Module, list[Magic]]:
    """A cell's code as plain Python, parsed, and the magics that are none.

    Lines keep their numbers.

    Raises:
        SyntaxError: it is neither Python nor IPython's.

    >>> python_of("%time x = 1")[0]
    'x = 1'
    """
    cell_magic = re.match(r"(\n*)%%(\w+) *(.*)", code)
    if cell_magic:
        blank, name, argument = cell_magic.groups()
        if name not in _RUNS_ITS_CODE:
            return code, ast.Module([], []), [(1 + len(blank), f"%%{name}")]
        setup = _OPTIONS.sub("", argument, count=1).strip() if name == "timeit" else ""
        code = f"{blank}{setup}{code[cell_magic.end() :]}"
    try:
        return code, ast.parse(code), []
    except SyntaxError as error:
        lines, magics = _without_line_magics(code.split("\n"))
        text = "\n".join(lines)
        if text == code:
            raise
        try:
            return text, ast.parse(text), magics
        except SyntaxError:
            raise error from None


def _without_line_magics(lines: list[str]) -> tuple[list[str], list[Magic]]:
    """Puts what line magics run in their place."""
    written, magics = list(lines), list[Magic]()
    for i, line in enumerate(lines):
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        indent, target, name = match["indent"], match["target"], match["name"]
        if name in _NOTEBOOK_ONLY and not target:
            written[i] = f"{indent}pass" if indent else ""
        elif name in _RUNS_ITS_CODE and not target:
            ran = _OPTIONS.sub("", match["code"], count=1).strip()
            # %timeit shows no value.
            written[i] = f"{indent}{ran}{';' if name == 'timeit' else ''}"
        else:
            magics.append((i + 1, f"%{name or 'system'}"))
            instead = f"{target}None  " if target else "pass  " if indent else ""
            written[i] = f"{indent}{instead}# {match['typed']}"
    return written, magics
