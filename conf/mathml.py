"""Mathematics as MathML, made at build time: no script, no font from elsewhere.

Browsers draw MathML themselves, and docutils translates to it. A formula that it cannot
translate is a warning at the formula's page and line.
"""

import html
from typing import Any, NoReturn

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

_log = logging.getLogger(__name__)


def _rendered(node: nodes.Element, as_block: bool) -> str:
    try:
        made = tex2mathml(node.astext(), as_block=as_block)
    except (ValueError, AttributeError) as error:
        # The translator says what is wrong, except of what has no place in a formula
        # of one line, over which it stumbles.
        text = str(error) if isinstance(error, ValueError) else "a stray & or \\\\"
        _log.warning("formula %r: %s", node.astext(), text, location=node)
        return ""
    # The formula as written goes along, for who takes the page away as text.
    source = html.escape(" ".join(node.astext().split()))
    return made.replace("<math ", f'<math alttext="{source}" ', 1)


def _visit_inline(self: HTML5Translator, node: nodes.math) -> NoReturn:
    self.body.append(self.starttag(node, "span", "", CLASS="math notranslate"))
    self.body.append(_rendered(node, as_block=False) + "</span>")
    raise nodes.SkipNode


def _visit_block(self: HTML5Translator, node: nodes.math_block) -> NoReturn:
    self.body.append(self.starttag(node, "div", CLASS="math notranslate"))
    self.body.append(_rendered(node, as_block=True))
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})')
        self.add_permalink_ref(node, _("Link to this equation"))
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer; `html_math_renderer = "mathml"` selects it."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(_visit_inline, None),
        block_renderers=(_visit_block, None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
