"""Two cold builds give the same bytes, but for what is marked as measured."""

import re

import sphinx
from bs4 import BeautifulSoup

from .conftest import FRONT, copy_of

PAGE = (
    FRONT
    + """\
# One

```{code-cell}
import jax
import jax.numpy as jnp

x = jax.random.normal(jax.random.key(0), (3,))
x
```

The sum is {value}`x.sum():.3f`.

```{code-cell}
:tags: [measured]
import time

began = time.perf_counter()
jnp.exp(x).block_until_ready()
seconds = time.perf_counter() - began
assert seconds > 0
print(f"{seconds:.9f} s")
```

```{code-cell}
:alt: "three points"
import matplotlib.pyplot as plt

plt.plot(x)
plt.show()
```

Mathematics: $e^{i\\pi} = -1$. It took {measured}`seconds:.9f` s.
"""
)


def stable(html: str) -> str:
    page = BeautifulSoup(html, "html.parser")
    for part in page.select(".measured, .tag_measured .cell_output"):
        part.decompose()
    return str(page)


def pages(book) -> dict[str, bytes]:
    return {
        str(path.relative_to(book.site)): path.read_bytes()
        for path in sorted(book.site.rglob("*"))
        if path.is_file()
    }


def test_two_cold_builds(book, tmp_path_factory):
    book.index("one")
    book.page("one", PAGE)
    other = copy_of(book, tmp_path_factory.mktemp("other"))
    book.built(SOURCE_DATE_EPOCH="1000000000")
    other.built(SOURCE_DATE_EPOCH="1000000000")
    assert "2001-09-09 01:46 UTC" in book.html("one")
    first, second = pages(book), pages(other)
    assert first.keys() == second.keys()
    different = [name for name in first if first[name] != second[name]]
    # The notebook and the Markdown have the outputs of the page.
    measured = ["_downloads/one.ipynb", "_downloads/one.md", "one.html"]
    if sphinx.version_info < (8, 2):  # it has no way to leave a text out of the search
        measured.append("searchindex.js")
    assert different == measured, "only the page with measured values may differ"
    assert book.html("one") != other.html("one"), "the measured values do differ"
    assert stable(book.html("one")) == stable(other.html("one"))


def test_a_page_is_the_same_whatever_was_built_before(book):
    """Cold, and after other builds: every file of the site has the same bytes."""
    kinds = ("a word", "pair: one; two", "see: x; y")
    words = "".join(f"```{{index}} {each}\n```\n\n" for each in kinds)
    book.index("one", "two")
    book.page("one", PAGE.split("The sum is")[0] + "```{index} a word\n```\n")
    book.page("two", f"# Two\n\n{words}Text.\n")
    book.built(SOURCE_DATE_EPOCH="1000000000")
    first = pages(book)
    assert {"genindex.html", "search.html", "searchindex.js"} <= first.keys()
    entries = (
        first["searchindex.js"].partition(b'"indexentries":')[2].partition(b"}")[0]
    )
    named = b"a word, one, two, x"
    assert re.findall(rb'"([\w ]+)":', entries) == named.split(b", ")
    path = book.root / "docs" / "two.md"
    text = path.read_text()
    path.write_text(text.replace("# Two", "# Twice") + "More text.\n")
    book.built(SOURCE_DATE_EPOCH="1000000000")
    assert pages(book)["two.html"] != first["two.html"]
    path.write_text(text)
    book.built(SOURCE_DATE_EPOCH="1000000000")
    assert pages(book) == first
