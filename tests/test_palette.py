"""The site has one palette, and what cannot take its colors from it repeats them."""

import re
from pathlib import Path

from executed_book.figures import CYCLE, DARK, GRID, INK, MUTED

ROOT = Path(__file__).parent.parent
STATIC = ROOT / "conf" / "static"
ENGINE = ROOT / "src" / "executed_book" / "showing" / "static"
HEX = re.compile(r"#[0-9a-f]{3,8}\b", re.IGNORECASE)


def declared(selector: str) -> dict[str, str]:
    css = (STATIC / "colors.css").read_text("utf-8")
    block = re.search(rf"{re.escape(selector)} \{{(.*?)\}}", css, re.DOTALL)
    return dict(re.findall(r"(--[\w-]+): (#\w+);", block[1]))


LIGHT, AT_NIGHT = declared("html:root"), declared('html[data-theme="dark"]')


def test_both_themes_have_the_same_names():
    assert LIGHT.keys() == AT_NIGHT.keys()
    assert len(LIGHT) > 15


def test_figures_are_drawn_in_the_page_s_colors():
    drawn = (INK, MUTED, GRID, CYCLE[0], CYCLE[1])
    for color, name in zip(
        drawn, ("text-base", "text-muted", "border", "primary", "warning"), strict=True
    ):
        name = f"--pst-color-{name}"
        assert (color, DARK[color]) == (LIGHT[name], AT_NIGHT[name])


def test_the_marks_are_in_the_palette():
    marks = {"mark-light": [LIGHT], "mark-dark": [AT_NIGHT]}
    for file, palettes in {**marks, "favicon": [LIGHT, AT_NIGHT]}.items():
        found = set(HEX.findall((STATIC / f"{file}.svg").read_text("utf-8")))
        names = ("--pst-color-primary", "--pst-color-warning")
        assert found == {palette[name] for palette in palettes for name in names}


def test_the_edges_of_an_epub_are_those_of_the_site():
    css = (ROOT / "conf" / "epub" / "book.css").read_text("utf-8")
    edges = set(re.findall(r"#[0-9a-f]{6}\b", css))
    names = ("primary", "warning", "success")
    assert edges == {LIGHT[f"--pst-color-{name}"] for name in names}


def test_drawings_are_in_the_palette():
    for name in ("card.py", "drawings.py"):
        text = (ROOT / "conf" / name).read_text("utf-8")
        assert set(HEX.findall(text)) <= set(LIGHT.values()), name


def test_no_other_style_sheet_has_colors_of_its_own():
    for path in [*STATIC.glob("*.css"), *ENGINE.glob("*.css")]:
        found = HEX.findall(path.read_text("utf-8"))
        # The engine falls back on its own where a theme has none; paper is white.
        if path.name not in ("colors.css", "cells.css"):
            assert set(found) <= {"#fff"}, path.name
