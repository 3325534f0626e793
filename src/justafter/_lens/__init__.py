"""The lens: Python, jaxpr and optimized HLO of one function, linked."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from . import _hlo, _html, _jaxpr, _link, _marks, _source, _text, _trace
from ._model import Costs, Equation, Instruction, Kernel, Link, Source, Span

__all__ = [
    "Costs",
    "Equation",
    "Instruction",
    "Kernel",
    "Lens",
    "Link",
    "Source",
    "Span",
    "lens",
]


@dataclass(frozen=True, eq=False, repr=False)
class Lens:
    """What JAX and XLA made of one function; see :func:`lens`.

    In a notebook it shows three linked columns; ``print`` gives plain text.

    Attributes:
        name: the function's name.
        source: the source of the function and of each helper of the user's that it
            calls.
        equations: the jaxpr's equations in order, those of inner jaxprs after the
            equation that holds them, each with its span, its fate and its kernels.
        kernels: the compiled program's kernels in the order they are scheduled,
            each with the equations that ended up in it. A kernel in a loop is
            listed once.
        links: for each Python expression, its equations and kernels.
        costs: FLOPs, bytes and memory by XLA's analysis, and the compile time.
        inputs: the jaxpr's inputs with their types.
        results: the names of the jaxpr's results.
        notes: what could not be shown, and why.
        platform: the platform that the program was compiled for.
    """

    name: str
    source: tuple[Source, ...]
    equations: tuple[Equation, ...]
    kernels: tuple[Kernel, ...]
    links: tuple[Link, ...]
    costs: Costs
    inputs: str
    results: str
    notes: tuple[str, ...] = ()
    platform: str = "cpu"
    rows: tuple[_link.Row, ...] = field(default=(), repr=False)

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
        """The primitives that no kernel computes, being unused, folded or removed."""
        return tuple(eqn for eqn in self.primitives if eqn.gone)

    def at(self, expression: str) -> Link:
        """Look up a Python expression as it is written in the source.

        Args:
            expression: the expression's text, such as ``"jnp.tanh(x)"``.

        Raises:
            KeyError: no equation came from such an expression; the message lists
                the expressions that there are.
        """
        wanted = " ".join(expression.split())
        for link in self.links:
            if link.expression == wanted:
                return link
        known = ", ".join(repr(one.expression) for one in self.links if one.expression)
        raise KeyError(f"no equation came from {expression!r}; there are: {known}")

    def save(self, path: str | Path) -> None:
        """Write an HTML file that opens by itself, without a server."""
        Path(path).write_text(_html.page(self), encoding="utf-8")

    @functools.cached_property
    def _html(self) -> str:
        return _html.fragment(self)

    def _repr_html_(self) -> str:
        return self._html

    def __str__(self) -> str:
        return _text.render(self)

    def __repr__(self) -> str:
        primitives = _text.count(len(self.primitives), "primitive")
        kernels = _text.count(len(self.kernels), "kernel")
        return f"<Lens of {self.name}: {primitives}, {kernels}>"


def lens(
    fn: Callable[..., Any],
    *args: Any,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    **kwargs: Any,
) -> Lens:
    """Show Python, jaxpr and optimized HLO of a function side by side, linked.

    The function is traced and compiled for these arguments, but not run. The link
    is exact: an HLO instruction leads back to the very equations that it came from,
    and each equation to one Python expression. Where XLA kept no record of where
    work came from, the lens says that it appeared.

    Args:
        fn: any function that JAX can trace; a jitted one keeps its own settings.
        *args: arguments for ``fn``; arrays, pytrees of arrays, or
            ``jax.ShapeDtypeStruct`` for a shape and dtype without values.
        static_argnums: positions of arguments that are Python values, as for
            ``jax.jit``.
        static_argnames: names of such arguments.
        **kwargs: keyword arguments for ``fn``.

    Returns:
        A :class:`Lens`: shown by notebooks, printable, and readable by programs.

    Raises:
        TypeError: ``fn`` is not callable, or the arguments do not fit it. An error
            that ``fn`` raises while it is traced passes unchanged.

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
    _trace.check(fn, args, kwargs, static_argnums, static_argnames)
    program = _trace.compile_program(fn, args, kwargs, static_argnums, static_argnames)
    return assemble(fn, program)


def assemble(fn: Callable[..., Any], program: _trace.Program) -> Lens:
    """Collect the three columns and link them."""
    sources = _source.Sources()
    collector = _jaxpr.Collector(sources)
    jaxpr = _jaxpr.opened(program.jaxpr)
    inputs = collector.header("", jaxpr)
    collector.walk(jaxpr)
    module = _hlo.parse(program.hlo)
    marks = _marks.Marks(collector.equations, module, sources)
    rows = _link.rows(marks, _hlo.steps(module))
    equations = _link.with_fates(collector.equations, rows, marks.rewritten)
    spans = [eqn.span for eqn in equations if eqn.span is not None]
    pieces = sources.pieces(fn, spans)
    return Lens(
        name=program.name,
        source=pieces,
        equations=equations,
        kernels=tuple(row.kernel for row in rows if row.kernel is not None),
        links=_link.links(equations),
        costs=replace(program.costs, devices=module.partitions),
        inputs=inputs,
        results=collector.results(jaxpr),
        notes=tuple(notes(fn, program, pieces, equations)),
        platform=program.platform,
        rows=tuple(_link.shown_rows(rows, equations)),
    )


def notes(
    fn: Callable[..., Any],
    program: _trace.Program,
    pieces: tuple[Source, ...],
    equations: tuple[Equation, ...],
) -> list[str]:
    """Say what could not be shown."""
    said = []
    start = _source.first_line(fn)
    if start is None:
        said.append(f"{program.name} is a library's function: its source is not shown.")
    elif not any(piece.path == start[0] for piece in pieces):
        said.append(
            f"No source for {program.name}: it was defined in a REPL or by exec. "
            "The other columns are complete."
        )
    if start is not None and equations and not any(eqn.span for eqn in equations):
        said.append(
            "This JAX version gave no source spans: expressions are not linked."
        )
    if not program.is_tagged:
        said.append(
            "This JAX version does not let lens number the equations: HLO is linked "
            "by where an expression starts, which may confuse equal primitives."
        )
    return said
