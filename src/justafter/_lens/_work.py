"""Which primitive can have made which HLO instruction."""

from __future__ import annotations

import math
import re

from ._hlo import FREE, Raw
from ._model import Equation

# Work that XLA does not invent: some equation asked for it.
HEAVY = frozenset({
    "dot", "convolution", "sort", "scatter", "fft", "cholesky", "triangular-solve",
    "select-and-scatter", "reduce", "reduce-window", "custom-call", "topk", "rng",
    "rng-bit-generator", "exponential", "exponential-minus-one", "log",
    "log-plus-one", "logistic", "power", "sine", "cosine", "tan", "tanh", "sqrt",
    "rsqrt", "cbrt", "erf", "atan2", "acos", "asin", "atan", "acosh", "asinh", "atanh",
    "sinh", "cosh", "expm1", "log1p",
})  # fmt: skip

_LIGHT: frozenset[str] = frozenset()
_REDUCE = frozenset({"reduce", "reduce-window"})
_PRODUCT = frozenset({"dot", "reduce", "custom-call", "convolution"})

# The primitives that become little else than themselves, with the heavy opcodes that
# they become. A primitive that is not listed may become anything.
_MAKES: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        (
            "add", "add_any", "sub", "mul", "div", "rem", "max", "min", "neg", "sign",
            "abs", "floor", "ceil", "round", "is_finite", "and", "or", "xor", "not",
            "eq", "ne", "lt", "le", "gt", "ge", "select_n", "clamp", "square",
            "integer_pow", "shift_left", "shift_right_logical",
            "shift_right_arithmetic", "population_count", "clz", "reduce_precision",
            "convert_element_type", "bitcast_convert_type", "stop_gradient", "copy",
            "copy_p", "device_put", "iota", "reshape", "squeeze", "expand_dims",
            "transpose", "broadcast_in_dim", "slice", "concatenate", "pad", "rev",
            "split", "dynamic_slice", "dynamic_update_slice", "optimization_barrier",
            "pvary", "reshard", "sharding_constraint", "mesh_cast", "one_minus_square",
            "empty", "empty2", "debug_callback", "layout_constraint",
        ),
        _LIGHT,
    ),
    **dict.fromkeys(
        (
            "reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and",
            "reduce_or", "reduce_xor", "argmax", "argmin",
        ),
        _REDUCE,
    ),
    "dot_general": _PRODUCT,
    "conv_general_dilated": _PRODUCT,
    "sort": frozenset({"sort", "custom-call"}),
    "exp": frozenset({"exponential"}),
    "exp2": frozenset({"exponential", "power"}),
    "expm1": frozenset({"exponential-minus-one", "exponential", "tanh"}),
    "log": frozenset({"log"}),
    "log1p": frozenset({"log-plus-one", "log"}),
    "logistic": frozenset({"logistic", "exponential", "tanh"}),
    "tanh": frozenset({"tanh", "exponential", "exponential-minus-one"}),
    "sin": frozenset({"sine"}),
    "cos": frozenset({"cosine"}),
    "tan": frozenset({"tan", "sine", "cosine"}),
    "sqrt": frozenset({"sqrt", "rsqrt"}),
    "rsqrt": frozenset({"rsqrt", "sqrt"}),
    "cbrt": frozenset({"cbrt", "power"}),
    "pow": frozenset({"power", "sqrt", "rsqrt", "exponential", "log", "cbrt"}),
    "erf": frozenset({"erf", "exponential"}),
    "atan2": frozenset({"atan2"}),
}  # fmt: skip

# The primitives that may become a cheap instruction, where it is known which.
_MADE_OF: dict[str, frozenset[str]] = {
    "add": frozenset({"add", "add_any", "sub", "neg", "mul", "reduce_sum"}),
    "subtract": frozenset({"sub", "add", "neg"}),
    "multiply": frozenset(
        {  # a sum of what was broadcast is a product
            "mul",
            "square",
            "integer_pow",
            "div",
            "reduce_prod",
            "reduce_sum",
        }
    ),
    "divide": frozenset({"div"}),
    "clamp": frozenset({"clamp", "max", "min"}),
}

# These put values elsewhere, and compute nothing, whatever the values are.
_MOVES = frozenset({
    "iota", "reshape", "squeeze", "expand_dims", "transpose", "broadcast_in_dim",
    "slice", "concatenate", "pad", "rev", "split", "dynamic_slice", "select_n", "copy",
    "dynamic_update_slice", "copy_p", "device_put", "stop_gradient", "reduce_sum",
    "optimization_barrier", "convert_element_type", "add", "sub", "neg", "add_any",
})  # fmt: skip

_COMPLEX = re.compile(r"\bc(?:64|128)\b")


def elements(type_: str) -> int:
    """Count the elements of an array type; of a tuple, those of its first.

    >>> elements("f32[3,4]"), elements("(s32[], f32[2])")
    (12, 1)
    """
    found = re.search(r"\[([\d,]*)\]", type_)
    sizes = found.group(1).split(",") if found and found.group(1) else []
    return math.prod(int(size) for size in sizes if size)


def bytes_of(type_: str) -> int:
    """The bytes of an array type.

    >>> bytes_of("f32[3,4]"), bytes_of("pred[8]")
    (48, 8)
    """
    bits = re.search(r"\d+", type_.partition("[")[0])
    return elements(type_) * (max(int(bits.group()) // 8, 1) if bits else 1)


def kind_of(type_: str) -> str:
    """The dtype of an HLO or jaxpr type, written alike.

    >>> kind_of("s32[3]"), kind_of("i32[3]"), kind_of("pred[]"), kind_of("bool[]")
    ('i32', 'i32', 'bool', 'bool')
    """
    name = type_.lstrip("(").partition("[")[0]
    name = "bool" if name == "pred" else name
    return re.sub(r"^s(?=\d)", "i", name)


def is_light(eqn: Equation) -> bool:
    """Whether an equation only moves, compares or combines values cheaply."""
    return _MAKES.get(eqn.primitive) == _LIGHT and not is_composite(eqn)


def is_composite(eqn: Equation) -> bool:
    """Whether an equation may become any number of instructions of any kind."""
    if eqn.regions or eqn.primitive in _MOVES:
        return False
    return eqn.primitive not in _MAKES or _is_complex(eqn)


def _is_complex(eqn: Equation) -> bool:
    return any(map(_COMPLEX.match, (*eqn.outputs, *eqn.inputs)))


def can_make(eqn: Equation, raw: Raw) -> bool:
    """Whether an equation can have become an instruction, by its kind alone."""
    if is_composite(eqn):
        return True
    if raw.opcode not in HEAVY:
        return True
    return not eqn.regions and raw.opcode in _MAKES[eqn.primitive]


def may_be(eqn: Equation, raw: Raw) -> bool:
    """Whether an instruction may be an equation's work, by kind, size and dtype."""
    if raw.opcode in HEAVY:
        return can_make(eqn, raw) and (is_composite(eqn) or fits(eqn, raw))
    known = _MADE_OF.get(raw.opcode)
    is_kind = known is None or eqn.primitive in known or is_composite(eqn)
    return is_kind and fits(eqn, raw)


def is_maker(eqn: Equation, raw: Raw) -> bool:
    """Whether an equation is one of those that an instruction usually stands for."""
    if eqn.regions or eqn.fate == "unused" or is_composite(eqn):
        return False
    if raw.opcode in HEAVY:
        return raw.opcode in _MAKES[eqn.primitive]
    return is_light(eqn) and raw.opcode not in FREE


def is_part(eqn: Equation, raw: Raw) -> bool:
    """Whether an instruction may be one of several that an equation becomes."""
    return is_composite(eqn) and raw.opcode in _MAKES.get(eqn.primitive, _LIGHT)


def same_kind(eqn: Equation, raw: Raw) -> bool:
    """Whether an instruction has the dtype of one of an equation's results."""
    kinds = {kind_of(one) for one in (*eqn.outputs, *eqn.inputs)}
    return bool({kind_of(one) for one in raw.type.strip("()").split(", ")} & kinds)


def fits(eqn: Equation, raw: Raw) -> bool:
    """Whether an instruction's result has the size and dtype of the equation's."""
    return any(
        elements(one) == elements(raw.type) and kind_of(one) == kind_of(raw.type)
        for one in eqn.outputs
    )
