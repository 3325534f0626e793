"""In the browser each file of the site that is to be installed has a whole address."""

import json
import urllib.request

from playwright.sync_api import Browser

PAGE = "instruments/lens"


def test_commands_programs_and_notebooks_have_an_address_that_answers(
    browser: Browser, address: str
):
    page = browser.new_page()
    page.goto(f"{address}{PAGE}.html")
    command = page.inner_text("code.install")
    [wheel] = [word for word in command.split() if word.endswith(".whl")]
    with urllib.request.urlopen(wheel) as answer:
        assert answer.read(2) == b"PK"
    every = "all => all.map(box => box.textContent)"
    programs = page.eval_on_selector_all("pre.program", every)
    importing = [text for text in programs if "from justafter import" in text]
    assert importing
    assert [text for text in importing if wheel not in text.splitlines()[1]] == []
    with page.expect_download() as taking:
        page.eval_on_selector("a[href$='.ipynb']", "link => link.click()")
    taken = taking.value
    first, *_ = json.loads(taken.path().read_text("utf-8"))["cells"]
    page.close()
    assert taken.suggested_filename == f"{PAGE.rpartition('/')[2]}.ipynb"
    assert f'justafter="{wheel}",\n' in "".join(first["source"])
