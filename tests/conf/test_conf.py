"""What the book's configuration takes from the environment."""

import os
import runpy
from pathlib import Path

import pytest

CONF = Path(__file__).parents[2] / "conf" / "conf.py"
BUTTONS = ("use_edit_page_button", "use_issues_button", "use_repository_button")


@pytest.fixture
def configure(monkeypatch: pytest.MonkeyPatch):
    def _configure(**variables: str) -> dict:
        for name in [name for name in os.environ if name.startswith("BOOK_")]:
            monkeypatch.delenv(name)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return runpy.run_path(str(CONF))

    return _configure


def test_no_links_to_a_repository_that_is_not_known(configure):
    options = configure()["html_theme_options"]
    assert options["repository_url"] == ""
    assert not any(options[button] for button in BUTTONS)


def test_edit_and_issue_links_where_the_repository_is_known(configure):
    options = configure(
        BOOK_REPOSITORY_URL="https://git.example/someone/book",
        BOOK_REPOSITORY_BRANCH="next",
    )["html_theme_options"]
    assert options["repository_url"] == "https://git.example/someone/book"
    assert options["repository_branch"] == "next"
    assert all(options[button] for button in BUTTONS)


def test_the_address_of_the_site(configure):
    assert configure()["html_baseurl"] == ""
    assert configure(BOOK_URL="https://book.example/")["html_baseurl"].endswith("/")


def test_colab_where_it_is_known_in_which_repository_the_notebooks_lie(configure):
    assert configure()["executed_book_colab"] == ""
    address = configure(BOOK_NOTEBOOKS="someone/book/blob/notebooks")
    assert address["executed_book_colab"] == (
        "https://colab.research.google.com/github/someone/book/blob/notebooks"
    )
