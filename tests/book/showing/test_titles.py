"""A receipt names a page as its link does: by that page's title."""

from bs4 import BeautifulSoup

from ..conftest import FRONT, TinyBook

ONE = f"""{FRONT}# One

As {{doc}}`/two` says, two are three in {{doc}}`other words </two>`. {{check}}`sum`

```{{code-cell}}
import numpy as np

x = np.arange(3)
```

```{{code-cell}}
:tags: [check]
:check: sum
assert x.sum() == 3
```
"""


def claim(book: TinyBook) -> str:
    book.built()
    page = BeautifulSoup(book.html("one"), "html.parser")
    [said] = page.select(".receipt-note li")
    assert said.text in page.select_one("a.receipt")["aria-label"]
    return said.text


def test_a_receipt_has_titles_in_place_of_names(book):
    book.index("one", "two")
    book.page("one", ONE)
    book.page("two", "# All of `two`\n")
    said = "As {} says, two are three in other words."
    assert claim(book) == said.format("All of two")
    book.page("two", "# Another title\n")
    assert claim(book) == said.format("Another title")
