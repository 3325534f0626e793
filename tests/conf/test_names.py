"""The page of names lists what the cells of a small book use, and keeps up with it."""

import re
from pathlib import Path

import pytest
from sphinx.testing.util import SphinxTestApp

CONF = Path(__file__).parents[2] / "conf"
HEAD = "---\nfile_format: mystnb\nkernelspec: {name: python3}\n---\n"


def cell(code: str) -> str:
    return f"```{{code-cell}}\n{code}\n```\n"


BOOK = {
    "index": "# Book\n```{toctree}\nthen\nearlier\nnames\n```\n",
    "then": (
        f"{HEAD}# Then\n{cell('import jax, optax')}"
        "## Both\n"
        + cell("jax.vmap(jax.numpy.sin)\nprint(jax.vmap)\ny.sum(jit)")
        + cell("jax.vmap(f)")
        + "## Other\n"
        + cell("optax.adam(1)\njax.no_such_name")
    ),
    "earlier": (
        f"{HEAD}# Earlier\n{cell('from jax import vmap as batched, jit, grad')}"
        "```{index} jax.vmap\n```\n"
        "## Renamed\n" + cell("batched(f)\ngrad = 3\ngrad\njax = 3\njax.jit")
    ),
    "names": "# Names\n```{names}\n```\n",
}


def build(folder: Path) -> dict[str, str]:
    app = SphinxTestApp("html", srcdir=folder)
    written: list[str] = []
    app.connect("html-page-context", lambda app, page, *rest: written.append(page))
    app.build()
    app.cleanup()
    assert "WARNING" not in app.warning.getvalue()
    out, names = folder / "_build" / "html", set(written) & BOOK.keys()
    return {name: (out / f"{name}.html").read_text() for name in names}


@pytest.fixture
def book(tmp_path: Path) -> Path:
    (tmp_path / "search-words.txt").write_text("")
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.append({str(CONF)!r})\n"
        "extensions = ['myst_nb', 'names', 'finding']\nnb_execution_mode = 'off'\n"
        # Sphinx's own default is one for all applications of a process.
        "source_suffix = {'.md': 'myst-nb'}\n"
        "suppress_warnings = ['myst-nb.lexer']\nexclude_patterns = ['_build']\n"
    )
    for name, text in BOOK.items():
        (tmp_path / f"{name}.md").write_text(text)
    return tmp_path


def listed(page: str) -> dict[str, tuple[str, list[str]]]:
    items = re.findall(r'<dt id="([^"]*)">.*?</dt>\s*<dd>(.*?)</dd>', page, re.S)
    return {
        name: (re.sub("<[^>]*>", "", text).strip(), re.findall('href="([^"]*)"', text))
        for name, text in items
    }


def test_each_name_has_the_sections_that_use_it(book: Path):
    page = build(book)["names"]
    assert listed(page) == {
        "jax.vmap": (
            "3 cells on 2 pages. Taught in Earlier. In Then, Both; Earlier, Renamed.",
            ["earlier.html#index-0", "then.html#both", "earlier.html#renamed"],
        ),
        "jax.numpy.sin": ("1 cell. In Then, Both.", ["then.html#both"]),
        "optax.adam": ("1 cell. In Then, Other.", ["then.html#other"]),
    }
    for module in ("jax", "jax.numpy", "optax"):
        assert f'href="#module-{module}"' in page, "it is in the table of contents"
    assert 'href="https://docs.jax.dev/en/latest/_autosummary/jax.vmap.html' in page


def test_it_is_written_anew_when_a_page_changes_its_uses_and_only_then(book: Path):
    first = build(book)["names"]
    (book / "then.md").write_text(BOOK["then"] + "More words.\n")
    assert "names" not in build(book)
    (book / "then.md").write_text(BOOK["then"].replace("optax.adam", "optax.sgd"))
    again = build(book)
    assert again["names"] == first.replace("optax.adam", "optax.sgd")


def test_a_name_with_many_uses_has_one_of_them(book, module_of_conf, monkeypatch):
    monkeypatch.setattr(module_of_conf("names"), "MOST", 1)
    said = "3 cells on 2 pages."
    taught = f"{said} Taught in Earlier.", ["earlier.html#index-0"]
    assert listed(build(book)["names"])["jax.vmap"] == taught
    (book / "earlier.md").write_text(BOOK["earlier"].replace("{index}", "{note}"))
    first = f"{said} First in Then, Both.", ["then.html#both"]
    assert listed(build(book)["names"])["jax.vmap"] == first


def test_a_page_that_goes_by_a_name_teaches_it_and_the_search_knows_it(book: Path):
    (book / "vmap.md").write_text("# One becomes many\n")
    index = BOOK["index"].replace("names\n", "names\nvmap\n")
    (book / "index.md").write_text(index)
    said, links = listed(build(book)["names"])["jax.vmap"]
    assert "Taught in One becomes many." in said
    assert links[0] == "vmap.html"
    script = (book / "_build" / "html" / "_static" / "search-index.js").read_text()
    assert '["jax.vmap","jax.vmap","3 cells on 2 pages"' in script
