"""Formulas become MathML, and what cannot be translated is said with its place."""

import re
from io import StringIO
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest
from sphinx.testing.util import SphinxTestApp

from executed_book.showing.mathml import FormulaError, mathml

FORMULAS = [
    r"a < b",
    r"2^{-23} \approx 1.2 \times 10^{-7}",
    r"x \in \mathbb{R}^{m \times n}",
    r"\frac{\partial f}{\partial x_i}",
    r"\sum_{i=1}^{n} \sqrt[3]{x_i}",
    r"\left\lVert x \right\rVert_2",
    r"\operatorname{fl}(x) = x(1 + \delta)",
    r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}",
    r"f(x) = \begin{cases} 0 & x < 0 \\ x & \text{otherwise} \end{cases}",
    r"\{ x \mid x > 0 \}",
]


@pytest.mark.parametrize("latex", FORMULAS)
@pytest.mark.parametrize("display", [False, True])
def test_a_formula_is_well_formed_and_complete(latex, display):
    tree = fromstring(mathml(latex, display=display))
    assert tree.tag == "math"
    assert tree.get("display") == ("block" if display else "inline")
    assert "\\" not in "".join(tree.itertext())


def test_text_is_escaped():
    rendered = mathml(r"\text{a </math><script> & b}")
    assert "<script" not in rendered
    assert "".join(fromstring(rendered).itertext()).startswith("a\N{NO-BREAK SPACE}<")


def test_aligned_lines_are_rows_of_one_table():
    rendered = mathml(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", display=True)
    rows = fromstring(rendered).findall(".//mtr")
    assert ["".join(row.itertext()) for row in rows] == ["a=b", "c=d"]


def test_bars_keep_their_height_except_around_a_matrix():
    assert mathml(r"\lVert x \rVert_2").count('stretchy="false"') == 2
    assert "stretchy" not in mathml(r"\begin{vmatrix} a & b \\ c & d \end{vmatrix}")


def test_a_prime_is_an_operator():
    assert "<mo>\N{PRIME}</mo>" in mathml("f'")


@pytest.mark.parametrize(
    ("latex", "message"),
    [
        (r"\unheardof x", r"unknown command \\unheardof"),
        (r"\begin{tikzcd} a \end{tikzcd}", "unknown environment tikzcd"),
        (r"\frac{a}", "an argument is missing"),
        (r"{a", "unbalanced braces"),
        (r"a}", "unbalanced braces"),
        (r"a & b", "& outside"),
        (r"a \\ b", r"\\\\ outside"),
        (r"x_1_2", "double subscripts"),
        (r"\left( a", "extra left or missing right"),
        (r"\begin{aligned} a", "missing end"),
        ("", "no available tokens"),
    ],
)
def test_what_cannot_be_translated_is_an_error(latex, message):
    with pytest.raises(FormulaError, match=message):
        mathml(latex)


@pytest.fixture
def build(tmp_path: Path):
    """Build a one-page book and return its HTML and its warnings."""

    def _build(page: str) -> tuple[str, str]:
        (tmp_path / "conf.py").write_text(
            "from executed_book.showing.mathml import setup_mathml as setup\n"
            "extensions = ['myst_parser']\n"
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
    assert '<span class="eqno">(1)' in html
    assert not re.search(r"<script[^>]*mathjax", html, re.IGNORECASE)


def test_a_broken_formula_is_a_warning_with_its_place(build):
    _, warnings = build("# Page\n\nGood $x$.\n\nBad $\\unheardof$.\n")
    assert r"index.md:5: WARNING: formula '\\unheardof': unknown command" in warnings
