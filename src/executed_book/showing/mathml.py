"""Mathematics as MathML, made at build time: no script, no font from elsewhere.

Browsers draw MathML themselves, and latex2mathml translates to it. What it would let
through silently (an unknown command, a missing argument) is an error here, and the
build reports it with the formula's page and line.
"""

import re
from typing import NoReturn
from xml.etree.ElementTree import Element, tostring

from docutils import nodes
from latex2mathml.commands import MATRICES
from latex2mathml.converter import Converter
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

_log = logging.getLogger(__name__)

# Environments that the translator does not know, by the name of one that looks alike.
_ALIASES = {"aligned": "split", "gathered": "matrix", "equation*": "equation"}
_ENVIRONMENTS = {command.lstrip("\\") for command in MATRICES} | {"equation"}
_PARTS = dict.fromkeys(("mfrac", "mroot", "msub", "msup", "munder", "mover"), 2) | {
    "msubsup": 3,
    "munderover": 3,
}

_BARS = ("|", "\N{DOUBLE VERTICAL LINE}")

_ESCAPED = re.compile(r"\\.", re.DOTALL)
_DELIMITED = re.compile(r"\\(begin|end)\{([^}]*)\}")
_REFERENCE = re.compile(r"&#x([0-9A-Fa-f]+);")
_WORD = re.compile(r"[A-Z][a-z]+")


class FormulaError(ValueError):
    """A formula that has no translation; the message says what is wrong with it."""


def mathml(latex: str, *, display: bool = False) -> str:
    """Translate a formula from LaTeX to a ``<math>`` element.

    Arguments:
        latex: The formula, without dollar signs.
        display: Whether it stands on a line of its own.

    Raises:
        FormulaError: The formula is malformed, or uses a command or an environment
            that cannot be translated.

    >>> mathml("x^2")
    '<math display="inline"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>'
    """
    _check_braces(latex)
    latex = _DELIMITED.sub(_known_environment, latex)
    converter = Converter(display="block" if display else "inline")
    try:
        tree = converter.convert_to_element(latex)
    except Exception as error:
        # latex2mathml raises bare exceptions of many classes, named after the fault.
        words = _WORD.findall(type(error).__name__.removesuffix("Error"))
        raise FormulaError(" ".join(words).lower() or "malformed") from error
    del tree.attrib["xmlns"]
    for element in tree.iter():
        element.text = _REFERENCE.sub(_character, element.text or "") or None
        _check(element)
    for element in tree.iter():
        _correct(element)
    return tostring(tree, encoding="unicode")


def _check_braces(latex: str) -> None:
    plain = _ESCAPED.sub("", latex)
    if plain.count("{") != plain.count("}"):
        raise FormulaError("unbalanced braces")


def _known_environment(hit: re.Match[str]) -> str:
    name = _ALIASES.get(hit[2], hit[2])
    if name not in _ENVIRONMENTS:
        raise FormulaError(f"unknown environment {name}")
    return rf"\{hit[1]}{{{name}}}"


def _character(hit: re.Match[str]) -> str:
    return chr(int(hit[1], 16))


def _check(element: Element) -> None:
    text = element.text or ""
    if len(element) != _PARTS.get(element.tag, len(element)):
        raise FormulaError("an argument is missing")
    if element.get("linebreak") == "newline":
        raise FormulaError(r"\\ outside of an environment such as aligned")
    if element.tag == "mi" and text == "&":
        raise FormulaError("& outside of an environment such as aligned")
    if element.tag == "mi" and text.startswith("\\"):
        raise FormulaError(f"unknown command {text}")


def _correct(element: Element) -> None:
    text = element.text or ""
    if element.tag == "mi" and text.strip("\N{PRIME}") == "" != text:
        element.tag = "mo"
    # Unlike the bars of a matrix, those around a name should not grow with its index.
    if element.find("mtable") is None:
        for bar in element.findall("mo"):
            if bar.text in _BARS:
                bar.attrib.setdefault("stretchy", "false")


def _rendered(node: nodes.math | nodes.math_block, *, display: bool) -> str:
    try:
        return mathml(node.astext(), display=display)
    except FormulaError as error:
        _log.warning("formula %r: %s", node.astext(), error, location=node)
        return ""


def _visit_inline(self: HTML5Translator, node: nodes.math) -> NoReturn:
    self.body.append(self.starttag(node, "span", "", CLASS="math notranslate"))
    self.body.append(_rendered(node, display=False) + "</span>")
    raise nodes.SkipNode


def _visit_block(self: HTML5Translator, node: nodes.math_block) -> NoReturn:
    self.body.append(self.starttag(node, "div", CLASS="math notranslate"))
    self.body.append(_rendered(node, display=True))
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})')
        self.add_permalink_ref(node, _("Link to this equation"))
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup_mathml(app: Sphinx) -> None:
    """Register the renderer; ``html_math_renderer = "mathml"`` selects it."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(_visit_inline, None),
        block_renderers=(_visit_block, None),
    )
