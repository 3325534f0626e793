"""What a reader takes of a page: Markdown, and a notebook with its outputs."""

import json

import nbformat
import pytest

from executed_book.model import Cell
from executed_book.showing.formats import (
    markdown_of,
    notebook_of_page,
    readable,
)

from ..made import chapter, executed, gave, printed, raised, shown

LENS = (
    "<div class='cell_output'><div class='ja-lens'><p class='ja-summary'><b>f</b>"
    " <span>1 kernel</span></p><div class='ja-caption'>jaxpr</div>"
    "<div class='ja-q'><b>0</b><code>a = <i>sin</i> b</code><i>k0</i></div>"
    "<details class='ja-k'><summary><b>k0</b> sin</summary>"
    "<div class='ja-i'><b>0</b><code>sin(b)</code></div></details>"
    "<p class='ja-status'>Point at</p></div></div>"
)
LENS_AS_TEXT = (
    "```text\nf 1 kernel\n\njaxpr:\n  0 a = sin b k0\n  k0 sin\n    0 sin(b)\n```"
)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h2>A<a class='headerlink' href='#a'>#</a></h2>", "## A"),
        ("<ul><li>a</li><li>b</li></ul>", "- a\n- b"),
        ("<p>is <math alttext='x^2'><mi>x</mi></math>.</p>", "is $x^2$."),
        ("<math display='block' alttext='x'></math>", "$$\nx\n$$"),
        (
            "<details><summary>A<b class='expanded'>B</b></summary>c</details>",
            "**A**\n\nc",
        ),
        ("<dl><dt>term</dt><dd><p>It is.</p></dd></dl>", "**term**\n\nIt is."),
        ("<img class='only-dark' src='d.svg'><p>a</p>", "a"),
        ("<p>a</p><div class='program-holder'>b</div><script>c</script>", "a"),
        (LENS, LENS_AS_TEXT),
        ("<svg role='img' aria-label='A: hit'><g/></svg>", "(A drawing. A: hit)"),
        ("<p>a</p>\n\n\n\n\n<p>b</p>", "a\n\nb"),
        # code, in a fence that holds it
        ("<div class='highlight-python'><pre>x\n</pre></div>", "```python\nx\n```"),
        ("<div class='highlight-ipython3'><pre>x</pre></div>", "```python\nx\n```"),
        ("<div class='highlight-none'><pre>x</pre></div>", "```text\nx\n```"),
        ("<div class='highlight-default'><pre>x</pre></div>", "```\nx\n```"),
        ("<div class='cell_output'><pre>3</pre></div>", "```text\n3\n```"),
        ("<pre>a ``` b ```` c</pre>", "`````\na ``` b ```` c\n`````"),
        ("<pre>a\n\n\n\nb</pre>", "```\na\n\n\n\nb\n```"),
    ],
)
def test_a_page_as_markdown(html, text):
    assert markdown_of(readable(html, "a", "")) == f"{text}\n"


@pytest.mark.parametrize(
    ("address", "whole"),
    [
        ("https://x.dev/a", "https://x.dev/a"),
        ("mailto:a@b.c", "mailto:a@b.c"),
        ("other.html#b", "https://s.dev/book/n/other.html#b"),
        ("../_images/a.svg", "https://s.dev/book/_images/a.svg"),
        ("#here", "https://s.dev/book/n/page.html#here"),
    ],
)
def test_addresses_are_whole(address, whole):
    for site in ("https://s.dev/book/", "https://s.dev/book"):
        made = readable(f'<a href="{address}">a</a>', "n/page", site)
        assert made.a["href"] == whole


def test_without_an_address_what_leads_into_the_site_is_text():
    body = (
        "<p><a href='b.html'>one</a>, <a href='#c'>two</a>, <img src='_images/a.svg'"
        " alt='A line.'>, <a href='https://x.dev/a'>three</a>.</p>"
    )
    text = "one, two, (A figure. A line.), [three](https://x.dev/a).\n"
    assert markdown_of(readable(body, "n/page", "")) == text


def written(source: str) -> str:
    code = f"<div class='highlight-ipython3'><pre>{source}\n</pre></div>"
    return f"<div class='cell'><div class='cell_input'>{code}</div></div>"


def taken(body: str, *sources: str, first: str = "") -> list[tuple[str, str]]:
    ran = executed(
        chapter(*sources), *[gave(printed("a\n"), shown("3")) for _ in sources]
    )
    made = json.loads(notebook_of_page(ran, readable(body, "one", ""), first))
    nbformat.validate(made)
    assert made["metadata"]["kernelspec"]["name"] == "python3"
    code = [c for c in made["cells"] if c["cell_type"] == "code" and c["outputs"]]
    assert [c["execution_count"] for c in code] == [*range(1, len(sources) + 1)]
    assert all(c["outputs"][1]["execution_count"] == c["execution_count"] for c in code)
    return [(c["cell_type"], c["source"]) for c in made["cells"]]


def test_cells_stand_in_the_text_where_the_page_has_them():
    body = f"<h1>One</h1>{written('x = 1')}<p>Text.</p>{written('x')}<p>End.</p>"
    one, end = ("markdown", "# One"), ("markdown", "End.")
    shown = [one, ("code", "x = 1"), ("markdown", "Text."), ("code", "x"), end]
    assert taken(body, "x = 1", "x") == shown
    # Cells that the page does not show go with the next one.
    body = f"<h1>One</h1>{written('y')}<p>End.</p>"
    shown = [one, ("code", "import os"), ("code", "y"), end, ("code", "y")]
    assert taken(body, "import os", "y", "y") == shown
    # A cell of elsewhere is left out.
    body = f"<h1>One</h1>{written('x')}{written('not of this chapter')}<p>End.</p>"
    assert taken(body, "x") == [one, ("code", "x"), end]


def test_a_first_cell_installs():
    first, _ = taken(written("x"), "x", first="%pip install jax")
    assert first == ("code", "%pip install jax")


def test_an_exercise_can_be_done():
    kinds = ("exercise", "solution", "exercise-check")
    sources = ("x = ...", "x = 3  # since 1 + 2 is", "assert x == 3")
    cells = [
        Cell(n, source, 9, frozenset({kind}))
        for n, kind, source in zip((1, 2, 3), kinds, sources, strict=True)
    ]
    ran = executed(chapter(*cells), gave(), gave(shown("3")), gave(printed("a")))
    # The page shows the check before the solution.
    shown_sources = [sources[k] for k in (0, 2, 1)]
    body = f"<h3>Do it</h3>{''.join(map(written, shown_sources))}<p>End.</p>"
    made = json.loads(notebook_of_page(ran, readable(body, "one", ""), ""))["cells"]
    text, starter, check, solution, end = made
    assert (text["source"], end["source"]) == ("### Do it", "End.")
    assert (starter["cell_type"], starter["source"]) == ("code", "x = ...")
    assert check["cell_type"] == "code"
    assert "assert x == 3\nprint('Correct')" in check["source"]
    assert "raises-exception" in check["metadata"]["tags"]
    assert check["outputs"] == []
    assert solution["cell_type"] == "markdown"
    assert solution["source"] == (
        "<details>\n<summary>Solution</summary>\n\n```python\n"
        "x = 3  # since 1 + 2 is\n```\n\n</details>"
    )


def test_an_answer_is_folded_text_and_its_output_is_hidden():
    answer = "<div class='answer'><p>It is <b>3</b>.</p></div>"
    box = written("x").replace("class='cell'", "class='cell tag_asked'")
    body = box.removesuffix("</div>") + f"<details>{answer}</details></div><p>On.</p>"
    ran = executed(chapter("x"), gave(shown("3")))
    made = json.loads(notebook_of_page(ran, readable(body, "one", ""), ""))["cells"]
    assert made[0]["metadata"]["jupyter"] == {"outputs_hidden": True}
    assert made[1]["source"] == (
        "<details>\n<summary>Answer</summary>\n\nIt is **3**.\n\n</details>"
    )
    assert made[2]["source"] == "On."


def test_a_cell_that_is_announced_to_raise_lets_the_notebook_go_on():
    cells = Cell(1, "x[0]\n", 9, frozenset({"keep"}), raises="T: w"), Cell(2, "y", 12)
    ran = executed(chapter(*cells), raised("T", "w"), gave())
    body = written("x[0]") + written("y")
    made = json.loads(notebook_of_page(ran, readable(body, "one", ""), ""))
    found = [(c["source"], c["metadata"]) for c in made["cells"]]
    assert found == [("x[0]", {"tags": ["keep", "raises-exception"]}), ("y", {})]
