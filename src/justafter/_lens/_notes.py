"""What a lens could not show, and why."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from pathlib import Path

from .. import _functions
from .._internals import _equations
from ._model import Equation, Source
from ._source import Sources
from ._trace import Program


def notes(
    program: Program,
    start: tuple[str, int, str] | None,
    sources: Sources,
    pieces: tuple[Source, ...],
    equations: tuple[Equation, ...],
) -> Iterator[str]:
    """Yield what a reader must know, most important first."""
    changed = sources.changed_files()
    for label in changed:
        yield (
            f"{label} changed on disk after it was imported: its source is not shown, "
            "for it is not what was traced. Import it anew to see it."
        )
    if program.library:
        yield (
            f"{program.library} jitted {program.name}: options such as donation, which "
            "it passes to jax.jit, are not seen."
        )
    if start is None and not pieces:
        yield f"{program.name} is a library's function: its source is not shown."
    elif start and not changed and not any(piece.path == start[0] for piece in pieces):
        path = start[0]
        was_file = not path.startswith("<")
        how = (
            f"{_functions.file_label(path)} is not on disk any more"
            if was_file and not Path(path).exists() and path not in linecache.cache
            else "it was defined in a prompt or by exec"
        )
        yield (f"No source for {program.name}: {how}. The other columns are complete.")
    if start is not None and equations and not any(eqn.span for eqn in equations):
        yield "This JAX version gave no source spans: expressions are not linked."
    if program.numbered is None:
        yield (
            "This JAX version does not let lens number the equations: HLO is linked "
            "by where an expression starts, which may confuse equal primitives."
        )
    elif not _equations.has_tags(program.hlo) and any(
        eqn.fate == "unknown" for eqn in equations
    ):
        yield (
            "The compiled program names no equation: what it computes is not known to "
            "belong to any."
        )
