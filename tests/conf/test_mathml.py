"""Formulas become MathML, and what cannot be translated is said with its place."""

import re

OPTIONS = "myst_enable_extensions = ['dollarmath']\nhtml_math_renderer = 'mathml'"


def test_a_page_needs_no_script_for_its_mathematics(build):
    page = "# Page\n\nInline $x^2$.\n\n$$\ny = x\n$$ (line)\n\n{eq}`line`\n"
    html = (build(page, "mathml", options=OPTIONS) / "index.html").read_text()
    assert build.warnings == ""
    assert html.count("<math") == 2
    assert "<msup>" in html
    assert '<span class="eqno">(1)' in html
    assert not re.search(r"<script[^>]*mathjax", html, re.IGNORECASE)


BROKEN = {
    r"\unheardof": "Unknown LaTeX command",
    r"\frac{a}": "Source incomplete",
    "a & b": "a stray &",
}


def test_a_broken_formula_is_a_warning_with_its_place(build):
    lines = [f"Good $x$.\n\nBad ${formula}$.\n\n" for formula in BROKEN]
    build("# Page\n\n" + "".join(lines), "mathml", options=OPTIONS)
    for line, (formula, words) in zip((5, 9, 13), BROKEN.items(), strict=True):
        what = f"formula {re.escape(repr(formula))}: .*{words}"
        assert re.search(f"index.md:{line}: WARNING: {what}", build.warnings)
