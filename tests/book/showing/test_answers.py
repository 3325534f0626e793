"""What explains an output that the reader is to predict is folded with it."""

import json

import pytest
from bs4 import BeautifulSoup

from executed_book.reading.chapters import read_page
from executed_book.settings import Settings

from ..conftest import FRONT, TinyBook

PAGE = """{front}# One

## Asked

How many? **Guess** it.

```{{code-cell}}
x = 3
x
```

```{{code-cell}}
:tags: [check]
:check: three
assert x == 3
```

:::{{answer}}
Every one of {{value}}`x`. {{check}}`three`

- A line of a list.
:::

## Another

{after}
"""
LONE = """:::{answer}
Nobody asked.
:::"""
ASKED = """**Guess** it.

```{code-cell}
x
```

:::{answer}
One.
:::

"""


@pytest.fixture
def asking(book: TinyBook) -> TinyBook:
    book.configure('executed_book_asks = "Guess"', "executed_book_rules = []")
    book.configure('myst_enable_extensions = ["colon_fence"]')
    book.index("one")
    return book


def test_an_answer_is_folded_with_its_output(asking):
    asking.page("one", PAGE.format(front=FRONT, after=""))
    asking.built()
    page = BeautifulSoup(asking.html("one"), "html.parser")
    [answer] = page.select(".answer")
    fold = answer.parent
    assert (fold.name, fold.has_attr("open")) == ("details", False)
    prompts = [part.text for part in fold.select("summary p")]
    assert prompts == ["Show the answer", "Hide the answer"]
    assert fold.select_one(".cell_output").text.strip() == "3"
    assert answer.p.text == "Every one of 3.\xa0✓"
    assert answer.select_one("#claim-three")["href"] == "#check-three"
    assert answer.li.text == "A line of a list."


def test_what_a_reader_takes_has_the_answer_after_its_cell(asking):
    asking.page("one", PAGE.format(front=FRONT, after=""))
    asking.built()
    places = asking.site / "_downloads"
    text = (places / "one.md").read_text()
    assert text.index("**Show the answer**") < text.index("Every one of 3")
    cells = json.loads((places / "one.ipynb").read_text())["cells"]
    kinds = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    nth = kinds.index(("code", "x = 3\nx"))
    kind, answer = kinds[nth + 1]
    assert kind == "markdown"
    assert answer.startswith("<details>\n<summary>Answer</summary>\n\nEvery one of 3.")


@pytest.mark.parametrize("after", [LONE, f"{ASKED}{LONE}"], ids=["lone", "second"])
def test_an_answer_without_an_output_is_an_error_at_its_line(asking, after):
    text = PAGE.format(front=FRONT, after=after)
    line = text[: text.index(LONE)].count("\n") + 1
    asking.page("one", text)
    said = asking.refused("build")
    assert f"docs/one.md:{line}: WARNING: this answer has no folded output" in said
    assert said.count("this answer has no") == 1
    assert "→ end the paragraph before the cell with a question" in said


def test_the_sentences_of_an_answer_are_read(tmp_path):
    path = tmp_path / "docs" / "one.md"
    settings = Settings(path.parent, tmp_path)
    reading = read_page(path, settings, PAGE.format(front=FRONT, after=""))
    found = {s.text: (s.line, s.checks, s.is_universal) for s in reading.sentences}
    assert found["Every one of …."] == (24, ("three",), True)
    assert found["A line of a list."] == (26, (), False)
