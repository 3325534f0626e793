"""The lens in a real browser: what lights up, by mouse, keyboard and touch."""

import re

import jax
import jax.numpy as jnp
import pytest

from justafter import lens

from .conftest import faint


def helper(x):
    return jnp.tanh(x) * 2


def model(x, w):
    jnp.cos(x)
    return jnp.sum(helper(x @ w) + 1.0)


def long_function(x):
    for _ in range(200):
        x = jnp.sin(x) * 1.5
    return x


X, W = jax.ShapeDtypeStruct((4, 3), "float32"), jax.ShapeDtypeStruct((3, 2), "float32")


@pytest.fixture(scope="module")
def view():
    return lens(model, X, W)


@pytest.fixture(scope="module")
def pages(tmp_path_factory, view):
    """A page with one lens, one with three, and one with a long function."""
    folder = tmp_path_factory.mktemp("lenses")
    view.save(folder / "one.html")
    parts = view._repr_html_() + lens(helper, X)._repr_html_() + view._repr_html_()
    page = "<!DOCTYPE html><html><meta charset=utf-8><title>t</title><body>{}</body>"
    (folder / "many.html").write_text(page.format(parts), encoding="utf-8")
    lens(long_function, X).save(folder / "long.html")
    return folder


@pytest.fixture
def visit(visit, pages):
    """Open a page; any error of a script or request of elsewhere fails the test."""
    opened = []

    def open_page(name="one.html", **options):
        opened.append(visit((pages / name).as_uri(), **options))
        return opened[-1].page

    yield open_page
    for each in opened:
        assert each.errors == []
        assert all(url.startswith("file:") for url in each.requests)


def lit(page, selector):
    found = page.locator(".ja-lens").first.locator(f"{selector}.is-lit")
    return [re.sub(r"\s+", " ", text) for text in found.all_inner_texts()]


def kernels_lit(page):
    found = page.locator(".ja-lens").first.locator("summary.is-lit")
    return [one.get_attribute("data-k") for one in found.all()]


def expression(page, text):
    return page.locator(".ja-x").get_by_text(text, exact=True).first


def assert_tanh_is_lit(page, view):
    link = view.at("jnp.tanh(x)")
    (equation,) = lit(page, ".ja-q")
    assert equation.startswith(f"{link.equations[0]} ")
    assert "= tanh" in equation
    assert lit(page, ".ja-x") == ["jnp.tanh(x)"]
    assert kernels_lit(page) == [f"k{k}" for k in link.kernels]
    (instruction,) = lit(page, ".ja-i")
    assert " tanh(" in instruction


def test_mouse_from_the_source(visit, view):
    page = visit()
    assert lit(page, "") == []
    expression(page, "jnp.tanh(x)").hover(position={"x": 4, "y": 4})
    assert_tanh_is_lit(page, view)
    status = page.locator(".ja-status").inner_text()
    assert "jnp.tanh(x)" in status
    assert "tanh" in status
    page.mouse.move(2, 2)
    assert lit(page, "") == []
    columns = page.locator(".ja-column").all()
    assert len({column.bounding_box()["y"] for column in columns}) == 1


def test_mouse_from_the_equation_and_from_the_kernel(visit, view):
    page = visit()
    page.locator('.ja-q[data-p="tanh"]').hover()
    assert_tanh_is_lit(page, view)
    (k,) = view.at("jnp.tanh(x)").kernels
    page.locator(f'summary[data-k="k{k}"]').hover()
    assert len(lit(page, ".ja-q")) == len(view.kernels[k].members)


def test_keyboard(visit, view):
    page = visit()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    focused = "document.activeElement"
    for _ in range(20):
        if page.evaluate(f"{focused}.textContent") == "jnp.tanh(x)":
            break
        page.keyboard.press("ArrowDown")
    assert_tanh_is_lit(page, view)
    page.keyboard.press("ArrowRight")
    assert page.evaluate(f"{focused}.dataset.p") == "tanh"
    assert_tanh_is_lit(page, view)
    page.keyboard.press("ArrowRight")
    assert page.evaluate(f"{focused}.closest('.ja-hlo') !== null")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(f"{focused}.closest('.ja-jaxpr') !== null")
    page.keyboard.press("Escape")
    assert lit(page, "") == []
    assert page.evaluate(f"{focused}.classList.contains('ja-pane')")


def test_enter_holds_a_highlight_and_escape_lets_go(visit, view):
    page = visit()
    page.locator('.ja-q[data-p="tanh"]').click()
    page.locator('.ja-q[data-p="dot_general"]').hover()
    assert_tanh_is_lit(page, view)
    page.locator(".ja-jaxpr .ja-pane").press("Escape")
    assert lit(page, "") == []


@pytest.mark.parametrize("width", [1280, 390])
def test_pointing_moves_nothing(visit, width):
    page = visit("many.html", width=width)
    height = "document.documentElement.scrollHeight"
    before = page.evaluate(height)
    for piece in page.locator(".ja-q").all()[:5]:
        piece.hover()
        assert page.evaluate(height) == before


def test_a_gone_primitive_says_so(visit):
    page = visit()
    page.locator('.ja-q[data-p="cos"]').hover()
    assert kernels_lit(page) == []
    assert "gone: result unused" in page.locator(".ja-status").inner_text()
    line = page.locator('.ja-q[data-p="cos"] code')
    decoration = line.evaluate("e => getComputedStyle(e).textDecorationLine")
    assert decoration == "line-through"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_and_highlights_show_by_more_than_color(visit, scheme):
    page = visit(theme=scheme)
    page.locator('.ja-q[data-p="tanh"]').hover()
    outline = "e => getComputedStyle(e).outlineStyle"
    lit = page.locator(".is-lit").all()
    assert {piece.evaluate(outline) for piece in lit} == {"solid"}
    assert faint(page) == []


def test_the_sites_own_theme_wins_over_the_system(visit):
    page = visit(theme="light")
    background = "getComputedStyle(document.querySelector('.ja-lens')).backgroundColor"
    light = page.evaluate(background)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    dark = page.evaluate(background)
    assert dark != light
    page = visit(theme="dark")
    assert page.evaluate(background) == dark
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    assert page.evaluate(background) == light


def test_phone(visit, view):
    page = visit(width=390, height=800, is_mobile=True)
    tops = [pane.bounding_box()["y"] for pane in page.locator(".ja-column").all()]
    assert tops == sorted(set(tops))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expression(page, "jnp.tanh(x)").tap(position={"x": 4, "y": 4})
    assert_tanh_is_lit(page, view)
    box = page.locator(".ja-status").bounding_box()
    assert box["y"] + box["height"] <= 801


def test_many_lenses_on_one_page(visit, view):
    page = visit("many.html")
    lenses = page.locator(".ja-lens")
    lenses.nth(2).locator('.ja-q[data-p="tanh"]').hover()
    assert lenses.nth(0).locator(".is-lit").count() == 0
    assert lenses.nth(1).locator(".is-lit").count() == 0
    assert lenses.nth(2).locator(".is-on").count() == 1
    status = lenses.nth(2).locator(".ja-status").inner_text()
    assert status.count("jnp.tanh(x)") == 1


def status_changes(page):
    """Count how often a hover rewrites the status of the first lens."""
    page.evaluate("""() => {
      window.changes = 0;
      const seen = (records) => { window.changes += records.length; };
      new MutationObserver(seen).observe(
        document.querySelector(".ja-status"), {childList: true});
    }""")
    page.locator('.ja-q[data-p="tanh"]').first.hover()
    page.wait_for_function("window.changes > 0")
    return page.evaluate("window.changes")


def test_many_copies_of_the_script_act_once(visit):
    assert status_changes(visit("many.html")) == status_changes(visit("one.html"))


def test_a_long_function_scrolls_to_what_is_linked(visit):
    page = visit("long.html")
    last = page.locator('.ja-q[data-e="399"]')
    pane = page.locator(".ja-jaxpr .ja-pane")
    pane.evaluate("e => { e.scrollTop = e.scrollHeight; }")
    assert last.is_visible()
    expression(page, "jnp.sin(x)").hover(position={"x": 4, "y": 4})
    assert pane.evaluate("e => e.scrollTop") < 100


def test_without_javascript(visit):
    page = visit(scripts=False)
    text = page.locator(".ja-lens").inner_text()
    for wanted in ("jnp.tanh(x) * 2", "tanh", "kernels out", "unused"):
        assert wanted in text
    assert page.locator(".ja-status").is_hidden()
    kernel = page.locator("details.ja-k").first
    was_open = kernel.get_attribute("open") is not None
    kernel.locator("summary").click()
    assert (kernel.get_attribute("open") is not None) != was_open
