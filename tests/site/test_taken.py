"""What a reader takes away reads as the page does."""

import json
import re
import zipfile
from collections.abc import Iterator
from itertools import zip_longest

from markdown_it import MarkdownIt

from ..test_distributions import installed
from .conftest import SITE

NOTEBOOKS = sorted(SITE.rglob("_downloads/**/*.ipynb"))

ROLE = re.compile(r"\{[a-z][\w:-]*\}$")
MARK = re.compile(r"^:{3,}.*$|^\([\w-]+\)=$|\]\{\.[^}]*\}", re.MULTILINE)


def leftovers(text: str) -> Iterator[str]:
    """What only MyST understands; not where a page shows it as code."""
    for token in MarkdownIt().parse(text):
        if token.type == "fence" and token.info.startswith("{"):
            yield token.info
        parts = token.children or []
        for part, following in zip_longest(parts, parts[1:]):
            if part.type == "text":
                yield from MARK.findall(part.content)
                if following and following.type == "code_inline":
                    yield from ROLE.findall(part.content)


LEFT = ("See {doc}`/a`.", "```{note}\nHear\n```", ":::{div} a", "(a)=", "[Red]{.edge}")


def test_leftovers_are_known_and_what_a_page_shows_as_code_is_none():
    assert [len([*leftovers(text)]) for text in LEFT] == [1] * len(LEFT)
    assert [*leftovers("A `{check}` and\n\n````md\n```{note}\n```\n````\n")] == []


def test_a_notebook_holds_no_source_of_the_page():
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        told = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
        assert [hit for text in told for hit in leftovers(text)] == [], path
        assert any(cell.get("outputs") for cell in cells), path


def test_a_page_and_a_notebook_say_where_the_instruments_are(tmp_path):
    [wheel] = SITE.glob("_downloads/justafter-*.whl")
    needing = 0
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        first, *code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        if re.search(r"^\s*(import|from) justafter\b", "\n".join(code), re.MULTILINE):
            assert wheel.name in first, path
            page = (SITE / path.relative_to(SITE / "_downloads")).with_suffix(".html")
            shown = page.read_text("utf-8")
            commands = re.findall(r'<code class="install">(.*?)</code>', shown)
            assert any(wheel.name in command for command in commands), page
            for text in re.findall(r'<pre class="program"[^>]*>([^<]*)', shown):
                if re.search(r"^\s*(import|from) justafter\b", text, re.MULTILINE):
                    second = text.splitlines()[1]
                    assert second.startswith("# pip install "), page
                    assert wheel.name in second, page
            needing += 1
    assert needing > 5
    installed(tmp_path, "--no-index", "--no-deps", str(wheel))
    assert [*tmp_path.glob("lib/python*/site-packages/justafter/__init__.py")]


def test_the_exercises_of_a_notebook_can_be_done():
    found = 0
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        tags = [set(cell["metadata"].get("tags", ())) for cell in cells]
        assert not any("solution" in some for some in tags), path
        for k, some in enumerate(tags):
            if "exercise" in some:
                text, check, solution = cells[k - 1], cells[k + 1], cells[k + 2]
                assert "\n### Exercise" in "\n" + "".join(text["source"]), path
                assert "exercise-check" in tags[k + 1], path
                assert "raises-exception" in tags[k + 1], path
                assert check["outputs"] == [], path
                folded = "<details>\n<summary>Solution</summary>"
                assert "".join(solution["source"]).startswith(folded), path
                found += 1
    assert found > 100


def test_an_exercise_is_in_the_contents_of_its_page():
    for path in NOTEBOOKS:
        page = (SITE / path.relative_to(SITE / "_downloads")).with_suffix(".html")
        text = page.read_text("utf-8")
        headings = set(re.findall(r'<section id="(exercise-[^"]+)">\n<h3>', text))
        assert headings or "tag_exercise " not in text, page
        assert headings <= set(re.findall(r' nav-link" href="#([^"]+)"', text)), page


def test_no_sentence_has_the_raw_name_of_a_page():
    folders = {path.parent.name for path in NOTEBOOKS} - {"_downloads"}
    name = re.compile(rf"[ (“](/(?:{'|'.join(sorted(folders))})/[a-z-]+)(?=[ ).,;:])")
    for path in sorted(SITE.rglob("_downloads/**/*.md")):
        prose = re.sub(r"(`+).*?\1", "", path.read_text("utf-8"), flags=re.DOTALL)
        assert name.findall(prose) == [], path


def test_a_notebook_has_no_link_that_is_dead_elsewhere():
    text = [path.read_text("utf-8") for path in NOTEBOOKS]
    cells = [cell for one in text for cell in json.loads(one)["cells"]]
    said = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
    prose = [re.sub(r"(`+).*?\1", "", each, flags=re.DOTALL) for each in said]
    links = [link for each in prose for link in re.findall(r"\]\(([^)\s]+)", each)]
    assert links
    assert [link for link in links if not re.match(r"https?:|mailto:", link)] == []


def test_the_list_of_texts_names_files_that_are_there():
    text = (SITE / "llms.txt").read_text("utf-8")
    names = re.findall(r"\((?:[^()]*/)?(_downloads/[^)]+\.md)\)", text)
    assert len(names) > 50
    assert [name for name in names if not (SITE / name).is_file()] == []


def test_the_list_of_texts_is_in_the_order_that_helps_and_says_what_a_page_answers():
    text = (SITE / "llms.txt").read_text("utf-8")
    rows = re.findall(r"^- \[(.+)\]\(\S*_downloads/(\S+)\.md\): (.+)$", text, re.M)
    assert len(rows) == text.count("\n- ")
    names = [name for _, name, _ in rows]
    assert names[:3] == ["index", "learn/index", "learn/ten-minutes"]
    parts = list(dict.fromkeys(name.partition("/")[0] for name in names))
    assert parts.index("numbers") < parts.index("systems") < parts.index("errors")
    assert names[-1] == "releases"
    said = [about for _, _, about in rows]
    assert len(set(said)) == len(said)
    assert [about for about in said if "…" in about or len(about) > 200] == []
    assert [about for about in said if not re.search(r"\bjax\b", about, re.I)] == []


def test_what_the_landing_page_offers_is_there():
    page = (SITE / "index.html").read_text()
    offered = re.findall(r'href="(_downloads/[^"]*)"', page)
    assert any(name.endswith(".zip") for name in offered)
    assert [name for name in offered if not (SITE / name).is_file()] == []


def test_the_whole_book_is_packed():
    [path] = SITE.glob("_downloads/*.zip")
    with zipfile.ZipFile(path) as packed:
        names = packed.namelist()
        assert packed.testzip() is None
    root = names[0].partition("/")[0]
    assert f"{root}/index.html" in names
    assert f"{root}/_static/site.css" in names
    assert len({name for name in names if name.endswith(".html")}) > 50
