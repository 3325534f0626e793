"""The figures' colors can be told apart and read, on both themes."""

from io import StringIO
from itertools import combinations
from xml.etree.ElementTree import fromstring

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from executed_book.figures import CYCLE, DARK, INK, MUTED, dark_twin, light_style

PAPER = {"light": "#fdfcf9", "dark": "#14191c"}
CYCLES = {"light": CYCLE, "dark": tuple(DARK[color] for color in CYCLE)}
TEXTS = {"light": (INK, MUTED), "dark": (DARK[INK], DARK[MUTED])}

# Machado, Oliveira, and Fernandes (2009), severity 1.0, on linear RGB.
VISIONS = {
    "trichromacy": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def linear(color: str) -> np.ndarray:
    srgb = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Return WCAG's contrast ratio, from 1 to 21."""
    light = [linear(color) @ [0.2126, 0.7152, 0.0722] + 0.05 for color in (one, other)]
    return max(light) / min(light)


def cielab(rgb: np.ndarray) -> np.ndarray:
    to_xyz = [
        [0.4124, 0.3576, 0.1805],
        [0.2126, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.9505],
    ]
    xyz = np.array(to_xyz) @ rgb / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", PAPER)
def test_text_and_lines_stand_out_from_the_page(theme):
    assert min(contrast(c, PAPER[theme]) for c in TEXTS[theme]) >= 4.5
    assert min(contrast(c, PAPER[theme]) for c in CYCLES[theme]) >= 3


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("theme", CYCLES)
def test_series_can_be_told_apart(theme, vision):
    seen = [
        cielab(np.clip(np.array(VISIONS[vision]) @ linear(color), 0, 1))
        for color in CYCLES[theme]
    ]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 12


def drawing() -> str:
    with mpl.rc_context(light_style()):
        figure = Figure()
        axes = figure.subplots()
        for slope in range(len(CYCLE)):
            axes.plot([0, 1], [0, slope], label=f"slope {slope}")
        axes.text(0.5, 0.5, "named black", color="black")
        axes.legend()
        out = StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def test_the_background_is_transparent_and_the_dark_twin_has_no_light_color_left():
    light, dark = drawing(), dark_twin(drawing())
    assert "fill: none" in fromstring(light).find(".//*[@id='patch_1']/*").get("style")
    assert all(color in light for color in CYCLE)
    assert not [color for color in DARK if color in dark]
    assert all(color in dark for color in CYCLES["dark"])
    assert fromstring(dark).get("fill") == DARK[INK], "what says no color is black"


def test_the_dark_twin_leaves_other_colors_alone():
    drawn = '<path style="fill: #440154"/><use href="#a1b2c3"/></svg>'
    assert dark_twin(f"<svg>{drawn}").endswith(drawn)
