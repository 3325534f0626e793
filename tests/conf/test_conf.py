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


def test_edit_and_issue_links_where_the_repository_is_known(configure):
    options = configure()["html_theme_options"]
    assert options["repository_url"] == ""
    assert not any(options[button] for button in BUTTONS)
    said = {"repository_url": "https://git.example/a/book", "repository_branch": "next"}
    variables = {f"BOOK_{name.upper()}": value for name, value in said.items()}
    options = configure(**variables)["html_theme_options"]
    assert said.items() <= options.items()
    assert all(options[button] for button in BUTTONS)


def test_the_address_of_the_site_and_of_its_notebooks(configure):
    plain, site = configure(), "https://book.example/"
    assert (plain["html_baseurl"], plain["executed_book_colab"]) == ("", "")
    notebooks = "someone/book/blob/notebooks"
    made = configure(BOOK_URL=site, BOOK_NOTEBOOKS=notebooks)
    assert made["html_baseurl"] == site
    colab = "https://colab.research.google.com/github"
    assert made["executed_book_colab"] == f"{colab}/{notebooks}"
