"""Formulas become MathML, and what cannot be translated is said with its place."""

import re
from io import StringIO
from pathlib import Path

import pytest
from sphinx.testing.util import SphinxTestApp

CONF = Path(__file__).parents[2] / "conf"


@pytest.fixture
def build(tmp_path: Path):
    """Build a one-page book and return its HTML and its warnings."""

    def _build(page: str) -> tuple[str, str]:
        (tmp_path / "conf.py").write_text(
            f"import sys\nsys.path.append({str(CONF)!r})\n"
            "extensions = ['myst_parser', 'mathml']\n"
            "myst_enable_extensions = ['dollarmath']\n"
            "html_math_renderer = 'mathml'\n"
        )
        (tmp_path / "index.md").write_text(page)
        warnings = StringIO()
        app = SphinxTestApp("html", srcdir=tmp_path, warning=warnings)
        try:
            app.build()
        finally:
            app.cleanup()
        return (app.outdir / "index.html").read_text(), warnings.getvalue()

    return _build


def test_a_page_needs_no_script_for_its_mathematics(build):
    html, warnings = build(
        "# Page\n\nInline $x^2$.\n\n$$\ny = x\n$$ (line)\n\n{eq}`line`\n"
    )
    assert warnings == ""
    assert html.count("<math") == 2
    assert "<msup>" in html
    assert '<span class="eqno">(1)' in html
    assert not re.search(r"<script[^>]*mathjax", html, re.IGNORECASE)


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        (r"\unheardof", "Unknown LaTeX command"),
        (r"\frac{a}", "Source incomplete"),
        ("a & b", "a stray &"),
    ],
)
def test_a_broken_formula_is_a_warning_with_its_place(build, formula, words):
    _, warnings = build(f"# Page\n\nGood $x$.\n\nBad ${formula}$.\n")
    assert f"index.md:5: WARNING: formula {formula!r}: " in warnings
    assert words in warnings
