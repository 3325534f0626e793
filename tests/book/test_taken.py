"""A page's notebook: where it opens, and what its first cell installs."""

import json

OPTIONS = """
html_theme = "sphinx_book_theme"
executed_book_colab = "https://colab.example/github/someone/book/blob/notebooks/"
executed_book_install_line = "%pip install jax"
executed_book_install_also = {"collections": "a-library", "string": "another"}
"""


def test_a_notebook_opens_in_colab_and_installs_what_it_imports(book):
    book.configure(OPTIONS)
    book.index("part/one", "plain")
    book.page("plain", "# Plain\n")
    book.chapter("part/one", "import collections.abc\nstring = 1")
    book.built()
    address = "https://colab.example/github/someone/book/blob/notebooks/part/one.ipynb"
    assert f'href="{address}"' in book.html("part/one")
    assert "colab.example" not in book.html("plain")
    path = book.site / "_downloads" / "part" / "one.ipynb"
    first = json.loads(path.read_text("utf-8"))["cells"][0]
    assert first["source"].endswith("%pip install jax a-library")
