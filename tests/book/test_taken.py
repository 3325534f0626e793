"""What readers take of a page: its notebook, which installs what it needs, its text."""

import json

OPTIONS = """
html_theme = "sphinx_book_theme"
html_theme_options = {"use_source_button": True, "use_issues_button": True}
html_theme_options["repository_url"] = "https://github.com/someone/book"
executed_book_colab = "https://colab.example/github/someone/book/blob/notebooks/"
executed_book_install = ["jax"]
executed_book_install_also = {"collections": "a-library", "string": "another"}
"""


def test_a_notebook_opens_in_colab_and_installs_what_it_imports(book):
    book.configure(OPTIONS)
    book.index("part/one", "plain")
    book.page("plain", "# Plain\n")
    book.chapter(
        "part/one",
        "import collections.abc\nimport stringprep  # import string\nprint('a')",
    )
    book.built()
    address = "https://colab.example/github/someone/book/blob/notebooks/part/one.ipynb"
    page, plain = book.html("part/one"), book.html("plain")
    assert f'href="{address}"' in page
    assert page.index(address) < page.index("_downloads")
    for name in ("one.ipynb", "one.md"):
        assert f'href="../_downloads/part/{name}"' in page
    assert 'href="./_downloads/plain.md"' in plain
    assert "colab.example" not in plain
    assert ".ipynb" not in plain
    assert page.count('_downloads/part/one.md"') == 1, "in the menu of downloads alone"
    assert "Print, or save as PDF" in page
    assert "_downloads" not in book.html("genindex")
    taken = book.site / "_downloads" / "part"
    first, _, cell, *_ = json.loads((taken / "one.ipynb").read_text("utf-8"))["cells"]
    assert 'jax="jax",\n    a_library="a-library",\n)' in first["source"]
    assert "another" not in first["source"]
    assert cell["outputs"][0]["text"] == "a\n"
    assert (taken / "one.md").read_text().startswith("# part/one\n")
    # There the way from a page to the root may be the page itself.
    places = ("-q", "-b", "dirhtml", "-c", "conf", "docs", "out")
    assert book.sphinx("-Dnb_execution_mode=off", *places)[0] == 0
    index = (book.root / "out" / "index.html").read_text("utf-8")
    assert 'href="./_downloads/index.md"' in index
