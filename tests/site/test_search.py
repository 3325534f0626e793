"""What readers type finds what they came for."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

ASK = """
(texts) => texts.map((text) => engine.find(text).slice(0, 3).map(({ entry }) =>
  entry.whole ? entry.page : `${entry.page}#${entry.id}`))
"""
PLACES = "() => engine.entries.map((e) => (e.whole ? e.page : `${e.page}#${e.id}`))"

LINES = Path(__file__).with_name("questions.txt").read_text("utf-8").splitlines()
ROWS = [re.split(r" {2,}", line) for line in LINES if line and line[0] != "#"]
#: What readers type, and the places that answer it.
QUESTIONS = [
    (text, {*places}) for texts, *places in ROWS for text in texts.split(" | ")
]


def test_there_are_many_questions_and_each_place_exists(finder: Page):
    assert len(QUESTIONS) >= 300
    places = set(finder.evaluate(PLACES))
    assert sorted(set().union(*(those for _, those in QUESTIONS)) - places) == []


def test_97_percent_of_questions_find_their_section_within_three(finder: Page):
    answers = finder.evaluate(ASK, [text for text, _ in QUESTIONS])
    missed = [
        f"{text!r}: found {answer}"
        for (text, places), answer in zip(QUESTIONS, answers, strict=True)
        if not places & set(answer)
    ]
    assert len(missed) <= 0.03 * len(QUESTIONS), "\n".join(missed)


def known(finder: Page) -> list[tuple[str, str]]:
    """Each entry of the error pages with the message that it raises."""
    one = "({ entry: e }) => [`${e.page}#${e.id}`, e.messages]"
    rows = finder.evaluate(f"() => engine.messages.known.map({one})")
    return [(place, message) for place, message in rows]


def with_its_module(message: str) -> str:
    return f"jaxlib.xla_extension.{message.rpartition('.jax_errors.')[2]}"


def with_other_numbers(message: str) -> str:
    return re.sub(r"\d+", lambda number: str(int(number[0]) + 5), message)


def with_other_dtypes(message: str) -> str:
    other = re.sub(r"\bfloat32\b", "bfloat16", message)
    return re.sub(r"\bint32\b", "uint8", other)


def with_an_address(message: str) -> str:
    return re.sub(r"<function (\w+)[^>]*>", r"<function f at 0x7f1c2a3b4d>", message)


def in_older_words(message: str) -> str:
    """Types as older releases print them: `ShapedArray(float32[3])`."""
    return re.sub(r"\b((?:float|int|bool)\d*\[[\d,]*\])", r"ShapedArray(\1)", message)


def in_a_traceback(message: str) -> str:
    """Raised while another was handled, and quoting a third, as JAX does."""
    frames = 'Traceback (most recent call last):\n  File "a.py", line 3\n    f(x)\n'
    first, third = "KeyError: 'a'", "TypeError: unhashable type: 'list'"
    return f"{frames}{first}\n\nDuring it:\n\n{frames}{message}\n{third}"


@pytest.mark.parametrize(
    "change",
    [
        *(str, with_its_module, with_other_numbers, with_other_dtypes),
        *(with_an_address, in_older_words, in_a_traceback),
    ],
)
def test_each_message_finds_its_entry_first(finder: Page, change):
    entries = known(finder)
    assert len(entries) >= 119
    answers = finder.evaluate(ASK, [change(message) for _, message in entries])
    wrong = [
        f"{change(message)[:120]!r} found {answer[:1]}, not {place}"
        for (place, message), answer in zip(entries, answers, strict=True)
        if answer[:1] != [place]
    ]
    assert wrong == []


def test_the_finders_field_filters_the_messages(browser: Browser, address: str):
    page = browser.new_page()
    page.goto(address + "errors/index.html")
    rows = page.locator("#all-messages tbody tr:visible")
    every = rows.count()
    page.locator(".message-filter").fill("broadcasting shardings")
    page.locator(".search-status", has_text=f"of {every} messages").wait_for()
    assert 0 < rows.count() < every
    page.locator(".message-filter").fill(
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory"
        " allocating 99999999999 bytes."
    )
    page.locator("#all-messages tbody tr:visible", has_text="RESOURCE").wait_for()
    page.locator(".message-filter").fill("leaked tracer")
    page.locator("#all-messages tbody tr:visible", has_text="Tracer").first.wait_for()
    assert 0 < rows.count() <= 5
    page.close()


def test_the_finders_field_ranks_and_says_when_nothing_fits(
    browser: Browser, address: str
):
    page = browser.new_page()
    page.goto(address + "errors/index.html")
    field, status = page.locator(".message-filter"), page.locator(".search-status")
    rows = page.locator("#all-messages tbody tr:visible")
    field.fill("RESOURCE_EXHAUSTED: Out of memory allocating 8589934592 bytes.")
    page.locator("tbody tr:first-child", has_text="RESOURCE_EXHAUSTED").wait_for()
    field.fill("AttributeError: module 'jax' has no attribute 'tree_map'")
    status.locator("a[href*='older/']").first.wait_for()
    field.fill("xyzzy")
    status.get_by_role("link", name="Search the whole book").wait_for()
    assert rows.count() == 0
    field.fill("")
    rows.first.wait_for()
    words = rows.first.inner_text()
    assert words.startswith("0th dimension"), "the rows are in another order"
    page.close()


def test_enter_opens_the_first_place_and_an_excerpt_ends_at_a_word(
    browser: Browser, address: str
):
    page = browser.new_page()
    page.goto(address + "search.html")
    field = page.locator(".search-page input")
    field.fill("conjugate gradient")
    page.locator(".search-found p").first.wait_for()
    for text in page.locator(".search-found p").all_inner_texts():
        assert not text.endswith("\N{HORIZONTAL ELLIPSIS}") or text[-2] == " "
    field.fill("qqqqzzzz")
    page.locator(".search-status a").first.wait_for()
    field.fill("vmap")
    field.press("Enter")
    page.wait_for_url("**/vmap.html*")
    page.close()
