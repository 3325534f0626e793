"""The whole chapter to take away, as one script."""

import ast
import re
from collections.abc import Iterable, Sequence

from .cells import SourceCell
from .slicing import Page
from .text import Edit, edit, indented, is_displayed, printed


def script(parts: Sequence[SourceCell | str], header: str) -> str:
    """A chapter as one script.

    Args:
        parts: the chapter in order: its cells, and its prose as Markdown text. Of the
            prose only the headings are kept, as comments.
        header: the first line, a comment.

    A cell that is announced to raise prints the class and the message of what it
    raised, and the script goes on; it stops if the cell does not raise. A cell that
    only IPython understands is a comment.
    """
    page = Page([part for part in parts if isinstance(part, SourceCell)])
    lines, k = [header], 0
    for part in parts:
        if isinstance(part, str):
            lines += [f"\n# {line}" for line in _headings(part)]
            continue
        lines += ["", "# %%", _script_cell(page, k)]
        k += 1
    return "\n".join([*_future_first(lines), ""])


def _future_first(lines: list[str]) -> list[str]:
    """Moves imports from the future to the top of a file, where Python wants them."""
    pattern = r"(?m)^from __future__ import .+$"
    future_imports = [match for text in lines for match in re.findall(pattern, text)]
    first, *rest = [re.sub(pattern, "", text) for text in lines]
    return [first, *dict.fromkeys(future_imports), *rest]


def _headings(prose: str) -> list[str]:
    fenced = re.sub(r"(?ms)^(`{3,}|:{3,}).*?^\1", "", prose)
    return re.findall(r"(?m)^#+ .+$", fenced)


def _script_cell(page: Page, k: int) -> str:
    cell = page.cells[k]
    if cell.problem is not None:
        if cell.source.raises is None:
            typed = cell.source.code.strip("\n").split("\n")
            return "\n".join(f"# {line}".rstrip() for line in typed)
        compiled = f'compile({cell.source.code!r}, "<cell>", "exec")'
        return _expected_to_raise(compiled, cell.source.raises)
    node = cell.nodes[-1] if cell.nodes else None
    edits: Iterable[Edit] = ()
    if isinstance(node, ast.Expr) and cell.source.raises is None:
        edits = printed(node, cell.lines) if is_displayed(page, cell, node) else ()
    text = "\n".join(edit(cell.lines, edits)).strip("\n")
    if cell.source.raises is None:
        return text
    return _expected_to_raise(text, cell.source.raises)


def _expected_to_raise(text: str, announced: str) -> str:
    message = f"this cell was announced to raise {announced}"
    return "\n".join(
        [
            "try:",
            indented(text),
            "except Exception as error:",
            '    print(f"{type(error).__name__}: {error}")',
            "else:",
            f"    raise AssertionError({message!r})",
        ]
    )
