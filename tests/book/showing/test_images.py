"""Images keep their place and load when they come near."""

import base64
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from executed_book.showing.images import settle_images

#: A picture of one by one pixel.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)


LATE = 'loading="lazy" decoding="async">'


def svg(size: str) -> bytes:
    return f'<?xml version="1.0"?>\n<svg\n {size} viewBox="0 0 9 9"></svg>'.encode()


@pytest.fixture
def settled(tmp_path: Path):
    """What becomes of a page's body; images are `a.*` of the book."""

    def settle(body: str, **files: bytes) -> str:
        for suffix, content in files.items():
            (tmp_path / f"a.{suffix}").write_bytes(content)
        names = {f"a.{suffix}": f"a.{suffix}" for suffix in files}
        builder = SimpleNamespace(images=names)
        app: Any = SimpleNamespace(builder=builder, srcdir=tmp_path)
        context = {"body": body}
        settle_images(app, "page", "page.html", context, None)
        return context["body"]

    return settle


@pytest.mark.parametrize(
    ("said", "size"),
    [
        ('width="72pt" height="36pt"', (96, 48)),
        ('height="30px" width="40.4"', (40, 30)),
    ],
)
def test_a_drawing_has_its_size_in_pixels_and_a_picture_its_own(settled, said, size):
    body = settled('<img alt="A" src="../_images/a.svg" />', svg=svg(said))
    width, height = size
    drawn = f'<img alt="A" src="../_images/a.svg" width="{width}" height="{height}"'
    assert body == f"{drawn} {LATE}"
    assert 'width="1" height="1" loading' in settled('<img src="a.png">', png=PNG)


@pytest.mark.parametrize("said", ['width="100%" height="50%"', 'width="3"', ""])
def test_a_drawing_that_does_not_say_its_size_has_none(settled, said):
    assert settled('<img src="a.svg">', svg=svg(said)) == f'<img src="a.svg" {LATE}'


@pytest.mark.parametrize(
    "image", ['<img alt="no source">', '<img src="a.svg" loading="eager">']
)
def test_other_images_are_left_alone(settled, image):
    assert settled(f"<p>{image}</p>", svg=svg("")) == f"<p>{image}</p>"


def test_a_size_that_the_author_gave_stays_and_an_image_of_elsewhere_is_late(settled):
    body = settled('<img src="a.svg" width="9">', svg=svg('width="1" height="2"'))
    assert body == f'<img src="a.svg" width="9" {LATE}'
    assert LATE in settled('<img src="https://x.dev/b.png">')
