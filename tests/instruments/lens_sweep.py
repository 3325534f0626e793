"""Every public function of JAX that can be called on small arrays, under the lens.

Run it with ``python -m tests.instruments.lens_sweep``; the tests run it as well. For
each function, and for its gradient, the compiled text is read by means of its own, and
held against what the lens says. It prints how much was tried, how sure the links are,
and what is wrong.
"""

import re
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from operator import attrgetter
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy
import jax.scipy.cluster.vq
import jax.scipy.integrate
import jax.scipy.interpolate
import jax.scipy.ndimage
import jax.scipy.optimize
import jax.scipy.signal
import jax.scipy.sparse.linalg
import jax.scipy.spatial.transform
import numpy as np
from jax import lax

from justafter import Lens, lens

S = jax.ShapeDtypeStruct
A, B3 = S((3, 3), "float32"), S((2, 3, 3), "float32")
V, N = S((4,), "float32"), S((4,), "int32")
T, F = S((4,), "bool"), S((), "float32")
C = S((4,), "complex64")
M = S((3, 3), "int32")

# Tried one after the other, until the function takes one.
FITTING = (
    *((A,), (A, A), (A, A, A), (V,), (V, V), (V, V, V), (N,), (N, N), (F,), (F, F)),
    *((T,), (T, T), (T, V, V), (A, V), (V, N), (N, V), (M, M), (B3,), (B3, B3)),
    *((C,), (C, C), (V, V, V, V), (F, F, F), (F, F, F, F), ([V, V],), ([A, A],)),
    *((V, 2), (A, 1), (A, (3, 3)), (2, V), ((2, 3),), (3,), (A, (1, 0)), (3, 3)),
    *((V, V, 2), (A, 0, 1), (A, N, V), (V, 0, V), (A, [1, 2]), (V, N, 4), (F, N)),
)

# Functions that need arguments of their own.
SPECIAL: dict[str, Callable[..., Any]] = {
    "numpy.einsum": lambda a, b: jnp.einsum("ij,jk->ik", a, b),
    "numpy.apply_along_axis": lambda a, b: jnp.apply_along_axis(jnp.sort, 0, a),
    "numpy.apply_over_axes": lambda a, b: jnp.apply_over_axes(jnp.sum, a, [0, 1]),
    "numpy.piecewise": lambda a, b: jnp.piecewise(a, [a > b], [jnp.sin, jnp.cos]),
    "numpy.select": lambda a, b: jnp.select([a > b, a < b], [a, jnp.exp(b)], 0.0),
    "numpy.choose": lambda a, b: jnp.choose(a.astype(int) % 2, [a, b], mode="wrap"),
    "numpy.vectorize": lambda a, b: jnp.vectorize(jnp.dot, signature="(n),(n)->()")(
        a, b
    ),
    "numpy.fromfunction": lambda a, b: jnp.fromfunction(lambda i: i * a[0, 0], (3,)),
    "numpy.put_along_axis": lambda a, b: jnp.put_along_axis(
        a, jnp.argmax(a, 0)[None], 1.0, 0, inplace=False
    ),
    "numpy.linalg.matrix_power": lambda a, b: jnp.linalg.matrix_power(a, 3),
    "scipy.optimize.minimize": lambda a, b: (
        jax.scipy.optimize.minimize(lambda x: (x**2).sum(), a[0], method="BFGS").x
    ),
    "scipy.ndimage.map_coordinates": lambda a, b: jax.scipy.ndimage.map_coordinates(
        a, [b[0], b[1]], 1
    ),
    "nn.dot_product_attention": lambda a, b: jax.nn.dot_product_attention(
        *[a[None, :, None]] * 3
    ),
}

# What no caller of arrays asks for; other such functions take none.
NOT_FUNCTIONS = re.compile(r"_|set_printoptions|can_cast|is(sub)?dtype")


def loss(w, x):
    return jnp.mean((jnp.tanh(x @ w) @ w.T - x) ** 2)


def training(w, x):
    return lax.scan(lambda w, _: (w - 0.1 * jax.grad(loss)(w, x), None), w, None, 3)[0]


def newton(w, x):
    def step(state):
        i, v = state
        slope = jax.jacfwd(lambda v: jnp.tanh(w @ v) - v)(v)
        return i + 1, v - jnp.linalg.solve(slope, jnp.tanh(w @ v) - v)

    return lax.while_loop(lambda s: s[0] < 4, step, (0, x[0]))[1]


def odeint(w, x):
    from jax.experimental.ode import odeint

    return odeint(lambda y, t: w @ y, x[0], jnp.linspace(0.0, 1.0, 3))


# Control flow, solvers and what people write with them, each on (w, x).
WRITTEN: dict[str, Callable[..., Any]] = {
    "scan": lambda w, x: lax.scan(lambda c, r: (jnp.tanh(w @ c + r), c), x[0], x),
    "reverse scan": lambda w, x: lax.scan(
        lambda c, r: (jnp.sin(c) * r, c @ w), x[0], x, reverse=True
    ),
    "scan of a checkpoint": lambda w, x: lax.scan(
        jax.checkpoint(lambda c, r: (jnp.tanh(w @ c + r), None)), x[0], x
    )[0],
    "while_loop": lambda w, x: lax.while_loop(
        lambda v: v.sum() < 3.0, lambda v: jnp.exp(w @ v), x[0]
    ),
    "fori_loop": lambda w, x: lax.fori_loop(0, 3, lambda i, v: jnp.cos(w @ v), x[0]),
    "map": lambda w, x: lax.map(lambda r: w @ jnp.log(r), x),
    "cond": lambda w, x: lax.cond(
        x[0, 0] > 0, lambda: w @ x, lambda: jnp.sort(x @ w, 0)
    ),
    "switch": lambda w, x: lax.switch(
        jnp.argmax(x[0]), [lambda: jnp.sin(x), lambda: jnp.exp(x), lambda: x @ w]
    ),
    "associative_scan": lambda w, x: lax.associative_scan(jnp.matmul, x[None] @ w),
    "custom_root": lambda w, x: lax.custom_root(
        lambda v: jnp.cos(v) - v,
        x[0, 0],
        lambda f, v: lax.fori_loop(0, 3, lambda i, v: v - f(v), v),
        lambda g, y: y / g(1.0),
    ),
    "custom_linear_solve": lambda w, x: lax.custom_linear_solve(
        lambda v: w @ v, x[0], lambda f, b: jnp.linalg.solve(w, b), symmetric=True
    ),
    "cg": lambda w, x: jax.scipy.sparse.linalg.cg(w, x[0], maxiter=3)[0],
    "odeint": odeint,
    "training": training,
    "newton": newton,
    "loss": loss,
    "vmap of a loss": lambda w, x: jax.vmap(lambda r: loss(w, r[None]))(x),
    "hessian": lambda w, x: jax.hessian(lambda v: jnp.sum(jnp.exp(w @ v)))(x[0]),
    "jacrev": lambda w, x: jax.jacrev(lambda v: jnp.tanh(w @ v))(x[0]),
    "reduce": lambda w, x: lax.reduce(x, jnp.float32(0), lambda a, b: a + b, (0,)),
    "reduce_window": lambda w, x: lax.reduce_window(
        x, -jnp.inf, lax.max, (2, 2), (1, 1), "SAME"
    ),
    "scatter": lambda w, x: x.at[jnp.argmax(w, 0)].add(w),
    "gather": lambda w, x: x[jnp.argsort(w[0])] @ w,
    "conv": lambda w, x: lax.conv(x[None, None], w[None, None], (1, 1), "SAME"),
    "random": lambda w, x: jax.random.normal(jax.random.key(0), (3, 3)) @ x,
    "dropout": lambda w, x: jnp.where(
        jax.random.bernoulli(jax.random.key(1), 0.5, x.shape), x @ w, 0.0
    ),
    "twice the same": lambda w, x: jnp.sin(x @ w) + jnp.sin(x @ w),
    "a constant": lambda w, x: (
        jnp.exp(jnp.arange(3.0)) + jnp.cumsum(jnp.ones(3)) + x[0]
    ),
}


def functions() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Yield the family, the name and the function of all that are public."""
    scipy = "linalg special signal fft integrate interpolate ndimage optimize stats"
    stats = "norm gamma beta poisson t multivariate_normal"
    for family in (
        *("numpy", "numpy.linalg", "numpy.fft", "nn", "lax"),
        *(f"scipy.{name}" for name in scipy.split()),
        *(f"scipy.stats.{name}" for name in stats.split()),
    ):
        module = attrgetter(family)(jax)
        for name in sorted(vars(module)):
            one = getattr(module, name)
            is_kind = isinstance(one, (type, types.ModuleType))
            if callable(one) and not is_kind and not NOT_FUNCTIONS.match(name):
                yield family, name, one


def call_of(family: str, name: str, fn: Any) -> tuple[Callable[..., Any], Any] | None:
    """Find arguments that a function takes; None if none of those tried fit."""
    if special := SPECIAL.get(f"{family}.{name}"):
        return special, (A, A)
    for args in FITTING:
        values = [arg for arg in args if _is_array(arg)]

        def call(*arrays: Any, args: Any = args) -> Any:
            given = iter(arrays)
            return fn(*(next(given) if _is_array(one) else one for one in args))

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = jax.eval_shape(call, *values)
        except Exception:  # any way of saying that these do not fit
            continue
        if jax.tree.leaves(found):
            call.__name__ = name
            return call, tuple(values)
    return None


def _is_array(arg: Any) -> bool:
    leaves = jax.tree.leaves(arg, is_leaf=lambda one: isinstance(one, S))
    return bool(leaves) and all(isinstance(leaf, S) for leaf in leaves)


def slope_of(fn: Callable[..., Any], args: Any) -> Callable[..., Any] | None:
    """The gradient of the sum of a function's results; None if it has none."""

    def total(*args: Any) -> Any:
        leaves = jax.tree.leaves(fn(*args))
        reals = [
            jnp.real(one) for one in leaves if jnp.issubdtype(one.dtype, jnp.inexact)
        ]
        return sum(one.sum() for one in reals)

    def is_real(arg: Any) -> bool:
        leaves = jax.tree.leaves(arg)
        return bool(leaves) and all(leaf.dtype == "float32" for leaf in leaves)

    places = tuple(i for i, arg in enumerate(args) if is_real(arg))
    try:
        slope = jax.grad(total, argnums=places)
        jax.eval_shape(slope, *args)
    except Exception:  # not differentiable, or no real result
        return None
    return slope


WATCHED = {
    "dot": r"dot_general|ragged_dot\w*|conv_general_dilated",
    "convolution": r"conv_general_dilated|dot_general",
    "sort": r"sort|top_k",
    "scatter": r"scatter[\w-]*",
    "exponential": r"exp|exp2|logistic|tanh|erf|pow",
    "exponential-minus-one": r"expm1|tanh",
    "log": r"log|log1p|pow",
    "log-plus-one": r"log1p",
    "power": r"pow|exp2|cbrt",
    "sine": r"sin|tan",
    "cosine": r"cos|tan",
    "tan": r"tan",
    "tanh": r"tanh|logistic",
    "sqrt": r"sqrt|rsqrt|pow",
    "rsqrt": r"rsqrt|sqrt|pow",
    "erf": r"erf",
    "logistic": r"logistic",
    "cbrt": r"cbrt",
    "atan2": r"atan2",
}
# Primitives that are built of others when they are lowered or compiled.
BUILT = re.compile(
    r"lgamma|digamma|polygamma|erfc|erf_inv|igamma\w*|bessel\w*|regularized\w*|zeta|"
    r"random\w*|threefry\w*|a(sin|cos|tan)h?|sinh|cosh|lu\w*|qr|eig\w*|svd|schur|geqrf|"
    r"householder\w*|cholesky\w*|triangular\w*|tridiagonal\w*|hessenberg|cum\w+|"
    r"reduce_window\w*|select_and\w*|reduce|top_k|approx\w*|nextafter|ormqr|fft|"
    r"scatter[\w-]*|erf|rng\w*|logistic|argm\w+|ffi_call|pure_callback|log2|"
    r"call_hi_primitive|scaled_dot"
)
# On complex numbers these are built of others as well.
COMPLEX = re.compile(r"abs|sign|div|mul|sqrt|exp|log|log1p|expm1|tanh|sin|cos|tan|pow")
_LINE = re.compile(r"^\s+(?:ROOT )?%([^\s=]+) = \S.*? ([a-z][\w\-]*)\(")
_HEAD = re.compile(r"^(?:ENTRY )?%([^\s(]+)")


def watched_in(text: str) -> Counter[str]:
    """Count the watched operations that run, without the lens's own reader."""
    keys = "to_apply|select|scatter|comparator"
    combining = set(re.findall(rf"(?:{keys})=%([\w.\-]+)", text))
    combining -= set(re.findall(r" call\([^\n]*to_apply=%([\w.\-]+)", text))
    found: Counter[str] = Counter()
    inside = ""
    for line in text.splitlines():
        if head := _HEAD.match(line):
            inside = head.group(1)
        elif (one := _LINE.match(line)) and inside not in combining:
            found[one.group(2)] += one.group(2) in WATCHED
    return +found


@dataclass
class Sweep:
    """What was counted, and what is wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def look(self, name: str, fn: Callable[..., Any], args: Any) -> None:
        """Look at one function, and hold it against its text."""
        try:
            view = lens(fn, *args)
        except Exception as error:
            if is_sound(fn, args):
                self.wrong.append(f"{name}: {error!r}"[:200])
            return
        self.counts += Counter(
            functions=1,
            equations=len(view.primitives),
            kernels=len(view.kernels),
            gone=len(view.gone),
            unknown=sum(eqn.fate == "unknown" for eqn in view.primitives),
        )
        self._check_links(name, view)
        self._check_gone(name, view)

    def _check_links(self, name: str, view: Lens) -> None:
        text = view._compiled.hlo
        seen: Counter[str] = Counter()
        for kernel in view.kernels:
            for one in kernel.instructions:
                if one.opcode not in WATCHED:
                    continue
                seen[one.opcode] += 1
                known = [view.equations[i].primitive for i in one.equations]
                is_complex = "c64[" in view.inputs or "c64[" in str(view.equations)
                is_inferred = bool(set(one.equations) & set(kernel.inferred))
                kind = "inferred" if is_inferred else "exact"
                self.counts["heavy"] += 1
                self.counts[kind if known else "untold"] += 1
                if known and not any(could(one.opcode, p, is_complex) for p in known):
                    self.wrong.append(f"{name}: {one.opcode} of {known}")
        if seen != watched_in(text):
            self.wrong.append(f"{name}: {watched_in(text)} in the text, seen {seen}")

    def _check_gone(self, name: str, view: Lens) -> None:
        """Nothing is gone whose work the text holds, but what another one computes."""
        text = watched_in(view._compiled.hlo)
        for eqn in view.gone:
            pairs = WATCHED.items()
            opcodes = [op for op, by in pairs if re.fullmatch(by, eqn.primitive)]
            count = sum(text[op] for op in opcodes)
            if eqn.fate != "gone" or not count:
                continue
            # All there are must have come from others that may become the same.
            makers = "|".join(WATCHED[op] for op in opcodes)
            others = [
                one
                for one in view.equations
                if one.kernels
                and any(re.fullmatch(by, one.primitive) for by in (makers, BUILT))
            ]
            if not others:
                self.wrong.append(f"{name}: {eqn.index} {eqn.primitive} is called gone")


def is_sound(fn: Callable[..., Any], args: Any) -> bool:
    try:
        jax.jit(fn).lower(*args).compile()
    except Exception:  # then it is no matter of the lens
        return False
    return True


def could(opcode: str, primitive: str, is_complex: bool) -> bool:
    """Whether a primitive can become an operation, by a table of this file's own."""
    if re.fullmatch(WATCHED[opcode], primitive):
        return True
    if opcode in ("dot", "convolution"):  # nothing else is made of products
        return primitive == "scaled_dot"
    if BUILT.fullmatch(primitive):
        return True
    return is_complex and bool(COMPLEX.fullmatch(primitive))


def sweep(only: str = "", slopes: bool = True) -> Sweep:
    found = Sweep()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for family, name, fn in functions():
            if only and family != only and not family.startswith(f"{only}."):
                continue
            call = call_of(family, name, fn)
            if call is None:
                found.skipped.append(f"{family}.{name}")
                continue
            found.look(f"{family}: {name}", *call)
            slope = slope_of(*call) if slopes and family != "lax" else None
            if slope is not None:
                found.look(f"{family}, gradients: {name}", slope, call[1])
        for name, fn in WRITTEN.items() if only in ("", "written") else ():
            found.look(f"written: {name}", fn, (A, A))
            if (slope := slope_of(fn, (A, A))) is not None:
                found.look(f"written, gradients: {name}", slope, (A, A))
    return found


def report(found: Sweep) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in found.counts.items())
    skipped = f"not called, for want of arguments ({len(found.skipped)}):"
    wrong = [f"wrong ({len(found.wrong)}):", *found.wrong]
    return "\n  ".join([counts, skipped, " ".join(found.skipped), *wrong])


def main() -> int:
    """Look at everything, print the report, and return 1 if anything is wrong."""
    np.seterr(all="ignore")
    libraries = ("jax", "jaxlib", "numpy", "flax", "equinox", "optax", "diffrax")
    print(*(f"{name} {version(name)}" for name in libraries), sep=", ")
    found = sweep()
    print(report(found))
    return int(bool(found.wrong))


if __name__ == "__main__":
    sys.exit(main())
