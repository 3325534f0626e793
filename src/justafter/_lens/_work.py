"""Which primitive can have made which HLO instruction."""

from __future__ import annotations

import math
import re

from ._hlo import FREE, Raw
from ._model import Equation


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Work that XLA does not invent: some equation asked for it.
HEAVY = _names(
    "dot convolution sort scatter fft cholesky triangular-solve select-and-scatter "
    "reduce reduce-window custom-call topk rng rng-bit-generator exponential "
    "exponential-minus-one log log-plus-one logistic power sine cosine tan tanh sqrt "
    "rsqrt cbrt erf atan2 acos asin atan acosh asinh atanh sinh cosh expm1 log1p"
)

# Primitives that become cheap instructions alone.
_LIGHT = _names(
    "add add_any sub mul div rem max min neg sign abs floor ceil round is_finite and "
    "or xor not eq ne lt le gt ge select_n clamp square integer_pow shift_left clz "
    "shift_right_logical shift_right_arithmetic population_count reduce_precision "
    "convert_element_type bitcast_convert_type stop_gradient copy copy_p device_put "
    "iota reshape squeeze expand_dims transpose broadcast_in_dim slice concatenate pad "
    "rev split dynamic_slice dynamic_update_slice optimization_barrier pvary reshard "
    "sharding_constraint mesh_cast one_minus_square empty empty2 debug_callback "
    "layout_constraint"
)

# Primitives that become little else than themselves, with the heavy opcodes that they
# become. A primitive that is in neither table may become anything.
_HEAVY_OF = {
    **dict.fromkeys(
        _names(
            "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or "
            "reduce_xor argmax argmin"
        ),
        "reduce reduce-window",
    ),
    "dot_general": "dot reduce custom-call convolution",
    "conv_general_dilated": "dot reduce custom-call convolution",
    "sort": "sort custom-call",
    "exp": "exponential",
    "exp2": "exponential power",
    "expm1": "exponential-minus-one exponential tanh",
    "log": "log",
    "log1p": "log-plus-one log",
    "logistic": "logistic exponential tanh",
    "tanh": "tanh exponential exponential-minus-one",
    "sin": "sine",
    "cos": "cosine",
    "tan": "tan sine cosine",
    "sqrt": "sqrt rsqrt",
    "rsqrt": "rsqrt sqrt",
    "cbrt": "cbrt power",
    "pow": "power sqrt rsqrt exponential log cbrt",
    "erf": "erf exponential",
    "atan2": "atan2",
}
_MAKES = {name: _names(opcodes) for name, opcodes in _HEAVY_OF.items()}

# The primitives that may become a cheap instruction, where it is known which; a sum of
# what was broadcast is a product.
_MADE_OF = {
    "add": "add add_any sub neg mul reduce_sum",
    "subtract": "sub add neg",
    "multiply": "mul square integer_pow div reduce_prod reduce_sum",
    "divide": "div",
    "clamp": "clamp max min",
}

# These put values elsewhere, and compute nothing, whatever the values are.
_MOVES = _names(
    "iota reshape squeeze expand_dims transpose broadcast_in_dim slice concatenate pad "
    "rev split dynamic_slice select_n copy dynamic_update_slice copy_p device_put "
    "stop_gradient reduce_sum optimization_barrier convert_element_type add sub neg "
    "add_any"
)

_COMPLEX = re.compile(r"\bc(?:64|128)\b")


def elements(type_: str) -> int:
    """Count the elements of an array type; of a tuple, those of its first."""
    found = re.search(r"\[([\d,]*)\]", type_)
    sizes = found.group(1).split(",") if found and found.group(1) else []
    return math.prod(int(size) for size in sizes if size)


def bytes_of(type_: str) -> int:
    """The bytes of an array type."""
    bits = re.search(r"\d+", type_.partition("[")[0])
    return elements(type_) * (max(int(bits.group()) // 8, 1) if bits else 1)


def _kind(type_: str) -> str:
    """The dtype of an HLO or jaxpr type, written alike.

    >>> _kind("s32[3]"), _kind("i32[3]"), _kind("pred[]"), _kind("bool[]")
    ('i32', 'i32', 'bool', 'bool')
    """
    name = type_.lstrip("(").partition("[")[0]
    return "bool" if name == "pred" else re.sub(r"^s(?=\d)", "i", name)


def is_light(eqn: Equation) -> bool:
    """Whether an equation only moves, compares or combines values cheaply."""
    return eqn.primitive in _LIGHT and not is_composite(eqn)


def is_composite(eqn: Equation) -> bool:
    """Whether an equation may become any number of instructions of any kind."""
    if eqn.regions or eqn.primitive in _MOVES:
        return False
    is_known = eqn.primitive in _LIGHT or eqn.primitive in _MAKES
    is_complex = any(map(_COMPLEX.match, (*eqn.outputs, *eqn.inputs)))
    return is_complex or not is_known


def can_make(eqn: Equation, raw: Raw) -> bool:
    """Whether an equation can have become an instruction, by its kind alone."""
    is_heavy_of = raw.opcode in _MAKES.get(eqn.primitive, ()) and not eqn.regions
    return is_composite(eqn) or raw.opcode not in HEAVY or is_heavy_of


def may_be(eqn: Equation, raw: Raw) -> bool:
    """Whether an instruction may be an equation's work, by kind, size and dtype."""
    if raw.opcode in HEAVY:
        return is_composite(eqn) or (can_make(eqn, raw) and fits(eqn, raw))
    known = _MADE_OF.get(raw.opcode, eqn.primitive).split()
    return (eqn.primitive in known or is_composite(eqn)) and fits(eqn, raw)


def is_maker(eqn: Equation, raw: Raw) -> bool:
    """Whether an equation is one of those that an instruction usually stands for."""
    if eqn.regions or eqn.fate == "unused" or is_composite(eqn):
        return False
    if raw.opcode in HEAVY:
        return raw.opcode in _MAKES.get(eqn.primitive, ())
    return is_light(eqn) and raw.opcode not in FREE


def is_part(eqn: Equation, raw: Raw) -> bool:
    """Whether an instruction may be one of several that an equation becomes."""
    return is_composite(eqn) and raw.opcode in _MAKES.get(eqn.primitive, ())


def same_kind(eqn: Equation, raw: Raw) -> bool:
    """Whether an instruction has the dtype of one of an equation's values."""
    kinds = {_kind(one) for one in (*eqn.outputs, *eqn.inputs)}
    return bool({_kind(one) for one in raw.type.strip("()").split(", ")} & kinds)


def fits(eqn: Equation, raw: Raw) -> bool:
    """Whether an instruction's result has the size and dtype of the equation's."""
    size, kind = elements(raw.type), _kind(raw.type)
    return any(elements(one) == size and _kind(one) == kind for one in eqn.outputs)
