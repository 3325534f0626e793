"""The lens: Python, jaxpr and optimized HLO of one function, linked."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import _costs, _hlo, _jaxpr, _link, _marks, _show, _source, _trace
from ._model import Costs, Equation, Instruction, Kernel, Link, Source, Span
from ._rows import Row, Table, table

__all__ = [
    "Costs",
    "Equation",
    "Instruction",
    "Kernel",
    "Lens",
    "Link",
    "Row",
    "Source",
    "Span",
    "Table",
    "lens",
]


@dataclass(frozen=True, eq=False, repr=False)
class Lens:
    """What JAX and XLA made of one function; see :func:`lens`.

    In a notebook it shows three linked columns; ``print`` gives plain text.

    Attributes:
        source: the source of the function and of your helpers that it calls.
        equations: the jaxpr's equations in order, those of inner jaxprs after the
            equation that holds them.
        kernels: the compiled program's kernels in the order they are scheduled. A
            kernel in a loop is listed once.
        links: for each Python expression, its equations and kernels.
        inputs: the jaxpr's inputs with their types; `constants`, the captured arrays.
        notes: what could not be shown, and why.
    """

    name: str
    source: tuple[Source, ...]
    equations: tuple[Equation, ...]
    kernels: tuple[Kernel, ...]
    links: tuple[Link, ...]
    inputs: str
    constants: str
    results: str
    notes: tuple[str, ...]
    platform: str
    _compiled: _trace.Program

    @property
    def primitives(self) -> tuple[Equation, ...]:
        """The equations that are work, without those that only hold others."""
        return tuple(
            eqn
            for eqn in self.equations
            if not eqn.regions or eqn.primitive in ("scan", "while", "cond")
        )

    @property
    def gone(self) -> tuple[Equation, ...]:
        """The primitives that are unused, folded or gone: see `Equation`."""
        return tuple(eqn for eqn in self.primitives if eqn.gone)

    @functools.cached_property
    def costs(self) -> Costs:
        """FLOPs, bytes and memory of one call, estimated, and the compile time."""
        return _costs.summed(self.kernels, self.kernel_costs, self._compiled.costs)

    @functools.cached_property
    def kernel_costs(self) -> tuple[Costs, ...]:
        """What one run of each kernel costs, in the kernels' order: see `Costs`."""
        return _costs.of_kernels(self._compiled.hlo, self.kernels)

    def at(self, expression: str, line: int | None = None) -> Link:
        """Look up a Python expression as it is written in the source.

        Spaces, line breaks and comments do not matter outside strings.

        Args:
            expression: the expression's text, such as ``"jnp.tanh(x)"``.
            line: the line it begins in, where several lines have it.

        Raises:
            KeyError: no place or several match; the message lists the candidates.
        """
        wanted = _source.normal(expression)
        named = [(one, one.span) for one in self.links if one.expression and one.span]
        found = [
            (one, span)
            for one, span in named
            if _source.normal(str(one.expression)) == wanted
            and line in (None, span.line)
        ]
        if len(found) == 1:
            return found[0][0]
        if found:
            places = ", ".join(f"{span.file} line {span.line}" for _, span in found)
            raise KeyError(f"{expression!r} is in several places: {places}")
        known = ", ".join(f"{one.expression!r} (L{span.line})" for one, span in named)
        raise KeyError(f"no equation came from {expression!r}; there are: {known}")

    def table(self, *args: Any, calls: int = 10, **kwargs: Any) -> Table:
        """One row for each expression with kernels, the most expensive first.

        A kernel counts for the expression that does most of its work, so the rows add
        up; the others that it holds name it in brackets. Loops are multiplied by
        their length; a row with a kernel of unknown cost says so.

        Args:
            *args: arguments as for the function, with values: then the program runs
                under JAX's profiler, and each row has the median time of its kernels.
            calls: how often to run it.
            **kwargs: keyword arguments as for the function.
        """
        seconds = None
        if args or kwargs:
            program = self._compiled
            seconds = _costs.seconds(program, self.kernels, args, kwargs, calls)
        return table(self, seconds)

    def save(self, path: str | Path) -> None:
        """Write an HTML file that opens by itself, without a server."""
        Path(path).write_text(_show.page(self), encoding="utf-8")

    def _repr_html_(self) -> str:
        return _show.fragment(self)

    def __str__(self) -> str:
        return _show.render(self)

    def __repr__(self) -> str:
        primitives = _show.count(len(self.primitives), "primitive")
        kernels = _show.count(len(self.kernels), "kernel")
        return f"<Lens of {self.name}: {primitives}, {kernels}>"


def lens(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Lens:
    """Show Python, jaxpr and optimized HLO of a function side by side, linked.

    The function is traced and compiled for these arguments, but not run.

    Args:
        fn: any function that JAX can trace; a jitted one keeps its own settings, such
            as static arguments.
        *args: arguments for ``fn``; arrays, pytrees of arrays, or
            ``jax.ShapeDtypeStruct`` for a shape and dtype without values.
        **kwargs: keyword arguments for ``fn``.

    Raises:
        TypeError: ``fn`` is not callable, or the arguments do not fit it.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from justafter import lens
        >>> def f(x):
        ...     return jnp.tanh(x) * 2 + 1
        >>> view = lens(f, jax.ShapeDtypeStruct((3,), "float32"))
        >>> [eqn.primitive for eqn in view.equations]
        ['tanh', 'mul', 'add']
        >>> view.at("jnp.tanh(x)").equations
        (0,)
    """
    program = _trace.compile_program(fn, args, kwargs)
    return assemble(fn, program)


def assemble(fn: Callable[..., Any], program: _trace.Program) -> Lens:
    """Collect the three columns and link them."""
    sources = _source.Sources()
    jaxpr = _jaxpr.opened(program.traced.jaxpr)
    found = _jaxpr.Collector(sources, program.numbered, jaxpr)
    module = _hlo.parse(program.hlo)
    marks = _marks.Marks(found.equations, module, found.reads())
    steps = _hlo.steps(module)
    kernels = _link.kernels(marks, steps)
    start, expression = sources.first_line(fn), functools.cache(sources.expression)
    equations = _link.with_fates(
        found.equations, kernels, steps, marks, expression, program.lowered
    )
    pieces = sources.pieces(start, [eqn.span for eqn in equations if eqn.span])
    costs = replace(program.costs, devices=module.partitions)
    return Lens(
        name=program.name,
        source=pieces,
        equations=equations,
        kernels=kernels,
        links=_link.links(equations),
        inputs=found.inputs,
        constants=found.constants,
        results=found.outputs,
        notes=tuple(_notes(program, start, sources, pieces)),
        platform=program.platform,
        _compiled=replace(program, costs=costs),
    )


def _notes(
    program: _trace.Program,
    start: _source.Place | None,
    sources: _source.Sources,
    pieces: tuple[Source, ...],
) -> Iterator[str]:
    """What a lens could not show, and why."""
    changed = sources.changed_files()
    for label in changed:
        yield (
            f"{label} changed on disk after it was imported, so its source is not "
            "shown. Import it again to see it."
        )
    if program.library:
        yield (
            f"{program.library} passed {program.name} to jax.jit. The lens does not "
            "see the options that it passed too, such as donation."
        )
    if start is None and not pieces:
        yield f"{program.name} is a library's function: its source is not shown."
    elif start and not changed and all(piece.path != start[0] for piece in pieces):
        yield (
            f"No source for {program.name}: it was defined in a prompt or by exec, or "
            "its file is gone. The other columns are complete."
        )
