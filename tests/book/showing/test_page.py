"""What a reader sees of a page: one small book is built, and then looked at."""

import subprocess
import sys

import pytest
from bs4 import BeautifulSoup, Tag

from ..conftest import TinyBook, new_book

#: The cells of the page, by what they are about.
CELLS = {
    "value": "x = '<b>'\nx",
    "measured": ":tags: [measured]\nprint(3)",
    "device": ":tags: [device]\nprint(3)",
    "check": ":tags: [check]\nprint(3)",
    "html": "from IPython.display import HTML\nHTML('<b>3</b>')",
    "long": "print('a ' + 9999 * 'y')",
    "endless": "print('a ' + 10000 * 'y')",
    "figure": ":alt: A line\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);",
    "pixels": "display({'image/png': b'PNG'}, raw=True)",
    "fails": ":raises: 'ZeroDivisionError: division by zero'\n1 / 0",
    "warns": "import sys\nprint('careful', file=sys.stderr)",
    "colors": "print('\\x1b[1mcareful', file=sys.stderr)",
    "skipped": ":tags: [skip-execution]\nnever",
    "odd": ":tags: [check]\n:check: odd\nassert x",
    "hidden": ":check: one\n:tags: [remove-input]\nassert x\nprint(3)",
}
LONG = "So long. " * 30
TEXT = f"""
![A drawing](drawn.svg)

It is one. {{check}}`odd, one` It is one. {{check}}`odd, one`

Two `<b>`. Or three. {{check}}`odd` And more. {{check}}`one`

{LONG}{{check}}`one`

A title. {{no-check}}`title`
"""


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> TinyBook:
    book = new_book(tmp_path_factory.mktemp("page"))
    book.configure("executed_book_rules = []")
    (book.root / "docs" / "drawn.svg").write_text("<svg width='9px' height='9px'/>")
    book.chapter("one", *CELLS.values())
    book.add_text("one", TEXT)
    book.index("one")
    book.built(SOURCE_DATE_EPOCH="1000000000")
    return book


@pytest.fixture(scope="module")
def page(book: TinyBook) -> BeautifulSoup:
    return BeautifulSoup(book.html("one"), "html.parser")


@pytest.fixture
def cells(page: BeautifulSoup) -> dict[str, Tag]:
    return dict(zip(CELLS, page.select("div.cell"), strict=True))


def test_what_varies_or_has_no_end_is_not_searched(cells):
    outputs = {name: cell.select_one(".cell_output") for name, cell in cells.items()}
    hidden = {n for n, made in outputs.items() if made and "no-search" in made["class"]}
    assert hidden == {"measured", "device", "html", "endless"}


def images(page: BeautifulSoup) -> list[tuple[str, ...]]:
    found = page.select("img")
    return [(i["src"][-9:], *i.get("class", ())) for i in found]


def test_a_figure_of_a_cell_has_a_twin_where_both_themes_are_shown(book, page):
    light, dark, pixels, drawn = images(page)
    assert (pixels[0][-4:], pixels[1:], drawn) == (".png", (), ("drawn.svg",))
    assert (light[1:], dark) == (("only-light",), ("-dark.svg", "only-dark"))
    places = ("-c", "conf", "docs", "out")
    for builder, option, name in (
        ("epub", "-q", "one.xhtml"),
        ("html", "-Dexecuted_book_figures=svg", "one.html"),
    ):
        assert book.sphinx("-b", builder, option, *places)[0] == 0
        text = (book.root / "out" / name).read_text()
        offered = (book.root / "out" / "_downloads" / "one.md").exists()
        assert offered is (builder == "html"), "an EPUB is taken as it is"
        assert len(images(BeautifulSoup(text, "html.parser"))) == 3, builder


def test_messages_are_text_without_colors_but_for_those_that_they_have(cells):
    kinds = {"fails": "none", "warns": "none", "colors": "myst-ansi"}
    for name, kind in kinds.items():
        assert cells[name].select_one(f".cell_output .highlight-{kind}"), name


def test_a_program_stands_right_below_the_code(cells):
    parts = [part["class"][0] for part in cells["value"].find_all(recursive=False)]
    assert parts == ["cell_input", "program-holder", "cell_output"]
    box = cells["value"].select_one(".program-holder.no-search .program-box")
    assert box.summary.text == "As a program, 3 lines"
    assert box.pre.text.endswith("\nx = '<b>'\nprint(repr(x))\n")
    assert not cells["skipped"].select(".program-holder, .no-program")


def test_each_tick_leads_to_its_checks_and_has_a_name_of_its_own(page):
    ticks = page.select("a.receipt")
    assert [(t["id"], t["href"], t.get("data-also")) for t in ticks] == [
        ("claim-odd", "#check-odd", "check-one"),
        ("claim-odd-2", "#check-odd", "check-one"),
        ("claim-odd-3", "#check-odd", None),
        ("claim-one-3", "#check-one", None),
        ("claim-one-4", "#check-one", None),
    ]
    assert [t["id"] for t in page.select("a.receipt + span")] == [
        *("claim-one", "claim-one-2")
    ]
    *names, long = [tick["aria-label"] for tick in ticks]
    twice = "Checked: It is one. (2 checks)"
    others = "Checked: Or three.", "Checked: Two <b>. And more."
    assert names == [twice, f"{twice}, 2", *others]
    assert len(long) <= 160
    assert long.endswith("So long. So …")
    assert "no-check" not in page.text
    assert page.find(string="It is one.\N{NO-BREAK SPACE}"), (
        "no line begins with a tick"
    )


def test_a_check_says_when_and_where_it_passed_and_what_it_holds(page, cells):
    note = cells["odd"].select_one(".receipt-note")
    assert note.p.text.startswith("Passed 2001-09-09 01:46 UTC on cpu, JAX ")
    held = [(a["href"], a.text) for a in cells["hidden"].select(".receipt-note a")]
    one = ("#claim-one", "It is one."), ("#claim-one-2", "It is one.")
    two = ("#claim-one-3", "Two <b>. And more."), ("#claim-one-4", LONG.strip())
    assert held == [*one, *two]
    assert cells["odd"].select_one("#check-odd pre")
    assert not cells["odd"].select("details.hide"), "a tick leads to it, and no bar"
    assert not cells["hidden"].select(".cell_input")
    assert not page.select("summary[aria-label]"), "its name is what it shows"
    assert page.find(id="check-one") in (cells["hidden"], *cells["hidden"].children)


def test_a_stamp_says_when_where_and_how_long_and_what_was_not_recorded(page):
    stamp = page.select_one(".stamp.no-search")
    when, seconds = (part.text for part in stamp.select(".measured"))
    assert when == "2001-09-09 01:46 UTC"
    show = stamp.select_one(".show-checks a")
    assert show.text == "Show the code of 2 checks in the text"
    said = stamp.p.text.strip()
    assert said.startswith(f"Executed {when} on cpu with JAX ")
    end = f", in {seconds}. No accelerator has been recorded for this page yet."
    assert said.endswith(end)


def test_rendering_imports_nothing_that_executes():
    code = "import sys, executed_book.showing.extension\n"
    code += "import myst_nb.core.execute as ways\n"
    code += "print(ways.NotebookClientDirect is ways.NotebookClientBase)\n"
    code += "print({'sqlalchemy', 'jupyter_client', 'nbclient'} & {*sys.modules})\n"
    code += "from myst_nb.core.execute.direct import NotebookClientDirect as own\n"
    code += "print(own.__module__)"  # others get what they ask for
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.stdout == "True\nset()\nmyst_nb.core.execute.direct\n", said.stderr
